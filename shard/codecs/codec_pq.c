// SPDX-License-Identifier: Apache-2.0
// pq: product codes, numbers of codebook entries, scanned by tables of queries (product_codes.h).
//
// In the layout of codes a row has one segment of one bit a dimension, as many as its code has:
// bytes of a bundle are those of kernels/table_scan, with words of 4 of them.
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "bitsweep.pb-c.h"
#include "common/base/arithmetic.h"
#include "common/files/sealed_message.h"
#include "kernels/kernel_sums.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/device_coder.h"
#include "shard/codecs/product_training.h"

#define PART_FIELD   19 // Manifest.part
#define MOST_SQUARES 1e37

static struct bsw_product_codes *codes_of(const struct bsw_manifest *manifest)
{
    return manifest->part;
}

static const struct bsw_product_codes *product(const struct bsw_manifest *manifest)
{
    return manifest->part;
}

static uint32_t all_dims(const struct bsw_product_codes *codes)
{
    return codes->book.parts * codes->book.part_dims;
}

// ---- its part of a manifest ----

static void free_part(void *part)
{
    struct bsw_product_codes *codes = part;
    bsw_product_codes_destroy(&codes);
}

static enum bsw_status create_part(struct bsw_manifest *manifest, uint32_t dims, uint32_t parts,
                                   uint32_t bits, const char *rotation, struct bsw_error *err)
{
    struct bsw_product_codes *codes;
    free_part(manifest->part);
    manifest->part = NULL;
    BSW_TRY(bsw_product_codes_create(manifest->metric, dims, parts, bits, rotation, &codes, err));
    manifest->part = codes;
    manifest->row_dims = dims;
    return BSW_OK;
}

// The matrix without its padding.
static void copy_matrix(const struct bsw_product_codes *codes, unsigned char *dense, int is_packing)
{
    size_t bytes = all_dims(codes) * sizeof(float);
    for (uint32_t j = 0; j < codes->dims; j++, dense += bytes) {
        float *row = codes->matrix + (size_t)j * codes->projected_dims;
        memcpy(is_packing ? (void *)dense : row, is_packing ? (void *)row : dense, bytes);
    }
}

static enum bsw_status pack_part(const struct bsw_manifest *manifest, struct bsw_buffer *out,
                                 struct bsw_error *err)
{
    const struct bsw_product_codes *codes = codes_of(manifest);
    size_t matrix_bytes = codes->matrix ? codes->dims * all_dims(codes) * sizeof(float) : 0;
    unsigned char *matrix;
    double *fits;
    Bsw__Radii radii;
    BSW_TRY(bsw_allocate(&matrix, matrix_bytes, 1, "rotation", err));
    if (codes->matrix) copy_matrix(codes, matrix, 1);
    enum bsw_status status =
        bsw_allocate(&fits, codes->book.parts, BSW_RADII_FIT_NUMBERS * sizeof *fits, "radii", err);
    Bsw__ProductCode message = BSW__PRODUCT_CODE__INIT;
    if (status == BSW_OK && codes->radii) {
        bsw_radii_pack(codes->radii, fits, &radii);
        message.radii = &radii;
    }
    message.row_dims = codes->dims;
    message.parts = codes->book.parts;
    message.bits = codes->book.bits;
    message.rotation = (char *)codes->rotation;
    message.mean = (ProtobufCBinaryData){codes->dims * sizeof(float), (uint8_t *)codes->mean};
    message.matrix = (ProtobufCBinaryData){matrix_bytes, matrix};
    message.entries = (ProtobufCBinaryData){bsw_product_numbers(&codes->book) *
                                                codes->book.part_dims * sizeof(float),
                                            (uint8_t *)codes->entries};
    if (status == BSW_OK) status = bsw_message_pack(&message.base, out, err);
    bsw_free(&matrix);
    bsw_free(&fits);
    return status;
}

static enum bsw_status bad(const char *name, const char *what, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", name, what);
}

