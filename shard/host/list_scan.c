// SPDX-License-Identifier: Apache-2.0
#include "shard/host/list_scan.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codes/result_order.h"
#include "kernels/scan_tuning.h"
#include "kernels/select/key_shift.h"
#include "shard/codecs/selective_table.h"
#include "shard/host/list_bounds.h"
#include "shard/host/running_lists.h"
#include "shard/host/shard_tiles.h"

// Bundles of a tile at most: what one query may find in it has to have room.
#define MOST_TILE_BUNDLES 16
#define MOST_TILE_ROWS    (MOST_TILE_BUNDLES * BSW_BUNDLE_ROWS)
_Static_assert(MOST_TILE_BUNDLES <= BSW_RADIUS_BUNDLES, "a pass has a tile at least");
_Static_assert(MOST_TILE_ROWS <= BSW_FIXED_BOUND_ROWS, "terms of a tile");
// Candidates of a query in a tile lie so far apart that those of all do not share cache sets.
#define SLOT_ITEMS    (MOST_TILE_ROWS + BSW_ALIGNMENT_BYTES / sizeof(uint64_t))
#define QUERIES_AHEAD 16
#define MOST_QUERIES  2048 // of a list at a time
#define FEW_LISTS     8    // of a query, which hold most of what it finds
_Static_assert(FEW_LISTS <= BSW_COARSE_RANK, "they are in order");

// A batch under way.
struct list_job {
    const struct bsw_resident_shard *shard;
    const struct bsw_query_range *queries;
    struct bsw_scan_workspace *workspace;
    struct bsw_running_lists running;
    size_t tile_bundles;
    uint32_t matrix_from_queries, padded_dims;
    const int8_t *components; // [num_queries][padded_dims]
    const int32_t *constants;
    const float *scales;                  // NULL for whole keys
    const struct bsw_list_tables *tables; // of codes that are scanned by tables; else NULL
    const struct bsw_list_bounds *bounds; // with these; else NULL
};

// Queries of a list, and what is added to their keys there, or NULL.
struct list_queries {
    const uint32_t *queries;
    const float *additions;
    size_t num;
};

// What one thread works with.
struct list_thread {
    int8_t *components; // of a list's queries, side by side
    int32_t *constants;
    float *scales;
    struct bsw_matrix_output *outputs;
    uint64_t *slots; // [queries][SLOT_ITEMS]
    uint8_t *bytes;  // of a tile
    int32_t *dots;
    struct bsw_running_room room;
    struct bsw_tile_ahead *ahead; // of the next list
};

// ---- memory ----

