// SPDX-License-Identifier: Apache-2.0
// encode on AVX2: four registers hold the 32 lanes of kernel_sums.h; the codes of 32 dimensions are
// packed to bytes, whose sign mask is a plane word.
#include <immintrin.h>
#include <string.h>

#include "common/codes/half.h"
#include "kernels/encode/encode.h"

#define INLINE static inline __attribute__((always_inline))

#define LANES  8
typedef __m256 floats;
typedef __m256i integers;
typedef __m256d doubles;

// Lanes 8k .. 8k + 7 of 32 numbers in v[k].
struct lanes {
    floats v[32 / LANES];
};

INLINE floats every(float number)
{
    return _mm256_set1_ps(number);
}

INLINE floats multiply_add(floats a, floats b, floats sum)
{
    return _mm256_fmadd_ps(a, b, sum);
}

// All-ones in the places 8k .. 8k + 7 that are below n.
INLINE __m256i lane_mask(size_t n, int k)
{
    __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((n > 32 ? 32 : (int)n) - 8 * k), places);
}

// n floats of 32 from x; the rest is +0.0 and not read. n is a constant 32 in the loops.
INLINE struct lanes load_lanes(const float *x, size_t n)
{
    struct lanes y;
    for (int k = 0; k < 4; k++) {
        y.v[k] =
            n >= 32 ? _mm256_loadu_ps(x + 8 * k) : _mm256_maskload_ps(x + 8 * k, lane_mask(n, k));
    }
    return y;
}

INLINE void store_lanes(float *x, size_t n, struct lanes y)
{
    for (int k = 0; k < 4; k++) {
        size_t end = 8 * (size_t)(k + 1);
        if (n >= end)
            _mm256_storeu_ps(x + 8 * k, y.v[k]);
        else if (n + 8 > end)
            _mm256_maskstore_ps(x + 8 * k, lane_mask(n, k), y.v[k]);
    }
}

// Lanes from n on keep s: adding +0.0 would turn a -0.0 there into +0.0.
INLINE struct lanes add_products(struct lanes a, struct lanes b, struct lanes s, size_t n)
{
    for (int k = 0; k < 4; k++) {
        __m256 sum = _mm256_fmadd_ps(a.v[k], b.v[k], s.v[k]);
        s.v[k] =
            n >= 32 ? sum : _mm256_blendv_ps(s.v[k], sum, _mm256_castsi256_ps(lane_mask(n, k)));
    }
    return s;
}

INLINE float tree_sum(struct lanes s)
{
    __m256 a = _mm256_add_ps(_mm256_add_ps(s.v[0], s.v[2]), _mm256_add_ps(s.v[1], s.v[3]));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

// Lanes 4k .. 4k + 3 in s[k].
INLINE double tree_sum_double(__m256d s[8])
{
    for (int h = 4; h > 0; h /= 2) {
        for (int k = 0; k < h; k++) s[k] = _mm256_add_pd(s[k], s[k + h]);
    }
    __m128d a = _mm_add_pd(_mm256_castpd256_pd128(s[0]), _mm256_extractf128_pd(s[0], 1));
    return _mm_cvtsd_f64(_mm_add_sd(a, _mm_unpackhi_pd(a, a)));
}

// The instruction quiets NaNs, the definition keeps their bits. NaNs are found by their halves:
// clang 14 takes a compare of the floats apart into scalars.
static void half_to_float(const uint16_t *numbers, size_t n, float *out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)(numbers + i));
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
        __m128i magnitudes = _mm_and_si128(halves, _mm_set1_epi16(0x7fff));
        __m128i nans = _mm_cmpgt_epi16(magnitudes, _mm_set1_epi16(0x7c00));
        if (_mm_movemask_epi8(nans) == 0) continue;
        for (size_t k = i; k < i + 8; k++) out[k] = bsw_half_to_float(numbers[k]);
    }
    for (; i < n; i++) out[i] = bsw_half_to_float(numbers[i]);
}

// Squares are never -0.0, so here lanes past the end may add +0.0.
INLINE void add_squares(const float *x, size_t n, __m256d s[8])
{
    struct lanes y = load_lanes(x, n);
    for (int k = 0; k < 4; k++) {
        __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(y.v[k]));
        __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(y.v[k], 1));
        s[2 * k] = _mm256_fmadd_pd(low, low, s[2 * k]);
        s[2 * k + 1] = _mm256_fmadd_pd(high, high, s[2 * k + 1]);
    }
}

// floor(v) clipped to [low, high]. A NaN gives low (the second operand of max).
INLINE __m256 clipped_floor(__m256 v, __m256 low, __m256 high)
{
    return _mm256_floor_ps(_mm256_min_ps(_mm256_max_ps(v, low), high));
}

