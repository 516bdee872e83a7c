#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Single mutations of the code, each a patch here, against the tests that must notice them. See --help.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../.." && pwd)
work=${MUTATIONS_FOLDER:-$source/build/mutations}
export GIT_CEILING_DIRECTORIES=$work:${source%/*} # a patch is for the folder it is applied in, no repository above
if ! command -v git >/dev/null; then
    echo "mutations.sh: git is missing" >&2
    exit 77
fi

help() {
    cat <<'END'
usage: tests/mutations/mutations.sh [--list | --check] [PATTERN...]

Applies each mutation whose name matches a PATTERN (bash's; default: all) to a copy of the tree, builds
what its tests need, runs them until one fails, and takes the mutation back. Prints a table.
Exit code 1 if a mutation survives that does not say so, if one that says so is noticed, if one no longer
applies or does not compile, or if a test fails without any.

  --list    names and what they change
  --check   only looks whether all still apply and name tests that exist; a second

A mutation is a file NAME.patch with these lines before the diff:

  What: what is wrong with the code then
  Tests: ctest's names of those that must notice it, the nearest first
  Build: targets, where a test is not its own target [the programs of tests named check_...]
  Survives: why no test can notice it; the tests are run all the same

MUTATIONS_FOLDER: where the copy and its build stay for the next time [build/mutations].
MUTATIONS_CMAKE: options of cmake [-DBITSWEEP_CUDA=OFF].
END
}

complain() {
    echo "mutations.sh: $1" >&2
    failed=1
}

# field NAME MUTATION: what that line of it says.
field() {
    sed -n "/^--- /q; s/^$1: //p" "$here/$2.patch"
}

# What its tests need: programs are called as their tests, scripts take these.
targets_of() {
    local test
    if [[ -n $(field Build "$1") ]]; then
        field Build "$1"
        return
    fi
    for test in $(field Tests "$1"); do
        if [[ $test == check_* ]]; then echo bitsweep bitsweep_faults; else echo "$test"; fi
    done
}

# apply MUTATION TREE [-R | --check]: code around it may have moved or changed.
apply() {
    (cd "$2" && git apply --recount -C1 "${@:3}" "$here/$1.patch") 2>&1
}

has_test() {
    [[ -n $(find "$source/tests" -name "$1.c" -o -name "$1.sh") || $1 == @(kernelcheck|device_check_*) ]]
}

# check MUTATION: whether it applies, and says what it must.
check() {
    local message test
    if ! message=$(apply "$1" "$source" --check); then
        complain "$1 does not apply: ${message//$'\n'/; }"
        return 1
    fi
    [[ -n $(field What "$1") && -n $(field Tests "$1") ]] || complain "$1: What or Tests is missing"
    for test in $(field Tests "$1"); do
        has_test "$test" || complain "$1: there is no test $test"
    done
}

# The tree as it is here. Files that are as they were keep their times, which the last build may be older
# than: after a mutation was taken back nothing is built.
copy_tree() {
    local file
    mkdir -p "$work/tree"
    (cd "$source" && git ls-files --cached --others --exclude-standard) | sort >"$work/files"
    (cd "$work/tree" && find . -path ./build -prune -o -type f -printf '%P\n') | sort | comm -13 "$work/files" - |
        while read -r file; do rm "$work/tree/$file"; done
    while read -r file; do
        if [[ ! -f $source/$file ]] || cmp -s "$source/$file" "$work/tree/$file"; then continue; fi
        mkdir -p "$(dirname "$work/tree/$file")"
        cp --preserve=mode "$source/$file" "$work/tree/$file"
    done <"$work/files"
}

configure() {
    local options=()
    read -ra options <<<"${MUTATIONS_CMAKE:--DBITSWEEP_CUDA=OFF}"
    if command -v ninja >/dev/null; then options+=(-G Ninja); fi
    if command -v ccache >/dev/null; then options+=(-DCMAKE_{C,CXX}_COMPILER_LAUNCHER=ccache); fi
    CCACHE_BASEDIR=$work/tree CCACHE_NOHASHDIR=1 cmake -S "$work/tree" -B "$work/tree/build/release" "${options[@]}" \
        >"$work/configure.log" 2>&1
}

# build TARGET...
build() {
    CCACHE_BASEDIR=$work/tree CCACHE_NOHASHDIR=1 cmake --build "$work/tree/build/release" --parallel "$(nproc)" --target "$@" \
        >"$work/build.log" 2>&1
}

# passes TEST: a hang is a failure.
passes() {
    ctest --test-dir "$work/tree/build/release" -R "^$1\$" --no-tests=error --timeout 200 --output-on-failure \
        >"$work/$1.log" 2>&1
}

# Without a mutation all must pass, or it would prove nothing that one fails.
check_tests() {
    local test tests targets mutation
    mapfile -t tests < <(for mutation; do field Tests "$mutation"; done | tr ' ' '\n' | sort -u)
    mapfile -t targets < <(for mutation; do targets_of "$mutation"; done | tr ' ' '\n' | sort -u)
    echo "${#mutations[@]} mutations, ${#tests[@]} tests; logs are in $work"
    if ! build "${targets[@]}"; then
        complain "the tree does not compile: $work/build.log"
        exit 1
    fi
    for test in "${tests[@]}"; do
        passes "$test" || complain "$test fails without a mutation: $work/$test.log"
    done
    ((!failed)) || exit 1
}

# say NAME VERDICT: a line of the table.
say() {
    printf '%-40s %s [%d s]\n' "$1" "$2" $((SECONDS - begin))
}

# run MUTATION: in the copy.
run() {
    local begin=$SECONDS test noticed="" targets reason
    reason=$(field Survives "$1")
    mapfile -t targets < <(targets_of "$1" | tr ' ' '\n')
    apply "$1" "$work/tree" >"$work/apply.log" || { complain "$1 does not apply" && return; }
    if ! build "${targets[@]}"; then
        complain "$1 does not compile: $(grep -m 1 ': error: ' "$work/build.log")"
    else
        for test in $(field Tests "$1"); do
            if ! passes "$test"; then
                noticed=$test
                break
            fi
        done
        if [[ -n $noticed && -z $reason ]]; then
            say "$1" "noticed by $noticed"
        elif [[ -z $noticed && -n $reason ]]; then
            say "$1" "survives, as it says"
        elif [[ -n $noticed ]]; then
            say "$1" "NOTICED by $noticed, though it says that it survives"
            failed=1
        else
            say "$1" "SURVIVES"
            failed=1
        fi
    fi
    apply "$1" "$work/tree" -R >"$work/apply.log" || { complain "$1 cannot be taken back" && exit 1; }
}

mode=run
failed=0
patterns=()
for argument; do
    case $argument in
    --list | --check) mode=${argument#--} ;;
    -h | --help) help && exit 0 ;;
    -*)
        echo "mutations.sh: unknown option $argument; --help tells more" >&2
        exit 2
        ;;
    *) patterns+=("$argument") ;;
    esac
done
mutations=()
for file in "$here"/*.patch; do
    name=${file##*/}
    name=${name%.patch}
    ((${#patterns[@]} == 0)) && mutations+=("$name")
    for pattern in ${patterns[@]+"${patterns[@]}"}; do
        # shellcheck disable=SC2053
        if [[ $name == $pattern ]]; then
            mutations+=("$name")
            break
        fi
    done
done
if ((${#mutations[@]} == 0)); then
    echo "mutations.sh: no mutation is called like that; --list names them" >&2
    exit 2
fi
if [[ $mode == list ]]; then
    for mutation in "${mutations[@]}"; do printf '%-40s %s\n' "$mutation" "$(field What "$mutation")"; done
    exit 0
fi
good=()
for mutation in "${mutations[@]}"; do
    if check "$mutation"; then good+=("$mutation"); fi
done
if [[ $mode == run ]] && ((${#good[@]})); then
    mkdir -p "$work"
    copy_tree
    configure || { complain "cmake fails: $work/configure.log" && exit 1; }
    check_tests "${good[@]}"
    for mutation in "${good[@]}"; do run "$mutation"; done
fi
echo "${#good[@]} of ${#mutations[@]} mutations apply"
exit $failed
