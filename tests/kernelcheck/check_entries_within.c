// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <math.h>

#include "kernels/entries_within/entry_value.h"

#define SLACK 32 // what a level may write behind the last hit
#define RAYS  48

static const float scales[] = {1.0f, 0x1p-40f, 0x1p57f};

// Clusters, entries on one another and on axes, and a few far out.
static void make_points(const struct kernelcheck *check, float scale, size_t num, float *x,
                        float *y)
{
    for (size_t e = 0; e < num; e++) {
        x[e] = scale * kernelcheck_float(check, 1, e);
        y[e] = scale * kernelcheck_float(check, 2, e);
        if (e % 5 == 1) x[e] = x[e - 1], y[e] = y[e - 1];
        if (e % 7 == 0) x[e] = e % 2 ? 0.0f : -0.0f;
        if (e % 11 == 0) y[e] = 2.0f * scale;
    }
}

// A ray's limit: as if `value`, what an entry has, were `steps` floats from the rim.
static float rim(enum bsw_entry_value kind, const struct bsw_entry_ray *ray, float value, int steps)
{
    float limit = kind == BSW_ENTRY_L2 ? value : fmaf(ray->y, ray->y, ray->x * ray->x) - 2 * value;
    for (int i = 0; i < steps; i++) limit = nextafterf(limit, INFINITY);
    for (int i = 0; i > steps; i--) limit = nextafterf(limit, -INFINITY);
    return limit;
}

static struct bsw_entry_ray make_ray(const struct kernelcheck *check, enum bsw_entry_value kind,
                                     float scale, const float *x, const float *y, size_t num,
                                     size_t r)
{
    size_t e = (size_t)kernelcheck_random(check, 3, r) % num;
    struct bsw_entry_ray ray = {.x = scale * kernelcheck_float(check, 4, r),
                                .y = scale * kernelcheck_float(check, 5, r)};
    if (r % 6 == 5) ray.x = x[e], ray.y = y[e]; // on an entry
    float value = kind == BSW_ENTRY_L2 ? bsw_entry_distance(&ray, x[e], y[e])
                                       : bsw_entry_product(&ray, x[e], y[e]);
    switch (r % 8) {
    case 0:
        ray.limit = INFINITY;
        break;
    case 1:
        ray.limit = r % 16 == 1 ? 0.0f : -0.0f;
        break;
    case 2:
        ray.limit = r % 16 == 2 ? -INFINITY : NAN;
        break;
    case 3:
        ray.limit = -scale * scale;
        break;
    default:
        ray.limit = rim(kind, &ray, value, (int)(r % 8) - 5);
        break;
    }
    return ray;
}

static void check_rays(struct kernelcheck *check, const struct bsw_entries_within_table *table,
                       enum bsw_entry_value kind, float scale, size_t num)
{
    float *x = kernelcheck_allocate(num * sizeof *x), *y = kernelcheck_allocate(num * sizeof *y);
    float *expected = kernelcheck_allocate((num + SLACK) * sizeof *expected),
          *found = kernelcheck_allocate((num + SLACK) * sizeof *found);
    uint8_t *expected_entries = kernelcheck_allocate(num + SLACK),
            *found_entries = kernelcheck_allocate(num + SLACK);
    size_t num_all = 0, num_some = 0;
    make_points(check, scale, num, x, y);
    for (size_t r = 0; r < RAYS; r++) {
        struct bsw_entry_ray ray = make_ray(check, kind, scale, x, y, num, r);
        kernelcheck_case(check, "%s, %zu entries, scale %g, ray %zu at (%g, %g), limit %g",
                         kind == BSW_ENTRY_L2 ? "l2" : "ip", num, (double)scale, r, (double)ray.x,
                         (double)ray.y, (double)ray.limit);
        size_t count = bsw_entries_within_reference.within[kind](x, y, num, &ray, expected_entries,
                                                                 expected),
               other = table->within[kind](x, y, num, &ray, found_entries, found);
        if (kernelcheck_compare_lists(check, "entries", expected_entries, count, found_entries,
                                      other, 1))
            kernelcheck_compare(check, "values", expected, found, count * sizeof *found);
        num_all += count == num;
        num_some += count > 0 && count < num;
    }
    // Every eighth limit is infinity; many are on the rim of an entry.
    kernelcheck_case(check, "%zu entries, scale %g: kinds of rays", num, (double)scale);
    int is_mixed = num_all >= RAYS / 8 && num_some >= RAYS / 8, yes = 1;
    kernelcheck_compare(check, "cases", &yes, &is_mixed, sizeof yes);
    kernelcheck_free(x);
}

void check_entries_within(struct kernelcheck *check)
{
    const struct bsw_entries_within_table *table = bsw_entries_within_table_get(check->level);
    for (int kind = 0; kind < BSW_NUM_ENTRY_VALUES; kind++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++)
            for (size_t num = 16; num <= 256; num *= 16)
                check_rays(check, table, (enum bsw_entry_value)kind, scales[s], num);
}
