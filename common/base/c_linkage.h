// SPDX-License-Identifier: Apache-2.0
// What C and C++ (the CUDA files) share.
#ifndef BITSWEEP_COMMON_C_LINKAGE_H
#define BITSWEEP_COMMON_C_LINKAGE_H

// Around what C defines and C++ calls.
#ifdef __cplusplus
#define BSW_C_BEGIN extern "C" {
#define BSW_C_END   }
#else
#define BSW_C_BEGIN
#define BSW_C_END
#endif

// Functions that kernels for GPUs and the host share: BSW_HOST_DEVICE in place of `static inline`.
#if defined(__CUDACC__)
#define BSW_HOST_DEVICE static inline __host__ __device__
#else
#define BSW_HOST_DEVICE static inline
#endif

// Functions that only a program with devices has: device.h and the launchers of kernels for GPUs.
//
// In a build without CUDA, where device_build.h (from CMakeLists.txt) says so, what is declared
// BSW_DEVICE_CALL may be missing, and its address is NULL. Nobody calls it before bsw_device_open
// has given a device, and bsw_device_kind tells whether that is there. Test programs bring an
// emulated device all the same.

#if __has_include("device_build.h")
#include "device_build.h"
#endif
#ifdef BITSWEEP_WITHOUT_DEVICES
#define BSW_DEVICE_CALL __attribute__((weak))
#else
#define BSW_DEVICE_CALL
#endif

typedef struct CUstream_st *bsw_stream; // what cudaStream_t is

#endif
