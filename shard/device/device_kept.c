// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_kept.h"

#include <string.h>

#include "common/base/memory.h"
#include "common/device/device_phase.h"

#define ALIGNMENT ((size_t)256)
// What comes to the host at a time, at most, but always one list.
#define MOST_PACKED_ITEMS ((size_t)4 << 20)

// ---- memory ----

// Offsets of one span's arrays, in device memory or in the host's copy of the tables.
struct span_layout {
    size_t items, offsets, from, counts;
};

struct layout {
    size_t cuts, survivors, packed, packed_items, bytes;
};

static size_t place(size_t bytes, size_t *total)
{
    return bsw_place_array(bytes, ALIGNMENT, total);
}

static size_t list_items(const struct bsw_device_kept_needs *needs, size_t span)
{
    const struct bsw_shard_range *shards = &needs->spans[span];
    size_t rows = 0;
    for (size_t s = shards->first; s < shards->first + shards->num; s++)
        rows += (size_t)needs->shapes[s].num_rows;
    return needs->keep < rows ? needs->keep : rows;
}

static void place_tables(const struct bsw_device_kept_needs *needs, size_t *total,
                         struct span_layout *out)
{
    out->offsets = place((needs->max_queries + 1) * sizeof(uint64_t), total);
    out->from = place(needs->max_queries * sizeof(uint64_t), total);
    out->counts = place(needs->max_queries * sizeof(uint32_t), total);
}

static void place_cuts(const struct bsw_device_kept_needs *needs, size_t *total, struct layout *out)
{
    out->cuts = place(needs->max_queries * sizeof(struct bsw_cut), total);
    out->survivors = place(needs->max_queries * sizeof(uint32_t), total);
}

// spans: [num_spans], or NULL.
static void lay_out(const struct bsw_device_kept_needs *needs, struct span_layout *spans,
                    struct layout *out)
{
    size_t total = 0, most = 0;
    for (size_t i = 0; i < needs->num_spans; i++) {
        struct span_layout at;
        size_t items = list_items(needs, i);
        most = items > most ? items : most;
        at.items = place(needs->max_queries * items * sizeof(uint64_t), &total);
        place_tables(needs, &total, &at);
        if (spans) spans[i] = at;
    }
    place_cuts(needs, &total, out);
    size_t all = needs->max_queries * most;
    out->packed_items = all < MOST_PACKED_ITEMS ? all : MOST_PACKED_ITEMS;
    if (out->packed_items < most) out->packed_items = most;
    out->packed = place(out->packed_items * sizeof(uint64_t), &total);
    out->bytes = total;
}

size_t bsw_device_kept_bytes(const struct bsw_device_kept_needs *needs)
{
    struct layout layout;
    if (needs->num_spans == 0) return 0;
    lay_out(needs, NULL, &layout);
    return layout.bytes;
}

static size_t staging_bytes(const struct bsw_device_kept_needs *needs)
{
    struct span_layout at;
    struct layout cuts;
    size_t total = 0;
    for (size_t i = 0; i < needs->num_spans; i++) place_tables(needs, &total, &at);
    place_cuts(needs, &total, &cuts);
    return total;
}

static void point(struct bsw_device_kept *kept, const struct bsw_device_kept_needs *needs,
                  const struct span_layout *spans, const struct layout *layout)
{
    unsigned char *memory = kept->memory.data, *staging = kept->staging;
    struct layout host;
    size_t total = 0;
    for (size_t i = 0; i < needs->num_spans; i++) {
        struct span_layout at;
        place_tables(needs, &total, &at);
        kept->spans[i] = (struct bsw_device_kept_span){
            .kept = kept,
            .items = (uint64_t *)(void *)(memory + spans[i].items),
            .d_offsets = (uint64_t *)(void *)(memory + spans[i].offsets),
            .d_from = (uint64_t *)(void *)(memory + spans[i].from),
            .d_counts = (uint32_t *)(void *)(memory + spans[i].counts),
            .offsets = (uint64_t *)(void *)(staging + at.offsets),
            .from = (uint64_t *)(void *)(staging + at.from),
            .counts = (uint32_t *)(void *)(staging + at.counts)};
        kept->spans[i].first_row = needs->shapes[needs->spans[i].first].first_row;
        kept->spans[i].offsets[0] = 0;
    }
    place_cuts(needs, &total, &host);
    kept->cuts = (struct bsw_cut *)(void *)(staging + host.cuts);
    kept->survivors = (uint32_t *)(void *)(staging + host.survivors);
    kept->d_cuts = (struct bsw_cut *)(void *)(memory + layout->cuts);
    kept->d_survivors = (uint32_t *)(void *)(memory + layout->survivors);
    kept->packed = (uint64_t *)(void *)(memory + layout->packed);
    kept->packed_items = layout->packed_items;
}

static enum bsw_status allocate(struct bsw_device_kept *kept,
                                const struct bsw_device_kept_needs *needs,
                                struct span_layout *spans, struct bsw_error *err)
{
    struct layout layout;
    lay_out(needs, spans, &layout);
    BSW_TRY(
        bsw_allocate_zero(&kept->spans, needs->num_spans, sizeof *kept->spans, "candidates", err));
    BSW_TRY(bsw_device_allocate(kept->device, layout.bytes, "candidates", &kept->memory, err));
    BSW_TRY(bsw_device_allocate_host(kept->device, staging_bytes(needs), "candidates",
                                     &kept->staging, err));
    point(kept, needs, spans, &layout);
    return BSW_OK;
}

