// SPDX-License-Identifier: Apache-2.0
#include "shard/exact/device_screen.h"

#include "common/base/memory.h"
#include "common/codes/code_layout.h"

#define ALIGNMENT ((size_t)256)
#define MAX_PAUSE 16
// 512 MB of pairs: lists of very many neighbours need no more at a time.
#define MOST_SURVIVORS ((size_t)1 << 26)

// ---- memory ----

void bsw_device_screen_lay_out_upload(struct bsw_device_screen *screen, size_t *total)
{
    if (screen->is_on)
        screen->at.counts = bsw_place_array(sizeof *screen->counts, ALIGNMENT, total);
}

void bsw_device_screen_lay_out_queries(struct bsw_device_screen *screen, size_t num_queries,
                                       size_t num_items, size_t *total)
{
    if (!screen->is_on) return;
    screen->capacity = num_items < MOST_SURVIVORS ? num_items : MOST_SURVIVORS;
    screen->at.halves =
        bsw_place_array(num_queries * screen->padded_dims * sizeof(uint16_t), ALIGNMENT, total);
    screen->at.units = bsw_place_array(num_queries * sizeof(float), ALIGNMENT, total);
    screen->at.terms =
        bsw_place_array(num_queries * sizeof(struct bsw_half_query_term), ALIGNMENT, total);
    screen->at.worst_error = bsw_place_array(sizeof(uint32_t), ALIGNMENT, total);
    screen->at.pairs = bsw_place_array((size_t)screen->capacity * sizeof(struct bsw_device_pair),
                                       ALIGNMENT, total);
}

void bsw_device_screen_lay_out_block(struct bsw_device_screen *screen, size_t num_rows,
                                     size_t *total)
{
    if (!screen->is_on) return;
    screen->block_at.halves =
        bsw_place_array(num_rows * screen->padded_dims * sizeof(uint16_t), ALIGNMENT, total);
    screen->block_at.terms =
        bsw_place_array(num_rows * sizeof(struct bsw_half_row_term), ALIGNMENT, total);
}

enum bsw_status bsw_device_screen_open(struct bsw_device_screen *screen, bsw_device *device,
                                       struct bsw_error *err)
{
    if (!screen->is_on) return BSW_OK;
    return bsw_device_allocate_host(device, sizeof *screen->counts, "counts", &screen->counts, err);
}

void bsw_device_screen_close(struct bsw_device_screen *screen, bsw_device *device)
{
    bsw_device_free_host(device, &screen->counts);
}

// ---- scans ----

static struct bsw_half_queries queries_of(const struct bsw_device_screen *screen,
                                          unsigned char *memory)
{
    return (struct bsw_half_queries){
        .padded_dims = screen->padded_dims,
        .numbers = (uint16_t *)(void *)(memory + screen->at.halves),
        .units = (float *)(void *)(memory + screen->at.units),
        .terms = (struct bsw_half_query_term *)(void *)(memory + screen->at.terms),
        .worst_error = (uint32_t *)(void *)(memory + screen->at.worst_error)};
}

static struct bsw_half_rows rows_of(const struct bsw_device_screen *screen, unsigned char *block)
{
    return (struct bsw_half_rows){
        .padded_dims = screen->padded_dims,
        .numbers = (uint16_t *)(void *)(block + screen->block_at.halves),
        .terms = (struct bsw_half_row_term *)(void *)(block + screen->block_at.terms)};
}

enum bsw_status bsw_device_screen_put_queries(struct bsw_device_screen *screen,
                                              const struct bsw_device_screen_scan *scan,
                                              struct bsw_error *err)
{
    const struct bsw_half_queries halves = queries_of(screen, scan->memory);
    *screen->counts = (struct bsw_screen_counts){0};
    screen->overflows = 0;
    int code = bsw_half_pack_queries(scan->queries, screen->dims, &halves,
                                     bsw_device_stream(scan->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(scan->device, code, "queries", err);
}

enum bsw_status bsw_device_screen_put_block(struct bsw_device_screen *screen,
                                            const struct bsw_device_screen_scan *scan,
                                            struct bsw_error *err)
{
    const struct bsw_half_queries queries = queries_of(screen, scan->memory);
    const struct bsw_half_rows halves = rows_of(screen, scan->block);
    screen->takes_block = screen->pause_left == 0;
    if (!screen->takes_block) {
        screen->pause_left--;
        return BSW_OK;
    }
    int code = bsw_half_pack_rows(screen->metric, scan->rows, scan->raw, &queries, &halves,
                                  bsw_device_stream(scan->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(scan->device, code, "halves", err);
}

enum bsw_status bsw_device_screen_run(struct bsw_device_screen *screen,
                                      const struct bsw_device_screen_scan *scan,
                                      const struct bsw_device_part *part,
                                      const struct bsw_device_exact_lists *lists,
                                      struct bsw_error *err)
{
    const struct bsw_half_queries queries = queries_of(screen, scan->memory);
    const struct bsw_half_rows rows = rows_of(screen, scan->block);
    const struct bsw_screen_survivors survivors = {
        screen->capacity, (struct bsw_device_pair *)(void *)(scan->memory + screen->at.pairs),
        (struct bsw_screen_counts *)(void *)(scan->memory + screen->at.counts)};
    uint64_t bundles = ((uint64_t)part->last - part->first + part->step - 1) / part->step;
    screen->figures.pairs += bundles * BSW_BUNDLE_ROWS * lists->num_queries;
    int code = bsw_device_screened_scan(screen->metric, scan->rows, scan->raw, &rows, part,
                                        scan->queries, &queries, &survivors, lists,
                                        bsw_device_stream(scan->device, BSW_QUEUE_SCAN));
    BSW_TRY(bsw_device_launched(scan->device, code, "screen", err));
    return bsw_device_download(scan->device, BSW_QUEUE_SCAN, screen->counts, survivors.counts,
                               sizeof *screen->counts, err);
}

// ---- whether it is worth while ----

void bsw_device_screen_judge_block(struct bsw_device_screen *screen)
{
    uint64_t overflows =
        screen->counts->overflows + (screen->counts->num > screen->capacity ? 1 : 0);
    if (!screen->takes_block) return;
    if (overflows == screen->overflows) {
        screen->pause_last = 0;
        return;
    }
    screen->overflows = overflows;
    screen->pause_last = screen->pause_last == 0 ? 1 : 2 * screen->pause_last;
    if (screen->pause_last > MAX_PAUSE) screen->pause_last = MAX_PAUSE;
    screen->pause_left = screen->pause_last;
}

void bsw_device_screen_end_group(struct bsw_device_screen *screen)
{
    const struct bsw_screen_counts *counts = screen->counts;
    screen->figures.survivors +=
        counts->valued + (counts->num > screen->capacity ? 0 : counts->num);
    screen->figures.overflows += screen->overflows;
}
