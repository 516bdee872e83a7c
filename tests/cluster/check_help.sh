#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every --help fits into 100 columns, and loses nothing by that: of commands, benches and scripts. Sizes
# have one unit. README.md and docs/ name what is there: options, commands, codecs, exit codes.
# usage: check_help.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
scripts=$2/deploy
pages=("$2/README.md" "$2"/docs/*.md)

# options_of FILE...: --options in them.
options_of() {
    grep -ohE -e '(^|[^a-z-])--[a-z][a-z0-9-]*' "$@" | grep -oE -e '--.*' || true
}

# fits WHAT COMMAND...: its help is there, and no line of it is wider than 100 columns.
fits() {
    local what=$1 widest
    shift
    "$@" >"$folder/help" 2>"$folder/stderr" </dev/null || complain "$what --help: exit code $?"
    options_of "$folder/help" >>"$folder/options"
    widest=$(awk '{if (length($0) > most) most = length($0)} END {print most + 0}' "$folder/help")
    check "$what --help: the widest line has $widest columns" test "$widest" -gt 20 -a "$widest" -le 100
    check "$what --help: a line ends with a space" test -z "$(grep ' $' "$folder/help")"
}

# A reader that goes is no fault worth a line; a full disk is.
mkfifo "$folder/pipe"
exec 7<>"$folder/pipe" # so that the next does not wait for a reader
exec 8>"$folder/pipe"
exec 7<&-
code=0
"$program" search --help >&8 2>"$folder/stderr" || code=$?
exec 8>&-
check "nobody reads: exit code $code, and no line" test "$code" = 74 -a ! -s "$folder/stderr"
if [[ -e /dev/full ]]; then
    code=0
    "$program" search --help >/dev/full 2>"$folder/said" || code=$?
    check "a full disk: exit code $code" test "$code" = 74
    check "and says so" grep -q '^bitsweep: cannot write to standard output$' "$folder/said"
fi

fits bitsweep "$program" --help
mapfile -t commands < <("$program" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
check "commands: ${commands[*]}" test "${#commands[@]}" -ge 12
for command in "${commands[@]}"; do
    fits "$command" "$program" "$command" --help
    num_often=$(grep -c '^  --' "$folder/help" || true)
    check "$command --help: $num_often options" test "$num_often" -le 21
    grep -q '^  --help \[all\]' "$folder/help" || continue
    fits "$command all" "$program" "$command" --help all
    check "$command --help all has more" test "$(grep -c '^  --' "$folder/help")" -gt "$num_often"
    check "$command: its parts" test "$(grep -cxE '(Needed|Often used|All others):' "$folder/help")" -ge 2
done
for command in memory kernels cluster tune; do fits "bench $command" "$program" bench "$command" --help; done
if [[ -x $emulated ]]; then fits "bench device" "$emulated" bench device --help; fi
fits run_peers.sh env COLUMNS=100 "$2/bench/peers/run_peers.sh" --help # which installs nothing
for script in build demo install run test; do fits "$script.sh" "$scripts/$script.sh" --help; done

# What pages name is there, and what is there is named.
grep -hvE 'pkg-config|pip wheel|cmake --|shm-size|python3 (run|create_dataset)\.py' "${pages[@]}" >"$folder/pages" # options of others
options_of "$folder/pages" | sort -u >"$folder/named"
check "pages name $(wc -l <"$folder/named") options" test "$(wc -l <"$folder/named")" -ge 80
unknown=$(comm -23 "$folder/named" <(sort -u "$folder/options") | tr '\n' ' ')
check "options that no help has: $unknown" test -z "$unknown"
for command in "${commands[@]}"; do check "$command in README.md" grep -q "^| .*\`$command\`.* |" "$2/README.md"; done
codecs=$("$program" encode --help | sed -n 's/^ *--codec \([a-z0-9|]*\) .*/\1/p')
for codec in ${codecs//|/ }; do check "$codec in docs/codes.md" grep -q "^| \`$codec\`" "$2/docs/codes.md"; done
codes=$("$program" --help | sed -n '/^Exit codes/,$p' | grep -oE '\b[0-9]+ [a-z]' | tr -dc '0-9\n')
check "exit codes: ${codes//$'\n'/ }" test "$(wc -w <<<"$codes")" -eq 6
for code in $codes; do check "exit code $code in docs/cluster.md" grep -q "^| $code |" "$2/docs/cluster.md"; done

# Sizes that people read are in powers of 1000, as the K, M, G of options are: GB, and nowhere GiB.
check "GiB in a page" test -z "$(grep -rlE '[KMGTP]iB' --include=*.md --exclude-dir=build "$2")"
check "GiB in a text of the program" \
    test -z "$(grep -rlE '"[^"]*[KMGTP]iB' --include=*.c "$2/common" "$2/kernels" "$2/shard" "$2/coordinator" "$2/bench")"

# An option's words are all there, in their order, however they are broken.
"$program" train --help all | tr -s ' \n' ' ' >"$folder/train"
check "words" grep -q -- '--help \[all\] this text' "$folder/train"
check "a default, behind the words" grep -q -- '--timeout SECONDS longest wait for another rank \[1800\]' "$folder/train"

finish
