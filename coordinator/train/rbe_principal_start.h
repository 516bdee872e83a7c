// First weights of an rbe model from the principal axes of its rows: for queries and documents of
// one space, scored by projection (kernels/rbe/rbe_coders.h). Bits go where the energy is.
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
#ifndef BITSWEEP_COORDINATOR_RBE_PRINCIPAL_START_H
#define BITSWEEP_COORDINATOR_RBE_PRINCIPAL_START_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/rbe/rbe_model_file.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
