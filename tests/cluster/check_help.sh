#!/usr/bin/env bash
# Every --help fits into 100 columns, and loses nothing by that: of commands, benches and scripts. Sizes
# have one unit.
# usage: check_help.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
scripts=$2/deploy

# fits WHAT COMMAND...: its help is there, and no line of it is wider than 100 columns.
fits() {
    local what=$1 widest
    shift
    "$@" >"$folder/help" 2>"$folder/stderr" </dev/null || complain "$what --help: exit code $?"
    widest=$(awk '{if (length($0) > most) most = length($0)} END {print most + 0}' "$folder/help")
    check "$what --help: the widest line has $widest columns" test "$widest" -gt 20 -a "$widest" -le 100
    check "$what --help: a line ends with a space" test -z "$(grep ' $' "$folder/help")"
}

fits bitsweep "$program" --help
mapfile -t commands < <("$program" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
check "commands: ${commands[*]}" test "${#commands[@]}" -ge 12
for command in "${commands[@]}"; do fits "$command" "$program" "$command" --help; done
for command in memory kernels cluster tune; do fits "bench $command" "$program" bench "$command" --help; done
if [[ -x $emulated ]]; then fits "bench device" "$emulated" bench device --help; fi
for script in build demo install run test; do fits "$script.sh" "$scripts/$script.sh" --help; done

# Sizes that people read are in powers of 1000, as the K, M, G of options are: GB, and nowhere GiB.
check "GiB in a page" test -z "$(grep -rlE '[KMGTP]iB' --include=*.md --exclude-dir=build "$2")"
check "GiB in a text of the program" \
    test -z "$(grep -rlE '"[^"]*[KMGTP]iB' --include=*.c "$2/common" "$2/kernels" "$2/shard" "$2/coordinator" "$2/bench")"

# An option's words are all there, in their order, however they are broken.
"$program" train --help | tr -s ' \n' ' ' >"$folder/train"
check "words" grep -q -- '--help this text' "$folder/train"
check "a default, behind the words" grep -q -- '--timeout SECONDS longest wait for another rank \[1800\]' "$folder/train"

finish
