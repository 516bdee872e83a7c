// SPDX-License-Identifier: Apache-2.0
// saq: segmented adaptive quantization, several bits where the data has its energy
// (saq_training.h).
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/saq_training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bitsweep.pb-c.h"
#include "common/codes/half.h"
#include "common/files/sealed_message.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/kernel_sums.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/device_coder.h"
#include "shard/codecs/query_codes.h"

#define PART_FIELD 10 // Manifest.frame

// ---- its part of a manifest ----

static void free_part(void *part)
{
    struct bsw_saq_part *saq = part;
    if (!saq) return;
    bsw_free(&saq->mean);
    bsw_free(&saq->rotation);
    bsw_free(&saq);
}

enum bsw_status bsw_saq_part_create(struct bsw_manifest *manifest, struct bsw_error *err)
{
    free_part(manifest->part);
    return bsw_allocate_zero(&manifest->part, 1, sizeof(struct bsw_saq_part), "frame", err);
}

// Copies the columns of the segments, which in the file stand without the padding between them: it
// is 0 by definition.
static void copy_columns(const struct bsw_code_layout *layout, uint32_t row_dims, float *padded,
                         unsigned char *dense, int is_packing)
{
    for (uint32_t j = 0; j < row_dims; j++) {
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            const struct bsw_segment *segment = &layout->segments[s];
            float *row = padded + (size_t)j * layout->padded_dims + segment->padded_dim;
            size_t bytes = segment->dims * sizeof(float);
            memcpy(is_packing ? (void *)dense : row, is_packing ? (void *)row : dense, bytes);
            dense += bytes;
        }
    }
}

static enum bsw_status pack_part(const struct bsw_manifest *manifest, struct bsw_buffer *out,
                                 struct bsw_error *err)
{
    const struct bsw_saq_part *saq = bsw_saq_part_of(manifest);
    size_t dims = bsw_manifest_row_dims(manifest), numbers = dims * manifest->layout.dims;
    unsigned char *rotation;
    BSW_TRY(bsw_allocate(&rotation, numbers, sizeof(float), "frame", err));
    copy_columns(&manifest->layout, (uint32_t)dims, saq->rotation, rotation, 1);
    Bsw__Frame frame = BSW__FRAME__INIT;
    frame.mean = (ProtobufCBinaryData){dims * sizeof(float), (uint8_t *)saq->mean};
    frame.rotation = (ProtobufCBinaryData){numbers * sizeof(float), rotation};
    frame.n_steps = manifest->layout.num_segments;
    frame.steps = (float *)saq->steps;
    frame.scale_exponent = manifest->scale_exponent;
    frame.tail_exponent = manifest->tail_exponent;
    frame.stage_dims = manifest->stage_dims;
    frame.axes = (char *)saq->axes;
    frame.row_dims = manifest->row_dims;
    enum bsw_status status = bsw_message_pack(&frame.base, out, err);
    bsw_free(&rotation);
    return status;
}

static int is_finite_array(const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) return 0;
    }
    return 1;
}

static enum bsw_status bad(const char *name, const char *what, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", name, what);
}

static enum bsw_status check_frame(const char *name, const Bsw__Frame *frame,
                                   const struct bsw_manifest *manifest, struct bsw_error *err)
{
    uint32_t dims = manifest->layout.dims, row_dims = frame->row_dims > 0 ? frame->row_dims : dims;
    if (row_dims > BSW_SAQ_MAX_DIMS || frame->mean.len != row_dims * sizeof(float) ||
        frame->rotation.len != (size_t)row_dims * dims * sizeof(float) ||
        (frame->row_dims > 0) != (manifest->code_rule == BSW_SAQ_FEWER_AXES) || row_dims < dims ||
        frame->n_steps != manifest->layout.num_segments) {
        return bad(name, "the frame does not fit dims and segments", err);
    }
    if (frame->stage_dims < 1 || frame->stage_dims > dims ||
        (frame->stage_dims % 32 != 0 && frame->stage_dims != dims) ||
        frame->scale_exponent < -126 || frame->scale_exponent > 126 ||
        frame->tail_exponent < -126 || frame->tail_exponent > 126) {
        return bad(name, "the frame is out of range", err);
    }
    return BSW_OK;
}

