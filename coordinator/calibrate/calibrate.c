// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/calibrate/calibrate_rows.h"
#include "coordinator/calibrate/calibrate_steps.h"
#include "coordinator/job/different_rows.h"
#include "coordinator/job/encode_journal.h"
#include "coordinator/job/index_folder.h"
#include "coordinator/job/job_events.h"
#include "coordinator/search/search.h"
#include "coordinator/search/search_settings.h"
#include "coordinator/truth/truth.h"

enum {
    CALIBRATED_K = 10,
    USUAL_ROWS = 1000,
    ROWS_A_QUERY = 10,
    MOST_IDLE_STEPS = 2,
    MOST_ENTRIES =
        BSW_CALIBRATE_MOST_STEPS * (1 + BSW_CALIBRATE_MOST_DIMS) * BSW_CALIBRATE_OVERSAMPLES
};

// Codes order a row's neighbours better than those of a query that is no row, which needs so many
// times the candidates for the same recall.
#define ROWS_MARGIN 1.5

// Places of the truth for copies of a query's row, and for rows as near as the last of the
// neighbours. Where most queries have more copies than the first, it is made again with the second.
static const uint64_t places_of_copies[] = {32, 2048};

struct calibration {
    struct bsw_calibrate_settings settings;
    struct bsw_transport *transport;
    struct bsw_manifest manifest;
    struct bsw_calibrate_source source;
    int by_rows;             // else the user's queries
    uint64_t k, num_skipped; // of true neighbours those behind so many
    uint64_t num_places;     // of the truth, besides these and a query's own row
    char queries[BSW_PATH_BYTES];
    struct bsw_calibrate_steps steps;
    struct bsw_search search;
    // On rank 0.
    struct bsw_index_folder folder;
    struct bsw_calibrate_rows rows;
    unsigned char *is_copy; // of the user's queries, which are those of one before
    struct bsw_results truth, candidates;
    int keeps_copies;             // there is nothing but copies to be found
    struct bsw_calibration table; // room for MOST_ENTRIES
    double best;                  // recall so far
    uint32_t num_idle;            // steps without a better one
    struct bsw_calibrate_stats stats;
};

// All ranks take the rows that rank 0 takes; all return alike.
static enum bsw_status open_source(struct calibration *c, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_CALIBRATE_ROWS, .name = "source"};
    int is_gone =
        c->transport->rank == 0 && bsw_calibrate_source_is_gone(&c->manifest, c->settings.index);
    enum bsw_status status =
        bsw_share_record(c->transport, &message, &is_gone, sizeof is_gone, err);
    BSW_TRY(bsw_transport_agree(c->transport, status, err));
    status = bsw_calibrate_source_lend(&c->manifest, c->settings.index, is_gone, &c->source, err);
    return bsw_transport_agree(c->transport, status, err);
}

// ---- queries ----

static uint64_t num_good(const struct calibration *c)
{
    return c->manifest.num_rows - c->manifest.dropped_rows;
}

// Good rows there are besides a query that is one of them.
static uint64_t num_others(const struct calibration *c)
{
    uint64_t good = num_good(c);
    return good > 0 && c->by_rows ? good - 1 : good;
}

// Rows lie closer to their neighbours than queries do, which are no rows: the more so where a
// corpus comes in groups. As a row's neighbours count those behind its nearest k.
static void choose_k(struct calibration *c)
{
    uint64_t most = c->by_rows ? num_others(c) / 2 : num_others(c);
    c->k = most < CALIBRATED_K ? most : CALIBRATED_K;
    c->num_skipped = c->by_rows ? c->k : 0;
}

// How many of a query's true neighbours, and of its candidates, do not count at most.
static uint64_t num_left_out(const struct calibration *c)
{
    return c->by_rows ? c->num_skipped + 1 + c->num_places : 0;
}

static uint64_t truth_k(const struct calibration *c)
{
    uint64_t k = c->k + c->num_skipped + (uint64_t)c->by_rows + c->num_places;
    return k < num_good(c) ? k : num_good(c);
}

static enum bsw_status check_settings(const struct bsw_calibrate_settings *s, struct bsw_error *err)
{
    if (!s->queries || s->num_rows == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--sample: --queries says what the queries are");
}

// Rank 0: keeps other encodes away from the folder, which has to have an index.
static enum bsw_status lock(struct calibration *c, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_join(path, c->settings.index, "manifest.pb", err));
    // Without one there may be no folder, which begin would make; reading says what is wrong.
    if (!bsw_file_exists(path)) return bsw_manifest_read(c->settings.index, &c->manifest, err);
    BSW_TRY(bsw_index_folder_begin(&c->folder, c->settings.index, err));
    return bsw_index_folder_clear(&c->folder, err);
}

