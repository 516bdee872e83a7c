// SPDX-License-Identifier: Apache-2.0
// The exact value against sums in long double and in integers that know nothing of lanes and trees.
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "kernels/refine/refine.h"
#include "kernels/refine/refine_value.h"
#include "unit_test.h"

enum { MAX_DIMS = 1000 };
static const size_t all_dims[] = {1, 2, 31, 32, 33, 64, 96, 100, 128, 1000};
#define NUM_DIMS (sizeof all_dims / sizeof all_dims[0])

// Numbers of a type, and what they mean.
struct numbers {
    _Alignas(8) unsigned char raw[MAX_DIMS * 4];
    double values[MAX_DIMS];
};

static void make_numbers(enum bsw_vector_type type, uint64_t seed, size_t dims,
                         struct numbers *numbers)
{
    for (size_t i = 0; i < dims; i++) {
        uint64_t random = bsw_hash2(seed, i);
        float single = (float)(int32_t)random * 0x1p-31f;
        uint16_t half = (uint16_t)(0x2c00 + random % 0x1800) | (uint16_t)(random >> 32 & 0x8000);
        unsigned char byte = (unsigned char)(random >> 16);
        if (type == BSW_VECTOR_FLOAT32) {
            memcpy(numbers->raw + 4 * i, &single, sizeof single);
            numbers->values[i] = single;
        } else if (type == BSW_VECTOR_FLOAT16) {
            memcpy(numbers->raw + 2 * i, &half, sizeof half);
            numbers->values[i] = bsw_half_to_float(half);
        } else {
            numbers->raw[i] = byte;
            numbers->values[i] =
                type == BSW_VECTOR_UINT8 ? byte : byte - (byte > 127 ? 256.0 : 0.0);
        }
    }
}

// *error: what float64 sums may be off by.
static long double true_value(enum bsw_metric metric, const double *x, const double *q, size_t dims,
                              long double *error)
{
    long double xq = 0, xx = 0, qq = 0, apart = 0;
    for (size_t i = 0; i < dims; i++) {
        long double a = x[i], b = q[i];
        xq += a * b;
        xx += a * a;
        qq += b * b;
        apart += (a - b) * (a - b);
    }
    *error = ((long double)dims + 8) * 0x1p-53L;
    if (metric != BSW_METRIC_COSINE) *error *= metric == BSW_METRIC_IP ? sqrtl(xx * qq) : apart;
    if (metric == BSW_METRIC_COSINE) return xq / (sqrtl(xx) * sqrtl(qq));
    return metric == BSW_METRIC_IP ? xq : apart;
}

static void check_type(const struct bsw_refine_table *table, enum bsw_vector_type type, size_t dims,
                       uint64_t seed)
{
    static struct numbers row, query;
    static double converted[MAX_DIMS];
    int is_integer = type == BSW_VECTOR_UINT8 || type == BSW_VECTOR_INT8;
    make_numbers(type, seed, dims, &row);
    make_numbers(type, seed + 1, dims, &query);
    table->to_double(type, query.raw, dims, converted);
    assert_memory_equal(converted, query.values, dims * sizeof(double));
    double norm = table->squared_norm(converted, dims);
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        long double error,
            expected = true_value((enum bsw_metric)metric, row.values, query.values, dims, &error);
        double found = table->value((enum bsw_metric)metric, type, row.raw, converted, norm, dims);
        if (is_integer && metric != BSW_METRIC_COSINE) error = 0; // sums are exact
        if (fabsl((long double)found - expected) > error) fail_msg("%a, not %La", found, expected);
    }
}

UNIT_TEST(values_are_the_true_ones)
{
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        const struct bsw_refine_table *table = bsw_refine_table_get((enum bsw_cpu_level)level);
        for (int type = BSW_VECTOR_FLOAT32; type <= BSW_VECTOR_INT8; type++)
            for (size_t d = 0; d < NUM_DIMS; d++)
                for (uint64_t seed = 0; seed < 20; seed += 2)
                    check_type(table, (enum bsw_vector_type)type, all_dims[d], seed);
    }
}

