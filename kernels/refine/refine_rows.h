// SPDX-License-Identifier: Apache-2.0
// Values of whole rows: what the levels of refine do alike, type and metric constants of each copy
// of the loop. Each includes this behind its own `lanes`, a register of LANES numbers, load_group,
// multiply_add and tree_sum. A level with MASKED_LOADS has to_double, squared_norm and add_rest of
// its own, too.
#ifndef BITSWEEP_KERNELS_REFINE_ROWS_H
#define BITSWEEP_KERNELS_REFINE_ROWS_H

#include <string.h>

#include "kernels/refine/refine.h"
#include "kernels/refine/refine_value.h"

#if defined(LANES) // nothing without it

INLINE void add_group(enum bsw_metric metric, lanes x, lanes q, lanes *sum, lanes *norm)
{
    lanes difference = x - q;
    *sum = bsw_has_row_norms(metric) ? multiply_add(difference, difference, *sum)
                                     : multiply_add(x, q, *sum);
    if (bsw_has_unit_rows(metric)) *norm = multiply_add(x, x, *norm);
}

#if !defined(MASKED_LOADS)

INLINE size_t number_bytes(enum bsw_vector_type type)
{
    return type == BSW_VECTOR_FLOAT32 ? 4 : type == BSW_VECTOR_FLOAT16 ? 2 : 1;
}

static void to_double(enum bsw_vector_type type, const void *numbers, size_t n, double *out)
{
    size_t i = 0, bytes = number_bytes(type);
    char rest[4 * LANES] = {0};
    lanes x;
    for (; i + LANES <= n; i += LANES) {
        x = load_group(type, numbers, i);
        memcpy(out + i, &x, sizeof x);
    }
    if (i == n) return;
    memcpy(rest, (const char *)numbers + i * bytes, (n - i) * bytes);
    x = load_group(type, rest, 0);
    memcpy(out + i, &x, (n - i) * sizeof *out);
}

INLINE void add_squares(const double *numbers, lanes sums[32 / LANES])
{
    for (size_t g = 0; g < 32 / LANES; g++) {
        lanes x;
        memcpy(&x, numbers + LANES * g, sizeof x);
        sums[g] = multiply_add(x, x, sums[g]);
    }
}

static double squared_norm(const double *numbers, size_t dims)
{
    lanes sums[32 / LANES] = {{0}};
    double rest[32] = {0};
    size_t i = 0;
    for (; i + 32 <= dims; i += 32) add_squares(numbers + i, sums);
    memcpy(rest, numbers + i, (dims - i) * sizeof *rest);
    add_squares(rest, sums);
    return tree_sum(sums);
}

// The numbers from i on, fewer than 32; none: nothing. They are copied to a block of zeros: fma(0,
// 0, s) leaves s as it is, because no lane is ever -0 (refine_avx512.c has the reason).
INLINE void add_rest(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                     const double *query, size_t i, size_t dims, lanes sums[32 / LANES],
                     lanes norms[32 / LANES])
{
    if (i == dims) return; // before anything is cleared
    char row_rest[128] = {0};
    double query_rest[32] = {0};
    size_t bytes = number_bytes(type);
    memcpy(row_rest, (const char *)row + i * bytes, (dims - i) * bytes);
    memcpy(query_rest, query + i, (dims - i) * sizeof *query);
    for (size_t g = 0; g < 32 / LANES; g++) {
        lanes q;
        memcpy(&q, query_rest + LANES * g, sizeof q);
        add_group(metric, load_group(type, row_rest, LANES * g), q, &sums[g], &norms[g]);
    }
}

#endif

INLINE double value_of(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                       const double *query, double query_norm, size_t dims)
{
    lanes sums[32 / LANES], norms[32 / LANES];
    size_t i = 0;
    // One by one: gcc clears arrays by a string instruction, which takes as long as 100 numbers.
#pragma GCC unroll 16
    for (size_t g = 0; g < 32 / LANES; g++) {
        sums[g] = (lanes){0};
        if (bsw_has_unit_rows(metric)) norms[g] = (lanes){0};
    }
    for (; i + 32 <= dims; i += 32) {
        for (size_t g = 0; g < 32 / LANES; g++) {
            lanes x = load_group(type, row, i + LANES * g), q;
            memcpy(&q, query + i + LANES * g, sizeof q); // one load
            add_group(metric, x, q, &sums[g], &norms[g]);
        }
    }
    add_rest(metric, type, row, query, i, dims, sums, norms);
    double norm = bsw_has_unit_rows(metric) ? tree_sum(norms) : 0;
    return bsw_refine_value(metric, bsw_refine_is_integer(type), tree_sum(sums), norm, query_norm);
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