static int is_rotation(const char *name)
{
    return strcmp(name, "opq") == 0 || strcmp(name, "random") == 0 || strcmp(name, "none") == 0;
}

static enum bsw_status check_part(const char *name, const Bsw__ProductCode *message,
                                  const struct bsw_manifest *manifest, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    uint64_t dims = message->row_dims, parts = message->parts, bits = message->bits;
    if ((bits != 4 && bits != 8) || dims < 1 || dims > BSW_PRODUCT_MAX_DIMS || parts < 1 ||
        parts > dims || parts > BSW_PRODUCT_MAX_PARTS || !is_rotation(message->rotation))
        return bad(name, "the codebooks are out of range", err);
    uint64_t all = (dims + parts - 1) / parts * parts;
    uint64_t matrix = strcmp(message->rotation, "none") == 0 ? 0 : dims * all * sizeof(float);
    if (layout->num_segments != 1 || layout->segments[0].bits != 1 ||
        layout->segments[0].dims != parts * bits || manifest->bits != (double)bits ||
        message->mean.len != dims * sizeof(float) || message->matrix.len != matrix ||
        message->entries.len != (all << bits) * sizeof(float))
        return bad(name, "the codebooks do not fit dims and parts", err);
    return BSW_OK;
}

// Numbers whose squares, and squares that sums may be made of; no NaN.
static int is_in_range(const float *values, size_t num)
{
    for (size_t i = 0; i < num; i++)
        if (!((double)values[i] * (double)values[i] <= MOST_SQUARES)) return 0;
    return 1;
}

static int are_norms(const float *values, size_t num)
{
    for (size_t i = 0; i < num; i++)
        if (!((double)values[i] <= MOST_SQUARES)) return 0;
    return 1;
}

static enum bsw_status take_part(const char *name, const Bsw__ProductCode *message,
                                 struct bsw_manifest *manifest, struct bsw_error *err)
{
    BSW_TRY(check_part(name, message, manifest, err));
    BSW_TRY(create_part(manifest, message->row_dims, message->parts, message->bits,
                        message->rotation, err));
    struct bsw_product_codes *codes = codes_of(manifest);
    size_t numbers = bsw_product_numbers(&codes->book);
    memcpy(codes->mean, message->mean.data, message->mean.len);
    memcpy(codes->entries, message->entries.data, message->entries.len);
    int is_good = is_in_range(codes->mean, codes->dims) &&
                  is_in_range(codes->entries, numbers * codes->book.part_dims);
    if (message->matrix.len > 0) {
        size_t weights = (size_t)codes->dims * codes->projected_dims;
        BSW_TRY(bsw_allocate_zero(&codes->matrix, weights, sizeof(float), "rotation", err));
        copy_matrix(codes, message->matrix.data, 0);
        is_good &= is_in_range(codes->matrix, weights);
    }
    bsw_product_codes_norms(codes);
    if (!is_good || !are_norms(codes->norms, numbers))
        return bad(name, "the codebooks have numbers that are out of range", err);
    if (!message->radii) return BSW_OK;
    if (codes->book.part_dims != 2) return bad(name, "radii are of subspaces of 2 dims", err);
    return bsw_radii_parse(name, message->radii, codes->book.parts, &codes->radii, err);
}

static enum bsw_status parse_part(const char *name, const void *data, size_t bytes,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    Bsw__ProductCode *message;
    BSW_TRY(bsw_message_unpack(&bsw__product_code__descriptor, name, "codebooks", data, bytes,
                               &message, err));
    enum bsw_status status = take_part(name, message, manifest, err);
    bsw_message_free(message);
    return status;
}

// ---- settings and training ----

