// SPDX-License-Identifier: Apache-2.0
// Planes and bytes: many slots over a tile that is unpacked once for all, on int8 units; or few,
// one after another, on bit planes. Both have a progressive form (scan_stage.h).
#include <math.h>

#include "common/codes/metric.h"
#include "kernels/select/key_shift.h"
#include "kernels/select/select_quick.h"
#include "shard/host/host_engine.h"
#include "shard/host/shard_tiles.h"

#define SLOTS_AHEAD      16
#define STAGE_REST_TILES 16 // in full, after a stage that was no use, before the next try
// Finishing one row by planes costs as much as this many rows' share of what a full scan spends on
// the dimensions beyond the stage: lines of its own to fetch.
#define FINISH_FACTOR 96

// ---- queries ----

static int wants_components(const struct bsw_host_scan *scan)
{
    return scan->way.matrix_from != UINT32_MAX || scan->way.stage_dims > 0;
}

// Components and constants of all queries, as matrix_scan takes them.
static enum bsw_status unpack_queries(struct bsw_host_scan *scan, struct bsw_error *err)
{
    const struct bsw_query_batch *batch = scan->queries->batch;
    struct bsw_host_scratch *scratch = scan->scratch;
    size_t num = scan->queries->num_queries, first = scan->queries->first_query;
    BSW_TRY(bsw_buffer_reserve(&scratch->components, num * scan->padded_dims + 1, err));
    BSW_TRY(bsw_buffer_reserve(&scratch->constants, (num + 1) * sizeof(int32_t), err));
    int8_t *components = (int8_t *)scratch->components.data;
    int32_t *constants = (int32_t *)(void *)scratch->constants.data;
#pragma omp parallel for schedule(static) num_threads(scan->workspace->num_threads) if (num > 16)
    for (size_t q = 0; q < num; q++)
        scan->workspace->matrix_scan->unpack_query(
            &scan->shard.shape.layout, batch->words + (first + q) * batch->query_words,
            batch->query_bits, components + q * scan->padded_dims, &constants[q]);
    scan->components = components;
    scan->constants = constants;
    return BSW_OK;
}

// Bytes already; but rows of the batch need not be aligned as kernels want them.
static enum bsw_status copy_queries(struct bsw_host_scan *scan, struct bsw_error *err)
{
    const struct bsw_query_batch *batch = scan->queries->batch;
    size_t num = scan->queries->num_queries, first = scan->queries->first_query,
           bytes = num * batch->query_words * sizeof *batch->words;
    BSW_TRY(bsw_buffer_reserve(&scan->scratch->components, bytes + 1, err));
    memcpy(scan->scratch->components.data, batch->words + first * batch->query_words, bytes);
    scan->components = (const int8_t *)scan->scratch->components.data;
    scan->constants = batch->constants + first;
    return BSW_OK;
}

static enum bsw_status open_codes(struct bsw_host_scan *scan, struct bsw_error *err)
{
    const struct bsw_query_batch *batch = scan->queries->batch;
    size_t num = scan->queries->num_queries;
    if (scan->shard.shape.has_bytes) return copy_queries(scan, err);
    scan->scales = batch->scales ? batch->scales + scan->queries->first_query : NULL;
    if (wants_components(scan)) BSW_TRY(unpack_queries(scan, err));
    if (scan->way.stage_dims == 0) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&scan->scratch->stage, bsw_scan_stage_bytes(num) + 1, err));
    bsw_scan_stage_init(&scan->shard, batch->query_bits, num, scan->components, scan->scales,
                        scan->scratch->stage.data, &scan->stage);
    return BSW_OK;
}

