// SPDX-License-Identifier: Apache-2.0
// Results in NumPy's .npz: written in any order and in two runs, read back; what is no such file is
// refused by what is wrong with it.
#include "common/base/arithmetic.h"
#include "common/files/npz_file.h"
#include "common/files/result_file.h"
#include "tests/unit/temporary_folder.h"
#include "unit_test.h"

static struct bsw_error err;

enum { QUERIES = 300, K = 70, PLACES = QUERIES * K };
static int64_t ids[PLACES];
static float values[PLACES];

static void make_numbers(int is_wide)
{
    for (size_t i = 0; i < PLACES; i++) {
        ids[i] = (int64_t)(bsw_hash(i) >> (is_wide ? 1 : 33));
        values[i] = (float)(bsw_hash(i) >> 40);
    }
}

static void put(bsw_result_writer *writer, size_t first, size_t count)
{
    assert_ok(
        bsw_result_writer_put(writer, first, count, ids + first * K, values + first * K, &err),
        &err);
}

static void assert_whole(const char *path)
{
    struct bsw_results results;
    assert_ok(bsw_results_read(path, &results, &err), &err);
    assert_int_equal(results.num_queries, QUERIES);
    assert_int_equal(results.k, K);
    assert_memory_equal(results.ids, ids, sizeof ids);
    assert_memory_equal(results.values, values, sizeof values);
    bsw_results_deinit(&results);
}

