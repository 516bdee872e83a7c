#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: known_reports.sh TOOL LOG LIST
# Whether all that compute-sanitizer's TOOL reports in LOG is in LIST (known_reports.txt says how) and
# the program under it ended as it should: prints how many reports there are. Exit code 1 if not, or
# if there is none, or some were not printed; the first report that is not known is then printed.
set -euo pipefail

(($# == 3)) || { echo "usage: known_reports.sh TOOL LOG LIST" >&2 && exit 2; }
tool=$1 log=$2 list=$3
grep -q ', 0 failures$' "$log" || { echo "the program did not pass" && exit 1; }

# A report begins with a line that has no blanks behind the mark; lines that go on have some.
awk -v tool="$tool" '
    function judge(    i) {
        if (report == "") return
        num++
        for (i = 1; i <= num_known && report !~ known[i]; i++);
        if (i > num_known && unknown == "") unknown = report
        report = ""
    }
    FNR == NR {
        if ($1 == tool) known[++num_known] = substr($0, length(tool) + 2)
        next
    }
    /were not printed/ {hidden = $0}
    !/^=========/ {next}
    /^========= *$/ || /SUMMARY:/ || /COMPUTE-SANITIZER/ {judge(); next}
    /^=========  / {sub(/^=+ +/, ""); if (report != "") report = report " " $0; next}
    {judge(); sub(/^=+ /, ""); report = $0}
    END {
        judge()
        if (unknown != "" || hidden != "" || num == 0) {
            print (unknown != "" ? unknown : hidden != "" ? hidden : "no report")
            exit 1
        }
        print num " known false reports"
    }' "$list" "$log"
