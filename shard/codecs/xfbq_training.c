// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/xfbq_training.h"

#include <math.h>
#include <string.h>

#include "common/base/memory.h"
#include "shard/codecs/codec_xfbq.h"
#include "shard/codecs/principal_axes.h"

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
