// SPDX-License-Identifier: Apache-2.0
// HDF5 files, behind libhdf5: an input says what that answers (hdf5_stand_in.h), which call fails,
// and what chunks hold. Numbers that are read are compared, memory is bounded by the file's size,
// and nothing stays open. libhdf5 itself and damage of whole files: unit/test_hdf5_source.
#include "common/codes/code_layout.h"
#include "common/rows/hdf5_source.h"
#include "tests/fuzz/hdf5_stand_in.h"

enum { MOST_FILE_BYTES = 4096, MOST_READ_BYTES = 1 << 16, MOST_PATTERN_BYTES = 1 << 20 };

// 0 to 255, or that many times a power of two up to 2^63.
static uint64_t next_number(struct fuzz_input *input)
{
    uint8_t shift = fuzz_next_byte(input), number = fuzz_next_byte(input);
    return (uint64_t)number << (shift < 192 ? 0 : shift - 192);
}

static void next_filters(struct fuzz_input *input)
{
    uint8_t count = fuzz_next_byte(input);
    stand_in.num_filters = count >= 250 ? count : count % (BSW_CHUNK_MAX_FILTERS + 3) - 1;
    for (int i = 0; i < stand_in.num_filters && i < BSW_CHUNK_MAX_FILTERS + 2; i++) {
        uint8_t id = fuzz_next_byte(input);
        stand_in.filters[i] = id < 252 ? 1 + id % 3 : id;
    }
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

// The number of chunks and of bytes that would be right, and what is claimed in their place.
static void next_claims(struct fuzz_input *input)
{
    uint64_t rows = stand_in.rows, columns = stand_in.columns, wide = stand_in.chunk_columns;
    uint8_t flags = fuzz_next_byte(input);
    if (stand_in.chunk_rows > 0 && wide > 0)
        stand_in.num_chunks = (rows / stand_in.chunk_rows + (rows % stand_in.chunk_rows != 0)) *
                              (columns / wide + (columns % wide != 0));
    stand_in.storage_bytes = rows * columns * stand_in_number_bytes();
    stand_in.offset = next_number(input);
    if (flags & 1) stand_in.num_chunks += fuzz_next_byte(input);
    if (flags & 2) stand_in.storage_bytes = next_number(input);
    // Large chunks would take long to make.
    unsigned __int128 chunk = (unsigned __int128)stand_in.chunk_rows * wide;
    stand_in.has_stored = (flags >> 2 & 1) || chunk > MOST_PATTERN_BYTES;
    stand_in.skipped = flags & 8 ? fuzz_next_byte(input) : 0;
    stand_in.padding_bytes = flags & 16 ? next_number(input) : 0;
}

// What follows the description is what chunks hold.
static uint64_t describe(struct fuzz_input *input)
{
    memset(&stand_in, 0, sizeof stand_in);
    stand_in.fails_at = fuzz_next_byte(input) % 64;
    stand_in.type = (enum stand_in_type)(fuzz_next_byte(input) % STAND_IN_NUM_TYPES);
    stand_in.text_bytes = (size_t)next_number(input);
    stand_in.rows = next_number(input);
    stand_in.columns = next_number(input);
    next_layout(input);
    stand_in.chunk_rows = next_number(input);
    stand_in.chunk_columns = next_number(input);
    next_claims(input);
    next_filters(input);
    uint64_t file_bytes = next_number(input) * 16;
    stand_in.stored = input->data;
    stand_in.stored_bytes = input->bytes;
    size_t name_bytes =
        input->bytes < sizeof stand_in.name ? input->bytes : sizeof stand_in.name - 1;
    memcpy(stand_in.name, input->data, name_bytes);
    return file_bytes < MOST_FILE_BYTES ? file_bytes : MOST_FILE_BYTES;
}

#define REFUSALS (FUZZ_BIT(BSW_ERROR_BAD_DATA) | FUZZ_BIT(BSW_ERROR_USAGE))

static int is_pattern(const unsigned char *rows, uint64_t first, size_t count, size_t row_bytes)
{
    for (size_t r = 0; r < count; r++)
        for (size_t b = 0; b < row_bytes; b++)
            if (*rows++ != stand_in_byte(first + r, b)) return 0;
    return 1;
}

// Rows [first, first + count), exactly into room of their own.
static void read_rows(bsw_hdf5_rows *rows, const struct bsw_vector_layout *layout, uint64_t first,
                      size_t count)
{
    struct bsw_error err;
    size_t row_bytes = (size_t)layout->stride_bytes;
    unsigned char *out = fuzz_exact(NULL, count * row_bytes);
    enum bsw_status status = bsw_hdf5_rows_read(rows, first, count, out, &err);
    int is_plain =
        !stand_in.has_stored && (stand_in.layout != H5D_CHUNKED || !stand_in.num_filters);
    if (fuzz_is_ok(status, &err, REFUSALS)) {
        if (is_plain) FUZZ_REQUIRE(is_pattern(out, first, count, row_bytes));
    } else {
        FUZZ_REQUIRE(!is_plain || stand_in.num_calls >= stand_in.fails_at);
    }
    bsw_free(&out);
}

static void take_rows(uint64_t file_bytes)
{
    struct bsw_vector_layout layout;
    struct bsw_error err;
    bsw_hdf5_rows *rows;
    enum bsw_status status =
        bsw_hdf5_rows_open("f.h5:train", "f.h5", "train", file_bytes, &layout, &rows, &err);
    FUZZ_REQUIRE(status == BSW_OK || rows == NULL);
    if (fuzz_is_ok(status, &err, REFUSALS)) {
        FUZZ_REQUIRE(layout.num_rows == stand_in.rows && layout.dims == stand_in.columns);
        FUZZ_REQUIRE(layout.dims >= 1 && layout.dims <= BSW_MAX_DIMS && layout.num_rows >= 1);
        uint64_t bytes = layout.num_rows * layout.stride_bytes;
        FUZZ_REQUIRE(bytes / layout.stride_bytes == layout.num_rows);
        if (!rows) FUZZ_REQUIRE(bytes <= file_bytes && layout.first_byte <= file_bytes - bytes);
        uint64_t most = MOST_READ_BYTES / layout.stride_bytes + 1;
        size_t count = (size_t)(layout.num_rows < most ? layout.num_rows : most);
        if (rows) read_rows(rows, &layout, layout.num_rows - count, count);
        if (rows) read_rows(rows, &layout, 0, (count + 1) / 2);
    }
    bsw_hdf5_rows_close(&rows);
    FUZZ_REQUIRE(stand_in.num_ids == 0);
}

static void take_ids(uint64_t file_bytes)
{
    struct bsw_error err;
    uint64_t num_rows, num_columns;
    int64_t *ids;
    enum bsw_status status = bsw_hdf5_ids_read("f.h5", "f.h5", "neighbors", file_bytes, &num_rows,
                                               &num_columns, &ids, &err);
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
        take_rows(file_bytes);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    // Rows, ids or (3) distance, failing call, type, text; rows, columns, layout, chunk; claims,
    // offset; filters.
    static const unsigned char shapes[][48] = {
        {0, 0, 0, 0, 0, 0, 20, 0, 3, 0, 0, 4, 0, 2, 0, 0, 0, 1, 0, 255},
        {0, 0, 2, 0, 0, 0, 20, 0, 30, 0, 0, 7, 0, 11, 0, 0, 0, 1, 0, 255},
        {0, 0, 1, 0, 0, 0, 5, 0, 9, 1, 0, 0, 0, 0, 0, 0, 64, 1, 0, 255},
        {0, 0, 3, 0, 0, 0, 5, 0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 255},
        {0, 0, 0, 0, 0, 0, 20, 0, 3, 0, 0, 4, 0, 2, 4, 0, 0, 3, 1, 0, 0, 255},
        {0, 0, 2, 0, 0, 0, 20, 0, 3, 0, 0, 4, 0, 2, 20, 0, 0, 204, 3, 1, 0, 255},
        {1, 0, 4, 0, 0, 0, 9, 0, 4, 0, 0, 4, 0, 2, 0, 0, 0, 1, 0, 255},
        {1, 0, 6, 0, 0, 0, 9, 0, 4, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 255},
        {1, 0, 5, 0, 0, 200, 255, 200, 255, 0, 210, 9, 210, 9, 2, 0, 0, 0, 255, 1, 0, 255},
        {0, 0, 1, 0, 0, 0, 5, 0, 9, 1, 0, 0, 0, 0, 0, 192, 255, 1, 0, 5},
        {0, 0, 9, 0, 7, 0, 9, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 255},
        {3, 0, 9, 0, 7, 0, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 255, 'a', 'n', 'g', 10, 200},
        {3, 0, 9, 0, 0, 0, 1, 0, 4, 0, 0, 0, 0, 0, 4, 0, 0, 1, 0, 255, 'd', 'o', 't'},
        {0,   0,   0,   0,   0,   0,   9,   0,   4,   24,  0,   0,   0,   0,   0,   0,
         0,   1,   0,   255, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l',
         'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'A', 'B'},
    };
    unsigned char seed[48];
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        memcpy(seed, shapes[i], sizeof seed);
        put(context, seed, sizeof seed);
        for (seed[1] = 1; seed[1] < 64 && (i < 8 || seed[0] == 3); seed[1]++)
            put(context, seed, sizeof seed);
    }
}
