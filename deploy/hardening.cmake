# Hardening of the release program: what OpenSSF's guide for C and C++ compilers lists, as far as the
# compiler takes it. Sets hardening_options for code and hardening_link_options for programs; both
# are empty in other builds, where sanitizers look closer. tests/faults/check_hardening.sh reads the
# program for them.
#
# Left out: -Wl,-z,nodlopen is for libraries; -fstrict-flex-arrays=3 is not known to gcc 12. Kernels
# of AVX2 and AVX-512 are compiled without what changes their code: their callers check all sizes,
# and protected stacks and variables that are set twice made the matrix scan and exact keys some 10 %
# slower. hardening_kernel_flags takes these options back.
include(CheckCCompilerFlag)
set(hardening_options)
set(hardening_link_options)
set(hardening_kernel_flags)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT BITSWEEP_SANITIZE)
  list(APPEND hardening_options -fPIE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS)
  foreach(option -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
      -ftrivial-auto-var-init=zero -fno-delete-null-pointer-checks -fno-strict-overflow -fno-strict-aliasing)
    string(MAKE_C_IDENTIFIER "takes${option}" takes)
    check_c_compiler_flag("-Werror ${option}" ${takes})
    if(${takes})
      list(APPEND hardening_options ${option})
    endif()
  endforeach()
  set(hardening_kernel_flags
    "-fno-stack-protector -fdelete-null-pointer-checks -fstrict-overflow -fstrict-aliasing")
  if(takes_ftrivial_auto_var_init_zero)
    string(APPEND hardening_kernel_flags " -ftrivial-auto-var-init=uninitialized")
  endif()
  list(APPEND hardening_link_options -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
list(JOIN hardening_options "," hardening_cuda_options) # of the host's part of GPU kernels
