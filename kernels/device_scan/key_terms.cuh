// SPDX-License-Identifier: Apache-2.0
// Which pairs of row and query pass, from tensor cores: all that a float key adds to a dot is made
// a matrix product, too, so that of four sums or of 64 an AND says whether one may pass.
//
// With S the row's scale, b its bias, s the query's scale and L its limit, a key fma(s, rn(S *
// dot), b) that reaches L has, without any rounding,
//     dot + (1/s) (b/S) - (L/s) (1/S) >= -e,    e = 2^-20 (M + |b| / (s S)),
// M the largest |dot|. Both terms are products of a number of the query and one of the row: a
// product of rank 2. It is one step of mma of bf16, m16n8k8, in which every number is a sum of two
// bf16, high and low, and each term three products, all but low times low. Half of all of it is
// taken, since dot = c - 2 * sum; and the step adds them to 1.5 * 2^23 - c/2 - slack. There a float
// counts ones in its low bits: taken as an integer it is what the int8 products are then added to.
// In the end a pair goes on exactly if bit 22 has become 0. Sums themselves are had again by taking
// away what the same step gives once more.
//
// Why no row is lost: with A = |L/s| R + |1/s| B, where no row's 1/S exceeds R and no |b|/S exceeds
// B (row_caps), all halved,
// - numbers of a pair as two bf16 are off by at most 2^-16 each, the product that is left out is at
//   most 2^-16, the floats they come from are off by 2^-21: less than A * 2^-14 in all;
// - the device may cut each of the 7 products, and the sums of its steps, to 23 bits below the
//   largest exponent, which is the start's: less than 16; the start's own rounding and c odd: 1;
//   that bit 22 tells "below" from "not below" and not from "above": 1;
// - e/2: less than 1 + A * 2^-20, as M < 2^21.
// The slack is 24 + A * 2^-13, more than the sum. Nothing leaves the 2^22 ones to either side where
// bit 22 means that: |dot|/2 < 2^20, and where A is not below 2^20, or no number, the query is
// wild: all its pairs go on. So it is where its own number is too far for bf16, whatever the rows
// (far_to_infinity): infinite, it would make no number of a row's 0. A row whose own numbers are
// far beyond those of its bundle - scale 0 or far below the others' - has zeros in place of them
// and goes on for every query, by one more product, 1 * -2^21; one that is masked or not there has
// -1 in it.
#ifndef BITSWEEP_KERNELS_KEY_TERMS_CUH
#define BITSWEEP_KERNELS_KEY_TERMS_CUH

#include "kernels/device_scan/matrix_keys.cuh"

