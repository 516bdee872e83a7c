#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole way on two ranks against one: encode, verify, search, groundtruth. Small enough to run
# under sanitizers.
# usage: check_two_ranks.sh BITSWEEP_BINARY SOURCE_FOLDER
# ctest labels: asan
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
find_ranks 2
((has_mpi)) || exit 77

# both NAME COMMAND: on one rank into NAME.1 and on two into NAME.2; the same bytes.
both() {
    local name=$1
    shift
    check "$name, 1 rank" "$run" -n 1 "$@" --out "$folder/$name.1" --quiet
    check "$name, 2 ranks" "$run" -n 2 "$@" --out "$folder/$name.2" --quiet
    check "$name, the same bytes" cmp "$folder/$name.1" "$folder/$name.2"
}

encode() {
    local name=$1
    shift
    for ranks in 1 2; do
        check "encode $name, $ranks ranks" "$run" -n "$ranks" encode --base "$base" --rows 0:3001 \
            --index "$folder/$name.$ranks" --shards 3 --quiet "$@"
    done
    check "encode $name, the same bytes" diff -r "$folder/$name.1" "$folder/$name.2"
    check "verify $name" "$run" -n 2 verify "$folder/$name.2"
}

encode xfbq --codec xfbq --bits 3
encode saq --codec saq --bits 2.5 --metric l2 --copy-vectors
# Each way to scan and to merge with each codec; check_identity.sh has more of them together.
for pair in "planes gather ladder" "matrix ladder gather"; do
    read -r scan saq_merge xfbq_merge <<<"$pair"
    both "saq-$scan-$saq_merge" search --index "$folder/saq.1" --queries "$queries" --merge "$saq_merge" \
        --scan "$scan" --batch 64 --overlap on
    both "xfbq-$scan-$xfbq_merge" search --index "$folder/xfbq.1" --queries "$queries" \
        --merge "$xfbq_merge" --scan "$scan" --refine none --k 100
done
both histogram search --index "$folder/xfbq.1" --queries "$queries" --extra-distance 20
both truth groundtruth --base "$base" --rows 0:3001 --queries "$queries" --metric l2 --k 10
check "eval" "$run" -n 2 eval --results "$folder/saq-matrix-ladder.2" \
    --groundtruth "$folder/truth.2"
cp "$folder/stdout" "$folder/recalls"
check "eval finds nearly all" grep -q '^10-recall@10  *\(0.99\|1.0\)' "$folder/recalls"

# An error on two ranks is clean as well.
if "$run" -n 2 search --index "$folder/saq.1" --queries "$base" --query-rows 0:1 --k 4000 \
    --out "$folder/none" 2>"$folder/stderr"; then
    complain "k above the rows was taken"
elif [[ $(wc -l <"$folder/stderr") == 1 ]]; then
    pass
else
    complain "k above the rows: more than one line"
fi

finish
