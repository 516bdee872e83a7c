// SPDX-License-Identifier: Apache-2.0
// Lists of rows are those of the plain definition, an exact value for every pair and the smaller
// list of equal ones: on data that codes tell little about, for every level, metric and type.
#include <math.h>
#include <string.h>

#include "list_assignment_case.h"
#include "unit_test.h"

static struct bsw_error err;

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
        assert_ok(bsw_list_assigner_assign(assigner, &assignment, &err), &err);
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
    struct bsw_list_assigner_needs needs = {.metric = BSW_METRIC_COSINE,
                                            .type = BSW_VECTOR_FLOAT32,
                                            .dims = 40,
                                            .centroids = data.centroids,
                                            .num_lists = 20,
                                            .level = bsw_cpu_level_detect(),
                                            .num_threads = 1};
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
    assert_ok(bsw_list_assigner_assign(assigner, &assignment, &err), &err);
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
