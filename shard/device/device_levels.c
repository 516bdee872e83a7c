// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_levels.h"

#include <float.h>
#include <math.h>

#include "common/codes/code_layout.h"
#include "kernels/gpu_select/gpu_select.h"

#define FAILURE      1e-7
#define LEAST_SAMPLE 64 // bundles
#define MOST_PART    8  // of all bundles, the largest sample
#define LEAST_GROWTH 4  // from a level to the next
// Room in lists for what is expected: so many standard deviations, of rows that come eight
// together.
#define SIGMAS 8.0
#define ALIKE  8.0
// A table of bundles is filled to this part at most on average.
#define TABLE_PART 0.5

uint32_t bsw_level_rank(size_t bundles, size_t num_bundles, size_t keep)
{
    double mean = (double)keep * (double)bundles / (double)num_bundles;
    double rank = ceil(mean + 6 * sqrt(mean) + 10); // beyond 400 a normal tail of 10^-9
    if (mean < 400) {
        // Poisson's tail by its terms from the mean on: what the last of them leaves is below it.
        double term = exp(-mean), below = term;
        for (rank = 1; rank < (double)keep && 1 - below > FAILURE; rank++) {
            term *= mean / rank;
            below += term;
        }
    }
    return (uint32_t)(rank < (double)keep ? rank : (double)keep);
}

// Expected items of `rows` by the limit of a level, 0 where a list may not have room for them.
static double items_of(const struct bsw_level_needs *needs, const struct bsw_device_level *by,
                       size_t bundles)
{
    double items = (double)by->rank * (double)bundles / (double)by->bundles;
    double deviation = sqrt(ALIKE * (items + items * items / by->rank));
    return items + SIGMAS * deviation <= (double)needs->capacity ? items : 0;
}

static double scan_cost(const struct bsw_level_needs *needs, const struct bsw_level_costs *costs,
                        size_t bundles)
{
    return (double)bundles * BSW_BUNDLE_ROWS *
           ((double)costs->row_fs + (double)costs->product_fs * (double)needs->num_queries) * 1e-6;
}

// What the levels so far cost, and after them all bundles; levels that are better than *out become
// it.
static void try_levels(const struct bsw_level_needs *needs, const struct bsw_level_costs *costs,
                       const struct bsw_device_levels *levels, double cost, double *least,
                       struct bsw_device_levels *out)
{
    const struct bsw_device_level *last = &levels->level[levels->num - 1];
    double queries = (double)needs->num_queries, items = items_of(needs, last, needs->num_bundles);
    double all = cost + items * queries * costs->sparse_hit_ps * 1e-3;
    if (items > 0 && all < *least) {
        *least = all;
        *out = *levels;
        out->hits += items;
    }
    for (size_t b = last->bundles * LEAST_GROWTH;
         levels->num < BSW_MOST_LEVELS && b <= needs->num_bundles / MOST_PART; b *= 2) {
        struct bsw_device_levels more = *levels;
        const struct bsw_device_level level = {b,
                                               bsw_level_rank(b, needs->num_bundles, needs->keep)};
        items = items_of(needs, last, b);
        if (items <= 0 || items < 2.0 * level.rank || items > TABLE_PART * BSW_MOST_RANK_BUNDLES)
            continue;
        more.level[more.num++] = level;
        more.hits += items;
        try_levels(needs, costs, &more,
                   cost + costs->level_ns + scan_cost(needs, costs, b) +
                       items * queries * costs->sparse_hit_ps * 1e-3,
                   least, out);
    }
}

void bsw_device_levels_plan(const struct bsw_level_needs *needs,
                            const struct bsw_level_costs *costs, struct bsw_device_levels *out)
{
    double least = DBL_MAX, queries = (double)needs->num_queries;
    *out = (struct bsw_device_levels){.num = 0};
    for (size_t b = LEAST_SAMPLE;
         b <= needs->num_bundles / MOST_PART && b * BSW_BUNDLE_ROWS <= needs->capacity &&
         (double)b <= TABLE_PART * BSW_MOST_RANK_BUNDLES;
         b *= 2) {
        const struct bsw_device_levels first = {
            .num = 1, .level = {{b, bsw_level_rank(b, needs->num_bundles, needs->keep)}}};
        if (first.level[0].rank * 2 > b) continue;
        try_levels(needs, costs, &first,
                   costs->level_ns + scan_cost(needs, costs, b) +
                       (double)b * BSW_BUNDLE_ROWS * queries * costs->dense_hit_ps * 1e-3,
                   &least, out);
    }
}