static enum bsw_status take_frame(const char *name, const Bsw__Frame *frame,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    BSW_TRY(check_frame(name, frame, manifest, err));
    manifest->row_dims = frame->row_dims;
    size_t dims = bsw_manifest_row_dims(manifest), weights = dims * manifest->layout.padded_dims;
    BSW_TRY(bsw_saq_part_create(manifest, err));
    struct bsw_saq_part *saq = bsw_saq_part_of(manifest);
    BSW_TRY(bsw_allocate(&saq->mean, dims, sizeof(float), "frame", err));
    BSW_TRY(bsw_allocate_zero(&saq->rotation, weights, sizeof(float), "frame", err));
    memcpy(saq->mean, frame->mean.data, frame->mean.len);
    copy_columns(&manifest->layout, (uint32_t)dims, saq->rotation, frame->rotation.data, 0);
    int is_good = is_finite_array(saq->rotation, weights) && is_finite_array(saq->mean, dims);
    for (size_t s = 0; s < frame->n_steps; s++) {
        saq->steps[s] = frame->steps[s];
        is_good &= saq->steps[s] > 0 && isfinite(saq->steps[s]);
    }
    if (!is_good) return bad(name, "the frame has numbers that are not finite", err);
    manifest->scale_exponent = frame->scale_exponent;
    manifest->tail_exponent = frame->tail_exponent;
    manifest->stage_dims = frame->stage_dims;
    snprintf(saq->axes, sizeof saq->axes, "%s", frame->axes);
    return BSW_OK;
}

static enum bsw_status parse_part(const char *name, const void *data, size_t bytes,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    Bsw__Frame *frame;
    BSW_TRY(bsw_message_unpack(&bsw__frame__descriptor, name, "frame", data, bytes, &frame, err));
    enum bsw_status status = take_frame(name, frame, manifest, err);
    bsw_message_free(frame);
    return status;
}

// ---- settings and training ----

static enum bsw_status check_settings(struct bsw_codec_settings *o, struct bsw_error *err)
{
    int is_auto = !o->segments || strcmp(o->segments, "auto") == 0;
    if (o->model && (o->bits > 0 || o->segments))
        return bsw_fail(err, BSW_ERROR_USAGE, "--model brings its own bits and segments");
    if (!is_auto && o->bits > 0) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--segments names the bits; --bits goes with auto");
    }
    if (!o->segments) o->segments = "auto";
    if (o->bits == 0) o->bits = 3;
    o->may_have_fewer_bits = is_auto && !o->model;
    return BSW_OK;
}

static enum bsw_status check_rows(const struct bsw_codec_settings *o, const char *source,
                                  enum bsw_vector_type type, uint32_t dims, struct bsw_error *err)
{
    (void)o;
    (void)type;
    if (dims <= BSW_SAQ_MAX_DIMS) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--codec saq takes up to %d dims, %s has %u",
                    BSW_SAQ_MAX_DIMS, source, dims);
}

// The first stage as asked for; without a word a model keeps its own.
static enum bsw_status settle_stage(const struct bsw_codec_settings *o, struct bsw_sample *sample,
                                    struct bsw_manifest *manifest, struct bsw_error *err)
{
    if (manifest->lists.is_residual) { // whose scans have none
        manifest->stage_dims = manifest->layout.dims;
        return BSW_OK;
    }
    if (o->stage == BSW_STAGE_DEFAULT && o->model) return BSW_OK;
    if (o->stage != BSW_STAGE_GIVEN) return bsw_choose_stage(sample, manifest, err);
    int is_whole = o->stage_dims == 0 || o->stage_dims > BSW_MAX_DIMS;
    manifest->stage_dims = is_whole ? manifest->layout.dims : (uint32_t)o->stage_dims;
    if (o->stage_dims == 0 || bsw_manifest_stage(manifest) > 0) return BSW_OK;
    if (manifest->layout.dims <= 32)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--stage %llu: the codes have bits of %u dims, too few for two stages: "
                        "leave it out",
                        (unsigned long long)o->stage_dims, manifest->layout.dims);
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--stage %llu: a multiple of 32 below %u, at the end of whole words of codes",
                    (unsigned long long)o->stage_dims, manifest->layout.dims);
}

