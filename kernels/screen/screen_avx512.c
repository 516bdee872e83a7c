// SPDX-License-Identifier: Apache-2.0
// 32 rows are two registers, 12 queries 24 running sums; two loads and 12 broadcasts feed 24 fused
// multiply-adds. A bundle's numbers stay in the first cache while all queries go over it.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/screen/screen.h"

#define INLINE static inline __attribute__((always_inline))

_Static_assert(BSW_SCREEN_QUERIES == 12 && BSW_BUNDLE_ROWS == 32, "24 running sums");

// Named members and variables: gcc keeps an array of so many registers in memory.
struct column {
    __m512 low, high;
};

INLINE struct column add_products(struct column sums, struct column rows, const float *query)
{
    __m512 both = _mm512_set1_ps(*query);
    sums.low = _mm512_fmadd_ps(rows.low, both, sums.low);
    sums.high = _mm512_fmadd_ps(rows.high, both, sums.high);
    return sums;
}

INLINE void append(struct bsw_screen_output *output, uint32_t first_place, uint32_t pass)
{
    for (; pass; pass &= pass - 1)
        output->places[output->count++] = first_place + (uint32_t)__builtin_ctz(pass);
}

// A bundle and up to 12 queries on their way.
struct group {
    const float *queries; // [dims][12]
    const float *limits;
    struct bsw_screen_output *outputs;
    size_t num;
};

INLINE uint32_t passing(struct column sums, struct column biases, float limit)
{
    __m512 least = _mm512_set1_ps(limit);
    sums.low = _mm512_add_ps(sums.low, biases.low);
    sums.high = _mm512_add_ps(sums.high, biases.high);
    return _mm512_cmp_ps_mask(sums.low, least, _CMP_GE_OQ) |
           (uint32_t)_mm512_cmp_ps_mask(sums.high, least, _CMP_GE_OQ) << 16;
}

// Query q's sums against its limit; queries past the end have none.
INLINE void select_rows(const struct bsw_screen_tile *tile, size_t bundle,
                        const struct group *group, size_t q, struct column sums)
{
    if (q >= group->num) return;
    const float *biases = tile->biases + bundle * BSW_BUNDLE_ROWS;
    struct column both = {_mm512_load_ps(biases), _mm512_load_ps(biases + 16)};
    uint32_t pass = passing(sums, both, group->limits[q]) & tile->masks[bundle];
    if (__builtin_expect(pass != 0, 0))
        append(&group->outputs[q], (uint32_t)(bundle * BSW_BUNDLE_ROWS), pass);
}

#define EACH_QUERY(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define START(q)       struct column s##q = {_mm512_setzero_ps(), _mm512_setzero_ps()};
#define STEP(q)        s##q = add_products(s##q, both, query + q);
#define SELECT(q)      select_rows(tile, bundle, group, q, s##q);

static void scan_bundle(const struct bsw_screen_tile *tile, size_t bundle,
                        const struct group *group)
{
    const float *rows = tile->numbers + bundle * BSW_BUNDLE_ROWS * tile->dims;
    const float *query = group->queries;
    EACH_QUERY(START)
    for (size_t d = 0; d < tile->dims; d++) {
        struct column both = {_mm512_load_ps(rows), _mm512_load_ps(rows + 16)};
        EACH_QUERY(STEP)
        rows += BSW_BUNDLE_ROWS;
        query += BSW_SCREEN_QUERIES;
    }
    EACH_QUERY(SELECT)
}

static void avx512_scan(const struct bsw_screen_tile *tile,
                        const struct bsw_screen_queries *queries, struct bsw_screen_output *outputs)
{
    for (size_t q = 0; q < queries->num_queries; q++) outputs[q].count = 0;
    for (size_t bundle = 0; bundle < tile->num_bundles; bundle++) {
        for (size_t q = 0; q < queries->num_queries; q += BSW_SCREEN_QUERIES) {
            size_t left = queries->num_queries - q;
            const struct group group = {queries->numbers + q * tile->dims, queries->limits + q,
                                        outputs + q,
                                        left < BSW_SCREEN_QUERIES ? left : BSW_SCREEN_QUERIES};
            scan_bundle(tile, bundle, &group);
        }
    }
}

