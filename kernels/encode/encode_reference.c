// SPDX-License-Identifier: Apache-2.0
// The oracle: encode.h's definitions number by number. Kept plain on purpose; the other levels are
// held to its bits.
#include <math.h>
#include <string.h>

#include "common/codes/half.h"
#include "kernels/encode/encode.h"
#include "kernels/kernel_sums.h"

static void reference_to_float(enum bsw_vector_type type, const void *numbers, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        switch (type) {
        case BSW_VECTOR_FLOAT32:
            memcpy(&out[i], (const float *)numbers + i, sizeof out[i]);
            break;
        case BSW_VECTOR_FLOAT16:
            out[i] = bsw_half_to_float(((const uint16_t *)numbers)[i]);
            break;
        case BSW_VECTOR_UINT8:
            out[i] = ((const uint8_t *)numbers)[i];
            break;
        case BSW_VECTOR_INT8:
            out[i] = ((const int8_t *)numbers)[i];
            break;
        default: // INT32 is no source of rows
            out[i] = 0.0f;
            break;
        }
    }
}

static void reference_squared_norms(const float *rows, size_t num_rows, size_t dims, double *norms)
{
    for (size_t r = 0; r < num_rows; r++) {
        const float *x = rows + r * dims;
        double s[BSW_SUM_LANES] = {0};
        for (size_t i = 0; i < dims; i++) {
            s[i % BSW_SUM_LANES] = fma(x[i], x[i], s[i % BSW_SUM_LANES]);
        }
        norms[r] = bsw_tree_sum_double(s);
    }
}

// floor(v), clipped; a NaN gives the lower end.
static int clipped_floor(float v, unsigned bits)
{
    int end = 1 << (bits - 1);
    float f = floorf(v);
    if (!(f >= (float)-end)) return -end;
    if (f > (float)(end - 1)) return end - 1;
    return (int)f;
}

// Sets the bits of u in planes that were zero.
static void put_code(uint32_t *planes, unsigned bits, size_t words, size_t lane, size_t i, int f)
{
    unsigned u = (1u << (bits - 1)) - 1u - (unsigned)f;
    for (unsigned p = 0; p < bits; p++) {
        uint32_t bit = u >> (bits - 1 - p) & 1u;
        planes[(p * words + i / 32) * BSW_BUNDLE_ROWS + lane] |= bit << (i % 32);
    }
}

static void reference_xfbq(const float *rows, size_t num_rows, size_t dims, const float *factors,
                           float scale, unsigned bits, uint32_t *planes)
{
    size_t words = (dims + 31) / 32;
    memset(planes, 0, bits * words * BSW_BUNDLE_ROWS * sizeof *planes);
    for (size_t r = 0; r < num_rows; r++) {
        for (size_t i = 0; i < dims; i++) {
            float y = rows[r * dims + i] * factors[r];
            float scaled = y * scale;
            float v = scaled * (float)(1 << (bits - 1));
            put_code(planes, bits, words, r, i, clipped_floor(v, bits));
        }
    }
}

static void reference_saq_center(const struct bsw_saq_frame *frame, const float *rows,
                                 size_t num_rows, const float *factors, float *centered,
                                 float *mean_dots)
{
    size_t dims = bsw_saq_row_dims(frame);
    for (size_t r = 0; r < num_rows; r++) {
        float *o = centered + r * dims;
        for (size_t j = 0; j < dims; j++) {
            float y = rows[r * dims + j] * factors[r];
            o[j] = y - frame->mean[j];
        }
        mean_dots[r] = bsw_lane_dot_float(bsw_saq_has_norms(frame) ? o : frame->mean, o, dims);
    }
}

static void reference_saq_project(const struct bsw_saq_frame *frame, const float *centered,
                                  size_t num_rows, float *projected)
{
    size_t dims = bsw_saq_row_dims(frame), padded_dims = frame->layout.padded_dims;
    for (size_t r = 0; r < num_rows; r++) {
        for (size_t i = 0; i < padded_dims; i++) {
            float sum = 0.0f;
            for (size_t j = 0; j < dims; j++) {
                sum = fmaf(centered[r * dims + j], frame->rotation[j * padded_dims + i], sum);
            }
            projected[r * padded_dims + i] = sum;
        }
    }
}

// Sum of o^2 over the padded dimensions of a row, segment after segment.
static float row_norm(const struct bsw_code_layout *layout, const float *o)
{
    float norm = 0.0f;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        const float *part = o + segment->padded_dim;
        float sum = bsw_lane_dot_float(part, part, (size_t)segment->words * 32);
        norm = s == 0 ? sum : norm + sum;
    }
    return norm;
}

// Codes one segment of one row; returns e_s and adds to the tail from stage_place (counted in this
// segment) on.
static float quantize_segment(const struct bsw_segment *segment, const float *o, float inverse,
                              size_t stage_place, size_t lane, uint32_t *planes, uint32_t *tail)
{
    float e[BSW_SUM_LANES] = {0};
    for (size_t i = 0; i < (size_t)segment->words * 32; i++) {
        int f = clipped_floor(o[i] * inverse, segment->bits);
        int c = 2 * f + 1;
        e[i % BSW_SUM_LANES] = fmaf(o[i], (float)c, e[i % BSW_SUM_LANES]);
        if (i >= segment->dims) continue;
        put_code(planes, segment->bits, segment->words, lane, i, f);
        if (i >= stage_place) *tail += (uint32_t)(c * c);
    }
    return bsw_tree_sum_float(e);
}

static void reference_saq_quantize(const struct bsw_saq_frame *frame, const float *projected,
                                   size_t num_rows, uint32_t *const *planes, float *norms,
                                   float *scales, uint32_t *tails)
{
    const struct bsw_code_layout *layout = &frame->layout;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        memset(planes[s], 0, bsw_segment_bundle_words(&layout->segments[s]) * sizeof *planes[s]);
    }
    for (size_t r = 0; r < num_rows; r++) {
        const float *o = projected + r * layout->padded_dims;
        float norm = row_norm(layout, o);
        norms[r] = 0.0f;
        scales[r] = 0.0f;
        tails[r] = 0;
        if (norm < 0x1p-126f) continue;
        float rms = sqrtf(norm / (float)layout->dims);
        float den = 0.0f;
        size_t place = 0; // of the segment's first dimension, without padding
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            const struct bsw_segment *segment = &layout->segments[s];
            float inverse = 1.0f / ((2.0f * frame->steps[s]) * rms);
            size_t stage_place = frame->stage_dims > place ? frame->stage_dims - place : 0;
            float e = quantize_segment(segment, o + segment->padded_dim, inverse, stage_place, r,
                                       planes[s], &tails[r]);
            den = fmaf(frame->steps[s], e, den);
            place += segment->dims;
        }
        norms[r] = norm;
        scales[r] = norm / den;
        if (bsw_has_row_norms(frame->metric)) scales[r] = 2.0f * scales[r];
    }
}

const struct bsw_encode_table bsw_encode_reference = {
    .level = "reference",
    .to_float = reference_to_float,
    .squared_norms = reference_squared_norms,
    .xfbq = reference_xfbq,
    .saq_center = reference_saq_center,
    .saq_project = reference_saq_project,
    .saq_quantize = reference_saq_quantize,
};

BSW_KERNEL_TABLE_GET(encode,
                     BSW_KERNEL_AVX2(encode) BSW_KERNEL_AVX512(encode) BSW_KERNEL_NEON(encode))
