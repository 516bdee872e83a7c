// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_refine.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/device/device_phase.h"
#include "kernels/gpu_lists/gpu_refine.h"

// Part of the free memory for groups of survivors, and what needs no more.
#define GROUPS_PART      8
#define AHEAD_PART       64 // what is refined ahead, which nothing else should have to make room for
#define MOST_HALF_BYTES  ((size_t)64 << 20)
#define MOST_GROUP_PAIRS ((size_t)1 << 26)
// Rows stay on the device only if this part of what is free then is left.
#define SPARE_PART 16
// Alignment of every array in a half.
#define ALIGNMENT ((size_t)16)
// Rows that a thread takes at once, and how many of them it asks for ahead of copying.
#define RANGE_ROWS 32
#define ROWS_AHEAD 8

// ---- buffers ----

// Where the arrays of a group lie in a half; offsets in bytes. Values come back, the rest is sent.
struct group_layout {
    size_t vectors, norms, pairs, rows, upload_bytes, values, bytes;
};

// row_bytes: 0 where rows need not be sent.
static struct group_layout lay_out(const struct bsw_device_refiner *refiner, size_t num_queries,
                                   size_t num_pairs, size_t row_bytes)
{
    struct group_layout at;
    size_t total = 0;
    at.vectors =
        bsw_place_array(num_queries * refiner->needs.dims * sizeof(double), ALIGNMENT, &total);
    at.norms = bsw_place_array(num_queries * sizeof(double), ALIGNMENT, &total);
    at.pairs = bsw_place_array(num_pairs * sizeof(struct bsw_device_pair), ALIGNMENT, &total);
    at.rows = bsw_place_array(num_pairs * row_bytes, ALIGNMENT, &total);
    at.upload_bytes = total;
    at.values = bsw_place_array(num_pairs * sizeof(double), ALIGNMENT, &total);
    at.bytes = total;
    return at;
}

// The pairs that fit beside as many queries as a group may have.
static size_t pairs_within(const struct bsw_device_refiner *refiner, size_t row_bytes)
{
    size_t fixed = lay_out(refiner, refiner->group_queries, 0, 0).bytes + 3 * ALIGNMENT;
    size_t pair = sizeof(struct bsw_device_pair) + row_bytes + sizeof(double);
    if (fixed + pair > refiner->half_bytes) return 0;
    size_t pairs = (refiner->half_bytes - fixed) / pair;
    return pairs < MOST_GROUP_PAIRS ? pairs : MOST_GROUP_PAIRS;
}

// What a half of all survivors of a batch would take, or more than it may.
static size_t wanted_bytes(const struct bsw_device_refiner *refiner)
{
    const struct bsw_device_refine_needs *needs = &refiner->needs;
    if (needs->keep > MOST_HALF_BYTES / needs->max_queries) return SIZE_MAX;
    size_t bytes =
        lay_out(refiner, needs->max_queries, needs->max_queries * needs->keep, refiner->row_bytes)
            .bytes;
    return bytes + 4 * ALIGNMENT;
}

// All that is wanted, or else half of a half for queries, so that rows have room too.
static void share_half(struct bsw_device_refiner *refiner, size_t free_bytes)
{
    const struct bsw_device_refine_needs *needs = &refiner->needs;
    size_t wanted = wanted_bytes(refiner), half = free_bytes / GROUPS_PART / 2;
    if (half > MOST_HALF_BYTES) half = MOST_HALF_BYTES;
    refiner->half_bytes = (half < wanted ? half : wanted) / ALIGNMENT * ALIGNMENT;
    size_t queries = refiner->half_bytes / 2 / ((needs->dims + 1) * sizeof(double));
    refiner->group_queries = half >= wanted || queries > needs->max_queries ? needs->max_queries
                             : queries < 1                                  ? 1
                                                                            : queries;
}