static enum bsw_status check_settings(struct bsw_codec_settings *o, struct bsw_error *err)
{
    if (o->segments || o->stage != BSW_STAGE_DEFAULT)
        return bsw_fail(err, BSW_ERROR_USAGE, "--%s is for --codec saq",
                        o->segments ? "segments" : "stage");
    if (o->model && (o->bits > 0 || o->parts > 0 || o->rotation || o->has_radii))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--model brings its own bits, subspaces, rotation and entries");
    if (o->bits == 0) o->bits = 8;
    if (o->bits != 4 && o->bits != 8)
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec pq has 4 or 8 a subspace",
                        o->bits);
    o->has_usual_rotation = !o->rotation && !o->model;
    if (!o->rotation) o->rotation = "opq";
    return BSW_OK;
}

// 2 bits a dimension, unless something was said.
static uint32_t parts_of(const struct bsw_codec_settings *o, uint32_t dims)
{
    uint32_t part_dims = o->bits == 8 && !o->has_radii ? 4 : 2;
    return o->parts > 0 ? (uint32_t)o->parts : (dims + part_dims - 1) / part_dims;
}

static enum bsw_status check_rows(const struct bsw_codec_settings *o, const char *source,
                                  enum bsw_vector_type type, uint32_t dims, struct bsw_error *err)
{
    (void)type;
    if (dims > BSW_PRODUCT_MAX_DIMS)
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec pq takes up to %d dims, %s has %u",
                        BSW_PRODUCT_MAX_DIMS, source, dims);
    if (o->parts > dims)
        return bsw_fail(err, BSW_ERROR_USAGE, "--subspaces %llu: %s has %u dims",
                        (unsigned long long)o->parts, source, dims);
    if (o->has_radii && dims < 2)
        return bsw_fail(err, BSW_ERROR_USAGE, "--entries radius takes 2 dims and more, %s has %u",
                        source, dims);
    if (o->has_radii && o->parts > 0 && o->parts != (dims + 1) / 2)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--subspaces %llu: --entries radius has 2 dims each, %u for the %u of %s",
                        (unsigned long long)o->parts, (dims + 1) / 2, dims, source);
    if (!o->model && dims > BSW_OPQ_MAX_DIMS && strcmp(o->rotation, "opq") == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--rotation opq takes up to %d dims, %s has %u: random or none",
                        BSW_OPQ_MAX_DIMS, source, dims);
    return BSW_OK;
}

static enum bsw_status lay_out(struct bsw_manifest *manifest, uint32_t parts, uint32_t bits,
                               struct bsw_error *err)
{
    BSW_TRY(bsw_codec_lay_out_whole(manifest, parts * bits, 1, err));
    manifest->bits = bits;
    return BSW_OK;
}

static enum bsw_status check_model(const char *folder, const struct bsw_manifest *model,
                                   uint32_t dims, const struct bsw_manifest *manifest,
                                   struct bsw_error *err)
{
    BSW_TRY(
        bsw_codec_check_model(folder, model, bsw_manifest_row_dims(model), manifest, dims, err));
    if (model->lists.is_residual == manifest->lists.is_residual) return BSW_OK;
    if (model->lists.is_residual)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--model %s: its codes are of residuals, those asked for are not: give "
                        "--lists, without --residual no",
                        folder);
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--model %s: its codes are not of residuals, those asked for are: give "
                    "--residual no",
                    folder);
}

// Rotation and codebooks of another index.
static enum bsw_status adopt(const char *folder, uint32_t dims, struct bsw_manifest *manifest,
                             struct bsw_error *err)
{
    struct bsw_manifest model;
    BSW_TRY(bsw_manifest_read(folder, &model, err));
    enum bsw_status status = check_model(folder, &model, dims, manifest, err);
    if (status == BSW_OK) {
        const struct bsw_product_codes *codes = codes_of(&model);
        status = lay_out(manifest, codes->book.parts, codes->book.bits, err);
        manifest->row_dims = dims;
        manifest->part = model.part;
        model.part = NULL;
    }
    bsw_manifest_deinit(&model);
    return status;
}

