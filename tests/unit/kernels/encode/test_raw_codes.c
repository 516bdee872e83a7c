// SPDX-License-Identifier: Apache-2.0
// Rows of integers as bytes: their totals against plain arithmetic, and the edge of int32.
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/files/index_manifest.h"
#include "kernels/encode/raw_codes.h"
#include "small_index.h"
#include "unit_test.h"

static const enum bsw_vector_type types[] = {BSW_VECTOR_UINT8, BSW_VECTOR_INT8};
static const enum bsw_metric metrics[] = {BSW_METRIC_IP, BSW_METRIC_L2};

// What a byte stands for.
static int number_of(enum bsw_vector_type type, unsigned char byte)
{
    return type == BSW_VECTOR_UINT8 ? byte : (int8_t)byte;
}

static int64_t exact_total(enum bsw_vector_type type, enum bsw_metric metric,
                           const unsigned char *x, const unsigned char *y, size_t dims)
{
    int64_t total = 0;
    for (size_t i = 0; i < dims; i++) {
        int a = number_of(type, x[i]), b = number_of(type, y[i]);
        total += metric == BSW_METRIC_L2 ? -(int64_t)(a - b) * (a - b) : (int64_t)a * b;
    }
    return total;
}

// Where a bundle has row `row`, by the formula of code_layout.h.
static size_t byte_place(size_t row, size_t dim, size_t padded_dims)
{
    return ((row / 16 * (padded_dims / 4) + dim / 4) * 16 + row % 16) * 4 + dim % 4;
}

static void encode_query(enum bsw_vector_type type, enum bsw_metric metric, const unsigned char *y,
                         size_t dims, size_t padded_dims, int8_t *components, int32_t *constant)
{
    float *row = allocate_or_fail(dims, sizeof *row);
    for (size_t i = 0; i < dims; i++) row[i] = (float)number_of(type, y[i]);
    assert_int_equal(bsw_raw_first_misfit(type, row, dims), dims);
    bsw_raw_query_encode(type, metric, row, dims, padded_dims, components, constant);
    bsw_free(&row);
}

// A bundle of num_rows rows against a query [dims]; untouched bytes keep their 0.
static void check_bundle(enum bsw_vector_type type, enum bsw_metric metric,
                         const unsigned char *rows, size_t num_rows, const unsigned char *query,
                         size_t dims)
{
    size_t padded_dims = (dims + 31) / 32 * 32, num_bytes = 32 * padded_dims, written = 0;
    unsigned char *bytes = allocate_or_fail(num_bytes, 1);
    int8_t *components = allocate_or_fail(padded_dims, 1);
    int32_t offsets[33], constant;
    memset(components, 1, padded_dims);
    offsets[num_rows] = 12345;
    bsw_raw_pack_bundle(type, metric, rows, num_rows, dims, bytes, offsets);
    encode_query(type, metric, query, dims, padded_dims, components, &constant);
    for (size_t r = 0; r < num_rows; r++) {
        int64_t total = (int64_t)offsets[r] + constant;
        for (size_t i = 0; i < padded_dims; i++) {
            unsigned char *byte = &bytes[byte_place(r, i, padded_dims)];
            total += bsw_raw_factor(metric) * *byte * components[i];
            if (i >= dims) assert_true(components[i] == 0 && *byte == 0);
            *byte = 0;
            written++;
        }
        assert_true(total == exact_total(type, metric, rows + r * dims, query, dims));
    }
    assert_int_equal(offsets[num_rows], 12345);
    for (size_t i = 0; i < num_bytes; i++) assert_int_equal(bytes[i], 0); // nothing elsewhere
    assert_int_equal(written, num_rows * padded_dims);
    bsw_free(&components);
    bsw_free(&bytes);
}

UNIT_TEST(totals_are_exact)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 31, 32, 33, 45, 64, 100, 129};
    static unsigned char rows[32 * 129], query[129];
    for (size_t trial = 0; trial < 2 * 2 * 12 * 32; trial++) {
        size_t dims = sizes[trial / 4 % 12], num_rows = trial / 48 + 1;
        for (size_t i = 0; i < num_rows * dims; i++) rows[i] = (unsigned char)bsw_hash2(trial, i);
        for (size_t i = 0; i < dims; i++) query[i] = (unsigned char)bsw_hash2(~trial, i);
        if (trial % 5 == 0) memset(rows, trial % 2 ? 255 : 128, num_rows * dims);
        if (trial % 7 == 0) memset(query, trial % 3 ? 128 : 0, dims);
        check_bundle(types[trial % 2], metrics[trial / 2 % 2], rows, num_rows, query, dims);
    }
}

