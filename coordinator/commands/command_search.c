// SPDX-License-Identifier: Apache-2.0
// search: rank 0 reads queries and writes answers, every rank serves its shards.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/job/command.h"
#include "coordinator/job/found_lines.h"
#include "coordinator/job/option_table.h"
#include "coordinator/job/text_model.h"
#include "coordinator/search/range_sink.h"
#include "coordinator/search/result_journal.h"
#include "coordinator/search/search_options.h"

// ---- what it tells ----

// What moves queries and survivors between the ranks.
static const char *link_name(const struct bsw_search *search)
{
    return search->link ? "nccl" : "mpi";
}

static void tell_job(struct bsw_facts *facts, const struct bsw_search *search,
                     const struct bsw_search_stats *stats)
{
    const struct bsw_manifest *manifest = &search->manifest;
    bsw_fact_integer(facts, "queries", search->queries.num_queries, "%d queries");
    if (search->settings.is_range)
        bsw_fact_real(facts, "within", search->options.request.within, ", within %g");
    else
        bsw_fact_integer(facts, "k", search->settings.k, ", k %d");
    bsw_fact_integer(facts, "L", bsw_search_num_candidates(search), ", L %d");
    bsw_fact_integer(facts, "rows", manifest->num_rows, " over %d rows");
    bsw_fact_integer(facts, "dims", bsw_manifest_row_dims(manifest), " x %d dims");
    bsw_fact_integer(facts, "shards", manifest->num_shards, NULL);
    bsw_fact_text(facts, "codec", bsw_codec_name(manifest->codec), " (%s");
    bsw_fact_text(facts, "metric", bsw_metric_name(manifest->metric), ", %s)");
    bsw_fact_real(facts, "queries_per_second", stats->queries_per_second, ": %.4g queries/s");
    bsw_fact_real(facts, "seconds", stats->seconds, ", %.3f s\n");
}

static void tell_lists(struct bsw_facts *facts, const struct bsw_search *search,
                       const struct bsw_search_stats *stats)
{
    const struct bsw_search_settings *settings = &search->settings;
    const struct bsw_calibration *table = &search->manifest.calibration;
    double asked = search->options.request.recall;
    bsw_fact_integer(facts, "lists", search->manifest.lists.count, ", %d lists");
    bsw_fact_real(facts, "lists_a_query", stats->lists_a_query, " (%.1f a query)");
    bsw_fact_real(facts, "rows_a_query", stats->rows_a_query, NULL);
    if (asked > 0) bsw_fact_real(facts, "recall_asked", asked, NULL);
    if (settings->recall_calibrated == 0) return;
    bsw_fact_real(facts, "recall_calibrated", settings->recall_calibrated, ", recall %.4f");
    bsw_fact_integer(facts, "calibrated_k", table->k, " at k %d");
    bsw_fact_text(facts, "calibrated_by", bsw_calibration_source_name(table->source), " of its %s");
}

// What tables that have entries within a radius alone add to the report.
static void tell_selection(struct bsw_facts *facts, const struct bsw_search_settings *settings,
                           const struct bsw_search_stats *stats)
{
    const struct bsw_selection_settings *s = &settings->selection;
    char mode[BSW_WORD_BYTES];
    bsw_fact_text(facts, "entries", "radius", ", entries within a %s");
    if (isinf(s->scale))
        bsw_fact_text(facts, "radius_scale", "inf", " x %s");
    else
        bsw_fact_real(facts, "radius_scale", (double)s->scale, " x %g");
    bsw_fact_text(facts, "mode", bsw_setting_word(BSW_SELECTION_MODES, s->mode, mode), ", mode %s");
    bsw_fact_integer(facts, "entries_all", stats->selection.num_entries, NULL);
    bsw_fact_integer(facts, "entries_computed", stats->selection.num_computed, NULL);
    bsw_fact_integer(facts, "entries_within", stats->selection.num_within, NULL);
    bsw_fact_real(facts, "entries_share", stats->entries_share, ", %.3f of entries");
    bsw_fact_real(facts, "lookups_share", stats->lookups_share,
                  stats->selection.num_lookups > 0 ? ", %.3f of look-ups" : NULL);
}

