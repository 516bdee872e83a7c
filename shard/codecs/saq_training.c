// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/saq_training.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/sample.h"

#define GROUP_DIMS 32
#define NOTED_DIMS 1024 // below these axes take less than a second

// Half the step of the best uniform quantizer of a unit Gaussian with 1 to 8 bits, and its mean
// squared error (Max 1960).
const double bsw_quantizer_half_steps[BSW_MAX_CODE_BITS + 1] = {
    0, 0.7979, 0.4980, 0.2930, 0.1676, 0.0941, 0.0520, 0.0283, 0.0153};
const double bsw_quantizer_errors[BSW_MAX_CODE_BITS + 1] = {
    1, 0.3634, 0.1188, 0.03744, 0.01154, 0.003490, 0.001040, 0.0003035, 0.00008714};

// ---- bits ----

static uint32_t group_dims(uint32_t group, uint32_t dims)
{
    uint32_t left = dims - group * GROUP_DIMS;
    return left < GROUP_DIMS ? left : GROUP_DIMS;
}

// The group that gains most a bit spent, or -1 when nothing fits any more.
static int best_group(const double *group_energies, const uint32_t *bits, uint32_t num_groups,
                      uint32_t dims, uint64_t bits_left)
{
    int best = -1;
    double best_gain = -1;
    for (uint32_t g = 0; g < num_groups; g++) {
        uint32_t n = group_dims(g, dims);
        if (bits[g] >= BSW_MAX_CODE_BITS || n > bits_left) continue;
        double gain = group_energies[g] *
                      (bsw_quantizer_errors[bits[g]] - bsw_quantizer_errors[bits[g] + 1]) / n;
        if (gain > best_gain) {
            best_gain = gain;
            best = (int)g;
        }
    }
    return best;
}

static enum bsw_status merge_groups(const uint32_t *bits, uint32_t num_groups, uint32_t dims,
                                    struct bsw_code_layout *out, struct bsw_error *err)
{
    bsw_code_layout_init(out);
    for (uint32_t g = 0; g < num_groups && bits[g] > 0;) { // energies fall, and so do bits
        uint32_t merged = group_dims(g, dims), next = g + 1;
        while (next < num_groups && bits[next] == bits[g]) merged += group_dims(next++, dims);
        BSW_TRY(bsw_code_layout_append(out, merged, bits[g], err));
        g = next;
    }
    return BSW_OK;
}

enum bsw_status bsw_allocate_bits(const double *energies, uint32_t dims, double bits,
                                  uint32_t least, struct bsw_code_layout *out,
                                  struct bsw_error *err)
{
    uint32_t num_groups = (dims + GROUP_DIMS - 1) / GROUP_DIMS;
    uint32_t group_bits[BSW_SAQ_MAX_DIMS / GROUP_DIMS];
    double group_energies[BSW_SAQ_MAX_DIMS / GROUP_DIMS] = {0};
    for (uint32_t i = 0; i < dims; i++) group_energies[i / GROUP_DIMS] += energies[i];
    for (uint32_t g = 0; g < num_groups; g++) group_bits[g] = least;
    uint64_t total = (uint64_t)floor(bits * dims + 1e-9);
    uint64_t left = total > least * dims ? total - least * dims : 0;
    for (;;) {
        int g = best_group(group_energies, group_bits, num_groups, dims, left);
        if (g < 0) break;
        group_bits[g]++;
        left -= group_dims((uint32_t)g, dims);
    }
    return merge_groups(group_bits, num_groups, dims, out, err);
}

