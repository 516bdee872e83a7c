// encode on AVX-512: two registers hold the 32 lanes of kernel_sums.h, and two 16-bit masks make
// one plane word.
#include <immintrin.h>
#include <string.h>

#include "common/codes/half.h"
#include "kernels/encode/encode.h"

#define INLINE static inline __attribute__((always_inline))

// Lanes 0 .. 15 and 16 .. 31 of 32 numbers.
struct pair {
    __m512 low, high;
};

INLINE uint32_t first_lanes(size_t n)
{
    return n >= 32 ? 0xffffffffu : (1u << n) - 1u;
}

// Lanes outside of the mask are +0.0 and not read.
INLINE struct pair load_pair(const float *x, uint32_t lanes)
{
    return (struct pair){_mm512_maskz_loadu_ps((__mmask16)lanes, x),
                         _mm512_maskz_loadu_ps((__mmask16)(lanes >> 16), x + 16)};
}

// Lanes outside of the mask keep s: adding +0.0 would turn a -0.0 there into +0.0.
INLINE struct pair add_products(struct pair a, struct pair b, struct pair s, uint32_t lanes)
{
    return (struct pair){_mm512_mask3_fmadd_ps(a.low, b.low, s.low, (__mmask16)lanes),
                         _mm512_mask3_fmadd_ps(a.high, b.high, s.high, (__mmask16)(lanes >> 16))};
}

INLINE float tree_sum(struct pair s)
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

// The integer conversions are left to the compiler, which has vectors for them.
static void avx512_to_float(enum bsw_vector_type type, const void *numbers, size_t n, float *out)
{
    const uint8_t *bytes = numbers;
    const int8_t *signed_bytes = numbers;
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        memcpy(out, numbers, n * sizeof *out);
        break;
    case BSW_VECTOR_FLOAT16:
        half_to_float(numbers, n, out);
        break;
    case BSW_VECTOR_UINT8:
        for (size_t i = 0; i < n; i++) out[i] = bytes[i];
        break;
    case BSW_VECTOR_INT8:
        for (size_t i = 0; i < n; i++) out[i] = signed_bytes[i];
        break;
    default:
        memset(out, 0, n * sizeof *out);
        break;
    }
}

// Squares are never -0.0, so here lanes past the end may add +0.0.
INLINE void add_squares(const float *x, uint32_t lanes, __m512d s[4])
{
    for (int k = 0; k < 4; k++) {
        __m256 part = _mm256_maskz_loadu_ps((__mmask8)(lanes >> (8 * k)), x + 8 * k);
        __m512d wide = _mm512_cvtps_pd(part);
        s[k] = _mm512_fmadd_pd(wide, wide, s[k]);
    }
}

