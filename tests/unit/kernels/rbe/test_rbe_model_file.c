// SPDX-License-Identifier: Apache-2.0
// model.rbe: every field comes back, every damaged bit and every length is found, and one that lies
// with a right digest is refused for what it says.
#include <math.h>

#include "bitsweep.pb-c.h"
#include "common/base/arithmetic.h"
#include "common/files/sealed_message.h"
#include "kernels/rbe/rbe_model_file.h"
#include "temporary_folder.h"
#include "unit_test.h"

static struct bsw_error err;

static void make_model(struct bsw_rbe_model *model)
{
    *model = (struct bsw_rbe_model){
        .metric = BSW_METRIC_COSINE,
        .origin = {BSW_RBE_ANNEALING, 7.5, 0.001, 0.25, 0.5, 10, 512, 9, 11, 1000, 3}};
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        struct bsw_rbe_side *side = &model->sides[i];
        side->shape = (struct bsw_rbe_shape){5, 3, (uint32_t)(2 - i), i, 1};
        side->scale = 0.5f + (float)i;
        assert_int_equal(bsw_rbe_side_allocate(side, &err), BSW_OK);
        bsw_rbe_initialize(&side->shape, (uint64_t)i, side->parameters);
        for (uint32_t d = 0; d < 5; d++) side->mean[d] = (float)d - 2.5f;
    }
}

static void pack_model(struct bsw_rbe_model *model, struct bsw_buffer *out)
{
    assert_int_equal(bsw_rbe_model_pack(model, out, &err), BSW_OK);
}

static void expect_same(const struct bsw_rbe_model *a, const struct bsw_rbe_model *b)
{
    assert_int_equal(a->metric, b->metric);
    assert_int_equal(a->is_smooth, b->is_smooth);
    assert_int_equal(a->has_float_queries, b->has_float_queries);
    assert_true(a->digest == b->digest);
    assert_int_equal(a->origin.estimator, b->origin.estimator);
    assert_true(a->origin.gamma == b->origin.gamma && a->origin.rate == b->origin.rate);
    assert_true(a->origin.train_loss == b->origin.train_loss &&
                a->origin.validation_loss == b->origin.validation_loss);
    assert_true(a->origin.negatives == b->origin.negatives && a->origin.batch == b->origin.batch &&
                a->origin.epochs == b->origin.epochs && a->origin.seed == b->origin.seed &&
                a->origin.pairs == b->origin.pairs && a->origin.ranks == b->origin.ranks);
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_side *x = &a->sides[i], *y = &b->sides[i];
        assert_memory_equal(&x->shape, &y->shape, sizeof x->shape);
        assert_true(x->scale == y->scale);
        assert_memory_equal(x->mean, y->mean, x->shape.dims * sizeof(float));
        assert_memory_equal(x->parameters, y->parameters,
                            bsw_rbe_num_parameters(&x->shape) * sizeof(float));
    }
}

UNIT_TEST(every_field_comes_back)
{
    struct bsw_rbe_model model, read;
    make_model(&model);
    const char *path = path_of("model.rbe");
    assert_int_equal(bsw_rbe_model_write(&model, path, &err), BSW_OK);
    assert_int_equal(bsw_rbe_model_read(path, &read, &err), BSW_OK);
    expect_same(&model, &read);
    assert_int_equal(bsw_rbe_model_check_codes(&read, path, &err), BSW_OK);
    bsw_rbe_model_deinit(&model);
    bsw_rbe_model_deinit(&read);
    assert_int_equal(bsw_rbe_model_read(path_of("missing"), &read, &err), BSW_ERROR_IO);
}

static void expect_refused(const struct bsw_buffer *bytes, size_t count)
{
    struct bsw_rbe_model read;
    assert_int_equal(bsw_rbe_model_parse("m", bytes->data, count, &read, &err), BSW_ERROR_BAD_DATA);
    assert_true(strncmp(err.message, "m: ", 3) == 0 && strlen(err.message) > 6);
    assert_null(read.sides[0].parameters);
}

