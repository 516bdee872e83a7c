// SPDX-License-Identifier: Apache-2.0
// A batch of queries as rank 0 coded them, and how it is to be scanned: what every codec and every
// back end is given.
#ifndef BITSWEEP_SHARD_QUERY_BATCH_H
#define BITSWEEP_SHARD_QUERY_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/table_scan/table_formats.h"

struct bsw_product_codes; // shard/codecs/product_codes.h
struct bsw_selection;     // shard/codecs/selective_table.h
struct bsw_row_filter;    // shard/lists/row_filter.h

// Arrays borrowed.
struct bsw_query_batch {
    uint32_t num_queries;
    int is_check_due; // every rank checks itself first (self_check.h)
    int is_followed;  // another message of rank 0 comes before its candidates are merged
    uint32_t query_bits;
    size_t query_words;       // of one query
    const uint32_t *words;    // [num_queries][query_words]; codec raw: int8 [padded_dims] each
    const float *scales;      // [num_queries]; unused by plain codes, NULL for codec raw
    const float *vectors;     // [num_queries][dims], as given; NULL for codec raw without lists
    const int32_t *constants; // [num_queries]; codec raw alone, as is factor
    int factor;               // both: kernels/encode/raw_codes.h
    // For codes that are scanned by tables; words are floats then.
    const struct bsw_product_codes *product; // NULL: there are no tables
    const float *centroids; // [lists][dims], where codes are of residuals; else NULL
    enum bsw_table_type table;
    const uint8_t *tables;           // [num_queries]: each its own type; NULL: all have `table`
    struct bsw_selection *selection; // of entries within a radius; NULL: tables have all entries
    // Words, and scales or constants, in device memory, where a link brought them there; else NULL.
    const uint32_t *d_words;
    const float *d_scales;
    const int32_t *d_constants;
    // Rows that queries may find, for who makes the masks of scans; NULL: all.
    const struct bsw_row_filter *filter;
};

static inline enum bsw_table_type bsw_batch_table(const struct bsw_query_batch *batch, size_t query)
{
    return batch->tables ? (enum bsw_table_type)batch->tables[query] : batch->table;
}

// Which family scans, in full or progressively. AUTO: what measured faster for the number of
// queries, progressively while that pays. Codec raw has bytes and no planes: always matrix.
enum bsw_scan_kind {
    BSW_SCAN_AUTO,
    BSW_SCAN_PLANES,
    BSW_SCAN_MATRIX,
    BSW_SCAN_PROGRESSIVE_PLANES,
    BSW_SCAN_PROGRESSIVE_MATRIX,
    BSW_SCAN_TABLES // of codes that have them, always
};
const char *bsw_scan_name(enum bsw_scan_kind kind);
enum bsw_scan_kind bsw_scan_kind_of(const char *name); // AUTO for a name of none
static inline int bsw_scan_is_matrix(enum bsw_scan_kind kind)
{
    return kind == BSW_SCAN_MATRIX || kind == BSW_SCAN_PROGRESSIVE_MATRIX;
}
static inline int bsw_scan_is_progressive(enum bsw_scan_kind kind)
{
    return kind == BSW_SCAN_PROGRESSIVE_PLANES || kind == BSW_SCAN_PROGRESSIVE_MATRIX;
}
#define BSW_SCAN_NAMES       "auto|planes|matrix|progressive-planes|progressive-matrix"

#define BSW_QUEUE_MAX_ITEMS  ((uint64_t)1 << 24)
#define BSW_QUEUE_MAX_LENGTH 256

// Selection by queues (shard/host/shard_queue.h).
struct bsw_queue_options {
    uint64_t items;  // I: 1 .. BSW_QUEUE_MAX_ITEMS
    uint64_t length; // Q: 1 .. BSW_QUEUE_MAX_LENGTH; 0: no queue selection
};

#endif
