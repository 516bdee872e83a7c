#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The training of encode says what it does where it takes long: axes of many dims, and passes over the
# sample by the plain kernels. --quiet says nothing.
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
else
    echo "script is missing: bars are not looked at"
fi

finish
