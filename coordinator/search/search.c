// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/search.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/arithmetic.h"
#include "common/base/clock.h"
#include "common/base/number_parse.h"
#include "common/base/process.h"
#include "common/files/row_ids.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/job/index_generation.h"
#include "coordinator/job/same_input.h"
#include "coordinator/search/merge_choice.h"
#include "shard/codecs/codec.h"

// ---- open ----

// A copy of the manifest that is given, whose arrays it borrows.
static enum bsw_status take_manifest(struct bsw_search *search, struct bsw_error *err)
{
    const struct bsw_search_options *o = &search->options;
    if (o->index) return bsw_manifest_read(o->index, &search->manifest, err);
    search->manifest = *o->manifest;
    return BSW_OK;
}

static const char *name_of(const struct bsw_search *search)
{
    return search->options.index ? search->options.index : search->manifest.source_path;
}

// What options say of each other: --extra-distance of --select, --check-every never.
static enum bsw_status complete(struct bsw_search_options *options, struct bsw_error *err)
{
    struct bsw_search_request *request = &options->request;
    if (options->check_seconds == BSW_CHECK_NEVER) options->is_unchecked = 1;
    if (!options->extra_distance) return BSW_OK;
    if (request->select == BSW_SELECT_QUEUE) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--extra-distance needs the whole histogram, not --select queue");
    }
    request->select = BSW_SELECT_HISTOGRAM;
    return bsw_count_parse("--extra-distance", options->extra_distance, &request->extra_distance,
                           err);
}

static enum bsw_status prepare(struct bsw_search *search, struct bsw_error *err)
{
    const struct bsw_search_options *o = &search->options;
    BSW_TRY(complete(&search->options, err));
    BSW_TRY(take_manifest(search, err));
    BSW_TRY(bsw_search_settle(&o->request, &search->manifest, name_of(search),
                              search->transport->num_ranks, &search->settings, err));
    search->settings.is_checked = !o->is_unchecked;
    search->settings.graphs = o->graphs;
    if (search->transport->rank != 0) return BSW_OK;
    return bsw_codec_index_model_open(o->index, &search->manifest, search->settings.level,
                                      &search->model, err);
}

// Digests the index, and what its table made of the request: a manifest may get another table while
// searches begin.
static uint64_t input_digest(const struct bsw_search *search)
{
    const struct bsw_search_settings *settings = &search->settings;
    const double numbers[] = {settings->probe.probe, settings->probe.ratio, settings->oversample};
    return XXH3_64bits_withSeed(numbers, sizeof numbers, search->manifest.build_digest);
}

enum bsw_status bsw_search_open(struct bsw_search *search, struct bsw_transport *transport,
                                const struct bsw_search_options *options, struct bsw_error *err)
{
    *search = (struct bsw_search){.transport = transport, .options = *options};
    BSW_TRY(bsw_transport_agree(transport, prepare(search, err), err));
    return bsw_same_input_agree(transport, input_digest(search), name_of(search), err);
}

// ---- load ----

// Kernels find entries themselves, as `brute` does.
static const char *what_needs_cpu(const struct bsw_search *search)
{
    const struct bsw_selection_settings *selection = &search->settings.selection;
    if (selection->is_on && strcmp(selection->finder->name, "brute") != 0)
        return "--entries-by other than brute";
    if (selection->is_on && selection->radii == BSW_RADII_NEAREST) return "--radii nearest";
    return NULL;
}

static enum bsw_status open_device(struct bsw_search *search, struct bsw_error *err)
{
    BSW_TRY(bsw_device_choice_open(&search->options.device, what_needs_cpu(search),
                                   search->transport, &search->device, err));
    search->settings.device = search->device.device;
    return BSW_OK;
}

// Whether a rank's device has room, as far as that is known before link and merge.
static enum bsw_status find_room(const struct bsw_search *search, struct bsw_error *err)
{
    const bsw_transport *transport = search->transport;
    struct bsw_memory_forecast forecast;
    size_t free_bytes;
    if (!search->device.device) return BSW_OK;
    BSW_TRY(bsw_device_free_bytes(search->device.device, &free_bytes, err));
    enum bsw_status status =
        bsw_shard_service_plan(&search->manifest, &search->settings, transport->rank,
                               transport->num_ranks, free_bytes, &forecast, err);
    if (status == BSW_OK && forecast.streamed_bytes > 0)
        status = bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY,
                          "%zu bytes of device memory are free, and %zu bytes of codes of an index "
                          "with lists would come from host memory for every batch",
                          free_bytes, forecast.streamed_bytes);
    if (status == BSW_OK) return BSW_OK;
    return bsw_prefix(err, status, "%s: ", bsw_device_label(search->device.device));
}

