#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Takes every barrier out of the kernels in turn and asks whether
# device_check notices. See --help. Minutes: not part of the tests.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
help() {
    cat <<'END'
usage: tests/emulation/mutate_barriers.sh BUILD_FOLDER

BUILD_FOLDER is that of a build without sanitizers, complete (build/release). Prints a line for each
barrier (__syncthreads, __syncwarp) of kernels/device_*: who notices that it is gone, the plain build in
three orders and the race build; then how many each noticed. Exit code 1 if nobody notices one of them.
END
}
case ${1:-} in
-h | --help) help && exit 0 ;;
"" | -*)
    help >&2
    exit 2
    ;;
esac
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects=$build/tests/emulation/CMakeFiles
unnoticed=0
barriers=0
names=(ascending descending random race)
noticed=(0 0 0 0)
read -ra shared <<<"$(pkg-config --libs openblas jansson libprotobuf-c libxxhash hwloc) -fopenmp -lm -ldl"

# compile SUFFIX SOURCES: the check's program with these in place of their originals; headers in
# $work/changed come before those of the tree.
compile() {
    local suffix=$1 source replaced=()
    shift
    local options=(-std=gnu++17 -O2 -g -mpopcnt -ffp-contract=off -w "-I$work/changed" "-I$root")
    local libraries=("$build/tests/emulation/libbitsweep_kernels_emulated$suffix.a"
        "$build/tests/emulation/libbitsweep_emulator$suffix.a" "$build/libbitsweep_core.a")
    if [[ $suffix == _race ]]; then options+=(-fsanitize=thread); fi
    for source; do
        replaced+=("$work/${source//\//.}$suffix.o")
        g++ "${options[@]}" -x c++ -c "$source" -o "${replaced[-1]}"
    done
    # Before the library, so that the linker takes nothing from the original.
    g++ -rdynamic "$objects/device_check$suffix.dir"/*.o "${replaced[@]}" "${libraries[@]}" \
        "${shared[@]}" -o "$work/check$suffix"
}

# verdict COMMAND...: race, report, wrong, crash, timeout or - for nothing noticed.
verdict() {
    local code=0
    timeout 300 "$@" >"$work/out" 2>&1 || code=$?
    if grep -q 'data races' "$work/out"; then
        echo race
    elif grep -qE 'deadlock|__syncthreads at|collectives' "$work/out"; then
        echo report
    elif ((code == 124)); then
        echo timeout
    elif ((code == 0)); then
        echo -
    elif ((code == 1)); then
        echo wrong
    else
        echo crash
    fi
}

# mutate FILE LINE
mutate() {
    local verdicts=() order i sources=("changed/$1")
    rm -rf "$work/changed"
    mkdir -p "$work/changed/$(dirname "$1")"
    sed -E "$2s/__sync(threads|warp)\(\);/;/" "$root/$1" >"$work/changed/$1"
    if [[ $1 == *.cuh ]]; then
        mapfile -t sources < <(grep -l "$(basename "$1")\"" kernels/device_*/*.cu | sed "s|^|$root/|")
    fi
    (cd "$work" && compile "" "${sources[@]}" && compile _race "${sources[@]}")
    for order in ascending descending random; do
        verdicts+=("$(verdict "$work/check" --order $order)")
    done
    verdicts+=("$(verdict "$work/check_race" --order random --small)")
    printf '%-45s %s\n' "$1:$2" "${verdicts[*]}"
    barriers=$((barriers + 1))
    for i in 0 1 2 3; do
        if [[ ${verdicts[i]} != - ]]; then noticed[i]=$((noticed[i] + 1)); fi
    done
    [[ ${verdicts[*]} != "- - - -" ]] || unnoticed=$((unnoticed + 1))
}

cd "$root"
if [[ $(verdict "$build/tests/emulation/device_check") != - ]]; then
    echo "mutate_barriers.sh: device_check fails as it is" >&2
    exit 1
fi
echo "barrier                                       ${names[*]}"
for file in kernels/device_*/*.cu kernels/device_*/*.cuh; do
    while IFS=: read -r line _; do
        mutate "$file" "$line"
    done < <(grep -nE '__sync(threads|warp)\(\);' "$file")
done
summary="$barriers barriers, noticed by"
for i in 0 1 2 3; do summary+=" ${names[i]} ${noticed[i]},"; done
echo "$summary by nobody $unnoticed"
((unnoticed == 0))
