// SPDX-License-Identifier: Apache-2.0
#include "shard/exact/device_neighbours.h"

#include <omp.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/codes/code_layout.h"
#include "kernels/device_scan/device_tuning.h"

// Alignment of every array: what cudaMalloc gives.
#define ALIGNMENT ((size_t)256)
// Lists and queries take no more than this part of the memory, if there have to be groups.
#define LISTS_PART 2
// Room of a list, as in device_plan.c; less with a screen, which takes over once a list is full.
#define ROOM_PER_KEPT       2
#define LEAST_ROOM          1024
#define LEAST_SCREENED_ROOM 128
// Copies of this size run at full speed.
#define MOST_BLOCK_BYTES ((size_t)64 << 20)
// Screens are for limits that one row of so many reaches: an exact value by itself costs about ten
// times what it costs where all rows get one.
#define SCREENED_A_KEPT 16

// ---- memory ----

static void lay_out_queries(struct bsw_device_neighbours *n, size_t num_queries,
                            struct bsw_device_neighbours_layout *out)
{
    size_t dims = n->needs.dims, total = 0;
    int is_integer = n->is_integer;
    out->limits = bsw_place_array(num_queries * sizeof(uint64_t), ALIGNMENT, &total);
    out->counts = bsw_place_array(num_queries * sizeof(uint32_t), ALIGNMENT, &total);
    out->norms = bsw_place_array(num_queries * sizeof(double), ALIGNMENT, &total);
    out->raw = bsw_place_array(num_queries * n->query_bytes, ALIGNMENT, &total);
    bsw_device_screen_lay_out_upload(&n->screen, &total);
    out->upload_bytes = total;
    out->numbers =
        bsw_place_array(is_integer ? 0 : num_queries * dims * sizeof(double), ALIGNMENT, &total);
    out->packed = bsw_place_array(
        is_integer ? num_queries * bsw_device_packed_dims((uint32_t)dims) : 0, ALIGNMENT, &total);
    out->terms = bsw_place_array(
        is_integer ? num_queries * sizeof(struct bsw_device_packed_term) : 0, ALIGNMENT, &total);
    out->scores = bsw_place_array(num_queries * n->capacity * sizeof(uint64_t), ALIGNMENT, &total);
    out->rows = bsw_place_array(num_queries * n->capacity * sizeof(uint32_t), ALIGNMENT, &total);
    bsw_device_screen_lay_out_queries(&n->screen, num_queries, num_queries * n->capacity, &total);
    out->bytes = total;
}

static void lay_out_block(struct bsw_device_neighbours *n, size_t num_rows,
                          struct bsw_device_row_block_layout *out)
{
    size_t total = 0;
    out->raw = bsw_place_array(num_rows * n->row_bytes, ALIGNMENT, &total);
    out->masks = bsw_place_array(num_rows / BSW_BUNDLE_ROWS * sizeof(uint32_t), ALIGNMENT, &total);
    out->norms = bsw_place_array(num_rows * sizeof(double), ALIGNMENT, &total);
    out->packed = bsw_place_array(
        n->is_integer ? num_rows * bsw_device_packed_dims(n->needs.dims) : 0, ALIGNMENT, &total);
    out->terms = bsw_place_array(
        n->is_integer ? num_rows * sizeof(struct bsw_device_packed_term) : 0, ALIGNMENT, &total);
    bsw_device_screen_lay_out_block(&n->screen, num_rows, &total);
    out->bytes = total;
}

static size_t whole_bundles(size_t rows)
{
    return bsw_num_bundles(rows) * BSW_BUNDLE_ROWS;
}

// As many rows as `bytes` hold, in whole bundles and no more than there are.
static void choose_block(struct bsw_device_neighbours *n, size_t bytes)
{
    size_t low = 1, high = bsw_num_bundles(n->needs.num_rows);
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        lay_out_block(n, middle * BSW_BUNDLE_ROWS, &n->block_at);
        if (n->block_at.bytes <= bytes)
            low = middle;
        else
            high = middle - 1;
    }
    n->block_rows = low * BSW_BUNDLE_ROWS;
    lay_out_block(n, n->block_rows, &n->block_at);
}

