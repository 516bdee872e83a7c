// SPDX-License-Identifier: Apache-2.0
#include "shard/shard_service.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/codes/metric.h"
#include "common/job/progress.h"
#include "shard/codecs/codec.h"
#include "shard/host/list_tables.h"
#include "shard/host/survivor_trim.h"
#include "shard/self_check.h"

static size_t resident_bytes(const struct bsw_resident_shard *shard)
{
    const struct bsw_resident_parts parts = bsw_resident_parts_of(&shard->shape, shard->stage_dims);
    return bsw_resident_bytes(&parts);
}

// Every rank has them whole.
static size_t centroid_bytes(const struct bsw_shard_service *service)
{
    const struct bsw_manifest *manifest = service->manifest;
    size_t floats = (size_t)manifest->lists.count * bsw_manifest_row_dims(manifest);
    size_t tables = 0;
    if (manifest->codec->has_tables && manifest->lists.is_residual &&
        bsw_has_row_norms(manifest->metric)) {
        uint64_t rows = 0, most = bsw_list_table_most(&service->workspace.host.tables);
        for (uint32_t u = 0; u < service->num_units; u++)
            rows = bsw_list_table_rows_add(
                rows, manifest->shards[service->units[u].shard].num_places, most);
        tables = (size_t)(bsw_list_table_lists_bytes(manifest->codec->table->product(manifest),
                                                     manifest->lists.count) +
                          rows);
    }
    return floats * sizeof(float) + tables +
           (service->coarse ? (size_t)bsw_coarse_search_bytes(manifest) : 0);
}

static enum bsw_status list_units(struct bsw_shard_service *service, int rank,
                                  struct bsw_error *err)
{
    const struct bsw_assignment *table = service->assignment;
    const struct bsw_span_rule rule =
        bsw_span_rule_of(service->manifest, table, &service->settings);
    uint32_t num_units = bsw_assignment_num_units(table, (uint32_t)rank),
             num_spans = bsw_num_rank_spans(&rule, (uint32_t)rank);
    BSW_TRY(bsw_allocate_zero(&service->units, num_units, sizeof *service->units, "shards", err));
    BSW_TRY(bsw_allocate_zero(&service->spans, num_spans, sizeof *service->spans, "shards", err));
    BSW_TRY(bsw_allocate_zero(&service->shards, num_units, sizeof *service->shards, "shards", err));
    BSW_TRY(bsw_allocate_zero(&service->kept, num_spans, sizeof *service->kept, "shards", err));
    BSW_TRY(bsw_allocate_zero(&service->failed, num_units, sizeof *service->failed, "shards", err));
    for (uint32_t slice = 0; slice < table->num_slices; slice++) {
        struct bsw_span span;
        for (uint32_t first = 0; first < table->num_shards; first += span.num_shards) {
            span = bsw_span_at(&rule, first);
            if (bsw_assignment_rank(table, slice, first) != (uint32_t)rank) continue;
            service->spans[service->num_spans++] =
                (struct bsw_shard_range){service->num_units, span.num_shards};
            for (uint32_t i = 0; i < span.num_shards; i++) {
                struct bsw_unit *unit = &service->units[service->num_units];
                service->shards[service->num_units++] = &unit->loaded;
                unit->slice = slice;
                unit->shard = first + i;
            }
        }
    }
    return BSW_OK;
}

static void free_units(struct bsw_shard_service *service)
{
    for (uint32_t u = 0; u < service->num_units; u++)
        bsw_candidate_lists_deinit(&service->units[u].loaded.lists);
    service->num_units = service->num_spans = 0;
    bsw_free(&service->units);
    bsw_free(&service->spans);
    bsw_free(&service->shards);
    bsw_free(&service->kept);
    bsw_free(&service->failed);
    service->num_failed = 0;
}

// Shapes of all units; to be freed.
static enum bsw_status make_needs(const struct bsw_shard_service *service,
                                  struct bsw_shard_shape **shapes, struct bsw_backend_needs *out,
                                  struct bsw_error *err)
{
    BSW_TRY(bsw_allocate(shapes, service->num_units, sizeof **shapes, "shards", err));
    for (uint32_t u = 0; u < service->num_units; u++)
        bsw_shard_shape_init(&(*shapes)[u], service->manifest, service->units[u].shard);
    *out = (struct bsw_backend_needs){.manifest = service->manifest,
                                      .settings = &service->settings,
                                      .shapes = *shapes,
                                      .num_shards = service->num_units,
                                      .spans = service->spans,
                                      .num_spans = service->num_spans};
    return BSW_OK;
}