static void tell_way(struct bsw_facts *facts, const struct bsw_search *search,
                     const struct bsw_search_stats *stats, const char *pin)
{
    const struct bsw_search_settings *settings = &search->settings;
    const struct bsw_search_request *request = &search->options.request;
    bsw_fact_integer(facts, "ranks", (uint64_t)search->transport->num_ranks, "%d ranks");
    bsw_fact_integer(facts, "threads", (uint64_t)settings->num_threads, " x %d threads");
    bsw_fact_text(facts, "pin", pin, NULL);
    bsw_fact_text(facts, "device", stats->device_kind, NULL);
    bsw_fact_text(facts, "level", stats->level, ", level %s");
    bsw_fact_text(facts, "scan", stats->scan, ", scan %s");
    if (search->manifest.codec->has_tables)
        bsw_fact_text(facts, "table", bsw_table_name(settings->table), " of %s");
    if (settings->selection.is_on) tell_selection(facts, settings, stats);
    if (search->manifest.lists.count > 0) tell_lists(facts, search, stats);
    bsw_fact_text(facts, "select", bsw_search_select_name(request->select), ", select %s");
    int is_on_host = settings->merge_place == BSW_MERGE_ON_HOST;
    bsw_fact_text(facts, "merge", bsw_search_merge_name(settings), ", merge %s");
    bsw_fact_text(facts, "merge_on", is_on_host ? "cpu" : stats->device_kind, NULL);
    bsw_fact_text(facts, "refine", bsw_search_refine_name(search), ", refine %s");
    bsw_fact_integer(facts, "batch", settings->batch, ", batch %d\n");
    bsw_fact_integer(facts, "repeat", search->run.repeat, NULL);
    bsw_facts_merge(facts, bsw_search_settings_told(search, BSW_IN_REPORT));
}

static void tell_phases(struct bsw_facts *facts, const struct bsw_search_times *t)
{
    const struct {
        const char *name;
        double seconds;
        int may_overlap;
    } phases[] = {{"encode", t->encode, 1}, {"broadcast", t->broadcast, 0},
                  {"scan", t->scan, 0},     {"merge", t->merge, 0},
                  {"refine", t->refine, 0}, {"finish", t->finish, 1},
                  {"write", t->write, 1}};
    bsw_facts_say(facts, "\n  phase       seconds\n");
    bsw_facts_open_object(facts, "seconds_by_phase");
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        int is_beside = phases[i].may_overlap && t->overlapped > 0, is_said = phases[i].seconds > 0;
        if (is_said) bsw_facts_say(facts, "  %-10s", phases[i].name);
        bsw_fact_real(facts, phases[i].name, phases[i].seconds, is_said ? " %8.3f" : NULL);
        if (is_said) bsw_facts_say(facts, "%s\n", is_beside ? "  beside the scan" : "");
    }
    bsw_facts_close(facts);
    bsw_fact_real(facts, "overlapped_seconds", t->overlapped, NULL);
}

static void tell_device(struct bsw_facts *facts, const struct bsw_device_report *d)
{
    bsw_facts_open_object(facts, "device");
    bsw_fact_text(facts, "label", d->label, NULL);
    bsw_fact_text(facts, "name", d->name, NULL);
    bsw_fact_text(facts, "note", d->note[0] ? d->note : NULL, NULL);
    bsw_fact_integer(facts, "used_bytes", d->used_bytes, NULL);
    bsw_fact_integer(facts, "copied_bytes", d->counts.copied_bytes, NULL);
    bsw_fact_integer(facts, "samples", d->counts.num_samples, NULL);
    bsw_fact_integer(facts, "segments", d->counts.num_segments, NULL);
    bsw_fact_integer(facts, "overflows", d->counts.num_overflows, NULL);
    bsw_fact_integer(facts, "shorts", d->counts.num_shorts, NULL);
    bsw_fact_integer(facts, "gpu_lists", d->counts.num_gpu_lists, NULL);
    bsw_fact_integer(facts, "hits", d->counts.num_hits, NULL);
    bsw_fact_integer(facts, "launches", d->counts.num_launches, NULL);
    bsw_fact_integer(facts, "waits", d->counts.num_waits, NULL);
    bsw_fact_integer(facts, "refine_waits", d->counts.num_refine_waits, NULL);
    bsw_fact_integer(facts, "batches_ahead", d->counts.num_ahead, NULL);
    bsw_fact_integer(facts, "graphs", d->counts.num_graphs, NULL);
    bsw_fact_text(facts, "graphs_note", d->counts.graph_note[0] ? d->counts.graph_note : NULL,
                  NULL);
    bsw_fact_integer(facts, "raw_bytes", d->counts.raw_bytes, NULL);
    bsw_fact_integer(facts, "gathered_bytes", d->counts.gathered_bytes, NULL);
    bsw_fact_integer(facts, "batch_allocations", d->counts.num_allocations, NULL);
    bsw_facts_close(facts);
}

