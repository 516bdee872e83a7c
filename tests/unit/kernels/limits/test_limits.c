// SPDX-License-Identifier: Apache-2.0
// What the limits of every level of this CPU give back: sums, copies, and lanes that are right.
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "kernels/limits/limits.h"
#include "unit_test.h"

// Pages side by side, and what is left over.
static const size_t sizes[] = {512, 1024, 4096, 32768, 33280, 100352};
#define NUM_SIZES  (sizeof sizes / sizeof sizes[0])
#define MOST_BYTES 100352

static uint64_t *memory, *other;

static int set_up(void **state)
{
    (void)state;
    if (bsw_allocate(&memory, MOST_BYTES, 1, "memory", NULL) != BSW_OK) return -1;
    if (bsw_allocate(&other, MOST_BYTES + 64, 1, "memory", NULL) != BSW_OK) return -1;
    for (size_t i = 0; i < MOST_BYTES / 8; i++) memory[i] = bsw_hash(i);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    bsw_free(&other);
    bsw_free(&memory);
    return 0;
}

static const struct bsw_limits_table *table_of(int level)
{
    const struct bsw_limits_table *table = bsw_limits_table_get((enum bsw_cpu_level)level);
    return table;
}

UNIT_TEST(test_sums)
{
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        const struct bsw_limits_table *table = table_of(level);
        for (size_t i = 0; i < NUM_SIZES; i++) {
            uint64_t sum = 0;
            for (size_t w = 0; w < sizes[i] / 8; w++) sum += memory[w];
            for (int order = 0; order < BSW_NUM_READ_ORDERS; order++)
                assert_int_equal(table->read[order](memory, sizes[i]), sum);
        }
    }
}

UNIT_TEST(test_writes)
{
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        const struct bsw_limits_table *table = table_of(level);
        for (size_t i = 0; i < NUM_SIZES; i++) {
            size_t num_words = sizes[i] / 8;
            memset(other, 0, MOST_BYTES + 64);
            table->copy(other, memory, sizes[i]);
            assert_memory_equal(other, memory, sizes[i]);
            assert_int_equal(other[num_words], 0);
            table->write(other, 0x0123456789abcdefu, sizes[i]);
            for (size_t w = 0; w < num_words; w++) assert_int_equal(other[w], 0x0123456789abcdefu);
            assert_int_equal(other[num_words], 0);
        }
    }
}

// Every lane of 12 chains: 16 bytes at least, so no step may be counted twice or left out.
UNIT_TEST(test_peaks)
{
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        const struct bsw_limits_table *table = table_of(level);
        for (int peak = 0; peak < BSW_NUM_PEAKS; peak++) {
            uint64_t num_wrong = 1, some = table->peaks[peak](100, &num_wrong);
            assert_int_equal(num_wrong, 0);
            assert_int_equal(table->peaks[peak](70001, &num_wrong) * 100, some * 70001);
            assert_int_equal(num_wrong, 0);
            // Too few to come to 1: a lane that is wrong is seen.
            if (peak != BSW_PEAK_FLOAT32 && peak != BSW_PEAK_FLOAT64) continue;
            table->peaks[peak](3, &num_wrong);
            assert_true(num_wrong > 0);
        }
    }
}

int main(void)
{
    return run_unit_tests(set_up, tear_down);
}
