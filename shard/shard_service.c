#include "shard/shard_service.h"

#include <string.h>

#include "common/clock.h"
#include "common/process_memory.h"
#include "common/progress.h"
#include "common/result_order.h"
#include "shard/damage_points.h"
#include "shard/device_histogram.h"

static size_t resident_bytes(const struct bsw_resident_shard *shard)
{
    const struct bsw_resident_parts parts = bsw_resident_parts_of(&shard->shape, shard->stage_dims);
    return bsw_resident_bytes(&parts);
}

static enum bsw_status list_units(struct bsw_shard_service *service, int rank,
                                  struct bsw_error *err)
{
    const struct bsw_assignment *table = &service->assignment;
    uint32_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (uint32_t slice = 0; slice < table->num_slices; slice++) {
            for (uint32_t shard = 0; shard < table->num_shards; shard++) {
                if (bsw_assignment_rank(table, slice, shard) != (uint32_t)rank) continue;
                if (pass == 1) {
                    service->units[count].slice = slice;
                    service->units[count].shard = shard;
                }
                count++;
            }
        }
        if (pass == 0)
            BSW_TRY(
                bsw_allocate_zero(&service->units, count, sizeof *service->units, "shards", err));
    }
    service->num_units = count;
    return BSW_OK;
}

// shapes: for all units.
static struct bsw_device_needs device_needs(const struct bsw_shard_service *service,
                                            struct bsw_shard_shape *shapes)
{
    const struct bsw_search_settings *settings = &service->settings;
    int is_staged = settings->queue.length == 0 &&
                    (settings->scan == BSW_SCAN_AUTO || bsw_scan_is_progressive(settings->scan));
    for (uint32_t u = 0; u < service->num_units; u++)
        bsw_shard_shape_init(&shapes[u], service->manifest, service->units[u].shard);
    return (struct bsw_device_needs){.shapes = shapes,
                                     .num_shards = service->num_units,
                                     .query_bits = settings->query_bits,
                                     .max_queries = settings->batch,
                                     .keep = (size_t)settings->keep,
                                     .stage_dims =
                                         is_staged ? bsw_manifest_stage(service->manifest) : 0,
                                     .queue = settings->queue};
}

// Before anything is loaded: whether the device has room.
static enum bsw_status open_engine(struct bsw_shard_service *service, struct bsw_error *err)
{
    struct bsw_shard_shape *shapes;
    BSW_TRY(bsw_allocate(&shapes, service->num_units, sizeof *shapes, "shards", err));
    const struct bsw_device_needs needs = device_needs(service, shapes);
    enum bsw_status status =
        bsw_device_engine_open(service->settings.device, &needs, &service->engine, err);
    bsw_free(&shapes);
    return status;
}

// What refinement on a device wants; 0: there is none.
static int refine_needs(const struct bsw_shard_service *service,
                        struct bsw_device_refine_needs *out)
{
    const struct bsw_search_settings *settings = &service->settings;
    *out = (struct bsw_device_refine_needs){.metric = service->manifest->metric,
                                            .type = service->manifest->source_type,
                                            .dims = bsw_manifest_row_dims(service->manifest),
                                            .max_queries = settings->batch,
                                            .keep = (size_t)settings->keep,
                                            .num_threads = settings->num_threads};
    return settings->is_exact && service->num_units > 0;
}

// Before the engine, which shares out what is left.
static enum bsw_status open_refiner(struct bsw_shard_service *service, struct bsw_error *err)
{
    struct bsw_device_refine_needs needs;
    if (!refine_needs(service, &needs)) return BSW_OK;
    return bsw_device_refiner_open(service->settings.device, &needs, &service->refiner, err);
}

// In the order of bsw_shard_service_open.
static enum bsw_status forecast_units(const struct bsw_shard_service *service, size_t free_bytes,
                                      struct bsw_device_forecast *out, struct bsw_error *err)
{
    struct bsw_shard_shape *shapes;
    struct bsw_device_refine_needs refine;
    BSW_TRY(bsw_allocate(&shapes, service->num_units, sizeof *shapes, "shards", err));
    const struct bsw_device_needs needs = device_needs(service, shapes);
    if (refine_needs(service, &refine))
        out->survivor_bytes = bsw_device_refiner_bytes(&refine, free_bytes);
    enum bsw_status status =
        bsw_device_plan_make(&needs, free_bytes - out->survivor_bytes, &out->plan, err);
    for (uint32_t u = 0; u < service->num_units && out->survivor_bytes > 0; u++) {
        size_t row_bytes = refine.dims * bsw_vector_type_bytes(refine.type);
        size_t bytes = (size_t)shapes[u].num_rows * row_bytes;
        size_t left = free_bytes - bsw_device_forecast_bytes(out);
        if (status == BSW_OK && bsw_device_raw_rows_fit(bytes, left)) out->raw_bytes += bytes;
    }
    bsw_free(&shapes);
    return status;
}

