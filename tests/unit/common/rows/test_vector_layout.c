// SPDX-License-Identifier: Apache-2.0
// Headers of vector files: right ones, cut ones, mutated ones.
#include "common/codes/code_layout.h"
#include "tests/unit/vector_images.h"
#include "unit_test.h"

static struct bsw_error err;

// Parses a copy of exactly the given size, so that a sanitizer sees every byte read beyond it.
static enum bsw_status parse(const char *name, const void *data, size_t head_bytes,
                             uint64_t file_bytes, struct bsw_vector_layout *layout)
{
    unsigned char *copy = malloc(head_bytes ? head_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, data, head_bytes);
    enum bsw_status status =
        bsw_vector_layout_parse(name, copy, head_bytes, file_bytes, layout, &err);
    free(copy);
    return status;
}

static int rows_are_inside(const struct bsw_vector_layout *layout, uint64_t file_bytes)
{
    uint64_t end;
    uint64_t row_bytes = layout->dims * bsw_vector_type_bytes(layout->type);
    if (layout->dims < 1 || layout->dims > BSW_MAX_DIMS || layout->num_rows < 1) return 0;
    if (layout->stride_bytes < row_bytes) return 0;
    if (__builtin_mul_overflow(layout->num_rows - 1, layout->stride_bytes, &end)) return 0;
    if (__builtin_add_overflow(end, layout->first_byte, &end)) return 0;
    if (__builtin_add_overflow(end, row_bytes, &end)) return 0;
    return end == file_bytes;
}

UNIT_TEST(every_format_is_read)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        const struct image_kind *kind = &image_kinds[i];
        struct image image = make_image(kind, 7, 5);
        struct bsw_vector_layout layout;
        assert_int_equal(parse(kind->name, image.data, image.bytes, image.bytes, &layout), BSW_OK);
        assert_int_equal(layout.type, kind->type);
        assert_int_equal(layout.num_rows, 7);
        assert_int_equal(layout.dims, 5);
        assert_int_equal(layout.first_byte, image.header_bytes);
        assert_int_equal(layout.is_vecs, kind->form == FORM_VECS);
        assert_int_equal(layout.stride_bytes,
                         5 * kind->number_bytes + (kind->form == FORM_VECS ? 4 : 0));
        assert_true(rows_are_inside(&layout, image.bytes));
        free(image.data);
    }
}

UNIT_TEST(one_row_of_one_dim_is_read)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        struct image image = make_image(&image_kinds[i], 1, 1);
        struct bsw_vector_layout layout;
        assert_int_equal(parse(image_kinds[i].name, image.data, image.bytes, image.bytes, &layout),
                         BSW_OK);
        assert_int_equal(layout.num_rows, 1);
        assert_int_equal(layout.dims, 1);
        free(image.data);
    }
}

UNIT_TEST(every_truncation_is_refused)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        const struct image_kind *kind = &image_kinds[i];
        struct image image = make_image(kind, 3, 5);
        size_t stride = image.bytes / 3; // of .vecs
        for (size_t bytes = 0; bytes < image.bytes; bytes++) {
            struct bsw_vector_layout layout = {.dims = 77};
            enum bsw_status status = parse(kind->name, image.data, bytes, bytes, &layout);
            if (kind->form == FORM_VECS && bytes > 0 && bytes % stride == 0) {
                assert_int_equal(status, BSW_OK); // cut between rows: a shorter file, not a bad one
                assert_int_equal(layout.num_rows, bytes / stride);
                continue;
            }
            assert_int_equal(status, BSW_ERROR_BAD_DATA);
            assert_int_equal(layout.dims, 77);
            assert_int_equal(strncmp(err.message, kind->name, strlen(kind->name)), 0);
        }
        free(image.data);
    }
}

UNIT_TEST(bytes_behind_the_rows_are_refused)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        struct image image = make_image(&image_kinds[i], 3, 5);
        struct bsw_vector_layout layout;
        assert_int_equal(
            parse(image_kinds[i].name, image.data, image.bytes, image.bytes + 1, &layout),
            BSW_ERROR_BAD_DATA);
        free(image.data);
    }
}

static void mutate(unsigned char *data, size_t bytes, uint64_t *seed)
{
    static const unsigned char edges[] = {0, 1, 0x7f, 0x80, 0xff, '9', '(', ','};
    size_t changes = 1 + (*seed = bsw_hash(*seed)) % 4;
    for (size_t i = 0; i < changes; i++) {
        size_t at = (*seed = bsw_hash(*seed)) % bytes;
        *seed = bsw_hash(*seed);
        data[at] = *seed & 1 ? edges[(*seed >> 1) % sizeof edges] : (unsigned char)(*seed >> 8);
    }
}

