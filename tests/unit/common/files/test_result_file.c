// SPDX-License-Identifier: Apache-2.0
// Result files: written in any order, read back in every form, refused when wrong.
#include <math.h>
#include <sys/file.h>

#include "common/base/arithmetic.h"
#include "common/files/result_file.h"
#include "tests/unit/temporary_folder.h"
#include "unit_test.h"

static struct bsw_error err;

// Whether another process could not have had the file that went last. Takes the place of the C
// library's.
static int was_locked;

int unlink(const char *path)
{
    int fd = open(path, O_RDWR);
    was_locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
    close(fd);
    return unlinkat(AT_FDCWD, path, 0);
}

// A result file of either form in memory, written here without the code under test.
static size_t make_file(int is_wide, uint64_t num_queries, uint64_t k, const int64_t *ids,
                        const float *values, unsigned char *out)
{
    unsigned char *at = out;
    size_t header_word = is_wide ? 8 : 4, id_bytes = is_wide ? 8 : 4;
    memcpy(at, &num_queries, header_word);
    memcpy(at + header_word, &k, header_word);
    at += 2 * header_word;
    for (uint64_t i = 0; i < num_queries * k; i++, at += id_bytes) memcpy(at, &ids[i], id_bytes);
    memcpy(at, values, num_queries * k * sizeof(float));
    return (size_t)(at - out) + num_queries * k * sizeof(float);
}

static const int64_t small_ids[6] = {5, 0, 2147483647, 7, -1, -1};
static const float small_values[6] = {0.5f, 0.25f, -1.0f, 3.0f, -INFINITY, INFINITY};

static enum bsw_status parse(const char *name, const void *data, size_t bytes,
                             struct bsw_results *results)
{
    unsigned char *copy = malloc(bytes ? bytes : 1); // exact, so that a sanitizer sees every byte
    assert_non_null(copy);
    memcpy(copy, data, bytes);
    enum bsw_status status = bsw_results_parse(name, copy, bytes, results, &err);
    free(copy);
    return status;
}

static void assert_refused(const char *name, const void *data, size_t bytes, const char *text)
{
    struct bsw_results results = {.k = 77};
    assert_int_equal(parse(name, data, bytes, &results), BSW_ERROR_BAD_DATA);
    assert_null(results.ids);
    assert_null(results.values);
    if (!strstr(err.message, text)) fail_msg("'%s' is not in '%s'", text, err.message);
}

static bsw_result_writer *create(const char *path, uint64_t num_queries, uint64_t k, int is_wide)
{
    bsw_result_writer *writer;
    if (bsw_result_writer_create(path, num_queries, k, is_wide, 0, &writer, &err) != BSW_OK)
        fail_msg("%s", err.message);
    return writer;
}

UNIT_TEST(both_forms_are_parsed)
{
    for (int is_wide = 0; is_wide <= 1; is_wide++) {
        unsigned char file[256];
        size_t bytes = make_file(is_wide, 2, 3, small_ids, small_values, file);
        struct bsw_results results;
        assert_int_equal(parse("r", file, bytes, &results), BSW_OK);
        assert_int_equal(results.num_queries, 2);
        assert_int_equal(results.k, 3);
        assert_memory_equal(results.ids, small_ids, sizeof small_ids);
        assert_memory_equal(results.values, small_values, sizeof small_values);
        bsw_results_deinit(&results);
        assert_null(results.ids);
        bsw_results_deinit(&results);
    }
}

UNIT_TEST(written_bytes_are_the_layout)
{
    for (int is_wide = 0; is_wide <= 1; is_wide++) {
        unsigned char expected[256], got[256];
        size_t bytes = make_file(is_wide, 2, 3, small_ids, small_values, expected);
        const char *path = path_of(is_wide ? "wide.bin" : "narrow.bin");
        bsw_result_writer *writer = create(path, 2, 3, is_wide);
        assert_int_equal(bsw_result_writer_put(writer, 1, 1, small_ids + 3, small_values + 3, &err),
                         BSW_OK);
        assert_int_equal(bsw_result_writer_put(writer, 0, 1, small_ids, small_values, &err),
                         BSW_OK);
        assert_int_equal(access(path, F_OK), -1); // only finish makes the name
        assert_int_equal(bsw_result_writer_finish(writer, &err), BSW_OK);
        bsw_result_writer_destroy(&writer);
        assert_null(writer);
        bsw_result_writer_destroy(&writer);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(got, 1, sizeof got, file), bytes);
        fclose(file);
        assert_memory_equal(got, expected, bytes);
    }
}

