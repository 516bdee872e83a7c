// SPDX-License-Identifier: Apache-2.0
// Centroids are the same bytes for any ranks, threads and levels; they are good, lists are of fair
// lengths, and data that k-means cannot cut does no harm.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/arithmetic.h"
#include "common/job/stop_signal.h"
#include "shard/lists/list_assignment.h"
#include "shard/lists/list_training.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/thread_ranks.h"
#include "unit_test.h"

static struct bsw_error err;

static bsw_vectors *open_rows(const char *source, uint64_t first, uint64_t last)
{
    bsw_vectors *vectors;
    assert_ok(bsw_vectors_open(source, (struct bsw_row_range){first, last}, &vectors, &err), &err);
    return vectors;
}

static const char *const sift = TEST_DATA_FOLDER "/sift20k_base.u8bin";

static struct bsw_list_training training_of(const bsw_vectors *vectors, enum bsw_metric metric,
                                            uint32_t num_lists, uint32_t rounds)
{
    return (struct bsw_list_training){.vectors = vectors,
                                      .metric = metric,
                                      .num_lists = num_lists,
                                      .seed = 5,
                                      .rounds = rounds,
                                      .level = bsw_cpu_level_detect(),
                                      .num_threads = 2};
}

// ---- ranks ----

struct job {
    const struct bsw_list_training *training;
    const bsw_vectors *const *vectors; // of each rank, or NULL
    float *centroids;                  // of all ranks, one after the other
    size_t numbers;                    // of each
};

static enum bsw_status train_rank(bsw_transport *transport, void *context, struct bsw_error *error)
{
    const struct job *job = (const struct job *)context;
    struct bsw_list_training training = *job->training;
    if (job->vectors) training.vectors = job->vectors[transport->rank];
    return bsw_lists_train(&training, transport,
                           job->centroids + (size_t)transport->rank * job->numbers, error);
}

// The centroids of rank 0, after a look at the others'. The caller frees.
static float *train_with(const struct bsw_list_training *training, int num_ranks)
{
    enum bsw_status statuses[MOST_RANKS];
    struct bsw_error errors[MOST_RANKS];
    size_t numbers = training->num_lists * (size_t)bsw_vectors_dims(training->vectors);
    struct job job = {training, NULL, NULL, numbers};
    job.centroids = (float *)allocate_or_fail(numbers * (size_t)num_ranks, sizeof(float));
    run_ranks(num_ranks, train_rank, &job, statuses, errors);
    for (int r = 0; r < num_ranks; r++) {
        assert_ok(statuses[r], &errors[r]);
        assert_memory_equal(job.centroids + (size_t)r * numbers, job.centroids,
                            numbers * sizeof(float));
    }
    return job.centroids;
}

static void check_same(const struct bsw_list_training *training, int num_ranks,
                       const float *expected)
{
    float *centroids = train_with(training, num_ranks);
    assert_memory_equal(centroids, expected,
                        training->num_lists * bsw_vectors_dims(training->vectors) * sizeof(float));
    bsw_free(&centroids);
}

UNIT_TEST(centroids_are_the_same_for_any_ranks_threads_and_levels)
{
    bsw_vectors *vectors = open_rows(sift, 100, 1600);
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        struct bsw_list_training training = training_of(vectors, (enum bsw_metric)m, 9, 4);
        float *expected = train_with(&training, 1);
        for (int num_ranks = 2; num_ranks <= 5; num_ranks++) {
            training.num_threads = 1 + num_ranks % 3;
            check_same(&training, num_ranks, expected);
        }
        for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
            training.level = (enum bsw_cpu_level)level;
            check_same(&training, 1, expected);
        }
        training.seed++;
        float *other = train_with(&training, 1);
        assert_memory_not_equal(other, expected, 9 * 128 * sizeof(float));
        bsw_free(&other);
        bsw_free(&expected);
    }
    bsw_vectors_close(&vectors);
}

