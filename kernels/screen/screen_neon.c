// SPDX-License-Identifier: Apache-2.0
// 8 rows are two registers, 12 queries 24 running sums: a bundle takes four rounds. Rows as bytes
// go over dot products, which have four times the products of float32.
#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "kernels/neon_mask.h"
#include "kernels/screen/screen.h"

#define INLINE static inline __attribute__((always_inline))

enum { PART_ROWS = 8, PARTS = BSW_BUNDLE_ROWS / PART_ROWS };

_Static_assert(BSW_SCREEN_QUERIES == 12, "three registers");

// Named variables: gcc keeps an array of so many registers in memory.
struct column {
    float32x4_t low, high;
};

#define ADD_PRODUCTS(sums, query, lane)                                     \
    {                                                                       \
        (sums).low = vfmaq_laneq_f32((sums).low, rows_low, query, lane);    \
        (sums).high = vfmaq_laneq_f32((sums).high, rows_high, query, lane); \
    }
#define EACH_QUERY(DO) \
    DO(0, 0, 0)        \
    DO(1, 0, 1)        \
    DO(2, 0, 2)        \
    DO(3, 0, 3)        \
    DO(4, 1, 0)        \
    DO(5, 1, 1) DO(6, 1, 2) DO(7, 1, 3) DO(8, 2, 0) DO(9, 2, 1) DO(10, 2, 2) DO(11, 2, 3)
#define START(q, part, lane) struct column s##q = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
#define STEP(q, part, lane)  ADD_PRODUCTS(s##q, query##part, lane)
#define STORE(q, part, lane) sums[q] = s##q;

// [dims][32] and [dims][12], from the first of 8 rows.
static void multiply(const float *rows, const float *queries, size_t dims,
                     struct column sums[BSW_SCREEN_QUERIES])
{
    EACH_QUERY(START)
    for (size_t d = 0; d < dims; d++, rows += BSW_BUNDLE_ROWS, queries += BSW_SCREEN_QUERIES) {
        float32x4_t rows_low = vld1q_f32(rows), rows_high = vld1q_f32(rows + 4);
        float32x4_t query0 = vld1q_f32(queries), query1 = vld1q_f32(queries + 4),
                    query2 = vld1q_f32(queries + 8);
        EACH_QUERY(STEP)
    }
    EACH_QUERY(STORE)
}

// A bundle's rows that pass for one query.
INLINE uint32_t passing(struct column sums[PARTS][BSW_SCREEN_QUERIES], size_t query,
                        const float *biases, float limit)
{
    const float32x4_t least = vdupq_n_f32(limit);
    uint32x4_t reached[2 * PARTS];
    for (size_t part = 0; part < PARTS; part++) {
        struct column column = sums[part][query];
        const float *bias = biases + PART_ROWS * part;
        reached[2 * part] = vcgeq_f32(vaddq_f32(column.low, vld1q_f32(bias)), least);
        reached[2 * part + 1] = vcgeq_f32(vaddq_f32(column.high, vld1q_f32(bias + 4)), least);
    }
    return bsw_neon_word_mask(reached);
}

static void scan_bundle(const struct bsw_screen_tile *tile, size_t bundle,
                        const struct bsw_screen_queries *queries, struct bsw_screen_output *outputs)
{
    struct column sums[PARTS][BSW_SCREEN_QUERIES];
    const float *rows = tile->numbers + bundle * BSW_BUNDLE_ROWS * tile->dims;
    uint32_t place = (uint32_t)(bundle * BSW_BUNDLE_ROWS);
    for (size_t q = 0; q < queries->num_queries; q += BSW_SCREEN_QUERIES) {
        size_t left = queries->num_queries - q;
        for (size_t part = 0; part < PARTS; part++)
            multiply(rows + PART_ROWS * part, queries->numbers + q * tile->dims, tile->dims,
                     sums[part]);
        for (size_t j = 0; j < BSW_SCREEN_QUERIES && j < left; j++) {
            struct bsw_screen_output *output = &outputs[q + j];
            uint32_t pass = passing(sums, j, tile->biases + place, queries->limits[q + j]) &
                            tile->masks[bundle];
            for (; pass; pass &= pass - 1)
                output->places[output->count++] = place + (uint32_t)__builtin_ctz(pass);
        }
    }
}

static void neon_scan(const struct bsw_screen_tile *tile, const struct bsw_screen_queries *queries,
                      struct bsw_screen_output *outputs)
{
    for (size_t q = 0; q < queries->num_queries; q++) outputs[q].count = 0;
    for (size_t bundle = 0; bundle < tile->num_bundles; bundle++)
        scan_bundle(tile, bundle, queries, outputs);
}

static void neon_pack(const float *rows, const float *scales, size_t num_rows, size_t dims,
                      float *out)
{
    for (size_t r = 0; r < BSW_BUNDLE_ROWS; r++) {
        for (size_t d = 0; d < dims; d++)
            out[d * BSW_BUNDLE_ROWS + r] = r < num_rows ? rows[r * dims + d] * scales[r] : 0.0f;
    }
}