// Those of the run's slots: as they lie, or gathered.
static struct bsw_matrix_queries queries_of_run(const struct bsw_host_scan *scan,
                                                const struct bsw_host_thread *thread)
{
    size_t dims = scan->padded_dims, num = thread->run.num_slots;
    const uint32_t *queries = scan->work->queries + thread->run.first_slot;
    struct bsw_matrix_queries all = {.num_queries = num, .factor = scan->queries->batch->factor};
    if (scan->work->is_in_order) {
        all.components = scan->components + queries[0] * dims;
        all.constants = scan->constants + queries[0];
        all.scales = scan->scales ? scan->scales + queries[0] : NULL;
        return all;
    }
    for (size_t i = 0; i < num; i++) {
        if (i + SLOTS_AHEAD < num) {
            const int8_t *ahead = scan->components + queries[i + SLOTS_AHEAD] * dims;
            for (size_t d = 0; d < dims; d += BSW_ALIGNMENT_BYTES) __builtin_prefetch(ahead + d);
        }
        const int8_t *from = scan->components + queries[i] * dims;
        int8_t *to = thread->components + i * dims;
        for (size_t d = 0; d < dims; d += 32) memcpy(to + d, from + d, 32); // no call
        thread->constants[i] = scan->constants[queries[i]];
        if (scan->scales) thread->scales[i] = scan->scales[queries[i]];
    }
    all.components = thread->components;
    all.constants = thread->constants;
    all.scales = scan->scales ? thread->scales : NULL;
    return all;
}

// ---- what is added to keys ----

// bsw_limit_before or a little less, as keys are compared once more when they have their addition:
// it is wanted for every query of every list, and the exact one takes 32 steps.
static uint32_t limit_before(uint32_t limit, float addition)
{
    float key = bsw_score_to_float(limit);
    key = (key - addition) - 0x1p-21f * (fabsf(key) + fabsf(addition));
    return isfinite(key) ? bsw_score_from_float(key + 0.0f) : 0;
}

static uint32_t limit_of_slot(const struct bsw_host_scan *scan,
                              const struct bsw_host_thread *thread, size_t i)
{
    uint32_t limit = bsw_host_limit(scan, bsw_host_query(scan, thread, i));
    return scan->work->additions ? limit_before(limit, bsw_host_addition(scan, thread, i)) : limit;
}

// Keys with their addition, those that then reach the limit; returns how many.
static size_t add_to_keys(uint64_t *items, size_t num, float addition, uint32_t limit)
{
    size_t count = 0;
    for (size_t i = 0; i < num; i++) {
        uint32_t score = bsw_score_add(bsw_candidate_score(items[i]), addition);
        items[count] = (uint64_t)score << 32 | (uint32_t)items[i];
        count += score >= limit;
    }
    return count;
}

static void take_found(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread,
                       size_t i, uint64_t *found, size_t num)
{
    if (scan->work->additions)
        num = add_to_keys(found, num, bsw_host_addition(scan, thread, i),
                          bsw_host_limit(scan, bsw_host_query(scan, thread, i)));
    if (num > 0) bsw_host_found(scan, thread, i, found, num);
}

// ---- stages ----

// Whether the first stage is worth while, tile after tile.
static int is_stage_due(const struct bsw_host_scan *scan, struct bsw_host_thread *thread)
{
    if (scan->way.stage_dims == 0 || !scan->work->is_in_order) return 0;
    if (thread->resting == 0) return 1;
    thread->resting--;
    return 0;
}

// pairs: of row and slot; went_on: of these. is_dear: a full scan had been cheaper.
static void end_stage(const struct bsw_host_scan *scan, struct bsw_host_thread *thread,
                      uint64_t pairs, uint64_t went_on, int is_dear)
{
    thread->num_stopped += pairs - went_on;
    if (is_dear && !scan->way.is_staged_always) thread->resting = STAGE_REST_TILES;
}

// ---- many slots ----

static int is_matrix_stage_dear(const struct bsw_host_scan *scan,
                                const struct bsw_stage_counts *counts, size_t num_bundles,
                                size_t num_slots)
{
    const struct bsw_scan_tuning *tuning = &scan->way.tuning;
    float dims = (float)scan->padded_dims, stage = (float)scan->stage.dims;
    float pairs = 2.0f * (float)num_bundles * (float)num_slots;
    float cost = stage + tuning->stage_overhead +
                 (float)counts->halves / pairs * tuning->finish_factor * (dims - stage);
    return cost > dims;
}

