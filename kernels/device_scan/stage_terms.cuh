// SPDX-License-Identifier: Apache-2.0
// Which pairs of row and query go on after a first stage, from the same product as key_terms.cuh: a
// term more.
//
// With dot1 of the stage, r the query's reach, t the row's tail, else as there, a key that reaches
// L has, without any rounding,
//     dot1 + (r/s) (t/S) + (1/s) (b/S) - (L/s) (1/S) >= -e.
// The third term is one product, in the place that the other six and the flag leave of m16n8k8, as
// what is added for it only has to be enough: both its numbers are one bf16, rounded away from 0,
// so that it is up to 2^-6 too large.
//
// Why no row is lost: what key_terms.cuh says, with A = |L/s| R + |1/s| B + |r/s| T, where no row's
// t/S exceeds T, all halved, and 8 products that may be cut. Of r/s and t/S only the roundings
// before those to bf16 can make the term too small, by 2^-21 each. Above, it is A * 2^-6 too large
// at most: less than 2^14, and 2^20 + 2^20 + 2^14 is less than the 2^22 to either side.
#ifndef BITSWEEP_KERNELS_STAGE_TERMS_CUH
#define BITSWEEP_KERNELS_STAGE_TERMS_CUH

#include "kernels/device_scan/key_terms.cuh"

namespace bsw
{

// The bf16 that is not below the value, >= 0, as the upper half of a word.
__device__ __forceinline__ uint32_t bf16_above(float value)
{
    return (__float_as_uint(value) + 0xffffu) & 0xffff0000u;
}

// ---- queries ----

struct __align__(16) stage_query
{
    uint32_t words[4]; // eight bf16
    float limit, bias, reach,
        start; // |L/s|/2, |1/s|/2, |r/s|/2; where sums start, but for the slack
};

// limit: as float_limit gives it; constant: of the stage.
__device__ __forceinline__ stage_query stage_query_of(float limit, float scale, float reach,
                                                      int constant)
{
    const key_query keys = key_query_of(limit, scale, constant);
    stage_query out = {{keys.words[0], keys.words[1], keys.words[2], keys.words[3]},
                       keys.limit,
                       keys.bias,
                       0.0f,
                       keys.start};
    if (!(keys.bias > 0)) return out; // no row passes, or all go on
    out.reach = far_to_infinity(__fdiv_rn(__fmul_rn(0.5f, reach), scale));
    out.words[3] |= 0x80000000u | bf16_above(out.reach);
    return out;
}

// ---- rows ----

// Largest 1/S, |b|/S and t/S of rows that have terms.
struct __align__(16) stage_caps
{
    float inverse, bias, reach, unused;
};

__device__ __forceinline__ stage_caps join_caps(const stage_caps &a, const stage_caps &b)
{
    return {fmaxf(a.inverse, b.inverse), fmaxf(a.bias, b.bias), fmaxf(a.reach, b.reach), 0.0f};
}

__device__ __forceinline__ bool are_within(const stage_caps &a, const stage_caps &b)
{
    return a.inverse <= b.inverse && a.bias <= b.bias && a.reach <= b.reach;
}

// As raise_caps of key_terms.cuh. A row that is not fit costs more here: it is finished for every
// query.
__device__ __forceinline__ bool raise_caps(float inverse, float bias, float reach, stage_caps &caps)
{
    row_caps own = {caps.inverse, caps.bias};
    const bool may_be = reach < 0x1p60f; // not if NaN
    const bool is_fit = raise_caps(may_be ? inverse : 0.0f, bias, 32.0f, own);
    const float most = most_of_warp(is_fit ? reach : 0.0f);
    caps = {own.inverse, own.bias, fmaxf(caps.reach, 1.25f * most), 0.0f};
    return is_fit;
}

// A lane's row as eight bf16, as make_row_terms. tail >= 0.
__device__ __forceinline__ uint4 make_stage_terms(float scale, float bias, float tail, bool exists,
                                                  stage_caps &caps)
{
    const float inverse = reciprocal(scale);
    const float own = __fmul_rn(bias, inverse), reach = __fmul_rn(tail, inverse);
    bool is_fit = exists & (inverse > 0) & (inverse <= caps.inverse) & (fabsf(own) <= caps.bias) &
                  (reach <= caps.reach); // not if NaN
    if (__any_sync(all_lanes, exists & !is_fit))
        is_fit |= raise_caps(exists ? inverse : 0.0f, own, reach, caps);
    uint4 terms = terms_of_row(inverse, own, exists, is_fit);
    terms.w |= bf16_above(is_fit ? reach : 0.0f);
    return terms;
}

// ---- pairs ----

// A, as far as caps go.
__device__ __forceinline__ float terms_of(const stage_query &query, const stage_caps &caps)
{
    return __fmaf_rn(query.limit, caps.inverse,
                     __fmaf_rn(query.reach, caps.reach, __fmul_rn(query.bias, caps.bias)));
}

} // namespace bsw

#endif
