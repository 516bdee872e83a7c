// SPDX-License-Identifier: Apache-2.0
// A search's journal cut in its last three records, as a crash may leave it, and a
// partial result with other bytes than the journal says: the run that goes on does what no record
// says any more, and its result is that of an undisturbed run. And the end: STATUS.json says
// complete once the result has its name, not before.
#include "unit_test.h"

#include "common/base/file.h"
#include "common/job/run_status.h"
#include "coordinator/search/result_journal.h"
#include "lock_hook.h"
#include "temporary_folder.h"

enum { QUERIES = 30, K = 3, BATCH = 5, RECORD_BYTES = 16 + 24 + 8 };

static struct bsw_error err;
static char result_path[512]; // borrowed while a journal is open

static int is_partial; // what is opened

static enum bsw_status try_open(int is_resumed, struct bsw_result_journal *result)
{
    struct bsw_journal_fields fields = {0};
    bsw_journal_field_count(&fields, "k", K);
    strcpy(result_path, path_of("r"));
    const struct bsw_result_journal_options options = {.path = result_path,
                                                       .num_queries = QUERIES,
                                                       .k = K,
                                                       .is_resumed = is_resumed,
                                                       .is_partial = is_partial,
                                                       .fields = &fields};
    return bsw_result_journal_open(&options, result, &err);
}

static void open_result(int is_resumed, struct bsw_result_journal *result)
{
    assert_ok(try_open(is_resumed, result), &err);
}

static void put(struct bsw_result_journal *result, uint64_t first, uint64_t count)
{
    int64_t ids[QUERIES * K];
    float values[QUERIES * K];
    for (uint64_t i = 0; i < count * K; i++) {
        ids[i] = (int64_t)(7 * (first * K + i));
        values[i] = 0.25f * (float)(first * K + i);
    }
    assert_int_equal(bsw_result_journal_put(result, first, (size_t)count, ids, values, &err),
                     BSW_OK);
}

static void finish(struct bsw_result_journal *result)
{
    const struct bsw_sidecar facts = {.metric = "l2", .refine = "exact", .codec = "saq", .k = K};
    assert_int_equal(bsw_result_journal_finish(result, &facts, &err), BSW_OK);
    bsw_result_journal_close(result, BSW_OK);
}

// Result, journal and partial result of a run that was stopped after all but the last batch; the
// batches came in another order than that of the queries.
static void stop_before_the_end(struct bsw_buffer *journal, struct bsw_buffer *partial)
{
    struct bsw_result_journal result;
    open_result(0, &result);
    for (uint64_t batch = 0; batch < QUERIES / BATCH - 1; batch++)
        put(&result, (batch * 2 % 5) * BATCH, BATCH);
    bsw_result_journal_close(&result, BSW_ERROR_STOPPED);
    read_test_file("r.journal", journal);
    read_test_file("r.partial", partial);
}

static uint64_t queries_left(const struct bsw_result_journal *result)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < result->left.num_parts; i++) sum += result->left.parts[i].count;
    return sum;
}

// Within a record and at its end; test_journal.c cuts at every byte.
UNIT_TEST(every_cut_gives_the_same_result)
{
    struct bsw_buffer journal = {0}, partial = {0}, whole = {0}, now = {0};
    struct bsw_result_journal result;
    open_result(0, &result);
    put(&result, 0, QUERIES);
    finish(&result);
    read_test_file("r", &whole);
    assert_int_equal(unlink(path_of("r")), 0);
    stop_before_the_end(&journal, &partial);
    for (size_t cut = 0; cut <= 3 * RECORD_BYTES; cut += 8) {
        uint64_t num_records = QUERIES / BATCH - 1 - (cut + RECORD_BYTES - 1) / RECORD_BYTES;
        write_test_file("r.journal", journal.data, journal.bytes - cut);
        write_test_file("r.partial", partial.data, partial.bytes);
        open_result(1, &result);
        assert_int_equal(result.left.num_done, num_records * BATCH);
        assert_int_equal(queries_left(&result), QUERIES - num_records * BATCH);
        for (size_t i = 0; i < result.left.num_parts; i++)
            put(&result, result.left.parts[i].first, result.left.parts[i].count);
        finish(&result);
        read_test_file("r", &now);
        assert_int_equal(now.bytes, whole.bytes);
        assert_memory_equal(now.data, whole.data, whole.bytes);
        assert_int_equal(count_test_files(), 2); // it and r.json
        assert_int_equal(unlink(path_of("r")), 0);
    }
    bsw_buffer_deinit(&journal);
    bsw_buffer_deinit(&partial);
    bsw_buffer_deinit(&whole);
    bsw_buffer_deinit(&now);
}

