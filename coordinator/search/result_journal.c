// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/result_journal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/files/coverage_file.h"
#include "common/files/row_ids.h"
#include "common/job/run_status.h"
#include "common/job/stop_signal.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/index_folder.h"
#include "coordinator/search/search_options.h"

struct batch_record {
    uint64_t first, count;
    uint64_t digest; // of the result's bytes
    double coverage; // written where it is below 1
};
#define WHOLE_RECORD_BYTES offsetof(struct batch_record, coverage)

// What the journal says, before it is checked.
struct replay {
    uint64_t num_queries;
    int is_partial;
    struct bsw_buffer records;
};

static enum bsw_status replay_record(void *context, const void *payload, size_t bytes,
                                     struct bsw_error *err)
{
    struct replay *replay = context;
    struct batch_record record = {.coverage = 1};
    if (bytes != sizeof record && bytes != WHOLE_RECORD_BYTES)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%zu bytes, not %zu", bytes, WHOLE_RECORD_BYTES);
    memcpy(&record, payload, bytes);
    if (record.count > replay->num_queries || record.first > replay->num_queries - record.count) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%llu queries from %llu, there are %llu",
                        (unsigned long long)record.count, (unsigned long long)record.first,
                        (unsigned long long)replay->num_queries);
    }
    if (!(record.coverage > 0 && record.coverage <= 1))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "a coverage of %g", record.coverage);
    if (record.coverage < 1 && !replay->is_partial) return BSW_OK; // to be done anew
    return bsw_buffer_append(&replay->records, &record, sizeof record, err);
}

static void set_shares(struct bsw_result_journal *result, uint64_t first, uint64_t count,
                       double coverage)
{
    for (uint64_t q = first; result->shares && q < first + count; q++) result->shares[q] = coverage;
}

static int compare_records(const void *a, const void *b)
{
    uint64_t first = ((const struct batch_record *)a)->first,
             other = ((const struct batch_record *)b)->first;
    return first < other ? -1 : first > other;
}

// Leaves the records whose bytes are in the file, in the order of their queries.
static enum bsw_status keep_good(bsw_result_writer *writer, struct batch_record *records,
                                 size_t *count, struct bsw_error *err)
{
    size_t num_good = 0;
    for (size_t i = 0; i < *count; i++) {
        int is_same;
        BSW_TRY(bsw_result_writer_check(writer, records[i].first, records[i].count,
                                        records[i].digest, &is_same, err));
        if (is_same) records[num_good++] = records[i];
    }
    if (num_good > 0) qsort(records, num_good, sizeof *records, compare_records);
    *count = num_good;
    return BSW_OK;
}

// The gaps between the records, which may overlap.
static enum bsw_status find_parts(struct bsw_result_journal *result,
                                  const struct batch_record *records, size_t count,
                                  uint64_t num_queries, struct bsw_error *err)
{
    struct bsw_search_parts *left = &result->left;
    struct bsw_query_part *parts;
    uint64_t at = 0;
    BSW_TRY(bsw_allocate(&parts, count + 1, sizeof *parts, "parts", err));
    *left = (struct bsw_search_parts){.parts = parts, .num_done = num_queries};
    for (size_t i = 0; i <= count; i++) {
        uint64_t next = i < count ? records[i].first : num_queries;
        if (next > at) {
            parts[left->num_parts++] = (struct bsw_query_part){at, next - at};
            left->num_done -= next - at;
        }
        if (i < count && records[i].first + records[i].count > at)
            at = records[i].first + records[i].count;
    }
    return BSW_OK;
}

// Runs at a stop, in a thread of its own.
static void save(void *context)
{
    struct bsw_result_journal *result = context;
    if (!bsw_journal_commit_last(result->journal))
        bsw_temporary_note(bsw_result_writer_temporary(result->writer));
}

static enum bsw_status sync_result(void *context, struct bsw_error *err)
{
    struct bsw_result_journal *result = context;
    return bsw_result_writer_sync(result->writer, err);
}

