// search: rank 0 reads queries and writes answers, every rank serves its shards.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/median.h"
#include "common/process_memory.h"
#include "common/progress.h"
#include "common/run_status.h"
#include "common/stop_signal.h"
#include "coordinator/batch_pipeline.h"
#include "coordinator/command.h"
#include "coordinator/command_files.h"
#include "coordinator/device_choice.h"
#include "coordinator/rbe_encoding.h"
#include "coordinator/result_journal.h"
#include "coordinator/same_input.h"
#include "coordinator/search_checks.h"
#include "coordinator/search_job.h"
#include "coordinator/search_sizes.h"
#include "coordinator/sidecar.h"
#include "kernels/encode/raw_codes.h"

enum { MESSAGE_STATISTICS = 40 };

static enum bsw_status parse(struct bsw_search_job *job, int argc, char **argv, int *done,
                             struct bsw_error *err)
{
    struct bsw_search_options *o = &job->options;
    const struct bsw_option options[] = {
        {"index", BSW_OPTION_TEXT, &o->index, "FOLDER", NULL, 1, 0, 0, NULL,
         "index made by encode"},
        {"queries", BSW_OPTION_TEXT, &o->queries, "FILE", NULL, 1, 0, 0, NULL, "query vectors"},
        {"out", BSW_OPTION_TEXT, &o->out, "FILE", NULL, 1, 0, 0, NULL,
         "result file (big-ann's layout); FILE.json too"},
        {"k", BSW_OPTION_COUNT, &o->k, "K", BSW_SEARCH_K_TEXT, 0, 1, BSW_SEARCH_MAX_K, NULL,
         "neighbours a query"},
        {"query-bits", BSW_OPTION_COUNT, &o->query_bits, "BQ", NULL, 0, 1, BSW_MAX_QUERY_BITS, NULL,
         "bits a query component, not for codec raw [6]"},
        {"oversample", BSW_OPTION_NUMBER, &o->oversample, "X", BSW_SEARCH_OVERSAMPLE_TEXT, 0, 1,
         10000, NULL, "candidates to refine, times k; codec raw needs none"},
        {"scan", BSW_OPTION_CHOICE, &o->scan, NULL, "auto", 0, 0, 0, BSW_SCAN_NAMES,
         "bit planes or int8 units, in full or progressively; auto: what measured faster; "
         "a GPU takes progressive-planes as progressive-matrix"},
        {"select", BSW_OPTION_CHOICE, &o->select, NULL, "threshold", 0, 0, 0,
         "threshold|histogram|queue",
         "how candidates are chosen; queue: rbeGIR's, which may miss some"},
        {"items", BSW_OPTION_COUNT, &o->queue.items, "I", "256", 0, 1, BSW_QUEUE_MAX_ITEMS, NULL,
         "queue: rows that each of a block's 256 threads goes over"},
        {"queue-length", BSW_OPTION_COUNT, &o->queue.length, "Q", "1", 0, 1, BSW_QUEUE_MAX_LENGTH,
         NULL, "queue: best rows that a thread keeps"},
        {"extra-distance", BSW_OPTION_TEXT, &o->extra_distance, "E", NULL, 0, 0, 0, NULL,
         "histogram: all within D_K + E; implies --select histogram"},
        {"max-candidates", BSW_OPTION_COUNT, &o->max_candidates, "N",
         BSW_SEARCH_MAX_CANDIDATES_TEXT, 0, 1, 1e8, NULL, "histogram: at most so many a query"},
        {"histogram-k", BSW_OPTION_COUNT, &o->histogram_k, "K", NULL, 0, 1, BSW_SEARCH_MAX_K, NULL,
         "histogram: rows that D_K reaches, at most --k [--k]"},
        {"refine", BSW_OPTION_CHOICE, &o->refine, NULL, "exact", 0, 0, 0, "exact|none",
         "order by exact values of the raw vectors, or by code; codec raw is exact anyway"},
        {"merge", BSW_OPTION_CHOICE, &o->merge, NULL, "auto", 0, 0, 0, "auto|gather|ladder",
         "how candidates of shards meet; auto: ladder on several ranks"},
        {"batch", BSW_OPTION_COUNT, &o->batch, "N", BSW_SEARCH_BATCH_TEXT, 0, 1, 1e6, NULL,
         "queries at a time"},
        {"overlap", BSW_OPTION_CHOICE, &o->overlap, NULL, "auto", 0, 0, 0, "auto|on|off",
         "code and answer other batches beside the scan; auto: where a core is to spare"},
        {"device", BSW_OPTION_TEXT, &o->device, "auto|cpu|cuda|cuda:N", "auto", 0, 0, 0, NULL,
         "where to scan: a GPU a rank, or all ranks of a host on GPU N"},
        {"device-memory", BSW_OPTION_COUNT, &o->device_memory, "BYTES", "0", 0, 0, 1e15, NULL,
         "most memory of a GPU that a rank uses; 0: all that is free"},
        {"link", BSW_OPTION_CHOICE, &o->link, NULL, "auto", 0, 0, 0, "auto|mpi|nccl",
         "what moves GPU data between ranks; auto: NCCL where each has a GPU of its own"},
        {"check-every", BSW_OPTION_TEXT, &o->check_every, "SECONDS|never", BSW_CHECK_EVERY_TEXT, 0,
         0, 0, NULL, "self-checks at the start, so often and at the end; 0: start and end"},
        {"query-rows", BSW_OPTION_ROWS, &o->query_rows, "A:B", NULL, 0, 0, 0, NULL,
         "only these queries"},
        {"exclude-self", BSW_OPTION_FLAG, &o->exclude_self, NULL, NULL, 0, 0, 0, NULL,
         "leave row i out of the answer of query i"},
        {"warmup", BSW_OPTION_COUNT, &o->warmup, "N", "0", 0, 0, 1000, NULL,
         "passes before timing"},
        {"repeat", BSW_OPTION_COUNT, &o->repeat, "N", "1", 0, 1, 1000, NULL,
         "timed passes; the median is reported"},
        {"force", BSW_OPTION_FLAG, &o->force, NULL, NULL, 0, 0, 0, NULL,
         "replace an existing result file, begin an unfinished one anew"},
        {"resume", BSW_OPTION_FLAG, &o->resume, NULL, NULL, 0, 0, 0, NULL,
         "go on with an unfinished result file; without one begin"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"search", "search an index with a file of queries",
                                           options, sizeof options / sizeof options[0]};
    return bsw_command_parse(job->transport, &table, &o->common, argc, argv, done, err);
}

// ---- settings: from options and manifest, the same on every rank ----

static enum bsw_status settle_queue(struct bsw_search_job *job, struct bsw_error *err)
{
    const struct bsw_search_options *o = &job->options;
    if (strcmp(o->select, "queue") != 0) return BSW_OK;
    if (o->extra_distance) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--extra-distance needs the whole histogram, not --select queue");
    }
    if (bsw_scan_is_progressive(job->settings.scan)) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--select queue looks at every key, --scan %s leaves most rows out",
                        o->scan);
    }
    job->settings.queue = o->queue;
    return BSW_OK;
}