// Before anything is loaded: whether there is room.
static enum bsw_status open_backend(struct bsw_shard_service *service, struct bsw_error *err)
{
    struct bsw_shard_shape *shapes;
    struct bsw_backend_needs needs;
    BSW_TRY(make_needs(service, &shapes, &needs, err));
    enum bsw_status status = service->backend->open(&needs, &service->state, err);
    bsw_free(&shapes);
    return status;
}

enum bsw_status bsw_shard_service_plan(const struct bsw_manifest *manifest,
                                       const struct bsw_search_settings *settings, int rank,
                                       int num_ranks, size_t free_bytes,
                                       struct bsw_memory_forecast *out, struct bsw_error *err)
{
    struct bsw_assignment assignment;
    struct bsw_shard_service service = {
        .manifest = manifest, .settings = *settings, .assignment = &assignment};
    struct bsw_shard_shape *shapes = NULL;
    struct bsw_backend_needs needs;
    BSW_TRY(bsw_assignment_make((uint32_t)num_ranks, manifest->num_shards, &assignment, err));
    enum bsw_status status = list_units(&service, rank, err);
    if (status == BSW_OK) status = make_needs(&service, &shapes, &needs, err);
    if (status == BSW_OK) status = bsw_device_backend.forecast(&needs, free_bytes, out, err);
    bsw_free(&shapes);
    free_units(&service);
    bsw_assignment_deinit(&assignment);
    return status;
}

static const float *residual_center(const struct bsw_manifest *manifest)
{
    return manifest->lists.is_residual ? manifest->codec->table->center(manifest) : NULL;
}

enum bsw_status bsw_shard_service_look(struct bsw_shard_service *service,
                                       const struct bsw_probe_settings *probe,
                                       struct bsw_error *err)
{
    const struct bsw_search_settings *settings = &service->settings;
    bsw_coarse_search_close(&service->coarse);
    service->settings.probe = *probe;
    service->is_chosen = 0;
    // Keys of residuals lack something for every list, so that all lists are chosen, too.
    if (probe->probe == 0 && service->manifest->lists.is_residual)
        service->settings.probe.probe = service->manifest->lists.count;
    if (settings->probe.probe == 0) return BSW_OK;
    BSW_TRY(bsw_coarse_search_open(service->manifest, &settings->probe,
                                   residual_center(service->manifest), settings->level,
                                   settings->num_threads, &service->coarse, err));
    return service->backend->take_coarse
               ? service->backend->take_coarse(service->state, service->coarse, err)
               : BSW_OK;
}

enum bsw_status bsw_shard_service_open(const struct bsw_manifest *manifest, const char *folder,
                                       const struct bsw_search_settings *settings,
                                       const struct bsw_assignment *assignment, int rank,
                                       int show_progress, struct bsw_shard_service *out,
                                       struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    uint64_t memory = bsw_process_memory_bytes();
    *out = (struct bsw_shard_service){.manifest = manifest,
                                      .settings = *settings,
                                      .assignment = assignment,
                                      .backend = bsw_backend_of(settings)};
    bsw_scan_workspace_init(&out->workspace, settings->level, settings->num_threads);
    out->workspace.scan = settings->scan;
    out->workspace.queue = settings->queue;
    enum bsw_status status = list_units(out, rank, err);
    if (status == BSW_OK) status = open_backend(out, err);
    if (status == BSW_OK) status = bsw_shard_service_look(out, &settings->probe, err);
    if (status == BSW_OK && settings->selection.is_on)
        status = bsw_selection_open(&settings->selection, manifest->codec->table->product(manifest),
                                    settings->level, &out->selection, err);
    out->resident_bytes = centroid_bytes(out);
    struct bsw_progress progress;
    bsw_progress_init(&progress, "load", "shards", out->num_units, show_progress);
    for (uint32_t u = 0; u < out->num_units && status == BSW_OK; u++) {
        status = bsw_unit_load(out, folder, u, err);
        if (status == BSW_OK && out->num_failed == 0)
            out->resident_bytes += resident_bytes(&out->units[u].resident);
        bsw_progress_update(&progress, u + 1);
    }
    if (status == BSW_OK && settings->is_checked && out->num_failed == 0)
        status = bsw_self_check_open(out, err);
    bsw_progress_finish(&progress);
    if (status != BSW_OK) bsw_shard_service_close(out);
    out->load_seconds = bsw_clock_seconds() - started;
    out->grown_bytes = bsw_process_memory_bytes() - memory;
    return status;
}

