// SPDX-License-Identifier: Apache-2.0
#include "shard/host/list_bounds.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/codes/metric.h"
#include "shard/codecs/product_codes.h"
#include "shard/host/shard_tiles.h"

// Vectors longer than this have tables: squares of bounds' numbers stay far from overflow.
#define MOST_LENGTH   1e12

#define MOST_PREFETCH 1024 // bytes of a query's table; hardware finds the rest of longer ones

// The scale of one query: of terms of distances, or of its table.
struct scale {
    struct bsw_bound_scale numbers;
    double length; // of q'
    struct bsw_fixed_bound fixed;
};

static const struct bsw_product_codes *codes_of(const struct bsw_list_bounds *bounds)
{
    return bounds->tables->queries->batch->product;
}

static double length_of(const struct bsw_product_codes *codes, const float *vector)
{
    double sum = 0;
    for (uint32_t d = 0; d < codes->projected_dims; d++)
        sum += (double)vector[d] * (double)vector[d];
    return sqrt(sum);
}

// ---- memory ----

static size_t divide_room(const struct bsw_list_bounds *bounds, unsigned char *at,
                          struct bsw_list_bound_room *out)
{
    const struct bsw_product_codes *codes = codes_of(bounds);
    size_t tile = bounds->tile_bundles, rows = tile * BSW_BUNDLE_ROWS;
    const struct bsw_memory_part parts[] = {
        {&out->run_terms, BSW_BOUND_RUN_BUNDLES * BSW_BUNDLE_ROWS * sizeof(float)},
        {&out->query, codes->projected_dims * sizeof(float)},
        {&out->bases, codes->book.parts * sizeof(float)},
        {&out->passed.sums, rows * sizeof(float)},
        {&out->masks, BSW_BOUND_QUERIES * tile * sizeof(uint32_t)},
        {&out->passed.places, rows * sizeof(uint32_t)},
        {&out->scratch, bsw_bound_room_bytes(tile)}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

struct bsw_list_bound_room bsw_list_bounds_room(const struct bsw_list_bounds *bounds, size_t thread)
{
    struct bsw_list_bound_room room = {0};
    if (bounds->radius.is_on) {
        room.radius = bsw_list_radius_room(&bounds->radius, thread);
        return room;
    }
    size_t bytes = divide_room(bounds, NULL, &room);
    divide_room(bounds, bounds->tables->scratch->bound_threads.data + thread * bytes, &room);
    return room;
}

// ---- terms of rows ----

static const uint8_t *codes_at(const struct bsw_list_bounds *bounds, size_t bundle,
                               size_t *bundle_bytes)
{
    const struct bsw_resident_shard *shard = bounds->tables->shard;
    size_t words = bsw_segment_bundle_words(&shard->shape.layout.segments[0]);
    *bundle_bytes = words * sizeof(uint32_t);
    return (const uint8_t *)(shard->arrays.planes[0] + bundle * words);
}

static void make_terms(const struct bsw_list_bounds *bounds,
                       const struct bsw_list_table_room *table_room, size_t bundle,
                       size_t num_bundles, float *terms)
{
    const struct bsw_product_codes *codes = codes_of(bounds);
    size_t bundle_bytes;
    const uint8_t *at = codes_at(bounds, bundle, &bundle_bytes);
    const struct bsw_code_table table = {
        .parts = codes->book.parts, .bits = codes->book.bits, .numbers = table_room->list_now};
    bounds->tables->workspace->table_scan->sums(&table, at, bundle_bytes, num_bundles, terms);
}

// A shard whose terms are kept, from `first` on.
struct term_shard {
    const uint32_t *rows;
    size_t first;
};

static const float *find_terms(const struct bsw_list_bounds *bounds)
{
    const struct bsw_list_table_scratch *scratch = bounds->tables->scratch;
    const struct term_shard *shards =
        (const struct term_shard *)(const void *)scratch->term_shards.data;
    for (size_t i = 0; i < scratch->term_shards.bytes / sizeof *shards; i++)
        if (shards[i].rows == bounds->tables->shard->order.rows)
            return (const float *)(const void *)scratch->row_terms.data + shards[i].first;
    return NULL;
}

// Terms of the shard's rows, if there is room for them.
static enum bsw_status keep_terms(struct bsw_list_bounds *bounds, struct bsw_error *err)
{
    const struct bsw_list_tables *tables = bounds->tables;
    const struct bsw_list_order *order = &tables->shard->order;
    struct bsw_list_table_scratch *scratch = tables->scratch;
    size_t begin = scratch->row_terms.bytes,
           places = (size_t)order->first_bundles[order->num_lists] * BSW_BUNDLE_ROWS,
           end = (size_t)bsw_list_table_rows_add(begin, places, bsw_list_table_most(scratch));
    struct term_shard shard = {order->rows, begin / sizeof(float)};
    bounds->terms = find_terms(bounds);
    if (bounds->terms || end == begin) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&scratch->row_terms, end, err));
    BSW_TRY(
        bsw_buffer_reserve(&scratch->term_shards, scratch->term_shards.bytes + sizeof shard, err));
    float *terms = (float *)(void *)(scratch->row_terms.data + begin);
#pragma omp parallel for schedule(dynamic, 16) num_threads(tables->workspace->num_threads)
    for (uint32_t l = 0; l < order->num_lists; l++) {
        struct bsw_list_table_room room =
            bsw_list_tables_room(tables, (size_t)omp_get_thread_num());
        size_t first = order->first_bundles[l], last = order->first_bundles[l + 1];
        bsw_list_tables_enter(tables, l, &room);
        make_terms(bounds, &room, first, last - first, terms + first * BSW_BUNDLE_ROWS);
    }
    memcpy(scratch->term_shards.data + scratch->term_shards.bytes, &shard, sizeof shard);
    scratch->term_shards.bytes += sizeof shard;
    scratch->row_terms.bytes = end;
    bounds->terms = terms;
    return BSW_OK;
}

