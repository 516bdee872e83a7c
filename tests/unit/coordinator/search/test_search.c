// SPDX-License-Identifier: Apache-2.0
// search.h in one process: several searches open one after another and side by side, answers in
// memory that are those of the result file, several runs of one search, a sink that refuses; what
// cannot be is refused before anything is loaded, with the words that the command says.
#include "shard/codecs/codec.h"
#include "small_index.h"
#include "temporary_folder.h"

#include <math.h>

#include "common/files/result_file.h"
#include "coordinator/job/job_events.h"
#include "coordinator/search/result_journal.h"
#include "coordinator/search/search.h"

enum { ROWS = 600, QUERIES = 11, K = 5 };

static struct bsw_transport transport = {.timeout_seconds = 10};
static struct bsw_error err;
static char index_path[512], result_path[512];
static const char queries_path[] = "synth:count=11,dims=16,seed=2";

static int make_data(void **state)
{
    if (make_temporary_folder(state) != 0) return -1;
    strcpy(index_path, temporary_folder);
    strcpy(result_path, path_of("result"));
    write_search_index(index_path);
    bsw_transport_local_init(&transport);
    return 0;
}

static struct bsw_search_options usual(void)
{
    return (struct bsw_search_options){.index = index_path,
                                       .request = {.k = K,
                                                   .oversample = 3,
                                                   .max_candidates = 100,
                                                   .batch = 4,
                                                   .level = bsw_cpu_level_detect(),
                                                   .num_threads = 2},
                                       .device.text = "cpu"};
}

static struct bsw_search_run run_of(const struct bsw_search_sink *sink)
{
    return (struct bsw_search_run){
        .queries = queries_path, .query_rows = BSW_ALL_ROWS, .repeat = 1, .sink = sink};
}

static void assert_same(const struct bsw_results *a, const int64_t *ids, const float *values)
{
    assert_memory_equal(a->ids, ids, a->num_queries * a->k * sizeof *ids);
    assert_memory_equal(a->values, values, a->num_queries * a->k * sizeof *values);
}

// The answers of a search of its own.
static void find(const struct bsw_search_options *options, struct bsw_results *answers)
{
    struct bsw_search search;
    const struct bsw_search_sink sink = {.answers = bsw_memory_sink(answers)};
    const struct bsw_search_run run = run_of(&sink);
    assert_ok(bsw_search_open(&search, &transport, options, &err), &err);
    assert_ok(bsw_search_run(&search, &run, &err), &err);
    assert_int_equal(bsw_search_stats(&search).num_searched, QUERIES);
    assert_true(bsw_search_stats(&search).queries_per_second > 0);
    assert_int_equal(search.ranks[0].num_units, 3);
    bsw_search_close(&search);
}

UNIT_TEST(memory_has_what_the_file_has)
{
    struct bsw_search_options options = usual();
    struct bsw_results answers = {0};
    struct bsw_result_sink file = {.path = result_path, .is_journaled = 1};
    struct bsw_results results;
    struct bsw_search search;
    const struct bsw_search_sink sink = bsw_result_sink(&file);
    const struct bsw_search_run run = run_of(&sink);
    find(&options, &answers);
    assert_int_equal(answers.num_queries, QUERIES);
    assert_ok(bsw_search_open(&search, &transport, &options, &err), &err);
    enum bsw_status status = bsw_search_run(&search, &run, &err);
    assert_ok(status, &err);
    bsw_search_close(&search);
    bsw_result_sink_close(&file, status);
    assert_ok(bsw_results_read(result_path, &results, &err), &err);
    assert_int_equal(results.num_queries, QUERIES);
    assert_int_equal(results.k, K);
    assert_same(&answers, results.ids, results.values);
    bsw_results_deinit(&results);
    bsw_results_deinit(&answers);
}

