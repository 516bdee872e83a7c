// SPDX-License-Identifier: Apache-2.0
// First weights of a training of rbe, and the rates that go with them.
//
// From the principal axes of the rows: for queries and documents of one space, scored by projection
// (kernels/rbe/rbe_coders.h). Bits go where the energy is.
//
// A component of a code with B planes is a uniform quantizer of 2^B levels of one axis. m
// components of the same axis make one of (2^B - 1) m + 1 levels: they share the residual, since B
// b of Eq. 9 adds up their shares, and their thresholds are staggered by the biases. So code_dims
// components are dealt out one by one, each to the axis where it removes most squared error (a
// Gaussian's); axes of little energy get none. Axes with equally many are rotated at random among
// themselves, which makes them even.
//
// Document side, for axis a with spread h and copy k of m, offset o = k - (m - 1) / 2:
//   W: a / h, bias -2 o;  B: a h;  R of step t: a / h, bias -2 o 2^-(t+1)
// Query side: W: a g / q, B: a q / (g m), R as W, no biases; g = h 2^-v is what a step of the
// document's component is worth along a, q the scale at which the query's levels err least.
#ifndef BITSWEEP_COORDINATOR_RBE_FIRST_WEIGHTS_H
#define BITSWEEP_COORDINATOR_RBE_FIRST_WEIGHTS_H

#include "coordinator/train/rbe_training.h"

// What B gives must stay where tanh is the identity, also for axes of little energy.
#define BSW_RBE_PRINCIPAL_INPUT_RMS 0.001

// shapes: [BSW_RBE_NUM_SIDES], with residual weights. inputs: [num_rows][dims] of documents, as the
// layers get them; all equal is BSW_ERROR_BAD_DATA. parameters: of both sides, the query's first.
// Sides with shared matrices get at most one component an axis: the staggering is another for each
// step. Cost: dims^2 * num_rows, and 9 dims^3.
enum bsw_status bsw_rbe_start_principal(const struct bsw_rbe_shape *shapes, const float *inputs,
                                        size_t num_rows, uint64_t seed, float *parameters,
                                        struct bsw_error *err);

// Components for each axis (num_components in all, at most `most` each): energies [dims], falling.
// More than dims * most: the rest is left out.
void bsw_rbe_deal_components(const double *energies, uint32_t dims, uint32_t planes,
                             uint32_t num_components, uint32_t most, uint32_t *counts);

// The best uniform quantizer of a unit Gaussian: distance of its levels (at least 2), and its mean
// squared error.
double bsw_gaussian_step(uint32_t levels, double *square_error);

// parameters of both sides, as options->start says. From principal axes of documents of `trained`
// [num_trained] pairs, so alike on all ranks only if one has made them; the others are a function
// of the options.
enum bsw_status bsw_rbe_first_weights(const struct bsw_rbe_training_options *options,
                                      const struct bsw_rbe_pairs *pairs, const uint64_t *trained,
                                      uint64_t num_trained, float *parameters,
                                      struct bsw_error *err);

// rates [num_parameters], which the rate of each weight is multiplied by. A step of Adam is of one
// size for all weights, whatever theirs: right for random first weights, which are of one size, but
// those of a quantizer are not, and what is small would be noise after a few steps. So the rate of
// a weight goes with the root mean square of the first ones of its component (row of W and R,
// column of B) over that of random ones; of a bias with what the layer gives: numbers around 1, or
// inputs. For a random start all are 1.
void bsw_rbe_first_rates(const struct bsw_rbe_training_options *options, const float *parameters,
                         float *rates);

#endif
