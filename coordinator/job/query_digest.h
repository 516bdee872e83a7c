// SPDX-License-Identifier: Apache-2.0
// The digest of queries that FILE.json keeps: of their numbers alone, as floats, row after row. So
// it does not depend on format, type, or place in a file, and tells whether two results were asked
// the same.
#ifndef BITSWEEP_COORDINATOR_QUERY_DIGEST_H
#define BITSWEEP_COORDINATOR_QUERY_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/rows/vectors.h"

// Takes rows [num_rows][dims] into a digest that begins as 0, in any number of calls.
void bsw_query_digest_add(uint64_t *digest, const float *rows, size_t num_rows, size_t dims);

// The digest of all rows of the range, which are read once.
enum bsw_status bsw_query_digest(const bsw_vectors *queries, uint64_t *out, struct bsw_error *err);

#endif
