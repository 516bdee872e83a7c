# SPDX-License-Identifier: Apache-2.0
# `cmake --install BUILD --prefix X`: the programs, the library with header, pkg-config file and CMake
# package, man pages and shell completion. Everything finds its parts by where it lies, so that DESTDIR
# and a later move do.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS bitsweep bitsweep-bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS bitsweep_shared EXPORT bitsweep LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS bitsweep_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${library_header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# ---- pkg-config ----

# What a program needs that is linked with libbitsweep.a; with the shared library it needs nothing.
set(static_libs)
foreach(needed PROTOBUF_C XXHASH HWLOC JANSSON OPENBLAS UTF8PROC)
  list(APPEND static_libs ${${needed}_LINK_LIBRARIES})
endforeach()
list(APPEND static_libs ${OpenMP_C_FLAGS} -pthread -lm -ldl)
if(have_mpi AND NOT BITSWEEP_MPI STREQUAL "LOADED")
  list(APPEND static_libs ${MPI_C_LIBRARIES})
endif()
if(have_hdf5)
  list(APPEND static_libs ${HDF5_LINK_LIBRARIES})
endif()
if(have_embree)
  list(APPEND static_libs ${EMBREE_LIBRARY})
endif()
if(have_vulkan)
  list(APPEND static_libs ${VULKAN_LINK_LIBRARIES})
endif()
if(have_cuda)
  set(cuda_folders ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES})
  list(FILTER cuda_folders INCLUDE REGEX "cuda")
  list(FILTER cuda_folders EXCLUDE REGEX "stubs")
  list(TRANSFORM cuda_folders PREPEND "-L")
  list(APPEND static_libs ${cuda_folders} -lcudart_static -lrt -lstdc++)
endif()
list(JOIN static_libs " " static_libs_text)
file(RELATIVE_PATH pkgconfig_to_prefix /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
configure_file(deploy/bitsweep.pc.in ${CMAKE_CURRENT_BINARY_DIR}/bitsweep.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/bitsweep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# ---- CMake package: bitsweep::bitsweep, and bitsweep::static for those who ask for it ----

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/bitsweep)
configure_package_config_file(deploy/bitsweepConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/bitsweepConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/bitsweepConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(EXPORT bitsweep NAMESPACE bitsweep:: FILE bitsweepTargets.cmake DESTINATION ${package_folder})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/bitsweepConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/bitsweepConfigVersion.cmake
  DESTINATION ${package_folder})

# ---- man pages and completion, of what --help says ----

# A program of another architecture cannot be asked.
if(NOT CMAKE_CROSSCOMPILING)
  set(pages ${CMAKE_CURRENT_BINARY_DIR}/pages)
  add_custom_command(OUTPUT ${pages}/bitsweep.1 ${pages}/bitsweep.bash ${pages}/_bitsweep ${pages}/bitsweep.fish
    COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/deploy/pages.sh $<TARGET_FILE:bitsweep> ${pages}
    DEPENDS bitsweep bitsweep-bench ${CMAKE_CURRENT_SOURCE_DIR}/deploy/pages.sh)
  add_custom_target(bitsweep_pages ALL DEPENDS ${pages}/bitsweep.1)
  install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
  install(FILES ${pages}/bitsweep.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME bitsweep)
  install(FILES ${pages}/_bitsweep DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${pages}/bitsweep.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