// Parts of a thread's scratch for so many queries of a list; at NULL: counts the bytes alone.
static size_t divide_scratch(const struct list_job *job, size_t queries, unsigned char *at,
                             struct list_thread *out)
{
    size_t merged = (bsw_running_capacity(job->running.keep) + MOST_TILE_ROWS) * sizeof(uint64_t);
    const struct bsw_memory_part parts[] = {
        {&out->components, queries * job->padded_dims},
        {&out->constants, queries * sizeof(int32_t)},
        {&out->scales, queries * sizeof(float)},
        {&out->outputs, queries * sizeof(struct bsw_matrix_output)},
        {&out->slots, queries * SLOT_ITEMS * sizeof(uint64_t)},
        {&out->bytes, bsw_matrix_tile_bytes(job->padded_dims, job->tile_bundles)},
        {&out->dots, MOST_TILE_ROWS * sizeof(int32_t)},
        {&out->room.merged, merged},
        {&out->room.scratch, merged}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

void bsw_list_scan_scratch_deinit(struct bsw_list_scan_scratch *scratch)
{
    bsw_list_groups_deinit(&scratch->groups);
    bsw_buffer_deinit(&scratch->components);
    bsw_buffer_deinit(&scratch->constants);
    bsw_buffer_deinit(&scratch->lists);
    bsw_buffer_deinit(&scratch->items);
    bsw_buffer_deinit(&scratch->threads);
    bsw_buffer_deinit(&scratch->all);
    bsw_list_table_scratch_deinit(&scratch->tables);
}

// ---- queries ----

// Components and constants of all queries, as matrix_scan takes them.
static enum bsw_status unpack_queries(struct list_job *job, struct bsw_list_scan_scratch *scratch,
                                      struct bsw_error *err)
{
    const struct bsw_query_batch *batch = job->queries->batch;
    const struct bsw_code_layout *layout = &job->shard->shape.layout;
    size_t num = job->queries->num_queries, first = job->queries->first_query;
    if (job->shard->shape.has_bytes) { // bytes already
        job->components = (const int8_t *)(batch->words + first * batch->query_words);
        job->constants = batch->constants + first;
        return BSW_OK;
    }
    BSW_TRY(bsw_buffer_reserve(&scratch->components, num * job->padded_dims + 1, err));
    BSW_TRY(bsw_buffer_reserve(&scratch->constants, (num + 1) * sizeof(int32_t), err));
    int8_t *components = (int8_t *)scratch->components.data;
    int32_t *constants = (int32_t *)(void *)scratch->constants.data;
#pragma omp parallel for schedule(static) num_threads(job->workspace->num_threads)
    for (size_t q = 0; q < num; q++) {
        job->workspace->matrix_scan->unpack_query(
            layout, batch->words + (first + q) * batch->query_words, batch->query_bits,
            components + q * job->padded_dims, &constants[q]);
    }
    job->components = components;
    job->constants = constants;
    job->scales = batch->scales ? batch->scales + first : NULL;
    return BSW_OK;
}

// Tables in place of components.
static enum bsw_status open_tables(struct list_job *job, struct bsw_list_tables *tables,
                                   struct bsw_list_bounds *bounds,
                                   struct bsw_list_scan_scratch *scratch, struct bsw_error *err)
{
    job->tile_bundles = MOST_TILE_BUNDLES;
    job->tables = tables;
    BSW_TRY(bsw_list_tables_open(job->shard, job->queries, job->workspace, MOST_TILE_ROWS,
                                 &scratch->tables, tables, err));
    BSW_TRY(bsw_list_bounds_open(tables, MOST_TILE_BUNDLES, bounds, err));
    if (bounds->is_on) job->bounds = bounds;
    return BSW_OK;
}

// ---- what is found ----

static uint32_t limit_of(const struct list_job *job, size_t query)
{
    return bsw_running_limit(&job->running, query);
}

// bsw_limit_before or a little less, as keys are compared once more when they have their addition:
// it is wanted for every query of every list, and the exact one takes 32 steps.
static uint32_t limit_before(uint32_t limit, float addition)
{
    float key = bsw_score_to_float(limit);
    key = (key - addition) - 0x1p-21f * (fabsf(key) + fabsf(addition));
    return isfinite(key) ? bsw_score_from_float(key + 0.0f) : 0;
}

// Keys with their addition, those that then reach the limit; returns how many.
static size_t add_to_keys(uint64_t *items, size_t num, float addition, uint32_t limit)
{
    const union bsw_addition number = {.number = addition};
    size_t count = 0;
    for (size_t i = 0; i < num; i++) {
        uint32_t score = bsw_score_add(bsw_candidate_score(items[i]), number, 1);
        items[count] = (uint64_t)score << 32 | (uint32_t)items[i];
        count += score >= limit;
    }
    return count;
}

// Adds what a query found in a tile.
static void add(const struct list_job *job, const struct list_thread *thread, size_t query,
                uint64_t *found, size_t num, const float *addition)
{
    if (addition) num = add_to_keys(found, num, *addition, limit_of(job, query));
    if (num > 0) bsw_running_lists_add(&job->running, query, found, num, thread->room);
}

// ---- a list ----

// Queries of a list, side by side.
static void gather(const struct list_job *job, const uint32_t *queries, size_t num,
                   const struct list_thread *thread)
{
    size_t dims = job->padded_dims;
    for (size_t i = 0; i < num; i++) {
        if (i + QUERIES_AHEAD < num) {
            const int8_t *ahead = job->components + queries[i + QUERIES_AHEAD] * dims;
            for (size_t d = 0; d < dims; d += BSW_ALIGNMENT_BYTES) __builtin_prefetch(ahead + d);
        }
        const int8_t *from = job->components + queries[i] * dims;
        int8_t *to = thread->components + i * dims;
        for (size_t d = 0; d < dims; d += 32) memcpy(to + d, from + d, 32); // no call
        thread->constants[i] = job->constants[queries[i]];
        if (job->scales) thread->scales[i] = job->scales[queries[i]];
    }
}

static uint32_t first_limit(const struct list_job *job, const struct list_queries *all, size_t i)
{
    uint32_t limit = limit_of(job, all->queries[i]);
    return all->additions ? limit_before(limit, all->additions[i]) : limit;
}

static void scan_matrix(const struct list_job *job, const struct list_thread *thread,
                        const struct list_queries *list, size_t bundle, size_t num_bundles)
{
    const uint32_t *queries = list->queries;
    size_t num = list->num;
    const struct bsw_matrix_tile tile = bsw_matrix_tile_at(
        job->shard, job->workspace->matrix_scan, bundle, num_bundles, thread->bytes, thread->ahead);
    const struct bsw_matrix_queries all = {.num_queries = num,
                                           .components = thread->components,
                                           .constants = thread->constants,
                                           .scales = thread->scales,
                                           .factor = job->queries->batch->factor};
    for (size_t i = 0; i < num; i++)
        thread->outputs[i] = (struct bsw_matrix_output){.items = thread->slots + i * SLOT_ITEMS,
                                                        .limit = first_limit(job, list, i)};
    bsw_tile_ahead_ask(thread->ahead, BSW_AHEAD_LINES); // of bytes: nothing was unpacked
    job->workspace->matrix_scan->scan(&tile, &all, thread->outputs);
    for (size_t i = 0; i < num; i++) {
        if (i + QUERIES_AHEAD < num && thread->outputs[i + QUERIES_AHEAD].count > 0)
            bsw_running_prefetch(&job->running, queries[i + QUERIES_AHEAD]);
        if (thread->outputs[i].count > 0)
            add(job, thread, queries[i], thread->outputs[i].items, thread->outputs[i].count,
                list->additions ? &list->additions[i] : NULL);
    }
}

static void scan_planes(const struct list_job *job, const struct list_thread *thread,
                        const struct list_queries *list, size_t i, size_t bundle,
                        size_t num_bundles)
{
    uint32_t query = list->queries[i], limit = first_limit(job, list, i);
    const struct bsw_query_batch *batch = job->queries->batch;
    const struct bsw_select_table *select = job->workspace->select;
    const struct bsw_code_arrays *arrays = &job->shard->arrays;
    size_t place = bundle * BSW_BUNDLE_ROWS, count;
    size_t in_batch = job->queries->first_query + query;
    bsw_tile_ahead_ask(thread->ahead, BSW_AHEAD_LINES);
    bsw_tile_dots(job->shard, job->workspace->plane_scan, batch, in_batch, bundle, num_bundles, 0,
                  job->padded_dims, thread->dots);
    bsw_tile_ahead_ask(thread->ahead, BSW_AHEAD_LINES);
    if (job->shard->shape.has_affine)
        count = select->filter_affine(thread->dots, arrays->scales + place,
                                      bsw_tile_biases(arrays, place), batch->scales[in_batch],
                                      arrays->masks + bundle, num_bundles, (uint32_t)place, limit,
                                      thread->slots);
    else
        count = select->filter_integer(thread->dots, arrays->masks + bundle, num_bundles,
                                       (uint32_t)place, limit, thread->slots);
    if (count > 0)
        add(job, thread, query, thread->slots, count, list->additions ? &list->additions[i] : NULL);
}

// A query of a list by its table.
static void scan_table(const struct list_job *job, const struct list_thread *thread, uint32_t l,
                       uint32_t query, float addition, struct bsw_list_table_room *room)
{
    const uint32_t *first = job->shard->order.first_bundles;
    bsw_list_tables_take(job->tables, query, room);
    for (size_t b = first[l]; b < first[l + 1]; b += job->tile_bundles) {
        size_t left = first[l + 1] - b,
               bundles = left < job->tile_bundles ? left : job->tile_bundles;
        size_t count = bsw_list_tables_find(job->tables, room, b, bundles, addition,
                                            limit_of(job, query), thread->slots);
        if (count > 0) add(job, thread, query, thread->slots, count, NULL);
    }
}

// Queries with a limit over a run of the list's bundles.
static void scan_group(const struct list_job *job, const struct list_thread *thread,
                       struct bsw_list_table_room *room, struct bsw_bound_group *group,
                       size_t first, size_t last, struct bsw_list_bound_room *bound_room)
{
    size_t most = job->bounds->pass_bundles, tile = job->tile_bundles;
    for (size_t p = first; p < last; p += most) {
        size_t pass = last - p < most ? last - p : most;
        for (size_t i = 0; i < group->num; i++) group->limits[i] = limit_of(job, group->queries[i]);
        bsw_list_bounds_pass(job->bounds, room, group, p, pass, bound_room);
        for (size_t i = 0; i < group->num; i++) {
            for (size_t b = p; b < p + pass; b += tile) {
                size_t bundles = p + pass - b < tile ? p + pass - b : tile,
                       count = bsw_list_bounds_find(job->bounds, room, group, i, b, bundles,
                                                    bound_room, thread->slots);
                if (count > 0) add(job, thread, group->queries[i], thread->slots, count, NULL);
            }
        }
    }
    group->num = 0;
}

// Queries that have a limit, by bounds; of the list's, those at `places`.
static void scan_bounds(const struct list_job *job, const struct list_thread *thread, uint32_t l,
                        const struct list_queries *list, struct bsw_list_table_room *room,
                        const uint32_t *places, size_t num)
{
    const uint32_t *first = job->shard->order.first_bundles;
    struct bsw_list_bound_room bound_room =
        bsw_list_bounds_room(job->bounds, (size_t)omp_get_thread_num());
    struct bsw_bound_group group = {.num = 0};
    for (size_t b = first[l]; b < first[l + 1]; b += BSW_BOUND_RUN_BUNDLES) {
        size_t left = first[l + 1] - b,
               run = left < BSW_BOUND_RUN_BUNDLES ? left : BSW_BOUND_RUN_BUNDLES;
        bsw_list_bounds_enter(job->bounds, room, b, run, &bound_room);
        for (size_t i = 0; i < num; i++) {
            if (i + BSW_BOUND_QUERIES < num)
                bsw_list_bounds_prefetch(job->bounds, list->queries[places[i + BSW_BOUND_QUERIES]]);
            group.additions[group.num] = list->additions ? list->additions[places[i]] : 0.0f;
            group.queries[group.num++] = list->queries[places[i]];
            if (group.num == BSW_BOUND_QUERIES || i + 1 == num)
                scan_group(job, thread, room, &group, b, b + run, &bound_room);
        }
    }
}

static float addition_of(const struct list_queries *list, size_t i, int is_count)
{
    return list->additions && !is_count ? list->additions[i] : 0.0f;
}

// Queries of a list by tables, those that have a limit by bounds if there are some.
static void scan_tables(const struct list_job *job, const struct list_thread *thread, uint32_t l,
                        const struct list_queries *list)
{
    const uint32_t *first = job->shard->order.first_bundles;
    struct bsw_list_table_room room =
        bsw_list_tables_room(job->tables, (size_t)omp_get_thread_num());
    const struct bsw_selection *selection = job->queries->batch->selection;
    int is_count = selection && bsw_selection_counts(&selection->settings);
    uint32_t bounded[MOST_QUERIES];
    size_t num = 0;
    if (first[l] == first[l + 1]) return;
    bsw_list_tables_enter(job->tables, l, &room);
    int has_bounds = job->bounds && bsw_list_bounds_hold(job->bounds, &room);
    for (size_t i = 0; i < list->num; i++) {
        uint32_t query = list->queries[i];
        bsw_tile_ahead_ask(thread->ahead, BSW_AHEAD_LINES);
        bsw_list_tables_count(job->tables, l, query, &room);
        if (has_bounds && limit_of(job, query) > BSW_SCORE_OF_MINUS_INFINITY)
            bounded[num++] = (uint32_t)i;
        else
            scan_table(job, thread, l, query, addition_of(list, i, is_count), &room);
    }
    if (num > 0 && num >= bsw_list_bounds_least(job->bounds))
        scan_bounds(job, thread, l, list, &room, bounded, num);
    else
        for (size_t i = 0; i < num; i++)
            scan_table(job, thread, l, list->queries[bounded[i]],
                       addition_of(list, bounded[i], is_count), &room);
}

// A list for at most MOST_QUERIES queries.
static void scan_list(const struct list_job *job, const struct list_thread *thread, uint32_t l,
                      const struct list_queries *list)
{
    const uint32_t *first = job->shard->order.first_bundles;
    if (job->tables) {
        scan_tables(job, thread, l, list);
        return;
    }
    int is_matrix = job->shard->shape.has_bytes || list->num >= job->matrix_from_queries;
    if (is_matrix) gather(job, list->queries, list->num, thread);
    for (size_t b = first[l]; b < first[l + 1]; b += job->tile_bundles) {
        size_t left = first[l + 1] - b, count = left < job->tile_bundles ? left : job->tile_bundles;
        if (is_matrix)
            scan_matrix(job, thread, list, b, count);
        else
            for (size_t i = 0; i < list->num; i++) scan_planes(job, thread, list, i, b, count);
    }
}

// ---- a batch ----

static size_t thread_queries(const struct bsw_list_groups *groups)
{
    return groups->most < MOST_QUERIES ? groups->most : MOST_QUERIES;
}

// The list behind number u of those that are looked at. Lists are short and lie anywhere, which no
// prefetcher foresees.
static struct bsw_tile_ahead next_list(const struct list_job *job,
                                       const struct bsw_list_groups *groups, size_t u)
{
    const uint32_t *first = job->shard->order.first_bundles;
    if (u + 1 == groups->num_used) return (struct bsw_tile_ahead){.num_parts = 0};
    size_t l = groups->used ? groups->used[u + 1] : u + 1;
    return bsw_tile_ahead_of(job->shard, first[l], first[l + 1] - first[l]);
}

// What a scan reads of a bundle.
static size_t bundle_bytes(const struct bsw_resident_shard *shard)
{
    struct bsw_shard_shape one = shard->shape;
    one.num_places = BSW_BUNDLE_ROWS;
    const struct bsw_resident_parts parts = bsw_resident_parts_of(&one, 0);
    return bsw_resident_scan_bytes(&parts);
}

static enum bsw_status scan_groups(const struct list_job *job, const struct bsw_list_groups *groups,
                                   struct bsw_list_scan_scratch *scratch, struct bsw_error *err)
{
    struct list_thread any;
    size_t num_threads = (size_t)job->workspace->num_threads, most = thread_queries(groups),
           bytes = divide_scratch(job, most, NULL, &any);
    uint64_t pairs = 0, rows = 0, bundles = 0;
    BSW_TRY(bsw_buffer_reserve(&scratch->threads, num_threads * bytes, err));
#pragma omp parallel num_threads(job->workspace->num_threads) reduction(+ : pairs, rows, bundles)
    {
        struct list_thread thread;
        divide_scratch(job, most, scratch->threads.data + (size_t)omp_get_thread_num() * bytes,
                       &thread);
#pragma omp for schedule(dynamic, 4)
        for (size_t u = 0; u < groups->num_used; u++) {
            uint32_t l = groups->used ? groups->used[u] : (uint32_t)u;
            const uint32_t *group = groups->first + (groups->is_same ? 0 : l);
            size_t num = group[1] - group[0];
            struct bsw_tile_ahead ahead = next_list(job, groups, u);
            thread.ahead = &ahead;
            for (size_t i = 0; i < num; i += most) {
                const struct list_queries list = {
                    .queries = groups->queries + group[0] + i,
                    .additions = groups->additions ? groups->additions + group[0] + i : NULL,
                    .num = num - i < most ? num - i : most};
                scan_list(job, &thread, l, &list);
                bundles +=
                    job->shard->order.first_bundles[l + 1] - job->shard->order.first_bundles[l];
            }
            bsw_tile_ahead_ask(&ahead, SIZE_MAX); // what nobody asked for
            pairs += num;
            rows += num * (uint64_t)bsw_list_num_rows(&job->shard->order, l);
        }
    }
    scratch->num_pairs += pairs;
    scratch->num_rows += rows;
    job->workspace->scanned_bytes += bundles * bundle_bytes(job->shard);
    return BSW_OK;
}

// Calls `visit` for every query, with a thread's scratch.
static void for_each_query(const struct list_job *job, struct bsw_list_scan_scratch *scratch,
                           void (*visit)(const struct list_job *job,
                                         const struct list_thread *thread, size_t query,
                                         struct bsw_candidate_lists *out),
                           struct bsw_candidate_lists *out)
{
    struct list_thread any;
    size_t bytes = divide_scratch(job, 0, NULL, &any); // there was room for more
#pragma omp parallel num_threads(job->workspace->num_threads)
    {
        struct list_thread thread;
        divide_scratch(job, 0, scratch->threads.data + (size_t)omp_get_thread_num() * bytes,
                       &thread);
#pragma omp for schedule(static)
        for (size_t q = 0; q < job->queries->num_queries; q++) visit(job, &thread, q, out);
    }
}

// The limit by what the nearest lists had.
static void raise_limit(const struct list_job *job, const struct list_thread *thread, size_t query,
                        struct bsw_candidate_lists *out)
{
    (void)out;
    bsw_running_lists_raise(&job->running, query, thread->room);
}

// The best of a query to the caller's list.
static void finish(const struct list_job *job, const struct list_thread *thread, size_t query,
                   struct bsw_candidate_lists *out)
{
    uint64_t *items = (uint64_t *)(void *)out->items.data;
    size_t *counts = (size_t *)(void *)out->counts.data;
    counts[query] =
        bsw_running_lists_finish(&job->running, query, items + query * out->keep, thread->room);
}

static enum bsw_status scan_chosen(struct list_job *job, const struct bsw_list_choice *choice,
                                   struct bsw_list_scan_scratch *scratch, struct bsw_error *err)
{
    uint32_t num_lists = job->shard->order.num_lists;
    // Queries enough for every list: then a further step costs little more than it saves.
    int has_many = job->queries->num_queries * FEW_LISTS >= 4 * (size_t)num_lists;
    const size_t ends[] = {has_many ? 2 : 1, has_many ? FEW_LISTS : 1, SIZE_MAX};
    for (size_t step = 0, from = 0; step < 3; from = ends[step++]) {
        if (ends[step] == from) continue;
        if (from > 0) for_each_query(job, scratch, raise_limit, NULL);
        BSW_TRY(bsw_list_groups_make(choice, num_lists, from, ends[step], &scratch->groups, err));
        BSW_TRY(scan_groups(job, &scratch->groups, scratch, err));
    }
    return BSW_OK;
}

// All lists for all queries: one list after another has the same group.
static enum bsw_status scan_all(struct list_job *job, struct bsw_list_scan_scratch *scratch,
                                struct bsw_error *err)
{
    size_t num = job->queries->num_queries;
    uint32_t num_lists = job->shard->order.num_lists;
    BSW_TRY(bsw_buffer_reserve(&scratch->all, (num + 2) * sizeof(uint32_t), err));
    uint32_t *queries = (uint32_t *)(void *)scratch->all.data, *first = queries + num;
    for (size_t q = 0; q < num; q++) queries[q] = (uint32_t)q;
    first[0] = 0;
    first[1] = (uint32_t)num;
    const struct bsw_list_groups all = {.num_lists = num_lists,
                                        .most = num,
                                        .num_used = num_lists,
                                        .first = first,
                                        .queries = queries,
                                        .is_same = 1};
    return scan_groups(job, &all, scratch, err);
}

enum bsw_status bsw_list_scan(const struct bsw_resident_shard *shard,
                              const struct bsw_list_choice *choice,
                              const struct bsw_query_range *queries, uint32_t scan_dims,
                              const uint32_t *limits, size_t keep,
                              struct bsw_list_scan_scratch *scratch,
                              struct bsw_scan_workspace *workspace, struct bsw_candidate_lists *out,
                              struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    const struct bsw_scan_tuning tuning =
        bsw_scan_tuning_of(workspace->level, &shard->shape.layout);
    struct bsw_resident_shard first = *shard; // of its dimensions
    if (scan_dims > 0) bsw_code_layout_first(&shard->shape.layout, scan_dims, &first.shape.layout);
    uint32_t dims = first.shape.layout.padded_dims;
    size_t tile = bsw_matrix_tile_bundles(dims, tuning.tile_kib);
    // In short lists planes lose from half as many queries on; other levels were not measured.
    uint32_t from = tuning.matrix_from_queries;
    uint32_t matrix_from = workspace->level == BSW_CPU_AVX2 ? from - from / 2 : from;
    if (keep > shard->shape.num_rows) keep = (size_t)shard->shape.num_rows;
    struct list_job job = {.shard = &first,
                           .queries = queries,
                           .workspace = workspace,
                           .running = {.keep = keep,
                                       .is_shared = workspace->num_threads > 1,
                                       .select = workspace->select,
                                       .merge = workspace->merge,
                                       .rows = shard->order.rows},
                           .tile_bundles = tile < MOST_TILE_BUNDLES ? tile : MOST_TILE_BUNDLES,
                           .matrix_from_queries = matrix_from,
                           .padded_dims = dims};
    struct bsw_list_tables tables;
    struct bsw_list_bounds bounds;
    uint64_t rows_before = scratch->num_rows;
    BSW_TRY(bsw_candidate_lists_reserve(out, queries->num_queries, keep, err));
    BSW_TRY(shard->shape.has_tables ? open_tables(&job, &tables, &bounds, scratch, err)
                                    : unpack_queries(&job, scratch, err));
    BSW_TRY(bsw_running_lists_begin(&job.running, queries->num_queries, limits, &scratch->lists,
                                    &scratch->items, err));
    BSW_TRY(choice ? scan_chosen(&job, choice, scratch, err) : scan_all(&job, scratch, err));
    for_each_query(&job, scratch, finish, out);
    workspace->used = shard->shape.has_tables ? BSW_SCAN_TABLES : BSW_SCAN_MATRIX;
    workspace->num_pairs += scratch->num_rows - rows_before;
    workspace->scan_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}
