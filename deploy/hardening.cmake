# SPDX-License-Identifier: Apache-2.0
# Hardening of the release program: what OpenSSF's guide for C and C++ compilers lists, as far as the
# compiler takes it. Sets hardening_options for code and hardening_link_options for programs; both
# are empty in other builds, where sanitizers look closer. tests/faults/check_hardening.sh reads the
# program for them.
#
# Position-independent code is CMake's, -fPIC for what the library has, too: hidden symbols make it that
# of -fPIE. Left out: -Wl,-z,nodlopen is for libraries; -fstrict-flex-arrays=3 is not known to gcc 12. Kernels
# of AVX2 and AVX-512 are compiled without what changes their code: their callers check all sizes,
# and protected stacks and variables that are set twice made the matrix scan and exact keys some 10 %
# slower. hardening_kernel_flags takes these options back.
include(CheckCCompilerFlag)
include(CheckCSourceRuns)
set(hardening_options)
set(hardening_link_options)
set(hardening_kernel_flags)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT BITSWEEP_SANITIZE)
  list(APPEND hardening_options -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS)
  foreach(option -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
      -ftrivial-auto-var-init=zero -fno-delete-null-pointer-checks -fno-strict-overflow -fno-strict-aliasing)
    string(MAKE_C_IDENTIFIER "takes${option}" takes)
    check_c_compiler_flag("-Werror ${option}" ${takes})
    if(${takes})
      list(APPEND hardening_options ${option})
    endif()
  endforeach()
  # gcc 12 clears bytes of an array in place of the padding behind it, where a variable is set to a
  # struct that is copied in. Such a compiler does without.
  set(CMAKE_REQUIRED_FLAGS "-O2 -ftrivial-auto-var-init=zero")
  set(CMAKE_REQUIRED_QUIET ON)
  check_c_source_runs([[
    struct part { unsigned a, b, c, d; };
    struct layout { unsigned x, y, z; struct part parts[32]; };
    struct shape { int level; unsigned long rows, queries; struct layout layout; unsigned bits; int metric; };
    __attribute__((noipa)) static int is_right(const struct shape *shape) { return shape->layout.parts[0].c == 3; }
    __attribute__((noipa)) static int copy(const struct layout *layout, unsigned long rows)
    {
        const struct shape shape = {.level = 1, .rows = rows, .queries = 2, .layout = *layout, .bits = 3, .metric = 4};
        return is_right(&shape);
    }
    int main(void)
    {
        static struct layout layout;
        for (int i = 0; i < 32; i++) layout.parts[i] = (struct part){1, 2, 3, 4};
        return copy(&layout, 7) ? 0 : 1;
    }]] copies_beside_padding_are_right)
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_REQUIRED_QUIET)
  if(NOT copies_beside_padding_are_right)
    list(REMOVE_ITEM hardening_options -ftrivial-auto-var-init=zero)
  endif()
  set(hardening_kernel_flags
    "-fno-stack-protector -fdelete-null-pointer-checks -fstrict-overflow -fstrict-aliasing")
  if(takes_ftrivial_auto_var_init_zero)
    string(APPEND hardening_kernel_flags " -ftrivial-auto-var-init=uninitialized")
  endif()
  list(APPEND hardening_link_options -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
list(JOIN hardening_options "," hardening_cuda_options) # of the host's part of GPU kernels
