// SPDX-License-Identifier: Apache-2.0
// How bench kernels compares what a tile gives with what the reference gives.
#include <stdlib.h>
#include <string.h>

#include "bench/host/bench_kernel.h"
#include "unit_test.h"

#define LISTS  3
#define VALUES 4

struct lists {
    uint32_t values[LISTS][VALUES];
    size_t counts[LISTS];
    struct bsw_kernel_output output;
};

static void fill(struct lists *lists)
{
    for (uint32_t i = 0; i < LISTS; i++) {
        lists->counts[i] = i + 1;
        for (uint32_t k = 0; k < VALUES; k++) lists->values[i][k] = 100 * i + k;
    }
    lists->output = (struct bsw_kernel_output){LISTS, VALUES, sizeof(uint32_t),
                                               (unsigned char *)lists->values, lists->counts};
}

UNIT_TEST(test_counts)
{
    static struct lists a, b;
    fill(&a);
    fill(&b);
    assert_int_equal(bsw_kernel_count_wrong(&a.output, &b.output), 0);
    b.values[0][1] = 7; // behind the end of the list
    assert_int_equal(bsw_kernel_count_wrong(&a.output, &b.output), 0);
    b.values[0][0] ^= 1u << 31;
    b.values[2][2] ^= 1;
    b.values[2][0] = 9;
    assert_int_equal(bsw_kernel_count_wrong(&a.output, &b.output), 3);
    b.counts[2] = 1; // two are missing, the first is wrong
    assert_int_equal(bsw_kernel_count_wrong(&a.output, &b.output), 1 + 2 + 1);
    b.counts[1] = VALUES; // two too many
    assert_int_equal(bsw_kernel_count_wrong(&a.output, &b.output), 1 + 2 + 2 + 1);
    assert_int_equal(bsw_kernel_count_wrong(&b.output, &a.output), 1 + 2 + 2 + 1);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
