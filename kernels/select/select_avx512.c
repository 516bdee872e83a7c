// SPDX-License-Identifier: Apache-2.0
// A bundle of 32 rows is two registers. A filter's common case, no row of the bundle at the limit,
// ends at one branch; rows that pass are compressed in registers and stored masked, since a
// compressing store to memory is microcode on some CPUs.
#include <immintrin.h>

#include "kernels/select/select.h"
#include "kernels/select/select_queue.h"
#include "kernels/select/select_quick.h"

// Scores of 16 keys: bits ^ (negative ? all ones : sign bit).
static inline __m512i scores_of(__m512 keys)
{
    __m512i bits = _mm512_castps_si512(_mm512_add_ps(keys, _mm512_setzero_ps()));
    __m512i flip = _mm512_or_si512(_mm512_srai_epi32(bits, 31), _mm512_set1_epi32(INT32_MIN));
    return _mm512_xor_si512(bits, flip);
}

static inline size_t append8(__m512i candidates, __mmask8 pass, uint64_t *out)
{
    size_t count = (size_t)__builtin_popcount(pass);
    _mm512_mask_storeu_epi64(out, (__mmask8)_bzhi_u32(0xff, (unsigned)count),
                             _mm512_maskz_compress_epi64(pass, candidates));
    return count;
}

// Packs and appends those of 16 rows, first_row on, whose bit in pass is 1.
static inline size_t append16(__m512i scores, __mmask16 pass, uint32_t first_row, uint64_t *out)
{
    if (!pass) return 0;
    const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i high =
        _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i rows = _mm512_sub_epi32(_mm512_set1_epi32((int)~first_row), lanes); // ~(first + lane)
    size_t count = append8(_mm512_permutex2var_epi32(rows, low, scores), (__mmask8)pass, out);
    return count + append8(_mm512_permutex2var_epi32(rows, high, scores), (__mmask8)(pass >> 8),
                           out + count);
}

static size_t avx512_filter_integer(const int32_t *dots, const uint32_t *masks, size_t num_bundles,
                                    uint32_t first_row, uint32_t limit, uint64_t *out)
{
    const __m512i least = _mm512_set1_epi32(bsw_score_to_integer(limit));
    const __m512i flip = _mm512_set1_epi32(INT32_MIN);
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        __m512i low = _mm512_load_si512(dots + 32 * b);
        __m512i high = _mm512_load_si512(dots + 32 * b + 16);
        uint32_t pass = _mm512_kunpackw(_mm512_cmpge_epi32_mask(high, least),
                                        _mm512_cmpge_epi32_mask(low, least)) &
                        masks[b];
        if (!pass) continue;
        uint32_t row = first_row + (uint32_t)(32 * b);
        count += append16(_mm512_xor_si512(low, flip), (__mmask16)pass, row, out + count);
        count +=
            append16(_mm512_xor_si512(high, flip), (__mmask16)(pass >> 16), row + 16, out + count);
    }
    return count;
}

static inline __m512 affine_keys(const int32_t *dots, const uint16_t *scales, const float *biases,
                                 __m512 query_scale)
{
    __m512 scale = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)scales));
    __m512 scaled = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_load_si512(dots)));
    return _mm512_fmadd_ps(query_scale, scaled, _mm512_load_ps(biases));
}

static size_t avx512_filter_affine(const int32_t *dots, const uint16_t *scales, const float *biases,
                                   float query_scale, const uint32_t *masks, size_t num_bundles,
                                   uint32_t first_row, uint32_t limit, uint64_t *out)
{
    const __m512 least = _mm512_set1_ps(bsw_float_limit(limit));
    const __m512 scale = _mm512_set1_ps(query_scale);
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        size_t i = 32 * b;
        __m512 low = affine_keys(dots + i, scales + i, biases + i, scale);
        __m512 high = affine_keys(dots + i + 16, scales + i + 16, biases + i + 16, scale);
        uint32_t pass = _mm512_kunpackw(_mm512_cmp_ps_mask(high, least, _CMP_GE_OQ),
                                        _mm512_cmp_ps_mask(low, least, _CMP_GE_OQ)) &
                        masks[b];
        if (!pass) continue;
        uint32_t row = first_row + (uint32_t)i;
        count += append16(scores_of(low), (__mmask16)pass, row, out + count);
        count += append16(scores_of(high), (__mmask16)(pass >> 16), row + 16, out + count);
    }
    return count;
}

// A mask's places, ascending.
static inline size_t append_places(uint32_t pass, uint32_t first, uint32_t *places)
{
    size_t count = 0;
    for (; pass; pass &= pass - 1) places[count++] = first + (uint32_t)__builtin_ctz(pass);
    return count;
}

static size_t avx512_filter_reach(const int32_t *dots, const uint16_t *scales, const float *biases,
                                  const uint16_t *tails, float query_scale, float reach,
                                  const uint32_t *masks, size_t num_bundles, float limit,
                                  uint32_t *places)
{
    const __m512 least = _mm512_set1_ps(limit), factor = _mm512_set1_ps(query_scale),
                 tail_factor = _mm512_set1_ps(reach);
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        __mmask16 pass[2];
        for (size_t h = 0; h < 2; h++) {
            size_t i = 32 * b + 16 * h;
            __m512 scale = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(scales + i)));
            __m512 tail = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(tails + i)));
            __m512 scaled = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_load_si512(dots + i)));
            __m512 most = _mm512_fmadd_ps(tail_factor, tail, _mm512_load_ps(biases + i));
            pass[h] = _mm512_cmp_ps_mask(_mm512_fmadd_ps(factor, scaled, most), least, _CMP_GE_OQ);
        }
        uint32_t both = _mm512_kunpackw(pass[1], pass[0]) & masks[b];
        if (both) count += append_places(both, (uint32_t)(32 * b), places + count);
    }
    return count;
}

