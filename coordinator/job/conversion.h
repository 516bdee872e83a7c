// SPDX-License-Identifier: Apache-2.0
// Vectors, or ids of neighbours with their values, from one file format to another. What the other
// format cannot hold exactly is refused: BSW_ERROR_BAD_DATA names row and number.
#ifndef BITSWEEP_COORDINATOR_CONVERSION_H
#define BITSWEEP_COORDINATOR_CONVERSION_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/rows/vectors.h"

// Formats are those of the names.
struct bsw_conversion {
    const char *in, *out;
    const char *type;          // numbers of vectors: the name of a type, or "auto"
    struct bsw_row_range rows; // rows of vectors, or queries
    int has_queries;           // vectors are opened as queries: bsw_queries_open
    int force;                 // replaces files
    int is_shown;              // progress
};

// What was written.
struct bsw_converted {
    const char *kind, *type;
    uint64_t rows, dims;
};

// in: a file of vectors.
enum bsw_status bsw_convert_vectors(const struct bsw_conversion *o, struct bsw_converted *done,
                                    struct bsw_error *err);
// in: a result or a ground truth, with FILE.json if there is one. Ids without values fit .ivecs and
// .ibin alone.
enum bsw_status bsw_convert_neighbours(const struct bsw_conversion *o, struct bsw_converted *done,
                                       struct bsw_error *err);

#endif
