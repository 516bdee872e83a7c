// SPDX-License-Identifier: Apache-2.0
// matrix_scan by usmmla, which multiplies 8 dimensions of 2 rows with those of 2 queries: twice the
// products of a dot product. A block is up to 8 queries against 8 rows, 16 registers of sums of 2
// rows x 2 queries. A single query goes by usdot.
#define BLOCK_QUERIES 8
#include "kernels/matrix_scan/matrix_scan_neon.h"

enum { PAIRS = BLOCK_QUERIES / 2 }; // of queries, and of rows at a time

static size_t tile_form(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries)
{
    (void)queries;
    (void)tile;
    return 0; // all are alike
}

INLINE const int32_t *complete_constants(const struct factors *factors, const int32_t *constants,
                                         size_t num, int32_t room[BLOCK_QUERIES])
{
    (void)factors, (void)num, (void)room;
    return constants; // products lack nothing
}

// [pair of rows][pair of queries]: lanes row 0 x query 0, row 0 x query 1, row 1 x query 0, row 1 x
// query 1.
typedef int32x4_t block_sums[4][PAIRS];

// 8 dimensions of 8 rows, 4 pairs, from two groups of 4 dimensions, 64 bytes apart.
INLINE void load_rows(const uint8_t *rows, uint8x16_t pairs[4])
{
    for (size_t half = 0; half < 2; half++) {
        uint32x4_t first = vreinterpretq_u32_u8(vld1q_u8(rows + 16 * half));
        uint32x4_t second = vreinterpretq_u32_u8(vld1q_u8(rows + 64 + 16 * half));
        pairs[2 * half] = vreinterpretq_u8_u32(vzip1q_u32(first, second));
        pairs[2 * half + 1] = vreinterpretq_u8_u32(vzip2q_u32(first, second));
    }
}

// 16 dimensions of two queries: the first 8 of both, the last 8 of both.
INLINE void load_queries(const int8_t *first, const int8_t *second, int8x16_t both[2])
{
    int64x2_t x = vreinterpretq_s64_s8(vld1q_s8(first)), y = vreinterpretq_s64_s8(vld1q_s8(second));
    both[0] = vreinterpretq_s8_s64(vzip1q_s64(x, y));
    both[1] = vreinterpretq_s8_s64(vzip2q_s64(x, y));
}

// The last of an odd number of queries stands for its missing partner too.
INLINE void add_dims(const uint8_t *rows, const int8_t *components, size_t stride, block_sums sums,
                     const size_t num)
{
    int8x16_t queries[PAIRS][2];
    for (size_t p = 0; 2 * p < num; p++) {
        size_t partner = 2 * p + 1 < num ? 2 * p + 1 : 2 * p;
        load_queries(components + 2 * p * stride, components + partner * stride, queries[p]);
    }
    for (size_t e = 0; e < 2; e++) {
        uint8x16_t pairs[4];
        load_rows(rows + 128 * e, pairs);
        for (size_t r = 0; r < 4; r++)
            for (size_t p = 0; 2 * p < num; p++)
                sums[r][p] = vusmmlaq_s32(sums[r][p], pairs[r], queries[p][e]);
    }
}

// 8 rows.
INLINE void multiply_rows(const struct factors *factors, const uint8_t *rows,
                          const int32_t *constants, int32_t *dots, const size_t num)
{
    block_sums sums;
    for (size_t r = 0; r < 4; r++)
        for (size_t p = 0; 2 * p < num; p++) sums[r][p] = vdupq_n_s32(0);
    for (size_t i = 0; i < factors->dims; i += 16, rows += 256)
        add_dims(rows, factors->components + i, factors->stride, sums, num);
    for (size_t q = 0; q < num; q++, dots += BLOCK_BUNDLES * BSW_BUNDLE_ROWS) {
        for (size_t half = 0; half < 2; half++) {
            int32x4_t low = sums[2 * half][q / 2], high = sums[2 * half + 1][q / 2];
            int32x4_t four = q % 2 ? vuzp2q_s32(low, high) : vuzp1q_s32(low, high);
            store_dots(dots + 4 * half, four, constants[q], factors->weight);
        }
    }
}

#define MULTIPLY(num)                                                                   \
    static void multiply_##num(const struct factors *factors, const int32_t *constants, \
                               int32_t *dots)                                           \
    {                                                                                   \
        multiply_rows(factors, factors->rows, constants, dots, num);                    \
        multiply_rows(factors, factors->rows + 32, constants, dots + 8, num);           \
    }
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
MULTIPLY(5)
MULTIPLY(6)
MULTIPLY(7)
MULTIPLY(8)
#undef MULTIPLY

// One query against 16 rows.
static void multiply_1(const struct factors *factors, const int32_t *constants, int32_t *dots)
{
    const uint8_t *rows = factors->rows;
    int32x4_t sums[4];
    for (size_t r = 0; r < 4; r++) sums[r] = vdupq_n_s32(0);
    for (size_t i = 0; i < factors->dims; i += 16, rows += 256) {
        int8x16_t q = vld1q_s8(factors->components + i);
        for (size_t r = 0; r < 4; r++) {
            sums[r] = vusdotq_laneq_s32(sums[r], vld1q_u8(rows + 16 * r), q, 0);
            sums[r] = vusdotq_laneq_s32(sums[r], vld1q_u8(rows + 64 + 16 * r), q, 1);
            sums[r] = vusdotq_laneq_s32(sums[r], vld1q_u8(rows + 128 + 16 * r), q, 2);
            sums[r] = vusdotq_laneq_s32(sums[r], vld1q_u8(rows + 192 + 16 * r), q, 3);
        }
    }
    for (size_t r = 0; r < 4; r++) store_dots(dots + 4 * r, sums[r], constants[0], factors->weight);
}

const struct bsw_matrix_scan_table bsw_matrix_scan_i8mm = {
    .level = "i8mm",
    .unpack = unpack,
    .unpack_query = unpack_query,
    .scan = scan,
    .scan_staged = scan_staged,
};
