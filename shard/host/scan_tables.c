// SPDX-License-Identifier: Apache-2.0
// A batch of queries over tiles of product codes: each query's table, made once for all tiles.
#include <omp.h>

#include "kernels/table_scan/table_scan.h"
#include "shard/codecs/selective_table.h"
#include "shard/host/scan_group.h"
#include "shard/host/shard_tiles.h"

// Of one thread that makes tables.
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
    return bsw_align_size(bsw_table_bytes(&codes->book, BSW_TABLE_FLOAT32), BSW_ALIGNMENT_BYTES);
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
    return BSW_OK;
}

void bsw_scan_tables_make(const struct bsw_scan_group *group)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    const struct bsw_query_batch *batch = group->batch;
    const struct bsw_product_codes *codes = batch->product;
    float *multipliers = (float *)(void *)workspace->multipliers.data;
#pragma omp parallel for schedule(static) num_threads(workspace->num_threads)
    for (size_t q = 0; q < group->num_queries; q++) {
        struct maker maker;
        size_t in_batch = group->first_query + q, bytes = divide_maker(batch, NULL, &maker);
        divide_maker(batch, workspace->makers.data + (size_t)omp_get_thread_num() * bytes, &maker);
        void *table = workspace->tables.data + q * bsw_group_table_bytes(batch);
        const float *query =
            (const float *)(const void *)(batch->words + in_batch * batch->query_words);
        const struct bsw_product_terms terms = {query, maker.query_term, NULL, codes->norms};
        bsw_product_query_term(codes, workspace->table_scan, query, maker.room, maker.query_term);
        multipliers[q] =
            batch->selection
                ? bsw_selective_table(batch->selection, &terms, maker.selective_room, table,
                                      bsw_group_table_hits(batch, table))
                : bsw_product_table(codes, workspace->table_scan, bsw_batch_table(batch, in_batch),
                                    &terms, maker.table_room, table);
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

static void scan_tile(const struct bsw_scan_group *group, size_t q, size_t bundle, size_t count,
                      float *sums, struct bsw_running_best *list)
{
    const struct bsw_scan_workspace *workspace = group->workspace;
    const struct bsw_query_batch *batch = group->batch;
    size_t in_batch = group->first_query + q;
    const void *numbers = workspace->tables.data + q * bsw_group_table_bytes(batch);
    const struct bsw_code_table table =
        bsw_product_code_table(batch->product, bsw_batch_table(batch, in_batch), numbers);
    float multiplier = ((const float *)(const void *)workspace->multipliers.data)[q];
    float addition = batch->additions ? batch->additions[in_batch].number : 0.0f;
    uint64_t *items = list->items + list->count;
    size_t found = bsw_tile_find(group->shard, workspace->table_scan, &table, multiplier, addition,
                                 bundle, count, list->limit, sums, items);
    if (batch->selection)
        found = bsw_shard_keep_hits(group->shard, batch, bsw_group_table_hits(batch, numbers),
                                    items, found);
    list->count += found;
}

void bsw_scan_tables(const struct bsw_scan_group *group, size_t thread, struct bsw_scan_run run)
{
    struct bsw_running_best *lists = group->lists + thread * group->num_queries;
    uint64_t *scratch = group->scratch + thread * 4 * group->capacity;
    float *sums = group->sums + thread * BSW_TILE_ROWS;
    for (size_t bundle = run.first; bundle < run.last; bundle += run.advance) {
        size_t count = run.last - bundle < run.step ? run.last - bundle : run.step;
        for (size_t q = 0; q < group->num_queries; q++) {
            struct bsw_running_best *list = &lists[q];
            if (list->count + count * BSW_BUNDLE_ROWS > group->capacity)
                bsw_running_best_cut(list, group->workspace->select, scratch);
            if (!list->is_full) scan_tile(group, q, bundle, count, sums, list);
        }
    }
}