namespace bsw
{

constexpr float middle = 12582912.0f;     // 1.5 * 2^23
constexpr float aside = 2097152.0f;       // 2^21
constexpr float most_terms = 1048576.0f;  // 2^20
constexpr uint32_t still_above = 1 << 22; // of a sum: 1 where the pair does not pass
constexpr uint32_t aside_bf16 = 0xca00u, one_bf16 = 0x3f80u, minus_one_bf16 = 0xbf80u; // -2^21, ...

// Two bf16 whose sum is nearly the value, as upper halves of words.
struct split {
    uint32_t high, low;
};

__device__ __forceinline__ split split_float(float value)
{
    const uint32_t high = (__float_as_uint(value) + 0x8000u) & 0xffff0000u;
    const float rest = __fadd_rn(value, -__uint_as_float(high)); // exact
    return {high, (__float_as_uint(rest) + 0x8000u) & 0xffff0000u};
}

// ---- queries ----

// A query's number of a term, or infinity from 2^100 on: then A is infinite or, with rows that have
// zeros alone, no number.
__device__ __forceinline__ float far_to_infinity(float value)
{
    return fabsf(value) < 0x1p100f ? value : __uint_as_float(0x7f800000u);
}

struct __align__(16) key_query
{
    uint32_t words[4];        // eight bf16
    float limit, bias, start; // |L/s|/2, |1/s|/2; where sums start, but for the slack
    float unused;
};

// A query's high, high, low, high, high, low meets a row's high, low, high, high, low, high.
__device__ __forceinline__ key_query make_key_query(float limit, float bias, float start,
                                                    uint32_t flag)
{
    const split x = split_float(limit), y = split_float(bias);
    return {{x.high >> 16 | x.high, x.low >> 16 | y.high, y.high >> 16 | y.low, flag},
            fabsf(limit),
            fabsf(bias),
            start,
            0.0f};
}

// limit: as float_limit gives it.
__device__ __forceinline__ key_query key_query_of(float limit, float scale, int constant)
{
    const float start = __fadd_rn(middle, -__int2float_rn(constant >> 1));
    if (limit != limit) return make_key_query(0, 0, __fadd_rn(start, aside), 0);
    if (!(scale >= 0x1p-80f && scale <= 0x1p80f))
        return make_key_query(__uint_as_float(0x7f800000u), 0, start, aside_bf16);
    return make_key_query(far_to_infinity(__fdiv_rn(__fmul_rn(0.5f, limit), scale)),
                          __fdiv_rn(-0.5f, scale), start, aside_bf16);
}

// Queries that do not exist have sums that nothing brings below.
__device__ __forceinline__ key_query load_key_query(const scan_arguments &a, uint32_t query)
{
    if (query >= a.queries.num_queries) return make_key_query(0, 0, middle + aside, 0);
    return key_query_of(float_limit(__ldg(a.lists.limits + query)), __ldg(a.queries.scales + query),
                        __ldg(a.queries.constants + query));
}

// ---- rows ----

// Largest 1/S and |b|/S of rows that have terms.
struct __align__(8) row_caps
{
    float inverse, bias;
};

__device__ __forceinline__ bool are_within(const row_caps &a, const row_caps &b)
{
    return a.inverse <= b.inverse && a.bias <= b.bias;
}

__device__ __forceinline__ row_caps join_caps(const row_caps &a, const row_caps &b)
{
    return {fmaxf(a.inverse, b.inverse), fmaxf(a.bias, b.bias)};
}

__device__ __forceinline__ float most_of_warp(float value) // >= 0
{
    return __uint_as_float(__reduce_max_sync(all_lanes, __float_as_uint(value)));
}

// The rare way: raises the caps, by more than is needed, so that this is rare. Whether the lane's
// row is fit then: its 1/S is not more than `spread` times the least.
__device__ __forceinline__ bool raise_caps(float inverse, float bias, float spread, row_caps &caps)
{
    const bool is_number = inverse > 0 && inverse < 0x1p30f;
    const float least = __uint_as_float(
        ~__reduce_max_sync(all_lanes, ~(is_number ? __float_as_uint(inverse) : 0x7f800000u)));
    const bool is_fit = is_number && inverse <= spread * least && fabsf(bias) < 0x1p60f;
    const row_caps most = {most_of_warp(is_fit ? inverse : 0.0f),
                           most_of_warp(is_fit ? fabsf(bias) : 0.0f)};
    caps = join_caps(caps, {1.25f * most.inverse, 1.25f * most.bias});
    return is_fit;
}

// A row's 1/S and b/S as eight bf16.
__device__ __forceinline__ uint4 terms_of_row(float inverse, float own, bool exists, bool is_fit)
{
    const split u = split_float(is_fit ? inverse : 0.0f), v = split_float(is_fit ? own : 0.0f);
    return make_uint4(u.high >> 16 | u.low, u.high >> 16 | v.high, v.low >> 16 | v.high,
                      is_fit   ? 0
                      : exists ? one_bf16
                               : minus_one_bf16);
}

// A lane's row as eight bf16; caps: of the warp's rows so far. All 32 lanes call it.
__device__ __forceinline__ uint4 make_row_terms(float scale, float bias, bool exists,
                                                row_caps &caps)
{
    float inverse = reciprocal(scale), own = __fmul_rn(bias, inverse);
    bool is_fit = exists & (inverse > 0) & (inverse <= caps.inverse) &
                  (fabsf(own) <= caps.bias); // not if NaN
    if (__any_sync(all_lanes, exists & !is_fit))
        is_fit |= raise_caps(exists ? inverse : 0.0f, own, 4.0f, caps);
    return terms_of_row(inverse, own, exists, is_fit);
}

// ---- pairs ----

// What a lane of mma needs of two queries, rows g and g + 8: two bf16 of each, and where sums
// start, as one load from memory gives it and mma takes it: compilers copy registers otherwise.
struct __align__(8) key_pair
{
    unsigned pair[2];
};
struct __align__(16) key_start
{
    float sums[4];
};

// A, as far as caps go.
__device__ __forceinline__ float terms_of(const key_query &query, const row_caps &caps)
{
    return __fmaf_rn(query.limit, caps.inverse, __fmul_rn(query.bias, caps.bias));
}

// What follows serves other terms, too, whose terms_of tells A (stage_terms.cuh).
//
// Whether all pairs of the query go on.
template <class QUERY, class CAPS>
__device__ __forceinline__ bool is_wild(const QUERY &query, const CAPS &caps)
{
    return !(terms_of(query, caps) < most_terms);
}

// A wild query's sums have no terms and start so far below that all its pairs go on.
template <class QUERY, class CAPS>
__device__ __forceinline__ float make_start(const QUERY &query, const CAPS &caps)
{
    const float terms = terms_of(query, caps);
    return __fadd_rn(query.start, terms < most_terms ? -__fmaf_rn(terms, 0x1p-13f, 24.0f) : -aside);
}

// Not indexed at run time, for which a query of registers would be put in memory.
template <class QUERY>
__device__ __forceinline__ uint32_t word_of(const QUERY &query, uint32_t word)
{
    const uint32_t low = word & 1 ? query.words[1] : query.words[0];
    const uint32_t high = word & 1 ? query.words[3] : query.words[2];
    return word & 2 ? high : low;
}

template <class QUERY, class CAPS>
__device__ __forceinline__ key_pair make_words(const QUERY &first, const QUERY &second,
                                               const CAPS &caps, uint32_t word)
{
    return {{is_wild(first, caps) ? 0 : word_of(first, word),
             is_wild(second, caps) ? 0 : word_of(second, word)}};
}

template <class QUERY, class CAPS>
__device__ __forceinline__ key_start make_start(const QUERY &first, const QUERY &second,
                                                const CAPS &caps)
{
    const float starts[2] = {make_start(first, caps), make_start(second, caps)};
    return {{starts[0], starts[0], starts[1], starts[1]}};
}

// Four sums' start of a tile of mma.
__device__ __forceinline__ void begin_sums(int (&sums)[4], const key_pair &queries, unsigned rows,
                                           const key_start &start)
{
    float begun[4];
    mma_bf16_short(begun, queries.pair, rows, start.sums);
#pragma unroll
    for (int i = 0; i < 4; i++) sums[i] = __float_as_int(begun[i]);
}

} // namespace bsw

#endif
