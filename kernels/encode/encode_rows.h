// SPDX-License-Identifier: Apache-2.0
// Rows of encode from words of 32 lanes: what the levels do alike. Each includes this behind its
// own struct lanes (zero_lanes, load_lanes, add_products, lanes_sum), a register of doubles
// (add_squares, tree_sum_double), half_to_float, xfbq_word, center_word, project_tile with PANEL,
// TILE_ROWS and DEPTH, and quantize_segment.
#ifndef BITSWEEP_KERNELS_ENCODE_ROWS_H
#define BITSWEEP_KERNELS_ENCODE_ROWS_H

#include <string.h>

#include "kernels/encode/encode.h"
#include "kernels/kernel_sums.h"

#if defined(TILE_ROWS) // nothing without them

enum { NUM_DOUBLES = 32 * sizeof(double) / sizeof(doubles) }; // registers of 32

// The integer conversions are left to the compiler, which has vectors for them.
static void to_float(enum bsw_vector_type type, const void *numbers, size_t n, float *out)
{
    const uint8_t *bytes = numbers;
    const int8_t *signed_bytes = numbers;
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        memcpy(out, numbers, n * sizeof *out);
        break;
    case BSW_VECTOR_FLOAT16:
        half_to_float(numbers, n, out);
        break;
    case BSW_VECTOR_UINT8:
        for (size_t i = 0; i < n; i++) out[i] = bytes[i];
        break;
    case BSW_VECTOR_INT8:
        for (size_t i = 0; i < n; i++) out[i] = signed_bytes[i];
        break;
    default:
        memset(out, 0, n * sizeof *out);
        break;
    }
}

static void squared_norms(const float *rows, size_t num_rows, size_t dims, double *norms)
{
    for (size_t r = 0; r < num_rows; r++) {
        const float *x = rows + r * dims;
        doubles sums[NUM_DOUBLES];
        for (int k = 0; k < NUM_DOUBLES; k++) sums[k] = (doubles){0}; // gcc: no memset
        size_t i = 0;
        for (; i + 32 <= dims; i += 32) add_squares(x + i, 32, sums);
        if (i < dims) add_squares(x + i, dims - i, sums);
        norms[r] = tree_sum_double(sums);
    }
}

INLINE void xfbq_rows(const float *rows, size_t num_rows, size_t dims, const float *factors,
                      float scale, unsigned bits, uint32_t *planes)
{
    size_t plane_stride = (dims + 31) / 32 * BSW_BUNDLE_ROWS;
    for (size_t r = 0; r < num_rows; r++) {
        const float *x = rows + r * dims;
        uint32_t *word = planes + r;
        size_t i = 0;
        for (; i + 32 <= dims; i += 32, word += BSW_BUNDLE_ROWS) {
            xfbq_word(x + i, 32, factors[r], scale, bits, word, plane_stride);
        }
        if (i < dims) xfbq_word(x + i, dims - i, factors[r], scale, bits, word, plane_stride);
    }
}

static void xfbq(const float *rows, size_t num_rows, size_t dims, const float *factors, float scale,
                 unsigned bits, uint32_t *planes)
{
    if (num_rows < BSW_BUNDLE_ROWS) {
        memset(planes, 0, bits * ((dims + 31) / 32) * BSW_BUNDLE_ROWS * sizeof *planes);
    }
#define CALL(constant) xfbq_rows(rows, num_rows, dims, factors, scale, constant, planes)
    BSW_SWITCH_BITS(bits, CALL);
#undef CALL
}

static void saq_center(const struct bsw_saq_frame *frame, const float *rows, size_t num_rows,
                       const float *factors, float *centered, float *mean_dots)
{
    size_t dims = bsw_saq_row_dims(frame);
    for (size_t r = 0; r < num_rows; r++) {
        const float *x = rows + r * dims;
        float *o = centered + r * dims;
        const float *mean = frame->mean, factor = factors[r]; // read once: o may alias them
        struct lanes dot = zero_lanes();
        size_t i = 0;
        for (; i + 32 <= dims; i += 32) dot = center_word(x + i, mean + i, factor, 32, dot, o + i);
        if (i < dims) dot = center_word(x + i, mean + i, factor, dims - i, dot, o + i);
        mean_dots[r] = bsw_saq_has_norms(frame) ? bsw_lane_dot_float(o, o, dims) : lanes_sum(dot);
    }
}

typedef void (*tile_fn)(const float *centered, size_t stride, const float *panel,
                        size_t panel_stride, size_t depth, int fresh, float *out,
                        size_t out_stride);

#define TILE(rows)                                                                                \
    static void project_tile_##rows(const float *centered, size_t stride, const float *panel,     \
                                    size_t panel_stride, size_t depth, int fresh, float *out,     \
                                    size_t out_stride)                                            \
    {                                                                                             \
        project_tile(centered, stride, panel, panel_stride, depth, fresh, out, out_stride, rows); \
    }
#if TILE_ROWS > 6
#define EACH_TILE(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12)
#else
#define EACH_TILE(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6)
#endif
EACH_TILE(TILE)
#undef TILE

#define ENTRY(rows) project_tile_##rows,
static const tile_fn tiles[TILE_ROWS + 1] = {NULL, EACH_TILE(ENTRY)};

