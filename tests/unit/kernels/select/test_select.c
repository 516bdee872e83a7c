// SPDX-License-Identifier: Apache-2.0
// Selection as a shard runs it, tile after tile with a rising limit, against a full sort of all
// rows; the histogram against a serial count. Every level of this CPU.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/select/select.h"
#include "unit_test.h"

enum { NUM_BUNDLES = 211, NUM_ROWS = NUM_BUNDLES * 32, TILE_BUNDLES = 8, TILE_ROWS = 256 };
enum { INTEGER, AFFINE, NUM_FILTERS };
enum { MANY_TIES, FEW_TIES, RISING, FALLING, LARGEST, NUM_FILLS };

static _Alignas(64) int32_t dots[NUM_ROWS];
static _Alignas(64) uint16_t scales[NUM_ROWS];
static _Alignas(64) float biases[NUM_ROWS];
static uint32_t masks[NUM_BUNDLES];
static _Alignas(64) uint16_t tails[NUM_ROWS];
static uint32_t places[NUM_ROWS], plain_places[NUM_ROWS];
static uint64_t sorted[NUM_ROWS];
static uint64_t buffer[2 * NUM_ROWS + TILE_ROWS], scratch[2 * NUM_ROWS + TILE_ROWS];
static const float query_scale = 0.75f;

static int32_t fill_dot(int fill, uint32_t row)
{
    uint64_t random = bsw_hash2((uint64_t)fill, row);
    switch (fill) {
    case MANY_TIES:
        return (int32_t)(random % 7) - 3;
    case FEW_TIES:
        return (int32_t)(random % 100000) - 50000;
    case RISING:
        return (int32_t)row / 3 - 1000;
    case FALLING:
        return 1000 - (int32_t)row / 3;
    default: // scores that no limit can rise above
        return random % 2 ? INT32_MAX : INT32_MIN;
    }
}

static void make_rows(int fill)
{
    for (uint32_t row = 0; row < NUM_ROWS; row++) {
        dots[row] = fill_dot(fill, row);
        scales[row] = fill == FEW_TIES ? (uint16_t)(0x3000 + row % 512) : 0x3c00;
        biases[row] = fill == FEW_TIES ? (float)(row % 97) : -0.0f;
    }
    for (uint32_t b = 0; b < NUM_BUNDLES; b++)
        masks[b] = b % 5 == 0 ? 0 : b % 5 == 1 ? (uint32_t)bsw_hash(b) : UINT32_MAX;
    masks[NUM_BUNDLES - 1] = 0x3ff; // the last bundle is partial
}

// The definition of a row's score; 1 if the row counts.
static int row_score(int filter, uint32_t row, uint32_t *score)
{
    float scaled = bsw_half_to_float(scales[row]) * (float)dots[row];
    float key = fmaf(query_scale, scaled, biases[row]) + 0.0f;
    *score = filter == INTEGER ? bsw_score_from_integer(dots[row]) : bsw_score_from_float(key);
    return masks[row / 32] >> row % 32 & 1;
}

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static size_t sort_all_rows(int filter)
{
    size_t n = 0;
    for (uint32_t row = 0; row < NUM_ROWS; row++) {
        uint32_t score;
        if (row_score(filter, row, &score)) sorted[n++] = bsw_candidate_pack(score, row);
    }
    qsort(sorted, n, sizeof *sorted, compare_descending);
    return n;
}

static size_t filter_tile(const struct bsw_select_table *table, int filter, size_t first_bundle,
                          uint32_t limit, uint64_t *out)
{
    size_t left = NUM_BUNDLES - first_bundle, num = left < TILE_BUNDLES ? left : TILE_BUNDLES;
    uint32_t row = (uint32_t)first_bundle * 32;
    if (filter == INTEGER)
        return table->filter_integer(dots + row, masks + first_bundle, num, row, limit, out);
    return table->filter_affine(dots + row, scales + row, biases + row, query_scale,
                                masks + first_bundle, num, row, limit, out);
}

