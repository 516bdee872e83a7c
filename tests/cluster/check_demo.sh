#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deploy/demo.sh: what it refuses costs nothing, and the last demo stays. Its scripts that install, build and sweep
# are stand-ins, since those have tests of their own.
# usage: check_demo.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
root=$folder/root
mkdir -p "$root/deploy" "$root/tests" "$root/build/release" "$root/build/demo"
cp "$2/deploy/demo.sh" "$root/deploy"
ln -s "$(dirname "$base")" "$root/tests/data"
ln -s "$program" "$root/build/release/bitsweep"
touch "$root/build/demo/demo.plan" "$root/build/demo/last"
for script in install build run; do
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho "%s.sh $*" >>%q\n' "$script" "$folder/started" >"$root/deploy/$script.sh"
    chmod +x "$root/deploy/$script.sh"
done
: >"$folder/started"

# is_refused PATTERN ARGUMENTS...: at once, and the last demo is there.
is_refused() {
    local pattern=$1
    shift
    refused 2 "^demo.sh: $pattern" "$root/deploy/demo.sh" "$@"
    check "$*: the last demo is there" test -e "$root/build/demo/last"
    check "$*: nothing was started" test ! -s "$folder/started"
}
mkdir "$folder/mine"
cp "$base" "$folder/base.u8bin"
cp "$queries" "$folder/queries.u8bin"
own=(--base "$folder/base.u8bin" --queries "$folder/queries.u8bin" --metric l2)
is_refused '--ranks 0: ' --ranks 0
is_refused '--ranks two: ' --ranks two
is_refused '--metric l1: ' --metric l1
is_refused '--base and --queries go together' "${own[@]:0:2}" --metric l2
is_refused '--base and --queries go together' "${own[@]:2:2}"
is_refused '--base needs --metric' "${own[@]:0:4}"
is_refused '--base none.fbin: no such file' "${own[@]}" --base none.fbin
is_refused '--queries none.fbin: no such file' "${own[@]}" --queries none.fbin
is_refused '--out .*mine is there and was not made by this script' --out "$folder/mine"
is_refused '--ranks needs a value' --ranks
is_refused 'unknown option --rank' --rank 2

is_refused '--text none.tsv: no such file' --text none.tsv
is_refused '--text has a demo of its own' --text --metric l2

# What only the program can tell.
echo "no vectors" >"$folder/text.fbin"
refused 65 'text.fbin' "$root/deploy/demo.sh" "${own[@]}" --base "$folder/text.fbin"
check "no vectors: the last demo is there" test -e "$root/build/demo/last"
check "no vectors: nothing was swept" test "$(grep -c '^run.sh' "$folder/started" || true)" = 0

# With all in order it begins anew; the stand-in then ends it.
echo "exit 3" >>"$root/deploy/run.sh"
code=0
"$root/deploy/demo.sh" "${own[@]}" --ranks 2 >"$folder/said" 2>&1 || code=$?
check "the sweep's exit code" test $code = 3
check "it is said that building takes long" grep -q 'building; .* minutes' "$folder/said"
check "a sweep on two ranks" grep -q '^run.sh -n 2 sweep --base .* --metric l2 ' "$folder/started"
check "the last demo is gone" test ! -e "$root/build/demo/last" -a -s "$root/build/demo/demo.plan"

# Text in, text out, by the program itself.
code=0
"$root/deploy/demo.sh" --text --out "$folder/text" >"$folder/said" 2>"$folder/progress" || code=$?
check "--text" test $code = 0
check "three questions" test "$(grep -c '^question: ' "$folder/said")" = 3
check "three answers to each" test "$(grep -cE '^ +0\.[0-9]+ +[0-9]+  [a-z]' "$folder/said")" = 9
check "what it can know" grep -qE '^ +0\.[0-9]+ +[0-9]+  dead, drained: drained of electric charge' "$folder/said"
finish
