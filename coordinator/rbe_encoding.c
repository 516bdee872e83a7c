#include "coordinator/rbe_encoding.h"

#include <string.h>

#include "common/file.h"

enum { MESSAGE_MODEL = 60 };

#define MODEL_MAX_BYTES (1ull << 31)

_Static_assert(BSW_RBE_MAX_ROW_DIMS == BSW_RBE_MAX_DIMS, "what a manifest takes, a model has");

static enum bsw_status check_fit(const struct bsw_rbe_model *model, const char *path, uint32_t dims,
                                 struct bsw_error *err)
{
    const struct bsw_rbe_shape *query = &model->sides[BSW_RBE_QUERY].shape;
    if (query->dims != dims) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--model %s: of %u dims, the rows have %u", path,
                        query->dims, dims);
    }
    if (model->metric != BSW_METRIC_COSINE) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--model %s: trained for %s; rbe codes are of cosine",
                        path, bsw_metric_name(model->metric));
    }
    if (query->steps + 1 > BSW_MAX_QUERY_BITS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--model %s: %u planes for a query, %d are possible",
                        path, query->steps + 1, BSW_MAX_QUERY_BITS);
    }
    return BSW_OK;
}

static enum bsw_status parse(const char *path, uint32_t dims, enum bsw_cpu_level level,
                             struct bsw_rbe_encoding *encoding, struct bsw_error *err)
{
    struct bsw_rbe_model model;
    BSW_TRY(bsw_rbe_model_parse(path, encoding->bytes.data, encoding->bytes.bytes, &model, err));
    enum bsw_status status = check_fit(&model, path, dims, err);
    if (status != BSW_OK) {
        bsw_rbe_model_deinit(&model);
        return status;
    }
    return bsw_rbe_coders_create(&model, path, level, &encoding->coders, err);
}

enum bsw_status bsw_rbe_encoding_open(const char *path, uint32_t dims, enum bsw_cpu_level level,
                                      struct bsw_transport *transport, struct bsw_rbe_encoding *out,
                                      struct bsw_error *err)
{
    const struct bsw_message message = {.kind = MESSAGE_MODEL, .name = "the model"};
    *out = (struct bsw_rbe_encoding){0};
    enum bsw_status status =
        transport->rank == 0 ? bsw_file_read_all(path, MODEL_MAX_BYTES, &out->bytes, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = bsw_transport_broadcast(transport, &message, &out->bytes, err);
    if (status == BSW_OK) status = parse(path, dims, level, out, err);
    return bsw_transport_agree(transport, status, err);
}

void bsw_rbe_encoding_close(struct bsw_rbe_encoding *encoding)
{
    bsw_rbe_coders_destroy(&encoding->coders);
    bsw_buffer_deinit(&encoding->bytes);
}

enum bsw_status bsw_rbe_describe(const struct bsw_rbe_coders *coders, struct bsw_manifest *manifest,
                                 struct bsw_error *err)
{
    const struct bsw_rbe_shape *shape = &coders->sides[BSW_RBE_DOCUMENT].shape;
    uint32_t planes = bsw_rbe_num_planes(coders, BSW_RBE_DOCUMENT);
    bsw_code_layout_init(&manifest->layout);
    BSW_TRY(bsw_code_layout_append(&manifest->layout, shape->code_dims, planes, err));
    manifest->bits = planes;
    manifest->stage_dims = manifest->layout.dims;
    manifest->row_dims = shape->dims;
    manifest->query_planes = bsw_rbe_num_planes(coders, BSW_RBE_QUERY);
    manifest->scale_exponent = coders->scale_exponent;
    manifest->model_digest = coders->model.digest;
    manifest->coders = coders;
    return BSW_OK;
}

static int is_described(const struct bsw_rbe_coders *coders, const struct bsw_manifest *manifest)
{
    struct bsw_manifest said = {0};
    return bsw_rbe_describe(coders, &said, NULL) == BSW_OK &&
           said.model_digest == manifest->model_digest && said.row_dims == manifest->row_dims &&
           said.query_planes == manifest->query_planes && said.bits == manifest->bits &&
           said.layout.dims == manifest->layout.dims &&
           said.scale_exponent == manifest->scale_exponent;
}

enum bsw_status bsw_rbe_index_model_open(const char *folder, const struct bsw_manifest *manifest,
                                         enum bsw_cpu_level level, struct bsw_rbe_coders **out,
                                         struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_rbe_model model;
    *out = NULL;
    BSW_TRY(bsw_path_join(path, folder, BSW_RBE_MODEL_NAME, err));
    BSW_TRY(bsw_rbe_model_read(path, &model, err));
    BSW_TRY(bsw_rbe_coders_create(&model, path, level, out, err));
    if (is_described(*out, manifest)) return BSW_OK;
    bsw_rbe_coders_destroy(out);
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: not the model of this index's codes", path);
}