UNIT_TEST(an_error_of_one_rank_is_that_of_all)
{
    enum { DIMS = 16, ROWS = 4000 };
    static unsigned char file[8 + ROWS * DIMS];
    const uint32_t head[2] = {ROWS, DIMS};
    enum bsw_status statuses[MOST_RANKS];
    struct bsw_error errors[MOST_RANKS];
    static float centroids[3 * 20 * DIMS];
    memcpy(file, head, sizeof head);
    for (size_t i = 8; i < sizeof file; i++) file[i] = (unsigned char)bsw_hash(i);
    bsw_vectors *whole = open_rows(write_test_file("whole.u8bin", file, sizeof file), 0, ROWS);
    const char *path = write_test_file("cut.u8bin", file, sizeof file);
    bsw_vectors *cut = open_rows(path, 0, ROWS);
    assert_int_equal(truncate(path, 8 + ROWS * DIMS / 2), 0);
    const bsw_vectors *vectors[3] = {whole, cut, whole};
    const struct bsw_list_training training = training_of(whole, BSW_METRIC_L2, 20, 3);
    struct job job = {&training, vectors, centroids, 20 * DIMS};
    run_ranks(3, train_rank, &job, statuses, errors);
    for (int r = 0; r < 3; r++) {
        assert_int_not_equal(statuses[r], BSW_OK);
        assert_int_equal(statuses[r], statuses[0]);
        assert_int_equal(errors[r].rank, 1);
        assert_string_equal(errors[r].message, errors[0].message);
    }
    bsw_vectors_close(&whole);
    bsw_vectors_close(&cut);
}

// ---- what centroids are good for ----

struct lists {
    double mean_key;
    size_t longest, num_empty;
};

static struct lists assign_all(const struct bsw_list_training *training, const float *centroids)
{
    const bsw_vectors *vectors = training->vectors;
    size_t num_rows = (size_t)bsw_vectors_num_rows(vectors), num_good = 0;
    const struct bsw_list_assigner_needs needs = {.metric = training->metric,
                                                  .type = bsw_vectors_type(vectors),
                                                  .dims = bsw_vectors_dims(vectors),
                                                  .centroids = centroids,
                                                  .num_lists = training->num_lists,
                                                  .level = training->level,
                                                  .num_threads = training->num_threads};
    unsigned char *rows =
        (unsigned char *)allocate_or_fail(num_rows, bsw_vectors_row_bytes(vectors));
    uint32_t *lists = (uint32_t *)allocate_or_fail(num_rows, sizeof *lists);
    double *keys = (double *)allocate_or_fail(num_rows, sizeof *keys);
    size_t *counts = (size_t *)allocate_or_fail(training->num_lists, sizeof *counts);
    bsw_list_assigner *assigner;
    struct lists found = {0, 0, 0};
    assert_ok(bsw_vectors_read(vectors, bsw_vectors_first_row(vectors), num_rows, rows, &err),
              &err);
    assert_ok(bsw_list_assigner_open(&needs, &assigner, &err), &err);
    const struct bsw_list_assignment assignment = {
        .rows = rows, .num_rows = num_rows, .lists = lists, .keys = keys};
    assert_ok(bsw_list_assigner_assign(assigner, &assignment, &err), &err);
    for (size_t r = 0; r < num_rows; r++) {
        if (lists[r] == BSW_NO_LIST) continue;
        num_good++;
        found.mean_key += keys[r];
        if (++counts[lists[r]] > found.longest) found.longest = counts[lists[r]];
    }
    for (size_t l = 0; l < training->num_lists; l++) found.num_empty += counts[l] == 0;
    found.mean_key /= (double)num_good;
    bsw_list_assigner_close(&assigner);
    bsw_free(&rows);
    bsw_free(&lists);
    bsw_free(&keys);
    bsw_free(&counts);
    return found;
}

