// SPDX-License-Identifier: Apache-2.0
#include "shard/host/list_tables.h"

#include <omp.h>

#include "common/base/arithmetic.h"
#include "kernels/encode/encode.h"
#include "shard/codecs/selective_table.h"
#include "shard/host/shard_tiles.h"

void bsw_list_table_scratch_deinit(struct bsw_list_table_scratch *scratch)
{
    bsw_buffer_deinit(&scratch->centroids);
    bsw_buffer_deinit(&scratch->list_terms);
    bsw_buffer_deinit(&scratch->queries);
    bsw_buffer_deinit(&scratch->multipliers);
    bsw_buffer_deinit(&scratch->threads);
    bsw_buffer_deinit(&scratch->bounds);
    bsw_buffer_deinit(&scratch->bound_scales);
    bsw_buffer_deinit(&scratch->bound_threads);
    bsw_buffer_deinit(&scratch->row_terms);
    bsw_buffer_deinit(&scratch->term_shards);
    scratch->made_of = NULL;
}

// Terms of so many lists that are kept.
static uint64_t kept_terms(const struct bsw_product_codes *codes, uint64_t num_lists,
                           uint64_t most_bytes)
{
    uint64_t bytes = bsw_product_numbers(&codes->book) * sizeof(float);
    return num_lists <= most_bytes / bytes ? num_lists * bytes : 0;
}

uint64_t bsw_list_table_lists_bytes(const struct bsw_product_codes *codes, uint64_t num_lists)
{
    return num_lists * codes->projected_dims * sizeof(float) +
           kept_terms(codes, num_lists, BSW_LIST_TABLE_BYTES);
}

static size_t table_bytes(const struct bsw_product_codes *codes)
{
    return bsw_align_size(bsw_table_bytes(&codes->book), BSW_ALIGNMENT_BYTES);
}

size_t bsw_query_table_bytes(const struct bsw_query_batch *batch)
{
    return table_bytes(batch->product) +
           (batch->selection ? bsw_selective_hits_bytes(batch->product) : 0);
}

static uint32_t *hits_of(const struct bsw_query_batch *batch, const void *table)
{
    return batch->selection ? (uint32_t *)((uintptr_t)table + table_bytes(batch->product)) : NULL;
}

static const struct bsw_product_codes *codes_of(const struct bsw_list_tables *tables)
{
    return tables->queries->batch->product;
}

static size_t numbers_bytes(const struct bsw_list_tables *tables)
{
    return bsw_product_numbers(&codes_of(tables)->book) * sizeof(float);
}

