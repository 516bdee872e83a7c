// Queries to odd integers of at most 7 bits, in planes: done once, on the coordinator. Those of
// codec raw are bytes: raw_codes.h. Those of rbe are a model's: kernels/rbe/rbe_coders.h.
//
// xfbq queries are coded as documents are, with the documents' scale (XFBQ Section 3.3). saq
// queries fold the steps in: p_i = q'_i * t_s, scale = max|p| / (2^Bq - 1), q = clip(2*floor(p_i /
// (2*scale)) + 1).
#ifndef BITSWEEP_KERNELS_QUERY_CODES_H
#define BITSWEEP_KERNELS_QUERY_CODES_H

#include <stddef.h>
#include <stdint.h>

#include "common/index_manifest.h"
#include "kernels/encode/encode.h"

#ifdef __cplusplus
extern "C" {
#endif

// The frame of a manifest as the kernels want it; borrows the manifest's arrays.
void bsw_frame_of_manifest(const struct bsw_manifest *manifest, struct bsw_saq_frame *out);

// One query. row [dims], with its factor from bsw_prepare_rows. words: bsw_layout_query_words,
// segment after segment, each [query_bits][words]. *scale: what multiplies half(scale_d) * dot in
// the key, the manifest's power of two included; 1 for xfbq. *addend: value = key + addend (cosine,
// ip) or addend - key (l2); 0 for xfbq. scratch: padded_dims + dims floats, 64-byte aligned; rbe:
// bsw_rbe_coders_scratch_bytes, and manifest->coders is set.
void bsw_query_encode(const struct bsw_encode_table *table, const struct bsw_manifest *manifest,
                      const float *row, float factor, uint32_t query_bits, uint32_t *words,
                      float *scale, float *addend, float *scratch);

// The estimate a key stands for, as reported without refinement: xfbq: (float)dot * 2^-(B+Bq) /
// scale^2, rounded once; saq: with the addend, rounded once; raw (addend 0): the exact value.
// `score` as in common/result_order.h.
float bsw_value_of_score(const struct bsw_manifest *manifest, uint32_t query_bits, uint32_t score,
                         float addend);

#ifdef __cplusplus
}
#endif
#endif
