// SPDX-License-Identifier: Apache-2.0
// Which pairs of a training of rbe are trained on, which are held out, and the order in which an
// epoch takes them.
#ifndef BITSWEEP_COORDINATOR_RBE_SPLIT_H
#define BITSWEEP_COORDINATOR_RBE_SPLIT_H

#include "coordinator/train/rbe_training.h"

struct bsw_rbe_split {
    uint64_t *ids;      // owned: of both
    uint64_t *held_out; // [num_held_out]
    uint64_t *trained;  // [num_trained], ascending; none shares a row with those held out
    uint64_t num_held_out, num_trained, num_batches;
    size_t batch_pairs; // no more than are trained
};

// Groups are of group_pairs, as those of held-out pairs are ordered. BSW_ERROR_USAGE: too few pairs
// for the negatives on each of so many ranks. bsw_rbe_split_deinit frees, also after an error.
enum bsw_status bsw_rbe_split_init(const struct bsw_rbe_training_options *options,
                                   const struct bsw_rbe_pairs *pairs, uint64_t ranks,
                                   size_t group_pairs, struct bsw_rbe_split *out,
                                   struct bsw_error *err);
void bsw_rbe_split_deinit(struct bsw_rbe_split *split);

// Fisher and Yates.
void bsw_rbe_shuffle(uint64_t seed, uint64_t *values, uint64_t count);

// Rearranges a shuffled order so that every cell_pairs pairs on end have queries near each other:
// halves of halves along random directions, the cells shuffled. Cross-sampled negatives of a group
// are then hard ones. Reads all queries of the epoch `draw`; the same bits for any number of
// threads.
enum bsw_status bsw_rbe_order_cells(const struct bsw_rbe_pairs *pairs, size_t dims, uint64_t draw,
                                    uint64_t seed, size_t cell_pairs, uint64_t *order,
                                    uint64_t count, struct bsw_error *err);

#endif
