# SPDX-License-Identifier: Apache-2.0
# NCCL links the GPUs of several ranks. It is looked for when the program runs, not here; nccl.h, if
# there is one, only checks what common/net/nccl_library.h says of it. AUTO: with CUDA.
find_path(BITSWEEP_NCCL_INCLUDE nccl.h HINTS $ENV{NCCL_HOME}/include $ENV{CUDA_HOME}/include
  ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} PATHS /usr/local/cuda/include)
if(BITSWEEP_NCCL STREQUAL "ON" AND NOT (have_cuda AND BITSWEEP_NCCL_INCLUDE))
  message(FATAL_ERROR "BITSWEEP_NCCL=ON, but CUDA or nccl.h is missing")
endif()
if(have_cuda AND NOT BITSWEEP_NCCL STREQUAL "OFF")
  set(have_nccl ON)
else()
  set(have_nccl OFF)
  set_source_files_properties(common/net/nccl_library.c PROPERTIES COMPILE_DEFINITIONS BITSWEEP_WITHOUT_NCCL=1)
endif()
if(have_nccl AND BITSWEEP_NCCL_INCLUDE)
  target_sources(bitsweep_core PRIVATE common/net/nccl_interface.c)
  set_source_files_properties(common/net/nccl_interface.c PROPERTIES COMPILE_OPTIONS
    "-isystem;${BITSWEEP_NCCL_INCLUDE};-isystem;${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}")
endif()
message(STATUS "bitsweep: NCCL ${have_nccl}")
