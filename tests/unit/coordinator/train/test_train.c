// SPDX-License-Identifier: Apache-2.0
// train in one process, by its settings: the model that the command writes, and its messages.
#include "unit_test.h"

#include "common/base/file.h"
#include "coordinator/job/command.h"
#include "coordinator/train/train.h"
#include "temporary_folder.h"

#define QUERIES   "synth:count=400,dims=16"
#define DOCUMENTS "synth:count=400,dims=16,seed=4"

static struct bsw_error err;

static struct bsw_train_settings settings_of(const char *model)
{
    struct bsw_train_settings settings = bsw_train_settings_default();
    settings.pairs.queries = QUERIES;
    settings.pairs.documents = DOCUMENTS;
    settings.pairs.level = BSW_CPU_REFERENCE;
    settings.training.start = BSW_RBE_START_RANDOM;
    settings.training.epochs = 2;
    settings.training.batch_pairs = 128;
    settings.loss = BSW_TRAIN_LOSS_PAIRS;
    settings.model = model;
    settings.code_dims = 8;
    settings.query_planes = 3;
    settings.document_planes = 2;
    return settings;
}

static enum bsw_status run(const struct bsw_train_settings *settings, struct bsw_train_stats *stats)
{
    struct bsw_transport transport = {.timeout_seconds = 10};
    bsw_transport_local_init(&transport);
    memset(&err, 0, sizeof err);
    enum bsw_status status = bsw_train_run(settings, &transport, stats, &err);
    bsw_transport_close(&transport, 0);
    return status;
}

// word and value: an option more, or NULL.
static enum bsw_status run_command(const char *model, const char *word, const char *value)
{
    const char *words[] = {"--queries", QUERIES, "--documents", DOCUMENTS, "--model",  model,
                           "--loss",    "pairs", "--start",     "random",  "--epochs", "2",
                           "--batch",   "128",   "--code-dims", "8",       "--quiet",  "--level",
                           "reference", word,    value};
    struct bsw_transport transport = {.timeout_seconds = 10};
    bsw_transport_local_init(&transport);
    memset(&err, 0, sizeof err);
    enum bsw_status status = bsw_command_run(&bsw_command_train, &transport, word ? 21 : 19,
                                             (char **)(uintptr_t)words, &err);
    bsw_transport_close(&transport, 0);
    return status;
}

UNIT_TEST(settings_give_the_model_of_the_command)
{
    struct bsw_train_settings s = settings_of(path_of("mine"));
    struct bsw_train_stats stats;
    struct bsw_buffer mine = {0}, theirs = {0};
    assert_ok(run(&s, &stats), &err);
    assert_int_equal(stats.epochs, 2);
    assert_int_equal(stats.result.num_trained + stats.result.num_held_out, 400);
    assert_int_equal(stats.shapes[BSW_RBE_QUERY].steps, 2);
    bsw_train_stats_deinit(&stats);
    assert_ok(run_command(path_of("theirs"), NULL, NULL), &err);
    assert_ok(bsw_file_read_all(path_of("mine"), 1 << 20, &mine, &err), &err);
    assert_ok(bsw_file_read_all(path_of("theirs"), 1 << 20, &theirs, &err), &err);
    assert_int_equal(mine.bytes, theirs.bytes);
    assert_memory_equal(mine.data, theirs.data, mine.bytes);
    bsw_buffer_deinit(&mine);
    bsw_buffer_deinit(&theirs);
}

UNIT_TEST(invalid_settings_are_refused_as_by_the_command)
{
    struct bsw_train_stats stats;
    struct bsw_train_settings s = settings_of(path_of("none"));
    s.training.negatives = 200;
    assert_int_equal(run(&s, &stats), BSW_ERROR_USAGE);
    bsw_train_stats_deinit(&stats);
    struct bsw_error mine = err;
    assert_int_equal(run_command(path_of("none"), "--negatives", "200"), BSW_ERROR_USAGE);
    assert_string_equal(mine.message, err.message);
    s = settings_of(path_of("none"));
    s.training.start = BSW_RBE_START_PRINCIPAL;
    assert_int_equal(run(&s, &stats), BSW_ERROR_USAGE);
    bsw_train_stats_deinit(&stats);
    assert_string_equal(err.message, "--start principal goes with --loss similarities");
    s = settings_of(path_of("none"));
    s.training.is_resumed = 1;
    assert_int_equal(run(&s, &stats), BSW_ERROR_USAGE);
    bsw_train_stats_deinit(&stats);
    assert_string_equal(err.message, "--resume needs --checkpoint");
    assert_int_equal(access(path_of("none"), F_OK), -1);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
