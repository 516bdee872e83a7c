// The order in which an epoch of a training of rbe takes its pairs.
#ifndef BITSWEEP_COORDINATOR_RBE_ORDER_H
#define BITSWEEP_COORDINATOR_RBE_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/train/rbe_training.h"

#ifdef __cplusplus
extern "C" {
#endif

// Fisher and Yates.
void bsw_rbe_shuffle(uint64_t seed, uint64_t *values, uint64_t count);

// Rearranges a shuffled order so that every cell_pairs pairs on end have queries near each other:
// halves of halves along random directions, the cells shuffled. Cross-sampled negatives of a group
// are then hard ones. Reads all queries of the epoch `draw`; the same bits for any number of
// threads.
enum bsw_status bsw_rbe_order_cells(const struct bsw_rbe_pairs *pairs, size_t dims, uint64_t draw,
                                    uint64_t seed, size_t cell_pairs, uint64_t *order,
                                    uint64_t count, struct bsw_error *err);

#ifdef __cplusplus
}
#endif
#endif
