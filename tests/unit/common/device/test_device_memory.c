// SPDX-License-Identifier: Apache-2.0
// How much of a GPU ranks may use, by the figures for CUDA and NCCL.
#include "common/device/device_node.h"
#include "unit_test.h"

static const size_t GIB = (size_t)1 << 30, MIB = (size_t)1 << 20;

static size_t forecast(int num_ranks, int num_sharers, size_t total_bytes)
{
    const struct bsw_device_crowd crowd = {num_ranks, num_sharers};
    return bsw_device_memory_forecast(&crowd, total_bytes);
}

UNIT_TEST(test_a_reserve_is_kept)
{
    assert_int_equal(bsw_device_usable_bytes(6400, 6400), 6300);
    assert_int_equal(bsw_device_usable_bytes(100, 6400), 0);
    assert_int_equal(bsw_device_usable_bytes(0, 0), 0);
}

UNIT_TEST(test_one_rank_has_all_but_its_context)
{
    assert_int_equal(forecast(1, 1, 64 * GIB), 63 * GIB - 555 * MIB);
}

UNIT_TEST(test_ranks_that_share_have_a_context_each)
{
    assert_int_equal(forecast(8, 8, 64 * GIB), (63 * GIB - 8 * 555 * MIB) / 8);
    assert_int_equal(forecast(8, 8, 4 * GIB), 0); // the contexts alone take 4.3 GiB
}

// Every rank talks to all others; buffers are for no more than the seven others of a host.
UNIT_TEST(test_nccl_takes_some_where_ranks_have_devices_of_their_own)
{
    size_t alone = forecast(1, 1, 64 * GIB);
    assert_int_equal(alone - forecast(2, 1, 64 * GIB), (500 + 450) * MIB);
    assert_int_equal(alone - forecast(3, 1, 64 * GIB), (500 + 2 * 450) * MIB);
    assert_int_equal(alone - forecast(8, 1, 64 * GIB), (500 + 7 * 450) * MIB);
    assert_int_equal(alone - forecast(100, 1, 64 * GIB), (500 + 7 * 450) * MIB);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
