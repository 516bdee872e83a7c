// SPDX-License-Identifier: Apache-2.0
// rbe: codes of a learned model. encode takes the model from a file; search and verify find it in
// the index.
#include "shard/codecs/codec_rbe.h"

#include <math.h>
#include <string.h>

#include "bitsweep.pb-c.h"
#include "common/files/sealed_message.h"
#include "common/net/message_kinds.h"
#include "shard/codecs/codec.h"

#define PART_FIELD    16 // Manifest.learned
#define BIASLESS_RULE 1  // of models without projections: shard files have no biases

// What plan assumes of models that it knows nothing of.
#define USUAL_CODE_DIMS    64
#define USUAL_QUERY_PLANES 3

// ---- its part of a manifest ----

static void free_part(void *part)
{
    bsw_free(&part);
}

static enum bsw_status create_part(struct bsw_manifest *manifest, struct bsw_error *err)
{
    bsw_free(&manifest->part);
    return bsw_allocate_zero(&manifest->part, 1, sizeof(struct bsw_rbe_part), "manifest", err);
}

static enum bsw_status pack_part(const struct bsw_manifest *manifest, struct bsw_buffer *out,
                                 struct bsw_error *err)
{
    const struct bsw_rbe_part *part = bsw_rbe_part_of(manifest);
    Bsw__Learned learned = BSW__LEARNED__INIT;
    learned.model_digest = part->model_digest;
    learned.row_dims = manifest->row_dims;
    learned.query_planes = part->query_planes;
    learned.scale_exponent = manifest->scale_exponent;
    return bsw_message_pack(&learned.base, out, err);
}

static enum bsw_status take_learned(const char *name, const Bsw__Learned *learned,
                                    struct bsw_manifest *manifest, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    if (layout->num_segments != 1 || manifest->bits != layout->segments[0].bits ||
        !bsw_has_unit_rows(manifest->metric)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no learned code", name);
    }
    if (learned->row_dims < 1 || learned->row_dims > BSW_RBE_MAX_DIMS ||
        learned->query_planes < 1 || learned->query_planes > BSW_MAX_QUERY_BITS ||
        learned->scale_exponent < -126 || learned->scale_exponent > 126) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: what was learned is out of range", name);
    }
    BSW_TRY(create_part(manifest, err));
    bsw_rbe_part_of(manifest)->model_digest = learned->model_digest;
    bsw_rbe_part_of(manifest)->query_planes = learned->query_planes;
    manifest->row_dims = learned->row_dims;
    manifest->scale_exponent = learned->scale_exponent;
    return BSW_OK;
}

static enum bsw_status parse_part(const char *name, const void *data, size_t bytes,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    Bsw__Learned *learned;
    BSW_TRY(bsw_message_unpack(&bsw__learned__descriptor, name, "model's description", data, bytes,
                               &learned, err));
    enum bsw_status status = take_learned(name, learned, manifest, err);
    bsw_message_free(learned);
    return status;
}

enum bsw_status bsw_rbe_describe(const struct bsw_rbe_coders *coders, struct bsw_manifest *manifest,
                                 struct bsw_error *err)
{
    const struct bsw_rbe_shape *shape = &coders->sides[BSW_RBE_DOCUMENT].shape;
    uint32_t planes = bsw_rbe_num_planes(coders, BSW_RBE_DOCUMENT);
    BSW_TRY(bsw_codec_lay_out_whole(manifest, shape->code_dims, planes, err));
    BSW_TRY(create_part(manifest, err));
    manifest->row_dims = shape->dims;
    manifest->scale_exponent = coders->scale_exponent;
    manifest->code_rule = coders->model.has_projection ? 0 : BIASLESS_RULE;
    *bsw_rbe_part_of(manifest) =
        (struct bsw_rbe_part){.model_digest = coders->model.digest,
                              .query_planes = bsw_rbe_num_planes(coders, BSW_RBE_QUERY),
                              .coders = coders};
    return BSW_OK;
}

// ---- settings ----

// The model says all about its codes.
static enum bsw_status check_settings(struct bsw_codec_settings *o, struct bsw_error *err)
{
    if (!o->model)
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec rbe needs --model, from bitsweep train");
    if (o->bits > 0 || o->segments || o->stage != BSW_STAGE_DEFAULT) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--%s: --codec rbe has what its model says",
                        o->bits > 0   ? "bits"
                        : o->segments ? "segments"
                                      : "stage");
    }
    return BSW_OK;
}

