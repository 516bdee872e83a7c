#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What deploy/hardening.cmake asks for is in the release program.
# usage: check_hardening.sh BITSWEEP_BINARY LIBBITSWEEP_CORE
set -euo pipefail

program=$1
library=$2
failed=0
for tool in readelf nm; do
    if ! command -v "$tool" >/dev/null; then
        echo "check_hardening.sh: skipped: no $tool"
        exit 77
    fi
done
if [[ $(nm -D "$program") == *__asan_init* ]]; then
    echo "check_hardening.sh: skipped: a build with sanitizers"
    exit 77
fi

# expect WHAT PATTERN TEXT
expect() {
    if grep -qE -- "$2" <<<"$3"; then
        echo "$1: yes"
    else
        echo "check_hardening.sh: $program: $1: no" >&2
        failed=1
    fi
}

header=$(readelf -hW "$program")
segments=$(readelf -lW "$program")
dynamic=$(readelf -dW "$program")
imports=$(nm -D --undefined-only "$program")
expect "position-independent" 'Type: +DYN' "$header"
expect "marked as PIE" 'FLAGS_1.*PIE' "$dynamic"
expect "relocations read-only" 'GNU_RELRO' "$segments"
expect "bound at start" 'BIND_NOW|FLAGS_1.*NOW' "$dynamic"
expect "stack not executable" 'GNU_STACK +([^ ]+ +){5}RW ' "$segments"
expect "stack protector" '__stack_chk_fail' "$imports"
for name in memcpy snprintf vsnprintf; do
    expect "checked $name" "__${name}_chk" "$imports"
done
if grep -qE ' (W E|WE|RWE) ' <<<"$segments"; then
    echo "check_hardening.sh: $program: a segment is both writable and executable" >&2
    failed=1
fi

# The linker marks a program only if every object is marked, the start-up code of the system and
# CUDA's runtime too; what is ours must be.
if [[ $header == *X86-64* ]]; then
    objects=$(readelf -nW "$library" 2>/dev/null)
    all=$(grep -c '^File: ' <<<"$objects")
    marked=$(grep -c 'IBT.*SHSTK' <<<"$objects" || true)
    expect "IBT and SHSTK in $marked of our $all objects" "^$all$" "$marked"
    grep -q 'IBT.*SHSTK' <<<"$(readelf -nW "$program" 2>/dev/null)" ||
        echo "IBT and SHSTK of the program: no: something that is linked lacks them"
fi
exit "$failed"
