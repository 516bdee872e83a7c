// SPDX-License-Identifier: Apache-2.0
// bitsweep.h: what tells searches how much to look at.
#include "coordinator/bitsweep_index.h"
#include "coordinator/calibrate/calibrate.h"

void bitsweep_calibrate_defaults_of(struct bitsweep_calibrate_settings *settings, size_t size)
{
    bsw_library_default(settings, size, NULL, 0);
}

void bitsweep_calibrate_stats_init_of(struct bitsweep_calibrate_stats *stats, size_t size)
{
    bsw_library_default(stats, size, NULL, 0);
}

struct calibrate_call {
    struct bsw_library_call call;
    struct bitsweep_calibrate_settings asked;
    struct bsw_calibrate_settings settings;
    struct bsw_library_rows queries;
    struct bsw_progress progress; // nothing is shown; the caller is told
};

static enum bsw_status prepare_calibration(struct calibrate_call *c, const bitsweep_index *index,
                                           struct bsw_error *err)
{
    const struct bitsweep_calibrate_settings *asked = &c->asked;
    c->settings = (struct bsw_calibrate_settings){.index = index->folder,
                                                  .num_rows = asked->sample,
                                                  .is_forced = 1,
                                                  .num_threads = c->call.num_threads,
                                                  .level = bsw_cpu_level_detect(),
                                                  .progress = &c->progress};
    BSW_TRY(bsw_setting_count("sample", asked->sample, 0, BSW_CALIBRATE_MOST_ROWS, err));
    if (!asked->queries) return BSW_OK;
    BSW_TRY(bsw_library_lend(asked->queries, BSW_MEMORY_PREFIX "queries", &c->queries, err));
    c->settings.queries = c->queries.name;
    return BSW_OK;
}

static enum bsw_status calibrate(struct calibrate_call *c, bitsweep_index *index,
                                 struct bitsweep_calibrate_stats *out, struct bsw_error *err)
{
    struct bsw_calibrate_stats stats;
    // What was settled by the table before; and codes are not to be loaded twice.
    bsw_search_close(&index->search);
    index->is_open = 0;
    BSW_TRY(bsw_calibrate_run(&c->settings, c->call.transport, &stats, err));
    BSW_TRY(bsw_library_index_look(index, c->call.transport, err));
    if (!out) return BSW_OK;
    const struct bitsweep_calibrate_stats told = {.size = sizeof told,
                                                  .seconds = stats.seconds,
                                                  .num_queries = stats.num_queries,
                                                  .k = stats.k,
                                                  .num_searches = stats.num_searches,
                                                  .num_entries = stats.num_entries,
                                                  .least_recall = stats.least_recall,
                                                  .best_recall = stats.best_recall};
    bsw_library_tell(out, &told, sizeof told);
    return BSW_OK;
}

int bitsweep_calibrate(bitsweep_index *index, const struct bitsweep_calibrate_settings *settings,
                       struct bitsweep_calibrate_stats *stats, struct bitsweep_error *error)
{
    struct calibrate_call c = {0};
    struct bsw_error err = {.rank = -1};
    bitsweep_calibrate_defaults(&c.asked);
    enum bsw_status status = bsw_library_take_settings(&c.asked, sizeof c.asked, 0, settings, &err);
    const uint64_t alike[] = {c.asked.sample, c.asked.queries != NULL};
    const struct bsw_library_call_needs needs = {.threads = index->num_threads,
                                                 .status = status,
                                                 .works = 1,
                                                 .ranks = index->settings.ranks,
                                                 .progress = c.asked.progress,
                                                 .context = c.asked.progress_context,
                                                 .err = &err};
    status = bsw_library_index_begin(index, &c.call, &needs);
    if (status == BSW_OK) status = bsw_library_index_adopt(index, &c.call.err);
    if (status == BSW_OK) status = prepare_calibration(&c, index, &c.call.err);
    status = bsw_library_call_meet(
        &c.call, status, "calibrate",
        bsw_library_digest(&(struct bsw_library_alike){.counts = alike, .num_counts = 2}));
    if (status == BSW_OK) status = calibrate(&c, index, stats, &c.call.err);
    bsw_library_take_back(&c.queries);
    return bsw_library_index_end(index, &c.call, status, error);
}