static enum bsw_status share_memory(struct bsw_device_neighbours *n, size_t free_bytes,
                                    struct bsw_error *err)
{
    size_t all_rows = whole_bundles(n->needs.num_rows);
    n->capacity = n->needs.keep + ROOM_PER_KEPT * n->needs.keep +
                  (n->screen.is_on ? LEAST_SCREENED_ROOM : LEAST_ROOM);
    if (n->capacity > all_rows) n->capacity = all_rows; // then none can overflow
    n->group_queries = n->needs.max_queries;
    lay_out_queries(n, n->group_queries, &n->at);
    while (n->at.bytes > free_bytes / LISTS_PART && n->group_queries > 1) {
        n->group_queries = (n->group_queries + 1) / 2;
        lay_out_queries(n, n->group_queries, &n->at);
    }
    lay_out_block(n, BSW_BUNDLE_ROWS, &n->block_at);
    size_t needed = n->at.bytes + 2 * n->block_at.bytes;
    if (needed > free_bytes) {
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY,
                        "%s: %zu bytes of device memory are free, %zu are needed at least: %zu for "
                        "one query's candidates, %zu for rows, block by block",
                        bsw_device_label(n->device), free_bytes, needed, n->at.bytes,
                        2 * n->block_at.bytes);
    }
    size_t block = (free_bytes - n->at.bytes) / 2;
    choose_block(n, block < MOST_BLOCK_BYTES ? block : MOST_BLOCK_BYTES);
    return BSW_OK;
}

static enum bsw_status allocate(struct bsw_device_neighbours *n, struct bsw_error *err)
{
    bsw_device *device = n->device;
    BSW_TRY(bsw_device_allocate(device, n->at.bytes, "queries", &n->queries, err));
    BSW_TRY(bsw_device_allocate_host(device, n->at.upload_bytes, "queries", &n->staging, err));
    BSW_TRY(bsw_device_allocate_host(device, n->group_queries * sizeof(uint32_t), "counts",
                                     &n->fetched, err));
    BSW_TRY(bsw_device_blocks_open(device, BSW_DEVICE_BLOCK_BYTES, &n->transfer, err));
    BSW_TRY(bsw_device_screen_open(&n->screen, device, err));
    for (int i = 0; i < 2; i++) {
        struct bsw_device_row_slot *slot = &n->slots[i];
        BSW_TRY(bsw_device_allocate(device, n->block_at.bytes, "block", &n->blocks[i], err));
        BSW_TRY(bsw_device_allocate_host(device, n->block_rows * n->row_bytes, "block", &slot->raw,
                                         err));
        BSW_TRY(bsw_device_allocate_host(device, n->block_rows * sizeof *slot->norms, "norms",
                                         &slot->norms, err));
        BSW_TRY(bsw_device_allocate_host(device,
                                         n->block_rows / BSW_BUNDLE_ROWS * sizeof *slot->masks,
                                         "masks", &slot->masks, err));
    }
    return BSW_OK;
}

static int is_integer(const struct bsw_device_neighbours_needs *needs)
{
    return needs->type == needs->query_type && needs->dims <= BSW_DEVICE_INTEGER_MAX_DIMS &&
           (needs->type == BSW_VECTOR_UINT8 || needs->type == BSW_VECTOR_INT8);
}

static struct bsw_device_screen choose_screen(const struct bsw_device_neighbours_needs *needs)
{
    return (struct bsw_device_screen){.is_on = !is_integer(needs) && needs->dims <= BSW_MAX_DIMS &&
                                               bsw_device_tuning_current()->has_exact_screen,
                                      .metric = needs->metric,
                                      .dims = needs->dims,
                                      .padded_dims = bsw_half_padded_dims(needs->dims)};
}

