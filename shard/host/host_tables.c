// SPDX-License-Identifier: Apache-2.0
// Product codes: a table of each query, or of query and list. Rows are summed that pass a bound,
// once the query has a limit, else all.
#include <omp.h>

#include "kernels/select/key_shift.h"
#include "shard/codecs/selective_table.h"
#include "shard/host/host_engine.h"
#include "shard/host/shard_tiles.h"

_Static_assert(BSW_TILE_ROWS <= BSW_FIXED_BOUND_ROWS, "terms of a tile");

#define GAP_BUNDLES 4 // without rows, that bounds go over: bytes of queries are turned anew behind

static enum bsw_status open_tables(struct bsw_host_scan *scan, struct bsw_error *err)
{
    size_t tile = scan->way.plane_bundles;
    BSW_TRY(bsw_list_tables_open(&scan->shard, scan->queries, scan->workspace,
                                 tile * BSW_BUNDLE_ROWS, &scan->scratch->tables, &scan->tables,
                                 err));
    // Bounds of radii are of lists.
    if (scan->queries->batch->selection && scan->shard.order.num_lists == 0) return BSW_OK;
    BSW_TRY(bsw_list_bounds_open(&scan->tables, tile, &scan->bounds, err));
    scan->has_bounds = scan->bounds.is_on;
    return BSW_OK;
}

// What is added to the keys of a slot; sums of entries within a radius are counts.
static float addition_of(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread,
                         size_t i)
{
    const struct bsw_selection *selection = scan->queries->batch->selection;
    return selection && bsw_selection_counts(&selection->settings)
               ? 0.0f
               : bsw_host_addition(scan, thread, i);
}

// A slot by its table.
static void scan_slot(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread,
                      size_t i, struct bsw_list_table_room *room)
{
    const struct bsw_run *run = &thread->run;
    size_t tile = scan->way.plane_bundles;
    uint32_t query = bsw_host_query(scan, thread, i);
    float addition = addition_of(scan, thread, i);
    bsw_list_tables_take(&scan->tables, query, room);
    for (size_t b = 0, num; (num = bsw_host_tile(scan, thread, &b, tile, 1)) > 0; b += num) {
        size_t count = bsw_list_tables_find(&scan->tables, room, run->first_bundle + b, num,
                                            addition, bsw_host_limit(scan, query), thread->found);
        if (count > 0) bsw_host_found(scan, thread, i, thread->found, count);
    }
}

// Slots that go over some bundles together.
struct group {
    struct bsw_bound_group bound;
    size_t slots[BSW_BOUND_QUERIES];
};

static void scan_group(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread,
                       struct bsw_list_table_room *room, struct group *group, size_t first,
                       size_t last, struct bsw_list_bound_room *bound_room)
{
    struct bsw_bound_group *bound = &group->bound;
    size_t most = scan->bounds.pass_bundles, tile = scan->way.plane_bundles;
    for (size_t p = first; p < last; p += most) {
        size_t pass = last - p < most ? last - p : most;
        for (size_t i = 0; i < bound->num; i++)
            bound->limits[i] = bsw_host_limit(scan, bound->queries[i]);
        bsw_list_bounds_pass(&scan->bounds, room, bound, p, pass, bound_room);
        for (size_t i = 0; i < bound->num; i++) {
            for (size_t b = p; b < p + pass; b += tile) {
                size_t left = p + pass - b, num = left < tile ? left : tile;
                size_t count = bsw_list_bounds_find(&scan->bounds, room, bound, i, b, num,
                                                    bound_room, thread->found);
                if (count > 0) bsw_host_found(scan, thread, group->slots[i], thread->found, count);
            }
        }
    }
    bound->num = 0;
}

// Slots that have a limit, [num] of the run's, by bounds.
static void scan_bounded(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread,
                         struct bsw_list_table_room *room, const uint32_t *slots, size_t num)
{
    const struct bsw_list_bounds *bounds = &scan->bounds;
    size_t some;
    struct bsw_list_bound_room bound_room =
        bsw_list_bounds_room(bounds, (size_t)omp_get_thread_num());
    struct group group = {.bound.num = 0};
    for (size_t at = 0;
         (some = bsw_host_tile(scan, thread, &at, BSW_BOUND_RUN_BUNDLES, GAP_BUNDLES)) > 0;
         at += some) {
        size_t b = thread->run.first_bundle + at;
        bsw_list_bounds_enter(bounds, room, b, some, &bound_room);
        for (size_t i = 0; i < num; i++) {
            if (i + BSW_BOUND_QUERIES < num)
                bsw_list_bounds_prefetch(
                    bounds, bsw_host_query(scan, thread, slots[i + BSW_BOUND_QUERIES]));
            size_t place = group.bound.num++;
            group.slots[place] = slots[i];
            group.bound.additions[place] = bsw_host_addition(scan, thread, slots[i]);
            group.bound.queries[place] = bsw_host_query(scan, thread, slots[i]);
            if (group.bound.num == BSW_BOUND_QUERIES || i + 1 == num)
                scan_group(scan, thread, room, &group, b, b + some, &bound_room);
        }
    }
}

static void scan_tables(const struct bsw_host_scan *scan, struct bsw_host_thread *thread)
{
    const struct bsw_run *run = &thread->run;
    const struct bsw_list_order *order = &scan->shard.order;
    struct bsw_list_table_room room =
        bsw_list_tables_room(&scan->tables, (size_t)omp_get_thread_num());
    uint32_t bounded[BSW_HOST_MOST_SLOTS], list = 0;
    size_t num = 0;
    if (order->num_lists > 0) list = bsw_list_of_place(order, run->first_bundle * BSW_BUNDLE_ROWS);
    bsw_list_tables_enter(&scan->tables, list, &room);
    int has_bounds = scan->has_bounds && run->num_bundles >= scan->way.bounded_from &&
                     bsw_list_bounds_hold(&scan->bounds, &room);
    for (size_t i = 0; i < run->num_slots; i++) {
        uint32_t query = bsw_host_query(scan, thread, i);
        bsw_tile_ahead_ask(&thread->ahead, BSW_AHEAD_LINES);
        if (order->num_lists > 0) bsw_list_tables_count(&scan->tables, list, query, &room);
        if (has_bounds && bsw_host_limit(scan, query) > BSW_SCORE_OF_MINUS_INFINITY)
            bounded[num++] = (uint32_t)i;
        else
            scan_slot(scan, thread, i, &room);
    }
    if (num > 0 && num >= bsw_list_bounds_least(&scan->bounds))
        scan_bounded(scan, thread, &room, bounded, num);
    else
        for (size_t i = 0; i < num; i++) scan_slot(scan, thread, bounded[i], &room);
}

const struct bsw_host_family bsw_host_tables = {.open = open_tables, .scan_run = scan_tables};
