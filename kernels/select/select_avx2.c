// SPDX-License-Identifier: Apache-2.0
// select on AVX2: a bundle of 32 rows is four registers.
#include <immintrin.h>

#include "kernels/select/select_queue.h"
#include "kernels/select/select_quick.h"

#define INLINE static inline __attribute__((always_inline))

#define LANES  8
typedef __m256 bundle_keys[32 / LANES];

INLINE void scores_of(const bundle_keys keys, uint32_t scores[32])
{
    for (int g = 0; g < 4; g++) {
        __m256i bits = _mm256_castps_si256(_mm256_add_ps(keys[g], _mm256_setzero_ps()));
        __m256i flip = _mm256_or_si256(_mm256_srai_epi32(bits, 31), _mm256_set1_epi32(INT32_MIN));
        _mm256_store_si256((__m256i *)(scores + 8 * g), _mm256_xor_si256(bits, flip));
    }
}

INLINE uint32_t sign_bits(__m256i values)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(values));
}

// Bits of the rows of a bundle whose dot is at least `least`.
INLINE uint32_t dots_reaching(const int32_t *dots, int32_t least)
{
    uint32_t fail = 0;
    for (int g = 0; g < 4; g++) {
        __m256i dot = _mm256_load_si256((const __m256i *)(dots + 8 * g));
        fail |= sign_bits(_mm256_cmpgt_epi32(_mm256_set1_epi32(least), dot)) << 8 * g;
    }
    return ~fail;
}

INLINE __m256 load_halves(const uint16_t *halves)
{
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)halves));
}

INLINE __m256 scaled_dots(const int32_t *dots, const uint16_t *scales)
{
    __m256 dot = _mm256_cvtepi32_ps(_mm256_load_si256((const __m256i *)dots));
    return _mm256_mul_ps(load_halves(scales), dot);
}

INLINE uint32_t reached(__m256 values, float least)
{
    __m256 above = _mm256_cmp_ps(values, _mm256_set1_ps(least), _CMP_GE_OQ);
    return (uint32_t)_mm256_movemask_ps(above);
}

// Keys of a bundle, and which are at least `least`.
INLINE uint32_t keys_reaching(const int32_t *dots, const uint16_t *scales, const float *biases,
                              float query_scale, float least, bundle_keys keys)
{
    uint32_t pass = 0;
    for (size_t g = 0, i = 0; g < 4; g++, i += 8) {
        keys[g] = _mm256_fmadd_ps(_mm256_set1_ps(query_scale), scaled_dots(dots + i, scales + i),
                                  _mm256_load_ps(biases + i));
        pass |= reached(keys[g], least) << i;
    }
    return pass;
}

// Which bounds of filter_reach are at least `least`.
INLINE uint32_t bounds_reaching(const int32_t *dots, const uint16_t *scales, const float *biases,
                                const uint16_t *tails, float query_scale, float reach, float least)
{
    uint32_t pass = 0;
    for (size_t i = 0; i < 32; i += 8) {
        __m256 most = _mm256_fmadd_ps(_mm256_set1_ps(reach), load_halves(tails + i),
                                      _mm256_load_ps(biases + i));
        __m256 bounds =
            _mm256_fmadd_ps(_mm256_set1_ps(query_scale), scaled_dots(dots + i, scales + i), most);
        pass |= reached(bounds, least) << i;
    }
    return pass;
}

// Which 32-bit halves to take so that the 64-bit lanes of a mask come first, in order.
static const _Alignas(32) uint32_t compress_lanes[16][8] = {
    {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {2, 3, 0, 1, 4, 5, 6, 7},
    {0, 1, 2, 3, 4, 5, 6, 7}, {4, 5, 0, 1, 2, 3, 6, 7}, {0, 1, 4, 5, 2, 3, 6, 7},
    {2, 3, 4, 5, 0, 1, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {6, 7, 0, 1, 2, 3, 4, 5},
    {0, 1, 6, 7, 2, 3, 4, 5}, {2, 3, 6, 7, 0, 1, 4, 5}, {0, 1, 2, 3, 6, 7, 4, 5},
    {4, 5, 6, 7, 0, 1, 2, 3}, {0, 1, 4, 5, 6, 7, 2, 3}, {2, 3, 4, 5, 6, 7, 0, 1},
    {0, 1, 2, 3, 4, 5, 6, 7},
};

INLINE __m256i compress(__m256i values, unsigned lanes)
{
    return _mm256_permutevar8x32_epi32(values,
                                       _mm256_load_si256((const __m256i *)compress_lanes[lanes]));
}

INLINE size_t partition(const uint64_t *source, size_t n, uint64_t pivot, uint64_t *winners,
                        uint64_t *losers)
{
    const __m256i flip = _mm256_set1_epi64x(INT64_MIN); // the compare is a signed one
    const __m256i least = _mm256_xor_si256(_mm256_set1_epi64x((long long)pivot), flip);
    size_t num_winners = 0, i = 0;
    for (; i + 4 <= n; i += 4) { // whole stores end at or before the last place read
        __m256i values = _mm256_loadu_si256((const __m256i *)(source + i));
        __m256i below = _mm256_cmpgt_epi64(least, _mm256_xor_si256(values, flip));
        unsigned lose = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(below));
        _mm256_storeu_si256((__m256i *)(winners + num_winners), compress(values, lose ^ 15));
        _mm256_storeu_si256((__m256i *)(losers + i - num_winners), compress(values, lose));
        num_winners += 4 - (size_t)__builtin_popcount(lose);
    }
    for (; i < n; i++) {
        uint64_t value = source[i];
        if (value >= pivot)
            winners[num_winners++] = value;
        else
            losers[i - num_winners] = value;
    }
    return num_winners;
}

INLINE __m256i greater_epu64(__m256i a, __m256i b)
{
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, sign), _mm256_xor_si256(b, sign));
}

static void put_lanes(const uint64_t *candidates, size_t queue_length, uint64_t *queues)
{
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)candidates);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(candidates + 4));
    for (size_t slot = 0; slot < queue_length; slot++, queues += BSW_QUEUE_THREADS) {
        __m256i *place = (__m256i *)(void *)queues;
        __m256i low_other = _mm256_loadu_si256(place), high_other = _mm256_loadu_si256(place + 1);
        __m256i low_wins = greater_epu64(low, low_other);
        __m256i high_wins = greater_epu64(high, high_other);
        _mm256_storeu_si256(place, _mm256_blendv_epi8(low_other, low, low_wins));
        _mm256_storeu_si256(place + 1, _mm256_blendv_epi8(high_other, high, high_wins));
        low = _mm256_blendv_epi8(low, low_other, low_wins);
        high = _mm256_blendv_epi8(high, high_other, high_wins);
    }
}

#include "kernels/select/select_bundles.h"

const struct bsw_select_table bsw_select_avx2 = {
    .level = "avx2",
    .filter_integer = filter_integer,
    .filter_affine = filter_affine,
    .filter_reach = filter_reach,
    .filter_places = bsw_filter_places,
    .queue_insert = queue_insert,
    .keep_best = keep_best,
    .keep_exact = keep_exact,
};
