// SPDX-License-Identifier: Apache-2.0
// table_scan on Arm: 4 entries, or rows, a register. Look-ups of 4-bit codes are TBL: 16 numbers in
// one register for each of their bytes. Those of 8-bit codes are loads of one number.
#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "kernels/neon_mask.h"
#include "kernels/table_scan/table_scan.h"
#include "kernels/table_scan/table_sums_at.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES  4 // floats of a register
#define BLOCK  8 // registers of entries under way
#define WIDE   8 // registers of sums of a bundle
#define GROUP  2 // bundles that share a table's registers

// ---- making tables ----

// Chains of num registers of entries of a part, from `start` on, or 0.
INLINE void chain(const float *entries, size_t stride, uint32_t part_dims, const float *x,
                  float factor, const float *start, size_t num, float32x4_t *sums)
{
    for (size_t k = 0; k < num; k++)
        sums[k] = start ? vld1q_f32(start + k * LANES) : vdupq_n_f32(0.0f);
    for (uint32_t d = 0; d < part_dims; d++) {
        float32x4_t v = vdupq_n_f32(factor * x[d]);
        for (size_t k = 0; k < num; k++)
            sums[k] = vfmaq_f32(sums[k], v, vld1q_f32(entries + d * stride + k * LANES));
    }
}

INLINE void part_products(const float *entries, size_t num, uint32_t part_dims, const float *x,
                          const float *start, float *out)
{
    const size_t block = num < BLOCK * LANES ? num / LANES : BLOCK;
    for (size_t j = 0; j < num; j += block * LANES) {
        float32x4_t sums[BLOCK];
        chain(entries + j, num, part_dims, x, 1.0f, start ? start + j : NULL, block, sums);
        for (size_t k = 0; k < block; k++) vst1q_f32(out + j + k * LANES, sums[k]);
    }
}

// The least of all lanes, and of equal ones the one of the first entry.
INLINE uint8_t first_least(float32x4_t least, uint32x4_t numbers)
{
    uint32x4_t is_least = vceqq_f32(least, vdupq_n_f32(vminvq_f32(least)));
    return (uint8_t)vminvq_u32(vbslq_u32(is_least, numbers, vdupq_n_u32(UINT32_MAX)));
}

INLINE uint8_t part_nearest(const float *entries, const float *norms, size_t num,
                            uint32_t part_dims, const float *x)
{
    const size_t block = num < BLOCK * LANES ? num / LANES : BLOCK;
    static const uint32_t first[LANES] = {0, 1, 2, 3};
    float32x4_t least = vdupq_n_f32(INFINITY);
    uint32x4_t best = vdupq_n_u32(0), number = vld1q_u32(first), step = vdupq_n_u32(LANES);
    for (size_t j = 0; j < num; j += block * LANES) {
        float32x4_t sums[BLOCK];
        chain(entries + j, num, part_dims, x, -2.0f, norms + j, block, sums);
        for (size_t k = 0; k < block; k++) {
            uint32x4_t is_less = vcltq_f32(sums[k], least);
            least = vbslq_f32(is_less, sums[k], least);
            best = vbslq_u32(is_less, number, best);
            number = vaddq_u32(number, step);
        }
    }
    return first_least(least, best);
}

static float neon_distances(const struct bsw_product_book *book, const float *list,
                            const float *query, const float *bases, float *out)
{
    size_t num = bsw_product_entries(book);
    const float32x4_t zero = vdupq_n_f32(0.0f);
    float32x4_t largest = zero;
    for (uint32_t p = 0; p < book->parts; p++) {
        float32x4_t base = vdupq_n_f32(bases[p]);
        for (size_t i = p * num; i < (p + 1) * num; i += LANES) {
            float32x4_t sum = vaddq_f32(vaddq_f32(vld1q_f32(list + i), vld1q_f32(query + i)), base);
            sum = vmaxnmq_f32(sum, zero); // NaN gives 0, as in the reference
            largest = vmaxq_f32(sum, largest);
            vst1q_f32(out + i, sum);
        }
    }
    return vmaxvq_f32(largest);
}

