// SPDX-License-Identifier: Apache-2.0
// Written vectors are read back as they were, and nothing is left of a file that was not finished.
#include "common/base/file.h"
#include "common/codes/code_layout.h"
#include "common/rows/vectors.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/vector_images.h"
#include "unit_test.h"

static struct bsw_error err;

// The image's numbers through the writer, in two parts and out of order.
static void write_rows(const char *path, enum bsw_vector_type type, uint32_t dims, size_t num_rows)
{
    bsw_vector_writer *writer;
    size_t row_bytes = dims * bsw_vector_type_bytes(type), half = num_rows / 2;
    unsigned char *rows = malloc(num_rows * row_bytes);
    assert_non_null(rows);
    for (size_t i = 0; i < num_rows * row_bytes; i++)
        rows[i] = image_byte(i / row_bytes, i % row_bytes);
    enum bsw_status status = bsw_vector_writer_create(path, type, dims, num_rows, 0, &writer, &err);
    if (status != BSW_OK) fail_msg("%s", err.message);
    assert_int_equal(
        bsw_vector_writer_put(writer, half, num_rows - half, rows + half * row_bytes, &err),
        BSW_OK);
    assert_int_equal(bsw_vector_writer_put(writer, 0, half, rows, &err), BSW_OK);
    assert_int_equal(bsw_vector_writer_put(writer, num_rows, 1, rows, &err), BSW_ERROR_USAGE);
    assert_false(bsw_file_exists(path));
    assert_int_equal(bsw_vector_writer_finish(writer, &err), BSW_OK);
    bsw_vector_writer_destroy(&writer);
    free(rows);
}

// As read.
static void check_rows(const char *path, enum bsw_vector_type type, uint32_t dims, size_t num_rows)
{
    bsw_vectors *vectors;
    size_t row_bytes = dims * bsw_vector_type_bytes(type);
    unsigned char *rows = malloc(num_rows * row_bytes);
    assert_non_null(rows);
    if (bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, &err) != BSW_OK) fail_msg("%s", err.message);
    assert_int_equal(bsw_vectors_type(vectors), type);
    assert_int_equal(bsw_vectors_dims(vectors), dims);
    assert_int_equal(bsw_vectors_num_rows(vectors), num_rows);
    assert_int_equal(bsw_vectors_read(vectors, 0, num_rows, rows, &err), BSW_OK);
    assert_int_equal(find_wrong_row(rows, 0, num_rows, row_bytes), num_rows);
    bsw_vectors_close(&vectors);
    free(rows);
}

UNIT_TEST(what_is_written_is_read)
{
    static const struct {
        const char *name;
        enum bsw_vector_type type;
    } kinds[] = {{"w.fvecs", BSW_VECTOR_FLOAT32}, {"w.bvecs", BSW_VECTOR_UINT8},
                 {"w.fbin", BSW_VECTOR_FLOAT32},  {"w.u8bin", BSW_VECTOR_UINT8},
                 {"w.i8bin", BSW_VECTOR_INT8},    {"w4.npy", BSW_VECTOR_FLOAT32},
                 {"w2.npy", BSW_VECTOR_FLOAT16},  {"u1.npy", BSW_VECTOR_UINT8},
                 {"i1.npy", BSW_VECTOR_INT8}};
    static const struct {
        uint32_t dims;
        size_t num_rows;
    } shapes[] = {{1, 1}, {37, 5}, {100, 1500}, {BSW_MAX_DIMS, 3}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            const char *path = path_of(kinds[i].name);
            write_rows(path, kinds[i].type, shapes[s].dims, shapes[s].num_rows);
            check_rows(path, kinds[i].type, shapes[s].dims, shapes[s].num_rows);
            assert_int_equal(unlink(path), 0);
        }
    }
}

// The bytes are those of images that were made without the writer.
UNIT_TEST(the_bytes_are_those_of_the_format)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        const struct image_kind *kind = &image_kinds[i];
        static unsigned char bytes[8192];
        if (kind->form != FORM_VECS && kind->form != FORM_BIN) continue;
        struct image image = make_image(kind, 30, 37);
        const char *path = path_of(kind->name);
        write_rows(path, kind->type, 37, 30);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(bytes, 1, sizeof bytes, file), image.bytes);
        fclose(file);
        assert_memory_equal(bytes, image.data, image.bytes);
        assert_int_equal(unlink(path), 0);
        free(image.data);
    }
}