static enum bsw_status train(const struct bsw_codec_settings *o, uint32_t dims,
                             struct bsw_sample *sample, const struct bsw_codec_model *model,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    uint32_t bits = (uint32_t)o->bits, parts = parts_of(o, dims);
    (void)model;
    if (o->model) return adopt(o->model, dims, manifest, err);
    BSW_TRY(lay_out(manifest, parts, bits, err));
    BSW_TRY(create_part(manifest, dims, parts, bits, o->rotation, err));
    BSW_TRY(bsw_product_train(sample, o->seed, omp_get_max_threads(), codes_of(manifest), err));
    if (!o->has_radii) return BSW_OK;
    return bsw_radii_train(sample, omp_get_max_threads(), codes_of(manifest), err);
}

static enum bsw_status forecast(const struct bsw_codec_forecast *o, struct bsw_manifest *manifest,
                                struct bsw_error *err)
{
    const struct bsw_codec_settings settings = {
        .bits = o->bits, .parts = o->parts, .has_radii = o->has_radii};
    if (o->dims > BSW_PRODUCT_MAX_DIMS)
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec pq takes up to %d dims",
                        BSW_PRODUCT_MAX_DIMS);
    if (o->bits != 4 && o->bits != 8)
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec pq has 4 or 8 a subspace",
                        o->bits);
    if (o->parts > o->dims)
        return bsw_fail(err, BSW_ERROR_USAGE, "--subspaces %llu: there are %llu dims",
                        (unsigned long long)o->parts, (unsigned long long)o->dims);
    if (o->has_radii && o->dims < 2)
        return bsw_fail(err, BSW_ERROR_USAGE, "--entries radius takes 2 dims and more");
    if (o->has_radii && o->parts > 0 && o->parts != (o->dims + 1) / 2)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--subspaces %llu: --entries radius has 2 dims each, %llu for %llu",
                        (unsigned long long)o->parts, (unsigned long long)(o->dims + 1) / 2,
                        (unsigned long long)o->dims);
    uint32_t dims = (uint32_t)o->dims, parts = parts_of(&settings, dims);
    BSW_TRY(create_part(manifest, dims, parts, (uint32_t)o->bits, "none", err));
    return lay_out(manifest, parts, (uint32_t)o->bits, err);
}

// ---- rows ----

struct tile_memory {
    float *projected, *centred;
    uint8_t *codes;
};

