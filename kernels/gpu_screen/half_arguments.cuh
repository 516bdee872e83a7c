// SPDX-License-Identifier: Apache-2.0
// What the kernels of this folder share.
#ifndef BITSWEEP_KERNELS_HALF_ARGUMENTS_CUH
#define BITSWEEP_KERNELS_HALF_ARGUMENTS_CUH

#include "kernels/device_exact/exact_value.cuh"
#include "kernels/gpu_screen/gpu_screen.h"
#include "kernels/screen/screen_margin.h"

namespace bsw
{

struct screen_arguments {
    bsw_metric metric;
    bsw_device_exact_rows rows;
    bsw_device_raw_rows raw;
    bsw_half_rows half_rows;
    bsw_device_part part;
    bsw_device_vectors queries;
    bsw_half_queries half_queries;
    bsw_screen_survivors survivors;
    bsw_device_exact_lists lists;
    exact_shape shape;
};

// Rows that halves hold as they are need no more than that of a query's error.
__host__ __device__ __forceinline__ bool is_rounded(bsw_vector_type type)
{
    return type == BSW_VECTOR_FLOAT32;
}

// Queues exact values of survivors, to lists; for as many blocks as the device runs.
cudaError_t launch_values(const screen_arguments &a, bsw_stream stream);

} // namespace bsw

DEVICE_POINTERS(bsw_half_rows, a.numbers, a.terms)
DEVICE_POINTERS(bsw_half_queries, a.numbers, a.units, a.terms, a.worst_error)
DEVICE_POINTERS(bsw_screen_survivors, a.pairs, a.counts)

#endif