static enum bsw_status settle_candidates(struct bsw_search_job *job, struct bsw_error *err)
{
    const struct bsw_search_options *o = &job->options;
    struct bsw_search_settings *settings = &job->settings;
    settings->exclude_self = (uint64_t)o->exclude_self;
    uint64_t num_rows = job->manifest.num_rows - settings->exclude_self; // that an answer may have
    if (o->k > num_rows) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--k %llu: the index has %llu rows only%s",
                        (unsigned long long)o->k, (unsigned long long)job->manifest.num_rows,
                        o->exclude_self ? ", one of them the query" : "");
    }
    BSW_TRY(settle_queue(job, err));
    settings->is_histogram = o->extra_distance || strcmp(o->select, "histogram") == 0;
    if (o->extra_distance) {
        BSW_TRY(
            bsw_count_parse("--extra-distance", o->extra_distance, &settings->extra_distance, err));
        if (settings->extra_distance > INT32_MAX) {
            return bsw_fail(err, BSW_ERROR_USAGE, "--extra-distance %s: distances end at 2^31",
                            o->extra_distance);
        }
    }
    if (settings->is_histogram && job->manifest.codec != BSW_CODEC_XFBQ) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "histogram selection needs integer distances: codec %s has none, xfbq has",
                        bsw_codec_name(job->manifest.codec));
    }
    if (o->histogram_k > (settings->is_histogram ? o->k : 0))
        return bsw_fail(err, BSW_ERROR_USAGE, "--histogram-k: no histogram, or above --k");
    settings->histogram_k = o->histogram_k;
    if (settings->is_histogram && o->max_candidates < o->k) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--max-candidates %llu is below --k %llu",
                        (unsigned long long)o->max_candidates, (unsigned long long)o->k);
    }
    uint64_t candidates = !settings->is_exact ? o->k
                          : settings->is_histogram
                              ? o->max_candidates
                              : bsw_search_keep(o->k, o->oversample, job->manifest.num_rows);
    // A query that is no row of the index may have all of them.
    if (candidates > job->manifest.num_rows) candidates = job->manifest.num_rows;
    settings->keep = candidates + settings->exclude_self;
    return BSW_OK;
}

