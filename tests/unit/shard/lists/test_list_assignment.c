// SPDX-License-Identifier: Apache-2.0
// Lists of rows are those of the plain definition, an exact value for every pair and the smaller
// list of equal ones: on data that codes tell little about, for every level, metric and type.
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/refine/refine.h"
#include "shard/lists/list_assignment.h"
#include "unit_test.h"

enum { NUM_ROWS = 260, MOST_DIMS = 288, MOST_LISTS = 700 };
enum { CLUSTERED, NEAR_TIES, LARGE, TINY, FAR, SPREAD, LONG_ROWS, BAD, WHOLE, NUM_KINDS };

static struct bsw_error err;

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

static bsw_list_assigner *open_assigner(int level, int num_threads)
{
    const struct bsw_list_assigner_needs needs = {
        .metric = data.metric,
        .type = data.type,
        .dims = data.dims,
        .centroids = data.centroids,
        .num_lists = data.num_lists,
        .level = (enum bsw_cpu_level)level,
        .num_threads = num_threads,
    };
    bsw_list_assigner *assigner;
    assert_ok(bsw_list_assigner_open(&needs, &assigner, &err), &err);
    return assigner;
}

static void check_level(int level, int num_threads)
{
    uint32_t lists[NUM_ROWS];
    double keys[NUM_ROWS];
    bsw_list_assigner *assigner = open_assigner(level, num_threads);
    for (int is_guessed = 0; is_guessed < 2; is_guessed++) {
        for (size_t r = 0; r < data.num_rows; r++)
            lists[r] = r % 3 ? (uint32_t)(bsw_hash2(5, r) % data.num_lists) : BSW_NO_LIST;
        const struct bsw_list_assignment assignment = {.rows = data.rows,
                                                       .num_rows = data.num_rows,
                                                       .guesses = is_guessed ? lists : NULL,
                                                       .lists = lists,
                                                       .keys = keys};
        bsw_list_assigner_assign(assigner, &assignment);
        assert_memory_equal(lists, data.lists, data.num_rows * sizeof *lists);
        assert_memory_equal(keys, data.keys, data.num_rows * sizeof *keys);
    }
    bsw_list_assigner_close(&assigner);
}

static void check_all(int kind, enum bsw_vector_type type, size_t dims, size_t num_lists)
{
    make_data(kind, type, dims, num_lists);
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        define((enum bsw_metric)m);
        for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level))
            check_level(level, 1 + level % 3);
    }
}

UNIT_TEST(lists_are_those_of_the_definition)
{
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        check_all(kind, BSW_VECTOR_FLOAT32, 40, 100);
        check_all(kind, BSW_VECTOR_FLOAT32, 3, 33);
        check_all(kind, BSW_VECTOR_FLOAT32, 288, 64); // more than short sums hold
    }
}

// Centroids around 0 whose codes are exact, and rows nearly halfway between two of them: their own
// errors decide.
UNIT_TEST(errors_of_rows_alone_lose_no_list)
{
    enum { DIMS = 64, LISTS = 160 };
    make_data(SPREAD, BSW_VECTOR_FLOAT32, DIMS, LISTS);
    for (size_t i = 0; i < LISTS * DIMS; i++) {
        int k = i % DIMS ? (int)(bsw_hash2(i / DIMS / 2, i % DIMS) % 255) - 127 : 127;
        data.centroids[i] = (float)(i / DIMS % 2 ? k : -k) * 0x1p-7f;
    }
    for (size_t i = 0; i < NUM_ROWS * DIMS; i++) {
        size_t row = i / DIMS, d = i % DIMS, one = row % LISTS, other = (one + 7) % LISTS;
        float number = 0.5f * (data.centroids[one * DIMS + d] + data.centroids[other * DIMS + d]);
        number += 1e-3f * uniform(row, d);
        memcpy(data.rows + 4 * i, &number, sizeof number);
    }
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        define((enum bsw_metric)m);
        check_level(bsw_cpu_level_detect(), 1);
    }
}

UNIT_TEST(rows_may_be_of_any_type)
{
    check_all(WHOLE, BSW_VECTOR_UINT8, 64, 700);
    check_all(WHOLE, BSW_VECTOR_INT8, 33, 65);
    check_all(WHOLE, BSW_VECTOR_FLOAT16, 32, 32);
}

UNIT_TEST(few_lists_and_few_dimensions)
{
    for (size_t num_lists = 1; num_lists < 4; num_lists++) {
        check_all(WHOLE, BSW_VECTOR_UINT8, 1, num_lists);
        check_all(CLUSTERED, BSW_VECTOR_FLOAT32, 32, num_lists);
    }
}

