// SPDX-License-Identifier: Apache-2.0
// The first screen of neighbour_tiles.h: 8-bit codes of queries and rows on int8 units, with the
// margin of kernels/screen/screen_margin.h. What it rules out needs no float32 product.
//
// A step in which codes let so much through that they cost more than they save is left to float32,
// and so are the next ones: 1, 2, 4 ... 16 of them, until codes do again.
#ifndef BITSWEEP_SHARD_NEIGHBOUR_CODES_H
#define BITSWEEP_SHARD_NEIGHBOUR_CODES_H

#include <stddef.h>
#include <stdint.h>

#include "shard/exact/neighbour_tiles.h"

// Codes query q, whose numbers and norm are in their places, times `scale`.
void bsw_neighbour_codes_put_query(struct bsw_neighbour_tiles *tiles, size_t q, double scale);

// Before the rows of a block are packed: begins its unit, and makes it fit a row [dims] and those
// smaller, or a good deal larger.
void bsw_neighbour_codes_begin(struct bsw_neighbour_tiles *tiles);
void bsw_neighbour_codes_look_at(struct bsw_neighbour_tiles *tiles, const float *row);

// Packs a bundle: rows [num_rows][dims], their squared norms, mask: bits of those without a fault.
void bsw_neighbour_codes_pack(struct bsw_neighbour_tiles *tiles, size_t bundle, const float *rows,
                              const double *norms, size_t num_rows, uint32_t mask);

// Whether codes did for the step: then outputs[q].items hold places of the step's rows, in the low
// half as rows of candidates, that may be among the best of its query q. The thread's own room.
int bsw_neighbour_codes_scan(const struct bsw_neighbour_tiles *tiles, size_t thread,
                             const struct bsw_neighbour_step *step,
                             const struct bsw_exact_best *lists,
                             struct bsw_matrix_output outputs[BSW_NEIGHBOUR_TILE_QUERIES]);

#endif
