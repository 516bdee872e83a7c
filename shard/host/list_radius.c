// SPDX-License-Identifier: Apache-2.0
#include "shard/host/list_radius.h"

#include <math.h>

#include "common/codes/metric.h"
#include "kernels/select/key_shift.h"
#include "shard/host/list_bounds.h"

static const struct bsw_query_batch *batch_of(const struct bsw_list_radius *radius)
{
    return radius->tables->queries->batch;
}

static const struct bsw_product_codes *codes_of(const struct bsw_list_radius *radius)
{
    return batch_of(radius)->product;
}

static enum bsw_selection_mode mode_of(const struct bsw_list_radius *radius)
{
    return batch_of(radius)->selection->settings.mode;
}

// ---- memory ----

static size_t divide_room(const struct bsw_list_radius *radius, unsigned char *at,
                          struct bsw_list_radius_room *out)
{
    const struct bsw_product_codes *codes = codes_of(radius);
    size_t parts = codes->book.parts, rays = parts * BSW_ENTRY_BOUND_QUERIES * sizeof(float),
           rows = BSW_RADIUS_BUNDLES * BSW_BUNDLE_ROWS;
    const struct bsw_memory_part all[] = {
        {&out->x, rays},
        {&out->y, rays},
        {&out->limit, rays},
        {&out->inner, rays},
        {&out->inverse, BSW_ENTRY_BOUND_QUERIES * sizeof(float)},
        {&out->query, 2 * parts * sizeof(float)},
        {&out->bases, parts * sizeof(float)},
        {&out->sums, rows * sizeof(float)},
        {&out->masks, BSW_ENTRY_BOUND_QUERIES * BSW_RADIUS_BUNDLES * sizeof(uint32_t)},
        {&out->places, rows * sizeof(uint32_t)},
        {&out->scratch, bsw_entry_bound_room_bytes(BSW_RADIUS_BUNDLES)}};
    return bsw_divide_memory(all, sizeof all / sizeof all[0], at);
}

struct bsw_list_radius_room bsw_list_radius_room(const struct bsw_list_radius *radius,
                                                 size_t thread)
{
    struct bsw_list_radius_room room = {0};
    size_t bytes = divide_room(radius, NULL, &room);
    divide_room(radius, radius->tables->scratch->bound_threads.data + thread * bytes, &room);
    return room;
}

enum bsw_status bsw_list_radius_open(const struct bsw_list_tables *tables,
                                     struct bsw_list_radius *out, struct bsw_error *err)
{
    const struct bsw_selection *selection = tables->queries->batch->selection;
    const struct bsw_product_book *book = &tables->queries->batch->product->book;
    struct bsw_list_radius_room room;
    *out = (struct bsw_list_radius){.tables = tables,
                                    .kernels = bsw_entry_bounds_table_get(tables->workspace->level),
                                    .entries = bsw_bound_entries(book)};
    // A level without a kernel of its own is faster by tables.
    if (out->kernels == &bsw_entry_bounds_reference &&
        tables->workspace->level != BSW_CPU_REFERENCE)
        return BSW_OK;
    // Bytes know the bound of a miss, which a mean lies far above: most rows would pass.
    if (selection->settings.is_miss_mean) return BSW_OK;
    if (!selection->tables || !tables->is_of_lists || !tables->has_queries || book->bits != 8 ||
        book->parts > BSW_ENTRY_BOUND_MOST || isinf(selection->settings.scale) ||
        !(out->entries < 1e24))
        return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(
        &tables->scratch->bound_threads,
        (size_t)tables->workspace->num_threads * divide_room(out, NULL, &room), err));
    out->is_on = 1;
    return BSW_OK;
}

// ---- rays ----

// Sums over parts of a query and list, and what may go wrong with numbers.
struct ray_sums {
    double base, query_square, centroid_square;
    float most_limit;
};

