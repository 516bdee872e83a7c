// SPDX-License-Identifier: Apache-2.0
// Queries to odd integers of at most 7 bits, in planes, or to bytes where codes are bytes: done
// once, on the coordinator; and where a batch of them lies in a message.
#ifndef BITSWEEP_SHARD_QUERY_CODES_H
#define BITSWEEP_SHARD_QUERY_CODES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/files/index_manifest.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/query_batch.h"

// uint32 words of a coded query.
size_t bsw_query_words(const struct bsw_manifest *manifest, uint32_t query_bits);

// Bytes of scratch that coding a query takes, 64-byte aligned: a multiple of 64.
size_t bsw_query_scratch_bytes(const struct bsw_manifest *manifest);

// One query. row [dims], with its factor from bsw_prepare_rows. words: bsw_query_words,
// segment after segment, each [query_bits][words]; bytes: int8 [padded_dims]; of tables: floats.
// *number: what multiplies half(scale_d) * dot in the key, the manifest's power of two included, or
// the constant of a whole key. *value: 0 and 1 for whole keys. The model of a codec that has one
// was lent to the manifest.
void bsw_query_encode(const struct bsw_encode_table *kernels, const struct bsw_manifest *manifest,
                      const float *row, float factor, uint32_t query_bits, uint32_t *words,
                      union bsw_query_number *number, struct bsw_value_terms *value, void *scratch);

// The estimate a key stands for, as reported without refinement, rounded once; the exact value
// where keys are exact. `score` as in common/codes/metric.h.
float bsw_value_of_score(const struct bsw_manifest *manifest, uint32_t query_bits, uint32_t score,
                         struct bsw_value_terms terms);

// ---- for codecs ----

// Component `dim` as f = floor(v) clipped to [-2^(query_bits-1), 2^(query_bits-1) - 1], the odd
// integer 2f + 1, into planes that hold 0.
void bsw_query_put(uint32_t *words, uint32_t words_per_plane, uint32_t query_bits, uint32_t dim,
                   float v);

// p [padded_dims] as odd integers q in planes that hold 0: scale = max|p| / (2^Bq - 1), q =
// clip(2 * floor(p / (2 * scale)) + 1), so that p is about scale * q. Returns the scale.
float bsw_query_planes_scaled(const struct bsw_code_layout *layout, const float *p,
                              uint32_t query_bits, uint32_t *words);

// Queries that are the same for ever, for known answers: coded without a vector, from an integer
// hash alone.
//
// A component of w planes is an odd integer of at most 2^w - 1 and can be written in any number of
// planes from w on, so one answer serves every --query-bits that has that many; query i has
// bsw_pinned_planes[i]. Where codes are bytes, queries are rows of random
// bytes.

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
