// SPDX-License-Identifier: Apache-2.0
// Training's view of a side: a batch of rows forward, and the gradient of a loss back through it.
// Products by OpenBLAS: bits depend on the machine, never on the result of encoding (rbe_codes.h).
//
// rho has no useful derivative; an estimator stands in for it on the way back (Section 4.2):
//   straight_through  1
//   variant           1 where |x| <= 1, else 0
//   annealing         a * (1 - tanh(a*x)^2), the slope a growing in the course of training
//   smooth            as annealing, and tanh(a*x) in place of rho on the way forward too: a
//                     differentiable model; with a = 1 and no steps the full-precision layer of the
//                     paper's m_1
#ifndef BITSWEEP_KERNELS_RBE_GRADIENT_H
#define BITSWEEP_KERNELS_RBE_GRADIENT_H

#include <stddef.h>

#include "common/base/memory.h"
#include "kernels/rbe/rbe_model.h"

enum bsw_rbe_estimator {
    BSW_RBE_STRAIGHT_THROUGH,
    BSW_RBE_VARIANT,
    BSW_RBE_ANNEALING,
    BSW_RBE_SMOOTH,
    BSW_RBE_NUM_ESTIMATORS
};

// Everything a batch needs, for up to max_rows rows. Arrays are rows x what they are called.
struct bsw_rbe_pass {
    struct bsw_rbe_shape shape;
    size_t max_rows;
    float *memory;                        // owned; what follows points into it
    float *base;                          // [code_dims]: W f + bias, before rho
    float *codes[BSW_RBE_MAX_STEPS + 1];  // [code_dims]: b^t; the last is the side's output
    float *back[BSW_RBE_MAX_STEPS];       // [dims]: f^t, after tanh
    float *difference[BSW_RBE_MAX_STEPS]; // [dims]: f - f^t
    float *residual[BSW_RBE_MAX_STEPS];   // [code_dims]: R (f - f^t) + bias, before rho
    float *code_gradient, *sum_gradient;  // [code_dims]: scratch of the way back
    float *back_gradient;                 // [dims]
};

enum bsw_status bsw_rbe_pass_init(const struct bsw_rbe_shape *shape, size_t max_rows,
                                  struct bsw_rbe_pass *out, struct bsw_error *err);
void bsw_rbe_pass_deinit(struct bsw_rbe_pass *pass);

// inputs: [num_rows][dims]; the output is pass->codes[steps]. num_rows 1 .. max_rows.
void bsw_rbe_forward(struct bsw_rbe_pass *pass, const float *parameters,
                     enum bsw_rbe_estimator estimator, float slope, const float *inputs,
                     size_t num_rows);

// W f + bias of a side alone: [num_rows][code_dims].
void bsw_rbe_project(const struct bsw_rbe_shape *shape, const float *parameters,
                     const float *inputs, size_t num_rows, float *out);

// After bsw_rbe_forward with the same arguments. output_gradient: [num_rows][code_dims]. gradient
// [bsw_rbe_num_parameters] is added to. input_gradient: NULL, or [num_rows][dims], added to (for
// what may stand in front of the model, as a text network).
void bsw_rbe_backward(struct bsw_rbe_pass *pass, const float *parameters,
                      enum bsw_rbe_estimator estimator, float slope, const float *inputs,
                      size_t num_rows, const float *output_gradient, float *gradient,
                      float *input_gradient);

#endif
