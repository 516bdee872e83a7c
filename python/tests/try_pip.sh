#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the package by pip into a new virtual environment, and runs its tests there on the installed library.
# By hand: it compiles the library and asks a package index for numpy and scikit-build-core.
# usage: try_pip.sh [BITSWEEP_BINARY [PYTHON]]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"${2:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --disable-pip-version-check -q "$root/python"
"$folder/venv/bin/pip" list --disable-pip-version-check 2>/dev/null | grep -E '^bitsweep '
if [[ ${1:-} ]]; then
    BITSWEEP=$(realpath "$1")
    export BITSWEEP
fi
unset BITSWEEP_LIBRARY
cd "$root/python/tests"
PYTHONDONTWRITEBYTECODE=1 "$folder/venv/bin/python" -m unittest discover
cd "$folder"
"$folder/venv/bin/python" -c 'import bitsweep; print(bitsweep.library.lib._name, bitsweep.__version__)'