enum bsw_status bsw_device_kept_open(bsw_device *device, const struct bsw_device_kept_needs *needs,
                                     struct bsw_device_kept *out, struct bsw_error *err)
{
    struct span_layout *spans;
    *out = (struct bsw_device_kept){.device = NULL};
    if (needs->num_spans == 0) return BSW_OK;
    BSW_TRY(bsw_allocate(&spans, needs->num_spans, sizeof *spans, "candidates", err));
    out->device = device;
    enum bsw_status status = allocate(out, needs, spans, err);
    bsw_free(&spans);
    if (status != BSW_OK) bsw_device_kept_close(out);
    return status;
}

void bsw_device_kept_close(struct bsw_device_kept *kept)
{
    if (!kept->device) return;
    bsw_device_free(kept->device, &kept->memory);
    bsw_device_free_host(kept->device, &kept->staging);
    bsw_free(&kept->spans);
    kept->device = NULL;
}

// ---- lists ----

enum bsw_status bsw_device_kept_add(struct bsw_device_kept_span *span,
                                    const struct bsw_device_lists *lists, const uint32_t *counts,
                                    struct bsw_error *err)
{
    bsw_device *device = span->kept->device;
    size_t first = span->num_queries, num = lists->num_queries;
    for (size_t q = 0; q < num; q++) {
        span->from[first + q] = (uint64_t)q * lists->capacity;
        span->counts[first + q] = counts[q];
        span->offsets[first + q + 1] = span->offsets[first + q] + counts[q];
    }
    span->num_queries += num;
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, span->d_from + first, span->from + first,
                              num * sizeof(uint64_t), err));
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, span->d_counts + first, span->counts + first,
                              num * sizeof(uint32_t), err));
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, span->d_offsets + first,
                              span->offsets + first, num * sizeof(uint64_t), err));
    const struct bsw_device_ragged from = {lists->items, span->d_from + first,
                                           span->d_counts + first, (uint32_t)num};
    int code = bsw_device_pack_lists(&from, span->items, span->d_offsets + first,
                                     bsw_device_stream(device, BSW_QUEUE_SCAN));
    BSW_TRY(bsw_device_launched(device, code, "candidates", err));
    return bsw_device_follow(device, BSW_QUEUE_LINK, BSW_QUEUE_SCAN, err);
}

// How many of each list are within the cut, to kept->survivors.
static enum bsw_status count_survivors(const struct bsw_device_kept_span *span,
                                       const struct bsw_cut *cuts, struct bsw_error *err)
{
    const struct bsw_device_kept *kept = span->kept;
    bsw_device *device = kept->device;
    size_t num = span->num_queries;
    memcpy(kept->cuts, cuts, num * sizeof *cuts);
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_LINK, kept->d_cuts, kept->cuts, num * sizeof *cuts,
                              err));
    const struct bsw_device_ragged lists = {span->items, span->d_offsets, span->d_counts,
                                            (uint32_t)num};
    int code = bsw_device_count_survivors(&lists, span->first_row, kept->d_cuts, kept->d_survivors,
                                          bsw_device_stream(device, BSW_QUEUE_LINK));
    BSW_TRY(bsw_device_launched(device, code, "survivors", err));
    BSW_TRY(bsw_device_download(device, BSW_QUEUE_LINK, kept->survivors, kept->d_survivors,
                                num * sizeof(uint32_t), err));
    return bsw_device_wait(device, BSW_QUEUE_LINK, "survivors", err);
}

// The survivors of some lists, `most` places apart, to host memory.
static enum bsw_status fetch(const struct bsw_device_kept_span *span,
                             struct bsw_device_blocks *blocks, size_t first, size_t num,
                             size_t most, uint64_t *to, struct bsw_error *err)
{
    const struct bsw_device_kept *kept = span->kept;
    const struct bsw_device_ragged from = {span->items, span->d_offsets + first,
                                           kept->d_survivors + first, (uint32_t)num};
    int code = bsw_device_pack_lists(&from, kept->packed, span->d_from,
                                     bsw_device_stream(kept->device, BSW_QUEUE_LINK));
    const size_t bytes = most * sizeof(uint64_t);
    const struct bsw_device_rows rows = {bytes, num, bytes, bytes};
    BSW_TRY(bsw_device_launched(kept->device, code, "survivors", err));
    return bsw_device_blocks_download(blocks, BSW_QUEUE_LINK, to, kept->packed, &rows, "survivors",
                                      err);
}

enum bsw_status bsw_device_kept_take(struct bsw_device_kept_span *span,
                                     struct bsw_device_blocks *blocks, const struct bsw_cut *cuts,
                                     struct bsw_candidate_lists *out, struct bsw_error *err)
{
    const struct bsw_device_kept *kept = span->kept;
    size_t num = span->num_queries, most = 0;
    BSW_DEVICE_PHASE(LISTS);
    if (num > 0) BSW_TRY(count_survivors(span, cuts, err));
    for (size_t q = 0; q < num; q++) most = kept->survivors[q] > most ? kept->survivors[q] : most;
    BSW_TRY(bsw_candidate_lists_reserve(out, num, most, err));
    for (size_t q = 0; q < num; q++) ((size_t *)(void *)out->counts.data)[q] = kept->survivors[q];
    if (most == 0) return BSW_OK;
    // The places of lists from the scan are of no use any more.
    size_t step = kept->packed_items / most < num ? kept->packed_items / most : num;
    for (size_t q = 0; q < step; q++) span->from[q] = (uint64_t)q * most;
    BSW_TRY(bsw_device_upload(kept->device, BSW_QUEUE_LINK, span->d_from, span->from,
                              step * sizeof(uint64_t), err));
    for (size_t first = 0; first < num; first += step) {
        size_t count = num - first < step ? num - first : step;
        uint64_t *to = (uint64_t *)(void *)out->items.data + first * most;
        BSW_TRY(fetch(span, blocks, first, count, most, to, err));
    }
    return BSW_OK;
}
