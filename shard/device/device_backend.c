// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_backend.h"

#include <stdio.h>

#include "common/base/memory.h"
#include "kernels/device_scan/device_tuning.h"
#include "shard/codecs/codec.h"
#include "shard/device/device_coarse.h"
#include "shard/device/device_graph.h"
#include "shard/device/device_readback.h"

struct device_state {
    const struct bsw_manifest *manifest;
    int is_exact;
    struct bsw_device_coarse coarse;
    struct bsw_device_engine engine;
    struct bsw_device_refiner refiner;
    struct bsw_device_kept kept;
    const struct bsw_device_shard **shards; // [num_shards], from load on
    struct bsw_backend_shard **loaded;      // [num_shards], likewise
    size_t num_shards;
    struct bsw_candidate_lists lists; // scratch, of a span
    uint64_t load_allocations;        // of the device, until the last was loaded
};

// ---- memory ----

// All lists where keys of residuals have additions for each (shard_service.c).
static uint32_t most_probe(const struct bsw_backend_needs *needs)
{
    const struct bsw_manifest_lists *lists = &needs->manifest->lists;
    uint32_t probe = needs->settings->probe.probe;
    return probe == 0 && lists->is_residual ? lists->count : probe;
}

// Where tables are of queries and lists.
static const float *table_centroids(const struct bsw_manifest *manifest)
{
    int is_of_lists = manifest->codec->has_tables && bsw_has_row_norms(manifest->metric) &&
                      manifest->lists.is_residual;
    return is_of_lists ? manifest->lists.centroids : NULL;
}

static struct bsw_device_needs scan_needs(const struct bsw_backend_needs *needs)
{
    const struct bsw_search_settings *settings = needs->settings;
    const struct bsw_manifest *manifest = needs->manifest;
    int has_lists = manifest->lists.count > 0;
    const float *centroids = table_centroids(manifest);
    int is_staged = settings->queue.length == 0 && !has_lists &&
                    (settings->scan == BSW_SCAN_AUTO || bsw_scan_is_progressive(settings->scan));
    return (struct bsw_device_needs){
        .shapes = needs->shapes,
        .num_shards = needs->num_shards,
        .spans = needs->spans,
        .num_spans = needs->num_spans,
        .query_bits = settings->query_bits,
        .max_queries = settings->batch,
        .keep = (size_t)settings->keep,
        .stage_dims = is_staged ? bsw_manifest_stage(needs->manifest) : 0,
        .queue = settings->queue,
        .probe = most_probe(needs),
        .has_masks = settings->has_masks,
        .product = manifest->codec->has_tables ? manifest->codec->table->product(manifest) : NULL,
        .centroids = centroids,
        .num_centroids = centroids ? manifest->lists.count : 0,
        .level = settings->level,
        .graphs = settings->graphs,
        .selection = settings->selection};
}

// As shard_service.c opens its coarse step.
static int has_additions(const struct bsw_manifest *manifest)
{
    return manifest->lists.is_residual && manifest->codec->table->center(manifest) != NULL;
}

// That device makes lists and work items, or one that is not known.
static int has_gpu_lists(const struct bsw_backend_needs *needs)
{
    const struct bsw_device_tuning *tuning =
        needs->settings->device ? bsw_device_tuning_current() : bsw_device_tuning_find(0, 0);
    return tuning->has_gpu_lists != 0;
}

static struct bsw_device_coarse_needs coarse_needs(const struct bsw_backend_needs *needs)
{
    const struct bsw_search_settings *settings = needs->settings;
    uint32_t num_lists = needs->manifest->lists.count, probe = most_probe(needs);
    // More than it keeps are chosen on the host; a ratio may end before.
    int is_of_use =
        needs->num_shards > 0 && (settings->probe.ratio > 0 || probe <= BSW_DEVICE_COARSE_KEPT ||
                                  num_lists <= BSW_DEVICE_COARSE_KEPT);
    return (struct bsw_device_coarse_needs){.num_lists = num_lists,
                                            .dims = bsw_manifest_row_dims(needs->manifest),
                                            .max_queries = settings->batch,
                                            .probe = is_of_use ? probe : 0,
                                            .stays = has_gpu_lists(needs),
                                            .has_additions = has_additions(needs->manifest)};
}