// What earlier runs did, if there were any, and what is left.
static enum bsw_status go_on(struct bsw_result_journal *result, const struct replay *replay,
                             struct bsw_error *err)
{
    struct batch_record *records = (struct batch_record *)(void *)replay->records.data;
    size_t count = replay->records.bytes / sizeof *records;
    BSW_TRY(bsw_result_writer_begin(result->writer, count > 0, err));
    BSW_TRY(keep_good(result->writer, records, &count, err));
    for (size_t i = 0; i < count; i++)
        set_shares(result, records[i].first, records[i].count, records[i].coverage);
    BSW_TRY(find_parts(result, records, count, replay->num_queries, err));
    bsw_stop_begin(save, result);
    return BSW_OK;
}

static enum bsw_status open_journal(struct bsw_result_journal *result,
                                    const struct bsw_result_journal_options *o,
                                    const char *journal_path, struct bsw_error *err)
{
    struct replay replay = {.num_queries = o->num_queries, .is_partial = o->is_partial};
    const struct bsw_journal_options options = {
        .path = journal_path,
        .mode = bsw_journal_mode_of(o->is_forced, o->is_resumed),
        .fields = o->fields,
        .sync = sync_result,
        .replay = replay_record,
        .sync_context = result,
        .replay_context = &replay};
    enum bsw_status status = bsw_journal_open(&options, &result->journal, err);
    if (status == BSW_OK) status = go_on(result, &replay, err);
    bsw_buffer_deinit(&replay.records);
    return status;
}

// A run that was killed between naming its result and removing its journal: the result is taken
// back as FILE.partial, of which all is done.
static enum bsw_status take_back(const struct bsw_result_journal_options *o,
                                 const char *journal_path, bsw_result_writer *writer,
                                 struct bsw_error *err)
{
    struct bsw_journal_facts facts;
    if ((!o->is_resumed && !o->is_forced) || !bsw_result_writer_is_new(writer) ||
        !bsw_file_exists(journal_path) || !bsw_file_is_found(o->path))
        return BSW_OK;
    BSW_TRY(bsw_result_writer_lock_name(writer, err));
    // Where its run has ended by now the result is whole.
    if (!o->is_resumed || !bsw_file_exists(journal_path)) return BSW_OK;
    BSW_TRY(bsw_journal_read(journal_path, o->fields, NULL, NULL, &facts, err)); // the same run's
    return bsw_result_writer_take_back(writer, err);
}

// FILE.partial first, which one run at a time has: what is beside it then stays as it is.
static enum bsw_status open_resumable(struct bsw_result_journal *result,
                                      const struct bsw_result_journal_options *o,
                                      const char *journal_path, struct bsw_error *err)
{
    BSW_TRY(
        bsw_result_writer_open(o->path, o->num_queries, o->k, o->wide_ids, &result->writer, err));
    BSW_TRY(take_back(o, journal_path, result->writer, err));
    // A run that began with --force may be resumed without it.
    int is_forced = o->is_forced || (o->is_resumed && bsw_file_exists(journal_path));
    BSW_TRY(bsw_result_writer_check_name(result->writer, is_forced, err));
    return open_journal(result, o, journal_path, err);
}

enum bsw_status bsw_result_journal_open(const struct bsw_result_journal_options *o,
                                        struct bsw_result_journal *out, struct bsw_error *err)
{
    char journal_path[BSW_PATH_BYTES];
    *out = (struct bsw_result_journal){.path = o->path, .num_queries = o->num_queries};
    if (o->is_partial)
        BSW_TRY(bsw_allocate(&out->shares, o->num_queries, sizeof *out->shares, "coverage", err));
    set_shares(out, 0, o->num_queries, 1);
    BSW_TRY(bsw_path_format(journal_path, err, "%s.journal", o->path));
    if (!o->fields) {
        BSW_TRY(bsw_result_writer_create(o->path, o->num_queries, o->k, o->wide_ids, o->is_forced,
                                         &out->writer, err));
    } else {
        BSW_TRY(open_resumable(out, o, journal_path, err));
    }
    BSW_TRY(bsw_run_status_set_output(o->path, "queries", err));
    return BSW_OK;
}

