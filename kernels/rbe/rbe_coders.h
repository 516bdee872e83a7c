// A model made ready to code rows: documents into bundles of planes with 1 / norm(b) (Eq. 14 of the
// paper), queries into planes with a scale.
//
// Planes and bits are those of common/code_layout.h. Components are odd integers c, so
//   key = scale_q * (half(scale_d) * dot)   half: nearest to 2^-e / norm(c_d), scale_q: 2^e /
//   norm(c_q)
// is the cosine of the two codes; e depends on code_dims alone and is kept in the manifest. A
// function of model and row, the same bits on every machine.
#ifndef BITSWEEP_KERNELS_RBE_CODERS_H
#define BITSWEEP_KERNELS_RBE_CODERS_H

#include <stddef.h>
#include <stdint.h>

#include "common/cpu_level.h"
#include "kernels/rbe/rbe_codes.h"
#include "kernels/rbe/rbe_model_file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bsw_rbe_coders {
    struct bsw_rbe_model model; // owned
    const struct bsw_rbe_codes_table *table;
    struct bsw_rbe_coder sides[BSW_RBE_NUM_SIDES];
    float *memory[BSW_RBE_NUM_SIDES];
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
    return coders->sides[side].shape.steps + 1;
}

// e above: so that the largest scale there can be lies at 2^7 to 2^8.
int32_t bsw_rbe_scale_exponent(uint32_t code_dims);

// Scratch of a thread for either side; 64-byte aligned, as the memory must be.
size_t bsw_rbe_coders_scratch_bytes(const struct bsw_rbe_coders *coders);

// num_rows <= 32 rows [dims] with their factors: one bundle of planes (zeroed before) and scales
// [num_rows] as halves. A row of factor 0 (a bad one) gets planes and scale 0.
void bsw_rbe_encode_bundle(const struct bsw_rbe_coders *coders, const float *rows, size_t num_rows,
                           const float *factors, void *scratch, uint32_t *planes, uint16_t *scales);

// words: [planes of the query side][words], zeroed before.
void bsw_rbe_encode_query(const struct bsw_rbe_coders *coders, const float *row, float factor,
                          void *scratch, uint32_t *words, float *scale);

#ifdef __cplusplus
}
#endif
#endif
