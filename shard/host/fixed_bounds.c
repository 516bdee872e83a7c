// SPDX-License-Identifier: Apache-2.0
#include "shard/host/fixed_bounds.h"

#include <math.h>
#include <string.h>

#include "common/codes/metric.h"

struct bsw_fixed_bound bsw_fixed_bound_make(const struct bsw_product_book *book,
                                            const struct bsw_table_bounds_table *kernels,
                                            const struct bsw_code_table *table, float multiplier,
                                            float *room, uint8_t *numbers)
{
    size_t num = bsw_product_numbers(book);
    struct bsw_fixed_bound bound = {.multiplier = (double)multiplier};
    memcpy(room, table->numbers, num * sizeof *room);
    bound.size = bsw_bound_table_size(book, room);
    if (!(bound.size <= BSW_BOUND_MOST_SIZE)) { // all rows will pass
        bound.size = INFINITY;
        memset(numbers, 0, bsw_bound_bytes(book));
        return bound;
    }
    for (size_t i = 0; i < num && multiplier > 0; i++) room[i] = -room[i];
    bound.numbers = kernels->narrow(book, room, numbers);
    return bound;
}

struct bsw_bound_query bsw_fixed_bound_query(const struct bsw_fixed_bound *bound, uint32_t parts,
                                             const uint8_t *numbers, float addition, uint32_t limit)
{
    float least_key = bsw_score_to_float(limit);
    struct bsw_bound_query query = {numbers, bound->numbers.unit, INFINITY};
    if (isfinite(least_key) && isfinite(addition))
        query.most =
            bsw_bound_most_of_table(parts, bound->numbers.least, bound->size, bound->multiplier,
                                    (double)addition, (double)least_key);
    return query;
}

const float *bsw_fixed_bound_terms(void)
{
    static _Alignas(64) const float zeros[BSW_FIXED_BOUND_ROWS];
    return zeros;
}

size_t bsw_passed_places(const struct bsw_passed_rows *rows, uint32_t *places)
{
    size_t count = 0;
    for (size_t b = 0; b < rows->num_bundles; b++)
        for (uint32_t mask = rows->masks[b]; mask; mask &= mask - 1)
            places[count++] = (uint32_t)(b * BSW_BUNDLE_ROWS) + (uint32_t)__builtin_ctz(mask);
    return count;
}

size_t bsw_passed_keys(const struct bsw_passed_rows *rows, const struct bsw_passed_room *room,
                       size_t count, float multiplier, float addition, uint32_t limit,
                       uint64_t *items)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        float key = ((room->sums[i] * multiplier + 0.0f) + addition) + 0.0f;
        uint32_t score = bsw_score_from_float(key);
        items[found] = bsw_candidate_pack(score, rows->first_row + room->places[i]);
        found += score >= limit;
    }
    return found;
}

size_t bsw_passed_find(const struct bsw_passed_rows *rows,
                       const struct bsw_table_scan_table *table_scan,
                       const struct bsw_code_table *table, float multiplier, float addition,
                       uint32_t limit, const struct bsw_passed_room *room, uint64_t *items)
{
    size_t count = bsw_passed_places(rows, room->places);
    if (count == 0) return 0;
    table_scan->sums_at(table, rows->codes, rows->bundle_bytes, room->places, count, room->sums);
    return bsw_passed_keys(rows, room, count, multiplier, addition, limit, items);
}
