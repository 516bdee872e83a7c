# SPDX-License-Identifier: Apache-2.0
# libbitsweep (coordinator/bitsweep.h): a shared library that shows nothing else, and a static one.
# deploy/install.cmake says where they go.
file(GLOB library_sources CONFIGURE_DEPENDS coordinator/bitsweep*.c)
add_library(bitsweep_api OBJECT ${library_sources})
target_link_libraries(bitsweep_api PRIVATE bitsweep_core)
target_compile_options(bitsweep_api PRIVATE ${hardening_options})
target_compile_definitions(bitsweep_api PRIVATE BITSWEEP_BUILD_MAJOR=${PROJECT_VERSION_MAJOR}
  BITSWEEP_BUILD_MINOR=${PROJECT_VERSION_MINOR} BITSWEEP_BUILD_PATCH=${PROJECT_VERSION_PATCH}
  $<$<BOOL:${have_hdf5}>:BITSWEEP_HAVE_HDF5=1>
  $<$<BOOL:${have_cuda}>:BITSWEEP_HAVE_CUDA=1>)

# 0.x: each minor version may break the ABI, and has its own soname.
set(library_abi ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(library_header ${CMAKE_CURRENT_SOURCE_DIR}/coordinator/bitsweep.h)

add_library(bitsweep_shared SHARED $<TARGET_OBJECTS:bitsweep_api>)
target_link_libraries(bitsweep_shared PRIVATE bitsweep_core)
target_link_options(bitsweep_shared PRIVATE -Wl,--exclude-libs,ALL -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
set_target_properties(bitsweep_shared PROPERTIES OUTPUT_NAME bitsweep EXPORT_NAME bitsweep
  VERSION ${PROJECT_VERSION} SOVERSION ${library_abi} LINKER_LANGUAGE C)
target_include_directories(bitsweep_shared INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/coordinator> $<INSTALL_INTERFACE:include>)
if(NOT BITSWEEP_SANITIZE)
  target_link_options(bitsweep_shared PRIVATE -Wl,--no-undefined)
endif()

# Without the commands, which only the program has.
add_library(bitsweep_static STATIC $<TARGET_OBJECTS:bitsweep_api>
  "$<FILTER:$<TARGET_OBJECTS:bitsweep_core>,EXCLUDE,coordinator/commands|coordinator/sweep|coordinator/plan>")
set_target_properties(bitsweep_static PROPERTIES OUTPUT_NAME bitsweep LINKER_LANGUAGE C)
if(have_cuda)
  target_sources(bitsweep_static PRIVATE $<TARGET_OBJECTS:bitsweep_kernels_cuda>)
  if(hopper_architectures)
    target_sources(bitsweep_static PRIVATE $<TARGET_OBJECTS:bitsweep_kernels_hopper>)
  endif()
endif()
