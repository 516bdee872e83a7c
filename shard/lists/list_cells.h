// SPDX-License-Identifier: Apache-2.0
// k-means in two levels, for so many lists that every row against every centroid takes too long:
// first some sqrt(num_lists) cells, then in each cell lists in proportion to its rows.
//
// Rows are nearer to the best list of another cell here and there, and an assignment to all lists
// finds it. After that the mean squared distance is 2.8 % above that of one level for 2,048 lists
// of 200k SIFT rows, and 2.5 % for 1,024 lists of 30k word vectors.
#ifndef BITSWEEP_SHARD_LIST_CELLS_H
#define BITSWEEP_SHARD_LIST_CELLS_H

#include "shard/lists/lloyd_rounds.h"

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
