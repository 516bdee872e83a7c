// SPDX-License-Identifier: Apache-2.0
// What a block of the device's scan by tables has, and how many of them a multiprocessor has room
// for: figures of CUDA's occupancy calculator.
#include "kernels/device_scan/device_table_scan.h"
#include "unit_test.h"

static const size_t on_8_6 = (size_t)99 << 10, on_9_0 = (size_t)227 << 10;
static const struct bsw_device_multiprocessor of_8_6 = {(size_t)100 << 10, 1536},
                                              of_9_0 = {(size_t)228 << 10, 2048};

static void check(enum bsw_table_type type, uint32_t parts, uint32_t bits, int is_new,
                  uint32_t queries, int is_whole, uint32_t blocks)
{
    const struct bsw_device_table_shape shape =
        bsw_device_table_shape_of(parts, bits, type, 1000, is_new ? on_9_0 : on_8_6);
    assert_int_equal(shape.queries, queries);
    assert_int_equal(shape.is_whole, is_whole);
    assert_true(shape.shared_bytes <= (is_new ? on_9_0 : on_8_6));
    assert_int_equal(bsw_device_table_blocks_of(&shape, is_new ? &of_9_0 : &of_8_6), blocks);
}

UNIT_TEST(blocks_are_bound_by_memory_or_by_threads)
{
    check(BSW_TABLE_FLOAT32, 64, 8, 1, 1, 1, 3);   // 64.25 of 228 KiB, and 1 each
    check(BSW_TABLE_FLOAT32, 64, 8, 0, 1, 1, 1);   // of 100
    check(BSW_TABLE_E5M3, 64, 8, 1, 4, 1, 3);      // 4 of 16
    check(BSW_TABLE_E5M3, 64, 8, 0, 2, 1, 3);      // 2 of 16
    check(BSW_TABLE_FLOAT32, 2, 8, 1, 4, 1, 8);    // 2048 threads
    check(BSW_TABLE_FLOAT32, 2, 8, 0, 4, 1, 6);    // 1536
    check(BSW_TABLE_FLOAT32, 64, 4, 0, 4, 1, 5);   // 16.25
    check(BSW_TABLE_FLOAT32, 1000, 8, 1, 1, 0, 2); // half of the memory at a time
    check(BSW_TABLE_FLOAT32, 226, 8, 1, 1, 1, 1);  // nearly all of it
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
