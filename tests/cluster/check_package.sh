#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Debian package of this build, made by the lines of deploy/README.md: what is in it, and that it runs from where it
# was unpacked. deploy/package/try_package.sh installs it on a bare Debian.
# usage: check_package.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
for tool in cpack dpkg-shlibdeps dpkg-deb; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is missing" && exit 77; }
done
find_ranks 2

# The build is there, and "installed" is unpacked.
source=$(realpath "$2")
mkdir -p "$folder/reader/build" "$folder/reader/deploy/package"
ln -s "$(dirname "$program")" "$folder/reader/build/release"
cp "$source/deploy/package/package.sh" "$folder/reader/deploy/package"
# shellcheck disable=SC2016
stand_in "$folder/reader/deploy/build.sh" 'test "$*" = "--gpu all"'
# shellcheck disable=SC2016
stand_in "$folder/bin/apt-get" 'test "$1" = install && shift && exec dpkg-deb -x "$@" '"'$folder/root'"
shown_in "$source/deploy/README.md" "Debian package" >"$folder/reader/commands"
if ! (cd "$folder/reader" && PATH=$folder/bin:$PATH bash -euo pipefail commands) >"$folder/said" 2>"$folder/stderr"; then
    complain "no package"
    finish
fi
package=$(tail -n 1 "$folder/said")
if grep -q '^package.sh: GPU kernels: ' "$folder/stderr"; then pass; else complain "does not say what GPU kernels it has"; fi
unset BITSWEEP BITSWEEP_RUN
PATH=$folder/root/usr/bin:$PATH
for fact in "Package bitsweep" "Version $(bitsweep --version | grep -oE '[0-9.]+' | head -n 1)"; do
    if [[ $(dpkg-deb -f "$package" "${fact% *}") == "${fact#* }" ]]; then pass; else complain "$fact"; fi
done
if dpkg-deb -f "$package" Depends | grep -q 'libhwloc15'; then pass; else complain "depends on no libraries"; fi
for file in bin/bitsweep bin/bitsweep-bench bin/bitsweep-run bin/bitsweep-ranks share/bitsweep/deploy/slurm/slurm_job.sh \
    share/bitsweep/deploy/kubernetes/mpi_job.yaml share/doc/bitsweep/copyright share/doc/bitsweep/docs/cluster.md; do
    if [[ -s $folder/root/usr/$file ]]; then pass; else complain "no $file"; fi
done

cd "$folder"
check "encode" bitsweep encode --base "$base" --metric l2 --index idx --shards 2 --threads 1 --quiet
check "search" bitsweep search --index idx --queries "$queries" --out one --threads 1 --quiet
for ranks in "${ranks_axis[@]}"; do
    check "$ranks ranks" bitsweep-ranks -n "$ranks" search --index idx --queries "$queries" --out "on$ranks" --quiet
    if cmp one "on$ranks"; then pass; else complain "$ranks ranks: other bytes"; fi
done
finish