// Survivors of a list that may be refined behind its scan: where lists are made on the device, and
// a query has one list in all. 0: none are.
static size_t take_of(const struct bsw_backend_needs *needs)
{
    const struct bsw_search_settings *settings = needs->settings;
    if (!bsw_all_found_survives(settings, needs->manifest->num_shards) ||
        needs->manifest->lists.count == 0 || settings->probe.probe == 0 || !has_gpu_lists(needs))
        return 0;
    return (size_t)bsw_most_survivors(settings);
}

// What refinement on a device wants; 0: there is none.
static int refine_needs(const struct bsw_backend_needs *needs, struct bsw_device_refine_needs *out)
{
    const struct bsw_search_settings *settings = needs->settings;
    *out = (struct bsw_device_refine_needs){.metric = needs->manifest->metric,
                                            .type = needs->manifest->source_type,
                                            .dims = bsw_manifest_row_dims(needs->manifest),
                                            .max_queries = settings->batch,
                                            .keep = (size_t)settings->keep,
                                            .take = take_of(needs),
                                            .num_threads = settings->num_threads};
    return settings->is_exact && needs->num_shards > 0;
}

// What keeping candidates on a device wants; 0: they do not stay there.
static int kept_needs(const struct bsw_backend_needs *needs, struct bsw_device_kept_needs *out)
{
    *out = (struct bsw_device_kept_needs){.shapes = needs->shapes,
                                          .spans = needs->spans,
                                          .num_spans = needs->num_spans,
                                          .max_queries = needs->settings->batch,
                                          .keep = (size_t)needs->settings->keep};
    return needs->settings->merge_place != BSW_MERGE_ON_HOST;
}

// Bytes of codes that come in blocks where `left` are for all but the coarse step; SIZE_MAX: there
// is no room for a search.
static size_t streamed_within(const struct bsw_backend_needs *needs, size_t left)
{
    const struct bsw_device_needs scan = scan_needs(needs);
    struct bsw_device_refine_needs refine;
    struct bsw_device_kept_needs kept;
    struct bsw_device_plan plan;
    struct bsw_error unsaid;
    if (kept_needs(needs, &kept)) {
        size_t taken = bsw_device_kept_bytes(&kept);
        left -= taken < left ? taken : left;
    }
    if (refine_needs(needs, &refine)) left -= bsw_device_refiner_bytes(&refine, left);
    if (bsw_device_plan_make(&scan, left, &plan, &unsaid) != BSW_OK) return SIZE_MAX;
    size_t streamed = plan.streamed_bytes;
    bsw_device_plan_deinit(&plan);
    return streamed;
}

// What the coarse step may count as free: nothing where codes would come in blocks for its sake, or
// do without it, as a search can have it on the CPU.
static size_t coarse_room(const struct bsw_backend_needs *needs, size_t free_bytes)
{
    const struct bsw_device_coarse_needs coarse = coarse_needs(needs);
    size_t bytes = bsw_device_coarse_bytes(&coarse, free_bytes);
    if (bytes == 0) return 0;
    size_t streamed = streamed_within(needs, free_bytes - bytes);
    int is_for_it = streamed > 0 && streamed < SIZE_MAX && streamed_within(needs, free_bytes) == 0;
    return streamed == SIZE_MAX || is_for_it ? 0 : free_bytes;
}

