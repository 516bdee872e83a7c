// SPDX-License-Identifier: Apache-2.0
// A rank's part of a filter (shard/lists/row_filter.h): masks of its shards for the group of
// queries that is scanned, and lists of candidates that are found group after group.
#ifndef BITSWEEP_SHARD_FILTER_MASKS_H
#define BITSWEEP_SHARD_FILTER_MASKS_H

#include "shard/backend.h"
#include "shard/lists/row_filter.h"

// {0} is a valid empty one.
struct bsw_filter_masks {
    size_t num_shards;
    struct bsw_row_mask *masks;        // [num_shards]
    uint64_t *numbers;                 // [num_shards]: of the groups they are of; 0: none
    struct bsw_candidate_lists *whole; // [num_shards]: of all groups so far
};
void bsw_filter_masks_deinit(struct bsw_filter_masks *masks);

// Masks of num shards from `first` on for a group, those that are not there; *out: the first of
// them. shards: [num_shards], of the rank.
enum bsw_status bsw_filter_masks_make(struct bsw_filter_masks *masks, size_t num_shards,
                                      struct bsw_backend_shard *const *shards,
                                      const struct bsw_row_filter *filter, uint32_t group,
                                      struct bsw_shard_range range, const struct bsw_row_mask **out,
                                      struct bsw_error *err);

// Adds what a job of queries [at, at + its own) of num_queries has found in its shards; with the
// last of them the shards have the lists of all.
enum bsw_status bsw_filter_masks_add(struct bsw_filter_masks *masks, const struct bsw_scan_job *job,
                                     size_t at, size_t num_queries, struct bsw_error *err);

#endif