UNIT_TEST(mutated_headers_never_lead_outside_the_file)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        const struct image_kind *kind = &image_kinds[i];
        struct image image = make_image(kind, 3, 5);
        for (uint64_t run = 0; run < 2000; run++) {
            uint64_t seed = bsw_hash2(i, run);
            unsigned char *data = malloc(image.bytes);
            assert_non_null(data);
            memcpy(data, image.data, image.bytes);
            mutate(data, image.header_bytes, &seed);
            seed = bsw_hash(seed);
            size_t bytes = seed % 4 ? image.bytes : seed / 4 % (image.bytes + 1);
            struct bsw_vector_layout layout;
            enum bsw_status status = parse(kind->name, data, bytes, bytes, &layout);
            if (status == BSW_OK ? !rows_are_inside(&layout, bytes)
                                 : status != BSW_ERROR_BAD_DATA) {
                fail_msg("%s: run %llu: status %d", kind->name, (unsigned long long)run, status);
            }
            free(data);
        }
        free(image.data);
    }
}

static void assert_refused(const char *name, const void *data, size_t bytes, uint64_t file_bytes,
                           enum bsw_status expected, const char *text)
{
    struct bsw_vector_layout layout;
    assert_int_equal(parse(name, data, bytes, file_bytes, &layout), expected);
    assert_string_equal(err.message, text);
}

UNIT_TEST(messages_name_file_and_numbers)
{
    const uint32_t header[4] = {20000, 128};
    assert_refused("x.u8bin", header, 16, 2560009, BSW_ERROR_BAD_DATA,
                   "x.u8bin: the header says 20000 x 128 (2560008 bytes), the file has 2560009");
    const uint64_t wide[2] = {20000, 128};
    assert_refused("x.u8bin", wide, 16, 2560008, BSW_ERROR_BAD_DATA,
                   "x.u8bin: the header says 20000 x 128 (2560016 bytes), the file has 2560008");
    assert_refused("x.u8bin", wide, 12, 12, BSW_ERROR_BAD_DATA,
                   "x.u8bin: truncated: the header has 16 bytes, the file 12");
    assert_refused("x.u8bin", header, 5, 5, BSW_ERROR_BAD_DATA,
                   "x.u8bin: truncated: the header has 8 bytes, the file 5");
    assert_refused("x.fvecs", header, 0, 0, BSW_ERROR_BAD_DATA, "x.fvecs: empty");
    assert_refused(
        "x.csv", header, 0, 0, BSW_ERROR_USAGE,
        "x.csv: the name must end in .fvecs .bvecs .fbin .u8bin .i8bin .npy .hdf5 or .h5");
    assert_refused(
        ".npy", header, 16, 16, BSW_ERROR_USAGE,
        ".npy: the name must end in .fvecs .bvecs .fbin .u8bin .i8bin .npy .hdf5 or .h5");
    assert_refused("x.npy", header, 16, 16, BSW_ERROR_BAD_DATA,
                   "x.npy: does not begin as a .npy file does");
}

UNIT_TEST(dims_and_rows_out_of_range_are_refused)
{
    const int32_t negative = -5, none = 0, large = BSW_MAX_DIMS + 1;
    assert_refused("x.fvecs", &negative, 4, 4, BSW_ERROR_BAD_DATA,
                   "x.fvecs: the first row says -5 dims, must be 1 to 65536");
    assert_refused("x.bvecs", &none, 4, 4, BSW_ERROR_BAD_DATA,
                   "x.bvecs: the first row says 0 dims, must be 1 to 65536");
    assert_refused("x.bvecs", &large, 4, 4 + (uint64_t)large, BSW_ERROR_BAD_DATA,
                   "x.bvecs: the first row says 65537 dims, must be 1 to 65536");
    const uint32_t wide_dims[2] = {1, BSW_MAX_DIMS + 1}, no_rows[2] = {0, 5};
    assert_refused("x.i8bin", wide_dims, 8, 8 + (uint64_t)large, BSW_ERROR_BAD_DATA,
                   "x.i8bin: the header says 65537 dims, must be 1 to 65536");
    assert_refused("x.i8bin", no_rows, 8, 8, BSW_ERROR_BAD_DATA, "x.i8bin: the header says 0 rows");
    const uint64_t zero_dims[2] = {5, 0}, overflow[2] = {UINT64_MAX / 2, 1024};
    assert_refused("x.i8bin", zero_dims, 16, 16, BSW_ERROR_BAD_DATA,
                   "x.i8bin: the header says 0 dims, must be 1 to 65536");
    const uint64_t hidden_overflow[2] = {(uint64_t)1 << 62, 4}; // the product wraps to 0
    struct bsw_vector_layout layout;
    assert_int_equal(parse("x.fbin", overflow, 16, 16, &layout), BSW_ERROR_BAD_DATA);
    assert_int_equal(parse("x.i8bin", hidden_overflow, 16, 16, &layout), BSW_ERROR_BAD_DATA);
}

