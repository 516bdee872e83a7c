// SPDX-License-Identifier: Apache-2.0
// HDF5 files made here by libhdf5: what they hold is read, what cannot be is refused with its
// cause, and a damaged file is never more than an error.

#define H5_USE_110_API
#include <hdf5.h>

#include "common/files/result_file.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/vector_images.h"
#include "unit_test.h"

enum { ROWS = 157, DIMS = 23 };

static struct bsw_error err;

// ---- files ----

enum storage { CONTIGUOUS, COMPACT, CHUNKED, DEFLATED };

static hid_t new_file(const char *name)
{
    hid_t file = H5Fcreate(path_of(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static void set_storage(hid_t made, enum storage storage)
{
    const hsize_t chunk[2] = {20, 10};
    if (storage == COMPACT) assert_true(H5Pset_layout(made, H5D_COMPACT) >= 0);
    if (storage >= CHUNKED) assert_true(H5Pset_chunk(made, 2, chunk) >= 0);
    if (storage == DEFLATED) assert_true(H5Pset_shuffle(made) >= 0 && H5Pset_deflate(made, 4) >= 0);
}

// numbers NULL: none are written.
static void add_set(hid_t file, const char *name, hid_t type, hsize_t rows, hsize_t columns,
                    enum storage storage, const void *numbers)
{
    const hsize_t lengths[2] = {rows, columns};
    hid_t space = H5Screate_simple(2, lengths, NULL), made = H5Pcreate(H5P_DATASET_CREATE);
    set_storage(made, storage);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, made, H5P_DEFAULT);
    assert_true(set >= 0);
    if (numbers) assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(set);
    H5Pclose(made);
    H5Sclose(space);
}

// The image's bytes of row and byte.
static const unsigned char *image_numbers(size_t row_bytes)
{
    static unsigned char numbers[ROWS * DIMS * 8];
    for (size_t i = 0; i < ROWS * row_bytes; i++)
        numbers[i] = image_byte(i / row_bytes, i % row_bytes);
    return numbers;
}

static void add_image(hid_t file, const char *name, hid_t type, enum storage storage)
{
    add_set(file, name, type, ROWS, DIMS, storage, image_numbers(DIMS * H5Tget_size(type)));
}

static hid_t half_type(void)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    assert_true(H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(type, 2) >= 0 &&
                H5Tset_ebias(type, 15) >= 0);
    return type;
}

// ---- reading ----

static const char *source_of(const char *file, const char *dataset)
{
    static char names[4][600];
    static unsigned next;
    char *name = names[next++ % 4];
    snprintf(name, sizeof names[0], "%s%s%s", path_of(file), *dataset ? ":" : "", dataset);
    return name;
}

static bsw_vectors *open_set(const char *file, const char *dataset)
{
    bsw_vectors *vectors;
    if (bsw_vectors_open(source_of(file, dataset), BSW_ALL_ROWS, &vectors, &err) != BSW_OK)
        fail_msg("%s", err.message);
    return vectors;
}

static void refuse(const char *file, const char *dataset, enum bsw_status expected,
                   const char *text)
{
    bsw_vectors *vectors = (bsw_vectors *)&err;
    assert_int_equal(bsw_vectors_open(source_of(file, dataset), BSW_ALL_ROWS, &vectors, &err),
                     expected);
    assert_null(vectors);
    if (!strstr(err.message, text)) fail_msg("'%s' is not in '%s'", text, err.message);
}

static void check_rows(const bsw_vectors *vectors, uint64_t first, size_t count)
{
    size_t row_bytes = bsw_vectors_row_bytes(vectors);
    unsigned char *rows = malloc(count * row_bytes + 1);
    assert_non_null(rows);
    rows[count * row_bytes] = 0xa5;
    assert_int_equal(bsw_vectors_read(vectors, first, count, rows, &err), BSW_OK);
    assert_int_equal(find_wrong_row(rows, first, count, row_bytes), count);
    assert_int_equal(rows[count * row_bytes], 0xa5);
    free(rows);
}

static void check_set(const char *file, const char *dataset, enum bsw_vector_type type)
{
    bsw_vectors *vectors = open_set(file, dataset);
    struct stat facts;
    assert_int_equal(bsw_vectors_type(vectors), type);
    assert_int_equal(bsw_vectors_dims(vectors), DIMS);
    assert_int_equal(bsw_vectors_num_rows(vectors), ROWS);
    assert_int_equal(stat(path_of(file), &facts), 0);
    assert_int_equal(bsw_vectors_file_bytes(vectors), facts.st_size);
    check_rows(vectors, 0, ROWS);
    for (uint64_t first = 0; first < ROWS; first += 13)
        check_rows(vectors, first, ROWS - first < 30 ? (size_t)(ROWS - first) : 30);
    bsw_vectors_close(&vectors);
}

UNIT_TEST(every_type_is_read)
{
    hid_t half = half_type();
    const struct {
        const char *name;
        hid_t type;
        enum bsw_vector_type expected;
    } types[] = {{"float32", H5T_IEEE_F32LE, BSW_VECTOR_FLOAT32},
                 {"float16", half, BSW_VECTOR_FLOAT16},
                 {"uint8", H5T_STD_U8LE, BSW_VECTOR_UINT8},
                 {"int8", H5T_STD_I8BE, BSW_VECTOR_INT8}};
    hid_t file = new_file("types.hdf5");
    for (size_t i = 0; i < 4; i++) add_image(file, types[i].name, types[i].type, CONTIGUOUS);
    H5Fclose(file);
    for (size_t i = 0; i < 4; i++) check_set("types.hdf5", types[i].name, types[i].expected);
    H5Tclose(half);
}

// Base, queries and ground truth have their names without being told.
UNIT_TEST(the_name_may_leave_the_dataset_out)
{
    bsw_vectors *vectors;
    struct bsw_results truth;
    int64_t ids[ROWS * DIMS];
    hid_t file = new_file("roles.h5");
    for (size_t i = 0; i < ROWS * DIMS; i++) ids[i] = (int64_t)i * 1000003;
    add_image(file, "train", H5T_IEEE_F32LE, CONTIGUOUS);
    add_set(file, "test", H5T_STD_U8LE, 7, 5, CONTIGUOUS, image_numbers(5));
    add_set(file, "neighbors", H5T_STD_I64LE, ROWS, DIMS, CONTIGUOUS, ids);
    H5Fclose(file);
    check_set("roles.h5", "", BSW_VECTOR_FLOAT32);
    assert_int_equal(bsw_queries_open(path_of("roles.h5"), BSW_ALL_ROWS, &vectors, &err), BSW_OK);
    assert_int_equal(bsw_vectors_num_rows(vectors), 7);
    bsw_vectors_close(&vectors);
    for (int is_named = 0; is_named < 2; is_named++) {
        const char *name = source_of("roles.h5", is_named ? "neighbors" : "");
        assert_int_equal(bsw_results_read(name, &truth, &err), BSW_OK);
        assert_true(truth.num_queries == ROWS && truth.k == DIMS && !truth.values);
        assert_memory_equal(truth.ids, ids, sizeof ids);
        bsw_results_deinit(&truth);
    }
    assert_int_equal(bsw_results_read(source_of("roles.h5", "train"), &truth, &err),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "float32: ids are integers"));
}