static enum bsw_status train(const struct bsw_codec_settings *o, uint32_t dims,
                             struct bsw_sample *sample, const struct bsw_codec_model *model,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    (void)model;
    if (o->model) {
        BSW_TRY(bsw_adopt_frame(o->model, dims, manifest, err));
        if (sample->centroids) sample->mean = bsw_saq_part_of(manifest)->mean;
    } else {
        const struct bsw_saq_training training = {o->bits, o->segments, o->random_axes, o->seed,
                                                  o->variant > 0};
        BSW_TRY(bsw_train_saq_frame(sample, &training, manifest, err));
    }
    BSW_TRY(settle_stage(o, sample, manifest, err));
    return bsw_train_saq_exponents(sample, manifest, err);
}

// Bits go where the data has its energy; how many bytes that makes only depends on it where
// dimensions are no multiple of 32.
static enum bsw_status forecast(const struct bsw_codec_forecast *o, struct bsw_manifest *manifest,
                                struct bsw_error *err)
{
    double energies[BSW_SAQ_MAX_DIMS];
    uint32_t dims = (uint32_t)o->dims;
    if (dims > BSW_SAQ_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec saq takes up to %d dims", BSW_SAQ_MAX_DIMS);
    }
    for (uint32_t i = 0; i < dims; i++) energies[i] = pow(0.97, i);
    if (o->segments) {
        BSW_TRY(bsw_saq_parse_segments(o->segments, dims, &manifest->layout, err));
        if (manifest->layout.dims < dims) manifest->row_dims = dims;
    } else {
        BSW_TRY(bsw_allocate_bits(energies, dims, o->bits, 1, &manifest->layout, err));
    }
    manifest->stage_dims = o->stage > 0 ? (uint32_t)o->stage : manifest->layout.dims;
    return BSW_OK;
}

// ---- rows ----

void bsw_frame_of_manifest(const struct bsw_manifest *manifest, struct bsw_saq_frame *out)
{
    const struct bsw_saq_part *saq = bsw_saq_part_of(manifest);
    *out = (struct bsw_saq_frame){.layout = manifest->layout,
                                  .metric = manifest->metric,
                                  .mean = saq->mean,
                                  .rotation = saq->rotation,
                                  .stage_dims = manifest->stage_dims,
                                  .row_dims = manifest->row_dims};
    memcpy(out->steps, saq->steps, sizeof out->steps);
}

// The bias of a row whose scale is stored as `half`. Under cosine and ip a row that is too long for
// a half counts as a shorter one in its direction: its products with queries keep their signs.
static float bias_of(const struct bsw_manifest *manifest, float norm, float mean_dot, double scale,
                     uint16_t half)
{
    double stored = (double)bsw_half_to_float(half);
    if (bsw_has_row_norms(manifest->metric))
        return 0.0f - (manifest->row_dims > 0 ? mean_dot : norm);
    return scale > (double)BSW_HALF_MAX ? (float)(mean_dot * (stored / scale)) : mean_dot;
}

// The stored halves and bias of one bundle. The tail bounds |scale_d * dot of the rest| by
// Cauchy-Schwarz with the scale as stored; the factor above 1 covers the roundings of sqrt and
// product.
void bsw_store_affine(const struct bsw_manifest *manifest, size_t count, const float *norms,
                      const float *scales, const uint32_t *tails, const float *mean_dots,
                      const struct bsw_code_arrays *arrays, size_t row)
{
    double scale_unit = ldexp(1.0, -manifest->scale_exponent);
    double tail_unit = ldexp(1.0 + 0x1p-50, manifest->scale_exponent - manifest->tail_exponent);
    for (size_t r = 0; r < count; r++) {
        double scale = (double)scales[r] * scale_unit;
        uint16_t half = bsw_half_nearest(scale);
        arrays->scales[row + r] = half;
        arrays->tails[row + r] =
            bsw_half_up(bsw_half_to_float(half) * sqrt((double)tails[r]) * tail_unit);
        arrays->biases[row + r] = bias_of(manifest, norms[r], mean_dots[r], scale, half);
    }
}

