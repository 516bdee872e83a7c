// SPDX-License-Identifier: Apache-2.0
// Raw rows of any type as floats, with the factor that normalises them and the faults that forbid
// encoding them.
#ifndef BITSWEEP_KERNELS_PREPARE_ROWS_H
#define BITSWEEP_KERNELS_PREPARE_ROWS_H

#include <stddef.h>

#include "common/base/c_linkage.h"
#include "kernels/encode/encode.h"

BSW_C_BEGIN

// Squared norms above this are refused like Inf; under cosine, below the other like zero. Between
// them no key of any codec can become Inf or NaN.
#define BSW_NORM_MAX 1e37
#define BSW_NORM_MIN 1e-37

enum bsw_row_fault { BSW_ROW_GOOD, BSW_ROW_NOT_FINITE, BSW_ROW_TOO_LARGE, BSW_ROW_ZERO };

// "has a NaN or Inf", ... for messages.
const char *bsw_row_fault_text(enum bsw_row_fault fault);

// Judges a squared norm; the zero fault under cosine only.
enum bsw_row_fault bsw_row_fault_of(double squared_norm, enum bsw_metric metric);

// numbers [num_rows][dims] of `type` -> rows as floats, norms (scratch, [num_rows]), factors[r]:
// (float)(1/sqrt(norm)) under cosine, else 1; 0 for a row with a fault, whose floats become 0.
// faults may be NULL. Returns the number of rows with a fault.
size_t bsw_prepare_rows(const struct bsw_encode_table *table, enum bsw_metric metric,
                        enum bsw_vector_type type, const void *numbers, size_t num_rows,
                        size_t dims, float *rows, double *norms, float *factors,
                        enum bsw_row_fault *faults);

BSW_C_END
#endif