// A bit of an id, or of a value, of each batch in turn: that batch alone is done anew.
UNIT_TEST(batches_with_other_bytes_are_done_anew)
{
    enum { HEAD = 8, IDS = QUERIES * K * 4 };
    struct bsw_buffer journal = {0}, partial = {0};
    struct bsw_result_journal result;
    stop_before_the_end(&journal, &partial);
    for (uint64_t query = 0; query < QUERIES - BATCH; query += 2) {
        uint64_t batch = query / BATCH;
        size_t at = HEAD + (query % 4 ? IDS : 0) + (size_t)query * K * 4 + 2;
        partial.data[at] ^= 4;
        write_test_file("r.journal", journal.data, journal.bytes);
        write_test_file("r.partial", partial.data, partial.bytes);
        partial.data[at] ^= 4;
        open_result(1, &result);
        assert_int_equal(queries_left(&result), 2 * BATCH); // it, and the one that was not put
        assert_int_equal(result.left.parts[0].first, batch * BATCH);
        bsw_result_journal_close(&result, BSW_ERROR_STOPPED);
    }
    assert_int_equal(unlink(path_of("r.journal")), 0);
    assert_int_equal(unlink(path_of("r.partial")), 0);
    bsw_buffer_deinit(&journal);
    bsw_buffer_deinit(&partial);
}

// Batches by other shards than those before: each query keeps its share.
UNIT_TEST(batches_keep_their_coverage)
{
    struct bsw_buffer file = {0};
    struct bsw_result_journal result;
    double shares[QUERIES];
    is_partial = 1;
    open_result(0, &result);
    put(&result, 0, BATCH);
    bsw_result_journal_note_coverage(&result, 0.75);
    put(&result, BATCH, BATCH);
    bsw_result_journal_close(&result, BSW_ERROR_STOPPED);
    open_result(1, &result);
    assert_int_equal(queries_left(&result), QUERIES - 2 * BATCH);
    bsw_result_journal_note_coverage(&result, 0.5);
    put(&result, 2 * BATCH, QUERIES - 2 * BATCH);
    assert_true(bsw_result_journal_coverage(&result) == 0.5);
    finish(&result);
    assert_false(bsw_run_status_is_complete(path_of("r")));
    read_test_file("r.coverage.npy", &file);
    assert_int_equal(file.bytes, 128 + sizeof shares);
    memcpy(shares, file.data + 128, sizeof shares);
    assert_true(shares[BATCH - 1] == 1 && shares[BATCH] == 0.75 && shares[2 * BATCH] == 0.5);
    assert_int_equal(unlink(path_of("r")) + unlink(path_of("r.json")), 0);
    assert_int_equal(unlink(path_of("r.coverage.npy")), 0);
    is_partial = 0;
    bsw_buffer_deinit(&file);
}

// A run that wants all rows does those batches anew that had not.
UNIT_TEST(partial_batches_are_done_anew)
{
    struct bsw_result_journal result;
    is_partial = 1;
    open_result(0, &result);
    put(&result, 0, BATCH);
    bsw_result_journal_note_coverage(&result, 0.75);
    put(&result, BATCH, BATCH);
    bsw_result_journal_close(&result, BSW_ERROR_STOPPED);
    is_partial = 0;
    open_result(1, &result);
    assert_int_equal(result.left.num_done, BATCH);
    assert_int_equal(result.left.parts[0].first, BATCH);
    put(&result, BATCH, QUERIES - BATCH);
    finish(&result);
    assert_true(bsw_run_status_is_complete(path_of("r")));
    assert_int_equal(count_test_files(), 2); // it and r.json
    assert_int_equal(unlink(path_of("r")) + unlink(path_of("r.json")), 0);
}

