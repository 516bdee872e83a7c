// SPDX-License-Identifier: Apache-2.0
// Short lists, the usual case of one query, are sorted by counting for every entry how many go
// before it: quadratic, but 8 compares an instruction and no branch. Longer ones by radix.
#include <immintrin.h>

#include "kernels/merge/merge.h"

#define FEW 192

// places[i]: how many of n values are larger than value i. Room for 16 more places.
static void count_larger(const uint64_t *values, size_t n, uint64_t *places)
{
    const __m512i one = _mm512_set1_epi64(1);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 valid = (__mmask16)_bzhi_u32(0xffff, n - i < 16 ? (unsigned)(n - i) : 16);
        __m512i low = _mm512_maskz_loadu_epi64((__mmask8)valid, values + i);
        __m512i high = _mm512_maskz_loadu_epi64((__mmask8)(valid >> 8), values + i + 8);
        __m512i low_places = _mm512_setzero_si512(), high_places = _mm512_setzero_si512();
        for (size_t j = 0; j < n; j++) {
            const __m512i other = _mm512_set1_epi64((long long)values[j]);
            __mmask8 low_after = _mm512_cmpgt_epu64_mask(other, low);
            __mmask8 high_after = _mm512_cmpgt_epu64_mask(other, high);
            low_places = _mm512_mask_add_epi64(low_places, low_after, low_places, one);
            high_places = _mm512_mask_add_epi64(high_places, high_after, high_places, one);
        }
        _mm512_storeu_si512(places + i, low_places);
        _mm512_storeu_si512(places + i + 8, high_places);
    }
}

static uint64_t varying_bits(const uint64_t *values, size_t n)
{
    const __m512i first = _mm512_set1_epi64((long long)values[0]);
    __m512i varying = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m512i difference = _mm512_xor_si512(_mm512_loadu_si512(values + i), first);
        varying = _mm512_or_si512(varying, difference);
    }
    __mmask8 valid = (__mmask8)_bzhi_u32(0xff, (unsigned)(n - i));
    __m512i rest = _mm512_maskz_loadu_epi64(valid, values + i);
    varying = _mm512_or_si512(varying, _mm512_maskz_xor_epi64(valid, rest, first));
    return (uint64_t)_mm512_reduce_or_epi64(varying);
}

// Four entries fill a register; their scores are its 64-bit lanes 0, 2, 4, 6.
#define SCORE_LANES 0x55

static inline __mmask8 first_lanes(size_t num_entries)
{
    return (__mmask8)_bzhi_u32(0xff, (unsigned)num_entries * 2);
}

static uint64_t varying_score_bits(const struct bsw_ranked *entries, size_t n)
{
    const __m512i first = _mm512_set1_epi64((long long)entries[0].score);
    __m512i varying = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        __m512i difference = _mm512_xor_si512(_mm512_loadu_si512(entries + i), first);
        varying = _mm512_or_si512(varying, difference);
    }
    __mmask8 valid = first_lanes(n - i);
    __m512i rest = _mm512_maskz_loadu_epi64(valid, entries + i);
    varying = _mm512_or_si512(varying, _mm512_maskz_xor_epi64(valid, rest, first));
    return (uint64_t)_mm512_mask_reduce_or_epi64(SCORE_LANES, varying);
}

// Keeps the entries that reach cutoff, in order; returns how many.
static size_t drop_below(struct bsw_ranked *entries, size_t n, uint64_t cutoff)
{
    const __m512i least = _mm512_set1_epi64((long long)cutoff);
    size_t count = 0;
    for (size_t i = 0; i < n; i += 4) {
        __mmask8 valid = n - i < 4 ? first_lanes(n - i) : (__mmask8)0xff;
        __m512i four = _mm512_maskz_loadu_epi64(valid, entries + i);
        unsigned reach = _mm512_mask_cmpge_epu64_mask(valid & SCORE_LANES, four, least);
        __m512i kept = _mm512_maskz_compress_epi64((__mmask8)(reach * 3), four);
        size_t num_kept = (size_t)__builtin_popcount(reach);
        _mm512_mask_storeu_epi64(entries + count, first_lanes(num_kept), kept);
        count += num_kept;
    }
    return count;
}

#include "kernels/merge/merge_few.h"

const struct bsw_merge_table bsw_merge_avx512 = {
    .level = "avx512",
    .sort_candidates = sort_candidates,
    .best_ranked = best_ranked,
};
