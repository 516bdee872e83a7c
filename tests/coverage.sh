#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Line coverage of what reads what others wrote, of journals and of merging, by gcov: builds the preset
# coverage, runs tests, prints a line for each file. See --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/coverage
least=95
has_tests=1
show=
failed=0

help() {
    cat <<'END_HELP'
usage: tests/coverage.sh [--report-only] [--lines FILE] [--least PERCENT]

  --report-only   no build, no tests: of what has run since the last time
  --lines         prints the lines of a file that no test reached: journal.c
  --least         exit code 1 if the lines of all files together are covered less (95)

The tests are the unit tests of these files and of what calls them, the replay of the fuzz targets,
and those of damaged and malformed files, of calls that fail, of formats, ground truth and resuming.
END_HELP
}

while (($#)); do
    case $1 in
    --report-only) has_tests=0 ;;
    --lines | --least)
        if (($# < 2)); then
            echo "coverage.sh: $1 needs a value; --help tells more" >&2
            exit 2
        fi
        if [[ $1 == --least ]]; then least=$2; else show=$2 has_tests=0; fi
        shift
        ;;
    -h | --help) help && exit 0 ;;
    *)
        echo "coverage.sh: unknown option $1; --help tells more" >&2
        exit 2
        ;;
    esac
    shift
done

# What is counted. Kernels count in the file of their level; avx512 needs a CPU that has it.
files=(common/rows/chunk_filters.c common/codes/code_layout.c common/rows/hdf5_source.c common/files/index_manifest.c
    coordinator/job/option_table.c common/files/result_file.c common/files/sealed_message.c common/files/shard_file.c
    common/rows/source_name.c common/rows/synth.c common/rows/vector_layout.c common/rows/vectors.c
    kernels/rbe/rbe_model_file.c coordinator/search/query_source.c coordinator/train/rbe_checkpoint.c
    coordinator/plan/model_rates.c coordinator/job/sidecar.c coordinator/sweep/sweep_grid.c coordinator/sweep/sweep_plan.c
    common/job/journal.c coordinator/job/encode_journal.c coordinator/search/result_journal.c
    coordinator/truth/truth_journal.c
    coordinator/search/batch_merge.c coordinator/truth/truth_merge.c kernels/merge/merge_lanes.h
    kernels/merge/merge_reference.c)

units='batch_merge|cluster_model|chunk_filters|code_layout|file|hdf5_source|index_manifest|journal|memory|merge|neighbour_scan'
units+='|option_table|query_codes|rbe_model_file|rbe_training|result_file|result_order|shard_file|source_name'
units+='|sweep_grid|sweep_plan|synth|vector_layout|vector_writer|vectors'
checks='malformed|damage|faults|convert|groundtruth|resume'

if ((has_tests)); then
    "$root/deploy/build.sh" coverage
    find "$build" -name '*.gcda' -delete
    ctest --test-dir "$build" -R "^test_($units)\$|_replay\$|^check_($checks)\$" --output-on-failure \
        -j "$(nproc)" || failed=1
fi

# Every object of a file has its own counts (the program with fault points is compiled apart): a line
# is covered if it is in one of them.
count_file() {
    local data objects=$1
    [[ $1 != *.h ]] || objects="${1%/*}/*" # of those beside it that include it
    find "$build" -path "*/$objects.gcda" | while read -r data; do
        gcov --stdout "$data" 2>/dev/null
    done | awk -F: -v path="/$1" -v show="$2" '
        $2 + 0 == 0 && $3 == "Source" { is_it = substr($4, length($4) - length(path) + 1) == path }
        !is_it || $2 + 0 == 0 { next }
        { count = $1; gsub(/[ *]/, "", count) }
        count == "-" { next }
        { seen[$2 + 0] = 1; text[$2 + 0] = $0 }
        count !~ /[#=]/ { hit[$2 + 0] = 1 }
        END {
            for (line in seen) { total++; if (line in hit) covered++; else if (show) print text[line] }
            if (!show) print covered + 0, total + 0
        }'
}

if [[ -n $show ]]; then
    for file in "${files[@]}"; do
        if [[ $file == */$show || $file == "$show" ]]; then count_file "$file" 1 | sort -t: -k2n; fi
    done
    exit 0
fi

for file in "${files[@]}"; do
    echo "$file $(count_file "$file" "")"
done | awk -v least="$least" '
    { covered += $2; total += $3; printf "%-36s %5d of %5d lines %6.1f %%\n", $1, $2, $3, $3 ? 100 * $2 / $3 : 0 }
    END {
        percent = total ? 100 * covered / total : 0
        printf "%-36s %5d of %5d lines %6.1f %%\n", "all", covered, total, percent
        if (percent < least) { print "less than " least " %"; exit 1 }
    }' || failed=1
exit $failed
