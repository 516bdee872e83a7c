// SPDX-License-Identifier: Apache-2.0
// A bound on dots below which no row of a bundle can pass, of the largest scale, the smallest and
// the largest bias of its rows: most tiles hold no row that passes, and one comparison of the
// smallest of a few sums says so for all of them. What reaches it is looked at as ever, so it is to
// be low enough and need not be the best.
//
// Why it is low enough. A row with scale s >= 0 and bias b passes if its key, fma(q, rn(s * f), b)
// rounded, is at least the limit L; f is the dot rounded, q > 0 the query's scale, e = 2^-24. A sum
// that rounds to L or more is at least L - e |L| - 2^-150, so, with B the largest bias and
//     d = round down(round down(L - 2 e |L| - 2^-140) - B)   <=  L - e |L| - 2^-150 - b,
// the row passes only if q * rn(s * f) >= d. Three cases:
//   d > 0   The dot is positive, and q s dot (1 + e)^2 >= d: dot >= d / (q * largest s) / (1 +
//   e)^2. d < 0   A dot of 0 or more may pass; of one below, q s |dot| (1 - e)^2 <= |d|, so
//           |dot| <= |d| / (q * smallest s) / (1 - e)^2, which is infinite where the smallest is 0.
//   d = 0   q * rn(s * f) >= 0: a dot of 0 or more; of a scale of 0, b <= B < L, whatever the dot.
// The quotients are computed with errors of two units in the last place each, the products with
// half a unit: 2^-19 more or less is more than all of it. What a product loses by underflow is less
// than 2^-149 * 2^25, and the bound is rounded to an integer and lowered by one. Scales of queries
// beyond 2^-126 .. 2^126, where quotients are no longer that good, negative scales of rows, and NaN
// wherever it comes from give a bound that every dot reaches.
#ifndef BITSWEEP_KERNELS_DOT_BOUND_CUH
#define BITSWEEP_KERNELS_DOT_BOUND_CUH

#include "kernels/device_scan/matrix_keys.cuh"

namespace bsw
{

constexpr float infinite = __builtin_huge_valf();

struct query_bound {
    float limit;   // L less its part
    float inverse; // of the query's scale
};

// x: at most 1 / largest scale, y: at least 1 / smallest, z: largest bias.
struct alignas(16) bundle_bound {
    float x, y, z, unused;
};

// limit: as float_limit gives it.
__device__ __forceinline__ query_bound make_query_bound(float limit, float scale)
{
    if (limit != limit) return {infinite, 1.0f}; // no row passes
    if (!(scale >= 0x1p-126f && scale <= 0x1p126f)) return {-infinite, 1.0f};
    const float finite = fminf(limit, 0x1.fffffep127f);
    const float part = __fmaf_rn(fminf(fabsf(finite), 0x1.fffffep127f), 0x1p-23f, 0x1p-140f);
    return {__fadd_rd(finite, -part), __fdividef(1.0f, scale)};
}

// largest, smallest: scales, by their bits, so that one that is negative or NaN is the largest.
__device__ __forceinline__ bundle_bound bound_of(float largest, float smallest, float bias)
{
    return {__fmul_rn(__fdividef(1.0f, largest), 1.0f - 0x1p-19f),
            smallest > 0.0f ? __fmul_rn(__fdividef(1.0f, smallest), 1.0f + 0x1p-19f) : infinite,
            __float_as_uint(largest) >> 31 ? infinite : bias, 0.0f};
}

// The bound of a lane's row; all 32 lanes call it, and have the same.
__device__ __forceinline__ bundle_bound make_bundle_bound(float scale, float bias)
{
    const uint32_t bits = __float_as_uint(scale);
    const uint32_t largest = __reduce_max_sync(all_lanes, bits);
    const float smallest = __uint_as_float(~__reduce_max_sync(all_lanes, ~bits));
    const uint32_t best = __reduce_max_sync(all_lanes, score_of_float(bias));
    const float most = __uint_as_float(best >> 31 ? best & 0x7fffffffu : ~best);
    return bound_of(__uint_as_float(largest), smallest, most);
}

// Bounds of four bundles at once: lane l has four rows of bundle l / 8, and its bound. Biases that
// are NaN are passed over, as such rows never pass.
__device__ __forceinline__ bundle_bound make_four_bounds(uint2 scales, float4 biases)
{
    const uint32_t most = __vmaxu2(scales.x, scales.y), least = ~__vminu2(scales.x, scales.y);
    // The largest in the lower half, the complement of the smallest in the upper one.
    uint32_t both = __vmaxu2(__byte_perm(most, least, 0x5410), __byte_perm(most, least, 0x7632));
    float bias = fmaxf(fmaxf(biases.x, biases.y), fmaxf(biases.z, biases.w));
#pragma unroll
    for (int step = 1; step < 8; step *= 2) {
        both = __vmaxu2(both, __shfl_xor_sync(all_lanes, both, step));
        bias = fmaxf(bias, __shfl_xor_sync(all_lanes, bias, step));
    }
    return bound_of(half_to_float(static_cast<uint16_t>(both)),
                    half_to_float(static_cast<uint16_t>(~both >> 16)), bias);
}

// Dots below it do not pass; |dot| < 2^22 for small_float.
template <key_kind KIND>
__device__ __forceinline__ int least_dot(const query_bound &query, const bundle_bound &bundle)
{
    constexpr float most = KIND == key_kind::small_float ? 0x1p22f : 0x1.fffffep30f;
    const float d = __fadd_rd(query.limit, -bundle.z);
    const float bound = __fmul_rn(__fmul_rn(d, query.inverse), d > 0.0f ? bundle.x : bundle.y);
    const float clamped = fminf(fmaxf(bound, -most), most); // NaN is -most
    // most is 2^31 - 128, and -most less one, rounded down, -2^31: below every dot.
    if (KIND == key_kind::any_float) return __float2int_rd(__fadd_rd(clamped, -1.0f));
    // 0x4b400000 is 1.5 * 2^23, whose mantissa counts ones.
    return __float_as_int(__fadd_rn(clamped, 12582911.0f)) - 0x4b400000;
}

// ---- what a scan keeps of a query ----

struct alignas(16) quick_query {
    int constant; // integer keys: what a sum must not pass
    query_bound bound;
};

// Queries that do not exist have limits that nothing reaches.
template <key_kind KIND>
__device__ __forceinline__ quick_query load_quick(const scan_arguments &a, uint32_t query)
{
    if (query >= a.queries.num_queries)
        return {KIND == key_kind::integer ? INT32_MIN : 0, {infinite, 1.0f}};
    const int constant = __ldg(a.queries.constants + query);
    const uint32_t limit = __ldg(a.lists.limits + query);
    if (KIND == key_kind::integer) return {most_sum(constant, limit), {}};
    return {constant, make_query_bound(float_limit(limit), __ldg(a.queries.scales + query))};
}

// Whether a row of the bundle with this sum or a greater one may pass.
template <key_kind KIND>
__device__ __forceinline__ bool may_pass(const quick_query &query, int least_sum,
                                         const bundle_bound &bundle)
{
    if (KIND == key_kind::integer) return least_sum <= query.constant;
    return query.constant - 2 * least_sum >= least_dot<KIND>(query.bound, bundle);
}

} // namespace bsw

#endif
