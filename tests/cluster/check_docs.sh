#!/usr/bin/env bash
# Every command in docs/ runs: the blocks that begin with ```sh, page by page, in a folder that has tests/data; each
# page that a page names is there.
# usage: check_docs.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
PATH=$(dirname "$program"):$PATH

# blocks PAGE: its commands.
blocks() {
    awk '/^```sh$/ {on = 1; next} /^```/ {on = 0} on' "$1"
}

# page_runs PAGE: in a folder of its own.
page_runs() {
    mkdir -p "$folder/$(basename "$1")/tests"
    ln -s "$(dirname "$base")" "$folder/$(basename "$1")/tests/data"
    blocks "$1" >"$folder/commands"
    (cd "$folder/$(basename "$1")" && bash -euo pipefail "$folder/commands" >"$folder/said" 2>&1) || {
        tail -n 5 "$folder/said" >&2
        return 1
    }
}

for page in "$2"/docs/*.md; do
    check "$(basename "$page")" page_runs "$page"
    while read -r link; do
        check "$(basename "$page"): $link" test -e "$(dirname "$page")/$link"
    done < <(grep -oE '\]\([^)#:]+' "$page" | sed 's/^](//')
done
check "the program is in a page" grep -q '^bitsweep ' "$folder/commands"
finish