static void tell_rank(struct bsw_facts *facts, const struct bsw_search *search, int rank,
                      int is_slowest)
{
    const struct bsw_search_rank *r = &search->ranks[rank];
    char resident[32];
    bsw_format_bytes((double)(r->memory_bytes + r->mapped_bytes), resident, sizeof resident);
    bsw_facts_open_object(facts, NULL);
    bsw_fact_integer(facts, "rank", (uint64_t)rank, "  %4d");
    bsw_fact_integer(facts, "units", r->num_units, "  %6d");
    bsw_fact_real(facts, "load_seconds", r->load_seconds, " %8.3f");
    bsw_fact_real(facts, "scan_seconds", r->scan_seconds, " %8.3f");
    bsw_fact_real(facts, "refine_seconds", r->refine_seconds, "  %8.3f");
    if (search->manifest.lists.count > 0)
        bsw_fact_real(facts, "coarse_seconds", r->coarse_seconds, NULL);
    bsw_fact_bytes(facts, "scanned_bytes", r->scanned_bytes, "  %10s");
    bsw_fact_bytes(facts, "resident_bytes", r->resident_bytes, NULL);
    bsw_fact_bytes(facts, "resident_memory_bytes", r->grown_bytes, NULL);
    bsw_fact_bytes(facts, "memory_bytes", r->memory_bytes, NULL);
    bsw_facts_say(facts, "  %10s", resident);
    bsw_fact_bytes(facts, "mapped_bytes", r->mapped_bytes, "  %12s");
    bsw_facts_say(facts, "%s\n", is_slowest ? "  slowest" : "");
    tell_device(facts, &r->device);
    bsw_facts_close(facts);
}

static void say_devices(struct bsw_facts *facts, const struct bsw_search *search)
{
    bsw_facts_say(facts, "\nlink: %s (%s)\n", link_name(search), search->link_note);
    bsw_facts_say(facts,
                  "\n  rank  device                                    memory  copied in blocks\n");
    for (int rank = 0; rank < search->transport->num_ranks; rank++) {
        const struct bsw_device_report *d = &search->ranks[rank].device;
        char device[96], used[32], copied[32];
        snprintf(device, sizeof device, "%s %s", d->label, d->name);
        bsw_format_bytes((double)d->used_bytes, used, sizeof used);
        bsw_format_bytes((double)d->counts.copied_bytes, copied, sizeof copied);
        bsw_facts_say(facts, "  %4d  %-36s %11s  %16s\n", rank, device, used, copied);
    }
}

static void tell_ranks(struct bsw_facts *facts, const struct bsw_search *search,
                       const struct bsw_search_stats *stats)
{
    int num_ranks = search->transport->num_ranks;
    bsw_facts_say(
        facts,
        "\n  rank  shards   load s   scan s  refine s     scanned    resident  of it mapped\n");
    bsw_facts_open_list(facts, "per_rank");
    for (int rank = 0; rank < num_ranks; rank++)
        tell_rank(facts, search, rank, rank == stats->slowest_rank && num_ranks > 1);
    bsw_facts_close(facts);
    bsw_fact_integer(facts, "slowest_rank", (uint64_t)stats->slowest_rank, NULL);
    bsw_fact_text(facts, "link", link_name(search), NULL);
    bsw_fact_text(facts, "link_note", search->link_note, NULL);
    for (int rank = 0; rank < num_ranks; rank++) {
        const char *note = search->ranks[rank].device.note;
        const char *graph_note = search->ranks[rank].device.counts.graph_note;
        if (note[0]) bsw_facts_say(facts, "rank %d is on its CPU: %s\n", rank, note);
        if (graph_note[0])
            bsw_facts_say(facts, "rank %d does without graphs: %s\n", rank, graph_note);
    }
    if (strcmp(stats->device_kind, "cpu") != 0) say_devices(facts, search);
}

