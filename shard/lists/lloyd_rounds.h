// SPDX-License-Identifier: Apache-2.0
// k-means by Lloyd's rounds, shared by all ranks: each assigns its own rows, exactly; sums of whole
// numbers go to rank 0, centroids come back.
#ifndef BITSWEEP_SHARD_LLOYD_ROUNDS_H
#define BITSWEEP_SHARD_LLOYD_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/job/journal.h"
#include "common/job/progress.h"
#include "common/net/transport.h"
#include "shard/lists/list_assignment.h"
#include "shard/lists/list_sums.h"

// What rank 0 keeps of a training of centroids, so that one that is stopped or killed goes on after
// its last whole round: common/job/journal.h, a record for each round.
//
// A record is 16 bytes, the run (uint64, counted from 0: a training in two levels has several), its
// round (uint32, from 0) and whether that was the last (uint32), and the centroids (float32). Where
// a run goes on needs the centroids of its last two rounds: rows get the lists of the earlier ones
// again, of which the next round counts those that change.

typedef struct bsw_training_journal bsw_training_journal;

// Takes over what is at path, of the same fields; none: begins. Other fields are BSW_ERROR_USAGE.
// Reads all of it into memory: the centroids of whole runs, and two rounds of one that is not.
// most_bytes: of the file; BSW_JOURNAL_MAX_BYTES, or less in tests.
enum bsw_status bsw_training_journal_open(const char *path, const struct bsw_journal_fields *fields,
                                          uint64_t most_bytes, bsw_training_journal **out,
                                          struct bsw_error *err);
// Leaves the file as of the last commit. Accepts NULL inside.
void bsw_training_journal_close(bsw_training_journal **journal);

// What is known of a run: borrowed, until the next put.
struct bsw_training_known {
    uint32_t round; // the last whole one
    uint32_t is_last;
    const float *centroids; // [numbers], of that round
    const float *before;    // of the round before it; NULL where is_last
};
// 0: nothing to go on from, or not of so many numbers; *out is as it was.
int bsw_training_journal_find(const bsw_training_journal *journal, uint64_t run, size_t numbers,
                              struct bsw_training_known *out);

// Keeps the centroids [numbers] of a round. On disk every BSW_JOURNAL_SECONDS. One that would take
// the file beyond most_bytes is not kept: who goes on does it again.
enum bsw_status bsw_training_journal_put(bsw_training_journal *journal, uint64_t run,
                                         uint32_t round, int is_last, const float *centroids,
                                         size_t numbers, struct bsw_error *err);
// Now. Any thread.
enum bsw_status bsw_training_journal_commit(bsw_training_journal *journal, struct bsw_error *err);

// What one training has in common, on every rank.
struct bsw_lloyd {
    enum bsw_metric metric;
    enum bsw_vector_type type;
    size_t dims;
    uint32_t rounds; // >= 1: at most so many
    enum bsw_cpu_level level;
    int num_threads;
    const struct bsw_list_finder *finder; // of this rank, borrowed; or NULL
    struct bsw_list_scales scales;        // borrowed; the same on all ranks
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

// Centroids from sums, and what is done about lists that are empty or too long.
//
// An empty list takes half of the longest one: it becomes a centroid a small step beside that
// one's, in a seeded direction, and the next rounds drive them apart. So do, where asked, the
// shortest lists with those of more than 4 times the mean: of so skewed data the average query
// would look at far more rows than a list's share. What lists cannot cut is left: copies of one
// row.

struct bsw_list_splits {
    enum bsw_metric metric;
    struct bsw_list_scales scales; // borrowed
    uint64_t seed;                 // another one every round
    int is_balanced;               // lists that are too long are split, too
};

// Means of all lists that have rows to centroids [num_lists][dims], of unit length under cosine
// (where a sum is 0 the old one stays), then splits. Returns how many centroids were moved to split
// a list, in *num_moved.
enum bsw_status bsw_list_splits_update(const struct bsw_list_splits *splits,
                                       const struct bsw_list_totals *totals, float *centroids,
                                       size_t *num_moved, struct bsw_error *err);

#endif