// ---- queries ----

static uint8_t *numbers_at(const struct bsw_list_bounds *bounds, size_t query)
{
    return bounds->tables->scratch->bounds.data + query * bounds->query_bytes;
}

static struct scale *scale_at(const struct bsw_list_bounds *bounds, size_t query)
{
    return (struct scale *)(void *)bounds->tables->scratch->bound_scales.data + query;
}

static void make_query(const struct bsw_list_bounds *bounds, size_t query)
{
    const struct bsw_list_tables *tables = bounds->tables;
    const struct bsw_product_codes *codes = codes_of(bounds);
    struct bsw_list_table_room room = bsw_list_tables_room(tables, (size_t)omp_get_thread_num());
    const float *vector = bsw_list_tables_query(tables, query);
    struct scale *scale = scale_at(bounds, query);
    if (!tables->is_of_lists) {
        bsw_list_tables_take(tables, query, &room);
        scale->fixed =
            bsw_fixed_bound_make(&codes->book, bounds->kernels, &room.now, room.multiplier,
                                 room.table_room, numbers_at(bounds, query));
        return;
    }
    scale->length = length_of(codes, vector);
    bsw_product_query_term(codes, tables->workspace->table_scan, vector, room.room,
                           room.query_term);
    scale->numbers =
        bounds->kernels->narrow(&codes->book, room.query_term, numbers_at(bounds, query));
}

// Queries with tables for all lists that are kept, or vectors of which no number can be too large.
static int have_bounds(const struct bsw_list_bounds *bounds)
{
    const struct bsw_list_tables *tables = bounds->tables;
    const struct bsw_query_range *queries = tables->queries;
    if (!tables->is_of_lists) return tables->has_queries;
    for (size_t q = 0; q < queries->num_queries; q++)
        if (!(length_of(queries->batch->product, bsw_list_tables_query(tables, q)) < MOST_LENGTH))
            return 0;
    return bounds->entries < MOST_LENGTH * MOST_LENGTH;
}

enum bsw_status bsw_list_bounds_open(const struct bsw_list_tables *tables, size_t tile_bundles,
                                     struct bsw_list_bounds *out, struct bsw_error *err)
{
    const struct bsw_query_range *queries = tables->queries;
    const struct bsw_product_codes *codes = queries->batch->product;
    struct bsw_list_table_scratch *scratch = tables->scratch;
    size_t num = queries->num_queries, bytes = bsw_bound_bytes(&codes->book);
    struct bsw_list_bound_room room;
    *out = (struct bsw_list_bounds){.tables = tables,
                                    .kernels = bsw_table_bounds_table_get(tables->workspace->level),
                                    .query_bytes = bsw_align_size(bytes, BSW_ALIGNMENT_BYTES),
                                    .tile_bundles = tile_bundles,
                                    .pass_bundles = tile_bundles,
                                    .entries = bsw_bound_entries(&codes->book)};
    if (tables->queries->batch->selection) {
        BSW_TRY(bsw_list_radius_open(tables, &out->radius, err));
        out->is_on = out->radius.is_on;
        out->pass_bundles = BSW_RADIUS_BUNDLES / tile_bundles * tile_bundles;
        return BSW_OK;
    }
    if (codes->book.parts > BSW_BOUND_MAX_PARTS || num < bsw_list_bounds_least(out) ||
        num > bsw_list_table_most(scratch) / out->query_bytes || !have_bounds(out))
        return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&scratch->bounds, num * out->query_bytes + 1, err));
    BSW_TRY(bsw_buffer_reserve(&scratch->bound_scales, (num + 1) * sizeof(struct scale), err));
    BSW_TRY(bsw_buffer_reserve(
        &scratch->bound_threads,
        (size_t)tables->workspace->num_threads * divide_room(out, NULL, &room), err));
