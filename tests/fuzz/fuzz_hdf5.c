// SPDX-License-Identifier: Apache-2.0
// HDF5 files, behind libhdf5: an input says what that answers (hdf5_stand_in.h) and which call
// fails. What is said to be in the file is, memory is bounded by its size, and nothing stays open.
// libhdf5 itself and damage of whole files: unit/test_hdf5_source.
#include "common/codes/code_layout.h"
#include "common/rows/vectors.h"
#include "tests/fuzz/hdf5_stand_in.h"

#include <fcntl.h>

enum { MOST_FILE_BYTES = 4096 };

// 0 to 255, or that many times a power of two up to 2^63.
static uint64_t next_number(struct fuzz_input *input)
{
    uint8_t shift = fuzz_next_byte(input), number = fuzz_next_byte(input);
    return (uint64_t)number << (shift < 192 ? 0 : shift - 192);
}

static void next_layout(struct fuzz_input *input)
{
    static const int layouts[] = {H5D_CHUNKED, H5D_CONTIGUOUS, H5D_COMPACT,      H5D_CHUNKED,
                                  H5D_VIRTUAL, H5D_CHUNKED,    H5D_LAYOUT_ERROR, 9};
    uint8_t flags = fuzz_next_byte(input);
    stand_in.layout = layouts[flags % 8];
    stand_in.num_external = flags / 8 % 16 == 1;
    stand_in.is_elsewhere = flags / 8 % 16 == 2;
    stand_in.is_absent = flags / 8 % 16 == 3;
    stand_in.num_axes = flags / 8 % 16 == 4 ? fuzz_next_byte(input) % 8 : 2;
}

// The bytes that would be right, and what is claimed in their place.
static void next_claims(struct fuzz_input *input)
{
    uint8_t flags = fuzz_next_byte(input);
    stand_in.storage_bytes = stand_in.rows * stand_in.columns * stand_in_number_bytes();
    stand_in.offset = next_number(input);
    if (flags & 1) stand_in.storage_bytes = next_number(input);
    stand_in.has_name = flags >> 1 & 1;
}

// What follows the description is the name. Returns the file's bytes.
static uint64_t describe(struct fuzz_input *input)
{
    memset(&stand_in, 0, sizeof stand_in);
    stand_in.fails_at = fuzz_next_byte(input) % 64;
    stand_in.type = (enum stand_in_type)(fuzz_next_byte(input) % STAND_IN_NUM_TYPES);
    stand_in.text_bytes = (size_t)next_number(input);
    stand_in.rows = next_number(input);
    stand_in.columns = next_number(input);
    next_layout(input);
    next_claims(input);
    uint64_t file_bytes = next_number(input) * 16;
    size_t name_bytes =
        input->bytes < sizeof stand_in.name ? input->bytes : sizeof stand_in.name - 1;
    memcpy(stand_in.name, input->data, name_bytes);
    return file_bytes < MOST_FILE_BYTES ? file_bytes : MOST_FILE_BYTES;
}

#define REFUSALS (FUZZ_BIT(BSW_ERROR_BAD_DATA) | FUZZ_BIT(BSW_ERROR_USAGE))

static void take_layout(uint64_t file_bytes)
{
    struct bsw_vector_layout layout;
    struct bsw_error err;
    enum bsw_status status =
        bsw_hdf5_layout_read("f.h5:train", "f.h5", "train", file_bytes, &layout, &err);
    if (fuzz_is_ok(status, &err, REFUSALS)) {
        FUZZ_REQUIRE(layout.num_rows == stand_in.rows && layout.dims == stand_in.columns);
        FUZZ_REQUIRE(layout.dims >= 1 && layout.dims <= BSW_MAX_DIMS && layout.num_rows >= 1);
        uint64_t bytes = layout.num_rows * layout.stride_bytes;
        FUZZ_REQUIRE(bytes / layout.stride_bytes == layout.num_rows);
        FUZZ_REQUIRE(bytes <= file_bytes && layout.first_byte <= file_bytes - bytes);
    }
    FUZZ_REQUIRE(stand_in.num_ids == 0);
}