static size_t divide_tile(const struct bsw_product_codes *codes, size_t num_rows, unsigned char *at,
                          struct tile_memory *out)
{
    const struct bsw_memory_part parts[] = {
        {&out->projected, num_rows * codes->projected_dims * sizeof(float)},
        {&out->centred, num_rows * codes->dims * sizeof(float)},
        {&out->codes, num_rows * codes->book.parts}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

static size_t tile_scratch_bytes(const struct bsw_manifest *manifest, size_t num_rows)
{
    struct tile_memory memory;
    return divide_tile(codes_of(manifest), num_rows, NULL, &memory);
}

// Rows less the mean, or less their centroids, the mean taken from both as training does.
static void centre(const struct bsw_codec_tile *tile, const struct bsw_product_codes *codes,
                   float *out)
{
    uint32_t dims = codes->dims;
    for (size_t r = 0; r < tile->num_rows; r++) {
        const float *row = tile->rows + r * dims, *mean = codes->mean;
        const float *centroid =
            tile->lists ? tile->manifest->lists.centroids + (size_t)tile->lists[r] * dims : NULL;
        float *to = out + r * dims;
        for (uint32_t d = 0; d < dims; d++) to[d] = row[d] * tile->factors[r] - mean[d];
        for (uint32_t d = 0; d < dims && centroid; d++) to[d] -= centroid[d] - mean[d];
    }
}

static void put_code(const struct bsw_product_book *book, const uint8_t *codes, uint8_t *bundle,
                     size_t lane)
{
    for (uint32_t p = 0; p < book->parts; p++) {
        if (book->bits == 8)
            bundle[p * BSW_BUNDLE_ROWS + lane] = codes[p];
        else
            bundle[p / 2 * BSW_BUNDLE_ROWS + lane] |= (uint8_t)(codes[p] << p % 2 * 4);
    }
}

static void encode_tile(const struct bsw_codec_tile *tile, const struct bsw_code_arrays *arrays,
                        size_t bundle)
{
    const struct bsw_product_codes *codes = codes_of(tile->manifest);
    size_t bytes = bsw_segment_bundle_words(&tile->manifest->layout.segments[0]) * sizeof(uint32_t);
    struct tile_memory memory;
    divide_tile(codes, tile->num_rows, tile->scratch, &memory);
    centre(tile, codes, memory.centred);
    bsw_product_project(codes, tile->kernels, memory.centred, tile->num_rows, memory.projected);
    tile->tables->nearest(&codes->book, memory.projected, codes->projected_dims, tile->num_rows,
                          memory.codes);
    for (size_t r = 0; r < tile->num_rows; r++) {
        uint8_t *at = (uint8_t *)arrays->planes[0] + (bundle + r / BSW_BUNDLE_ROWS) * bytes;
        put_code(&codes->book, memory.codes + r * codes->book.parts, at, r % BSW_BUNDLE_ROWS);
    }
}

// ---- rows on a GPU ----

// Models beside those of a frame.
enum { ENTRIES, NORMS };
_Static_assert(BSW_FRAME_MODELS + NORMS < BSW_CODER_MODELS, "models of pq");

static void device_plan(const struct bsw_manifest *manifest, struct bsw_coder_needs *out)
{
    const struct bsw_product_codes *codes = codes_of(manifest);
    struct bsw_saq_frame frame;
    bsw_product_frame(codes, &frame);
    bsw_frame_plan(manifest, &frame, out);
    out->models[BSW_FRAME_MODELS + ENTRIES].data = codes->entries;
    out->models[BSW_FRAME_MODELS + ENTRIES].bytes =
        bsw_table_bytes(&codes->book) * codes->book.part_dims;
    out->models[BSW_FRAME_MODELS + NORMS].data = codes->norms;
    out->models[BSW_FRAME_MODELS + NORMS].bytes = bsw_table_bytes(&codes->book);
}

static enum bsw_status device_launch(const struct bsw_coder_piece *piece, struct bsw_error *err)
{
    const struct bsw_product_codes *codes = codes_of(piece->manifest);
    const struct bsw_segment *segment = &piece->manifest->layout.segments[0];
    struct bsw_product_book book = codes->book;
    struct bsw_saq_frame frame;
    bsw_product_frame(codes, &frame);
    BSW_TRY(bsw_frame_launch(piece, &frame, NULL, NULL, err));
    book.entries = piece->models[BSW_FRAME_MODELS + ENTRIES];
    book.norms = piece->models[BSW_FRAME_MODELS + NORMS];
    int code = bsw_device_product_codes(
        &book, piece->rooms[codes->matrix ? BSW_FRAME_PROJECTED : BSW_FRAME_CENTRED],
        codes->matrix ? codes->projected_dims : codes->dims, piece->rows.num_rows,
        segment->words * (uint32_t)sizeof(uint32_t), (uint8_t *)piece->planes[0],
        bsw_device_stream(piece->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(piece->device, code, "nearest entries", err);
}

static const struct bsw_device_coder device_coder = {
    .plan = device_plan, .start = bsw_frame_start, .launch = device_launch};

// ---- queries ----

static enum bsw_status settle_query_bits(const struct bsw_manifest *manifest, const char *name,
                                         uint32_t asked, uint32_t *out, struct bsw_error *err)
{
    (void)manifest;
    (void)name;
    *out = 1;
    if (asked == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--query-bits: queries of codec pq are tables; --table says of what");
}

static size_t query_words(const struct bsw_manifest *manifest)
{
    return codes_of(manifest)->projected_dims;
}

static size_t query_scratch_bytes(const struct bsw_manifest *manifest)
{
    return tile_scratch_bytes(manifest, 1);
}

// Words are the floats of q'.
static void encode_query(const struct bsw_codec_query *query, uint32_t *words,
                         union bsw_query_number *number, float *addend)
{
    const struct bsw_manifest *manifest = query->manifest;
    const struct bsw_product_codes *codes = codes_of(manifest);
    int is_l2 = bsw_has_row_norms(codes->metric);
    struct tile_memory memory;
    divide_tile(codes, 1, query->scratch, &memory);
    bsw_product_project_vector(codes, query->kernels, query->row, query->factor,
                               is_l2 ? codes->mean : codes->zeros, memory.centred,
                               memory.projected);
    memcpy(words, memory.projected, codes->projected_dims * sizeof *words);
    number->scale = 1.0f;
    // memory.centred: the query itself.
    *addend = is_l2 || manifest->lists.is_residual
                  ? 0.0f
                  : bsw_lane_dot_float(memory.centred, codes->mean, codes->dims);
}

// Keys of l2 lack nothing of query and list.
static const float *center(const struct bsw_manifest *manifest)
{
    const struct bsw_product_codes *codes = codes_of(manifest);
    return bsw_has_row_norms(codes->metric) ? NULL : codes->zeros;
}

// An entry of each part, drawn by a hash.
static void pin_query(const struct bsw_manifest *manifest, uint64_t seed, uint32_t *words)
{
    const struct bsw_product_codes *codes = codes_of(manifest);
    size_t num = bsw_product_entries(&codes->book);
    memset(words, 0, codes->projected_dims * sizeof *words);
    for (uint32_t d = 0; d < all_dims(codes); d++) {
        size_t code = (size_t)(bsw_hash2(seed, d / codes->book.part_dims) % num);
        memcpy(words + d, codes->entries + d * num + code, sizeof *words);
    }
}

// ---- what info says ----

static void describe(const struct bsw_manifest *manifest, struct bsw_codec_fact *out)
{
    const struct bsw_product_codes *codes = codes_of(manifest);
    uint32_t padding = all_dims(codes) - codes->dims;
    *out = (struct bsw_codec_fact){.name = "subspaces", .format = ", %s"};
    int length = snprintf(out->text, sizeof out->text, "%u subspace%s of %u dim%s",
                          codes->book.parts, codes->book.parts == 1 ? "" : "s",
                          codes->book.part_dims, codes->book.part_dims == 1 ? "" : "s");
    if (padding > 0 && length > 0)
        snprintf(out->text + length, sizeof out->text - (size_t)length, " (%u of them 0)", padding);
}

// A rotation mixes dimensions of different size: small ones are lost beside large ones.
static int vary(struct bsw_codec_settings *o)
{
    if (!o->has_usual_rotation || o->variant++ > 0) return 0;
    o->rotation = "none";
    return 1;
}

static const struct bsw_codec_table table = {
    .metrics = BSW_ALL_METRICS,
    .has_parts = 1,
    .has_rotation = 1,
    .has_matrix = 1,
    .needs_sample = 1,
    .keeps_far_rows = 1, // of heavy tails, which ip finds; a few would turn the rotation
    .has_residuals = 1,
    .always_residuals = 1,
    .device_coder = &device_coder,
    .worth_a_device = 1,
    .check_settings = check_settings,
    .check_rows = check_rows,
    .vary = vary,
    .train = train,
    .forecast = forecast,
    .tile_scratch_bytes = tile_scratch_bytes,
    .encode_tile = encode_tile,
    .settle_query_bits = settle_query_bits,
    .query_words = query_words,
    .query_scratch_bytes = query_scratch_bytes,
    .encode_query = encode_query,
    .center = center,
    .product = product,
    .pin_query = pin_query,
    .describe = describe,
};

const struct bsw_codec bsw_codec_pq = {.name = "pq",
                                       .has_tables = 1,
                                       .known_rule = BSW_KNOWN_RULE_TABLES,
                                       .part_field = PART_FIELD,
                                       .pack_part = pack_part,
                                       .free_part = free_part,
                                       .parse_part = parse_part,
                                       .table = &table};