void bsw_shard_service_close(struct bsw_shard_service *service)
{
    bsw_shard_service_drop(service);
    for (uint32_t u = 0; u < service->num_units; u++) {
        if (service->state) service->backend->unload(service->state, &service->units[u].loaded);
        bsw_resident_shard_unload(&service->units[u].resident);
    }
    bsw_coarse_search_close(&service->coarse);
    bsw_selection_close(&service->selection);
    bsw_self_check_close(&service->check);
    bsw_filter_masks_deinit(&service->masks);
    free_units(service);
    if (service->state) service->backend->close(service->state);
    service->state = NULL;
    bsw_scan_workspace_deinit(&service->workspace);
}

void bsw_shard_service_counts(const struct bsw_shard_service *service, struct bsw_scan_counts *out)
{
    *out = *service->backend->counts(service->state);
    out->num_ahead = service->num_ahead;
    out->copied_bytes -= service->forgotten_copied;
    out->gathered_bytes -= service->forgotten_gathered;
}

void bsw_shard_service_forget(struct bsw_shard_service *service)
{
    struct bsw_scan_counts counts;
    bsw_shard_service_counts(service, &counts);
    service->forgotten_copied += counts.copied_bytes;
    service->forgotten_gathered += counts.gathered_bytes;
}

void bsw_shard_service_return(struct bsw_shard_service *service,
                              const struct bsw_query_batch *batch)
{
    service->batch = *batch;
    service->batch.table = service->settings.table;
    if (service->settings.selection.is_on) service->batch.selection = &service->selection;
    service->selection.failure = (struct bsw_first_failure){0}; // of a batch that ended before it
    for (uint32_t u = 0; u < service->num_units; u++) {
        struct bsw_unit *unit = &service->units[u];
        size_t last;
        bsw_assignment_queries(service->assignment, unit->slice, batch->num_queries,
                               &unit->first_query, &last);
        unit->num_queries = last - unit->first_query;
    }
}

void bsw_shard_service_begin(struct bsw_shard_service *service, const struct bsw_query_batch *batch)
{
    bsw_shard_service_return(service, batch);
    service->is_chosen = 0;
    BSW_DAMAGE(bsw_damage_codes(service));
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
                              const struct bsw_query_range *queries, size_t keep,
                              struct bsw_scan_workspace *workspace, struct bsw_candidate_lists *out,
                              struct bsw_error *err)
{
    struct bsw_backend_shard own = unit->loaded, *shards = &own;
    own.lists = *out;
    struct bsw_scan_job job = {.first = (size_t)(unit - service->units),
                               .shards = &shards,
                               .num_shards = 1,
                               .queries = *queries,
                               .keep = keep,
                               .is_of_places = 1,
                               .workspace = workspace};
    enum bsw_status status = service->backend->begin(service->state, &job, err);
    if (status == BSW_OK)
        status = service->backend->end(service->state, &job, err);
    else
        service->backend->end(service->state, NULL, NULL);
    *out = own.lists;
    if (status == BSW_OK) BSW_DAMAGE(bsw_damage_scores(out));
    return status;
}

// The lists that the unit's queries look at: those of another unit with the same queries.
static enum bsw_status choose_lists(struct bsw_shard_service *service, const struct bsw_unit *unit,
                                    const struct bsw_list_choice **out, struct bsw_error *err)
{
    size_t dims = bsw_manifest_row_dims(service->manifest);
    *out = service->coarse ? &service->choice : NULL;
    if (!service->coarse || (service->is_chosen && service->chosen_first == unit->first_query &&
                             service->chosen_vectors == service->batch.vectors &&
                             service->choice.num_queries == unit->num_queries))
        return BSW_OK;
    service->is_chosen = 0;
    bsw_coarse_search_filter(service->coarse, service->batch.filter, unit->first_query);
    service->chosen_first = unit->first_query;
    service->chosen_vectors = service->batch.vectors;
    BSW_TRY(bsw_coarse_search_run(service->coarse,
                                  service->batch.vectors + unit->first_query * dims,
                                  unit->num_queries, &service->choice, err));
    service->is_chosen = 1;
    return BSW_OK;
}

