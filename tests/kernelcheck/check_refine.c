// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <string.h>

#include "kernels/refine/refine.h"

enum { RANDOM, SIGNED_ZEROS, SPREAD, TINY, EXTREME, CANCELS, MIRRORED, NUM_FILLS };

static const enum bsw_vector_type types[] = {BSW_VECTOR_FLOAT32, BSW_VECTOR_FLOAT16,
                                             BSW_VECTOR_UINT8, BSW_VECTOR_INT8};
static const size_t type_bytes[] = {4, 2, 1, 1};
#define NUM_TYPES (sizeof types / sizeof types[0])

static float fill_float(const struct kernelcheck *check, int fill, uint64_t stream, size_t i)
{
    uint64_t random = kernelcheck_random(check, stream, i);
    uint32_t bits = (uint32_t)random;
    float number;
    switch (fill) {
    case RANDOM:
        return kernelcheck_float(check, stream, i);
    case SIGNED_ZEROS:
        return random % 8 == 0 ? 1.5f : random % 2 ? 0.0f : -0.0f;
    case SPREAD: // magnitudes 2^-47 to 2^47
    case CANCELS:
    case MIRRORED:
        bits = (bits & 0x807fffffu) | (80 + (uint32_t)(random >> 32) % 95) << 23;
        break;
    case TINY: // subnormal
        bits &= 0x807fffffu;
        break;
    default:
        return random % 2 ? 1e18f : -1e18f;
    }
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint16_t fill_half(const struct kernelcheck *check, int fill, uint64_t stream, size_t i)
{
    uint64_t random = kernelcheck_random(check, stream, i);
    uint16_t bits = (uint16_t)random;
    switch (fill) {
    case RANDOM:
        return (uint16_t)((bits & 0x83ffu) | (12 + random / 65536 % 6) << 10);
    case SIGNED_ZEROS:
        return random % 8 == 0 ? 0x3e00 : bits & 0x8000u;
    case SPREAD: // all finite ones
    case CANCELS:
    case MIRRORED:
        return (bits & 0x7c00u) == 0x7c00u ? bits & 0x83ffu : bits;
    case TINY: // subnormal
        return bits & 0x83ffu;
    default:
        return (uint16_t)((bits & 0x8000u) | 0x7bffu);
    }
}

static unsigned char fill_byte(const struct kernelcheck *check, int fill, uint64_t stream, size_t i)
{
    uint64_t random = kernelcheck_random(check, stream, i);
    switch (fill) {
    case SIGNED_ZEROS:
        return random % 8 == 0 ? 1 : 0;
    case TINY:
        return (unsigned char)(random % 3);
    case EXTREME: // 255 and 0, or -128 and 127
        return random % 4 == 0 ? 0x7f : random % 2 ? 0xff : 0x80;
    default:
        return (unsigned char)random;
    }
}

// Numbers at any alignment. The last one is never zero, so that cosine has a norm. A row that
// cancels, times a query that is mirrored, sums to nothing but rounding: there the order of the sum
// shows, which float32 hides elsewhere.
static void fill_numbers(const struct kernelcheck *check, int fill, enum bsw_vector_type type,
                         uint64_t stream, size_t n, unsigned char *numbers)
{
    for (size_t i = 0; i < n; i++) {
        int last = i + 1 == n, mirrored = (fill == CANCELS || fill == MIRRORED) && i >= n / 2;
        size_t from = mirrored ? n - 1 - i : i;
        float number = fill_float(check, fill, stream, from);
        uint16_t half = fill_half(check, fill, stream, from);
        if (mirrored && fill == CANCELS) number = i == from ? 0.0f : -number;
        if (mirrored && fill == CANCELS) half = i == from ? 0 : half ^ 0x8000u;
        if (last && (number == 0.0f || !mirrored)) number = 1.25f;
        if (last && (half << 1 == 0 || !mirrored)) half = 0x3d00;
        if (type == BSW_VECTOR_FLOAT32)
            memcpy(numbers + 4 * i, &number, 4);
        else if (type == BSW_VECTOR_FLOAT16)
            memcpy(numbers + 2 * i, &half, 2);
        else
            numbers[i] = last ? 1 : fill_byte(check, fill, stream, i);
    }
}

// A row of `type` that ends where its memory ends, or begins at an odd address.
struct row {
    unsigned char *memory, *numbers;
};

static struct row make_row(const struct kernelcheck *check, int fill, enum bsw_vector_type type,
                           uint64_t stream, size_t dims, int odd)
{
    size_t bytes = dims * type_bytes[type], rounded = (bytes + 63) / 64 * 64;
    struct row row = {.memory = kernelcheck_allocate(odd ? bytes + 1 : rounded)};
    row.numbers = row.memory + (odd ? 1 : rounded - bytes);
    fill_numbers(check, fill, type, stream, dims, row.numbers);
    return row;
}

static void check_conversion(struct kernelcheck *check, enum bsw_vector_type type, size_t dims,
                             int fill)
{
    const struct bsw_refine_table *table = bsw_refine_table_get(check->level);
    size_t bytes = dims * sizeof(double);
    kernelcheck_case(check, "%zu dims, type %d, fill %d", dims, type, fill);
    double *expected = kernelcheck_allocate(bytes), *found = kernelcheck_allocate(bytes);
    for (int odd = 0; odd < 2; odd++) {
        struct row row = make_row(check, fill, type, 1, dims, odd);
        bsw_refine_reference.to_double(type, row.numbers, dims, expected);
        table->to_double(type, row.numbers, dims, found);
        kernelcheck_compare(check, "to_double", expected, found, bytes);
        kernelcheck_free(row.memory);
    }
    double norms[2] = {bsw_refine_reference.squared_norm(expected, dims),
                       table->squared_norm(expected, dims)};
    kernelcheck_compare(check, "squared_norm", &norms[0], &norms[1], sizeof norms[0]);
    kernelcheck_free(expected);
}

static void check_values(struct kernelcheck *check, enum bsw_vector_type type, size_t dims,
                         int fill, int query_fill)
{
    double *query = kernelcheck_allocate(dims * sizeof *query);
    struct row raw = make_row(check, query_fill, type, 2, dims, 0);
    bsw_refine_reference.to_double(type, raw.numbers, dims, query);
    double norm = bsw_refine_reference.squared_norm(query, dims);
    for (int odd = 0; odd < 2; odd++) {
        struct row row = make_row(check, fill, type, 1, dims, odd);
        for (int m = 0; m < BSW_METRIC_NUM; m++) {
            enum bsw_metric metric = (enum bsw_metric)m;
            double expected =
                bsw_refine_reference.value(metric, type, row.numbers, query, norm, dims);
            double found = bsw_refine_table_get(check->level)
                               ->value(metric, type, row.numbers, query, norm, dims);
            kernelcheck_case(check, "%s, %zu dims, type %d, fills %d and %d",
                             bsw_metric_name(metric), dims, type, fill, query_fill);
            kernelcheck_compare(check, "value", &expected, &found, sizeof found);
        }
        kernelcheck_free(row.memory);
    }
    kernelcheck_free(query);
}

void check_refine(struct kernelcheck *check)
{
    for (size_t d = 0; d < kernelcheck_num_dims; d++) {
        for (size_t t = 0; t < NUM_TYPES; t++) {
            for (int fill = 0; fill < NUM_FILLS; fill++) {
                check_conversion(check, types[t], kernelcheck_dims[d], fill);
                for (int query_fill = 0; query_fill < NUM_FILLS; query_fill++)
                    check_values(check, types[t], kernelcheck_dims[d], fill, query_fill);
            }
        }
    }
    // Every remainder of the vector loops.
    for (size_t dims = 1; dims <= 70; dims++) {
        for (size_t t = 0; t < NUM_TYPES; t++) {
            check_conversion(check, types[t], dims, RANDOM);
            check_values(check, types[t], dims, RANDOM, SIGNED_ZEROS);
        }
    }
}
