// A bundle of 32 rows is four registers; a filter's common case ends at one branch. Rows that pass
// are few once a limit stands, so they are appended one by one.
#include <immintrin.h>

#include "kernels/select/select.h"
#include "kernels/select/select_queue.h"
#include "kernels/select/select_quick.h"

static inline void store_scores(__m256 keys, uint32_t *scores)
{
    __m256i bits = _mm256_castps_si256(_mm256_add_ps(keys, _mm256_setzero_ps()));
    __m256i flip = _mm256_or_si256(_mm256_srai_epi32(bits, 31), _mm256_set1_epi32(INT32_MIN));
    _mm256_store_si256((__m256i *)scores, _mm256_xor_si256(bits, flip));
}

// Appends those of 32 rows, first_row on, whose bit in pass is 1.
static inline size_t append32(const uint32_t scores[32], uint32_t pass, uint32_t first_row,
                              uint64_t *out)
{
    size_t count = 0;
    for (; pass; pass &= pass - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(pass);
        out[count++] = bsw_candidate_pack(scores[lane], first_row + lane);
    }
    return count;
}

static inline uint32_t sign_bits(__m256i values)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(values));
}

static size_t avx2_filter_integer(const int32_t *dots, const uint32_t *masks, size_t num_bundles,
                                  uint32_t first_row, uint32_t limit, uint64_t *out)
{
    const __m256i least = _mm256_set1_epi32(bsw_score_to_integer(limit));
    _Alignas(32) uint32_t scores[32];
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        uint32_t fail = 0;
        for (int g = 0; g < 4; g++) {
            __m256i dot = _mm256_load_si256((const __m256i *)(dots + 32 * b + 8 * g));
            fail |= sign_bits(_mm256_cmpgt_epi32(least, dot)) << 8 * g;
        }
        uint32_t pass = ~fail & masks[b];
        if (!pass) continue;
        for (size_t lane = 0; lane < 32; lane++)
            scores[lane] = bsw_score_from_integer(dots[32 * b + lane]);
        count += append32(scores, pass, first_row + (uint32_t)(32 * b), out + count);
    }
    return count;
}

static inline __m256 affine_keys(const int32_t *dots, const uint16_t *scales, const float *biases,
                                 __m256 query_scale)
{
    __m256 scale = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)scales));
    __m256 dot = _mm256_cvtepi32_ps(_mm256_load_si256((const __m256i *)dots));
    return _mm256_fmadd_ps(query_scale, _mm256_mul_ps(scale, dot), _mm256_load_ps(biases));
}

// Bits of the lanes of keys[4] that are >= least.
static inline uint32_t reached(const __m256 keys[4], __m256 least)
{
    uint32_t pass = 0;
    for (int g = 0; g < 4; g++) {
        __m256 above = _mm256_cmp_ps(keys[g], least, _CMP_GE_OQ);
        pass |= (uint32_t)_mm256_movemask_ps(above) << 8 * g;
    }
    return pass;
}

static size_t append_keys(const __m256 keys[4], uint32_t pass, uint32_t first_row, uint64_t *out)
{
    _Alignas(32) uint32_t scores[32];
    for (int g = 0; g < 4; g++) store_scores(keys[g], scores + 8 * g);
    return append32(scores, pass, first_row, out);
}

static size_t avx2_filter_affine(const int32_t *dots, const uint16_t *scales, const float *biases,
                                 float query_scale, const uint32_t *masks, size_t num_bundles,
                                 uint32_t first_row, uint32_t limit, uint64_t *out)
{
    const __m256 least = _mm256_set1_ps(bsw_float_limit(limit));
    const __m256 scale = _mm256_set1_ps(query_scale);
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        __m256 keys[4];
        for (size_t g = 0; g < 4; g++) {
            size_t i = 32 * b + 8 * g;
            keys[g] = affine_keys(dots + i, scales + i, biases + i, scale);
        }
        uint32_t pass = reached(keys, least) & masks[b];
        if (pass) count += append_keys(keys, pass, first_row + (uint32_t)(32 * b), out + count);
    }
    return count;
}

