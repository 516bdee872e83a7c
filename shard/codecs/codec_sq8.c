// SPDX-License-Identifier: Apache-2.0
// sq8: one byte a dimension, between ends of the sample, and one scale a row.
//
// With m the middle and h the half step of a dimension, h = (largest - least) / 2 / 256, and f the
// scale of a row, a row's component is about m + f*h*c, c odd from -255 to 255: the 8 planes of
// common/codes/code_layout.h, coded by the kernel of xfbq from (x - m) / (256 h f). f is the least
// by which no component is clipped: rows of any length keep their direction to 8 bits, and ends
// need not hold what is rare. By rule 0 f was 1, and numbers beyond the ends were clipped.
//   key = <s*q - m, f*h*c> + <m, x - m>   cosine (of unit rows), ip; value = (key + <s*q, m>) / s
//       = 2 <q - m, f*h*c> - |f*h*c|^2    l2;                        value = |q - m|^2 - key
// s is that of bsw_ip_query_factor under ip, else 1. By rule 0 queries were not centred under
// cosine and ip: key = <q, h*c>. p_i = (s*q_i - m_i) h_i is coded as queries of saq are, so a key
// is one integer product, one scale and one bias.
#include <math.h>
#include <string.h>

#include "bitsweep.pb-c.h"
#include "common/codes/half.h"
#include "common/files/sealed_message.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/encode/sq8_codes.h"
#include "kernels/kernel_sums.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/device_coder.h"
#include "shard/codecs/query_codes.h"

#define PART_FIELD      19 // Manifest.part
#define BITS            8
#define QUERY_BITS      7
#define LEAST_STEP      0x1p-100f // of a dimension in which the sample does not differ
#define MOST_SQUARES    1e36      // so that no key becomes Inf or NaN
#define LARGEST_START   3e38f
#define CENTRED_QUERIES 1 // rule of cosine and ip; under l2 they always were
// Where the numbers of a dimension reach further than so many times what most of them do, ends are
// at that, or, for numbers that are nearly all the same, at a share of their reach.
#define MOST_WIDTH  3.0f
#define LEAST_SHARE 0x1p-6f

struct sq8_part {
    float *middles, *half_steps; // [dims]; owned
};

static struct sq8_part *part_of(const struct bsw_manifest *manifest)
{
    return manifest->part;
}

static int has_centred_queries(const struct bsw_manifest *manifest)
{
    return bsw_has_row_norms(manifest->metric) || manifest->code_rule >= CENTRED_QUERIES;
}

// ---- its part of a manifest ----

static void free_part(void *part)
{
    struct sq8_part *sq8 = part;
    if (!sq8) return;
    bsw_free(&sq8->middles);
    bsw_free(&sq8->half_steps);
    bsw_free(&sq8);
}

static enum bsw_status create_part(struct bsw_manifest *manifest, size_t dims,
                                   struct bsw_error *err)
{
    free_part(manifest->part);
    BSW_TRY(bsw_allocate_zero(&manifest->part, 1, sizeof(struct sq8_part), "steps", err));
    struct sq8_part *part = part_of(manifest);
    BSW_TRY(bsw_allocate(&part->middles, dims, sizeof(float), "steps", err));
    return bsw_allocate(&part->half_steps, dims, sizeof(float), "steps", err);
}

// Whether steps are numbers that keys may be computed with.
static int is_in_range(const struct sq8_part *part, uint32_t dims)
{
    double squares = 0;
    for (uint32_t i = 0; i < dims; i++) {
        double most = fabs((double)part->middles[i]) + 256 * (double)part->half_steps[i];
        if (!(part->half_steps[i] >= LEAST_STEP)) return 0;
        squares += most * most;
    }
    return squares <= MOST_SQUARES;
}

static enum bsw_status pack_part(const struct bsw_manifest *manifest, struct bsw_buffer *out,
                                 struct bsw_error *err)
{
    const struct sq8_part *part = part_of(manifest);
    size_t bytes = manifest->layout.dims * sizeof(float);
    Bsw__Sq8 message = BSW__SQ8__INIT;
    message.middles = (ProtobufCBinaryData){bytes, (uint8_t *)part->middles};
    message.half_steps = (ProtobufCBinaryData){bytes, (uint8_t *)part->half_steps};
    return bsw_message_pack(&message.base, out, err);
}

