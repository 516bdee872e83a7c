// SPDX-License-Identifier: Apache-2.0
// matrix_scan by sdot, which multiplies signed bytes alone: 4 dimensions of 4 rows with 4 of 16
// dimensions of a query. A block is up to 4 queries against 16 rows, 16 registers of sums. Bytes
// above 127 are looked for once a tile; where there are some, u - 128 is multiplied and 128 times
// the sum of the query's components added.
#define BLOCK_QUERIES 4
#include "kernels/matrix_scan/matrix_scan_neon.h"

// 1 where bytes of a tile are above 127: then u - 128 is multiplied in place of u.
static size_t tile_form(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries)
{
    (void)queries;
    size_t bytes = bsw_matrix_tile_bytes(tile->padded_dims, tile->num_bundles);
    uint8x16_t all = vdupq_n_u8(0);
    for (size_t i = 0; i < bytes; i += 16) all = vorrq_u8(all, vld1q_u8(tile->bytes + i));
    return vmaxvq_u8(all) > 127;
}

// 128 times the components of a query, which products with u - 128 lack.
static int32_t turned_sum(const int8_t *components, size_t dims)
{
    int32x4_t sum = vdupq_n_s32(0);
    for (size_t i = 0; i < dims; i += 16)
        sum = vdotq_s32(sum, vld1q_s8(components + i), vdupq_n_s8(1));
    return 128 * vaddvq_s32(sum);
}

INLINE const int32_t *complete_constants(const struct factors *factors, const int32_t *constants,
                                         size_t num, int32_t room[BLOCK_QUERIES])
{
    if (!factors->form) return constants;
    for (size_t j = 0; j < num; j++)
        room[j] =
            constants[j] +
            factors->weight * turned_sum(factors->components + j * factors->stride, factors->dims);
    return room;
}

typedef int32x4_t block_sums[BLOCK_QUERIES][4];

// The four dimensions `group` of 16, of 16 rows: 64 bytes.
#define ADD_GROUP(group)                                                                           \
    for (size_t r = 0; r < 4; r++) {                                                               \
        int8x16_t u = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(rows + 64 * (group) + 16 * r), turn)); \
        for (size_t j = 0; j < num; j++) sums[j][r] = vdotq_laneq_s32(sums[j][r], u, q[j], group); \
    }

INLINE void add_dims(const uint8_t *rows, const int8_t *components, size_t stride, uint8x16_t turn,
                     block_sums sums, const size_t num)
{
    int8x16_t q[BLOCK_QUERIES];
    for (size_t j = 0; j < num; j++) q[j] = vld1q_s8(components + j * stride);
    ADD_GROUP(0)
    ADD_GROUP(1)
    ADD_GROUP(2)
    ADD_GROUP(3)
}

INLINE void multiply_rows(const struct factors *factors, const int32_t *constants, int32_t *dots,
                          const int is_turned, const size_t num)
{
    const uint8x16_t turn = vdupq_n_u8(is_turned ? 0x80 : 0);
    const uint8_t *rows = factors->rows;
    block_sums sums;
    for (size_t j = 0; j < num; j++)
        for (size_t r = 0; r < 4; r++) sums[j][r] = vdupq_n_s32(0);
    for (size_t i = 0; i < factors->dims; i += 16, rows += 256)
        add_dims(rows, factors->components + i, factors->stride, turn, sums, num);
    for (size_t j = 0; j < num; j++, dots += BLOCK_BUNDLES * BSW_BUNDLE_ROWS)
        for (size_t r = 0; r < 4; r++)
            store_dots(dots + 4 * r, sums[j][r], constants[j], factors->weight);
}

#define MULTIPLY(num)                                                                   \
    static void multiply_##num(const struct factors *factors, const int32_t *constants, \
                               int32_t *dots)                                           \
    {                                                                                   \
        if (factors->form)                                                              \
            multiply_rows(factors, constants, dots, 1, num);                            \
        else                                                                            \
            multiply_rows(factors, constants, dots, 0, num);                            \
    }
MULTIPLY(1)
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
#undef MULTIPLY

const struct bsw_matrix_scan_table bsw_matrix_scan_neon = {
    .level = "neon",
    .unpack = unpack,
    .unpack_query = unpack_query,
    .scan = scan,
    .scan_staged = scan_staged,
};
