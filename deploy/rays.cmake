# SPDX-License-Identifier: Apache-2.0
# Libraries that trace rays, for back ends of kernels/entries_within: sets have_embree and takes sources that lack
# theirs out of core_sources.
set(have_embree OFF)
if(NOT BITSWEEP_EMBREE STREQUAL "OFF")
  # Not its CMake package: a cross build would find that of the host.
  find_path(EMBREE_INCLUDE embree3/rtcore.h)
  find_library(EMBREE_LIBRARY embree3)
  if(EMBREE_INCLUDE AND EMBREE_LIBRARY)
    set(have_embree ON)
  elseif(BITSWEEP_EMBREE STREQUAL "ON")
    message(FATAL_ERROR "BITSWEEP_EMBREE=ON, but libembree 3 is missing")
  endif()
endif()
message(STATUS "bitsweep: Embree ${have_embree}")

set(have_vulkan OFF)
if(NOT BITSWEEP_VULKAN STREQUAL "OFF")
  pkg_check_modules(VULKAN vulkan>=1.2.162)
  find_program(GLSLANG glslangValidator)
  if(VULKAN_FOUND AND GLSLANG)
    set(have_vulkan ON)
  elseif(BITSWEEP_VULKAN STREQUAL "ON")
    message(FATAL_ERROR "BITSWEEP_VULKAN=ON, but libvulkan 1.2.162 or later, or glslangValidator, is missing")
  endif()
endif()
message(STATUS "bitsweep: Vulkan ${have_vulkan}")

set(back_ends)
if(have_embree)
  list(APPEND back_ends BITSWEEP_HAVE_EMBREE=1)
  set_source_files_properties(kernels/entries_within/entry_embree.c PROPERTIES COMPILE_OPTIONS "-isystem;${EMBREE_INCLUDE}")
else()
  list(FILTER core_sources EXCLUDE REGEX "entry_embree\\.c$")
endif()
if(have_vulkan)
  list(APPEND back_ends BITSWEEP_HAVE_VULKAN=1)
  # entry_X.STAGE becomes the array bsw_entry_X_STAGE of entry_X_STAGE.h.
  set(shaders ${CMAKE_CURRENT_SOURCE_DIR}/kernels/entries_within)
  set(shader_headers)
  foreach(shader entry_trace.rgen entry_sphere.rint entry_hit.rahit entry_none.rmiss)
    string(REPLACE "." "_" name ${shader})
    set(header ${CMAKE_CURRENT_BINARY_DIR}/schema/${name}.h)
    add_custom_command(OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/schema
      COMMAND ${GLSLANG} --quiet -V --target-env vulkan1.2 --vn bsw_${name} -o ${header} ${shaders}/${shader}
      DEPENDS ${shaders}/${shader} ${shaders}/entry_trace.glsl)
    list(APPEND shader_headers ${header})
  endforeach()
  if(VULKAN_INCLUDE_DIRS)
    set_source_files_properties(kernels/entries_within/entry_vulkan.c kernels/entries_within/vulkan_device.c
      kernels/entries_within/vulkan_tracer.c PROPERTIES COMPILE_OPTIONS "-isystem;${VULKAN_INCLUDE_DIRS}")
  endif()
  set_source_files_properties(kernels/entries_within/vulkan_tracer.c PROPERTIES OBJECT_DEPENDS "${shader_headers}")
else()
  list(FILTER core_sources EXCLUDE REGEX "(entry_vulkan|vulkan_device|vulkan_tracer)\\.c$")
endif()
set_source_files_properties(kernels/entries_within/entry_finders.c PROPERTIES COMPILE_DEFINITIONS "${back_ends}")