static void scan_matrix_staged(const struct bsw_host_scan *scan, struct bsw_host_thread *thread,
                               size_t bundle, const struct bsw_matrix_tile *tile,
                               const struct bsw_matrix_queries *queries)
{
    size_t num = thread->run.num_slots, first = bsw_host_query(scan, thread, 0);
    struct bsw_stage_counts counts = {0, 0};
    struct bsw_bundle_most most = bsw_tile_most(&scan->shard, bundle, tile->num_bundles);
    for (size_t i = 0; i < num; i++)
        thread->slacks[i] = bsw_stage_slack(&scan->stage, first + i, most);
    const struct bsw_matrix_stage stage = {.dims = scan->stage.dims,
                                           .constants = scan->stage.constants + first,
                                           .reaches = scan->stage.reaches + first,
                                           .slacks = thread->slacks};
    scan->workspace->matrix_scan->scan_staged(tile, &stage, queries, thread->outputs, &counts);
    end_stage(scan, thread, tile->num_bundles * BSW_BUNDLE_ROWS * num, counts.rows,
              is_matrix_stage_dear(scan, &counts, tile->num_bundles, num));
}

// Where the slots' candidates go, and the limits that their keys have to reach: as the run before
// left them, where it had the same.
static void begin_outputs(const struct bsw_host_scan *scan, struct bsw_host_thread *thread)
{
    const struct bsw_run *run = &thread->run;
    size_t num = run->num_slots, apart = bsw_host_slot_items(scan);
    uint64_t *items = thread->slots;
    if (thread->ready_slots == num && thread->ready_first == run->first_slot) return;
    for (size_t i = 0; i < num; i++, items += apart)
        thread->outputs[i] = (struct bsw_matrix_output){items, 0, limit_of_slot(scan, thread, i)};
    thread->ready_first = run->first_slot;
    thread->ready_slots = num;
}

// Limits that other threads may have raised.
static void refresh_outputs(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread)
{
    for (size_t i = 0; i < thread->run.num_slots; i++)
        thread->outputs[i].limit = limit_of_slot(scan, thread, i);
}

static void take_outputs(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread)
{
    const uint32_t *queries = scan->work->queries + thread->run.first_slot;
    struct bsw_matrix_output *outputs = thread->outputs;
    size_t num = thread->run.num_slots, ahead = scan->work->is_scattered ? SLOTS_AHEAD : num;
    // Keys go to lists as they are: the usual way, without a call more.
    int is_plain = !scan->work->additions && scan->queue_length == 0;
    for (size_t i = 0; i < num; i++) {
        if (i + ahead < num && outputs[i + ahead].count > 0)
            bsw_running_prefetch(&scan->running, queries[i + ahead]);
        if (outputs[i].count == 0) continue;
        if (is_plain)
            bsw_running_lists_add(&scan->running, queries[i], outputs[i].items, outputs[i].count,
                                  thread->room);
        else
            take_found(scan, thread, i, outputs[i].items, outputs[i].count);
        outputs[i].count = 0;
        outputs[i].limit = limit_of_slot(scan, thread, i);
    }
}

static void scan_matrix(const struct bsw_host_scan *scan, struct bsw_host_thread *thread,
                        const struct bsw_matrix_queries *queries, size_t bundle, size_t num_bundles)
{
    const struct bsw_matrix_tile tile =
        bsw_matrix_tile_at(&scan->shard, scan->workspace->matrix_scan, bundle, num_bundles,
                           thread->bytes, &thread->ahead);
    if (scan->running.is_shared) refresh_outputs(scan, thread);
    bsw_tile_ahead_ask(&thread->ahead, BSW_AHEAD_LINES); // of bytes: nothing was unpacked
    if (is_stage_due(scan, thread))
        scan_matrix_staged(scan, thread, bundle, &tile, queries);
    else
        scan->workspace->matrix_scan->scan(&tile, queries, thread->outputs);
    take_outputs(scan, thread);
}

// ---- few slots ----

static size_t scan_planes_full(const struct bsw_host_scan *scan, struct bsw_host_thread *thread,
                               size_t query, size_t bundle, size_t num_bundles, uint32_t limit)
{
    const struct bsw_query_batch *batch = scan->queries->batch;
    const struct bsw_select_table *select = scan->workspace->select;
    const struct bsw_code_arrays *arrays = &scan->shard.arrays;
    size_t place = bundle * BSW_BUNDLE_ROWS;
    bsw_tile_ahead_ask(&thread->ahead, BSW_AHEAD_LINES);
    bsw_tile_dots(&scan->shard, scan->workspace->plane_scan, batch, query, bundle, num_bundles, 0,
                  scan->padded_dims, thread->dots);
    bsw_tile_ahead_ask(&thread->ahead, BSW_AHEAD_LINES);
    if (scan->shard.shape.has_affine)
        return select->filter_affine(thread->dots, arrays->scales + place,
                                     bsw_tile_biases(arrays, place), batch->scales[query],
                                     arrays->masks + bundle, num_bundles, (uint32_t)place, limit,
                                     thread->found);
    return select->filter_integer(thread->dots, arrays->masks + bundle, num_bundles,
                                  (uint32_t)place, limit, thread->found);
}

