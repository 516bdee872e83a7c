#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/gpu_check.sh on the emulator: that it runs every step, writes what it promises, goes on after a
# step that fails or takes too long, and says so at the end.
# usage: check_gpu_check.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
build=$(dirname "$program")
sources=$2
script=$sources/bench/gpu_check.sh
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

# A python that has no library, whatever this machine has.
printf '#!/bin/sh\ncommand -v python3 >/dev/null || exit 77\nexec python3 -I -S "$@"\n' >"$folder/python"
chmod +x "$folder/python"
export PEERS_PYTHON=$folder/python
gpu_check 0 --emulated --build "$build" --minutes 20
for name in kernels kernelcheck device identity graphs bench library rows_1e8 lists_1e7 tables bench_lists bench_codes \
    bench_rbegir bench_rest; do
    says "^$name +passed in"
done
for name in memcheck racecheck synccheck peers; do says "^$name +skipped: "; done
if command -v mpirun >/dev/null; then for name in ranks cluster; do says "^$name +passed in"; done; fi
says '^gpu_check.sh: 0 failed'
# Every case is in one of the steps, but for those that want a Hopper GPU; and what it found was compared.
while read -r name _; do
    check "a record of $name" grep -qhE "\"case\": \"${name}[\"/]|^# $name: skipped: no Hopper GPU" \
        "$folder/out"/bench*.json "$folder/out"/bench*.txt
done < <("$build/tests/bitsweep_emulated" bench device --list)
for name in matrix-256 saq-768-1 saq-1536-1000 hits-256-1000 lists-10k/scan gpu-lists-10k/scan lists-1/refine table-e5m3 rbegir rbegir-2 \
    select-rank select-last stream-8 progressive; do
    check "$name is compared" grep -qhE "^  $name .* 0$" "$folder/out"/bench*.txt
done
code=0
"$build/tests/bitsweep_emulated" bench device --case 'planes-1,nothing' >"$folder/stdout" 2>&1 || code=$?
check "exit code $code instead of 2 for a case that is none" test "$code" = 2
says "^bitsweep: --case 'nothing': no such case; --list names them$"
check "limits" grep -q '"mma_int8_per_second": [0-9]' "$folder/out/bench.json"
check "the bench's table in results.md" grep -Eq '^\| matrix-256 \| 2000 \|' "$folder/out/results.md"
check "a table of searches in results.md" grep -Eq '^\| --recall 0.9, batches of 20 \| 20 \| matrix \|' "$folder/out/results.md"
check "recalls in results.md" grep -Eq '^\| --table float32, batches of 20 \| [01]\.[0-9]+ \|' "$folder/out/results.md"
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
program tests/hostile_rows "exit 1"
program tests/bitsweep_emulated-bench "echo measured"
program bitsweep "exit 1"
gpu_check 1 --emulated --build "$fake" --part 1 --minutes 0.1
says '^kernels +FAILED: exit code 1'
says '^broken$'
says '^kernelcheck +FAILED: cut after [0-9]+ s'
says '^device +FAILED: '
says '^bench +passed in'
says '^gpu_check.sh: 5 failed'
check "what the bench said" grep -q '^    measured$' "$folder/out/results.md"

# ---- compute-sanitizer ---------------------------------------------------------------------------

# What it says of two kernels, around what the program says, and a list of what is known.
cat >"$folder/reports" <<'END'
========= COMPUTE-SANITIZER
# device_check on a GPU
========= Error: Race reported between Write access at void one<(int)2>(int *)+0x70 in one.cu:12
=========     and Read access at void one<(int)2>(int *)+0xa0 in one.cu:15 [24 hazards]
=========
========= Invalid __shared__ read of size 16 bytes
=========     at two(int *)+0x30 in two.cu:7
=========     by thread (3,0,0) in block (0,0,0)
=========
device_check: 5 checks, 0 failures
========= ERROR SUMMARY: 2 errors
END
cat >"$folder/known" <<'END'
# because this test says so
racecheck Race reported between Write access at void one<.* in one\.cu:15
racecheck ^Invalid __shared__ read of size 16 bytes at two.* by thread
memcheck ^Invalid __shared__ read
END
# fake_sanitizer LOG: says that, whatever it is asked, and that there were reports.
fake_sanitizer() {
    printf '#!/bin/sh\ncat "%s"\nexit 9\n' "$1" >"$folder/sanitizer"
    chmod +x "$folder/sanitizer"
}
program tests/emulation/device_check "echo 'device_check: 5 checks, 0 failures'"
program tests/kernelcheck "exit 0"
export BITSWEEP_COMPUTE_SANITIZER=$folder/sanitizer BITSWEEP_KNOWN_REPORTS=$folder/known
fake_sanitizer "$folder/reports"
gpu_check 1 --emulated --build "$fake" --part 1 --minutes 1
says '^racecheck +passed in [0-9]+ s: 2 known false reports'
says '^memcheck +FAILED: exit code 9'
says '^synccheck +FAILED: exit code 9'

