// SPDX-License-Identifier: Apache-2.0
// Queries that are the same for ever, for known answers: coded without a vector, from an integer
// hash alone.
//
// A component of w planes is an odd integer of at most 2^w - 1 and can be written in any number of
// planes from w on, so one answer serves every --query-bits that has that many; query i has
// bsw_pinned_planes[i]. Where codes are bytes, queries are rows of random
// bytes.
#ifndef BITSWEEP_SHARD_PINNED_QUERIES_H
#define BITSWEEP_SHARD_PINNED_QUERIES_H

#include "common/base/memory.h"
#include "common/files/index_manifest.h"
#include "shard/codecs/query_batch.h"

extern const uint32_t bsw_pinned_planes[BSW_KNOWN_QUERIES]; // ascending, the first is 1

struct bsw_pinned_queries {
    uint32_t num_queries;         // different ones: query i of the batch is number i % num_queries
    struct bsw_query_batch batch; // points into the buffers
    struct bsw_buffer words, numbers;
};

// Most planes that an index' known answers are asked with: the last of bsw_pinned_planes, fewer
// where sums would not fit (code_layout.h).
uint32_t bsw_pinned_query_bits(const struct bsw_manifest *manifest);

// How many of the queries have up to query_bits planes; where codes are bytes all.
uint32_t bsw_pinned_num(const struct bsw_manifest *manifest, uint32_t query_bits);

// `count` queries, those of up to query_bits planes in turn; query_bits as bsw_code_layout_check
// takes it, BSW_RAW_QUERY_BITS where codes are bytes. bsw_pinned_queries_deinit frees, also after
// an error.
enum bsw_status bsw_pinned_queries_make(const struct bsw_manifest *manifest, uint32_t query_bits,
                                        size_t count, struct bsw_pinned_queries *out,
                                        struct bsw_error *err);
void bsw_pinned_queries_deinit(struct bsw_pinned_queries *queries); // accepts {0}

// One query of random components of num_planes planes, 1 .. query_bits, written in query_bits;
// padding bits are 0.
void bsw_pinned_words(const struct bsw_code_layout *layout, uint32_t num_planes,
                      uint32_t query_bits, uint64_t seed, uint32_t *words);

#endif