// `auto` takes CPUs where a device has too little memory for the codes of an index with lists: the
// bus is slower than a CPU's memory, and lists leave little else to do. All ranks.
static enum bsw_status leave_full_devices(struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_chosen_device *chosen = &search->device;
    struct bsw_error why;
    if (strcmp(search->options.device.text, "auto") != 0 || search->manifest.lists.count == 0)
        return BSW_OK;
    enum bsw_status status = find_room(search, &why);
    status = bsw_transport_agree(search->transport, status, &why);
    if (status == BSW_OK) return BSW_OK;
    if (err) *err = why;
    if (status != BSW_ERROR_OUT_OF_MEMORY) return status;
    if (chosen->device) snprintf(chosen->note, sizeof chosen->note, "%.255s", why.message);
    bsw_device_close(&chosen->device);
    search->settings.device = NULL;
    return BSW_OK;
}

// All ranks, each with its device or none. Before shards are loaded, which get what memory is left.
static enum bsw_status open_link(struct bsw_search *search, struct bsw_error *err)
{
    BSW_TRY(bsw_device_link_open(search->transport, search->device.device, search->options.link,
                                 &search->link, search->link_note, err)); // all return alike
    enum bsw_status status =
        bsw_batch_link_open(search->link, search->device.device, search->transport,
                            &search->manifest, &search->settings, &search->batch_link, err);
    BSW_TRY(bsw_transport_agree(search->transport, status, err));
    if (search->device.device) status = bsw_device_share(search->device.device, err);
    return bsw_transport_agree(search->transport, status, err);
}

// Where cuts are found. After the link, which takes memory too.
static enum bsw_status open_merge(struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_search_settings *settings = &search->settings;
    size_t room;
    BSW_TRY(bsw_merge_choose(search->transport, search->device.device, search->link,
                             search->link_note, &search->manifest, &search->assignment,
                             search->options.request.merge, settings, &room, err));
    if (settings->merge_place == BSW_MERGE_ON_HOST) return BSW_OK;
    const struct bsw_device_merge_needs needs =
        bsw_merge_needs(&search->manifest, &search->assignment, settings);
    enum bsw_status status =
        bsw_batch_device_merge_open(&needs, search->link, search->device.device, search->transport,
                                    room, &search->device_merge, err);
    return bsw_transport_agree(search->transport, status, err);
}

// From now on. Checks on CPUs look at all codes, others at a part of them: only a round of those
// shows that what was answered before it is right. Another rank may have a device where this one
// has none.
static struct bsw_check_schedule schedule_checks(const struct bsw_search *search)
{
    const struct bsw_search_options *o = &search->options;
    int is_cpu = strcmp(o->device.text, "cpu") == 0 || bsw_device_kind()[0] == '\0';
    return (struct bsw_check_schedule){
        .seconds = o->is_unchecked ? 0 : o->check_seconds,
        .checked_at = bsw_clock_seconds(),
        .round = is_cpu ? 1 : bsw_self_check_round(&search->manifest, &search->assignment)};
}

// Rank 0, which answers.
static enum bsw_status read_ids(struct bsw_search *search, struct bsw_error *err)
{
    const struct bsw_search_options *o = &search->options;
    if (search->transport->rank != 0 || !o->index || o->answers_rows) return BSW_OK;
    BSW_TRY(bsw_row_ids_read(&search->manifest, o->index, &search->row_ids, err));
    search->batches.finish.row_ids = search->row_ids;
    return BSW_OK;
}

