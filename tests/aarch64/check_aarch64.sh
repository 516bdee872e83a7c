#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program for aarch64 under qemu: its kernels give the bits of the reference, levels are refused on CPUs that lack
# them, what x86-64 and Arm write is the same, and each reads the other's, also on two ranks.
# usage: check_aarch64.sh BITSWEEP_BINARY SOURCE_FOLDER AARCH64_BUILD AARCH64_ROOT
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/../cluster/support.sh"
build=$(realpath "$3")
command -v qemu-aarch64-static >/dev/null || { echo "qemu-aarch64-static is missing" && exit 77; }
QEMU_LD_PREFIX=$(realpath "$4")
export QEMU_LD_PREFIX QEMU_CPU=max OPENBLAS_NUM_THREADS=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none # qemu has no process_vm_readv

# What deploy/run.sh and the tests of cluster/ start as if it were the program.
mkdir "$folder/arm"
ln -s "$BITSWEEP_RUN" "$folder/arm/bitsweep-run"
cat >"$folder/arm/bitsweep" <<END
#!/bin/sh
exec qemu-aarch64-static '$build/bitsweep' "\$@"
END
chmod +x "$folder/arm/bitsweep"
x86=$program
arm=$folder/arm/bitsweep

# ---- kernels and units ---------------------------------------------------------------------------

# under CPU TEST [ARGUMENTS]
under() {
    local cpu=$1 name=$2
    shift 2
    local output="$folder/$name-$cpu$*"
    if QEMU_CPU=$cpu qemu-aarch64-static "$build/tests/$name" "$@" >"$output" 2>&1; then
        pass
    else
        complain "$name $*, CPU $cpu" "$output"
    fi
}

checks() {
    local name
    under max kernelcheck --level neon
    for name in test_cpu_level test_limits test_rbe_codes test_result_file; do under max "$name"; done
}
checks &
under max kernelcheck --level i8mm --family matrix_scan
under neoverse-n1 kernelcheck --level neon --family select
under neoverse-n1 test_cpu_level
under cortex-a72 test_cpu_level
info=(info "synth:count=1,dims=1" --level)
QEMU_CPU=neoverse-n1 refused 2 'i8mm: this CPU lacks it; its best is neon' "$arm" "${info[@]}" i8mm
QEMU_CPU=cortex-a72 refused 2 'neon: this CPU lacks it; its best is reference' "$arm" "${info[@]}" neon
refused 2 "'avx2': use auto, reference, neon or i8mm" "$arm" "${info[@]}" avx2

# ---- files ---------------------------------------------------------------------------------------

rows=(--base "$base" --rows 0:4000)
few=(--queries "$queries" --query-rows 0:100 --k 10 --force --quiet)

# encode NAME ARGUMENTS: by both.
encode() {
    local name=$1
    shift
    check "$name: encode on x86-64" "$x86" encode "${rows[@]}" --shards 2 --quiet --index "$folder/x86-$name" "$@"
    check "$name: encode on Arm" "$arm" encode "${rows[@]}" --shards 2 --quiet --index "$folder/arm-$name" "$@"
}

# same_answers INDEX ARGUMENTS: x86-64 and every level of Arm.
same_answers() {
    local index=$1 level
    shift
    check "search $index $* on x86-64" "$x86" search --index "$folder/$index" "${few[@]}" "$@" --out "$folder/expected"
    for level in reference neon i8mm; do
        check "search $index $* on Arm" "$arm" search --index "$folder/$index" "${few[@]}" "$@" --level "$level" \
            --threads 2 --out "$folder/found"
        check "$index $*: $level" cmp "$folder/expected" "$folder/found"
    done
}

encode plain --codec xfbq --bits 3 --metric cosine
encode random --codec saq --bits 2.5 --metric l2 --axes random
encode axes --codec saq --bits 3 --metric l2
encode bytes --codec sq8 --metric ip
encode raw --codec raw --metric l2
# Principal axes are LAPACK's, whose last bits depend on the CPU; all else is equal.
for name in plain random bytes raw; do
    check "$name: the same index" diff -r "$folder/x86-$name" "$folder/arm-$name"
done
for name in plain random axes; do
    for scan in planes matrix; do same_answers "x86-$name" --scan "$scan"; done
done
same_answers x86-random --scan progressive-matrix --refine none
same_answers arm-axes --scan progressive-planes
same_answers x86-bytes --refine none
same_answers arm-raw
for way in x86 arm; do
    check "ground truth on $way" "${!way}" groundtruth "${rows[@]}" "${few[@]}" --metric cosine --out "$folder/truth-$way"
    check "synth on $way" "${!way}" synth --count 500 --dims 40 --seed 3 --out "$folder/$way.fbin" --quiet
    check "truth of floats on $way" "${!way}" groundtruth --base "$folder/$way.fbin" --queries "$folder/$way.fbin" \
        --metric l2 --k 5 --out "$folder/floats-$way" --quiet
done
check "the same ground truth" cmp "$folder/truth-x86" "$folder/truth-arm"
check "the same synthetic rows" cmp "$folder/x86.fbin" "$folder/arm.fbin"
check "the same ground truth of floats" cmp "$folder/floats-x86" "$folder/floats-arm"
wait

# Files of an earlier build, on one rank and two: mpirun is of this machine, ranks are for Arm.
check "check_format.sh" env BITSWEEP_MAX_RANKS=2 bash "$2/tests/cluster/check_format.sh" "$arm" "$2"
finish