static enum bsw_status settle_scan(struct bsw_search_job *job, struct bsw_error *err)
{
    const char *name = job->options.scan;
    enum bsw_scan_kind kind = job->settings.scan = bsw_scan_kind_of(name);
    if (bsw_scan_is_progressive(kind) && bsw_manifest_stage(&job->manifest) == 0) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--scan %s: the codes of %s have no first stage",
                        name, job->options.index);
    }
    return BSW_OK;
}

// Codes of rbe have as many planes as the model's query side.
static enum bsw_status settle_learned(struct bsw_search_job *job, struct bsw_error *err)
{
    uint64_t asked = job->options.query_bits;
    uint32_t planes = job->manifest.query_planes;
    if (asked > 0 && asked != planes) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--query-bits %llu: the model of %s has %u",
                        (unsigned long long)asked, job->options.index, planes);
    }
    job->settings.query_bits = planes;
    return BSW_OK;
}

// Keys of codec raw are the exact values: there are no planes, and nothing is left to refine.
static enum bsw_status settle_raw(struct bsw_search_job *job, struct bsw_error *err)
{
    struct bsw_search_settings *settings = &job->settings;
    if (job->options.query_bits > 0) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--query-bits is for codes: codec raw takes the queries whole");
    }
    if (settings->scan == BSW_SCAN_PLANES) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--scan planes: codec raw has no bit planes: auto or matrix");
    }
    settings->query_bits = BSW_RAW_QUERY_BITS;
    settings->scan = BSW_SCAN_MATRIX;
    settings->is_exact = 0;
    return BSW_OK;
}

// Several passes are for timing, and what is timed is not cut into runs.
static int is_journaled(const struct bsw_search_job *job)
{
    return job->options.warmup == 0 && job->options.repeat == 1;
}

