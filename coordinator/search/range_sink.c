// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/range_sink.h"

#include <jansson.h>

#include "common/job/run_status.h"
#include "common/job/stop_signal.h"
#include "coordinator/search/result_journal.h"

static enum bsw_status open_sink(void *context, const struct bsw_search *search,
                                 struct bsw_search_parts *out, struct bsw_error *err)
{
    struct bsw_range_sink *sink = context;
    (void)out;
    if (search->transport->rank != 0) return BSW_OK;
    BSW_TRY(bsw_result_files_check(search, sink->path, err));
    BSW_TRY(bsw_range_writer_create(sink->path, search->queries.num_queries, sink->is_forced,
                                    &sink->writer, err));
    return bsw_run_status_set_output(sink->path, "queries", err);
}

static enum bsw_status take(void *context, uint64_t first, size_t count, const uint64_t *lims,
                            const int64_t *ids, const float *values, struct bsw_error *err)
{
    struct bsw_range_sink *sink = context;
    (void)first; // in order
    return bsw_range_writer_put(sink->writer, count, lims, ids, values, err);
}

static void note_progress(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    bsw_run_status_count(done, total);
}

static enum bsw_status finish(void *context, const struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_range_sink *sink = context;
    const struct bsw_sidecar facts = bsw_result_facts(search);
    bsw_stop_hold();
    enum bsw_status status = bsw_sidecar_finish_range(sink->writer, sink->path, &facts, err);
    if (status == BSW_OK) status = bsw_run_status_write(BSW_OK, "", err);
    if (status == BSW_OK) bsw_stop_conclude(0);
    bsw_stop_release();
    json_decref(facts.settings);
    return status;
}

struct bsw_search_sink bsw_range_sink(struct bsw_range_sink *sink)
{
    return (struct bsw_search_sink){.context = sink,
                                    .answers = {.context = sink, .take_range = take},
                                    .open = open_sink,
                                    .note_progress = note_progress,
                                    .finish = finish};
}

void bsw_range_sink_close(struct bsw_range_sink *sink, enum bsw_status status)
{
    int is_open = sink->writer != NULL;
    bsw_range_writer_destroy(&sink->writer);
    if (is_open && status != BSW_OK) bsw_run_status_set_output(NULL, "", NULL);
}
