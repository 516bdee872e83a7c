// SPDX-License-Identifier: Apache-2.0
#include "coordinator/truth/truth.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/process.h"
#include "common/files/result_file.h"
#include "common/job/stop_signal.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/job/allowed_rows.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/option_table.h"
#include "coordinator/job/same_input.h"
#include "coordinator/job/sidecar.h"
#include "coordinator/truth/truth_backend.h"
#include "coordinator/truth/truth_journal.h"
#include "coordinator/truth/truth_merge.h"
#include "coordinator/truth/truth_split.h"
#include "shard/exact/neighbour_scan.h"

struct truth_job {
    struct bsw_truth_settings settings; // complete
    struct bsw_transport *transport;
    enum bsw_metric metric;
    bsw_vectors *base, *queries;
    struct bsw_neighbour_needs needs;
    struct bsw_chosen_device device; // of this rank
    const struct bsw_truth_backend *backend;
    void *state;
    struct bsw_truth_merge merge;
    struct bsw_journal_fields fields;
    struct bsw_truth_journal journal; // of a run on CPUs
    int is_taken;                     // rank 0: the output is this run's
    uint64_t queries_digest;          // rank 0
    struct bsw_number_sets row_tags;  // that are asked for
    struct bsw_allowed_rows allowed;
    struct bsw_neighbour_filter filter;
    struct bsw_truth_stats stats;
};

// ---- settings ----

// What everything else is measured against does not go to a GPU unasked.
static int is_on_cpu(const struct bsw_truth_settings *s)
{
    return strcmp(s->device.text, "auto") == 0 || strcmp(s->device.text, "cpu") == 0;
}

// Sets the defaults, too.
static enum bsw_status complete(struct bsw_truth_settings *s, struct bsw_error *err)
{
    if (!s->base || !s->queries)
        return bsw_fail(err, BSW_ERROR_USAGE, "--%s is needed", s->base ? "queries" : "base");
    if (!s->out && (s->split || s->force || s->resume))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--out is needed: answers that go to no file are "
                        "not split, replaced or resumed");
    BSW_TRY(bsw_setting_count("k", s->k, 1, BSW_TRUTH_MAX_K, err));
    BSW_TRY(bsw_setting_count("block-rows", s->block_rows, 0, BSW_TRUTH_MAX_BLOCK_ROWS, err));
    if (s->rows.first == 0 && s->rows.last == 0) s->rows = BSW_ALL_ROWS;
    if (s->query_rows.first == 0 && s->query_rows.last == 0) s->query_rows = BSW_ALL_ROWS;
    if (!s->device.text) s->device.text = "auto";
    if (s->num_threads == 0) s->num_threads = omp_get_max_threads();
    return BSW_OK;
}

// ---- inputs ----

// Whether some query is a row that it must not find.
static int has_self(const struct truth_job *job)
{
    uint64_t base = bsw_vectors_first_row(job->base), query = bsw_vectors_first_row(job->queries);
    return job->settings.exclude_self && query < base + bsw_vectors_num_rows(job->base) &&
           base < query + bsw_vectors_num_rows(job->queries);
}

// Checks that every query can find k rows. Called before anything is read, and again when it is
// known how many rows were dropped.
static enum bsw_status check_k(const struct truth_job *job, struct bsw_error *err)
{
    const struct bsw_truth_settings *s = &job->settings;
    uint64_t num_rows = bsw_vectors_num_rows(job->base), num_dropped = job->stats.num_dropped_rows;
    char dropped[48] = "";
    if (s->k + num_dropped + (uint64_t)has_self(job) <= num_rows) return BSW_OK;
    if (num_dropped > 0)
        snprintf(dropped, sizeof dropped, ", %llu of them dropped",
                 (unsigned long long)num_dropped);
    return bsw_fail(err, BSW_ERROR_USAGE, "--k %llu: %s has %llu rows only%s%s",
                    (unsigned long long)s->k, s->base, (unsigned long long)num_rows, dropped,
                    has_self(job) ? ", one of them the query" : "");
}

static enum bsw_status read_allowed(void *context, uint64_t query, uint64_t first, size_t count,
                                    uint32_t *bits, struct bsw_error *err)
{
    return bsw_allowed_rows_read_part(context, query, first, count, bits, err);
}

