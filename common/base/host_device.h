// SPDX-License-Identifier: Apache-2.0
// Functions that kernels for GPUs and the host share: BSW_HOST_DEVICE in place of `static inline`.
#ifndef BITSWEEP_COMMON_HOST_DEVICE_H
#define BITSWEEP_COMMON_HOST_DEVICE_H

#if defined(__CUDACC__)
#define BSW_HOST_DEVICE static inline __host__ __device__
#else
#define BSW_HOST_DEVICE static inline
#endif

#endif
