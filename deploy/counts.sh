#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts of the repository, one line each: size, small files, circles of rooms, functions of back ends, comments.
# usage: deploy/counts.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if (($#)); then
    echo "usage: deploy/counts.sh" >&2
    [[ $1 == -h || $1 == --help ]] && exit 0
    exit 2
fi

mapfile -t files < <(git ls-files --cached --others --exclude-standard | while read -r file; do [[ ! -f $file ]] || echo "$file"; done | sort)
sources=() product=() tests=()
for file in "${files[@]}"; do
    [[ $file =~ \.(c|h|cpp|hpp|cu|cuh)$ ]] || continue
    sources+=("$file")
    if [[ $file == tests/* ]]; then tests+=("$file"); else product+=("$file"); fi
done
rooms=()
for file in "${product[@]}"; do
    if [[ $file =~ ^(common|kernels|shard|coordinator|bench)/ ]]; then rooms+=("$file"); fi
done

tell() {
    printf '%-52s %8s\n' "$1" "$2"
}

lines_of() {
    cat "$@" | wc -l
}

# files_of_at_most LINES
files_of_at_most() {
    grep -c '' "${product[@]}" | awk -F: -v most="$1" '$2 <= most {n++} END {print n + 0}'
}

tell "product, lines of C and CUDA" "$(lines_of "${product[@]}")"
for folder in common kernels shard coordinator bench deploy; do
    mapfile -t part < <(printf '%s\n' "${product[@]}" | grep "^$folder/")
    tell "    $folder/" "$(lines_of "${part[@]}")"
done
tell "tests, lines of C, C++ and CUDA" "$(lines_of "${tests[@]}")"
tell "product, files" "${#product[@]}"
tell "    of 50 lines or fewer" "$(files_of_at_most 50)"
tell "    of 30 lines or fewer" "$(files_of_at_most 30)"
tell "longest file, lines" "$(grep -c '' "${sources[@]}" | awk -F: '$2 > most {most = $2} END {print most + 0}')"
mapfile -t functions < <(awk -v WHAT=backend -f deploy/structure.awk "${rooms[@]}")
tell "functions of a back end" "${#functions[@]}"
tell "    with one tenant" "$(printf '%s\n' "${functions[@]}" | awk '$2 < 2' | awk 'END {print NR}')"
tell "circles of rooms" "$(awk -v WHAT=count -f deploy/structure.awk "${rooms[@]}")"
tell "    rooms in them" "$(awk -v WHAT=rooms -f deploy/structure.awk "${rooms[@]}")"
tell "files that name a metric, without bench" "$(grep -lE 'BSW_METRIC_(COSINE|IP|L2)\b' "${product[@]}" | grep -cv '^bench/')"
tell "comments that begin with \"O""f\"" "$(grep -hE "(^|[[:space:]])(//|/\*+|\*|#) ?O""f " "${files[@]}" --exclude='*.md' --exclude='*.patch' | awk 'END {print NR}')"
