// SPDX-License-Identifier: Apache-2.0
// Allocation and the growing buffer.
#include <string.h>

#include "common/base/memory.h"
#include "unit_test.h"

static struct bsw_error err;

UNIT_TEST(memory_is_aligned_and_writable)
{
    for (size_t bytes = 0; bytes < 300; bytes++) {
        unsigned char *data;
        assert_int_equal(bsw_allocate(&data, bytes, 1, "test", &err), BSW_OK);
        assert_non_null(data);
        assert_int_equal((uintptr_t)data % BSW_ALIGNMENT_BYTES, 0);
        memset(data, 0xff, bytes);
        bsw_free(&data);
        assert_null(data);
        bsw_free(&data);
    }
}

UNIT_TEST(zeroed_memory_is_zero)
{
    for (int round = 0; round < 20; round++) {
        uint32_t *numbers;
        assert_int_equal(bsw_allocate_zero(&numbers, 1000, sizeof *numbers, "test", &err), BSW_OK);
        for (size_t i = 0; i < 1000; i++) assert_int_equal(numbers[i], 0);
        memset(numbers, 0xff, 1000 * sizeof *numbers);
        bsw_free(&numbers);
    }
}

UNIT_TEST(sizes_that_overflow_are_refused)
{
    static const size_t sizes[][2] = {{SIZE_MAX, 1},      {SIZE_MAX, 2},
                                      {SIZE_MAX / 2, 2},  {SIZE_MAX / 2 + 1, 2},
                                      {SIZE_MAX - 63, 1}, {(size_t)1 << 32, (size_t)1 << 32}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int *data = (int *)&err;
        assert_int_equal(bsw_allocate(&data, sizes[i][0], sizes[i][1], "rows", &err),
                         BSW_ERROR_OUT_OF_MEMORY);
        assert_null(data);
        assert_int_equal(strncmp(err.message, "rows: ", 6), 0);
        assert_int_equal(bsw_allocate_zero(&data, sizes[i][0], sizes[i][1], "rows", NULL),
                         BSW_ERROR_OUT_OF_MEMORY);
        assert_null(data);
    }
}

UNIT_TEST(checked_sums_and_products_leave_the_result_on_overflow)
{
    size_t result = 77;
    assert_int_equal(bsw_multiply_size(SIZE_MAX, 2, &result), 0);
    assert_int_equal(bsw_add_size(SIZE_MAX, 1, &result), 0);
    assert_int_equal(result, 77);
    assert_int_equal(bsw_multiply_size(SIZE_MAX / 2, 2, &result), 1);
    assert_true(result == SIZE_MAX - 1);
    assert_int_equal(bsw_add_size(SIZE_MAX - 1, 1, &result), 1);
    assert_true(result == SIZE_MAX);
}

UNIT_TEST(buffer_keeps_its_bytes_while_it_grows)
{
    struct bsw_buffer buffer = {0};
    for (unsigned i = 0; i < 5000; i++) {
        assert_int_equal(bsw_buffer_append(&buffer, &i, sizeof i, &err), BSW_OK);
        assert_true(buffer.bytes == (i + 1) * sizeof i && buffer.capacity >= buffer.bytes);
    }
    for (unsigned i = 0; i < 5000; i++) {
        unsigned value;
        memcpy(&value, buffer.data + i * sizeof value, sizeof value);
        assert_int_equal(value, i);
    }
    assert_int_equal(bsw_buffer_append(&buffer, NULL, 0, &err), BSW_OK);
    assert_int_equal(buffer.bytes, 5000 * sizeof(unsigned));
    bsw_buffer_deinit(&buffer);
    assert_null(buffer.data);
    assert_true(buffer.bytes == 0 && buffer.capacity == 0);
    bsw_buffer_deinit(&buffer);
}

UNIT_TEST(buffer_is_reused_without_moving)
{
    struct bsw_buffer buffer = {0};
    assert_int_equal(bsw_buffer_reserve(&buffer, 1000, &err), BSW_OK);
    unsigned char *data = buffer.data;
    for (int round = 0; round < 3; round++) {
        buffer.bytes = 0;
        for (int i = 0; i < 1000; i++)
            assert_int_equal(bsw_buffer_append(&buffer, "x", 1, &err), BSW_OK);
        assert_ptr_equal(buffer.data, data);
    }
    assert_int_equal(bsw_buffer_reserve(&buffer, 10, &err), BSW_OK);
    assert_ptr_equal(buffer.data, data);
    bsw_buffer_deinit(&buffer);
}

UNIT_TEST(buffer_survives_a_refused_growth)
{
    struct bsw_buffer buffer = {0};
    assert_int_equal(bsw_buffer_append(&buffer, "abc", 3, &err), BSW_OK);
    assert_int_equal(bsw_buffer_append(&buffer, "abc", SIZE_MAX - 1, &err),
                     BSW_ERROR_OUT_OF_MEMORY);
    assert_int_equal(bsw_buffer_reserve(&buffer, SIZE_MAX, &err), BSW_ERROR_OUT_OF_MEMORY);
    assert_int_equal(buffer.bytes, 3);
    assert_memory_equal(buffer.data, "abc", 3);
    bsw_buffer_deinit(&buffer);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
