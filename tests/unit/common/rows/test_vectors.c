// SPDX-License-Identifier: Apache-2.0
// Vector sources: what is in a file comes out, whole, by blocks and by range.
#include <pthread.h>

#include "common/codes/code_layout.h"
#include "common/rows/synth.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/vector_images.h"
#include "unit_test.h"

static struct bsw_error err;

static const char *write_image(const struct image_kind *kind, uint64_t num_rows, uint32_t dims)
{
    struct image image = make_image(kind, num_rows, dims);
    const char *path = write_test_file(kind->name, image.data, image.bytes);
    free(image.data);
    return path;
}

static bsw_vectors *open_source(const char *source, uint64_t first, uint64_t last)
{
    bsw_vectors *vectors;
    if (bsw_vectors_open(source, (struct bsw_row_range){first, last}, &vectors, &err) != BSW_OK)
        fail_msg("%s", err.message);
    return vectors;
}

// Reads rows into a buffer of exactly their size and compares them with the image's.
static void assert_rows(const bsw_vectors *vectors, uint64_t first_row, size_t num_rows)
{
    size_t row_bytes = bsw_vectors_row_bytes(vectors);
    unsigned char *rows = malloc(num_rows * row_bytes + 1);
    assert_non_null(rows);
    rows[num_rows * row_bytes] = 0xa5;
    assert_int_equal(bsw_vectors_read(vectors, first_row, num_rows, rows, &err), BSW_OK);
    assert_int_equal(find_wrong_row(rows, first_row, num_rows, row_bytes), num_rows);
    assert_int_equal(rows[num_rows * row_bytes], 0xa5);
    free(rows);
}

static void assert_refused(const char *source, uint64_t first, uint64_t last,
                           enum bsw_status expected, const char *text)
{
    bsw_vectors *vectors = (bsw_vectors *)&err;
    assert_int_equal(bsw_vectors_open(source, (struct bsw_row_range){first, last}, &vectors, &err),
                     expected);
    assert_null(vectors);
    if (!strstr(err.message, text)) fail_msg("'%s' is not in '%s'", text, err.message);
}

static int is_corpus(const struct image_kind *kind)
{
    return kind->type != BSW_VECTOR_INT32;
}

UNIT_TEST(every_format_is_read_whole)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        const struct image_kind *kind = &image_kinds[i];
        if (!is_corpus(kind)) continue;
        const char *path = write_image(kind, 200, 37);
        bsw_vectors *vectors = open_source(path, 0, UINT64_MAX);
        assert_string_equal(bsw_vectors_name(vectors), path);
        assert_int_equal(bsw_vectors_type(vectors), kind->type);
        assert_int_equal(bsw_vectors_dims(vectors), 37);
        assert_int_equal(bsw_vectors_first_row(vectors), 0);
        assert_int_equal(bsw_vectors_num_rows(vectors), 200);
        assert_int_equal(bsw_vectors_source_rows(vectors), 200);
        assert_int_equal(bsw_vectors_row_bytes(vectors), 37 * kind->number_bytes);
        struct stat facts;
        assert_int_equal(stat(path, &facts), 0);
        assert_int_equal(bsw_vectors_file_bytes(vectors), facts.st_size);
        assert_rows(vectors, 0, 200);
        bsw_vectors_close(&vectors);
        assert_null(vectors);
        bsw_vectors_close(&vectors);
    }
}

UNIT_TEST(every_format_is_read_by_blocks)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        if (!is_corpus(&image_kinds[i])) continue;
        bsw_vectors *vectors = open_source(write_image(&image_kinds[i], 200, 37), 0, UINT64_MAX);
        uint64_t seed = i;
        for (uint64_t row = 0; row < 200;) {
            size_t rows = 1 + (seed = bsw_hash(seed)) % 40;
            if (rows > 200 - row) rows = 200 - (size_t)row;
            assert_rows(vectors, row, rows);
            row += rows;
        }
        assert_rows(vectors, 200, 0);
        bsw_vectors_close(&vectors);
    }
}

UNIT_TEST(every_format_is_read_by_range)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        if (!is_corpus(&image_kinds[i])) continue;
        const char *path = write_image(&image_kinds[i], 200, 37);
        bsw_vectors *vectors = open_source(path, 50, 120);
        assert_int_equal(bsw_vectors_first_row(vectors), 50);
        assert_int_equal(bsw_vectors_num_rows(vectors), 70);
        assert_int_equal(bsw_vectors_source_rows(vectors), 200);
        assert_rows(vectors, 50, 70);
        assert_rows(vectors, 119, 1);
        bsw_vectors_close(&vectors);
        vectors = open_source(path, 199, UINT64_MAX);
        assert_int_equal(bsw_vectors_num_rows(vectors), 1);
        assert_rows(vectors, 199, 1);
        bsw_vectors_close(&vectors);
    }
}

