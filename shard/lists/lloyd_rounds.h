// SPDX-License-Identifier: Apache-2.0
// k-means by Lloyd's rounds, shared by all ranks: each assigns its own rows, exactly; sums of whole
// numbers go to rank 0, centroids come back.
#ifndef BITSWEEP_SHARD_LLOYD_ROUNDS_H
#define BITSWEEP_SHARD_LLOYD_ROUNDS_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/job/progress.h"
#include "common/net/transport.h"
#include "shard/lists/list_sums.h"
#include "shard/lists/training_journal.h"

// What one training has in common, on every rank.
struct bsw_lloyd {
    enum bsw_metric metric;
    enum bsw_vector_type type;
    size_t dims;
    uint32_t rounds; // >= 1: at most so many
    enum bsw_cpu_level level;
    int num_threads;
    struct bsw_list_scales scales; // borrowed; the same on all ranks
    struct bsw_transport *transport;
    uint64_t sequence; // of messages, raised
    struct bsw_progress *progress;
    uint64_t rows_done; // of progress: rows of this rank times rounds
    // Whether rounds are kept, on all ranks alike, and where: rank 0, borrowed.
    int is_kept;
    bsw_training_journal *journal;
    int keeps_last; // the last round of each run alone
    uint64_t num_runs;
};

// Rows of all ranks, one after the other, to `num_lists` centroids [num_lists][dims]: the same
// bytes on all ranks, for any number of them with the same rows in all. At first they are rows, one
// of each equal part, chosen by a hash. Rounds end early when no row changes its list. There is at
// least one row. Goes on after the last round that the journal has of this run. All ranks call it,
// and return the same status.
enum bsw_status bsw_lloyd_run(struct bsw_lloyd *lloyd, const struct bsw_list_rows *rows,
                              size_t num_lists, uint64_t seed, float *centroids,
                              struct bsw_error *err);

// The nearest centroid of this rank's rows. Arrays [num_rows].
struct bsw_lloyd_lists {
    uint32_t *lists;      // as before; out
    double *keys;         // out, or NULL
    int are_guesses;      // lists are likely what they were before
    int64_t *num_changes; // out: rows whose list is another one
};
enum bsw_status bsw_lloyd_assign(struct bsw_lloyd *lloyd, const struct bsw_list_rows *rows,
                                 const float *centroids, size_t num_lists,
                                 const struct bsw_lloyd_lists *out, struct bsw_error *err);

// The rows that ranks before this one have, and all ranks.
struct bsw_row_counts {
    uint64_t before, total;
};
enum bsw_status bsw_lloyd_count(struct bsw_lloyd *lloyd, uint64_t num_rows,
                                struct bsw_row_counts *out, struct bsw_error *err);

// Sums of whole numbers of all ranks, or the largest of them, to all.
enum bsw_combination { BSW_COMBINE_SUM, BSW_COMBINE_MOST };
enum bsw_status bsw_lloyd_combine(struct bsw_lloyd *lloyd, enum bsw_combination how, int64_t *words,
                                  size_t num_words, struct bsw_error *err);

#endif