enum bsw_status bsw_device_neighbours_open(bsw_device *device,
                                           const struct bsw_device_neighbours_needs *needs,
                                           struct bsw_device_neighbours *out, struct bsw_error *err)
{
    size_t free_bytes;
    *out = (struct bsw_device_neighbours){
        .device = device,
        .needs = *needs,
        .is_integer = is_integer(needs),
        .row_bytes = needs->dims * bsw_vector_type_bytes(needs->type),
        .query_bytes = needs->dims * bsw_vector_type_bytes(needs->query_type)};
    if (needs->num_rows == 0) return BSW_OK;
    if (out->needs.keep > needs->num_rows) out->needs.keep = needs->num_rows;
    out->screen = choose_screen(needs);
    enum bsw_status status = bsw_device_free_bytes(device, &free_bytes, err);
    if (status == BSW_OK) status = share_memory(out, free_bytes, err);
    if (status == BSW_OK) status = allocate(out, err);
    if (status != BSW_OK) bsw_device_neighbours_close(out);
    return status;
}

void bsw_device_neighbours_close(struct bsw_device_neighbours *n)
{
    if (!n->device) return;
    bsw_device_free(n->device, &n->queries);
    bsw_device_free_host(n->device, &n->staging);
    bsw_device_free_host(n->device, &n->fetched);
    bsw_device_blocks_close(&n->transfer);
    bsw_device_screen_close(&n->screen, n->device);
    for (int i = 0; i < 2; i++) {
        bsw_device_free(n->device, &n->blocks[i]);
        bsw_device_free_host(n->device, &n->slots[i].raw);
        bsw_device_free_host(n->device, &n->slots[i].norms);
        bsw_device_free_host(n->device, &n->slots[i].masks);
    }
    n->device = NULL;
}

// ---- a group of queries ----

struct neighbours_group {
    struct bsw_device_neighbours *n;
    const struct bsw_device_row_source *source;
    struct bsw_device_exact_lists lists;
    struct bsw_device_list_run run;
    size_t next; // the first row not asked for
};

static struct bsw_device_vectors vectors_of(const struct bsw_device_neighbours *n,
                                            size_t num_queries)
{
    const unsigned char *memory = n->queries.data;
    return (struct bsw_device_vectors){
        .num_queries = (uint32_t)num_queries,
        .numbers = (const double *)(const void *)(memory + n->at.numbers),
        .norms = (const double *)(const void *)(memory + n->at.norms)};
}

// Numbers as scans take them.
static enum bsw_status convert_queries(struct bsw_device_neighbours *n, size_t count,
                                       struct bsw_error *err)
{
    unsigned char *memory = n->queries.data;
    bsw_stream stream = bsw_device_stream(n->device, BSW_QUEUE_SCAN);
    const struct bsw_device_raw_rows raw = {.type = n->needs.query_type,
                                            .dims = n->needs.dims,
                                            .num_rows = (uint32_t)count,
                                            .numbers = memory + n->at.raw};
    int code = n->is_integer
                   ? bsw_device_pack(
                         n->needs.metric, &raw, 1, memory + n->at.packed,
                         (struct bsw_device_packed_term *)(void *)(memory + n->at.terms), stream)
                   : bsw_device_widen(&raw, (double *)(void *)(memory + n->at.numbers), stream);
    return bsw_device_launched(n->device, code, "queries", err);
}

// Queries, limits of 0 and empty lists to the device.
static enum bsw_status send_queries(struct neighbours_group *group,
                                    const struct bsw_device_query_rows *queries, size_t first,
                                    size_t count, struct bsw_error *err)
{
    struct bsw_device_neighbours *n = group->n;
    unsigned char *memory = n->queries.data;
    memset(n->staging + n->at.limits, 0, count * sizeof(uint64_t));
    memset(n->staging + n->at.counts, 0, count * sizeof(uint32_t));
    memcpy(n->staging + n->at.norms, queries->norms + first, count * sizeof(double));
    memcpy(n->staging + n->at.raw, (const unsigned char *)queries->raw + first * n->query_bytes,
           count * n->query_bytes);
    if (n->screen.is_on)
        memset(n->staging + n->screen.at.counts, 0, sizeof(struct bsw_screen_counts));
    BSW_TRY(
        bsw_device_upload(n->device, BSW_QUEUE_SCAN, memory, n->staging, n->at.upload_bytes, err));
    BSW_TRY(convert_queries(n, count, err));
    if (!n->screen.is_on) return BSW_OK;
    const struct bsw_device_vectors vectors = vectors_of(n, count);
    const struct bsw_device_screen_scan scan = {
        .device = n->device, .memory = memory, .queries = &vectors};
    return bsw_device_screen_put_queries(&n->screen, &scan, err);
}