static void tell_checks(struct bsw_facts *facts, const struct bsw_search *search)
{
    const struct bsw_self_check *check = &search->service.check;
    if (!search->settings.is_checked) {
        bsw_fact_text(facts, "self_checks", NULL, NULL);
        return;
    }
    bsw_facts_open_object(facts, "self_checks");
    bsw_fact_integer(facts, "known_answers", search->manifest.num_known, NULL);
    bsw_fact_integer(facts, "passed", search->batches.checks.num_passed + 2, NULL);
    bsw_fact_integer(facts, "answers", check->num_answers, NULL);
    bsw_fact_integer(facts, "keys", check->num_keys, NULL);
    bsw_fact_real(facts, "check_seconds", check->seconds, NULL);
    bsw_facts_close(facts);
}

// coverage: the least of all queries, of earlier runs too.
static void tell_missing(struct bsw_facts *facts, const struct bsw_search *search, double coverage)
{
    const struct bsw_missing_shards *missing = &search->missing;
    if (!search->settings.is_partial) return;
    bsw_fact_real(facts, "coverage", coverage,
                  coverage < 1 ? "\npartial: a query has seen %.4f of the rows\n" : NULL);
    for (uint32_t i = 0; i < missing->count; i++)
        bsw_facts_say(facts, "  shard %u is missing: %s\n", missing->items[i].shard,
                      missing->items[i].why);
    bsw_facts_merge(facts, bsw_missing_shards_told(missing));
}

// pin: --pin; out: the result; coverage: the least of all queries.
static void report(const struct bsw_search *search, enum bsw_facts_form form, const char *pin,
                   const char *out, double coverage)
{
    const struct bsw_search_stats stats = bsw_search_stats(search);
    uint64_t num_done = search->parts.num_done;
    struct bsw_facts facts;
    bsw_facts_begin(&facts, form, NULL);
    tell_job(&facts, search, &stats);
    tell_way(&facts, search, &stats, pin);
    tell_phases(&facts, &search->batches.times);
    tell_ranks(&facts, search, &stats);
    bsw_fact_integer(&facts, "survivors", stats.num_survivors, NULL);
    bsw_fact_bytes(&facts, "received_bytes", stats.received_bytes, NULL);
    bsw_fact_integer(&facts, "resumed_queries", num_done,
                     num_done > 0 ? "\nresumed: %d queries were done before\n" : NULL);
    bsw_fact_real(&facts, "stopped_share", stats.stopped_share, NULL);
    if (stats.stopped_share > 0)
        bsw_facts_say(&facts, "\nfirst stage: stopped %.4g %% of all rows\n",
                      100 * stats.stopped_share);
    bsw_fact_integer(&facts, "rescanned_queries", stats.num_rescanned, NULL);
    tell_checks(&facts, search);
    if (search->settings.is_range)
        bsw_fact_integer(&facts, "found_rows", search->num_within, "\n%d rows are within\n");
    tell_missing(&facts, search, coverage);
    bsw_fact_integer(&facts, "empty_places", stats.num_empty,
                     stats.num_empty > 0 ? "\n%d places stayed empty (id -1): fewer rows than k "
                                           "were found\n"
                                         : NULL);
    bsw_facts_say(&facts, "\nresults: %s\n", out);
    bsw_facts_end(&facts, BSW_OK);
}

struct search_options {
    struct bsw_common_options common;
    struct bsw_search_options search;
    struct bsw_search_run run;
    struct bsw_result_sink result;
    struct bsw_range_sink range; // with --within
    const char *text, *show;
};

