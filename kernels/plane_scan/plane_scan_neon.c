// SPDX-License-Identifier: Apache-2.0
// plane_scan on Arm: table look-ups of nibbles, as in plane_scan_avx2.c.
//
// tbl has one table of 16 entries for a whole register. ld4 takes the words of 16 documents apart
// into four registers of one byte each; then a register of 16 look-ups serves 4 dimensions of 16
// documents. From three query bits on that is less work than counting the bits of every pair of
// planes. Sums are 16 bits wide, over one plane of a chunk: at most 32 words * 8 nibbles * 252 =
// 64,512. The seventh query bit is a second pass.
#include <arm_neon.h>

#include "kernels/neon_mask.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/plane_scan/plane_scan_rows.h"

#define INLINE static inline __attribute__((always_inline))

enum { PART_ROWS = 16, PARTS = BSW_BUNDLE_ROWS / PART_ROWS };

// Nibble t of a word (dimensions 4t .. 4t + 3): 16 distances.
struct nibble_tables {
    uint8x16_t of[8];
};

// Entry n of nibble t is the sum over k of u[4t + k], or full - u where bit k of n is 1: full is a
// power of two less one, so that is an xor. u: 16 dimensions.
INLINE void store_tables(uint8x16_t u, uint8x16_t full, uint8x16_t tables[4])
{
    const uint8x16_t entries = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (int t = 0; t < 4; t++) {
        uint8x16_t sum = vdupq_n_u8(0);
        for (int k = 0; k < 4; k++) {
            uint8x16_t code = vqtbl1q_u8(u, vdupq_n_u8((uint8_t)(4 * t + k)));
            uint8x16_t turned = vandq_u8(full, vtstq_u8(entries, vdupq_n_u8((uint8_t)(1 << k))));
            sum = vaddq_u8(sum, veorq_u8(code, turned));
        }
        tables[t] = sum;
    }
}

// Tables of num_words words from query planes that are `words` apart.
static void make_tables(const uint32_t *query, size_t words, size_t num_words, unsigned query_bits,
                        struct nibble_tables *tables)
{
    const uint8x16_t full = vdupq_n_u8((uint8_t)((1 << query_bits) - 1));
    for (size_t w = 0; w < num_words; w++) {
        uint8x16_t low = vdupq_n_u8(0), high = low, low_bits, high_bits;
        for (unsigned i = 0; i < query_bits; i++) {
            bsw_neon_spread_bits(query[i * words + w], &low_bits, &high_bits);
            low = vsliq_n_u8(low_bits, low, 1);
            high = vsliq_n_u8(high_bits, high, 1);
        }
        store_tables(low, full, tables[w].of);
        store_tables(high, full, tables[w].of + 4);
    }
}

// Sums of 16 documents.
struct sums {
    uint16x8_t low, high;
};

INLINE struct sums add_byte(struct sums sums, uint8x16_t byte, uint8x16_t low_table,
                            uint8x16_t high_table)
{
    uint8x16_t low = vqtbl1q_u8(low_table, vandq_u8(byte, vdupq_n_u8(15)));
    uint8x16_t high = vqtbl1q_u8(high_table, vshrq_n_u8(byte, 4));
    sums.low = vaddq_u16(sums.low, vaddl_u8(vget_low_u8(low), vget_low_u8(high)));
    sums.high = vaddq_u16(sums.high, vaddl_high_u8(low, high));
    return sums;
}

// Doubles the distances of 16 documents, then adds the sums of a plane.
INLINE void add_plane(struct sums sums, uint32x4_t distances[4])
{
    for (int q = 0; q < 4; q++) distances[q] = vaddq_u32(distances[q], distances[q]);
    distances[0] = vaddw_u16(distances[0], vget_low_u16(sums.low));
    distances[1] = vaddw_high_u16(distances[1], sums.low);
    distances[2] = vaddw_u16(distances[2], vget_low_u16(sums.high));
    distances[3] = vaddw_high_u16(distances[3], sums.high);
}

// One plane of a bundle's words.
INLINE void scan_plane(const struct chunk *chunk, const struct nibble_tables *tables,
                       const uint32_t *plane, struct sums sums[PARTS])
{
    for (size_t w = 0; w < chunk->num_words; w++, plane += BSW_BUNDLE_ROWS) {
        bsw_prefetch_word(chunk, plane);
        for (size_t part = 0; part < PARTS; part++) {
            uint8x16x4_t bytes = vld4q_u8((const uint8_t *)(plane + PART_ROWS * part));
            for (int k = 0; k < 4; k++)
                sums[part] = add_byte(sums[part], bytes.val[k], tables[w].of[2 * k],
                                      tables[w].of[2 * k + 1]);
        }
    }
}

// from[0 .. 16) - twice the distances << shift.
INLINE void store_dots(const uint32x4_t distances[4], unsigned shift, int32_t offset,
                       int accumulate, int32_t *dots)
{
    const int32x4_t twice = vdupq_n_s32((int32_t)shift + 1);
    for (int q = 0; q < 4; q++) {
        int32x4_t from = vdupq_n_s32(offset);
        if (accumulate) from = vaddq_s32(from, vld1q_s32(dots + 4 * q));
        vst1q_s32(dots + 4 * q,
                  vsubq_s32(from, vreinterpretq_s32_u32(vshlq_u32(distances[q], twice))));
    }
}

// dots += offset - 2 * (distance << shift) over the chunk's words; the old dots count if
// `accumulate`.
static void scan_chunk(const struct chunk *chunk, const struct nibble_tables *tables,
                       size_t num_bundles, int32_t offset, int accumulate, int32_t *dots)
{
    const uint32x4_t zero = vdupq_n_u32(0);
    for (size_t b = 0; b < num_bundles; b++, dots += BSW_BUNDLE_ROWS) {
        const uint32_t *plane = chunk->codes + b * chunk->bundle_words;
        uint32x4_t distances[PARTS][4] = {{zero, zero, zero, zero}, {zero, zero, zero, zero}};
        for (unsigned j = 0; j < chunk->bits; j++, plane += chunk->words * BSW_BUNDLE_ROWS) {
            struct sums sums[PARTS] = {{vdupq_n_u16(0), vdupq_n_u16(0)},
                                       {vdupq_n_u16(0), vdupq_n_u16(0)}};
            scan_plane(chunk, tables, plane, sums);
            for (int part = 0; part < PARTS; part++) add_plane(sums[part], distances[part]);
        }
        for (int part = 0; part < PARTS; part++)
            store_dots(distances[part], chunk->shift, offset, accumulate, dots + PART_ROWS * part);
    }
}

#define SECOND_PASS
#include "kernels/plane_scan/plane_scan_passes.h"

const struct bsw_plane_scan_table bsw_plane_scan_neon = {
    .level = "neon",
    .dots = scan_dots,
    .add_rows = bsw_add_rows,
};