UNIT_TEST(damage_is_found)
{
    struct bsw_rbe_model model;
    struct bsw_buffer bytes = {0};
    make_model(&model);
    pack_model(&model, &bytes);
    for (size_t count = 0; count < bytes.bytes; count++) expect_refused(&bytes, count);
    for (size_t i = 0; i < bytes.bytes; i++) {
        bytes.data[i] ^= (unsigned char)(1u << (bsw_hash(i) % 8));
        expect_refused(&bytes, bytes.bytes);
        bytes.data[i] ^= (unsigned char)(1u << (bsw_hash(i) % 8));
    }
    bsw_rbe_model_deinit(&model);
    bsw_buffer_deinit(&bytes);
}

// ---- models that lie, with a right digest ----

static void expect_lie_refused(const char *what, void (*lie)(Bsw__RbeModel *message))
{
    struct bsw_rbe_model model;
    struct bsw_buffer bytes = {0};
    make_model(&model);
    pack_model(&model, &bytes);
    Bsw__RbeModel *message = bsw__rbe_model__unpack(NULL, bytes.bytes, bytes.data);
    assert_non_null(message);
    message->digest = 0;
    lie(message);
    bytes.bytes = 0;
    size_t packed = bsw__rbe_model__get_packed_size(message);
    assert_int_equal(bsw_buffer_reserve(&bytes, packed + BSW_SEAL_BYTES, &err), BSW_OK);
    bytes.bytes = bsw__rbe_model__pack(message, bytes.data);
    assert_int_equal(bsw_message_seal(&bytes, NULL, &err), BSW_OK);
    expect_refused(&bytes, bytes.bytes);
    if (!strstr(err.message, what)) fail_msg("'%s' does not say '%s'", err.message, what);
    bsw__rbe_model__free_unpacked(message, NULL);
    bsw_rbe_model_deinit(&model);
    bsw_buffer_deinit(&bytes);
}

static void set_version(Bsw__RbeModel *message)
{
    message->format_version = 3;
}

static void set_dims(Bsw__RbeModel *message)
{
    message->query->dims = message->document->dims = 6;
}

static void set_other_dims(Bsw__RbeModel *message)
{
    message->document->dims = 4;
}

static void set_no_dims(Bsw__RbeModel *message)
{
    message->document->dims = 0;
}

static void set_many_steps(Bsw__RbeModel *message)
{
    message->query->steps = BSW_RBE_MAX_STEPS + 1;
}

static void set_short_array(Bsw__RbeModel *message)
{
    message->query->parameters.len -= sizeof(float);
}

static void set_nan(Bsw__RbeModel *message)
{
    float value = NAN;
    memcpy(message->document->parameters.data + 4 * sizeof value, &value, sizeof value);
}

static void set_scale(Bsw__RbeModel *message)
{
    message->query->scale = 0;
}

UNIT_TEST(lies_are_refused)
{
    expect_lie_refused("m: model of format version 3, this program reads 1 to 2", set_version);
    expect_lie_refused("do not fit", set_dims);
    expect_lie_refused("differ", set_other_dims);
    expect_lie_refused("out of range", set_no_dims);
    expect_lie_refused("out of range", set_many_steps);
    expect_lie_refused("do not fit", set_short_array);
    expect_lie_refused("not finite", set_nan);
    expect_lie_refused("scale", set_scale);
}

// Programs that know version 1 alone would take its first planes for signs.
UNIT_TEST(float_queries_are_of_version_2)
{
    struct bsw_rbe_model model, read;
    struct bsw_buffer bytes = {0};
    const char *path = path_of("float_queries.rbe");
    make_model(&model);
    pack_model(&model, &bytes);
    Bsw__RbeModel *message = bsw__rbe_model__unpack(NULL, bytes.bytes, bytes.data);
    assert_int_equal(message->format_version, 1);
    bsw__rbe_model__free_unpacked(message, NULL);
    model.has_float_queries = 1; // beside the steps of its queries
    assert_int_equal(bsw_rbe_model_write(&model, path, &err), BSW_ERROR_BAD_DATA);
    model.sides[0].shape.steps = 0;
    pack_model(&model, &bytes);
    message = bsw__rbe_model__unpack(NULL, bytes.bytes, bytes.data);
    assert_int_equal(message->format_version, 2);
    bsw__rbe_model__free_unpacked(message, NULL);
    assert_int_equal(bsw_rbe_model_write(&model, path, &err), BSW_OK);
    assert_int_equal(bsw_rbe_model_read(path, &read, &err), BSW_OK);
    expect_same(&model, &read);
    assert_int_equal(bsw_rbe_model_check_codes(&read, path, &err), BSW_OK);
    bsw_rbe_model_deinit(&model);
    bsw_rbe_model_deinit(&read);
    bsw_buffer_deinit(&bytes);
}