// ---- residuals ----

// The centroid of a tile's list, in the frame: centroid less mean, times rotation.
struct centroid_cache {
    uint32_t list;
    float *projected; // [padded_dims]
};

// The integer c of a projected component, as saq_quantize has it.
static float code_of(float projected, float inverse, uint32_t bits)
{
    float half = (float)(1u << (bits - 1)), v = projected * inverse;
    v = v < -half ? -half : v > half - 1.0f ? half - 1.0f : v;
    float f = (float)(int32_t)v;
    f -= f > v;
    return 2.0f * f + 1.0f;
}

// Products of a centroid with a residual, both in the frame, and with its code; 0 of a residual
// that counts as 0.
static void centroid_products(const struct bsw_saq_frame *frame, const float *projected, float norm,
                              const float *centroid, float *exact_sum, float *coded_sum)
{
    float exact[BSW_SUM_LANES] = {0}, coded[BSW_SUM_LANES] = {0};
    float rms = sqrtf(norm / (float)frame->layout.dims);
    uint32_t num_segments = norm < 0x1p-126f ? 0 : frame->layout.num_segments;
    for (uint32_t s = 0; s < num_segments; s++) {
        const struct bsw_segment *segment = &frame->layout.segments[s];
        float step = frame->steps[s], inverse = 1.0f / ((2.0f * step) * rms);
        for (uint32_t i = 0; i < segment->dims; i++) {
            size_t d = segment->padded_dim + i, lane = d % BSW_SUM_LANES;
            float c = code_of(projected[d], inverse, segment->bits);
            exact[lane] += centroid[d] * projected[d];
            coded[lane] += centroid[d] * (step * c);
        }
    }
    *exact_sum = bsw_tree_sum_float(exact);
    *coded_sum = bsw_tree_sum_float(coded);
}

// What the code of a residual r leaves out of its product with the centroid, both in the frame, is
// <centroid, r> - scale / 2 * <centroid, steps * c> (l2: twice that). In the bias it leaves only
// the error of the code's product with query less centroid, which is short where it matters. Under
// ip it need not be: queries have any length.
void bsw_saq_store_bias(const struct bsw_manifest *manifest, float row_norm, float mean_dot,
                        float exact, float coded, const struct bsw_code_arrays *arrays,
                        size_t place)
{
    int is_l2 = bsw_has_row_norms(manifest->metric);
    double scale =
        ldexp((double)bsw_half_to_float(arrays->scales[place]), manifest->scale_exponent);
    float error = (float)((double)exact * (is_l2 ? 2 : 1) - scale * (double)coded);
    arrays->biases[place] = (is_l2 ? 0.0f - row_norm : mean_dot) + error;
}

// The centroid of a list, rotated; rows come list after list.
static const float *centroid_in_frame(const struct bsw_codec_tile *tile,
                                      const struct bsw_saq_frame *frame, uint32_t list,
                                      float *centered, struct centroid_cache *cache)
{
    uint32_t dims = bsw_saq_row_dims(frame);
    const float *centroid = tile->manifest->lists.centroids + (size_t)list * dims;
    if (cache->list == list) return cache->projected;
    for (uint32_t d = 0; d < dims; d++) centered[d] = centroid[d] - frame->mean[d];
    tile->kernels->saq_project(frame, centered, 1, cache->projected);
    cache->list = list;
    return cache->projected;
}

