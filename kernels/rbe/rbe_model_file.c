// SPDX-License-Identifier: Apache-2.0
#include "kernels/rbe/rbe_model_file.h"

#include <math.h>
#include <string.h>

#include "bitsweep.pb-c.h"
#include "common/base/file.h"
#include "common/files/sealed_message.h"

static const char *const estimator_names[BSW_RBE_NUM_ESTIMATORS] = {"straight-through", "variant",
                                                                    "annealing", "smooth"};

const char *bsw_rbe_estimator_name(enum bsw_rbe_estimator estimator)
{
    return estimator_names[estimator];
}

enum bsw_status bsw_rbe_estimator_parse(const char *text, enum bsw_rbe_estimator *out,
                                        struct bsw_error *err)
{
    for (int i = 0; i < BSW_RBE_NUM_ESTIMATORS; i++) {
        if (strcmp(text, estimator_names[i]) != 0) continue;
        *out = (enum bsw_rbe_estimator)i;
        return BSW_OK;
    }
    return bsw_fail(err, BSW_ERROR_USAGE, "estimator '%s' is unknown", text);
}

enum bsw_status bsw_rbe_side_allocate(struct bsw_rbe_side *side, struct bsw_error *err)
{
    BSW_TRY(bsw_allocate(&side->mean, side->shape.dims, sizeof(float), "model", err));
    return bsw_allocate(&side->parameters, bsw_rbe_num_parameters(&side->shape), sizeof(float),
                        "model", err);
}

void bsw_rbe_model_deinit(struct bsw_rbe_model *model)
{
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        bsw_free(&model->sides[i].mean);
        bsw_free(&model->sides[i].parameters);
        bsw_free(&model->text.parameters[i]);
    }
    bsw_text_vocabulary_deinit(&model->text.vocabulary);
}

// ---- checks, the same for what is written and what is read ----

static enum bsw_status bad(const char *name, const char *what, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", name, what);
}

static int is_finite_array(const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) return 0;
    }
    return 1;
}

static enum bsw_status check_shapes(const char *name, const struct bsw_rbe_model *model,
                                    struct bsw_error *err)
{
    const struct bsw_rbe_shape *query = &model->sides[BSW_RBE_QUERY].shape;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_shape *shape = &model->sides[i].shape;
        if (shape->dims < 1 || shape->dims > BSW_RBE_MAX_DIMS || shape->code_dims < 1 ||
            shape->code_dims > BSW_RBE_MAX_DIMS || shape->steps > BSW_RBE_MAX_STEPS) {
            return bad(name, "dims or planes are out of range", err);
        }
        if (shape->dims != query->dims || shape->code_dims != query->code_dims)
            return bad(name, "dims of query and document side differ", err);
    }
    if (model->has_float_queries && (model->is_smooth || model->has_projection || query->steps > 0))
        return bad(name, "float queries have no steps, projections or float documents", err);
    return BSW_OK;
}

static enum bsw_status check_text(const char *name, const struct bsw_rbe_model *model,
                                  struct bsw_error *err)
{
    const struct bsw_text_vocabulary *v = &model->text.vocabulary;
    for (uint32_t i = 1; v->keys && i < v->num_grams; i++)
        if (v->keys[i - 1] >= v->keys[i]) return bad(name, "the trigrams are out of order", err);
    for (int i = 0; v->num_grams > 0 && i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_side *side = &model->sides[i];
        size_t count = bsw_text_num_parameters(v->num_grams, side->shape.dims);
        if (!is_finite_array(model->text.parameters[i], count))
            return bad(name, "the model has numbers that are not finite", err);
        if (side->scale != 1) return bad(name, "the scale of a model of texts is not 1", err);
        for (uint32_t d = 0; d < side->shape.dims; d++)
            if (side->mean[d] != 0) return bad(name, "the mean of a model of texts is not 0", err);
    }
    return BSW_OK;
}

static enum bsw_status check_numbers(const char *name, const struct bsw_rbe_model *model,
                                     struct bsw_error *err)
{
    if (model->scale_exponent < -126 || model->scale_exponent > 126)
        return bad(name, "the exponent of scales is out of range", err);
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_side *side = &model->sides[i];
        if (!(side->scale > 0) || !isfinite(side->scale))
            return bad(name, "the scale is out of range", err);
        if (!is_finite_array(side->mean, side->shape.dims) ||
            !is_finite_array(side->parameters, bsw_rbe_num_parameters(&side->shape))) {
            return bad(name, "the model has numbers that are not finite", err);
        }
    }
    return check_text(name, model, err);
}