static size_t avx2_filter_reach(const int32_t *dots, const uint16_t *scales, const float *biases,
                                const uint16_t *tails, float query_scale, float reach,
                                const uint32_t *masks, size_t num_bundles, float limit,
                                uint32_t *places)
{
    const __m256 least = _mm256_set1_ps(limit), factor = _mm256_set1_ps(query_scale),
                 tail_factor = _mm256_set1_ps(reach);
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        uint32_t pass = 0;
        for (size_t g = 0; g < 4; g++) {
            size_t i = 32 * b + 8 * g;
            __m256 scale = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(scales + i)));
            __m256 tail = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(tails + i)));
            __m256 dot = _mm256_cvtepi32_ps(_mm256_load_si256((const __m256i *)(dots + i)));
            __m256 most = _mm256_fmadd_ps(tail_factor, tail, _mm256_load_ps(biases + i));
            __m256 bound = _mm256_fmadd_ps(factor, _mm256_mul_ps(scale, dot), most);
            pass |= (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(bound, least, _CMP_GE_OQ)) << 8 * g;
        }
        for (pass &= masks[b]; pass; pass &= pass - 1)
            places[count++] = (uint32_t)(32 * b) + (uint32_t)__builtin_ctz(pass);
    }
    return count;
}

static void avx2_histogram(const int32_t *dots, const uint32_t *masks, size_t num_bundles,
                           int32_t dot_limit, uint64_t *counts)
{
    const __m256i most = _mm256_set1_epi32(dot_limit);
    _Alignas(32) uint32_t distances[32];
    for (size_t b = 0; b < num_bundles; b++) {
        for (size_t i = 0; i < 32; i += 8) {
            __m256i dot = _mm256_load_si256((const __m256i *)(dots + 32 * b + i));
            _mm256_store_si256((__m256i *)(distances + i),
                               _mm256_srli_epi32(_mm256_sub_epi32(most, dot), 1));
        }
        bsw_count_distances(distances, masks[b], counts);
    }
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

static inline __m256i compress(__m256i values, unsigned lanes)
{
    return _mm256_permutevar8x32_epi32(values,
                                       _mm256_load_si256((const __m256i *)compress_lanes[lanes]));
}

BSW_QUICK_INLINE size_t avx2_partition(const uint64_t *source, size_t n, uint64_t pivot,
                                       uint64_t *winners, uint64_t *losers)
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

static size_t avx2_keep_best(uint64_t *candidates, size_t n, size_t keep, uint64_t *scratch)
{
    return bsw_quick_keep(candidates, n, keep, scratch, avx2_partition);
}

static inline __m256i greater_epu64(__m256i a, __m256i b)
{
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, sign), _mm256_xor_si256(b, sign));
}

static uint64_t avx2_keep_exact(uint64_t *scores, uint32_t *rows, size_t n, size_t keep,
                                uint64_t *scratch)
{
    const uint64_t worst = bsw_quick_nth(scores, n, keep, scratch, avx2_partition);
    size_t above = 0, count = 0;
    for (size_t i = 0; i < n; i++) above += scores[i] > worst;
    size_t ties = keep - above;
    for (size_t i = 0; i < n; i++) { // without a branch
        uint64_t score = scores[i];
        size_t is_tie = score == worst && ties > 0;
        ties -= is_tie;
        scores[count] = score;
        rows[count] = rows[i];
        count += (size_t)(score > worst) | is_tie;
    }
    return worst;
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

static void avx2_queue_insert(const uint64_t *candidates, size_t n, size_t queue_length,
                              uint64_t *queues)
{
    bsw_queue_insert(candidates, n, queue_length, queues, put_lanes);
}

const struct bsw_select_table bsw_select_avx2 = {
    .level = "avx2",
    .filter_integer = avx2_filter_integer,
    .filter_affine = avx2_filter_affine,
    .filter_reach = avx2_filter_reach,
    .filter_places = bsw_filter_places,
    .histogram = avx2_histogram,
    .queue_insert = avx2_queue_insert,
    .keep_best = avx2_keep_best,
    .keep_exact = avx2_keep_exact,
};
