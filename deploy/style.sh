#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Style check: one line, FILE:LINE: WHAT, for each violation; exit 1 if there is any.
# Checks whose tool is missing (clang-format 14, g++, shellcheck) are named and left out.
# usage: deploy/style.sh
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
if (($#)); then
    echo "usage: deploy/style.sh" >&2
    [[ $1 == -h || $1 == --help ]] && exit 0
    exit 2
fi

num_cores=$(nproc)
max_lines=600
max_function_lines=60
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=$work/found # all violations
: >"$found"

skip() {
    echo "style.sh: $1 is missing: $2 left out" >&2
}

# Everything that belongs to the tree: what git knows or would take, or without git what is not built.
list_files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard | while read -r file; do
            [[ ! -f $file ]] || echo "$file"
        done
    else
        find . -type f -not -path './build*' -not -path './carried/*' -not -path './.git/*' -printf '%P\n'
    fi | sort
}

is_text_name() {
    [[ $1 =~ \.(c|h|cpp|hpp|cu|cuh|sh|md|txt|proto|py|gp|json|yml|yaml|cmake|glsl|rgen|rint|rahit|rmiss)$ || $1 == .ci/run ||
        $1 == .gitignore || $1 == .editorconfig || $1 == .clang-format ]]
}

is_script() {
    [[ $1 == *.sh || $1 == .ci/run ]]
}

# ---- text ----------------------------------------------------------------------------------------

check_text() {
    # The words are put together here so that this file does not hold them.
    local words="TO""DO|FIX""ME|X""XX"
    grep -nHP '\t' "${texts[@]}" | sed -E 's/^([^:]+:[0-9]+):.*/\1: tab/' >>"$found" || true
    grep -nHP '\s+$' "${texts[@]}" | sed -E 's/^([^:]+:[0-9]+):.*/\1: blank at the end/' >>"$found" || true
    grep -nHwE "$words" "${texts[@]}" | sed -E 's/^([^:]+:[0-9]+):.*/\1: unfinished work/' >>"$found" || true
}

# A comment says what a thing is; that it is "of" something leaves out just that. Pages and patches are not asked.
check_words() {
    local asked=() file opener='(^|[[:space:]])(//|/\*+|\*|#)[[:space:]]?|"""'
    for file in "${texts[@]}"; do
        if [[ $file != *.md ]]; then asked+=("$file"); fi
    done
    grep -nHE "($opener)O""f " "${asked[@]}" | sed -E 's/^([^:]+:[0-9]+):.*/\1: a comment that begins with "O''f"/' \
        >>"$found" || true
}

# One process for all files: grep counts a line that has no end too, and wc does not.
check_sizes() {
    paste -d ' ' <(grep -c '' "${texts[@]}" /dev/null) <(wc -l "${texts[@]}" /dev/null | awk '{print $1}' | sed '$d') |
        awk -v most="$max_lines" '{
            ended = $NF
            sub(/ [0-9]+$/, "")
            lines = $0
            sub(/.*:/, "", lines)
            sub(/:[0-9]+$/, "")
            if (lines + 0 > most + 0) print $0 ":" lines ": more than " most " lines"
            if (lines + 0 != ended + 0) print $0 ":" lines ": no newline at the end"
        }' >>"$found"
}

# Each folder may have its own README.md and CMakeLists.txt; files of each format are named alike.
check_names() {
    printf '%s\n' "${files[@]}" | awk -F/ '
        $NF == "README.md" || $NF == "CMakeLists.txt" || /^tests\/data\/format-/ {next}
        $NF in first {print $0 ":1: same name as " first[$NF]; next}
        {first[$NF] = $0}' >>"$found"
}

