// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_list_passes.h"

#include "shard/device/device_list_table.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t ceil_of(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

// Pairs of query and list in a step.
static size_t pairs_of(const struct bsw_device_pass_needs *needs, uint32_t step)
{
    size_t from = step > 0 ? needs->ends[step - 1] : 0, to = least(needs->ends[step], needs->most);
    return to > from ? needs->num_queries * (to - from) : 0;
}

// Items of the n longest lists, if each of their queries is in one piece.
static size_t items_of(const struct bsw_device_pass_needs *needs,
                       const struct bsw_device_list_pass *pass, size_t n)
{
    size_t bundles = (size_t)needs->longest[n], item = pass->item_bundles,
           part = n * ceil_of(least((size_t)needs->longest[1], pass->num_bundles), item);
    return least(bundles / item + n, part);
}

// Items of a tile at most. A list has pieces of the wide tile for each of its slots' number of
// queries, and what is left, where that are more than the narrow one has; of that one at most.
// Either way so many lists have them as there are pairs for.
static size_t most_items(const struct bsw_device_pass_needs *needs,
                         const struct bsw_device_list_pass *pass, uint32_t tile)
{
    int is_wide = tile == pass->wide;
    size_t fewest = is_wide && pass->narrow < tile
                        ? bsw_device_list_tile_slots(pass->narrow) + (size_t)1
                        : 1,
           pieces = pairs_of(needs, pass->step) / fewest,
           each = is_wide ? ceil_of(needs->num_queries, bsw_device_list_tile_slots(tile)) : 1;
    if ((!is_wide && tile != pass->narrow) || needs->num_queries < fewest || pieces == 0) return 0;
    each = least(each, pieces);
    return each * items_of(needs, pass, least(needs->num_lists, ceil_of(pieces, each)));
}

// Queries of a list on average.
static size_t mean_of(const struct bsw_device_pass_needs *needs, uint32_t step)
{
    size_t pairs = pairs_of(needs, step);
    return ceil_of(pairs, least(needs->num_lists, pairs));
}

// The narrow tile holds as many queries as a list has on average, the wide one those of lists that
// have some times as many; no more than there are.
static void choose_tiles(const struct bsw_device_pass_needs *needs,
                         struct bsw_device_list_pass *pass)
{
    static const uint32_t wide_of[BSW_LIST_TILES] = {2, 2, 3, 3};
    size_t widest = bsw_device_list_tile_slots(BSW_LIST_TILES - 1),
           mean = least(mean_of(needs, pass->step), bsw_device_list_tile_slots(2));
    uint32_t most = bsw_device_list_tile((uint32_t)least(needs->num_queries, widest)),
             narrow = bsw_device_list_tile((uint32_t)mean), wide = wide_of[narrow];
    pass->narrow = narrow < most ? narrow : most;
    pass->wide = wide < most ? wide : most;
}

// As bsw_device_list_item_bundles, of what may be expected.
static size_t item_bundles_of(const struct bsw_device_pass_needs *needs, uint32_t step,
                              uint32_t wide)
{
    size_t lists = least(needs->num_lists, pairs_of(needs, step)),
           work = (size_t)needs->longest[needs->num_lists] / needs->num_lists * lists *
                  ceil_of(mean_of(needs, step), bsw_device_list_tile_slots(wide)),
           item = bsw_device_list_item_bundles_of(work, needs->room_bundles);
    while (item < needs->least_item && 2 * item <= needs->room_bundles) item *= 2;
    return item;
}

// Room for the items of a pass behind those before; 0: there is none.
static int add_pass(const struct bsw_device_pass_needs *needs,
                    const struct bsw_device_list_pass *pass, size_t *num_items,
                    struct bsw_device_list_passes *out)
{
    if (out->num == BSW_MOST_LIST_PASSES) return 0;
    struct bsw_device_list_pass *own = &out->pass[out->num++];
    *own = *pass;
    for (uint32_t t = 0; t < BSW_LIST_TILES; t++) {
        own->first_item[t] = (uint32_t)*num_items;
        *num_items += most_items(needs, own, t);
        if (*num_items > needs->most_items) return 0;
    }
    own->first_item[BSW_LIST_TILES] = (uint32_t)*num_items;
    return 1;
}

int bsw_device_list_passes_plan(const struct bsw_device_pass_needs *needs,
                                struct bsw_device_list_passes *out)
{
    size_t num_items = 0, longest = (size_t)needs->longest[1];
    *out = (struct bsw_device_list_passes){.num = 0};
    if (needs->most > needs->most_slots / needs->num_queries) return 0;
    for (uint32_t step = 0; step < BSW_LIST_STEPS; step++) {
        if (pairs_of(needs, step) == 0) continue;
        struct bsw_device_list_pass pass = {.step = step};
        choose_tiles(needs, &pass);
        size_t item = item_bundles_of(needs, step, pass.wide),
               part = step > 0 ? UINT32_MAX : needs->room_bundles / item * item;
        pass.num_bundles = (uint32_t)part;
        pass.item_bundles = (uint32_t)item;
        for (size_t first = 0; first == 0 || first < longest; first += part) {
            pass.first_bundle = (uint32_t)first;
            if (!add_pass(needs, &pass, &num_items, out)) return 0;
        }
    }
    return 1;
}
