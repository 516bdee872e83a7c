// SPDX-License-Identifier: Apache-2.0
// Pairs of texts, the gradient of codes and text network as one, and a training of both.
#include "coordinator/train/text_pairs.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "coordinator/train/rbe_first_weights.h"
#include "coordinator/train/rbe_group.h"
#include "coordinator/train/train.h"
#include "kernels/rbe/rbe_text.h"
#include "temporary_folder.h"

static struct bsw_error err;

static const char *write_file(const char *name, const char *text)
{
    const char *path = path_of(name);
    assert_ok(bsw_file_write_atomic(path, text, strlen(text), &err), &err);
    return path;
}

static enum bsw_status open_pairs(const char *path, uint32_t grams, int is_hashed,
                                  struct bsw_text_pairs *pairs)
{
    struct bsw_transport transport = {.timeout_seconds = 10};
    bsw_transport_local_init(&transport);
    enum bsw_status status = bsw_text_pairs_open(path, grams, is_hashed, &transport, pairs, &err);
    bsw_transport_close(&transport, 0);
    return status;
}

UNIT_TEST(lines_are_queries_and_documents)
{
    struct bsw_text_pairs pairs;
    struct bsw_rbe_pair_text texts[BSW_RBE_NUM_SIDES];
    struct bsw_buffer buffer = {0};
    assert_ok(open_pairs(write_file("pairs", "a cat\tan animal\tmore\nred\t\n"), 100, 0, &pairs),
              &err);
    struct bsw_rbe_pairs source = bsw_text_pairs_pairs(&pairs);
    assert_int_equal(source.num_pairs, 2);
    assert_ok(source.read_texts(source.context, 0, &buffer, texts, &err), &err);
    assert_memory_equal(texts[0].text, "a cat", texts[0].bytes);
    assert_int_equal(texts[0].bytes, 5);
    assert_memory_equal(texts[1].text, "an animal", texts[1].bytes);
    assert_int_equal(texts[1].bytes, 9);
    assert_ok(source.read_texts(source.context, 1, &buffer, texts, &err), &err);
    assert_int_equal(texts[1].bytes, 0);
    // #a# #ca cat at# #an an# ani nim ima mal al# #re red ed#
    assert_int_equal(pairs.vocabulary.num_grams, 14);
    bsw_buffer_deinit(&buffer);
    bsw_text_pairs_close(&pairs);
    assert_ok(open_pairs(path_of("pairs"), 7, 1, &pairs), &err);
    assert_true(pairs.vocabulary.num_grams == 7 && !pairs.vocabulary.keys);
    bsw_text_pairs_close(&pairs);
}

UNIT_TEST(files_that_are_no_pairs_are_refused)
{
    struct bsw_text_pairs pairs;
    assert_int_equal(open_pairs(write_file("bad", "a\tb\nno tab\n"), 10, 0, &pairs),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "line 2 has no column 2"));
    bsw_text_pairs_close(&pairs);
    assert_int_equal(open_pairs(write_file("bad", ".\t.\n"), 10, 0, &pairs), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "no words"));
    bsw_text_pairs_close(&pairs);
    assert_int_equal(open_pairs(path_of("missing"), 10, 0, &pairs), BSW_ERROR_IO);
    bsw_text_pairs_close(&pairs);
}

// ---- gradients ----

enum { PAIRS = 12, DIMS = 5, CODE_DIMS = 4 };

static double loss_of(struct bsw_rbe_worker *worker, const float *parameters, float *gradient)
{
    uint64_t ids[PAIRS];
    double loss;
    for (uint64_t i = 0; i < PAIRS; i++) ids[i] = i;
    const struct bsw_rbe_group group = {
        .pairs = ids, .num_pairs = PAIRS, .shift_seed = 3, .slope = 1};
    assert_ok(bsw_rbe_group_run(worker, parameters, &group, 1, gradient, &loss, &err), &err);
    return loss;
}

// By float32: a parameter whose difference depends on the step is at a kink of the maximum.
static void compare(struct bsw_rbe_worker *worker, float *parameters, const float *gradient,
                    size_t count)
{
    const float step = 4e-3f;
    size_t compared = 0;
    for (size_t i = 0; i < count; i++) {
        float at = parameters[i];
        double slopes[2];
        for (int halved = 0; halved < 2; halved++) {
            float h = halved ? step / 2 : step;
            parameters[i] = at + h;
            double above = loss_of(worker, parameters, NULL);
            parameters[i] = at - h;
            slopes[halved] = (above - loss_of(worker, parameters, NULL)) / (2 * (double)h);
        }
        parameters[i] = at;
        if (fabs(slopes[0] - slopes[1]) > 1e-3) continue;
        assert_true(fabs(slopes[1] - (double)gradient[i]) < 2e-3);
        compared++;
    }
    assert_true(compared > count * 9 / 10);
}

