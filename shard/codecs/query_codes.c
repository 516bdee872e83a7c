// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/query_codes.h"

#include <math.h>
#include <string.h>

#include "common/codes/result_order.h"

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

void bsw_query_put(uint32_t *words, uint32_t words_per_plane, uint32_t query_bits, uint32_t dim,
                   float v)
{
    set_planes(words, words_per_plane, query_bits, dim, clip_floor(v, query_bits));
}

static float largest_of(const struct bsw_code_layout *layout, const float *p)
{
    float largest = 0.0f;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        for (uint32_t i = 0; i < segment->dims; i++)
            largest = fabsf(p[segment->padded_dim + i]) > largest
                          ? fabsf(p[segment->padded_dim + i])
                          : largest;
    }
    return largest;
}

// One word of each plane: the codes u of 32 dimensions. Bit `plane` of eight bytes is brought
// together by a product, none of whose sums carries.
static void put_words(const uint8_t u[32], uint32_t words_per_plane, uint32_t query_bits,
                      uint32_t *words)
{
    for (uint32_t plane = 0; plane < query_bits; plane++) {
        uint32_t word = 0;
        for (uint32_t i = 0; i < 4; i++) {
            uint64_t eight;
            memcpy(&eight, u + 8 * i, sizeof eight);
            eight = eight >> (query_bits - 1 - plane) & 0x0101010101010101u;
            word |= (uint32_t)(eight * 0x0102040810204080u >> 56) << 8 * i;
        }
        words[plane * words_per_plane] = word;
    }
}

// clip_floor of p / (2 scale) for up to 32 dimensions; the others 0.
static void code_dims(const float *p, uint32_t num, float scale, uint32_t query_bits, uint8_t u[32])
{
    const float half = (float)(1u << (query_bits - 1)), twice = 2.0f * scale;
    memset(u, 0, 32);
    for (uint32_t i = 0; i < num; i++) {
        float v = scale > 0.0f ? p[i] / twice : 0.0f;
        // Not below -2^24, where a float is its own floor, nor above what is clipped anyway.
        v = v < -half ? -half : v > half - 1.0f ? half - 1.0f : v;
        int32_t f = (int32_t)v;
        f -= (float)f > v;
        u[i] = (uint8_t)((int32_t)half - 1 - f);
    }
}

float bsw_query_planes_scaled(const struct bsw_code_layout *layout, const float *p,
                              uint32_t query_bits, uint32_t *words)
{
    float scale = largest_of(layout, p) / (float)((1u << query_bits) - 1);
    uint8_t u[32];
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        for (uint32_t w = 0; w < segment->words; w++) {
            uint32_t left = segment->dims - 32 * w;
            code_dims(p + segment->padded_dim + 32 * w, left < 32 ? left : 32, scale, query_bits,
                      u);
            put_words(u, segment->words, query_bits, words + w);
        }
        words += (size_t)segment->words * query_bits;
    }
    return scale;
}

size_t bsw_query_words(const struct bsw_manifest *manifest, uint32_t query_bits)
{
    const struct bsw_codec_table *codec = manifest->codec->table;
    return codec->query_words ? codec->query_words(manifest)
                              : bsw_layout_query_words(&manifest->layout, query_bits);
}

size_t bsw_query_scratch_bytes(const struct bsw_manifest *manifest)
{
    const struct bsw_codec_table *codec = manifest->codec->table;
    size_t bytes = codec->query_scratch_bytes ? codec->query_scratch_bytes(manifest) : 0;
    return bsw_align_size(bytes, BSW_ALIGNMENT_BYTES);
}

void bsw_query_encode(const struct bsw_encode_table *kernels, const struct bsw_manifest *manifest,
                      const float *row, float factor, uint32_t query_bits, uint32_t *words,
                      union bsw_query_number *number, struct bsw_value_terms *value, void *scratch)
{
    const struct bsw_codec_table *codec = manifest->codec->table;
    float longer = codec->query_factor ? codec->query_factor(manifest, row) : 1.0f;
    const struct bsw_codec_query query = {manifest,        kernels,    row,
                                          factor * longer, query_bits, scratch};
    memset(words, 0, bsw_query_words(manifest, query_bits) * sizeof *words);
    value->unit = 1.0f / longer;
    codec->encode_query(&query, words, number, &value->addend);
}

float bsw_value_of_score(const struct bsw_manifest *manifest, uint32_t query_bits, uint32_t score,
                         struct bsw_value_terms terms)
{
    const struct bsw_codec_table *codec = manifest->codec->table;
    if (codec->value) return codec->value(manifest, query_bits, bsw_score_to_integer(score));
    float key = bsw_score_to_float(score);
    if (manifest->metric == BSW_METRIC_L2) return (terms.addend - key) + 0.0f;
    return (key + terms.addend) * terms.unit + 0.0f;
}