// Behind the halves: queries as given, and what is taken of their lists.
static void plan_ahead(size_t free_bytes, struct bsw_device_refiner *out)
{
    const struct bsw_device_refine_needs *needs = &out->needs;
    size_t total = 2 * out->half_bytes, before = total;
    if (needs->take == 0 || needs->take > MOST_HALF_BYTES / needs->max_queries) return;
    out->ahead_vectors =
        bsw_place_array(needs->max_queries * needs->dims * sizeof(float), ALIGNMENT, &total);
    out->ahead_survivors = bsw_place_array(
        needs->max_queries * needs->take * sizeof(struct bsw_survivor), ALIGNMENT, &total);
    total = (total + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (total - before <= free_bytes / AHEAD_PART) out->ahead_bytes = total - before;
}

static int plan_memory(const struct bsw_device_refine_needs *needs, size_t free_bytes,
                       struct bsw_device_refiner *out)
{
    *out = (struct bsw_device_refiner){
        .needs = *needs, .row_bytes = needs->dims * bsw_vector_type_bytes(needs->type)};
    share_half(out, free_bytes);
    plan_ahead(free_bytes, out);
    return pairs_within(out, out->row_bytes) > 0;
}

size_t bsw_device_refiner_bytes(const struct bsw_device_refine_needs *needs, size_t free_bytes)
{
    struct bsw_device_refiner planned;
    return plan_memory(needs, free_bytes, &planned) ? 2 * planned.half_bytes + planned.ahead_bytes
                                                    : 0;
}

int bsw_device_raw_rows_fit(size_t bytes, size_t free_bytes)
{
    return bytes <= free_bytes - free_bytes / SPARE_PART;
}

// Survivors of a turn in host memory; the second's lie behind all else.
static size_t ahead_turn_bytes(const struct bsw_device_refiner *refiner)
{
    const struct bsw_device_refine_needs *needs = &refiner->needs;
    return refiner->ahead_bytes > 0 ? needs->max_queries * needs->take * sizeof(struct bsw_survivor)
                                    : 0;
}

enum bsw_status bsw_device_refiner_open(bsw_device *device,
                                        const struct bsw_device_refine_needs *needs,
                                        struct bsw_device_refiner *out, struct bsw_error *err)
{
    size_t free_bytes;
    *out = (struct bsw_device_refiner){0};
    BSW_TRY(bsw_device_free_bytes(device, &free_bytes, err));
    if (!plan_memory(needs, free_bytes, out)) return BSW_OK;
    out->device = device;
    size_t bytes = 2 * out->half_bytes + out->ahead_bytes;
    enum bsw_status status = bsw_device_allocate(device, bytes, "survivors", &out->memory, err);
    if (status == BSW_OK)
        status = bsw_device_allocate_host(device, bytes + ahead_turn_bytes(out), "survivors",
                                          &out->staging, err);
    if (status != BSW_OK) bsw_device_refiner_close(out);
    return status;
}

void bsw_device_refiner_close(struct bsw_device_refiner *refiner)
{
    if (!refiner->device) return;
    bsw_device_free(refiner->device, &refiner->memory);
    bsw_device_free_host(refiner->device, &refiner->staging);
    refiner->device = NULL;
}

// ---- rows ----

// Rows of a shard on their way to `to` [count][row_bytes]: those of the survivors, or, without
// them, from `first` on.
struct row_list {
    const struct bsw_resident_shard *shard;
    const struct bsw_survivor *survivors;
    size_t first, count;
    unsigned char *to;
};

static uint32_t local_row_of(const struct row_list *list, size_t i)
{
    if (!list->survivors) return (uint32_t)(list->first + i);
    return list->survivors[i].row;
}

static enum bsw_status copy_range(const struct row_list *list, size_t first, size_t last,
                                  struct bsw_error *err)
{
    const struct bsw_raw_rows *raw = &list->shard->raw_rows;
    for (size_t i = first; i < last && i < first + ROWS_AHEAD; i++)
        bsw_raw_rows_prefetch(raw, local_row_of(list, i));
    for (size_t i = first; i < last; i++) {
        unsigned char *to = list->to + i * raw->row_bytes;
        const void *row;
        if (i + ROWS_AHEAD < last) bsw_raw_rows_prefetch(raw, local_row_of(list, i + ROWS_AHEAD));
        BSW_TRY(bsw_raw_rows_get(raw, local_row_of(list, i), list->shard->arrays.row_digests, to,
                                 &row, err));
        if (row != to) memcpy(to, row, raw->row_bytes);
    }
    return BSW_OK;
}

// The error of the first range that has one.
static enum bsw_status copy_rows(const struct row_list *list, int num_threads,
                                 struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
    size_t num_ranges = (list->count + RANGE_ROWS - 1) / RANGE_ROWS;
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
    for (size_t range = 0; range < num_ranges; range++) {
        struct bsw_error own;
        size_t first = range * RANGE_ROWS, left = list->count - first;
        size_t last = first + (left < RANGE_ROWS ? left : RANGE_ROWS);
        enum bsw_status result = copy_range(list, first, last, &own);
        if (result != BSW_OK) bsw_first_failure_note(&failure, range, result, &own);
    }
    return bsw_first_failure_report(&failure, err);
}

static enum bsw_status upload_all(struct bsw_device_refiner *refiner,
                                  const struct bsw_device_raw_shard *shard, struct bsw_error *err)
{
    size_t num_rows = (size_t)shard->host->shape.num_rows, bytes = refiner->row_bytes;
    size_t most = refiner->half_bytes / bytes, half = 0;
    if (most > BSW_BUNDLE_ROWS) most = most / BSW_BUNDLE_ROWS * BSW_BUNDLE_ROWS;
    if (shard->host->raw_rows.places) bsw_raw_rows_read_ahead(&shard->host->raw_rows, 0, num_rows);
    for (size_t first = 0; first < num_rows; first += most, half ^= 1) {
        struct row_list list = {.shard = shard->host,
                                .first = first,
                                .count = num_rows - first < most ? num_rows - first : most,
                                .to = refiner->staging + half * refiner->half_bytes};
        if (!shard->host->raw_rows.places)
            bsw_raw_rows_read_ahead(&shard->host->raw_rows, first, list.count);
        BSW_TRY(copy_rows(&list, refiner->needs.num_threads, err));
        BSW_TRY(bsw_device_wait(refiner->device, BSW_QUEUE_COPY, "raw rows", err));
        BSW_TRY(bsw_device_upload(refiner->device, BSW_QUEUE_COPY,
                                  shard->memory.data + first * bytes, list.to, list.count * bytes,
                                  err));
    }
    return bsw_device_wait(refiner->device, BSW_QUEUE_COPY, "raw rows", err);
}

enum bsw_status bsw_device_raw_shard_load(struct bsw_device_refiner *refiner,
                                          const struct bsw_resident_shard *host,
                                          struct bsw_device_raw_shard *out, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(LOAD);
    size_t free_bytes, bytes = (size_t)host->shape.num_rows * refiner->row_bytes;
    *out = (struct bsw_device_raw_shard){.host = host};
    BSW_TRY(bsw_device_free_bytes(refiner->device, &free_bytes, err));
    free_bytes -= free_bytes < refiner->promised_bytes ? free_bytes : refiner->promised_bytes;
    if (!bsw_device_raw_rows_fit(bytes, free_bytes)) return BSW_OK;
    BSW_TRY(bsw_device_allocate(refiner->device, bytes, "raw rows", &out->memory, err));
    refiner->raw_bytes += bytes;
    return upload_all(refiner, out, err);
}

void bsw_device_raw_shard_unload(struct bsw_device_refiner *refiner,
                                 struct bsw_device_raw_shard *shard)
{
    if (refiner->device) bsw_device_free(refiner->device, &shard->memory);
}

// ---- survivors ----

struct refine_run {
    struct bsw_device_refiner *refiner;
    const struct bsw_device_raw_shard *shard;
    const struct bsw_refine_table *table;
    const float *vectors; // of query 0 here
    const size_t *counts;
    size_t num_queries;
    size_t row_bytes, most_pairs; // row_bytes: 0 where the shard's rows are on the device
    struct bsw_survivor *survivors;
    size_t next, query, used; // the next survivor, its query, and how many before it are that one's
};

// Survivors [first, first + count) in half `half`.
struct refine_group {
    size_t half, first, count, first_query, num_queries;
    struct group_layout at;
};

// Pairs of the next survivors, as many as a group holds; the run goes on behind them.
static void take_pairs(struct refine_run *run, struct bsw_device_pair *pairs,
                       struct refine_group *group)
{
    group->first = run->next;
    group->count = group->num_queries = 0;
    for (; run->query < run->num_queries; run->query++, run->used = 0) {
        size_t left = run->counts[run->query] - run->used;
        size_t room = run->most_pairs - group->count;
        if (left == 0) continue;
        if (group->count == 0) group->first_query = run->query;
        size_t query = run->query - group->first_query;
        if (room == 0 || query >= run->refiner->group_queries) break;
        size_t count = left < room ? left : room;
        for (size_t i = 0; i < count; i++, group->count++, run->next++) {
            uint32_t row = run->survivors[run->next].row;
            pairs[group->count] = (struct bsw_device_pair){
                (uint32_t)query, run->row_bytes > 0 ? (uint32_t)group->count : row};
        }
        group->num_queries = query + 1;
        run->used += count;
        if (count < left) break;
    }
}

static void put_queries(const struct refine_run *run, const struct refine_group *group,
                        unsigned char *staging)
{
    size_t dims = run->refiner->needs.dims;
    double *vectors = (double *)(void *)(staging + group->at.vectors);
    double *norms = (double *)(void *)(staging + group->at.norms);
    run->table->to_double(BSW_VECTOR_FLOAT32, run->vectors + group->first_query * dims,
                          group->num_queries * dims, vectors);
    for (size_t q = 0; q < group->num_queries; q++)
        norms[q] = run->table->squared_norm(vectors + q * dims, dims);
}

// Everything of the next group to the staging half; a count of 0 if there is none.
static enum bsw_status fill_group(struct refine_run *run, struct refine_group *group,
                                  struct bsw_error *err)
{
    struct bsw_device_refiner *refiner = run->refiner;
    unsigned char *staging = refiner->staging + group->half * refiner->half_bytes;
    // Pairs first, at their place in the largest group: that of their own is not known yet.
    size_t most_at = lay_out(refiner, refiner->group_queries, run->most_pairs, 0).pairs;
    take_pairs(run, (struct bsw_device_pair *)(void *)(staging + most_at), group);
    group->at = lay_out(refiner, group->num_queries, group->count, run->row_bytes);
    if (group->count == 0) return BSW_OK;
    memmove(staging + group->at.pairs, staging + most_at,
            group->count * sizeof(struct bsw_device_pair));
    put_queries(run, group, staging);
    if (run->row_bytes == 0) return BSW_OK;
    struct row_list list = {.shard = run->shard->host,
                            .survivors = run->survivors + group->first,
                            .count = group->count,
                            .to = staging + group->at.rows};
    refiner->gathered_bytes += group->count * run->row_bytes;
    return copy_rows(&list, refiner->needs.num_threads, err);
}

static enum bsw_status launch_group(const struct refine_run *run, const struct refine_group *group,
                                    struct bsw_error *err)
{
    struct bsw_device_refiner *refiner = run->refiner;
    bsw_device *device = refiner->device;
    unsigned char *staging = refiner->staging + group->half * refiner->half_bytes;
    unsigned char *memory = refiner->memory.data + group->half * refiner->half_bytes;
    int is_gathered = run->row_bytes > 0;
    const struct bsw_device_raw_rows rows = {
        .type = refiner->needs.type,
        .dims = refiner->needs.dims,
        .num_rows = (uint32_t)(is_gathered ? group->count : run->shard->host->shape.num_rows),
        .numbers = is_gathered ? memory + group->at.rows : run->shard->memory.data};
    const struct bsw_device_vectors queries = {
        .num_queries = (uint32_t)group->num_queries,
        .numbers = (const double *)(void *)(memory + group->at.vectors),
        .norms = (const double *)(void *)(memory + group->at.norms)};
    BSW_TRY(
        bsw_device_upload(device, BSW_QUEUE_LINK, memory, staging, group->at.upload_bytes, err));
    int code = bsw_device_refine(refiner->needs.metric, &rows, &queries,
                                 (const struct bsw_device_pair *)(void *)(memory + group->at.pairs),
                                 group->count, (double *)(void *)(memory + group->at.values),
                                 bsw_device_stream(device, BSW_QUEUE_LINK));
    BSW_TRY(bsw_device_launched(device, code, "refinement", err));
    return bsw_device_download(device, BSW_QUEUE_LINK, staging + group->at.values,
                               memory + group->at.values, group->count * sizeof(double), err);
}

static enum bsw_status collect_group(const struct refine_run *run, const struct refine_group *group,
                                     struct bsw_error *err)
{
    struct bsw_device_refiner *refiner = run->refiner;
    unsigned char *staging = refiner->staging + group->half * refiner->half_bytes;
    const double *values = (const double *)(void *)(staging + group->at.values);
    if (group->count == 0) return BSW_OK;
    refiner->num_waits++;
    BSW_TRY(bsw_device_wait(refiner->device, BSW_QUEUE_LINK, "refinement", err));
    for (size_t i = 0; i < group->count; i++) run->survivors[group->first + i].value = values[i];
    return BSW_OK;
}

enum bsw_status bsw_device_refiner_run(struct bsw_device_refiner *refiner,
                                       const struct bsw_device_raw_shard *shard,
                                       const struct bsw_query_batch *batch, size_t first_query,
                                       size_t num_queries, const size_t *counts,
                                       struct bsw_scan_workspace *workspace,
                                       struct bsw_survivor *survivors, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(REFINE);
    double started = bsw_clock_seconds();
    size_t row_bytes = shard->memory.data ? 0 : refiner->row_bytes;
    struct refine_run run = {.refiner = refiner,
                             .shard = shard,
                             .table = workspace->refine,
                             .vectors = batch->vectors + first_query * refiner->needs.dims,
                             .counts = counts,
                             .num_queries = num_queries,
                             .row_bytes = row_bytes,
                             .most_pairs = pairs_within(refiner, row_bytes),
                             .survivors = survivors};
    struct refine_group groups[2] = {{.half = 0}, {.half = 1}};
    for (size_t half = 0;; half ^= 1) { // the other half is on the device meanwhile
        BSW_TRY(fill_group(&run, &groups[half], err));
        BSW_TRY(collect_group(&run, &groups[half ^ 1], err));
        if (groups[half].count == 0) break;
        BSW_TRY(launch_group(&run, &groups[half], err));
    }
    workspace->refine_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}

// ---- ahead ----

int bsw_device_refiner_goes_ahead(const struct bsw_device_refiner *refiner,
                                  const struct bsw_device_raw_shard *shard, size_t num_queries,
                                  size_t keep)
{
    return refiner->ahead_bytes > 0 && shard->memory.data &&
           num_queries <= refiner->needs.max_queries && keep <= BSW_MOST_LAST_KEEP;
}

// Queries go beside what is queued for the scan.
static enum bsw_status send_queries(const struct bsw_device_refiner *refiner, const float *vectors,
                                    size_t bytes, struct bsw_error *err)
{
    unsigned char *staging = refiner->staging + refiner->ahead_vectors;
    memcpy(staging, vectors, bytes);
    BSW_TRY(bsw_device_upload(refiner->device, BSW_QUEUE_COPY,
                              refiner->memory.data + refiner->ahead_vectors, staging, bytes, err));
    return bsw_device_follow(refiner->device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, err);
}

enum bsw_status bsw_device_refiner_ahead(struct bsw_device_refiner *refiner,
                                         const struct bsw_device_raw_shard *shard,
                                         const struct bsw_query_batch *batch, size_t first_query,
                                         const struct bsw_device_lists *lists, size_t keep,
                                         struct bsw_refined_lists *out, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(REFINE);
    _Static_assert(sizeof(struct bsw_survivor) == sizeof(struct bsw_device_survivor), "one form");
    const struct bsw_device_refine_needs *needs = &refiner->needs;
    size_t num = lists->num_queries, take = needs->take < keep ? needs->take : keep;
    unsigned char *memory = refiner->memory.data, *staging = refiner->staging;
    void *found = memory + refiner->ahead_survivors,
         *to = staging + (refiner->turn ? 2 * refiner->half_bytes + refiner->ahead_bytes
                                        : refiner->ahead_survivors);
    const struct bsw_device_raw_rows rows = {.type = needs->type,
                                             .dims = needs->dims,
                                             .num_rows = (uint32_t)shard->host->shape.num_rows,
                                             .numbers = shard->memory.data};
    BSW_TRY(send_queries(refiner, batch->vectors + first_query * needs->dims,
                         num * needs->dims * sizeof(float), err));
    int code = bsw_device_refine_lists(
        needs->metric, &rows, (const float *)(const void *)(memory + refiner->ahead_vectors), lists,
        (uint32_t)keep, (uint32_t)take, found, bsw_device_stream(refiner->device, BSW_QUEUE_SCAN));
    BSW_TRY(bsw_device_launched(refiner->device, code, "refinement", err));
    refiner->turn ^= 1;
    *out = (struct bsw_refined_lists){to, take};
    return bsw_device_download(refiner->device, BSW_QUEUE_SCAN, to, found,
                               num * take * sizeof(struct bsw_survivor), err);
}
