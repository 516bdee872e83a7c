// SPDX-License-Identifier: Apache-2.0
// xfbq: the XFBQ paper's codes, bit for bit, of rows as they are (rule 0) or rotated (rule 1).
// Their scale is manifest->codec_number.
#include "shard/codecs/codec_xfbq.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bitsweep.pb-c.h"
#include "common/base/memory.h"
#include "common/files/sealed_message.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/device_coder.h"
#include "shard/codecs/query_codes.h"
#include "shard/codecs/sample.h"

#define PART_FIELD   19 // Manifest.part
#define ROTATED_RULE 1
#define MOST_WEIGHT  2.0f // of an orthogonal matrix 1, but for rounding

// ---- its part of a manifest ----

static void free_part(void *part)
{
    struct bsw_xfbq_part *xfbq = part;
    if (!xfbq) return;
    bsw_free(&xfbq->mean);
    bsw_free(&xfbq->rotation);
    bsw_free(&xfbq);
}

void bsw_xfbq_part_drop(struct bsw_manifest *manifest)
{
    free_part(manifest->part);
    manifest->part = NULL;
    manifest->code_rule = 0;
}

enum bsw_status bsw_xfbq_part_create(struct bsw_manifest *manifest, struct bsw_error *err)
{
    size_t dims = manifest->layout.dims, weights = dims * manifest->layout.padded_dims;
    bsw_xfbq_part_drop(manifest);
    BSW_TRY(bsw_allocate_zero(&manifest->part, 1, sizeof(struct bsw_xfbq_part), "rotation", err));
    struct bsw_xfbq_part *part = bsw_xfbq_part_of(manifest);
    manifest->code_rule = ROTATED_RULE;
    BSW_TRY(bsw_allocate_zero(&part->mean, dims, sizeof(float), "rotation", err));
    return bsw_allocate_zero(&part->rotation, weights, sizeof(float), "rotation", err);
}

// The matrix, which in the file has no padding.
static void copy_matrix(const struct bsw_manifest *manifest, unsigned char *dense, int is_packing)
{
    size_t dims = manifest->layout.dims, bytes = dims * sizeof(float);
    for (size_t j = 0; j < dims; j++, dense += bytes) {
        float *row =
            bsw_xfbq_part_of(manifest)->rotation + j * (size_t)manifest->layout.padded_dims;
        memcpy(is_packing ? (void *)dense : row, is_packing ? (void *)row : dense, bytes);
    }
}

static enum bsw_status pack_part(const struct bsw_manifest *manifest, struct bsw_buffer *out,
                                 struct bsw_error *err)
{
    size_t dims = manifest->layout.dims;
    Bsw__Rotation message = BSW__ROTATION__INIT;
    unsigned char *matrix;
    if (!manifest->part) return BSW_OK;
    BSW_TRY(bsw_allocate(&matrix, dims * dims, sizeof(float), "rotation", err));
    copy_matrix(manifest, matrix, 1);
    message.matrix = (ProtobufCBinaryData){dims * dims * sizeof(float), matrix};
    enum bsw_status status = bsw_message_pack(&message.base, out, err);
    bsw_free(&matrix);
    return status;
}

static enum bsw_status take_rotation(const char *name, const Bsw__Rotation *message,
                                     struct bsw_manifest *manifest, struct bsw_error *err)
{
    size_t dims = manifest->layout.dims;
    if (dims > BSW_XFBQ_MAX_ROTATED_DIMS || message->matrix.len != dims * dims * sizeof(float))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the rotation does not fit the dims", name);
    BSW_TRY(bsw_xfbq_part_create(manifest, err));
    copy_matrix(manifest, message->matrix.data, 0);
    const float *rotation = bsw_xfbq_part_of(manifest)->rotation;
    for (size_t i = 0; i < dims * manifest->layout.padded_dims; i++) {
        if (!(fabsf(rotation[i]) <= MOST_WEIGHT))
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the rotation is out of range", name);
    }
    return BSW_OK;
}

