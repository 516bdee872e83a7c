#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bitsweep beside FAISS, hnswlib, Intel SVS and ScaNN: the same data, threads and k; see --help.
# Makes a Python environment of its own in build/peers-venv, once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/build/peers-venv
python=${PYTHON:-python3}
bitsweep=${BITSWEEP:-$root/build/release/bitsweep}

fail() {
    echo "run_peers.sh: $1" >&2
    exit 1
}

check() {
    [[ -x $bitsweep ]] || fail "$bitsweep is missing; deploy/build.sh builds it"
    command -v gnuplot >/dev/null || fail "gnuplot is missing; deploy/install.sh installs it"
    command -v taskset >/dev/null || fail "taskset is missing: apt-get install util-linux"
}

wanted() {
    cat "$here/requirements.txt" "$here/requirements_source.txt"
}

make_venv() {
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        fail "$python is older than 3.10, which faiss-cpu needs; PYTHON=... names another"
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python cannot make environments: apt-get install python3-venv"
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "could not make $venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
        -r "$here/requirements.txt" || fail "could not install $here/requirements.txt"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation \
        -r "$here/requirements_source.txt" ||
        echo "run_peers.sh: no hnswlib: it needs g++ and python3-dev; other engines run" >&2
    wanted >"$venv/installed.txt" # last: what is half made is made again
}

# --help, and what is wrong, before anything is installed.
command -v "$python" >/dev/null || fail "python3 is missing: apt-get install python3-venv"
"$python" -B "$here/peer_options.py" "$@"
for word; do
    [[ $word != -h && $word != --help ]] || exit 0
done
check
if ! cmp -s <(wanted) "$venv/installed.txt"; then
    echo "run_peers.sh: installing FAISS, hnswlib, SVS and ScaNN in $venv" >&2
    make_venv
fi
export BITSWEEP=$bitsweep
exec "$venv/bin/python" -B "$here/compare_peers.py" "$@"