# Relative links of pages lead to something that is there; blocks of code have none.
check_links() {
    awk '
        FNR == 1 {fenced = 0}
        /^```/ {fenced = !fenced}
        fenced || /^    / {next}
        {
            for (rest = $0; match(rest, /\]\([^) ]+\)/); rest = substr(rest, RSTART + RLENGTH))
                print FILENAME ":" FNR " " substr(rest, RSTART + 2, RLENGTH - 3)
        }' "${pages[@]}" | while read -r place link; do
        [[ $link =~ ^(https?:|mailto:|#) || -e $(dirname "${place%:*}")/${link%%#*} ]] ||
            echo "$place: no such file: $link" >>"$found"
    done
}

# Once spdx.sh has its own licence line, all sources have one.
check_licences() {
    if sed -n 2p deploy/spdx.sh | grep -q SPDX; then deploy/spdx.sh --check >>"$found" || true; fi
}

# ---- C -------------------------------------------------------------------------------------------

check_format() {
    local formatter=clang-format
    if command -v clang-format-14 >/dev/null; then formatter=clang-format-14; fi
    if ! "$formatter" --version 2>/dev/null | grep -q 'version 14\.'; then
        skip "clang-format 14" "format of C and CUDA"
        return
    fi
    printf '%s\0' "${sources[@]}" | xargs -0 -n 50 -P "$num_cores" "$formatter" --dry-run -Werror 2>&1 |
        sed -nE 's/^([^:]+:[0-9]+):[0-9]+: error: .*/\1: not as clang-format has it/p' |
        sort -u >>"$found" || true
}

# A function's body stands between '{' and '}' alone in the first column, as clang-format has them.
check_functions() {
    awk -v most="$max_function_lines" '
        FNR == 1 {inside = 0; before = ""}
        /^\{/ && before !~ /^(class|struct|union|enum|namespace|extern|typedef)/ && before !~ /=$/ {
            start = FNR
            inside = 1
        }
        /^\}/ {
            if (inside && FNR - start - 1 > most)
                print FILENAME ":" start ": function of more than " most " lines"
            inside = 0
        }
        !/^ / {before = $0}' "${sources[@]}" >>"$found"
}

# Some headers include what protoc-c makes of the schema.
make_schema() {
    if command -v protoc-c >/dev/null; then
        protoc-c --proto_path=common --c_out="$work" common/*.proto
    fi
}

# compile_header FILE MESSAGES COMPILER [FLAGS]: alone and twice included.
compile_header() {
    local file=$1 messages=$2
    shift 2
    printf '#include "%s"\n#include "%s"\n' "$file" "$file" |
        "$@" -fsyntax-only -Wall -Wextra -Werror -I. -isystem "$work" - 2>"$messages" && return
    local first
    first=$(grep -m 1 -E 'error|warning' "$messages" || head -n 1 "$messages")
    echo "$file:1: does not compile alone with $1: ${first##*error: }" >>"$found"
}

# Headers of a library that need not be here.
needs_vulkan() {
    ((!has_vulkan)) && grep -q '^#include .*[</]vulkan[/_]' "$1"
}

as_plus=(-std=gnu++17 -x c++ -Wno-unknown-pragmas)

# compile_together MESSAGES HEADER...: as C++. What compiles alone as C needs no more, and one compiler takes a tenth of
# the time of many. If it fails they are compiled one by one, which tells whose fault it is.
compile_together() {
    local messages=$1 file
    shift
    if (($# == 0)) || printf '#include "%s"\n' "$@" "$@" |
        g++ "${as_plus[@]}" -fsyntax-only -Wall -Wextra -Werror -I. -isystem "$work" - 2>"$messages"; then return; fi
    for file; do compile_header "$file" "$messages" g++ "${as_plus[@]}"; done
}

# compile_headers PART PLUS: of the headers every so many as there are cores; as C++ those of every so many folders.
compile_headers() {
    local part=$1 plus=$2 number=0 num_folders=0 folder="" file messages=$work/messages.$1 together=()
    for file in "${sources[@]}"; do
        [[ $file =~ \.(h|hpp|cuh)$ ]] || continue
        if needs_vulkan "$file"; then continue; fi
        if [[ $folder != "${file%/*}" ]]; then
            compile_together "$messages" ${together[@]+"${together[@]}"}
            folder=${file%/*} num_folders=$((num_folders + 1)) together=()
        fi
        # Headers of unit tests are for C alone.
        if ((plus && num_folders % num_cores == part)) && [[ $file == *.h && $file != tests/unit/* ]]; then
            together+=("$file")
        fi
        ((number++ % num_cores == part)) || continue
        if [[ $file == *.h ]]; then
            compile_header "$file" "$messages" gcc -std=gnu17 -x c
        elif ((plus)); then
            compile_header "$file" "$messages" g++ "${as_plus[@]}"
        fi
    done
    compile_together "$messages" ${together[@]+"${together[@]}"}
}

check_headers() {
    local part plus=1 has_vulkan=1
    command -v g++ >/dev/null || plus=0
    ((plus)) || skip g++ "headers as C++"
    pkg-config --exists vulkan 2>/dev/null || has_vulkan=0
    ((has_vulkan)) || skip Vulkan "its headers"
    make_schema
    for ((part = 0; part < num_cores; part++)); do compile_headers "$part" "$plus" & done
    wait
}

# ---- rooms ---------------------------------------------------------------------------------------

# Which rooms (folders) a room may include, besides itself; a folder stands for all below it. common, kernels, shard
# and coordinator point one way, and so do the rooms of each. A room that is not here may include nothing.
# shard/seam is what lies in shard/ itself but for the service, which checks itself and knows all rooms of shard;
# coordinator/face is the header of the library, which includes nothing.
directions='
common/base:
common/job: common/base
common/codes: common/base
common/device: common/base
common/rows: common/base common/job common/codes
common/files: common/base common/job common/codes common/rows
common/net: common/base common/job common/device
kernels: common/base common/codes common/rows common/files
shard/seam: common kernels shard/codecs shard/lists shard/scan
shard/codecs: common kernels shard/lists
shard/scan: common shard/lists
shard/host: common kernels shard/seam shard/codecs shard/lists shard/scan
shard/device: common kernels shard/seam shard/codecs shard/host shard/lists shard/scan
shard/exact: common kernels shard/seam shard/codecs shard/device shard/lists
shard/lists: common kernels
shard/checks: common kernels shard/seam shard/codecs shard/host
shard: common kernels shard
coordinator/job: common kernels shard
coordinator/face:
coordinator/search: common kernels shard coordinator/job coordinator/face
coordinator/encode: common kernels shard coordinator/job coordinator/search
coordinator/truth: common kernels shard coordinator/job
coordinator/calibrate: common kernels shard coordinator/job coordinator/search coordinator/encode coordinator/truth
coordinator/train: common kernels shard coordinator/job coordinator/encode
coordinator/sweep: common kernels shard coordinator/job coordinator/search coordinator/encode coordinator/truth coordinator/train
coordinator/sweep: coordinator/calibrate
coordinator/plan: common kernels shard coordinator/job coordinator/search coordinator/encode
coordinator/commands: common kernels shard coordinator
bench: common kernels shard coordinator/job coordinator/search coordinator/encode coordinator/plan
coordinator: common kernels shard coordinator
'

# Directions of sources in the four folders and bench/: includes that climb, and two files that include each other.
# Kernels see the emulator where it compiles them.
check_directions() {
    local product=()
    for file in "${sources[@]}"; do
        if [[ $file =~ ^(common|kernels|shard|coordinator|bench)/ ]]; then product+=("$file"); fi
    done
    ((${#product[@]})) || return 0
    awk -v table="$directions" '
        function room(file, depth,    parts, n) {
            n = split(file, parts, "/")
            if (parts[1] == "kernels" || parts[1] == "bench") return parts[1]
            if (file ~ /^shard\/(shard_service|self_check|damage_points)/) return "shard"
            if (parts[1] == "shard" && n == 2) return "shard/seam"
            if (file == "coordinator/bitsweep.h") return "coordinator/face"
            return n > 2 ? parts[1] "/" parts[2] : parts[1]
        }
        BEGIN {
            n = split(table, lines, "\n")
            for (i = 1; i <= n; i++) {
                words = split(lines[i], word, /[: ]+/)
                for (w = 2; w <= words; w++) if (word[w] != "") allowed[word[1], word[w]] = 1
                known[word[1]] = 1
            }
        }
        /^#include "[a-z_]+\// {
            split($0, quoted, "\"")
            target = quoted[2]
            if (target ~ /^tests\/emulation\//) next
            if (target !~ /^(common|kernels|shard|coordinator|bench)\//) {
                print FILENAME ":" FNR ": " target " is not of the product"
                next
            }
            from = room(FILENAME)
            to = room(target)
            top = target
            sub(/\/.*/, "", top)
            if (from != to && !allowed[from, to] && !allowed[from, top])
                print FILENAME ":" FNR ": " from " may not include " to
            included[FILENAME, target] = FNR
            if ((target, FILENAME) in included) print FILENAME ":" FNR ": includes " target ", which includes it"
        }' "${product[@]}" >>"$found"
}

# Circles of rooms, tables of functions for one tenant, and values without names: structure.awk.
check_structure() {
    local product=() file what
    for file in "${sources[@]}"; do
        if [[ $file =~ ^(common|kernels|shard|coordinator|bench)/ ]]; then product+=("$file"); fi
    done
    ((${#product[@]})) || return 0
    for what in circles tenants values; do
        awk -v WHAT="$what" -f deploy/structure.awk "${product[@]}" >>"$found"
    done
}

# A codec is named by nobody outside of shard/codecs: commands ask what it can do.
check_codecs() {
    local names=() others=() file
    for file in shard/codecs/codec_*.c; do
        [[ -f $file ]] || return 0
        file=${file##*/codec_}
        names+=("${file%.c}")
    done
    for file in "${sources[@]}"; do
        if [[ $file =~ ^(common|kernels|shard|coordinator|bench)/ && $file != shard/codecs/* ]]; then others+=("$file"); fi
    done
    ((${#others[@]})) || return 0
    grep -nHwE "bsw_codec_($(IFS='|' && echo "${names[*]}"))|codec_($(IFS='|' && echo "${names[*]}"))\.h" "${others[@]}" |
        sed -E 's/^([^:]+:[0-9]+):.*/\1: names a codec/' >>"$found" || true
}

# ---- scripts -------------------------------------------------------------------------------------

check_scripts() {
    if ! command -v shellcheck >/dev/null; then
        skip shellcheck "shell scripts"
        return
    fi
    printf '%s\0' "${scripts[@]}" | xargs -0 -n 8 -P "$num_cores" shellcheck -x -f gcc |
        sed -E 's/^([^:]+:[0-9]+):[0-9]+: /\1: /' >>"$found" || true
}

mapfile -t files < <(list_files)
texts=()
sources=()
scripts=()
pages=()
for file in "${files[@]}"; do
    if is_text_name "$file"; then texts+=("$file"); fi
    if [[ $file =~ \.(c|h|cpp|hpp|cu|cuh)$ ]]; then sources+=("$file"); fi
    if is_script "$file"; then scripts+=("$file"); fi
    if [[ $file == *.md ]]; then pages+=("$file"); fi
done

check_text
check_words
check_sizes
check_names
check_links
check_licences
check_format
check_functions
check_headers
check_directions
check_structure
check_codecs
check_scripts
if [[ -s $found ]]; then
    cat "$found"
    echo "style.sh: $(wc -l <"$found") violations" >&2
    exit 1
fi
echo "style.sh: ${#texts[@]} files, no violation"