static struct lists train_and_assign(const struct bsw_list_training *training)
{
    float *centroids = train_with(training, 1);
    struct lists found = assign_all(training, centroids);
    bsw_free(&centroids);
    return found;
}

UNIT_TEST(rounds_bring_centroids_nearer_and_beat_rows)
{
    enum { LISTS = 100, DIMS = 128 };
    bsw_vectors *vectors = open_rows(sift, 0, 20000);
    for (int m = 0; m < (TEST_IS_SANITIZED ? 1 : BSW_METRIC_NUM); m++) {
        struct bsw_list_training training = training_of(vectors, (enum bsw_metric)m, LISTS, 1);
        static unsigned char row[DIMS];
        static float chosen[LISTS * DIMS];
        for (size_t l = 0; l < LISTS; l++) {
            assert_ok(bsw_vectors_read(vectors, bsw_hash(l) % 20000, 1, row, &err), &err);
            for (size_t d = 0; d < DIMS; d++) chosen[l * DIMS + d] = (float)row[d];
        }
        double bound = m == BSW_METRIC_COSINE ? 1.0 : 0.0,
               rows = assign_all(&training, chosen).mean_key;
        double first = train_and_assign(&training).mean_key;
        training.rounds = 0;
        struct lists last = train_and_assign(&training);
        assert_true(bound - first < 0.95 * (bound - rows));
        assert_true(bound - last.mean_key < 0.93 * (bound - first));
        assert_int_equal(last.num_empty, 0);
        assert_true(last.longest * LISTS <= 5 * 20000);
    }
    bsw_vectors_close(&vectors);
}

UNIT_TEST(centroids_of_cosine_have_length_one)
{
    bsw_vectors *vectors = open_rows(sift, 0, 5000);
    const struct bsw_list_training training = training_of(vectors, BSW_METRIC_COSINE, 60, 5);
    float *centroids = train_with(&training, 1);
    for (size_t l = 0; l < 60; l++) {
        double norm = 0.0;
        for (size_t d = 0; d < 128; d++)
            norm += (double)centroids[l * 128 + d] * (double)centroids[l * 128 + d];
        assert_true(fabs(norm - 1.0) < 1e-6);
    }
    bsw_free(&centroids);
    bsw_vectors_close(&vectors);
}

// ---- rounds that are kept ----

static char journal_path[BSW_PATH_BYTES];
static uint64_t most_journal_bytes = BSW_JOURNAL_MAX_BYTES;

static enum bsw_status train_kept(bsw_transport *transport, void *context, struct bsw_error *error)
{
    const struct job *job = (const struct job *)context;
    struct bsw_list_training training = *job->training;
    struct bsw_journal_fields fields = {0};
    bsw_training_journal *journal = NULL;
    bsw_journal_field_text(&fields, "rows", "these");
    if (transport->rank == 0)
        assert_ok(
            bsw_training_journal_open(journal_path, &fields, most_journal_bytes, &journal, error),
            error);
    training.is_kept = 1;
    training.journal = journal;
    enum bsw_status status = bsw_lists_train(
        &training, transport, job->centroids + (size_t)transport->rank * job->numbers, error);
    if (journal) assert_ok(bsw_training_journal_commit(journal, error), error);
    bsw_training_journal_close(&journal);
    return status;
}

// With what is at journal_path, which then is whole.
static void check_kept(const struct bsw_list_training *training, int num_ranks,
                       const float *expected)
{
    enum bsw_status statuses[MOST_RANKS];
    struct bsw_error errors[MOST_RANKS];
    size_t numbers = training->num_lists * (size_t)bsw_vectors_dims(training->vectors);
    struct job job = {training, NULL, NULL, numbers};
    job.centroids = (float *)allocate_or_fail(numbers * (size_t)num_ranks, sizeof(float));
    run_ranks(num_ranks, train_kept, &job, statuses, errors);
    for (int r = 0; r < num_ranks; r++) {
        assert_ok(statuses[r], &errors[r]);
        assert_memory_equal(job.centroids + (size_t)r * numbers, expected, numbers * sizeof(float));
    }
    bsw_free(&job.centroids);
}

