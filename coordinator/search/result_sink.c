// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/result_sink.h"

#include "common/job/run_status.h"
#include "common/job/stop_signal.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/index_folder.h"
#include "coordinator/search/search_options.h"

// What the result is a function of: not ranks, threads, batches, scans, merging or devices.
static void add_fields(const struct bsw_search *search, struct bsw_journal_fields *fields)
{
    bsw_journal_field_text(fields, "bitsweep", BITSWEEP_VERSION);
    bsw_journal_field_digest(fields, "index", search->manifest.build_digest);
    bsw_journal_field_count(fields, "number of queries", search->queries.num_queries);
    bsw_journal_field_digest(fields, "queries", search->queries.digest);
    bsw_search_settings_identify(search, fields);
}

static enum bsw_status open_result(struct bsw_result_sink *sink, const struct bsw_search *search,
                                   struct bsw_error *err)
{
    const struct bsw_manifest *manifest = &search->manifest;
    const struct bsw_command_files files = {.inputs = {search->run.queries},
                                            .outputs = {sink->path},
                                            .is_result = 1,
                                            .index = search->options.index,
                                            .manifest = manifest,
                                            .is_of_index = bsw_index_folder_makes};
    BSW_TRY(bsw_command_files_check(&files, err));
    struct bsw_journal_fields fields = {0};
    add_fields(search, &fields);
    const struct bsw_result_journal_options options = {
        .path = sink->path,
        .num_queries = search->queries.num_queries,
        .k = search->settings.k,
        .wide_ids = manifest->first_row + manifest->num_rows > (uint64_t)INT32_MAX + 1,
        .is_forced = sink->is_forced,
        .is_resumed = sink->is_resumed,
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

static void note_progress(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    bsw_run_status_count(done, total);
}

static enum bsw_status finish(void *context, const struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_result_sink *sink = context;
    const struct bsw_manifest *manifest = &search->manifest;
    const struct bsw_sidecar facts = {.metric = bsw_metric_name(manifest->metric),
                                      .refine = bsw_search_refine_name(search),
                                      .codec = bsw_codec_name(manifest->codec),
                                      .k = search->settings.k,
                                      .candidates = bsw_search_num_candidates(search),
                                      .rows = manifest->num_rows,
                                      .first_row = manifest->first_row,
                                      .dims = bsw_manifest_row_dims(manifest),
                                      .bits = manifest->bits,
                                      .settings = bsw_search_settings_told(search, BSW_IN_SIDECAR),
                                      .is_self_excluded = search->options.request.exclude_self,
                                      .queries_digest = search->queries.numbers_digest,
                                      .first_query =
                                          bsw_vectors_first_row(search->queries.vectors)};
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
        .note_progress = note_progress,
        .finish = finish};
}

void bsw_result_sink_close(struct bsw_result_sink *sink, enum bsw_status status)
{
    bsw_result_journal_close(&sink->result, status);
}