#define OPTION(name, member, ...) BSW_OPTION(struct search_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("index", search.index, .value_name = "FOLDER", .is_required = 1,
           .help = "index made by encode"),
    OPTION("queries", run.queries, .value_name = "FILE",
           .help = "query vectors, or of an index of texts FILE.txt, FILE.tsv:COLUMN"),
    OPTION("out", result.path, .value_name = "FILE",
           .help = "result file (big-ann's layout, or .npz for NumPy; with --within big-ann's of "
                   "ranges); FILE.json too"),
    OPTION("base", search.base, .value_name = "FILE",
           .help = "where the file of rows is that the index refers to, if it has moved"),
    OPTION("text", text, .value_name = "WORDS",
           .help = "in place of both: one query of an index of texts; prints what is found"),
    OPTION("show", show, .value_name = "FILE",
           .help = "print found lines of this text, FILE.txt or FILE.tsv:COLUMN, beside values"),
    BSW_OPTION_GROUP(struct search_options, search, bsw_search_option_group),
    OPTION("query-rows", run.query_rows, .value_name = "A:B", .help = "only these queries"),
    OPTION("warmup", run.warmup, .value_name = "N", .default_text = "0", .max = 1000,
           .help = "passes before timing"),
    OPTION("repeat", run.repeat, .value_name = "N", .default_text = "1", .min = 1, .max = 1000,
           .help = "timed passes; the median is reported"),
    OPTION("force", result.is_forced,
           .help = "replace an existing result file, begin an unfinished one anew"),
    OPTION("resume", result.is_resumed,
           .help = "go on with an unfinished result file; without one begin"),
    BSW_OPTION_GROUP(struct search_options, common, bsw_common_option_group),
};

// ---- from options to settings ----

static enum bsw_status settle(struct search_options *o, struct bsw_error *err)
{
    struct bsw_text_name name;
    if (o->text && (o->run.queries || o->result.path || o->result.is_resumed))
        return bsw_fail(
            err, BSW_ERROR_USAGE,
            "search: --text prints its answers: no --queries, --out, --resume beside it");
    if (!o->text && !(o->run.queries && o->result.path))
        return bsw_fail(err, BSW_ERROR_USAGE, "search needs --%s",
                        o->run.queries ? "out" : "queries");
    if (o->search.within && (o->text || o->show || o->result.is_resumed))
        return bsw_fail(err, BSW_ERROR_USAGE, "--within: not with --%s%s",
                        o->text   ? "text"
                        : o->show ? "show"
                                  : "resume",
                        o->result.is_resumed ? ": a range search begins anew" : "");
    if (o->show && !bsw_text_name_parse(o->show, &name))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--show %s: must be FILE.txt, FILE.tsv or FILE.tsv:COLUMN", o->show);
    // Several passes are for timing, and what is timed is not cut into runs.
    o->result.is_journaled = o->run.warmup == 0 && o->run.repeat == 1;
    if (o->result.is_resumed && !o->result.is_journaled) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--resume is for a search of one pass, without --warmup and --repeat");
    }
    o->search.request.level = o->common.level;
    o->search.request.num_threads = (int)o->common.threads;
    o->search.pinning = &o->common.pinning;
    o->range = (struct bsw_range_sink){.path = o->result.path, .is_forced = o->result.is_forced};
    return BSW_OK;
}

// ---- text ----

#define TEXT_NAME BSW_MEMORY_PREFIX "--text"

// The query of --text as a row in memory, and its answers.
struct text_query {
    struct bsw_text_model model;
    struct bsw_memory_rows rows;
    float row[BSW_RBE_MAX_DIMS];
    struct bsw_results answers;
    struct bsw_search_sink sink;
};

static enum bsw_status begin_text(struct search_options *o, struct text_query *query,
                                  struct bsw_error *err)
{
    static const char *const any = "query.txt";
    char path[BSW_PATH_BYTES];
    if (!bsw_text_model_of_index(o->search.index, path))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--text: %s is no index of texts: encode --base FILE.txt makes one",
                        o->search.index);
    BSW_TRY(bsw_text_model_lend(&query->model, path, o->common.level, &any, 1, err));
    const struct bsw_text_maker *maker = bsw_text_maker_lent();
    BSW_TRY(maker->make(maker->context, 1, o->text, strlen(o->text), query->row, err));
    query->rows = (struct bsw_memory_rows){.name = TEXT_NAME,
                                           .numbers = query->row,
                                           .type = BSW_VECTOR_FLOAT32,
                                           .dims = maker->dims,
                                           .num_rows = 1};
    query->sink = (struct bsw_search_sink){.answers = bsw_memory_sink(&query->answers)};
    o->run.queries = TEXT_NAME;
    o->run.sink = &query->sink;
    return bsw_memory_rows_lend(&query->rows, err);
}

static void end_text(struct text_query *query)
{
    bsw_memory_rows_take_back(&query->rows);
    bsw_text_model_take_back(&query->model);
    bsw_results_deinit(&query->answers);
}