static struct ray_sums put_rays(const struct bsw_list_radius *radius, const float *centroid,
                                size_t query, size_t place, struct bsw_list_radius_room *room)
{
    const float *q = bsw_list_tables_query(radius->tables, query),
                *limits = bsw_list_tables_limits(radius->tables, query);
    const struct bsw_entry_map *map = batch_of(radius)->selection->map;
    struct ray_sums sums = {0, 0, 0, 0.0f};
    for (uint32_t p = 0; p < codes_of(radius)->book.parts; p++, q += 2, centroid += 2) {
        size_t at = (size_t)p * BSW_ENTRY_BOUND_QUERIES + place;
        float x = q[0] - centroid[0], y = q[1] - centroid[1],
              limit = map ? map->limits[bsw_entry_map_at(map, p, x, y)] : limits[p];
        room->x[at] = x;
        room->y[at] = y;
        room->limit[at] = limit;
        room->inner[at] = limit * 0.25f;
        sums.base += (double)x * (double)x + (double)y * (double)y;
        sums.query_square += (double)q[0] * (double)q[0] + (double)q[1] * (double)q[1];
        sums.centroid_square +=
            (double)centroid[0] * (double)centroid[0] + (double)centroid[1] * (double)centroid[1];
        sums.most_limit = limit > sums.most_limit ? limit : sums.most_limit;
    }
    return sums;
}

static uint16_t to_end(double sum)
{
    return (uint16_t)(sum < 65535 ? sum : 65535);
}

// Mode H: the largest sum of bytes that is looked at; returns whether there is one.
static int sum_end(const struct bsw_list_radius *radius, const struct ray_sums *sums,
                   uint32_t limit, float *inverse, uint16_t *end)
{
    double wanted = -(double)bsw_score_to_float(limit);
    *end = 0;
    float unit = bsw_bound_unit(sums->most_limit, inverse);
    if (!(wanted >= 0)) return 0; // no sum is as small
    double most =
        bsw_entry_bound_most(codes_of(radius)->book.parts, wanted, sums->base, radius->entries,
                             sqrt(sums->query_square) + sqrt(sums->centroid_square));
    *end =
        unit > 0 && most < 65535 * (double)unit ? to_end(most / (double)unit * (1 + 1e-12)) : 65535;
    return 1;
}

// Modes M and L: the least sum of bytes whose key reaches the limit; returns whether there is one.
static int count_end(const struct bsw_list_radius *radius, uint32_t limit, uint16_t *end)
{
    uint32_t parts = codes_of(radius)->book.parts;
    int is_ring = mode_of(radius) == BSW_SELECTION_M;
    double least = 1; // a row without a hit is not ranked
    if (limit > BSW_SCORE_OF_MINUS_INFINITY)
        least = ceil((double)bsw_score_to_float(limit)) + (is_ring ? parts : 0);
    *end = to_end(least > 1 ? least : 1);
    return least <= (is_ring ? 2 : 1) * (double)parts;
}

void bsw_list_radius_pass(const struct bsw_list_radius *radius,
                          const struct bsw_list_table_room *table_room,
                          const struct bsw_bound_group *group, size_t bundle, size_t num_bundles,
                          int is_counted, struct bsw_list_radius_room *room)
{
    const struct bsw_resident_shard *shard = radius->tables->shard;
    const struct bsw_product_codes *codes = codes_of(radius);
    struct bsw_selection *selection = batch_of(radius)->selection;
    size_t words = bsw_segment_bundle_words(&shard->shape.layout.segments[0]);
    uint32_t within[BSW_ENTRY_BOUND_QUERIES] = {0};
    uint64_t all_within = 0;
    struct bsw_entry_bound_rays rays = {room->x,       room->y, room->limit, room->inner,
                                        room->inverse, 0,       {0}};
    const struct bsw_entry_bound_rows rows = {
        codes->book.parts,
        codes->entries,
        (const uint8_t *)(shard->arrays.planes[0] + bundle * words),
        words * sizeof(uint32_t),
        num_bundles,
        shard->arrays.masks + bundle};
    for (size_t i = 0; i < BSW_ENTRY_BOUND_QUERIES; i++) {
        size_t from = i < group->num ? i : 0;
        struct ray_sums sums =
            put_rays(radius, table_room->centroid, group->queries[from], i, room);
        int is_wanted =
            mode_of(radius) == BSW_SELECTION_H
                ? sum_end(radius, &sums, group->limits[from], &room->inverse[i], &rays.ends[i])
                : count_end(radius, group->limits[from], &rays.ends[i]);
        rays.wanted |= (uint32_t)(is_wanted && i < group->num) << i;
    }
    radius->kernels->pass[mode_of(radius)](&rows, &rays, room->scratch, room->masks, within);
    for (size_t i = 0; i < group->num; i++) all_within += within[i];
    if (is_counted)
        bsw_selection_count(selection, group->num * bsw_product_numbers(&codes->book),
                            group->num * bsw_product_numbers(&codes->book), all_within);
}