UNIT_TEST(searches_do_not_know_of_each_other)
{
    struct bsw_search_options options = usual(), wide = usual();
    struct bsw_results first = {0}, second = {0}, third = {0};
    struct bsw_search open, other;
    wide.request.k = 2 * K;
    find(&options, &first);
    find(&wide, &second);
    const struct bsw_search_sink sink = {.answers = bsw_memory_sink(&third)};
    const struct bsw_search_run run = run_of(&sink);
    assert_ok(bsw_search_open(&open, &transport, &options, &err), &err);
    assert_ok(bsw_search_load(&open, &err), &err);
    assert_ok(bsw_search_open(&other, &transport, &wide, &err), &err);
    for (int again = 0; again < 2; again++) {
        assert_ok(bsw_search_run(&open, &run, &err), &err);
        assert_same(&third, first.ids, first.values);
        assert_ok(bsw_search_run(&other, &run, &err), &err);
        assert_same(&third, second.ids, second.values);
    }
    bsw_search_close(&open);
    bsw_search_close(&other);
    bsw_results_deinit(&first);
    bsw_results_deinit(&second);
    bsw_results_deinit(&third);
}

UNIT_TEST(runs_of_parts_are_parts_of_a_run)
{
    struct bsw_search_options options = usual();
    struct bsw_results whole = {0}, part = {0};
    struct bsw_search search;
    const struct bsw_search_sink sink = {.answers = bsw_memory_sink(&part)};
    struct bsw_search_run run = run_of(&sink);
    find(&options, &whole);
    run.query_rows = (struct bsw_row_range){3, 9};
    run.warmup = 1;
    run.repeat = 3;
    options.overlap = BSW_OVERLAP_ON;
    assert_ok(bsw_search_open(&search, &transport, &options, &err), &err);
    assert_ok(bsw_search_run(&search, &run, &err), &err);
    assert_int_equal(search.num_answered, 4 * 6);
    assert_int_equal(part.num_queries, 6);
    assert_same(&part, whole.ids + 3 * K, whole.values + 3 * K);
    bsw_search_close(&search);
    bsw_results_deinit(&whole);
    bsw_results_deinit(&part);
}

// Those behind the passes of repeat are for the time alone, and end.
UNIT_TEST(passes_go_on_until_they_took_long_enough)
{
    struct bsw_search_options options = usual();
    struct bsw_results whole = {0}, part = {0};
    struct bsw_search search;
    const struct bsw_search_sink sink = {.answers = bsw_memory_sink(&part)};
    struct bsw_search_run run = run_of(&sink);
    find(&options, &whole);
    run.query_rows = (struct bsw_row_range){3, 4};
    run.warmup = 1;
    run.repeat = 2;
    assert_ok(bsw_search_open(&search, &transport, &options, &err), &err);
    assert_ok(bsw_search_run(&search, &run, &err), &err);
    assert_int_equal(bsw_search_stats(&search).num_timed, 2);
    const double rows_a_query = bsw_search_stats(&search).rows_a_query;
    run.least_seconds = 1e9;
    assert_ok(bsw_search_run(&search, &run, &err), &err);
    const struct bsw_search_stats stats = bsw_search_stats(&search);
    assert_int_equal(stats.num_timed, BSW_SEARCH_MAX_PASSES);
    assert_int_equal(search.num_answered, 3);
    assert_true(stats.rows_a_query == rows_a_query);
    assert_true(stats.cpu_seconds > 0 && stats.busy_cores > 0);
    assert_same(&part, whole.ids + 3 * K, whole.values + 3 * K);
    bsw_search_close(&search);
    bsw_results_deinit(&whole);
    bsw_results_deinit(&part);
}

static enum bsw_status refuse_to_open(void *context, const struct bsw_search *search,
                                      struct bsw_search_parts *out, struct bsw_error *error)
{
    (void)context, (void)out;
    assert_false(search->is_loaded);
    return bsw_fail(error, BSW_ERROR_IO, "no room for %d queries",
                    (int)search->queries.num_queries);
}

static enum bsw_status refuse_to_put(void *context, uint64_t first, size_t count,
                                     const int64_t *ids, const float *values,
                                     struct bsw_error *error)
{
    (void)context, (void)count, (void)ids, (void)values;
    if (first == 0) return BSW_OK;
    return bsw_fail(error, BSW_ERROR_IO, "no room for query %d", (int)first);
}