enum bsw_status bsw_result_journal_put(void *context, uint64_t first, size_t count,
                                       const int64_t *ids, const float *values,
                                       struct bsw_error *err)
{
    struct bsw_result_journal *result = context;
    double coverage = result->coverage > 0 ? result->coverage : 1;
    BSW_TRY(bsw_result_writer_put(result->writer, first, count, ids, values, err));
    set_shares(result, first, count, coverage);
    if (!result->journal) return BSW_OK;
    const struct batch_record record = {first, count, bsw_result_writer_digest(result->writer),
                                        coverage};
    BSW_TRY(bsw_journal_append(result->journal, &record,
                               coverage < 1 ? sizeof record : WHOLE_RECORD_BYTES, err));
    return bsw_journal_commit_if_due(result->journal, err);
}

void bsw_result_journal_note_check(void *context, int is_passed)
{
    struct bsw_result_journal *result = context;
    if (!result->journal) return;
    if (is_passed)
        bsw_journal_trust(result->journal);
    else
        bsw_journal_mark(result->journal);
}

void bsw_result_journal_note_coverage(void *context, double coverage)
{
    struct bsw_result_journal *result = context;
    result->coverage = coverage;
}

double bsw_result_journal_coverage(const struct bsw_result_journal *result)
{
    double least = 1;
    for (uint64_t q = 0; result->shares && q < result->num_queries; q++)
        if (result->shares[q] < least) least = result->shares[q];
    return least;
}

// One that an earlier result left goes.
static enum bsw_status write_shares(const struct bsw_result_journal *result, int is_partial,
                                    struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    if (is_partial)
        return bsw_coverage_write(result->path, result->shares, result->num_queries, err);
    BSW_TRY(bsw_coverage_path(path, result->path, err));
    unlink(path);
    return BSW_OK;
}

enum bsw_status bsw_result_journal_finish(struct bsw_result_journal *result,
                                          const struct bsw_sidecar *facts, struct bsw_error *err)
{
    enum bsw_status outcome = bsw_result_journal_coverage(result) < 1 ? BSW_PARTIAL : BSW_OK;
    BSW_TRY(bsw_result_writer_sync(result->writer, err)); // may take long, and be interrupted
    bsw_stop_hold();
    enum bsw_status status = write_shares(result, outcome == BSW_PARTIAL, err);
    if (status == BSW_OK) status = bsw_sidecar_finish(result->writer, result->path, facts, err);
    // Before the journal goes: a run that is killed in between must not look unfinished.
    if (status == BSW_OK) status = bsw_run_status_write(outcome, "", err);
    if (status == BSW_OK && result->journal) status = bsw_journal_remove(&result->journal, err);
    if (status == BSW_OK) bsw_stop_conclude(bsw_status_exit_code(outcome));
    bsw_stop_release();
    return status;
}

void bsw_result_journal_close(struct bsw_result_journal *result, enum bsw_status status)
{
    if (!result->path) return;
    bsw_stop_end();
    if (bsw_journal_abandon(&result->journal, status)) {
        bsw_result_writer_leave(&result->writer);
    } else {
        bsw_result_writer_destroy(&result->writer);
        if (status != BSW_OK) bsw_run_status_set_output(NULL, "", NULL);
    }
    bsw_free(&result->left.parts);
    bsw_free(&result->shares);
    *result = (struct bsw_result_journal){0};
}

// ---- as a sink of a search ----------------------------------------------------------------------

// What the result is a function of: not ranks, threads, batches, scans, merging or devices.
static void add_fields(const struct bsw_search *search, struct bsw_journal_fields *fields)
{
    bsw_journal_field_text(fields, "bitsweep", BITSWEEP_VERSION);
    bsw_journal_field_digest(fields, "index", search->manifest.build_digest);
    bsw_journal_field_count(fields, "number of queries", search->queries.num_queries);
    bsw_journal_field_digest(fields, "queries", search->queries.digest);
    bsw_allowed_rows_identify(&search->allowed, fields);
    bsw_search_settings_identify(search, fields);
}

