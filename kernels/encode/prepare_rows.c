// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/prepare_rows.h"

#include <math.h>
#include <string.h>

const char *bsw_row_fault_text(enum bsw_row_fault fault)
{
    switch (fault) {
    case BSW_ROW_NOT_FINITE:
        return "has a NaN or Inf";
    case BSW_ROW_TOO_LARGE:
        return "has a squared norm above 1e37";
    case BSW_ROW_TOO_SMALL:
        return "has a squared norm below 1e-70";
    case BSW_ROW_ZERO:
        return "is a zero vector, which has no cosine";
    case BSW_ROW_GOOD:
        break;
    }
    return "is good";
}

enum bsw_row_fault bsw_row_fault_of(double squared_norm, enum bsw_metric metric)
{
    if (!isfinite(squared_norm)) return BSW_ROW_NOT_FINITE;
    if (squared_norm > BSW_NORM_MAX) return BSW_ROW_TOO_LARGE;
    if (!bsw_has_unit_rows(metric) || squared_norm >= BSW_NORM_MIN) return BSW_ROW_GOOD;
    return squared_norm > 0 ? BSW_ROW_TOO_SMALL : BSW_ROW_ZERO;
}

size_t bsw_prepare_rows(const struct bsw_encode_table *table, enum bsw_metric metric,
                        enum bsw_vector_type type, const void *numbers, size_t num_rows,
                        size_t dims, float *rows, double *norms, float *factors,
                        enum bsw_row_fault *faults)
{
    size_t num_faults = 0;
    table->to_float(type, numbers, num_rows * dims, rows);
    table->squared_norms(rows, num_rows, dims, norms);
    for (size_t r = 0; r < num_rows; r++) {
        enum bsw_row_fault fault = bsw_row_fault_of(norms[r], metric);
        if (faults) faults[r] = fault;
        factors[r] = bsw_has_unit_rows(metric) ? (float)(1.0 / sqrt(norms[r])) : 1.0f;
        if (fault == BSW_ROW_GOOD) continue;
        // Zeros, so that nothing downstream meets a NaN; the row's mask bit stays 0.
        memset(rows + r * dims, 0, dims * sizeof(float));
        factors[r] = 0.0f;
        num_faults++;
    }
    return num_faults;
}

#define MOST_LENGTH 1024.0 // of a query, in lengths of the middle
#define MOST_LONGER 1e18   // no query gets longer than that: products with rows stay float32

float bsw_ip_query_factor(const float *mean, const float *row, size_t dims)
{
    double square = 0, dot = 0, norm = 0;
    for (size_t d = 0; d < dims; d++) {
        square += (double)mean[d] * (double)mean[d];
        dot += (double)row[d] * (double)mean[d];
        norm += (double)row[d] * (double)row[d];
    }
    double least = sqrt(norm) * sqrt(square) / MOST_LENGTH;
    double factor = square / (dot > least ? dot : least), most = MOST_LONGER / sqrt(norm);
    if (factor > 1.0 && factor > most) factor = most > 1.0 ? most : 1.0;
    return factor >= 0x1p-100 && factor <= 0x1p100 ? (float)factor : 1.0f;
}