static uint64_t journal_bytes(void)
{
    struct stat facts;
    assert_int_equal(stat(journal_path, &facts), 0);
    return (uint64_t)facts.st_size;
}

// From every round on, of which the last has to follow the same lists: a journal that was gone on
// with is as long as one that was not, where a training that began anew would have appended all.
UNIT_TEST(a_training_goes_on_after_any_round_with_the_same_bytes)
{
    enum { LISTS = 9, DIMS = 128, ROUNDS = 6 };
    const size_t record = 24 + 16 + (size_t)LISTS * DIMS * sizeof(float);
    bsw_vectors *vectors = open_rows(sift, 100, 1600);
    struct bsw_list_training training = training_of(vectors, BSW_METRIC_L2, LISTS, ROUNDS);
    float *expected = train_with(&training, 1);
    snprintf(journal_path, sizeof journal_path, "%s/kept", temporary_folder);
    check_kept(&training, 1, expected);
    uint64_t whole = journal_bytes(), head = whole - (ROUNDS + 1) * record;
    for (int left = ROUNDS; left >= 0; left--) {
        assert_int_equal(truncate(journal_path, (off_t)(head + (size_t)left * record + 3)), 0);
        check_kept(&training, 1 + left % 3, expected);
        // One round is not enough to go on from.
        assert_int_equal(journal_bytes(), left == 1 ? whole + record : whole);
    }
    // A full journal keeps the rounds until then, and those behind them are done again.
    for (size_t most = 0; most <= ROUNDS + 1; most += 3) {
        unlink(journal_path);
        most_journal_bytes = head + most * record + record - 1;
        for (int i = 0; i < 2; i++) {
            check_kept(&training, 1 + i, expected);
            if (most > 0) assert_int_equal(journal_bytes(), head + most * record);
        }
        assert_int_equal(access(journal_path, F_OK), most > 0 ? 0 : -1);
    }
    most_journal_bytes = BSW_JOURNAL_MAX_BYTES;
    training.num_lists++; // of other numbers: nothing to go on from
    float *other = train_with(&training, 1);
    check_kept(&training, 2, other);
    bsw_free(&other);
    bsw_free(&expected);
    bsw_vectors_close(&vectors);
}

// Cells that are whole are not trained again, the one at work is.
UNIT_TEST(a_training_of_cells_goes_on_with_the_same_bytes)
{
    enum { LISTS = BSW_FLAT_LISTS + 1 };
    if (TEST_IS_SANITIZED) return;
    bsw_vectors *vectors = open_rows(sift, 0, 20000);
    struct bsw_list_training training = training_of(vectors, BSW_METRIC_L2, LISTS, 2);
    float *expected = train_with(&training, 1);
    snprintf(journal_path, sizeof journal_path, "%s/cells", temporary_folder);
    check_kept(&training, 1, expected);
    uint64_t whole = journal_bytes();
    assert_int_equal(truncate(journal_path, (off_t)(whole / 2)), 0);
    check_kept(&training, 2, expected);
    assert_int_equal(journal_bytes(), whole);
    assert_int_equal(truncate(journal_path, (off_t)(whole / 100)), 0);
    check_kept(&training, 1, expected);
    bsw_free(&expected);
    bsw_vectors_close(&vectors);
}

// ---- data that is hard to cut ----

enum { MADE_ROWS = 12000, MADE_DIMS = 8 };

typedef float number_fn(uint64_t row, uint64_t d);

