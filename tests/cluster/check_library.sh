#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libbitsweep as others have it: `cmake --install` under a DESTDIR, moved from there to a prefix that nobody knew of,
# where C and C++ compilers, pkg-config and a CMake project find it. Its answers and files are those of the program,
# byte for byte; errors are values; indexes, threads and ranks do not disturb each other.
# usage: check_library.sh BITSWEEP_BINARY SOURCE_FOLDER
set -euo pipefail

# shellcheck source=tests/cluster/support.sh
. "$(dirname "$0")/support.sh"
source=$(realpath "$2")
build=$(dirname "$(realpath "$1")")
base=$(realpath "$base")
queries=$(realpath "$queries")
export OMP_NUM_THREADS=2
compiler=${CC:-cc}
if [[ ! -e $build/libbitsweep.so ]]; then
    echo "no library was built beside $program"
    exit 77
fi
if grep -q '^BITSWEEP_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
    echo "a program that is not under sanitizers cannot load a library that is"
    exit 77
fi

# ---- installed ----

check "install" env DESTDIR="$folder/root" cmake --install "$build" --prefix /opt/x
mv "$folder/root/opt/x" "$folder/moved"
prefix=$folder/moved
check "nothing else was installed" rmdir "$folder/root/opt" "$folder/root"
for file in bin/bitsweep bin/bitsweep-bench include/bitsweep.h share/man/man1/bitsweep.1 share/man/man1/bitsweep-search.1 \
    share/bash-completion/completions/bitsweep share/zsh/site-functions/_bitsweep \
    share/fish/vendor_completions.d/bitsweep.fish; do
    check "$file is there" test -s "$prefix/$file"
done
libraries=$(dirname "$(find "$prefix" -name libbitsweep.so)")
export LD_LIBRARY_PATH=$libraries PKG_CONFIG_PATH=$libraries/pkgconfig
check "the program runs" "$prefix/bin/bitsweep" --version
check "the completion" bash -n "$prefix/share/bash-completion/completions/bitsweep"

for file in zsh/site-functions/_bitsweep fish/vendor_completions.d/bitsweep.fish; do
    shell=${file%%/*}
    file=$prefix/share/$file
    check "commands in that of $shell" test "$(grep -cE -- "('|-a )(search|plan|bench)[: ]" "$file")" = 3
    if command -v "$shell" >/dev/null; then check "the completion of $shell" "$shell" -n "$file"; fi
done

# The examples of the pages run in one folder, in the order of the commands.
mkdir "$folder/examples"
for page in synth encode search groundtruth eval info convert calibrate verify plan sweep; do
    sed -n '/^\.SH EXAMPLES/,/^\.fi/{s/\\-/-/g; /^bitsweep /p}' "$prefix/share/man/man1/bitsweep-$page.1"
done >"$folder/examples/commands"
check "pages have examples" test "$(wc -l <"$folder/examples/commands")" -ge 11
# shellcheck disable=SC2016
check "which run" env PATH="$prefix/bin:$PATH" bash -euo pipefail -c 'cd "$1" && . ./commands >said 2>&1' - "$folder/examples"

# The page has a paragraph for every option that --help lists.
"$program" search --help all | grep -o '^  --[a-z-]*' | sed 's/^  //; s/-/\\-/g' >"$folder/options"
while read -r option; do
    grep -qF -e ".B $option" "$prefix/share/man/man1/bitsweep-search.1" || fail "the page of search lacks $option"
done <"$folder/options"

# Symbols that are seen, the soname, and no folder of the build.
strange=$(nm -D --defined-only "$libraries/libbitsweep.so" | awk '$3 !~ /^bitsweep_/')
check "only bitsweep_ is seen" test -z "$strange"
declared=$(grep -oE '\bbitsweep_[a-z_]+\(' "$prefix/include/bitsweep.h" | tr -d '(' | sort -u)
shown=$(nm -D --defined-only "$libraries/libbitsweep.so" | awk '{print $3}' | sort)
check "the header declares what is seen" grep -qxF "$shown" <<<"$declared"
readelf -d "$libraries/libbitsweep.so" "$prefix/bin/bitsweep" >"$folder/dynamic"
check "soname" grep -q "soname: \[libbitsweep.so.$(cut -d. -f1,2 "$source/VERSION")\]" "$folder/dynamic"
if grep -E 'R(UN)?PATH' "$folder/dynamic" | grep -qF "$build"; then fail "a path of the build is left"; fi

# What `deploy/build.sh --program` builds is all that is installed: every file of the build that a rule makes.
all_is_built() {
    local file lost=0
    ninja -C "$build" -t targets all | sed 's/: [^:]*$//' | sort >"$folder/made"
    ninja -C "$build" -t commands packaged >"$folder/commands"
    grep -oE "\"$build/[^\"]+\"" "$build/cmake_install.cmake" | tr -d '"' | sed "s|^$build/||" | sort -u >"$folder/taken"
    while read -r file; do
        if [[ $file == */* ]]; then file=$(dirname "$file"); fi # a command names the folder
        grep -qE -e "[ /]$file( |\$)" "$folder/commands" || { echo "$file is installed, but not built" >&2 && lost=1; }
    done < <(comm -12 "$folder/made" "$folder/taken")
    test "$(comm -12 "$folder/made" "$folder/taken" | wc -l)" -ge 6 -a $lost = 0
}
if [[ -f $build/build.ninja ]]; then check "--program builds what is installed" all_is_built; fi

