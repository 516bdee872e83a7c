// SPDX-License-Identifier: Apache-2.0
#include "shard/host/shard_scan.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codes/result_order.h"
#include "shard/host/query_gather.h"
#include "shard/host/scan_group.h"
#include "shard/host/shard_tiles.h"

_Alignas(BSW_ALIGNMENT_BYTES) const float bsw_zero_biases[BSW_TILE_ROWS];

// A sample of bundles gives the first limits: so many rows for each one kept, but no more than one
// bundle in 16.
#define SAMPLE_ROWS_A_KEPT 256
#define MIN_SAMPLE_STRIDE  16
#define MAX_SAMPLE_STRIDE  1024

#define PIECES_A_THREAD    16

void bsw_scan_workspace_init(struct bsw_scan_workspace *workspace, enum bsw_cpu_level level,
                             int num_threads)
{
    *workspace = (struct bsw_scan_workspace){.level = level,
                                             .plane_scan = bsw_plane_scan_table_get(level),
                                             .matrix_scan = bsw_matrix_scan_table_get(level),
                                             .select = bsw_select_table_get(level),
                                             .merge = bsw_merge_table_get(level),
                                             .refine = bsw_refine_table_get(level),
                                             .table_scan = bsw_table_scan_table_get(level),
                                             .num_threads = num_threads,
                                             .budget_bytes = BSW_SCAN_BUDGET_BYTES};
}

void bsw_scan_workspace_deinit(struct bsw_scan_workspace *workspace)
{
    struct bsw_buffer *buffers[] = {
        &workspace->buffers, &workspace->dots,         &workspace->counts,
        &workspace->scratch, &workspace->offsets,      &workspace->queries,
        &workspace->tiles,   &workspace->outputs,      &workspace->constants,
        &workspace->stage,   &workspace->slacks,       &workspace->components,
        &workspace->guesses, &workspace->places,       &workspace->stopped,
        &workspace->tables,  &workspace->multipliers,  &workspace->makers,
        &workspace->bounds,  &workspace->bound_scales, &workspace->bound_threads,
    };
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) bsw_buffer_deinit(buffers[i]);
    bsw_queue_scratch_deinit(&workspace->queue_scratch);
}

void bsw_candidate_lists_deinit(struct bsw_candidate_lists *lists)
{
    bsw_buffer_deinit(&lists->items);
    bsw_buffer_deinit(&lists->counts);
}

enum bsw_status bsw_candidate_lists_reserve(struct bsw_candidate_lists *lists, size_t num_queries,
                                            size_t keep, struct bsw_error *err)
{
    size_t bytes;
    if (!bsw_multiply_size(num_queries * sizeof(uint64_t), keep, &bytes))
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%zu candidates a query are too many", keep);
    lists->num_queries = num_queries;
    lists->keep = keep;
    BSW_TRY(bsw_buffer_reserve(&lists->items, bytes, err));
    return bsw_buffer_reserve(&lists->counts, num_queries * sizeof(size_t), err);
}

static const char *const scan_names[] = {
    [BSW_SCAN_AUTO] = "auto",
    [BSW_SCAN_PLANES] = "planes",
    [BSW_SCAN_MATRIX] = "matrix",
    [BSW_SCAN_PROGRESSIVE_PLANES] = "progressive-planes",
    [BSW_SCAN_PROGRESSIVE_MATRIX] = "progressive-matrix",
    [BSW_SCAN_TABLES] = "tables",
};

const char *bsw_scan_name(enum bsw_scan_kind kind)
{
    return scan_names[kind];
}

enum bsw_scan_kind bsw_scan_kind_of(const char *name)
{
    size_t kind = sizeof scan_names / sizeof scan_names[0] - 1;
    while (kind > 0 && strcmp(name, scan_names[kind]) != 0) kind--;
    return (enum bsw_scan_kind)kind;
}

// ---- what a group needs ----