static enum bsw_status train(const struct bsw_codec_settings *o, uint32_t dims,
                             struct bsw_sample *sample, const struct bsw_codec_model *model,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    (void)o;
    (void)dims;
    (void)sample;
    return bsw_rbe_describe(model->coders, manifest, err);
}

static enum bsw_status forecast(const struct bsw_codec_forecast *o, struct bsw_manifest *manifest,
                                struct bsw_error *err)
{
    uint64_t code_dims = o->code_dims > 0 ? o->code_dims : USUAL_CODE_DIMS;
    if (o->dims > BSW_RBE_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec rbe takes up to %d dims", BSW_RBE_MAX_DIMS);
    }
    BSW_TRY(create_part(manifest, err));
    bsw_rbe_part_of(manifest)->query_planes =
        o->query_bits > 0 ? o->query_bits : USUAL_QUERY_PLANES;
    manifest->row_dims = (uint32_t)o->dims;
    return bsw_codec_lay_out_whole(manifest, (uint32_t)code_dims, o->bits, err);
}

// ---- models ----

static enum bsw_status check_fit(const struct bsw_rbe_model *model, const char *path, uint32_t dims,
                                 struct bsw_error *err)
{
    const struct bsw_rbe_shape *query = &model->sides[BSW_RBE_QUERY].shape;
    if (query->dims != dims) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--model %s: of %u dims, the rows have %u", path,
                        query->dims, dims);
    }
    if (!bsw_has_unit_rows(model->metric)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--model %s: trained for %s; rbe codes are of cosine",
                        path, bsw_metric_name(model->metric));
    }
    if (query->steps + 1 > BSW_MAX_QUERY_BITS) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--model %s: %u planes for a query, must be %d at most", path,
                        query->steps + 1, BSW_MAX_QUERY_BITS);
    }
    return BSW_OK;
}

static enum bsw_status make_coders(struct bsw_rbe_model *model, const char *path,
                                   enum bsw_cpu_level level, struct bsw_codec_model *out,
                                   struct bsw_error *err)
{
    struct bsw_rbe_coders *coders = NULL;
    enum bsw_status status = bsw_rbe_coders_create(model, path, level, &coders, err);
    out->coders = coders;
    return status;
}

static enum bsw_status parse_model(const char *path, uint32_t dims, enum bsw_cpu_level level,
                                   struct bsw_codec_model *out, struct bsw_error *err)
{
    struct bsw_rbe_model model;
    BSW_TRY(bsw_rbe_model_parse(path, out->bytes.data, out->bytes.bytes, &model, err));
    enum bsw_status status = bsw_rbe_model_check_codes(&model, path, err);
    if (status == BSW_OK) status = check_fit(&model, path, dims, err);
    if (status == BSW_OK) return make_coders(&model, path, level, out, err);
    bsw_rbe_model_deinit(&model);
    return status;
}

static enum bsw_status open_model(const char *path, uint32_t dims, enum bsw_cpu_level level,
                                  struct bsw_transport *transport, struct bsw_codec_model *out,
                                  struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_MODEL, .name = "the model"};
    enum bsw_status status =
        transport->rank == 0 ? bsw_file_read_all(path, BSW_RBE_MODEL_MAX_BYTES, &out->bytes, err)
                             : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = bsw_transport_broadcast(transport, &message, &out->bytes, err);
    if (status == BSW_OK) status = parse_model(path, dims, level, out, err);
    return bsw_transport_agree(transport, status, err);
}

static void close_model(struct bsw_codec_model *model)
{
    struct bsw_rbe_coders *coders = model->coders;
    bsw_rbe_coders_destroy(&coders);
    bsw_buffer_deinit(&model->bytes);
    model->coders = NULL;
}

static void lend_model(const struct bsw_codec_model *model, struct bsw_manifest *manifest)
{
    bsw_rbe_part_of(manifest)->coders = model->coders;
}

static int is_described(const struct bsw_rbe_coders *coders, const struct bsw_manifest *manifest)
{
    struct bsw_manifest said = {.codec = manifest->codec};
    const struct bsw_rbe_part *part = bsw_rbe_part_of(manifest);
    int is_same = bsw_rbe_describe(coders, &said, NULL) == BSW_OK &&
                  bsw_rbe_part_of(&said)->model_digest == part->model_digest &&
                  bsw_rbe_part_of(&said)->query_planes == part->query_planes &&
                  said.code_rule >= manifest->code_rule && said.row_dims == manifest->row_dims &&
                  said.bits == manifest->bits && said.layout.dims == manifest->layout.dims &&
                  said.scale_exponent == manifest->scale_exponent;
    bsw_manifest_deinit(&said);
    return is_same;
}

