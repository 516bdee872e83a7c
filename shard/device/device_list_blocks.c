// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_list_blocks.h"

#include <string.h>

uint32_t bsw_device_resident_lists(const struct bsw_device_shard *shard)
{
    const struct bsw_list_order *order = &shard->host->order;
    uint32_t low = 0, high = order->num_lists;
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (order->first_bundles[middle] <= shard->resident.num_bundles)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// ---- a block ----

// Bundles of the shard that follow each other.
struct run {
    size_t first, num;
};

struct packing {
    struct bsw_device_engine *engine;
    const struct bsw_device_shard *shard;
    unsigned place;
    struct bsw_device_list_block *out;
};

// rows: of each place; lists: of each bundle.
static void number_bundles(const struct bsw_list_order *order, const struct run *runs,
                           size_t num_runs, uint32_t *rows, uint32_t *lists)
{
    for (size_t i = 0; i < num_runs; i++) {
        for (size_t b = runs[i].first; b < runs[i].first + runs[i].num; b++) {
            size_t place = b * BSW_BUNDLE_ROWS, num = BSW_BUNDLE_ROWS;
            size_t left = place < order->num_places ? order->num_places - place : 0;
            memset(rows, 0xff, num * sizeof *rows); // BSW_NO_ROW
            memcpy(rows, order->rows + place, (left < num ? left : num) * sizeof *rows);
            rows += num;
            if (lists) *lists++ = bsw_list_of_place(order, (uint32_t)place);
        }
    }
}

static enum bsw_status send_numbers(const struct packing *packing, const struct run *runs,
                                    size_t num_runs, size_t bundles, unsigned char *to,
                                    struct bsw_error *err)
{
    struct bsw_device_engine *engine = packing->engine;
    size_t num_rows = bundles * BSW_BUNDLE_ROWS;
    int has_lists = engine->plan.num_centroids > 0;
    BSW_TRY(
        bsw_buffer_reserve(&engine->block_numbers, (num_rows + bundles) * sizeof(uint32_t), err));
    uint32_t *rows = (uint32_t *)(void *)engine->block_numbers.data, *lists = rows + num_rows;
    number_bundles(&packing->shard->host->order, runs, num_runs, rows, has_lists ? lists : NULL);
    BSW_TRY(bsw_device_blocks_upload(&engine->transfer, to, rows, num_rows * sizeof *rows,
                                     "rows to the device", err));
    packing->out->rows = (const uint32_t *)(void *)to;
    if (!has_lists) return BSW_OK;
    to += bsw_device_places_bytes(bundles);
    packing->out->bundle_lists = (const uint32_t *)(void *)to;
    return bsw_device_blocks_upload(&engine->transfer, to, lists, bundles * sizeof *lists,
                                    "lists of bundles", err);
}

static enum bsw_status pack(const struct packing *packing, const struct run *runs, size_t num_runs,
                            struct bsw_error *err)
{
    struct bsw_device_engine *engine = packing->engine;
    const struct bsw_device_plan *plan = &engine->plan;
    const struct bsw_device_buffer *memory = &engine->blocks[packing->place];
    struct bsw_device_codes *codes = &packing->out->codes;
    struct bsw_device_codes_layout at;
    size_t bundles = 0, done = 0;
    for (size_t i = 0; i < num_runs; i++) bundles += runs[i].num;
    if (bundles == 0) return BSW_OK;
    bsw_device_codes_layout_make(&plan->layout, plan->keys, plan->stage_dims > 0, bundles, &at);
    bsw_device_codes_point(plan, bundles, memory, codes);
    // Before the codes: what goes by way of staging waits for all that was queued before it.
    BSW_TRY(send_numbers(packing, runs, num_runs, bundles, memory->data + at.bytes, err));
    for (size_t i = 0; i < num_runs; i++) {
        BSW_TRY(bsw_device_copy_run(engine, packing->shard, runs[i].first, runs[i].num, done,
                                    packing->shard->is_pinned, codes, err));
        done += runs[i].num;
    }
    engine->counts.copied_bytes +=
        bundles * bsw_device_bundle_bytes(&plan->layout, plan->keys, plan->stage_dims > 0);
    return BSW_OK;
}

// ---- lists ----

// Adds bundles to runs, of which the last may go on.
static void add_run(struct run *runs, size_t *num_runs, size_t first, size_t num)
{
    if (*num_runs > 0 && runs[*num_runs - 1].first + runs[*num_runs - 1].num == first)
        runs[*num_runs - 1].num += num;
    else
        runs[(*num_runs)++] = (struct run){first, num};
}

// Lists, from the cursor on, until the block is full: their runs, and where they lie in it.
static size_t take_lists(const struct packing *packing, const struct bsw_device_list_range *all,
                         struct bsw_device_list_cursor *at, struct run *runs)
{
    const uint32_t *first = all->order->first_bundles;
    uint32_t *own = packing->out->order.first_bundles;
    size_t left = packing->engine->plan.block_bundles, num_runs = 0, used = 0;
    size_t begin = at->list;
    while (at->list < all->num) {
        uint32_t list = all->lists[at->list];
        size_t rest = first[list + 1] - first[list] - at->bundle, num = rest < left ? rest : left;
        if (rest > 0 && num < rest && at->list > begin) break; // a list is cut where it is alone
        own[list] = (uint32_t)used;
        used += num;
        own[list + 1] = (uint32_t)used;
        if (num > 0) add_run(runs, &num_runs, first[list] + at->bundle, num);
        left -= num;
        at->bundle = num < rest ? at->bundle + num : 0;
        if (num < rest) break;
        at->list++;
    }
    packing->out->range.lists = all->lists + begin;
    packing->out->range.num = at->list - begin + (at->bundle > 0);
    return num_runs;
}

enum bsw_status bsw_device_list_block_next(struct bsw_device_engine *engine,
                                           const struct bsw_device_shard *shard,
                                           const struct bsw_device_list_range *all,
                                           struct bsw_device_list_cursor *at, unsigned place,
                                           struct bsw_device_list_block *out, struct bsw_error *err)
{
    const struct packing packing = {engine, shard, place, out};
    struct bsw_buffer *order = &engine->block_orders[place];
    *out = (struct bsw_device_list_block){.range = {.order = &out->order, .groups = all->groups}};
    if (at->list == all->num) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(order, (all->order->num_lists + (size_t)1) * sizeof(uint32_t), err));
    BSW_TRY(bsw_buffer_reserve(&engine->block_runs, all->num * sizeof(struct run), err));
    struct run *runs = (struct run *)(void *)engine->block_runs.data;
    out->order.first_bundles = (uint32_t *)(void *)order->data;
    out->order.num_lists = all->order->num_lists;
    return pack(&packing, runs, take_lists(&packing, all, at, runs), err);
}
