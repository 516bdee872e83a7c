// SPDX-License-Identifier: Apache-2.0
// What the files of the coarse step share: coarse_search.c has centroids, queries and keys made on
// the host, coarse_offload.c what is found or chosen elsewhere.
#ifndef BITSWEEP_SHARD_COARSE_SEARCH_PARTS_H
#define BITSWEEP_SHARD_COARSE_SEARCH_PARTS_H

#include "common/codes/metric.h"
#include "kernels/coarse_scan/coarse_scan.h"
#include "kernels/encode/encode.h"
#include "kernels/merge/merge.h"
#include "kernels/select/select.h"
#include "shard/lists/coarse_search.h"

#define BSW_COARSE_BLOCK_QUERIES 24 // at a time: their keys stay in the second cache

struct bsw_coarse_search {
    struct bsw_probe_settings settings;
    enum bsw_metric metric;
    const struct bsw_coarse_scan_table *scan;
    const struct bsw_select_table *select;
    const struct bsw_encode_table *encode;
    const struct bsw_merge_table *merge;
    int num_threads;
    size_t dims, padded_dims, num_lists, num_bundles;
    float step;
    uint64_t most_square; // bsw_coarse_square of a list at most
    double narrow;        // a query's length in components up to which dots are BSW_COARSE_NARROW
    float *mean;          // [dims]: m; 0 where it is not taken from queries
    uint8_t *bytes;       // as matrix_scan takes them
    uint16_t *scales;
    float *biases;
    struct bsw_buffer scratch; // of all threads
    const float *center;       // of residuals, or NULL: then
    float *centred;            // [lists][dims]: centroids less that
    struct bsw_buffer lists, counts, additions;
    size_t most;                         // lists of a query of a call
    const struct bsw_row_filter *filter; // bsw_coarse_search_filter, or NULL
    size_t filter_first;
    // bsw_coarse_search_offload; components, constants, scales and norms of a call, and what was
    // found
    bsw_coarse_finder find;
    void *finder;
    size_t most_kept;
    struct bsw_buffer coded, found;
    int is_deferred;
    uint64_t number;                  // of calls
    struct bsw_list_choice completed; // the last one made that was put off
    double seconds;
};

static inline int bsw_coarse_is_l2(const struct bsw_coarse_search *search)
{
    return bsw_has_row_norms(search->metric);
}

// Queries that a thread has under way.
struct bsw_coarse_block {
    const struct bsw_coarse_search *search;
    size_t num_queries;
    int8_t *components; // [BSW_COARSE_BLOCK_QUERIES][padded_dims]
    int32_t *constants;
    float *scales;
    double *norms;          // |q - m|^2
    float *centred;         // [BSW_COARSE_BLOCK_QUERIES][dims]: q - m
    float *keys;            // [BSW_COARSE_BLOCK_QUERIES][places of all bundles]
    uint64_t *items, *room; // [places]: lists as rows of candidates
};

// Parts of a thread's scratch; at NULL: counts the bytes alone.
size_t bsw_coarse_divide(const struct bsw_coarse_search *search, unsigned char *at,
                         struct bsw_coarse_block *out);

// Codes and norms of the block's queries.
void bsw_coarse_put_queries(struct bsw_coarse_block *block, const float *vectors);

// The least key within the ratio, where the yardstick's list has this one.
float bsw_coarse_ratio_limit(const struct bsw_coarse_block *block, size_t q, float yardstick);

// The key of the `rank`-th of num items, which are in order.
float bsw_coarse_key_at(const uint64_t *items, size_t num, size_t rank);

// The nearest lists whose keys reach the limit, in order, at most `most`, into block->items;
// returns how many.
size_t bsw_coarse_nearest(struct bsw_coarse_block *block, const float *keys, size_t num_keys,
                          float limit, size_t most);

// With a filter: query `at` of the call would look at the first `count` of block->items; returns at
// how many it does, which may be none (coarse_filter.c).
size_t bsw_coarse_widen(struct bsw_coarse_block *block, size_t at, const float *keys, size_t count);

// What products with centred centroids take of a query, as given: [dims].
void bsw_coarse_residual(const struct bsw_coarse_search *search, const float *vector, float *out);

// Where lists of a call go to.
struct bsw_chosen_lists {
    uint32_t *lists, *counts;
    float *additions; // or NULL
};

// Query q of the block, number `at` of the call, looks at the first `count` of block->items.
void bsw_coarse_put_lists(struct bsw_coarse_block *block, size_t at, const float *vector,
                          const uint64_t *items, size_t count, const struct bsw_chosen_lists *out);

// Chooses the lists of queries `at` and following by keys of all centroids.
void bsw_coarse_run_block(struct bsw_coarse_block *block, const float *vectors, size_t at,
                          const struct bsw_chosen_lists *out);

#endif