static void begin_lists(struct neighbours_group *group, size_t num_queries, uint32_t *counts)
{
    struct bsw_device_neighbours *n = group->n;
    unsigned char *memory = n->queries.data;
    memset(counts, 0, num_queries * sizeof *counts);
    group->lists =
        (struct bsw_device_exact_lists){.num_queries = (uint32_t)num_queries,
                                        .capacity = (uint32_t)n->capacity,
                                        .scores = (uint64_t *)(void *)(memory + n->at.scores),
                                        .rows = (uint32_t *)(void *)(memory + n->at.rows),
                                        .counts = (uint32_t *)(void *)(memory + n->at.counts),
                                        .limits = (uint64_t *)(void *)(memory + n->at.limits)};
    group->run = (struct bsw_device_list_run){.device = n->device,
                                              .lists = {.num_queries = group->lists.num_queries,
                                                        .capacity = group->lists.capacity,
                                                        .counts = group->lists.counts},
                                              .exact = &group->lists,
                                              .keep = n->needs.keep,
                                              .counts = counts,
                                              .blocks = &n->transfer,
                                              .fetched = n->fetched};
    bsw_device_list_run_begin(&group->run);
}

// ---- blocks ----

// The next block for a slot; nothing if there is none.
static void ask_for_block(struct neighbours_group *group, struct bsw_device_row_slot *slot)
{
    size_t left = group->n->needs.num_rows - group->next;
    slot->first = group->next;
    slot->count = left < group->n->block_rows ? left : group->n->block_rows;
    slot->failure.status = BSW_OK;
    group->next += slot->count;
}

// Part `part` of the slot's block; the error of the first rows that have one is kept.
static void read_part(const struct neighbours_group *group, struct bsw_device_row_slot *slot,
                      size_t part, size_t parts)
{
    size_t first = slot->count * part / parts, last = slot->count * (part + 1) / parts;
    struct bsw_error own;
    if (first == last) return;
    enum bsw_status status =
        group->source->read(group->source->context, slot->first + first, last - first,
                            slot->raw + first * group->n->row_bytes, &own);
    if (status != BSW_OK) bsw_first_failure_note(&slot->failure, part, status, &own);
}

static void read_block(const struct neighbours_group *group, struct bsw_device_row_slot *slot)
{
#pragma omp parallel num_threads(group->n->needs.num_threads)
    read_part(group, slot, (size_t)omp_get_thread_num(), (size_t)omp_get_num_threads());
}

static struct bsw_device_raw_rows raw_of(const struct bsw_device_neighbours *n, size_t i)
{
    return (struct bsw_device_raw_rows){.type = n->needs.type,
                                        .dims = n->needs.dims,
                                        .num_rows = (uint32_t)n->slots[i].count,
                                        .numbers = n->blocks[i].data + n->block_at.raw};
}

static struct bsw_device_exact_rows exact_rows_of(const struct bsw_device_neighbours *n, size_t i)
{
    const unsigned char *memory = n->blocks[i].data;
    return (struct bsw_device_exact_rows){
        .num_bundles = (uint32_t)bsw_num_bundles(n->slots[i].count),
        .first_row = (uint32_t)n->slots[i].first,
        .norms = (const double *)(const void *)(memory + n->block_at.norms),
        .masks = (const uint32_t *)(const void *)(memory + n->block_at.masks)};
}

