# SPDX-License-Identifier: Apache-2.0
# What `deploy/test.sh --night` runs and a push does not, and what stands for it in a push.
#
# A push also runs several scripts with QUICK=1 and on few ranks: these say so at their head. Under sanitizers it takes
# what reads files and messages of others, and all units that need no emulated device. Only --night has the program for
# aarch64: to set that up takes as long as to test it.
set(night_tests
  # One kernel at a time for architectures that the build has no kernels for; the build itself: sm_80, PTX, sm_90a.
  kernels_sm_90 kernels_sm_100_120 kernels_sm_100 kernels_sm_120 kernels_sm_86 kernels_sm_89
  # AVX-512 in portable C, on every family; kernelcheck, on what the CPU has.
  kernelcheck_avx512
  # Emulated kernels: all rows, orders, and the race detector, for which all kernels are compiled once more;
  # device_check_small, test_device_lists_random, test_device_gpu_items_random.
  device_check_random device_check_ascending device_check_descending
  device_check_race seeded_bugs_race check_device_race
  test_device_shard test_device_shard_random test_device_shard_race
  test_device_items test_device_items_random test_device_items_race
  test_device_lists_race test_device_gpu_items_race
  # Searches on emulated devices; check_device and check_device_merge, and the units of shard/device.
  check_device_lists check_device_exact check_device_pq check_device_raw check_device_selective check_device_graphs check_device_tuning check_link
  check_gpu_check
  # Journals cut at every place, and of lists; check_resume.
  check_cuts check_lists_resume
  # A wheel is compiled anew; check_python makes one of the library that is there.
  check_wheel
  # Tables of papers; check_rbe_tables.
  check_text_tables check_paper_tables
  # Drawn questions and inputs; check_truth_definition, check_metamorphic, fuzz_X_replay.
  check_fuzzed_searches fuzz_short
  # A thousand histories of an index that changes; check_living.
  check_histories)
if(BITSWEEP_SANITIZE)
  list(APPEND night_tests kernelcheck kernelcheck_avxvnni check_partial check_range
    check_resume check_train check_faults check_device_faults check_self_check check_bench check_bench_cluster
    test_scan_tuner test_list_bounds test_list_training)
endif()

# mark_night_tests(): of the folder that calls it, and only tests that are here.
function(mark_night_tests)
  get_property(here DIRECTORY PROPERTY TESTS)
  foreach(name ${night_tests})
    if(name IN_LIST here)
      set_property(TEST ${name} APPEND PROPERTY LABELS night)
    endif()
  endforeach()
endfunction()

# night_programs(TARGETS...): a build for a push (BITSWEEP_NIGHT=OFF) leaves them out.
option(BITSWEEP_NIGHT "Build what only tests of deploy/test.sh --night need" ON)
function(night_programs)
  if(NOT BITSWEEP_NIGHT)
    set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()