// The stage's dimensions of all rows, the others of those that may still reach the limit.
static size_t scan_planes_staged(const struct bsw_host_scan *scan, struct bsw_host_thread *thread,
                                 size_t q, size_t bundle, size_t num_bundles, uint32_t limit,
                                 uint64_t *went_on)
{
    const struct bsw_resident_shard *shard = &scan->shard;
    const struct bsw_code_arrays *arrays = &shard->arrays;
    const struct bsw_scan_workspace *workspace = scan->workspace;
    const struct bsw_query_batch *batch = scan->queries->batch;
    size_t query = scan->queries->first_query + q, row = bundle * BSW_BUNDLE_ROWS;
    float scale = batch->scales[query];
    float slack = bsw_stage_slack(&scan->stage, q, bsw_tile_most(shard, bundle, num_bundles));
    bsw_tile_dots(shard, workspace->plane_scan, batch, query, bundle, num_bundles, 0,
                  scan->stage.dims, thread->dots);
    size_t num = workspace->select->filter_reach(
        thread->dots, arrays->scales + row, bsw_tile_biases(arrays, row), arrays->tails + row,
        scale, scan->stage.reaches[q], arrays->masks + bundle, num_bundles,
        bsw_float_limit(limit) - slack, thread->places);
    *went_on += num;
    if (num == 0) return 0;
    bsw_tile_add_rows(shard, workspace->plane_scan, batch, query, bundle, scan->stage.dims,
                      thread->places, num, thread->dots);
    return workspace->select->filter_places(thread->dots, arrays->scales + row,
                                            bsw_tile_biases(arrays, row), scale, thread->places,
                                            num, (uint32_t)row, limit, thread->found);
}

static void scan_planes(const struct bsw_host_scan *scan, struct bsw_host_thread *thread,
                        size_t bundle, size_t num_bundles)
{
    size_t num = thread->run.num_slots, rows = num_bundles * BSW_BUNDLE_ROWS;
    uint64_t went_on = 0;
    int is_staged = is_stage_due(scan, thread);
    for (size_t i = 0; i < num; i++) {
        size_t q = bsw_host_query(scan, thread, i);
        uint32_t limit = limit_of_slot(scan, thread, i);
        size_t count =
            is_staged ? scan_planes_staged(scan, thread, q, bundle, num_bundles, limit, &went_on)
                      : scan_planes_full(scan, thread, scan->queries->first_query + q, bundle,
                                         num_bundles, limit);
        if (count > 0) take_found(scan, thread, i, thread->found, count);
    }
    if (is_staged)
        end_stage(scan, thread, rows * num, went_on, went_on * FINISH_FACTOR > rows * num);
}

// ---- a run ----

static void scan_codes(const struct bsw_host_scan *scan, struct bsw_host_thread *thread)
{
    const struct bsw_run *run = &thread->run;
    int is_matrix = scan->shard.shape.has_bytes || run->num_slots >= scan->way.matrix_from;
    size_t step = is_matrix ? scan->way.matrix_bundles : scan->way.plane_bundles;
    struct bsw_matrix_queries queries = {.num_queries = 0};
    if (is_matrix) {
        queries = queries_of_run(scan, thread);
        begin_outputs(scan, thread);
    }
    for (size_t b = 0, count; (count = bsw_host_tile(scan, thread, &b, step, 1)) > 0; b += count) {
        if (is_matrix)
            scan_matrix(scan, thread, &queries, run->first_bundle + b, count);
        else
            scan_planes(scan, thread, run->first_bundle + b, count);
    }
}

const struct bsw_host_family bsw_host_codes = {.open = open_codes, .scan_run = scan_codes};