// A folder has taken the name of the result: nothing may look finished.
UNIT_TEST(a_result_without_its_name_is_not_complete)
{
    const struct bsw_sidecar facts = {.metric = "l2", .refine = "exact", .codec = "saq", .k = K};
    struct bsw_result_journal result;
    open_result(0, &result);
    put(&result, 0, QUERIES);
    assert_int_equal(bsw_journal_commit(result.journal, &err), BSW_OK);
    assert_int_equal(mkdir(path_of("r"), 0700), 0);
    assert_int_equal(bsw_result_journal_finish(&result, &facts, &err), BSW_ERROR_IO);
    assert_non_null(strstr(err.message, "/r: cannot rename to this name"));
    assert_false(bsw_run_status_is_complete(path_of("r")));
    assert_true(bsw_file_exists(path_of("r.journal")));
    bsw_result_journal_close(&result, BSW_ERROR_IO);
    assert_int_equal(rmdir(path_of("r")), 0);
    open_result(1, &result); // once the folder is gone
    assert_int_equal(result.left.num_done, QUERIES);
    finish(&result);
    assert_true(bsw_file_exists(path_of("r")) && bsw_file_exists(path_of("r.json")));
    assert_true(bsw_run_status_is_complete(path_of("r")));
    assert_int_equal(count_test_files(), 2);
    assert_int_equal(unlink(path_of("r")), 0);
    assert_int_equal(unlink(path_of("r.json")), 0);
}

// What is at PATH.partial is then as if this run had just created it.
static void another_ends(void)
{
    write_test_file("r.partial", "", 0);
    unlink(path_of("r.journal"));
    write_test_file("r", "of another run", 14);
}

// Its result comes, or its journal goes, while this one begins.
UNIT_TEST(what_another_run_has_made_meanwhile_is_not_replaced)
{
    struct bsw_buffer file = {0};
    for (int is_resumed = 0; is_resumed < 2; is_resumed++) {
        struct bsw_result_journal result;
        if (is_resumed) write_test_file("r", "before", 6);
        if (is_resumed) write_test_file("r.journal", "", 0);
        if (is_resumed) write_test_file("r.partial", "half", 4);
        before_next_lock = another_ends;
        assert_int_equal(try_open(is_resumed, &result), BSW_ERROR_USAGE);
        assert_non_null(strstr(err.message, "/r: exists; --force replaces it"));
        bsw_result_journal_close(&result, BSW_ERROR_USAGE);
        read_test_file("r", &file);
        assert_int_equal(file.bytes, 14);
        assert_memory_equal(file.data, "of another run", 14);
        assert_int_equal(count_test_files(), 1);
        assert_int_equal(unlink(path_of("r")), 0);
    }
    bsw_buffer_deinit(&file);
}

// A run that has named its result, and still has its journal.
static void name_result(struct bsw_result_journal *result)
{
    const struct bsw_sidecar facts = {.metric = "l2", .refine = "exact", .codec = "saq", .k = K};
    open_result(0, result);
    put(result, 0, QUERIES);
    assert_ok(bsw_journal_commit(result->journal, &err), &err);
    assert_ok(bsw_sidecar_finish(result->writer, result->path, &facts, &err), &err);
}

// It has named its result, and is about to remove its journal; once it is gone what it named is
// taken back.
UNIT_TEST(a_result_is_not_taken_back_from_a_run_at_work)
{
    struct bsw_result_journal first, second;
    name_result(&first);
    assert_int_equal(try_open(1, &second), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "/r: another run is writing it"));
    bsw_result_journal_close(&second, BSW_ERROR_USAGE);
    assert_true(bsw_file_exists(path_of("r")) && bsw_file_exists(path_of("r.journal")));
    assert_false(bsw_file_exists(path_of("r.partial")));
    bsw_result_journal_close(&first, BSW_ERROR_IO); // as a kill leaves it
    open_result(1, &second);
    assert_false(bsw_file_exists(path_of("r")));
    assert_int_equal(second.left.num_done, QUERIES);
    finish(&second);
    assert_int_equal(count_test_files(), 2); // it and r.json
    assert_int_equal(unlink(path_of("r")) + unlink(path_of("r.json")), 0);
}

static void remove_journal(void)
{
    assert_int_equal(unlink(path_of("r.journal")), 0);
}

static void remove_journal_before_next_lock(void)
{
    before_next_lock = remove_journal;
}

// It removes its journal while this one looks at what it has named.
UNIT_TEST(a_result_is_not_taken_back_from_a_run_that_ends)
{
    struct bsw_result_journal first, second;
    name_result(&first);
    bsw_result_journal_close(&first, BSW_ERROR_IO);
    before_next_lock = remove_journal_before_next_lock; // of r.partial, then of r
    assert_int_equal(try_open(1, &second), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "/r: exists; --force replaces it"));
    bsw_result_journal_close(&second, BSW_ERROR_USAGE);
    assert_true(bsw_file_exists(path_of("r")));
    assert_int_equal(count_test_files(), 2); // it and r.json
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