// ---- formats ----

// Bytes of 4 numbers in 4 lanes of 32 bits.
INLINE uint32x4_t float8_of(float32x4_t v, uint32_t exponent_bits, int is_signed)
{
    uint32_t bias = (1u << (exponent_bits - 1)) - 1;
    uint32x4_t bits = vandq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(0x7fffffffu)),
               first = vdupq_n_u32(0x3f800000u - (bias << 23));
    uint32x4_t over = vqsubq_u32(bits, first);
    uint32x4_t u =
        vminq_u32(vshlq_u32(over, vdupq_n_s32(-15 - (int)exponent_bits)), vdupq_n_u32(255));
    if (!is_signed) return u;
    uint32x4_t sign = vcltq_f32(v, vdupq_n_f32(0.0f));
    return vbslq_u32(vdupq_n_u32(1), sign, u);
}

// The floats of 4 bytes in 4 lanes, whose upper bits are 0.
INLINE float32x4_t float_of8(uint32x4_t u, uint32_t exponent_bits, int is_signed)
{
    uint32_t base =
        is_signed ? bsw_float8_signed_base(exponent_bits) : bsw_float8_base(exponent_bits);
    uint32x4_t shifted = is_signed ? vandq_u32(u, vdupq_n_u32(254)) : u;
    uint32x4_t bits =
        vaddq_u32(vshlq_u32(shifted, vdupq_n_s32(15 + (int)exponent_bits)), vdupq_n_u32(base));
    if (is_signed) bits = vorrq_u32(bits, vshlq_n_u32(u, 31));
    return vreinterpretq_f32_u32(bits);
}

INLINE void convert_float8(uint32_t exponent_bits, int is_signed, float power, const float *in,
                           size_t n, uint8_t *out)
{
    const float32x4_t factor = vdupq_n_f32(power);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint16x4_t u[4];
        for (int k = 0; k < 4; k++)
            u[k] = vmovn_u32(float8_of(vmulq_f32(vld1q_f32(in + i + k * LANES), factor),
                                       exponent_bits, is_signed));
        vst1q_u8(out + i, vcombine_u8(vmovn_u16(vcombine_u16(u[0], u[1])),
                                      vmovn_u16(vcombine_u16(u[2], u[3]))));
    }
    for (; i < n; i++)
        out[i] = is_signed ? bsw_float8_encode_signed(exponent_bits, in[i] * power)
                           : bsw_float8_encode(exponent_bits, in[i] * power);
}

INLINE uint16x4_t halves_of(float32x4_t v, float32x4_t factor)
{
    const float32x4_t most = vdupq_n_f32(BSW_HALF_MAX);
    v = vmulq_f32(v, factor);
    v = vmaxq_f32(vminq_f32(v, most), vnegq_f32(most));
    // -0 is 0, as in the reference.
    return vreinterpret_u16_f16(vcvt_f16_f32(vaddq_f32(v, vdupq_n_f32(0.0f))));
}

static void convert_halves(float power, const float *in, size_t n, uint16_t *out)
{
    const float32x4_t factor = vdupq_n_f32(power);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) vst1_u16(out + i, halves_of(vld1q_f32(in + i), factor));
    if (i == n) return;
    float four[LANES] = {0};
    uint16_t halves[LANES];
    memcpy(four, in + i, (n - i) * sizeof *in);
    vst1_u16(halves, halves_of(vld1q_f32(four), factor));
    memcpy(out + i, halves, (n - i) * sizeof *out);
}

INLINE float32x4_t float_of_half(uint16x4_t halves)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(halves));
}

