// SPDX-License-Identifier: Apache-2.0
// Rank 0's queries: read in batches, coded, packed into the message every rank gets.
//
// Message: uint32 header bytes, uint32 0, header (protobuf Batch) padded to 8 bytes, then scales
// float [queries], words uint32 [queries][query_words], vectors float [queries][dims], each padded
// to 8 bytes; for codec raw constants int32 [queries] in place of scales, components int8
// [queries][padded_dims] as words, and no vectors unless the index has lists. A header with a
// status that is not ok, is_last or no queries has nothing behind it.
#ifndef BITSWEEP_COORDINATOR_QUERY_SOURCE_H
#define BITSWEEP_COORDINATOR_QUERY_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/files/index_manifest.h"
#include "common/rows/vectors.h"
#include "shard/host/shard_scan.h"

struct bsw_query_source {
    const struct bsw_manifest *manifest; // borrowed
    bsw_vectors *vectors;
    uint32_t query_bits;
    enum bsw_cpu_level level;
    uint64_t num_queries;
    uint64_t digest;         // of all their numbers as they are stored, and the number of the first
    uint64_t numbers_digest; // same_input.h
    int num_threads;         // to code with; 0 is 1
    int has_no_addends;      // keys are counts, to which nothing is added
    const uint32_t
        *order;       // of the queries of the next batch, which are coded so; NULL: as they are
    int is_check_due; // to be said with the next batch
    int is_followed;  // likewise (batch_search.h)
    struct bsw_buffer numbers, ordered, floats, norms, factors, scratch;
    struct bsw_buffer values; // struct bsw_value_terms [queries of the batch]
};

// Opens the file, checks dims and every query (NaN, Inf, zero under cosine; for codec raw whole
// numbers that the rows' type has) before any work begins. query_bits: BSW_RAW_QUERY_BITS for codec
// raw.
enum bsw_status bsw_query_source_open(const char *path, struct bsw_row_range range,
                                      const struct bsw_manifest *manifest, uint32_t query_bits,
                                      enum bsw_cpu_level level, struct bsw_query_source *out,
                                      struct bsw_error *err);
void bsw_query_source_close(struct bsw_query_source *source);

// Codes queries [first, first + count) into a message; values are set.
enum bsw_status bsw_query_source_pack(struct bsw_query_source *source, uint64_t first, size_t count,
                                      struct bsw_buffer *out, struct bsw_error *err);

// Bytes of a message before what follows its header, and of what follows for so many queries.
// A message of header bytes alone goes over the transport where the rest takes another way.
size_t bsw_query_head_bytes(const struct bsw_buffer *message);
size_t bsw_query_payload_bytes(const struct bsw_manifest *manifest, uint32_t query_bits,
                               size_t count);

// A message without queries: the end, or the error that ends the search.
enum bsw_status bsw_query_pack_end(enum bsw_status status, const struct bsw_error *why,
                                   struct bsw_buffer *out, struct bsw_error *err);

// One that follows a batch and is none.
enum bsw_status bsw_query_pack_pause(struct bsw_buffer *out, struct bsw_error *err);

// Reads a message on any rank. payload NULL: batch points into the message. Else the message is of
// header bytes alone, and batch points into payload, where the rest, at most `capacity` bytes, is
// or will be. *is_last is set at the end; the error of rank 0 is returned.
enum bsw_status bsw_query_unpack(const struct bsw_manifest *manifest, uint32_t query_bits,
                                 const struct bsw_buffer *message, const unsigned char *payload,
                                 size_t capacity, struct bsw_query_batch *batch, int *is_last,
                                 struct bsw_error *err);

// Says that the payload also lies in device memory, at d_payload.
void bsw_query_place_on_device(const struct bsw_manifest *manifest, const unsigned char *d_payload,
                               struct bsw_query_batch *batch);

#endif