// Rows that are centred, less their centroids; norms: of the rows before.
static void subtract_centroids(const struct bsw_codec_tile *tile, const struct bsw_saq_frame *frame,
                               float *centered, double *norms)
{
    uint32_t dims = bsw_saq_row_dims(frame);
    tile->kernels->squared_norms(centered, tile->num_rows, dims, norms);
    for (size_t r = 0; r < tile->num_rows; r++) {
        const float *centroid = tile->manifest->lists.centroids + (size_t)tile->lists[r] * dims;
        float *row = centered + r * dims;
        for (uint32_t d = 0; d < dims; d++) row[d] -= centroid[d] - frame->mean[d];
    }
}

// The biases of a bundle of residuals.
static void store_biases(const struct bsw_codec_tile *tile, const struct bsw_saq_frame *frame,
                         size_t first, size_t count, const float *projected, const float *residual,
                         const double *norms, const float *mean_dots, float *scratch,
                         struct centroid_cache *cache, const struct bsw_code_arrays *arrays,
                         size_t place)
{
    for (size_t r = 0; r < count; r++) {
        const float *centroid =
            centroid_in_frame(tile, frame, tile->lists[first + r], scratch, cache);
        float exact, coded;
        centroid_products(frame, projected + r * frame->layout.padded_dims, residual[r], centroid,
                          &exact, &coded);
        bsw_saq_store_bias(tile->manifest, (float)norms[first + r], mean_dots[first + r], exact,
                           coded, arrays, place + r);
    }
}

// ---- rows ----

// Rows centred, then rotated; of residuals also a centroid.
static size_t tile_scratch_bytes(const struct bsw_manifest *manifest, size_t num_rows)
{
    return (num_rows + 1) * (manifest->layout.padded_dims + bsw_manifest_row_dims(manifest)) *
           sizeof(float);
}

static void encode_tile(const struct bsw_codec_tile *tile, const struct bsw_code_arrays *arrays,
                        size_t bundle)
{
    struct bsw_saq_frame frame;
    bsw_frame_of_manifest(tile->manifest, &frame);
    const struct bsw_code_layout *layout = &frame.layout;
    float mean_dots[BSW_TILE_MAX_ROWS], norms[BSW_BUNDLE_ROWS], scales[BSW_BUNDLE_ROWS];
    double row_norms[BSW_TILE_MAX_ROWS];
    struct centroid_cache cache = {BSW_NO_LIST, tile->scratch};
    float *projected = cache.projected + layout->padded_dims,
          *centered = projected + tile->num_rows * layout->padded_dims;
    uint32_t tails[BSW_BUNDLE_ROWS];
    tile->kernels->saq_center(&frame, tile->rows, tile->num_rows, tile->factors, centered,
                              mean_dots);
    if (tile->lists) subtract_centroids(tile, &frame, centered, row_norms);
    tile->kernels->saq_project(&frame, centered, tile->num_rows, projected);
    for (size_t done = 0; done < tile->num_rows; done += BSW_BUNDLE_ROWS, bundle++) {
        size_t left = tile->num_rows - done,
               count = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
        uint32_t *planes[BSW_MAX_SEGMENTS];
        for (uint32_t s = 0; s < layout->num_segments; s++)
            planes[s] = arrays->planes[s] + bundle * bsw_segment_bundle_words(&layout->segments[s]);
        tile->kernels->saq_quantize(&frame, projected + done * layout->padded_dims, count, planes,
                                    norms, scales, tails);
        bsw_store_affine(tile->manifest, count, norms, scales, tails, mean_dots + done, arrays,
                         bundle * BSW_BUNDLE_ROWS);
        if (tile->lists && bsw_saq_corrects_lists(tile->manifest))
            store_biases(tile, &frame, done, count, projected + done * layout->padded_dims, norms,
                         row_norms, mean_dots, centered + tile->num_rows * bsw_saq_row_dims(&frame),
                         &cache, arrays, bundle * BSW_BUNDLE_ROWS);
    }
}

// ---- queries ----

