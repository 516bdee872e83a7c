// SPDX-License-Identifier: Apache-2.0
// 16 rows are two registers, 6 queries 12 running sums: a bundle and 12 queries take four rounds.
#include <immintrin.h>
#include <math.h>

#include "kernels/screen/screen.h"

#define INLINE static inline __attribute__((always_inline))

enum { PART_ROWS = 16, PART_QUERIES = 6 };

_Static_assert(BSW_SCREEN_QUERIES == 2 * PART_QUERIES && BSW_BUNDLE_ROWS == 2 * PART_ROWS,
               "four rounds");

// Named members and variables: gcc keeps an array of so many registers in memory.
struct column {
    __m256 low, high;
};

INLINE struct column add_products(struct column sums, struct column rows, const float *query)
{
    __m256 both = _mm256_broadcast_ss(query);
    sums.low = _mm256_fmadd_ps(rows.low, both, sums.low);
    sums.high = _mm256_fmadd_ps(rows.high, both, sums.high);
    return sums;
}

INLINE uint32_t passing(struct column sums, const float *biases, float limit)
{
    __m256 least = _mm256_set1_ps(limit);
    __m256 low = _mm256_add_ps(sums.low, _mm256_load_ps(biases)),
           high = _mm256_add_ps(sums.high, _mm256_load_ps(biases + 8));
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(low, least, _CMP_GE_OQ)) |
           (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(high, least, _CMP_GE_OQ)) << 8;
}

// Some queries and 16 rows on their way.
struct part {
    const float *rows;    // [dims][32], from the first of the 16
    const float *queries; // [dims][12], from the first of the 6
    const float *biases, *limits;
    struct bsw_screen_output *outputs;
    size_t num; // queries
    uint32_t mask, first_place;
};

INLINE void select_rows(const struct part *part, size_t q, struct column sums)
{
    if (q >= part->num) return;
    uint32_t pass = passing(sums, part->biases, part->limits[q]) & part->mask;
    struct bsw_screen_output *output = &part->outputs[q];
    for (; pass; pass &= pass - 1)
        output->places[output->count++] = part->first_place + (uint32_t)__builtin_ctz(pass);
}

#define EACH_QUERY(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define START(q)       struct column s##q = {_mm256_setzero_ps(), _mm256_setzero_ps()};
#define STEP(q)        s##q = add_products(s##q, both, query + q);
#define SELECT(q)      select_rows(part, q, s##q);

static void scan_part(const struct part *part, size_t dims)
{
    const float *rows = part->rows, *query = part->queries;
    EACH_QUERY(START)
    for (size_t d = 0; d < dims; d++) {
        struct column both = {_mm256_load_ps(rows), _mm256_load_ps(rows + 8)};
        EACH_QUERY(STEP)
        rows += BSW_BUNDLE_ROWS;
        query += BSW_SCREEN_QUERIES;
    }
    EACH_QUERY(SELECT)
}

// 16 rows against all queries.
static void scan_rows(const struct bsw_screen_tile *tile, size_t place,
                      const struct bsw_screen_queries *queries, struct bsw_screen_output *outputs)
{
    size_t bundle = place / BSW_BUNDLE_ROWS, lane = place % BSW_BUNDLE_ROWS;
    struct part part = {.rows = tile->numbers + bundle * BSW_BUNDLE_ROWS * tile->dims + lane,
                        .biases = tile->biases + place,
                        .mask = tile->masks[bundle] >> lane & 0xffff,
                        .first_place = (uint32_t)place};
    for (size_t q = 0; q < queries->num_queries; q += PART_QUERIES) {
        size_t left = queries->num_queries - q, in_group = q % BSW_SCREEN_QUERIES;
        part.queries = queries->numbers + (q - in_group) * tile->dims + in_group;
        part.limits = queries->limits + q;
        part.outputs = outputs + q;
        part.num = left < PART_QUERIES ? left : PART_QUERIES;
        scan_part(&part, tile->dims);
    }
}

static void avx2_scan(const struct bsw_screen_tile *tile, const struct bsw_screen_queries *queries,
                      struct bsw_screen_output *outputs)
{
    for (size_t q = 0; q < queries->num_queries; q++) outputs[q].count = 0;
    for (size_t place = 0; place < tile->num_bundles * BSW_BUNDLE_ROWS; place += PART_ROWS)
        scan_rows(tile, place, queries, outputs);
}

// v[row][dimension] to v[dimension][row].
INLINE void transpose8(__m256 v[8])
{
    __m256 t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { // v[i + c]: rows i .. i+3 of columns c, 4+c
        v[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        v[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        v[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        v[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int c = 0; c < 4; c++) {
        t[c] = _mm256_permute2f128_ps(v[c], v[4 + c], 0x20);
        t[4 + c] = _mm256_permute2f128_ps(v[c], v[4 + c], 0x31);
    }
    for (int c = 0; c < 8; c++) v[c] = t[c];
}

// Numbers d .. d + 7 of a row, scaled; past its end zeros.
INLINE __m256 load_scaled(const float *row, size_t d, size_t dims, float scale)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    int left = dims - d < 8 ? (int)(dims - d) : 8;
    __m256i valid = _mm256_cmpgt_epi32(_mm256_set1_epi32(left), lanes);
    return _mm256_mul_ps(_mm256_maskload_ps(row + d, valid), _mm256_set1_ps(scale));
}

static void avx2_pack(const float *rows, const float *scales, size_t num_rows, size_t dims,
                      float *out)
{
    for (size_t first = 0; first < BSW_BUNDLE_ROWS; first += 8) {
        for (size_t d = 0; d < dims; d += 8) {
            __m256 v[8];
            for (size_t r = 0; r < 8; r++) {
                size_t row = first + r;
                v[r] = row < num_rows ? load_scaled(rows + row * dims, d, dims, scales[row])
                                      : _mm256_setzero_ps();
            }
            transpose8(v);
            for (size_t i = 0; i < 8 && d + i < dims; i++)
                _mm256_store_ps(out + (d + i) * BSW_BUNDLE_ROWS + first, v[i]);
        }
    }
}

const struct bsw_screen_table bsw_screen_avx2 = {
    .level = "avx2",
    .pack = avx2_pack,
    .scan = avx2_scan,
};
