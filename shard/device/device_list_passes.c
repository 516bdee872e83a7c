// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_list_passes.h"

#include "shard/device/device_list_table.h"

#define MOST_TILE (BSW_LIST_TILES - 1)

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

// Items of a tile at most. A list has pieces of the widest tile for each 256 of its queries, and
// what is left, where that are more than the tile before has; of others one at most. Either way so
// many lists have them as there are pairs for.
static size_t most_items(const struct bsw_device_pass_needs *needs,
                         const struct bsw_device_list_pass *pass, uint32_t tile)
{
    size_t fewest = tile > 0 ? bsw_device_list_tile_slots(tile - 1) + (size_t)1 : 1,
           pieces = pairs_of(needs, pass->step) / fewest, each = 1;
    if (tile == MOST_TILE)
        each = ceil_of(needs->num_queries, bsw_device_list_tile_slots(MOST_TILE));
    if (needs->num_queries < fewest || pieces == 0) return 0;
    each = least(each, pieces);
    return each * items_of(needs, pass, least(needs->num_lists, ceil_of(pieces, each)));
}

// As bsw_device_list_item_bundles, of what may be expected.
static size_t item_bundles_of(const struct bsw_device_pass_needs *needs, uint32_t step)
{
    size_t pairs = pairs_of(needs, step), lists = least(needs->num_lists, pairs),
           widest = bsw_device_list_tile_slots(MOST_TILE),
           work = (size_t)needs->longest[needs->num_lists] / needs->num_lists * lists *
                  ceil_of(ceil_of(pairs, lists), widest),
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
        size_t item = item_bundles_of(needs, step),
               part = step > 0 ? UINT32_MAX : needs->room_bundles / item * item;
        for (size_t first = 0; first == 0 || first < longest; first += part) {
            const struct bsw_device_list_pass pass = {.step = step,
                                                      .first_bundle = (uint32_t)first,
                                                      .num_bundles = (uint32_t)part,
                                                      .item_bundles = (uint32_t)item};
            if (!add_pass(needs, &pass, &num_items, out)) return 0;
        }
    }
    return 1;
}