#pragma omp parallel for schedule(static) num_threads(tables->workspace->num_threads)
    for (size_t q = 0; q < num; q++) make_query(out, q);
    out->is_on = 1;
    return tables->is_of_lists ? keep_terms(out, err) : BSW_OK;
}

// ---- a list ----

int bsw_list_bounds_hold(const struct bsw_list_bounds *bounds,
                         const struct bsw_list_table_room *table_room)
{
    return !bounds->tables->is_of_lists ||
           length_of(codes_of(bounds), table_room->centroid) < MOST_LENGTH;
}

size_t bsw_list_bounds_least(const struct bsw_list_bounds *bounds)
{
    const struct bsw_query_batch *batch = bounds->tables->queries->batch;
    // Else a query needs a table for the list.
    if (bounds->tables->is_of_lists && batch->table == BSW_TABLE_FLOAT32) return 1;
    return bsw_fixed_bound_least(&codes_of(bounds)->book);
}

void bsw_list_bounds_enter(const struct bsw_list_bounds *bounds,
                           const struct bsw_list_table_room *table_room, size_t bundle,
                           size_t num_bundles, struct bsw_list_bound_room *room)
{
    room->first_bundle = bundle;
    if (bounds->radius.is_on || !bounds->tables->is_of_lists) return;
    room->length = length_of(codes_of(bounds), table_room->centroid);
    room->terms = bounds->terms ? bounds->terms + bundle * BSW_BUNDLE_ROWS : room->run_terms;
    if (!bounds->terms) make_terms(bounds, table_room, bundle, num_bundles, room->run_terms);
}

void bsw_list_bounds_prefetch(const struct bsw_list_bounds *bounds, uint32_t query)
{
    if (bounds->radius.is_on) return;
    const char *vector = (const char *)bsw_list_tables_query(bounds->tables, query);
    const uint8_t *numbers = numbers_at(bounds, query);
    size_t bytes = codes_of(bounds)->projected_dims * sizeof(float),
           most = bounds->query_bytes < MOST_PREFETCH ? bounds->query_bytes : MOST_PREFETCH;
    for (size_t i = 0; i < bytes; i += BSW_ALIGNMENT_BYTES) __builtin_prefetch(vector + i);
    for (size_t i = 0; i < most; i += BSW_ALIGNMENT_BYTES) __builtin_prefetch(numbers + i);
    __builtin_prefetch(scale_at(bounds, query));
}

static enum bsw_table_type type_of(const struct bsw_list_bounds *bounds, size_t query)
{
    const struct bsw_query_range *queries = bounds->tables->queries;
    return bsw_batch_table(queries->batch, queries->first_query + query);
}

static struct bsw_bound_query bound_of(const struct bsw_list_bounds *bounds,
                                       const struct bsw_list_table_room *table_room,
                                       const struct bsw_list_bound_room *room, size_t query,
                                       float addition, uint32_t limit)
{
    const struct bsw_product_book *book = &codes_of(bounds)->book;
    const struct scale *scale = scale_at(bounds, query);
    if (!bounds->tables->is_of_lists)
        return bsw_fixed_bound_query(&scale->fixed, book->parts, numbers_at(bounds, query),
                                     addition, limit);
    struct bsw_bound_query out = {numbers_at(bounds, query), scale->numbers.unit, 0.0f};
    double wanted = -(double)bsw_score_to_float(limit), lengths = scale->length + room->length;
    if (!(wanted >= 0)) { // no sum is as small
        out.most = -INFINITY;
        return out;
    }
    double base =
        (double)bounds->kernels->gap(bsw_list_tables_query(bounds->tables, query),
                                     table_room->centroid, codes_of(bounds)->projected_dims);
    wanted = bsw_bound_type_limit(type_of(bounds, query), book->parts, wanted,
                                  bsw_bound_size(book, base, bounds->entries, lengths));
    out.most = bsw_bound_most(book, wanted, scale->numbers.least, base, bounds->entries, lengths);
    return out;
}

