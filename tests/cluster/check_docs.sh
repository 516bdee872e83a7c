#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command in README.md and docs/ runs: the blocks that begin with ```sh, each page in a folder of its own that has
# tests/data. No two pages make a file of one name, since a reader may follow several of them in one folder.
# usage: check_docs.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
PATH=$(dirname "$program"):$PATH

# blocks PAGE: its commands.
blocks() {
    awk '/^```sh$/ {on = 1; next} /^```/ {on = 0} on' "$1"
}

# page_runs PAGE: its commands are in the folder $job.
page_runs() {
    mkdir -p "$job/tests"
    ln -s "$(dirname "$base")" "$job/tests/data"
    blocks "$1" >"$job/commands"
    (cd "$job" && bash -euo pipefail commands >said 2>&1) || {
        tail -n 5 "$job/said" >&2
        return 1
    }
    find "$job" -mindepth 1 -maxdepth 1 -printf '%f\n' | grep -vxE 'tests|commands|said' >>"$folder/all_made" || true
}

# options_are_known PAGE: those of commands in it that are not run, which stand indented by four blanks.
options_are_known() {
    local command option unknown=0
    awk '/^    / {line = substr($0, 5); while (line ~ /\\$/ && (getline more) > 0) {sub(/\\$/, "", line); line = line more}
        n = split(line, parts, /&&|[|;#]/); for (i = 1; i <= n; i++) print parts[i]}' "$1" |
        sed -nE 's/^ *(.*\/)?bitsweep +([a-z]+) (.*)$/\2 \3/p; s/^ *deploy\/run.sh .*-n [0-9]+ ([a-z]+ .*)$/\1/p' >"$job/shown"
    cat "$job/shown" >>"$folder/all_shown"
    while read -r command option; do
        [[ $command != bench ]] || continue # each of its WHATs has options of its own
        [[ -s $folder/help.$command ]] || "$program" "$command" --help all >"$folder/help.$command" 2>&1 </dev/null || true
        while read -r option; do
            grep -qE -e "^ +(-[a-z], )?$option( |=|\[|$)" "$folder/help.$command" && continue
            echo "$command $option: in ${1##*/}, but not in its --help" >&2
            unknown=1
        done < <(grep -oE -e '--[a-z][a-z-]*' <<<"$option" || true)
    done <"$job/shown"
    ((!unknown))
}

num_pages=0
for page in "$2/README.md" "$2"/docs/*.md; do
    num_pages=$((num_pages + 1))
    job=$folder/$num_pages
    check "${page#"$2/"}" page_runs "$page"
    check "${page#"$2/"}: options" options_are_known "$page"
done
num_with=$(grep -lE '^bitsweep ' "$folder"/*/commands | wc -l)
check "$num_with of $num_pages pages run the program" test "$num_with" -ge 8
check "no two pages make the same: $(sort "$folder/all_made" | uniq -d | xargs)" test -z \
    "$(sort "$folder/all_made" | uniq -d)"
check "commands that are only shown" test "$(wc -l <"$folder/all_shown")" -ge 8
check "the README runs the program" grep -qE '^bitsweep search ' "$folder/1/commands"
check "the README is short: $(wc -c <"$2/README.md") bytes" test "$(wc -c <"$2/README.md")" -le 9000
finish
