// SPDX-License-Identifier: Apache-2.0
#include "shard/host/filter_masks.h"

#include <string.h>

#include "shard/host/resident_shard.h"

void bsw_filter_masks_deinit(struct bsw_filter_masks *masks)
{
    for (size_t s = 0; s < masks->num_shards; s++) {
        if (masks->masks) bsw_row_mask_deinit(&masks->masks[s]);
        if (masks->whole) bsw_candidate_lists_deinit(&masks->whole[s]);
    }
    bsw_free(&masks->masks);
    bsw_free(&masks->numbers);
    bsw_free(&masks->whole);
    *masks = (struct bsw_filter_masks){0};
}

static enum bsw_status make_room(struct bsw_filter_masks *masks, size_t num_shards,
                                 struct bsw_error *err)
{
    if (masks->num_shards == num_shards) return BSW_OK;
    bsw_filter_masks_deinit(masks);
    BSW_TRY(bsw_allocate_zero(&masks->masks, num_shards, sizeof *masks->masks, "masks", err));
    BSW_TRY(bsw_allocate_zero(&masks->numbers, num_shards, sizeof *masks->numbers, "masks", err));
    BSW_TRY(bsw_allocate_zero(&masks->whole, num_shards, sizeof *masks->whole, "masks", err));
    masks->num_shards = num_shards;
    return BSW_OK;
}

enum bsw_status bsw_filter_masks_make(struct bsw_filter_masks *masks, size_t num_shards,
                                      struct bsw_backend_shard *const *shards,
                                      const struct bsw_row_filter *filter, uint32_t group,
                                      struct bsw_shard_range range, const struct bsw_row_mask **out,
                                      struct bsw_error *err)
{
    uint64_t number = filter->first_number + group;
    BSW_TRY(make_room(masks, num_shards, err));
    for (size_t s = range.first; s < range.first + range.num; s++) {
        const struct bsw_resident_shard *shard = shards[s]->resident;
        if (masks->numbers[s] == number) continue;
        masks->numbers[s] = 0;
        BSW_TRY(bsw_row_mask_make(bsw_row_filter_bits(filter, group),
                                  shard->shape.first_row - filter->first_row, shard->shape.num_rows,
                                  &shard->order, shard->num_bundles, &masks->masks[s], err));
        masks->numbers[s] = number;
    }
    *out = masks->masks + range.first;
    return BSW_OK;
}

// Lists of one shard; they have no items where these stay on a device.
static enum bsw_status add_lists(struct bsw_candidate_lists *whole,
                                 const struct bsw_candidate_lists *lists, size_t keep, size_t at,
                                 size_t num_queries, struct bsw_error *err)
{
    if (at == 0) BSW_TRY(bsw_candidate_lists_reserve(whole, num_queries, keep, err));
    const size_t *counts = (const size_t *)(const void *)lists->counts.data;
    uint64_t *items = (uint64_t *)(void *)whole->items.data;
    memcpy((size_t *)(void *)whole->counts.data + at, counts, lists->num_queries * sizeof *counts);
    for (size_t q = 0; q < lists->num_queries && keep > 0; q++) {
        size_t count;
        const uint64_t *list = bsw_candidate_list(lists, q, &count);
        memcpy(items + (at + q) * keep, list, count * sizeof *list);
    }
    return BSW_OK;
}

enum bsw_status bsw_filter_masks_add(struct bsw_filter_masks *masks, const struct bsw_scan_job *job,
                                     size_t at, size_t num_queries, struct bsw_error *err)
{
    int is_last = at + job->queries.num_queries == num_queries;
    for (size_t s = 0; s < (job->stays ? 1 : job->num_shards); s++) {
        struct bsw_candidate_lists *lists = &job->shards[s]->lists,
                                   *whole = &masks->whole[job->first + s];
        uint64_t num_rows = job->shards[s]->resident->shape.num_rows;
        size_t keep = job->stays ? 0 : job->keep < num_rows ? job->keep : (size_t)num_rows;
        BSW_TRY(add_lists(whole, lists, keep, at, num_queries, err));
        if (!is_last) continue;
        struct bsw_candidate_lists swap = *lists;
        *lists = *whole;
        *whole = swap;
    }
    return BSW_OK;
}