// Beyond 2^32 - 1 rows the header has 16 bytes; one row of them is written, the rest a hole.
UNIT_TEST(many_rows_get_the_wide_header)
{
    static const uint64_t counts[] = {UINT32_MAX, (uint64_t)UINT32_MAX + 1};
    for (size_t i = 0; i < 2; i++) {
        const char *path = path_of("many.u8bin");
        bsw_vector_writer *writer;
        bsw_vectors *vectors;
        assert_int_equal(
            bsw_vector_writer_create(path, BSW_VECTOR_UINT8, 1, counts[i], 1, &writer, &err),
            BSW_OK);
        assert_int_equal(bsw_vector_writer_put(writer, counts[i] - 1, 1, "x", &err), BSW_OK);
        assert_int_equal(bsw_vector_writer_finish(writer, &err), BSW_OK);
        bsw_vector_writer_destroy(&writer);
        if (bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, &err) != BSW_OK)
            fail_msg("%s", err.message);
        assert_true(bsw_vectors_num_rows(vectors) == counts[i]);
        assert_true(bsw_vectors_file_bytes(vectors) == counts[i] + (i == 0 ? 8 : 16));
        bsw_vectors_close(&vectors);
        assert_int_equal(unlink(path), 0);
    }
}

static void assert_refused(const char *name, enum bsw_vector_type type, uint32_t dims,
                           uint64_t num_rows, enum bsw_status expected)
{
    bsw_vector_writer *writer = (bsw_vector_writer *)&err;
    assert_int_equal(
        bsw_vector_writer_create(path_of(name), type, dims, num_rows, 0, &writer, &err), expected);
    assert_null(writer);
}

UNIT_TEST(what_cannot_be_written_is_refused)
{
    size_t before = count_test_files();
    assert_refused("a.hdf5", BSW_VECTOR_FLOAT32, 3, 3, BSW_ERROR_USAGE);
    assert_refused("a.fbin", BSW_VECTOR_UINT8, 3, 3, BSW_ERROR_USAGE);
    assert_refused("a.ivecs", BSW_VECTOR_FLOAT32, 3, 3, BSW_ERROR_USAGE);
    assert_refused("a.npy", BSW_VECTOR_INT32, 3, 3, BSW_ERROR_USAGE);
    assert_refused("a.fbin", BSW_VECTOR_FLOAT32, 0, 3, BSW_ERROR_TOO_LARGE);
    assert_refused("a.fbin", BSW_VECTOR_FLOAT32, BSW_MAX_DIMS + 1, 3, BSW_ERROR_TOO_LARGE);
    assert_refused("a.fbin", BSW_VECTOR_FLOAT32, 3, 0, BSW_ERROR_TOO_LARGE);
    assert_refused("a.fbin", BSW_VECTOR_FLOAT32, 3, UINT64_MAX / 8, BSW_ERROR_TOO_LARGE);
    assert_refused("nowhere/a.fbin", BSW_VECTOR_FLOAT32, 3, 3, BSW_ERROR_IO);
    write_test_file("there.fbin", "x", 1);
    assert_refused("there.fbin", BSW_VECTOR_FLOAT32, 3, 3, BSW_ERROR_USAGE);
    assert_int_equal(count_test_files(), before + 1);
}

UNIT_TEST(an_unfinished_file_leaves_nothing)
{
    bsw_vector_writer *writer;
    size_t before = count_test_files();
    assert_int_equal(
        bsw_vector_writer_create(path_of("b.fbin"), BSW_VECTOR_FLOAT32, 3, 3, 0, &writer, &err),
        BSW_OK);
    assert_int_equal(count_test_files(), before + 1);
    bsw_vector_writer_destroy(&writer);
    assert_null(writer);
    bsw_vector_writer_destroy(&writer);
    assert_int_equal(count_test_files(), before);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
