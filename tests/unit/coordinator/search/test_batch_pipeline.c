// SPDX-License-Identifier: Apache-2.0
// The pass over all batches, in turn and with a background thread: the same answers for every size
// of a batch, of several errors the one of the lowest batch, all that was searched when a stop ends
// it, and when rounds of self-checks begin and end.
#include "made_assignment.h"
#include "small_index.h"
#include "temporary_folder.h"

#include <math.h>

#include <signal.h>
#include <time.h>

#include "common/job/stop_signal.h"
#include "coordinator/search/batch_pipeline.h"
#include "shard/codecs/codec.h"

// Rows lie on a line in the order of their ids, and query q at row FIRST + STEP * q, so that the
// candidates of different queries are rows of different bundles.
enum { ROWS = 1200, QUERIES = 12, DIMS = 16, K = 5, FIRST = 48, STEP = 96, NONE = QUERIES };

static struct bsw_manifest manifest;
static float rows[ROWS][DIMS], query_rows[QUERIES][DIMS];

static int make_data(void **state)
{
    struct small_index what = {.codec = &bsw_codec_saq,
                               .metric = BSW_METRIC_L2,
                               .segments = "16x8",
                               .num_shards = 2,
                               .seed = 1};
    if (make_temporary_folder(state) != 0) return -1;
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t d = 0; d < DIMS; d++) rows[i][d] = (float)i + 0.01f * (float)(i * d % 7);
    }
    for (size_t q = 0; q < QUERIES; q++)
        memcpy(query_rows[q], rows[FIRST + STEP * q], sizeof *rows);
    what.source = path_of("base.fbin");
    write_fbin(what.source, &rows[0][0], ROWS, DIMS);
    make_small_index(&what, temporary_folder, &manifest);
    return 0;
}

static int remove_data(void **state)
{
    bsw_manifest_deinit(&manifest);
    return remove_temporary_folder(state);
}

// A pass, and the queries (or NONE) of the batches that meet an error.
struct pass {
    size_t batch;
    int is_overlapped;
    size_t bad;                         // becomes NaN once the queries are open
    size_t changed;                     // its raw row changes once the shards are loaded
    size_t refused;                     // its answers cannot be written
    size_t stopped;                     // a stop is asked for while its answers are written
    uint64_t round;                     // checks of a round; 0: no checks
    const struct bsw_query_part *parts; // NULL: all
    size_t num_parts;
    size_t num_put; // what came of it, from here on
    size_t next;    // query after those that were put
    int64_t ids[QUERIES][K];
    float values[QUERIES][K];
    struct bsw_search_times times;
    char rounds[2 * QUERIES + 1]; // a letter for each time that one begins (b) or has passed (p)
};

// Nothing goes wrong, all at once.
static struct pass whole_pass(void)
{
    return (struct pass){
        .batch = QUERIES, .bad = NONE, .changed = NONE, .refused = NONE, .stopped = NONE};
}

static void note_round(void *context, int is_passed)
{
    struct pass *pass = context;
    pass->rounds[strlen(pass->rounds)] = is_passed ? 'p' : 'b';
}

// As whoever runs the job does.
static void ask_to_stop(void)
{
    const struct timespec nap = {0, 1000000};
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    for (int i = 0; i < 10000 && !bsw_stop_is_asked(); i++) nanosleep(&nap, NULL);
    assert_true(bsw_stop_is_asked());
}

static enum bsw_status put(void *context, uint64_t first, size_t count, const int64_t *ids,
                           const float *values, struct bsw_error *err)
{
    struct pass *pass = context;
    if (pass->parts ? first < pass->next : first != pass->num_put) // in order, none twice
        return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %d came out of order", (int)first);
    if (pass->refused >= first && pass->refused < first + count)
        return bsw_fail(err, BSW_ERROR_IO, "no room for query %d", (int)pass->refused);
    if (pass->stopped >= first && pass->stopped < first + count) ask_to_stop();
    memcpy(pass->ids[first], ids, count * K * sizeof *ids);
    memcpy(pass->values[first], values, count * K * sizeof *values);
    pass->num_put += count;
    pass->next = first + count;
    return BSW_OK;
}

// Writes the first number of a row of a .fbin file in its place.
static void put_number(const char *path, size_t row, float number)
{
    FILE *file = fopen(path, "r+b");
    if (!file || fseek(file, (long)(8 + row * DIMS * sizeof number), SEEK_SET) != 0 ||
        fwrite(&number, sizeof number, 1, file) != 1 || fclose(file) != 0)
        abort();
}

