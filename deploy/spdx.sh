#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Licence lines of sources: --check prints FILE:1: WHAT for each that has none, --add writes them. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Put together here, so that this file has the line once.
words="SPDX-License-""Identifier: Apache-2.0"

help() {
    cat <<'END'
usage: deploy/spdx.sh --check | --add

Every source that git knows or would take (C, CUDA, C++, Python, shell, CMake, .proto, gnuplot, YAML, container
files, .ci/run) says its licence in the first line, or in the second where the first begins with #!.

  --check   print FILE:1: for each that does not
  --add     add the line to those

Exit codes: 0 all have it, 1 some do not (--check), 2 usage.
END
}

is_source() {
    case $1 in
    tests/data/* | */corpus/*) false ;;
    *.c | *.h | *.cpp | *.hpp | *.cu | *.cuh | *.proto | *.sh | *.py | *.pyi | *.cmake | CMakeLists.txt | \
        */CMakeLists.txt | *.gp | *.yaml | *.yml | *.awk | *.toml | */Dockerfile | *.Dockerfile | *.def | .ci/run) ;;
    *) false ;;
    esac
}

# shellcheck disable=SC2016 # awk's
# Finds the files named on stdin that lack the line: MARK, lines that stay above it (1 after #!), FILE.
find_missing() {
    xargs -0 -r awk -v words="$words" '
        FNR == 1 {above = /^#!/ ? 1 : 0}
        FNR == above + 1 {
            mark = FILENAME ~ /\.(c|h|cpp|hpp|cu|cuh|proto)$/ ? "//" : "#"
            if ($0 != mark " " words) print mark, above, FILENAME
            nextfile
        }'
}

# Names of sources.
list_sources() {
    git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
        if is_source "$file" && [[ -s $file && ! -L $file ]]; then printf '%s\0' "$file"; fi
    done
}

add_line() { # add_line FILE MARK ABOVE: the file keeps its mode
    local copy
    copy=$(mktemp)
    {
        head -n "$3" "$1"
        echo "$2 $words"
        tail -n "+$(($3 + 1))" "$1"
    } >"$copy"
    cat "$copy" >"$1"
    rm -f "$copy"
}

# All of it is read before this file itself changes.
main() {
    case ${1:-} in
    --check | --add) ;;
    -h | --help) help && exit 0 ;;
    *) help >&2 && exit 2 ;;
    esac
    cd "$root"
    num_missing=0
    while read -r mark above file; do
        num_missing=$((num_missing + 1))
        if [[ $1 == --add ]]; then
            add_line "$file" "$mark" "$above"
        else
            echo "$file:1: no licence line ($mark $words)"
        fi
    done < <(list_sources | find_missing)
    if [[ $1 == --add ]]; then
        echo "spdx.sh: added to $num_missing files"
    elif ((num_missing)); then
        exit 1
    fi
}

main "$@"; exit