static enum bsw_status open_allowed(struct truth_job *job, struct bsw_error *err)
{
    const struct bsw_truth_settings *s = &job->settings;
    const struct bsw_allowed_base base = {bsw_vectors_first_row(job->base),
                                          bsw_vectors_num_rows(job->base),
                                          bsw_vectors_num_rows(job->queries)};
    if (s->allow && s->query_tags)
        return bsw_fail(err, BSW_ERROR_USAGE, "--query-tags and --allow: give one of them");
    if (!s->tags != !s->query_tags)
        return bsw_fail(err, BSW_ERROR_USAGE, "--tags and --query-tags go together");
    if (!s->allow && !s->query_tags && !s->allow_rows.masks && !s->allow_rows.ids) return BSW_OK;
    if (s->query_tags) {
        BSW_TRY(bsw_row_tags_of_file(s->tags, &job->row_tags, err));
        BSW_TRY(
            bsw_allowed_rows_open_tags(s->query_tags, &job->row_tags, &base, &job->allowed, err));
    } else {
        BSW_TRY(bsw_allowed_rows_open(s->allow, &s->allow_rows, &base, &job->allowed, err));
    }
    job->filter = (struct bsw_neighbour_filter){
        .is_each = job->allowed.num_masks > 1, .read = read_allowed, .context = &job->allowed};
    if (!job->filter.is_each || is_on_cpu(s)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: a mask for each query is for CPUs: --device %s takes one mask",
                    job->allowed.name, s->device.text);
}

static enum bsw_status open_inputs(struct truth_job *job, struct bsw_error *err)
{
    const struct bsw_truth_settings *s = &job->settings;
    BSW_TRY(bsw_vectors_open(s->base, s->rows, &job->base, err));
    BSW_TRY(bsw_queries_open(s->queries, s->query_rows, &job->queries, err));
    BSW_TRY(bsw_metric_choose(s->metric, job->base, job->queries, &job->metric, err));
    if (bsw_vectors_dims(job->queries) != bsw_vectors_dims(job->base)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %u", s->queries,
                        bsw_vectors_dims(job->queries), s->base, bsw_vectors_dims(job->base));
    }
    BSW_TRY(check_k(job, err));
    BSW_TRY(open_allowed(job, err));
    if (bsw_vectors_num_rows(job->base) / (uint64_t)job->transport->num_ranks >= UINT32_MAX) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: more than 2^32 rows a rank; use more ranks",
                        s->base);
    }
    if (s->resume && !is_on_cpu(s)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--resume: --device %s keeps no journal, a CPU does",
                        s->device.text);
    }
    return BSW_OK;
}

// What this rank has to find, and how results of all ranks meet. A row left out of its own answer
// would have been one of the best k + 1: so one more is kept.
static void set_needs(struct truth_job *job)
{
    const struct bsw_truth_settings *s = &job->settings;
    uint64_t num_rows = bsw_vectors_num_rows(job->base),
             base_row = bsw_vectors_first_row(job->base), rank = (uint64_t)job->transport->rank,
             ranks = (uint64_t)job->transport->num_ranks;
    uint64_t first = bsw_part_first(num_rows, rank, ranks),
             last = bsw_part_first(num_rows, rank + 1, ranks);
    // Sized for the largest part, so that all ranks have blocks of one size.
    size_t block_rows = s->block_rows > 0
                            ? (size_t)s->block_rows
                            : bsw_neighbour_block_rows(bsw_vectors_row_bytes(job->base),
                                                       (num_rows + ranks - 1) / ranks);
    job->needs = (struct bsw_neighbour_needs){
        .metric = job->metric,
        .level = s->level,
        .base = job->base,
        .queries = job->queries,
        .first_row = base_row + first,
        .num_rows = last - first,
        .keep = (size_t)s->k + (s->exclude_self ? 1 : 0),
        .block_rows = block_rows,
        .num_threads = s->num_threads,
        .drop_bad_rows = s->drop_bad_rows,
        .filter = job->allowed.is_given ? &job->filter : NULL,
        .filter_row = first,
        .most_bytes = bsw_available_memory_bytes() / (uint64_t)job->transport->num_host_ranks};
    job->merge = (struct bsw_truth_merge){.transport = job->transport,
                                          .merge = bsw_merge_table_get(s->level),
                                          .sink = s->sink,
                                          .metric = job->metric,
                                          .k = (size_t)s->k,
                                          .first_row = base_row + first,
                                          .first_query_row = bsw_vectors_first_row(job->queries),
                                          .exclude_self = s->exclude_self};
    job->stats = (struct bsw_truth_stats){.num_rows = num_rows,
                                          .num_queries = bsw_vectors_num_rows(job->queries),
                                          .dims = bsw_vectors_dims(job->base),
                                          .metric = job->metric,
                                          .block_rows = block_rows};
}