static bsw_vectors *make_rows(const char *name, number_fn *number_of)
{
    static float file[2 + MADE_ROWS * MADE_DIMS];
    const uint32_t head[2] = {MADE_ROWS, MADE_DIMS};
    memcpy(file, head, sizeof head);
    for (size_t i = 0; i < MADE_ROWS * MADE_DIMS; i++)
        file[2 + i] = number_of(i / MADE_DIMS, i % MADE_DIMS);
    return open_rows(write_test_file(name, file, sizeof file), 0, MADE_ROWS);
}

static float unit(uint64_t seed, uint64_t i)
{
    return (float)((double)(bsw_hash2(seed, i) >> 11) * 0x1p-53);
}

// Most rows in a small corner, which distances alone would leave to few lists.
static float skewed(uint64_t row, uint64_t d)
{
    return unit(row, d) * (bsw_hash(row) % 20 == 0 ? 100.0f : 1.0f) + 1.0f;
}

static float of_seven(uint64_t row, uint64_t d)
{
    return unit(bsw_hash(row) % 7, d) + 0.5f;
}

// Half of them are one row.
static float half_equal(uint64_t row, uint64_t d)
{
    return unit(row % 2 ? row : 1000000, d) + 0.1f;
}

static float with_bad(uint64_t row, uint64_t d)
{
    return row % 5 == 0 && d == row % 8 ? NAN : unit(row, d) - 0.5f;
}

static float all_bad(uint64_t row, uint64_t d)
{
    return d == row % 8 ? INFINITY : 1.0f;
}

UNIT_TEST(lists_of_skewed_rows_are_of_fair_lengths)
{
    bsw_vectors *vectors = make_rows("skewed.fbin", skewed);
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        const struct bsw_list_training training = training_of(vectors, (enum bsw_metric)m, 60, 0);
        struct lists found = train_and_assign(&training);
        assert_true(found.longest * 60 <= 5 * MADE_ROWS);
        assert_int_equal(found.num_empty, 0);
    }
    bsw_vectors_close(&vectors);
}

UNIT_TEST(fewer_different_rows_than_lists_leave_some_empty)
{
    bsw_vectors *vectors = make_rows("seven.fbin", of_seven);
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        struct bsw_list_training training = training_of(vectors, (enum bsw_metric)m, 30, 0);
        struct lists found = train_and_assign(&training);
        assert_int_equal(found.num_empty, 23);
        assert_true(fabs(found.mean_key - (m == BSW_METRIC_COSINE ? 1.0 : 0.0)) < 1e-6);
    }
    bsw_vectors_close(&vectors);
}

UNIT_TEST(copies_of_one_row_do_not_take_the_lists_of_others)
{
    bsw_vectors *vectors = make_rows("half.fbin", half_equal);
    const struct bsw_list_training training = training_of(vectors, BSW_METRIC_L2, 60, 0);
    struct lists found = train_and_assign(&training);
    assert_true(found.longest <= MADE_ROWS / 2 + MADE_ROWS / 60);
    assert_true(found.num_empty <= 1);
    bsw_vectors_close(&vectors);
}

UNIT_TEST(bad_rows_are_left_out)
{
    bsw_vectors *vectors = make_rows("bad.fbin", with_bad);
    struct bsw_list_training training = training_of(vectors, BSW_METRIC_COSINE, 40, 4);
    float *expected = train_with(&training, 1);
    for (size_t i = 0; i < 40 * MADE_DIMS; i++) assert_true(isfinite(expected[i]));
    check_same(&training, 3, expected);
    bsw_free(&expected);
    bsw_vectors_close(&vectors);

    vectors = make_rows("all_bad.fbin", all_bad);
    training.vectors = vectors;
    enum bsw_status statuses[MOST_RANKS];
    struct bsw_error errors[MOST_RANKS];
    const bsw_vectors *all[2] = {vectors, vectors};
    static float room[2 * 40 * MADE_DIMS];
    struct job job = {&training, all, room, 40 * MADE_DIMS};
    run_ranks(2, train_rank, &job, statuses, errors);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(statuses[r], BSW_ERROR_BAD_DATA);
        assert_non_null(strstr(errors[r].message, "no good row in the sample"));
    }
    bsw_vectors_close(&vectors);
}

