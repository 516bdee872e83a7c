# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what is set here is for the scripts; support.sh has set folder, base and the others
# For scripts that choose among rows in other ways than by k; sourced after support.sh. It sets
#   rows, num_queries     of rows.u8bin and queries.u8bin in $folder, the first of the sample
#   codes                 "NAME|options of encode|options of search": such a search and one that looks at all rows have
#                         the same values

rows=2000 num_queries=40
{ printf '\xd0\x07\0\0' && head -c $((8 + rows * 128)) "$base" | tail -c +5; } >"$folder/rows.u8bin"
{ printf '\x28\0\0\0' && head -c $((8 + num_queries * 128)) "$queries" | tail -c +5; } >"$folder/queries.u8bin"

codes=("raw|--codec raw|" "saq|--bits 3|--refine none" "xfbq|--codec xfbq --bits 2 --rotation none|--refine none"
    "pq|--codec pq|--refine none" "sq8|--codec sq8|--refine none" "ip|--bits 2|--refine none"
    "raw_lists|--codec raw --lists 20|--probe all" "saq_lists|--bits 2 --lists 20|--probe all --refine none"
    "residual|--bits 2 --lists 20 --residual yes|--probe all --refine none"
    "pq_lists|--codec pq --lists 20|--probe all --refine none")

# encode_code CODE: an index $folder/$name of three shards; sets name and search.
encode_code() {
    local how metric=l2
    IFS='|' read -r name how search <<<"$1"
    read -ra how <<<"$how"
    read -ra search <<<"$search"
    [[ $name != xfbq && $name != saq_lists ]] || metric=cosine
    [[ $name != ip ]] || metric=ip
    check "encode $name" "$program" encode --base "$folder/rows.u8bin" --metric $metric --index "$folder/$name" \
        --shards 3 --calibrate off --quiet "${how[@]}"
}