#define MANY_QUERIES 700
#define MANY_K       100

UNIT_TEST(batches_in_any_order_are_read_back)
{
    static int64_t ids[MANY_QUERIES * MANY_K];
    static float values[MANY_QUERIES * MANY_K];
    for (int is_wide = 0; is_wide <= 1; is_wide++) {
        for (size_t i = 0; i < MANY_QUERIES * MANY_K; i++) {
            ids[i] = (int64_t)(bsw_hash(i) >> (is_wide ? 1 : 33));
            values[i] = (float)(bsw_hash(i) >> 40);
        }
        const char *path = path_of(is_wide ? "many_wide.bin" : "many.bin");
        bsw_result_writer *writer = create(path, MANY_QUERIES, MANY_K, is_wide);
        // Batches of 170 queries pass the writer's own block of ids.
        static const size_t firsts[] = {340, 0, 510, 680, 170};
        for (size_t i = 0; i < 5; i++) {
            size_t count = firsts[i] == 680 ? 20 : 170, place = firsts[i] * MANY_K;
            assert_int_equal(
                bsw_result_writer_put(writer, firsts[i], count, ids + place, values + place, &err),
                BSW_OK);
        }
        assert_int_equal(bsw_result_writer_finish(writer, &err), BSW_OK);
        bsw_result_writer_destroy(&writer);
        struct bsw_results results;
        assert_int_equal(bsw_results_read(path, &results, &err), BSW_OK);
        assert_int_equal(results.num_queries, MANY_QUERIES);
        assert_int_equal(results.k, MANY_K);
        assert_memory_equal(results.ids, ids, sizeof ids);
        assert_memory_equal(results.values, values, sizeof values);
        bsw_results_deinit(&results);
    }
}

UNIT_TEST(existing_file_is_replaced_by_force_only)
{
    const char *path = write_test_file("old.bin", "old", 3);
    char text[600];
    bsw_result_writer *writer;
    assert_int_equal(bsw_result_writer_create(path, 1, 1, 0, 0, &writer, &err), BSW_ERROR_USAGE);
    assert_null(writer);
    snprintf(text, sizeof text, "%s: exists; --force replaces it", path);
    assert_string_equal(err.message, text);
    assert_int_equal(bsw_result_writer_create(path, 1, 1, 0, 1, &writer, &err), BSW_OK);
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_size, 3); // still the old one
    assert_int_equal(bsw_result_writer_put(writer, 0, 1, small_ids, small_values, &err), BSW_OK);
    assert_int_equal(bsw_result_writer_finish(writer, &err), BSW_OK);
    assert_int_equal(bsw_result_writer_finish(writer, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_result_writer_put(writer, 0, 1, small_ids, small_values, &err),
                     BSW_ERROR_USAGE);
    bsw_result_writer_destroy(&writer);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_size, 16);
}

UNIT_TEST(unfinished_file_is_removed)
{
    size_t before = count_test_files();
    bsw_result_writer *writer = create(path_of("never.bin"), 2, 3, 0);
    assert_int_equal(count_test_files(), before + 1);
    bsw_result_writer_destroy(&writer);
    assert_int_equal(count_test_files(), before);
}

static int has_digest(bsw_result_writer *writer, uint64_t first, uint64_t count, uint64_t digest)
{
    int is_same;
    assert_int_equal(bsw_result_writer_check(writer, first, count, digest, &is_same, &err), BSW_OK);
    return is_same;
}

