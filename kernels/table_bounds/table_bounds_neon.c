// SPDX-License-Identifier: Apache-2.0
// table_bounds on Arm: 4-bit codes by TBL, a bundle and up to four queries at a time; 8-bit codes
// by 16 queries side by side.
#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "kernels/neon_mask.h"
#include "kernels/table_bounds/table_bounds.h"

#define INLINE   static inline __attribute__((always_inline))
#define LANES    4 // floats of a register
#define TOGETHER 4 // queries that share what is unpacked of 4-bit codes

// ---- a query's table ----

INLINE float least_of(const float *numbers, size_t num, float *most)
{
    float32x4_t low = vld1q_f32(numbers), high = low;
    for (size_t j = LANES; j < num; j += LANES) {
        low = vminq_f32(low, vld1q_f32(numbers + j));
        high = vmaxq_f32(high, vld1q_f32(numbers + j));
    }
    *most = vmaxvq_f32(high);
    return vminvq_f32(low);
}

INLINE uint16x4_t narrow_four(const float *terms, float32x4_t least, float32x4_t inverse)
{
    float32x4_t v = vmulq_f32(vsubq_f32(vld1q_f32(terms), least), inverse);
    return vmovn_u32(vcvtq_u32_f32(vminq_f32(v, vdupq_n_f32(255.0f))));
}

INLINE void narrow_part(const float *terms, size_t num, float least, float inverse, uint8_t *out)
{
    const float32x4_t from = vdupq_n_f32(least), times = vdupq_n_f32(inverse);
    for (size_t i = 0; i < num; i += 2 * LANES)
        vst1_u8(out + i, vmovn_u16(vcombine_u16(narrow_four(terms + i, from, times),
                                                narrow_four(terms + i + LANES, from, times))));
}

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

struct sixteen {
    float32x4_t unit[4], most[4];
};

// Bit q: the row with these sums passes for query q.
INLINE uint32_t queries_pass(const uint16_t *sums, const struct sixteen *q, float term)
{
    uint16x8_t low = vld1q_u16(sums), high = vld1q_u16(sums + 8);
    const uint32x4_t words[4] = {vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low),
                                 vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)};
    uint16x4_t passed[4];
    for (int k = 0; k < 4; k++)
        passed[k] = vmovn_u32(vcleq_f32(
            vfmaq_f32(vdupq_n_f32(term), q->unit[k], vcvtq_f32_u32(words[k])), q->most[k]));
    uint8x16_t bytes = vcombine_u8(vmovn_u16(vcombine_u16(passed[0], passed[1])),
                                   vmovn_u16(vcombine_u16(passed[2], passed[3])));
    return bsw_neon_byte_mask(bytes, vdupq_n_u8(0));
}

INLINE struct sixteen load_sixteen(const float *unit, const float *most)
{
    struct sixteen q;
    for (int k = 0; k < 4; k++) {
        q.unit[k] = vld1q_f32(unit + k * LANES);
        q.most[k] = vld1q_f32(most + k * LANES);
    }
    return q;
}

#define BY_SIXTEEN
#include "kernels/table_bounds/table_bounds_lanes.h"

// ---- gaps of query and centroid ----

static float neon_gap(const float *x, const float *y, size_t dims)
{
    float32x4_t sums[4];
    float lanes[16], sum = 0.0f;
    for (int k = 0; k < 4; k++) sums[k] = vdupq_n_f32(0.0f);
    for (size_t d = 0; d < dims; d += 16) {
        for (int k = 0; k < 4; k++) {
            float32x4_t gap = vsubq_f32(vld1q_f32(x + d + k * 4), vld1q_f32(y + d + k * 4));
            sums[k] = vfmaq_f32(sums[k], gap, gap);
        }
    }
    for (int k = 0; k < 4; k++) vst1q_f32(lanes + k * LANES, sums[k]);
    for (int i = 0; i < 16; i++) sum += lanes[i];
    return sum;
}

static void neon_bases(const struct bsw_product_book *book, const float *x, const float *y,
                       float *bases)
{
    for (uint32_t p = 0; p < book->parts; p++, x += book->part_dims, y += book->part_dims) {
        float sum = 0.0f;
        for (uint32_t d = 0; d < book->part_dims; d++) sum = fmaf(x[d] - y[d], x[d] - y[d], sum);
        bases[p] = sum;
    }
}

// ---- rows that passed ----

INLINE float row_sum(const struct bsw_bound_terms *terms, const uint8_t *codes, uint32_t bits,
                     uint32_t part_dims)
{
    const size_t num = (size_t)1 << bits;
    const float *entries = terms->book->entries, *list = terms->list, *query = terms->query;
    float sum = 0.0f;
    for (uint32_t p = 0; p < terms->book->parts; p++) {
        size_t j = bits == 8 ? codes[p * BSW_BUNDLE_ROWS]
                             : codes[p / 2 * BSW_BUNDLE_ROWS] >> (4 * (p & 1)) & 15;
        float product = 0.0f;
        for (uint32_t d = 0; d < part_dims; d++)
            product = fmaf(query[d], entries[d * num + j], product);
        float distance = (list[j] + product) + terms->bases[p];
        sum += distance > 0.0f ? distance : 0.0f;
        entries += part_dims * num;
        list += num;
        query += part_dims;
    }
    return sum;
}

static void neon_sums(const struct bsw_bound_terms *terms, const uint8_t *codes,
                      size_t bundle_bytes, const uint32_t *places, size_t num_places, float *sums)
{
    uint32_t bits = terms->book->bits, dims = terms->book->part_dims;
    for (size_t i = 0; i < num_places; i++) {
        const uint8_t *at =
            codes + places[i] / BSW_BUNDLE_ROWS * bundle_bytes + places[i] % BSW_BUNDLE_ROWS;
        if (bits == 4)
            sums[i] = dims == 2 ? row_sum(terms, at, 4, 2) : row_sum(terms, at, 4, dims);
        else
            sums[i] = dims == 4 ? row_sum(terms, at, 8, 4) : row_sum(terms, at, 8, dims);
    }
}

const struct bsw_table_bounds_table bsw_table_bounds_neon = {.level = "neon",
                                                             .narrow = narrow,
                                                             .pass = pass,
                                                             .gap = neon_gap,
                                                             .bases = neon_bases,
                                                             .sums = neon_sums};
