// SPDX-License-Identifier: Apache-2.0
// groundtruth in one process, by its settings: the file that the command writes, the same answers
// in memory, and its messages.
#include "unit_test.h"

#include "common/base/memory.h"
#include "common/files/result_file.h"
#include "common/net/transport.h"
#include "coordinator/job/command.h"
#include "coordinator/truth/truth.h"
#include "lock_hook.h"
#include "temporary_folder.h"

enum { QUERIES = 21, K = 5 };

static struct bsw_error err;
static struct bsw_transport transport = {.timeout_seconds = 10};

static struct bsw_truth_settings settings_of(const char *out)
{
    return (struct bsw_truth_settings){.base = "synth:count=500,dims=12",
                                       .queries = "synth:count=21,dims=12,seed=7",
                                       .out = out,
                                       .metric = "l2",
                                       .k = K,
                                       .level = BSW_CPU_REFERENCE};
}

static enum bsw_status run(const struct bsw_truth_settings *settings, struct bsw_truth_stats *stats)
{
    return bsw_truth_run(settings, &transport, stats, &err);
}

// word: an option more, with its value, or NULL.
static enum bsw_status run_command(const char *out, const char *k, const char *word,
                                   const char *value)
{
    const char *words[] = {"--base",    "synth:count=500,dims=12",
                           "--queries", "synth:count=21,dims=12,seed=7",
                           "--metric",  "l2",
                           "--quiet",   "--level",
                           "reference", "--out",
                           out,         "--k",
                           k,           word,
                           value};
    return bsw_command_run(&bsw_command_groundtruth, &transport, word ? value ? 15 : 14 : 13,
                           (char **)(uintptr_t)words, &err);
}

UNIT_TEST(settings_give_the_file_of_the_command)
{
    struct bsw_truth_settings s = settings_of(path_of("mine"));
    struct bsw_truth_stats stats;
    s.split = 1;
    assert_ok(run(&s, &stats), &err);
    assert_ok(run_command(path_of("theirs"), "5", "--split", NULL), &err);
    assert_same_file("mine", "theirs");
    assert_same_file("mine.neighbors.ibin", "theirs.neighbors.ibin");
    assert_same_file("mine.distances.fbin", "theirs.distances.fbin");
    assert_int_equal(stats.num_rows, 500);
    assert_int_equal(stats.num_queries, QUERIES);
    assert_int_equal(stats.dims, 12);
    assert_string_equal(stats.device, "cpu");
    assert_true(stats.memory_bytes > 0 && stats.seconds > 0 && !stats.is_integer);
}

struct answers {
    int64_t ids[QUERIES * K];
    float values[QUERIES * K];
    size_t num_queries;
    enum bsw_status status;
};

static enum bsw_status take(void *context, uint64_t first_query, size_t num_queries,
                            const int64_t *ids, const float *values, struct bsw_error *error)
{
    struct answers *answers = context;
    if (answers->status != BSW_OK) return bsw_fail(error, answers->status, "the sink is full");
    memcpy(answers->ids + first_query * K, ids, num_queries * K * sizeof *ids);
    memcpy(answers->values + first_query * K, values, num_queries * K * sizeof *values);
    answers->num_queries += num_queries;
    return BSW_OK;
}

// Without a file, and beside one.
UNIT_TEST(a_sink_gets_the_answers_of_the_file)
{
    for (int has_file = 0; has_file < 2; has_file++) {
        struct answers answers = {0};
        struct bsw_results file = {0};
        struct bsw_truth_settings s = settings_of(has_file ? path_of("both") : NULL);
        struct bsw_truth_stats stats;
        size_t before = count_test_files();
        s.sink = (struct bsw_answer_sink){.context = &answers, .take = take};
        assert_ok(run(&s, &stats), &err);
        assert_int_equal(answers.num_queries, QUERIES);
        if (!has_file) {
            assert_int_equal(count_test_files(), before);
            assert_ok(run_command(path_of("both"), "5", "--force", NULL), &err);
        }
        assert_ok(bsw_results_read(path_of("both"), &file, &err), &err);
        assert_memory_equal(answers.ids, file.ids, sizeof answers.ids);
        assert_memory_equal(answers.values, file.values, sizeof answers.values);
        bsw_results_deinit(&file);
        unlink(path_of("both"));
        unlink(path_of("both.json"));
    }
}

UNIT_TEST(an_error_of_the_sink_ends_the_job)
{
    struct answers answers = {.status = BSW_ERROR_TOO_LARGE};
    struct bsw_truth_settings s = settings_of(path_of("none"));
    struct bsw_truth_stats stats;
    s.sink = (struct bsw_answer_sink){.context = &answers, .take = take};
    assert_int_equal(run(&s, &stats), BSW_ERROR_TOO_LARGE);
    assert_string_equal(err.message, "the sink is full");
    assert_int_equal(access(path_of("none"), F_OK), -1);
    assert_int_equal(access(path_of("none.partial"), F_OK), -1);
}

static void assert_refused(const struct bsw_truth_settings *s, const char *message)
{
    struct bsw_truth_stats stats;
    assert_int_equal(run(s, &stats), BSW_ERROR_USAGE);
    assert_string_equal(err.message, message);
}

UNIT_TEST(invalid_settings_are_refused)
{
    struct bsw_truth_settings s = settings_of(path_of("none"));
    struct bsw_truth_stats stats;
    s.k = 501; // as by the command
    assert_int_equal(run(&s, &stats), BSW_ERROR_USAGE);
    struct bsw_error mine = err;
    assert_int_equal(run_command(path_of("none"), "501", NULL, NULL), BSW_ERROR_USAGE);
    assert_string_equal(mine.message, err.message);
    s = settings_of(path_of("none"));
    s.resume = 1;
    s.device.text = "cuda";
    assert_refused(&s, "--resume: --device cuda keeps no journal, a CPU does");
    s = settings_of(path_of("none"));
    s.k = 0;
    assert_refused(&s, "--k 0: must be 1 to 1000000");
    s = settings_of(path_of("none"));
    s.block_rows = 1 << 25;
    assert_refused(&s, "--block-rows 33554432: must be 0 to 16777216");
    s = settings_of(NULL);
    s.resume = 1;
    assert_refused(&s, "--out is needed: answers that go to no file are not split, replaced or "
                       "resumed");
    s.queries = NULL;
    assert_refused(&s, "--queries is needed");
}

static void another_ends(void)
{
    unlink(path_of("taken.00000.journal"));
    write_test_file("taken", "of another run", 14);
}

static void assert_taken(int resume)
{
    struct bsw_truth_settings s = settings_of(path_of("taken"));
    struct bsw_buffer file = {0};
    s.resume = resume;
    before_next_lock = another_ends;
    struct bsw_truth_stats stats;
    assert_int_equal(run(&s, &stats), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "/taken: exists; --force replaces it"));
    read_test_file("taken", &file);
    assert_int_equal(file.bytes, 14);
    assert_memory_equal(file.data, "of another run", 14);
    bsw_buffer_deinit(&file);
    assert_int_equal(access(path_of("taken.partial"), F_OK), -1);
    assert_int_equal(unlink(path_of("taken")), 0);
}

// Its result comes, or its journal goes, while this one begins.
UNIT_TEST(what_another_run_has_made_meanwhile_is_not_replaced)
{
    assert_taken(0);
    write_test_file("taken", "before", 6);
    write_test_file("taken.00000.journal", "", 0);
    assert_taken(1);
}

int main(void)
{
    bsw_transport_local_init(&transport);
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