// "32x3,64x0": without the last segment, where it has no bits.
enum bsw_status bsw_saq_parse_segments(const char *text, uint32_t dims, struct bsw_code_layout *out,
                                       struct bsw_error *err)
{
    char coded[512];
    const char *last = strrchr(text, ',');
    size_t length = strlen(text);
    if (!last || length >= sizeof coded || strcmp(text + length - 2, "x0") != 0)
        return bsw_code_layout_parse(text, dims, out, err);
    char *end;
    unsigned long left_out = strtoul(last + 1, &end, 10);
    if (strcmp(end, "x0") != 0 || left_out < 1 || left_out >= dims)
        return bsw_code_layout_parse(text, dims, out, err);
    snprintf(coded, sizeof coded, "%.*s", (int)(last - text), text);
    enum bsw_status status = bsw_code_layout_parse(coded, dims - (uint32_t)left_out, out, err);
    return status == BSW_OK ? BSW_OK : bsw_prefix(err, status, "but for the last segment: ");
}

// ---- frame ----

// Working memory of the training: all of [dims] or [dims][dims] doubles.
struct workspace {
    uint32_t dims;
    double *sums;       // of the sample
    double *covariance; // then eigenvectors, column-major, ascending
    double *energies;   // descending
    double *rotation;   // of one segment
    double *block;      // [BSW_SAMPLE_TILE][dims]
};

static void workspace_deinit(struct workspace *work)
{
    bsw_free(&work->sums);
    bsw_free(&work->covariance);
    bsw_free(&work->energies);
    bsw_free(&work->rotation);
    bsw_free(&work->block);
}

static enum bsw_status workspace_init(struct workspace *work, uint32_t dims, struct bsw_error *err)
{
    size_t square = (size_t)dims * dims;
    *work = (struct workspace){.dims = dims};
    BSW_TRY(bsw_allocate_zero(&work->sums, dims, sizeof(double), "frame training", err));
    BSW_TRY(bsw_allocate_zero(&work->covariance, square, sizeof(double), "frame training", err));
    BSW_TRY(bsw_allocate_zero(&work->energies, dims, sizeof(double), "frame training", err));
    BSW_TRY(bsw_allocate(&work->rotation, square, sizeof(double), "frame training", err));
    return bsw_allocate(&work->block, (size_t)BSW_SAMPLE_TILE * dims, sizeof(double),
                        "frame training", err);
}

static enum bsw_status train_mean(struct bsw_sample *sample, struct workspace *work, float *mean,
                                  struct bsw_error *err)
{
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    size_t num_rows;
    uint64_t total = 0;
    bsw_sample_rewind(sample, "training, mean");
    for (;;) {
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num_rows, err));
        if (num_rows == 0) break;
        for (size_t r = 0; r < num_rows; r++) {
            const float *row = rows + r * work->dims;
            for (uint32_t j = 0; j < work->dims; j++)
                work->sums[j] += (double)(row[j] * factors[r]);
        }
        total += num_rows;
    }
    if (total == 0) return bsw_sample_fail_empty(sample, err);
    for (uint32_t j = 0; j < work->dims; j++) mean[j] = (float)(work->sums[j] / (double)total);
    return BSW_OK;
}

static enum bsw_status train_covariance(struct bsw_sample *sample, struct workspace *work,
                                        const float *mean, struct bsw_error *err)
{
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    size_t num_rows;
    uint32_t dims = work->dims;
    bsw_sample_rewind(sample, "training, covariance");
    for (;;) {
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num_rows, err));
        if (num_rows == 0) return BSW_OK;
        for (size_t i = 0; i < num_rows * dims; i++) {
            work->block[i] = (double)(rows[i] * factors[i / dims] - mean[i % dims]);
        }
        // Column-major [dims][num_rows]: covariance += block * block^T.
        cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)dims, (int)num_rows, 1.0,
                    work->block, (int)dims, 1.0, work->covariance, (int)dims);
    }
}

// LAPACK says nothing while it works, some 15 s for 4096 dims.
static void note_axes(struct bsw_sample *sample, uint32_t dims)
{
    char text[64];
    snprintf(text, sizeof text, "training, axes of %u dims", dims);
    if (dims >= NOTED_DIMS) bsw_progress_note(sample->progress, text);
}