enum bsw_status bsw_search_load(struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_transport *transport = search->transport;
    const struct bsw_progress *progress = search->options.progress;
    if (search->is_loaded) return BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, open_device(search, err), err));
    BSW_TRY(leave_full_devices(search, err));
    BSW_TRY(bsw_assignment_share(transport, search->manifest.num_shards, &search->assignment, err));
    BSW_TRY(open_link(search, err));
    BSW_TRY(open_merge(search, err));
    enum bsw_status status = bsw_shard_service_open(
        &search->manifest, search->options.index, &search->settings, &search->assignment,
        transport->rank, transport->rank == 0 && progress && progress->is_shown, &search->service,
        err);
    if (status == BSW_OK) {
        status = bsw_batch_search_init(&search->batches, transport, &search->service,
                                       &search->queries, err);
    }
    if (status == BSW_OK) status = read_ids(search, err);
    status = bsw_generation_explain(search->options.index, &search->manifest, status, err);
    if (status == BSW_OK) status = bsw_self_check_answers(&search->service, err);
    if (search->link) search->batches.link = &search->batch_link;
    search->batches.filter = &search->filter;
    if (search->device_merge.device) search->batches.device_merge = &search->device_merge;
    search->batches.checks = schedule_checks(search);
    search->is_loaded = status == BSW_OK;
    return bsw_transport_agree(transport, status, err);
}

enum bsw_status bsw_search_look(struct bsw_search *search, const struct bsw_probe_settings *probe,
                                struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    search->settings.probe = *probe;
    if (search->is_loaded) status = bsw_shard_service_look(&search->service, probe, err);
    return bsw_transport_agree(search->transport, status, err);
}

// ---- what a rank reports of a run ----

static struct bsw_device_report report_device(const struct bsw_search *search)
{
    struct bsw_device_report report = {.label = "cpu"};
    const bsw_device *device = search->device.device;
    memcpy(report.note, search->device.note, sizeof report.note);
    if (!device) return report;
    snprintf(report.label, sizeof report.label, "%s", bsw_device_label(device));
    snprintf(report.name, sizeof report.name, "%s", bsw_device_name(device));
    report.used_bytes = bsw_device_used_bytes(device);
    bsw_shard_service_counts(&search->service, &report.counts);
    return report;
}

static struct bsw_search_rank report_rank(const struct bsw_search *search)
{
    const struct bsw_shard_service *service = &search->service;
    const struct bsw_scan_workspace *work = &service->workspace;
    return (struct bsw_search_rank){
        .load_seconds = service->load_seconds,
        .scan_seconds = work->scan_seconds,
        .refine_seconds = work->refine_seconds,
        .cpu_seconds = search->cpu_seconds,
        .scanned_bytes = work->scanned_bytes,
        .resident_bytes = service->resident_bytes,
        .grown_bytes = service->grown_bytes,
        // Read from a file of /proc, which takes as long as a query.
        .memory_bytes = search->run.is_followed ? 0 : bsw_process_memory_bytes(),
        .mapped_bytes = search->run.is_followed ? 0 : bsw_process_mapped_bytes(),
        .num_units = service->num_units,
        .num_pairs = work->num_pairs,
        .num_stopped = work->num_stopped,
        .num_rescanned = work->num_rescanned,
        .num_list_pairs = service->num_list_pairs,
        .selection = service->selection.work,
        .coarse_seconds = service->coarse ? bsw_coarse_search_seconds(service->coarse) : 0,
        .device = report_device(search)};
}

// What this rank has counted.
static void forget_rank(struct bsw_search *search)
{
    struct bsw_scan_workspace *work = &search->service.workspace;
    work->scan_seconds = work->refine_seconds = 0;
    work->scanned_bytes = work->num_pairs = work->num_stopped = work->num_rescanned = 0;
    search->service.num_list_pairs = 0;
    search->service.selection.work = (struct bsw_selection_work){0};
    bsw_shard_service_forget(&search->service);
}

// Ranks count over all passes, warm-up included; phases and rates are those of one pass.
static void average_over_passes(struct bsw_search *search)
{
    uint64_t passes = search->pass;
    for (int rank = 0; rank < search->transport->num_ranks; rank++) {
        struct bsw_search_rank *r = &search->ranks[rank];
        r->scan_seconds /= (double)passes;
        r->refine_seconds /= (double)passes;
        r->coarse_seconds /= (double)passes;
        r->cpu_seconds /= (double)passes;
        r->scanned_bytes /= passes;
        r->device.counts.copied_bytes /= passes;
        r->device.counts.gathered_bytes /= passes;
    }
}

// All ranks, once none of them has anything else to send: search->ranks on rank 0.
static enum bsw_status gather_ranks(struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_transport *transport = search->transport;
    struct bsw_message message = {
        .kind = BSW_MESSAGE_STATISTICS, .batch = search->batches.num_batches, .name = "statistics"};
    const struct bsw_search_rank own = report_rank(search);
    if (transport->rank == 0)
        BSW_TRY(bsw_allocate_zero(&search->ranks, (size_t)transport->num_ranks, sizeof own,
                                  "statistics", err));
    BSW_TRY(bsw_collect_records(transport, &message, &own, sizeof own, search->ranks, err));
    if (transport->rank == 0) average_over_passes(search);
    return BSW_OK;
}

