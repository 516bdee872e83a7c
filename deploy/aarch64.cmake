# SPDX-License-Identifier: Apache-2.0
# Toolchain of the preset aarch64: Debian's cross compiler, with what deploy/aarch64_root.sh has unpacked in
# build/aarch64-root; programs run under qemu. On an arm64 machine the other presets are the ones to use.
get_filename_component(aarch64_root "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root" ABSOLUTE)
set(aarch64_libraries ${aarch64_root}/usr/lib/aarch64-linux-gnu)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER NOTFOUND) # it is for GPU kernels
set(CMAKE_SYSROOT ${aarch64_root})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-cpu;max;-L;${aarch64_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${aarch64_libraries}/pkgconfig:${aarch64_root}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${aarch64_root})
# What mpicc would say, which cannot run here.
set(MPI_C_COMPILER ${CMAKE_C_COMPILER})
set(MPI_C_HEADER_DIR ${aarch64_libraries}/openmpi/include CACHE PATH "")
set(MPI_C_LIB_NAMES mpi CACHE STRING "")
set(MPI_mpi_LIBRARY ${aarch64_libraries}/openmpi/lib/libmpi.so CACHE FILEPATH "")