static enum bsw_status settle(struct bsw_search_job *job, struct bsw_error *err)
{
    const struct bsw_search_options *o = &job->options;
    struct bsw_search_settings *settings = &job->settings;
    if (o->resume && !is_journaled(job)) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--resume is for a search of one pass, without --warmup and --repeat");
    }
    settings->query_bits = o->query_bits > 0 ? (uint32_t)o->query_bits : BSW_SEARCH_QUERY_BITS;
    settings->k = o->k;
    settings->is_exact = strcmp(o->refine, "exact") == 0;
    settings->is_ladder = strcmp(o->merge, "ladder") == 0 ||
                          (strcmp(o->merge, "auto") == 0 && job->transport->num_ranks > 1);
    settings->level = o->common.level;
    settings->num_threads = (int)o->common.threads;
    BSW_TRY(bsw_check_every_parse(o->check_every, &settings->is_checked, &job->check_seconds, err));
    BSW_TRY(settle_scan(job, err));
    if (job->manifest.codec == BSW_CODEC_RBE) BSW_TRY(settle_learned(job, err));
    if (job->manifest.codec == BSW_CODEC_RAW)
        BSW_TRY(settle_raw(job, err));
    else
        BSW_TRY(bsw_code_layout_check(&job->manifest.layout, settings->query_bits, err));
    BSW_TRY(settle_candidates(job, err));
    job->batch = bsw_search_batch(&job->manifest, job->transport->num_ranks, settings->is_ladder,
                                  settings->keep, o->batch);
    settings->batch = (size_t)job->batch;
    return BSW_OK;
}

// ---- running ----

// What the result is a function of: not ranks, threads, batches, scans, merging or devices.
static void add_fields(const struct bsw_search_job *job, struct bsw_journal_fields *fields)
{
    const struct bsw_search_settings *settings = &job->settings;
    bsw_journal_field_text(fields, "bitsweep", BITSWEEP_VERSION);
    bsw_journal_field_digest(fields, "index", job->manifest.build_digest);
    bsw_journal_field_count(fields, "number of queries", job->queries.num_queries);
    bsw_journal_field_digest(fields, "queries", job->queries.digest);
    bsw_journal_field_count(fields, "k", settings->k);
    bsw_journal_field_count(fields, "candidates", settings->keep);
    bsw_journal_field_count(fields, "query bits", settings->query_bits);
    bsw_journal_field_text(fields, "select", bsw_search_select_name(job));
    bsw_journal_field_count(fields, "items", settings->queue.items);
    bsw_journal_field_count(fields, "queue length", settings->queue.length);
    bsw_journal_field_count(fields, "extra distance", settings->extra_distance);
    bsw_journal_field_count(fields, "histogram k", settings->histogram_k);
    bsw_journal_field_count(fields, "exclude-self", (uint64_t)job->options.exclude_self);
    bsw_journal_field_text(fields, "refine", settings->is_exact ? "exact" : "none");
}

static enum bsw_status open_rank0(struct bsw_search_job *job, struct bsw_error *err)
{
    const struct bsw_search_options *o = &job->options;
    struct bsw_command_files files = {.inputs = {o->queries}, .outputs = {o->out}, .is_result = 1};
    files.index = o->index;
    files.manifest = &job->manifest;
    BSW_TRY(bsw_command_files_check(&files, err));
    if (job->manifest.codec == BSW_CODEC_RBE) {
        BSW_TRY(bsw_rbe_index_model_open(o->index, &job->manifest, job->settings.level,
                                         &job->coders, err));
        job->manifest.coders = job->coders;
    }
    BSW_TRY(bsw_query_source_open(o->queries, o->query_rows, &job->manifest,
                                  job->settings.query_bits, job->settings.level, &job->queries,
                                  err));
    struct bsw_journal_fields fields = {0};
    add_fields(job, &fields);
    const struct bsw_result_journal_options options = {
        .path = o->out,
        .num_queries = job->queries.num_queries,
        .k = o->k,
        .wide_ids = job->manifest.first_row + job->manifest.num_rows > (uint64_t)INT32_MAX + 1,
        .is_forced = o->force,
        .is_resumed = o->resume,
        .fields = is_journaled(job) ? &fields : NULL};
    return bsw_result_journal_open(&options, &job->result, err);
}

