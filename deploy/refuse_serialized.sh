#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a compiler and fails also where ptxas only tells, as an info, that it could not leave wgmma
# running: waits put in (C7517, C7519), instructions serialized (C7510 to C7512).
# usage: refuse_serialized.sh COMMAND...; the object (-o FILE) is removed then
set -euo pipefail

case ${1:---help} in
-h | --help)
    echo "usage: refuse_serialized.sh COMMAND..."
    exit 0
    ;;
esac
messages=$(mktemp)
trap 'rm -f "$messages"' EXIT
code=0
"$@" 2>"$messages" || code=$?
cat "$messages" >&2
((code == 0)) || exit "$code"
grep -qE '\(C75[0-9]{2}\)|wgmma.*serialized' "$messages" || exit 0
echo "refuse_serialized.sh: ptxas does not leave wgmma running: refused" >&2
while (($# > 1)); do
    if [[ $1 == -o ]]; then rm -f "$2"; fi
    shift
done
exit 1
