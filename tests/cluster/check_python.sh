#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python package over the library of this build: python/tests, its doctests among them, the adapters for other
# benchmarks, and the Python in docs/. Without installing anything. QUICK=1 leaves out the lines that install a wheel.
# usage: check_python.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"

library=$(dirname "$program")/libbitsweep.so
needs "$library"
find_python
source=$(realpath "$2")
export BITSWEEP_LIBRARY=$library PYTHONPATH=$source/python PYTHONDONTWRITEBYTECODE=1
export PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# tests_pass FOLDER [FILE]: its unit tests, of which there are some.
tests_pass() {
    (cd "$1" && "$python" -W error::ResourceWarning -m unittest discover -v -p "${2:-test*.py}") >"$folder/said" 2>&1 &&
        grep -qE '^Ran ([3-9]|[1-9][0-9]+) tests' "$folder/said"
}

# blocks LANGUAGE PAGE: what stands in blocks of it.
blocks() {
    awk -v begin="\`\`\`$1" '$0 == begin {on = 1; next} /^```/ {on = 0} on' "$2"
}

# page_runs PAGE: its Python, after its commands, in a folder that has tests/data.
page_runs() {
    local job=$folder/${1##*/}
    mkdir -p "$job/tests"
    ln -s "$source/tests/data" "$job/tests/data"
    blocks sh "$1" >"$job/commands"
    blocks python "$1" >"$job/python"
    (cd "$job" && PATH=$(dirname "$program"):$PATH bash -euo pipefail commands && "$python" python) >"$job/said" 2>&1 || {
        tail -n 5 "$job/said" >&2
        return 1
    }
}

# check_tests FOLDER
check_tests() {
    local name=${1#"$source/"}
    if tests_pass "$1"; then
        pass "$name: $(grep -oE '^Ran .*' "$folder/said"), $(grep -cE '\.\.\. skipped' "$folder/said" || true) skipped"
    else
        grep -vE '\.\.\. ok$' "$folder/said" >"$folder/wrong" || true
        complain "$name" "$folder/wrong"
    fi
}

# slow_device: the tests of devices, with each wait for one 20 ms longer.
slow_device() {
    BITSWEEP_LIBRARY=$emulated_library BITSWEEP_TEST_DEVICE=emulated BITSWEEP_EMULATOR_SLOW=20 \
        tests_pass "$source/python/tests" test_device.py
}

# builder: sets builder_path, a folder with scikit-build-core, of this machine or of a package index; 1: there is none.
builder() {
    "$python" -m pip --version >/dev/null 2>&1 || return 1
    mkdir "$folder/builder"
    "$python" -c 'import scikit_build_core' 2>/dev/null ||
        timeout 60 "$python" -m pip install --target "$folder/builder" scikit-build-core \
            >/dev/null 2>&1 || return 1
    builder_path=$(PYTHONPATH=$folder/builder "$python" -c 'import os, scikit_build_core as s; print(os.path.dirname(os.path.dirname(s.__file__)))')
}

# wheel_works: one with the library and the program of this build, in a folder of its own, where nothing else is.
wheel_works() {
    PYTHONPATH=$builder_path timeout 300 "$python" -m pip wheel --no-deps \
        --no-build-isolation --config-settings "cmake.define.BITSWEEP_PREBUILT=$library" -w "$folder/wheels" "$source/python" &&
        "$python" -m pip install --no-deps --no-index --target "$folder/site" \
            "$folder"/wheels/bitsweep-*-py3-none-linux_*.whl &&
        (cd "$folder" && env -u BITSWEEP_LIBRARY PATH=/usr/bin:/bin PYTHONPATH="$folder/site" "$python" -c "
import bitsweep, bitsweep_program, numpy
assert bitsweep_program.find() == '$folder/site/bitsweep/bin/bitsweep', bitsweep_program.find()
assert bitsweep.library.lib._name == '$folder/site/bitsweep/libbitsweep.so', bitsweep.library.lib._name
x = numpy.eye(8, dtype=numpy.float32)
assert bitsweep.knn(x, x, k=1, metric='l2')[1][:, 0].tolist() == list(range(8))") &&
        grep -q 'calibrate_queries: Vectors | None=None' "$folder/site/bitsweep/index.pyi" &&
        env PYTHONPATH="$folder/site" "$folder/site/bin/bitsweep" --version | grep -qx "bitsweep $(<"$source/VERSION")"
}

# page_installs: the first lines of docs/python.md, with a home of this test and the library of this build.
page_installs() {
    local job=$folder/reader
    stand_in "$job/deploy/install.sh" ""
    ln -s "$source/python" "$job/python"
    shown_in "$source/docs/python.md" | sed '/^$/,$d' >"$job/commands"
    (cd "$job" && HOME=$job PYTHONPATH=$builder_path SKBUILD_CMAKE_DEFINE="BITSWEEP_PREBUILT=$library" PIP_NO_DEPS=1 \
        PIP_NO_BUILD_ISOLATION=0 bash -euo pipefail commands) >"$job/said" 2>&1 &&
        grep -q '^Successfully installed bitsweep' "$job/said" &&
        compgen -G "$job/venv/lib/python3*/site-packages/bitsweep/libbitsweep.so" >/dev/null
}

check_tests "$source/python/tests"
emulated_library=$(dirname "$emulated")/libbitsweep_emulated.so
if [[ ! -e $emulated_library ]]; then
    echo "no library with emulated devices here: nothing runs on one"
elif slow_device; then
    pass "a device that takes its time"
else
    complain "a device that takes its time" "$folder/said"
fi
if builder; then
    check "a wheel" wheel_works
    if [[ -z ${QUICK:-} ]] && python3 -c 'import ensurepip' 2>/dev/null; then check "lines of docs/python.md" page_installs; fi
else
    echo "no pip or no scikit-build-core here: no wheel was made"
fi
check_tests "$source/bench/peers/tests"
mapfile -t pages < <(grep -lxF '```python' "$source"/README.md "$source"/docs/*.md)
check "there are pages with Python" test "${#pages[@]}" -ge 3
for page in "${pages[@]}"; do
    check "${page#"$source"/}" page_runs "$page"
done
finish
