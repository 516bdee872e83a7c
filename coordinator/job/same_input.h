// SPDX-License-Identifier: Apache-2.0
// Every rank opens index and vector files itself, and on hosts that keep copies of their own the
// same path may lead to another file. Each shard would pass its checksums, and the answer would be
// a mixture: so ranks compare what they opened before they use it.
#ifndef BITSWEEP_COORDINATOR_SAME_INPUT_H
#define BITSWEEP_COORDINATOR_SAME_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/transport.h"
#include "common/rows/vectors.h"

// Fails with BSW_ERROR_BAD_DATA on every rank, naming `name` and the first rank whose digest is not
// that of rank 0. Called by all ranks; ends with an agreement.
enum bsw_status bsw_same_input_agree(struct bsw_transport *transport, uint64_t digest,
                                     const char *name, struct bsw_error *err);

// A digest of type, dims, row range and file size, and of 64 rows spread over the range: tells
// other files of the same shape apart, not every single changed row.
enum bsw_status bsw_same_input_digest(const bsw_vectors *vectors, uint64_t *out,
                                      struct bsw_error *err);

// ---- queries ------------------------------------------------------------------------------------

// The digest of queries that FILE.json keeps: of their numbers alone, as floats, row after row. So
// it does not depend on format, type, or place in a file, and tells whether two results were asked
// the same.

// Takes rows [num_rows][dims] into a digest that begins as 0, in any number of calls.
void bsw_query_digest_add(uint64_t *digest, const float *rows, size_t num_rows, size_t dims);

// The digest of all rows of the range, which are read once.
enum bsw_status bsw_query_digest(const bsw_vectors *queries, uint64_t *out, struct bsw_error *err);

#endif