static void choose_scan(struct bsw_scan_group *group)
{
    enum bsw_scan_kind kind = group->workspace->scan;
    if (group->shard->shape.has_tables) {
        group->workspace->used = BSW_SCAN_TABLES;
        return;
    }
    int has_stage = group->shard->stage_dims > 0;
    group->is_matrix = kind == BSW_SCAN_AUTO
                           ? group->num_queries >= group->tuning.matrix_from_queries
                           : bsw_scan_is_matrix(kind);
    group->is_matrix |= group->shard->shape.has_bytes;
    group->is_staged_always = bsw_scan_is_progressive(kind);
    // Queues want every key.
    has_stage &= group->workspace->queue.length == 0;
    group->is_staged = has_stage && (kind == BSW_SCAN_AUTO || group->is_staged_always);
    group->stage.dims = group->is_staged ? group->shard->stage_dims : 0;
    if (group->is_matrix)
        group->workspace->used = group->is_staged ? BSW_SCAN_PROGRESSIVE_MATRIX : BSW_SCAN_MATRIX;
    else
        group->workspace->used = group->is_staged ? BSW_SCAN_PROGRESSIVE_PLANES : BSW_SCAN_PLANES;
}

// Queries as components and constants, which the matrix scan and stages want.
static enum bsw_status plan_queries(struct bsw_scan_group *group, struct bsw_error *err)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    size_t queries = group->num_queries, dims = group->shard->shape.layout.padded_dims;
    BSW_TRY(bsw_buffer_reserve(&workspace->components, queries * dims, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->constants, queries * sizeof(int32_t), err));
    return bsw_buffer_reserve(&workspace->stage, bsw_scan_stage_bytes(queries), err);
}

static enum bsw_status plan_matrix(struct bsw_scan_group *group, struct bsw_error *err)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    size_t lists = (size_t)workspace->num_threads * group->num_queries;
    group->tile_bytes =
        bsw_matrix_tile_bytes(group->shard->shape.layout.padded_dims, bsw_matrix_step(group));
    BSW_TRY(bsw_buffer_reserve(&workspace->tiles,
                               (size_t)workspace->num_threads * group->tile_bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->outputs, lists * sizeof(struct bsw_matrix_output), err));
    BSW_TRY(bsw_buffer_reserve(&workspace->slacks, lists * sizeof(float), err));
    group->tiles = workspace->tiles.data;
    group->outputs = (struct bsw_matrix_output *)(void *)workspace->outputs.data;
    group->slacks = (float *)(void *)workspace->slacks.data;
    return BSW_OK;
}

static enum bsw_status plan_planes(struct bsw_scan_group *group, struct bsw_error *err)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    size_t numbers = (size_t)workspace->num_threads * BSW_TILE_ROWS;
    BSW_TRY(bsw_buffer_reserve(&workspace->dots, numbers * sizeof(int32_t), err));
    BSW_TRY(bsw_buffer_reserve(&workspace->places, numbers * sizeof(uint32_t), err));
    group->dots = (int32_t *)(void *)workspace->dots.data;
    group->places = (uint32_t *)(void *)workspace->places.data;
    return BSW_OK;
}

static enum bsw_status plan_group(struct bsw_scan_group *group, size_t num_queries,
                                  struct bsw_error *err)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    size_t threads = (size_t)workspace->num_threads, bytes;
    group->capacity = bsw_running_best_capacity(
        group->keep, bsw_queue_block_rows(&workspace->queue, BSW_TILE_ROWS));
    if (!bsw_multiply_size(threads * group->capacity, sizeof(uint64_t), &bytes)) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%zu candidates a query are too many",
                        group->keep);
    }
    size_t table_bytes = group->shard->shape.has_tables ? bsw_scan_tables_bytes(group->batch) : 0;
    size_t fit = workspace->budget_bytes / (bytes + table_bytes);
    group->num_queries = fit < 1 ? 1 : fit < num_queries ? fit : num_queries;
    group->tuning = bsw_scan_tuning_of(workspace->level, &group->shard->shape.layout);
    choose_scan(group);
    size_t list_bytes = threads * group->num_queries * sizeof(struct bsw_running_best);
    BSW_TRY(bsw_buffer_reserve(&workspace->offsets, list_bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->buffers, group->num_queries * bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->scratch, 4 * bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->guesses, group->num_queries * sizeof(uint32_t), err));
    BSW_TRY(bsw_buffer_reserve(&workspace->stopped, threads * sizeof(uint64_t), err));
    if (group->is_matrix || group->is_staged) BSW_TRY(plan_queries(group, err));
    BSW_TRY(group->shard->shape.has_tables ? bsw_scan_tables_plan(group, err)
            : group->is_matrix             ? plan_matrix(group, err)
                                           : plan_planes(group, err));
    group->lists = (struct bsw_running_best *)(void *)workspace->offsets.data;
    group->scratch = (uint64_t *)(void *)workspace->scratch.data;
    group->stopped = (uint64_t *)(void *)workspace->stopped.data;
    memset(group->stopped, 0, threads * sizeof(uint64_t));
    return workspace->queue.length > 0 ? bsw_queue_plan(group, err) : BSW_OK;
}