UNIT_TEST(ids_below_minus_one_are_refused)
{
    struct bsw_results truth;
    int32_t ids[6] = {0, 1, -1, 3, -2, 5};
    hid_t file = new_file("ids.hdf5");
    add_set(file, "neighbors", H5T_STD_I32LE, 2, 3, CONTIGUOUS, ids);
    H5Fclose(file);
    assert_int_equal(bsw_results_read(path_of("ids.hdf5"), &truth, &err), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "query 1, place 1: id -2"));
}

static void add_enum(hid_t file)
{
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    int8_t value = 0;
    assert_true(H5Tenum_insert(type, "FALSE", &value) >= 0);
    value = 1;
    assert_true(H5Tenum_insert(type, "TRUE", &value) >= 0);
    add_set(file, "bits", type, ROWS, DIMS, CONTIGUOUS, image_numbers(DIMS));
    H5Tclose(type);
}

// One axis, no row, other files.
static void add_odd_shapes(hid_t file)
{
    const hsize_t one[1] = {5}, two[2] = {4, 5};
    hid_t line = H5Screate_simple(1, one, NULL), matrix = H5Screate_simple(2, two, NULL);
    hid_t made = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_external(made, "/etc/passwd", 0, 80) >= 0);
    H5Dclose(H5Dcreate2(file, "line", H5T_IEEE_F32LE, line, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(file, "outside", H5T_IEEE_F32LE, matrix, H5P_DEFAULT, made, H5P_DEFAULT));
    add_set(file, "empty", H5T_IEEE_F32LE, 0, DIMS, CONTIGUOUS, NULL);
    assert_true(H5Lcreate_external(path_of("other.hdf5"), "train", file, "elsewhere", H5P_DEFAULT,
                                   H5P_DEFAULT) >= 0);
    H5Pclose(made);
    H5Sclose(matrix);
    H5Sclose(line);
}

