// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/selective_table.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "common/codes/metric.h"
#include "kernels/entries_within/entry_value.h"
#include "kernels/select/key_shift.h"

static float limit_of(float radius, float scale)
{
    float scaled = radius * scale;
    return isinf(scale) ? INFINITY : scaled * scaled;
}

static enum bsw_status make_map_reach(const struct bsw_entry_map *map, float **out,
                                      struct bsw_error *err)
{
    BSW_TRY(bsw_allocate_zero(out, map->parts, sizeof **out, "reach of rays", err));
    for (size_t i = 0; i < map->parts * BSW_ENTRY_MAP; i++)
        (*out)[i / BSW_ENTRY_MAP] = fmaxf((*out)[i / BSW_ENTRY_MAP], map->limits[i]);
    return BSW_OK;
}

// The largest limit of each part's rays, so that back ends that trace have no larger spheres; none
// for an infinite scale, where they do not trace.
static enum bsw_status make_reach(const struct bsw_selection_settings *settings,
                                  const struct bsw_product_codes *codes,
                                  const struct bsw_entry_map *map, float **out,
                                  struct bsw_error *err)
{
    const struct bsw_product_radii *radii = codes->radii;
    if (isinf(settings->scale)) return BSW_OK;
    if (map) return make_map_reach(map, out, err);
    BSW_TRY(bsw_allocate(out, codes->book.parts, sizeof **out, "reach of rays", err));
    for (uint32_t p = 0; p < codes->book.parts; p++) {
        float most = radii->ends[2 * p + (settings->radii == BSW_RADII_LARGE)];
        for (size_t cell = 0; settings->radii == BSW_RADII_DYNAMIC && cell < BSW_RADII_MAP; cell++)
            most = fmaxf(most, radii->radii[p * BSW_RADII_MAP + cell]);
        (*out)[p] = limit_of(most, settings->scale);
    }
    return BSW_OK;
}

enum bsw_status bsw_selection_open(const struct bsw_selection_settings *settings,
                                   const struct bsw_product_codes *codes, enum bsw_cpu_level level,
                                   struct bsw_selection *out, struct bsw_error *err)
{
    float *reach = NULL;
    const struct bsw_entry_book book = {bsw_has_row_norms(codes->metric) ? BSW_ENTRY_L2
                                                                         : BSW_ENTRY_IP,
                                        codes->book.parts, 1u << codes->book.bits, codes->entries};
    *out = (struct bsw_selection){.settings = *settings, .codes = codes, .level = level};
    if (settings->radii == BSW_RADII_NEAREST)
        BSW_TRY(bsw_entry_map_create(book.subspaces, book.entries, codes->entries, settings->scale,
                                     &out->map, err));
    enum bsw_status status = BSW_OK;
    if (settings->finder->looks_at_all)
        out->tables = bsw_entry_tables_table_get(level);
    else
        status = make_reach(settings, codes, out->map, &reach, err);
    const struct bsw_entry_finder_options options = {level, reach, settings->has_hit_time};
    if (status == BSW_OK) status = settings->finder->open(&book, &options, &out->finder, err);
    if (status != BSW_OK) bsw_entry_map_destroy(&out->map);
    bsw_free(&reach);
    return status;
}

enum bsw_status bsw_selection_report(struct bsw_selection *selection, struct bsw_error *err)
{
    enum bsw_status status = bsw_first_failure_report(&selection->failure, err);
    selection->failure = (struct bsw_first_failure){0};
    return status;
}

void bsw_selection_close(struct bsw_selection *selection)
{
    if (selection->finder) selection->settings.finder->close(&selection->finder);
    bsw_entry_map_destroy(&selection->map);
}

// ---- rays ----

// One part of a table under way.
struct part {
    uint32_t number;
    struct bsw_entry_ray ray;
    float inner; // limit of the inner sphere
    float miss;  // what a miss adds
    float base;  // |q'_p - c'_p|^2, l2 alone
};

static float miss_of(const struct bsw_selection *selection, const struct bsw_entry_ray *ray)
{
    const struct bsw_selection_settings *settings = &selection->settings;
    int is_l2 = bsw_has_row_norms(selection->codes->metric);
    if (settings->mode != BSW_SELECTION_H) return settings->mode == BSW_SELECTION_M ? -1.0f : 0.0f;
    if (settings->is_miss_infinite) return is_l2 ? INFINITY : -INFINITY;
    return is_l2 ? ray->limit : bsw_entry_least(ray);
}