// The extremes of rows and queries at the largest number of dimensions.
UNIT_TEST(the_widest_rows_are_exact)
{
    static const unsigned char extremes[] = {0, 127, 128, 255};
    static unsigned char row[BSW_RAW_MAX_DIMS], query[BSW_RAW_MAX_DIMS];
    for (size_t trial = 0; trial < 64; trial++) {
        memset(row, extremes[trial / 4 % 4], sizeof row);
        memset(query, extremes[trial / 16], sizeof query);
        check_bundle(types[trial % 2], metrics[trial / 2 % 2], row, 1, query, BSW_RAW_MAX_DIMS);
    }
}

// Largest size of a sum of some of the three parts that one dimension with numbers x and y adds.
static int64_t largest_part(enum bsw_vector_type type, enum bsw_metric metric, unsigned char x,
                            unsigned char y)
{
    unsigned char bytes[32 * 32] = {0};
    int8_t components[32];
    int32_t offset, constant;
    int64_t largest = 0;
    float number = (float)number_of(type, y);
    bsw_raw_pack_bundle(type, metric, &x, 1, 1, bytes, &offset);
    bsw_raw_query_encode(type, metric, &number, 1, 32, components, &constant);
    const int64_t parts[3] = {(int64_t)bsw_raw_factor(metric) * bytes[0] * components[0], offset,
                              constant};
    for (unsigned set = 1; set < 8; set++) {
        int64_t sum = 0;
        for (unsigned i = 0; i < 3; i++) sum += set >> i & 1 ? parts[i] : 0;
        sum = sum < 0 ? -sum : sum;
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

// Every pair of numbers: the limit of dims is safe, and one more would not be.
UNIT_TEST(no_sum_leaves_int32)
{
    int64_t largest = 0;
    for (size_t kind = 0; kind < 4; kind++) {
        for (unsigned pair = 0; pair < 65536; pair++) {
            int64_t part = largest_part(types[kind % 2], metrics[kind / 2],
                                        (unsigned char)(pair >> 8), (unsigned char)pair);
            largest = part > largest ? part : largest;
        }
    }
    assert_true(largest * BSW_RAW_MAX_DIMS <= INT32_MAX);
    assert_true(largest * (BSW_RAW_MAX_DIMS + 1) > INT32_MAX);
}

UNIT_TEST(misfits_are_found)
{
    static const float bad[] = {0.5f,     256.0f,    -129.0f,   1e9f, -1e30f,
                                INFINITY, -INFINITY, 127.0001f, NAN,  1e-20f};
    float row[40];
    for (size_t i = 0; i < 40; i++) row[i] = (float)(i * 3);
    row[39] = -0.0f;
    for (size_t t = 0; t < 2; t++) {
        assert_int_equal(bsw_raw_first_misfit(types[t], row, 40), 40);
        for (size_t i = 0; i < 400; i++) {
            float good = row[i / 10];
            row[i / 10] = bad[i % 10];
            assert_int_equal(bsw_raw_first_misfit(types[t], row, 40), i / 10);
            row[i / 10] = good;
        }
    }
    row[7] = 128.0f; // each type ends where it does
    assert_int_equal(bsw_raw_first_misfit(BSW_VECTOR_UINT8, row, 40), 40);
    assert_int_equal(bsw_raw_first_misfit(BSW_VECTOR_INT8, row, 40), 7);
    row[7] = 255.0f;
    assert_int_equal(bsw_raw_first_misfit(BSW_VECTOR_UINT8, row, 40), 40);
    row[7] = -128.0f;
    assert_int_equal(bsw_raw_first_misfit(BSW_VECTOR_INT8, row, 40), 40);
    row[7] = -1.0f;
    assert_int_equal(bsw_raw_first_misfit(BSW_VECTOR_UINT8, row, 40), 7);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