static size_t divide_room(const struct bsw_list_tables *tables, unsigned char *at,
                          struct bsw_list_table_room *out)
{
    const struct bsw_product_codes *codes = codes_of(tables);
    size_t numbers = numbers_bytes(tables);
    const struct bsw_memory_part parts[] = {
        {&out->room, (codes->projected_dims + codes->dims) * sizeof(float)},
        {&out->query_term, numbers},
        {&out->list_term, numbers},
        {&out->table_room, numbers + codes->book.parts * sizeof(float)},
        {&out->sums, tables->most_rows * sizeof(float)},
        {&out->table, bsw_query_table_bytes(tables->queries->batch)},
        {&out->selective_room,
         tables->queries->batch->selection ? bsw_selective_room_bytes(codes) : 0}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

struct bsw_list_table_room bsw_list_tables_room(const struct bsw_list_tables *tables, size_t thread)
{
    struct bsw_list_table_room room = {0};
    size_t bytes = divide_room(tables, NULL, &room);
    divide_room(tables, tables->scratch->threads.data + thread * bytes, &room);
    return room;
}

const float *bsw_list_tables_query(const struct bsw_list_tables *tables, size_t query)
{
    const struct bsw_query_batch *batch = tables->queries->batch;
    size_t at = tables->queries->first_query + query;
    return (const float *)(const void *)(batch->words + at * batch->query_words);
}

static enum bsw_table_type type_of(const struct bsw_list_tables *tables, size_t query)
{
    return bsw_batch_table(tables->queries->batch, tables->queries->first_query + query);
}

// ---- what is of lists alone ----

static const float *centroid_at(const struct bsw_list_tables *tables, size_t list)
{
    return (const float *)(const void *)tables->scratch->centroids.data +
           list * codes_of(tables)->projected_dims;
}

static float *list_term_at(const struct bsw_list_tables *tables, size_t list)
{
    return (float *)(void *)(tables->scratch->list_terms.data + list * numbers_bytes(tables));
}

static void make_list(const struct bsw_list_tables *tables, size_t list)
{
    const struct bsw_product_codes *codes = codes_of(tables);
    const struct bsw_scan_workspace *workspace = tables->workspace;
    struct bsw_list_table_room room = bsw_list_tables_room(tables, (size_t)omp_get_thread_num());
    bsw_product_project_vector(codes, bsw_encode_table_get(workspace->level),
                               tables->queries->batch->centroids + list * codes->dims, 1.0f,
                               codes->mean, room.room + codes->projected_dims,
                               (float *)(uintptr_t)centroid_at(tables, list));
    if (tables->has_lists)
        bsw_product_list_term(codes, workspace->table_scan, centroid_at(tables, list), room.room,
                              list_term_at(tables, list));
}

// Centroids as tables want them, and their terms if there is room for all.
static enum bsw_status make_lists(struct bsw_list_tables *tables, struct bsw_error *err)
{
    struct bsw_list_table_scratch *scratch = tables->scratch;
    size_t num = tables->shard->order.num_lists, bytes = numbers_bytes(tables);
    tables->has_lists = kept_terms(codes_of(tables), num, bsw_list_table_most(scratch)) > 0;
    if (scratch->made_of == tables->queries->batch->centroids) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&scratch->centroids,
                               num * codes_of(tables)->projected_dims * sizeof(float), err));
    if (tables->has_lists) BSW_TRY(bsw_buffer_reserve(&scratch->list_terms, num * bytes, err));
#pragma omp parallel for schedule(static) num_threads(tables->workspace->num_threads)
    for (size_t l = 0; l < num; l++) make_list(tables, l);
    scratch->made_of = tables->queries->batch->centroids;
    return BSW_OK;
}

void bsw_list_tables_enter(const struct bsw_list_tables *tables, uint32_t list,
                           struct bsw_list_table_room *room)
{
    const struct bsw_product_codes *codes = codes_of(tables);
    room->centroid = NULL;
    room->list_now = codes->norms;
    if (!tables->is_of_lists) return;
    room->centroid = centroid_at(tables, list);
    room->list_now = room->list_term;
    if (tables->has_lists)
        room->list_now = list_term_at(tables, list);
    else
        bsw_product_list_term(codes, tables->workspace->table_scan, room->centroid, room->room,
                              room->list_term);
}

// ---- queries ----

static unsigned char *query_place(const struct bsw_list_tables *tables, size_t query)
{
    return tables->scratch->queries.data + query * tables->query_bytes;
}

static float *multiplier_place(const struct bsw_list_tables *tables, size_t query)
{
    return (float *)(void *)tables->scratch->multipliers.data + query;
}

// Where a query's term is kept, its limits follow.
static float *limits_place(const struct bsw_list_tables *tables, size_t query)
{
    return (float *)(void *)(query_place(tables, query) +
                             bsw_query_table_bytes(tables->queries->batch));
}

const float *bsw_list_tables_limits(const struct bsw_list_tables *tables, size_t query)
{
    int has_limits =
        tables->queries->batch->selection && tables->is_of_lists && tables->has_queries;
    return has_limits ? limits_place(tables, query) : NULL;
}