// A ray's limit: of a projection before the centroid is taken off.
static float limit_at(const struct bsw_selection *selection, const float *query, uint32_t p)
{
    const struct bsw_selection_settings *settings = &selection->settings;
    const float *q = query + 2 * (size_t)p;
    if (selection->map) return 0.0f;
    return limit_of(bsw_product_radius(selection->codes->radii, settings->radii, p, q[0], q[1]),
                    settings->scale);
}

void bsw_selective_limits(const struct bsw_selection *selection, const float *query, float *out)
{
    for (uint32_t p = 0; p < selection->codes->book.parts; p++)
        out[p] = limit_at(selection, query, p);
}

// limits: of the query, or NULL.
static struct part part_at(const struct bsw_selection *selection,
                           const struct bsw_product_terms *terms, const float *limits, uint32_t p)
{
    const float *q = terms->query + 2 * (size_t)p,
                *c = terms->centroid ? terms->centroid + 2 * (size_t)p : NULL;
    float x = q[0] - (c ? c[0] : 0.0f), y = q[1] - (c ? c[1] : 0.0f),
          limit = limits ? limits[p] : limit_at(selection, terms->query, p);
    struct part part = {.number = p, .ray = {p, x, y, limit}};
    size_t cell = selection->map ? bsw_entry_map_at(selection->map, p, x, y) : 0;
    if (selection->map) part.ray.limit = selection->map->limits[cell];
    part.inner = part.ray.limit * 0.25f;
    part.miss = miss_of(selection, &part.ray);
    if (selection->settings.is_miss_mean) part.miss = selection->map->misses[cell];
    part.base = fmaf(y, y, fmaf(x, x, 0.0f));
    return part;
}

// What a hit of this value (entries_within.h) adds.
static float hit_of(const struct bsw_selection *selection, const struct bsw_product_terms *terms,
                    const struct part *part, uint32_t entry, float value)
{
    const struct bsw_product_codes *codes = selection->codes;
    size_t at = ((size_t)part->number << codes->book.bits) + entry;
    int is_l2 = bsw_has_row_norms(codes->metric);
    if (selection->settings.mode == BSW_SELECTION_L) return 1.0f;
    if (selection->settings.mode == BSW_SELECTION_M) {
        struct bsw_entry_ray inner = part->ray;
        inner.limit = part->inner;
        return is_l2 ? (value <= inner.limit ? 1.0f : 0.0f)
                     : (value >= bsw_entry_least(&inner) ? 1.0f : 0.0f);
    }
    if (!is_l2) return terms->query_term[at];
    float sum = (terms->list_term[at] + terms->query_term[at]) + part->base;
    return sum > 0.0f ? sum : 0.0f;
}

static void put_hit(const struct bsw_selection *selection, const struct bsw_product_terms *terms,
                    const struct part *part, uint32_t entry, float value, float *out,
                    uint32_t *hits)
{
    const struct bsw_product_codes *codes = selection->codes;
    out[((size_t)part->number << codes->book.bits) + entry] =
        hit_of(selection, terms, part, entry, value);
    hits[part->number * bsw_selective_words(codes) + entry / 32] |= 1u << entry % 32;
}

static void put_misses(const struct bsw_selection *selection, const struct part *part, float *out)
{
    size_t num = bsw_product_entries(&selection->codes->book);
    float *to = out + part->number * num;
    for (size_t e = 0; e < num; e++) to[e] = part->miss;
}

static float multiplier_of(const struct bsw_selection *selection)
{
    return selection->settings.mode == BSW_SELECTION_H &&
                   bsw_has_row_norms(selection->codes->metric)
               ? -1.0f
               : 1.0f;
}

// ---- tables ----

struct room {
    struct bsw_entry_ray *rays;
    struct part *parts;
    struct bsw_entry_hits hits;
};