UNIT_TEST(one_row_files_are_read)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        if (!is_corpus(&image_kinds[i])) continue;
        bsw_vectors *vectors = open_source(write_image(&image_kinds[i], 1, 1), 0, UINT64_MAX);
        assert_int_equal(bsw_vectors_num_rows(vectors), 1);
        assert_rows(vectors, 0, 1);
        bsw_vectors_close(&vectors);
    }
}

UNIT_TEST(reads_outside_the_range_are_refused)
{
    bsw_vectors *vectors = open_source(write_image(&image_kinds[3], 200, 4), 50, 120);
    static const struct {
        uint64_t first;
        size_t count;
    } cases[] = {{49, 1},   {119, 2}, {120, 1},           {121, 0},
                 {0, 0},    {50, 71}, {60, SIZE_MAX},     {UINT64_MAX, 2},
                 {200, 10}, {0, 50},  {51, SIZE_MAX - 50}};
    char untouched[16] = "untouched";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(bsw_vectors_read(vectors, cases[i].first, cases[i].count, untouched, &err),
                         BSW_ERROR_USAGE);
    }
    assert_string_equal(untouched, "untouched");
    bsw_vectors_close(&vectors);
}

UNIT_TEST(wrong_ranges_are_refused_with_the_numbers)
{
    const char *path = write_image(&image_kinds[3], 200, 4);
    char text[600];
    snprintf(text, sizeof text, "--rows 10:500: %s has 200 rows", path);
    assert_refused(path, 10, 500, BSW_ERROR_USAGE, text);
    snprintf(text, sizeof text, "--rows 200:: %s has 200 rows", path);
    assert_refused(path, 200, UINT64_MAX, BSW_ERROR_USAGE, text);
    snprintf(text, sizeof text, "--rows 10:10 is empty: %s has 200 rows", path);
    assert_refused(path, 10, 10, BSW_ERROR_USAGE, text);
    assert_refused(path, 20, 10, BSW_ERROR_USAGE, "--rows 20:10 is empty");
    assert_refused("synth:count=10,dims=4", 0, 11, BSW_ERROR_USAGE,
                   "--rows 0:11: synth:count=10,dims=4 has 10 rows");
    // A part of queries is asked for by another option.
    bsw_vectors *queries;
    assert_int_equal(bsw_queries_open(path, (struct bsw_row_range){10, 500}, &queries, &err),
                     BSW_ERROR_USAGE);
    snprintf(text, sizeof text, "--query-rows 10:500: %s has 200 rows", path);
    assert_string_equal(err.message, text);
}

// Rows of .vecs files come through a block; these need several, the last of them partial.
UNIT_TEST(large_vecs_files_are_stripped_block_by_block)
{
    bsw_vectors *vectors = open_source(write_image(&image_kinds[0], 900, 500), 0, UINT64_MAX);
    assert_rows(vectors, 0, 900);
    assert_rows(vectors, 1, 898);
    bsw_vectors_close(&vectors);
    vectors = open_source(write_image(&image_kinds[0], 5, BSW_MAX_DIMS), 0, UINT64_MAX);
    assert_rows(vectors, 0, 5);
    bsw_vectors_close(&vectors);
}

UNIT_TEST(vecs_row_with_other_dims_is_named)
{
    for (size_t i = 0; i < 2; i++) {
        struct image image = make_image(&image_kinds[i], 900, 500);
        const uint32_t wrong = 499;
        memcpy(image.data + 777 * (4 + 500 * image_kinds[i].number_bytes), &wrong, 4);
        const char *path = write_test_file(image_kinds[i].name, image.data, image.bytes);
        bsw_vectors *vectors = open_source(path, 100, UINT64_MAX);
        assert_rows(vectors, 100, 677);
        assert_rows(vectors, 778, 122);
        char text[600];
        snprintf(text, sizeof text, "%s: row 777 says 499 dims, the first row 500", path);
        assert_int_equal(bsw_vectors_read(vectors, 100, 800, image.data, &err), BSW_ERROR_BAD_DATA);
        assert_string_equal(err.message, text);
        bsw_vectors_close(&vectors);
        free(image.data);
    }
}

UNIT_TEST(file_cut_while_open_is_bad_data)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        if (!is_corpus(&image_kinds[i])) continue;
        const char *path = write_image(&image_kinds[i], 200, 8);
        bsw_vectors *vectors = open_source(path, 0, UINT64_MAX);
        assert_int_equal(truncate(path, (off_t)bsw_vectors_file_bytes(vectors) - 1), 0);
        unsigned char rows[200 * 8 * 4];
        assert_rows(vectors, 0, 199);
        assert_int_equal(bsw_vectors_read(vectors, 0, 200, rows, &err), BSW_ERROR_BAD_DATA);
        assert_non_null(strstr(err.message, "truncated"));
        bsw_vectors_close(&vectors);
    }
}