UNIT_TEST(one_row)
{
    make_data(NEAR_TIES, BSW_VECTOR_FLOAT32, 40, 50);
    data.num_rows = 1;
    define(BSW_METRIC_L2);
    check_level(bsw_cpu_level_detect(), 2);
}

UNIT_TEST(a_row_that_is_a_list_gets_it_and_of_copies_the_first)
{
    make_data(WHOLE, BSW_VECTOR_UINT8, 64, NUM_ROWS);
    for (size_t i = 0; i < NUM_ROWS * data.dims; i++) data.centroids[i] = (float)data.rows[i];
    define(BSW_METRIC_IP);
    for (size_t r = 0; r < NUM_ROWS; r++) {
        assert_true(data.keys[r] == 0.0 && data.lists[r] <= r);
        for (size_t l = 0; l < data.lists[r]; l++)
            assert_memory_not_equal(data.rows + l * data.dims, data.rows + r * data.dims,
                                    data.dims);
    }
    assert_true(data.lists[NUM_ROWS - 1] < NUM_ROWS - 1);
    check_level(bsw_cpu_level_detect(), 3);
}

UNIT_TEST(rows_with_a_fault_have_no_list)
{
    size_t num_bad[BSW_METRIC_NUM] = {0};
    make_data(BAD, BSW_VECTOR_FLOAT32, 40, 20);
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        define((enum bsw_metric)m);
        for (size_t r = 0; r < NUM_ROWS; r++) num_bad[m] += data.lists[r] == BSW_NO_LIST;
        check_level(bsw_cpu_level_detect(), 1);
    }
    assert_true(num_bad[BSW_METRIC_L2] > 10);
    assert_true(num_bad[BSW_METRIC_COSINE] > num_bad[BSW_METRIC_L2]);
}

UNIT_TEST(a_centroid_with_a_fault_is_refused)
{
    make_data(WHOLE, BSW_VECTOR_FLOAT32, 40, 20);
    memset(data.centroids + 7 * 40, 0, 40 * sizeof(float));
    struct bsw_list_assigner_needs needs = {
        BSW_METRIC_COSINE, BSW_VECTOR_FLOAT32, 40, data.centroids, 20, bsw_cpu_level_detect(), 1};
    bsw_list_assigner *assigner;
    assert_int_equal(bsw_list_assigner_open(&needs, &assigner, &err), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "centroid 7 is a zero vector"));
    assert_null(assigner);
    needs.metric = BSW_METRIC_L2;
    data.centroids[3] = NAN;
    assert_int_equal(bsw_list_assigner_open(&needs, &assigner, &err), BSW_ERROR_BAD_DATA);
}

UNIT_TEST(a_source_is_assigned_block_by_block)
{
    enum { SOURCE_ROWS = 90000, FIRST = 111, DIMS = 32 }; // 3 blocks
    bsw_vectors *vectors;
    assert_ok(bsw_vectors_open("synth:count=90111,dims=32,seed=3,clusters=9",
                               (struct bsw_row_range){FIRST, UINT64_MAX}, &vectors, &err),
              &err);
    make_data(CLUSTERED, BSW_VECTOR_FLOAT32, DIMS, 50);
    data.metric = BSW_METRIC_L2;
    bsw_list_assigner *assigner = open_assigner(bsw_cpu_level_detect(), 2);
    float *rows = (float *)allocate_or_fail(SOURCE_ROWS * DIMS, sizeof *rows);
    uint32_t *all = (uint32_t *)allocate_or_fail(SOURCE_ROWS, sizeof *all);
    uint32_t *lists = (uint32_t *)allocate_or_fail(SOURCE_ROWS, sizeof *lists);
    assert_ok(bsw_vectors_read(vectors, FIRST, SOURCE_ROWS, rows, &err), &err);
    const struct bsw_list_assignment assignment = {
        .rows = rows, .num_rows = SOURCE_ROWS, .lists = all};
    bsw_list_assigner_assign(assigner, &assignment);
    assert_ok(bsw_lists_assign(vectors, FIRST, SOURCE_ROWS, assigner, NULL, lists, &err), &err);
    assert_memory_equal(lists, all, SOURCE_ROWS * sizeof *lists);
    assert_ok(bsw_lists_assign(vectors, FIRST + 70000, 20000, assigner, NULL, lists, &err), &err);
    assert_memory_equal(lists, all + 70000, 20000 * sizeof *lists);
    bsw_list_assigner_close(&assigner);
    bsw_vectors_close(&vectors);
    bsw_free(&rows);
    bsw_free(&all);
    bsw_free(&lists);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
