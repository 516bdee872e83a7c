// SPDX-License-Identifier: Apache-2.0
// The passes of a batch whose work items a device makes: whichever lists queries look at, there are
// no more items of a tile than it has room for; the first step's parts have room; what does not fit
// is said.
#include "shard/device/device_list_passes.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "unit_test.h"

enum { MOST_LISTS = 300, MOST_QUERIES = 700 };

static const uint32_t ends[BSW_LIST_STEPS] = {1, 8, UINT32_MAX};

struct pass_case {
    size_t num_lists, num_queries, most, room;
    uint32_t longest; // list, bundles
};

static uint32_t lengths[MOST_LISTS];
static uint64_t longest[MOST_LISTS + 1];

static int is_longer(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return (first < second) - (first > second);
}

static struct bsw_device_pass_needs make_needs(const struct pass_case *c, uint64_t seed)
{
    for (size_t l = 0; l < c->num_lists; l++)
        lengths[l] = l == 0 ? c->longest : (uint32_t)(bsw_hash2(seed, l) % (c->longest + 1));
    qsort(lengths, c->num_lists, sizeof lengths[0], is_longer);
    for (size_t l = 0; l < c->num_lists; l++) longest[l + 1] = longest[l] + lengths[l];
    return (struct bsw_device_pass_needs){.longest = longest,
                                          .num_lists = c->num_lists,
                                          .num_queries = c->num_queries,
                                          .most = c->most,
                                          .ends = ends,
                                          .room_bundles = c->room,
                                          .least_item = 1,
                                          .most_items = SIZE_MAX / 2,
                                          .most_slots = SIZE_MAX};
}

// How many queries look at each list in a step: `kind` 0: spread; 1: the longest lists have all of
// them; 2: groups of one more than a tile holds on the longest.
static void share_out(const struct pass_case *c, uint32_t step, int kind, uint32_t *counts)
{
    static const uint32_t sizes[] = {9, 17, 65, 257};
    size_t from = step > 0 ? ends[step - 1] : 0, to = ends[step] < c->most ? ends[step] : c->most;
    size_t pairs = to > from ? (to - from) * c->num_queries : 0, each = c->num_queries;
    memset(counts, 0, MOST_LISTS * sizeof *counts);
    if (kind >= 2 && sizes[kind - 2] < each) each = sizes[kind - 2];
    for (size_t l = 0; kind == 0 && pairs > 0; l++) {
        uint32_t *own = &counts[bsw_hash2(step, l) % c->num_lists];
        if (*own == c->num_queries) continue;
        (*own)++;
        pairs--;
    }
    for (size_t l = 0; l < c->num_lists && pairs > 0; l++) {
        counts[l] = (uint32_t)(pairs < each ? pairs : each);
        pairs -= counts[l];
    }
}

// Items of a pass, by its two tiles.
static void count_items(const struct bsw_device_list_pass *pass, size_t num_lists,
                        const uint32_t *counts, uint64_t num[BSW_LIST_TILES])
{
    memset(num, 0, BSW_LIST_TILES * sizeof *num);
    for (size_t l = 0; l < num_lists; l++) {
        if (counts[l] == 0 || lengths[l] <= pass->first_bundle) continue;
        uint32_t left = lengths[l] - pass->first_bundle,
                 bundles = left < pass->num_bundles ? left : pass->num_bundles;
        uint64_t cuts = (bundles + (uint64_t)pass->item_bundles - 1) / pass->item_bundles;
        uint32_t slots = bsw_device_list_tile_slots(pass->wide), rest = counts[l] % slots;
        num[pass->wide] += cuts * (counts[l] / slots);
        if (rest > 0)
            num[rest <= bsw_device_list_tile_slots(pass->narrow) ? pass->narrow : pass->wide] +=
                cuts;
    }
}

static void check(const struct pass_case *c, uint64_t seed)
{
    struct bsw_device_list_passes passes;
    struct bsw_device_pass_needs needs = make_needs(c, seed);
    uint32_t counts[MOST_LISTS], at = 0;
    uint64_t num[BSW_LIST_TILES];
    assert_true(bsw_device_list_passes_plan(&needs, &passes));
    for (uint32_t p = 0; p < passes.num; p++) {
        const struct bsw_device_list_pass *pass = &passes.pass[p];
        if (pass->step == 0) assert_true(pass->num_bundles <= c->room);
        assert_true(pass->narrow <= pass->wide);
        assert_true(pass->wide <= bsw_device_list_tile((uint32_t)c->num_queries));
        assert_int_equal(pass->first_item[0], at);
        at = pass->first_item[BSW_LIST_TILES];
        for (int kind = 0; kind < 6; kind++) {
            share_out(c, pass->step, kind, counts);
            count_items(pass, c->num_lists, counts, num);
            for (uint32_t t = 0; t < BSW_LIST_TILES; t++)
                assert_true(num[t] <= pass->first_item[t + 1] - pass->first_item[t]);
        }
    }
    needs.most_items = at;
    assert_true(bsw_device_list_passes_plan(&needs, &passes));
    needs.most_items = at > 0 ? at - 1 : 0;
    assert_int_equal(bsw_device_list_passes_plan(&needs, &passes), at == 0);
    needs.most_items = at;
    needs.most_slots = c->most * c->num_queries - 1;
    assert_false(bsw_device_list_passes_plan(&needs, &passes));
}

UNIT_TEST(items_have_room)
{
    static const struct pass_case cases[] = {
        {9, 9, 9, 40, 16},  {300, 700, 60, 40, 30},  {300, 1, 300, 8, 20}, {1, 700, 1, 100, 100},
        {50, 70, 8, 4, 12}, {200, 300, 9, 1000, 90}, {40, 256, 1, 3, 5},   {7, 17, 7, 5, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check(&cases[i], i);
}

// As many bundles at a time as have room, each list from its beginning to its end.
UNIT_TEST(parts_follow_each_other)
{
    const struct pass_case c = {20, 9, 3, 5, 38};
    const struct bsw_device_pass_needs needs = make_needs(&c, 1);
    struct bsw_device_list_passes passes;
    assert_true(bsw_device_list_passes_plan(&needs, &passes));
    assert_int_equal(passes.num, 11); // ten of 4 bundles, then a step
    for (uint32_t p = 0; p < 10; p++) {
        assert_int_equal(passes.pass[p].first_bundle, 4 * p);
        assert_int_equal(passes.pass[p].num_bundles, 4);
    }
    assert_int_equal(passes.pass[10].step, 1);
    const struct pass_case longer = {20, 9, 3, 5, 60};
    const struct bsw_device_pass_needs more = make_needs(&longer, 1);
    assert_false(bsw_device_list_passes_plan(&more, &passes));
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
