// SPDX-License-Identifier: Apache-2.0
// encode on Arm: eight registers hold the 32 lanes of kernel_sums.h; the codes of 32 dimensions are
// packed to bytes, each bit of which is gathered to a plane word.
#include "kernels/encode/encode_lanes.h"

typedef float64x2_t doubles;

// Lanes 2k and 2k + 1 in s[k].
INLINE double tree_sum_double(float64x2_t s[16])
{
    for (int h = 8; h > 0; h /= 2) {
        for (int k = 0; k < h; k++) s[k] = vaddq_f64(s[k], s[k + h]);
    }
    return vgetq_lane_f64(s[0], 0) + vgetq_lane_f64(s[0], 1);
}

// The instruction quiets NaNs, the definition keeps their bits.
static void half_to_float(const uint16_t *numbers, size_t n, float *out)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint16x4_t halves;
        memcpy(&halves, numbers + i, sizeof halves);
        vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(halves)));
        uint16x4_t nans = vcgt_u16(vand_u16(halves, vdup_n_u16(0x7fff)), vdup_n_u16(0x7c00));
        if (vmaxv_u16(nans) == 0) continue;
        for (size_t k = i; k < i + 4; k++) out[k] = bsw_half_to_float(numbers[k]);
    }
    for (; i < n; i++) out[i] = bsw_half_to_float(numbers[i]);
}

// Squares are never -0.0, so here lanes past the end may add +0.0.
INLINE void add_squares(const float *x, size_t n, float64x2_t s[16])
{
    struct lanes y = load_lanes(x, n);
    for (int k = 0; k < 8; k++) {
        float64x2_t low = vcvt_f64_f32(vget_low_f32(y.v[k])), high = vcvt_high_f64_f32(y.v[k]);
        s[2 * k] = vfmaq_f64(s[2 * k], low, low);
        s[2 * k + 1] = vfmaq_f64(s[2 * k + 1], high, high);
    }
}

// floor(v) clipped to [low, high]. A NaN, which is quiet behind a product, gives low.
INLINE codes clipped_floor(floats v, floats low, floats high)
{
    return vcvtq_s32_f32(vrndmq_f32(vminq_f32(vmaxnmq_f32(v, low), high)));
}

// Floors of 16 dimensions as bytes in order.
INLINE uint8x16_t pack_bytes(const codes f[4])
{
    int16x8_t low = vcombine_s16(vmovn_s32(f[0]), vmovn_s32(f[1]));
    int16x8_t high = vcombine_s16(vmovn_s32(f[2]), vmovn_s32(f[3]));
    return vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

// The plane words of 32 codes of one document: u = 2^(bits-1) - 1 - f is f with all bits but the
// sign turned. word is plane 0's; planes are plane_stride apart.
INLINE void store_word(struct lane_codes f, unsigned bits, uint32_t valid, uint32_t *word,
                       size_t plane_stride)
{
    const uint8x16_t turn = vdupq_n_u8((uint8_t)((1 << (bits - 1)) - 1));
    uint8x16_t low = veorq_u8(pack_bytes(f.v), turn), high = veorq_u8(pack_bytes(f.v + 4), turn);
    for (unsigned p = 0; p < bits; p++) {
        const uint8x16_t bit = vdupq_n_u8((uint8_t)(1 << (bits - 1 - p)));
        word[p * plane_stride] =
            bsw_neon_byte_mask(vtstq_u8(low, bit), vtstq_u8(high, bit)) & valid;
    }
}

// The product: a tile of rows by 16 outputs lives in registers while the input dimensions go by. A
// panel of 16 columns of the rotation, DEPTH rows of it, is copied together so that it stays in the
// first cache whatever the stride (a stride of 4 KiB would put all of it into a few sets).
#define PANEL     16
#define TILE_ROWS 6
#define DEPTH     256

// Written out row by row: arrays of registers end up in memory with some compilers.
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

#define START_ROW(r)                                                             \
    const float *a##r = centered + (r < rows ? r * stride : 0);                  \
    float32x4_t p##r = vdupq_n_f32(0.0f), q##r = p##r, s##r = p##r, t##r = p##r; \
    if (r < rows && !fresh) {                                                    \
        const float *from = out + r * out_stride;                                \
        p##r = vld1q_f32(from), q##r = vld1q_f32(from + 4);                      \
        s##r = vld1q_f32(from + 8), t##r = vld1q_f32(from + 12);                 \
    }

#define STEP_ROW(r)                                                   \
    if (r < rows) {                                                   \
        float32x4_t x = vdupq_n_f32(a##r[k]);                         \
        p##r = vfmaq_f32(p##r, x, b0), q##r = vfmaq_f32(q##r, x, b1); \
        s##r = vfmaq_f32(s##r, x, b2), t##r = vfmaq_f32(t##r, x, b3); \
    }

#define STORE_ROW(r)                                       \
    if (r < rows) {                                        \
        float *to = out + r * out_stride;                  \
        vst1q_f32(to, p##r), vst1q_f32(to + 4, q##r);      \
        vst1q_f32(to + 8, s##r), vst1q_f32(to + 12, t##r); \
    }

// centered [rows][stride], panel [depth][panel_stride], out [rows][out_stride]; sums start at +0.0
// if `fresh`, else at out.
INLINE void project_tile(const float *centered, size_t stride, const float *panel,
                         size_t panel_stride, size_t depth, int fresh, float *out,
                         size_t out_stride, const int rows)
{
    EACH_ROW(START_ROW)
    for (size_t k = 0; k < depth; k++, panel += panel_stride) {
        float32x4_t b0 = vld1q_f32(panel), b1 = vld1q_f32(panel + 4);
        float32x4_t b2 = vld1q_f32(panel + 8), b3 = vld1q_f32(panel + 12);
        EACH_ROW(STEP_ROW)
    }
    EACH_ROW(STORE_ROW)
}

#include "kernels/encode/encode_rows.h"

const struct bsw_encode_table bsw_encode_neon = {
    .level = "neon",
    .to_float = to_float,
    .squared_norms = squared_norms,
    .xfbq = xfbq,
    .saq_center = saq_center,
    .saq_project = saq_project,
    .saq_quantize = saq_quantize,
};