// Each query has 40,000 places, so that a batch takes several pieces of a digest.
UNIT_TEST(partial_file_is_gone_on_with)
{
    enum { QUERIES = 3, K = 40000 };
    const char *path = path_of("part");
    static int64_t ids[QUERIES * K];
    static float values[QUERIES * K];
    for (int i = 0; i < QUERIES * K; i++) {
        ids[i] = (int64_t)(bsw_hash((uint64_t)i) % 1000);
        values[i] = (float)i;
    }
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        bsw_result_writer *writer, *other;
        struct bsw_results results;
        uint64_t digests[2];
        assert_int_equal(bsw_result_writer_open(path, QUERIES, K, is_wide, &writer, &err), 0);
        assert_int_equal(bsw_result_writer_begin(writer, 0, &err), BSW_OK);
        assert_int_equal(bsw_result_writer_put(writer, 2, 1, ids + 2 * K, values + 2 * K, &err), 0);
        digests[1] = bsw_result_writer_digest(writer);
        // Nobody else may write it meanwhile.
        assert_int_equal(bsw_result_writer_open(path, QUERIES, K, is_wide, &other, &err),
                         BSW_ERROR_USAGE);
        assert_non_null(strstr(err.message, "part.partial: another run is writing it"));
        bsw_result_writer_leave(&writer);
        assert_int_equal(bsw_result_writer_open(path, QUERIES, K, is_wide, &writer, &err), 0);
        assert_int_equal(bsw_result_writer_begin(writer, 1, &err), BSW_OK);
        assert_int_equal(bsw_result_writer_put(writer, 0, 2, ids, values, &err), BSW_OK);
        digests[0] = bsw_result_writer_digest(writer);
        assert_int_not_equal(digests[0], digests[1]);
        for (int i = 0; i < 2; i++) {
            uint64_t first = i == 0 ? 0 : 2, count = i == 0 ? 2 : 1;
            assert_true(has_digest(writer, first, count, digests[i]));
            assert_false(has_digest(writer, first, count, digests[i] ^ 1));
        }
        // One value of the second batch, the last in the file.
        int fd = open(path_of("part.partial"), O_RDWR);
        off_t end = lseek(fd, 0, SEEK_END);
        assert_int_equal(pwrite(fd, "x", 1, end - 2), 1);
        assert_false(has_digest(writer, 2, 1, digests[1]));
        assert_true(has_digest(writer, 0, 2, digests[0]));
        // A file that ends before is not as recorded either.
        assert_int_equal(ftruncate(fd, end - 1), 0);
        close(fd);
        assert_false(has_digest(writer, 2, 1, digests[1]));
        assert_int_equal(bsw_result_writer_put(writer, 2, 1, ids + 2 * K, values + 2 * K, &err), 0);
        assert_int_equal(bsw_result_writer_digest(writer), digests[1]);
        assert_int_equal(bsw_result_writer_finish(writer, &err), BSW_OK);
        bsw_result_writer_destroy(&writer);
        assert_int_equal(bsw_results_read(path, &results, &err), BSW_OK);
        assert_memory_equal(results.ids, ids, sizeof ids);
        assert_memory_equal(results.values, values, sizeof values);
        bsw_results_deinit(&results);
        assert_int_equal(access(path_of("part.partial"), F_OK), -1);
    }
    unlink(path);
}

// What a run left is only cut once begun, and then not to what another shape would take.
UNIT_TEST(partial_file_is_cut_to_its_size)
{
    const char *path = path_of("cut");
    struct stat facts;
    bsw_result_writer *writer;
    write_test_file("cut.partial", "twenty-nine bytes of old file", 29);
    assert_int_equal(bsw_result_writer_open(path, 1, 1, 0, &writer, &err), BSW_OK);
    bsw_result_writer_destroy(&writer); // not begun: not ours
    assert_int_equal(stat(path_of("cut.partial"), &facts), 0);
    assert_int_equal(facts.st_size, 29);
    assert_int_equal(bsw_result_writer_open(path, 1, 1, 0, &writer, &err), BSW_OK);
    assert_int_equal(bsw_result_writer_begin(writer, 1, &err), BSW_OK);
    assert_int_equal(stat(path_of("cut.partial"), &facts), 0);
    assert_int_equal(facts.st_size, 8 + 4 + 4);
    assert_int_equal(bsw_result_writer_begin(writer, 0, &err), BSW_OK);
    assert_int_equal(stat(path_of("cut.partial"), &facts), 0);
    assert_int_equal(facts.st_size, 8); // the header
    bsw_result_writer_destroy(&writer);
    assert_int_equal(access(path_of("cut.partial"), F_OK), -1);
}