// The table of a query for the room's list, to `to`.
static float make_table(const struct bsw_list_tables *tables, size_t query, const float *term,
                        const float *limits, const struct bsw_list_table_room *room, void *to)
{
    const struct bsw_product_terms terms = {bsw_list_tables_query(tables, query), term,
                                            room->centroid, room->list_now};
    const struct bsw_query_batch *batch = tables->queries->batch;
    if (batch->selection)
        return bsw_selective_table(batch->selection, &terms, limits, room->selective_room, to,
                                   hits_of(batch, to));
    return bsw_product_table(codes_of(tables), tables->workspace->table_scan,
                             type_of(tables, query), &terms, room->table_room, to);
}

static void make_query(const struct bsw_list_tables *tables, size_t query)
{
    struct bsw_list_table_room room = bsw_list_tables_room(tables, (size_t)omp_get_thread_num());
    unsigned char *to = query_place(tables, query);
    float *term = tables->is_of_lists ? (float *)(void *)to : room.query_term;
    bsw_product_query_term(codes_of(tables), tables->workspace->table_scan,
                           bsw_list_tables_query(tables, query), room.room, term);
    if (tables->is_of_lists) {
        if (tables->queries->batch->selection)
            bsw_selective_limits(tables->queries->batch->selection,
                                 bsw_list_tables_query(tables, query), limits_place(tables, query));
        return;
    }
    bsw_list_tables_enter(tables, 0, &room);
    *multiplier_place(tables, query) = make_table(tables, query, term, NULL, &room, to);
}

static enum bsw_status make_queries(struct bsw_list_tables *tables, struct bsw_error *err)
{
    struct bsw_list_table_scratch *scratch = tables->scratch;
    size_t num = tables->queries->num_queries;
    tables->query_bytes = bsw_query_table_bytes(tables->queries->batch);
    if (tables->is_of_lists && tables->queries->batch->selection)
        tables->query_bytes +=
            bsw_align_size(codes_of(tables)->book.parts * sizeof(float), BSW_ALIGNMENT_BYTES);
    tables->has_queries = num <= bsw_list_table_most(scratch) / tables->query_bytes;
    if (!tables->has_queries) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&scratch->queries, num * tables->query_bytes + 1, err));
    BSW_TRY(bsw_buffer_reserve(&scratch->multipliers, (num + 1) * sizeof(float), err));
#pragma omp parallel for schedule(static) num_threads(tables->workspace->num_threads)
    for (size_t q = 0; q < num; q++) make_query(tables, q);
    return BSW_OK;
}

enum bsw_status bsw_list_tables_open(const struct bsw_resident_shard *shard,
                                     const struct bsw_query_range *queries,
                                     const struct bsw_scan_workspace *workspace, size_t most_rows,
                                     struct bsw_list_table_scratch *scratch,
                                     struct bsw_list_tables *out, struct bsw_error *err)
{
    const struct bsw_query_batch *batch = queries->batch;
    struct bsw_list_table_room room;
    *out = (struct bsw_list_tables){.shard = shard,
                                    .queries = queries,
                                    .workspace = workspace,
                                    .scratch = scratch,
                                    .is_of_lists = bsw_has_row_norms(batch->product->metric) &&
                                                   batch->centroids != NULL,
                                    .most_rows = most_rows};
    BSW_TRY(bsw_buffer_reserve(
        &scratch->threads, (size_t)workspace->num_threads * divide_room(out, NULL, &room), err));
    if (out->is_of_lists) BSW_TRY(make_lists(out, err));
    return make_queries(out, err);
}

