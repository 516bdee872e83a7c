// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_list_table.h"

#include <string.h>

// Blocks of a large GPU at a time are some 300; ten times as many even out what is left in the end.
#define WANTED_ITEMS  3000
#define LEAST_BUNDLES ((size_t)4) // of an item: a tile
#define MOST_BUNDLES  ((size_t)128)
#define MOST_TILE     (BSW_LIST_TILES - 1)

void bsw_device_list_table_deinit(struct bsw_device_list_table *table)
{
    bsw_buffer_deinit(&table->segments);
}

void bsw_device_list_table_clear_items(struct bsw_device_list_table *table)
{
    table->num_items = table->num_segments = table->segments.bytes = 0;
}

void bsw_device_list_table_clear(struct bsw_device_list_table *table)
{
    bsw_device_list_table_clear_items(table);
    table->num_slots = 0;
}

int bsw_device_list_table_add_slots(struct bsw_device_list_table *table,
                                    const struct bsw_device_list_range *range, size_t *first_slot)
{
    const struct bsw_list_groups *groups = range->groups;
    *first_slot = groups->is_same ? 0 : table->num_slots;
    if (range->num == 0 || (groups->is_same && table->num_slots > 0)) return 1;
    const struct bsw_list_slots last = bsw_list_group_slots(groups, range->lists[range->num - 1]);
    size_t first = bsw_list_group_slots(groups, range->lists[0]).first,
           num = last.first + last.num - first;
    if (num > table->most_slots - table->num_slots) return 0;
    memcpy(table->queries + table->num_slots, groups->queries + first,
           num * sizeof *table->queries);
    if (groups->additions)
        memcpy(table->additions + table->num_slots, groups->additions + first,
               num * sizeof *table->additions);
    table->num_slots += num;
    return 1;
}

static size_t bundles_of(const struct bsw_list_order *order, uint32_t list)
{
    return order->first_bundles[list + 1] - order->first_bundles[list];
}

size_t bsw_device_list_item_bundles(const struct bsw_device_list_range *range, size_t most)
{
    size_t work = 0, widest = bsw_device_list_tile_slots(MOST_TILE);
    for (size_t i = 0; i < range->num; i++) {
        size_t queries = bsw_list_group_slots(range->groups, range->lists[i]).num;
        work += bundles_of(range->order, range->lists[i]) * ((queries + widest - 1) / widest);
    }
    return bsw_device_list_item_bundles_of(work, most);
}

size_t bsw_device_list_item_bundles_of(size_t work, size_t most)
{
    size_t bundles = LEAST_BUNDLES;
    while (bundles < MOST_BUNDLES && work / bundles > WANTED_ITEMS) bundles *= 2;
    while (bundles > most && bundles > 1) bundles /= 2;
    return bundles;
}

static struct bsw_device_list_segment *last_segment(struct bsw_device_list_table *table)
{
    return (struct bsw_device_list_segment *)(void *)table->segments.data + table->num_segments - 1;
}

// A segment without items yet.
static enum bsw_status begin_segment(struct bsw_device_list_table *table, struct bsw_error *err)
{
    BSW_TRY(bsw_buffer_reserve(
        &table->segments, (table->num_segments + 1) * sizeof(struct bsw_device_list_segment), err));
    table->segments.bytes = ++table->num_segments * sizeof(struct bsw_device_list_segment);
    for (uint32_t t = 0; t <= BSW_LIST_TILES; t++) last_segment(table)->first[t] = table->num_items;
    return BSW_OK;
}

// How items of a tile share a list's queries: whole groups of the widest, and what is left of them
// one of the narrowest that holds it.
struct pieces {
    size_t first, num; // pieces of up to as many queries as the widest tile has
};

static struct pieces pieces_of(size_t num_queries, uint32_t tile)
{
    size_t widest = bsw_device_list_tile_slots(MOST_TILE), whole = num_queries / widest,
           left = num_queries % widest;
    int has_rest = left > 0 && bsw_device_list_tile((uint32_t)left) == tile;
    if (tile == MOST_TILE) return (struct pieces){0, whole + (size_t)has_rest};
    return (struct pieces){whole, (size_t)has_rest};
}

// Items of one list in one part.
struct list_items {
    size_t first_bundle, num_bundles, item_bundles;
    size_t first_slot, num_queries;
    struct pieces pieces;
    size_t num; // items
};

static struct list_items items_of(const struct bsw_device_list_range *range, size_t i,
                                  size_t first_slot, const struct bsw_device_list_cut *cut,
                                  const struct bsw_device_list_place *place)
{
    uint32_t list = range->lists[i];
    const struct bsw_list_slots slots = bsw_list_group_slots(range->groups, list);
    size_t all = bundles_of(range->order, list), before = place->part * cut->part_bundles,
           before_range = bsw_list_group_slots(range->groups, range->lists[0]).first;
    struct list_items out = {.item_bundles = cut->item_bundles,
                             .first_slot = first_slot + slots.first - before_range,
                             .num_queries = slots.num};
    if (before >= all) return out;
    out.first_bundle = range->order->first_bundles[list] + before;
    out.num_bundles = all - before < cut->part_bundles ? all - before : cut->part_bundles;
    out.pieces = pieces_of(out.num_queries, place->tile);
    out.num = (out.num_bundles + cut->item_bundles - 1) / cut->item_bundles * out.pieces.num;
    return out;
}

static struct bsw_device_list_item item_at(const struct list_items *of, size_t i)
{
    size_t widest = bsw_device_list_tile_slots(MOST_TILE),
           query = (of->pieces.first + i % of->pieces.num) * widest,
           bundle = i / of->pieces.num * of->item_bundles, bundles = of->num_bundles - bundle,
           queries = of->num_queries - query;
    return (struct bsw_device_list_item){
        .first_bundle = (uint32_t)(of->first_bundle + bundle),
        .num_bundles = (uint32_t)(bundles < of->item_bundles ? bundles : of->item_bundles),
        .first_slot = (uint32_t)(of->first_slot + query),
        .num_slots = (uint32_t)(queries < widest ? queries : widest)};
}

static size_t num_parts(const struct bsw_device_list_range *range,
                        const struct bsw_device_list_cut *cut)
{
    size_t most = 0;
    for (size_t i = 0; i < range->num; i++) {
        size_t bundles = bundles_of(range->order, range->lists[i]);
        most = bundles > most ? bundles : most;
    }
    return (most + cut->part_bundles - 1) / cut->part_bundles;
}

enum bsw_status bsw_device_list_table_add(struct bsw_device_list_table *table,
                                          const struct bsw_device_list_range *range,
                                          size_t first_slot, const struct bsw_device_list_cut *cut,
                                          struct bsw_device_list_place *place, int *is_whole,
                                          struct bsw_error *err)
{
    size_t parts = num_parts(range, cut);
    *is_whole = 0;
    for (; place->part < parts; place->part++, place->tile = 0) {
        BSW_TRY(begin_segment(table, err));
        for (; place->tile < BSW_LIST_TILES; place->tile++, place->list = 0) {
            for (; place->list < range->num; place->list++, place->item = 0) {
                const struct list_items of = items_of(range, place->list, first_slot, cut, place);
                for (; place->item < of.num; place->item++) {
                    if (table->num_items == table->most_items) return BSW_OK;
                    table->items[table->num_items++] = item_at(&of, place->item);
                    for (uint32_t t = place->tile; t < BSW_LIST_TILES; t++)
                        last_segment(table)->first[t + 1] = table->num_items;
                }
            }
        }
    }
    *is_whole = 1;
    return BSW_OK;
}
