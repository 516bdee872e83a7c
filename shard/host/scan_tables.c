// SPDX-License-Identifier: Apache-2.0
// A batch of queries over tiles of product codes: each query's table, made once for all tiles. Rows
// are summed that pass its bytes (fixed_bounds.h), once there is a limit and a tile has so many
// bundles that bytes of 16 queries are worth turning; else all.
#include <omp.h>

#include "kernels/select/key_shift.h"
#include "kernels/table_scan/table_scan.h"
#include "shard/codecs/selective_table.h"
#include "shard/host/fixed_bounds.h"
#include "shard/host/scan_group.h"
#include "shard/host/shard_tiles.h"

_Static_assert(BSW_TILE_ROWS <= BSW_FIXED_BOUND_ROWS, "terms of a tile");

#define LEAST_BOUNDED_BUNDLES 4

// Room of one thread that makes tables.
struct maker {
    float *room, *query_term, *table_room;
    void *selective_room;
};

static size_t divide_maker(const struct bsw_query_batch *batch, unsigned char *at,
                           struct maker *out)
{
    const struct bsw_product_codes *codes = batch->product;
    size_t numbers = bsw_product_numbers(&codes->book) * sizeof(float);
    const struct bsw_memory_part parts[] = {
        {&out->room, codes->projected_dims * sizeof(float)},
        {&out->query_term, numbers},
        {&out->table_room, numbers + codes->book.parts * sizeof(float)},
        {&out->selective_room, batch->selection ? bsw_selective_room_bytes(codes) : 0}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

static size_t numbers_bytes(const struct bsw_product_codes *codes)
{
    return bsw_align_size(bsw_table_bytes(&codes->book), BSW_ALIGNMENT_BYTES);
}

size_t bsw_group_table_bytes(const struct bsw_query_batch *batch)
{
    return numbers_bytes(batch->product) +
           (batch->selection ? bsw_selective_hits_bytes(batch->product) : 0);
}

uint32_t *bsw_group_table_hits(const struct bsw_query_batch *batch, const void *table)
{
    return batch->selection ? (uint32_t *)((uintptr_t)table + numbers_bytes(batch->product)) : NULL;
}

// ---- bounds ----

// Room of one thread that scans.
struct bound_room {
    struct bsw_passed_room passed;
    uint32_t *masks;
    void *scratch;
};

static size_t divide_bound_room(unsigned char *at, struct bound_room *out)
{
    const struct bsw_memory_part parts[] = {
        {&out->passed.places, BSW_TILE_ROWS * sizeof(uint32_t)},
        {&out->passed.sums, BSW_TILE_ROWS * sizeof(float)},
        {&out->masks, BSW_BOUND_QUERIES * BSW_TILE_BUNDLES * sizeof(uint32_t)},
        {&out->scratch, bsw_bound_room_bytes(BSW_TILE_BUNDLES)}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

static int has_bounds(const struct bsw_query_batch *batch)
{
    return !batch->selection && batch->product->book.parts <= BSW_BOUND_MAX_PARTS &&
           batch->num_queries >= bsw_fixed_bound_least(&batch->product->book);
}

static size_t bound_bytes(const struct bsw_query_batch *batch)
{
    return bsw_align_size(bsw_bound_bytes(&batch->product->book), BSW_ALIGNMENT_BYTES);
}

static uint8_t *bound_numbers(const struct bsw_scan_group *group, size_t q)
{
    return group->workspace->bounds.data + q * bound_bytes(group->batch);
}

static struct bsw_fixed_bound *bound_at(const struct bsw_scan_group *group, size_t q)
{
    return (struct bsw_fixed_bound *)(void *)group->workspace->bound_scales.data + q;
}

static enum bsw_status plan_bounds(const struct bsw_scan_group *group, struct bsw_error *err)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    size_t threads = (size_t)workspace->num_threads, num = group->num_queries;
    struct bound_room room;
    BSW_TRY(bsw_buffer_reserve(&workspace->bounds, num * bound_bytes(group->batch), err));
    BSW_TRY(
        bsw_buffer_reserve(&workspace->bound_scales, num * sizeof(struct bsw_fixed_bound), err));
    return bsw_buffer_reserve(&workspace->bound_threads, threads * divide_bound_room(NULL, &room),
                              err);
}

size_t bsw_scan_tables_bytes(const struct bsw_query_batch *batch)
{
    return bsw_group_table_bytes(batch) + (has_bounds(batch) ? bound_bytes(batch) : 0);
}

// ---- tables ----

enum bsw_status bsw_scan_tables_plan(struct bsw_scan_group *group, struct bsw_error *err)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    size_t threads = (size_t)workspace->num_threads, bytes = bsw_group_table_bytes(group->batch);
    struct maker maker;
    BSW_TRY(bsw_buffer_reserve(&workspace->tables, group->num_queries * bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->multipliers, group->num_queries * sizeof(float), err));
    BSW_TRY(bsw_buffer_reserve(&workspace->makers,
                               threads * divide_maker(group->batch, NULL, &maker), err));
    BSW_TRY(bsw_buffer_reserve(&workspace->dots, threads * BSW_TILE_ROWS * sizeof(float), err));
    group->sums = (float *)(void *)workspace->dots.data;
    return has_bounds(group->batch) ? plan_bounds(group, err) : BSW_OK;
}

static struct bsw_code_table table_at(const struct bsw_scan_group *group, size_t q)
{
    const struct bsw_query_batch *batch = group->batch;
    void *numbers = group->workspace->tables.data + q * bsw_group_table_bytes(batch);
    return bsw_product_code_table(batch->product, numbers);
}

static void make_table(const struct bsw_scan_group *group, size_t q, const struct maker *maker)
{
    const struct bsw_scan_workspace *workspace = group->workspace;
    const struct bsw_query_batch *batch = group->batch;
    const struct bsw_product_codes *codes = batch->product;
    size_t in_batch = group->first_query + q;
    float *multiplier = (float *)(void *)workspace->multipliers.data + q;
    void *table = workspace->tables.data + q * bsw_group_table_bytes(batch);
    const float *query =
        (const float *)(const void *)(batch->words + in_batch * batch->query_words);
    const struct bsw_product_terms terms = {query, maker->query_term, NULL, codes->norms};
    bsw_product_query_term(codes, workspace->table_scan, query, maker->room, maker->query_term);
    *multiplier =
        batch->selection
            ? bsw_selective_table(batch->selection, &terms, NULL, maker->selective_room, table,
                                  bsw_group_table_hits(batch, table))
            : bsw_product_table(codes, workspace->table_scan, bsw_batch_table(batch, in_batch),
                                &terms, maker->table_room, table);
    if (!has_bounds(batch)) return;
    const struct bsw_code_table now = table_at(group, q);
    *bound_at(group, q) =
        bsw_fixed_bound_make(&codes->book, bsw_table_bounds_table_get(workspace->level), &now,
                             *multiplier, maker->table_room, bound_numbers(group, q));
}

void bsw_scan_tables_make(const struct bsw_scan_group *group)
{
    struct bsw_scan_workspace *workspace = group->workspace;
#pragma omp parallel for schedule(static) num_threads(workspace->num_threads)
    for (size_t q = 0; q < group->num_queries; q++) {
        struct maker maker;
        size_t bytes = divide_maker(group->batch, NULL, &maker);
        divide_maker(group->batch, workspace->makers.data + (size_t)omp_get_thread_num() * bytes,
                     &maker);
        make_table(group, q, &maker);
    }
}

size_t bsw_shard_keep_hits(const struct bsw_resident_shard *shard,
                           const struct bsw_query_batch *batch, const uint32_t *hits,
                           uint64_t *items, size_t count)
{
    size_t words = bsw_segment_bundle_words(&shard->shape.layout.segments[0]);
    return bsw_selective_keep(batch->product, hits, (const uint8_t *)shard->arrays.planes[0],
                              words * sizeof(uint32_t), items, count);
}

// ---- a tile ----

struct tile {
    size_t bundle, count;
};

static float multiplier_of(const struct bsw_scan_group *group, size_t q)
{
    return ((const float *)(const void *)group->workspace->multipliers.data)[q];
}

static void scan_all(const struct bsw_scan_group *group, size_t q, struct tile tile, float *sums,
                     struct bsw_running_best *list)
{
    const struct bsw_query_batch *batch = group->batch;
    const struct bsw_code_table table = table_at(group, q);
    uint64_t *items = list->items + list->count;
    size_t found =
        bsw_tile_find(group->shard, group->workspace->table_scan, &table, multiplier_of(group, q),
                      0.0f, tile.bundle, tile.count, list->limit, sums, items);
    if (batch->selection)
        found = bsw_shard_keep_hits(group->shard, batch, bsw_group_table_hits(batch, table.numbers),
                                    items, found);
    list->count += found;
}

// Up to BSW_BOUND_QUERIES queries [num] that have a limit. lists: of the thread.
static void scan_bounded(const struct bsw_scan_group *group, const uint32_t *queries, size_t num,
                         struct tile tile, const struct bound_room *room,
                         struct bsw_running_best *lists)
{
    const struct bsw_product_book *book = &group->batch->product->book;
    const struct bsw_code_arrays *arrays = &group->shard->arrays;
    const struct bsw_scan_workspace *workspace = group->workspace;
    size_t words = bsw_segment_bundle_words(&group->shard->shape.layout.segments[0]);
    const struct bsw_bound_rows rows = {
        .parts = book->parts,
        .bits = book->bits,
        .codes = (const uint8_t *)(arrays->planes[0] + tile.bundle * words),
        .bundle_bytes = words * sizeof(uint32_t),
        .num_bundles = tile.count,
        .terms = bsw_fixed_bound_terms(),
        .masks = arrays->masks + tile.bundle};
    struct bsw_bound_query bounds[BSW_BOUND_QUERIES];
    for (size_t i = 0; i < num; i++)
        bounds[i] =
            bsw_fixed_bound_query(bound_at(group, queries[i]), book->parts,
                                  bound_numbers(group, queries[i]), 0.0f, lists[queries[i]].limit);
    bsw_table_bounds_table_get(workspace->level)
        ->pass(&rows, bounds, num, room->scratch, room->masks);
    for (size_t i = 0; i < num; i++) {
        struct bsw_running_best *list = &lists[queries[i]];
        const struct bsw_code_table table = table_at(group, queries[i]);
        const struct bsw_passed_rows passed = {rows.codes, rows.bundle_bytes, tile.count,
                                               room->masks + i * tile.count,
                                               (uint32_t)(tile.bundle * BSW_BUNDLE_ROWS)};
        list->count += bsw_passed_find(&passed, workspace->table_scan, &table,
                                       multiplier_of(group, queries[i]), 0.0f, list->limit,
                                       &room->passed, list->items + list->count);
    }
}

static void scan_tile(const struct bsw_scan_group *group, size_t thread, struct tile tile,
                      const struct bound_room *room)
{
    struct bsw_running_best *lists = group->lists + thread * group->num_queries;
    uint64_t *scratch = group->scratch + thread * 4 * group->capacity;
    int is_bounded = has_bounds(group->batch) && tile.count >= LEAST_BOUNDED_BUNDLES;
    uint32_t queries[BSW_BOUND_QUERIES];
    size_t num = 0;
    for (size_t q = 0; q < group->num_queries; q++) {
        struct bsw_running_best *list = &lists[q];
        if (list->count + tile.count * BSW_BUNDLE_ROWS > group->capacity)
            bsw_running_best_cut(list, group->workspace->select, scratch);
        if (list->is_full) continue;
        if (is_bounded && list->limit > BSW_SCORE_OF_MINUS_INFINITY)
            queries[num++] = (uint32_t)q;
        else
            scan_all(group, q, tile, group->sums + thread * BSW_TILE_ROWS, list);
        if (num < BSW_BOUND_QUERIES) continue;
        scan_bounded(group, queries, num, tile, room, lists);
        num = 0;
    }
    if (num >= bsw_fixed_bound_least(&group->batch->product->book)) {
        scan_bounded(group, queries, num, tile, room, lists);
        return;
    }
    for (size_t i = 0; i < num; i++)
        scan_all(group, queries[i], tile, group->sums + thread * BSW_TILE_ROWS, &lists[queries[i]]);
}

void bsw_scan_tables(const struct bsw_scan_group *group, size_t thread, struct bsw_scan_run run)
{
    struct bound_room room;
    size_t bytes = divide_bound_room(NULL, &room);
    if (has_bounds(group->batch))
        divide_bound_room(group->workspace->bound_threads.data + thread * bytes, &room);
    for (size_t bundle = run.first; bundle < run.last; bundle += run.advance) {
        size_t left = run.last - bundle;
        scan_tile(group, thread, (struct tile){bundle, left < run.step ? left : run.step}, &room);
    }
}
