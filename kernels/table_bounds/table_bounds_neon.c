// SPDX-License-Identifier: Apache-2.0
// table_bounds on Arm: 4-bit codes by TBL, a bundle and up to four queries at a time; 8-bit codes
// by 16 queries side by side.
#define TOGETHER 4 // queries that share what is unpacked of 4-bit codes
#include "kernels/table_bounds/table_bounds_lanes.h"

// ---- 4-bit codes ----

// Sums of a bundle's rows, 8 a register.
struct bundle_sums {
    uint16x8_t k[4];
};

INLINE void add_bytes(uint16x8_t sums[2], uint8x16_t bytes)
{
    sums[0] = vaddw_u8(sums[0], vget_low_u8(bytes));
    sums[1] = vaddw_high_u8(sums[1], bytes);
}

INLINE uint32x4_t four_pass(uint32x4_t sums, float32x4_t unit, float32x4_t most, const float *terms)
{
    return vcleq_f32(vfmaq_f32(vld1q_f32(terms), unit, vcvtq_f32_u32(sums)), most);
}

INLINE uint32_t bundle_passes(const struct bundle_sums *sums, const struct bsw_bound_query *query,
                              const float *terms)
{
    const float32x4_t unit = vdupq_n_f32(query->unit), most = vdupq_n_f32(query->most);
    uint32x4_t passed[8];
    for (int k = 0; k < 4; k++, terms += 2 * LANES) {
        passed[2 * k] = four_pass(vmovl_u16(vget_low_u16(sums->k[k])), unit, most, terms);
        passed[2 * k + 1] = four_pass(vmovl_high_u16(sums->k[k]), unit, most, terms + LANES);
    }
    return bsw_neon_word_mask(passed);
}

INLINE void pass_bundle(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                        size_t num, size_t bundle, uint32_t *masks)
{
    const uint8x16_t nibble = vdupq_n_u8(15);
    const uint8_t *codes = rows->codes + bundle * rows->bundle_bytes;
    struct bundle_sums sums[TOGETHER];
    for (size_t q = 0; q < num; q++)
        for (int k = 0; k < 4; k++) sums[q].k[k] = vdupq_n_u16(0);
    for (size_t p = 0; p < rows->parts; p += 2, codes += BSW_BUNDLE_ROWS) {
        for (int h = 0; h < 2; h++) { // half of the rows
            uint8x16_t both = vld1q_u8(codes + h * 16), low = vandq_u8(both, nibble),
                       high = vshrq_n_u8(both, 4);
            for (size_t q = 0; q < num; q++) {
                const uint8_t *table = queries[q].numbers + p * 16;
                add_bytes(sums[q].k + 2 * h, vqtbl1q_u8(vld1q_u8(table), low));
                add_bytes(sums[q].k + 2 * h, vqtbl1q_u8(vld1q_u8(table + 16), high));
            }
        }
    }
    for (size_t q = 0; q < num; q++)
        masks[q * rows->num_bundles + bundle] =
            rows->masks[bundle] &
            bundle_passes(&sums[q], &queries[q], rows->terms + bundle * BSW_BUNDLE_ROWS);
}

// ---- 8-bit codes ----

// 16 bytes of each of 16 queries, at [q]: register i is then entry i of all queries.
INLINE void turn_registers(uint8x16_t r[16])
{
    for (int step = 0; step < 4; step++) { // each is a perfect shuffle of two halves
        uint8x16_t t[16];
        for (int i = 0; i < 8; i++) {
            t[2 * i] = vzip1q_u8(r[i], r[i + 8]);
            t[2 * i + 1] = vzip2q_u8(r[i], r[i + 8]);
        }
        for (int i = 0; i < 16; i++) r[i] = t[i];
    }
}

static void turn_part(const uint8_t *const *numbers, size_t first, uint8_t *out)
{
    for (size_t j = 0; j < 256; j += 16) {
        uint8x16_t r[16];
        for (size_t q = 0; q < 16; q++) r[q] = vld1q_u8(numbers[q] + first + j);
        turn_registers(r);
        for (size_t i = 0; i < 16; i++) vst1q_u8(out + (j + i) * 16, r[i]);
    }
}

static void sums(const struct bsw_bound_terms *terms, const uint8_t *codes, size_t bundle_bytes,
                 const uint32_t *places, size_t num_places, float *out)
{
    if (terms->book->bits == 8)
        byte_sums(terms, codes, bundle_bytes, places, num_places, out);
    else
        row_sums(4, terms->book->part_dims, terms, codes, bundle_bytes, places, num_places, out);
}

const struct bsw_table_bounds_table bsw_table_bounds_neon = {
    .level = "neon", .narrow = narrow, .pass = pass, .gap = gap, .bases = bases, .sums = sums};