// A block that has been read on its way to the device, and its norms on theirs back.
static enum bsw_status send_block(struct bsw_device_neighbours *n, size_t i, struct bsw_error *err)
{
    struct bsw_device_row_slot *slot = &n->slots[i];
    unsigned char *memory = n->blocks[i].data;
    const struct bsw_device_raw_rows raw = raw_of(n, i);
    double *norms = (double *)(void *)(memory + n->block_at.norms);
    if (slot->count == 0 || slot->failure.status != BSW_OK) return BSW_OK;
    BSW_TRY(bsw_device_upload(n->device, BSW_QUEUE_COPY, memory + n->block_at.raw, slot->raw,
                              slot->count * n->row_bytes, err));
    bsw_stream stream = bsw_device_stream(n->device, BSW_QUEUE_COPY);
    BSW_TRY(
        bsw_device_launched(n->device, bsw_device_row_norms(&raw, norms, stream), "norms", err));
    if (n->is_integer) {
        int code = bsw_device_pack(
            n->needs.metric, &raw, 0, memory + n->block_at.packed,
            (struct bsw_device_packed_term *)(void *)(memory + n->block_at.terms), stream);
        BSW_TRY(bsw_device_launched(n->device, code, "packing", err));
    }
    return bsw_device_download(n->device, BSW_QUEUE_COPY, slot->norms, norms,
                               slot->count * sizeof *slot->norms, err);
}

// A block's rows as the screen takes them for the queries that are there.
static enum bsw_status screen_block(struct bsw_device_neighbours *n, size_t i,
                                    struct bsw_error *err)
{
    if (!n->screen.is_on) return BSW_OK;
    const struct bsw_device_exact_rows rows = exact_rows_of(n, i);
    const struct bsw_device_raw_rows raw = raw_of(n, i);
    const struct bsw_device_screen_scan scan = {.device = n->device,
                                                .memory = n->queries.data,
                                                .block = n->blocks[i].data,
                                                .rows = &rows,
                                                .raw = &raw};
    return bsw_device_screen_put_block(&n->screen, &scan, err);
}

// Waits for a block to be on the device and sends its masks.
static enum bsw_status judge_block(const struct neighbours_group *group, size_t i,
                                   struct bsw_error *err)
{
    struct bsw_device_neighbours *n = group->n;
    struct bsw_device_row_slot *slot = &n->slots[i];
    size_t bytes = bsw_num_bundles(slot->count) * sizeof *slot->masks;
    BSW_TRY(bsw_first_failure_report(&slot->failure, err));
    BSW_TRY(bsw_device_wait(n->device, BSW_QUEUE_COPY, "rows to the device", err));
    memset(slot->masks, 0, bytes);
    BSW_TRY(group->source->judge(group->source->context, slot->first, slot->count, slot->norms,
                                 slot->masks, err));
    BSW_TRY(bsw_device_upload(n->device, BSW_QUEUE_SCAN, n->blocks[i].data + n->block_at.masks,
                              slot->masks, bytes, err));
    return screen_block(n, i, err);
}

struct block_scan {
    struct bsw_device_neighbours *n;
    const struct bsw_device_exact_lists *lists;
    const struct bsw_device_list_run *run;
    size_t i;
};

// Integers of one type.
static int launch_integers(const struct block_scan *scan, const struct bsw_device_exact_rows *rows,
                           const struct bsw_device_part *part)
{
    struct bsw_device_neighbours *n = scan->n;
    unsigned char *block = n->blocks[scan->i].data, *memory = n->queries.data;
    uint32_t padded = bsw_device_packed_dims(n->needs.dims);
    const struct bsw_device_packed packed = {
        padded, block + n->block_at.packed,
        (const struct bsw_device_packed_term *)(void *)(block + n->block_at.terms)};
    const struct bsw_device_packed queries = {
        padded, memory + n->at.packed,
        (const struct bsw_device_packed_term *)(void *)(memory + n->at.terms)};
    return bsw_device_exact_integer_scan(n->needs.metric, rows, &packed, part, &queries,
                                         (const double *)(void *)(memory + n->at.norms),
                                         scan->lists, bsw_device_stream(n->device, BSW_QUEUE_SCAN));
}