// A result that this run gives up is removed, and one that it has named is kept from others, while
// it is locked: between the two another run might take it.
UNIT_TEST(partial_file_is_locked_to_the_end)
{
    const char *path = path_of("locked");
    const int64_t id = 7;
    const float value = 1;
    bsw_result_writer *writer;
    int fd;
    assert_int_equal(bsw_result_writer_open(path, 1, 1, 0, &writer, &err), BSW_OK);
    assert_true(bsw_result_writer_is_new(writer));
    was_locked = 0;
    bsw_result_writer_destroy(&writer);
    assert_true(was_locked);
    assert_int_equal(bsw_result_writer_open(path, 1, 1, 0, &writer, &err), BSW_OK);
    assert_int_equal(bsw_result_writer_begin(writer, 0, &err), BSW_OK);
    assert_int_equal(bsw_result_writer_put(writer, 0, 1, &id, &value, &err), BSW_OK);
    assert_int_equal(bsw_result_writer_check_name(writer, 0, &err), BSW_OK);
    assert_int_equal(bsw_result_writer_finish(writer, &err), BSW_OK);
    assert_int_equal(bsw_result_writer_put(writer, 0, 1, &id, &value, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_result_writer_check_name(writer, 0, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_file_reopen_exclusive(path, &fd, &err), BSW_ERROR_USAGE);
    bsw_result_writer_destroy(&writer);
    assert_int_equal(bsw_file_reopen_exclusive(path, &fd, &err), BSW_OK);
    bsw_file_close(&fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(bsw_file_reopen_exclusive(path, &fd, &err), BSW_ERROR_IO);
    assert_int_equal(access(path, F_OK), -1);
}

UNIT_TEST(places_that_cannot_hold_a_file_are_refused)
{
    const char *folder = path_of("folder"), *pipe_path = path_of("pipe"), *link = path_of("link");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(symlink(folder, link), 0);
    bsw_result_writer *writer;
    alarm(20);
    for (int force = 0; force <= 1; force++) {
        assert_int_equal(bsw_result_writer_create(folder, 1, 1, 0, force, &writer, &err),
                         BSW_ERROR_USAGE);
        assert_int_equal(bsw_result_writer_create(link, 1, 1, 0, force, &writer, &err),
                         BSW_ERROR_USAGE);
        assert_int_equal(bsw_result_writer_create(pipe_path, 1, 1, 0, force, &writer, &err),
                         BSW_ERROR_USAGE);
        assert_int_equal(
            bsw_result_writer_create(path_of("no/folder"), 1, 1, 0, force, &writer, &err),
            BSW_ERROR_IO);
        assert_null(writer);
    }
    char name[5000];
    memset(name, 'x', sizeof name);
    name[4090] = '\0';
    assert_int_equal(bsw_result_writer_create(name, 1, 1, 0, 0, &writer, &err), BSW_ERROR_USAGE);
    struct bsw_results results;
    assert_int_equal(bsw_results_read(folder, &results, &err), BSW_ERROR_IO);
    assert_int_equal(bsw_results_read(pipe_path, &results, &err), BSW_ERROR_IO);
    assert_int_equal(bsw_results_read(path_of("missing"), &results, &err), BSW_ERROR_IO);
    alarm(0);
}

UNIT_TEST(impossible_counts_are_refused)
{
    static const struct {
        uint64_t num_queries, k;
        int is_wide;
        enum bsw_status expected;
    } cases[] = {
        {0, 1, 0, BSW_ERROR_USAGE},
        {1, 0, 0, BSW_ERROR_USAGE},
        {(uint64_t)1 << 32, 1, 0, BSW_ERROR_TOO_LARGE},
        {1, (uint64_t)1 << 32, 0, BSW_ERROR_TOO_LARGE},
        {(uint64_t)1 << 62, 4, 1, BSW_ERROR_TOO_LARGE},
        {(uint64_t)1 << 32, (uint64_t)1 << 32, 1, BSW_ERROR_TOO_LARGE},
        {(uint64_t)1 << 60, 1, 1, BSW_ERROR_TOO_LARGE}, // bytes pass 2^63
    };
    bsw_result_writer *writer;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(bsw_result_writer_create(path_of("counts.bin"), cases[i].num_queries,
                                                  cases[i].k, cases[i].is_wide, 0, &writer, &err),
                         cases[i].expected);
    }
}

UNIT_TEST(puts_outside_the_file_are_refused)
{
    bsw_result_writer *writer = create(path_of("outside.bin"), 2, 3, 0);
    static const struct {
        uint64_t first;
        size_t count;
    } cases[] = {{2, 1}, {0, 3}, {3, 0}, {1, SIZE_MAX}, {UINT64_MAX, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(bsw_result_writer_put(writer, cases[i].first, cases[i].count, small_ids,
                                               small_values, &err),
                         BSW_ERROR_USAGE);
    }
    assert_int_equal(bsw_result_writer_put(writer, 2, 0, small_ids, small_values, &err), BSW_OK);
    const int64_t large[3] = {0, 2147483648, 0};
    assert_int_equal(bsw_result_writer_put(writer, 0, 1, large, small_values, &err),
                     BSW_ERROR_TOO_LARGE);
    assert_non_null(strstr(err.message, "id 2147483648 needs the 64-bit form"));
    bsw_result_writer_destroy(&writer);
}

UNIT_TEST(every_truncation_is_refused)
{
    for (int is_wide = 0; is_wide <= 1; is_wide++) {
        unsigned char file[256];
        size_t bytes = make_file(is_wide, 2, 3, small_ids, small_values, file);
        for (size_t cut = 0; cut < bytes; cut++) assert_refused("r", file, cut, "r: ");
        file[bytes] = 0;
        assert_refused("r", file, bytes + 1, "the file has");
    }
}

UNIT_TEST(messages_name_file_and_numbers)
{
    unsigned char file[256];
    size_t bytes = make_file(0, 2, 3, small_ids, small_values, file);
    assert_refused("r", file, bytes - 1,
                   "r: the header says 2 queries x 3 (56 bytes), the file has 55");
    assert_refused("r", file, 0, "r: empty");
    assert_refused("r", file, 3, "r: truncated inside the header: 3 bytes");
    const uint32_t none[2] = {0, 3};
    assert_refused("r", none, sizeof none, "r: the header says 0 queries x 3");
    const uint64_t wide_none[2] = {3, 0};
    assert_refused("r", wide_none, sizeof wide_none, "r: the header says 3 queries x 0");
}

UNIT_TEST(wrong_ids_and_values_are_named)
{
    for (int is_wide = 0; is_wide <= 1; is_wide++) {
        unsigned char file[256];
        int64_t ids[6];
        float values[6];
        memcpy(ids, small_ids, sizeof ids);
        memcpy(values, small_values, sizeof values);
        ids[4] = -2;
        size_t bytes = make_file(is_wide, 2, 3, ids, values, file);
        assert_refused("r", file, bytes, "r: query 1, place 1: id -2");
        ids[4] = -1;
        values[2] = NAN;
        bytes = make_file(is_wide, 2, 3, ids, values, file);
        assert_refused("r", file, bytes, "r: query 0, place 2: the value is NaN");
        values[2] = 0;
        values[5] = NAN; // the last
        bytes = make_file(is_wide, 2, 3, ids, values, file);
        assert_refused("r", file, bytes, "r: query 1, place 2: the value is NaN");
    }
}

// X.neighbors.ibin with X.distances.fbin beside it: uint32 rows, uint32 dims, then numbers.
UNIT_TEST(split_values_are_of_the_same_shape)
{
    const struct {
        uint32_t shape[2];
        int32_t ids[6];
    } ids = {{2, 3}, {0, 1, 2, 3, 4, 5}};
    static const uint32_t shapes[][2] = {{2, 3}, {3, 2}, {1, 3}, {2, 2}, {1, 6}, {6, 1}};
    const char *path = write_test_file("t.neighbors.ibin", &ids, sizeof ids);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct bsw_results results;
        struct {
            uint32_t shape[2];
            float values[6];
        } distances = {{shapes[i][0], shapes[i][1]}, {0, 1, 2, 3, 4, 5}};
        write_test_file("t.distances.fbin", &distances,
                        sizeof shapes[0] + shapes[i][0] * shapes[i][1] * sizeof(float));
        enum bsw_status status = bsw_results_read(path, &results, &err);
        assert_int_equal(status, i == 0 ? BSW_OK : BSW_ERROR_BAD_DATA);
        if (i > 0) {
            assert_non_null(strstr(err.message, "t.neighbors.ibin has 2 x 3"));
            continue;
        }
        assert_memory_equal(results.values, distances.values, sizeof distances.values);
        bsw_results_deinit(&results);
    }
    assert_int_equal(unlink(path_of("t.distances.fbin")), 0);
    assert_int_equal(unlink(path), 0);
}

static size_t make_ivecs(uint32_t num_rows, uint32_t k, unsigned char *out)
{
    unsigned char *at = out;
    for (uint32_t row = 0; row < num_rows; row++) {
        memcpy(at, &k, 4);
        at += 4;
        for (uint32_t i = 0; i < k; i++, at += 4) {
            int32_t id = (int32_t)(row * 100 + i) - 1;
            memcpy(at, &id, 4);
        }
    }
    return (size_t)(at - out);
}

UNIT_TEST(ivecs_have_ids_and_no_values)
{
    unsigned char file[256];
    size_t bytes = make_ivecs(3, 5, file);
    const char *path = write_test_file("truth.ivecs", file, bytes);
    struct bsw_results results;
    assert_int_equal(bsw_results_read(path, &results, &err), BSW_OK);
    assert_int_equal(results.num_queries, 3);
    assert_int_equal(results.k, 5);
    assert_null(results.values);
    for (int row = 0; row < 3; row++) {
        for (int i = 0; i < 5; i++) assert_int_equal(results.ids[row * 5 + i], row * 100 + i - 1);
    }
    bsw_results_deinit(&results);
    for (size_t cut = 0; cut < bytes; cut++) {
        if (cut % 24 != 0 || cut == 0) assert_refused("t.ivecs", file, cut, "t.ivecs: ");
    }
    const int32_t wrong_dims = 4, wrong_id = -7;
    memcpy(file + 24, &wrong_dims, 4);
    assert_refused("t.ivecs", file, bytes, "t.ivecs: row 1 says 4 ids, the first row 5");
    make_ivecs(3, 5, file);
    memcpy(file + 48 + 8, &wrong_id, 4);
    assert_refused("t.ivecs", file, bytes, "t.ivecs: query 2, place 1: id -7");
}

UNIT_TEST(mutated_files_are_read_or_refused)
{
    for (uint64_t run = 0; run < 6000; run++) {
        unsigned char file[256];
        int kind = (int)(run % 3);
        size_t bytes = kind == 2 ? make_ivecs(3, 5, file)
                                 : make_file(kind, 2, 3, small_ids, small_values, file);
        uint64_t seed = bsw_hash(run);
        for (size_t i = 0; i < 1 + seed % 3; i++) {
            uint64_t change = bsw_hash2(seed, i);
            file[change % (i == 0 ? 16 : bytes)] = (unsigned char)(change >> 32);
        }
        size_t cut = seed >> 8 & 3 ? bytes : (seed >> 16) % (bytes + 1);
        struct bsw_results results;
        enum bsw_status status = parse(kind == 2 ? "r.ivecs" : "r", file, cut, &results);
        if (status == BSW_OK) {
            assert_true(results.num_queries * results.k * 4 < cut);
            for (size_t i = 0; i < results.num_queries * results.k; i++)
                assert_true(results.ids[i] >= -1);
        } else if (status != BSW_ERROR_BAD_DATA) {
            fail_msg("run %llu: status %d", (unsigned long long)run, status);
        }
        bsw_results_deinit(&results);
    }
}

// A huge file that is no result file is refused by its header, not loaded.
UNIT_TEST(wrong_huge_file_is_not_loaded)
{
    const char *path = write_test_file("huge.bin", "\1\0\0\0\1\0\0\0", 8);
    if (truncate(path, (off_t)1 << 42) != 0) {
        print_message("skipped: no sparse file of 4 TiB here\n");
        skip();
    }
    struct bsw_results results;
    assert_int_equal(bsw_results_read(path, &results, &err), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "the file has 4398046511104"));
}

UNIT_TEST(what_is_no_result_is_named)
{
    static const struct {
        const char *name, *data, *error;
    } cases[] = {{"v.txt", "1.0 2.0 3.0\n4 5 6\n", "v.txt: is text, which is not read; "},
                 {"short.csv", "a,b\n", "short.csv: is text, "},
                 {"base.fbin", "\1\2\3\4\5\6\7\10\11", "base.fbin: holds vectors, not neighbours"},
                 {"odd", "\1\2\3\4\5\6\7\10\11", ": no result; names of vectors end in .fvecs"},
                 {"none", "", "none: empty"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = write_test_file(cases[i].name, cases[i].data, strlen(cases[i].data));
        struct bsw_results results;
        assert_int_equal(bsw_results_read(path, &results, &err), BSW_ERROR_BAD_DATA);
        if (!strstr(err.message, cases[i].error)) fail_msg("%s", err.message);
    }
}

UNIT_TEST(siftsmall_truth_is_read)
{
    const char *folder = getenv("BITSWEEP_SHARED_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/siftsmall_groundtruth.ivecs", folder ? folder : "");
    if (!folder || access(path, R_OK) != 0) {
        print_message("skipped: BITSWEEP_SHARED_DATA names no folder with "
                      "siftsmall_groundtruth.ivecs\n");
        skip();
    }
    struct bsw_results results;
    assert_int_equal(bsw_results_read(path, &results, &err), BSW_OK);
    assert_int_equal(results.num_queries, 100);
    assert_int_equal(results.k, 100);
    bsw_results_deinit(&results);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
