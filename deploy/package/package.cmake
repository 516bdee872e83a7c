# SPDX-License-Identifier: Apache-2.0
# What `deploy/package/package.sh` packs: programs, scripts that start them, pages. The rules of the library come on top.
install(TARGETS bitsweep bitsweep-run bitsweep-bench RUNTIME DESTINATION bin)
install(PROGRAMS deploy/run.sh DESTINATION share/bitsweep/deploy)
# deploy/run.sh in PATH.
file(CREATE_LINK ../share/bitsweep/deploy/run.sh ${CMAKE_CURRENT_BINARY_DIR}/bitsweep-ranks SYMBOLIC)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/bitsweep-ranks DESTINATION bin)
install(PROGRAMS deploy/slurm/slurm_job.sh deploy/slurm/gpu_ranks.sh deploy/slurm/socket_ranks.sh
  deploy/slurm/sweep_array.sh DESTINATION share/bitsweep/deploy/slurm)
install(FILES deploy/kubernetes/one_node.yaml deploy/kubernetes/mpi_job.yaml DESTINATION share/bitsweep/deploy/kubernetes)
install(FILES README.md SECURITY.md CHANGELOG.md DESTINATION share/doc/bitsweep)
install(DIRECTORY docs DESTINATION share/doc/bitsweep)
install(FILES LICENSE DESTINATION share/doc/bitsweep RENAME copyright)

# All that is installed, for builds that need nothing else (deploy/build.sh --program, deploy/container).
set(packaged bitsweep bitsweep-run bitsweep-bench)
foreach(target bitsweep_shared bitsweep_static bitsweep_pages)
  if(TARGET ${target})
    list(APPEND packaged ${target})
  endif()
endforeach()
add_custom_target(packaged DEPENDS ${packaged})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME bitsweep)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "bitsweep developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "exhaustive vector search over quantized codes")
set(CPACK_PACKAGE_DESCRIPTION "Searches large batches of queries in codes of 1 to 8 bits a dimension, on one machine
or a cluster, computes exact ground truth and k-NN graphs, and measures how many
bits vectors need.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin, gnuplot-nox, fonts-dejavu-core")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "slurm-client, openssh-client")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
include(CPack)
