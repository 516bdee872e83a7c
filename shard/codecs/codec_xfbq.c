// SPDX-License-Identifier: Apache-2.0
// xfbq: the XFBQ paper's plain codes, bit for bit. Its scale is manifest->codec_number.
#include <math.h>
#include <string.h>

#include "shard/codecs/codec.h"
#include "shard/codecs/query_codes.h"

// ---- its part of a manifest ----

static enum bsw_status parse_part(const char *name, const void *data, size_t bytes,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    (void)data;
    (void)bytes;
    if (!(manifest->codec_number > 0) || !isfinite(manifest->codec_number))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the scale is out of range", name);
    if (manifest->layout.num_segments != 1 || manifest->metric != BSW_METRIC_COSINE)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no plain code", name);
    return BSW_OK;
}

// ---- training: a quantile ----

// |x_i| as 31 bits, whose order is that of the floats.
static uint32_t magnitude_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

// Counts magnitudes by their upper 15 bits (prefix < 0), or by the lower 16 of those with that
// prefix.
static enum bsw_status count_magnitudes(struct bsw_sample *sample, int64_t prefix, uint64_t *counts,
                                        uint64_t *total, struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(sample->vectors);
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    size_t num_rows;
    *total = 0;
    bsw_sample_rewind(sample, "training, quantile");
    for (;;) {
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num_rows, err));
        if (num_rows == 0) return BSW_OK;
        for (size_t i = 0; i < num_rows * dims; i++) {
            uint32_t bits = magnitude_bits(rows[i] * factors[i / dims]);
            if (prefix < 0)
                counts[bits >> 16]++;
            else if (bits >> 16 == (uint32_t)prefix)
                counts[bits & 0xffffu]++;
        }
        *total += num_rows * dims;
    }
}

// The bin in which the wanted-th smallest lies (from 1); *wanted becomes its place inside the bin.
static uint32_t bin_of(const uint64_t *counts, uint32_t num_bins, uint64_t *wanted)
{
    uint32_t bin = 0;
    while (bin + 1 < num_bins && counts[bin] < *wanted) *wanted -= counts[bin++];
    return bin;
}

static enum bsw_status find_quantile(struct bsw_sample *sample, uint64_t *counts, float *quantile,
                                     struct bsw_error *err)
{
    uint64_t total;
    memset(counts, 0, 65536 * sizeof *counts);
    BSW_TRY(count_magnitudes(sample, -1, counts, &total, err));
    if (total == 0) return bsw_sample_fail_empty(sample, err);
    uint64_t wanted = total - total / 50; // ceil(0.98 * total)
    uint32_t largest = 32767;
    while (largest > 0 && counts[largest] == 0) largest--;
    uint32_t prefix = bin_of(counts, 32768, &wanted);
    if (prefix < 128) { // zero or subnormal, without a finite reciprocal: mostly empty rows
        prefix = largest;
        wanted = counts[largest];
    }
    memset(counts, 0, 65536 * sizeof *counts);
    BSW_TRY(count_magnitudes(sample, prefix, counts, &total, err));
    uint32_t bits = prefix << 16 | bin_of(counts, 65536, &wanted);
    memcpy(quantile, &bits, sizeof bits);
    return BSW_OK;
}

// The scale of `--scale auto`: 1 / (0.98 quantile of |x_i| over the sample's unit rows); if that
// quantile is 0 or subnormal, the largest |x_i| takes its place.
static enum bsw_status train_scale(struct bsw_sample *sample, float *scale, struct bsw_error *err)
{
    uint64_t *counts;
    float quantile = 0;
    BSW_TRY(bsw_allocate(&counts, 65536, sizeof *counts, "quantile", err));
    enum bsw_status status = find_quantile(sample, counts, &quantile, err);
    bsw_free(&counts);
    if (status == BSW_OK) *scale = 1.0f / quantile;
    return status;
}

// ---- settings ----

static enum bsw_status check_settings(struct bsw_codec_settings *o, struct bsw_error *err)
{
    BSW_TRY(bsw_codec_check_plain(&bsw_codec_xfbq, o, err));
    if (!o->has_scale || (o->scale >= 1e-6 && o->scale <= 1e6)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--scale %g: 1e-6 to 1e6 is possible", o->scale);
}

static enum bsw_status train(const struct bsw_codec_settings *o, uint32_t dims,
                             struct bsw_sample *sample, const struct bsw_codec_model *model,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    (void)model;
    BSW_TRY(bsw_codec_lay_out_whole(manifest, dims, o->bits, err));
    BSW_TRY(bsw_code_layout_check(&manifest->layout, 1, err));
    if (!o->has_scale) return train_scale(sample, &manifest->codec_number, err);
    manifest->codec_number = (float)o->scale;
    return BSW_OK;
}

// ---- rows and queries ----

static void encode_tile(const struct bsw_codec_tile *tile, const struct bsw_code_arrays *arrays,
                        size_t bundle)
{
    const struct bsw_segment *segment = &tile->manifest->layout.segments[0];
    for (size_t done = 0; done < tile->num_rows; done += BSW_BUNDLE_ROWS, bundle++) {
        size_t left = tile->num_rows - done,
               count = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
        tile->kernels->xfbq(tile->rows + done * segment->dims, count, segment->dims,
                            tile->factors + done, tile->manifest->codec_number, segment->bits,
                            arrays->planes[0] + bundle * bsw_segment_bundle_words(segment));
    }
}

// As documents are, with the documents' scale (XFBQ Section 3.3).
static void encode_query(const struct bsw_codec_query *query, uint32_t *words,
                         union bsw_query_number *number, float *addend)
{
    const struct bsw_segment *segment = &query->manifest->layout.segments[0];
    float half = (float)(1u << (query->query_bits - 1));
    for (uint32_t i = 0; i < segment->dims; i++) {
        float y = query->row[i] * query->factor;
        float v = y * query->manifest->codec_number;
        bsw_query_put(words, segment->words, query->query_bits, i, v * half);
    }
    number->scale = 1.0f;
    *addend = 0.0f;
}

static float value(const struct bsw_manifest *manifest, uint32_t query_bits, int32_t key)
{
    double scale = manifest->codec_number;
    double unit =
        ldexp(1.0, -(int)(manifest->layout.segments[0].bits + query_bits)) / (scale * scale);
    return (float)((double)key * unit) + 0.0f;
}

static void describe(const struct bsw_manifest *manifest, struct bsw_codec_fact *out)
{
    *out = (struct bsw_codec_fact){
        .name = "scale", .format = ", scale %g", .number = manifest->codec_number};
}

static const struct bsw_codec_table table = {.metrics = 1u << BSW_METRIC_COSINE,
                                             .has_distances = 1,
                                             .has_whole_bits = 1,
                                             .needs_sample = 1,
                                             .check_settings = check_settings,
                                             .train = train,
                                             .encode_tile = encode_tile,
                                             .encode_query = encode_query,
                                             .value = value,
                                             .describe = describe};

const struct bsw_codec bsw_codec_xfbq = {
    .name = "xfbq", .known_rule = BSW_KNOWN_RULE, .parse_part = parse_part, .table = &table};
