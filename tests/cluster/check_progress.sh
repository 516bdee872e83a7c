#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The training of encode says what it does where it takes long: axes of many dims, and passes over the
# sample by the plain kernels. A sweep says how far it is. --quiet says nothing.
# usage: check_progress.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
encode=(encode --base "synth:count=512,dims=1024" --metric l2 --stage 32 --level reference --threads 1 --force)

check "quiet" "$program" encode --base synth:count=40,dims=1024 --metric l2 --index "$folder/quiet" --quiet
check "quiet: nothing is said" test ! -s "$folder/stderr" -a ! -s "$folder/stdout"
"$program" encode --base synth:count=40,dims=1024 --metric l2 --index "$folder/few" 2>"$folder/said" >/dev/null
check "what has no steps to count is named" grep -qx 'training, axes of 1024 dims' "$folder/said"

# On a terminal a pass of more than a second has a bar.
if command -v script >/dev/null; then
    script -qec "$program ${encode[*]} --index $folder/shown" /dev/null >"$folder/terminal" </dev/null
    check "a bar for the steps" grep -q 'training, steps \[=* *\] .*rows/s' "$folder/terminal"
    check "a bar for the scales" grep -q 'training, scales \[=* *\] .*rows/s' "$folder/terminal"
    sweep="sweep --base synth:count=300,dims=32 --queries synth:count=10,dims=32 --metric l2 --bits 2 --oversample 1,2"
    script -qec "$program $sweep --folder $folder/swept" /dev/null >"$folder/terminal" </dev/null
    check "a sweep begins without a time" grep -q 'point 1 of 2, making index saq-2 ' "$folder/terminal"
    check "and has one then" grep -qE 'point 2 of 2, index saq-2, about [0-9]+ s left ' "$folder/terminal"
    script -qec "$program $sweep --folder $folder/mute --quiet" /dev/null >"$folder/terminal" </dev/null
    check "a quiet sweep says nothing" test ! -s "$folder/terminal"
else
    echo "script is missing: bars are not looked at"
fi

finish