// rotation[j][padded_dim + i] = sum over k of axes[first + k][j] * segment_rotation[k][i].
static void store_segment(const double *product, const struct bsw_segment *segment,
                          struct bsw_manifest *manifest)
{
    size_t padded = manifest->layout.padded_dims;
    for (uint32_t j = 0; j < bsw_manifest_row_dims(manifest); j++) {
        for (uint32_t i = 0; i < segment->dims; i++) {
            bsw_saq_part_of(manifest)->rotation[j * padded + segment->padded_dim + i] =
                (float)product[(size_t)j * segment->dims + i];
        }
    }
}

static enum bsw_status rotate_segments(struct workspace *work, const double *axes, uint64_t seed,
                                       struct bsw_manifest *manifest, struct bsw_error *err)
{
    int dims = (int)work->dims, first = 0;
    double *product = work->covariance; // no longer needed
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        const struct bsw_segment *segment = &manifest->layout.segments[s];
        int n = (int)segment->dims;
        BSW_TRY(bsw_random_rotation(bsw_hash2(seed, s), segment->dims, work->rotation, err));
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, dims, n, n, 1.0,
                    axes + (size_t)first * (size_t)dims, dims, work->rotation, n, 0.0, product, n);
        store_segment(product, segment, manifest);
        first += n;
    }
    return BSW_OK;
}

// The root mean square of o_i / rms(o) over each segment of the sample gives the segment's step.
static enum bsw_status train_steps(struct bsw_sample *sample, struct bsw_manifest *manifest,
                                   float *centered, float *projected, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    const float *rows;
    float factors[BSW_SAMPLE_TILE], mean_dots[BSW_SAMPLE_TILE];
    double ratios[BSW_MAX_SEGMENTS] = {0};
    size_t num_rows;
    uint64_t total = 0;
    struct bsw_saq_frame frame;
    bsw_frame_of_manifest(manifest, &frame);
    bsw_sample_rewind(sample, "training, steps");
    for (;;) {
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num_rows, err));
        if (num_rows == 0) break;
        sample->table->saq_center(&frame, rows, num_rows, factors, centered, mean_dots);
        sample->table->saq_project(&frame, centered, num_rows, projected);
        for (size_t r = 0; r < num_rows; r++) {
            double parts[BSW_MAX_SEGMENTS], norm = 0;
            for (uint32_t s = 0; s < layout->num_segments; s++) {
                const float *o =
                    projected + r * layout->padded_dims + layout->segments[s].padded_dim;
                parts[s] = 0;
                for (uint32_t i = 0; i < layout->segments[s].dims; i++)
                    parts[s] += (double)o[i] * (double)o[i];
                norm += parts[s];
            }
            if (norm < 0x1p-126) continue;
            for (uint32_t s = 0; s < layout->num_segments; s++) ratios[s] += parts[s] / norm;
            total++;
        }
    }
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        double ratio =
            total ? sqrt(ratios[s] / (double)total * layout->dims / layout->segments[s].dims) : 1.0;
        if (ratio < 1e-6) ratio = 1e-6; // a segment without energy still needs a step
        bsw_saq_part_of(manifest)->steps[s] =
            (float)(bsw_quantizer_half_steps[layout->segments[s].bits] * ratio);
    }
    return BSW_OK;
}

// Memory for a pass that projects the sample.
static enum bsw_status allocate_tiles(const struct bsw_manifest *manifest, float **centered,
                                      float **projected, struct bsw_error *err)
{
    *projected = NULL;
    BSW_TRY(bsw_allocate(centered, (size_t)BSW_SAMPLE_TILE * bsw_manifest_row_dims(manifest),
                         sizeof(float), "sample", err));
    enum bsw_status status =
        bsw_allocate(projected, (size_t)BSW_SAMPLE_TILE * manifest->layout.padded_dims,
                     sizeof(float), "sample", err);
    if (status != BSW_OK) bsw_free(centered);
    return status;
}