enum bsw_status bsw_rbe_model_check_codes(const struct bsw_rbe_model *model, const char *name,
                                          struct bsw_error *err)
{
    if (model->is_smooth)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: a model of full precision, it has no codes",
                        name);
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_shape *shape = &model->sides[i].shape;
        if (shape->steps > 0 && !shape->has_residual_weights) {
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "%s: trained without residual weights, its codes are no bit planes",
                            name);
        }
    }
    return BSW_OK;
}

// ---- packing ----

static void fill_side(const struct bsw_rbe_side *side, Bsw__RbeSide *out)
{
    bsw__rbe_side__init(out);
    out->dims = side->shape.dims;
    out->code_dims = side->shape.code_dims;
    out->steps = side->shape.steps;
    out->shared = side->shape.is_shared;
    out->residual_weights = side->shape.has_residual_weights;
    out->mean.data = (uint8_t *)side->mean;
    out->mean.len = side->shape.dims * sizeof(float);
    out->scale = side->scale;
    out->parameters.data = (uint8_t *)side->parameters;
    out->parameters.len = bsw_rbe_num_parameters(&side->shape) * sizeof(float);
}

static void fill_text(const struct bsw_rbe_model *model, Bsw__TextNetwork *out)
{
    const struct bsw_text_vocabulary *v = &model->text.vocabulary;
    size_t bytes =
        bsw_text_num_parameters(v->num_grams, model->sides[0].shape.dims) * sizeof(float);
    bsw__text_network__init(out);
    out->num_grams = v->num_grams;
    out->keys =
        (ProtobufCBinaryData){v->keys ? v->num_grams * sizeof *v->keys : 0, (uint8_t *)v->keys};
    out->query = (ProtobufCBinaryData){bytes, (uint8_t *)model->text.parameters[BSW_RBE_QUERY]};
    out->document =
        (ProtobufCBinaryData){bytes, (uint8_t *)model->text.parameters[BSW_RBE_DOCUMENT]};
}

static void fill_origin(const struct bsw_rbe_origin *origin, Bsw__RbeTraining *out)
{
    bsw__rbe_training__init(out);
    out->estimator = (char *)estimator_names[origin->estimator];
    out->gamma = origin->gamma;
    out->rate = origin->rate;
    out->negatives = origin->negatives;
    out->batch = origin->batch;
    out->epochs = origin->epochs;
    out->seed = origin->seed;
    out->pairs = origin->pairs;
    out->train_loss = origin->train_loss;
    out->validation_loss = origin->validation_loss;
    out->ranks = origin->ranks;
}

enum bsw_status bsw_rbe_model_pack(struct bsw_rbe_model *model, struct bsw_buffer *out,
                                   struct bsw_error *err)
{
    Bsw__RbeModel message;
    Bsw__RbeSide sides[BSW_RBE_NUM_SIDES];
    Bsw__RbeTraining training;
    Bsw__TextNetwork text;
    bsw__rbe_model__init(&message);
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) fill_side(&model->sides[i], &sides[i]);
    fill_origin(&model->origin, &training);
    message.format_version = bsw_rbe_model_version(model);
    message.float_queries = model->has_float_queries;
    message.metric = (char *)bsw_metric_name(model->metric);
    message.smooth = model->is_smooth;
    message.projection = model->has_projection;
    message.scale_exponent = model->scale_exponent;
    message.query = &sides[BSW_RBE_QUERY];
    message.document = &sides[BSW_RBE_DOCUMENT];
    message.training = &training;
    if (model->text.vocabulary.num_grams > 0) {
        fill_text(model, &text);
        message.text = &text;
    }
    BSW_TRY(bsw_message_pack(&message.base, out, err));
    return bsw_message_seal(out, &model->digest, err);
}