static enum bsw_status run_opened(struct pass *pass, struct bsw_query_source *queries,
                                  struct bsw_shard_service *service, struct bsw_error *err)
{
    static const struct bsw_thread_pinning not_pinned;
    const struct bsw_pipeline_options options = {.batch = pass->batch,
                                                 .num_threads = 2,
                                                 .is_overlapped = pass->is_overlapped,
                                                 .pinning = &not_pinned,
                                                 .put = put,
                                                 .context = pass,
                                                 .parts = {pass->parts, pass->num_parts, 0}};
    struct bsw_transport transport = {.timeout_seconds = 10};
    struct bsw_batch_search search;
    struct bsw_batch_pipeline pipeline;
    bsw_transport_local_init(&transport);
    assert_ok(bsw_batch_search_init(&search, &transport, service, queries, err), err);
    if (pass->round > 0)
        search.checks = (struct bsw_check_schedule){
            .seconds = 1e-9, .note = note_round, .context = pass, .round = pass->round};
    assert_ok(bsw_batch_pipeline_init(&pipeline, &search, &options, err), err);
    enum bsw_status status = bsw_batch_pipeline_run(&pipeline, err);
    pass->times = search.times;
    bsw_batch_pipeline_deinit(&pipeline);
    bsw_batch_search_deinit(&search);
    bsw_transport_close(&transport, 0);
    return status;
}

static enum bsw_status run(struct pass *pass, struct bsw_error *err)
{
    const struct bsw_search_settings settings = {.query_bits = 6,
                                                 .k = K,
                                                 .keep = 5 * K,
                                                 .is_exact = 1,
                                                 .level = bsw_cpu_level_detect(),
                                                 .num_threads = 2};
    struct bsw_query_source queries;
    struct bsw_shard_service service;
    const char *base = path_of("base.fbin"), *path = path_of("queries.fbin");
    write_fbin(path, &query_rows[0][0], QUERIES, DIMS);
    assert_ok(bsw_query_source_open(path, BSW_ALL_ROWS, &manifest, settings.query_bits,
                                    settings.level, &queries, err),
              err);
    assert_ok(bsw_shard_service_open(&manifest, temporary_folder, &settings,
                                     made_assignment(1, manifest.num_shards), 0, 0, &service, err),
              err);
    if (pass->bad != NONE) put_number(path, pass->bad, NAN);
    size_t changed = FIRST + STEP * pass->changed;
    if (pass->changed != NONE) put_number(base, changed, -1);
    enum bsw_status status = run_opened(pass, &queries, &service, err);
    if (pass->changed != NONE) put_number(base, changed, rows[changed][0]);
    bsw_shard_service_close(&service);
    bsw_query_source_close(&queries);
    return status;
}

static const size_t batches[] = {1, 5, QUERIES - 1, QUERIES, 100};
enum { NUM_PASSES = 2 * sizeof batches / sizeof *batches };

// With and without a background thread.
static struct pass pass_of(size_t i)
{
    struct pass pass = whole_pass();
    pass.batch = batches[i / 2];
    pass.is_overlapped = i % 2;
    return pass;
}

UNIT_TEST(test_answers_do_not_depend_on_batches)
{
    struct pass expected = whole_pass();
    struct bsw_error err;
    assert_ok(run(&expected, &err), &err);
    for (size_t q = 0; q < QUERIES; q++) assert_int_equal(expected.ids[q][0], FIRST + STEP * q);
    for (size_t i = 0; i < NUM_PASSES; i++) {
        struct pass pass = pass_of(i);
        assert_ok(run(&pass, &err), &err);
        assert_int_equal(pass.num_put, QUERIES);
        assert_memory_equal(pass.ids, expected.ids, sizeof pass.ids);
        assert_memory_equal(pass.values, expected.values, sizeof pass.values);
        // Something ran beside the scan exactly if there was a thread and a second batch.
        assert_int_equal(pass.times.overlapped > 0, i % 2 > 0 && pass.batch < QUERIES);
        assert_true(pass.times.encode > 0 && pass.times.finish > 0);
    }
}

