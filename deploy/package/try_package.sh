#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian package on a bare Debian and runs it there. See --help.
set -euo pipefail

help() {
    cat <<'END'
usage: deploy/package/try_package.sh PACKAGE.deb [ROOT]

Makes a bare Debian in a temporary folder by debootstrap, or takes a copy of the one in ROOT, installs
PACKAGE.deb there by apt-get with what it depends on, and as a user who is not root makes an index and
searches it, alone and on two ranks, whose bytes must be the same. Then it removes the package. Needs root,
debootstrap and Debian's packages. SUITE is the release [bookworm], MIRROR the mirror [that of this machine].

Exit codes: 0 it works, 1 it does not, 2 usage.
END
}

fail() {
    echo "try_package.sh: $1" >&2
    exit "${2:-1}"
}

# What runs inside, as root; $1 is the package.
# shellcheck disable=SC2016 # it is expanded inside
inside='
set -euo pipefail
mount -t proc proc /proc
mount -t sysfs -o ro sysfs /sys
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm 2>/dev/null || { mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm; }
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install -y --no-install-recommends "$1" openmpi-bin >/dev/null
useradd --create-home user
cd /home/user
su user -c "set -e
    bitsweep --version
    bitsweep synth --count 5000 --dims 64 --out base.fbin --queries 50 --queries-out queries.fbin --quiet
    bitsweep encode --base base.fbin --metric l2 --index idx --shards 2 --quiet
    bitsweep search --index idx --queries queries.fbin --k 10 --out one --quiet
    bitsweep-ranks -n 2 search --index idx --queries queries.fbin --k 10 --out two --quiet
    cmp one two
    bitsweep verify idx --quiet >/dev/null
    test -x /usr/share/bitsweep/deploy/slurm/gpu_ranks.sh"
apt-get -qq remove -y bitsweep >/dev/null
test ! -e /usr/bin/bitsweep
test ! -e /usr/share/bitsweep
echo "installed, run and removed on Debian $(cat /etc/debian_version)"
'

case ${1:-} in
-h | --help) help && exit 0 ;;
"") fail "a package is needed; --help tells more" 2 ;;
esac
((EUID == 0)) || fail "needs root"
package=$(realpath "$1")
[[ -f $package ]] || fail "$1 is missing; deploy/package/package.sh makes it"
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
if [[ -n ${2:-} ]]; then
    cp -a "$2" "$work/root"
else
    command -v debootstrap >/dev/null || fail "debootstrap is missing"
    mirror=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        sed -nE 's/^URIs: *//p; s/^deb (\[[^]]*\] )*([^ ]*) .*/\2/p' | head -n 1)} || true
    debootstrap --variant=minbase "${SUITE:-bookworm}" "$work/root" "$mirror" >"$work/log" 2>&1 ||
        fail "debootstrap: $(tail -n 1 "$work/log")"
fi
cp "$package" "$work/root/tmp/bitsweep.deb"
unshare --mount --pid --fork --kill-child chroot "$work/root" /bin/bash -c "$inside" inside /tmp/bitsweep.deb ||
    fail "it does not work there"