// A .npy file of 5 rows of 3 dims: number d of row r is 10 r + d, and `last` the very last.
static const char *write_npy(const char *name, int is_double, int is_fortran, double last)
{
    unsigned char file[512] = "\x93NUMPY\1\0";
    char dict[100];
    size_t header = (size_t)snprintf(dict, sizeof dict,
                                     "{'descr': '<f%d', 'fortran_order': %s, 'shape': (5, 3), }\n",
                                     is_double ? 8 : 4, is_fortran ? "True" : "False");
    file[8] = (unsigned char)header;
    memcpy(file + 10, dict, header);
    unsigned char *at = file + 10 + header;
    for (int i = 0; i < 15; i++) {
        int row = is_fortran ? i % 5 : i / 3, dim = is_fortran ? i / 5 : i % 3;
        double wide = i == 14 ? last : 10 * row + dim;
        float single = (float)wide;
        memcpy(at, is_double ? (const void *)&wide : &single, is_double ? 8 : 4);
        at += is_double ? 8 : 4;
    }
    return write_test_file(name, file, (size_t)(at - file));
}

UNIT_TEST(float64_and_fortran_order_are_read_where_asked_for)
{
    for (int kind = 1; kind < 4; kind++) {
        const char *path = write_npy("any.npy", kind & 1, kind >> 1, 42);
        assert_refused(path, 0, UINT64_MAX, BSW_ERROR_BAD_DATA, "`bitsweep convert");
        bsw_vectors *vectors;
        assert_int_equal(bsw_vectors_open_any(path, (struct bsw_row_range){1, 5}, &vectors, &err),
                         BSW_OK);
        assert_int_equal(bsw_vectors_type(vectors), BSW_VECTOR_FLOAT32);
        assert_int_equal(bsw_vectors_is_double(vectors), kind & 1);
        float rows[4][3];
        assert_int_equal(bsw_vectors_read(vectors, 1, 3, rows, &err), BSW_OK);
        assert_int_equal(bsw_vectors_read(vectors, 4, 1, rows[3], &err), BSW_OK);
        for (int i = 0; i < 12; i++)
            assert_true(rows[i / 3][i % 3] == (float)(10 * (i / 3 + 1) + i % 3));
        bsw_vectors_close(&vectors);
    }
}

UNIT_TEST(a_float64_beyond_float32_is_refused_by_its_place)
{
    for (int is_fortran = 0; is_fortran < 2; is_fortran++) {
        const char *path = write_npy("far.npy", 1, is_fortran, 1e39);
        bsw_vectors *vectors;
        float rows[5][3];
        assert_int_equal(bsw_vectors_open_any(path, BSW_ALL_ROWS, &vectors, &err), BSW_OK);
        assert_int_equal(bsw_vectors_read(vectors, 0, 5, rows, &err), BSW_ERROR_BAD_DATA);
        assert_non_null(strstr(err.message, "far.npy: row 4: number 2 is 1e+39, which float32"));
        bsw_vectors_close(&vectors);
    }
}

UNIT_TEST(what_is_no_vector_file_is_refused)
{
    assert_refused(path_of("missing.fbin"), 0, UINT64_MAX, BSW_ERROR_IO, "cannot open");
    assert_refused(write_test_file("empty.npy", "", 0), 0, UINT64_MAX, BSW_ERROR_BAD_DATA,
                   "empty.npy: empty");
    assert_refused(write_test_file("a.csv", "1,2\n", 4), 0, UINT64_MAX, BSW_ERROR_USAGE,
                   "the name must end in");
    assert_refused(write_image(&image_kinds[2], 3, 5), 0, UINT64_MAX, BSW_ERROR_USAGE,
                   "hold the ids of a ground truth, not vectors");
    assert_refused(write_test_file("short.fbin", "abcdefghi", 9), 0, UINT64_MAX, BSW_ERROR_BAD_DATA,
                   "must be 1 to 65536");
    assert_refused("", 0, UINT64_MAX, BSW_ERROR_IO, "cannot open");
}

UNIT_TEST(pipes_and_folders_are_refused_at_once)
{
    const char *pipe_path = path_of("pipe.fbin"), *folder = path_of("folder.fbin");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    alarm(20); // a hang ends the program
    assert_refused(pipe_path, 0, UINT64_MAX, BSW_ERROR_IO, "not a regular file");
    assert_refused(folder, 0, UINT64_MAX, BSW_ERROR_IO, "not a regular file");
    assert_refused("/dev/zero", 0, UINT64_MAX, BSW_ERROR_IO, "not a regular file");
    alarm(0);
}