// v[row][dimension] to v[dimension][row].
INLINE void transpose16(__m512 v[16])
{
    __m512 t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { // v[i + c]: rows i .. i+3 of columns c, 4+c, 8+c, 12+c
        v[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        v[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        v[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        v[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int c = 0; c < 4; c++) {
        t[c] = _mm512_shuffle_f32x4(v[c], v[4 + c], 0x44);
        t[4 + c] = _mm512_shuffle_f32x4(v[c], v[4 + c], 0xee);
        t[8 + c] = _mm512_shuffle_f32x4(v[8 + c], v[12 + c], 0x44);
        t[12 + c] = _mm512_shuffle_f32x4(v[8 + c], v[12 + c], 0xee);
    }
    for (int c = 0; c < 4; c++) {
        v[c] = _mm512_shuffle_f32x4(t[c], t[8 + c], 0x88);
        v[4 + c] = _mm512_shuffle_f32x4(t[c], t[8 + c], 0xdd);
        v[8 + c] = _mm512_shuffle_f32x4(t[4 + c], t[12 + c], 0x88);
        v[12 + c] = _mm512_shuffle_f32x4(t[4 + c], t[12 + c], 0xdd);
    }
}

static void avx512_pack(const float *rows, const float *scales, size_t num_rows, size_t dims,
                        float *out)
{
    for (size_t half = 0; half < BSW_BUNDLE_ROWS; half += 16) {
        for (size_t d = 0; d < dims; d += 16) {
            size_t num = dims - d < 16 ? dims - d : 16;
            __mmask16 valid = (__mmask16)((1u << num) - 1);
            __m512 v[16];
            for (size_t r = 0; r < 16; r++) {
                size_t row = half + r;
                v[r] = _mm512_setzero_ps();
                if (row < num_rows)
                    v[r] = _mm512_mul_ps(_mm512_maskz_loadu_ps(valid, rows + row * dims + d),
                                         _mm512_set1_ps(scales[row]));
            }
            transpose16(v);
            for (size_t i = 0; i < num; i++)
                _mm512_store_ps(out + (d + i) * BSW_BUNDLE_ROWS + half, v[i]);
        }
    }
}

// ---- codes ----

// Which of the numbers i .. i + 15 are below n.
INLINE __mmask16 valid_lanes(size_t i, size_t n)
{
    return n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff;
}

// The largest |x| as bits, which are ordered as the numbers; of NaN and infinity the largest.
static float largest_of(const float *row, size_t dims)
{
    const __m512i no_sign = _mm512_set1_epi32(INT32_MAX);
    __m512i largest = _mm512_setzero_si512();
    for (size_t i = 0; i < dims; i += 16) {
        __m512i bits = _mm512_maskz_loadu_epi32(valid_lanes(i, dims), row + i);
        largest = _mm512_max_epi32(largest, _mm512_and_si512(bits, no_sign));
    }
    int32_t bits = _mm512_reduce_max_epi32(largest);
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

// s[j] += s[j + h] for h = 8, 4, 2, 1.
INLINE float tree_sum(__m512 s)
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Four groups of 4 dimensions of a row.
INLINE void store_groups(__m128i bytes, uint8_t *out)
{
    const int32_t groups[4] = {_mm_extract_epi32(bytes, 0), _mm_extract_epi32(bytes, 1),
                               _mm_extract_epi32(bytes, 2), _mm_extract_epi32(bytes, 3)};
    for (size_t g = 0; g < 4; g++) memcpy(out + 64 * g, &groups[g], sizeof groups[g]);
}

static float pack_row(const float *row, size_t dims, float step, uint8_t *bytes)
{
    const __m512 inverse = _mm512_set1_ps(1.0f / step), half = _mm512_set1_ps(-0.5f / step);
    const __m512 top = _mm512_set1_ps(255.0f), two = _mm512_set1_ps(2.0f);
    __m512 sum = _mm512_setzero_ps();
    for (size_t i = 0; i < (dims + 31) / 32 * 32; i += 16, bytes += 4 * 64) {
        __mmask16 valid = i < dims ? valid_lanes(i, dims) : 0;
        __m512 x = _mm512_maskz_loadu_ps(valid, row + i);
        __m512 place = _mm512_fmadd_ps(x, half, _mm512_set1_ps(127.5f));
        place = _mm512_min_ps(_mm512_max_ps(place, _mm512_setzero_ps()), top);
        __m512i u = _mm512_maskz_cvtps_epi32(valid, place);
        __m512 code = _mm512_fnmadd_ps(two, _mm512_cvtepi32_ps(u), top); // exact
        __m512 error = _mm512_fmsub_ps(x, inverse, code);
        sum = _mm512_mask3_fmadd_ps(error, error, sum, valid);
        store_groups(_mm512_cvtepi32_epi8(u), bytes);
    }
    return tree_sum(sum);
}

static void avx512_pack_codes(const float *rows, size_t num_rows, size_t dims, uint8_t *bytes,
                              float *steps, float *squared_errors)
{
    size_t padded_dims = (dims + 31) / 32 * 32;
    for (size_t r = 0; r < num_rows; r++) {
        float largest = largest_of(rows + r * dims, dims);
        steps[r] = squared_errors[r] = 0.0f;
        if (!(largest >= BSW_SCREEN_LEAST_MAXIMUM && largest < INFINITY)) continue;
        steps[r] = largest / 255.0f;
        squared_errors[r] = pack_row(rows + r * dims, dims, steps[r],
                                     bytes + r / 16 * 16 * padded_dims + r % 16 * 4);
    }
}

const struct bsw_screen_table bsw_screen_avx512 = {
    .level = "avx512",
    .pack = avx512_pack,
    .pack_codes = avx512_pack_codes,
    .scan = avx512_scan,
};
