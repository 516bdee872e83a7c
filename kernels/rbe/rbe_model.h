// SPDX-License-Identifier: Apache-2.0
// rbe: the model of Recurrent Binary Embedding (Shan, Jiao, Zhu, Mao, KDD'18), Section 4.
//
// A side (query or document) turns a real vector f [m] into t + 1 binary vectors of n components:
//   b^0 = rho(W f)                                  Eq. 8
//   f^t = tanh(B^t b^t)                             Eq. 9
//   d^t = rho(R^t (f - f^t))                        Eq. 10
//   b^{t+1} = b^t + 2^-(t+1) d^t                    Eq. 11
// each product with a bias. rho(x) is -1 for x <= 0, else +1 (Eq. 12). Query and document have
// weights of their own and as many steps as each wants (Section 4.5); B and R are a pair for each
// step, or one for all (Section 4.4).
//
// f is a raw row as the model wants it: (x * factor - mean) * scale, factor 1/norm(x) under cosine,
// else 1; each operation rounded to float32.
//
// Workload: m is 64 to 1024, n 32 to 512, up to 7 steps: some 10^4 to 10^6 parameters a side, which
// stay in the second-level cache. A row costs n*m*(1 + 2t) multiply-adds.
#ifndef BITSWEEP_KERNELS_RBE_MODEL_H
#define BITSWEEP_KERNELS_RBE_MODEL_H

#include <stddef.h>
#include <stdint.h>

// Planes a document may have less one; queries are capped at BSW_MAX_QUERY_BITS planes.
#define BSW_RBE_MAX_STEPS 7
#define BSW_RBE_MAX_DIMS  4096

struct bsw_rbe_shape {
    uint32_t dims;      // m, 1 .. BSW_RBE_MAX_DIMS
    uint32_t code_dims; // n, 1 .. BSW_RBE_MAX_DIMS
    uint32_t steps;     // u or v: planes less one, 0 .. BSW_RBE_MAX_STEPS
    int is_shared;      // one B and one R for all steps
    // Residual weights 2^-t (Section 4.3); without them all are 1, for comparison in training
    // alone: such codes are no bit planes.
    int has_residual_weights;
};

// One affine map: out = weights in + bias. weights [num_out][num_in].
struct bsw_rbe_layer {
    const float *weights, *bias;
    uint32_t num_out, num_in;
};

// All parameters of a side lie in one array: base (W, then its bias), then for each step its
// reconstruction (B, bias) and its residual layer (R, bias); once if shared.
size_t bsw_rbe_num_parameters(const struct bsw_rbe_shape *shape);

enum bsw_rbe_layer_kind { BSW_RBE_BASE, BSW_RBE_RECONSTRUCTION, BSW_RBE_RESIDUAL };

// Where a layer begins in that array; step 0 .. steps - 1, ignored for the base.
size_t bsw_rbe_layer_offset(const struct bsw_rbe_shape *shape, enum bsw_rbe_layer_kind kind,
                            uint32_t step);
struct bsw_rbe_layer bsw_rbe_layer_of(const struct bsw_rbe_shape *shape, const float *parameters,
                                      enum bsw_rbe_layer_kind kind, uint32_t step);

// The weight of d^step: 2^-(step + 1), or 1.
float bsw_rbe_residual_weight(const struct bsw_rbe_shape *shape, uint32_t step);

// Uniform in +-sqrt(6 / (num_in + num_out)) (Glorot and Bengio), biases 0: as Appendix A of the
// paper. The same bits everywhere for a seed.
void bsw_rbe_initialize(const struct bsw_rbe_shape *shape, uint64_t seed, float *parameters);

#endif
