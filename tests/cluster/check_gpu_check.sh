#!/usr/bin/env bash
# bench/gpu_check.sh on the emulator: that it runs every step, writes what it promises, goes on after a
# step that fails or takes too long, and says so at the end.
# usage: check_gpu_check.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
build=$(dirname "$program")
script=$2/bench/gpu_check.sh
: >"$folder/stdout"
needs "$build/tests/bitsweep_emulated-bench"

# check TEXT COMMAND
check() {
    local text=$1
    shift
    if "$@" >"$folder/messages" 2>&1; then
        pass
    else
        complain "$text" "$folder/messages"
        tail -n 20 "$folder/stdout" >&2
    fi
}

# gpu_check EXPECTED ARGUMENTS: runs it; its exit code is EXPECTED.
gpu_check() {
    local expected=$1 code=0
    shift
    "$script" --out "$folder/out" "$@" >"$folder/stdout" 2>"$folder/stderr" || code=$?
    check "exit code $code instead of $expected: $*" test "$code" = "$expected"
}

says() {
    check "does not say '$1'" grep -Eq -- "$1" "$folder/stdout"
}

# ---- all steps -----------------------------------------------------------------------------------

gpu_check 0 --emulated --build "$build" --minutes 5
for name in kernels kernelcheck device identity bench; do says "^$name +passed in"; done
for name in memcheck racecheck synccheck; do says "^$name +skipped: "; done
says '^gpu_check.sh: 0 failed'
check "a record of every case" test "$(grep -c '"case":' "$folder/out/bench.json")" -ge \
    "$("$build/tests/bitsweep_emulated" bench device --list | wc -l)"
check "limits" grep -q '"mma_int8_per_second": [0-9]' "$folder/out/bench.json"
check "a table in results.md" grep -Eq '^  matrix-256 +2000 ' "$folder/out/results.md"
check "a heading in results.md" grep -q '^## GPU: emulated' "$folder/out/results.md"

# ---- steps that fail -----------------------------------------------------------------------------

# The programs of a build, all of which say ok but two.
fake=$folder/fake
program() {
    mkdir -p "$(dirname "$fake/$1")"
    printf '#!/bin/sh\n%s\n' "$2" >"$fake/$1"
    chmod +x "$fake/$1"
}
program tests/emulation/device_check "echo broken; exit 1"
program tests/kernelcheck "exec sleep 100"
program tests/bitsweep_emulated "exit 1"
program tests/identity_data "exit 1"
program tests/bitsweep_emulated-bench "echo measured"
program bitsweep "exit 1"
gpu_check 1 --emulated --build "$fake" --minutes 0.15
says '^kernels +FAILED: exit code 1'
says '^broken$'
says '^kernelcheck +FAILED: cut after [0-9]+ s'
says '^device +FAILED: '
says '^bench +passed in'
says '^gpu_check.sh: 4 failed'
check "what the bench said" grep -q '^measured$' "$folder/out/results.md"

# ---- carried libraries ---------------------------------------------------------------------------

# A program of each library, built with the carried files alone and run with them.
carried=$folder/carried
builds_with_carried() {
    local flags headers
    read -ra flags < <(env -i PATH="$PATH" PKG_CONFIG_LIBDIR="$carried/lib/pkgconfig" \
        "$carried/bin/pkg-config" --cflags --libs libprotobuf-c libxxhash hwloc jansson openblas)
    cat >"$folder/all.c" <<'END'
#include <cblas.h>
#include <hwloc.h>
#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <xxhash.h>
int main(void)
{
    double one = 1;
    json_decref(json_object());
    return cblas_ddot(1, &one, 1, &one, 1) != 1 || hwloc_get_api_version() == 0 ||
           protobuf_c_version() == NULL || XXH3_64bits("", 0) == 0;
}
END
    gcc "$folder/all.c" -o "$folder/all" "${flags[@]}" \
        "-Wl,--disable-new-dtags,-rpath,$carried/lib" || return 1
    "$folder/all" || return 1
    headers=$(gcc -H "$folder/all.c" "${flags[@]}" -fsyntax-only 2>&1 |
        grep -cE "$carried/.*/(cblas|hwloc|jansson|protobuf-c|xxhash)\.h")
    ((headers >= 5)) || return 1
    ldd "$folder/all" | awk -v here="$carried/" '
        /openblas|gfortran|hwloc|jansson|protobuf-c|xxhash/ {n++; if (index($3, here) != 1) bad = 1}
        END {exit bad || n < 6}'
}

if command -v dpkg >/dev/null; then
    check "libraries are gathered" "$2/bench/carry_libraries.sh" "$carried"
    check "a build with them alone" builds_with_carried
    check "protoc-c of them" env -i PATH=/usr/bin:/bin "$carried/bin/protoc-c" --version
else
    echo "no dpkg: carried libraries are not checked"
fi

# ---- the command line ----------------------------------------------------------------------------

gpu_check 2 --minutes soon
gpu_check 2 --unknown
if ! nvidia-smi -L >/dev/null 2>&1 && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    gpu_check 77
    says '^gpu_check.sh: no GPU here'
    check "one line" test "$(wc -l <"$folder/stdout")" = 1
fi

finish