UNIT_TEST(as_many_lists_as_rows_and_one_list)
{
    bsw_vectors *vectors = open_rows(sift, 0, 200);
    struct bsw_list_training training = training_of(vectors, BSW_METRIC_L2, 200, 0);
    assert_true(train_and_assign(&training).mean_key == 0.0);
    training.num_lists = 1;
    float *centroid = train_with(&training, 2);
    static unsigned char rows[200 * 128];
    assert_ok(bsw_vectors_read(vectors, 0, 200, rows, &err), &err);
    for (size_t d = 0; d < 128; d++) {
        unsigned sum = 0;
        for (size_t r = 0; r < 200; r++) sum += rows[r * 128 + d];
        assert_true(centroid[d] == (float)((double)sum / 200.0));
    }
    bsw_free(&centroid);
    bsw_vectors_close(&vectors);
}

UNIT_TEST(very_many_lists_are_trained_in_cells)
{
    enum { LISTS = 17000 };
    bsw_vectors *vectors = open_rows(sift, 0, 20000);
    for (int m = 0; m < (TEST_IS_SANITIZED ? 1 : BSW_METRIC_NUM); m += 2) {
        struct bsw_list_training training = training_of(vectors, (enum bsw_metric)m, LISTS, 3);
        float *expected = train_with(&training, 1);
        check_same(&training, 3, expected);
        training.num_threads = 1;
        check_same(&training, 2, expected);
        struct lists found = assign_all(&training, expected);
        double bound = m == BSW_METRIC_COSINE ? 1.0 : 0.0;
        training.num_lists = 100;
        assert_true(bound - found.mean_key < 0.2 * (bound - train_and_assign(&training).mean_key));
        assert_true(found.longest <= 8);
        assert_true(found.num_empty < LISTS / 20);
        bsw_free(&expected);
    }
    bsw_vectors_close(&vectors);
}

UNIT_TEST(too_many_lists_and_none_are_refused)
{
    bsw_vectors *vectors = open_rows(sift, 0, 300);
    float centroid;
    for (int i = 0; i < 2; i++) {
        struct bsw_list_training training = training_of(vectors, BSW_METRIC_L2, i ? 301 : 0, 0);
        bsw_transport transport = {.timeout_seconds = 10};
        bsw_transport_local_init(&transport);
        assert_int_equal(bsw_lists_train(&training, &transport, &centroid, &err), BSW_ERROR_USAGE);
        assert_non_null(strstr(err.message, "from 1 to 300"));
    }
    bsw_vectors_close(&vectors);
}

// The last test: a stop stays asked for.
UNIT_TEST(a_stop_that_is_asked_for_ends_all_ranks)
{
    bsw_vectors *vectors = open_rows(sift, 0, 300);
    const struct bsw_list_training training = training_of(vectors, BSW_METRIC_L2, 20, 0);
    static float centroids[2 * 20 * 128];
    const struct timespec nap = {0, 1000000};
    enum bsw_status statuses[MOST_RANKS];
    struct bsw_error errors[MOST_RANKS];
    struct job job = {&training, NULL, centroids, 20 * 128};
    bsw_stop_begin(NULL, NULL);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    for (int i = 0; i < 10000 && !bsw_stop_is_asked(); i++) nanosleep(&nap, NULL);
    assert_true(bsw_stop_is_asked());
    run_ranks(2, train_rank, &job, statuses, errors);
    for (int r = 0; r < 2; r++) assert_int_equal(statuses[r], BSW_ERROR_STOPPED);
    bsw_stop_end();
    bsw_vectors_close(&vectors);
}

int main(void)
{
    if (bsw_stop_watch(NULL) != BSW_OK) return 1;
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
