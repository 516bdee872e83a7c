// SPDX-License-Identifier: Apache-2.0
// The best k refined survivors of a query, against sorting them.
#include <string.h>

#include "common/base/arithmetic.h"
#include "shard/host/survivor_trim.h"
#include "unit_test.h"

enum { MOST_QUERIES = 20, MOST_COUNT = 300 };

static enum bsw_metric metric;

// Survivors of query q: ascending rows, few values.
static size_t make_survivors(uint64_t seed, size_t q, size_t most, struct bsw_survivor *out)
{
    size_t count = bsw_hash2(seed, q) % (most + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t draw = bsw_hash2(seed, q * MOST_COUNT + i);
        out[i] = (struct bsw_survivor){.value = (double)(int64_t)(draw % 7) - 3,
                                       .score = (uint32_t)draw,
                                       .row = (uint32_t)(i * 2 + draw % 2)};
    }
    return count;
}

// How many are better than survivor i: those with a better value, or the same and a smaller row.
static size_t place_of(const struct bsw_survivor *survivors, size_t count, size_t i)
{
    size_t place = 0;
    for (size_t j = 0; j < count; j++) {
        double better =
            bsw_metric_key(metric, survivors[j].value) - bsw_metric_key(metric, survivors[i].value);
        place += better > 0 || (better == 0 && survivors[j].row < survivors[i].row);
    }
    return place;
}

static void check(uint64_t seed, size_t num_queries, size_t most, size_t k, int num_threads)
{
    static struct bsw_survivor survivors[MOST_QUERIES * MOST_COUNT],
        expected[MOST_QUERIES * MOST_COUNT];
    size_t counts[MOST_QUERIES], left[MOST_QUERIES] = {0}, total = 0, num_expected = 0;
    struct bsw_scan_workspace workspace;
    struct bsw_error err;
    bsw_scan_workspace_init(&workspace, BSW_CPU_REFERENCE, num_threads);
    for (size_t q = 0; q < num_queries; q++) {
        struct bsw_survivor *own = survivors + total;
        counts[q] = make_survivors(seed, q, most, own);
        for (size_t i = 0; i < counts[q]; i++) {
            if (place_of(own, counts[q], i) >= k) continue;
            expected[num_expected++] = own[i];
            left[q]++;
        }
        total += counts[q];
    }
    assert_ok(bsw_survivors_trim(metric, k, num_queries, counts, survivors, &workspace, &err),
              &err);
    assert_memory_equal(counts, left, num_queries * sizeof *counts);
    if (num_expected > 0)
        assert_memory_equal(survivors, expected, num_expected * sizeof *survivors);
    bsw_scan_workspace_deinit(&workspace);
}

UNIT_TEST(the_best_stay_in_row_order)
{
    static const size_t ks[] = {1, 2, 10, MOST_COUNT - 1, MOST_COUNT};
    for (int m = 0; m < 2; m++) {
        metric = m ? BSW_METRIC_L2 : BSW_METRIC_IP;
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
            for (uint64_t seed = 0; seed < 5; seed++) {
                check(seed, MOST_QUERIES, MOST_COUNT, ks[i], 1 + (int)(seed % 3));
                check(seed, MOST_QUERIES, 3, ks[i], 2);
            }
        }
        check(0, 0, MOST_COUNT, 1, 1);
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