static enum bsw_status launch_scan(void *context, const struct bsw_device_part *part,
                                   const struct bsw_device_lists *counted, struct bsw_error *err)
{
    const struct block_scan *scan = context;
    struct bsw_device_neighbours *n = scan->n;
    const struct bsw_device_exact_rows rows = exact_rows_of(n, scan->i);
    const struct bsw_device_raw_rows raw = raw_of(n, scan->i);
    const struct bsw_device_vectors queries = vectors_of(n, scan->lists->num_queries);
    const struct bsw_device_screen_scan screened = {
        n->device, n->queries.data, n->blocks[scan->i].data, &rows, &raw, &queries};
    (void)counted; // the same counts
    if (n->screen.is_on && n->screen.takes_block &&
        scan->run->seen / SCREENED_A_KEPT >= n->needs.keep)
        return bsw_device_screen_run(&n->screen, &screened, part, scan->lists, err);
    int code = n->is_integer ? launch_integers(scan, &rows, part)
                             : bsw_device_exact_scan(n->needs.metric, &rows, &raw, part, &queries,
                                                     scan->lists,
                                                     bsw_device_stream(n->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(n->device, code, "scan", err);
}

// Scans block i with this thread while the others read the next one into its memory on the host,
// which is free by now. The device belongs to this thread: it is number 0 of the team.
static enum bsw_status scan_and_read(struct neighbours_group *group, size_t i,
                                     struct bsw_error *err)
{
    struct bsw_device_row_slot *slot = &group->n->slots[i], next = *slot;
    struct block_scan scan = {group->n, &group->lists, &group->run, i};
    size_t num_bundles = bsw_num_bundles(slot->count);
    enum bsw_status status = BSW_OK;
    ask_for_block(group, &next);
#pragma omp parallel num_threads(group->n->needs.num_threads)
    {
        size_t thread = (size_t)omp_get_thread_num(), threads = (size_t)omp_get_num_threads();
        if (thread == 0)
            status = bsw_device_list_run_scan(&group->run, num_bundles, launch_scan, &scan, err);
        if (threads == 1)
            read_part(group, &next, 0, 1);
        else if (thread > 0)
            read_part(group, &next, thread - 1, threads - 1);
    }
    *slot = next;
    if (status == BSW_OK && group->n->screen.is_on)
        bsw_device_screen_judge_block(&group->n->screen);
    return status;
}

// All of them are in block 0 since the first group.
static enum bsw_status scan_rows_here(struct neighbours_group *group, struct bsw_error *err)
{
    ask_for_block(group, &group->n->slots[0]);
    BSW_TRY(screen_block(group->n, 0, err));
    return scan_and_read(group, 0, err);
}

static enum bsw_status scan_rows(struct neighbours_group *group, struct bsw_error *err)
{
    struct bsw_device_neighbours *n = group->n;
    if (n->are_all_here) return scan_rows_here(group, err);
    for (int i = 0; i < 2; i++) {
        ask_for_block(group, &n->slots[i]);
        read_block(group, &n->slots[i]);
        if (i == 0) BSW_TRY(send_block(n, 0, err));
    }
    for (size_t i = 0; n->slots[i].count > 0; i ^= 1) {
        BSW_TRY(judge_block(group, i, err));
        BSW_TRY(send_block(n, i ^ 1, err));
        BSW_TRY(scan_and_read(group, i, err));
    }
    n->are_all_here = n->needs.rows_stay && n->block_rows >= n->needs.num_rows;
    return BSW_OK;
}

enum bsw_status bsw_device_neighbours_find(struct bsw_device_neighbours *n,
                                           const struct bsw_device_query_rows *queries,
                                           size_t num_queries,
                                           const struct bsw_device_row_source *source,
                                           uint64_t *scores, uint32_t *rows, uint32_t *counts,
                                           struct bsw_error *err)
{
    memset(counts, 0, num_queries * sizeof *counts);
    if (n->needs.num_rows == 0) return BSW_OK;
    for (size_t done = 0; done < num_queries; done += n->group_queries) {
        size_t left = num_queries - done;
        size_t count = left < n->group_queries ? left : n->group_queries;
        struct neighbours_group group = {.n = n, .source = source};
        BSW_TRY(send_queries(&group, queries, done, count, err));
        begin_lists(&group, count, counts + done);
        enum bsw_status status = scan_rows(&group, err);
        n->num_overflows += group.run.num_overflows;
        BSW_TRY(status);
        if (n->screen.is_on) bsw_device_screen_end_group(&n->screen);
        BSW_TRY(bsw_device_list_run_fetch_exact(&group.run, scores + done * n->needs.keep,
                                                rows + done * n->needs.keep, err));
    }
    return BSW_OK;
}
