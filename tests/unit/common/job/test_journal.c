// SPDX-License-Identifier: Apache-2.0
// common/job/journal.h: what is replayed, what is cut, what is refused, and when files appear.
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/job/journal.h"
#include "tests/unit/temporary_folder.h"
#include "unit_test.h"

enum { NUM_RECORDS = 5 };

struct record {
    uint64_t first, count;
};

struct replayed {
    struct record records[NUM_RECORDS + 1];
    size_t count;
};

static struct record record_of(uint64_t i)
{
    return (struct record){1000 * i, 7 + i};
}

static enum bsw_status take(void *context, const void *payload, size_t bytes, struct bsw_error *err)
{
    struct replayed *out = context;
    if (bytes != sizeof(struct record)) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%zu", bytes);
    assert_true(out->count <= NUM_RECORDS);
    memcpy(&out->records[out->count++], payload, bytes);
    return BSW_OK;
}

static void assert_first(const struct replayed *out, size_t count)
{
    assert_int_equal(out->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(out->records[i].first, record_of(i).first);
        assert_int_equal(out->records[i].count, record_of(i).count);
    }
}

static struct bsw_journal_fields make_fields(uint64_t k)
{
    struct bsw_journal_fields fields = {0};
    bsw_journal_field_digest(&fields, "queries", 0x1234);
    bsw_journal_field_count(&fields, "k", k);
    bsw_journal_field_number(&fields, "bits", 2.5);
    bsw_journal_field_text(&fields, "metric", "l2");
    return fields;
}

static bsw_journal *open_journal(const char *path, enum bsw_journal_mode mode,
                                 struct replayed *replayed)
{
    const struct bsw_journal_fields fields = make_fields(10);
    const struct bsw_journal_options options = {.path = path,
                                                .mode = mode,
                                                .fields = &fields,
                                                .replay = replayed ? take : NULL,
                                                .replay_context = replayed};
    struct bsw_error err = {0};
    bsw_journal *journal;
    if (bsw_journal_open(&options, &journal, &err) != BSW_OK) fail_msg("%s", err.message);
    return journal;
}

static void append(bsw_journal *journal, uint64_t i)
{
    const struct record record = record_of(i);
    assert_int_equal(bsw_journal_append(journal, &record, sizeof record, NULL), BSW_OK);
}

// The bytes of a journal with NUM_RECORDS records.
static void make_file(const char *path, struct bsw_buffer *out)
{
    bsw_journal *journal = open_journal(path, BSW_JOURNAL_NEW, NULL);
    for (uint64_t i = 0; i < NUM_RECORDS; i++) append(journal, i);
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
    bsw_journal_close(&journal);
    assert_int_equal(bsw_file_read_all(path, 1 << 20, out, NULL), BSW_OK);
}

static const size_t record_bytes = 16 + sizeof(struct record) + 8;

static void parse(const struct bsw_buffer *file, size_t bytes, size_t expected_records)
{
    struct replayed replayed = {0};
    struct bsw_journal_facts facts;
    const struct bsw_journal_fields fields = make_fields(10);
    // A buffer of exactly that size, so that a read beyond the end is seen.
    unsigned char *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, file->data, bytes);
    assert_int_equal(bsw_journal_parse("j", copy, bytes, &fields, take, &replayed, &facts, NULL),
                     BSW_OK);
    free(copy);
    assert_first(&replayed, expected_records);
    assert_int_equal(facts.num_records, expected_records);
    assert_int_equal(facts.good_bytes,
                     file->bytes - (NUM_RECORDS - expected_records) * record_bytes);
}

UNIT_TEST_WITH(test_every_truncation, make_temporary_folder, remove_temporary_folder)
{
    const char *path = path_of("j");
    struct bsw_buffer file = {0};
    make_file(path, &file);
    size_t header = file.bytes - NUM_RECORDS * record_bytes;
    for (size_t bytes = header; bytes <= file.bytes; bytes++)
        parse(&file, bytes, (bytes - header) / record_bytes);
    for (size_t bytes = 0; bytes < header; bytes++) {
        struct bsw_journal_facts facts;
        unsigned char *copy = malloc(bytes ? bytes : 1);
        memcpy(copy, file.data, bytes);
        assert_int_equal(bsw_journal_parse("j", copy, bytes, NULL, NULL, NULL, &facts, NULL),
                         BSW_ERROR_BAD_DATA);
        free(copy);
    }
    bsw_buffer_deinit(&file);
}