static enum bsw_status read_index(struct calibration *c, struct bsw_error *err)
{
    const struct bsw_calibrate_settings *s = &c->settings;
    BSW_TRY(bsw_manifest_read(s->index, &c->manifest, err));
    if (c->manifest.lists.count == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s has no lists, so a search looks at all rows; encode --lists makes some",
                        s->index);
    if (c->manifest.num_parts > 1 ||
        bsw_manifest_live_rows(&c->manifest) < c->manifest.num_rows - c->manifest.dropped_rows)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: was appended to or has deleted rows: compact it first", s->index);
    choose_k(c);
    if (c->by_rows) return bsw_calibrate_rows_path(&c->manifest, s->index, c->queries, err);
    int length = snprintf(c->queries, sizeof c->queries, "%s", s->queries);
    if (length >= 0 && (size_t)length < sizeof c->queries) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: the name is too long", s->queries);
}

// Once the index is read.
static enum bsw_status check_index(const struct calibration *c, struct bsw_error *err)
{
    const struct bsw_calibrate_settings *s = &c->settings;
    const struct bsw_calibration *table = &c->manifest.calibration;
    if (s->num_rows > c->manifest.num_rows)
        return bsw_fail(err, BSW_ERROR_USAGE, "--sample %llu: %s has %llu rows only",
                        (unsigned long long)s->num_rows, s->index,
                        (unsigned long long)c->manifest.num_rows);
    if (s->is_forced || table->num_entries == 0 || table->source != BSW_CALIBRATED_BY_QUERIES)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: has a table of recalls already, made from a file of %llu queries; --force "
                    "replaces it",
                    s->index, (unsigned long long)table->num_queries);
}

static enum bsw_status fail_few(const struct calibration *c, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: %llu rows are too few for a table of recalls%s; search --probe needs none",
                    c->settings.index, (unsigned long long)c->manifest.num_rows,
                    c->by_rows ? ": --queries makes it from your queries" : "");
}

uint64_t bsw_calibrate_usual_rows(uint64_t num_rows)
{
    uint64_t tenth = num_rows / ROWS_A_QUERY;
    return tenth < USUAL_ROWS ? tenth : USUAL_ROWS;
}

static enum bsw_status draw_rows(struct calibration *c, struct bsw_error *err)
{
    const struct bsw_calibrate_settings *s = &c->settings;
    uint64_t usual = bsw_calibrate_usual_rows(c->manifest.num_rows);
    BSW_TRY(bsw_calibrate_rows_make(&c->manifest, s->index, c->source.name,
                                    s->num_rows > 0 ? s->num_rows : usual, s->level, &c->rows,
                                    err));
    c->stats.num_wanted = c->rows.num_wanted;
    c->stats.num_different = c->rows.num_rows;
    return BSW_OK;
}

static enum bsw_status look_at_queries(struct calibration *c, struct bsw_error *err)
{
    if (c->by_rows) return draw_rows(c, err);
    return bsw_find_copies(c->queries, c->manifest.metric, c->settings.level, &c->is_copy,
                           &c->stats.num_different, err);
}

// Whether there are queries, and rows that they can find. All ranks; all return alike.
static enum bsw_status take_queries(struct calibration *c, int *is_possible, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_CALIBRATE_ROWS, .name = "queries"};
    enum bsw_status status = BSW_OK;
    *is_possible = c->k > 0;
    if (!*is_possible) return BSW_OK;
    if (c->transport->rank == 0) status = look_at_queries(c, err);
    BSW_TRY(bsw_transport_agree(c->transport, status, err));
    *is_possible = !c->by_rows || c->rows.num_rows > 0;
    status = bsw_share_record(c->transport, &message, is_possible, sizeof *is_possible, err);
    return bsw_transport_agree(c->transport, status, err);
}

static enum bsw_status run_truth(struct calibration *c, struct bsw_error *err)
{
    const struct bsw_calibrate_settings *s = &c->settings;
    const struct bsw_manifest *manifest = &c->manifest;
    struct bsw_truth_stats stats;
    struct bsw_truth_settings settings = {
        .base = c->source.name,
        .queries = c->queries,
        .rows = {manifest->first_row, manifest->first_row + manifest->num_rows},
        .metric = bsw_metric_name(manifest->metric),
        .k = truth_k(c),
        .drop_bad_rows = manifest->dropped_rows > 0,
        .num_threads = s->num_threads,
        .level = s->level,
        .progress = s->progress};
    if (c->transport->rank == 0) settings.sink = bsw_memory_sink(&c->truth);
    BSW_TRY(bsw_truth_run(&settings, c->transport, &stats, err));
    c->stats.truth_seconds += stats.seconds;
    return BSW_OK;
}

