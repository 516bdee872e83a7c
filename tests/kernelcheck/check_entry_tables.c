// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <math.h>

#include "kernels/entries_within/entry_value.h"
#include "kernels/entry_tables/entry_tables.h"

#define RAYS 40

static const float scales[] = {1.0f, 0x1p-40f, 0x1p57f};

struct part_case {
    float *x, *y, *list, *query;
    float *expected, *found;
    uint32_t *expected_hits, *found_hits;
};

// Clusters, entries on one another and on axes, and a few far out. Terms of the list are such that
// many sums are below 0.
static void make_entries(const struct kernelcheck *check, float scale, size_t num,
                         const struct part_case *c)
{
    for (size_t e = 0; e < num; e++) {
        c->x[e] = scale * kernelcheck_float(check, 1, e);
        c->y[e] = scale * kernelcheck_float(check, 2, e);
        if (e % 5 == 1) c->x[e] = c->x[e - 1], c->y[e] = c->y[e - 1];
        if (e % 7 == 0) c->x[e] = e % 2 ? 0.0f : -0.0f;
        if (e % 11 == 0) c->y[e] = 2.0f * scale;
        c->list[e] = scale * scale * kernelcheck_float(check, 6, e);
        c->query[e] = e % 13 == 0 ? -0.0f : scale * scale * kernelcheck_float(check, 7, e);
        if (e % 17 == 3) c->list[e] = -c->query[e];
    }
}

// Limits: none, all, an entry on the rim or a float beside it, what is not a number.
static struct bsw_entry_part make_part(const struct kernelcheck *check, enum bsw_entry_value kind,
                                       float scale, size_t num, size_t r, const struct part_case *c)
{
    size_t e = (size_t)kernelcheck_random(check, 3, r) % num;
    struct bsw_entry_ray ray = {.x = scale * kernelcheck_float(check, 4, r),
                                .y = scale * kernelcheck_float(check, 5, r)};
    if (r % 6 == 5) ray.x = c->x[e], ray.y = c->y[e];
    float value = kind == BSW_ENTRY_L2 ? bsw_entry_distance(&ray, c->x[e], c->y[e])
                                       : bsw_entry_product(&ray, c->x[e], c->y[e]);
    float rim = kind == BSW_ENTRY_L2 ? value : fmaf(ray.y, ray.y, ray.x * ray.x) - 2 * value;
    const float limits[] = {INFINITY,
                            rim,
                            r % 16 == 2 ? -INFINITY : NAN,
                            -scale * scale,
                            nextafterf(rim, INFINITY),
                            nextafterf(rim, -INFINITY),
                            0.0f,
                            2 * fabsf(rim)};
    ray.limit = limits[r % 8];
    return (struct bsw_entry_part){.ray = ray,
                                   .inner = r % 3 ? ray.limit * 0.25f : rim,
                                   .miss = r % 5 ? ray.limit : -INFINITY,
                                   .base = r % 4 ? scale * scale * 0.5f : 0.0f,
                                   .x = c->x,
                                   .y = c->y,
                                   .list = c->list,
                                   .query = c->query};
}

static void check_parts(struct kernelcheck *check, const struct bsw_entry_tables_table *table,
                        int kind, int number, float scale, size_t num)
{
    size_t bytes = num * sizeof(float), words = (num + 31) / 32 * sizeof(uint32_t), num_some = 0;
    struct part_case c = {kernelcheck_allocate(bytes), kernelcheck_allocate(bytes),
                          kernelcheck_allocate(bytes), kernelcheck_allocate(bytes),
                          kernelcheck_allocate(bytes), kernelcheck_allocate(bytes),
                          kernelcheck_allocate(words), kernelcheck_allocate(words)};
    make_entries(check, scale, num, &c);
    for (size_t r = 0; r < RAYS; r++) {
        struct bsw_entry_part part =
            make_part(check, (enum bsw_entry_value)kind, scale, num, r, &c);
        kernelcheck_case(check, "%s, number %d, %zu entries, scale %g, ray %zu, limit %g",
                         kind == BSW_ENTRY_L2 ? "l2" : "ip", number, num, (double)scale, r,
                         (double)part.ray.limit);
        size_t count = bsw_entry_tables_reference.make[kind][number](&part, num, c.expected,
                                                                     c.expected_hits),
               other = table->make[kind][number](&part, num, c.found, c.found_hits);
        kernelcheck_compare(check, "count", &count, &other, sizeof count);
        kernelcheck_compare(check, "numbers", c.expected, c.found, bytes);
        kernelcheck_compare(check, "hits", c.expected_hits, c.found_hits, words);
        num_some += count > 0 && count < num;
    }
    kernelcheck_case(check, "%zu entries, scale %g: kinds of rays", num, (double)scale);
    int is_mixed = num_some >= RAYS / 8, yes = 1;
    kernelcheck_compare(check, "cases", &yes, &is_mixed, sizeof yes);
    kernelcheck_free(c.x);
}

void check_entry_tables(struct kernelcheck *check)
{
    const struct bsw_entry_tables_table *table = bsw_entry_tables_table_get(check->level);
    for (int kind = 0; kind < BSW_NUM_ENTRY_VALUES; kind++)
        for (int number = 0; number < BSW_NUM_ENTRY_NUMBERS; number++)
            for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++)
                for (size_t num = 16; num <= 256; num *= 16)
                    check_parts(check, table, kind, number, scales[s], num);
}