// What numbers of ids are read from.
static int zeros(void)
{
    static int fd = -1;
    if (fd < 0) fd = open("/dev/zero", O_RDONLY);
    FUZZ_REQUIRE(fd >= 0);
    return fd;
}

static void take_ids(uint64_t file_bytes)
{
    struct bsw_error err;
    uint64_t num_rows, num_columns;
    int64_t *ids;
    enum bsw_status status = bsw_hdf5_ids_read("f.h5", "f.h5", "neighbors", zeros(), file_bytes,
                                               &num_rows, &num_columns, &ids, &err);
    if (fuzz_is_ok(status, &err, REFUSALS)) {
        FUZZ_REQUIRE(ids && num_rows == stand_in.rows && num_columns == stand_in.columns);
        volatile int64_t last = ids[num_rows * num_columns - 1];
        (void)last;
    } else {
        FUZZ_REQUIRE(!ids);
    }
    bsw_free(&ids);
    FUZZ_REQUIRE(stand_in.num_ids == 0);
}

static void take_distance(void)
{
    struct bsw_error err;
    char *distance = fuzz_exact(NULL, BSW_DISTANCE_BYTES);
    enum bsw_status status = bsw_hdf5_distance_read("f.h5", "f.h5", distance, &err);
    if (fuzz_is_ok(status, &err, REFUSALS)) {
        size_t length = strlen(distance);
        FUZZ_REQUIRE(length < BSW_DISTANCE_BYTES);
        for (size_t i = 0; i < length; i++)
            FUZZ_REQUIRE((unsigned char)distance[i] >= ' ' && distance[i] != 127);
    }
    bsw_free(&distance);
    FUZZ_REQUIRE(stand_in.num_ids == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    int what = fuzz_next_byte(&input) % 4; // rows are 0 and 2, so that findings stay what they are
    uint64_t file_bytes = describe(&input);
    if (what == 3)
        take_distance();
    else if (what == 1)
        take_ids(file_bytes);
    else
        take_layout(file_bytes);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    // Rows, ids or (3) distance, failing call, type, text; rows, columns, layout; claims, offset;
    // the file's bytes, the name.
    static const unsigned char shapes[][48] = {
        {0, 0, 0, 0, 0, 0, 20, 0, 3, 0, 0, 0, 0, 0, 255},
        {0, 0, 2, 0, 0, 0, 20, 0, 30, 1, 0, 0, 0, 0, 255},
        {0, 0, 1, 0, 0, 0, 5, 0, 9, 1, 0, 0, 64, 0, 255},
        {0, 0, 3, 0, 0, 0, 5, 0, 9, 2, 0, 0, 0, 0, 255},
        {1, 0, 4, 0, 0, 0, 9, 0, 4, 1, 0, 0, 0, 0, 255},
        {1, 0, 6, 0, 0, 0, 9, 0, 4, 1, 0, 0, 8, 0, 255},
        {1, 0, 5, 0, 0, 200, 255, 200, 255, 1, 0, 0, 0, 0, 255},
        {0, 0, 1, 0, 0, 0, 5, 0, 9, 1, 0, 192, 255, 0, 5},
        {0, 0, 1, 0, 0, 0, 5, 0, 9, 1, 1, 0, 0, 0, 46, 0, 255},
        {0, 0, 9, 0, 7, 0, 9, 0, 4, 1, 0, 0, 0, 0, 255},
        {3, 0, 9, 0, 7, 0, 1, 0, 4, 1, 0, 0, 0, 0, 255, 'a', 'n', 'g', 10, 200},
        {3, 0, 9, 0, 0, 0, 1, 0, 4, 1, 2, 0, 0, 0, 255, 'd', 'o', 't'},
        {0,   0,   0,   0,   0,   0,   9,   0,   4,   25,  2,   0,   0,   0,   255, 'a',
         'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q'},
    };
    unsigned char seed[48];
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        memcpy(seed, shapes[i], sizeof seed);
        put(context, seed, sizeof seed);
        for (seed[1] = 1; seed[1] < 64 && (i < 8 || seed[0] == 3); seed[1]++)
            put(context, seed, sizeof seed);
    }
}
