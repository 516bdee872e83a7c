// Short lists, the usual case of one query, are sorted by counting for every entry how many go
// before it: quadratic, but 8 compares an instruction and no branch. Longer ones by radix.
#include <immintrin.h>

#include "kernels/merge/merge.h"
#include "kernels/merge/merge_radix.h"

#define FEW 192

static void sort_few(uint64_t *candidates, size_t n, uint64_t *scratch)
{
    const __m512i one = _mm512_set1_epi64(1);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 valid = (__mmask16)_bzhi_u32(0xffff, n - i < 16 ? (unsigned)(n - i) : 16);
        __m512i low = _mm512_maskz_loadu_epi64((__mmask8)valid, candidates + i);
        __m512i high = _mm512_maskz_loadu_epi64((__mmask8)(valid >> 8), candidates + i + 8);
        __m512i low_places = _mm512_setzero_si512(), high_places = _mm512_setzero_si512();
        for (size_t j = 0; j < n; j++) {
            const __m512i other = _mm512_set1_epi64((long long)candidates[j]);
            __mmask8 low_after = _mm512_cmpgt_epu64_mask(other, low);
            __mmask8 high_after = _mm512_cmpgt_epu64_mask(other, high);
            low_places = _mm512_mask_add_epi64(low_places, low_after, low_places, one);
            high_places = _mm512_mask_add_epi64(high_places, high_after, high_places, one);
        }
        _Alignas(64) uint64_t places[16];
        _mm512_store_si512(places, low_places);
        _mm512_store_si512(places + 8, high_places);
        for (size_t k = 0; k < 16 && i + k < n; k++) scratch[places[k]] = candidates[i + k];
    }
    memcpy(candidates, scratch, n * sizeof *candidates);
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

static void avx512_sort_candidates(uint64_t *candidates, size_t n, uint64_t *scratch)
{
    if (n <= 1) return;
    if (n <= FEW)
        sort_few(candidates, n, scratch);
    else
        bsw_radix_sort_candidates(candidates, n, varying_bits(candidates, n), scratch);
}

// Four entries fill a register; their scores are its 32-bit lanes 0, 4, 8, 12.
#define SCORE_LANES 0x1111

static inline __mmask16 first_lanes(size_t num_entries)
{
    return (__mmask16)_bzhi_u32(0xffff, (unsigned)num_entries * 4);
}

static uint32_t varying_score_bits(const struct bsw_ranked *entries, size_t n)
{
    const __m512i first = _mm512_set1_epi32((int)entries[0].score);
    __m512i varying = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        __m512i difference = _mm512_xor_si512(_mm512_loadu_si512(entries + i), first);
        varying = _mm512_or_si512(varying, difference);
    }
    __mmask16 valid = first_lanes(n - i);
    __m512i rest = _mm512_maskz_loadu_epi32(valid, entries + i);
    varying = _mm512_or_si512(varying, _mm512_maskz_xor_epi32(valid, rest, first));
    return (uint32_t)_mm512_mask_reduce_or_epi32(SCORE_LANES, varying);
}

// Keeps the entries that reach cutoff, in order; returns how many.
static size_t drop_below(struct bsw_ranked *entries, size_t n, uint32_t cutoff)
{
    const __m512i least = _mm512_set1_epi32((int)cutoff);
    size_t count = 0;
    for (size_t i = 0; i < n; i += 4) {
        __mmask16 valid = n - i < 4 ? first_lanes(n - i) : (__mmask16)0xffff;
        __m512i four = _mm512_maskz_loadu_epi32(valid, entries + i);
        unsigned reach = _mm512_mask_cmpge_epu32_mask(valid & SCORE_LANES, four, least);
        __m512i kept = _mm512_maskz_compress_epi32((__mmask16)(reach * 15), four);
        size_t num_kept = (size_t)__builtin_popcount(reach);
        _mm512_mask_storeu_epi32(entries + count, first_lanes(num_kept), kept);
        count += num_kept;
    }
    return count;
}

// As sort_few; position below the score makes equal scores differ, the earlier larger.
static void rank_few(struct bsw_ranked *entries, size_t n, struct bsw_ranked *scratch)
{
    uint64_t keys[FEW], sorted[FEW];
    for (size_t i = 0; i < n; i++)
        keys[i] = (uint64_t)entries[i].score << 32 | (UINT32_MAX - (uint32_t)i);
    sort_few(keys, n, sorted);
    memcpy(scratch, entries, n * sizeof *entries);
    for (size_t i = 0; i < n; i++) entries[i] = scratch[UINT32_MAX - (uint32_t)keys[i]];
}

static size_t avx512_best_ranked(struct bsw_ranked *entries, size_t n, size_t keep,
                                 struct bsw_ranked *scratch)
{
    const size_t kept = n < keep ? n : keep;
    if (kept == 0) return 0;
    if (n > FEW) {
        uint32_t varying = varying_score_bits(entries, n);
        if (keep < n) n = drop_below(entries, n, bsw_radix_cutoff(entries, n, keep, varying));
        if (n > FEW) bsw_radix_sort_ranked(entries, n, varying, scratch);
    }
    if (n <= FEW) rank_few(entries, n, scratch);
    return kept;
}

const struct bsw_merge_table bsw_merge_avx512 = {
    .level = "avx512",
    .sort_candidates = avx512_sort_candidates,
    .best_ranked = avx512_best_ranked,
};
