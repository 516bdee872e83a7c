// SPDX-License-Identifier: Apache-2.0
// The oracle: refine.h's definitions number by number.
#include <math.h>
#include <string.h>

#include "common/codes/half.h"
#include "kernels/kernel_sums.h"
#include "kernels/refine/refine.h"
#include "kernels/refine/refine_value.h"

// Number i of an array of any alignment.
static double number_at(enum bsw_vector_type type, const void *numbers, size_t i)
{
    float single;
    uint16_t half;
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        memcpy(&single, (const char *)numbers + i * sizeof single, sizeof single);
        return single;
    case BSW_VECTOR_FLOAT16:
        memcpy(&half, (const char *)numbers + i * sizeof half, sizeof half);
        return bsw_half_to_float(half);
    case BSW_VECTOR_UINT8:
        return ((const uint8_t *)numbers)[i];
    case BSW_VECTOR_INT8:
        return ((const int8_t *)numbers)[i];
    default: // INT32 is no source of rows
        return 0.0;
    }
}

static void reference_to_double(enum bsw_vector_type type, const void *numbers, size_t n,
                                double *out)
{
    for (size_t i = 0; i < n; i++) out[i] = number_at(type, numbers, i);
}

static double reference_squared_norm(const double *numbers, size_t dims)
{
    double s[BSW_SUM_LANES] = {0};
    for (size_t i = 0; i < dims; i++) {
        size_t lane = i % BSW_SUM_LANES;
        s[lane] = fma(numbers[i], numbers[i], s[lane]);
    }
    return bsw_tree_sum_double(s);
}

static double reference_value(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                              const double *query, double query_norm, size_t dims)
{
    double s[BSW_SUM_LANES] = {0}, xx[BSW_SUM_LANES] = {0};
    for (size_t i = 0; i < dims; i++) {
        size_t lane = i % BSW_SUM_LANES;
        double x = number_at(type, row, i), difference = x - query[i];
        s[lane] = bsw_has_row_norms(metric) ? fma(difference, difference, s[lane])
                                            : fma(x, query[i], s[lane]);
        xx[lane] = fma(x, x, xx[lane]);
    }
    double sum = bsw_tree_sum_double(s);
    return bsw_refine_value(metric, bsw_refine_is_integer(type), sum, bsw_tree_sum_double(xx),
                            query_norm);
}

const struct bsw_refine_table bsw_refine_reference = {
    .level = "reference",
    .to_double = reference_to_double,
    .squared_norm = reference_squared_norm,
    .value = reference_value,
};

BSW_KERNEL_TABLE_GET(refine,
                     BSW_KERNEL_AVX2(refine) BSW_KERNEL_AVX512(refine) BSW_KERNEL_NEON(refine))
