// SPDX-License-Identifier: Apache-2.0
// Look-ups of table_scan on Arm: those of 4-bit codes are TBL, 16 numbers in one register for each
// of their bytes; those of 8-bit codes are loads of one number.
#include "kernels/table_scan/table_scan_lanes.h"

#define WIDE  8 // registers of sums of a bundle
#define GROUP 2 // bundles that share a table's registers

// The numbers of 16 rows' 4-bit codes. bytes: byte i of all 16 numbers in val[i].
INLINE void look_up_halves(const uint8x16x4_t *bytes, uint8x16_t codes, float32x4_t out[4])
{
    uint8x16_t b[4];
    for (int i = 0; i < 4; i++) b[i] = vqtbl1q_u8(bytes->val[i], codes);
    uint16x8_t low = vreinterpretq_u16_u8(vzip1q_u8(b[0], b[1])),
               high = vreinterpretq_u16_u8(vzip2q_u8(b[0], b[1]));
    uint16x8_t low2 = vreinterpretq_u16_u8(vzip1q_u8(b[2], b[3])),
               high2 = vreinterpretq_u16_u8(vzip2q_u8(b[2], b[3]));
    out[0] = vreinterpretq_f32_u16(vzip1q_u16(low, low2));
    out[1] = vreinterpretq_f32_u16(vzip2q_u16(low, low2));
    out[2] = vreinterpretq_f32_u16(vzip1q_u16(high, high2));
    out[3] = vreinterpretq_f32_u16(vzip2q_u16(high, high2));
}

// 16 rows of a part, whose codes begin at `codes`, to their sums.
INLINE void add_part(const uint8x16x4_t *bytes, uint32_t part, const uint8_t *codes,
                     float32x4_t sums[4])
{
    float32x4_t found[4];
    uint8x16_t c = vld1q_u8(codes);
    c = part & 1 ? vshrq_n_u8(c, 4) : vandq_u8(c, vdupq_n_u8(15));
    look_up_halves(bytes, c, found);
    for (int k = 0; k < 4; k++) sums[k] = vaddq_f32(sums[k], found[k]);
}

INLINE void sums_by_registers(const struct bsw_code_table *table, const uint8_t *codes,
                              size_t bundle_bytes, size_t num_bundles, float *sums)
{
    float32x4_t s[GROUP][WIDE];
    for (size_t g = 0; g < num_bundles; g++)
        for (int k = 0; k < WIDE; k++) s[g][k] = vdupq_n_f32(0.0f);
    for (uint32_t p = 0; p < table->parts; p++) {
        const uint8x16x4_t bytes = vld4q_u8((const uint8_t *)(table->numbers + (size_t)p * 16));
        const uint8_t *at = codes + p / 2 * BSW_BUNDLE_ROWS;
        for (size_t g = 0; g < num_bundles; g++, at += bundle_bytes) {
            add_part(&bytes, p, at, s[g]);
            add_part(&bytes, p, at + 16, s[g] + 4);
        }
    }
    for (size_t g = 0; g < num_bundles; g++)
        for (int k = 0; k < WIDE; k++) vst1q_f32(sums + g * BSW_BUNDLE_ROWS + k * LANES, s[g][k]);
}

static void sums(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                 size_t num_bundles, float *out)
{
    if (table->bits == 8) {
        sums_by_loads(table, codes, bundle_bytes, num_bundles, out);
        return;
    }
    for (size_t b = 0; b < num_bundles; b += GROUP) {
        size_t left = num_bundles - b;
        sums_by_registers(table, codes + b * bundle_bytes, bundle_bytes,
                          left < GROUP ? left : GROUP, out + b * BSW_BUNDLE_ROWS);
    }
}

const struct bsw_table_scan_table bsw_table_scan_neon = {.level = "neon",
                                                         .products = products,
                                                         .nearest = nearest,
                                                         .distances = distances,
                                                         .round_numbers = round_numbers,
                                                         .sums = sums,
                                                         .sums_at = sums_at,
                                                         .filter = filter};