// In the last three records a wrong byte ends what is good before its record; in the header it is
// an error, whatever it hits.
UNIT_TEST_WITH(test_every_flipped_byte, make_temporary_folder, remove_temporary_folder)
{
    const char *path = path_of("j");
    struct bsw_buffer file = {0};
    make_file(path, &file);
    size_t header = file.bytes - NUM_RECORDS * record_bytes;
    for (size_t i = header + 2 * record_bytes; i < file.bytes; i++) {
        for (int bit = 0; bit < 8; bit++) {
            file.data[i] ^= (unsigned char)(1 << bit);
            parse(&file, file.bytes, (i - header) / record_bytes);
            file.data[i] ^= (unsigned char)(1 << bit);
        }
    }
    for (size_t i = 0; i < header; i++) {
        struct bsw_journal_facts facts;
        file.data[i] ^= 0x10;
        assert_int_equal(
            bsw_journal_parse("j", file.data, file.bytes, NULL, NULL, NULL, &facts, NULL),
            BSW_ERROR_BAD_DATA);
        file.data[i] ^= 0x10;
    }
    bsw_buffer_deinit(&file);
}

// What a torn write left is cut, and the next record stands in its place.
UNIT_TEST_WITH(test_torn_end_is_cut, make_temporary_folder, remove_temporary_folder)
{
    const char *path = path_of("j");
    struct bsw_buffer file = {0}, again = {0};
    make_file(path, &file);
    write_test_file("j", file.data, file.bytes - 9);
    struct replayed replayed = {0};
    bsw_journal *journal = open_journal(path, BSW_JOURNAL_RESUME, &replayed);
    assert_first(&replayed, NUM_RECORDS - 1);
    append(journal, NUM_RECORDS - 1);
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
    bsw_journal_close(&journal);
    assert_int_equal(bsw_file_read_all(path, 1 << 20, &again, NULL), BSW_OK);
    assert_int_equal(again.bytes, file.bytes);
    assert_memory_equal(again.data, file.data, file.bytes);
    bsw_buffer_deinit(&file);
    bsw_buffer_deinit(&again);
}

// A disk may keep a later write and lose an earlier one: a whole record behind the torn one is not
// to come back once another has been written in the place of that.
UNIT_TEST_WITH(test_what_lies_behind_a_torn_record_is_gone, make_temporary_folder,
               remove_temporary_folder)
{
    const char *path = path_of("j");
    struct bsw_buffer file = {0};
    struct replayed replayed = {0};
    make_file(path, &file);
    file.data[file.bytes - 2 * record_bytes] ^= 1; // the last but one
    write_test_file("j", file.data, file.bytes);
    bsw_journal *journal = open_journal(path, BSW_JOURNAL_RESUME, &replayed);
    assert_first(&replayed, NUM_RECORDS - 2);
    append(journal, NUM_RECORDS - 2);
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
    bsw_journal_close(&journal);
    replayed = (struct replayed){0};
    journal = open_journal(path, BSW_JOURNAL_RESUME, &replayed);
    assert_first(&replayed, NUM_RECORDS - 1);
    bsw_journal_close(&journal);
    bsw_buffer_deinit(&file);
}

// A record in the place of another of its length, of the same run.
UNIT_TEST_WITH(test_records_in_another_order_end_it, make_temporary_folder, remove_temporary_folder)
{
    struct bsw_buffer file = {0};
    make_file(path_of("j"), &file);
    unsigned char *last = file.data + file.bytes - record_bytes;
    memcpy(last, last - record_bytes, record_bytes);
    parse(&file, file.bytes, NUM_RECORDS - 1);
    memcpy(last - record_bytes, last - 2 * record_bytes, record_bytes);
    parse(&file, file.bytes, NUM_RECORDS - 2);
    bsw_buffer_deinit(&file);
}

// Records of another run, whose sequence numbers would fit, are not taken for those of this one.
UNIT_TEST_WITH(test_records_of_another_run, make_temporary_folder, remove_temporary_folder)
{
    const char *path = path_of("j"), *other = path_of("other");
    struct bsw_buffer file = {0}, theirs = {0};
    make_file(path, &file);
    make_file(other, &theirs);
    assert_int_equal(file.bytes, theirs.bytes);
    size_t kept = file.bytes - 2 * record_bytes;
    memcpy(file.data + kept, theirs.data + kept, file.bytes - kept);
    parse(&file, file.bytes, NUM_RECORDS - 2);
    bsw_buffer_deinit(&file);
    bsw_buffer_deinit(&theirs);
}

static void expect_refusal(const char *path, const struct bsw_journal_fields *fields,
                           const char *text)
{
    const struct bsw_journal_options options = {
        .path = path, .mode = BSW_JOURNAL_RESUME, .fields = fields};
    struct bsw_error err = {0};
    bsw_journal *journal;
    assert_int_equal(bsw_journal_open(&options, &journal, &err), BSW_ERROR_USAGE);
    assert_null(journal);
    if (!strstr(err.message, text)) fail_msg("'%s' is not in '%s'", text, err.message);
}