enum bsw_status bsw_shard_service_plan(const struct bsw_manifest *manifest,
                                       const struct bsw_search_settings *settings, int rank,
                                       int num_ranks, size_t free_bytes,
                                       struct bsw_device_forecast *out, struct bsw_error *err)
{
    struct bsw_shard_service service = {.manifest = manifest, .settings = *settings};
    *out = (struct bsw_device_forecast){0};
    service.assignment = bsw_assignment_make((uint32_t)num_ranks, manifest->num_shards);
    BSW_TRY(list_units(&service, rank, err));
    enum bsw_status status = forecast_units(&service, free_bytes, out, err);
    bsw_free(&service.units);
    return status;
}

// Once all units have what scans need.
static enum bsw_status load_raw_rows(struct bsw_shard_service *service, struct bsw_error *err)
{
    if (!service->refiner.device) return BSW_OK;
    for (uint32_t u = 0; u < service->num_units; u++) {
        struct bsw_unit *unit = &service->units[u];
        BSW_TRY(bsw_device_raw_shard_load(&service->refiner, &unit->resident, &unit->raw_on_device,
                                          err));
    }
    return BSW_OK;
}

static enum bsw_status load_unit(struct bsw_shard_service *service, const char *folder, uint32_t u,
                                 struct bsw_error *err)
{
    struct bsw_unit *unit = &service->units[u];
    const struct bsw_search_settings *settings = &service->settings;
    BSW_TRY(folder ? bsw_resident_shard_load(service->manifest, folder, unit->shard,
                                             settings->is_exact, &unit->resident, err)
                   : bsw_resident_shard_encode(service->manifest, unit->shard, settings->level,
                                               settings->is_exact, &unit->resident, err));
    if (!service->settings.device) return BSW_OK;
    return bsw_device_shard_load(&service->engine, u, &unit->resident, &unit->on_device, err);
}

enum bsw_status bsw_shard_service_open(const struct bsw_manifest *manifest, const char *folder,
                                       const struct bsw_search_settings *settings, int rank,
                                       int num_ranks, int show_progress,
                                       struct bsw_shard_service *out, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    uint64_t memory = bsw_process_memory_bytes();
    *out = (struct bsw_shard_service){.manifest = manifest, .settings = *settings};
    out->assignment = bsw_assignment_make((uint32_t)num_ranks, manifest->num_shards);
    bsw_scan_workspace_init(&out->workspace, settings->level, settings->num_threads);
    out->workspace.scan = settings->scan;
    out->workspace.queue = settings->queue;
    enum bsw_status status = list_units(out, rank, err);
    if (status == BSW_OK && settings->device) status = open_refiner(out, err);
    if (status == BSW_OK && settings->device) status = open_engine(out, err);
    struct bsw_progress progress;
    bsw_progress_init(&progress, "load", "shards", out->num_units, show_progress);
    for (uint32_t u = 0; u < out->num_units && status == BSW_OK; u++) {
        status = load_unit(out, folder, u, err);
        if (status == BSW_OK) out->resident_bytes += resident_bytes(&out->units[u].resident);
        bsw_progress_update(&progress, u + 1);
    }
    if (status == BSW_OK) status = load_raw_rows(out, err);
    if (status == BSW_OK && settings->is_checked) status = bsw_self_check_open(out, err);
    bsw_progress_finish(&progress);
    if (status != BSW_OK) bsw_shard_service_close(out);
    if (settings->device) out->load_allocations = bsw_device_num_allocations(settings->device);
    out->load_seconds = bsw_clock_seconds() - started;
    out->grown_bytes = bsw_process_memory_bytes() - memory;
    return status;
}

