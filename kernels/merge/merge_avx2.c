// SPDX-License-Identifier: Apache-2.0
// As the AVX-512 level: short lists by counting how many entries go before each, longer ones by
// radix.
#include <immintrin.h>

#include "kernels/merge/merge.h"

#define FEW 128

// places[i]: how many of n values are larger than value i. Room for 8 more places.
static void count_larger(const uint64_t *values, size_t n, uint64_t *places)
{
    _Alignas(32) int64_t keys[FEW]; // order turned signed, for the compare
    for (size_t i = 0; i < n; i++) keys[i] = (int64_t)(values[i] ^ (1ull << 63));
    for (size_t i = n; i % 8; i++) keys[i] = 0;
    for (size_t i = 0; i < n; i += 8) {
        __m256i low = _mm256_load_si256((const __m256i *)(keys + i));
        __m256i high = _mm256_load_si256((const __m256i *)(keys + i + 4));
        __m256i low_places = _mm256_setzero_si256(), high_places = _mm256_setzero_si256();
        for (size_t j = 0; j < n; j++) { // a true compare is -1
            const __m256i other = _mm256_set1_epi64x(keys[j]);
            low_places = _mm256_sub_epi64(low_places, _mm256_cmpgt_epi64(other, low));
            high_places = _mm256_sub_epi64(high_places, _mm256_cmpgt_epi64(other, high));
        }
        _mm256_storeu_si256((__m256i *)(places + i), low_places);
        _mm256_storeu_si256((__m256i *)(places + i + 4), high_places);
    }
}

static uint64_t varying_bits(const uint64_t *values, size_t n)
{
    const __m256i first = _mm256_set1_epi64x((long long)values[0]);
    __m256i varying = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        __m256i four = _mm256_loadu_si256((const __m256i *)(values + i));
        varying = _mm256_or_si256(varying, _mm256_xor_si256(four, first));
    }
    uint64_t rest = 0;
    for (; i < n; i++) rest |= values[i] ^ values[0];
    uint64_t lanes[4];
    _mm256_storeu_si256((__m256i *)lanes, varying);
    return rest | lanes[0] | lanes[1] | lanes[2] | lanes[3];
}

// Two entries fill a register; their scores are its 64-bit lanes 0 and 2.
static uint64_t varying_score_bits(const struct bsw_ranked *entries, size_t n)
{
    const __m256i first = _mm256_set1_epi64x((long long)entries[0].score);
    __m256i varying = _mm256_setzero_si256();
    for (size_t i = 0; i + 2 <= n; i += 2) {
        __m256i two = _mm256_loadu_si256((const __m256i *)(entries + i));
        varying = _mm256_or_si256(varying, _mm256_xor_si256(two, first));
    }
    uint64_t last = entries[n - 1].score ^ entries[0].score;
    return last | (uint64_t)_mm256_extract_epi64(varying, 0) |
           (uint64_t)_mm256_extract_epi64(varying, 2);
}

// Keeps the entries that reach cutoff, in order; returns how many. Every entry is stored, and
// stays if the count moves past it: no branch, and never beyond the place read.
static size_t drop_below(struct bsw_ranked *entries, size_t n, uint64_t cutoff)
{
    const __m256i flip = _mm256_set1_epi64x(INT64_MIN); // the compare is a signed one
    const __m256i least = _mm256_xor_si256(_mm256_set1_epi64x((long long)cutoff), flip);
    size_t count = 0, i = 0;
    for (; i + 2 <= n; i += 2) {
        __m256i two = _mm256_loadu_si256((const __m256i *)(entries + i));
        __m256i below = _mm256_cmpgt_epi64(least, _mm256_xor_si256(two, flip));
        unsigned fail = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(below));
        _mm_storeu_si128((__m128i *)(entries + count), _mm256_castsi256_si128(two));
        count += (~fail & 1);
        _mm_storeu_si128((__m128i *)(entries + count), _mm256_extracti128_si256(two, 1));
        count += (~fail >> 2 & 1);
    }
    if (i < n && entries[i].score >= cutoff) entries[count++] = entries[i];
    return count;
}

#include "kernels/merge/merge_few.h"

const struct bsw_merge_table bsw_merge_avx2 = {
    .level = "avx2",
    .sort_candidates = sort_candidates,
    .best_ranked = best_ranked,
};
