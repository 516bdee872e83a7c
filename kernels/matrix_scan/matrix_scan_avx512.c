// matrix_scan on AVX-512 VNNI.
//
// A block is up to 12 queries against a bundle: 24 accumulators in registers, and for 4 dimensions
// 14 loads (two of documents, a broadcast a query) to 24 dot products, so that nothing but the two
// units that multiply is busy. Sums go through the first cache to the epilogue, which ends for a
// query at one branch if none of the 32 rows reaches its limit; what passes is computed again.
//
// Integer keys take one compare: dot >= limit is sum <= (constant - limit) / 2. Float keys of short
// rows (at most 256 dimensions, even constants) start their sums at the bits of 1.5 * 2^23 less
// half the constant. As a float such a sum is 1.5 * 2^23 - dot / 2, without a conversion, and
// fma(-2 * scale, sum, 3 * 2^23 * scale) is scale * dot, rounded once: a half has 11 bits and 3 has
// 2, so the addend is exact.
#include <immintrin.h>
#include <string.h>

#include "common/result_order.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/select/select_quick.h"

#define INLINE         static inline __attribute__((always_inline))

#define BLOCK_QUERIES  12
#define RUN_BYTES      32768      // documents that all queries go over before the next ones
#define FAR_BYTES      8192       // planes to prefetch ahead; see plane_scan_avx512.c
#define MAX_SHORT_DIMS 256        // 256 * 255 * 127 < 2^23
#define SHORT_START    0x4b400000 // bits of 1.5 * 2^23

enum key_kind { INTEGER_KEYS, SHORT_FLOAT_KEYS, FLOAT_KEYS };

typedef int32_t bundle_sums[BSW_BUNDLE_ROWS];

// ---- planes to bytes ----

// One word of 16 documents: 8 groups of 4 dimensions, 64 bytes each. A byte of a window is 8 bits
// from any bit on of the 64 that two documents share; rotated, the bit wanted is where the code has
// it.
INLINE void unpack_word(const uint32_t *word, size_t plane_stride, unsigned bits, uint8_t *bytes)
{
    const __m512i first = _mm512_set1_epi64(0x2322212003020100);
    __m512i u[8];
    for (int g = 0; g < 8; g++) u[g] = _mm512_setzero_si512();
    for (unsigned p = 0; p < bits; p++) {
        unsigned place = bits - 1 - p;
        __m512i bit = _mm512_set1_epi8((char)(1 << place));
        __m512i x = _mm512_load_si512(word + p * plane_stride);
        x = _mm512_rolv_epi64(x, _mm512_set1_epi64(place));
        for (int g = 0; g < 8; g++) {
            __m512i start = _mm512_add_epi8(first, _mm512_set1_epi8((char)(4 * g)));
            __m512i window = _mm512_multishift_epi64_epi8(start, x);
            u[g] = _mm512_ternarylogic_epi32(u[g], window, bit, 0xf8); // u | (window & bit)
        }
    }
    for (int g = 0; g < 8; g++) _mm512_store_si512(bytes + 64 * g, u[g]);
}

// The part of a bundle's bytes that one segment fills.
INLINE void unpack_bundle(const struct bsw_segment *segment, const uint32_t *bundle,
                          size_t padded_dims, uint8_t *bytes)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    for (size_t w = 0; w < segment->words; w++, bundle += BSW_BUNDLE_ROWS, bytes += 512) {
        for (unsigned p = 0; p < segment->bits; p++) {
            const char *ahead = (const char *)(bundle + p * plane_stride) + FAR_BYTES;
            _mm_prefetch(ahead, _MM_HINT_T1);
            _mm_prefetch(ahead + 64, _MM_HINT_T1);
        }
        unpack_word(bundle, plane_stride, segment->bits, bytes);
        unpack_word(bundle + 16, plane_stride, segment->bits, bytes + 16 * padded_dims);
    }
}

static void avx512_unpack(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                          size_t num_bundles, uint8_t *bytes)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint8_t *out = bytes + 16 * (size_t)segment->padded_dim;
        for (size_t b = 0; b < num_bundles; b++) {
            const uint32_t *bundle = planes[s] + b * bsw_segment_bundle_words(segment);
            unpack_bundle(segment, bundle, layout->padded_dims, out);
            out += BSW_BUNDLE_ROWS * (size_t)layout->padded_dims;
        }
    }
}