enum bsw_status bsw_result_files_check(const struct bsw_search *search, const char *path,
                                       struct bsw_error *err)
{
    const struct bsw_command_files files = {
        .inputs = {search->run.queries, search->options.allow, search->options.query_tags},
        .outputs = {path},
        .is_result = 1,
        .index = search->options.index,
        .manifest = &search->manifest,
        .is_of_index = bsw_index_folder_makes};
    return bsw_command_files_check(&files, err);
}

static enum bsw_status open_result(struct bsw_result_sink *sink, const struct bsw_search *search,
                                   struct bsw_error *err)
{
    const struct bsw_manifest *manifest = &search->manifest;
    BSW_TRY(bsw_result_files_check(search, sink->path, err));
    struct bsw_journal_fields fields = {0};
    add_fields(search, &fields);
    const struct bsw_result_journal_options options = {
        .path = sink->path,
        .num_queries = search->queries.num_queries,
        .k = search->settings.k,
        .wide_ids = bsw_manifest_has_ids(manifest) ||
                    manifest->first_row + manifest->num_rows > (uint64_t)INT32_MAX + 1,
        .is_forced = sink->is_forced,
        .is_resumed = sink->is_resumed,
        .is_partial = search->settings.is_partial,
        .fields = sink->is_journaled ? &fields : NULL};
    return bsw_result_journal_open(&options, &sink->result, err);
}

static enum bsw_status open_sink(void *context, const struct bsw_search *search,
                                 struct bsw_search_parts *out, struct bsw_error *err)
{
    struct bsw_result_sink *sink = context;
    if (search->transport->rank != 0) {
        if (sink->is_journaled) bsw_stop_begin(NULL, NULL); // rank 0 drains
        return BSW_OK;
    }
    BSW_TRY(open_result(sink, search, err));
    *out = sink->result.left;
    return BSW_OK;
}

static void note_check(void *context, int is_passed)
{
    struct bsw_result_sink *sink = context;
    bsw_result_journal_note_check(&sink->result, is_passed);
}

static void note_coverage(void *context, double coverage)
{
    struct bsw_result_sink *sink = context;
    bsw_result_journal_note_coverage(&sink->result, coverage);
}

static void note_progress(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    bsw_run_status_count(done, total);
}

struct bsw_sidecar bsw_result_facts(const struct bsw_search *search)
{
    const struct bsw_manifest *manifest = &search->manifest;
    return (struct bsw_sidecar){.metric = bsw_metric_name(manifest->metric),
                                .refine = bsw_search_refine_name(search),
                                .codec = bsw_codec_name(manifest->codec),
                                .k = search->settings.k,
                                .candidates = bsw_search_num_candidates(search),
                                .rows = manifest->num_rows,
                                .first_row = manifest->first_row,
                                .dims = bsw_manifest_row_dims(manifest),
                                .bits = manifest->bits,
                                .settings = bsw_search_settings_told(search, BSW_IN_SIDECAR),
                                .has_ids = bsw_manifest_has_ids(manifest),
                                .is_self_excluded = search->options.request.exclude_self,
                                .queries_digest = search->queries.numbers_digest,
                                .allow = bsw_allowed_facts_of(&search->allowed),
                                .first_query = bsw_vectors_first_row(search->queries.vectors)};
}

static enum bsw_status finish(void *context, const struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_result_sink *sink = context;
    struct bsw_sidecar facts = bsw_result_facts(search);
    facts.coverage = sink->coverage = bsw_result_journal_coverage(&sink->result);
    json_t *missing = bsw_missing_shards_told(&search->missing);
    json_object_update(facts.settings, missing);
    json_decref(missing);
    enum bsw_status status = bsw_result_journal_finish(&sink->result, &facts, err);
    json_decref(facts.settings);
    return status;
}

struct bsw_search_sink bsw_result_sink(struct bsw_result_sink *sink)
{
    return (struct bsw_search_sink){
        .context = sink,
        .answers = {.context = &sink->result, .take = bsw_result_journal_put},
        .open = open_sink,
        .note_check = note_check,
        .note_coverage = note_coverage,
        .note_progress = note_progress,
        .finish = finish};
}

void bsw_result_sink_close(struct bsw_result_sink *sink, enum bsw_status status)
{
    bsw_result_journal_close(&sink->result, status);
}
