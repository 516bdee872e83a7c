// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/query_codes.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "kernels/encode/raw_codes.h"
#include "shard/codecs/codec.h"

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
    if (bsw_has_row_norms(manifest->metric)) return (terms.addend - key) + 0.0f;
    return (key + terms.addend) * terms.unit + 0.0f;
}

// ---- pinned queries ----

#define QUERY_SEED 0x9177edb17u

const uint32_t bsw_pinned_planes[BSW_KNOWN_QUERIES] = {1, 2, 4, 6};

// q = (2^w - 1) - 2u in w planes is (2^B - 1) - 2(u + 2^(B-1) - 2^(w-1)) in B: the first plane
// stays, its complement fills the new ones, the others follow.
static void fill_word(uint32_t num_planes, uint32_t query_bits, uint64_t seed, uint32_t mask,
                      size_t stride, uint32_t *words)
{
    uint32_t first = (uint32_t)bsw_hash2(seed, 0) & mask, filled = query_bits - num_planes;
    words[0] = first;
    for (uint32_t plane = 1; plane < query_bits; plane++) {
        words[plane * stride] =
            plane <= filled ? ~first & mask : (uint32_t)bsw_hash2(seed, plane - filled) & mask;
    }
}

void bsw_pinned_words(const struct bsw_code_layout *layout, uint32_t num_planes,
                      uint32_t query_bits, uint64_t seed, uint32_t *words)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        for (uint32_t w = 0; w < segment->words; w++) {
            uint32_t rest = segment->dims - 32 * w;
            uint32_t mask = rest < 32 ? (1u << rest) - 1 : UINT32_MAX;
            fill_word(num_planes, query_bits, bsw_hash2(seed, segment->padded_dim / 32 + w), mask,
                      segment->words, words + w);
        }
        words += (size_t)segment->words * query_bits;
    }
}

uint32_t bsw_pinned_query_bits(const struct bsw_manifest *manifest)
{
    size_t i = BSW_KNOWN_QUERIES - 1;
    if (manifest->codec->has_bytes) return BSW_RAW_QUERY_BITS;
    if (manifest->codec->has_tables) return 1;
    while (i > 0 && bsw_code_layout_check(&manifest->layout, bsw_pinned_planes[i], NULL) != BSW_OK)
        i--;
    return bsw_pinned_planes[i];
}

uint32_t bsw_pinned_num(const struct bsw_manifest *manifest, uint32_t query_bits)
{
    uint32_t num = 1;
    if (manifest->codec->has_bytes || manifest->codec->has_tables) return BSW_KNOWN_QUERIES;
    while (num < BSW_KNOWN_QUERIES && bsw_pinned_planes[num] <= query_bits) num++;
    return num;
}

// Such that neither the product nor the bias of a usual row drowns the other; scales of rows are
// some 2^7 units of scale_exponent. Any value would do, if it were always the same and finite.
static float scale_of(const struct bsw_manifest *manifest, uint32_t num_planes)
{
    int exponent = 2 * manifest->scale_exponent + 7 - (int)num_planes;
    if (!manifest->codec->has_affine) return 1.0f;
    return ldexpf(1.0f, exponent < -60 ? -60 : exponent > 60 ? 60 : exponent);
}

static enum bsw_status make_planes(const struct bsw_manifest *manifest, size_t count,
                                   struct bsw_pinned_queries *out, struct bsw_error *err)
{
    struct bsw_query_batch *batch = &out->batch;
    BSW_TRY(bsw_buffer_reserve(&out->numbers, count * sizeof(float), err));
    float *scales = (float *)(void *)out->numbers.data;
    uint32_t *words = (uint32_t *)(void *)out->words.data;
    for (size_t i = 0; i < count; i++) {
        size_t query = i % out->num_queries;
        bsw_pinned_words(&manifest->layout, bsw_pinned_planes[query], batch->query_bits,
                         bsw_hash2(QUERY_SEED, query), words + i * batch->query_words);
        scales[i] = scale_of(manifest, bsw_pinned_planes[query]);
    }
    batch->scales = scales;
    return BSW_OK;
}

static enum bsw_status make_bytes(const struct bsw_manifest *manifest, size_t count,
                                  struct bsw_pinned_queries *out, struct bsw_error *err)
{
    size_t dims = manifest->layout.dims, padded_dims = manifest->layout.padded_dims;
    float least = manifest->source_type == BSW_VECTOR_UINT8 ? 0.0f : -128.0f;
    BSW_TRY(bsw_buffer_reserve(&out->numbers, count * sizeof(int32_t), err));
    int32_t *constants = (int32_t *)(void *)out->numbers.data;
    float *row;
    BSW_TRY(bsw_allocate(&row, dims, sizeof *row, "pinned query", err));
    for (size_t i = 0; i < count; i++) {
        uint64_t seed = bsw_hash2(QUERY_SEED, i % out->num_queries);
        for (size_t d = 0; d < dims; d++) row[d] = least + (float)(bsw_hash2(seed, d) % 256);
        bsw_raw_query_encode(manifest->source_type, manifest->metric, row, dims, padded_dims,
                             (int8_t *)out->words.data + i * padded_dims, &constants[i]);
    }
    bsw_free(&row);
    out->batch.constants = constants;
    out->batch.factor = bsw_raw_factor(manifest->metric);
    return BSW_OK;
}

// Each of the known queries has another type of table.
static enum bsw_status make_floats(const struct bsw_manifest *manifest, size_t count,
                                   struct bsw_pinned_queries *out, struct bsw_error *err)
{
    struct bsw_query_batch *batch = &out->batch;
    uint32_t *words = (uint32_t *)(void *)out->words.data;
    BSW_TRY(bsw_buffer_reserve(&out->numbers, count + 1, err));
    for (size_t i = 0; i < count; i++) {
        size_t query = i % out->num_queries;
        manifest->codec->table->pin_query(manifest, bsw_hash2(QUERY_SEED, query),
                                          words + i * batch->query_words);
        out->numbers.data[i] = (unsigned char)(query % BSW_NUM_TABLE_TYPES);
    }
    batch->product = manifest->codec->table->product(manifest);
    batch->tables = out->numbers.data;
    return BSW_OK;
}

enum bsw_status bsw_pinned_queries_make(const struct bsw_manifest *manifest, uint32_t query_bits,
                                        size_t count, struct bsw_pinned_queries *out,
                                        struct bsw_error *err)
{
    size_t query_words = bsw_query_words(manifest, query_bits);
    *out = (struct bsw_pinned_queries){.num_queries = bsw_pinned_num(manifest, query_bits)};
    BSW_TRY(bsw_buffer_reserve(&out->words, count * query_words * sizeof(uint32_t), err));
    out->batch = (struct bsw_query_batch){.num_queries = (uint32_t)count,
                                          .query_bits = query_bits,
                                          .query_words = query_words,
                                          .words = (const uint32_t *)(void *)out->words.data};
    return manifest->codec->has_bytes    ? make_bytes(manifest, count, out, err)
           : manifest->codec->has_tables ? make_floats(manifest, count, out, err)
                                         : make_planes(manifest, count, out, err);
}

void bsw_pinned_queries_deinit(struct bsw_pinned_queries *queries)
{
    bsw_buffer_deinit(&queries->words);
    bsw_buffer_deinit(&queries->numbers);
    queries->num_queries = 0;
}