// Span s of the service's batch.
static struct bsw_scan_job job_of(const struct bsw_shard_service *service, uint32_t s,
                                  const struct bsw_scan_round *round)
{
    const struct bsw_shard_range *span = &service->spans[s];
    const struct bsw_unit *unit = &service->units[span->first];
    return (struct bsw_scan_job){.span = s,
                                 .first = span->first,
                                 .shards = service->shards + span->first,
                                 .num_shards = span->num,
                                 .queries = {&service->batch, unit->first_query, unit->num_queries},
                                 .scan_dims = service->settings.probe.scan_dims,
                                 .limits = round->limits ? round->limits + unit->first_query : NULL,
                                 .keep = round->keep,
                                 .stays = bsw_service_is_kept(service)};
}

// The rows that the job's queries may find.
static enum bsw_status take_masks(struct bsw_shard_service *service, struct bsw_error *err)
{
    const struct bsw_row_filter *filter = service->batch.filter;
    struct bsw_scan_job *job = &service->job;
    const struct bsw_shard_range range = {job->first, job->num_shards};
    if (!filter) return BSW_OK;
    return bsw_filter_masks_make(&service->masks, service->num_units, service->shards, filter,
                                 bsw_row_filter_group(filter, job->queries.first_query), range,
                                 &job->masks, err);
}

// The lists that they look at.
static enum bsw_status take_choice(struct bsw_shard_service *service, size_t at,
                                   struct bsw_error *err)
{
    struct bsw_scan_job *job = &service->job;
    struct bsw_list_choice *own = &service->job_choice;
    const struct bsw_list_choice *all;
    BSW_TRY(choose_lists(service, &service->units[job->first], &all, err));
    if (!all) return BSW_OK;
    *own = *all;
    own->num_queries = job->queries.num_queries;
    job->choice = own;
    if (at == 0) return BSW_OK;
    own->lists += at * all->most;
    own->counts += at;
    if (own->additions) own->additions += at * all->most;
    return BSW_OK;
}

// For the queries from number `at` of the unit's on that may find the same rows; to be ended by
// scan_span, or dropped.
static enum bsw_status begin_span(struct bsw_shard_service *service, uint32_t s,
                                  const struct bsw_scan_round *round, size_t at,
                                  struct bsw_error *err)
{
    struct bsw_scan_job *job = &service->job;
    *job = job_of(service, s, round);
    service->job_batch = service->batch;
    size_t first = job->queries.first_query + at,
           last = job->queries.first_query + job->queries.num_queries;
    job->queries.num_queries = bsw_row_filter_end(service->batch.filter, first, last) - first;
    job->queries.first_query = first;
    job->queries.batch = &service->job_batch;
    if (job->limits) job->limits += at;
    job->workspace = &service->workspace;
    job->is_continued = at > 0;
    job->is_final = job->queries.num_queries == service->units[job->first].num_queries &&
                    bsw_all_found_survives(&service->settings, service->assignment->num_shards);
    BSW_TRY(take_choice(service, at, err));
    BSW_TRY(take_masks(service, err));
    service->is_begun = 1;
    return service->backend->begin(service->state, &service->job, err);
}

enum bsw_status bsw_shard_service_start(struct bsw_shard_service *service, struct bsw_error *err)
{
    const struct bsw_scan_round round = bsw_last_round(&service->settings, NULL);
    int is_first = !service->settings.is_histogram; // that round
    if (!service->settings.device || !is_first || service->num_spans == 0) return BSW_OK;
    return begin_span(service, 0, &round, 0, err);
}

void bsw_shard_service_drop(struct bsw_shard_service *service)
{
    if (service->is_begun) service->backend->end(service->state, NULL, NULL);
    service->is_begun = 0;
}

