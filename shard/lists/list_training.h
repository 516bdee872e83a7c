// SPDX-License-Identifier: Apache-2.0
// Centroids of inverted lists: k-means on a seeded sample of the corpus, by all ranks together.
//
// The sample is at most 256 rows a list, one of each equal stratum; every rank reads and holds its
// own part of it. Assignments are exact (list_assignment.h), sums are of whole numbers
// (list_sums.h), and what is left, means and splits, is done once, by rank 0: so centroids are a
// function of the corpus, the metric, num_lists, seed and rounds. Very many lists are trained cell
// by cell (below). Under cosine they are of unit
// length and near by their cosine; under l2 and ip they are means, near by distance.
#ifndef BITSWEEP_SHARD_LIST_TRAINING_H
#define BITSWEEP_SHARD_LIST_TRAINING_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/codes/metric.h"
#include "common/job/progress.h"
#include "common/net/transport.h"
#include "common/rows/vectors.h"
#include "shard/lists/list_sums.h"
#include "shard/lists/lloyd_rounds.h"

#define BSW_LIST_SAMPLE_ROWS 256 // a list
// By default. On 200k SIFT rows and 2,048 lists the mean squared distance is 46,698 after 4 rounds,
// 45,880 after 8, 45,586 after 12, 45,359 after 20 and 45,262 after 30.
#define BSW_LIST_ROUNDS 12

struct bsw_list_training {
    const bsw_vectors *vectors; // the corpus, or a range of it; borrowed
    enum bsw_metric metric;
    uint32_t num_lists; // 1 .. rows of the corpus
    uint64_t seed;
    uint32_t rounds; // at most; 0: BSW_LIST_ROUNDS
    enum bsw_cpu_level level;
    int num_threads;
    const struct bsw_list_finder *finder; // of this rank, borrowed; or NULL
    struct bsw_progress *progress;        // borrowed, or NULL
    // Whether rounds are kept, to go on from, and where: rank 0 alone, borrowed. In two levels of
    // cells that are whole.
    int is_kept;
    bsw_training_journal *journal;
};

// All ranks call it with the same training, but for level, num_threads and finder. centroids:
// [num_lists] [dims], the same bytes on all ranks, for any number of ranks and threads and every
// level. All return the same status. More lists than rows, or 0, are BSW_ERROR_USAGE; a sample
// without any good row BSW_ERROR_BAD_DATA; a stop that was asked for BSW_ERROR_STOPPED. Lists stay
// empty only where the sample has fewer different rows than lists; their centroids are copies of
// others.
//
// Time: rounds times sample rows times num_lists times dims multiply-adds of bytes, shared by ranks
// and threads; of cells about 2 sqrt(num_lists) in place of num_lists. Memory of a rank: its part
// of the sample and 16 to 28 bytes a row of it, and 14 * dims bytes a list, 8 * dims more on rank 0
// of several; of cells their share of that.
enum bsw_status bsw_lists_train(const struct bsw_list_training *training,
                                struct bsw_transport *transport, float *centroids,
                                struct bsw_error *err);

// This rank's part of the sample that lists are trained on: one row from each of equal strata of
// the corpus, chosen by an integer hash, or all rows; bad ones are left out. Parts of ranks are
// consecutive, so that all together, in the order of ranks, are the same rows for any number.

struct bsw_training_sample {
    unsigned char *raw;
    float *factors; // NULL but for cosine
    size_t num_rows;
    float *largest; // [dims]: components by magnitude, times their factors; 0 without rows
};

struct bsw_training_sample_needs {
    const bsw_vectors *vectors; // borrowed
    enum bsw_metric metric;
    enum bsw_cpu_level level;
    uint64_t seed;
    uint64_t num_rows; // of all ranks, bad ones included; no more than the source has
    int rank, num_ranks;
    struct bsw_progress *progress; // of rows, or NULL
};

// The caller closes, after an error too. A stop that was asked for is BSW_ERROR_STOPPED.
enum bsw_status bsw_training_sample_open(const struct bsw_training_sample_needs *needs,
                                         struct bsw_training_sample *out, struct bsw_error *err);
void bsw_training_sample_close(struct bsw_training_sample *sample);

// k-means in two levels, for so many lists that every row against every centroid takes too long:
// first some sqrt(num_lists) cells, then in each cell lists in proportion to its rows.
//
// Rows are nearer to the best list of another cell here and there, and an assignment to all lists
// finds it. After that the mean squared distance is 2.8 % above that of one level for 2,048 lists
// of 200k SIFT rows, and 2.5 % for 1,024 lists of 30k word vectors.

// Up to so many lists are trained in one level.
#define BSW_FLAT_LISTS 16384
// Rows that a cell is trained on: there are few, and each is to be cut again.
#define BSW_CELL_SAMPLE_ROWS 1024

// As bsw_lloyd_run, which it calls for the cells and for each of them. Lists of a cell are
// consecutive. Progress is begun here. Memory besides that of rounds: a copy of this rank's rows of
// the largest cell, and 8 bytes a row.
enum bsw_status bsw_list_cells_train(struct bsw_lloyd *lloyd, const struct bsw_list_rows *rows,
                                     size_t num_lists, uint64_t seed, float *centroids,
                                     struct bsw_error *err);

#endif
