// SPDX-License-Identifier: Apache-2.0
// The key of one row and one query by the plain C references alone: what every faster way must
// give, bit for bit.
#ifndef BITSWEEP_SHARD_PLAIN_SCORE_H
#define BITSWEEP_SHARD_PLAIN_SCORE_H

#include "shard/host/shard_scan.h"

// The score (common/codes/metric.h) of local row `row` of the shard, which has its codes;
// masks are not asked. query: of the batch. Thread-safe; some dims * planes of both sides
// operations.
uint32_t bsw_plain_score(const struct bsw_resident_shard *shard,
                         const struct bsw_query_batch *batch, size_t query, uint32_t row);

// Those of rows of product codes, one table for all: as bsw_product_plain_scores.
enum bsw_status bsw_plain_table_scores(const struct bsw_resident_shard *shard,
                                       const struct bsw_query_batch *batch, size_t query,
                                       const float *centroid, const uint32_t *rows, size_t num,
                                       uint32_t *out, struct bsw_error *err);

#endif
