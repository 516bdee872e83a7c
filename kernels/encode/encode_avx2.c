// encode on AVX2: four registers hold the 32 lanes of kernel_sums.h; the codes of 32 dimensions are
// packed to bytes, whose sign mask is a plane word.
#include <immintrin.h>
#include <string.h>

#include "common/codes/half.h"
#include "kernels/encode/encode.h"

#define INLINE static inline __attribute__((always_inline))

// Lanes 8k .. 8k + 7 of 32 numbers in v[k].
struct lanes {
    __m256 v[4];
};

INLINE uint32_t first_lanes(size_t n)
{
    return n >= 32 ? 0xffffffffu : (1u << n) - 1u;
}

// All-ones in the places 8k .. 8k + 7 that are below n.
INLINE __m256i lane_mask(size_t n, int k)
{
    __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((n > 32 ? 32 : (int)n) - 8 * k), places);
}

INLINE struct lanes zero_lanes(void)
{
    __m256 zero = _mm256_setzero_ps();
    return (struct lanes){{zero, zero, zero, zero}};
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

// The integer conversions are left to the compiler, which has vectors for them.
static void avx2_to_float(enum bsw_vector_type type, const void *numbers, size_t n, float *out)
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

static void avx2_squared_norms(const float *rows, size_t num_rows, size_t dims, double *norms)
{
    for (size_t r = 0; r < num_rows; r++) {
        const float *x = rows + r * dims;
        __m256d s[8];
        for (int k = 0; k < 8; k++) s[k] = _mm256_setzero_pd();
        size_t i = 0;
        for (; i + 32 <= dims; i += 32) add_squares(x + i, 32, s);
        if (i < dims) add_squares(x + i, dims - i, s);
        norms[r] = tree_sum_double(s);
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

// Three products in this order: scale times a power of two at once would differ where y * scale is
// subnormal.
INLINE void xfbq_word(const float *x, size_t n, float factor, float scale, unsigned bits,
                      uint32_t *word, size_t plane_stride)
{
    float end = (float)(1 << (bits - 1));
    __m256 low = _mm256_set1_ps(-end), high = _mm256_set1_ps(end - 1.0f);
    struct lanes v = load_lanes(x, n);
    for (int k = 0; k < 4; k++) {
        v.v[k] = _mm256_mul_ps(v.v[k], _mm256_set1_ps(factor));
        v.v[k] = _mm256_mul_ps(v.v[k], _mm256_set1_ps(scale));
        v.v[k] = _mm256_mul_ps(v.v[k], _mm256_set1_ps(end));
        v.v[k] = clipped_floor(v.v[k], low, high);
    }
    store_word(v, bits, first_lanes(n), word, plane_stride);
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
            xfbq_word(x + i, 32, factors[r], scale, bits, word, plane_stride);
        }
        if (i < dims) xfbq_word(x + i, dims - i, factors[r], scale, bits, word, plane_stride);
    }
}

static void avx2_xfbq(const float *rows, size_t num_rows, size_t dims, const float *factors,
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
INLINE struct lanes center_word(const float *x, const float *mean, float factor, size_t n,
                                struct lanes dot, float *centered)
{
    struct lanes o = load_lanes(x, n), m = load_lanes(mean, n);
    for (int k = 0; k < 4; k++) {
        o.v[k] = _mm256_sub_ps(_mm256_mul_ps(o.v[k], _mm256_set1_ps(factor)), m.v[k]);
    }
    store_lanes(centered, n, o);
    return add_products(m, o, dot, n);
}

static void avx2_saq_center(const struct bsw_saq_frame *frame, const float *rows, size_t num_rows,
                            const float *factors, float *centered, float *mean_dots)
{
    size_t dims = frame->layout.dims;
    for (size_t r = 0; r < num_rows; r++) {
        const float *x = rows + r * dims;
        float *o = centered + r * dims;
        struct lanes dot = zero_lanes();
        size_t i = 0;
        for (; i + 32 <= dims; i += 32) {
            dot = center_word(x + i, frame->mean + i, factors[r], 32, dot, o + i);
        }
        if (i < dims) {
            dot = center_word(x + i, frame->mean + i, factors[r], dims - i, dot, o + i);
        }
        mean_dots[r] = tree_sum(dot);
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
#undef TILE

static const tile_fn tiles[TILE_ROWS + 1] = {NULL,           project_tile_1, project_tile_2,
                                             project_tile_3, project_tile_4, project_tile_5,
                                             project_tile_6};

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
        _mm256_store_ps(panel + k * PANEL, _mm256_load_ps(rotation + k * stride));
        _mm256_store_ps(panel + k * PANEL + 8, _mm256_load_ps(rotation + k * stride + 8));
    }
}

static void avx2_saq_project(const struct bsw_saq_frame *frame, const float *centered,
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
        struct lanes sum = zero_lanes();
        for (size_t w = 0; w < layout->segments[s].words; w++) {
            struct lanes x = load_lanes(part + 32 * w, 32);
            sum = add_products(x, x, sum, 32);
        }
        norm = s == 0 ? tree_sum(sum) : norm + tree_sum(sum);
    }
    return norm;
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

// One segment of one row; returns e_s. Places count in this segment; word is the document's first.
INLINE float quantize_segment(const struct bsw_segment *segment, const float *o, float inverse,
                              size_t stage_place, unsigned bits, uint32_t *word, uint32_t *tail)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    float end = (float)(1 << (bits - 1));
    __m256 low = _mm256_set1_ps(-end), high = _mm256_set1_ps(end - 1.0f);
    struct lanes e = zero_lanes();
    __m256i squares = _mm256_setzero_si256();
    for (size_t i = 0; i < segment->dims; i += 32, word += BSW_BUNDLE_ROWS) {
        size_t n = segment->dims - i < 32 ? segment->dims - i : 32;
        struct lanes x = load_lanes(o + i, 32), f, c;
        for (int k = 0; k < 4; k++) {
            f.v[k] = clipped_floor(_mm256_mul_ps(x.v[k], _mm256_set1_ps(inverse)), low, high);
            c.v[k] = _mm256_fmadd_ps(_mm256_set1_ps(2.0f), f.v[k], _mm256_set1_ps(1.0f)); // exact
        }
        e = add_products(x, c, e, 32);
        store_word(f, bits, first_lanes(n), word, plane_stride);
        size_t first = stage_place > i ? stage_place - i : 0;
        if (first < n) squares = add_code_squares(squares, c, first, n);
    }
    *tail += sum_integers(squares);
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
static void avx2_saq_quantize(const struct bsw_saq_frame *frame, const float *projected,
                              size_t num_rows, uint32_t *const *planes, float *norms, float *scales,
                              uint32_t *tails)
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

const struct bsw_encode_table bsw_encode_avx2 = {
    .level = "avx2",
    .to_float = avx2_to_float,
    .squared_norms = avx2_squared_norms,
    .xfbq = avx2_xfbq,
    .saq_center = avx2_saq_center,
    .saq_project = avx2_saq_project,
    .saq_quantize = avx2_saq_quantize,
};