UNIT_TEST(what_cannot_be_used_is_refused_with_its_cause)
{
    hid_t file = new_file("other.hdf5");
    add_image(file, "train", H5T_IEEE_F32LE, CONTIGUOUS);
    H5Fclose(file);
    file = new_file("bad.hdf5");
    add_image(file, "double", H5T_IEEE_F64LE, CONTIGUOUS);
    add_image(file, "reversed", H5T_IEEE_F32BE, CONTIGUOUS);
    add_image(file, "int32", H5T_STD_I32LE, CONTIGUOUS);
    add_enum(file);
    add_odd_shapes(file);
    add_image(file, "packed", H5T_STD_U8LE, DEFLATED);
    add_image(file, "compact", H5T_STD_U8LE, COMPACT);
    add_set(file, "hole", H5T_IEEE_F32LE, 1u << 30, DIMS, CHUNKED, NULL);
    add_set(file, "unwritten", H5T_IEEE_F32LE, 1u << 30, DIMS, CONTIGUOUS, NULL);
    add_set(file, "wide", H5T_STD_U8LE, 20, 65537, CONTIGUOUS, NULL);
    H5Fclose(file);
    static const struct {
        const char *dataset;
        enum bsw_status status;
        const char *text;
    } cases[] = {
        {"double", BSW_ERROR_BAD_DATA, "type float64: "},
        {"reversed", BSW_ERROR_BAD_DATA, "type float32 (big endian): "},
        {"int32", BSW_ERROR_BAD_DATA, "type int32: "},
        {"bits", BSW_ERROR_BAD_DATA, "type bool or enum"},
        {"line", BSW_ERROR_BAD_DATA, "the number of axes is 1"},
        {"outside", BSW_ERROR_BAD_DATA, "lie in other files"},
        {"empty", BSW_ERROR_BAD_DATA, "0 x 23: empty"},
        {"elsewhere", BSW_ERROR_BAD_DATA, "an external link"},
        {"packed", BSW_ERROR_BAD_DATA, "`h5repack -f NONE -l CONTI IN OUT` makes"},
        {"compact", BSW_ERROR_BAD_DATA, "`h5repack -f NONE -l CONTI IN OUT` makes"},
        {"hole", BSW_ERROR_BAD_DATA, "are in chunks"},
        {"unwritten", BSW_ERROR_BAD_DATA, "but 0 bytes"},
        {"wide", BSW_ERROR_BAD_DATA, "65537 dims"},
        {"nothing", BSW_ERROR_USAGE, "no dataset 'nothing'; the file has: bits, compact, double"},
        {"", BSW_ERROR_USAGE, "no dataset 'train'"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse("bad.hdf5", cases[i].dataset, cases[i].status, cases[i].text);
    write_test_file("text.hdf5", "no such thing", 13);
    refuse("text.hdf5", "", BSW_ERROR_BAD_DATA, "cannot be read as HDF5");
    refuse("missing.hdf5", "train", BSW_ERROR_IO, "missing.hdf5");
}

// ---- damage ----

static unsigned char *load(const char *name, size_t *bytes)
{
    static unsigned char data[1 << 16];
    FILE *file = fopen(path_of(name), "rb");
    assert_non_null(file);
    *bytes = fread(data, 1, sizeof data, file);
    assert_true(*bytes < sizeof data);
    fclose(file);
    return data;
}

// Opens and reads all; any error will do. 1: nothing was found wrong.
static int try_all(const char *path)
{
    bsw_vectors *vectors;
    static unsigned char rows[ROWS * DIMS * 4];
    if (bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, &err) != BSW_OK) return 0;
    uint64_t num_rows = bsw_vectors_num_rows(vectors);
    int is_good = num_rows <= sizeof rows / bsw_vectors_row_bytes(vectors) &&
                  bsw_vectors_read(vectors, 0, (size_t)num_rows, rows, &err) == BSW_OK;
    bsw_vectors_close(&vectors);
    return is_good;
}

UNIT_TEST(every_truncated_file_is_refused)
{
    size_t bytes;
    hid_t file = new_file("whole.hdf5");
    add_image(file, "train", H5T_IEEE_F32LE, CONTIGUOUS);
    H5Fclose(file);
    assert_true(try_all(path_of("whole.hdf5")));
    unsigned char *data = load("whole.hdf5", &bytes);
    for (size_t cut = 1; cut < bytes; cut += 397)
        assert_false(try_all(write_test_file("cut.hdf5", data, bytes - cut)));
}

// One byte after the other is changed: the file is refused, or its numbers are others.
UNIT_TEST(a_changed_byte_is_at_most_an_error)
{
    size_t bytes, num_refused = 0;
    hid_t file = new_file("whole.hdf5");
    add_set(file, "train", H5T_IEEE_F32LE, 30, DIMS, CONTIGUOUS, image_numbers(DIMS * 4));
    H5Fclose(file);
    unsigned char *data = load("whole.hdf5", &bytes);
    for (size_t i = 0; i < bytes; i += i < 1200 ? 3 : 61) {
        data[i] ^= 0xff;
        num_refused += !try_all(write_test_file("changed.hdf5", data, bytes));
        data[i] ^= 0xff;
    }
    assert_true(num_refused > 50);
}

// int64 is stored as class and flags, its 8 bytes, no offset, 64 bits.
static unsigned char *find_int64(unsigned char *data, size_t bytes)
{
    static const unsigned char type[] = {8, 0, 0, 0, 0, 0, 64, 0};
    for (size_t i = 0; i + sizeof type <= bytes; i++)
        if (memcmp(data + i, type, sizeof type) == 0) return data + i;
    fail_msg("no int64 in the file");
    return NULL;
}

UNIT_TEST(numbers_of_odd_sizes_are_refused)
{
    static const unsigned char sizes[] = {0, 9, 255};
    static int64_t ids[ROWS * DIMS];
    size_t bytes;
    hid_t file = new_file("sizes.hdf5");
    add_set(file, "neighbors", H5T_STD_I64LE, ROWS, DIMS, CONTIGUOUS, ids);
    H5Fclose(file);
    unsigned char *data = load("sizes.hdf5", &bytes), *size = find_int64(data, bytes);
    for (size_t i = 0; i < sizeof sizes; i++) {
        struct bsw_results truth;
        *size = sizes[i];
        write_test_file("changed.hdf5", data, bytes);
        assert_int_equal(bsw_results_read(path_of("changed.hdf5"), &truth, &err),
                         BSW_ERROR_BAD_DATA);
    }
}

// ---- the attribute `distance` ----

// text NULL: a number in its place.
static void add_distance(hid_t object, const char *text, int is_variable, hid_t space)
{
    hid_t type = H5Tcopy(text ? H5T_C_S1 : H5T_NATIVE_INT);
    const int number = 7;
    if (text) assert_true(H5Tset_size(type, is_variable ? H5T_VARIABLE : strlen(text)) >= 0);
    if (is_variable) assert_true(H5Tset_cset(type, H5T_CSET_UTF8) >= 0);
    hid_t attribute = H5Acreate2(object, "distance", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const void *value = !text ? (const void *)&number : is_variable ? (const void *)&text : text;
    assert_true(attribute >= 0 && H5Awrite(attribute, type, value) >= 0);
    H5Aclose(attribute);
    H5Tclose(type);
}

UNIT_TEST(a_file_says_its_distance)
{
    static const struct {
        const char *text, *read;
        int is_variable;
    } cases[] = {
        {"angular", "angular", 1},
        {"euclidean", "euclidean", 0}, // without a 0 at its end
        {"", "", 1},
        {NULL, "", 0},
        {"a\nline \x1b[1m", "a?line ?[1m", 1},
        {"a distance of a name so long that nobody has it", "a distance of a name so long th", 1},
        {"a distance of a name so long that nobody has it", "a distance of a name so long th", 0}};
    char distance[BSW_DISTANCE_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hid_t file = new_file("said.hdf5"), space = H5Screate(H5S_SCALAR);
        add_image(file, "train", H5T_STD_U8LE, CONTIGUOUS);
        add_distance(file, cases[i].text, cases[i].is_variable, space);
        H5Sclose(space);
        H5Fclose(file);
        bsw_vectors *vectors = open_set("said.hdf5", "");
        assert_int_equal(bsw_vectors_distance(vectors, distance, &err), BSW_OK);
        assert_string_equal(distance, cases[i].read);
        bsw_vectors_close(&vectors);
    }
}

// That of a dataset, several texts, another kind of source.
UNIT_TEST(what_says_no_distance)
{
    char distance[BSW_DISTANCE_BYTES];
    const hsize_t two = 2;
    hid_t file = new_file("silent.hdf5"), space = H5Screate(H5S_SCALAR);
    add_image(file, "train", H5T_STD_U8LE, CONTIGUOUS);
    hid_t set = H5Dopen2(file, "train", H5P_DEFAULT);
    add_distance(set, "angular", 1, space);
    H5Dclose(set);
    H5Fclose(file);
    bsw_vectors *vectors = open_set("silent.hdf5", "");
    assert_int_equal(bsw_vectors_distance(vectors, distance, &err), BSW_OK);
    assert_string_equal(distance, "");
    bsw_vectors_close(&vectors);
    vectors = NULL;
    assert_int_equal(bsw_vectors_open("synth:count=9,dims=4", BSW_ALL_ROWS, &vectors, &err),
                     BSW_OK);
    assert_int_equal(bsw_vectors_distance(vectors, distance, &err), BSW_OK);
    assert_string_equal(distance, "");
    bsw_vectors_close(&vectors);

    file = new_file("pair.hdf5");
    hid_t pair = H5Screate_simple(1, &two, NULL);
    add_image(file, "train", H5T_STD_U8LE, CONTIGUOUS);
    hid_t type = H5Tcopy(H5T_C_S1), attribute;
    assert_true(H5Tset_size(type, 4) >= 0);
    attribute = H5Acreate2(file, "distance", type, pair, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, type, "ip  dot ") >= 0);
    H5Aclose(attribute);
    H5Tclose(type);
    H5Fclose(file);
    vectors = open_set("pair.hdf5", "");
    assert_int_equal(bsw_vectors_distance(vectors, distance, &err), BSW_OK);
    assert_string_equal(distance, "");
    bsw_vectors_close(&vectors);

    H5Sclose(pair);
    H5Sclose(space);
}

// A thread that has not opened a file prints errors of libhdf5 until it is told not to.
UNIT_TEST(opening_prints_no_errors)
{
    H5E_auto2_t print = (H5E_auto2_t)H5Eprint2;
    void *to = NULL;
    hid_t file = new_file("quiet.hdf5");
    add_image(file, "train", H5T_IEEE_F32LE, CONTIGUOUS);
    H5Fclose(file);
    assert_true(H5Eset_auto2(H5E_DEFAULT, print, stderr) >= 0);
    bsw_vectors *vectors = open_set("quiet.hdf5", "");
    assert_true(H5Eget_auto2(H5E_DEFAULT, &print, &to) >= 0);
    assert_true(print == NULL);
    bsw_vectors_close(&vectors);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
