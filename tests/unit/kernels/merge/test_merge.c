// SPDX-License-Identifier: Apache-2.0
// Sorted lists of shards, one after the other in row order, give the total order, whatever the
// number of shards. Every level of this CPU.
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "kernels/merge/merge.h"
#include "unit_test.h"

enum { MAX_SHARDS = 9, MAX_SHARD_ROWS = 700, MAX_ROWS = MAX_SHARDS * MAX_SHARD_ROWS };

static struct bsw_ranked merged[MAX_ROWS], all[MAX_ROWS], scratch[MAX_ROWS];

// From all scores equal to hardly any.
static uint32_t row_score(uint32_t num_scores, uint64_t row)
{
    return 0x80000000u + (uint32_t)(bsw_hash2(num_scores, row) % num_scores) * 0x1234u;
}

static struct bsw_ranked make_entry(uint32_t num_scores, uint64_t row)
{
    return bsw_ranked_of_key(row_score(num_scores, row), (uint32_t)bsw_hash(row), row);
}

static int compare_total(const void *a, const void *b)
{
    const struct bsw_ranked *x = a, *y = b;
    uint32_t x_key = bsw_ranked_key(x), y_key = bsw_ranked_key(y);
    if (x_key != y_key) return x_key < y_key ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

// The rows of one shard as it would send them: sorted, as entries with global rows.
static void append_shard(const struct bsw_merge_table *table, uint32_t num_scores,
                         uint64_t first_row, size_t num_rows, struct bsw_ranked *out)
{
    uint64_t candidates[MAX_SHARD_ROWS], sort_scratch[MAX_SHARD_ROWS];
    for (size_t i = 0; i < num_rows; i++) { // in no order
        uint32_t row = (uint32_t)((i * 383 + 5) % num_rows);
        candidates[i] = bsw_candidate_pack(row_score(num_scores, first_row + row), row);
    }
    table->sort_candidates(candidates, num_rows, sort_scratch);
    for (size_t i = 0; i < num_rows; i++) {
        if (i > 0) assert_true(candidates[i - 1] > candidates[i]);
        out[i] = make_entry(num_scores, first_row + bsw_candidate_row(candidates[i]));
        assert_int_equal(bsw_ranked_key(&out[i]), bsw_candidate_score(candidates[i]));
    }
}

static void check_merge(const struct bsw_merge_table *table, uint32_t num_scores, size_t num_shards,
                        size_t shard_rows, size_t keep)
{
    const uint64_t first_row = 5000000000u; // global rows pass 32 bits
    size_t n = num_shards * shard_rows;
    for (size_t s = 0; s < num_shards; s++)
        append_shard(table, num_scores, first_row + s * shard_rows, shard_rows,
                     merged + s * shard_rows);
    for (size_t i = 0; i < n; i++) all[i] = make_entry(num_scores, first_row + i);
    qsort(all, n, sizeof *all, compare_total);
    size_t kept = table->best_ranked(merged, n, keep, BSW_RANKED_BY_KEY, scratch);
    assert_int_equal(kept, n < keep ? n : keep);
    if (memcmp(merged, all, kept * sizeof *all) != 0)
        fail_msg("level %s, %u scores, %zu shards of %zu rows, best %zu", table->level, num_scores,
                 num_shards, shard_rows, keep);
}

UNIT_TEST(shards_in_row_order_give_the_total_order)
{
    static const uint32_t scores[] = {1, 2, 50, 100000};
    static const size_t shards[] = {1, 2, 3, 8, 9}, rows[] = {1, 20, 50, 500, 700};
    static const size_t keeps[] = {1, 10, 50, 150, 500, 4000, MAX_ROWS};
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        const struct bsw_merge_table *table = bsw_merge_table_get((enum bsw_cpu_level)level);
        for (size_t a = 0; a < sizeof scores / sizeof scores[0]; a++)
            for (size_t b = 0; b < sizeof shards / sizeof shards[0]; b++)
                for (size_t c = 0; c < sizeof rows / sizeof rows[0]; c++)
                    for (size_t d = 0; d < sizeof keeps / sizeof keeps[0]; d++)
                        check_merge(table, scores[a], shards[b], rows[c], keeps[d]);
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