static void avx512_unpack_query(const struct bsw_code_layout *layout, const uint32_t *words,
                                unsigned query_bits, int8_t *components, int32_t *constant)
{
    const __m256i one = _mm256_set1_epi8(1), full = _mm256_set1_epi8((char)((1 << query_bits) - 1));
    __m256i sum = _mm256_setzero_si256();
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        const __m256i weight = _mm256_set1_epi8((char)((1 << segment->bits) - 1));
        int8_t *out = components + segment->padded_dim;
        for (size_t w = 0; w < segment->words; w++) {
            size_t rest = segment->dims - 32 * w;
            __mmask32 valid = rest < 32 ? (__mmask32)((1u << rest) - 1) : UINT32_MAX;
            __m256i u = _mm256_setzero_si256();
            for (unsigned p = 0; p < query_bits; p++) {
                u = _mm256_add_epi8(u, u);
                u = _mm256_mask_add_epi8(u, words[p * segment->words + w], u, one);
            }
            __m256i q = _mm256_maskz_sub_epi8(valid, full, _mm256_add_epi8(u, u));
            _mm256_store_si256((__m256i *)(void *)(out + 32 * w), q);
            sum = _mm256_dpbusd_epi32(sum, weight, q);
        }
        words += (size_t)query_bits * segment->words;
    }
    *constant = _mm512_reduce_add_epi32(_mm512_zextsi256_si512(sum));
}

// ---- sums of a block ----

// Keeps a loaded value in its register: gcc would load it again for every use.
#define PIN(value) __asm__("" : "+v"(value))

// Queries are reached from four pointers, three each; hiding how they are related keeps compilers
// from making twelve, more than there are registers for.
#define EACH_QUERY(DO) \
    DO(0, q0, 0)       \
    DO(1, q0, 1)       \
    DO(2, q0, 2)       \
    DO(3, q3, 0)       \
    DO(4, q3, 1)       \
    DO(5, q3, 2)       \
    DO(6, q6, 0)       \
    DO(7, q6, 1)       \
    DO(8, q6, 2)       \
    DO(9, q9, 0)       \
    DO(10, q9, 1)      \
    DO(11, q9, 2)

#define START_QUERY(j, base, offset)                           \
    __m512i low##j = _mm512_setzero_si512(), high##j = low##j; \
    if (j < num) low##j = high##j = _mm512_set1_epi32(starts[j]);

#define STEP_QUERY(j, base, offset)                                   \
    if (j < num || (is_split && j >= 6 && j - 6 < num)) {             \
        __m512i q = broadcast_four(base + (size_t)offset * dims);     \
        low##j = _mm512_dpbusd_epi32(low##j, rows[j >= 6].low, q);    \
        high##j = _mm512_dpbusd_epi32(high##j, rows[j >= 6].high, q); \
    }

#define ADD_SPLIT(j, k)                               \
    if (is_split && j < num) {                        \
        low##j = _mm512_add_epi32(low##j, low##k);    \
        high##j = _mm512_add_epi32(high##j, high##k); \
    }