// All units of a span, group of queries after group; the first group of span 0 was maybe begun.
static enum bsw_status scan_span(struct bsw_shard_service *service, uint32_t s,
                                 const struct bsw_scan_round *round, struct bsw_error *err)
{
    struct bsw_scan_job *job = &service->job;
    size_t num_queries = service->units[service->spans[s].first].num_queries, done = 0;
    do {
        if (!service->is_begun) BSW_TRY(begin_span(service, s, round, done, err));
        service->is_begun = 0;
        BSW_TRY(service->backend->end(service->state, job, err));
        service->num_list_pairs += job->num_list_pairs;
        if (job->queries.num_queries < num_queries)
            BSW_TRY(bsw_filter_masks_add(&service->masks, job, done, num_queries, err));
        done += job->queries.num_queries;
    } while (done < num_queries);
    service->kept[s] = job->kept;
    for (size_t i = 0; i < job->num_shards; i++)
        service->units[job->first + i].refined = job->refined;
    for (size_t i = 0; i < job->num_shards && !job->stays && !job->refined.survivors; i++)
        BSW_DAMAGE(bsw_damage_scores(&job->shards[i]->lists));
    return BSW_OK;
}

// Lists that are refined need no cut, which is then of nothing: all stay.
static enum bsw_status append_none(const struct bsw_unit *unit, struct bsw_buffer *out,
                                   struct bsw_error *err)
{
    size_t head = out->bytes, bytes = unit->num_queries * sizeof(uint64_t);
    BSW_TRY(bsw_buffer_reserve(out, head + bytes, err));
    if (bytes > 0) memset(out->data + head, 0, bytes);
    out->bytes = head + bytes;
    return BSW_OK;
}