// Queries outside the parts stay as they were.
UNIT_TEST(test_parts_alone_are_searched)
{
    static const struct bsw_query_part parts[] = {{1, 1}, {3, 0}, {4, 5}, {10, 2}, {12, 0}};
    struct pass expected = whole_pass();
    struct bsw_error err;
    assert_ok(run(&expected, &err), &err);
    for (size_t i = 0; i < NUM_PASSES; i++) {
        for (size_t num_parts = 0; num_parts <= 5; num_parts++) {
            struct pass pass = pass_of(i);
            pass.parts = parts;
            pass.num_parts = num_parts;
            assert_ok(run(&pass, &err), &err);
            size_t num_put = 0;
            for (size_t p = 0; p < num_parts; p++) {
                num_put += parts[p].count;
                assert_memory_equal(pass.ids[parts[p].first], expected.ids[parts[p].first],
                                    parts[p].count * sizeof pass.ids[0]);
            }
            assert_int_equal(pass.num_put, num_put);
        }
    }
}

// What must come of a pass: the error of the lowest batch, in it that of the earliest step.
static void check_error(struct pass *pass)
{
    const size_t at[3] = {pass->bad, pass->changed, pass->refused};
    enum bsw_status status[3] = {BSW_ERROR_BAD_DATA, BSW_ERROR_BAD_DATA, BSW_ERROR_IO};
    char text[3][64];
    size_t lowest = NONE;
    int step = -1;
    snprintf(text[0], sizeof text[0], "queries.fbin: row %zu has", pass->bad);
    snprintf(text[1], sizeof text[1], "base.fbin: rows ");
    snprintf(text[2], sizeof text[2], "no room for query %zu", pass->refused);
    for (int i = 0; i < 3; i++) {
        if (at[i] == NONE || at[i] / pass->batch * pass->batch >= lowest) continue;
        lowest = at[i] / pass->batch * pass->batch;
        step = i;
    }
    struct bsw_error err = {0};
    enum bsw_status got = run(pass, &err);
    if (got != (step < 0 ? BSW_OK : status[step]) ||
        (step >= 0 && !strstr(err.message, text[step])))
        fail_msg("batch %zu%s, errors at %zu, %zu, %zu: '%s'", pass->batch,
                 pass->is_overlapped ? " overlapped" : "", at[0], at[1], at[2], err.message);
    assert_int_equal(pass->num_put, lowest);
}

UNIT_TEST(test_the_error_of_the_lowest_batch_counts)
{
    static const size_t bad[] = {NONE, 0, 7, 11}, changed[] = {NONE, 1, 8},
                        refused[] = {NONE, 2, 9};
    for (size_t i = 0; i < 4 * 3 * 3; i++) {
        for (size_t b = 0; b < NUM_PASSES; b++) {
            struct pass pass = pass_of(b);
            pass.bad = bad[i % 4];
            pass.changed = changed[i / 4 % 3];
            pass.refused = refused[i / 12];
            check_error(&pass);
        }
    }
}

// A check before every batch, of which so many are a round: what was put before a round began is
// trusted once all of its checks have passed, and not earlier. A check comes before the one of the
// batch before is known to have passed, but what was put by then was scanned before either.
UNIT_TEST(test_rounds_of_checks_begin_and_end)
{
    static const struct {
        uint64_t round;
        const char *rounds;
    } cases[] = {{1, "bbpbpbpbpbpbpbpbpbpbpbpp"}, {3, "bbpbpbpbp"}, {5, "bbpbpb"}, {13, "bb"}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct pass pass = pass_of(i % 2);
        struct bsw_error err;
        pass.round = cases[i / 2].round;
        assert_ok(run(&pass, &err), &err);
        assert_string_equal(pass.rounds, cases[i / 2].rounds);
    }
}

// The last one, as a stop stays asked for: the batch after the one that is put has been searched by
// then, and is put too.
UNIT_TEST(test_a_stop_drops_nothing_that_was_searched)
{
    bsw_stop_begin(NULL, NULL);
    for (int is_overlapped = 1; is_overlapped >= 0; is_overlapped--) {
        struct pass pass = whole_pass();
        struct bsw_error err;
        pass.batch = 2;
        pass.is_overlapped = is_overlapped;
        pass.stopped = is_overlapped ? 3 : NONE;
        assert_int_equal(run(&pass, &err), BSW_ERROR_STOPPED);
        assert_int_equal(pass.num_put, is_overlapped ? 6 : 0);
    }
    bsw_stop_end();
}

int main(void)
{
    // Before any thread there is.
    if (bsw_stop_watch(NULL) != BSW_OK) return 1;
    return run_unit_tests(make_data, remove_data);
}
