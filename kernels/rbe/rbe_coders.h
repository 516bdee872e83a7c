// SPDX-License-Identifier: Apache-2.0
// A model made ready to code rows: documents into bundles of planes with a scale and a bias,
// queries into planes with a scale and what its values add.
//
// Planes and bits are those of common/codes/code_layout.h, components are odd integers c, and
//   key = scale_q * (half(scale_d) * dot) + bias_d    half: nearest to scale_d * 2^-e, and scale_q
//                                                     has the 2^e, which is kept in the manifest
// By norm, as the paper has it (Eq. 14): scale = 1 / norm(c) on both sides, bias and addend 0, so
// that a key is the cosine of the two codes; e depends on code_dims alone.
//
// Float queries have no signs: c_q are their numbers p, after tanh, in units of max|p| / 127, and
// scale_q = unit / norm(p).
//
// By projection, for a model of rows of one space: with x' = row * factor - mean and p(x) = W f +
// bias of the query side,
//   scale_q = <p(q), c_q> / <c_q, c_q>     so that scale_q * c_q is nearest to p(q)
//   scale_d = <x', x'> / <p(x), c_d>       so that p(x) meets c_d in <x', x'>: a row has the right
//                                          similarity to itself; 0 where <p(x), c_d> <= 0
//   bias_d = <mean, x'>, addend = <mean, q'> + <mean, mean>
// and key + addend estimates <q, x>, under cosine the metric. It is the one factor a document of
// RaBitQ (Gao and Long, SIGMOD'24) for a learned code; codes need no even norm then.
//
// A function of model and row, the same bits on every machine.
#ifndef BITSWEEP_KERNELS_RBE_CODERS_H
#define BITSWEEP_KERNELS_RBE_CODERS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/code_layout.h"
#include "kernels/rbe/rbe_codes.h"
#include "kernels/rbe/rbe_model_file.h"

struct bsw_rbe_coders {
    struct bsw_rbe_model model; // owned
    const struct bsw_rbe_codes_table *table;
    struct bsw_rbe_coder sides[BSW_RBE_NUM_SIDES];
    float *memory[BSW_RBE_NUM_SIDES];
    int32_t scale_exponent; // e above
};

// Takes the model over, also on failure. bsw_rbe_coders_destroy frees; accepts NULL inside. A model
// without codes is BSW_ERROR_USAGE; `name` is for messages.
enum bsw_status bsw_rbe_coders_create(struct bsw_rbe_model *model, const char *name,
                                      enum bsw_cpu_level level, struct bsw_rbe_coders **out,
                                      struct bsw_error *err);
void bsw_rbe_coders_destroy(struct bsw_rbe_coders **coders);

static inline uint32_t bsw_rbe_num_planes(const struct bsw_rbe_coders *coders,
                                          enum bsw_rbe_side_kind side)
{
    if (side == BSW_RBE_QUERY && coders->model.has_float_queries) return BSW_MAX_QUERY_BITS;
    return coders->sides[side].shape.steps + 1;
}

// Scratch of a thread for either side; 64-byte aligned, as the memory must be.
size_t bsw_rbe_coders_scratch_bytes(const struct bsw_rbe_coders *coders);

// num_rows <= 32 rows [dims] with their factors: one bundle of planes (zeroed before), scales as
// halves and biases [num_rows], NULL of models without projections, whose biases are all 0. A row
// of factor 0 (a bad one) gets planes, scale and bias 0.
void bsw_rbe_encode_bundle(const struct bsw_rbe_coders *coders, const float *rows, size_t num_rows,
                           const float *factors, void *scratch, uint32_t *planes, uint16_t *scales,
                           float *biases);

// words: [planes of the query side][words], zeroed before.
void bsw_rbe_encode_query(const struct bsw_rbe_coders *coders, const float *row, float factor,
                          void *scratch, uint32_t *words, float *scale, float *addend);

#endif
