// SPDX-License-Identifier: Apache-2.0
// Values of some rows and a query, by a warp.
#ifndef BITSWEEP_KERNELS_PAIR_VALUE_CUH
#define BITSWEEP_KERNELS_PAIR_VALUE_CUH

#include "kernels/device_exact/exact_value.cuh"

namespace bsw
{

template <class T>
__device__ __forceinline__ const T *row_at(const bsw_device_raw_rows &rows, uint32_t row)
{
    return static_cast<const T *>(rows.numbers) + static_cast<size_t>(row) * rows.dims;
}

// Rows that a warp takes together, so that their numbers are under way at once.
template <uint32_t ROWS> struct pair_sums {
    double sum[ROWS], row_norm[ROWS], query_norm; // a lane's, then those of all in lane 0
};

// Each sum in its own order, as if it were alone. has_query_norm: it is known.
template <class T, class Q, bool IS_L2, uint32_t ROWS>
__device__ __forceinline__ pair_sums<ROWS> add_rows(const T *const (&rows)[ROWS], const Q *query,
                                                    uint32_t dims, bool has_query_norm)
{
    pair_sums<ROWS> own = {};
#pragma unroll 4
    for (uint32_t i = threadIdx.x % warp_rows; i < dims; i += warp_rows) {
        const double q = load_number(query + i);
        if (!IS_L2 && !has_query_norm) own.query_norm = __fma_rn(q, q, own.query_norm);
#pragma unroll
        for (uint32_t r = 0; r < ROWS; r++) {
            const double x = load_number(rows[r] + i);
            own.sum[r] = add_product<IS_L2>(x, q, own.sum[r]);
            if (!IS_L2) own.row_norm[r] = __fma_rn(x, x, own.row_norm[r]);
        }
    }
    return own;
}

template <class T, class Q, bool IS_L2, uint32_t ROWS>
__device__ __forceinline__ void find_pair_values(bsw_metric metric, const bsw_device_raw_rows &raw,
                                                 const T *const (&rows)[ROWS], const Q *query,
                                                 const double *query_norm, double (&values)[ROWS])
{
    pair_sums<ROWS> own = add_rows<T, Q, IS_L2>(rows, query, raw.dims, query_norm != nullptr);
    const bool has_norms = !IS_L2 && bsw_has_unit_rows(metric);
    if (has_norms) own.query_norm = query_norm ? __ldg(query_norm) : tree_sum(own.query_norm);
#pragma unroll
    for (uint32_t r = 0; r < ROWS; r++) {
        own.sum[r] = tree_sum(own.sum[r]);
        if (has_norms) own.row_norm[r] = tree_sum(own.row_norm[r]);
        values[r] = bsw_refine_value(metric, bsw_refine_is_integer(raw.type), own.sum[r],
                                     own.row_norm[r], own.query_norm);
    }
}

// Values of rows and a query as given, or widened, in lane 0. query_norm: squared, of cosines
// alone; NULL: it is summed, too.
template <class T, class Q, uint32_t ROWS>
__device__ __forceinline__ void pair_values(bsw_metric metric, const bsw_device_raw_rows &raw,
                                            const T *const (&rows)[ROWS], const Q *query,
                                            const double *query_norm, double (&values)[ROWS])
{
    if (bsw_has_row_norms(metric))
        find_pair_values<T, Q, true>(metric, raw, rows, query, query_norm, values);
    else
        find_pair_values<T, Q, false>(metric, raw, rows, query, query_norm, values);
}

} // namespace bsw

#endif