// In the order of open, load and load_rows.
static enum bsw_status forecast(const struct bsw_backend_needs *needs, size_t free_bytes,
                                struct bsw_memory_forecast *out, struct bsw_error *err)
{
    const struct bsw_device_needs scan = scan_needs(needs);
    struct bsw_device_refine_needs refine;
    struct bsw_device_kept_needs kept;
    struct bsw_device_plan plan;
    const struct bsw_device_coarse_needs coarse = coarse_needs(needs);
    *out = (struct bsw_memory_forecast){
        .coarse_bytes = bsw_device_coarse_bytes(&coarse, coarse_room(needs, free_bytes))};
    free_bytes -= out->coarse_bytes;
    if (kept_needs(needs, &kept)) out->kept_bytes = bsw_device_kept_bytes(&kept);
    if (out->kept_bytes > free_bytes) out->kept_bytes = free_bytes; // too much, says the plan
    if (refine_needs(needs, &refine))
        out->survivor_bytes = bsw_device_refiner_bytes(&refine, free_bytes - out->kept_bytes);
    size_t before = out->kept_bytes + out->survivor_bytes;
    BSW_TRY(bsw_device_plan_make(&scan, free_bytes - before, &plan, err));
    size_t used = bsw_device_plan_bytes(&plan) + before;
    for (size_t i = 0; i < needs->num_shards && out->survivor_bytes > 0; i++) {
        size_t row_bytes = refine.dims * bsw_vector_type_bytes(refine.type);
        size_t bytes = (size_t)needs->shapes[i].num_rows * row_bytes;
        if (bsw_device_raw_rows_fit(bytes, free_bytes - used - out->raw_bytes))
            out->raw_bytes += bytes;
    }
    out->used_bytes = used + out->raw_bytes + out->coarse_bytes;
    out->code_bytes = plan.code_bytes;
    out->query_bytes = plan.queries.bytes;
    out->block_bytes = 2 * plan.block_bytes;
    out->list_bytes = plan.list_bytes + plan.gpu_lists.bytes;
    out->book_bytes = plan.book.bytes;
    out->streamed_bytes = plan.streamed_bytes;
    out->group_queries = plan.group_queries;
    out->list_items = plan.capacity;
    bsw_device_plan_deinit(&plan);
    return BSW_OK;
}

static void close_device(void *address)
{
    struct device_state *state = address;
    if (!state) return;
    bsw_device_coarse_close(&state->coarse);
    bsw_device_engine_close(&state->engine);
    bsw_device_kept_close(&state->kept);
    bsw_device_refiner_close(&state->refiner);
    bsw_candidate_lists_deinit(&state->lists);
    bsw_free(&state->shards);
    bsw_free(&state->loaded);
    bsw_free(&state);
}

static enum bsw_status make_room(const struct bsw_backend_needs *needs, struct device_state *state,
                                 struct bsw_error *err)
{
    size_t num = state->num_shards = needs->num_shards;
    BSW_TRY(bsw_allocate_zero(&state->shards, num, sizeof *state->shards, "shards", err));
    return bsw_allocate_zero(&state->loaded, num, sizeof *state->loaded, "shards", err);
}

static enum bsw_status open_coarse(const struct bsw_backend_needs *needs,
                                   struct device_state *state, struct bsw_error *err)
{
    const struct bsw_device_coarse_needs coarse = coarse_needs(needs);
    bsw_device *device = needs->settings->device;
    size_t free_bytes;
    BSW_TRY(bsw_device_free_bytes(device, &free_bytes, err));
    return bsw_device_coarse_open(device, &coarse, coarse_room(needs, free_bytes), &state->coarse,
                                  err);
}

// All else before the engine, which shares out what is left.
static enum bsw_status open_device(const struct bsw_backend_needs *needs, void **out,
                                   struct bsw_error *err)
{
    const struct bsw_device_needs scan = scan_needs(needs);
    bsw_device *device = needs->settings->device;
    struct bsw_device_refine_needs refine;
    struct bsw_device_kept_needs kept;
    struct device_state *state;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&state, 1, sizeof *state, "shards", err));
    state->manifest = needs->manifest;
    state->is_exact = needs->settings->is_exact;
    enum bsw_status status = make_room(needs, state, err);
    if (status == BSW_OK) status = open_coarse(needs, state, err);
    if (status == BSW_OK && kept_needs(needs, &kept))
        status = bsw_device_kept_open(device, &kept, &state->kept, err);
    if (status == BSW_OK && refine_needs(needs, &refine))
        status = bsw_device_refiner_open(device, &refine, &state->refiner, err);
    if (status == BSW_OK) status = bsw_device_engine_open(device, &scan, &state->engine, err);
    if (status != BSW_OK) {
        close_device(state);
        return status;
    }
    state->refiner.promised_bytes = state->engine.plan.mask_bytes;
    state->load_allocations = bsw_device_num_allocations(device);
    *out = state;
    return BSW_OK;
}