UNIT_TEST(synth_is_a_source_like_a_file)
{
    const char *source = "synth:count=1K,dims=20,seed=7,type=uint8";
    bsw_vectors *vectors = open_source(source, 100, 300);
    assert_string_equal(bsw_vectors_name(vectors), source);
    assert_int_equal(bsw_vectors_type(vectors), BSW_VECTOR_UINT8);
    assert_int_equal(bsw_vectors_dims(vectors), 20);
    assert_int_equal(bsw_vectors_num_rows(vectors), 200);
    assert_int_equal(bsw_vectors_source_rows(vectors), 1000);
    assert_int_equal(bsw_vectors_row_bytes(vectors), 20);
    assert_int_equal(bsw_vectors_file_bytes(vectors), 0);
    unsigned char rows[200][20], expected[200][20];
    const struct bsw_synth synth = {.count = 1000, .dims = 20, .seed = 7, .type = BSW_VECTOR_UINT8};
    bsw_synth_rows(&synth, 100, 200, expected);
    assert_int_equal(bsw_vectors_read(vectors, 100, 200, rows, &err), BSW_OK);
    assert_memory_equal(rows, expected, sizeof rows);
    assert_int_equal(bsw_vectors_read(vectors, 99, 1, rows, &err), BSW_ERROR_USAGE);
    bsw_vectors_close(&vectors);
    assert_refused("synth:count=5", 0, UINT64_MAX, BSW_ERROR_USAGE, "dims=D must be there");
}

struct reader {
    const bsw_vectors *vectors;
    uint64_t seed;
    int num_wrong;
};

static void *read_blocks(void *argument)
{
    struct reader *reader = argument;
    size_t row_bytes = bsw_vectors_row_bytes(reader->vectors);
    unsigned char *rows = malloc(64 * row_bytes);
    for (int i = 0; rows && i < 200; i++) {
        reader->seed = bsw_hash(reader->seed);
        uint64_t first = reader->seed % (2000 - 64);
        size_t count = 1 + reader->seed / 4096 % 64;
        reader->num_wrong +=
            bsw_vectors_read(reader->vectors, first, count, rows, NULL) != BSW_OK ||
            find_wrong_row(rows, first, count, row_bytes) != count;
    }
    free(rows);
    return NULL;
}

UNIT_TEST(several_threads_read_one_source)
{
    static const size_t kinds[] = {0, 3, 9};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bsw_vectors *vectors =
            open_source(write_image(&image_kinds[kinds[i]], 2000, 16), 0, UINT64_MAX);
        struct reader readers[4];
        pthread_t threads[4];
        for (size_t t = 0; t < 4; t++) {
            readers[t] = (struct reader){.vectors = vectors, .seed = t};
            assert_int_equal(pthread_create(&threads[t], NULL, read_blocks, &readers[t]), 0);
        }
        for (size_t t = 0; t < 4; t++) {
            assert_int_equal(pthread_join(threads[t], NULL), 0);
            assert_int_equal(readers[t].num_wrong, 0);
        }
        bsw_vectors_close(&vectors);
    }
}

static void assert_shape(const char *path, enum bsw_vector_type type, uint64_t num_rows)
{
    bsw_vectors *vectors = open_source(path, 0, UINT64_MAX);
    assert_int_equal(bsw_vectors_type(vectors), type);
    assert_int_equal(bsw_vectors_num_rows(vectors), num_rows);
    assert_int_equal(bsw_vectors_dims(vectors), 128);
    unsigned char row[512];
    assert_int_equal(bsw_vectors_read(vectors, num_rows - 1, 1, row, &err), BSW_OK);
    bsw_vectors_close(&vectors);
}

UNIT_TEST(sample_in_the_repository_has_its_shape)
{
    assert_shape(TEST_DATA_FOLDER "/sift20k_base.u8bin", BSW_VECTOR_UINT8, 20000);
    assert_shape(TEST_DATA_FOLDER "/sift20k_query.u8bin", BSW_VECTOR_UINT8, 200);
}

UNIT_TEST(siftsmall_has_its_shape)
{
    const char *folder = getenv("BITSWEEP_SHARED_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/siftsmall_base.fvecs", folder ? folder : "");
    if (!folder || access(path, R_OK) != 0) {
        print_message("skipped: BITSWEEP_SHARED_DATA names no folder with siftsmall_base.fvecs\n");
        skip();
    }
    assert_shape(path, BSW_VECTOR_FLOAT32, 10000);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