static enum bsw_status append_lists(const struct bsw_unit *unit, int is_ladder,
                                    struct bsw_buffer *out, struct bsw_error *err)
{
    if (unit->refined.survivors) return append_none(unit, out, err);
    for (size_t q = 0; q < unit->num_queries; q++) {
        size_t count;
        const uint64_t *list = bsw_candidate_list(&unit->loaded.lists, q, &count);
        BSW_TRY(append_list(unit, list, count, is_ladder, out, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_shard_service_scan(struct bsw_shard_service *service,
                                       const struct bsw_scan_round *round, struct bsw_buffer *out,
                                       struct bsw_error *err)
{
    out->bytes = 0;
    for (uint32_t s = 0; s < service->num_spans; s++) {
        const struct bsw_candidate_lists *lists = &service->shards[service->spans[s].first]->lists;
        BSW_TRY(scan_span(service, s, round, err));
        if (bsw_service_is_kept(service))
            BSW_TRY(bsw_buffer_append(out, lists->counts.data,
                                      lists->num_queries * sizeof(uint64_t), err));
    }
    BSW_TRY(bsw_selection_report(&service->selection, err));
    for (uint32_t u = 0; u < service->num_units && !bsw_service_is_kept(service); u++) {
        if (service->settings.is_checked && !service->units[u].refined.survivors)
            BSW_TRY(bsw_self_check_rows(service, &service->units[u], err));
        BSW_TRY(append_lists(&service->units[u], round->is_ladder, out, err));
    }
    return BSW_OK;
}

// ---- survivors ----

// Lists are in the total order, so the survivors are a leading part; of those that are refined,
// what is taken.
static size_t count_survivors(const struct bsw_unit *unit, size_t query, const struct bsw_cut *cut)
{
    size_t low = 0, high;
    const uint64_t *list = bsw_candidate_list(&unit->loaded.lists, query, &high);
    if (unit->refined.survivors) return high < unit->refined.stride ? high : unit->refined.stride;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bsw_is_within_cut(list[middle], unit->resident.shape.first_row, cut))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// What is refined already.
static enum bsw_status take_refined(struct bsw_shard_service *service, const struct bsw_unit *unit,
                                    const size_t *counts, struct bsw_survivor *out,
                                    struct bsw_error *err)
{
    const struct bsw_refined_lists *refined = &unit->refined;
    struct bsw_survivor *survivors = out;
    for (size_t q = 0; q < unit->num_queries; q++) {
        memcpy(survivors, refined->survivors + q * refined->stride, counts[q] * sizeof *survivors);
        survivors += counts[q];
    }
    BSW_DAMAGE(bsw_damage_survivors(out, (size_t)(survivors - out)));
    if (!service->settings.is_checked) return BSW_OK;
    BSW_TRY(bsw_self_check_survivor_rows(service, unit, counts, out, err));
    return bsw_self_check_survivors(service, unit, counts, out, err);
}

// Exact values; of those that are too many for an answer none need travel.
static enum bsw_status refine_survivors(struct bsw_shard_service *service,
                                        const struct bsw_unit *unit, size_t *counts,
                                        struct bsw_survivor *survivors, struct bsw_error *err)
{
    const struct bsw_search_settings *settings = &service->settings;
    const struct bsw_query_range queries = {&service->batch, unit->first_query, unit->num_queries};
    if (unit->refined.survivors) return take_refined(service, unit, counts, survivors, err);
    enum bsw_status status = service->backend->refine(service->state, &unit->loaded, &queries,
                                                      counts, &service->workspace, survivors, err);
    if (status != BSW_OK) return bsw_self_check_blame(service, unit, status, err);
    if (settings->is_checked)
        BSW_TRY(bsw_self_check_survivors(service, unit, counts, survivors, err));
    // Cuts of devices leave `keep` in all, among which a query's own row is not known here.
    if (!bsw_service_is_kept(service) || !settings->is_exact || settings->exclude_self)
        return BSW_OK;
    return bsw_survivors_trim(service->manifest->metric, (size_t)settings->k, unit->num_queries,
                              counts, survivors, &service->workspace, err);
}

static enum bsw_status refine_unit(struct bsw_shard_service *service, struct bsw_unit *unit,
                                   const struct bsw_cut *cuts, struct bsw_buffer *out,
                                   struct bsw_error *err)
{
    size_t *counts, total = 0;
    BSW_TRY(
        bsw_buffer_reserve(&service->workspace.counts, unit->num_queries * sizeof(size_t), err));
    counts = (size_t *)(void *)service->workspace.counts.data;
    for (size_t q = 0; q < unit->num_queries; q++) {
        counts[q] = count_survivors(unit, q, &cuts[unit->first_query + q]);
        total += counts[q];
    }
    size_t head = out->bytes, head_bytes = unit->num_queries * sizeof(uint64_t);
    BSW_TRY(bsw_buffer_reserve(out, head + head_bytes + total * sizeof(struct bsw_survivor), err));
    struct bsw_survivor *survivors = (struct bsw_survivor *)(void *)(out->data + head + head_bytes);
    BSW_TRY(refine_survivors(service, unit, counts, survivors, err));
    total = 0;
    for (size_t q = 0; q < unit->num_queries; q++) total += counts[q];
    if (head_bytes > 0) memcpy(out->data + head, counts, head_bytes);
    out->bytes = head + head_bytes + total * sizeof(struct bsw_survivor);
    return BSW_OK;
}

// Takes what is within the cuts from lists that stayed.
static enum bsw_status take_span(struct bsw_shard_service *service, uint32_t s,
                                 const struct bsw_cut *cuts, struct bsw_error *err)
{
    const struct bsw_scan_round round = bsw_last_round(&service->settings, NULL);
    const struct bsw_scan_job job = job_of(service, s, &round);
    BSW_TRY(service->backend->take(service->state, &job, cuts + job.queries.first_query, err));
    for (size_t i = 0; i < job.num_shards; i++) {
        BSW_DAMAGE(bsw_damage_scores(&job.shards[i]->lists));
        if (service->settings.is_checked)
            BSW_TRY(bsw_self_check_rows(service, &service->units[job.first + i], err));
    }
    return BSW_OK;
}

enum bsw_status bsw_shard_service_refine(struct bsw_shard_service *service,
                                         const struct bsw_cut *cuts, struct bsw_buffer *out,
                                         struct bsw_error *err)
{
    out->bytes = 0;
    service->num_ahead += (uint64_t)service->is_begun;
    for (uint32_t s = 0; s < service->num_spans && bsw_service_is_kept(service); s++)
        BSW_TRY(take_span(service, s, cuts, err));
    for (uint32_t u = 0; u < service->num_units; u++) {
        BSW_TRY(refine_unit(service, &service->units[u], cuts, out, err));
    }
    return BSW_OK;
}