static enum bsw_status open_index_model(const char *folder, const struct bsw_manifest *manifest,
                                        enum bsw_cpu_level level, struct bsw_codec_model *out,
                                        struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_rbe_model model;
    BSW_TRY(bsw_path_join(path, folder, BSW_INDEX_MODEL_NAME, err));
    BSW_TRY(bsw_rbe_model_read(path, &model, err));
    BSW_TRY(make_coders(&model, path, level, out, err));
    if (is_described(out->coders, manifest)) return BSW_OK;
    close_model(out);
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: not the model of this index's codes", path);
}

// ---- rows and queries ----

static size_t scratch_bytes(const struct bsw_manifest *manifest)
{
    return bsw_rbe_coders_scratch_bytes(bsw_rbe_part_of(manifest)->coders);
}

static size_t tile_scratch_bytes(const struct bsw_manifest *manifest, size_t num_rows)
{
    (void)num_rows;
    return scratch_bytes(manifest);
}

// Tails stay 0.
static void encode_tile(const struct bsw_codec_tile *tile, const struct bsw_code_arrays *arrays,
                        size_t bundle)
{
    const struct bsw_manifest *manifest = tile->manifest;
    size_t words = bsw_segment_bundle_words(&manifest->layout.segments[0]);
    for (size_t done = 0; done < tile->num_rows; done += BSW_BUNDLE_ROWS, bundle++) {
        size_t left = tile->num_rows - done,
               count = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
        bsw_rbe_encode_bundle(bsw_rbe_part_of(manifest)->coders,
                              tile->rows + done * manifest->row_dims, count, tile->factors + done,
                              tile->scratch, arrays->planes[0] + bundle * words,
                              arrays->scales + bundle * BSW_BUNDLE_ROWS,
                              arrays->biases ? arrays->biases + bundle * BSW_BUNDLE_ROWS : NULL);
    }
}

// Queries have as many planes as the model's query side.
static enum bsw_status settle_query_bits(const struct bsw_manifest *manifest, const char *name,
                                         uint32_t asked, uint32_t *out, struct bsw_error *err)
{
    *out = bsw_rbe_part_of(manifest)->query_planes;
    if (asked > 0 && asked != *out) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--query-bits %u: the model of %s has %u", asked,
                        name, *out);
    }
    return bsw_code_layout_check(&manifest->layout, *out, err);
}

static void encode_query(const struct bsw_codec_query *query, uint32_t *words,
                         union bsw_query_number *number, float *addend)
{
    bsw_rbe_encode_query(bsw_rbe_part_of(query->manifest)->coders, query->row, query->factor,
                         query->scratch, words, &number->scale, addend);
}

static void describe_model(const struct bsw_manifest *manifest, struct bsw_codec_model_facts *out)
{
    const struct bsw_rbe_part *part = bsw_rbe_part_of(manifest);
    *out = (struct bsw_codec_model_facts){part->model_digest, part->query_planes};
}

static const struct bsw_codec_table table = {
    .metrics = BSW_UNIT_METRICS,
    .has_matrix = 1,
    .has_model = 1,
    .has_whole_bits = 1,
    .host_encode = "--codec rbe",
    .check_settings = check_settings,
    .train = train,
    .forecast = forecast,
    .open_model = open_model,
    .open_index_model = open_index_model,
    .lend_model = lend_model,
    .close_model = close_model,
    .tile_scratch_bytes = tile_scratch_bytes,
    .encode_tile = encode_tile,
    .settle_query_bits = settle_query_bits,
    .query_scratch_bytes = scratch_bytes,
    .encode_query = encode_query,
    .describe_model = describe_model,
};

const struct bsw_codec bsw_codec_rbe = {.name = "rbe",
                                        .has_affine = 1,
                                        .known_rule = BSW_KNOWN_RULE,
                                        .code_rule = BIASLESS_RULE,
                                        .biasless_rule = BIASLESS_RULE,
                                        .part_field = PART_FIELD,
                                        .pack_part = pack_part,
                                        .free_part = free_part,
                                        .parse_part = parse_part,
                                        .table = &table};