UNIT_TEST(huge_files_are_read_in_both_forms)
{
    unsigned char head[64] = {0};
    struct bsw_vector_layout layout;
    const uint32_t narrow[2] = {4000000000u, 96};
    memcpy(head, narrow, sizeof narrow);
    uint64_t bytes = 8 + (uint64_t)4000000000u * 96;
    assert_int_equal(parse("x.u8bin", head, sizeof head, bytes, &layout), BSW_OK);
    assert_int_equal(layout.num_rows, 4000000000u);
    // Rows past 2^32: the second word is not 0, and the size alone tells the form.
    const uint64_t wide[2] = {10000000000u, 96};
    memcpy(head, wide, sizeof wide);
    bytes = 16 + wide[0] * 96 * 4;
    assert_int_equal(parse("x.fbin", head, sizeof head, bytes, &layout), BSW_OK);
    assert_int_equal(layout.num_rows, 10000000000u);
    assert_int_equal(layout.first_byte, 16);
    assert_int_equal(parse("x.fbin", head, sizeof head, bytes - 8, &layout), BSW_ERROR_BAD_DATA);
}

struct dict_case {
    const char *dict;
    const char *error; // part of the message; NULL: it is read as 3 x 2 of uint8
};

static const struct dict_case dict_cases[] = {
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }\n", NULL},
    {"{'descr':'|u1','fortran_order':False,'shape':(3,2)}", NULL},
    {"  {\"shape\" : ( 3 , 2 , ) ,\n \"fortran_order\" : False, \t\"descr\" : \"|u1\" }  \n", NULL},
    {"{'descr': '=u1', 'fortran_order': False, 'shape': (3, 2), }", NULL},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (3, 2), }", "'>f4' (big endian)"},
    {"{'descr': '>f8', 'fortran_order': False, 'shape': (3, 2), }", "'>f8' (big endian)"},
    {"{'descr': '=f8', 'fortran_order': False, 'shape': (3, 2), }", "3 x 2 ("},
    {"{'descr': '!f4', 'fortran_order': False, 'shape': (3, 2), }", "'!f4'; float32"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }", "3 x 2 ("},
    {"{'descr': '', 'fortran_order': False, 'shape': (3, 2), }", "type ''"},
    {"{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2), }", "Fortran order"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "0 axes"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 1, 2), }", "3 axes"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 0), }", "0 dims"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 2), }", "0 rows"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), } x", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2)", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (3 2)}", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (6)}", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (,)}", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (3,,2)}", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (-3, 2)}", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999, 2)}",
     "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (9999999999999999999, 60000)}",
     "more than a file can hold"},
    {"{'descr': '|u1', 'fortran_order': 0, 'shape': (3, 2)}", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False}", "wrong at byte"},
    {"{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (3, 2)}", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), 'x': 1}", "wrong at byte"},
    {"{'descr': '|u1' 'fortran_order': False, 'shape': (3, 2)}", "wrong at byte"},
    {"{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (3, 2)}", "wrong at byte"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2)}\v", "wrong at byte"},
    {"{'descr': '|u1", "wrong at byte"},
    {"{}", "wrong at byte"},
    {"", "wrong at byte"},
};

// As NumPy reads it: = is the order of the machine.
UNIT_TEST(npy_numbers_in_native_order_are_read)
{
    static const char *const types[] = {"<f4", "=f4", "|f4"};
    for (size_t i = 0; i < 3; i++) {
        unsigned char file[256] = {0};
        char dict[96];
        struct bsw_vector_layout layout;
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (3, 2), }",
                 types[i]);
        size_t header = npy_header(1, dict, file);
        assert_int_equal(parse("x.npy", file, header, header + 24, &layout), BSW_OK);
        assert_int_equal(layout.type, BSW_VECTOR_FLOAT32);
    }
}