// Raw components are what the kernel wants but for their alignment.
static void copy_queries(struct bsw_scan_group *group)
{
    const struct bsw_query_batch *batch = group->batch;
    int8_t *components = (int8_t *)group->workspace->components.data;
    memcpy(components, batch->words + group->first_query * batch->query_words,
           group->num_queries * batch->query_words * sizeof *batch->words);
    group->matrix = (struct bsw_matrix_queries){.num_queries = group->num_queries,
                                                .components = components,
                                                .constants = batch->constants + group->first_query,
                                                .factor = batch->factor};
}

static void unpack_queries(struct bsw_scan_group *group)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    const struct bsw_query_batch *batch = group->batch;
    const struct bsw_code_layout *layout = &group->shard->shape.layout;
    int8_t *components = (int8_t *)workspace->components.data;
    int32_t *constants = (int32_t *)(void *)workspace->constants.data;
    const float *scales = batch->scales + group->first_query;
    for (size_t q = 0; q < group->num_queries; q++) {
        workspace->matrix_scan->unpack_query(
            layout, batch->words + (group->first_query + q) * batch->query_words, batch->query_bits,
            components + q * layout->padded_dims, &constants[q]);
    }
    group->matrix = (struct bsw_matrix_queries){.num_queries = group->num_queries,
                                                .components = components,
                                                .constants = constants,
                                                .scales = scales};
    if (group->is_staged)
        bsw_scan_stage_init(group->shard, batch->query_bits, group->num_queries, components, scales,
                            workspace->stage.data, &group->stage);
}

// ---- scanning ----

static void reset_lists(const struct bsw_scan_group *group, const uint32_t *limits)
{
    uint64_t *items = (uint64_t *)(void *)group->workspace->buffers.data;
    size_t num_lists = (size_t)group->workspace->num_threads * group->num_queries;
    for (size_t i = 0; i < num_lists; i++, items += group->capacity) {
        bsw_running_best_init(&group->lists[i], items, group->capacity, group->keep);
        if (limits) group->lists[i].limit = limits[i % group->num_queries];
    }
}

// All bundles, every stride-th of them (1: all, in tiles), into the threads' lists. Threads take
// piece after piece, so that a slow core does not keep the others waiting; a thread's rows still
// ascend, as its lists want.
static void scan_parts(const struct bsw_scan_group *group, size_t stride)
{
    size_t num_threads = (size_t)group->workspace->num_threads;
    size_t pieces = num_threads > 1 ? num_threads * PIECES_A_THREAD : 1, next = 0;
    size_t step = group->is_matrix ? bsw_matrix_step(group) : bsw_planes_step(group);
#pragma omp parallel num_threads(group->workspace->num_threads)
    {
        size_t thread = (size_t)omp_get_thread_num();
        for (;;) {
            struct bsw_scan_run run = {.step = step, .advance = step};
            size_t piece;
#pragma omp atomic capture
            piece = next++;
            if (piece >= pieces) break;
            bsw_resident_shard_part(group->shard, piece, pieces, &run.first, &run.last);
            if (stride > 1) {
                run.first = (run.first + stride - 1) / stride * stride;
                run.step = 1;
                run.advance = stride;
            }
            if (group->shard->shape.has_tables)
                bsw_scan_tables(group, thread, run);
            else if (group->is_matrix)
                bsw_scan_matrix(group, thread, run);
            else
                bsw_scan_planes(group, thread, run);
        }
    }
}

// The best `keep` of all threads' lists of a query, in any order, in the thread's scratch.
static uint64_t *gather_query(const struct bsw_scan_group *group, size_t query, size_t thread,
                              size_t keep, size_t *num)
{
    const struct bsw_select_table *select = group->workspace->select;
    uint64_t *all = group->scratch + thread * 4 * group->capacity;
    *num = 0;
    for (size_t t = 0; t < (size_t)group->workspace->num_threads; t++) {
        const struct bsw_running_best *list = &group->lists[t * group->num_queries + query];
        memcpy(all + *num, list->items, list->count * sizeof *all);
        *num = select->keep_best(all, *num + list->count, keep, all + 2 * group->capacity);
    }
    return all;
}

