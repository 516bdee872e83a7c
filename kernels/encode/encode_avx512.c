// SPDX-License-Identifier: Apache-2.0
// encode on AVX-512: two registers hold the 32 lanes of kernel_sums.h, and two 16-bit masks make
// one plane word.
#include <immintrin.h>
#include <string.h>

#include "common/codes/half.h"
#include "kernels/encode/encode.h"

#define INLINE static inline __attribute__((always_inline))

typedef __m512d doubles;

// Lanes 0 .. 15 and 16 .. 31 of 32 numbers.
struct lanes {
    __m512 low, high;
};

INLINE uint32_t first_lanes(size_t n)
{
    return n >= 32 ? 0xffffffffu : (1u << n) - 1u;
}

INLINE struct lanes zero_lanes(void)
{
    return (struct lanes){_mm512_setzero_ps(), _mm512_setzero_ps()};
}

// n floats of 32 from x; the rest is +0.0 and not read. n is a constant 32 in the loops.
INLINE struct lanes load_lanes(const float *x, size_t n)
{
    uint32_t lanes = first_lanes(n);
    return (struct lanes){_mm512_maskz_loadu_ps((__mmask16)lanes, x),
                          _mm512_maskz_loadu_ps((__mmask16)(lanes >> 16), x + 16)};
}

// Lanes from n on keep s: adding +0.0 would turn a -0.0 there into +0.0.
INLINE struct lanes add_products(struct lanes a, struct lanes b, struct lanes s, size_t n)
{
    uint32_t lanes = first_lanes(n);
    return (struct lanes){_mm512_mask3_fmadd_ps(a.low, b.low, s.low, (__mmask16)lanes),
                          _mm512_mask3_fmadd_ps(a.high, b.high, s.high, (__mmask16)(lanes >> 16))};
}

INLINE float tree_sum(struct lanes s)
{
    __m512 a = _mm512_add_ps(s.low, s.high);
    __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    c = _mm_add_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

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

// floor(v) clipped to [low, high]: the ends are integers, so clipping first gives the same. A NaN
// gives low (the second operand of max).
INLINE __m512i clipped_floor(__m512 v, __m512 low, __m512 high)
{
    v = _mm512_min_ps(_mm512_max_ps(v, low), high);
    return _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
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

// The plane words of 32 codes of one document: u = 2^(bits-1) - 1 - f is f with all bits but the
// sign turned. They are moved to the top of their bytes (what 16-bit shifts carry over the border
// stays below them), then each sign mask is a plane. word is plane 0's; planes are plane_stride
// apart.
INLINE void store_word(__m512i f_low, __m512i f_high, unsigned bits, uint32_t valid, uint32_t *word,
                       size_t plane_stride)
{
    __m256i turn = _mm256_set1_epi8((char)((1 << (bits - 1)) - 1));
    __m256i u = _mm256_xor_si256(low_bytes(f_low, f_high), turn);
    u = _mm256_slli_epi16(u, (int)(8 - bits));
    for (unsigned p = 0; p < bits; p++) {
        word[p * plane_stride] = (uint32_t)_mm256_movemask_epi8(u) & valid;
        u = _mm256_slli_epi16(u, 1);
    }
}

// Three products in this order: scale times a power of two at once would differ where y * scale is
// subnormal.
INLINE void xfbq_word(const float *x, size_t n, float factor, float scale, unsigned bits,
                      uint32_t *word, size_t plane_stride)
{
    float end = (float)(1 << (bits - 1));
    __m512 low = _mm512_set1_ps(-end), high = _mm512_set1_ps(end - 1.0f);
    struct lanes v = load_lanes(x, n);
    v.low = _mm512_mul_ps(v.low, _mm512_set1_ps(factor));
    v.high = _mm512_mul_ps(v.high, _mm512_set1_ps(factor));
    v.low = _mm512_mul_ps(v.low, _mm512_set1_ps(scale));
    v.high = _mm512_mul_ps(v.high, _mm512_set1_ps(scale));
    v.low = _mm512_mul_ps(v.low, _mm512_set1_ps(end));
    v.high = _mm512_mul_ps(v.high, _mm512_set1_ps(end));
    store_word(clipped_floor(v.low, low, high), clipped_floor(v.high, low, high), bits,
               first_lanes(n), word, plane_stride);
}

// One row's lanes of mean * centered; writes centered.
INLINE struct lanes center_word(const float *x, const float *mean, float factor, size_t n,
                                struct lanes dot, float *centered)
{
    struct lanes o = load_lanes(x, n), m = load_lanes(mean, n);
    uint32_t lanes = first_lanes(n);
    o.low = _mm512_sub_ps(_mm512_mul_ps(o.low, _mm512_set1_ps(factor)), m.low);
    o.high = _mm512_sub_ps(_mm512_mul_ps(o.high, _mm512_set1_ps(factor)), m.high);
    _mm512_mask_storeu_ps(centered, (__mmask16)lanes, o.low);
    _mm512_mask_storeu_ps(centered + 16, (__mmask16)(lanes >> 16), o.high);
    return add_products(m, o, dot, n);
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

// Adds (2f + 1)^2 of the lanes of a mask.
INLINE __m512i add_code_squares(__m512i sum, __m512i f, __mmask16 lanes)
{
    __m512i c = _mm512_add_epi32(_mm512_add_epi32(f, f), _mm512_set1_epi32(1));
    return _mm512_mask_add_epi32(sum, lanes, sum, _mm512_mullo_epi32(c, c));
}

// Lanes of a word that starts at place `at` whose place is at or beyond `stage`.
INLINE uint32_t lanes_beyond(size_t at, size_t stage)
{
    if (at >= stage) return 0xffffffffu;
    return stage - at >= 32 ? 0 : 0xffffffffu << (stage - at);
}

// One segment of one row; returns e_s. Places count in this segment; word is the document's first.
INLINE float quantize_segment(const struct bsw_segment *segment, const float *o, float inverse,
                              size_t stage_place, unsigned bits, uint32_t *word, uint32_t *tail)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    float end = (float)(1 << (bits - 1));
    __m512 low = _mm512_set1_ps(-end), high = _mm512_set1_ps(end - 1.0f);
    __m512 two = _mm512_set1_ps(2.0f), one = _mm512_set1_ps(1.0f), by = _mm512_set1_ps(inverse);
    struct lanes e = zero_lanes();
    __m512i squares = _mm512_setzero_si512();
    for (size_t i = 0; i < segment->dims; i += 32, word += BSW_BUNDLE_ROWS) {
        uint32_t valid = first_lanes(segment->dims - i);
        struct lanes x = load_lanes(o + i, 32), c;
        __m512i f_low = clipped_floor(_mm512_mul_ps(x.low, by), low, high);
        __m512i f_high = clipped_floor(_mm512_mul_ps(x.high, by), low, high);
        c.low = _mm512_fmadd_ps(two, _mm512_cvtepi32_ps(f_low), one); // small integers: exact
        c.high = _mm512_fmadd_ps(two, _mm512_cvtepi32_ps(f_high), one);
        e = add_products(x, c, e, 32);
        store_word(f_low, f_high, bits, valid, word, plane_stride);
        uint32_t beyond = lanes_beyond(i, stage_place) & valid;
        squares = add_code_squares(squares, f_low, (__mmask16)beyond);
        squares = add_code_squares(squares, f_high, (__mmask16)(beyond >> 16));
    }
    *tail += (uint32_t)_mm512_reduce_add_epi32(squares);
    return tree_sum(e);
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