// Floats of 16 bytes.
INLINE void floats_of8(enum bsw_table_type type, int is_signed, uint8x16_t bytes,
                       float32x4_t out[4])
{
    uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
    const uint32x4_t words[4] = {vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low),
                                 vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)};
    for (int k = 0; k < 4; k++)
        out[k] = float_of8(words[k], bsw_float8_exponent_bits(type), is_signed);
}

INLINE void expand_to(enum bsw_table_type type, int is_signed, const void *in, size_t n, float *out)
{
    const uint16_t *halves = in;
    const uint8_t *bytes = in;
    if (type == BSW_TABLE_FLOAT32)
        memcpy(out, in, n * sizeof *out);
    else if (type == BSW_TABLE_FLOAT16)
        for (size_t i = 0; i < n; i += LANES)
            vst1q_f32(out + i, float_of_half(vld1_u16(halves + i)));
    else
        for (size_t i = 0; i < n; i += 16) {
            float32x4_t four[4];
            floats_of8(type, is_signed, vld1q_u8(bytes + i), four);
            for (int k = 0; k < 4; k++) vst1q_f32(out + i + k * LANES, four[k]);
        }
}

// ---- sums ----

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

// 8-bit codes: eight rows at a time.
INLINE void sums_by_loads(const struct bsw_code_table *table, const uint8_t *codes,
                          size_t bundle_bytes, size_t num_bundles, float *sums)
{
    for (size_t row = 0; row < num_bundles * BSW_BUNDLE_ROWS; row += BSW_SUMS_TOGETHER) {
        const uint8_t *at[BSW_SUMS_TOGETHER];
        for (size_t i = 0; i < BSW_SUMS_TOGETHER; i++)
            at[i] = codes + row / BSW_BUNDLE_ROWS * bundle_bytes + row % BSW_BUNDLE_ROWS + i;
        bsw_sums_of_eight(8, table, at, sums + row);
    }
}

INLINE void sums_of(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                    size_t num_bundles, float *sums)
{
    if (table->bits == 8) {
        sums_by_loads(table, codes, bundle_bytes, num_bundles, sums);
        return;
    }
    for (size_t b = 0; b < num_bundles; b += GROUP) {
        size_t left = num_bundles - b;
        sums_by_registers(table, codes + b * bundle_bytes, bundle_bytes,
                          left < GROUP ? left : GROUP, sums + b * BSW_BUNDLE_ROWS);
    }
}

#include "kernels/table_scan/table_scan_lanes.h"

static size_t neon_filter(const float *sums, float multiplier, float addition,
                          const uint32_t *masks, size_t num_bundles, uint32_t first_row,
                          uint32_t limit, uint64_t *items)
{
    const float32x4_t factor = vdupq_n_f32(multiplier), more = vdupq_n_f32(addition),
                      zero = vdupq_n_f32(0.0f), least = vdupq_n_f32(bsw_float_limit(limit));
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++, sums += BSW_BUNDLE_ROWS) {
        float keys[BSW_BUNDLE_ROWS];
        uint32x4_t reached[WIDE];
        for (int k = 0; k < WIDE; k++) {
            float32x4_t key = vmulq_f32(vld1q_f32(sums + k * LANES), factor);
            key = vaddq_f32(vaddq_f32(vaddq_f32(key, zero), more), zero);
            reached[k] = vcgeq_f32(key, least);
            vst1q_f32(keys + k * LANES, key);
        }
        uint32_t found = bsw_neon_word_mask(reached) & masks[b];
        count += append_keys(keys, found, first_row + (uint32_t)(b * BSW_BUNDLE_ROWS), limit,
                             items + count);
    }
    return count;
}

const struct bsw_table_scan_table bsw_table_scan_neon = {.level = "neon",
                                                         .products = products,
                                                         .nearest = nearest,
                                                         .distances = neon_distances,
                                                         .convert = convert,
                                                         .expand = expand,
                                                         .sums = sums,
                                                         .sums_at = sums_at,
                                                         .filter = neon_filter};
