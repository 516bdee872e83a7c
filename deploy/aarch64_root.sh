#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian's arm64 libraries that bitsweep is built and run with into a folder, for cross builds: no root, and
# nothing of this system changes. See --help.
set -euo pipefail

packages=(libc6-dev libgomp1 libopenmpi-dev libprotobuf-c-dev libxxhash-dev libhwloc-dev libopenblas-dev
    libjansson-dev libutf8proc-dev libcmocka-dev)
# What these depend on, but no program of ours: compilers, scripts, data.
unneeded='^(gcc|cpp|gfortran|binutils|perl|auto|lib(binutils|ctf|gprofng|perl|icu|[a-z]*san|itm|cc1|js-|x11|xcb|jpeg|isl|mpc|mpfr|db5|pam|gnutls|hdf5|curl|ssl-|llvm|mlir|ldap|stdc\+\+-|gcc-[0-9]))|^(m4|dpkg|tar|passwd|adduser|debconf|openssh-client|hdf5-helpers)'

help() {
    cat <<'END'
usage: deploy/aarch64_root.sh FOLDER

Downloads the arm64 libraries and headers that bitsweep needs from the Debian sources of this system
and unpacks them in FOLDER, for deploy/build.sh aarch64 and for qemu. Does nothing where it is done.

Exit codes: 0 it is there, 1 it could not be made, 2 usage.
END
}

fail() {
    echo "aarch64_root.sh: $1" >&2
    exit "${2:-1}"
}

case ${1:-} in
-h | --help) help && exit 0 ;;
"" | -*) fail "which folder? --help tells more" 2 ;;
esac
root=$1
[[ ! -e $root/complete ]] || exit 0
command -v apt-get >/dev/null || fail "no apt-get here"

rm -rf "$root"
mkdir -p "$root/apt/state/lists/partial" "$root/apt/cache/archives/partial"
root=$(cd "$root" && pwd)
: >"$root/apt/status"
apt=(apt-get -qq -o "Dir::State=$root/apt/state" -o "Dir::Cache=$root/apt/cache" -o "Dir::State::status=$root/apt/status"
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Debug::NoLocking=true
    -o Acquire::Languages=none)

# The packages by their names and files, NAME FILE a line.
list_packages() {
    "${apt[@]}" update >/dev/null 2>"$root/apt/log" || return 1
    "${apt[@]}" install -y --no-install-recommends --print-uris "${packages[@]}" 2>>"$root/apt/log" |
        awk -v unneeded="$unneeded" '/^'\''/ {
            name = $2
            sub(/_.*/, "", name)
            if (name !~ unneeded) print name
        }'
}

mapfile -t names < <(list_packages)
((${#names[@]} >= ${#packages[@]})) || fail "no arm64 packages: $(tail -n 1 "$root/apt/log")"
(cd "$root/apt/cache" && "${apt[@]}" download "${names[@]}" >>"$root/apt/log" 2>&1) ||
    fail "download failed: $(tail -n 1 "$root/apt/log")"
for file in "$root"/apt/cache/*.deb; do
    dpkg-deb --extract "$file" "$root"
done
rm -rf "$root/apt"

# What the packages' scripts would have made of alternatives.
libraries=$root/usr/lib/aarch64-linux-gnu
for file in "$libraries"/openblas-pthread/lib*.so*; do
    ln -sf "openblas-pthread/${file##*/}" "$libraries/${file##*/}"
done
ln -sf ../openblas-pthread/pkgconfig/openblas.pc "$libraries/pkgconfig/openblas.pc"
# Links to /lib mean that of the folder.
find "$root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfn "$root$(readlink "$link")" "$link"
done
touch "$root/complete"
