// SPDX-License-Identifier: Apache-2.0
// The steps of a sweep on one rank, one after another in one process: a ground truth, an index, its
// search, judged by ids and with ties; a step that fails says which one it was, and the next one is
// none the worse for it.
#include "small_index.h"
#include "temporary_folder.h"

#include "coordinator/sweep/sweep_point.h"
#include "coordinator/sweep/sweep_step.h"

enum { ROWS = 300, QUERIES = 9, DIMS = 16, K = 4 };

static struct bsw_transport transport = {.timeout_seconds = 10};
static struct bsw_error err;
static char base_path[512], queries_path[512], truth_path[512], index_path[512];
static struct bsw_sweep_settings settings = {.base = base_path,
                                             .queries = queries_path,
                                             .rows = {0, UINT64_MAX},
                                             .query_rows = {0, UINT64_MAX},
                                             .device = "cpu",
                                             .shards = 2,
                                             .num_threads = 2};
static struct bsw_sweep_team team = {.transport = &transport, .settings = &settings};

static int make_data(void **state)
{
    static float rows[ROWS][DIMS], query_rows[QUERIES][DIMS];
    unsigned seed = 7;
    if (make_temporary_folder(state) != 0) return -1;
    for (size_t i = 0; i < ROWS * DIMS; i++) {
        seed = seed * 1664525u + 1013904223u;
        (&rows[0][0])[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
    }
    // Row 1 is row 0 again, and the nearest of query 0 both.
    memcpy(rows[1], rows[0], sizeof rows[0]);
    for (size_t q = 0; q < QUERIES; q++) memcpy(query_rows[q], rows[q * 20], sizeof rows[0]);
    strcpy(base_path, path_of("base.fbin"));
    strcpy(queries_path, path_of("q.fbin"));
    strcpy(truth_path, path_of("truth"));
    strcpy(index_path, path_of("index"));
    write_fbin(base_path, &rows[0][0], ROWS, DIMS);
    write_fbin(queries_path, &query_rows[0][0], QUERIES, DIMS);
    bsw_transport_local_init(&transport);
    settings.level = bsw_cpu_level_detect();
    return 0;
}

static int remove_data(void **state)
{
    strcpy(temporary_folder, index_path);
    remove_temporary_folder(state);
    *strrchr(temporary_folder, '/') = '\0';
    return remove_temporary_folder(state);
}

static struct bsw_sweep_step step_of(enum bsw_sweep_step_kind kind, const char *path)
{
    struct bsw_sweep_step step = {.kind = kind,
                                  .metric = BSW_METRIC_L2,
                                  .k = K,
                                  .codec = "saq",
                                  .bits = 4,
                                  .request = {.k = K, .oversample = 10, .batch = 4},
                                  .repeat = 1};
    strcpy(step.path, path);
    return step;
}

static double recall_of(const struct bsw_results *answers, uint64_t k, int counts_ties)
{
    struct bsw_evaluation judge;
    double recall = -1;
    settings.counts_ties = counts_ties;
    assert_ok(bsw_sweep_judge_open(&judge, truth_path, &settings, QUERIES, BSW_METRIC_L2, &err),
              &err);
    assert_ok(bsw_sweep_judge_recall(&judge, answers, k, &recall, &err), &err);
    bsw_evaluation_deinit(&judge);
    return recall;
}

UNIT_TEST(steps_follow_each_other)
{
    struct bsw_sweep_found found = {0};
    const struct bsw_sweep_step truth = step_of(BSW_SWEEP_TRUTH, truth_path),
                                encode = step_of(BSW_SWEEP_ENCODE, index_path),
                                search = step_of(BSW_SWEEP_SEARCH, index_path);
    assert_ok(bsw_sweep_lead(&team, &truth, &found, &err), &err);
    assert_ok(bsw_sweep_lead(&team, &encode, &found, &err), &err);
    assert_int_equal(found.index.num_rows, ROWS);
    assert_int_equal(found.index.num_shards, 2);
    assert_true(found.index_peak_bytes > 0);
    for (int again = 0; again < 2; again++) {
        assert_ok(bsw_sweep_lead(&team, &search, &found, &err), &err);
        assert_int_equal(found.answers.num_queries, QUERIES);
        assert_true(found.search.queries_per_second > 0 && found.memory_bytes > 0);
        assert_true(recall_of(&found.answers, K, 0) == 1);
        assert_true(recall_of(&found.answers, 1, 0) == 1);
    }
    // The copy in its place, as a search may return it.
    assert_int_equal(found.answers.ids[0], 0);
    for (size_t i = 0; i < K; i++) {
        if (found.answers.ids[i] <= 1) found.answers.ids[i] = 1;
    }
    assert_true(recall_of(&found.answers, K, 0) < 1);
    assert_true(recall_of(&found.answers, K, 1) < 1); // once
    assert_ok(bsw_sweep_lead_end(&team, BSW_OK, &err), &err);
    bsw_sweep_found_deinit(&found);
}

UNIT_TEST(a_step_that_fails_says_which)
{
    struct bsw_sweep_found found = {0};
    struct bsw_sweep_step search = step_of(BSW_SWEEP_SEARCH, index_path);
    search.request.k = ROWS + 1;
    assert_int_equal(bsw_sweep_lead(&team, &search, &found, &err), BSW_ERROR_USAGE);
    assert_string_equal(err.message, "search: --k 301: the index has 300 rows only");
    assert_int_equal(bsw_sweep_lead_end(&team, BSW_ERROR_USAGE, &err), BSW_ERROR_USAGE);
    search.request.k = K;
    assert_ok(bsw_sweep_lead(&team, &search, &found, &err), &err);
    assert_true(recall_of(&found.answers, K, 1) == 1);
    bsw_sweep_found_deinit(&found);
}

UNIT_TEST(a_truth_of_other_queries_is_refused)
{
    struct bsw_evaluation judge;
    assert_int_equal(
        bsw_sweep_judge_open(&judge, truth_path, &settings, QUERIES + 1, BSW_METRIC_L2, &err),
        BSW_ERROR_BAD_DATA);
    bsw_evaluation_deinit(&judge);
}

int main(void)
{
    return run_unit_tests(make_data, remove_data);
}
