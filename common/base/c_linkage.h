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

#endif