#define STORE_QUERY(j, base, offset)               \
    if (j < num) {                                 \
        _mm512_store_si512(sums[j], low##j);       \
        _mm512_store_si512(sums[j] + 16, high##j); \
    }

INLINE __m512i broadcast_four(const int8_t *components)
{
    int32_t four;
    memcpy(&four, components, sizeof four);
    return _mm512_set1_epi32(four);
}

// Four dimensions of a bundle.
struct four_dims {
    __m512i low, high;
};

INLINE struct four_dims load_rows(const uint8_t *bundle, size_t dims)
{
    struct four_dims rows = {_mm512_load_si512(bundle), _mm512_load_si512(bundle + 16 * dims)};
    PIN(rows.low);
    PIN(rows.high);
    return rows;
}

// sums[j][lane] = starts[j] + sum over dimensions of u * q, of a bundle and num queries. Up to 5
// queries are too few to hide how long a dot product takes: then accumulators 6 to 10 are theirs
// too, for every other group of dimensions.
INLINE void multiply(const uint8_t *bundle, const int8_t *components, size_t dims,
                     const int32_t *starts, bundle_sums *sums, const int num)
{
    const int is_split = num <= 5;
    const size_t step = is_split ? 8 : 4;
    const int8_t *q0 = components, *q3 = q0 + (num > 3 ? 3 * dims : 0);
    const int8_t *q6 = q0 + (is_split ? 4 : num > 6 ? 6 * dims : 0);
    const int8_t *q9 = q3 + (is_split ? 4 : num > 9 ? 6 * dims : 0);
    __asm__("" : "+r"(q0), "+r"(q3), "+r"(q6), "+r"(q9));
    EACH_QUERY(START_QUERY)
    for (size_t i = 0; i < dims; i += step, bundle += 16 * step) {
        const struct four_dims first = load_rows(bundle, dims);
        const struct four_dims rows[2] = {first, is_split ? load_rows(bundle + 64, dims) : first};
        EACH_QUERY(STEP_QUERY)
        q0 += step;
        q3 += step;
        q6 += step;
        q9 += step;
    }
    ADD_SPLIT(0, 6)
    ADD_SPLIT(1, 7)
    ADD_SPLIT(2, 8)
    ADD_SPLIT(3, 9)
    ADD_SPLIT(4, 10)
    EACH_QUERY(STORE_QUERY)
}

typedef void multiply_fn(const uint8_t *bundle, const int8_t *components, size_t dims,
                         const int32_t *starts, bundle_sums *sums);

#define MULTIPLY(num)                                                                        \
    static void multiply_##num(const uint8_t *bundle, const int8_t *components, size_t dims, \
                               const int32_t *starts, bundle_sums *sums)                     \
    {                                                                                        \
        multiply(bundle, components, dims, starts, sums, num);                               \
    }
MULTIPLY(1)
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
MULTIPLY(5)
MULTIPLY(6)
MULTIPLY(7)
MULTIPLY(8)
MULTIPLY(9)
MULTIPLY(10)
MULTIPLY(11)
MULTIPLY(12)
#undef MULTIPLY

static multiply_fn *const multiply_table[BLOCK_QUERIES + 1] = {
    NULL,       multiply_1, multiply_2, multiply_3,  multiply_4,  multiply_5, multiply_6,
    multiply_7, multiply_8, multiply_9, multiply_10, multiply_11, multiply_12};

// ---- keys ----

// The queries of a block.
struct panel {
    const int8_t *components;
    struct bsw_matrix_output *outputs;
    size_t num;
    multiply_fn *multiply;
    int32_t starts[BLOCK_QUERIES];    // of the sums
    int32_t constants[BLOCK_QUERIES]; // dot = constant - 2 * sum, but for SHORT_FLOAT_KEYS
    int32_t most[BLOCK_QUERIES];      // integer keys: the largest sum that passes
    float scales[BLOCK_QUERIES], limits[BLOCK_QUERIES];
};

// Half a bundle: what a sum turns into a key with.
struct half_rows {
    __m512 factors, shifts, biases;
};

INLINE struct half_rows load_half(enum key_kind kind, const struct bsw_matrix_tile *tile,
                                  size_t row)
{
    struct half_rows rows = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
    if (kind == INTEGER_KEYS) return rows;
    rows.factors =
        _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(const void *)(tile->scales + row)));
    rows.biases = _mm512_load_ps(tile->biases + row);
    if (kind == FLOAT_KEYS) return rows;
    rows.shifts = _mm512_mul_ps(rows.factors, _mm512_set1_ps(3 * 0x1p23f));
    rows.factors = _mm512_mul_ps(rows.factors, _mm512_set1_ps(-2.0f));
    return rows;
}

INLINE __m512i dots_of(const int32_t *sums, int32_t constant)
{
    __m512i sum = _mm512_load_si512(sums);
    return _mm512_sub_epi32(_mm512_set1_epi32(constant), _mm512_add_epi32(sum, sum));
}

INLINE __m512 keys_of(enum key_kind kind, const int32_t *sums, struct half_rows rows,
                      const struct panel *panel, size_t j)
{
    __m512 scaled;
    if (kind == SHORT_FLOAT_KEYS)
        scaled = _mm512_fmadd_ps(rows.factors, _mm512_load_ps(sums), rows.shifts);
    else
        scaled =
            _mm512_mul_ps(rows.factors, _mm512_cvtepi32_ps(dots_of(sums, panel->constants[j])));
    return _mm512_fmadd_ps(_mm512_set1_ps(panel->scales[j]), scaled, rows.biases);
}

// Which of 16 rows reach the limit.
INLINE __mmask16 passing(enum key_kind kind, const int32_t *sums, struct half_rows rows,
                         const struct panel *panel, size_t j)
{
    if (kind == INTEGER_KEYS)
        return _mm512_cmple_epi32_mask(_mm512_load_si512(sums), _mm512_set1_epi32(panel->most[j]));
    return _mm512_cmp_ps_mask(keys_of(kind, sums, rows, panel, j), _mm512_set1_ps(panel->limits[j]),
                              _CMP_GE_OQ);
}

INLINE __m512i scores_of(enum key_kind kind, const int32_t *sums, struct half_rows rows,
                         const struct panel *panel, size_t j)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    if (kind == INTEGER_KEYS) return _mm512_xor_si512(dots_of(sums, panel->constants[j]), sign);
    __m512 keys = _mm512_add_ps(keys_of(kind, sums, rows, panel, j), _mm512_setzero_ps());
    __m512i bits = _mm512_castps_si512(keys);
    return _mm512_xor_si512(bits, _mm512_or_si512(_mm512_srai_epi32(bits, 31), sign));
}