// ---- the first limits ----

// How many of `rows` rows drawn from the shard's to look at for a score that, nearly always, at
// least `keep` rows of the shard reach: what is expected and three standard deviations.
static size_t sample_rank(double keep, double share)
{
    double expected = keep * share;
    return (size_t)ceil(expected + 3 * sqrt(expected) + 3);
}

// The stride of the sample, or 0 if none is worth while; *rank: which of its scores.
static size_t plan_sample(const struct bsw_scan_group *group, size_t *rank)
{
    double rows = (double)group->shard->shape.num_rows, keep = (double)group->keep;
    double wanted = rows / (SAMPLE_ROWS_A_KEPT * keep);
    size_t stride = wanted < MIN_SAMPLE_STRIDE   ? MIN_SAMPLE_STRIDE
                    : wanted > MAX_SAMPLE_STRIDE ? MAX_SAMPLE_STRIDE
                                                 : (size_t)wanted;
    *rank = sample_rank(keep, 1.0 / (double)stride);
    return *rank < group->keep && (double)(*rank * stride) < rows / 2 ? stride : 0;
}

// guesses[q]: the rank-th best score of the sample, but no less than limits[q].
static void guess_limits(const struct bsw_scan_group *group, size_t stride, size_t rank,
                         const uint32_t *limits, uint32_t *guesses)
{
    struct bsw_scan_group sample = *group;
    sample.keep = rank;
    sample.is_staged = 0; // there are no limits yet
    reset_lists(&sample, limits);
    scan_parts(&sample, stride);
#pragma omp parallel for schedule(static) num_threads(group->workspace->num_threads)
    for (size_t q = 0; q < group->num_queries; q++) {
        size_t num;
        const uint64_t *best = gather_query(group, q, (size_t)omp_get_thread_num(), rank, &num);
        uint64_t worst = UINT64_MAX;
        for (size_t i = 0; i < num; i++) worst = best[i] < worst ? best[i] : worst;
        guesses[q] = num < rank ? 0 : bsw_candidate_score(worst);
        if (limits && limits[q] > guesses[q]) guesses[q] = limits[q];
    }
}

// Scans the group from the limits on; the best of every query, sorted, to its place.
static void scan_group(struct bsw_scan_group *group, const uint32_t *limits, uint64_t *items,
                       size_t *counts)
{
    reset_lists(group, limits);
    if (group->workspace->queue.length > 0)
        bsw_queue_scan(group);
    else
        scan_parts(group, 1);
#pragma omp parallel for schedule(dynamic, 8) num_threads(group->workspace->num_threads)
    for (size_t q = 0; q < group->num_queries; q++) {
        uint64_t *all =
            gather_query(group, q, (size_t)omp_get_thread_num(), group->keep, &counts[q]);
        group->workspace->merge->sort_candidates(all, counts[q], all + 2 * group->capacity);
        memcpy(items + q * group->keep, all, counts[q] * sizeof *all);
    }
}

static enum bsw_status scan_queries(const struct bsw_resident_shard *shard,
                                    const struct bsw_query_batch *batch, size_t first_query,
                                    size_t num_queries, const uint32_t *limits, size_t keep,
                                    int may_guess, struct bsw_scan_workspace *workspace,
                                    struct bsw_candidate_lists *out, struct bsw_error *err);

// ---- queries whose guess was too high ----

// The same queries again, side by side, from their own limits on.
static enum bsw_status scan_again(const struct bsw_scan_group *group, const uint32_t *failed,
                                  size_t num_failed, const uint32_t *limits, uint64_t *items,
                                  size_t *counts, struct bsw_error *err)
{
    struct bsw_candidate_lists lists = {0};
    struct bsw_query_gather again = {0};
    uint32_t *own_limits = NULL;
    enum bsw_scan_kind used = group->workspace->used;
    enum bsw_status status =
        bsw_query_gather_run(group->batch, group->first_query, failed, num_failed, &again, err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&own_limits, num_failed, sizeof *own_limits, "limits", err);
    for (size_t i = 0; i < num_failed && limits && status == BSW_OK; i++)
        own_limits[i] = limits[failed[i]];
    if (status == BSW_OK)
        status = scan_queries(group->shard, &again.batch, 0, num_failed, own_limits, group->keep, 0,
                              group->workspace, &lists, err);
    for (size_t i = 0; i < num_failed && status == BSW_OK; i++) {
        const uint64_t *list = bsw_candidate_list(&lists, i, &counts[failed[i]]);
        memcpy(items + failed[i] * group->keep, list, counts[failed[i]] * sizeof *list);
    }
    group->workspace->num_rescanned += num_failed;
    group->workspace->used = used;
    bsw_candidate_lists_deinit(&lists);
    bsw_query_gather_deinit(&again);
    bsw_free(&own_limits);
    return status;
}

