#include "kernels/encode/query_codes.h"

#include <math.h>
#include <string.h>

#include "common/result_order.h"
#include "kernels/kernel_sums.h"
#include "kernels/rbe/rbe_coders.h"

void bsw_frame_of_manifest(const struct bsw_manifest *manifest, struct bsw_saq_frame *out)
{
    *out = (struct bsw_saq_frame){.layout = manifest->layout,
                                  .metric = manifest->metric,
                                  .mean = manifest->mean,
                                  .rotation = manifest->rotation,
                                  .stage_dims = manifest->stage_dims};
    memcpy(out->steps, manifest->steps, sizeof out->steps);
}

// Sets bit `bit` of the planes of one component: u with its highest bit in plane 0.
static void set_planes(uint32_t *words, uint32_t words_per_plane, uint32_t query_bits, uint32_t dim,
                       uint32_t u)
{
    for (uint32_t plane = 0; plane < query_bits; plane++) {
        uint32_t bit = (u >> (query_bits - 1 - plane)) & 1u;
        words[plane * words_per_plane + dim / 32] |= bit << (dim % 32);
    }
}

static uint32_t clip_floor(float v, uint32_t bits)
{
    float half = (float)(1u << (bits - 1));
    float f = floorf(v);
    f = f < -half ? -half : f > half - 1.0f ? half - 1.0f : f;
    return (uint32_t)(half - 1.0f - f);
}

static void encode_plain(const struct bsw_manifest *manifest, const float *row, float factor,
                         uint32_t query_bits, uint32_t *words)
{
    const struct bsw_segment *segment = &manifest->layout.segments[0];
    float half = (float)(1u << (query_bits - 1));
    for (uint32_t i = 0; i < segment->dims; i++) {
        float y = row[i] * factor;
        float v = y * manifest->xfbq_scale;
        set_planes(words, segment->words, query_bits, i, clip_floor(v * half, query_bits));
    }
}

// p = projected * step, in place; returns max|p|.
static float apply_steps(const struct bsw_manifest *manifest, float *projected)
{
    float largest = 0.0f;
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        const struct bsw_segment *segment = &manifest->layout.segments[s];
        float *p = projected + segment->padded_dim;
        for (uint32_t i = 0; i < segment->dims; i++) {
            p[i] *= manifest->steps[s];
            largest = fmaxf(largest, fabsf(p[i]));
        }
    }
    return largest;
}

static void encode_scaled(const struct bsw_manifest *manifest, const float *p, float scale,
                          uint32_t query_bits, uint32_t *words)
{
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        const struct bsw_segment *segment = &manifest->layout.segments[s];
        for (uint32_t i = 0; i < segment->dims; i++) {
            float v = scale > 0.0f ? p[segment->padded_dim + i] / (2.0f * scale) : 0.0f;
            set_planes(words, segment->words, query_bits, i, clip_floor(v, query_bits));
        }
        words += (size_t)segment->words * query_bits;
    }
}

void bsw_query_encode(const struct bsw_encode_table *table, const struct bsw_manifest *manifest,
                      const float *row, float factor, uint32_t query_bits, uint32_t *words,
                      float *scale, float *addend, float *scratch)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    memset(words, 0, bsw_layout_query_words(layout, query_bits) * sizeof *words);
    if (manifest->codec == BSW_CODEC_XFBQ) {
        encode_plain(manifest, row, factor, query_bits, words);
        *scale = 1.0f;
        *addend = 0.0f;
        return;
    }
    if (manifest->codec == BSW_CODEC_RBE) {
        bsw_rbe_encode_query(manifest->coders, row, factor, scratch, words, scale, addend);
        return;
    }
    struct bsw_saq_frame frame;
    float *projected = scratch, *centered = scratch + layout->padded_dims, mean_dot;
    bsw_frame_of_manifest(manifest, &frame);
    table->saq_center(&frame, row, 1, &factor, centered, &mean_dot);
    table->saq_project(&frame, centered, 1, projected);
    if (manifest->metric == BSW_METRIC_L2) {
        *addend = bsw_lane_dot_float(projected, projected, layout->padded_dims);
    } else { // <q, mu> = <q - mu, mu> + <mu, mu>
        *addend = mean_dot + bsw_lane_dot_float(manifest->mean, manifest->mean, layout->dims);
    }
    float largest = apply_steps(manifest, projected);
    float query_scale = largest / (float)((1u << query_bits) - 1);
    encode_scaled(manifest, projected, query_scale, query_bits, words);
    *scale = ldexpf(query_scale, manifest->scale_exponent);
}

float bsw_value_of_score(const struct bsw_manifest *manifest, uint32_t query_bits, uint32_t score,
                         float addend)
{
    if (manifest->codec == BSW_CODEC_XFBQ) {
        double scale = manifest->xfbq_scale;
        double unit =
            ldexp(1.0, -(int)(manifest->layout.segments[0].bits + query_bits)) / (scale * scale);
        return (float)((double)bsw_score_to_integer(score) * unit) + 0.0f;
    }
    if (manifest->codec == BSW_CODEC_RAW) {
        double key = (double)bsw_score_to_integer(score);
        return bsw_metric_written(bsw_metric_value(manifest->metric, key));
    }
    float key = bsw_score_to_float(score);
    return (manifest->metric == BSW_METRIC_L2 ? addend - key : key + addend) + 0.0f;
}
