// SPDX-License-Identifier: Apache-2.0
// Exact values of pairs, read from files: those of the definition, unrounded, so that rows whose
// values are the same float differ.
#include "unit_test.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "coordinator/truth/evaluation.h"
#include "temporary_folder.h"

enum { ROWS = 20, QUERIES = 3, DIMS = 75 };

static float base[ROWS][DIMS], queries[QUERIES][DIMS];

static const char *write_vectors(const char *name, uint32_t num_rows, uint32_t dims,
                                 const void *numbers, size_t bytes)
{
    static unsigned char image[8 + sizeof base + sizeof queries];
    const uint32_t head[2] = {num_rows, dims};
    memcpy(image, head, sizeof head);
    memcpy(image + sizeof head, numbers, bytes);
    return write_test_file(name, image, sizeof head + bytes);
}

// Rows that differ from query 1 in few bits, so that floats tell few of them apart.
static void make_vectors(void)
{
    for (size_t i = 0; i < DIMS; i++) {
        for (size_t q = 0; q < QUERIES; q++)
            queries[q][i] = (float)(int32_t)bsw_hash2(q, i) * 0x1p-31f;
        for (size_t r = 0; r < ROWS; r++)
            base[r][i] = queries[1][i] + (i == r ? 0x1p-20f * (float)(r + 1) : 0.0f);
    }
}

// 32 lanes, then halves added: written down once more.
static double sum_in_lanes(const double *a, const double *b)
{
    double lanes[32] = {0};
    for (size_t i = 0; i < DIMS; i++) lanes[i % 32] = fma(a[i], b[i], lanes[i % 32]);
    for (size_t half = 16; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

static double defined(enum bsw_metric metric, const float *row, const float *query)
{
    double x[DIMS], q[DIMS], apart[DIMS];
    for (size_t i = 0; i < DIMS; i++) {
        x[i] = row[i];
        q[i] = query[i];
        apart[i] = x[i] - q[i];
    }
    if (metric == BSW_METRIC_L2) return sum_in_lanes(apart, apart);
    double sum = sum_in_lanes(x, q);
    return metric == BSW_METRIC_IP ? sum
                                   : sum / (sqrt(sum_in_lanes(x, x)) * sqrt(sum_in_lanes(q, q)));
}

UNIT_TEST(values_are_those_of_the_definition_unrounded)
{
    make_vectors();
    const char *rows = write_vectors("base.fbin", ROWS, DIMS, base, sizeof base),
               *asked = write_vectors("queries.fbin", QUERIES, DIMS, queries, sizeof queries);
    int64_t ids[ROWS];
    double values[ROWS];
    for (size_t r = 0; r < ROWS; r++) ids[r] = (int64_t)((r * 7) % ROWS);
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        struct bsw_exact_pairs pairs;
        size_t same_floats = 0;
        // Queries 1 and 2 of the file.
        assert_int_equal(bsw_exact_pairs_open(&pairs, rows, asked, (struct bsw_row_range){1, 3},
                                              (enum bsw_metric)metric, bsw_cpu_level_detect(),
                                              NULL),
                         BSW_OK);
        for (uint64_t q = 0; q < 2; q++) {
            assert_int_equal(bsw_exact_pairs_take_query(&pairs, q, NULL), BSW_OK);
            assert_int_equal(bsw_exact_pairs_values(&pairs, ids, ROWS, values, NULL), BSW_OK);
            for (size_t r = 0; r < ROWS; r++) {
                assert_true(values[r] ==
                            defined((enum bsw_metric)metric, base[ids[r]], queries[q + 1]));
                for (size_t other = 0; q == 0 && other < r; other++) {
                    assert_true(values[r] != values[other]);
                    same_floats += (float)values[r] == (float)values[other];
                }
            }
        }
        if (metric == BSW_METRIC_COSINE) assert_true(same_floats > ROWS);
        bsw_exact_pairs_close(&pairs);
    }
}

// Sums above 2^24, which floats hold no more; an id below 0 has no value.
UNIT_TEST(integers_are_exact)
{
    enum { WIDE = 300 };
    static unsigned char bytes[3][WIDE], query[WIDE];
    static const int64_t ids[4] = {2, -1, 0, 1};
    static const double expected[3] = {299.0 * 255 * 255, 299.0 * 255 * 255 + 1,
                                       299.0 * 255 * 255 + 2};
    memset(bytes, 255, sizeof bytes);
    memset(query, 255, sizeof query);
    query[WIDE - 1] = 1;
    for (int r = 0; r < 3; r++) bytes[r][WIDE - 1] = (unsigned char)r;
    const char *rows = write_vectors("base.u8bin", 3, WIDE, bytes, sizeof bytes),
               *asked = write_vectors("query.u8bin", 1, WIDE, query, sizeof query);
    struct bsw_exact_pairs pairs;
    double values[4];
    assert_int_equal(bsw_exact_pairs_open(&pairs, rows, asked, BSW_ALL_ROWS, BSW_METRIC_IP,
                                          BSW_CPU_REFERENCE, NULL),
                     BSW_OK);
    assert_int_equal(bsw_exact_pairs_take_query(&pairs, 0, NULL), BSW_OK);
    assert_int_equal(bsw_exact_pairs_values(&pairs, ids, 4, values, NULL), BSW_OK);
    assert_true(isnan(values[1]));
    assert_true(values[0] == expected[2] && values[2] == expected[0] && values[3] == expected[1]);
    bsw_exact_pairs_close(&pairs);
}

UNIT_TEST(other_dims_are_refused)
{
    static const float numbers[6] = {0};
    struct bsw_exact_pairs pairs;
    struct bsw_error err;
    const char *rows = write_vectors("three.fbin", 2, 3, numbers, sizeof numbers),
               *asked = write_vectors("two.fbin", 3, 2, numbers, sizeof numbers);
    assert_int_equal(bsw_exact_pairs_open(&pairs, rows, asked, BSW_ALL_ROWS, BSW_METRIC_L2,
                                          BSW_CPU_REFERENCE, &err),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "two.fbin: 2 dims"));
    bsw_exact_pairs_close(&pairs);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