// ---- run ----

static enum bsw_status put_answers(void *context, uint64_t first, size_t count, const int64_t *ids,
                                   const float *values, struct bsw_error *err)
{
    struct bsw_search *search = context;
    const struct bsw_search_run *run = &search->run;
    if (search->pass + 1 == run->warmup + run->repeat)
        BSW_TRY(
            run->sink->answers.take(run->sink->answers.context, first, count, ids, values, err));
    if (search->pass >= run->warmup + run->repeat) return BSW_OK; // for its time alone
    search->num_answered += count;
    if (run->sink->note_progress)
        run->sink->note_progress(run->sink->context, search->num_answered, search->num_asked);
    if (search->options.progress)
        bsw_progress_update(search->options.progress, search->num_answered);
    return BSW_OK;
}

// Whether devices scan while the batch before is merged and refined: where lists stay there and
// limits need no other rank. Queues are looked at by the host as they fill.
static int scans_beside(const struct bsw_search *search)
{
    const struct bsw_search_settings *settings = &search->settings;
    return settings->merge_place != BSW_MERGE_ON_HOST && !settings->is_histogram &&
           settings->queue.length == 0;
}

static int is_overlapped(const struct bsw_search *search)
{
    enum bsw_search_overlap overlap = search->options.overlap;
    int num_busy = search->settings.num_threads * search->transport->num_local_ranks;
    if (overlap == BSW_OVERLAP_AUTO && scans_beside(search)) return 1;
    if (overlap == BSW_OVERLAP_AUTO) return num_busy < bsw_num_usable_cpus(search->options.pinning);
    return overlap == BSW_OVERLAP_ON;
}

static enum bsw_status open_pipeline(struct bsw_search *search, struct bsw_error *err)
{
    static const struct bsw_thread_pinning not_pinned;
    const struct bsw_thread_pinning *pinning = search->options.pinning;
    uint64_t most = bsw_batch_filter_most(&search->filter, search->settings.batch),
             num = search->queries.num_queries;
    const struct bsw_pipeline_options options = {.batch = (size_t)(num < most ? num : most),
                                                 .num_threads = search->settings.num_threads,
                                                 .is_overlapped = is_overlapped(search),
                                                 .pinning = pinning ? pinning : &not_pinned,
                                                 .put = put_answers,
                                                 .context = search,
                                                 .parts = search->parts};
    return bsw_batch_pipeline_init(&search->pipeline, &search->batches, &options, err);
}

static enum bsw_status open_allowed(struct bsw_search *search, struct bsw_error *err)
{
    const struct bsw_allowed_memory *memory = &search->run.allow;
    const struct bsw_allowed_base base = {search->manifest.first_row, search->manifest.num_rows,
                                          search->queries.num_queries};
    if (!search->options.allow && !memory->masks && !memory->ids) return BSW_OK;
    return bsw_allowed_rows_open(search->options.allow, memory, &base, &search->allowed, err);
}

// Rank 0: the queries, and what the sink has to say.
static enum bsw_status begin_lead(struct bsw_search *search, struct bsw_error *err)
{
    const struct bsw_search_run *run = &search->run;
    const struct bsw_search_sink *sink = run->sink;
    char model[BSW_PATH_BYTES];
    if (search->options.index && bsw_text_model_of_index(search->options.index, model))
        BSW_TRY(bsw_text_model_lend(&search->text, model, search->settings.level, &run->queries, 1,
                                    err));
    BSW_TRY(bsw_query_source_open(run->queries, run->query_rows, &search->manifest,
                                  search->settings.query_bits, search->settings.level,
                                  &search->queries, err));
    BSW_TRY(open_allowed(search, err));
    search->queries.has_no_addends = bsw_selection_counts(&search->settings.selection);
    search->num_asked = (run->warmup + run->repeat) * search->queries.num_queries;
    if (sink->open) BSW_TRY(sink->open(sink->context, search, &search->parts, err));
    if (sink->answers.begin)
        BSW_TRY(sink->answers.begin(sink->answers.context, search->queries.num_queries,
                                    search->settings.k, err));
    uint64_t most = run->least_seconds > 0 && run->repeat < BSW_SEARCH_MAX_PASSES
                        ? BSW_SEARCH_MAX_PASSES
                        : run->repeat;
    return bsw_allocate_zero(&search->seconds, most, sizeof *search->seconds, "times", err);
}