// ---- bytes ----

// The largest |x|; infinite where a number is not finite: bits without the sign are ordered as the
// numbers are, infinity and NaN above all.
static float largest_of(const float *row, size_t dims)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < dims; i++) {
        uint32_t bits;
        memcpy(&bits, row + i, sizeof bits);
        bits &= 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    float value;
    memcpy(&value, &largest, sizeof value);
    return largest >= 0x7f800000u ? INFINITY : value;
}

// What four dimensions are rounded to; adds the squares of their errors.
INLINE uint32x4_t pack_four(float32x4_t x, float inverse, float32x4_t *squares)
{
    float32x4_t place = vfmaq_f32(vdupq_n_f32(127.5f), x, vdupq_n_f32(-0.5f * inverse));
    float32x4_t u = vrndnq_f32(vminq_f32(vmaxq_f32(place, vdupq_n_f32(0.0f)), vdupq_n_f32(255.0f)));
    float32x4_t code = vfmsq_f32(vdupq_n_f32(255.0f), vdupq_n_f32(2.0f), u); // exact
    float32x4_t error = vfmaq_f32(vnegq_f32(code), x, vdupq_n_f32(inverse));
    *squares = vfmaq_f32(*squares, error, error);
    return vcvtq_u32_f32(u);
}

// 16 dimensions of a row, four groups that are 64 bytes apart.
INLINE void pack_sixteen(const float *x, float inverse, float32x4_t squares[4], uint8_t *bytes)
{
    for (size_t g = 0; g < 4; g++) {
        uint16x4_t u = vmovn_u32(pack_four(vld1q_f32(x + 4 * g), inverse, &squares[g]));
        uint8x8_t four = vmovn_u16(vcombine_u16(u, u));
        vst1_lane_u32((uint32_t *)(void *)(bytes + 64 * g), vreinterpret_u32_u8(four), 0);
    }
}

// The last dimensions of a row, fewer than 16; none: nothing. Padding is 0.
static void pack_rest(const float *row, size_t num, float inverse, float32x4_t squares[4],
                      uint8_t *bytes)
{
    float x[16] = {0};
    uint8_t packed[4 * 64];
    float32x4_t all[4];
    uint32_t indices[4] = {0, 1, 2, 3};
    if (num == 0) return;
    memcpy(x, row, num * sizeof *x);
    memcpy(all, squares, sizeof all);
    pack_sixteen(x, inverse, all, packed);
    for (size_t g = 0; g < 4; g++) {
        size_t valid = num > 4 * g ? num - 4 * g : 0;
        uint32x4_t is_valid = vcltq_u32(vld1q_u32(indices), vdupq_n_u32((uint32_t)valid));
        squares[g] = vbslq_f32(is_valid, all[g], squares[g]);
        for (size_t i = 0; i < 4; i++) bytes[64 * g + i] = i < valid ? packed[64 * g + i] : 0;
    }
}

// bytes: of the row's first group of 4 dimensions. Returns the sum of squared errors.
static float pack_row(const float *row, size_t dims, float step, uint8_t *bytes)
{
    float inverse = 1.0f / step;
    float32x4_t squares[4] = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f),
                              vdupq_n_f32(0.0f)};
    size_t i = 0, padded_dims = (dims + 31) / 32 * 32;
    for (; i + 16 <= dims; i += 16) pack_sixteen(row + i, inverse, squares, bytes + 16 * i);
    pack_rest(row + i, dims - i, inverse, squares, bytes + 16 * i);
    for (i = (dims + 15) / 16 * 16; i < padded_dims; i += 4) memset(bytes + 16 * i, 0, 4);
    for (size_t h = 2; h > 0; h /= 2) {
        for (size_t g = 0; g < h; g++) squares[g] = vaddq_f32(squares[g], squares[g + h]);
    }
    float32x2_t two = vadd_f32(vget_low_f32(squares[0]), vget_high_f32(squares[0]));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

static void neon_pack_codes(const float *rows, size_t num_rows, size_t dims, uint8_t *bytes,
                            float *steps, float *squared_errors)
{
    size_t padded_dims = (dims + 31) / 32 * 32;
    for (size_t r = 0; r < num_rows; r++) {
        float largest = largest_of(rows + r * dims, dims);
        steps[r] = squared_errors[r] = 0.0f;
        if (largest < BSW_SCREEN_LEAST_MAXIMUM || isinf(largest)) continue;
        steps[r] = largest / 255.0f;
        squared_errors[r] = pack_row(rows + r * dims, dims, steps[r],
                                     bytes + r / 16 * 16 * padded_dims + r % 16 * 4);
    }
}

const struct bsw_screen_table bsw_screen_neon = {
    .level = "neon",
    .pack = neon_pack,
    .pack_codes = neon_pack_codes,
    .scan = neon_scan,
};