static const char *label(const void *address)
{
    const struct device_state *state = address;
    return bsw_device_label(state->engine.device);
}

// ---- shards ----

static void unload(void *address, struct bsw_backend_shard *shard)
{
    struct device_state *state = address;
    struct bsw_device_unit *unit = shard->own;
    if (!unit) return;
    bsw_device_shard_unload(&state->engine, &unit->codes);
    bsw_device_raw_shard_unload(&state->refiner, &unit->rows);
    bsw_free(&shard->own);
}

// Once all shards have what scans need.
static enum bsw_status load_rows(struct device_state *state, struct bsw_error *err)
{
    for (size_t s = 0; state->refiner.device && s < state->num_shards; s++) {
        struct bsw_device_unit *unit = state->loaded[s]->own;
        BSW_TRY(bsw_device_raw_shard_load(&state->refiner, state->loaded[s]->resident, &unit->rows,
                                          err));
    }
    state->load_allocations = bsw_device_num_allocations(state->engine.device);
    return BSW_OK;
}

static enum bsw_status load(void *address, size_t index, struct bsw_backend_shard *shard,
                            struct bsw_error *err)
{
    struct device_state *state = address;
    struct bsw_device_unit *unit;
    BSW_TRY(bsw_allocate_zero(&unit, 1, sizeof *unit, "shards", err));
    shard->own = unit;
    state->shards[index] = &unit->codes;
    state->loaded[index] = shard;
    BSW_TRY(bsw_device_shard_load(&state->engine, index, shard->resident, &unit->codes, err));
    return index + 1 == state->num_shards ? load_rows(state, err) : BSW_OK;
}

// ---- a batch ----

static enum bsw_status take_coarse(void *address, struct bsw_coarse_search *search,
                                   struct bsw_error *err)
{
    struct device_state *state = address;
    return bsw_device_coarse_take(&state->coarse, search, err);
}

static struct bsw_device_task task_of(struct device_state *state, const struct bsw_scan_job *job)
{
    int has_items = state->engine.plan.has_lists && !job->is_of_places;
    const struct bsw_device_unit *unit = job->shards[0]->own;
    return (struct bsw_device_task){.maker = has_items ? &bsw_device_items : &bsw_device_whole,
                                    .span = {state->shards + job->first, job->num_shards},
                                    .queries = job->queries,
                                    .choice = job->choice,
                                    .coarse = &state->coarse,
                                    .scan_dims = job->scan_dims,
                                    .masks = job->masks,
                                    .limits = job->limits,
                                    .keep = job->keep,
                                    .workspace = job->workspace,
                                    .kept = job->stays ? &state->kept.spans[job->span] : NULL,
                                    .is_continued = job->is_continued,
                                    .refiner = job->is_final ? &state->refiner : NULL,
                                    .rows = &unit->rows};
}

static enum bsw_status begin(void *address, const struct bsw_scan_job *job, struct bsw_error *err)
{
    struct device_state *state = address;
    const struct bsw_device_task task = task_of(state, job);
    return bsw_device_scan_begin(&state->engine, &task, err);
}

// What of a span's lists is each shard's. Rows behind the last are the last's, whose check sees
// them.
static enum bsw_status split_lists(const struct bsw_candidate_lists *all,
                                   const struct bsw_scan_job *job, struct bsw_error *err)
{
    uint64_t before = job->shards[0]->resident->shape.first_row;
    for (size_t s = 0; s < job->num_shards; s++) {
        const struct bsw_shard_shape *shape = &job->shards[s]->resident->shape;
        uint64_t num_rows = s + 1 < job->num_shards ? shape->num_rows : UINT64_MAX;
        BSW_TRY(bsw_candidate_lists_pick(all, (uint32_t)(shape->first_row - before), num_rows,
                                         &job->shards[s]->lists, err));
    }
    return BSW_OK;
}

// Where the lists of a job come first.
static struct bsw_candidate_lists *lists_of(struct device_state *state,
                                            const struct bsw_scan_job *job)
{
    int is_whole = job->num_shards == 1 || job->stays;
    return is_whole ? &job->shards[0]->lists : &state->lists;
}