BSW_QUICK_INLINE size_t avx512_partition(const uint64_t *source, size_t n, uint64_t pivot,
                                         uint64_t *winners, uint64_t *losers)
{
    const __m512i least = _mm512_set1_epi64((long long)pivot);
    size_t num_winners = 0, i = 0;
    for (; i + 8 <= n; i += 8) { // whole stores end at or before the last place read
        __m512i values = _mm512_loadu_si512(source + i);
        __mmask8 win = _mm512_cmpge_epu64_mask(values, least);
        _mm512_storeu_si512(winners + num_winners, _mm512_maskz_compress_epi64(win, values));
        _mm512_storeu_si512(losers + i - num_winners,
                            _mm512_maskz_compress_epi64((__mmask8)~win, values));
        num_winners += (size_t)__builtin_popcount(win);
    }
    __mmask8 valid = (__mmask8)_bzhi_u32(0xff, (unsigned)(n - i));
    __m512i values = _mm512_maskz_loadu_epi64(valid, source + i);
    __mmask8 win = _mm512_mask_cmpge_epu64_mask(valid, values, least);
    append8(values, valid & (__mmask8)~win, losers + i - num_winners);
    return num_winners + append8(values, win, winners + num_winners);
}

static size_t avx512_keep_best(uint64_t *candidates, size_t n, size_t keep, uint64_t *scratch)
{
    return bsw_quick_keep(candidates, n, keep, scratch, avx512_partition);
}

static size_t count_above(const uint64_t *scores, size_t n, __m512i worst)
{
    size_t above = 0;
    for (size_t i = 0; i < n; i += 8) {
        __mmask8 valid = (__mmask8)_bzhi_u32(0xff, n - i < 8 ? (unsigned)(n - i) : 8);
        __m512i eight = _mm512_maskz_loadu_epi64(valid, scores + i);
        above += (size_t)__builtin_popcount(_mm512_mask_cmpgt_epu64_mask(valid, eight, worst));
    }
    return above;
}

// A step writes no further than it has read.
static uint64_t avx512_keep_exact(uint64_t *scores, uint32_t *rows, size_t n, size_t keep,
                                  uint64_t *scratch)
{
    const uint64_t worst = bsw_quick_nth(scores, n, keep, scratch, avx512_partition);
    const __m512i least = _mm512_set1_epi64((long long)worst);
    unsigned ties = (unsigned)(keep - count_above(scores, n, least));
    for (size_t i = 0, count = 0; i < n; i += 8) {
        __mmask8 valid = (__mmask8)_bzhi_u32(0xff, n - i < 8 ? (unsigned)(n - i) : 8);
        __m512i eight = _mm512_maskz_loadu_epi64(valid, scores + i);
        __m256i eight_rows = _mm256_maskz_loadu_epi32(valid, rows + i);
        unsigned tied = _mm512_mask_cmpeq_epu64_mask(valid, eight, least);
        tied = _pdep_u32(_bzhi_u32(0xff, ties < 8 ? ties : 8), tied); // the first of them
        ties -= (unsigned)__builtin_popcount(tied);
        __mmask8 kept = (__mmask8)(_mm512_mask_cmpgt_epu64_mask(valid, eight, least) | tied);
        __mmask8 lanes = (__mmask8)_bzhi_u32(0xff, (unsigned)__builtin_popcount(kept));
        _mm512_mask_storeu_epi64(scores + count, lanes, _mm512_maskz_compress_epi64(kept, eight));
        _mm256_mask_storeu_epi32(rows + count, lanes,
                                 _mm256_maskz_compress_epi32(kept, eight_rows));
        count += (size_t)__builtin_popcount(kept);
    }
    return worst;
}

static void put_lanes(const uint64_t *candidates, size_t queue_length, uint64_t *queues)
{
    __m512i values = _mm512_loadu_si512(candidates);
    const uint64_t *worst = queues + (queue_length - 1) * BSW_QUEUE_THREADS;
    if (_mm512_cmpgt_epu64_mask(values, _mm512_loadu_si512(worst)) == 0) return;
    for (size_t slot = 0; slot < queue_length; slot++, queues += BSW_QUEUE_THREADS) {
        __m512i others = _mm512_loadu_si512(queues);
        _mm512_storeu_si512(queues, _mm512_max_epu64(values, others));
        values = _mm512_min_epu64(values, others);
    }
}

static void avx512_queue_insert(const uint64_t *candidates, size_t n, size_t queue_length,
                                uint64_t *queues)
{
    bsw_queue_insert(candidates, n, queue_length, queues, put_lanes);
}

const struct bsw_select_table bsw_select_avx512 = {
    .level = "avx512",
    .filter_integer = avx512_filter_integer,
    .filter_affine = avx512_filter_affine,
    .filter_reach = avx512_filter_reach,
    .filter_places = bsw_filter_places,
    .queue_insert = avx512_queue_insert,
    .keep_best = avx512_keep_best,
    .keep_exact = avx512_keep_exact,
};
