// SPDX-License-Identifier: Apache-2.0
// Vector files of every format as bytes in memory, written here without the code under test.
#ifndef BITSWEEP_TESTS_UNIT_VECTOR_IMAGES_H
#define BITSWEEP_TESTS_UNIT_VECTOR_IMAGES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/rows/vectors.h"

enum image_form { FORM_VECS, FORM_BIN, FORM_BIN_WIDE, FORM_NPY_1, FORM_NPY_2, FORM_NPY_3 };

struct image_kind {
    const char *name;  // of the file
    const char *descr; // .npy only
    enum image_form form;
    enum bsw_vector_type type;
    size_t number_bytes;
};

static const struct image_kind image_kinds[] = {
    {"a.fvecs", "", FORM_VECS, BSW_VECTOR_FLOAT32, 4},
    {"a.bvecs", "", FORM_VECS, BSW_VECTOR_UINT8, 1},
    {"a.ivecs", "", FORM_VECS, BSW_VECTOR_INT32, 4},
    {"a.fbin", "", FORM_BIN, BSW_VECTOR_FLOAT32, 4},
    {"a.u8bin", "", FORM_BIN, BSW_VECTOR_UINT8, 1},
    {"a.i8bin", "", FORM_BIN, BSW_VECTOR_INT8, 1},
    {"wide.fbin", "", FORM_BIN_WIDE, BSW_VECTOR_FLOAT32, 4},
    {"wide.u8bin", "", FORM_BIN_WIDE, BSW_VECTOR_UINT8, 1},
    {"wide.i8bin", "", FORM_BIN_WIDE, BSW_VECTOR_INT8, 1},
    {"f4.npy", "<f4", FORM_NPY_1, BSW_VECTOR_FLOAT32, 4},
    {"f2.npy", "<f2", FORM_NPY_2, BSW_VECTOR_FLOAT16, 2},
    {"u1.npy", "|u1", FORM_NPY_3, BSW_VECTOR_UINT8, 1},
    {"i1.npy", "|i1", FORM_NPY_1, BSW_VECTOR_INT8, 1},
    {"a.ibin", "", FORM_BIN, BSW_VECTOR_INT32, 4},
};
#define NUM_IMAGE_KINDS (sizeof image_kinds / sizeof image_kinds[0])

struct image {
    unsigned char *data; // owned
    size_t bytes;
    size_t header_bytes; // 4 for .vecs
};

// Byte b of row r: any bits will do, as numbers are only copied.
static inline unsigned char image_byte(uint64_t row, uint64_t byte)
{
    return (unsigned char)bsw_hash2(row, byte);
}

// A .npy header of the version (1 to 3) round a dict; returns its bytes.
static inline size_t npy_header(int version, const char *dict, unsigned char *out)
{
    size_t length = strlen(dict), start = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    for (size_t i = 0; i < start - 8; i++) out[8 + i] = (unsigned char)(length >> (8 * i));
    memcpy(out + start, dict, length);
    return start + length;
}

static inline size_t image_header(const struct image_kind *kind, uint64_t num_rows, uint32_t dims,
                                  unsigned char *out)
{
    uint32_t narrow[2] = {(uint32_t)num_rows, dims};
    uint64_t wide[2] = {num_rows, dims};
    char dict[128];
    switch (kind->form) {
    case FORM_VECS:
        return 4;
    case FORM_BIN:
        memcpy(out, narrow, sizeof narrow);
        return sizeof narrow;
    case FORM_BIN_WIDE:
        memcpy(out, wide, sizeof wide);
        return sizeof wide;
    default:
        snprintf(dict, sizeof dict,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%llu, %u), }        \n",
                 kind->descr, (unsigned long long)num_rows, dims);
        return npy_header(kind->form - FORM_NPY_1 + 1, dict, out);
    }
}

static inline struct image make_image(const struct image_kind *kind, uint64_t num_rows,
                                      uint32_t dims)
{
    size_t row_bytes = dims * kind->number_bytes;
    struct image image;
    memset(&image, 0, sizeof image);
    image.data = (unsigned char *)malloc(256 + (size_t)num_rows * (row_bytes + 4));
    if (!image.data) abort();
    image.header_bytes = image_header(kind, num_rows, dims, image.data);
    unsigned char *at = image.data + (kind->form == FORM_VECS ? 0 : image.header_bytes);
    for (uint64_t row = 0; row < num_rows; row++) {
        if (kind->form == FORM_VECS) {
            memcpy(at, &dims, 4);
            at += 4;
        }
        for (size_t b = 0; b < row_bytes; b++) *at++ = image_byte(row, b);
    }
    image.bytes = (size_t)(at - image.data);
    return image;
}

// The first row whose numbers are not those of the image's rows from first_row; num_rows if none.
static inline size_t find_wrong_row(const unsigned char *rows, uint64_t first_row, size_t num_rows,
                                    size_t row_bytes)
{
    for (size_t i = 0; i < num_rows; i++) {
        for (size_t b = 0; b < row_bytes; b++) {
            if (rows[i * row_bytes + b] != image_byte(first_row + i, b)) return i;
        }
    }
    return num_rows;
}

#endif