// Fewer rows than wanted reach a guess above the query's own limit: rare, and then the sample was
// no picture of the shard.
static enum bsw_status repair(const struct bsw_scan_group *group, const uint32_t *limits,
                              const uint32_t *guesses, uint64_t *items, size_t *counts,
                              struct bsw_error *err)
{
    uint32_t *failed;
    size_t num_failed = 0;
    BSW_TRY(bsw_allocate(&failed, group->num_queries, sizeof *failed, "queries to repeat", err));
    for (size_t q = 0; q < group->num_queries; q++) {
        int was_raised = guesses[q] > (limits ? limits[q] : 0);
        if (was_raised && counts[q] < group->keep) failed[num_failed++] = (uint32_t)q;
    }
    enum bsw_status status = BSW_OK;
    if (num_failed > 0) status = scan_again(group, failed, num_failed, limits, items, counts, err);
    bsw_free(&failed);
    return status;
}

static void count_work(const struct bsw_scan_group *group, size_t stride)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    for (size_t t = 0; t < (size_t)workspace->num_threads; t++)
        workspace->num_stopped += group->stopped[t];
    workspace->num_pairs += (uint64_t)group->shard->shape.num_rows * group->num_queries;
    workspace->scanned_bytes += group->shard->scan_bytes;
    if (stride > 0) workspace->scanned_bytes += group->shard->scan_bytes / stride;
}

static enum bsw_status scan_queries(const struct bsw_resident_shard *shard,
                                    const struct bsw_query_batch *batch, size_t first_query,
                                    size_t num_queries, const uint32_t *limits, size_t keep,
                                    int may_guess, struct bsw_scan_workspace *workspace,
                                    struct bsw_candidate_lists *out, struct bsw_error *err)
{
    struct bsw_scan_group group = {
        .shard = shard, .batch = batch, .workspace = workspace, .keep = keep};
    BSW_TRY(bsw_candidate_lists_reserve(out, num_queries, keep, err));
    BSW_TRY(plan_group(&group, num_queries, err));
    uint64_t *items = (uint64_t *)(void *)out->items.data;
    size_t *counts = (size_t *)(void *)out->counts.data, most = group.num_queries, rank = 0;
    uint32_t *guesses = (uint32_t *)(void *)workspace->guesses.data;
    may_guess &= workspace->queue.length == 0;
    size_t stride = may_guess ? plan_sample(&group, &rank) : 0;
    for (size_t done = 0; done < num_queries; done += most) {
        const uint32_t *own = limits ? limits + done : NULL;
        group.first_query = first_query + done;
        group.num_queries = num_queries - done < most ? num_queries - done : most;
        if (shard->shape.has_tables)
            bsw_scan_tables_make(&group);
        else if (shard->shape.has_bytes)
            copy_queries(&group);
        else if (group.is_matrix || group.is_staged)
            unpack_queries(&group);
        if (stride > 0) guess_limits(&group, stride, rank, own, guesses);
        memset(group.stopped, 0, (size_t)workspace->num_threads * sizeof *group.stopped);
        scan_group(&group, stride > 0 ? guesses : own, items + done * keep, counts + done);
        count_work(&group, stride);
        if (stride > 0)
            BSW_TRY(repair(&group, own, guesses, items + done * keep, counts + done, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_shard_scan(const struct bsw_resident_shard *shard,
                               const struct bsw_query_batch *batch, size_t first_query,
                               size_t num_queries, const uint32_t *limits, size_t keep,
                               struct bsw_scan_workspace *workspace,
                               struct bsw_candidate_lists *out, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    if (keep > shard->shape.num_rows) keep = (size_t)shard->shape.num_rows;
    BSW_TRY(
        scan_queries(shard, batch, first_query, num_queries, limits, keep, 1, workspace, out, err));
    workspace->scan_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}