UNIT_TEST_WITH(test_other_fields_are_named, make_temporary_folder, remove_temporary_folder)
{
    const char *path = path_of("j");
    struct bsw_buffer file = {0};
    make_file(path, &file);
    struct bsw_journal_fields fields = make_fields(20);
    expect_refusal(path, &fields, "begun with k 10, now it is 20");
    fields = make_fields(10);
    bsw_journal_field_text(&fields, "select", "queue");
    expect_refusal(path, &fields, "begun with select not known, now it is queue");
    fields = make_fields(10);
    fields.count--;
    expect_refusal(path, &fields, "begun with metric l2, now it is not known");
    // None of it touched the file.
    struct bsw_buffer again = {0};
    assert_int_equal(bsw_file_read_all(path, 1 << 20, &again, NULL), BSW_OK);
    assert_int_equal(again.bytes, file.bytes);
    bsw_buffer_deinit(&again);
    bsw_buffer_deinit(&file);
}

UNIT_TEST_WITH(test_long_values_differ, make_temporary_folder, remove_temporary_folder)
{
    const char *path = path_of("j");
    char text[3000];
    struct bsw_journal_fields fields = {0}, others = {0};
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    bsw_journal_field_text(&fields, "base", text);
    text[2000] = 'b';
    bsw_journal_field_text(&others, "base", text);
    const struct bsw_journal_options options = {
        .path = path, .mode = BSW_JOURNAL_NEW, .fields = &fields};
    bsw_journal *journal;
    assert_int_equal(bsw_journal_open(&options, &journal, NULL), BSW_OK);
    append(journal, 0);
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
    bsw_journal_close(&journal);
    expect_refusal(path, &others, "begun with base aaaa");
}

UNIT_TEST_WITH(test_modes, make_temporary_folder, remove_temporary_folder)
{
    const char *path = path_of("j");
    struct bsw_error err = {0};
    struct bsw_buffer file = {0};
    make_file(path, &file);
    bsw_buffer_deinit(&file);
    const struct bsw_journal_fields fields = make_fields(10);
    struct bsw_journal_options options = {
        .path = path, .mode = bsw_journal_mode_of(0, 0), .fields = &fields};
    bsw_journal *journal;
    assert_int_equal(bsw_journal_open(&options, &journal, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "--resume goes on, --force starts again"));
    assert_true(bsw_file_exists(path));
    options.mode = bsw_journal_mode_of(1, 0);
    assert_int_equal(bsw_journal_open(&options, &journal, &err), BSW_OK);
    assert_false(bsw_file_exists(path));
    bsw_journal_close(&journal);
    struct replayed replayed = {0};
    journal = open_journal(path, bsw_journal_mode_of(1, 1), &replayed); // nothing there: begins
    assert_int_equal(replayed.count, 0);
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
    assert_false(bsw_file_exists(path)); // nothing was appended
    append(journal, 0);
    assert_int_equal(bsw_journal_commit_if_due(journal, NULL), BSW_OK);
    assert_false(bsw_file_exists(path)); // not due
    assert_false(bsw_journal_is_stored(journal));
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
    assert_true(bsw_file_exists(path));
    assert_true(bsw_journal_is_stored(journal));
    assert_int_equal(bsw_journal_remove(&journal, NULL), BSW_OK);
    assert_false(bsw_file_exists(path));
}

// What a stop saves is the last of it: a thread that goes on a little adds nothing.
UNIT_TEST_WITH(test_commit_last, make_temporary_folder, remove_temporary_folder)
{
    const char *path = path_of("j");
    setenv("BITSWEEP_JOURNAL_SECONDS", "0", 1);
    bsw_journal *journal = open_journal(path, BSW_JOURNAL_NEW, NULL);
    unsetenv("BITSWEEP_JOURNAL_SECONDS");
    assert_true(bsw_journal_is_due(journal));
    assert_int_equal(bsw_journal_commit_last(journal), 0); // nothing was appended
    append(journal, 0);
    assert_false(bsw_journal_is_due(journal));
    assert_int_equal(bsw_journal_commit_if_due(journal, NULL), BSW_OK);
    assert_false(bsw_file_exists(path));
    bsw_journal_close(&journal);
    journal = open_journal(path, BSW_JOURNAL_NEW, NULL);
    append(journal, 0);
    assert_int_equal(bsw_journal_commit_last(journal), 1);
    assert_true(bsw_file_exists(path));
    bsw_journal_close(&journal);
}

static enum bsw_status fail_sync(void *context, struct bsw_error *err)
{
    ++*(int *)context;
    return bsw_fail(err, BSW_ERROR_IO, "disk: cannot sync");
}