static enum bsw_status take_steps(const char *name, const Bsw__Sq8 *message,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    size_t bytes = layout->dims * sizeof(float);
    if (layout->num_segments != 1 || layout->segments[0].bits != BITS || manifest->bits != BITS ||
        message->middles.len != bytes || message->half_steps.len != bytes)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the steps do not fit the dims", name);
    BSW_TRY(create_part(manifest, layout->dims, err));
    struct sq8_part *part = part_of(manifest);
    memcpy(part->middles, message->middles.data, bytes);
    memcpy(part->half_steps, message->half_steps.data, bytes);
    if (is_in_range(part, layout->dims)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: a step is out of range", name);
}

static enum bsw_status parse_part(const char *name, const void *data, size_t bytes,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    Bsw__Sq8 *message;
    BSW_TRY(bsw_message_unpack(&bsw__sq8__descriptor, name, "steps", data, bytes, &message, err));
    enum bsw_status status = take_steps(name, message, manifest, err);
    bsw_message_free(message);
    return status;
}

// ---- settings and training ----

static enum bsw_status check_settings(struct bsw_codec_settings *o, struct bsw_error *err)
{
    return bsw_codec_check_plain(&bsw_codec_sq8, o, err);
}

static enum bsw_status find_ends(struct bsw_sample *sample, uint32_t dims, float *least,
                                 float *largest, struct bsw_error *err)
{
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    size_t num_rows, total = 0;
    for (uint32_t i = 0; i < dims; i++) {
        least[i] = LARGEST_START;
        largest[i] = -LARGEST_START;
    }
    bsw_sample_rewind(sample, "training, ends");
    for (;;) {
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num_rows, err));
        if (num_rows == 0) return total > 0 ? BSW_OK : bsw_sample_fail_empty(sample, err);
        for (size_t r = 0; r < num_rows; r++) {
            for (uint32_t i = 0; i < dims; i++) {
                float x = rows[r * dims + i] * factors[r];
                if (x < least[i]) least[i] = x;
                if (x > largest[i]) largest[i] = x;
            }
        }
        total += num_rows;
    }
}

// least and largest become middle and half step.
static void settle_steps(const struct bsw_sample *sample, uint32_t dims, float *least,
                         float *largest)
{
    for (uint32_t i = 0; i < dims; i++) {
        float middle = least[i] * 0.5f + largest[i] * 0.5f,
              reach = largest[i] * 0.5f - least[i] * 0.5f;
        if (sample->low) {
            float width = (sample->high[i] * 0.5f - sample->low[i] * 0.5f) * MOST_WIDTH;
            if (width < reach) {
                middle = sample->low[i] * 0.5f + sample->high[i] * 0.5f;
                reach = width > reach * LEAST_SHARE ? width : reach * LEAST_SHARE;
            }
        }
        float half_step = reach * 0x1p-8f;
        least[i] = middle;
        largest[i] = half_step > LEAST_STEP ? half_step : LEAST_STEP;
    }
}

static enum bsw_status train(const struct bsw_codec_settings *o, uint32_t dims,
                             struct bsw_sample *sample, const struct bsw_codec_model *model,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    (void)o;
    (void)model;
    BSW_TRY(bsw_codec_lay_out_whole(manifest, dims, BITS, err));
    BSW_TRY(bsw_code_layout_check(&manifest->layout, 1, err));
    BSW_TRY(create_part(manifest, dims, err));
    float *least = part_of(manifest)->middles, *largest = part_of(manifest)->half_steps;
    BSW_TRY(find_ends(sample, dims, least, largest, err));
    settle_steps(sample, dims, least, largest);
    manifest->code_rule = bsw_has_row_norms(manifest->metric) ? 0 : CENTRED_QUERIES;
    if (is_in_range(part_of(manifest), dims)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: numbers too large for --codec sq8",
                    bsw_vectors_name(sample->vectors));
}

// ---- rows ----

static size_t tile_scratch_bytes(const struct bsw_manifest *manifest, size_t num_rows)
{
    return num_rows * manifest->layout.dims * sizeof(float);
}

static struct bsw_sq8_steps steps_of(const struct bsw_manifest *manifest)
{
    const struct sq8_part *part = part_of(manifest);
    return (struct bsw_sq8_steps){part->middles, part->half_steps, manifest->layout.dims};
}

// sum: under l2 the squared norm, else <m, x - m>.
static void store_row(const struct bsw_manifest *manifest, float factor, float sum,
                      const struct bsw_code_arrays *arrays, size_t place)
{
    int is_l2 = bsw_has_row_norms(manifest->metric);
    arrays->scales[place] = bsw_half_nearest((is_l2 ? 2.0 : 1.0) * (double)factor);
    arrays->biases[place] = is_l2 ? 0.0f - sum : has_centred_queries(manifest) ? sum : 0.0f;
}

