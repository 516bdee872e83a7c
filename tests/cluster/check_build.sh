#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deploy/build.sh: which GPUs kernels are compiled for (deploy/cuda_architectures.cmake), how far it is, what it says where
# something fails. On a project that builds nothing, with stand-ins for nvcc and nvidia-smi.
# usage: check_build.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
source=$(realpath "$2")
# shellcheck source=deploy/progress.sh
. "$source/deploy/progress.sh"

# ---- which GPUs ----

# shellcheck disable=SC2016
stand_in "$folder/bin/nvcc" 'case $1 in --version) echo "release $RELEASE, V1" ;; *) printf "sm_%s\n" $KNOWN ;; esac'
# shellcheck disable=SC2016
stand_in "$folder/bin/nvidia-smi" 'printf "$GPUS"; test "$GPUS"'
# shellcheck disable=SC2016
stand_in "$folder/bin/__nvcc_device_query" 'echo "$QUERIED"; test "$QUERIED"'
cat >"$folder/choose.cmake" <<END
cmake_minimum_required(VERSION 3.20)
include($source/deploy/cuda_architectures.cmake)
choose_cuda_architectures($folder/bin/nvcc)
message("[\${chosen_architectures}] \${chosen_because}")
END
export RELEASE=13.0 KNOWN="75 80 86 87 89 90 100 103 120" GPUS='' QUERIED=''

# chosen EXPECTED [CMAKE'S VARIABLES]
chosen() {
    local expected=$1 variables=(BITSWEEP_CUDA=AUTO "${@:2}")
    PATH=$folder/bin:$PATH cmake "${variables[@]/#/-D}" -P "$folder/choose.cmake" >"$folder/chosen" 2>&1 || true
    if grep -qF -e "$expected" "$folder/chosen"; then
        pass
    else
        complain "not $expected: GPUs '$GPUS$QUERIED', $*" "$folder/chosen"
    fi
}

all='[80-real;86-real;89-real;90-real;90a-real;100-real;120-real;100-virtual] all that nvcc knows'
asked=BITSWEEP_CUDA_ARCHITECTURES
chosen '[] as no GPU was found; for others: deploy/build.sh --gpu '
chosen "$all" BITSWEEP_CUDA=ON
chosen "$all" $asked=all
GPUS='No devices were found 550.54\n' chosen '[] as no GPU was found'
GPUS='9.0\n9.0\n' chosen '[90-real;90a-real] for the GPU here; for others: '
GPUS='9.0\n8.0\n7.5\n' chosen '[80-real;90-real;90a-real] '
GPUS='9.0\n' RELEASE=11.8 chosen '[90-real] '
GPUS='10.3\n' chosen '[103-real] '
GPUS='11.0\n12.1\n' chosen '[103-virtual;120-virtual] '
GPUS='7.5\n' chosen '[] as they need compute capability 8.0 and the GPU here has 7.5; '
QUERIED=90 chosen '[90-real;90a-real] '
chosen '[80;90a-real] as asked' "$asked=80;90a-real"
GPUS='9.0\n' chosen '[90-real;90a-real] as asked' $asked=90-real
GPUS='9.0\n' chosen '[86] as asked' $asked=86
chosen "unknown architecture 'sm_90'" $asked=sm_90
chosen 'kernels need a GPU of 80 or later, not 75' $asked=75
chosen 'nvcc does not know 110: it knows 75 80 86' $asked=110

# ---- build.sh ----

root=$folder/root
build=$root/deploy/build.sh
mkdir -p "$root/deploy"
cp "$source"/deploy/{build,progress}.sh "$root/deploy"
cp "$source/CMakePresets.json" "$root"
cat >"$root/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(stand_in LANGUAGES NONE)
set(BITSWEEP_GPU_KERNELS "for ${BITSWEEP_CUDA} [${BITSWEEP_CUDA_ARCHITECTURES}]" CACHE INTERNAL "")
add_custom_command(OUTPUT first COMMAND ${CMAKE_COMMAND} -E touch first)
add_custom_command(OUTPUT second COMMAND bash $ENV{STEP} COMMAND ${CMAKE_COMMAND} -E touch second DEPENDS first)
add_custom_target(packaged DEPENDS second)
add_custom_target(tests ALL COMMAND ${CMAKE_COMMAND} -E touch tests)
add_dependencies(tests packaged)
END
export STEP=$folder/step
: >"$STEP"

says() { # PATTERN [FILE]
    check "says $1" grep -qE -e "$1" "${2:-$folder/said}"
}

builds() { # ARGUMENTS
    local code=0
    "$build" "$@" >"$folder/said" 2>"$folder/stderr" || code=$?
    check "$*: exit code $code" test "$code" = 0
}
builds --program --gpu 80,90
says '^build.sh: release: GPU kernels: for ON \[80;90\]$'
check "--program: what is installed is built" test -e "$root/build/release/second" -a ! -e "$root/build/release/tests"
builds
says 'for ON \[80;90\]$'
builds --program --gpu 90,90a
says 'for ON \[90;90a\]$'
check "all is built" test -e "$root/build/release/tests"
builds --gpu auto -- -DBITSWEEP_WERROR=OFF
says 'for AUTO \[\]$'
check "an argument for cmake" grep -q '^BITSWEEP_WERROR:[A-Z]*=OFF' "$root/build/release/CMakeCache.txt"
builds release --gpu all
says 'for ON \[all\]$'
builds debug --gpu none --program
says '^build.sh: debug: GPU kernels: for OFF \[\]$'
refused 2 'build.sh: --gpu sm_90: use numbers' "$build" --gpu sm_90
refused 2 'build.sh: --gpu 75: use numbers from 80 on' "$build" --gpu 75
refused 2 'build.sh: --gpu needs a value' "$build" --gpu
refused 2 'build.sh: unknown option --fast' "$build" --fast
refused 2 'build.sh: unknown preset relese' "$build" relese

# What fails is shown.
rm "$root/build/release/second"
echo "echo broken; exit 1" >"$STEP"
code=0
"$build" >"$folder/said" 2>&1 || code=$?
check "exit code $code" test "$code" = 1
says '^broken$'
says '^build.sh: release: building failed$'

# ---- how far it is ----

# On a terminal a line that is rewritten: here a step waits until it is seen.
rm "$root/build/release/first"
if command -v script >/dev/null; then
    # shellcheck disable=SC2016
    printf 'for i in $(seq 300); do ! grep -qE "[356][036] %%" "%s" || exit 0; sleep 0.2; done; exit 1\n' \
        "$folder/terminal" >"$STEP"
    code=0
    script -qefc "$build" "$folder/terminal" </dev/null >/dev/null || code=$?
    check "exit code $code on a terminal" test "$code" = 0
    says $'\rbuild.sh: release: building, [0-9]+ s, (1 of [23], )?[356][036] %, some [0-9]+ s left' "$folder/terminal"
else
    echo "script is missing: a terminal is not looked at"
fi

# Elsewhere a plain line every ten seconds, which this clock makes short.
sleep() {
    SECONDS=$((SECONDS + 6))
    command sleep 0.05
}
cd "$folder"
printf '[  7%%] a part\n[ 50%%] half\n' >counted
code=0
# shellcheck disable=SC2016
with_progress waiting log bash -c 'cat counted; until [[ $(wc -l <said) -ge 2 ]]; do sleep 0.1; done; exit 3' \
    2>said || code=$?
check "the exit code is the command's" test "$code" = 3
says '^waiting, [0-9]+ s, 50 %, some [0-9]+ s left$'
check "its output is in the log" cmp counted log
finish