static enum bsw_status choose_layout(const struct bsw_saq_training *training,
                                     const double *energies, uint32_t dims,
                                     struct bsw_manifest *manifest, struct bsw_error *err)
{
    if (strcmp(training->segments, "auto") == 0) {
        BSW_TRY(bsw_allocate_bits(energies, dims, training->bits, training->may_leave_axes ? 0 : 1,
                                  &manifest->layout, err));
    } else {
        BSW_TRY(bsw_saq_parse_segments(training->segments, dims, &manifest->layout, err));
    }
    uint64_t bits = 0;
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        bits += (uint64_t)manifest->layout.segments[s].dims * manifest->layout.segments[s].bits;
    }
    manifest->bits = bits > dims ? (double)bits / dims : 1;
    manifest->row_dims = manifest->layout.dims < dims ? dims : 0;
    manifest->code_rule = manifest->row_dims > 0 ? BSW_SAQ_FEWER_AXES : 0;
    return bsw_code_layout_check(&manifest->layout, 1, err);
}

static enum bsw_status train_axes(struct bsw_sample *sample,
                                  const struct bsw_saq_training *training, struct workspace *work,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    uint32_t dims = work->dims;
    double *axes;
    BSW_TRY(bsw_allocate(&axes, (size_t)dims * dims, sizeof(double), "frame training", err));
    enum bsw_status status = BSW_OK;
    if (training->random_axes) {
        note_axes(sample, dims);
        for (uint32_t i = 0; i < dims; i++) work->energies[i] = 1.0;
        status = bsw_random_rotation(bsw_hash2(training->seed, UINT64_MAX), dims, axes, err);
    } else {
        status = train_covariance(sample, work, bsw_saq_part_of(manifest)->mean, err);
        if (status == BSW_OK) note_axes(sample, dims);
        if (status == BSW_OK)
            status = bsw_principal_axes(work->dims, work->covariance, work->energies, axes, err);
    }
    if (status == BSW_OK) status = choose_layout(training, work->energies, dims, manifest, err);
    if (status == BSW_OK) {
        status = bsw_allocate_zero(&bsw_saq_part_of(manifest)->rotation,
                                   (size_t)dims * manifest->layout.padded_dims, sizeof(float),
                                   "frame", err);
    }
    if (status == BSW_OK) status = rotate_segments(work, axes, training->seed, manifest, err);
    bsw_free(&axes);
    return status;
}

enum bsw_status bsw_train_saq_frame(struct bsw_sample *sample,
                                    const struct bsw_saq_training *training,
                                    struct bsw_manifest *manifest, struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(sample->vectors);
    struct workspace work;
    float *centered = NULL, *projected = NULL;
    openblas_set_num_threads(1); // its sums depend on the number of threads
    BSW_TRY(bsw_saq_part_create(manifest, err));
    BSW_TRY(bsw_allocate(&bsw_saq_part_of(manifest)->mean, dims, sizeof(float), "frame", err));
    enum bsw_status status = workspace_init(&work, dims, err);
    if (status == BSW_OK) status = train_mean(sample, &work, bsw_saq_part_of(manifest)->mean, err);
    if (sample->centroids) sample->mean = bsw_saq_part_of(manifest)->mean; // from here on residuals
    if (status == BSW_OK) status = train_axes(sample, training, &work, manifest, err);
    workspace_deinit(&work);
    if (status == BSW_OK) status = allocate_tiles(manifest, &centered, &projected, err);
    if (status == BSW_OK) status = train_steps(sample, manifest, centered, projected, err);
    bsw_free(&centered);
    bsw_free(&projected);
    snprintf(bsw_saq_part_of(manifest)->axes, sizeof bsw_saq_part_of(manifest)->axes, "%s",
             training->random_axes ? "random" : "principal");
    uint32_t coded = manifest->layout.dims, half = (coded / 2 + 31) / 32 * 32;
    manifest->stage_dims = half > 0 && half < coded ? half : coded; // 1 dim: no half
    return status;
}

// ---- exponents ----

