// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/entry_map.h"

#include <float.h>
#include <math.h>
#include <string.h>

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
