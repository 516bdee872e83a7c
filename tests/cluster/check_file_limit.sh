#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# More shards than a process may have files open: the soft limit is raised, and where the hard one is too
# low one line has both figures and nothing is begun.
# usage: check_file_limit.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
cd "$folder"
find_ranks 2
# Two files a shard, so that one of two ranks has 140.
encode=(encode --base "synth:count=4K,dims=8" --metric l2 --shards 140 --copy-vectors --quiet)
search=(search --queries "synth:count=3,dims=8,seed=2" --quiet --force)

ulimit -S -n 128
for ranks in "${ranks_axis[@]}"; do
    check "encode, $ranks ranks" on "$ranks" "${encode[@]}" --index "few.$ranks"
    check "search, $ranks ranks" on "$ranks" "${search[@]}" --index "few.$ranks" --out found
    check "verify, $ranks ranks" on "$ranks" verify "few.$ranks" --quiet
    check "the bytes, $ranks ranks" diff -r few.1 "few.$ranks"
done

ulimit -H -n 128
for ranks in "${ranks_axis[@]}"; do
    code=0
    on "$ranks" "${encode[@]}" --index refused >out 2>said || code=$?
    check "too low, $ranks ranks: exit code $code" test $code = 74
    check "too low, $ranks ranks: one line" test "$(wc -l <said)" = 1
    check "too low, $ranks ranks: both figures" \
        grep -qE '[0-9]{3} files open at once are needed .* the hard limit of this process is 128:' said
    check "too low, $ranks ranks: nothing is there" test ! -e refused
done

finish