// Ends with an agreement.
static enum bsw_status prepare(struct truth_job *job, uint64_t *base_digest, uint64_t *query_digest,
                               struct bsw_error *err)
{
    const struct bsw_answer_sink *sink = &job->settings.sink;
    enum bsw_status status = open_inputs(job, err);
    if (status == BSW_OK) set_needs(job);
    if (status == BSW_OK) status = bsw_same_input_digest(job->base, base_digest, err);
    if (status == BSW_OK) status = bsw_same_input_digest(job->queries, query_digest, err);
    if (status == BSW_OK && job->transport->rank == 0 && job->settings.out)
        status = bsw_query_digest(job->queries, &job->queries_digest, err);
    if (status == BSW_OK && job->transport->rank == 0 && sink->begin)
        status =
            sink->begin(sink->context, bsw_vectors_num_rows(job->queries), job->settings.k, err);
    BSW_TRY(bsw_transport_agree(job->transport, status, err));
    BSW_TRY(bsw_same_input_agree(job->transport, *base_digest, job->settings.base, err));
    if (job->allowed.is_given)
        BSW_TRY(bsw_same_input_agree(job->transport, job->allowed.digest, job->allowed.name, err));
    return bsw_same_input_agree(job->transport, *query_digest, job->settings.queries, err);
}

// ---- host or device ----

static enum bsw_status open_scan(struct truth_job *job, struct bsw_error *err)
{
    const struct bsw_truth_settings *s = &job->settings;
    if (!is_on_cpu(s))
        BSW_TRY(bsw_device_choice_open(&s->device, NULL, job->transport, &job->device, err));
    bsw_device *device = job->device.device;
    job->backend = device ? &bsw_truth_device : &bsw_truth_host;
    job->stats.device = device ? bsw_device_kind() : "cpu";
    return job->backend->open(&job->needs, device, &job->state, err);
}

static enum bsw_status find(struct truth_job *job, struct bsw_error *err)
{
    struct bsw_progress *progress = job->settings.progress;
    const struct bsw_truth_pass pass = {.merge = &job->merge,
                                        .journal = &job->journal,
                                        .num_rows = bsw_vectors_num_rows(job->base),
                                        .settings = &job->settings};
    bsw_progress_begin(progress, "groundtruth", "rows",
                       job->backend->total(job->state, pass.num_rows));
    enum bsw_status status = job->backend->run(job->state, &pass, err);
    bsw_progress_finish(progress);
    job->backend->tell(job->state, &job->stats);
    return status;
}

// ---- output ----

// What the lists are a function of. Block rows, threads and level change no bit.
static void set_fields(struct truth_job *job, uint64_t base_digest, uint64_t query_digest)
{
    const struct bsw_truth_settings *s = &job->settings;
    struct bsw_journal_fields *fields = &job->fields;
    bsw_journal_field_text(fields, "bitsweep", BITSWEEP_VERSION);
    bsw_journal_field_text(fields, "metric", bsw_metric_name(job->metric));
    bsw_journal_field_count(fields, "k", s->k);
    bsw_journal_field_count(fields, "first row", bsw_vectors_first_row(job->base));
    bsw_journal_field_count(fields, "number of rows", bsw_vectors_num_rows(job->base));
    bsw_journal_field_count(fields, "first query", bsw_vectors_first_row(job->queries));
    bsw_journal_field_count(fields, "number of queries", bsw_vectors_num_rows(job->queries));
    bsw_journal_field_text(fields, "exclude-self", s->exclude_self ? "on" : "off");
    bsw_journal_field_text(fields, "drop-bad-rows", s->drop_bad_rows ? "on" : "off");
    bsw_journal_field_digest(fields, "base", base_digest);
    bsw_journal_field_digest(fields, "queries", query_digest);
    bsw_allowed_rows_identify(&job->allowed, fields);
    bsw_journal_field_count(fields, "ranks", (uint64_t)job->transport->num_ranks);
}

