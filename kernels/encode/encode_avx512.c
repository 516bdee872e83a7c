// SPDX-License-Identifier: Apache-2.0
// encode on AVX-512: two registers hold the 32 lanes of kernel_sums.h, and two 16-bit masks make
// one plane word.
#include "kernels/encode/encode_lanes.h"

typedef __m512d doubles;

INLINE double tree_sum_double(const __m512d s[4])
{
    __m512d a = _mm512_add_pd(_mm512_add_pd(s[0], s[2]), _mm512_add_pd(s[1], s[3]));
    __m256d b = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    __m128d c = _mm_add_pd(_mm256_castpd256_pd128(b), _mm256_extractf128_pd(b, 1));
    return _mm_cvtsd_f64(_mm_add_sd(c, _mm_unpackhi_pd(c, c)));
}

// The instruction quiets NaNs, the definition keeps their bits. NaNs are found by their halves:
// clang 14 takes a compare of the floats apart into scalars.
static void half_to_float(const uint16_t *numbers, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 lanes = (__mmask16)first_lanes(n - i);
        __m256i halves = _mm256_maskz_loadu_epi16(lanes, numbers + i);
        _mm512_mask_storeu_ps(out + i, lanes, _mm512_cvtph_ps(halves));
        __m256i magnitudes = _mm256_and_si256(halves, _mm256_set1_epi16(0x7fff));
        unsigned nans = _mm256_cmpgt_epi16_mask(magnitudes, _mm256_set1_epi16(0x7c00));
        for (; nans != 0; nans &= nans - 1) {
            size_t at = i + (size_t)__builtin_ctz(nans);
            out[at] = bsw_half_to_float(numbers[at]);
        }
    }
}

// Squares are never -0.0, so here lanes past the end may add +0.0.
INLINE void add_squares(const float *x, size_t n, __m512d s[4])
{
    uint32_t lanes = first_lanes(n);
    for (int k = 0; k < 4; k++) {
        __m256 part = _mm256_maskz_loadu_ps((__mmask8)(lanes >> (8 * k)), x + 8 * k);
        __m512d wide = _mm512_cvtps_pd(part);
        s[k] = _mm512_fmadd_pd(wide, wide, s[k]);
    }
}

// The ends are integers, so clipping first gives the same; the second operand of max is what a NaN
// gives.
INLINE codes clipped_floor(floats v, floats low, floats high)
{
    v = _mm512_min_ps(_mm512_max_ps(v, low), high);
    return (codes)_mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

// The low bytes of two registers of 32-bit integers, in order.
INLINE __m256i low_bytes(__m512i low, __m512i high)
{
    __m128i places = _mm_setr_epi8(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60);
    __m512i order = _mm512_broadcast_i32x4(places);
    __m512i bytes = _mm512_permutexvar_epi8(order, low);
    bytes = _mm512_mask_permutexvar_epi8(bytes, 0xffff0000u, order, high);
    return _mm512_castsi512_si256(bytes);
}

// Codes are moved to the top of their bytes (what 16-bit shifts carry over the border stays below
// them), then each sign mask is a plane.
INLINE void store_word(struct lane_codes f, unsigned bits, uint32_t valid, uint32_t *word,
                       size_t plane_stride)
{
    __m256i turn = _mm256_set1_epi8((char)((1 << (bits - 1)) - 1));
    __m256i u = low_bytes((__m512i)f.v[0], (__m512i)f.v[1]);
    u = _mm256_slli_epi16(_mm256_xor_si256(u, turn), (int)(8 - bits));
    for (unsigned p = 0; p < bits; p++) {
        word[p * plane_stride] = (uint32_t)_mm256_movemask_epi8(u) & valid;
        u = _mm256_slli_epi16(u, 1);
    }
}

// The product: a tile of rows by 32 outputs lives in registers while the input dimensions go by. A
// panel of 32 columns of the rotation, DEPTH rows of it, is copied together so that it stays in the
// first cache whatever the stride (a stride of 4 KiB would put all of it into two sets).
#define PANEL     32
#define TILE_ROWS 12
#define DEPTH     192

// Written out row by row: arrays of registers end up in memory with some compilers. Rows are
// reached from four pointers, three rows each; hiding how they are related keeps compilers from
// making twelve, more than there are registers for.
#define EACH_ROW(DO) \
    DO(0, a0, 0)     \
    DO(1, a0, 1)     \
    DO(2, a0, 2)     \
    DO(3, a3, 0)     \
    DO(4, a3, 1)     \
    DO(5, a3, 2)     \
    DO(6, a6, 0)     \
    DO(7, a6, 1)     \
    DO(8, a6, 2)     \
    DO(9, a9, 0)     \
    DO(10, a9, 1)    \
    DO(11, a9, 2)

#define START_ROW(r, base, offset)                                   \
    __m512 low##r = _mm512_setzero_ps(), high##r = low##r;           \
    if (r < rows && !fresh) {                                        \
        low##r = _mm512_load_ps(out + (size_t)r * out_stride);       \
        high##r = _mm512_load_ps(out + (size_t)r * out_stride + 16); \
    }

#define STEP_ROW(r, base, offset)                                 \
    if (r < rows) {                                               \
        __m512 x = _mm512_set1_ps(base[(size_t)offset * stride]); \
        low##r = _mm512_fmadd_ps(x, b_low, low##r);               \
        high##r = _mm512_fmadd_ps(x, b_high, high##r);            \
    }

#define STORE_ROW(r, base, offset)                                   \
    if (r < rows) {                                                  \
        _mm512_store_ps(out + (size_t)r * out_stride, low##r);       \
        _mm512_store_ps(out + (size_t)r * out_stride + 16, high##r); \
    }

// centered [rows][stride], panel [depth][panel_stride], out [rows][out_stride]; sums start at +0.0
// if `fresh`, else at out.
INLINE void project_tile(const float *centered, size_t stride, const float *panel,
                         size_t panel_stride, size_t depth, int fresh, float *out,
                         size_t out_stride, const int rows)
{
    const float *a0 = centered, *a3 = a0 + (rows > 3 ? 3 * stride : 0);
    const float *a6 = a0 + (rows > 6 ? 6 * stride : 0), *a9 = a0 + (rows > 9 ? 9 * stride : 0);
    __asm__("" : "+r"(a0), "+r"(a3), "+r"(a6), "+r"(a9));
    EACH_ROW(START_ROW)
    for (size_t k = 0; k < depth; k++, panel += panel_stride, a0++, a3++, a6++, a9++) {
        __m512 b_low = _mm512_load_ps(panel), b_high = _mm512_load_ps(panel + 16);
        EACH_ROW(STEP_ROW)
    }
    EACH_ROW(STORE_ROW)
}

#include "kernels/encode/encode_rows.h"

const struct bsw_encode_table bsw_encode_avx512 = {
    .level = "avx512",
    .to_float = to_float,
    .squared_norms = squared_norms,
    .xfbq = xfbq,
    .saq_center = saq_center,
    .saq_project = saq_project,
    .saq_quantize = saq_quantize,
};