static struct bsw_calibrate_lists lists_of(const struct calibration *c)
{
    return (struct bsw_calibrate_lists){.truth = &c->truth,
                                        .own = c->rows.ids,
                                        .is_copy = c->is_copy,
                                        .k = c->k,
                                        .num_skipped = c->num_skipped,
                                        .own_is_nearest = bsw_has_distances(c->manifest.metric),
                                        .has_all = c->truth.k == num_good(c),
                                        .keeps_copies = c->keeps_copies};
}

// Rank 0: which queries count. Those whose places copies of their rows have taken do not, unless
// there are no others.
static enum bsw_status count_queries(struct calibration *c, int *is_enough, struct bsw_error *err)
{
    struct bsw_calibrate_lists lists = lists_of(c);
    struct bsw_calibrate_found all, different;
    BSW_TRY(bsw_calibrate_count(&lists, &all, &different, err));
    *is_enough = lists.has_all || 2 * all.num_queries >= c->truth.num_queries;
    if (all.num_sought == 0) {
        lists.keeps_copies = c->keeps_copies = 1;
        BSW_TRY(bsw_calibrate_count(&lists, &all, &different, err));
    }
    c->stats.num_queries = all.num_queries;
    return BSW_OK;
}

static enum bsw_status find_truth(struct calibration *c, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_CALIBRATE_GOES_ON, .name = "copies"};
    int is_enough = 0;
    for (size_t i = 0; i < sizeof places_of_copies / sizeof *places_of_copies && !is_enough; i++) {
        c->num_places = places_of_copies[i];
        c->keeps_copies = 0;
        BSW_TRY(run_truth(c, err));
        enum bsw_status status =
            c->transport->rank == 0 ? count_queries(c, &is_enough, err) : BSW_OK;
        BSW_TRY(bsw_transport_agree(c->transport, status, err));
        status = bsw_share_record(c->transport, &message, &is_enough, sizeof is_enough, err);
        BSW_TRY(bsw_transport_agree(c->transport, status, err));
    }
    return BSW_OK;
}

// ---- searches ----

static int has_exact_keys(const struct calibration *c)
{
    return c->manifest.codec->table->has_exact_keys;
}

static enum bsw_status plan_steps(struct calibration *c, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_CALIBRATE_STEPS, .name = "steps"};
    enum bsw_status status = BSW_OK;
    if (c->transport->rank == 0)
        status = bsw_calibrate_steps_make(&c->manifest, c->queries, c->is_copy, c->settings.level,
                                          c->settings.num_threads, &c->steps, err);
    BSW_TRY(bsw_transport_agree(c->transport, status, err));
    status = bsw_share_record(c->transport, &message, &c->steps, sizeof c->steps, err);
    return bsw_transport_agree(c->transport, status, err);
}

// Opens a search for the best candidates of all queries by key, as many as the largest oversample
// refines.
static enum bsw_status open_search(struct calibration *c, struct bsw_error *err)
{
    const struct bsw_calibrate_settings *s = &c->settings;
    uint64_t most =
        has_exact_keys(c) ? c->k : c->k * bsw_calibrate_oversamples[BSW_CALIBRATE_OVERSAMPLES - 1];
    most = most + num_left_out(c) < num_good(c) ? most + num_left_out(c) : num_good(c);
    const struct bsw_search_options options = {.index = s->index,
                                               .answers_rows = 1,
                                               .request = {.k = most,
                                                           .refine = BSW_REFINE_NONE,
                                                           .oversample = 1,
                                                           .batch = 1000,
                                                           .probe = BSW_PROBE_ALL,
                                                           .level = s->level,
                                                           .num_threads = s->num_threads},
                                               .device.text = "cpu",
                                               .pinning = s->pinning,
                                               .is_unchecked = 1};
    return bsw_search_open(&c->search, c->transport, &options, err);
}

static double share(const struct bsw_calibrate_found *found, int x)
{
    return (double)found->num_found[x] / (double)found->num_sought;
}