UNIT_TEST(a_sink_that_refuses_ends_the_run)
{
    const struct bsw_search_options options = usual();
    const struct bsw_search_sink early = {.answers.take = refuse_to_put, .open = refuse_to_open},
                                 late = {.answers.take = refuse_to_put};
    struct bsw_results answers = {0}, expected = {0};
    const struct bsw_search_sink good = {.answers = bsw_memory_sink(&answers)};
    struct bsw_search_run run = run_of(&early);
    struct bsw_search search;
    find(&options, &expected);
    assert_ok(bsw_search_open(&search, &transport, &options, &err), &err);
    assert_int_equal(bsw_search_run(&search, &run, &err), BSW_ERROR_IO);
    assert_string_equal(err.message, "no room for 11 queries");
    run.sink = &late;
    assert_int_equal(bsw_search_run(&search, &run, &err), BSW_ERROR_IO);
    assert_string_equal(err.message, "no room for query 4");
    run.sink = &good; // the search is as good as before
    assert_ok(bsw_search_run(&search, &run, &err), &err);
    assert_same(&answers, expected.ids, expected.values);
    bsw_search_close(&search);
    bsw_results_deinit(&answers);
    bsw_results_deinit(&expected);
}

// ---- what is refused ----

static void assert_refused(const struct bsw_search_options *options, const char *message)
{
    struct bsw_search search;
    assert_int_equal(bsw_search_open(&search, &transport, options, &err), BSW_ERROR_USAGE);
    assert_string_equal(err.message, message);
    bsw_search_close(&search);
}

UNIT_TEST(what_cannot_be_is_refused_as_by_the_command)
{
    char message[600];
    struct bsw_search_options o = usual();
    o.request.k = ROWS + 1;
    assert_refused(&o, "--k 601: the index has 600 rows only");
    o.request.k = ROWS;
    o.request.exclude_self = 1;
    assert_refused(&o, "--k 600: the index has 600 rows only, one of them the query");
    o = usual();
    o.request.histogram_k = 1;
    assert_refused(&o, "--histogram-k: no histogram, or above --k");
    o.request.select = BSW_SELECT_HISTOGRAM;
    o.request.max_candidates = K - 1;
    assert_refused(&o, "--max-candidates 4 is below --k 5");
    o.request.max_candidates = K;
    o.request.extra_distance = (uint64_t)1 << 31;
    assert_refused(&o, "--extra-distance 2147483648: distances end at 2^31");
    o = usual();
    o.request.scan = BSW_SCAN_PROGRESSIVE_PLANES;
    snprintf(message, sizeof message,
             "--scan progressive-planes: the codes of %s have no first stage", index_path);
    assert_refused(&o, message);
    o = usual();
    o.index = "/nowhere";
    struct bsw_search search;
    assert_int_not_equal(bsw_search_open(&search, &transport, &o, &err), BSW_OK);
    bsw_search_close(&search);
}

// ---- settings alone ----

static struct bsw_search_settings settled(const struct bsw_manifest *manifest,
                                          const struct bsw_search_request *request, int num_ranks)
{
    struct bsw_search_settings out;
    assert_ok(bsw_search_settle(request, manifest, "i", num_ranks, &out, &err), &err);
    return out;
}

UNIT_TEST(settings_follow_from_what_is_asked)
{
    struct bsw_manifest manifest;
    struct bsw_search_request request = usual().request;
    assert_ok(bsw_manifest_read(index_path, &manifest, &err), &err);
    struct bsw_search_settings s = settled(&manifest, &request, 1);
    assert_int_equal(s.keep, 3 * K);
    assert_int_equal(s.query_bits, 6);
    assert_false(s.is_ladder);
    assert_int_equal(s.batch, 4);
    assert_true(settled(&manifest, &request, 2).is_ladder);
    request.merge = BSW_MERGE_GATHER;
    assert_false(settled(&manifest, &request, 2).is_ladder);
    request.oversample = 1000; // no more than there are
    assert_int_equal(settled(&manifest, &request, 1).keep, ROWS);
    request.exclude_self = 1;
    assert_int_equal(settled(&manifest, &request, 1).keep, ROWS + 1);
    request.refine = BSW_REFINE_NONE;
    assert_int_equal(settled(&manifest, &request, 1).keep, K + 1);
    request.batch = 1000000000; // whose candidates no rank has room for
    s = settled(&manifest, &request, 1);
    assert_true(s.batch > 1 && s.batch < 1000000);
    bsw_manifest_deinit(&manifest);
}

int main(void)
{
    return run_unit_tests(make_data, remove_temporary_folder);
}