// All rows against one panel, in tiles as equal as they can be: no short last one.
static void project_panel(const float *centered, size_t num_rows, size_t stride, const float *panel,
                          size_t panel_stride, size_t depth, int fresh, float *out,
                          size_t out_stride)
{
    size_t num_tiles = (num_rows + TILE_ROWS - 1) / TILE_ROWS;
    for (size_t t = 0, row = 0; t < num_tiles; t++) {
        size_t rows = (num_rows - row) / (num_tiles - t);
        tiles[rows](centered + row * stride, stride, panel, panel_stride, depth, fresh,
                    out + row * out_stride, out_stride);
        row += rows;
    }
}

INLINE void copy_panel(const float *rotation, size_t stride, size_t depth, float *panel)
{
    for (size_t k = 0; k < depth; k++)
        memcpy(panel + k * PANEL, rotation + k * stride, PANEL * sizeof *panel);
}

static void saq_project(const struct bsw_saq_frame *frame, const float *centered, size_t num_rows,
                        float *projected)
{
    _Alignas(64) float panel[DEPTH * PANEL];
    size_t dims = bsw_saq_row_dims(frame), padded_dims = frame->layout.padded_dims;
    for (size_t j = 0; j < dims; j += DEPTH) {
        size_t depth = dims - j < DEPTH ? dims - j : DEPTH;
        for (size_t i = 0; i < padded_dims; i += PANEL) {
            const float *rotation = frame->rotation + j * padded_dims + i;
            if (num_rows <= TILE_ROWS) { // used once: a copy would cost as much as the product
                project_panel(centered + j, num_rows, dims, rotation, padded_dims, depth, j == 0,
                              projected + i, padded_dims);
                continue;
            }
            copy_panel(rotation, padded_dims, depth, panel);
            project_panel(centered + j, num_rows, dims, panel, PANEL, depth, j == 0, projected + i,
                          padded_dims);
        }
    }
}

static float row_norm(const struct bsw_code_layout *layout, const float *o)
{
    float norm = 0.0f;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const float *part = o + layout->segments[s].padded_dim;
        struct lanes sum = zero_lanes();
        for (size_t w = 0; w < layout->segments[s].words; w++) {
            struct lanes x = load_lanes(part + 32 * w, 32);
            sum = add_products(x, x, sum, 32);
        }
        norm = s == 0 ? lanes_sum(sum) : norm + lanes_sum(sum);
    }
    return norm;
}

static float quantize_any(const struct bsw_segment *segment, const float *o, float inverse,
                          size_t stage_place, uint32_t *word, uint32_t *tail)
{
#define CALL(constant) \
    return quantize_segment(segment, o, inverse, stage_place, constant, word, tail)
    BSW_SWITCH_BITS(segment->bits, CALL);
#undef CALL
}

// Codes of a row whose rms is known; returns den.
static float quantize_row(const struct bsw_saq_frame *frame, const float *o, float rms, size_t lane,
                          uint32_t *const *planes, uint32_t *tail)
{
    const struct bsw_code_layout *layout = &frame->layout;
    size_t place = 0; // of the segment's first dimension, without padding
    float den = 0.0f;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        const float *part = o + segment->padded_dim;
        float inverse = 1.0f / ((2.0f * frame->steps[s]) * rms);
        size_t stage_place = frame->stage_dims > place ? frame->stage_dims - place : 0;
        float e = quantize_any(segment, part, inverse, stage_place, planes[s] + lane, tail);
        den = __builtin_fmaf(frame->steps[s], e, den);
        place += segment->dims;
    }
    return den;
}

// Step by step over all rows: one row's sums, root and divisions form a chain that is longer than
// its work, and rows wait for nothing.
static void saq_quantize(const struct bsw_saq_frame *frame, const float *projected, size_t num_rows,
                         uint32_t *const *planes, float *norms, float *scales, uint32_t *tails)
{
    const struct bsw_code_layout *layout = &frame->layout;
    float rms[BSW_BUNDLE_ROWS], dens[BSW_BUNDLE_ROWS];
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        memset(planes[s], 0, bsw_segment_bundle_words(&layout->segments[s]) * sizeof *planes[s]);
    }
    for (size_t r = 0; r < num_rows; r++) {
        norms[r] = row_norm(layout, projected + r * layout->padded_dims);
    }
    for (size_t r = 0; r < num_rows; r++) {
        rms[r] = __builtin_sqrtf(norms[r] / (float)layout->dims);
        tails[r] = 0;
    }
    for (size_t r = 0; r < num_rows; r++) {
        if (norms[r] < 0x1p-126f) continue;
        const float *o = projected + r * layout->padded_dims;
        dens[r] = quantize_row(frame, o, rms[r], r, planes, &tails[r]);
    }
    for (size_t r = 0; r < num_rows; r++) {
        int is_zero = norms[r] < 0x1p-126f;
        if (is_zero) norms[r] = 0.0f;
        scales[r] = is_zero ? 0.0f : norms[r] / dens[r];
        if (bsw_has_row_norms(frame->metric)) scales[r] = 2.0f * scales[r];
    }
}

#endif
#endif