UNIT_TEST(the_checksum_is_that_of_zip)
{
    assert_int_equal(bsw_npz_sum(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(bsw_npz_sum(bsw_npz_sum(0, "1234", 4), "56789", 5), 0xcbf43926);
    assert_int_equal(bsw_npz_sum(0, "", 0), 0);
}

// What `unzip -t` and numpy.load look at: CRC and place of a member as the directory has them.
static void assert_directory(const char *path, int is_wide)
{
    struct bsw_buffer file = {0};
    assert_ok(bsw_file_read_all(path, UINT64_MAX, &file, &err), &err);
    size_t id_bytes = (size_t)PLACES * (is_wide ? 8 : 4);
    const unsigned char *at = file.data + file.bytes - BSW_NPZ_TAIL_BYTES;
    for (int which = 0; which < 2; which++) {
        size_t name_bytes = which == 0 ? 7 : 10, start = 30 + name_bytes + 20;
        size_t bytes = BSW_NPZ_HEAD_BYTES - start + (which == 0 ? id_bytes : sizeof values);
        uint64_t size, place;
        uint32_t sum;
        assert_memory_equal(at, "PK\1\2", 4);
        memcpy(&sum, at + 16, sizeof sum);
        memcpy(&size, at + 46 + name_bytes + 4, sizeof size);
        memcpy(&place, at + 46 + name_bytes + 20, sizeof place);
        assert_int_equal(size, bytes);
        assert_int_equal(place, which == 0 ? 0 : BSW_NPZ_HEAD_BYTES + id_bytes);
        assert_memory_equal(file.data + place, "PK\3\4", 4);
        assert_memory_equal(file.data + place + 14, at + 16, 4); // the same in the member's head
        assert_int_equal(bsw_npz_sum(0, file.data + place + start, bytes), sum);
        at += 46 + name_bytes + 28;
    }
    assert_memory_equal(file.data + file.bytes - 22, "PK\5\6", 4);
    bsw_buffer_deinit(&file);
}

UNIT_TEST(batches_in_any_order_are_read_back)
{
    for (int is_wide = 0; is_wide <= 1; is_wide++) {
        const char *path = path_of(is_wide ? "wide.npz" : "r.npz");
        bsw_result_writer *writer;
        make_numbers(is_wide);
        assert_ok(bsw_result_writer_create(path, QUERIES, K, is_wide, 0, &writer, &err), &err);
        put(writer, 200, 100);
        put(writer, 0, 1);
        put(writer, 1, 199);
        assert_ok(bsw_result_writer_finish(writer, &err), &err);
        bsw_result_writer_destroy(&writer);
        assert_whole(path);
        assert_directory(path, is_wide);
    }
}

UNIT_TEST(a_second_run_goes_on_with_it)
{
    const char *path = path_of("again.npz");
    bsw_result_writer *writer;
    int is_same;
    make_numbers(0);
    assert_ok(bsw_result_writer_open(path, QUERIES, K, 0, &writer, &err), &err);
    assert_ok(bsw_result_writer_begin(writer, 0, &err), &err);
    put(writer, 0, 250);
    uint64_t digest = bsw_result_writer_digest(writer);
    bsw_result_writer_leave(&writer);
    assert_ok(bsw_result_writer_open(path, QUERIES, K, 0, &writer, &err), &err);
    assert_ok(bsw_result_writer_begin(writer, 1, &err), &err);
    assert_ok(bsw_result_writer_check(writer, 0, 250, digest, &is_same, &err), &err);
    assert_true(is_same);
    put(writer, 250, 50);
    assert_ok(bsw_result_writer_finish(writer, &err), &err);
    bsw_result_writer_destroy(&writer);
    assert_whole(path);
}

UNIT_TEST(one_array_alone_is_no_result)
{
    bsw_result_writer *writer;
    assert_int_equal(bsw_result_writer_create(path_of("r.npy"), 2, 3, 0, 0, &writer, &err),
                     BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "r.npy: a result is two arrays, which .npz holds"));
    assert_null(writer);
}

// ---- hostile files ----

// A whole file of 2 queries x 3 in memory.
static size_t make_file(unsigned char file[1024])
{
    static const int64_t few_ids[6] = {5, 0, 7, 1, -1, -1};
    static const float few_values[6] = {0.5f, 0.25f, -1.0f, 3.0f, -1.0f, 1.0f};
    struct bsw_buffer whole = {0};
    const char *path = path_of("few.npz");
    bsw_result_writer *writer;
    assert_ok(bsw_result_writer_create(path, 2, 3, 0, 1, &writer, &err), &err);
    assert_ok(bsw_result_writer_put(writer, 0, 2, few_ids, few_values, &err), &err);
    assert_ok(bsw_result_writer_finish(writer, &err), &err);
    bsw_result_writer_destroy(&writer);
    assert_ok(bsw_file_read_all(path, 1024, &whole, &err), &err);
    size_t bytes = whole.bytes;
    memcpy(file, whole.data, bytes);
    bsw_buffer_deinit(&whole);
    return bytes;
}

// Reads a copy of exactly so many bytes, so that a sanitizer sees every one.
static enum bsw_status parse(const unsigned char *file, size_t bytes)
{
    struct bsw_results results;
    unsigned char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    memcpy(copy + 1, file, bytes);
    enum bsw_status status = bsw_results_parse("r.npz", copy + 1, bytes, &results, &err);
    if (status == BSW_OK)
        for (size_t i = 0; i < results.num_queries * results.k; i++)
            assert_true(results.ids[i] >= -1);
    bsw_results_deinit(&results);
    free(copy);
    return status;
}

UNIT_TEST(what_cuts_an_array_is_refused)
{
    unsigned char file[1024];
    size_t bytes = make_file(file);
    assert_int_equal(bytes, 2 * BSW_NPZ_HEAD_BYTES + 48 + BSW_NPZ_TAIL_BYTES);
    for (size_t cut = 0; cut <= bytes; cut++) {
        int is_whole = cut >= bytes - BSW_NPZ_TAIL_BYTES; // the directory is not looked at
        assert_int_equal(parse(file, cut), is_whole ? BSW_OK : BSW_ERROR_BAD_DATA);
        if (!is_whole) assert_non_null(strstr(err.message, "r.npz: "));
    }
}

UNIT_TEST(what_is_wrong_is_named)
{
    static const struct {
        size_t place;
        unsigned char byte;
        const char *error;
    } cases[] = {
        {0, 'Q', "does not begin as a .npz file does"},
        {6, 8, "is packed or written as a stream"},
        {8, 8, "is packed or written as a stream"},
        {30, 'I', "has no array 'ids'"},
        {27, 255, "truncated inside an array"},
        {47, 1, "is packed or written as a stream"}, // the extra field ends before the size
        {BSW_NPZ_HEAD_BYTES + 24 + 30, 'V', "has no array 'values'"}};
    unsigned char file[1024];
    size_t bytes = make_file(file);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char before = file[cases[i].place];
        file[cases[i].place] = cases[i].byte;
        assert_int_equal(parse(file, bytes), BSW_ERROR_BAD_DATA);
        if (!strstr(err.message, cases[i].error)) fail_msg("%zu: %s", i, err.message);
        file[cases[i].place] = before;
    }
    // Behind the member's head and the first ten bytes of its .npy file.
    char *shape = strstr((char *)file + BSW_NPZ_HEAD_BYTES + 24 + 60 + 10, "(2, 3)");
    assert_non_null(shape);
    memcpy(shape, "(3, 2)", 6);
    assert_int_equal(parse(file, bytes), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "ids are 2 x 3, values 3 x 2"));
}

UNIT_TEST(mutated_files_are_read_or_refused)
{
    unsigned char file[1024], changed[1024];
    size_t bytes = make_file(file);
    for (uint64_t run = 0; run < 6000; run++) {
        uint64_t seed = bsw_hash(run);
        memcpy(changed, file, bytes);
        for (size_t i = 0; i < 1 + seed % 3; i++) {
            uint64_t change = bsw_hash2(seed, i);
            changed[change % bytes] = (unsigned char)(change >> 32);
        }
        enum bsw_status status = parse(changed, seed >> 8 & 3 ? bytes : (seed >> 16) % bytes);
        assert_true(status == BSW_OK || status == BSW_ERROR_BAD_DATA);
    }
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