# The lines of docs/library.md, with a home of this test.
mkdir -p "$folder/reader/build" "$folder/reader/home" "$folder/reader/project"
ln -s "$build" "$folder/reader/build/release"
cp "$source/tests/library/small_program.c" "$folder/reader/program.c"
cp "$source/tests/library/small_program.c" "$folder/reader/project/program.c"
stand_in "$folder/reader/deploy/build.sh" 'test "$*" = --program'
shown_in "$source/docs/library.md" Installing >"$folder/reader/lines"
sed '/^find_package/,/^target_link/d' "$folder/reader/lines" >"$folder/reader/commands"
{
    printf 'cmake_minimum_required(VERSION 3.20)\nproject(reader LANGUAGES C)\nadd_executable(program program.c)\n'
    sed -n '/^find_package/,/^target_link/p' "$folder/reader/lines"
} >"$folder/reader/project/CMakeLists.txt"
reader() { # COMMAND...
    (cd "$folder/reader" && env -u PKG_CONFIG_PATH -u LD_LIBRARY_PATH HOME="$folder/reader/home" "$@")
}
check "lines of docs/library.md" reader bash -euo pipefail -c '. ./commands; ./a.out "$@"; ./with_static "$@"2' reader \
    "$base" "$queries" idx
check "with_static has it inside" test "$(readelf -d "$folder/reader/with_static" | grep -c libbitsweep)" = 0
# shellcheck disable=SC2016
check "its lines for CMake" reader bash -euo pipefail -c 'cmake -S project -B made -DCMAKE_PREFIX_PATH="$HOME/.local" &&
    cmake --build made && made/program "$@"' reader "$base" "$queries" idx_cmake

# ---- compiled against ----

echo '#include <bitsweep.h>
#include <bitsweep.h>
int main() {return bitsweep_version_number() < 0;}' >"$folder/header.cpp"
read -ra flags < <(pkg-config --cflags --libs bitsweep)
for standard in c++98 c++17; do
    check "the header as $standard" "${CXX:-c++}" -std=$standard -Wall -Wextra -pedantic -Wno-long-long -Werror -fsyntax-only \
        "-I$prefix/include" "$folder/header.cpp"
done
check "the header as C99" "$compiler" -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only -x c "$prefix/include/bitsweep.h"
check "it is as small as docs/library.md says" test "$(wc -l <"$source/tests/library/small_program.c")" -le 30
check "a small program" "$compiler" -Wall -Wextra -Werror "$source/tests/library/small_program.c" "${flags[@]}" \
    -o "$folder/small"
check "the cases" "$compiler" -Wall -Wextra -Werror "$source"/tests/library/library_{cases,range,support}.c "${flags[@]}" -lpthread -lm \
    -o "$folder/cases"