// What is left of the run before goes.
static void forget_run(struct bsw_search *search)
{
    bsw_batch_pipeline_deinit(&search->pipeline);
    bsw_query_source_close(&search->queries);
    bsw_text_model_take_back(&search->text);
    bsw_allowed_rows_close(&search->allowed);
    bsw_free(&search->seconds);
    bsw_free(&search->ranks);
    search->queries = (struct bsw_query_source){0};
    search->parts = (struct bsw_search_parts){0};
    search->num_asked = 0;
    if (search->is_loaded) forget_rank(search);
}

static enum bsw_status begin(struct bsw_search *search, const struct bsw_search_run *run,
                             struct bsw_error *err)
{
    struct bsw_transport *transport = search->transport;
    struct bsw_search_parts none;
    forget_run(search);
    search->run = *run;
    enum bsw_status status = transport->rank == 0 ? begin_lead(search, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    if (transport->rank != 0 && run->sink->open)
        status = run->sink->open(run->sink->context, search, &none, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_search_load(search, err));
    BSW_TRY(bsw_batch_filter_begin(&search->filter, transport, &search->service, &search->allowed,
                                   search->options.index, err));
    search->batches.others_know = 0;
    search->batches.checks.note = transport->rank == 0 ? run->sink->note_check : NULL;
    search->batches.checks.context = run->sink->context;
    if (transport->rank == 0) status = open_pipeline(search, err);
    search->cpu_started = bsw_process_seconds();
    return bsw_transport_agree(transport, status, err);
}

static enum bsw_status run_pass(struct bsw_search *search, struct bsw_error *err)
{
    const struct bsw_search_run *run = &search->run;
    struct bsw_batch_search *batches = &search->batches;
    batches->times = (struct bsw_search_times){0}; // phases are those of the last pass
    batches->finish.num_survivors = batches->finish.num_empty = 0;
    memset(batches->exchanges, 0, sizeof batches->exchanges);
    double started = bsw_clock_seconds();
    BSW_TRY(bsw_batch_pipeline_run(&search->pipeline, err));
    double seconds = bsw_clock_seconds() - started;
    if (search->pass >= run->warmup) search->seconds[search->pass - run->warmup] = seconds;
    return BSW_OK;
}

// timed: seconds of the timed passes so far.
static int is_pass_left(const struct bsw_search *search, double timed)
{
    const struct bsw_search_run *run = &search->run;
    return search->pass < run->warmup + run->repeat ||
           (timed < run->least_seconds && search->pass < run->warmup + BSW_SEARCH_MAX_PASSES);
}

static enum bsw_status run_passes(struct bsw_search *search, struct bsw_error *err)
{
    const struct bsw_search_run *run = &search->run;
    struct bsw_progress *progress = search->options.progress;
    enum bsw_status status = BSW_OK;
    if (progress)
        bsw_progress_init(progress, "search", "queries", search->num_asked, progress->is_shown);
    double started = bsw_clock_seconds(), timed = 0;
    search->num_answered = search->parts.num_done;
    if (run->sink->note_progress)
        run->sink->note_progress(run->sink->context, search->num_answered, search->num_asked);
    for (search->pass = 0; status == BSW_OK && is_pass_left(search, timed); search->pass++) {
        status = run_pass(search, err);
        if (search->pass >= run->warmup) timed += search->seconds[search->pass - run->warmup];
    }
    search->passes_seconds = bsw_clock_seconds() - started;
    if (progress) bsw_progress_finish(progress);
    return status;
}

static enum bsw_status lead(struct bsw_search *search, struct bsw_error *err)
{
    enum bsw_status status = run_passes(search, err);
    status = bsw_batch_search_end(&search->batches, status, err);
    bsw_batch_pipeline_deinit(&search->pipeline);
    return status;
}

enum bsw_status bsw_search_run(struct bsw_search *search, const struct bsw_search_run *run,
                               struct bsw_error *err)
{
    struct bsw_transport *transport = search->transport;
    const struct bsw_search_sink *sink = run->sink;
    BSW_TRY(begin(search, run, err));
    BSW_TRY(transport->rank == 0 ? lead(search, err)
                                 : bsw_batch_search_serve(&search->batches, err));
    search->cpu_seconds = bsw_process_seconds() - search->cpu_started;
    enum bsw_status status = run->is_followed ? BSW_OK : bsw_self_check_end(&search->service, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = gather_ranks(search, err);
    if (status == BSW_OK && transport->rank == 0 && sink->finish)
        status = sink->finish(sink->context, search, err);
    return bsw_transport_agree(transport, status, err);
}

void bsw_search_close(struct bsw_search *search)
{
    if (!search->transport) return;
    search->is_loaded = 0;
    forget_run(search);
    if (search->batches.payloads) bsw_batch_search_deinit(&search->batches);
    bsw_batch_device_merge_close(&search->device_merge);
    bsw_batch_link_close(&search->batch_link);
    bsw_device_link_close(&search->link);
    bsw_shard_service_close(&search->service);
    bsw_batch_filter_close(&search->filter);
    bsw_assignment_deinit(&search->assignment);
    bsw_device_close(&search->device.device);
    bsw_codec_model_close(&search->model);
    bsw_free(&search->row_ids);
    if (search->options.index) bsw_manifest_deinit(&search->manifest);
    *search = (struct bsw_search){0};
}

// ---- what all ranks add up to ----

static const char *device_kind(const struct bsw_search *search)
{
    int num_cpus = 0, num_ranks = search->transport->num_ranks;
    for (int rank = 0; rank < num_ranks; rank++)
        num_cpus += strcmp(search->ranks[rank].device.label, "cpu") == 0;
    return num_cpus == num_ranks ? "cpu" : num_cpus == 0 ? bsw_device_kind() : "mixed";
}

static double share_of(uint64_t part, uint64_t all)
{
    return all > 0 ? (double)part / (double)all : 0;
}

static void add_work(const struct bsw_selection_work *from, struct bsw_selection_work *to)
{
    to->num_entries += from->num_entries;
    to->num_computed += from->num_computed;
    to->num_within += from->num_within;
    to->num_lookups += from->num_lookups;
    to->num_hits += from->num_hits;
}

struct bsw_search_stats bsw_search_stats(const struct bsw_search *search)
{
    const struct bsw_scan_workspace *work = &search->service.workspace;
    uint64_t pairs = 0, stopped = 0, list_pairs = 0;
    struct bsw_selection_work selection = {0};
    struct bsw_search_stats stats = {
        .seconds = bsw_median(search->seconds, (size_t)(search->pass - search->run.warmup)),
        .num_timed = search->pass - search->run.warmup,
        .num_searched = search->queries.num_queries - search->parts.num_done,
        .num_survivors = search->batches.finish.num_survivors,
        .num_empty = search->batches.finish.num_empty,
        .received_bytes = bsw_batch_search_received_bytes(&search->batches),
        .scan = bsw_scan_name(work->used),
        .level = bsw_cpu_level_name(work->level),
        .device_kind = device_kind(search)};
    for (int rank = 0; rank < search->transport->num_ranks; rank++) {
        const struct bsw_search_rank *r = &search->ranks[rank];
        if (r->scan_seconds > search->ranks[stats.slowest_rank].scan_seconds)
            stats.slowest_rank = rank;
        pairs += r->num_pairs;
        list_pairs += r->num_list_pairs;
        stopped += r->num_stopped;
        stats.cpu_seconds += r->cpu_seconds;
        add_work(&r->selection, &selection);
        stats.num_rescanned += r->num_rescanned;
    }
    uint64_t passes = search->pass;
    stats.busy_cores = stats.cpu_seconds * (double)passes / search->passes_seconds;
    double asked = (double)stats.num_searched * (double)passes;
    stats.rows_a_query = (double)pairs / asked;
    // Every shard has its part of a list.
    stats.lists_a_query = (double)list_pairs / asked / search->manifest.num_shards;
    stats.queries_per_second = (double)stats.num_searched / stats.seconds;
    stats.selection = selection;
    stats.entries_share = share_of(selection.num_within, selection.num_entries);
    stats.computed_share = share_of(selection.num_computed, selection.num_entries);
    stats.lookups_share = share_of(selection.num_hits, selection.num_lookups);
    stats.stopped_share = pairs > 0 ? (double)stopped / (double)pairs : 0;
    return stats;
}

const char *bsw_search_refine_name(const struct bsw_search *search)
{
    int is_exact = search->settings.is_exact || search->manifest.codec->table->has_exact_keys;
    return is_exact ? "exact" : "none";
}