UNIT_TEST(models_without_codes_are_named)
{
    struct bsw_rbe_model model;
    make_model(&model);
    model.is_smooth = 1;
    assert_int_equal(bsw_rbe_model_check_codes(&model, "m", &err), BSW_ERROR_USAGE);
    model.is_smooth = 0;
    model.sides[1].shape.has_residual_weights = 0;
    assert_int_equal(bsw_rbe_model_check_codes(&model, "m", &err), BSW_ERROR_USAGE);
    model.sides[1].parameters[7] = INFINITY; // never written
    assert_int_equal(bsw_rbe_model_write(&model, path_of("bad.rbe"), &err), BSW_ERROR_BAD_DATA);
    assert_int_equal(access(path_of("bad.rbe"), F_OK), -1);
    bsw_rbe_model_deinit(&model);
}

// ---- text networks ----

static void add_text(struct bsw_rbe_model *model, int is_hashed)
{
    struct bsw_text_vocabulary *vocabulary = &model->text.vocabulary;
    vocabulary->num_grams = 4;
    if (!is_hashed) vocabulary->keys = allocate_or_fail(4, sizeof *vocabulary->keys);
    for (uint64_t i = 0; i < 4 && !is_hashed; i++) vocabulary->keys[i] = 7 * i + 1;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        struct bsw_rbe_side *side = &model->sides[i];
        model->text.parameters[i] =
            allocate_or_fail(bsw_text_num_parameters(4, side->shape.dims), sizeof(float));
        bsw_text_initialize(4, side->shape.dims, (uint64_t)i, model->text.parameters[i]);
        side->scale = 1;
        memset(side->mean, 0, side->shape.dims * sizeof *side->mean);
    }
}

UNIT_TEST(a_text_network_comes_back)
{
    for (int is_hashed = 0; is_hashed < 2; is_hashed++) {
        struct bsw_rbe_model model, read;
        struct bsw_buffer file = {0};
        make_model(&model);
        add_text(&model, is_hashed);
        pack_model(&model, &file);
        assert_ok(bsw_rbe_model_parse("m", file.data, file.bytes, &read, &err), &err);
        expect_same(&model, &read);
        assert_int_equal(read.text.vocabulary.num_grams, 4);
        assert_true(is_hashed == !read.text.vocabulary.keys);
        for (uint32_t i = 0; i < 4 && !is_hashed; i++)
            assert_true(read.text.vocabulary.keys[i] == model.text.vocabulary.keys[i]);
        for (int i = 0; i < BSW_RBE_NUM_SIDES; i++)
            assert_memory_equal(read.text.parameters[i], model.text.parameters[i],
                                bsw_text_num_parameters(4, 5) * sizeof(float));
        bsw_buffer_deinit(&file);
        bsw_rbe_model_deinit(&model);
        bsw_rbe_model_deinit(&read);
    }
}

static void expect_bad_text(struct bsw_rbe_model *model, const char *why)
{
    struct bsw_rbe_model read;
    struct bsw_buffer file = {0};
    pack_model(model, &file);
    assert_int_equal(bsw_rbe_model_parse("m", file.data, file.bytes, &read, &err),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, why));
    bsw_buffer_deinit(&file);
}

UNIT_TEST(a_wrong_text_network_is_refused)
{
    struct bsw_rbe_model model;
    make_model(&model);
    add_text(&model, 0);
    model.text.vocabulary.keys[1] = 1000;
    expect_bad_text(&model, "out of order");
    model.text.vocabulary.keys[1] = 8;
    model.text.parameters[1][3] = NAN;
    expect_bad_text(&model, "not finite");
    model.text.parameters[1][3] = 0;
    model.sides[0].scale = 2;
    expect_bad_text(&model, "scale");
    model.sides[0].scale = 1;
    model.sides[1].mean[2] = 1;
    expect_bad_text(&model, "mean");
    bsw_rbe_model_deinit(&model);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