// ---- rows that passed ----

// Mode H: the sums of `count` places of the tile.
static void find_sums(const struct bsw_list_radius *radius,
                      const struct bsw_list_table_room *table_room, size_t query, size_t i,
                      const struct bsw_radius_tile *tile, size_t count,
                      struct bsw_list_radius_room *room)
{
    const struct bsw_product_codes *codes = codes_of(radius);
    const struct bsw_resident_shard *shard = radius->tables->shard;
    uint32_t parts = codes->book.parts;
    size_t words = bsw_segment_bundle_words(&shard->shape.layout.segments[0]);
    const float *q = bsw_list_tables_query(radius->tables, query);
    for (uint32_t p = 0; p < parts; p++) {
        float x = room->x[(size_t)p * BSW_ENTRY_BOUND_QUERIES + i],
              y = room->y[(size_t)p * BSW_ENTRY_BOUND_QUERIES + i];
        room->query[2 * p] = -2.0f * q[2 * p];
        room->query[2 * p + 1] = -2.0f * q[2 * p + 1];
        room->bases[p] = fmaf(y, y, fmaf(x, x, 0.0f));
    }
    const struct bsw_entry_bound_terms terms = {
        .parts = parts,
        .points = codes->entries,
        .list = table_room->list_now,
        .query = room->query,
        .bases = room->bases,
        .x = room->x + i,
        .y = room->y + i,
        .limit = room->limit + i,
        .stride = BSW_ENTRY_BOUND_QUERIES,
        .is_miss_infinite = batch_of(radius)->selection->settings.is_miss_infinite};
    radius->kernels->sums(&terms, (const uint8_t *)(shard->arrays.planes[0] + tile->bundle * words),
                          words * sizeof(uint32_t), room->places, count, room->sums);
}

size_t bsw_list_radius_find(const struct bsw_list_radius *radius,
                            const struct bsw_list_table_room *table_room,
                            const struct bsw_bound_group *group, size_t i,
                            const struct bsw_radius_tile *tile, struct bsw_list_radius_room *room,
                            uint64_t *items)
{
    const struct bsw_passed_rows rows = {.num_bundles = tile->num_bundles,
                                         .masks = room->masks + i * tile->pass_bundles + tile->at};
    size_t found = 0, count = bsw_passed_places(&rows, room->places);
    const uint16_t *bytes =
        (const uint16_t *)room->scratch + tile->at * BSW_BUNDLE_ROWS * BSW_ENTRY_BOUND_QUERIES + i;
    int is_sum = mode_of(radius) == BSW_SELECTION_H;
    uint32_t less = mode_of(radius) == BSW_SELECTION_M ? codes_of(radius)->book.parts : 0;
    if (count == 0) return 0;
    if (is_sum) find_sums(radius, table_room, group->queries[i], i, tile, count, room);
    for (size_t r = 0; r < count; r++) {
        uint32_t place = room->places[r];
        float sum = is_sum
                        ? room->sums[r]
                        : (float)((int32_t)bytes[place * BSW_ENTRY_BOUND_QUERIES] - (int32_t)less);
        float key =
            ((sum * (is_sum ? -1.0f : 1.0f) + 0.0f) + 0.0f) + 0.0f; // as table_scan's filter
        uint32_t score = bsw_score_from_float(key);
        items[found] =
            bsw_candidate_pack(score, (uint32_t)(tile->bundle * BSW_BUNDLE_ROWS) + place);
        found += score >= group->limits[i] && score > BSW_SCORE_OF_MINUS_INFINITY;
    }
    return found;
}
