// SPDX-License-Identifier: Apache-2.0
// Lists that an emulated device finds are those of the plain definition, keys to the bit: with and
// without a screen, over several calls, with centroids that do not fit, and where it does not pay.
#include <stdlib.h>

#include "emulated_device.h"
#include "kernels/device_scan/device_tuning.h"
#include "list_assignment_case.h"
#include "shard/exact/device_assigner.h"
#include "unit_test.h"

static struct bsw_error err;

static struct bsw_list_assigner_needs needs_of(const struct bsw_list_finder *finder)
{
    return (struct bsw_list_assigner_needs){.metric = data.metric,
                                            .type = data.type,
                                            .dims = data.dims,
                                            .centroids = data.centroids,
                                            .num_lists = data.num_lists,
                                            .level = BSW_CPU_REFERENCE,
                                            .num_threads = 2,
                                            .finder = finder,
                                            .finder_rows = 50}; // fewer than there are
}

// All rows twice, by one assigner.
static void check_found(const struct bsw_list_finder *finder)
{
    const struct bsw_list_assigner_needs needs = needs_of(finder);
    bsw_list_assigner *assigner;
    assert_ok(bsw_list_assigner_open(&needs, &assigner, &err), &err);
    for (int again = 0; again < 2; again++) {
        uint32_t lists[NUM_ROWS] = {0};
        double keys[NUM_ROWS] = {0};
        size_t num_rows = again ? data.num_rows / 2 + 1 : data.num_rows;
        const struct bsw_list_assignment assignment = {
            .rows = data.rows, .num_rows = num_rows, .lists = lists, .keys = keys};
        assert_ok(bsw_list_assigner_assign(assigner, &assignment, &err), &err);
        assert_memory_equal(lists, data.lists, num_rows * sizeof *lists);
        assert_memory_equal(keys, data.keys, num_rows * sizeof *keys);
    }
    bsw_list_assigner_close(&assigner);
}

static void check_all(int kind, enum bsw_vector_type type, size_t dims, size_t num_lists)
{
    make_data(kind, type, dims, num_lists);
    data.num_rows = 70; // the emulator takes its time
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        define((enum bsw_metric)m);
        for (int is_screened = 0; is_screened < 2; is_screened++) {
            assert_ok(bsw_device_tuning_take("test",
                                             is_screened ? "device 8.0 exact_screen=on\n"
                                                         : "device 8.0 exact_screen=off\n",
                                             &err),
                      &err);
            const struct bsw_list_finder finder = bsw_device_list_finder(device);
            check_found(&finder);
        }
    }
}

UNIT_TEST(lists_are_those_of_the_definition)
{
    for (int kind = 0; kind < NUM_KINDS; kind++) check_all(kind, BSW_VECTOR_FLOAT32, 40, 100);
    check_all(NEAR_TIES, BSW_VECTOR_FLOAT32, 35, 290);
}

UNIT_TEST(rows_may_be_of_any_type)
{
    check_all(WHOLE, BSW_VECTOR_UINT8, 64, 300);
    check_all(WHOLE, BSW_VECTOR_INT8, 33, 65);
    check_all(WHOLE, BSW_VECTOR_FLOAT16, 32, 32);
    check_all(WHOLE, BSW_VECTOR_UINT8, 1, 1);
}

UNIT_TEST(rows_that_all_have_faults_have_no_list)
{
    make_data(BAD, BSW_VECTOR_FLOAT32, 40, 20);
    for (size_t r = 0; r < NUM_ROWS; r++) memset(data.rows + r * 160, 0xff, 4); // NaN
    define(BSW_METRIC_L2);
    for (size_t r = 0; r < data.num_rows; r++) assert_int_equal(data.lists[r], BSW_NO_LIST);
    const struct bsw_list_finder finder = bsw_device_list_finder(device);
    check_found(&finder);
}

// ---- other finders ----

struct answers {
    size_t num_opened;
    enum bsw_status status; // of opening
    uint32_t list;
};

static enum bsw_status open_answers(void *context, const struct bsw_list_assigner_needs *needs,
                                    void **state, struct bsw_error *error)
{
    struct answers *answers = context;
    *state = NULL;
    answers->num_opened++;
    if (answers->status != BSW_OK) return bsw_fail(error, answers->status, "made up");
    *state = answers;
    return BSW_OK;
}

static enum bsw_status give_answers(void *state, const void *rows, const double *norms,
                                    size_t num_rows, uint32_t *lists, double *keys,
                                    struct bsw_error *error)
{
    const struct answers *answers = state;
    for (size_t r = 0; r < num_rows; r++) lists[r] = answers->list, keys[r] = -1.0;
    return BSW_OK;
}

static void close_answers(void *state)
{
}

UNIT_TEST(without_memory_rows_are_assigned_here)
{
    struct answers answers = {.status = BSW_ERROR_OUT_OF_MEMORY};
    const struct bsw_list_finder finder = {&answers, 0, open_answers, give_answers, close_answers};
    make_data(CLUSTERED, BSW_VECTOR_FLOAT32, 40, 100);
    define(BSW_METRIC_L2);
    check_found(&finder);
    assert_int_equal(answers.num_opened, 1);
}

UNIT_TEST(a_device_that_computes_otherwise_is_found_out)
{
    struct answers answers = {.list = 99};
    const struct bsw_list_finder finder = {&answers, 0, open_answers, give_answers, close_answers};
    make_data(CLUSTERED, BSW_VECTOR_FLOAT32, 40, 100);
    define(BSW_METRIC_L2);
    const struct bsw_list_assigner_needs needs = needs_of(&finder);
    bsw_list_assigner *assigner;
    uint32_t lists[NUM_ROWS];
    const struct bsw_list_assignment assignment = {
        .rows = data.rows, .num_rows = NUM_ROWS, .lists = lists};
    assert_ok(bsw_list_assigner_open(&needs, &assigner, &err), &err);
    assert_int_equal(bsw_list_assigner_assign(assigner, &assignment, &err), BSW_ERROR_SELF_CHECK);
    assert_non_null(strstr(err.message, "a device found list 99"));
    bsw_list_assigner_close(&assigner);
}

UNIT_TEST(a_finder_is_taken_where_it_pays)
{
    const struct bsw_list_finder finder = {.least_pairs = 1000};
    struct bsw_list_assigner_needs needs = {.num_lists = 10};
    bsw_list_assigner_take_finder(&needs, &finder, 100);
    assert_ptr_equal(needs.finder, &finder);
    assert_int_equal(needs.finder_rows, 100);
    bsw_list_assigner_take_finder(&needs, &finder, 99);
    assert_null(needs.finder);
    bsw_list_assigner_take_finder(&needs, NULL, 100);
    assert_null(needs.finder);
}

int main(void)
{
    return run_unit_tests(open_device, close_device);
}
