// SPDX-License-Identifier: Apache-2.0
// Around what C defines and C++ (the CUDA files) calls.
#ifndef BITSWEEP_COMMON_C_LINKAGE_H
#define BITSWEEP_COMMON_C_LINKAGE_H

#ifdef __cplusplus
#define BSW_C_BEGIN extern "C" {
#define BSW_C_END   }
#else
#define BSW_C_BEGIN
#define BSW_C_END
#endif

#endif