// Under cosine rows and queries have the same length already.
static float query_factor(const struct bsw_manifest *manifest, const float *row)
{
    if (bsw_has_distances(manifest->metric)) return 1.0f;
    return bsw_ip_query_factor(bsw_saq_part_of(manifest)->mean, row,
                               bsw_manifest_row_dims(manifest));
}

static size_t query_scratch_bytes(const struct bsw_manifest *manifest)
{
    return tile_scratch_bytes(manifest, 1);
}

// p = projected * step, in place.
static void apply_steps(const struct bsw_manifest *manifest, float *projected)
{
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        const struct bsw_segment *segment = &manifest->layout.segments[s];
        float *p = projected + segment->padded_dim;
        for (uint32_t i = 0; i < segment->dims; i++) p[i] *= bsw_saq_part_of(manifest)->steps[s];
    }
}

static void encode_query(const struct bsw_codec_query *query, uint32_t *words,
                         union bsw_query_number *number, float *addend)
{
    const struct bsw_manifest *manifest = query->manifest;
    const struct bsw_code_layout *layout = &manifest->layout;
    struct bsw_saq_frame frame;
    float *projected = query->scratch, *centered = projected + layout->padded_dims, mean_dot;
    bsw_frame_of_manifest(manifest, &frame);
    query->kernels->saq_center(&frame, query->row, 1, &query->factor, centered, &mean_dot);
    query->kernels->saq_project(&frame, centered, 1, projected);
    if (bsw_has_row_norms(manifest->metric)) {
        *addend = bsw_saq_has_norms(&frame)
                      ? mean_dot
                      : bsw_lane_dot_float(projected, projected, layout->padded_dims);
    } else { // <q, mu> = <q - mu, mu> + <mu, mu>
        *addend = mean_dot + bsw_lane_dot_float(frame.mean, frame.mean, bsw_saq_row_dims(&frame));
    }
    apply_steps(manifest, projected);
    float scale = bsw_query_planes_scaled(layout, projected, query->query_bits, words);
    number->scale = ldexpf(scale, manifest->scale_exponent);
}

static const float *center(const struct bsw_manifest *manifest)
{
    return bsw_saq_part_of(manifest)->mean;
}

// ---- the rest ----

static void describe(const struct bsw_manifest *manifest, struct bsw_codec_fact *out)
{
    *out = (struct bsw_codec_fact){.name = "axes", .format = ", %s axes"};
    snprintf(out->text, sizeof out->text, "%s", bsw_saq_part_of(manifest)->axes);
}

static float step_of(const struct bsw_manifest *manifest, uint32_t segment)
{
    return bsw_saq_part_of(manifest)->steps[segment];
}

// Axes of little energy need no bits: rows of a steep spectrum are then told apart by the others.
static int vary(struct bsw_codec_settings *o)
{
    int is_auto = strcmp(o->segments, "auto") == 0 && !o->random_axes && !o->model;
    return is_auto && o->variant++ == 0;
}

static const struct bsw_codec_table table = {
    .metrics = BSW_ALL_METRICS,
    .has_matrix = 1,
    .has_segments = 1,
    .needs_sample = 1,
    .device_coder = &bsw_device_coder_saq,
    .worth_a_device = 1,
    .has_residuals = 1,
    .center = center,
    .check_settings = check_settings,
    .check_rows = check_rows,
    .vary = vary,
    .train = train,
    .forecast = forecast,
    .tile_scratch_bytes = tile_scratch_bytes,
    .encode_tile = encode_tile,
    .query_scratch_bytes = query_scratch_bytes,
    .query_factor = query_factor,
    .encode_query = encode_query,
    .describe = describe,
    .step_of = step_of,
};

const struct bsw_codec bsw_codec_saq = {.name = "saq",
                                        .has_affine = 1,
                                        .code_rule = BSW_SAQ_FEWER_AXES,
                                        .known_rule = BSW_KNOWN_RULE,
                                        .part_field = PART_FIELD,
                                        .pack_part = pack_part,
                                        .free_part = free_part,
                                        .parse_part = parse_part,
                                        .table = &table};
