// SPDX-License-Identifier: Apache-2.0
// The oracle: entry_bounds.h's numbers row by row.
#include "kernels/entry_bounds/entry_bounds.h"

#include <string.h>

#include "kernels/entries_within/entry_value.h"

static struct bsw_entry_ray ray_of(const struct bsw_entry_bound_rays *rays, uint32_t p, size_t q)
{
    size_t at = (size_t)p * BSW_ENTRY_BOUND_QUERIES + q;
    return (struct bsw_entry_ray){p, rays->x[at], rays->y[at], rays->limit[at]};
}

static uint32_t byte_of(enum bsw_entry_number number, const struct bsw_entry_bound_rays *rays,
                        uint32_t p, size_t q, const float *x)
{
    const struct bsw_entry_ray ray = ray_of(rays, p, q);
    float value = bsw_entry_distance(&ray, x[0], x[256]);
    if (number == BSW_ENTRY_COUNT) return value <= ray.limit;
    if (number == BSW_ENTRY_RING)
        return (uint32_t)(value <= ray.limit) +
               (uint32_t)(value <= rays->inner[(size_t)p * BSW_ENTRY_BOUND_QUERIES + q]);
    float least = value < ray.limit ? value : ray.limit, scaled = least * rays->inverse[q];
    if (!(scaled > 0.0f)) return 0; // not a number, too: an infinite value, limit and unit
    return scaled < 255.0f ? (uint32_t)scaled : 255;
}

static void pass_query(enum bsw_entry_number number, const struct bsw_entry_bound_rows *rows,
                       const struct bsw_entry_bound_rays *rays, size_t q, uint16_t *sums,
                       uint32_t *masks)
{
    for (size_t r = 0; r < rows->num_bundles * BSW_BUNDLE_ROWS; r++) {
        const uint8_t *codes =
            rows->codes + r / BSW_BUNDLE_ROWS * rows->bundle_bytes + r % BSW_BUNDLE_ROWS;
        uint32_t sum = 0;
        for (uint32_t p = 0; p < rows->parts; p++)
            sum += byte_of(number, rays, p, q,
                           rows->points + (size_t)p * 512 + codes[p * BSW_BUNDLE_ROWS]);
        int passes = number == BSW_ENTRY_SUM ? sum <= rays->ends[q] : sum >= rays->ends[q];
        sums[r * BSW_ENTRY_BOUND_QUERIES + q] = (uint16_t)sum;
        if (passes && rays->wanted >> q & 1)
            masks[r / BSW_BUNDLE_ROWS] |= rows->masks[r / BSW_BUNDLE_ROWS] & 1u << r % 32;
    }
}

static void pass(enum bsw_entry_number number, const struct bsw_entry_bound_rows *rows,
                 const struct bsw_entry_bound_rays *rays, void *room, uint32_t *masks,
                 uint32_t *within)
{
    memset(masks, 0, BSW_ENTRY_BOUND_QUERIES * rows->num_bundles * sizeof *masks);
    for (size_t q = 0; q < BSW_ENTRY_BOUND_QUERIES; q++) {
        pass_query(number, rows, rays, q, room, masks + q * rows->num_bundles);
        for (uint32_t p = 0; p < rows->parts; p++)
            for (size_t e = 0; e < 256; e++)
                within[q] +=
                    byte_of(BSW_ENTRY_COUNT, rays, p, q, rows->points + (size_t)p * 512 + e);
    }
}

#define PASS(name, number)                                                                 \
    static void name(const struct bsw_entry_bound_rows *rows,                              \
                     const struct bsw_entry_bound_rays *rays, void *room, uint32_t *masks, \
                     uint32_t *within)                                                     \
    {                                                                                      \
        pass(number, rows, rays, room, masks, within);                                     \
    }
PASS(pass_sum, BSW_ENTRY_SUM)
PASS(pass_ring, BSW_ENTRY_RING)
PASS(pass_count, BSW_ENTRY_COUNT)

static float row_sum(const struct bsw_entry_bound_terms *terms, const uint8_t *codes)
{
    int has_hit = 0;
    float sum = 0.0f;
    for (uint32_t p = 0; p < terms->parts; p++) {
        size_t e = codes[p * BSW_BUNDLE_ROWS];
        const float *x = terms->points + (size_t)p * 512 + e, *query = terms->query + 2 * (size_t)p;
        const struct bsw_entry_ray ray = {p, terms->x[p * terms->stride],
                                          terms->y[p * terms->stride],
                                          terms->limit[p * terms->stride]};
        int is_hit = bsw_entry_distance(&ray, x[0], x[256]) <= ray.limit;
        float product = fmaf(query[1], x[256], fmaf(query[0], x[0], 0.0f)),
              distance = (terms->list[p * 256 + e] + product) + terms->bases[p];
        if (is_hit)
            sum += distance > 0.0f ? distance : 0.0f;
        else
            sum += terms->is_miss_infinite ? INFINITY : ray.limit;
        has_hit |= is_hit;
    }
    return has_hit ? sum : INFINITY;
}

static void row_sums(const struct bsw_entry_bound_terms *terms, const uint8_t *codes,
                     size_t bundle_bytes, const uint32_t *places, size_t num_places, float *sums)
{
    for (size_t i = 0; i < num_places; i++)
        sums[i] = row_sum(terms, codes + places[i] / BSW_BUNDLE_ROWS * bundle_bytes +
                                     places[i] % BSW_BUNDLE_ROWS);
}

const struct bsw_entry_bounds_table bsw_entry_bounds_reference = {
    .level = "reference", .pass = {pass_sum, pass_ring, pass_count}, .sums = row_sums};

BSW_KERNEL_TABLE_GET(entry_bounds, BSW_KERNEL_AVX2(entry_bounds))