static enum bsw_status end(void *address, struct bsw_scan_job *job, struct bsw_error *err)
{
    struct device_state *state = address;
    if (!job) return bsw_device_scan_end(&state->engine, NULL, NULL, NULL, err);
    struct bsw_candidate_lists *out = lists_of(state, job);
    BSW_TRY(bsw_device_scan_end(&state->engine, out, &job->num_list_pairs, &job->refined, err));
    if (!job->stays) return out == &state->lists ? split_lists(out, job, err) : BSW_OK;
    const struct bsw_device_kept_span *own = &state->kept.spans[job->span];
    job->kept = (struct bsw_kept_lists){own->items, own->offsets, own->num_queries};
    return BSW_OK;
}

static enum bsw_status take(void *address, const struct bsw_scan_job *job,
                            const struct bsw_cut *cuts, struct bsw_error *err)
{
    struct device_state *state = address;
    struct bsw_candidate_lists *out = job->num_shards == 1 ? &job->shards[0]->lists : &state->lists;
    BSW_TRY(bsw_device_kept_take(&state->kept.spans[job->span], &state->engine.transfer, cuts, out,
                                 err));
    return out == &state->lists ? split_lists(out, job, err) : BSW_OK;
}

// The host lists the survivors; values are its own where the device has no room for refinement.
static enum bsw_status refine(void *address, const struct bsw_backend_shard *shard,
                              const struct bsw_query_range *queries, const size_t *counts,
                              struct bsw_scan_workspace *workspace, struct bsw_survivor *out,
                              struct bsw_error *err)
{
    struct device_state *state = address;
    const struct bsw_device_unit *unit = shard->own;
    int is_here = state->refiner.device != NULL;
    BSW_TRY(bsw_shard_refine(shard->resident, state->manifest, queries->batch, queries->first_query,
                             &shard->lists, counts, state->is_exact && !is_here, workspace, out,
                             err));
    if (!is_here) return BSW_OK;
    return bsw_device_refiner_run(&state->refiner, &unit->rows, queries->batch,
                                  queries->first_query, queries->num_queries, counts, workspace,
                                  out, err);
}

// ---- checks and figures ----

static enum bsw_status fetch(void *address, const struct bsw_backend_shard *shard, uint32_t place,
                             struct bsw_resident_shard *out, uint32_t *row, struct bsw_error *err)
{
    struct device_state *state = address;
    const struct bsw_device_unit *unit = shard->own;
    *row = place % BSW_BUNDLE_ROWS;
    return bsw_device_shard_fetch(&state->engine, &unit->codes, place / BSW_BUNDLE_ROWS, out, err);
}

static enum bsw_status check(void *address, const struct bsw_backend_shard *shard, uint32_t *next,
                             struct bsw_error *err)
{
    struct device_state *state = address;
    const struct bsw_device_unit *unit = shard->own;
    uint32_t first = next ? *next : 0, left = bsw_device_shard_blocks(&unit->codes) - first,
             most = next ? bsw_device_readback_most(&shard->resident->shape) : UINT32_MAX;
    if (next) *next = left > most ? first + most : 0;
    return bsw_device_shard_check(&state->engine, &unit->codes, first, left < most ? left : most,
                                  err);
}

static struct bsw_scan_counts *counts(void *address)
{
    struct device_state *state = address;
    struct bsw_scan_counts *out = &state->engine.counts;
    uint64_t launches = bsw_device_launches();
    out->num_launches += launches - state->engine.launches_seen;
    state->engine.launches_seen = launches;
    out->num_refine_waits = state->refiner.num_waits;
    out->raw_bytes = state->refiner.raw_bytes;
    out->gathered_bytes = state->refiner.gathered_bytes;
    out->num_allocations =
        bsw_device_num_allocations(state->engine.device) - state->load_allocations;
    snprintf(out->graph_note, sizeof out->graph_note, "%.127s",
             bsw_device_graphs_note(&state->engine));
    return out;
}

const struct bsw_backend bsw_device_backend = {
    .forecast = forecast,
    .open = open_device,
    .close = close_device,
    .label = label,
    .load = load,
    .unload = unload,
    .take_coarse = take_coarse,
    .begin = begin,
    .end = end,
    .take = take,
    .refine = refine,
    .fetch = fetch,
    .check = check,
    .counts = counts,
};