static enum bsw_status largest_scale(struct bsw_sample *sample, const struct bsw_manifest *manifest,
                                     float *centered, float *projected, uint32_t *planes,
                                     float *largest, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    const float *rows;
    float factors[BSW_SAMPLE_TILE], mean_dots[BSW_SAMPLE_TILE], norms[BSW_BUNDLE_ROWS],
        scales[BSW_BUNDLE_ROWS];
    uint32_t tails[BSW_BUNDLE_ROWS], *segment_planes[BSW_MAX_SEGMENTS];
    size_t num_rows;
    struct bsw_saq_frame frame;
    bsw_frame_of_manifest(manifest, &frame);
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        segment_planes[s] = planes;
        planes += bsw_segment_bundle_words(&layout->segments[s]);
    }
    *largest = 0;
    bsw_sample_rewind(sample, "training, scales");
    for (;;) {
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num_rows, err));
        if (num_rows == 0) return BSW_OK;
        sample->table->saq_center(&frame, rows, num_rows, factors, centered, mean_dots);
        sample->table->saq_project(&frame, centered, num_rows, projected);
        for (size_t done = 0; done < num_rows; done += BSW_BUNDLE_ROWS) {
            size_t count = num_rows - done < BSW_BUNDLE_ROWS ? num_rows - done : BSW_BUNDLE_ROWS;
            sample->table->saq_quantize(&frame, projected + done * layout->padded_dims, count,
                                        segment_planes, norms, scales, tails);
            for (size_t r = 0; r < count; r++) *largest = fmaxf(*largest, scales[r]);
        }
    }
}

// ceil(log2) of the largest possible norm of c beyond the first stage: then tail /
// 2^(scale_exponent + this) is at most the scale's half, which never overflows.
static int tail_bits(const struct bsw_manifest *manifest)
{
    double squares = 0;
    uint32_t place = 0;
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        const struct bsw_segment *segment = &manifest->layout.segments[s];
        uint32_t beyond = place + segment->dims;
        beyond -= place > manifest->stage_dims    ? place
                  : manifest->stage_dims < beyond ? manifest->stage_dims
                                                  : beyond;
        double c = (double)((1u << segment->bits) - 1);
        squares += beyond * c * c;
        place += segment->dims;
    }
    int exponent;
    double fraction =
        frexp(sqrt(squares), &exponent); // norm = fraction * 2^exponent, fraction in [0.5, 1)
    return squares > 0 ? (fraction == 0.5 ? exponent - 1 : exponent) : 0;
}

enum bsw_status bsw_train_saq_exponents(struct bsw_sample *sample, struct bsw_manifest *manifest,
                                        struct bsw_error *err)
{
    size_t words = 0;
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        words += bsw_segment_bundle_words(&manifest->layout.segments[s]);
    }
    float *centered, *projected, largest = 0;
    uint32_t *planes = NULL;
    BSW_TRY(allocate_tiles(manifest, &centered, &projected, err));
    enum bsw_status status = bsw_allocate(&planes, words, sizeof *planes, "sample", err);
    if (status == BSW_OK)
        status = largest_scale(sample, manifest, centered, projected, planes, &largest, err);
    bsw_free(&planes);
    bsw_free(&projected);
    bsw_free(&centered);
    int exponent = 0;
    if (largest > 0) frexpf(largest, &exponent); // largest < 2^exponent
    manifest->scale_exponent = largest > 0 ? exponent - 8 : 0;
    manifest->tail_exponent = manifest->scale_exponent + tail_bits(manifest);
    return status;
}

enum bsw_status bsw_adopt_frame(const char *folder, uint32_t dims, struct bsw_manifest *manifest,
                                struct bsw_error *err)
{
    struct bsw_manifest model;
    BSW_TRY(bsw_manifest_read(folder, &model, err));
    enum bsw_status status =
        bsw_codec_check_model(folder, &model, bsw_manifest_row_dims(&model), manifest, dims, err);
    if (status == BSW_OK) {
        manifest->layout = model.layout;
        manifest->row_dims = model.row_dims;
        manifest->code_rule = model.code_rule;
        manifest->bits = model.bits;
        manifest->stage_dims = model.stage_dims;
        manifest->part = model.part;
        model.part = NULL;
    }
    bsw_manifest_deinit(&model);
    return status;
}