static enum bsw_status parse_part(const char *name, const void *data, size_t bytes,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    Bsw__Rotation *message;
    if (!(manifest->codec_number > 0) || !isfinite(manifest->codec_number))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the scale is out of range", name);
    if (manifest->layout.num_segments != 1 || !bsw_has_unit_rows(manifest->metric))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no plain code", name);
    if (manifest->code_rule == 0 && bytes > 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: a rotation of codes without one", name);
    if (manifest->code_rule == 0) return BSW_OK;
    BSW_TRY(bsw_message_unpack(&bsw__rotation__descriptor, name, "rotation", data, bytes, &message,
                               err));
    enum bsw_status status = take_rotation(name, message, manifest, err);
    bsw_message_free(message);
    return status;
}

// ---- settings ----

static enum bsw_status check_settings(struct bsw_codec_settings *o, struct bsw_error *err)
{
    BSW_TRY(bsw_codec_check_plain(&bsw_codec_xfbq, o, err));
    if (o->rotation && strcmp(o->rotation, "opq") == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--rotation opq is for --codec pq: xfbq has random and none");
    if (!o->has_scale || (o->scale >= 1e-6 && o->scale <= 1e6)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--scale %g: must be 1e-6 to 1e6", o->scale);
}

static enum bsw_status check_rows(const struct bsw_codec_settings *o, const char *source,
                                  enum bsw_vector_type type, uint32_t dims, struct bsw_error *err)
{
    (void)type;
    if (dims <= BSW_XFBQ_MAX_ROTATED_DIMS || !o->rotation || strcmp(o->rotation, "random") != 0)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--rotation random takes up to %d dims, %s has %u: say none",
                    BSW_XFBQ_MAX_ROTATED_DIMS, source, dims);
}

static enum bsw_status train(const struct bsw_codec_settings *o, uint32_t dims,
                             struct bsw_sample *sample, const struct bsw_codec_model *model,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    (void)model;
    BSW_TRY(bsw_codec_lay_out_whole(manifest, dims, o->bits, err));
    BSW_TRY(bsw_code_layout_check(&manifest->layout, 1, err));
    return bsw_train_xfbq(o, sample, manifest, err);
}

// ---- rotated rows ----

int bsw_xfbq_frame(const struct bsw_manifest *manifest, struct bsw_saq_frame *out)
{
    const struct bsw_xfbq_part *part = bsw_xfbq_part_of(manifest);
    if (!part) return 0;
    *out = (struct bsw_saq_frame){.layout = manifest->layout,
                                  .metric = manifest->metric,
                                  .mean = part->mean,
                                  .rotation = part->rotation,
                                  .stage_dims = manifest->layout.dims};
    return 1;
}

size_t bsw_xfbq_rotate_bytes(const struct bsw_code_layout *layout, size_t num_rows)
{
    return num_rows * (layout->padded_dims + layout->dims) * sizeof(float);
}

float *bsw_xfbq_rotate(const struct bsw_encode_table *kernels, const struct bsw_saq_frame *frame,
                       const float *rows, size_t num_rows, const float *factors, void *scratch)
{
    size_t dims = frame->layout.dims, padded = frame->layout.padded_dims;
    float mean_dots[BSW_TILE_MAX_ROWS];
    float *rotated = scratch, *unit = rotated + num_rows * padded;
    kernels->saq_center(frame, rows, num_rows, factors, unit, mean_dots);
    kernels->saq_project(frame, unit, num_rows, rotated);
    for (size_t r = 1; r < num_rows && padded != dims; r++)
        memmove(rotated + r * dims, rotated + r * padded, dims * sizeof(float));
    return rotated;
}

// ---- rows and queries ----

static size_t tile_scratch_bytes(const struct bsw_manifest *manifest, size_t num_rows)
{
    return manifest->part ? bsw_xfbq_rotate_bytes(&manifest->layout, num_rows) : 0;
}

static size_t query_scratch_bytes(const struct bsw_manifest *manifest)
{
    return tile_scratch_bytes(manifest, 1);
}

static void encode_tile(const struct bsw_codec_tile *tile, const struct bsw_code_arrays *arrays,
                        size_t bundle)
{
    const struct bsw_segment *segment = &tile->manifest->layout.segments[0];
    const float *rows = tile->rows, *factors = tile->factors;
    float ones[BSW_TILE_MAX_ROWS];
    struct bsw_saq_frame frame;
    if (bsw_xfbq_frame(tile->manifest, &frame)) {
        rows = bsw_xfbq_rotate(tile->kernels, &frame, rows, tile->num_rows, factors, tile->scratch);
        for (size_t r = 0; r < tile->num_rows; r++) ones[r] = 1.0f;
        factors = ones;
    }
    for (size_t done = 0; done < tile->num_rows; done += BSW_BUNDLE_ROWS, bundle++) {
        size_t left = tile->num_rows - done,
               count = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
        tile->kernels->xfbq(rows + done * segment->dims, count, segment->dims, factors + done,
                            tile->manifest->codec_number, segment->bits,
                            arrays->planes[0] + bundle * bsw_segment_bundle_words(segment));
    }
}

// As documents are, with the documents' scale (XFBQ Section 3.3).
static void encode_query(const struct bsw_codec_query *query, uint32_t *words,
                         union bsw_query_number *number, float *addend)
{
    const struct bsw_segment *segment = &query->manifest->layout.segments[0];
    const float *row = query->row;
    float half = (float)(1u << (query->query_bits - 1)), factor = query->factor;
    struct bsw_saq_frame frame;
    if (bsw_xfbq_frame(query->manifest, &frame)) {
        row = bsw_xfbq_rotate(query->kernels, &frame, row, 1, &factor, query->scratch);
        factor = 1.0f;
    }
    for (uint32_t i = 0; i < segment->dims; i++) {
        float y = row[i] * factor;
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
    out[0] = (struct bsw_codec_fact){
        .name = "scale", .format = ", scale %g", .number = manifest->codec_number};
    out[1] = (struct bsw_codec_fact){.name = "rotation", .format = ", rotation %s"};
    snprintf(out[1].text, sizeof out[1].text, "%s", manifest->part ? "random" : "none");
}

static const struct bsw_codec_table table = {.metrics = BSW_UNIT_METRICS,
                                             .has_distances = 1,
                                             .has_whole_bits = 1,
                                             .has_rotation = 1,
                                             .needs_sample = 1,
                                             .device_coder = &bsw_device_coder_xfbq,
                                             .check_settings = check_settings,
                                             .check_rows = check_rows,
                                             .train = train,
                                             .tile_scratch_bytes = tile_scratch_bytes,
                                             .query_scratch_bytes = query_scratch_bytes,
                                             .encode_tile = encode_tile,
                                             .encode_query = encode_query,
                                             .value = value,
                                             .describe = describe};

const struct bsw_codec bsw_codec_xfbq = {.name = "xfbq",
                                         .known_rule = BSW_KNOWN_RULE,
                                         .code_rule = ROTATED_RULE,
                                         .part_field = PART_FIELD,
                                         .pack_part = pack_part,
                                         .free_part = free_part,
                                         .parse_part = parse_part,
                                         .table = &table};

// ---- training -----------------------------------------------------------------------------------

#define NUM_COUNTS 65536
#define TRIED_HALF 4   // 2^(bits - 1) of 3 bits
#define MOST_ERROR 0.9 // that a rotation may leave

// The sample coded in one of both ways.
struct trial {
    struct bsw_sample *sample;
    const struct bsw_saq_frame *frame; // NULL: rows as they are
    uint64_t *counts;                  // [NUM_COUNTS]
    float *scratch;                    // of bsw_xfbq_rotate for a tile
    uint64_t tile, every;              // of a pass: its next tile; one of so many is looked at
    float scale;
    double error; // squared, of a component
};

// ---- passes ----

static void begin_pass(struct trial *trial, const char *label)
{
    uint64_t dims = bsw_vectors_dims(trial->sample->vectors);
    // At most 2^34 multiply-adds for a sample as large as it gets.
    trial->every = trial->frame ? 1 + dims * dims / (1u << 18) : 1;
    trial->tile = 0;
    bsw_sample_rewind(trial->sample, label);
}

// The next components: *count of them, 0 at the end.
static enum bsw_status next_values(struct trial *trial, const float **values, size_t *count,
                                   struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(trial->sample->vectors);
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    size_t num_rows;
    do {
        BSW_TRY(bsw_sample_next(trial->sample, &rows, factors, &num_rows, err));
    } while (num_rows > 0 && trial->tile++ % trial->every != 0);
    *values = trial->scratch;
    *count = num_rows * dims;
    if (trial->frame) {
        bsw_xfbq_rotate(trial->sample->table, trial->frame, rows, num_rows, factors,
                        trial->scratch);
        return BSW_OK;
    }
    for (size_t i = 0; i < *count; i++) trial->scratch[i] = rows[i] * factors[i / dims];
    return BSW_OK;
}

// ---- the scale: a quantile ----

// |x_i| as 31 bits, whose order is that of the floats.
static uint32_t magnitude_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

// Counts magnitudes by their upper 15 bits (prefix < 0), or by the lower 16 of those with that
// prefix.
static enum bsw_status count_magnitudes(struct trial *trial, int64_t prefix, uint64_t *total,
                                        struct bsw_error *err)
{
    const float *values;
    size_t count;
    *total = 0;
    memset(trial->counts, 0, NUM_COUNTS * sizeof *trial->counts);
    begin_pass(trial, "training, quantile");
    for (;;) {
        BSW_TRY(next_values(trial, &values, &count, err));
        if (count == 0) return BSW_OK;
        for (size_t i = 0; i < count; i++) {
            uint32_t bits = magnitude_bits(values[i]);
            if (prefix < 0)
                trial->counts[bits >> 16]++;
            else if (bits >> 16 == (uint32_t)prefix)
                trial->counts[bits & 0xffffu]++;
        }
        *total += count;
    }
}

// The bin in which the wanted-th smallest lies (from 1); *wanted becomes its place inside the bin.
static uint32_t bin_of(const uint64_t *counts, uint32_t num_bins, uint64_t *wanted)
{
    uint32_t bin = 0;
    while (bin + 1 < num_bins && counts[bin] < *wanted) *wanted -= counts[bin++];
    return bin;
}

// The scale of `--scale auto`: 1 / (0.98 quantile of |x_i| over the sample's unit rows); if that
// quantile is 0 or subnormal, the largest |x_i| takes its place.
static enum bsw_status train_scale(struct trial *trial, struct bsw_error *err)
{
    uint64_t total;
    float quantile;
    BSW_TRY(count_magnitudes(trial, -1, &total, err));
    if (total == 0) return bsw_sample_fail_empty(trial->sample, err);
    uint64_t wanted = total - total / 50; // ceil(0.98 * total)
    uint32_t largest = 32767;
    while (largest > 0 && trial->counts[largest] == 0) largest--;
    uint32_t prefix = bin_of(trial->counts, 32768, &wanted);
    if (prefix < 128) { // zero or subnormal, without a finite reciprocal: mostly empty rows
        prefix = largest;
        wanted = trial->counts[largest];
    }
    BSW_TRY(count_magnitudes(trial, prefix, &total, err));
    uint32_t bits = prefix << 16 | bin_of(trial->counts, NUM_COUNTS, &wanted);
    memcpy(&quantile, &bits, sizeof quantile);
    trial->scale = 1.0f / quantile;
    return BSW_OK;
}

// ---- the rotation ----

static enum bsw_status make_rotation(uint64_t seed, struct bsw_manifest *manifest,
                                     struct bsw_error *err)
{
    uint32_t dims = manifest->layout.dims;
    double *matrix;
    BSW_TRY(bsw_xfbq_part_create(manifest, err));
    float *rotation = bsw_xfbq_part_of(manifest)->rotation;
    BSW_TRY(bsw_allocate(&matrix, (size_t)dims * dims, sizeof *matrix, "rotation", err));
    enum bsw_status status = bsw_random_rotation(seed, dims, matrix, err);
    for (size_t j = 0; j < dims && status == BSW_OK; j++) {
        for (size_t i = 0; i < dims; i++)
            rotation[j * manifest->layout.padded_dims + i] = (float)matrix[j * dims + i];
    }
    bsw_free(&matrix);
    return status;
}

// The mean squared error of a component.
static enum bsw_status measure_error(struct trial *trial, struct bsw_error *err)
{
    const float *values;
    size_t count, total = 0;
    double sum = 0, scale = (double)trial->scale;
    begin_pass(trial, "training, rotation");
    for (;;) {
        BSW_TRY(next_values(trial, &values, &count, err));
        if (count == 0) break;
        for (size_t i = 0; i < count; i++) {
            double v = (double)values[i] * scale * TRIED_HALF, f = floor(v);
            f = f < -TRIED_HALF ? -TRIED_HALF : f > TRIED_HALF - 1 ? TRIED_HALF - 1 : f;
            sum += (v - f - 0.5) * (v - f - 0.5);
        }
        total += count;
    }
    trial->error = total > 0 ? sum / (double)total / (scale * scale) : 0;
    return BSW_OK;
}

// Drops a rotation that is not worth it.
static enum bsw_status choose(struct trial *plain, struct trial *rotated,
                              struct bsw_manifest *manifest, struct bsw_error *err)
{
    BSW_TRY(measure_error(plain, err));
    BSW_TRY(measure_error(rotated, err));
    if (rotated->error < MOST_ERROR * plain->error) return BSW_OK;
    bsw_xfbq_part_drop(manifest);
    return BSW_OK;
}

// ---- both ----

static enum bsw_status run_trials(const struct bsw_codec_settings *settings, struct trial *plain,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    int is_auto = !settings->rotation, is_random = !is_auto && manifest->part;
    struct bsw_saq_frame frame;
    struct trial rotated = *plain;
    rotated.frame = bsw_xfbq_frame(manifest, &frame) ? &frame : NULL;
    if (!settings->has_scale) {
        if (!is_random) BSW_TRY(train_scale(plain, err));
        if (rotated.frame) BSW_TRY(train_scale(&rotated, err));
    }
    if (is_auto && rotated.frame) BSW_TRY(choose(plain, &rotated, manifest, err));
    manifest->codec_number = manifest->part ? rotated.scale : plain->scale;
    return BSW_OK;
}

enum bsw_status bsw_train_xfbq(const struct bsw_codec_settings *settings, struct bsw_sample *sample,
                               struct bsw_manifest *manifest, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    struct trial plain = {.sample = sample, .scale = (float)settings->scale};
    int may_rotate = settings->rotation ? strcmp(settings->rotation, "random") == 0
                                        : layout->dims <= BSW_XFBQ_MAX_ROTATED_DIMS;
    if (may_rotate) BSW_TRY(make_rotation(settings->seed, manifest, err));
    BSW_TRY(bsw_allocate(&plain.counts, NUM_COUNTS, sizeof *plain.counts, "quantile", err));
    enum bsw_status status = bsw_allocate(
        &plain.scratch, bsw_xfbq_rotate_bytes(layout, BSW_SAMPLE_TILE), 1, "sample", err);
    if (status == BSW_OK) status = run_trials(settings, &plain, manifest, err);
    bsw_free(&plain.counts);
    bsw_free(&plain.scratch);
    return status;
}