// No record without its data, and nothing after a sync that failed.
UNIT_TEST_WITH(test_failed_sync, make_temporary_folder, remove_temporary_folder)
{
    const char *path = path_of("j");
    int num_syncs = 0;
    const struct bsw_journal_fields fields = make_fields(10);
    const struct bsw_journal_options options = {
        .path = path, .fields = &fields, .sync = fail_sync, .sync_context = &num_syncs};
    bsw_journal *journal;
    assert_int_equal(bsw_journal_open(&options, &journal, NULL), BSW_OK);
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
    assert_int_equal(num_syncs, 0);
    append(journal, 0);
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_ERROR_IO);
    append(journal, 1);
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_ERROR_IO);
    assert_int_equal(num_syncs, 1);
    assert_false(bsw_file_exists(path));
    assert_false(bsw_journal_abandon(&journal, BSW_ERROR_STOPPED));
}

UNIT_TEST_WITH(test_abandon, make_temporary_folder, remove_temporary_folder)
{
    static const struct {
        enum bsw_status status;
        int is_stored, is_kept;
    } cases[] = {{BSW_ERROR_STOPPED, 0, 1},  {BSW_ERROR_PEER, 0, 1},
                 {BSW_ERROR_IO, 0, 0},       {BSW_ERROR_IO, 1, 1},
                 {BSW_ERROR_BAD_DATA, 0, 0}, {BSW_ERROR_SELF_CHECK, 1, 0}};
    const char *path = path_of("j");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bsw_journal *journal = open_journal(path, BSW_JOURNAL_FORCE, NULL);
        append(journal, 0);
        if (cases[i].is_stored) assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
        assert_int_equal(bsw_journal_abandon(&journal, cases[i].status), cases[i].is_kept);
        assert_int_equal(bsw_file_exists(path), cases[i].is_kept);
        assert_null(journal);
    }
}

// After a failed self-check what was marked and trusted stays, stored or not, and nothing else.
UNIT_TEST_WITH(test_failed_self_check, make_temporary_folder, remove_temporary_folder)
{
    static const struct {
        int is_marked, is_trusted, is_committed_before, expected;
    } cases[] = {{0, 0, 1, 0}, {1, 0, 1, 0}, {1, 1, 1, 3}, {1, 1, 0, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct replayed replayed = {0};
        bsw_journal *journal = open_journal(path_of("checked"), BSW_JOURNAL_NEW, NULL);
        for (uint64_t r = 0; r < 3; r++) append(journal, r);
        if (cases[i].is_committed_before)
            assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
        if (cases[i].is_marked) bsw_journal_mark(journal);
        append(journal, 3);
        if (cases[i].is_trusted) bsw_journal_trust(journal);
        append(journal, 4);
        if (cases[i].is_committed_before)
            assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
        int is_kept = bsw_journal_abandon(&journal, BSW_ERROR_SELF_CHECK);
        assert_int_equal(is_kept, cases[i].expected > 0);
        assert_int_equal(bsw_file_exists(path_of("checked")), is_kept);
        if (!is_kept) continue;
        journal = open_journal(path_of("checked"), BSW_JOURNAL_RESUME, &replayed);
        assert_first(&replayed, (size_t)cases[i].expected);
        append(journal, 3); // records of earlier runs stay where this one has no check
        assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
        assert_int_equal(bsw_journal_abandon(&journal, BSW_ERROR_SELF_CHECK), 1);
        replayed = (struct replayed){0};
        journal = open_journal(path_of("checked"), BSW_JOURNAL_RESUME, &replayed);
        assert_first(&replayed, (size_t)cases[i].expected);
        assert_int_equal(bsw_journal_remove(&journal, NULL), BSW_OK);
    }
}

// Threads append while one commits: every record is there once, and in order.
UNIT_TEST_WITH(test_threads, make_temporary_folder, remove_temporary_folder)
{
    enum { PER_THREAD = 500, THREADS = 4 };
    const char *path = path_of("j");
    struct bsw_buffer file = {0};
    struct bsw_journal_facts facts;
    bsw_journal *journal = open_journal(path, BSW_JOURNAL_NEW, NULL);
#pragma omp parallel for num_threads(THREADS)
    for (int i = 0; i < THREADS * PER_THREAD; i++) {
        append(journal, (uint64_t)i);
        if (i % 100 == 0) assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
    }
    assert_int_equal(bsw_journal_commit(journal, NULL), BSW_OK);
    bsw_journal_close(&journal);
    assert_int_equal(bsw_file_read_all(path, 1 << 20, &file, NULL), BSW_OK);
    assert_int_equal(bsw_journal_parse("j", file.data, file.bytes, NULL, NULL, NULL, &facts, NULL),
                     BSW_OK);
    assert_int_equal(facts.num_records, THREADS * PER_THREAD);
    assert_int_equal(facts.good_bytes, file.bytes);
    bsw_buffer_deinit(&file);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