void bsw_shard_service_close(struct bsw_shard_service *service)
{
    for (uint32_t u = 0; u < service->num_units; u++) {
        bsw_device_shard_unload(&service->engine, &service->units[u].on_device);
        bsw_device_raw_shard_unload(&service->refiner, &service->units[u].raw_on_device);
        bsw_resident_shard_unload(&service->units[u].resident);
        bsw_candidate_lists_deinit(&service->units[u].lists);
    }
    bsw_self_check_close(&service->check);
    service->num_units = 0;
    bsw_free(&service->units);
    bsw_device_engine_close(&service->engine);
    bsw_device_refiner_close(&service->refiner);
    bsw_scan_workspace_deinit(&service->workspace);
}

void bsw_shard_service_begin(struct bsw_shard_service *service, const struct bsw_query_batch *batch)
{
    service->batch = *batch;
    BSW_DAMAGE(bsw_damage_codes(service));
    for (uint32_t u = 0; u < service->num_units; u++) {
        struct bsw_unit *unit = &service->units[u];
        size_t last;
        bsw_assignment_queries(&service->assignment, unit->slice, batch->num_queries,
                               &unit->first_query, &last);
        unit->num_queries = last - unit->first_query;
    }
}

// ---- histogram ----

static enum bsw_status append_histogram(void *context, size_t query, uint32_t first_bin,
                                        const uint64_t *counts, uint32_t num_bins,
                                        struct bsw_error *err)
{
    struct bsw_buffer *out = context;
    const uint32_t head[2] = {first_bin, num_bins};
    (void)query; // queries come in order
    BSW_TRY(bsw_buffer_append(out, head, sizeof head, err));
    return bsw_buffer_append(out, counts, num_bins * sizeof *counts, err);
}

static enum bsw_status count_unit(struct bsw_shard_service *service, struct bsw_unit *unit,
                                  struct bsw_buffer *out, struct bsw_error *err)
{
    uint64_t k = bsw_search_histogram_rows(&service->settings);
    if (service->settings.device) {
        return bsw_device_shard_histogram(
            &service->engine, &unit->on_device, &service->batch, unit->first_query,
            unit->num_queries, k, &service->workspace, &unit->lists, append_histogram, out, err);
    }
    return bsw_shard_histogram(&unit->resident, &service->batch, unit->first_query,
                               unit->num_queries, k, &service->workspace, append_histogram, out,
                               err);
}

enum bsw_status bsw_shard_service_histogram(struct bsw_shard_service *service,
                                            struct bsw_buffer *out, struct bsw_error *err)
{
    out->bytes = 0;
    for (uint32_t u = 0; u < service->num_units; u++) {
        BSW_TRY(count_unit(service, &service->units[u], out, err));
    }
    return BSW_OK;
}

// ---- candidates ----

static struct bsw_ranked ranked_of(const struct bsw_unit *unit, uint64_t candidate,
                                   uint32_t payload)
{
    return bsw_ranked_of_key(bsw_candidate_score(candidate), payload,
                             unit->resident.shape.first_row + bsw_candidate_row(candidate));
}

static enum bsw_status append_list(const struct bsw_unit *unit, const uint64_t *list, size_t count,
                                   int is_ladder, struct bsw_buffer *out, struct bsw_error *err)
{
    size_t head = out->bytes, room = is_ladder ? 65 : count;
    uint64_t written = 0;
    BSW_TRY(bsw_buffer_reserve(out, out->bytes + sizeof written + room * sizeof(struct bsw_ranked),
                               err));
    struct bsw_ranked *entries = (struct bsw_ranked *)(void *)(out->data + head + sizeof written);
    if (is_ladder) {
        for (size_t place = 1; place < count; place *= 2) {
            entries[written++] = ranked_of(unit, list[place - 1], (uint32_t)place);
        }
        if (count > 0) entries[written++] = ranked_of(unit, list[count - 1], (uint32_t)count);
    } else {
        for (; written < count; written++) entries[written] = ranked_of(unit, list[written], 0);
    }
    memcpy(out->data + head, &written, sizeof written);
    out->bytes = head + sizeof written + (size_t)written * sizeof(struct bsw_ranked);
    return BSW_OK;
}

enum bsw_status bsw_unit_scan(struct bsw_shard_service *service, const struct bsw_unit *unit,
                              const struct bsw_query_batch *batch, size_t first_query,
                              size_t num_queries, const uint32_t *limits, size_t keep,
                              struct bsw_scan_workspace *workspace, struct bsw_candidate_lists *out,
                              struct bsw_error *err)
{
    if (service->settings.device)
        BSW_TRY(bsw_device_shard_scan(&service->engine, &unit->on_device, batch, first_query,
                                      num_queries, limits, keep, workspace, out, err));
    else
        BSW_TRY(bsw_shard_scan(&unit->resident, batch, first_query, num_queries, limits, keep,
                               workspace, out, err));
    BSW_DAMAGE(bsw_damage_scores(out));
    return BSW_OK;
}