static enum bsw_status put_answers(void *context, uint64_t first, size_t count, const int64_t *ids,
                                   const float *values, struct bsw_error *err)
{
    struct bsw_search_job *job = context;
    if (job->is_written)
        BSW_TRY(bsw_result_journal_put(&job->result, first, count, ids, values, err));
    job->num_answered += count;
    bsw_run_status_count(job->num_answered, job->progress.total);
    bsw_progress_update(&job->progress, job->num_answered);
    return BSW_OK;
}

static int is_overlapped(const struct bsw_search_job *job)
{
    const struct bsw_search_options *o = &job->options;
    int num_busy = job->settings.num_threads * job->transport->num_local_ranks;
    if (strcmp(o->overlap, "auto") == 0) return num_busy < bsw_num_usable_cpus(&o->common.pinning);
    return strcmp(o->overlap, "on") == 0;
}

static enum bsw_status open_pipeline(struct bsw_search_job *job, struct bsw_error *err)
{
    const struct bsw_pipeline_options options = {.batch = (size_t)job->batch,
                                                 .num_threads = job->settings.num_threads,
                                                 .is_overlapped = is_overlapped(job),
                                                 .pinning = &job->options.common.pinning,
                                                 .put = put_answers,
                                                 .context = job,
                                                 .parts = job->result.parts,
                                                 .num_parts = job->result.num_parts};
    return bsw_batch_pipeline_init(&job->pipeline, &job->search, &options, err);
}

static enum bsw_status open_device(struct bsw_search_job *job, struct bsw_error *err)
{
    int is_raw = job->manifest.codec == BSW_CODEC_RAW;
    const struct bsw_device_choice choice = {.text = job->options.device,
                                             .cpu_only = is_raw ? "codec raw" : NULL,
                                             .most_bytes = job->options.device_memory,
                                             .timeout_seconds = job->options.common.timeout};
    BSW_TRY(bsw_device_choice_open(&choice, job->transport, &job->device, err));
    job->settings.device = job->device;
    return BSW_OK;
}

static enum bsw_link_choice link_choice(const struct bsw_search_job *job)
{
    const char *name = job->options.link;
    return strcmp(name, "nccl") == 0  ? BSW_LINK_NCCL
           : strcmp(name, "mpi") == 0 ? BSW_LINK_MPI
                                      : BSW_LINK_AUTO;
}

// All ranks, each with its device or none. Before shards are loaded, which get what memory is left.
static enum bsw_status open_link(struct bsw_search_job *job, struct bsw_error *err)
{
    BSW_TRY(bsw_device_link_open(job->transport, job->device, link_choice(job), &job->link,
                                 job->link_note, err)); // all ranks return alike
    enum bsw_status status =
        bsw_batch_link_open(job->link, job->device, job->transport, &job->manifest, &job->settings,
                            &job->batch_link, err);
    return bsw_transport_agree(job->transport, status, err);
}

