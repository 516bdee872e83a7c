// SPDX-License-Identifier: Apache-2.0
// encode on AVX2: four registers hold the 32 lanes of kernel_sums.h; the codes of 32 dimensions are
// packed to bytes, whose sign mask is a plane word.
#include "kernels/encode/encode_lanes.h"

typedef __m256d doubles;

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
INLINE codes clipped_floor(floats v, floats low, floats high)
{
    v = _mm256_floor_ps(_mm256_min_ps(_mm256_max_ps(v, low), high));
    return (codes)_mm256_cvtps_epi32(v);
}

// Floors of 32 dimensions as bytes in order: the two packs interleave 128-bit halves.
INLINE __m256i pack_bytes(struct lane_codes f)
{
    __m256i low = _mm256_packs_epi32((__m256i)f.v[0], (__m256i)f.v[1]);
    __m256i high = _mm256_packs_epi32((__m256i)f.v[2], (__m256i)f.v[3]);
    __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}

// The plane words of 32 codes of one document: u = 2^(bits-1) - 1 - f is f with all bits but the
// sign turned. They are moved to the top of their bytes (what 16-bit shifts carry over the border
// stays below them), then each sign mask is a plane. word is plane 0's; planes are plane_stride
// apart.
INLINE void store_word(struct lane_codes f, unsigned bits, uint32_t valid, uint32_t *word,
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
