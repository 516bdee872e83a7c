// SPDX-License-Identifier: Apache-2.0
// What encode does for an index with lists before its pass: the centroids, the list of every row,
// and so the order of each shard's rows (common/files/list_order.h).
//
// Lists are functions of the rows, their number and the seed: not of ranks, threads or levels.
#ifndef BITSWEEP_COORDINATOR_ENCODE_LISTS_H
#define BITSWEEP_COORDINATOR_ENCODE_LISTS_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/files/list_order.h"
#include "common/job/progress.h"
#include "common/net/transport.h"
#include "common/rows/vectors.h"
#include "coordinator/job/index_facts.h"
#include "shard/lists/lloyd_rounds.h"

#define BSW_LISTS_AUTO UINT64_MAX

// So many lists that centroids and rows of a search take about the same time: the power of two that
// is nearest to 4 times the square root of the rows.
uint32_t bsw_encode_num_lists(uint64_t num_rows);

// Whether `--device auto` takes a GPU for so many lists, or BSW_LISTS_AUTO, of so many rows.
int bsw_encode_lists_want_device(uint64_t asked, uint64_t num_rows);

// How many lists there will be of those that are asked for, 0 or BSW_LISTS_AUTO among them. More
// than rows or than a manifest may hold is BSW_ERROR_USAGE. source: of the rows, for messages.
enum bsw_status bsw_encode_settle_lists(uint64_t asked, const char *source, uint64_t num_rows,
                                        uint32_t dims, uint32_t *out, struct bsw_error *err);

// Takes over what the index in `folder` has of lists, if it fits manifest (metric, dims): whether
// codes are of residuals, as its frame was trained for that, and the centroids, if there are as
// many as are asked for, or some with BSW_LISTS_AUTO: then manifest->lists.centroids are there.
// source: of the rows, for messages. BSW_ERROR_USAGE as bsw_encode_settle_lists.
enum bsw_status bsw_encode_lists_adopt(const char *folder, uint64_t asked, const char *source,
                                       uint32_t dims, struct bsw_manifest *manifest,
                                       struct bsw_error *err);

struct bsw_encode_lists {
    // To be set, all borrowed; the rest is {0}.
    struct bsw_transport *transport;
    const bsw_vectors *vectors;
    struct bsw_manifest *manifest;
    enum bsw_cpu_level level;
    uint64_t seed;
    int drop_bad_rows;
    const struct bsw_list_finder *finder; // of this rank, or NULL
    struct bsw_progress *progress;        // or NULL
    bsw_training_journal *journal;        // rank 0: of the training; NULL elsewhere
    // The list of each row, uint32 [num_rows], on all ranks.
    struct bsw_buffer rows;
    struct bsw_list_sizes sizes;   // once rows are assigned
    struct bsw_list_order *orders; // [num_shards]: of those that bsw_encode_lists_order was asked
};

// Centroids of manifest->lists.count lists, which are there on return; all ranks call it, with
// OpenMP's threads. Each has its own outcome.
enum bsw_status bsw_encode_lists_train(struct bsw_encode_lists *lists, struct bsw_error *err);

// The list of every row, and places of all shards. All ranks; all return alike. A bad row is
// BSW_ERROR_BAD_DATA that names it, unless it may be dropped.
enum bsw_status bsw_encode_lists_assign(struct bsw_encode_lists *lists, struct bsw_error *err);

// The order of a shard, which stays until deinit. NULL after an error.
const struct bsw_list_order *bsw_encode_lists_order(struct bsw_encode_lists *lists, uint32_t shard,
                                                    struct bsw_error *err);
void bsw_encode_lists_deinit(struct bsw_encode_lists *lists); // accepts {0}

#endif