# unknown TEXT CHANGE [LIST]: with this change by sed known_reports.sh refuses the reports.
unknown() {
    local text=$1 code=0
    sed "$2" "$folder/reports" >"$folder/changed"
    "$sources/bench/known_reports.sh" racecheck "$folder/changed" "${3:-$folder/known}" \
        >"$folder/stdout" 2>&1 || code=$?
    check "known_reports.sh after $2: exit code $code" test "$code" = 1
    says "$text"
}
unknown '^Error: Race reported .*one.cu:16' 's/one.cu:15/one.cu:16/'
unknown '^the program did not pass$' 's/ 0 failures/ 1 failures/'
unknown 'were not printed' '/SUMMARY/s/.*/========= ERROR SUMMARY: 7 errors were not printed/'
unknown '^no report$' '/Race\|read\|Read\|two\|thread/d'
unknown '^Error: Race reported' '' "$sources/bench/known_reports.txt"
unset BITSWEEP_COMPUTE_SANITIZER BITSWEEP_KNOWN_REPORTS

# ---- a pack --------------------------------------------------------------------------------------

# The pack's programs only say what they are, as the real ones take long to compress; Open MPI and libraries are this
# machine's.
if [[ -e /usr/bin/mpirun && -d /usr/share/openmpi ]]; then
    for name in bitsweep-bench bitsweep-run tests/library_device tests/libbitsweep_emulated.so tests/nccl_stand_in.so; do
        program "$name" "exit 0"
    done
    # shellcheck disable=SC2016
    program tests/emulation/device_check 'echo "with $(command -v mpirun)"; exit 1'
    gpu_check 0 --pack "$folder/pack.tar.gz" --emulated --build "$fake" # shares its --out with nothing
    says 'pack.tar.gz, [0-9]+ KiB, without NCCL$'
    gpu_check 1 --from-pack "$folder/pack.tar.gz" --emulated --part 1 --minutes 0.2
    says "^with $folder/out/unpacked/bitsweep/build/packed/mpi/bin/mpirun$"
    says "^build +uses $folder/out/unpacked/bitsweep/build/packed$"
    check "Open MPI of a pack" env PATH="$folder/out/unpacked/bitsweep/build/packed/mpi/bin:$PATH" \
        OPAL_PREFIX="$folder/out/unpacked/bitsweep/build/packed/mpi" OMPI_ALLOW_RUN_AS_ROOT=1 \
        LD_LIBRARY_PATH="$folder/out/unpacked/bitsweep/build/packed/lib" OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        mpirun --oversubscribe -n 2 true
    head -c 68M /dev/urandom >"$folder/libnccl.so.2"
    gpu_check 1 --pack "$folder/large.tar.gz" --emulated --build "$fake" --nccl "$folder/libnccl.so.2"
    check "what is large" grep -Eq '^[0-9]{5}[[:space:]].*/libnccl\.so\.2$' "$folder/stderr"
    check "no large pack" test ! -e "$folder/large.tar.gz"
else
    echo "no Open MPI of Debian: packs are not checked"
fi

# ---- carried libraries ---------------------------------------------------------------------------

# A program of each library, built with the carried files alone and run with them.
carried=$folder/carried
builds_with_carried() {
    local flags headers
    read -ra flags < <(env -i PATH="$PATH" PKG_CONFIG_LIBDIR="$carried/lib/pkgconfig" \
        "$carried/bin/pkg-config" --cflags --libs libprotobuf-c libxxhash hwloc jansson openblas libutf8proc)
    cat >"$folder/all.c" <<'END'
#include <cblas.h>
#include <hwloc.h>
#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <utf8proc.h>
#include <xxhash.h>
int main(void)
{
    double one = 1;
    json_decref(json_object());
    return cblas_ddot(1, &one, 1, &one, 1) != 1 || hwloc_get_api_version() == 0 ||
           protobuf_c_version() == NULL || utf8proc_version() == NULL ||
           XXH3_64bits("", 0) == 0;
}
END
    gcc "$folder/all.c" -o "$folder/all" "${flags[@]}" \
        "-Wl,--disable-new-dtags,-rpath,$carried/lib" || return 1
    "$folder/all" || return 1
    headers=$(gcc -H "$folder/all.c" "${flags[@]}" -fsyntax-only 2>&1 |
        grep -cE "$carried/.*/(cblas|hwloc|jansson|protobuf-c|utf8proc|xxhash)\.h")
    ((headers >= 6)) || return 1
    ldd "$folder/all" | awk -v here="$carried/" '
        /openblas|gfortran|hwloc|jansson|protobuf-c|utf8proc|xxhash/ {n++; if (index($3, here) != 1) bad = 1}
        END {exit bad || n < 7}'
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
gpu_check 2 --part 4
gpu_check 2 --pack pack.zip
gpu_check 2 --emulated --build "$folder/none"
if ! nvidia-smi -L >/dev/null 2>&1 && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    gpu_check 77
    says '^gpu_check.sh: no GPU here'
    check "one line" test "$(wc -l <"$folder/stdout")" = 1
fi

finish
