// The keys of whole tiles are refine's values of every pair, bit for bit: every type, every level.
#include <string.h>

#include "common/base/integer_hash.h"
#include "kernels/exact/exact.h"
#include "kernels/refine/refine.h"
#include "unit_test.h"

enum { MAX_DIMS = 200, NUM_ROWS = 53, NUM_QUERIES = 11 };
static const size_t all_dims[] = {1, 31, 32, 33, 96, 100, 128, 200};

struct vectors {
    _Alignas(64) unsigned char raw[NUM_ROWS * MAX_DIMS * 4];
    _Alignas(64) double numbers[NUM_ROWS * MAX_DIMS];
    double norms[NUM_ROWS];
};

static struct vectors rows, queries;
static double keys[NUM_QUERIES * NUM_ROWS], expected[NUM_QUERIES * NUM_ROWS];

static size_t type_bytes(enum bsw_vector_type type)
{
    return type == BSW_VECTOR_FLOAT32 ? 4 : type == BSW_VECTOR_FLOAT16 ? 2 : 1;
}

static void make_vectors(enum bsw_vector_type type, uint64_t seed, size_t num, size_t dims,
                         struct vectors *vectors)
{
    for (size_t i = 0; i < num * dims; i++) {
        uint64_t random = bsw_hash2(seed, i);
        float single = (float)(int32_t)random * 0x1p-31f;
        uint16_t half = (uint16_t)(0x2c00 + random % 0x1800) | (uint16_t)(random >> 32 & 0x8000);
        unsigned char byte = (unsigned char)(random >> 16) | 1; // no zero row
        if (type == BSW_VECTOR_FLOAT32)
            memcpy(vectors->raw + 4 * i, &single, sizeof single);
        else if (type == BSW_VECTOR_FLOAT16)
            memcpy(vectors->raw + 2 * i, &half, sizeof half);
        else
            vectors->raw[i] = byte;
    }
    bsw_refine_reference.to_double(type, vectors->raw, num * dims, vectors->numbers);
    for (size_t r = 0; r < num; r++)
        vectors->norms[r] = bsw_refine_reference.squared_norm(vectors->numbers + r * dims, dims);
}

static void refine_all(enum bsw_metric metric, enum bsw_vector_type type, size_t dims)
{
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        for (size_t r = 0; r < NUM_ROWS; r++) {
            double value =
                bsw_refine_reference.value(metric, type, rows.raw + r * dims * type_bytes(type),
                                           queries.numbers + q * dims, queries.norms[q], dims);
            expected[q * NUM_ROWS + r] = bsw_metric_key(metric, value);
        }
    }
}

static void check_tile(const struct bsw_exact_table *table, enum bsw_metric metric,
                       enum bsw_vector_type type, size_t dims)
{
    int cosine = metric == BSW_METRIC_COSINE;
    const double *row_norms = cosine ? rows.norms : NULL;
    const double *query_norms = cosine ? queries.norms : NULL;
    memset(keys, 0xff, sizeof keys);
    table->keys_double(metric, rows.numbers, NUM_ROWS, row_norms, queries.numbers, NUM_QUERIES,
                       query_norms, dims, keys);
    if (memcmp(keys, expected, sizeof keys) != 0)
        fail_msg("keys_double %s: %s, type %d, %zu dims", table->level, bsw_metric_name(metric),
                 (int)type, dims);
}

UNIT_TEST(keys_are_the_values_of_refine)
{
    for (int type = BSW_VECTOR_FLOAT32; type <= BSW_VECTOR_INT8; type++) {
        for (size_t d = 0; d < sizeof all_dims / sizeof all_dims[0]; d++) {
            make_vectors((enum bsw_vector_type)type, 1, NUM_ROWS, all_dims[d], &rows);
            make_vectors((enum bsw_vector_type)type, 2, NUM_QUERIES, all_dims[d], &queries);
            for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
                refine_all((enum bsw_metric)metric, (enum bsw_vector_type)type, all_dims[d]);
                for (int level = BSW_CPU_REFERENCE; level <= (int)bsw_cpu_level_detect(); level++)
                    check_tile(bsw_exact_table_get((enum bsw_cpu_level)level),
                               (enum bsw_metric)metric, (enum bsw_vector_type)type, all_dims[d]);
            }
        }
    }
}

UNIT_TEST(tables_name_their_level)
{
    for (int level = BSW_CPU_REFERENCE; level <= (int)bsw_cpu_level_detect(); level++)
        assert_string_equal(bsw_exact_table_get((enum bsw_cpu_level)level)->level,
                            bsw_cpu_level_name((enum bsw_cpu_level)level));
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
