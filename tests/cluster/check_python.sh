#!/usr/bin/env bash
# The Python package over the library of this build: python/tests, its doctests among them, and the adapters for other
# benchmarks. Without installing anything.
# usage: check_python.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"

library=$(dirname "$program")/libbitsweep.so
needs "$library"
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys, numpy; assert sys.version_info >= (3, 9)' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[[ $python ]] || { echo "no python3 with numpy here; in Debian it is the package python3-numpy" && exit 77; }
source=$(realpath "$2")
export BITSWEEP_LIBRARY=$library PYTHONPATH=$source/python PYTHONDONTWRITEBYTECODE=1

# tests_pass FOLDER: its unit tests, of which there are some.
tests_pass() {
    (cd "$1" && "$python" -W error::ResourceWarning -m unittest discover -v) >"$folder/said" 2>&1 &&
        grep -qE '^Ran ([3-9]|[1-9][0-9]+) tests' "$folder/said"
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

check_tests "$source/python/tests"
check_tests "$source/bench/peers/tests"
finish