// Entries of a search.
static enum bsw_status take_entries(struct calibration *c, const struct bsw_probe_settings *probe,
                                    struct bsw_error *err)
{
    struct bsw_calibrate_lists lists = lists_of(c);
    struct bsw_calibrate_found all, different;
    int num = has_exact_keys(c) ? 1 : BSW_CALIBRATE_OVERSAMPLES;
    double margin = c->by_rows && !has_exact_keys(c) ? ROWS_MARGIN : 1;
    lists.candidates = &c->candidates;
    BSW_TRY(bsw_calibrate_count(&lists, &all, &different, err));
    for (int x = 0; x < num; x++) {
        double of_all = share(&all, x), of_different = share(&different, x);
        const struct bsw_calibration_entry entry = {
            .probe = probe->probe > 0 ? probe->probe : c->manifest.lists.count,
            .ratio = probe->ratio,
            .oversample = bsw_calibrate_oversamples[x] * margin,
            .recall = of_all < of_different ? of_all : of_different,
            .rows_a_query = bsw_search_stats(&c->search).rows_a_query,
            .scan_dims = probe->scan_dims};
        c->table.entries[c->table.num_entries++] = entry;
        c->best = entry.recall > c->best ? entry.recall : c->best;
    }
    c->stats.num_searches++;
    return BSW_OK;
}

static enum bsw_status run_search(struct calibration *c, const struct bsw_probe_settings *probe,
                                  struct bsw_error *err)
{
    const struct bsw_search_sink sink = {.answers = bsw_memory_sink(&c->candidates)};
    const struct bsw_search_run run = {
        .queries = c->queries, .query_rows = BSW_ALL_ROWS, .repeat = 1, .sink = &sink};
    BSW_TRY(bsw_search_look(&c->search, probe, err));
    BSW_TRY(bsw_search_run(&c->search, &run, err));
    enum bsw_status status = c->transport->rank == 0 ? take_entries(c, probe, err) : BSW_OK;
    return bsw_transport_agree(c->transport, status, err);
}

// A step by all dimensions, and by the first ones alone.
static enum bsw_status run_step(struct calibration *c, const struct bsw_probe_settings *step,
                                struct bsw_error *err)
{
    struct bsw_probe_settings probe = *step;
    double best = c->best;
    BSW_TRY(run_search(c, &probe, err));
    for (uint32_t i = 0; i < c->steps.num_scan_dims; i++) {
        probe.scan_dims = c->steps.scan_dims[i];
        BSW_TRY(run_search(c, &probe, err));
    }
    c->num_idle = c->best > best ? 0 : c->num_idle + 1;
    return BSW_OK;
}

// The next step: the one that follows, all lists where more of them were of no use, or the end
// where nothing is left to be found.
static uint32_t next_step(const struct calibration *c, uint32_t step)
{
    uint32_t last = c->steps.num_steps - 1;
    if (c->best == 1) return c->steps.num_steps;
    return c->num_idle >= MOST_IDLE_STEPS && step < last ? last : step + 1;
}

static enum bsw_status run_steps(struct calibration *c, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_CALIBRATE_GOES_ON, .name = "a step"};
    struct bsw_progress *progress = c->settings.progress;
    enum bsw_status status = BSW_OK;
    if (c->transport->rank == 0)
        status = bsw_allocate(&c->table.entries, MOST_ENTRIES, sizeof *c->table.entries,
                              "calibration", err);
    BSW_TRY(bsw_transport_agree(c->transport, status, err));
    bsw_progress_begin(progress, "calibrate", "searches", c->steps.num_steps);
    for (uint32_t step = 0; status == BSW_OK && step < c->steps.num_steps;) {
        status = run_step(c, &c->steps.steps[step], err);
        if (status != BSW_OK) break;
        bsw_progress_update(progress, step + 1);
        if (c->transport->rank == 0) step = next_step(c, step);
        status = bsw_share_record(c->transport, &message, &step, sizeof step, err);
        status = bsw_transport_agree(c->transport, status, err);
    }
    bsw_progress_finish(progress);
    return status;
}

// ---- the table ----

static enum bsw_status write_table(struct calibration *c, struct bsw_error *err)
{
    struct bsw_calibration *table = &c->table;
    table->k = (uint32_t)c->k;
    table->padded_dims = c->manifest.layout.padded_dims;
    table->num_queries = c->stats.num_queries;
    table->source = c->by_rows ? BSW_CALIBRATED_BY_ROWS : BSW_CALIBRATED_BY_QUERIES;
    bsw_recall_front(table);
    c->stats.k = c->k;
    c->stats.num_entries = table->num_entries;
    c->stats.least_recall = table->entries[0].recall;
    c->stats.best_recall = table->entries[table->num_entries - 1].recall;
    bsw_calibration_deinit(&c->manifest.calibration);
    c->manifest.calibration = *table;
    *table = (struct bsw_calibration){0};
    return bsw_manifest_write(&c->manifest, c->settings.index, err);
}