UNIT_TEST(the_gradient_goes_through_codes_and_text)
{
    char text[2048] = "";
    for (int i = 0; i < PAIRS; i++)
        snprintf(text + strlen(text), 100, "ab%d cd%d e fg\tcd%d hij%d\n", i, i % 5, i, i % 3);
    struct bsw_text_pairs texts;
    assert_ok(open_pairs(write_file("gradient", text), 30, 1, &texts), &err);
    const struct bsw_rbe_training_options options = {
        .shapes = {{DIMS, CODE_DIMS, 0, 0, 1}, {DIMS, CODE_DIMS, 0, 0, 1}},
        .estimator = BSW_RBE_SMOOTH,
        .gamma = 5,
        .negatives = 4,
        .seed = 2,
        .vocabulary = &texts.vocabulary};
    const struct bsw_rbe_pairs pairs = bsw_text_pairs_pairs(&texts);
    struct bsw_rbe_worker worker;
    size_t count = bsw_rbe_training_parameters(&options);
    float *parameters = allocate_or_fail(count, sizeof *parameters),
          *gradient = allocate_or_fail(count, sizeof *gradient);
    assert_ok(bsw_rbe_worker_init(&options, &pairs, PAIRS, &worker, &err), &err);
    assert_ok(bsw_rbe_first_weights(&options, &pairs, NULL, 0, parameters, &err), &err);
    loss_of(&worker, parameters, gradient);
    compare(&worker, parameters, gradient, count);
    bsw_rbe_worker_deinit(&worker);
    bsw_free(&parameters);
    bsw_free(&gradient);
    bsw_text_pairs_close(&texts);
}

// ---- a training ----

static struct bsw_train_settings settings_of(const char *text, const char *model)
{
    struct bsw_train_settings s = bsw_train_settings_default();
    s.text = text;
    s.model = model;
    s.text_dims = 24;
    s.code_dims = 16;
    s.query_planes = 3;
    s.document_planes = 2;
    s.training.batch_pairs = 64;
    s.training.epochs = 6;
    s.training.validation = 0.1;
    s.force = 1;
    return s;
}

static double train_loss(const struct bsw_train_settings *settings, size_t *epochs)
{
    struct bsw_transport transport = {.timeout_seconds = 10};
    struct bsw_train_stats stats;
    bsw_transport_local_init(&transport);
    assert_ok(bsw_train_run(settings, &transport, &stats, &err), &err);
    *epochs = (size_t)stats.result.state.epoch;
    double loss = *epochs > 0 ? stats.result.state.epochs[*epochs - 1].train_loss : HUGE_VAL;
    bsw_train_stats_deinit(&stats);
    bsw_transport_close(&transport, 0);
    return loss;
}

static void expect_same_files(const char *a, const char *b)
{
    struct bsw_buffer x = {0}, y = {0};
    assert_ok(bsw_file_read_all(a, 1 << 24, &x, &err), &err);
    assert_ok(bsw_file_read_all(b, 1 << 24, &y, &err), &err);
    assert_int_equal(x.bytes, y.bytes);
    assert_memory_equal(x.data, y.data, x.bytes);
    bsw_buffer_deinit(&x);
    bsw_buffer_deinit(&y);
}

UNIT_TEST(a_training_learns_and_goes_on)
{
    static char text[1 << 16];
    static const char *const words[] = {"red",  "green", "blue", "cat",   "dog",
                                        "bird", "walks", "eats", "sleeps"};
    for (int i = 0; i < 300; i++)
        snprintf(text + strlen(text), 100, "%s %s %d\t%d the %s %s\n", words[i % 3],
                 words[3 + i / 3 % 3], i % 20, i % 20, words[6 + i % 3], words[3 + i / 3 % 3]);
    struct bsw_train_settings s = settings_of(write_file("train", text), path_of("whole.rbe"));
    size_t epochs;
    double last = train_loss(&s, &epochs);
    assert_int_equal(epochs, 6);
    assert_true(last < 1.5); // a choice of 11 at random: 2.4
    // The same in two runs.
    struct bsw_train_settings parts = s;
    parts.model = path_of("parts.rbe");
    parts.training.checkpoint = path_of("checkpoint");
    parts.training.most_batches = 9;
    train_loss(&parts, &epochs);
    parts.training.most_batches = 0;
    parts.training.is_resumed = 1;
    assert_true(train_loss(&parts, &epochs) == last);
    expect_same_files(s.model, parts.model);
    // What it makes of texts.
    struct bsw_rbe_text model;
    float row[24];
    assert_ok(bsw_rbe_text_open(s.model, BSW_CPU_REFERENCE, &model, &err), &err);
    assert_int_equal(model.maker.dims, 24);
    assert_ok(model.maker.make(&model, 0, "the cat", 7, row, &err), &err);
    for (size_t i = 0; i < 24; i++) assert_true(fabsf(row[i]) < 1);
    bsw_rbe_text_close(&model);
}

UNIT_TEST(settings_of_vectors_are_refused)
{
    struct bsw_transport transport = {.timeout_seconds = 10};
    struct bsw_train_stats stats;
    bsw_transport_local_init(&transport);
    for (int i = 0; i < 4; i++) {
        struct bsw_train_settings s = settings_of(path_of("train"), path_of("none.rbe"));
        if (i == 0) s.pairs.base = "synth:count=9,dims=2";
        if (i == 1) s.training.has_near_negatives = 1;
        if (i == 2) s.metric = "l2";
        if (i == 3) s.training.start = BSW_RBE_START_PRINCIPAL;
        assert_int_equal(bsw_train_run(&s, &transport, &stats, &err), BSW_ERROR_USAGE);
        assert_non_null(strstr(err.message, "--text"));
        bsw_train_stats_deinit(&stats);
    }
    bsw_transport_close(&transport, 0);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
