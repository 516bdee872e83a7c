#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gathers into one folder what a build needs beyond compilers, CMake and CUDA: headers, shared
# libraries and the tools pkg-config and protoc-c, from this Debian or Ubuntu machine's packages, for
# one that has none and no network. bench/gpu_check.sh uses the folder `carried` where it is.
# usage: bench/carry_libraries.sh [FOLDER]       carried/ of the repository unless given
set -euo pipefail

case ${1:-} in
-h | --help)
    sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
-*)
    echo "carry_libraries.sh: unknown option $1; --help tells more" >&2
    exit 2
    ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${1:-$root/carried}
most_megabytes=60

# The package and, as pkg-config and the linker name it, what it has.
packages=("libprotobuf-c-dev libprotobuf-c protobuf-c" "libxxhash-dev libxxhash xxhash"
    "libhwloc-dev hwloc hwloc" "libjansson-dev jansson jansson" "libutf8proc-dev libutf8proc utf8proc" "libcmocka-dev cmocka cmocka"
    "libopenblas-dev openblas openblas")
# The target has these as every system with a C++ compiler has.
system_libraries='^(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+)[.-]'

fail() {
    echo "carry_libraries.sh: $1" >&2
    exit 1
}

# copy_needed FILE TO: what it is linked with, by the name it is looked up by.
copy_needed() {
    local name path
    while read -r name path; do
        [[ $name =~ $system_libraries || -e $2/$name ]] || cp -L "$path" "$2/$name"
    done < <(ldd "$1" | sed -nE 's/^\s*(\S+) => (\/\S+) .*/\1 \2/p')
}

# library NAME: the file that -lNAME finds, under its own name, and a link for the linker.
copy_library() {
    local file soname
    file=$(gcc -print-file-name="lib$1.so")
    # OpenBLAS has a folder of its own.
    [[ $file == /* ]] || file=$(pkg-config --variable=libdir "$1")/lib$1.so
    [[ -e $file ]] || fail "lib$1.so is not found"
    soname=$(objdump -p "$file" | sed -nE 's/^\s*SONAME\s+(\S+)$/\1/p')
    cp -L "$file" "$work/lib/$soname"
    ln -sf "$soname" "$work/lib/lib$1.so"
    copy_needed "$file" "$work/lib"
}

copy_headers() {
    local file to
    dpkg -L "$1" >"$work/files" || fail "package $1 is missing; deploy/install.sh installs it"
    while read -r file; do
        [[ -f $file && $file == /usr/include/* ]] || continue
        to=${file#/usr/include/}
        to=$work/include/${to#"$(gcc -print-multiarch)/"}
        mkdir -p "$(dirname "$to")"
        cp -L "$file" "$to"
    done <"$work/files"
    rm "$work/files"
}

# As the folder may lie anywhere, paths are relative to the file.
write_description() {
    cat >"$work/lib/pkgconfig/$1.pc" <<END
prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: $1
Description: carried from another machine
Version: $(pkg-config --modversion "$1")
Libs: -L\${libdir} -l$2
Cflags: -I\${includedir}
END
}

# A tool with its libraries in a folder that only it sees.
copy_tool() {
    local file
    file=$(command -v "$1") || fail "$1 is missing; deploy/install.sh installs it"
    file=$(readlink -f "$file")
    mkdir -p "$work/tools/lib"
    cp "$file" "$work/tools/$1"
    copy_needed "$file" "$work/tools/lib"
    # protoc-c goes by the name it is called by.
    cat >"$work/bin/$1" <<'END'
#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
LD_LIBRARY_PATH=$here/tools/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/tools/${0##*/}" "$@"
END
    chmod +x "$work/bin/$1"
}

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/include" "$work/lib/pkgconfig" "$work/bin"
for entry in "${packages[@]}"; do
    read -r package description library <<<"$entry"
    copy_headers "$package"
    copy_library "$library"
    write_description "$description" "$library"
done
# OpenBLAS' headers come in other packages, in a folder that pkg-config knows.
cp -L "$(pkg-config --variable=includedir openblas)"/*.h "$work/include/"
copy_tool pkg-config
copy_tool protoc-c
chmod -R u+w "$work"
chmod 755 "$work"
megabytes=$(du -sm "$work" | cut -f 1)
((megabytes <= most_megabytes)) || fail "$megabytes MB are more than $most_megabytes"
rm -rf "$folder"
mv "$work" "$folder"
trap - EXIT
echo "carry_libraries.sh: $folder, $megabytes MB"