UNIT_TEST(npy_headers_are_parsed_strictly)
{
    for (size_t i = 0; i < sizeof dict_cases / sizeof dict_cases[0]; i++) {
        for (int version = 1; version <= 3; version++) {
            unsigned char file[256] = {0};
            size_t header = npy_header(version, dict_cases[i].dict, file);
            struct bsw_vector_layout layout;
            enum bsw_status status = parse("x.npy", file, header + 6, header + 6, &layout);
            if (dict_cases[i].error) {
                assert_int_equal(status, BSW_ERROR_BAD_DATA);
                if (!strstr(err.message, dict_cases[i].error))
                    fail_msg("%s: %s", dict_cases[i].dict, err.message);
                continue;
            }
            assert_int_equal(status, BSW_OK);
            assert_int_equal(layout.num_rows, 3);
            assert_int_equal(layout.dims, 2);
            assert_int_equal(layout.first_byte, header);
        }
    }
}

// What convert alone reads says so elsewhere.
UNIT_TEST(npy_of_float64_and_in_fortran_order_is_for_convert)
{
    static const struct {
        const char *dict, *error;
        size_t number_bytes;
    } cases[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }",
         "x.npy: numbers are of type float64; `bitsweep convert --type float32`", 8},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }", "type float64; ", 8},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }",
         "x.npy: is in Fortran order, column after column; `bitsweep convert`", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char file[256] = {0};
        size_t bytes = npy_header(1, cases[i].dict, file) + 6 * cases[i].number_bytes;
        struct bsw_vector_layout layout;
        assert_int_equal(parse("x.npy", file, bytes, bytes, &layout), BSW_ERROR_BAD_DATA);
        assert_non_null(strstr(err.message, cases[i].error));
        assert_int_equal(bsw_vector_layout_parse_any("x.npy", file, bytes, bytes, &layout, &err),
                         BSW_OK);
        assert_int_equal(layout.type, BSW_VECTOR_FLOAT32);
        assert_int_equal(layout.stride_bytes, 2 * cases[i].number_bytes);
        assert_int_equal(
            bsw_vector_layout_parse_any("x.npy", file, bytes, bytes - 1, &layout, &err),
            BSW_ERROR_BAD_DATA);
    }
}

UNIT_TEST(npy_of_one_axis_is_one_row)
{
    static const char *const orders[] = {"False", "True"}; // one axis has no order
    for (size_t i = 0; i < 2; i++) {
        unsigned char file[256] = {0};
        char dict[128];
        snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': %s, 'shape': (6,), }\n",
                 orders[i]);
        size_t header = npy_header(1, dict, file);
        struct bsw_vector_layout layout;
        assert_int_equal(parse("x.npy", file, header + 24, header + 24, &layout), BSW_OK);
        assert_int_equal(layout.num_rows, 1);
        assert_int_equal(layout.dims, 6);
    }
}

UNIT_TEST(npy_of_other_versions_is_refused)
{
    unsigned char file[256] = {0};
    size_t bytes =
        6 + npy_header(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2)}", file);
    struct bsw_vector_layout layout;
    file[6] = 4;
    assert_int_equal(parse("x.npy", file, bytes, bytes, &layout), BSW_ERROR_BAD_DATA);
    file[6] = 0;
    assert_int_equal(parse("x.npy", file, bytes, bytes, &layout), BSW_ERROR_BAD_DATA);
    file[6] = 1;
    file[7] = 1;
    assert_int_equal(parse("x.npy", file, bytes, bytes, &layout), BSW_ERROR_BAD_DATA);
}

UNIT_TEST(npy_header_beyond_the_head_is_refused)
{
    unsigned char *file = calloc(1, BSW_VECTOR_HEAD_BYTES);
    assert_non_null(file);
    npy_header(2, "", file);
    memset(file + 8, 0xff, 3); // a header of 2^24 - 1 bytes
    struct bsw_vector_layout layout;
    assert_int_equal(
        parse("x.npy", file, BSW_VECTOR_HEAD_BYTES, BSW_VECTOR_HEAD_BYTES * 1024, &layout),
        BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "must be 65536 at most"));
    assert_int_equal(parse("x.npy", file, BSW_VECTOR_HEAD_BYTES, BSW_VECTOR_HEAD_BYTES, &layout),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "truncated"));
    free(file);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