static enum bsw_status open_all(struct bsw_search_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    enum bsw_status status = bsw_manifest_read(job->options.index, &job->manifest, err);
    if (status == BSW_OK) status = settle(job, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_same_input_agree(transport, job->manifest.build_digest, job->options.index, err));
    status = transport->rank == 0 ? open_rank0(job, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    if (transport->rank != 0 && is_journaled(job)) bsw_stop_begin(NULL, NULL); // rank 0 drains
    status = open_device(job, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(open_link(job, err));
    status = bsw_shard_service_open(
        &job->manifest, job->options.index, &job->settings, transport->rank, transport->num_ranks,
        transport->rank == 0 && !job->options.common.quiet, &job->service, err);
    if (status == BSW_OK) {
        status = bsw_batch_search_init(&job->search, transport, &job->manifest, &job->service,
                                       &job->queries, err);
    }
    if (status == BSW_OK) status = bsw_self_check_answers(&job->service, err);
    job->search.checks = bsw_search_checks_schedule(&job->manifest, transport, job->options.device,
                                                    job->check_seconds, &job->result);
    if (job->link) job->search.link = &job->batch_link;
    if (status == BSW_OK && transport->rank == 0) status = open_pipeline(job, err);
    return bsw_transport_agree(transport, status, err);
}

static void reset_statistics(struct bsw_search_job *job)
{
    job->search.times = (struct bsw_search_times){0};
    job->search.finish.num_survivors = 0;
    memset(job->search.exchanges, 0, sizeof job->search.exchanges);
}

static enum bsw_status run_passes(struct bsw_search_job *job, struct bsw_error *err)
{
    const struct bsw_search_options *o = &job->options;
    uint64_t passes = o->warmup + o->repeat, num_queries = job->queries.num_queries;
    bsw_progress_init(&job->progress, "search", "queries", passes * num_queries, !o->common.quiet);
    job->num_answered = job->result.num_done;
    bsw_run_status_count(job->num_answered, job->progress.total);
    enum bsw_status status = BSW_OK;
    for (uint64_t pass = 0; pass < passes && status == BSW_OK; pass++) {
        job->is_written = pass + 1 == passes;
        if (job->is_written) reset_statistics(job); // phases are those of the last pass
        double started = bsw_clock_seconds();
        status = bsw_batch_pipeline_run(&job->pipeline, err);
        if (pass >= o->warmup) job->seconds[pass - o->warmup] = bsw_clock_seconds() - started;
    }
    bsw_progress_finish(&job->progress);
    return status;
}

static enum bsw_status run_rank0(struct bsw_search_job *job, struct bsw_error *err)
{
    enum bsw_status status =
        bsw_allocate_zero(&job->seconds, job->options.repeat, sizeof(double), "times", err);
    if (status == BSW_OK) status = run_passes(job, err);
    return bsw_batch_search_end(&job->search, status, err);
}

// Ranks count over all passes, warm-up included; phases and rates are those of one pass.
static void average_over_passes(struct bsw_search_job *job)
{
    uint64_t passes = job->options.warmup + job->options.repeat;
    for (int rank = 0; rank < job->transport->num_ranks; rank++) {
        struct bsw_search_statistics *s = &job->statistics[rank];
        s->scan_seconds /= (double)passes;
        s->refine_seconds /= (double)passes;
        s->scanned_bytes /= passes;
        s->device.copied_bytes /= passes;
        s->device.gathered_bytes /= passes;
    }
}

static struct bsw_device_report report_device(const struct bsw_search_job *job)
{
    struct bsw_device_report report = {.label = "cpu"};
    if (!job->device) return report;
    snprintf(report.label, sizeof report.label, "%s", bsw_device_label(job->device));
    snprintf(report.name, sizeof report.name, "%s", bsw_device_name(job->device));
    report.used_bytes = bsw_device_used_bytes(job->device);
    report.copied_bytes = job->service.engine.copied_bytes;
    report.num_samples = job->service.engine.num_samples;
    report.num_segments = job->service.engine.num_segments;
    report.num_overflows = job->service.engine.num_overflows;
    report.batch_allocations =
        bsw_device_num_allocations(job->device) - job->service.load_allocations;
    report.raw_bytes = job->service.refiner.raw_bytes;
    report.gathered_bytes = job->service.refiner.gathered_bytes;
    return report;
}

static enum bsw_status gather_statistics(struct bsw_search_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    struct bsw_message message = {
        .kind = MESSAGE_STATISTICS, .batch = job->search.num_batches, .name = "statistics"};
    const struct bsw_shard_service *service = &job->service;
    const struct bsw_scan_workspace *work = &service->workspace;
    struct bsw_search_statistics own = {service->load_seconds,      work->scan_seconds,
                                        work->refine_seconds,       work->scanned_bytes,
                                        service->resident_bytes,    service->grown_bytes,
                                        bsw_process_memory_bytes(), bsw_process_mapped_bytes(),
                                        service->num_units,         work->num_pairs,
                                        work->num_stopped,          work->num_rescanned,
                                        report_device(job)};
    if (transport->rank != 0)
        return bsw_transport_send(transport, 0, &message, &own, sizeof own, err);
    BSW_TRY(bsw_allocate_zero(&job->statistics, (size_t)transport->num_ranks, sizeof own,
                              "statistics", err));
    job->statistics[0] = own;
    struct bsw_buffer buffer = {0};
    enum bsw_status status = BSW_OK;
    for (int rank = 1; rank < transport->num_ranks && status == BSW_OK; rank++) {
        status = bsw_transport_receive(transport, rank, &message, &buffer, NULL, err);
        if (status == BSW_OK && buffer.bytes == sizeof own)
            memcpy(&job->statistics[rank], buffer.data, sizeof own);
    }
    bsw_buffer_deinit(&buffer);
    average_over_passes(job);
    return status;
}

static enum bsw_status finish_result(struct bsw_search_job *job, struct bsw_error *err)
{
    const struct bsw_sidecar facts = {.metric = bsw_metric_name(job->manifest.metric),
                                      .refine = bsw_search_refine_name(job),
                                      .codec = bsw_codec_name(job->manifest.codec),
                                      .k = job->settings.k,
                                      .candidates = bsw_search_num_candidates(job),
                                      .rows = job->manifest.num_rows,
                                      .first_row = job->manifest.first_row,
                                      .dims = bsw_manifest_row_dims(&job->manifest),
                                      .bits = job->manifest.bits,
                                      .query_bits = job->settings.query_bits,
                                      .select = bsw_search_select_name(job),
                                      .queue = job->settings.queue,
                                      .extra_distance = job->settings.extra_distance,
                                      .max_candidates = job->options.max_candidates,
                                      .is_self_excluded = job->options.exclude_self,
                                      .queries_digest = job->queries.numbers_digest,
                                      .first_query = bsw_vectors_first_row(job->queries.vectors)};
    return bsw_result_journal_finish(&job->result, &facts, err);
}

static enum bsw_status search(struct bsw_search_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    BSW_TRY(open_all(job, err));
    if (transport->rank == 0)
        BSW_TRY(run_rank0(job, err));
    else
        BSW_TRY(bsw_batch_search_serve(&job->search, err));
    BSW_TRY(bsw_search_checks_end(&job->service, transport, err));
    enum bsw_status status = gather_statistics(job, err);
    if (status == BSW_OK && transport->rank == 0) status = finish_result(job, err);
    return bsw_transport_agree(transport, status, err);
}

static void deinit(struct bsw_search_job *job, enum bsw_status status)
{
    bsw_batch_pipeline_deinit(&job->pipeline);
    if (job->search.payloads) bsw_batch_search_deinit(&job->search);
    bsw_batch_link_close(&job->batch_link);
    bsw_device_link_close(&job->link);
    bsw_shard_service_close(&job->service);
    bsw_device_close(&job->device);
    bsw_result_journal_close(&job->result, status);
    bsw_query_source_close(&job->queries);
    bsw_rbe_coders_destroy(&job->coders);
    bsw_manifest_deinit(&job->manifest);
    bsw_free(&job->statistics);
    bsw_free(&job->seconds);
}

enum bsw_status bsw_command_search(struct bsw_transport *transport, int argc, char **argv,
                                   struct bsw_error *err)
{
    struct bsw_search_job job = {.transport = transport};
    int done;
    BSW_TRY(parse(&job, argc, argv, &done, err));
    if (done) return BSW_OK;
    enum bsw_status status = search(&job, err);
    if (status == BSW_OK && transport->rank == 0) {
        if (job.options.common.json)
            bsw_search_print_json(&job);
        else if (!job.options.common.quiet)
            bsw_search_print_table(&job);
    }
    deinit(&job, status);
    return status;
}
