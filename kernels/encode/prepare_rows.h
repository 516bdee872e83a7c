// SPDX-License-Identifier: Apache-2.0
// Raw rows of any type as floats, with the factor that normalises them and the faults that forbid
// encoding them.
#ifndef BITSWEEP_KERNELS_PREPARE_ROWS_H
#define BITSWEEP_KERNELS_PREPARE_ROWS_H

#include <stddef.h>

#include "common/base/c_linkage.h"
#include "kernels/encode/encode.h"

BSW_C_BEGIN

// Squared norms above this are refused like Inf; under cosine also those below the other, where the
// factor that makes a row one of unit length would leave float32. Between them no key of any codec
// can become Inf or NaN.
#define BSW_NORM_MAX 1e37
#define BSW_NORM_MIN 1e-70

enum bsw_row_fault {
    BSW_ROW_GOOD,
    BSW_ROW_NOT_FINITE,
    BSW_ROW_TOO_LARGE,
    BSW_ROW_TOO_SMALL,
    BSW_ROW_ZERO
};

// "has a NaN or Inf", ... for messages.
const char *bsw_row_fault_text(enum bsw_row_fault fault);

// Judges a squared norm; too small or zero under cosine only.
enum bsw_row_fault bsw_row_fault_of(double squared_norm, enum bsw_metric metric);

// numbers [num_rows][dims] of `type` -> rows as floats, norms (scratch, [num_rows]), factors[r]:
// (float)(1/sqrt(norm)) under cosine, else 1; 0 for a row with a fault, whose floats become 0.
// faults may be NULL. Returns the number of rows with a fault.
size_t bsw_prepare_rows(const struct bsw_encode_table *table, enum bsw_metric metric,
                        enum bsw_vector_type type, const void *numbers, size_t num_rows,
                        size_t dims, float *rows, double *norms, float *factors,
                        enum bsw_row_fault *faults);

// What a query is multiplied by under ip where codes take the middle of the rows, `mean` [dims],
// from queries, too. Its length makes no difference to the order of rows, so it may be the one that
// leaves least of the query beside the middle: |mean|^2 / <row, mean>. A query that points away
// from the middle, or hardly towards it, becomes so long that the middle is nothing beside it, but
// for lengths beyond 1e18, at which products would leave float32. 1 for a middle or a query of
// zeros. The sums are float64, in the order of the dimensions.
float bsw_ip_query_factor(const float *mean, const float *row, size_t dims);

BSW_C_END
#endif