static void encode_tile(const struct bsw_codec_tile *tile, const struct bsw_code_arrays *arrays,
                        size_t bundle)
{
    const struct bsw_manifest *manifest = tile->manifest;
    const struct bsw_segment *segment = &manifest->layout.segments[0];
    const struct bsw_sq8_steps steps = steps_of(manifest);
    int is_l2 = bsw_has_row_norms(manifest->metric);
    float *rows = tile->scratch, ones[BSW_BUNDLE_ROWS], factors[BSW_TILE_MAX_ROWS],
          mean_dots[BSW_TILE_MAX_ROWS];
    size_t dims = segment->dims;
    for (size_t i = 0; i < BSW_BUNDLE_ROWS; i++) ones[i] = 1.0f;
    for (size_t r = 0; r < tile->num_rows; r++)
        factors[r] = bsw_sq8_center(&steps, tile->rows + r * dims, tile->factors[r],
                                    rows + r * dims, &mean_dots[r]);
    for (size_t done = 0; done < tile->num_rows; done += BSW_BUNDLE_ROWS) {
        size_t left = tile->num_rows - done,
               count = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS,
               at = bundle + done / BSW_BUNDLE_ROWS;
        tile->kernels->xfbq(rows + done * dims, count, dims, ones, 1.0f, BITS,
                            arrays->planes[0] + at * bsw_segment_bundle_words(segment));
    }
    for (size_t r = 0; r < tile->num_rows; r++) {
        float norm = is_l2 ? bsw_sq8_squared_norm(&steps, factors[r], rows + r * dims) : 0;
        store_row(manifest, factors[r], is_l2 ? norm : mean_dots[r], arrays,
                  bundle * BSW_BUNDLE_ROWS + r);
    }
}

// ---- rows on a GPU ----

enum { MIDDLES, HALF_STEPS };
enum { FACTORS, SUMS, NUM_RESULTS };

static void device_plan(const struct bsw_manifest *manifest, struct bsw_coder_needs *out)
{
    const struct sq8_part *part = part_of(manifest);
    out->models[MIDDLES].data = part->middles;
    out->models[HALF_STEPS].data = part->half_steps;
    for (int i = MIDDLES; i <= HALF_STEPS; i++)
        out->models[i].bytes = manifest->layout.dims * sizeof(float);
    out->num_results = NUM_RESULTS;
}

static enum bsw_status device_launch(const struct bsw_coder_piece *piece, struct bsw_error *err)
{
    const struct bsw_device_sq8_codes codes = {.middles = piece->models[MIDDLES],
                                               .half_steps = piece->models[HALF_STEPS],
                                               .planes = piece->planes[0],
                                               .faults = piece->faults,
                                               .factors = piece->results[FACTORS],
                                               .sums = piece->results[SUMS]};
    int code = bsw_device_encode_sq8(&piece->rows, piece->manifest->metric, &codes,
                                     bsw_device_stream(piece->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(piece->device, code, "encode", err);
}

static void device_store(const struct bsw_manifest *manifest, void *const *results, size_t row,
                         size_t count, const struct bsw_code_arrays *arrays)
{
    const float *factors = results[FACTORS], *sums = results[SUMS];
    for (size_t r = row; r < row + count; r++) store_row(manifest, factors[r], sums[r], arrays, r);
}

static const struct bsw_device_coder device_coder = {
    .plan = device_plan, .launch = device_launch, .store = device_store};

// ---- queries ----

static float query_factor(const struct bsw_manifest *manifest, const float *row)
{
    if (bsw_has_distances(manifest->metric) || !has_centred_queries(manifest)) return 1.0f;
    return bsw_ip_query_factor(part_of(manifest)->middles, row, manifest->layout.dims);
}

static size_t query_scratch_bytes(const struct bsw_manifest *manifest)
{
    return 2 * manifest->layout.padded_dims * sizeof(float);
}

static void encode_query(const struct bsw_codec_query *query, uint32_t *words,
                         union bsw_query_number *number, float *addend)
{
    const struct bsw_manifest *manifest = query->manifest;
    const struct sq8_part *part = part_of(manifest);
    const struct bsw_code_layout *layout = &manifest->layout;
    float *q = query->scratch, *p = q + layout->padded_dims;
    int is_l2 = bsw_has_row_norms(manifest->metric), is_centred = has_centred_queries(manifest);
    for (uint32_t i = 0; i < layout->dims; i++) {
        float y = query->row[i] * query->factor, centred = y - part->middles[i];
        q[i] = is_l2 ? centred : y;
        p[i] = (is_centred ? centred : y) * part->half_steps[i];
    }
    *addend = bsw_lane_dot_float(q, is_l2 ? q : part->middles, layout->dims);
    number->scale = bsw_query_planes_scaled(layout, p, query->query_bits, words);
}

static const struct bsw_codec_table table = {
    .metrics = BSW_ALL_METRICS,
    .needs_sample = 1,
    .fixed_bits = BITS,
    .device_coder = &device_coder,
    .check_settings = check_settings,
    .train = train,
    .tile_scratch_bytes = tile_scratch_bytes,
    .encode_tile = encode_tile,
    .query_bits = QUERY_BITS,
    .query_factor = query_factor,
    .query_scratch_bytes = query_scratch_bytes,
    .encode_query = encode_query,
};

const struct bsw_codec bsw_codec_sq8 = {.name = "sq8",
                                        .has_affine = 1,
                                        .code_rule = CENTRED_QUERIES,
                                        .known_rule = BSW_KNOWN_RULE,
                                        .part_field = PART_FIELD,
                                        .pack_part = pack_part,
                                        .free_part = free_part,
                                        .parse_part = parse_part,
                                        .table = &table};
