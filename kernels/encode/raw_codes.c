// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/raw_codes.h"

#include <math.h>
#include <string.h>

// Half a bundle is 16 rows, whose groups of 4 dimensions take turns.
#define GROUP_BYTES ((size_t)64)

// The sign bits of four int8: x + 128 is x with its sign bit turned.
static uint32_t flip_of(enum bsw_vector_type type)
{
    return type == BSW_VECTOR_INT8 ? 0x80808080u : 0;
}

static void spread_row(const unsigned char *row, size_t dims, uint32_t flip, unsigned char *out)
{
    uint32_t four;
    for (size_t g = 0; g < dims / 4; g++) {
        memcpy(&four, row + 4 * g, sizeof four);
        four ^= flip;
        memcpy(out + g * GROUP_BYTES, &four, sizeof four);
    }
    for (size_t i = dims / 4 * 4; i < dims; i++)
        out[i / 4 * GROUP_BYTES + i % 4] = (unsigned char)(row[i] ^ (flip & 0xff));
}

static int32_t offset_of_bytes(enum bsw_metric metric, const uint8_t *row, size_t dims)
{
    int32_t sum = 0, squares = 0;
    for (size_t i = 0; i < dims; i++) {
        sum += row[i];
        squares += row[i] * row[i];
    }
    return bsw_has_row_norms(metric) ? 256 * sum - squares : 128 * sum;
}

static int32_t offset_of_signed(enum bsw_metric metric, const int8_t *row, size_t dims)
{
    int32_t squares = 0;
    if (!bsw_has_row_norms(metric)) return 0;
    for (size_t i = 0; i < dims; i++) squares += row[i] * row[i];
    return -squares;
}

void bsw_raw_pack_bundle(enum bsw_vector_type type, enum bsw_metric metric, const void *numbers,
                         size_t num_rows, size_t dims, unsigned char *bytes, int32_t *offsets)
{
    size_t padded_dims = (dims + 31) / 32 * 32;
    for (size_t r = 0; r < num_rows; r++) {
        const unsigned char *row = (const unsigned char *)numbers + r * dims;
        spread_row(row, dims, flip_of(type), bytes + r / 16 * 16 * padded_dims + r % 16 * 4);
        offsets[r] = type == BSW_VECTOR_UINT8 ? offset_of_bytes(metric, row, dims)
                                              : offset_of_signed(metric, (const int8_t *)row, dims);
    }
}

size_t bsw_raw_first_misfit(enum bsw_vector_type type, const float *row, size_t dims)
{
    float lowest = type == BSW_VECTOR_UINT8 ? 0.0f : -128.0f, highest = lowest + 255.0f;
    size_t i = 0;
    while (i < dims && row[i] >= lowest && row[i] <= highest && row[i] == floorf(row[i])) i++;
    return i;
}

void bsw_raw_query_encode(enum bsw_vector_type type, enum bsw_metric metric, const float *row,
                          size_t dims, size_t padded_dims, int8_t *components, int32_t *constant)
{
    int32_t zero = type == BSW_VECTOR_UINT8 ? 128 : 0, sum = 0, squares = 0;
    memset(components, 0, padded_dims);
    for (size_t i = 0; i < dims; i++) {
        int32_t y = (int32_t)row[i];
        components[i] = (int8_t)(y - zero);
        sum += y;
        squares += y * y;
    }
    int32_t linear = type == BSW_VECTOR_UINT8 ? 0 : -128 * sum;
    *constant = bsw_has_row_norms(metric) ? 2 * linear - squares : linear;
}
