// SPDX-License-Identifier: Apache-2.0
// Rotations of product codes: where they begin, and a round of OPQ (product_training.h).
#ifndef BITSWEEP_SHARD_OPQ_ROTATION_H
#define BITSWEEP_SHARD_OPQ_ROTATION_H

#include "shard/codecs/product_books.h"

// Each sets codes->matrix, [dims][projected_dims] of rows that are orthonormal.
enum bsw_status bsw_opq_begin_random(uint64_t seed, struct bsw_product_codes *codes,
                                     struct bsw_error *err);
// The identity.
void bsw_opq_begin_natural(struct bsw_product_codes *codes);
// Principal axes of rows->rows, the next of most variance to the part whose variances have the
// smallest product so far and that has room.
enum bsw_status bsw_opq_begin_principal(const struct bsw_training_rows *rows,
                                        struct bsw_product_codes *codes, struct bsw_error *err);
// The matrix that brings rows->rows closest to what rows->codes stand for. *error: the sum of
// squared distances of rows->projected, by the matrix before, to that.
enum bsw_status bsw_opq_turn(const struct bsw_training_rows *rows, struct bsw_product_codes *codes,
                             double *error, struct bsw_error *err);

#endif
