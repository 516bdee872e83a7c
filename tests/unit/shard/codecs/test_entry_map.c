// SPDX-License-Identifier: Apache-2.0
// Radii that hold a quarter of the entries, against sorting them.
#include "unit_test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "shard/codecs/selective_table.h"

enum { PARTS = 3, MOST = 256 };

static struct bsw_error err;
static float entries[PARTS * 2 * MOST];

// Entries have values -2 to 2, ties among them; the last part's are all the same.
static void fill(size_t num, uint64_t seed)
{
    for (size_t i = 0; i < PARTS * 2 * num; i++)
        entries[i] =
            i < (PARTS - 1) * 2 * num ? (float)(bsw_hash2(seed, i) % 81) / 20.0f - 2.0f : 0.25f;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// What a cell has, by sorting; part, column and row of it.
static void check_cell(const struct bsw_entry_map *map, size_t num, float scale, uint32_t part,
                       size_t column, size_t row)
{
    const float *box = map->boxes + 4 * (size_t)part, *x = entries + 2 * num * part;
    double at[2], squares[MOST], sum = 0, side = BSW_ENTRY_MAP_CELLS;
    size_t i = part * BSW_ENTRY_MAP + row * BSW_ENTRY_MAP_CELLS + column, count = 0;
    at[0] = (double)box[0] + ((double)box[2] - (double)box[0]) * ((double)column + 0.5) / side;
    at[1] = (double)box[1] + ((double)box[3] - (double)box[1]) * ((double)row + 0.5) / side;
    for (size_t e = 0; e < num; e++) {
        double dx = at[0] - (double)x[e], dy = at[1] - (double)x[num + e];
        squares[e] = dx * dx + dy * dy;
    }
    qsort(squares, num, sizeof *squares, order);
    double limit = squares[num / 4 - 1] * (double)scale * (double)scale;
    assert_true(fabs((double)map->limits[i] - limit) < 1e-5 * (1 + limit));
    for (size_t e = 0; e < num; e++) {
        if (fabs(squares[e] - limit) < 1e-4) return; // rounding decides what is outside
        sum += squares[e] > limit ? squares[e] : 0;
        count += squares[e] > limit;
    }
    double mean = count ? sum / (double)count : limit;
    assert_true(fabs((double)map->misses[i] - mean) < 1e-4 * (1 + mean));
    assert_int_equal(bsw_entry_map_at(map, part, (float)at[0], (float)at[1]),
                     part == PARTS - 1 ? part * BSW_ENTRY_MAP : i);
}

UNIT_TEST(cells_hold_a_quarter_of_the_entries)
{
    for (uint64_t turn = 0; turn < 6; turn++) {
        static const float scales[] = {0.9f, 1.1f, 2.1f};
        size_t num = turn % 2 ? 16 : 256;
        struct bsw_entry_map *map;
        fill(num, turn);
        float scale = scales[turn / 2];
        assert_ok(bsw_entry_map_create(PARTS, num, entries, scale, &map, &err), &err);
        for (uint32_t p = 0; p < PARTS; p++)
            for (size_t i = 0; i < BSW_ENTRY_MAP; i += 7)
                check_cell(map, num, scale, p, i % BSW_ENTRY_MAP_CELLS, i / BSW_ENTRY_MAP_CELLS);
        for (size_t i = 0; i < PARTS * BSW_ENTRY_MAP; i++)
            assert_true(map->limits[i] >= FLT_MIN && map->misses[i] >= map->limits[i]);
        bsw_entry_map_destroy(&map);
        assert_null(map);
    }
}

UNIT_TEST(boxes_are_twice_as_wide_and_rays_outside_have_the_nearest_cell)
{
    struct bsw_entry_map *map;
    fill(16, 1);
    for (size_t e = 0; e < 16; e++) entries[e] = e ? 1.0f : 3.0f;
    assert_ok(bsw_entry_map_create(PARTS, 16, entries, 1.0f, &map, &err), &err);
    assert_true(map->boxes[0] == 0.0f && map->boxes[2] == 4.0f);
    size_t last = BSW_ENTRY_MAP_CELLS - 1;
    assert_int_equal(bsw_entry_map_at(map, 0, -1e30f, -INFINITY), 0);
    assert_int_equal(bsw_entry_map_at(map, 0, 1e30f, INFINITY), BSW_ENTRY_MAP - 1);
    assert_int_equal(bsw_entry_map_at(map, 1, NAN, INFINITY),
                     BSW_ENTRY_MAP + last * BSW_ENTRY_MAP_CELLS);
    bsw_entry_map_destroy(&map);
}

UNIT_TEST(an_infinite_scale_hits_everything)
{
    struct bsw_entry_map *map;
    fill(256, 2);
    assert_ok(bsw_entry_map_create(PARTS, 256, entries, INFINITY, &map, &err), &err);
    for (size_t i = 0; i < PARTS * BSW_ENTRY_MAP; i++) assert_true(isinf(map->limits[i]));
    bsw_entry_map_destroy(&map);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