check "forks" "$compiler" -Wall -Wextra -Werror "$source"/tests/library/library_{forks,support}.c "${flags[@]}" -o "$folder/forks"
check "a CMake project" cmake -S "$source/tests/library" -B "$folder/project" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$compiler"
check "its build" cmake --build "$folder/project"
for small in "$folder/small" "$folder/project/with_shared" "$folder/project/with_static"; do
    check "$small runs" "$small" "$base" "$queries" "$small.idx"
    cp "$folder/stdout" "$folder/recall"
    check "what it finds" grep -qx '10-recall@10 1.0000' "$folder/recall"
done

# A file of tuning is read as the program reads it; what is wrong in it is the error of a call.
small_by() { # TUNING INDEX
    BITSWEEP_TUNING=$folder/$1 "$folder/small" "$base" "$queries" "$folder/$2"
}
echo 'device 9.0 graphs=on' >"$folder/good.tuning"
echo 'device 9.0 colour=red' >"$folder/bad.tuning"
check "by a file of tuning" small_by good.tuning tuned.idx
if small_by bad.tuning bad.idx >"$folder/said" 2>&1; then fail "a wrong file of tuning was not read"; fi
check "what is wrong with it" grep -q "bad.tuning: line 1: no column 'colour'" "$folder/said"
check "no index was begun" test ! -e "$folder/bad.idx"

# ---- the program's answers and files ----

cd "$folder"
cases() {
    check "cases $1 ${*: -1}" ./cases "$@"
}

expect_other() { # FILE FILE
    ! cmp -s "$1" "$2"
}

quiet() { # WORDS
    check "$1" "$program" "$@" --quiet
}

quiet encode --base "$base" --metric l2 --copy-vectors --device cpu --index flat
quiet encode --base "$base" --metric l2 --lists 64 --calibrate 200 --copy-vectors --device cpu --index lists
quiet search --index flat --queries "$queries" --k 10 --device cpu --out flat.program
quiet search --index lists --queries "$queries" --k 10 --recall 0.9 --device cpu --out lists.program
quiet groundtruth --base "$base" --queries "$queries" --metric l2 --k 10 --out truth.program
cases search flat "$queries" 10 0 flat.library
cases search lists "$queries" 10 0.9 lists.library
cases truth "$base" "$queries" 10 truth.library
cases encode "$base" 0 memory_flat
cases encode "$base" 64 memory_lists
cases search memory_flat "$queries" 10 0 flat.memory
cases search memory_lists "$queries" 10 0.9 lists.memory
for name in flat lists truth; do
    check "$name as the program's" cmp $name.program $name.library
done
# Rows in memory have no path and no size of a file: digests of the index differ by that, in the heads of its files.
for name in flat lists; do
    check "$name of rows in memory" cmp $name.program $name.memory
    for file in "$name"/shard-*; do
        check "$file has the same size" test "$(stat -c %s "$file")" = "$(stat -c %s "memory_$file")"
        check "$file of rows in memory" test "$({ cmp -l "$file" "memory_$file" || true; } | wc -l)" -le 32
    done
done
check "an index of rows in memory is whole" "$program" verify --index memory_lists
cases cases "$base" "$queries" flat lists
check "children of a program that has used it" timeout 200 ./forks flat "$queries"
cp -r lists calibrated
quiet calibrate --index calibrated --queries "$queries"
check "another table" expect_other calibrated/manifest.pb lists/manifest.pb
cases calibrate lists "$queries"
check "the same table as the program's" cmp calibrated/manifest.pb lists/manifest.pb
cp -r memory_lists memory_again
quiet calibrate --index memory_again --sample 200
check "the table of rows that were in memory" cmp memory_again/manifest.pb memory_lists/manifest.pb

# ---- ranks ----

if command -v mpicc >/dev/null && ./cases has mpi; then
    check "a program with MPI" mpicc -Wall -Wextra -Werror "$source/tests/library/library_ranks.c" "${flags[@]}" -o ranks
    check "three ranks" mpirun --oversubscribe --allow-run-as-root -n 3 ./ranks "$base" "$queries" ranks.idx ranks.library
    check "three ranks find what one finds" cmp flat.program ranks.library
    check "a program that makes mistakes" mpicc -Wall -Wextra -Werror "$source/tests/library/library_refusals.c" \
        "${flags[@]}" -o refusals
    check "no rank waits for one that is refused" timeout 60 mpirun --oversubscribe --allow-run-as-root -n 2 ./refusals \
        "$base" "$queries" refusals.idx
fi
finish