static enum bsw_status scan_unit(struct bsw_shard_service *service, struct bsw_unit *unit,
                                 const uint32_t *limits, struct bsw_error *err)
{
    return bsw_unit_scan(service, unit, &service->batch, unit->first_query, unit->num_queries,
                         limits ? limits + unit->first_query : NULL, (size_t)service->settings.keep,
                         &service->workspace, &unit->lists, err);
}

enum bsw_status bsw_shard_service_scan(struct bsw_shard_service *service, const uint32_t *limits,
                                       struct bsw_buffer *out, struct bsw_error *err)
{
    out->bytes = 0;
    for (uint32_t u = 0; u < service->num_units; u++) {
        struct bsw_unit *unit = &service->units[u];
        BSW_TRY(scan_unit(service, unit, limits, err));
        if (service->settings.is_checked) BSW_TRY(bsw_self_check_rows(service, unit, err));
        for (size_t q = 0; q < unit->num_queries; q++) {
            size_t count;
            const uint64_t *list = bsw_candidate_list(&unit->lists, q, &count);
            BSW_TRY(append_list(unit, list, count, service->settings.is_ladder, out, err));
        }
    }
    return BSW_OK;
}

// ---- survivors ----

static int is_within(const struct bsw_unit *unit, uint64_t candidate, const struct bsw_cut *cut)
{
    uint32_t score = bsw_candidate_score(candidate);
    if (score != cut->score) return score > cut->score;
    return unit->resident.shape.first_row + bsw_candidate_row(candidate) <= cut->row;
}

// Lists are in the total order, so the survivors are a leading part.
static size_t count_survivors(const struct bsw_unit *unit, size_t query, const struct bsw_cut *cut)
{
    size_t low = 0, high;
    const uint64_t *list = bsw_candidate_list(&unit->lists, query, &high);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_within(unit, list[middle], cut))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum bsw_status refine_unit(struct bsw_shard_service *service, const struct bsw_unit *unit,
                                   const struct bsw_cut *cuts, struct bsw_buffer *out,
                                   struct bsw_error *err)
{
    size_t *counts, total = 0;
    BSW_TRY(
        bsw_buffer_reserve(&service->workspace.counts, unit->num_queries * sizeof(size_t), err));
    counts = (size_t *)(void *)service->workspace.counts.data;
    for (size_t q = 0; q < unit->num_queries; q++) {
        uint64_t count = counts[q] = count_survivors(unit, q, &cuts[unit->first_query + q]);
        total += counts[q];
        BSW_TRY(bsw_buffer_append(out, &count, sizeof count, err));
    }
    BSW_TRY(bsw_buffer_reserve(out, out->bytes + total * sizeof(struct bsw_survivor), err));
    struct bsw_survivor *survivors = (struct bsw_survivor *)(void *)(out->data + out->bytes);
    out->bytes += total * sizeof(struct bsw_survivor);
    int on_device = service->refiner.device != NULL;
    enum bsw_status status = bsw_shard_refine(
        &unit->resident, service->manifest, &service->batch, unit->first_query, &unit->lists,
        counts, service->settings.is_exact && !on_device, &service->workspace, survivors, err);
    if (status == BSW_OK && on_device)
        status = bsw_device_refiner_run(&service->refiner, &unit->raw_on_device, &service->batch,
                                        unit->first_query, unit->num_queries, counts,
                                        &service->workspace, survivors, err);
    if (status != BSW_OK) return bsw_self_check_blame(service, unit, status, err);
    if (!service->settings.is_checked) return BSW_OK;
    return bsw_self_check_survivors(service, unit, counts, survivors, err);
}

enum bsw_status bsw_shard_service_refine(struct bsw_shard_service *service,
                                         const struct bsw_cut *cuts, struct bsw_buffer *out,
                                         struct bsw_error *err)
{
    out->bytes = 0;
    for (uint32_t u = 0; u < service->num_units; u++) {
        BSW_TRY(refine_unit(service, &service->units[u], cuts, out, err));
    }
    return BSW_OK;
}