// Appends the rows of a bundle that pass, for one query.
static __attribute__((noinline)) void append(enum key_kind kind, const struct panel *panel,
                                             size_t j, const struct half_rows rows[2],
                                             const int32_t *sums, uint32_t pass, uint32_t first_row)
{
    struct bsw_matrix_output *output = &panel->outputs[j];
    _Alignas(64) uint32_t scores[BSW_BUNDLE_ROWS];
    for (size_t h = 0; h < 2; h++)
        _mm512_store_si512(scores + 16 * h, scores_of(kind, sums + 16 * h, rows[h], panel, j));
    for (; pass; pass &= pass - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(pass);
        output->items[output->count++] = bsw_candidate_pack(scores[lane], first_row + lane);
    }
}

INLINE void scan_bundle(enum key_kind kind, const struct bsw_matrix_tile *tile, size_t bundle,
                        const struct panel *panel)
{
    _Alignas(64) bundle_sums sums[BLOCK_QUERIES];
    size_t dims = tile->padded_dims, row = bundle * BSW_BUNDLE_ROWS;
    panel->multiply(tile->bytes + row * dims, panel->components, dims, panel->starts, sums);
    const struct half_rows rows[2] = {load_half(kind, tile, row), load_half(kind, tile, row + 16)};
    for (size_t j = 0; j < panel->num; j++) {
        __mmask16 low = passing(kind, sums[j], rows[0], panel, j);
        __mmask16 high = passing(kind, sums[j] + 16, rows[1], panel, j);
        if (__builtin_expect(_kortestz_mask16_u8(low, high), 1)) continue;
        uint32_t pass = _mm512_kunpackw(high, low) & tile->masks[bundle];
        if (pass) append(kind, panel, j, rows, sums[j], pass, tile->first_row + (uint32_t)row);
    }
}

// ---- the tile ----

static enum key_kind kind_of(const struct bsw_matrix_tile *tile,
                             const struct bsw_matrix_queries *queries)
{
    if (!tile->scales) return INTEGER_KEYS;
    if (tile->padded_dims > MAX_SHORT_DIMS) return FLOAT_KEYS;
    for (size_t q = 0; q < queries->num_queries; q++) {
        if (queries->constants[q] % 2 != 0) return FLOAT_KEYS;
    }
    return SHORT_FLOAT_KEYS;
}

static void prepare_panel(enum key_kind kind, const struct bsw_matrix_queries *queries,
                          size_t first, size_t num, size_t dims, struct bsw_matrix_output *outputs,
                          struct panel *panel)
{
    panel->components = queries->components + first * dims;
    panel->outputs = outputs + first;
    panel->num = num;
    panel->multiply = multiply_table[num];
    for (size_t j = 0; j < num; j++) {
        int32_t constant = queries->constants[first + j];
        uint32_t limit = outputs[first + j].limit;
        panel->constants[j] = constant;
        panel->starts[j] = kind == SHORT_FLOAT_KEYS ? SHORT_START - constant / 2 : 0;
        panel->most[j] = (int32_t)(((int64_t)constant - bsw_score_to_integer(limit)) >> 1);
        panel->limits[j] = bsw_float_limit(limit);
        panel->scales[j] = kind == INTEGER_KEYS ? 0.0f : queries->scales[first + j];
    }
}

// Bundles in runs that stay in the first cache, in each all queries, in blocks as equal as they can
// be: no short last one.
INLINE void scan_tile(enum key_kind kind, const struct bsw_matrix_tile *tile,
                      const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs)
{
    size_t dims = tile->padded_dims, step = RUN_BYTES / (BSW_BUNDLE_ROWS * dims);
    size_t num_blocks = (queries->num_queries + BLOCK_QUERIES - 1) / BLOCK_QUERIES;
    if (step == 0) step = 1;
    for (size_t first = 0; first < tile->num_bundles; first += step) {
        size_t last = tile->num_bundles - first < step ? tile->num_bundles : first + step;
        for (size_t block = 0, q = 0; block < num_blocks; block++) {
            struct panel panel;
            size_t num = (queries->num_queries - q) / (num_blocks - block);
            prepare_panel(kind, queries, q, num, dims, outputs, &panel);
            for (size_t b = first; b < last; b++) scan_bundle(kind, tile, b, &panel);
            q += num;
        }
    }
}

static void avx512_scan(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs)
{
    switch (kind_of(tile, queries)) {
    case INTEGER_KEYS:
        scan_tile(INTEGER_KEYS, tile, queries, outputs);
        break;
    case SHORT_FLOAT_KEYS:
        scan_tile(SHORT_FLOAT_KEYS, tile, queries, outputs);
        break;
    default:
        scan_tile(FLOAT_KEYS, tile, queries, outputs);
        break;
    }
}

const struct bsw_matrix_scan_table bsw_matrix_scan_avx512 = {
    .level = "avx512",
    .unpack = avx512_unpack,
    .unpack_query = avx512_unpack_query,
    .scan = avx512_scan,
    .scan_staged = bsw_matrix_scan_staged_reference,
};
