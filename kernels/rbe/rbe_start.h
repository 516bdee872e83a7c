// SPDX-License-Identifier: Apache-2.0
// First weights that are a quantizer already: rows of W random and orthonormal, B back along them,
// R as W. Codes then begin as those of a uniform quantizer after a random rotation, the same on
// both sides, and training starts from there: for queries and documents of one space.
//
// Plane t + 1 asks whether a component of W f lies above 2^steps * half_step * b^t, so
// B = 2^steps * half_step * W^T (the tanh between is nearly the identity for inputs well inside
// -1 .. 1), for every step, and R = W.
#ifndef BITSWEEP_KERNELS_RBE_START_H
#define BITSWEEP_KERNELS_RBE_START_H

#include <stdint.h>

#include "kernels/rbe/rbe_model.h"

// half_step: half the distance of two levels, in units of a component of W f. More code_dims than
// dims: several sets of orthonormal rows. Biases 0. The same bits everywhere for a seed.
// Cost: code_dims * min(code_dims, dims) * dims multiply-adds.
void bsw_rbe_initialize_quantizer(const struct bsw_rbe_shape *shape, uint64_t seed,
                                  double half_step, float *parameters);

#endif
