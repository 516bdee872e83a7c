#!/usr/bin/env bash
# Takes every barrier out of the kernels in turn and asks whether
# device_check notices. See --help. Minutes: not part of the tests.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
help() {
    cat <<'END'
usage: tests/emulation/mutate_barriers.sh BUILD_FOLDER

BUILD_FOLDER is that of a build without sanitizers, complete (build/release). Prints a line for each
barrier (__syncthreads, __syncwarp) of kernels/*/*.cu: who notices that it is gone, the plain build in
three orders and the race build. Exit code 1 if nobody notices one of them.
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

# compile SUFFIX SOURCE: the check's program with this source in place of its original.
compile() {
    local options=(-std=gnu++17 -O2 -g -mpopcnt -ffp-contract=off -w "-I$root")
    local libraries=("$build/tests/emulation/libbitsweep_kernels_emulated$1.a"
        "$build/tests/emulation/libbitsweep_emulator$1.a" "$build/libbitsweep_core.a")
    if [[ $1 == _race ]]; then options+=(-fsanitize=thread); fi
    g++ "${options[@]}" -x c++ -c "$2" -o "$work/kernel.o"
    # Before the library, so that the linker takes nothing from the original.
    g++ -rdynamic "$objects/device_check$1.dir"/*.o "$work/kernel.o" "${libraries[@]}" -lm -ldl \
        -o "$work/check$1"
}

# verdict COMMAND...: race, report, wrong, crash, timeout or - for nothing noticed.
verdict() {
    local code=0
    timeout 100 "$@" >"$work/out" 2>&1 || code=$?
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
    local verdicts=() order
    sed -E "$2s/__sync(threads|warp)\(\);/;/" "$root/$1" >"$work/kernel.cu"
    compile "" "$work/kernel.cu"
    compile _race "$work/kernel.cu"
    for order in ascending descending random; do
        verdicts+=("$(verdict "$work/check" --order $order)")
    done
    verdicts+=("$(verdict "$work/check_race" --order random --small)")
    printf '%-45s %s\n' "$1:$2" "${verdicts[*]}"
    [[ ${verdicts[*]} != "- - - -" ]] || unnoticed=1
}

echo "barrier                                       ascending descending random race"
cd "$root"
for file in kernels/*/*.cu; do
    while IFS=: read -r line _; do
        mutate "$file" "$line"
    done < <(grep -nE '__sync(threads|warp)\(\);' "$file")
done
exit $unnoticed