UNIT_TEST(small_cases_are_as_by_hand)
{
    const float row[2] = {3.0f, 4.0f}, minus_zeros[2] = {-0.0f, -0.0f};
    const double query[2] = {4.0, 3.0};
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        const struct bsw_refine_table *table = bsw_refine_table_get((enum bsw_cpu_level)level);
        assert_true(table->squared_norm(query, 2) == 25.0);
        assert_true(table->value(BSW_METRIC_IP, BSW_VECTOR_FLOAT32, row, query, 25.0, 2) == 24.0);
        assert_true(table->value(BSW_METRIC_L2, BSW_VECTOR_FLOAT32, row, query, 25.0, 2) == 2.0);
        assert_true(table->value(BSW_METRIC_COSINE, BSW_VECTOR_FLOAT32, row, query, 25.0, 2) ==
                    0.96);
        double zero = table->value(BSW_METRIC_IP, BSW_VECTOR_FLOAT32, minus_zeros, query, 25.0, 2);
        assert_true(zero == 0.0 && !signbit(zero));
    }
}

// ---- cosines of integers ----

__extension__ typedef unsigned __int128 wide;

// 2^32 times a number of 2^21 or more is an integer, of 75 bits at most.
static wide scaled(double number)
{
    return (wide)(uint64_t)ldexp(number, 20) << 12 |
           (uint64_t)ldexp(ldexp(number, 20) - floor(ldexp(number, 20)), 12);
}

static wide distance(wide a, wide b)
{
    return a > b ? a - b : b - a;
}

// s^2 / n as it is rounded: none of its neighbours is nearer.
static void check_quotient(uint64_t s, uint64_t n)
{
    double found = bsw_refine_square_over((double)s, (double)n);
    wide square = (wide)(s * s) << 32;
    assert_true(found >= 0x1p21 && found < 0x1p43);
    wide off = distance(square, scaled(found) * n);
    assert_true(off <= distance(square, scaled(nextafter(found, 0)) * n));
    assert_true(off <= distance(square, scaled(nextafter(found, INFINITY)) * n));
    for (uint64_t factor = 2; factor < 20 && factor * s < UINT64_C(1) << 32; factor++) {
        if (factor * factor * n >= UINT64_C(1) << 32) break;
        assert_true(bsw_refine_square_over((double)(factor * s), (double)(factor * factor * n)) ==
                    found);
    }
}

// Squares that float64 does not hold, up to those of 65536 dims.
UNIT_TEST(quotients_of_large_squares_are_rounded_once)
{
    const uint64_t most = 65536ull * 255 * 255;
    check_quotient(most, most);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t random = bsw_hash2(1, i), s = most - (random & 0xffffffff) % (most - 94906266);
        uint64_t least = s * s / most + 1; // the query's norm is at most the largest
        check_quotient(s, least + (random >> 32) % (most - least + 1));
    }
}

enum { INTEGER_DIMS = 2000 };

static double cosine_of(const struct bsw_refine_table *table, enum bsw_vector_type type,
                        const uint8_t *row, const double *query, size_t dims)
{
    double norm = table->squared_norm(query, dims);
    return table->value(BSW_METRIC_COSINE, type, row, query, norm, dims);
}

// x and 3x are equally near, and 85 times a row of 1 to 3, of few dimensions and of so many that
// squares pass 2^53.
UNIT_TEST(multiples_of_integers_tie_under_cosine)
{
    static uint8_t row[INTEGER_DIMS], multiple[INTEGER_DIMS];
    static double query[INTEGER_DIMS];
    const struct bsw_refine_table *table = bsw_refine_table_get(bsw_cpu_level_detect());
    for (uint64_t seed = 0; seed < 600; seed++) {
        enum bsw_vector_type type = seed % 2 ? BSW_VECTOR_INT8 : BSW_VECTOR_UINT8;
        size_t dims = seed % 3 ? 3 + seed % 40 : INTEGER_DIMS;
        unsigned factor = seed % 4 < 2 ? 3 : 85, most = type == BSW_VECTOR_INT8 ? 127 : 255;
        for (size_t i = 0; i < dims; i++) {
            uint64_t random = bsw_hash2(seed, i);
            unsigned number = most / factor - (i ? random % (factor == 85 ? 2 : 20) : 0);
            if (type == BSW_VECTOR_INT8 && random >> 63) number = 0u - number;
            row[i] = (uint8_t)number;
            multiple[i] = (uint8_t)(factor * number);
            query[i] = type == BSW_VECTOR_INT8 ? (double)(random >> 32 & 255) - 128
                                               : (double)(255 - (random >> 32) % 50);
        }
        double value = cosine_of(table, type, row, query, dims);
        assert_true(value == cosine_of(table, type, multiple, query, dims));
        assert_true(fabs(value) <= 1);
        table->to_double(type, multiple, dims, query);
        assert_true(cosine_of(table, type, row, query, dims) == 1);
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