enum bsw_status bsw_rbe_model_write(struct bsw_rbe_model *model, const char *path,
                                    struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    BSW_TRY(check_shapes(path, model, err));
    BSW_TRY(check_numbers(path, model, err));
    enum bsw_status status = bsw_rbe_model_pack(model, &buffer, err);
    if (status == BSW_OK) status = bsw_file_write_output(path, buffer.data, buffer.bytes, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

// ---- parsing ----

static void take_shape(const Bsw__RbeSide *message, struct bsw_rbe_shape *out)
{
    out->dims = message->dims;
    out->code_dims = message->code_dims;
    out->steps = message->steps;
    out->is_shared = message->shared;
    out->has_residual_weights = message->residual_weights;
}

// Sizes are compared before anything is allocated.
static enum bsw_status take_arrays(const char *name, const Bsw__RbeSide *message,
                                   struct bsw_rbe_side *out, struct bsw_error *err)
{
    if (message->mean.len != out->shape.dims * sizeof(float) ||
        message->parameters.len != bsw_rbe_num_parameters(&out->shape) * sizeof(float)) {
        return bad(name, "the arrays do not fit the model's dims and planes", err);
    }
    BSW_TRY(bsw_rbe_side_allocate(out, err));
    memcpy(out->mean, message->mean.data, message->mean.len);
    memcpy(out->parameters, message->parameters.data, message->parameters.len);
    out->scale = message->scale;
    return BSW_OK;
}

// Likewise.
static enum bsw_status take_text(const char *name, const Bsw__TextNetwork *message,
                                 struct bsw_rbe_model *out, struct bsw_error *err)
{
    struct bsw_text_vocabulary *v = &out->text.vocabulary;
    if (!message) return BSW_OK;
    const ProtobufCBinaryData *from[BSW_RBE_NUM_SIDES] = {&message->query, &message->document};
    if (message->num_grams < 1 || message->num_grams > BSW_TEXT_MAX_GRAMS)
        return bad(name, "the number of trigrams is out of range", err);
    size_t count = bsw_text_num_parameters(message->num_grams, out->sides[0].shape.dims);
    if ((message->keys.len > 0 && message->keys.len != message->num_grams * sizeof *v->keys) ||
        from[0]->len != count * sizeof(float) || from[1]->len != count * sizeof(float))
        return bad(name, "the arrays do not fit the number of trigrams", err);
    if (message->keys.len > 0) {
        BSW_TRY(bsw_allocate(&v->keys, message->num_grams, sizeof *v->keys, "model", err));
        memcpy(v->keys, message->keys.data, message->keys.len);
    }
    v->num_grams = message->num_grams;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        BSW_TRY(bsw_allocate(&out->text.parameters[i], count, sizeof(float), "model", err));
        memcpy(out->text.parameters[i], from[i]->data, from[i]->len);
    }
    return BSW_OK;
}

static enum bsw_status take_origin(const char *name, const Bsw__RbeTraining *message,
                                   struct bsw_rbe_origin *out, struct bsw_error *err)
{
    if (!message || bsw_rbe_estimator_parse(message->estimator, &out->estimator, NULL) != BSW_OK)
        return bad(name, "unknown estimator", err);
    out->gamma = message->gamma;
    out->rate = message->rate;
    out->negatives = message->negatives;
    out->batch = message->batch;
    out->epochs = message->epochs;
    out->seed = message->seed;
    out->pairs = message->pairs;
    out->train_loss = message->train_loss;
    out->validation_loss = message->validation_loss;
    out->ranks = message->ranks;
    return BSW_OK;
}

static enum bsw_status parse_message(const char *name, const Bsw__RbeModel *message,
                                     struct bsw_rbe_model *out, struct bsw_error *err)
{
    const Bsw__RbeSide *sides[BSW_RBE_NUM_SIDES] = {message->query, message->document};
    if (message->format_version < 1 || message->format_version > BSW_RBE_MODEL_VERSION) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: model of format version %u, this program reads 1 to %d", name,
                        message->format_version, BSW_RBE_MODEL_VERSION);
    }
    if (bsw_metric_parse(message->metric, &out->metric, NULL) != BSW_OK)
        return bad(name, "unknown metric", err);
    if (!sides[0] || !sides[1]) return bad(name, "a side is missing", err);
    out->is_smooth = message->smooth;
    out->has_float_queries = message->float_queries;
    out->has_projection = message->projection;
    out->scale_exponent = message->scale_exponent;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) take_shape(sides[i], &out->sides[i].shape);
    BSW_TRY(check_shapes(name, out, err));
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++)
        BSW_TRY(take_arrays(name, sides[i], &out->sides[i], err));
    BSW_TRY(take_text(name, message->text, out, err));
    BSW_TRY(take_origin(name, message->training, &out->origin, err));
    return check_numbers(name, out, err);
}

enum bsw_status bsw_rbe_model_parse(const char *name, const void *data, size_t bytes,
                                    struct bsw_rbe_model *out, struct bsw_error *err)
{
    *out = (struct bsw_rbe_model){0};
    BSW_TRY(bsw_message_check_seal(name, "model", data, bytes, &out->digest, err));
    Bsw__RbeModel *message;
    BSW_TRY(
        bsw_message_unpack(&bsw__rbe_model__descriptor, name, "model", data, bytes, &message, err));
    enum bsw_status status = parse_message(name, message, out, err);
    bsw_message_free(message);
    if (status != BSW_OK) bsw_rbe_model_deinit(out);
    return status;
}

enum bsw_status bsw_rbe_model_read(const char *path, struct bsw_rbe_model *out,
                                   struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    *out = (struct bsw_rbe_model){0};
    enum bsw_status status = bsw_file_read_all(path, BSW_RBE_MODEL_MAX_BYTES, &buffer, err);
    if (status == BSW_OK) status = bsw_rbe_model_parse(path, buffer.data, buffer.bytes, out, err);
    bsw_buffer_deinit(&buffer);
    return status;
}