// Floors of 32 dimensions as bytes in order: the two packs interleave 128-bit halves.
INLINE __m256i pack_bytes(struct lanes f)
{
    __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(f.v[0]), _mm256_cvtps_epi32(f.v[1]));
    __m256i high = _mm256_packs_epi32(_mm256_cvtps_epi32(f.v[2]), _mm256_cvtps_epi32(f.v[3]));
    __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}

// The plane words of 32 codes of one document: u = 2^(bits-1) - 1 - f is f with all bits but the
// sign turned. They are moved to the top of their bytes (what 16-bit shifts carry over the border
// stays below them), then each sign mask is a plane. word is plane 0's; planes are plane_stride
// apart.
INLINE void store_word(struct lanes f, unsigned bits, uint32_t valid, uint32_t *word,
                       size_t plane_stride)
{
    __m256i turn = _mm256_set1_epi8((char)((1 << (bits - 1)) - 1));
    __m256i u = _mm256_xor_si256(pack_bytes(f), turn);
    u = _mm256_slli_epi16(u, (int)(8 - bits));
    for (unsigned p = 0; p < bits; p++) {
        word[p * plane_stride] = (uint32_t)_mm256_movemask_epi8(u) & valid;
        u = _mm256_slli_epi16(u, 1);
    }
}

// The product: a tile of rows by 16 outputs lives in registers while the input dimensions go by. A
// panel of 16 columns of the rotation, DEPTH rows of it, is copied together so that it stays in the
// first cache whatever the stride (a stride of 4 KiB would put all of it into a few sets).
#define PANEL     16
#define TILE_ROWS 6
#define DEPTH     256

// Written out row by row: arrays of registers end up in memory with some compilers.
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

#define START_ROW(r)                                            \
    const float *a##r = centered + (r < rows ? r * stride : 0); \
    __m256 low##r = _mm256_setzero_ps(), high##r = low##r;      \
    if (r < rows && !fresh) {                                   \
        low##r = _mm256_load_ps(out + r * out_stride);          \
        high##r = _mm256_load_ps(out + r * out_stride + 8);     \
    }

#define STEP_ROW(r)                                    \
    if (r < rows) {                                    \
        __m256 x = _mm256_broadcast_ss(a##r + k);      \
        low##r = _mm256_fmadd_ps(x, b_low, low##r);    \
        high##r = _mm256_fmadd_ps(x, b_high, high##r); \
    }

#define STORE_ROW(r)                                        \
    if (r < rows) {                                         \
        _mm256_store_ps(out + r * out_stride, low##r);      \
        _mm256_store_ps(out + r * out_stride + 8, high##r); \
    }

// centered [rows][stride], panel [depth][panel_stride], out [rows][out_stride]; sums start at +0.0
// if `fresh`, else at out.
INLINE void project_tile(const float *centered, size_t stride, const float *panel,
                         size_t panel_stride, size_t depth, int fresh, float *out,
                         size_t out_stride, const int rows)
{
    EACH_ROW(START_ROW)
    __asm__("" : "+r"(a1), "+r"(a2), "+r"(a3), "+r"(a4), "+r"(a5)); // stay six pointers
    for (size_t k = 0; k < depth; k++, panel += panel_stride) {
        __m256 b_low = _mm256_load_ps(panel), b_high = _mm256_load_ps(panel + 8);
        EACH_ROW(STEP_ROW)
    }
    EACH_ROW(STORE_ROW)
}

// Adds c^2 of places first .. last - 1 of 32.
INLINE __m256i add_code_squares(__m256i sum, struct lanes c, size_t first, size_t last)
{
    for (int k = 0; k < 4; k++) {
        __m256i code = _mm256_cvtps_epi32(c.v[k]);
        __m256i inside = _mm256_andnot_si256(lane_mask(first, k), lane_mask(last, k));
        sum = _mm256_add_epi32(sum, _mm256_and_si256(_mm256_mullo_epi32(code, code), inside));
    }
    return sum;
}

INLINE uint32_t sum_integers(__m256i x)
{
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 1));
    return (uint32_t)_mm_cvtsi128_si32(sum);
}

#include "kernels/encode/encode_lanes.h"
#include "kernels/encode/encode_rows.h"

const struct bsw_encode_table bsw_encode_avx2 = {
    .level = "avx2",
    .to_float = to_float,
    .squared_norms = squared_norms,
    .xfbq = xfbq,
    .saq_center = saq_center,
    .saq_project = saq_project,
    .saq_quantize = saq_quantize,
};