void bsw_list_bounds_pass(const struct bsw_list_bounds *bounds,
                          const struct bsw_list_table_room *table_room,
                          const struct bsw_bound_group *group, size_t bundle, size_t num_bundles,
                          struct bsw_list_bound_room *room)
{
    const struct bsw_product_book *book = &codes_of(bounds)->book;
    struct bsw_bound_query queries[BSW_BOUND_QUERIES];
    room->pass_bundle = bundle;
    room->pass_bundles = num_bundles;
    if (bounds->radius.is_on) {
        const uint32_t *first = bounds->tables->shard->order.first_bundles;
        int is_first = bundle == first[bsw_list_of_place(&bounds->tables->shard->order,
                                                         (uint32_t)(bundle * BSW_BUNDLE_ROWS))];
        bsw_list_radius_pass(&bounds->radius, table_room, group, bundle, num_bundles, is_first,
                             &room->radius);
        return;
    }
    struct bsw_bound_rows rows = {.parts = book->parts,
                                  .bits = book->bits,
                                  .num_bundles = num_bundles,
                                  .terms = bsw_fixed_bound_terms(),
                                  .masks = bounds->tables->shard->arrays.masks + bundle};
    if (bounds->tables->is_of_lists)
        rows.terms = room->terms + (bundle - room->first_bundle) * BSW_BUNDLE_ROWS;
    rows.codes = codes_at(bounds, bundle, &rows.bundle_bytes);
    for (size_t i = 0; i < group->num; i++)
        queries[i] = bound_of(bounds, table_room, room, group->queries[i], group->additions[i],
                              group->limits[i]);
    bounds->kernels->pass(&rows, queries, group->num, room->scratch, room->masks);
}

// Sums of rows that passed, without a table: l2 with residuals, float32.
static void sum_plainly(const struct bsw_list_bounds *bounds,
                        const struct bsw_list_table_room *table_room, uint32_t query,
                        const struct bsw_passed_rows *rows, size_t count,
                        const struct bsw_list_bound_room *room)
{
    const struct bsw_product_codes *codes = codes_of(bounds);
    const float *vector = bsw_list_tables_query(bounds->tables, query);
    for (uint32_t d = 0; d < codes->projected_dims; d++) room->query[d] = -2.0f * vector[d];
    bounds->kernels->bases(&codes->book, vector, table_room->centroid, room->bases);
    const struct bsw_bound_terms terms = {&codes->book, table_room->list_now, room->query,
                                          room->bases};
    bounds->kernels->sums(&terms, rows->codes, rows->bundle_bytes, room->passed.places, count,
                          room->passed.sums);
}

size_t bsw_list_bounds_find(const struct bsw_list_bounds *bounds,
                            struct bsw_list_table_room *table_room,
                            const struct bsw_bound_group *group, size_t i, size_t bundle,
                            size_t num_bundles, struct bsw_list_bound_room *room, uint64_t *items)
{
    if (bounds->radius.is_on) {
        const struct bsw_radius_tile tile = {room->pass_bundles, bundle - room->pass_bundle,
                                             num_bundles, bundle};
        return bsw_list_radius_find(&bounds->radius, table_room, group, i, &tile, &room->radius,
                                    items);
    }
    struct bsw_passed_rows rows = {.num_bundles = num_bundles,
                                   .masks = room->masks + i * room->pass_bundles + bundle -
                                            room->pass_bundle,
                                   .first_row = (uint32_t)(bundle * BSW_BUNDLE_ROWS)};
    rows.codes = codes_at(bounds, bundle, &rows.bundle_bytes);
    size_t count = bsw_passed_places(&rows, room->passed.places);
    uint32_t query = group->queries[i];
    if (count == 0) return 0;
    if (bounds->tables->is_of_lists && type_of(bounds, query) == BSW_TABLE_FLOAT32) {
        sum_plainly(bounds, table_room, query, &rows, count, room);
        return bsw_passed_keys(&rows, &room->passed, count, -1.0f, 0.0f, group->limits[i], items);
    }
    bsw_list_tables_take(bounds->tables, query, table_room);
    bounds->tables->workspace->table_scan->sums_at(&table_room->now, rows.codes, rows.bundle_bytes,
                                                   room->passed.places, count, room->passed.sums);
    return bsw_passed_keys(&rows, &room->passed, count, table_room->multiplier, group->additions[i],
                           group->limits[i], items);
}
