#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a wheel as deploy/package/wheel.sh does, installs it by pip into a new virtual environment, and runs the tests of
# the package there, on the library and the program of the wheel. WHEEL: one that was made before. Exit code 77 where
# there is no package index.
# usage: try_pip.sh [PYTHON [WHEEL]]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
unset BITSWEEP BITSWEEP_LIBRARY BITSWEEP_PROGRAM PYTHONPATH

fail() {
    echo "try_pip.sh: $1" >&2
    exit 1
}

python=${1:-python3}
wheel=${2:-$("$root/deploy/package/wheel.sh" "$folder/wheels" "$python")}
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q tqdm pandas "$wheel" || exit 77
site=$(echo "$folder"/venv/lib/python3*/site-packages)

# What is taken from the machine is what manylinux counts on: glibc, and what is on every machine beside it.
may_be=$site'|linux-vdso|/ld-linux|/lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+|z)\.so'
for file in "$site/bitsweep/libbitsweep.so" "$site"/bitsweep/bin/*; do
    taken=$(ldd "$file" | grep -vE "$may_be" || true)
    [[ ! $taken ]] || fail "${file##*/} needs of this machine: $taken"
done

cd "$folder"
[[ $(venv/bin/bitsweep --version) == "bitsweep $(<"$root/VERSION")" ]] || fail "the script bitsweep does not start the program"
venv/bin/bitsweep bench memory --help >/dev/null || fail "bench is not in the wheel"
if command -v mpirun >/dev/null; then
    mpirun --allow-run-as-root --oversubscribe -n 2 venv/bin/bitsweep synth --count 2000 --dims 16 --out rows.fbin
fi
export BITSWEEP=$folder/venv/bin/bitsweep
cd "$root/python/tests"
"$folder/venv/bin/python" -m unittest discover
cd "$folder"
venv/bin/python -c '
import bitsweep, numpy, pandas
x = numpy.random.default_rng(1).standard_normal((1000, 16), dtype=numpy.float32)
table = pandas.DataFrame(bitsweep.sweep(x, x[:20], metric="l2", bits=[1, 4], measure=0, repeat=1))
assert set(table.bits) == {1, 4} and table.recall.max() > 0.9, table
print(bitsweep.library.lib._name, bitsweep.__version__)'
