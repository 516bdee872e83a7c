// Values of whole rows: what the levels of refine do alike, type and metric constants of each copy
// of the loop. Each includes this behind its own `lanes`, a register of LANES numbers, load_group,
// add_group, add_rest and tree_sum.
#ifndef BITSWEEP_KERNELS_REFINE_ROWS_H
#define BITSWEEP_KERNELS_REFINE_ROWS_H

#include <string.h>

#include "kernels/refine/refine.h"
#include "kernels/refine/refine_value.h"

#if defined(LANES) // nothing without it

INLINE double value_of(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                       const double *query, double query_norm, size_t dims)
{
    lanes sums[32 / LANES] = {{0}}, norms[32 / LANES] = {{0}};
    size_t i = 0;
    for (; i + 32 <= dims; i += 32) {
        for (size_t g = 0; g < 32 / LANES; g++) {
            lanes x = load_group(type, row, i + LANES * g), q;
            memcpy(&q, query + i + LANES * g, sizeof q); // one load
            add_group(metric, x, q, &sums[g], &norms[g]);
        }
    }
    add_rest(metric, type, row, query, i, dims, sums, norms);
    return bsw_refine_value(metric, tree_sum(sums), tree_sum(norms), query_norm);
}

INLINE double value_of_type(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                            const double *query, double query_norm, size_t dims)
{
    switch (metric) {
    case BSW_METRIC_COSINE:
        return value_of(BSW_METRIC_COSINE, type, row, query, query_norm, dims);
    case BSW_METRIC_IP:
        return value_of(BSW_METRIC_IP, type, row, query, query_norm, dims);
    default:
        return value_of(BSW_METRIC_L2, type, row, query, query_norm, dims);
    }
}

static double value(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                    const double *query, double query_norm, size_t dims)
{
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        return value_of_type(metric, BSW_VECTOR_FLOAT32, row, query, query_norm, dims);
    case BSW_VECTOR_FLOAT16:
        return value_of_type(metric, BSW_VECTOR_FLOAT16, row, query, query_norm, dims);
    case BSW_VECTOR_UINT8:
        return value_of_type(metric, BSW_VECTOR_UINT8, row, query, query_norm, dims);
    default:
        return value_of_type(metric, BSW_VECTOR_INT8, row, query, query_norm, dims);
    }
}

#endif
#endif