static size_t divide_room(const struct bsw_product_codes *codes, unsigned char *at,
                          struct room *out)
{
    const struct bsw_entry_book book = {.entries = 1u << codes->book.bits};
    size_t num = codes->book.parts, most = bsw_entry_hits_room(&book, num);
    const struct bsw_memory_part parts[] = {
        {&out->rays, num * sizeof *out->rays},
        {&out->parts, num * sizeof *out->parts},
        {&out->hits.offsets, (num + 1) * sizeof *out->hits.offsets},
        {&out->hits.entries, most},
        {&out->hits.values, most * sizeof *out->hits.values}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

size_t bsw_selective_room_bytes(const struct bsw_product_codes *codes)
{
    struct room room;
    return divide_room(codes, NULL, &room);
}

// All hits of a part: as put_hit, with the choices made once.
static void put_hits(const struct bsw_selection *selection, const struct bsw_product_terms *terms,
                     const struct part *part, const struct bsw_entry_hits *found, float *out,
                     uint32_t *hits)
{
    const struct bsw_product_codes *codes = selection->codes;
    size_t first = (size_t)part->number << codes->book.bits;
    uint32_t *bits = hits + part->number * bsw_selective_words(codes);
    const float *list = terms->list_term + first, *query = terms->query_term + first;
    uint32_t i = found->offsets[part->number], last = found->offsets[part->number + 1];
    float *to = out + first;
    for (uint32_t n = i; n < last; n++)
        bits[found->entries[n] / 32] |= 1u << found->entries[n] % 32;
    if (selection->settings.mode == BSW_SELECTION_L) {
        for (; i < last; i++) to[found->entries[i]] = 1.0f;
    } else if (selection->settings.mode == BSW_SELECTION_M) {
        for (; i < last; i++)
            to[found->entries[i]] =
                hit_of(selection, terms, part, found->entries[i], found->values[i]);
    } else if (selection->settings.has_hit_time) {
        for (; i < last; i++) to[found->entries[i]] = found->values[i];
    } else if (bsw_has_row_norms(codes->metric)) {
        for (; i < last; i++) {
            uint32_t e = found->entries[i];
            float sum = (list[e] + query[e]) + part->base;
            to[e] = sum > 0.0f ? sum : 0.0f;
        }
    } else {
        for (; i < last; i++) to[found->entries[i]] = query[found->entries[i]];
    }
}

// By what the finder finds. Returns how many entries are hit.
static enum bsw_status find_table(struct bsw_selection *selection,
                                  const struct bsw_product_terms *terms, const float *limits,
                                  void *memory, float *out, uint32_t *hits, uint64_t *num_within,
                                  uint64_t *num_computed, struct bsw_error *err)
{
    const struct bsw_product_codes *codes = selection->codes;
    uint32_t num = codes->book.parts;
    struct room room;
    divide_room(codes, memory, &room);
    for (uint32_t p = 0; p < num; p++) {
        room.parts[p] = part_at(selection, terms, limits, p);
        room.rays[p] = room.parts[p].ray;
    }
    memset(hits, 0, bsw_selective_hits_bytes(codes));
    room.hits.num_computed = num_computed;
    BSW_TRY(selection->settings.finder->find(selection->finder, room.rays, num, &room.hits, err));
    for (uint32_t p = 0; p < num; p++) {
        put_misses(selection, &room.parts[p], out);
        put_hits(selection, terms, &room.parts[p], &room.hits, out, hits);
    }
    *num_within = room.hits.offsets[num];
    return BSW_OK;
}

_Static_assert((int)BSW_SELECTION_H == (int)BSW_ENTRY_SUM &&
                   (int)BSW_SELECTION_M == (int)BSW_ENTRY_RING &&
                   (int)BSW_SELECTION_L == (int)BSW_ENTRY_COUNT,
               "modes are what kernels make");

// By a pass over all entries.
static uint64_t make_table(const struct bsw_selection *selection,
                           const struct bsw_product_terms *terms, const float *limits, float *out,
                           uint32_t *hits)
{
    const struct bsw_product_codes *codes = selection->codes;
    size_t num = bsw_product_entries(&codes->book), words = bsw_selective_words(codes);
    int kind = bsw_has_row_norms(codes->metric) ? BSW_ENTRY_L2 : BSW_ENTRY_IP;
    uint64_t within = 0;
    for (uint32_t p = 0; p < codes->book.parts; p++) {
        const struct part part = part_at(selection, terms, limits, p);
        const float *x = codes->entries + 2 * num * p;
        const struct bsw_entry_part all = {.ray = part.ray,
                                           .inner = part.inner,
                                           .miss = part.miss,
                                           .base = part.base,
                                           .x = x,
                                           .y = x + num,
                                           .list = terms->list_term + num * p,
                                           .query = terms->query_term + num * p};
        within += selection->tables->make[kind][selection->settings.mode](&all, num, out + num * p,
                                                                          hits + words * p);
    }
    return within;
}

float bsw_selective_table(struct bsw_selection *selection, const struct bsw_product_terms *terms,
                          const float *limits, void *room, float *out, uint32_t *hits)
{
    const struct bsw_product_codes *codes = selection->codes;
    struct bsw_error err;
    uint64_t within = 0, numbers = bsw_product_numbers(&codes->book),
             computed = selection->tables ? numbers : 0;
    enum bsw_status status = BSW_OK;
    if (selection->tables)
        within = make_table(selection, terms, limits, out, hits);
    else
        status = find_table(selection, terms, limits, room, out, hits, &within, &computed, &err);
    if (status != BSW_OK) {
        bsw_first_failure_note(&selection->failure, 0, status, &err);
        return 0.0f;
    }
    bsw_selection_count(selection, numbers, computed, within);
    return multiplier_of(selection);
}

void bsw_selective_hit_table(const struct bsw_selection *selection,
                             const struct bsw_product_terms *terms, const float *limits, float *out,
                             uint32_t *hits)
{
    // Not the whole struct: other threads write what it counts, and what failed.
    struct bsw_selection counting = {.settings = selection->settings,
                                     .codes = selection->codes,
                                     .map = selection->map,
                                     .tables = bsw_entry_tables_table_get(selection->level)};
    counting.settings.mode = BSW_SELECTION_L;
    counting.settings.is_miss_mean = 0;
    make_table(&counting, terms, limits, out, hits);
}

float bsw_selective_plain_table(const struct bsw_selection *selection,
                                const struct bsw_product_terms *terms, float *out, uint32_t *hits)
{
    const struct bsw_product_codes *codes = selection->codes;
    size_t num = bsw_product_entries(&codes->book);
    memset(hits, 0, bsw_selective_hits_bytes(codes));
    for (uint32_t p = 0; p < codes->book.parts; p++) {
        const struct part part = part_at(selection, terms, NULL, p);
        const float *x = codes->entries + 2 * num * p, *y = x + num;
        put_misses(selection, &part, out);
        for (uint32_t e = 0; e < num; e++) {
            int is_l2 = bsw_has_row_norms(codes->metric);
            float value = is_l2 ? bsw_entry_distance(&part.ray, x[e], y[e])
                                : bsw_entry_product(&part.ray, x[e], y[e]);
            if (is_l2 ? value <= part.ray.limit : value >= bsw_entry_least(&part.ray))
                put_hit(selection, terms, &part, e, value, out, hits);
        }
    }
    return multiplier_of(selection);
}

// ---- what devices make tables of ----

// A miss adds the limit under l2, and else rays have no centroid.
float bsw_selective_nothing(const struct bsw_selection *selection, const float *query,
                            const float *limits)
{
    float sum = 0.0f;
    for (uint32_t p = 0; p < selection->codes->book.parts; p++) {
        const struct bsw_entry_ray ray = {p, query[2 * p], query[2 * p + 1], limits[p]};
        sum += miss_of(selection, &ray);
    }
    return sum;
}

// ---- rows ----

static int has_hit(const struct bsw_product_codes *codes, const uint32_t *hits,
                   const uint8_t *bundle, uint32_t lane)
{
    size_t words = bsw_selective_words(codes);
    for (uint32_t p = 0; p < codes->book.parts; p++, hits += words) {
        uint32_t code = codes->book.bits == 8
                            ? bundle[p * BSW_BUNDLE_ROWS + lane]
                            : bundle[p / 2 * BSW_BUNDLE_ROWS + lane] >> p % 2 * 4 & 15u;
        if (hits[code / 32] >> code % 32 & 1) return 1;
    }
    return 0;
}

size_t bsw_selective_keep(const struct bsw_product_codes *codes, const uint32_t *hits,
                          const uint8_t *bundles, size_t bundle_bytes, uint64_t *items,
                          size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t row = bsw_candidate_row(items[i]);
        items[kept] = items[i];
        kept += bsw_candidate_score(items[i]) > BSW_SCORE_OF_MINUS_INFINITY &&
                has_hit(codes, hits, bundles + row / BSW_BUNDLE_ROWS * bundle_bytes,
                        row % BSW_BUNDLE_ROWS);
    }
    return kept;
}

// ---- the map of entries ----

#define MOST_ENTRIES 256

void bsw_entry_map_destroy(struct bsw_entry_map **map)
{
    if (!*map) return;
    bsw_free(&(*map)->boxes);
    bsw_free(&(*map)->limits);
    bsw_free(&(*map)->misses);
    bsw_free(map);
}

// ---- cells ----

static void find_box(const float *at, size_t num, float *least, float *most)
{
    float low = at[0], high = at[0];
    for (size_t e = 1; e < num; e++) {
        low = at[e] < low ? at[e] : low;
        high = at[e] > high ? at[e] : high;
    }
    float more = 0.5f * (high - low);
    *least = low - more;
    *most = high + more;
}

static size_t cell_of(float v, float least, float most)
{
    float width = most - least,
          at = width > 0.0f ? (v - least) / width * (float)BSW_ENTRY_MAP_CELLS : 0.0f;
    if (!(at > 0.0f)) return 0;
    return at < (float)BSW_ENTRY_MAP_CELLS ? (size_t)at : BSW_ENTRY_MAP_CELLS - 1;
}

static float middle_of(size_t cell, float least, float most)
{
    return least + (most - least) * (((float)cell + 0.5f) / (float)BSW_ENTRY_MAP_CELLS);
}

size_t bsw_entry_map_at(const struct bsw_entry_map *map, uint32_t part, float x, float y)
{
    const float *box = map->boxes + 4 * (size_t)part;
    return part * BSW_ENTRY_MAP + cell_of(y, box[1], box[3]) * BSW_ENTRY_MAP_CELLS +
           cell_of(x, box[0], box[2]);
}

// ---- what a cell has ----

// The n-th least of values, from 0; they are reordered. Hoare's selection, in Wirth's form.
static float nth_least(float *values, ptrdiff_t num, ptrdiff_t n)
{
    ptrdiff_t first = 0, last = num - 1;
    while (first < last) {
        float pivot = values[n];
        ptrdiff_t i = first, j = last;
        do {
            while (values[i] < pivot) i++;
            while (pivot < values[j]) j--;
            if (i > j) break;
            float value = values[i];
            values[i++] = values[j];
            values[j--] = value;
        } while (i <= j);
        if (j < n) first = i;
        if (n < i) last = j;
    }
    return values[n];
}

static void fill_cell(const float *entries, size_t num, float x, float y, float scale, float *limit,
                      float *miss)
{
    float squares[MOST_ENTRIES], room[MOST_ENTRIES] = {0};
    double sum = 0;
    size_t count = 0;
    for (size_t e = 0; e < num; e++) {
        float dx = x - entries[e], dy = y - entries[num + e];
        squares[e] = fmaf(dy, dy, dx * dx);
    }
    memcpy(room, squares, num * sizeof *room);
    float scaled = sqrtf(nth_least(room, (ptrdiff_t)num, (ptrdiff_t)num / 4 - 1)) * scale;
    *limit = fmaxf(scaled * scaled, FLT_MIN);
    for (size_t e = 0; e < num; e++) {
        if (!(squares[e] > *limit)) continue;
        sum += (double)squares[e];
        count++;
    }
    *miss = count > 0 ? fmaxf((float)(sum / (double)count), *limit) : *limit;
}

static void fill_part(struct bsw_entry_map *map, uint32_t part, const float *entries, size_t num,
                      float scale)
{
    float *box = map->boxes + 4 * (size_t)part;
    find_box(entries, num, &box[0], &box[2]);
    find_box(entries + num, num, &box[1], &box[3]);
    for (size_t i = 0; i < BSW_ENTRY_MAP; i++) {
        size_t at = part * BSW_ENTRY_MAP + i;
        if (isinf(scale))
            map->limits[at] = map->misses[at] = INFINITY;
        else
            fill_cell(entries, num, middle_of(i % BSW_ENTRY_MAP_CELLS, box[0], box[2]),
                      middle_of(i / BSW_ENTRY_MAP_CELLS, box[1], box[3]), scale, &map->limits[at],
                      &map->misses[at]);
    }
}

enum bsw_status bsw_entry_map_create(uint32_t parts, size_t num, const float *entries, float scale,
                                     struct bsw_entry_map **out, struct bsw_error *err)
{
    struct bsw_entry_map *map;
    size_t cells = parts * BSW_ENTRY_MAP;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&map, 1, sizeof *map, "radii of entries", err));
    map->parts = parts;
    enum bsw_status status =
        bsw_allocate(&map->boxes, parts, 4 * sizeof(float), "radii of entries", err);
    if (status == BSW_OK)
        status = bsw_allocate(&map->limits, cells, sizeof(float), "radii of entries", err);
    if (status == BSW_OK)
        status = bsw_allocate(&map->misses, cells, sizeof(float), "radii of entries", err);
    if (status != BSW_OK) {
        bsw_entry_map_destroy(&map);
        return status;
    }
#pragma omp parallel for schedule(dynamic)
    for (uint32_t p = 0; p < parts; p++) fill_part(map, p, entries + 2 * num * p, num, scale);
    *out = map;
    return BSW_OK;
}