// Leaves the best num_best rows in buffer, sorted; returns how many there are.
static size_t threshold_selection(const struct bsw_select_table *table, int filter, size_t num_best)
{
    size_t count = 0;
    uint32_t limit = 0;
    for (size_t b = 0; b < NUM_BUNDLES; b += TILE_BUNDLES) {
        count += filter_tile(table, filter, b, limit, buffer + count);
        assert_true(count <= 2 * num_best + TILE_ROWS);
        if (count <= 2 * num_best) continue;
        count = table->keep_best(buffer, count, num_best, scratch);
        assert_int_equal(count, num_best);
        uint64_t worst = buffer[0];
        for (size_t i = 1; i < count; i++) worst = buffer[i] < worst ? buffer[i] : worst;
        if (bsw_candidate_score(worst) == UINT32_MAX) break; // nothing later can be better
        limit = bsw_candidate_score(worst) + 1;
    }
    count = table->keep_best(buffer, count, num_best, scratch);
    qsort(buffer, count, sizeof *buffer, compare_descending);
    return count;
}

UNIT_TEST(threshold_selection_finds_the_best_of_a_full_sort)
{
    static const size_t nums[] = {1, 2, 10, 50, 333, 3000, NUM_ROWS};
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        const struct bsw_select_table *table = bsw_select_table_get((enum bsw_cpu_level)level);
        for (int fill = 0; fill < NUM_FILLS; fill++) {
            make_rows(fill);
            for (int filter = 0; filter < NUM_FILTERS; filter++) {
                size_t num_sorted = sort_all_rows(filter);
                for (size_t i = 0; i < sizeof nums / sizeof nums[0]; i++) {
                    size_t expected = nums[i] < num_sorted ? nums[i] : num_sorted;
                    size_t found = threshold_selection(table, filter, nums[i]);
                    assert_int_equal(found, expected);
                    if (memcmp(buffer, sorted, found * sizeof *sorted) != 0)
                        fail_msg("level %s, filter %d, fill %d, best %zu", table->level, filter,
                                 fill, nums[i]);
                }
            }
        }
    }
}

// Rows that pass a bound, then those of them whose keys reach a limit, by the definitions.
static void check_stage(const struct bsw_select_table *table, float reach, float limit)
{
    uint32_t score = bsw_score_from_float(limit);
    size_t num_places = 0, num = 0;
    for (uint32_t row = 0; row < NUM_ROWS; row++) {
        float scaled = bsw_half_to_float(scales[row]) * (float)dots[row];
        float most = fmaf(reach, bsw_half_to_float(tails[row]), biases[row]);
        int is_valid = masks[row / 32] >> row % 32 & 1;
        if (!is_valid || !(fmaf(query_scale, scaled, most) >= limit)) continue;
        plain_places[num_places++] = row;
        uint32_t key_score = bsw_score_from_float(fmaf(query_scale, scaled, biases[row]) + 0.0f);
        if (key_score >= score) sorted[num++] = bsw_candidate_pack(key_score, 77 + row);
    }
    size_t found = table->filter_reach(dots, scales, biases, tails, query_scale, reach, masks,
                                       NUM_BUNDLES, limit, places);
    assert_int_equal(found, num_places);
    assert_memory_equal(places, plain_places, num_places * sizeof *places);
    found = table->filter_places(dots, scales, biases, query_scale, places, num_places, 77, score,
                                 buffer);
    assert_int_equal(found, num);
    assert_memory_equal(buffer, sorted, num * sizeof *sorted);
}

UNIT_TEST(places_are_those_of_rows_whose_bound_reaches_the_limit)
{
    static const float reaches[] = {0.0f, 0.5f, 1000.0f};
    static const float limits[] = {-INFINITY, -20.0f, 0.0f, 2.25f, 900.0f, 1e9f};
    for (uint32_t row = 0; row < NUM_ROWS; row++)
        tails[row] = (uint16_t)(bsw_hash2(5, row) % 0x4800);
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        const struct bsw_select_table *table = bsw_select_table_get((enum bsw_cpu_level)level);
        for (int fill = 0; fill < NUM_FILLS; fill++) {
            make_rows(fill);
            for (size_t i = 0; i < 3; i++) {
                for (size_t k = 0; k < sizeof limits / sizeof limits[0]; k++)
                    check_stage(table, reaches[i], limits[k]);
            }
            // The limit that compares false with everything.
            assert_int_equal(table->filter_reach(dots, scales, biases, tails, query_scale, 1.0f,
                                                 masks, NUM_BUNDLES, NAN, places),
                             0);
        }
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
