// SPDX-License-Identifier: Apache-2.0
// What the targets of vector formats share: the first byte of an input picks the name, and with it
// the format; the second says how the rest is given.
#ifndef BITSWEEP_TESTS_FUZZ_VECTOR_TARGET_H
#define BITSWEEP_TESTS_FUZZ_VECTOR_TARGET_H

#include <stdlib.h>
#include <string.h>

#include "common/codes/code_layout.h"
#include "common/rows/vectors.h"
#include "tests/fuzz/harness.h"
#include "tests/unit/vector_images.h"

#define FUZZ_BAD_VECTORS FUZZ_BIT(BSW_ERROR_BAD_DATA)

// A layout that is taken explains every byte of the file, in arithmetic that does not overflow.
static inline void fuzz_check_layout(const struct bsw_vector_layout *layout, uint64_t file_bytes)
{
    uint64_t number = bsw_vector_type_bytes(layout->type), row_bytes = layout->dims * number;
    FUZZ_REQUIRE(layout->dims >= 1 && layout->dims <= BSW_MAX_DIMS && layout->num_rows >= 1);
    FUZZ_REQUIRE(layout->stride_bytes == row_bytes + (layout->is_vecs ? 4 : 0));
    unsigned __int128 bytes = (unsigned __int128)layout->num_rows * layout->stride_bytes;
    FUZZ_REQUIRE(bytes + layout->first_byte - (layout->is_vecs ? 4 : 0) == file_bytes);
}

// The rows of a file come back as they lie in it.
static inline void fuzz_read_rows(const char *path, const struct bsw_vector_layout *layout,
                                  const unsigned char *file)
{
    bsw_vectors *vectors;
    struct bsw_error err;
    enum bsw_status status = bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, &err);
    if (layout->type == BSW_VECTOR_INT32) {
        FUZZ_REQUIRE(status == BSW_ERROR_USAGE);
        return;
    }
    FUZZ_REQUIRE(status == BSW_OK);
    size_t row_bytes = bsw_vectors_row_bytes(vectors), num_rows = (size_t)layout->num_rows;
    unsigned char *rows = (unsigned char *)malloc(num_rows * row_bytes);
    FUZZ_REQUIRE(rows != NULL);
    status = bsw_vectors_read(vectors, 0, num_rows, rows, &err);
    FUZZ_REQUIRE(layout->is_vecs || status == BSW_OK);
    if (fuzz_is_ok(status, &err, FUZZ_BAD_VECTORS)) {
        for (size_t i = 0; i < num_rows; i++) {
            const unsigned char *row = file + layout->first_byte + i * layout->stride_bytes;
            FUZZ_REQUIRE(memcmp(rows + i * row_bytes, row, row_bytes) == 0);
        }
    }
    free(rows);
    bsw_vectors_close(&vectors);
}

static inline int fuzz_vectors(const char *const *names, size_t num_names, const uint8_t *data,
                               size_t bytes)
{
    struct bsw_vector_layout layout;
    struct bsw_error err;
    uint64_t file_bytes;
    if (bytes < 2) return 0;
    const char *name = names[data[0] % num_names];
    int is_claimed = data[1] % 2; // the size of the file is another than that of its head
    data += 2;
    bytes -= 2;
    if (is_claimed) {
        if (bytes < 8) return 0;
        memcpy(&file_bytes, data, 8);
        data += 8;
        bytes -= 8;
        if (bytes < BSW_VECTOR_HEAD_BYTES && file_bytes > bytes && file_bytes < (uint64_t)1 << 16)
            return 0; // the head is all of a file so small
    } else {
        file_bytes = bytes;
    }
    enum bsw_status status = bsw_vector_layout_parse(name, data, bytes, file_bytes, &layout, &err);
    if (!fuzz_is_ok(status, &err, FUZZ_BAD_VECTORS)) return 0;
    fuzz_check_layout(&layout, file_bytes);
    if (!is_claimed) fuzz_read_rows(fuzz_file(name, data, bytes), &layout, data);
    return 0;
}

// One seed of an image, and one whose size is claimed.
static inline void fuzz_put_image(const struct image_kind *kind, unsigned char pick,
                                  fuzz_put_fn put, void *context)
{
    struct image image = make_image(kind, 3, 5);
    unsigned char *seed = (unsigned char *)malloc(image.bytes + 10);
    uint64_t file_bytes = image.bytes;
    FUZZ_REQUIRE(seed != NULL);
    seed[0] = pick;
    seed[1] = 0;
    memcpy(seed + 2, image.data, image.bytes);
    put(context, seed, image.bytes + 2);
    seed[1] = 1;
    memcpy(seed + 2, &file_bytes, 8);
    memcpy(seed + 10, image.data, image.bytes);
    put(context, seed, image.bytes + 10);
    free(seed);
    free(image.data);
}

// Every image of the formats that these names have.
static inline void fuzz_put_images(const char *const *names, size_t num_names, fuzz_put_fn put,
                                   void *context)
{
    for (size_t kind = 0; kind < NUM_IMAGE_KINDS; kind++) {
        const char *ending = strchr(image_kinds[kind].name, '.');
        for (size_t i = 0; i < num_names; i++) {
            if (strcmp(strchr(names[i], '.'), ending) == 0)
                fuzz_put_image(&image_kinds[kind], (unsigned char)i, put, context);
        }
    }
}

#endif
