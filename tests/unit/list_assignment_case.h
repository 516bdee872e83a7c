// SPDX-License-Identifier: Apache-2.0
// Rows and centroids that are hard to tell apart, and the plain definition of which belong
// together.
#ifndef BITSWEEP_LIST_ASSIGNMENT_CASE_H
#define BITSWEEP_LIST_ASSIGNMENT_CASE_H

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/refine/refine.h"
#include "shard/lists/list_assignment.h"

enum { NUM_ROWS = 260, MOST_DIMS = 288, MOST_LISTS = 700 };
enum { CLUSTERED, NEAR_TIES, LARGE, TINY, FAR, SPREAD, LONG_ROWS, BAD, WHOLE, NUM_KINDS };

static float uniform(uint64_t seed, uint64_t i)
{
    return (float)((double)(bsw_hash2(seed, i) >> 11) * 0x1p-52 - 1.0);
}

// Number d of vector i: of both rows and centroids, of which some are the same.
static float number_of(int kind, size_t i, size_t d, size_t dims)
{
    float base = uniform(i % 5, d), own = uniform(100 + i, d);
    switch (kind) {
    case CLUSTERED: // copies, and copies in all but one number
        return d == i % dims && i % 3 == 0 ? base * 0.5f : base;
    case NEAR_TIES:
        return base * (1.0f + 1e-7f * (float)(bsw_hash2(i, d) % 4));
    case LARGE: // squared norms up to 1e37
        return (base + 1e-6f * own) * 3e18f / sqrtf((float)dims);
    case TINY: // squared distances below the float32 range
        return (base + 0.1f * own + (base < 0 ? -1.0f : 1.0f)) * 1e-18f;
    case FAR: // far from the origin
        return 1000.0f + 0.001f * own;
    case SPREAD: // of very different lengths
        return own * exp2f((float)(int)(bsw_hash2(7, i) % 40) - 20.0f);
    case LONG_ROWS: // rows, which come first, that cannot be coded in the centroids' unit
        return i < 20 ? own * 1e17f : own * 1e-3f;
    case BAD:
        if (i < NUM_ROWS && bsw_hash2(3, i) % 4 == 0)
            return d > 0 ? 0.0f : i % 3 == 0 ? NAN : i % 3 == 1 ? 1e20f : 0.0f;
        return own;
    default:
        return (float)(1 + bsw_hash2(i % 90, d) % (i % 4 ? 120 : 3));
    }
}

static void write_number(enum bsw_vector_type type, float number, unsigned char *out)
{
    if (type == BSW_VECTOR_FLOAT32) memcpy(out, &number, sizeof number);
    if (type == BSW_VECTOR_UINT8) *out = (unsigned char)number;
    if (type == BSW_VECTOR_INT8) *out = (unsigned char)(int8_t)((int)number - 60);
    if (type == BSW_VECTOR_FLOAT16) {
        uint16_t half = bsw_half_nearest(number);
        memcpy(out, &half, sizeof half);
    }
}

struct data {
    enum bsw_metric metric;
    enum bsw_vector_type type;
    size_t dims, num_rows, num_lists;
    _Alignas(8) unsigned char rows[NUM_ROWS * MOST_DIMS * 4];
    float centroids[MOST_LISTS * MOST_DIMS];
    uint32_t lists[NUM_ROWS];
    double keys[NUM_ROWS];
};

static struct data data;

static void make_data(int kind, enum bsw_vector_type type, size_t dims, size_t num_lists)
{
    size_t bytes = bsw_vector_type_bytes(type);
    data.type = type;
    data.dims = dims;
    data.num_rows = NUM_ROWS;
    data.num_lists = num_lists;
    for (size_t i = 0; i < NUM_ROWS * dims; i++)
        write_number(type, number_of(kind, i / dims, i % dims, dims), data.rows + i * bytes);
    // The first are near to rows, or are rows; none has a fault.
    for (size_t i = 0; i < num_lists * dims; i++) {
        size_t list = i / dims, like = kind == BAD ? NUM_ROWS + list : 40 + 3 * list % 500;
        data.centroids[i] = number_of(kind, like, i % dims, dims);
    }
}

static void define(enum bsw_metric metric)
{
    const struct bsw_refine_table *refine = &bsw_refine_reference;
    size_t row_bytes = data.dims * bsw_vector_type_bytes(data.type);
    enum bsw_metric near = metric == BSW_METRIC_COSINE ? metric : BSW_METRIC_L2;
    data.metric = metric;
    for (size_t r = 0; r < data.num_rows; r++) {
        double row[MOST_DIMS];
        refine->to_double(data.type, data.rows + r * row_bytes, data.dims, row);
        double norm = refine->squared_norm(row, data.dims);
        data.lists[r] = BSW_NO_LIST;
        data.keys[r] = -INFINITY;
        if (bsw_row_fault_of(norm, metric) != BSW_ROW_GOOD) continue;
        for (size_t l = 0; l < data.num_lists; l++) {
            double key = bsw_metric_key(near, refine->value(near, BSW_VECTOR_FLOAT32,
                                                            data.centroids + l * data.dims, row,
                                                            norm, data.dims));
            if (!(key > data.keys[r])) continue;
            data.keys[r] = key;
            data.lists[r] = (uint32_t)l;
        }
    }
}

#endif