// After the report of a search, or in its place.
static enum bsw_status show(const struct search_options *o, const struct bsw_results *answers,
                            struct bsw_error *err)
{
    struct bsw_text_name name;
    struct bsw_text_lines lines = {.fd = -1};
    struct bsw_facts facts;
    enum bsw_facts_form form = o->common.json ? BSW_FACTS_JSON : BSW_FACTS_TEXT;
    enum bsw_status status = BSW_OK;
    int has_lines = o->show && bsw_text_name_parse(o->show, &name);
    if (has_lines) status = bsw_text_lines_open(&name, &lines, err);
    bsw_facts_begin(&facts, form, NULL);
    if (status == BSW_OK)
        status = bsw_found_lines_tell(&facts, answers, has_lines ? &lines : NULL, err);
    bsw_facts_end(&facts, status);
    bsw_text_lines_close(&lines);
    return status;
}

static enum bsw_status show_result(const struct search_options *o, struct bsw_error *err)
{
    struct bsw_results answers;
    BSW_TRY(bsw_results_read(o->result.path, &answers, err));
    enum bsw_status status = show(o, &answers, err);
    bsw_results_deinit(&answers);
    return status;
}

// ---- the whole ----

// All ranks, after all else: BSW_PARTIAL, on rank 0 with what is missing, where rows are.
static enum bsw_status conclude(const struct search_options *o, const struct bsw_search *search,
                                double coverage, struct bsw_error *err)
{
    const struct bsw_missing_shards *missing = &search->missing;
    enum bsw_status status = BSW_OK;
    if (!search->settings.is_partial) return BSW_OK;
    if (coverage < 1 && search->transport->rank == 0)
        status = bsw_fail(err, BSW_PARTIAL, "%s is partial: a query has seen %.4f of the rows%s%s",
                          o->text ? "the answer" : o->result.path, coverage,
                          missing->count > 0 ? ": " : "; --resume without --allow-partial",
                          missing->count > 0 ? missing->items[0].why : "");
    return bsw_transport_agree(search->transport, status, err);
}

static enum bsw_status search_all(struct search_options *o, struct bsw_transport *transport,
                                  struct bsw_error *err)
{
    struct bsw_search search = {0};
    enum bsw_status status = bsw_search_open(&search, transport, &o->search, err);
    if (status == BSW_OK) status = bsw_search_run(&search, &o->run, err);
    double coverage = o->text ? search.coverage : o->result.coverage;
    if (status == BSW_OK && transport->rank == 0 && !o->text && !(o->show && o->common.json))
        report(&search, bsw_common_facts_form(&o->common), o->common.pin, o->result.path, coverage);
    if (status == BSW_OK) status = conclude(o, &search, coverage, err);
    bsw_search_close(&search);
    return status;
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct search_options *o = options;
    BSW_TRY(settle(o, err));
    struct text_query query = {0};
    struct bsw_progress progress = {.is_shown = !o->common.quiet && !o->text};
    const struct bsw_search_sink sink =
        o->search.within ? bsw_range_sink(&o->range) : bsw_result_sink(&o->result);
    o->search.progress = &progress;
    o->run.sink = &sink;
    enum bsw_status status = o->text ? begin_text(o, &query, err) : BSW_OK;
    if (o->text) status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK) status = search_all(o, transport, err);
    enum bsw_status shown = BSW_OK;
    int is_partial = status == BSW_PARTIAL, is_done = status == BSW_OK || is_partial;
    bsw_range_sink_close(&o->range, status);
    if (!o->text) bsw_result_sink_close(&o->result, is_done ? BSW_OK : status);
    if (is_done && transport->rank == 0 && o->text)
        shown = show(o, &query.answers, err);
    else if (is_done && transport->rank == 0 && o->show)
        shown = show_result(o, err);
    if (shown != BSW_OK) status = shown;
    end_text(&query);
    return o->text || o->show ? bsw_transport_agree(transport, status, err) : status;
}

const struct bsw_command bsw_command_search =
    BSW_COMMAND_OFTEN("search", "search an index with a file of queries or a text",
                      struct search_options, BSW_ALL_RANKS,
                      "queries|out|text|show|k|within|oversample|recall|probe|refine|batch|device|"
                      "query-rows|exclude-self|force|resume|threads|json|quiet");
