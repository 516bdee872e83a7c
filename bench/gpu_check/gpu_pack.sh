# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # root, build, nccl, mpi and is_emulated are gpu_check.sh's, which sources this
# One file with all that gpu_check.sh needs on a machine that has nothing but a GPU and its driver: scripts, programs,
# the libraries that they are linked with, Open MPI and, if given, NCCL; and the other side of it.
#
# In the file is a folder as the repository's, where build/packed is the build: programs as ever, lib/ for libraries
# (own/ for those that every system with a C++ compiler has, which count where they are missing), mpi/ for Open MPI.

most_megabytes=64
packed_scripts=(bench/gpu_check.sh bench/gpu_check bench/gpu_identity.sh bench/gpu_graphs.sh bench/known_reports.sh
    bench/known_reports.txt bench/peers/gpu_peers.py bench/peers/gpu_engines.py
    bench/peers/peer_engines.gnuplot tests/cluster/support.sh tests/cluster/check_device.sh
    tests/cluster/check_device_pq.sh tests/cluster/check_device_raw.sh tests/cluster/check_device_selective.sh
    tests/cluster/check_device_truth.sh deploy/run.sh coordinator/bitsweep.h python/bitsweep python/bitsweep_program.py
    python/tests/test_device.py python/tests/package_case.py tests/data/sift20k_base.u8bin
    tests/data/sift20k_query.u8bin)
basic_libraries='^(linux-vdso|ld-linux[a-z0-9-]*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libcuda)[.-]'
compiler_libraries='^(libgcc_s|libstdc\+\+)[.-]'
network_libraries='lib(ucp|ucs|uct|fabric|psm2|psm_infinipath|ibverbs|efa|rdmacm|slurm|oshmem)' # other hosts, if at all

packed_programs() {
    local programs=(bitsweep bitsweep-bench bitsweep-run tests/kernelcheck tests/identity_data tests/hostile_rows)
    if ((is_emulated)); then
        programs+=(tests/emulation/device_check tests/bitsweep_emulated tests/bitsweep_emulated-bench
            tests/library_device tests/libbitsweep_emulated.so tests/nccl_stand_in.so)
    else
        programs+=(libbitsweep.so tests/emulation/gpu/device_check_gpu tests/emulation/gpu/library_device_gpu)
        [[ ! -e $build/tests/emulation/gpu/device_check_gpu_racecheck ]] ||
            programs+=(tests/emulation/gpu/device_check_gpu_racecheck)
    fi
    printf '%s\n' "${programs[@]}"
}

# pack_libraries FILE: what it is linked with and whatever that is, but what every Linux has.
pack_libraries() {
    local name path to
    while read -r name path; do
        [[ $name =~ $basic_libraries || $path == "$build"/* || $path == "$packed"/* ]] && continue
        to=$packed/lib
        if [[ $name =~ $compiler_libraries ]]; then to=$packed/lib/own; fi
        [[ -e $to/$name ]] || cp -L "$path" "$to/$name"
    done < <(ldd "$1" | sed -nE 's/^\s*(\S+) => (\/\S+) .*/\1 \2/p')
}

pack_programs() {
    local file
    mkdir -p "$packed/lib/own"
    while read -r file; do
        [[ -e $build/$file ]] || { echo "gpu_check.sh: $build/$file is not built" >&2 && return 1; }
        mkdir -p "$(dirname "$packed/$file")"
        cp -L "$build/$file" "$packed/$file"
        pack_libraries "$build/$file"
        strip "$packed/$file" 2>/dev/null || true # names that users of GPUs see are elsewhere; a script has none
    done < <(packed_programs)
    # Libraries of the build are looked for by their whole names.
    for file in libbitsweep.so tests/libbitsweep_emulated.so; do
        [[ ! -e $packed/$file ]] || cp "$packed/$file" "$packed/lib/$(soname_of "$packed/$file")"
    done
}

soname_of() {
    objdump -p "$1" | sed -nE 's/^\s*SONAME\s+(\S+)$/\1/p'
}

# pack_mpi: Open MPI below PREFIX, /usr for Debian's, whose folders are found by OPAL_PREFIX again; without what speaks to
# networks that no machine for this has.
pack_mpi() {
    local file plugin to
    command -v "$mpi/bin/mpirun" >/dev/null || { echo "gpu_check.sh: $mpi/bin/mpirun is missing" >&2 && return 1; }
    mkdir -p "$packed/mpi/bin"
    for file in mpirun orted; do
        cp -L "$mpi/bin/$file" "$packed/mpi/bin/$file"
        pack_libraries "$mpi/bin/$file"
    done
    while read -r plugin; do
        [[ ! $(ldd "$plugin") =~ $network_libraries ]] || continue
        to=$packed/mpi/${plugin#"$mpi"/}
        mkdir -p "${to%/*}"
        cp -L "$plugin" "$to"
        pack_libraries "$plugin"
    done < <(find "$mpi/lib" "$mpi/lib64" -name 'mca_*.so' 2>/dev/null)
    mkdir -p "$packed/mpi/share"
    cp -rL "$mpi/share/openmpi" "$packed/mpi/share/"
}

pack_scripts() {
    local file
    for file in "${packed_scripts[@]}"; do
        mkdir -p "$(dirname "$work/bitsweep/$file")"
        cp -rL "$root/$file" "$work/bitsweep/$file"
    done
    find "$work/bitsweep" -name __pycache__ -prune -exec rm -rf {} +
    git -C "$root" describe --always --dirty >"$packed/revision" 2>/dev/null || echo unknown >"$packed/revision"
}

compress() {
    case $1 in
    *.tar.zst) tar -C "$work" -c bitsweep | zstd -q -15 -T0 -f -o "$1" ;;
    *.tar.gz) tar -C "$work" -c bitsweep | gzip -6 >"$1" ;;
    esac
}

# write_pack FILE
write_pack() {
    local file=$1 packed bytes
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    packed=$work/bitsweep/build/packed
    mkdir -p "$packed"
    pack_programs || return 1
    pack_mpi || return 1
    if [[ -n $nccl ]]; then cp -L "$nccl" "$packed/lib/libnccl.so.2"; fi
    pack_scripts
    compress "$file"
    bytes=$(wc -c <"$file")
    if ((bytes > most_megabytes << 20)); then
        rm -f "$file"
        echo "gpu_check.sh: $file: $((bytes >> 20)) MiB are more than $most_megabytes. Before compression (KiB):" >&2
        (cd "$work/bitsweep" && du -ak . | sort -rn | awk '$1 >= 1024' | head -n 30) >&2
        return 1
    fi
    echo "gpu_check.sh: $file, $((bytes >> 10)) KiB$([[ -n $nccl ]] || echo ', without NCCL')"
}

# unpack FILE FOLDER
unpack() {
    mkdir -p "$2"
    case $1 in
    *.tar.zst) zstd -q -d -c "$1" | tar -C "$2" -x ;;
    *.tar.gz) tar -C "$2" -xzf "$1" ;;
    esac
}

# use_packed: programs, libraries and Open MPI of the pack that this script came in.
use_packed() {
    local packed=$root/build/packed path name here
    here=$(ldconfig -p 2>/dev/null || true)
    path=$packed/lib
    for name in "$packed"/lib/own/*; do
        [[ $here == *"${name##*/} "* ]] || path=$packed/lib:$packed/lib/own
    done
    export LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export PATH=$packed/mpi/bin:$PATH OPAL_PREFIX=$packed/mpi
    # PMIx looks for its plugins where they were installed and would say that it misses one that compresses.
    export PMIX_MCA_pcompress_base_silence_warning=1
    build=$packed
}