// Sums of hits of the rows of some bundles that count.
static uint64_t add_hits(const struct bsw_list_tables *tables, const struct bsw_code_table *table,
                         size_t bundle, size_t num_bundles, float *sums)
{
    const struct bsw_code_arrays *arrays = &tables->shard->arrays;
    size_t words = bsw_segment_bundle_words(&tables->shard->shape.layout.segments[0]);
    uint64_t hits = 0;
    tables->workspace->table_scan->sums(table,
                                        (const uint8_t *)(arrays->planes[0] + bundle * words),
                                        words * sizeof(uint32_t), num_bundles, sums);
    for (size_t r = 0; r < num_bundles * BSW_BUNDLE_ROWS; r++)
        if (arrays->masks[bundle + r / BSW_BUNDLE_ROWS] >> r % BSW_BUNDLE_ROWS & 1)
            hits += (uint64_t)sums[r];
    return hits;
}

void bsw_list_tables_count(const struct bsw_list_tables *tables, uint32_t list, size_t query,
                           struct bsw_list_table_room *room)
{
    const struct bsw_query_batch *batch = tables->queries->batch;
    const uint32_t *first = tables->shard->order.first_bundles + list;
    size_t most = tables->most_rows / BSW_BUNDLE_ROWS;
    uint64_t hits = 0, rows = bsw_list_num_rows(&tables->shard->order, list);
    if (!batch->selection || bsw_hash2(list, query) % BSW_SELECTION_SAMPLE != 0) return;
    const struct bsw_product_terms terms = {bsw_list_tables_query(tables, query), room->query_term,
                                            room->centroid, room->list_now};
    bsw_selective_hit_table(batch->selection, &terms, bsw_list_tables_limits(tables, query),
                            room->table, hits_of(batch, room->table));
    const struct bsw_code_table table = bsw_product_code_table(codes_of(tables), room->table);
    for (size_t b = first[0]; b < first[1]; b += most)
        hits += add_hits(tables, &table, b, first[1] - b < most ? first[1] - b : most, room->sums);
    __atomic_fetch_add(&batch->selection->work.num_lookups, rows * codes_of(tables)->book.parts,
                       __ATOMIC_RELAXED);
    __atomic_fetch_add(&batch->selection->work.num_hits, hits, __ATOMIC_RELAXED);
}

void bsw_list_tables_take(const struct bsw_list_tables *tables, size_t query,
                          struct bsw_list_table_room *room)
{
    const float *term = room->query_term;
    const void *numbers = room->table;
    if (tables->has_queries && !tables->is_of_lists) {
        numbers = query_place(tables, query);
        room->multiplier = *multiplier_place(tables, query);
    } else {
        if (tables->has_queries)
            term = (const float *)(const void *)query_place(tables, query);
        else
            bsw_product_query_term(codes_of(tables), tables->workspace->table_scan,
                                   bsw_list_tables_query(tables, query), room->room,
                                   room->query_term);
        room->multiplier = make_table(tables, query, term, bsw_list_tables_limits(tables, query),
                                      room, room->table);
    }
    room->now = bsw_product_code_table(codes_of(tables), numbers);
    room->hits = hits_of(tables->queries->batch, numbers);
}

// Candidates, by places, that are to be ranked (bsw_selective_keep); returns how many.
static size_t keep_hits(const struct bsw_resident_shard *shard, const struct bsw_query_batch *batch,
                        const uint32_t *hits, uint64_t *items, size_t count)
{
    size_t words = bsw_segment_bundle_words(&shard->shape.layout.segments[0]);
    return bsw_selective_keep(batch->product, hits, (const uint8_t *)shard->arrays.planes[0],
                              words * sizeof(uint32_t), items, count);
}

size_t bsw_list_tables_find(const struct bsw_list_tables *tables,
                            const struct bsw_list_table_room *room, size_t bundle,
                            size_t num_bundles, float addition, uint32_t limit, uint64_t *items)
{
    const struct bsw_query_batch *batch = tables->queries->batch;
    size_t count =
        bsw_tile_find(tables->shard, tables->workspace->table_scan, &room->now, room->multiplier,
                      addition, bundle, num_bundles, limit, room->sums, items);
    return batch->selection ? keep_hits(tables->shard, batch, room->hits, items, count) : count;
}