static enum bsw_status measure(struct calibration *c, struct bsw_error *err)
{
    BSW_TRY(find_truth(c, err));
    BSW_TRY(plan_steps(c, err));
    BSW_TRY(open_search(c, err));
    BSW_TRY(run_steps(c, err));
    enum bsw_status status = c->transport->rank == 0 ? write_table(c, err) : BSW_OK;
    return bsw_transport_agree(c->transport, status, err);
}

static enum bsw_status calibrate(struct calibration *c, struct bsw_error *err)
{
    int is_possible;
    enum bsw_status status = check_settings(&c->settings, err);
    if (status == BSW_OK && c->transport->rank == 0) status = lock(c, err);
    BSW_TRY(bsw_transport_agree(c->transport, status, err));
    status = read_index(c, err);
    if (status == BSW_OK) status = check_index(c, err);
    BSW_TRY(bsw_transport_agree(c->transport, status, err));
    BSW_TRY(open_source(c, err));
    BSW_TRY(take_queries(c, &is_possible, err));
    if (is_possible) BSW_TRY(measure(c, err));
    if (!is_possible && c->settings.is_needed) return fail_few(c, err);
    status = c->transport->rank == 0 ? bsw_encode_table_forget(c->settings.index, err) : BSW_OK;
    return bsw_transport_agree(c->transport, status, err);
}

static void deinit(struct calibration *c)
{
    bsw_search_close(&c->search);
    bsw_calibrate_rows_deinit(&c->rows);
    bsw_free(&c->is_copy);
    bsw_results_deinit(&c->truth);
    bsw_results_deinit(&c->candidates);
    bsw_calibration_deinit(&c->table);
    bsw_calibrate_source_take_back(&c->source);
    bsw_manifest_deinit(&c->manifest);
    bsw_index_folder_release(&c->folder);
}

enum bsw_status bsw_calibrate_run(const struct bsw_calibrate_settings *settings,
                                  struct bsw_transport *transport,
                                  struct bsw_calibrate_stats *stats, struct bsw_error *err)
{
    struct calibration c = {
        .settings = *settings, .transport = transport, .by_rows = settings->queries == NULL};
    double started = bsw_clock_seconds();
    enum bsw_status status = calibrate(&c, err);
    deinit(&c);
    c.stats.seconds = bsw_clock_seconds() - started;
    *stats = c.stats;
    return status;
}

// ---- what it tells ------------------------------------------------------------------------------

static void tell_copies(struct bsw_facts *facts, const struct bsw_calibrate_stats *stats)
{
    bsw_fact_integer(facts, "different_queries", stats->num_different, NULL);
    if (stats->num_entries == 0) return;
    if (stats->num_different < stats->num_wanted)
        bsw_facts_say(facts, " (no more rows differ)");
    else if (stats->num_wanted == 0 && stats->num_different < stats->num_queries)
        bsw_facts_say(facts, " (%llu of them different)", (unsigned long long)stats->num_different);
}

void bsw_calibrate_facts(struct bsw_facts *facts, const struct bsw_calibrate_stats *stats)
{
    int has_table = stats->num_entries > 0;
    bsw_facts_open_object(facts, "calibration");
    bsw_fact_integer(facts, "queries", stats->num_queries,
                     has_table ? "calibrated with %d queries" : NULL);
    tell_copies(facts, stats);
    bsw_fact_integer(facts, "k", stats->k, NULL);
    bsw_fact_integer(facts, "searches", stats->num_searches, has_table ? ", %d searches" : NULL);
    bsw_fact_real(facts, "seconds", stats->seconds, has_table ? " in %.2f s" : NULL);
    bsw_fact_real(facts, "groundtruth_seconds", stats->truth_seconds, NULL);
    bsw_fact_integer(facts, "entries", stats->num_entries, NULL);
    bsw_fact_real(facts, "least_recall", stats->least_recall, has_table ? ": recall %.4f" : NULL);
    bsw_fact_real(facts, "best_recall", stats->best_recall, has_table ? " to %.4f\n" : NULL);
    if (!has_table) bsw_facts_say(facts, "too few rows for a table of recalls\n");
    bsw_facts_close(facts);
}