// Rank 0: OUT.partial, which one run at a time may have, then journals of runs before. It holds
// nothing until ranks merge, and goes whenever this run ends by itself.
static enum bsw_status take_output(struct truth_job *job, struct bsw_error *err)
{
    const struct bsw_truth_settings *s = &job->settings;
    int wide_ids = bsw_vectors_first_row(job->base) + bsw_vectors_num_rows(job->base) >
                   (uint64_t)INT32_MAX + 1;
    const struct bsw_command_files files = {
        .inputs = {s->base, s->queries, s->allow, s->tags, s->query_tags},
        .outputs = {s->out},
        .is_result = 1,
        .is_split = s->split};
    BSW_TRY(bsw_command_files_check(&files, err));
    if (s->split && wide_ids) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--split: its int32 ids do not reach the rows of %s",
                        s->base);
    }
    BSW_TRY(bsw_result_writer_open(s->out, bsw_vectors_num_rows(job->queries), s->k, wide_ids,
                                   &job->merge.writer, err));
    // A run that has named OUT removes its journals yet.
    if ((s->force || s->resume) && bsw_truth_journals_exist(s->out) && bsw_file_is_found(s->out))
        BSW_TRY(bsw_result_writer_lock_name(job->merge.writer, err));
    // With OUT.partial in hand. A run that began with force may be resumed without it.
    int is_forced = s->force || (s->resume && bsw_truth_journals_exist(s->out));
    BSW_TRY(bsw_result_writer_check_name(job->merge.writer, is_forced, err));
    if (s->split) BSW_TRY(bsw_truth_split_check(s->out, is_forced, err));
    BSW_TRY(bsw_truth_journals_take(s->out, bsw_journal_mode_of(s->force, s->resume), &job->fields,
                                    err));
    bsw_temporary_note(bsw_result_writer_temporary(job->merge.writer));
    BSW_TRY(bsw_result_writer_begin(job->merge.writer, 0, err));
    job->is_taken = 1;
    return bsw_events_output(s->events, s->out, "rows", err);
}

static enum bsw_status add_number(void *context, int rank, const struct bsw_buffer *payload,
                                  struct bsw_error *err)
{
    uint64_t *sum = context, theirs;
    if (payload->bytes != sizeof theirs)
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes", rank, payload->bytes);
    memcpy(&theirs, payload->data, sizeof theirs);
    *sum += theirs;
    return BSW_OK;
}

// The sum over all ranks, on rank 0. Ends with an agreement.
static enum bsw_status add_up(struct truth_job *job, uint32_t kind, const char *name,
                              uint64_t *number, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = kind, .batch = job->merge.num_groups, .name = name};
    enum bsw_status status =
        bsw_collect(job->transport, &message, number, sizeof *number, add_number, number, err);
    return bsw_transport_agree(job->transport, status, err);
}

static enum bsw_status add_up_screened(struct truth_job *job, struct bsw_error *err)
{
    struct bsw_truth_stats *stats = &job->stats;
    uint64_t *numbers[] = {&stats->num_screened, &stats->num_survivors,
                           &stats->num_screen_overflows};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        BSW_TRY(add_up(job, BSW_MESSAGE_SCREENED_PAIRS, "screened pairs", numbers[i], err));
    return BSW_OK;
}

// Opens the journal of a run on CPUs that writes to a file. Ends with an agreement.
static enum bsw_status open_journal(struct truth_job *job, struct bsw_error *err)
{
    const struct bsw_truth_settings *s = &job->settings;
    if (!job->backend->scan || !s->out) return BSW_OK;
    enum bsw_status status = bsw_truth_journal_open(
        &job->journal, s->out, job->transport->rank, bsw_journal_mode_of(s->force, s->resume),
        &job->fields, job->backend->scan(job->state), err);
    BSW_TRY(bsw_transport_agree(job->transport, status, err));
    job->stats.num_resumed_rows = job->journal.num_resumed;
    return add_up(job, BSW_MESSAGE_RESUMED_ROWS, "resumed rows", &job->stats.num_resumed_rows, err);
}