static void avx512_squared_norms(const float *rows, size_t num_rows, size_t dims, double *norms)
{
    for (size_t r = 0; r < num_rows; r++) {
        const float *x = rows + r * dims;
        __m512d s[4] = {_mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd(),
                        _mm512_setzero_pd()};
        size_t i = 0;
        for (; i + 32 <= dims; i += 32) add_squares(x + i, 0xffffffffu, s);
        if (i < dims) add_squares(x + i, first_lanes(dims - i), s);
        norms[r] = tree_sum_double(s);
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
INLINE void xfbq_word(const float *x, uint32_t valid, float factor, float scale, unsigned bits,
                      uint32_t *word, size_t plane_stride)
{
    float end = (float)(1 << (bits - 1));
    __m512 low = _mm512_set1_ps(-end), high = _mm512_set1_ps(end - 1.0f);
    struct pair v = load_pair(x, valid);
    v.low = _mm512_mul_ps(v.low, _mm512_set1_ps(factor));
    v.high = _mm512_mul_ps(v.high, _mm512_set1_ps(factor));
    v.low = _mm512_mul_ps(v.low, _mm512_set1_ps(scale));
    v.high = _mm512_mul_ps(v.high, _mm512_set1_ps(scale));
    v.low = _mm512_mul_ps(v.low, _mm512_set1_ps(end));
    v.high = _mm512_mul_ps(v.high, _mm512_set1_ps(end));
    store_word(clipped_floor(v.low, low, high), clipped_floor(v.high, low, high), bits, valid, word,
               plane_stride);
}

INLINE void xfbq_rows(const float *rows, size_t num_rows, size_t dims, const float *factors,
                      float scale, unsigned bits, uint32_t *planes)
{
    size_t plane_stride = (dims + 31) / 32 * BSW_BUNDLE_ROWS;
    for (size_t r = 0; r < num_rows; r++) {
        const float *x = rows + r * dims;
        uint32_t *word = planes + r;
        size_t i = 0;
        for (; i + 32 <= dims; i += 32, word += BSW_BUNDLE_ROWS) {
            xfbq_word(x + i, 0xffffffffu, factors[r], scale, bits, word, plane_stride);
        }
        if (i < dims) {
            xfbq_word(x + i, first_lanes(dims - i), factors[r], scale, bits, word, plane_stride);
        }
    }
}

static void avx512_xfbq(const float *rows, size_t num_rows, size_t dims, const float *factors,
                        float scale, unsigned bits, uint32_t *planes)
{
    if (num_rows < BSW_BUNDLE_ROWS) {
        memset(planes, 0, bits * ((dims + 31) / 32) * BSW_BUNDLE_ROWS * sizeof *planes);
    }
    switch (bits) {
#define CASE(constant)                                                     \
    case constant:                                                         \
        xfbq_rows(rows, num_rows, dims, factors, scale, constant, planes); \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
#undef CASE
    }
}

// One row's lanes of mean * centered; writes centered.
INLINE struct pair center_word(const float *x, const float *mean, __m512 factor, uint32_t lanes,
                               struct pair dot, float *centered)
{
    struct pair o = load_pair(x, lanes), m = load_pair(mean, lanes);
    o.low = _mm512_sub_ps(_mm512_mul_ps(o.low, factor), m.low);
    o.high = _mm512_sub_ps(_mm512_mul_ps(o.high, factor), m.high);
    _mm512_mask_storeu_ps(centered, (__mmask16)lanes, o.low);
    _mm512_mask_storeu_ps(centered + 16, (__mmask16)(lanes >> 16), o.high);
    return add_products(m, o, dot, lanes);
}

static void avx512_saq_center(const struct bsw_saq_frame *frame, const float *rows, size_t num_rows,
                              const float *factors, float *centered, float *mean_dots)
{
    size_t dims = frame->layout.dims;
    for (size_t r = 0; r < num_rows; r++) {
        const float *x = rows + r * dims;
        float *o = centered + r * dims;
        __m512 factor = _mm512_set1_ps(factors[r]);
        struct pair dot = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        size_t i = 0;
        for (; i + 32 <= dims; i += 32) {
            dot = center_word(x + i, frame->mean + i, factor, 0xffffffffu, dot, o + i);
        }
        if (i < dims) {
            dot = center_word(x + i, frame->mean + i, factor, first_lanes(dims - i), dot, o + i);
        }
        mean_dots[r] = tree_sum(dot);
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

typedef void (*tile_fn)(const float *centered, size_t stride, const float *panel,
                        size_t panel_stride, size_t depth, int fresh, float *out,
                        size_t out_stride);

#define TILE(rows)                                                                                \
    static void project_tile_##rows(const float *centered, size_t stride, const float *panel,     \
                                    size_t panel_stride, size_t depth, int fresh, float *out,     \
                                    size_t out_stride)                                            \
    {                                                                                             \
        project_tile(centered, stride, panel, panel_stride, depth, fresh, out, out_stride, rows); \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
#undef TILE

static const tile_fn tiles[TILE_ROWS + 1] = {NULL,           project_tile_1,  project_tile_2,
                                             project_tile_3, project_tile_4,  project_tile_5,
                                             project_tile_6, project_tile_7,  project_tile_8,
                                             project_tile_9, project_tile_10, project_tile_11,
                                             project_tile_12};

// All rows against one panel, in tiles as equal as they can be: no short last one.
static void project_panel(const float *centered, size_t num_rows, size_t stride, const float *panel,
                          size_t panel_stride, size_t depth, int fresh, float *out,
                          size_t out_stride)
{
    size_t num_tiles = (num_rows + TILE_ROWS - 1) / TILE_ROWS;
    for (size_t t = 0, row = 0; t < num_tiles; t++) {
        size_t rows = (num_rows - row) / (num_tiles - t);
        tiles[rows](centered + row * stride, stride, panel, panel_stride, depth, fresh,
                    out + row * out_stride, out_stride);
        row += rows;
    }
}

INLINE void copy_panel(const float *rotation, size_t stride, size_t depth, float *panel)
{
    for (size_t k = 0; k < depth; k++) {
        _mm512_store_ps(panel + k * PANEL, _mm512_load_ps(rotation + k * stride));
        _mm512_store_ps(panel + k * PANEL + 16, _mm512_load_ps(rotation + k * stride + 16));
    }
}

static void avx512_saq_project(const struct bsw_saq_frame *frame, const float *centered,
                               size_t num_rows, float *projected)
{
    _Alignas(64) float panel[DEPTH * PANEL];
    size_t dims = frame->layout.dims, padded_dims = frame->layout.padded_dims;
    for (size_t j = 0; j < dims; j += DEPTH) {
        size_t depth = dims - j < DEPTH ? dims - j : DEPTH;
        for (size_t i = 0; i < padded_dims; i += PANEL) {
            const float *rotation = frame->rotation + j * padded_dims + i;
            if (num_rows <= TILE_ROWS) { // used once: a copy would cost as much as the product
                project_panel(centered + j, num_rows, dims, rotation, padded_dims, depth, j == 0,
                              projected + i, padded_dims);
                continue;
            }
            copy_panel(rotation, padded_dims, depth, panel);
            project_panel(centered + j, num_rows, dims, panel, PANEL, depth, j == 0, projected + i,
                          padded_dims);
        }
    }
}

static float row_norm(const struct bsw_code_layout *layout, const float *o)
{
    float norm = 0.0f;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const float *part = o + layout->segments[s].padded_dim;
        struct pair sum = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        for (size_t w = 0; w < layout->segments[s].words; w++) {
            struct pair x = load_pair(part + 32 * w, 0xffffffffu);
            sum = add_products(x, x, sum, 0xffffffffu);
        }
        norm = s == 0 ? tree_sum(sum) : norm + tree_sum(sum);
    }
    return norm;
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
    struct pair e = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    __m512i squares = _mm512_setzero_si512();
    for (size_t i = 0; i < segment->dims; i += 32, word += BSW_BUNDLE_ROWS) {
        uint32_t valid = first_lanes(segment->dims - i);
        struct pair x = load_pair(o + i, 0xffffffffu), c;
        __m512i f_low = clipped_floor(_mm512_mul_ps(x.low, by), low, high);
        __m512i f_high = clipped_floor(_mm512_mul_ps(x.high, by), low, high);
        c.low = _mm512_fmadd_ps(two, _mm512_cvtepi32_ps(f_low), one); // small integers: exact
        c.high = _mm512_fmadd_ps(two, _mm512_cvtepi32_ps(f_high), one);
        e = add_products(x, c, e, 0xffffffffu);
        store_word(f_low, f_high, bits, valid, word, plane_stride);
        uint32_t beyond = lanes_beyond(i, stage_place) & valid;
        squares = add_code_squares(squares, f_low, (__mmask16)beyond);
        squares = add_code_squares(squares, f_high, (__mmask16)(beyond >> 16));
    }
    *tail += (uint32_t)_mm512_reduce_add_epi32(squares);
    return tree_sum(e);
}

static float quantize_any(const struct bsw_segment *segment, const float *o, float inverse,
                          size_t stage_place, uint32_t *word, uint32_t *tail)
{
    switch (segment->bits) {
#define CASE(constant) \
    case constant:     \
        return quantize_segment(segment, o, inverse, stage_place, constant, word, tail);
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
#undef CASE
    }
    return 0.0f;
}

// Codes of a row whose rms is known; returns den.
static float quantize_row(const struct bsw_saq_frame *frame, const float *o, float rms, size_t lane,
                          uint32_t *const *planes, uint32_t *tail)
{
    const struct bsw_code_layout *layout = &frame->layout;
    size_t place = 0; // of the segment's first dimension, without padding
    float den = 0.0f;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        const float *part = o + segment->padded_dim;
        float inverse = 1.0f / ((2.0f * frame->steps[s]) * rms);
        size_t stage_place = frame->stage_dims > place ? frame->stage_dims - place : 0;
        float e = quantize_any(segment, part, inverse, stage_place, planes[s] + lane, tail);
        den = __builtin_fmaf(frame->steps[s], e, den);
        place += segment->dims;
    }
    return den;
}

// Step by step over all rows: one row's sums, root and divisions form a chain that is longer than
// its work, and rows wait for nothing.
static void avx512_saq_quantize(const struct bsw_saq_frame *frame, const float *projected,
                                size_t num_rows, uint32_t *const *planes, float *norms,
                                float *scales, uint32_t *tails)
{
    const struct bsw_code_layout *layout = &frame->layout;
    float rms[BSW_BUNDLE_ROWS], dens[BSW_BUNDLE_ROWS];
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        memset(planes[s], 0, bsw_segment_bundle_words(&layout->segments[s]) * sizeof *planes[s]);
    }
    for (size_t r = 0; r < num_rows; r++) {
        norms[r] = row_norm(layout, projected + r * layout->padded_dims);
    }
    for (size_t r = 0; r < num_rows; r++) {
        rms[r] = __builtin_sqrtf(norms[r] / (float)layout->dims);
        tails[r] = 0;
    }
    for (size_t r = 0; r < num_rows; r++) {
        if (norms[r] < 0x1p-126f) continue;
        const float *o = projected + r * layout->padded_dims;
        dens[r] = quantize_row(frame, o, rms[r], r, planes, &tails[r]);
    }
    for (size_t r = 0; r < num_rows; r++) {
        int is_zero = norms[r] < 0x1p-126f;
        if (is_zero) norms[r] = 0.0f;
        scales[r] = is_zero ? 0.0f : norms[r] / dens[r];
        if (frame->metric == BSW_METRIC_L2) scales[r] = 2.0f * scales[r];
    }
}

const struct bsw_encode_table bsw_encode_avx512 = {
    .level = "avx512",
    .to_float = avx512_to_float,
    .squared_norms = avx512_squared_norms,
    .xfbq = avx512_xfbq,
    .saq_center = avx512_saq_center,
    .saq_project = avx512_saq_project,
    .saq_quantize = avx512_saq_quantize,
};