static enum bsw_status name_output(struct truth_job *job, struct bsw_error *err)
{
    const struct bsw_truth_settings *s = &job->settings;
    const struct bsw_sidecar facts = {.metric = bsw_metric_name(job->metric),
                                      .refine = "exact",
                                      .codec = "none",
                                      .k = s->k,
                                      .candidates = s->k,
                                      .rows = bsw_vectors_num_rows(job->base),
                                      .first_row = bsw_vectors_first_row(job->base),
                                      .dims = bsw_vectors_dims(job->base),
                                      .is_self_excluded = s->exclude_self,
                                      .queries_digest = job->queries_digest,
                                      .allow = bsw_allowed_facts_of(&job->allowed),
                                      .first_query = bsw_vectors_first_row(job->queries)};
    BSW_TRY(bsw_sidecar_finish(job->merge.writer, s->out, &facts, err));
    if (s->split)
        BSW_TRY(bsw_truth_split_write(s->out, bsw_vectors_num_rows(job->queries), s->k, err));
    // Before the journals go: a run that is killed in between must not look unfinished.
    bsw_events_count(s->events, facts.rows, facts.rows);
    BSW_TRY(bsw_events_complete(s->events, err));
    return bsw_truth_journals_remove(s->out, err);
}

// A stop comes before all of it or after, where it changes nothing.
static enum bsw_status finish(struct truth_job *job, struct bsw_error *err)
{
    BSW_TRY(bsw_result_writer_sync(job->merge.writer, err)); // may take long, and be interrupted
    bsw_stop_hold();
    enum bsw_status status = name_output(job, err);
    bsw_stop_release();
    return status;
}

// ---- the whole ----

static enum bsw_status run(struct truth_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    const char *out = job->settings.out;
    int is_written = transport->rank == 0 && out;
    uint64_t base_digest = 0, query_digest = 0;
    BSW_TRY(prepare(job, &base_digest, &query_digest, err));
    set_fields(job, base_digest, query_digest);
    enum bsw_status status = is_written ? take_output(job, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_transport_agree(transport, open_scan(job, err), err));
    BSW_TRY(open_journal(job, err));
    double started = bsw_clock_seconds();
    BSW_TRY(find(job, err));
    job->stats.seconds = bsw_clock_seconds() - started;
    BSW_TRY(
        add_up(job, BSW_MESSAGE_DROPPED_ROWS, "dropped rows", &job->stats.num_dropped_rows, err));
    BSW_TRY(add_up_screened(job, err));
    status = transport->rank == 0 ? check_k(job, err) : BSW_OK;
    // As many rows are dropped next time: nothing to go on with.
    if (status != BSW_OK && out) bsw_truth_journals_remove(out, NULL);
    if (status == BSW_OK && is_written) status = finish(job, err);
    return bsw_transport_agree(transport, status, err);
}

static void deinit(struct truth_job *job, enum bsw_status status)
{
    bsw_truth_journal_close(&job->journal, status);
    if (status != BSW_OK && job->is_taken && !bsw_truth_journals_exist(job->settings.out))
        bsw_events_output(job->settings.events, NULL, "", NULL);
    if (job->backend) job->backend->close(job->state);
    bsw_device_close(&job->device.device);
    bsw_truth_merge_deinit(&job->merge);
    bsw_result_writer_destroy(&job->merge.writer);
    bsw_vectors_close(&job->base);
    bsw_vectors_close(&job->queries);
    bsw_allowed_rows_close(&job->allowed);
    bsw_number_sets_deinit(&job->row_tags);
}

enum bsw_status bsw_truth_run(const struct bsw_truth_settings *settings,
                              struct bsw_transport *transport, struct bsw_truth_stats *stats,
                              struct bsw_error *err)
{
    struct truth_job job = {.settings = *settings, .transport = transport};
    BSW_TRY(bsw_transport_agree(transport, complete(&job.settings, err), err));
    enum bsw_status status = run(&job, err);
    if (status == BSW_OK) *stats = job.stats;
    deinit(&job, status);
    return status;
}
