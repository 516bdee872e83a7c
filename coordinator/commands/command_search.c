// SPDX-License-Identifier: Apache-2.0
// search: rank 0 reads queries and writes answers, every rank serves its shards.
#include <stdio.h>
#include <string.h>

#include "coordinator/commands/search_report.h"
#include "coordinator/job/command.h"
#include "coordinator/search/result_sink.h"
#include "coordinator/search/search.h"
#include "coordinator/search/selection_settings.h"

struct search_options {
    struct bsw_common_options common;
    struct bsw_search_options search;
    struct bsw_search_run run;
    struct bsw_result_sink result;
    // What becomes a setting or a choice of one.
    const char *refine, *extra_distance, *check_every, *probe, *radius_scale;
    struct {
        const char *mode, *miss, *radii, *finder;
    } entries;
    int entries_by_time;
};

#define OPTION(name, member, ...) BSW_OPTION(struct search_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("index", search.index, .value_name = "FOLDER", .is_required = 1,
           .help = "index made by encode"),
    OPTION("queries", run.queries, .value_name = "FILE", .is_required = 1, .help = "query vectors"),
    OPTION("out", result.path, .value_name = "FILE", .is_required = 1,
           .help = "result file (big-ann's layout); FILE.json too"),
    OPTION("k", search.request.k, .value_name = "K", .default_text = BSW_SEARCH_K_TEXT, .min = 1,
           .max = BSW_SEARCH_MAX_K, .help = "neighbours a query"),
    OPTION("query-bits", search.request.query_bits, .value_name = "BQ", .min = 1,
           .max = BSW_MAX_QUERY_BITS,
           .help = "bits a query component, not for codecs raw and pq [6]"),
    OPTION("table", search.request.table, .choices = BSW_TABLE_CHOICES, .default_text = "auto",
           .help = "pq: numbers of a query's tables; auto: float32"),
    OPTION("entries", search.request.entries.choice, .choices = BSW_ENTRIES_CHOICES,
           .default_text = "all",
           .help = "pq: all entries of a codebook, or those within a radius of the query, which "
                   "encode --entries radius has learned"),
    OPTION("radius-scale", radius_scale, .value_name = "X|inf",
           .help = "radius: times this; inf: what all entries find [1]"),
    OPTION("mode", entries.mode, .choices = BSW_SELECTION_MODES,
           .help = "radius: H sums distances, L counts hits, M hits of half the radius less misses "
                   "[H]"),
    OPTION("miss", entries.miss, .choices = "bound|inf|mean",
           .help = "radius, mode H: what an entry outside adds: the radius squared, or inf, which "
                   "leaves its rows out; mean, of radii nearest: what those outside add [bound]"),
    OPTION("radii", entries.radii, .choices = BSW_RADII_KINDS,
           .help = "radius: by density around the query; the least or largest of a subspace; l2, "
                   "a CPU: what holds the nearest quarter of the entries [dynamic]"),
    OPTION("entries-by", entries.finder, .choices = BSW_ENTRY_FINDER_CHOICES,
           .help =
               "radius: what finds entries; the same bytes for all; a GPU has brute alone [auto]"),
    OPTION("hit-time", entries_by_time,
           .help = "radius, embree or vulkan: distances from the times of hits, as JUNO has them; "
                   "then not the same bytes for all"),
    OPTION("oversample", search.request.oversample, .value_name = "X", .min = 1, .max = 10000,
           .help = "candidates to refine, times k; codec raw needs none "
                   "[" BSW_SEARCH_OVERSAMPLE_TEXT ", or as --recall has it]"),
    OPTION("scan", search.request.scan, .choices = BSW_SCAN_NAMES, .default_text = "auto",
           .help = "bit planes or int8 units, in full or progressively; auto: what measured "
                   "faster; of GPUs only Hopper scans progressively"),
    OPTION("recall", search.request.recall, .value_name = "X", .min = BSW_LEAST_RECALL, .max = 1,
           .help = "with lists: take probe, probe-ratio, scan-dims and oversample from the table "
                   "that encode --calibrate made, the cheapest that found this share of the true "
                   "neighbours "
                   "[0.99 or the most there is; all lists without a table]"),
    OPTION("probe", probe, .value_name = "N|all",
           .help = "with lists: look at the N nearest to a query"),
    OPTION("probe-ratio", search.request.probe_ratio, .value_name = "R", .min = 0.01, .max = 1000,
           .help = "with lists: none whose squared distance is above R times that of the 16th"),
    OPTION("scan-dims", search.request.scan_dims, .value_name = "D", .min = 1, .max = BSW_MAX_DIMS,
           .help = "with lists: candidates by the first D dimensions alone, a segment's end; with "
                   "a table of recalls only beside --probe or --probe-ratio [all, or --recall's]"),
    OPTION("select", search.request.select, .choices = BSW_SELECT_NAMES,
           .default_text = "threshold",
           .help = "how candidates are chosen; queue: rbeGIR's, which may miss some"),
    BSW_OPTION_GROUP(struct search_options, search.request.queue, bsw_queue_option_group),
    OPTION("extra-distance", extra_distance, .value_name = "E",
           .help = "histogram: all within D_K + E; implies --select histogram"),
    OPTION("max-candidates", search.request.max_candidates, .value_name = "N",
           .default_text = BSW_SEARCH_MAX_CANDIDATES_TEXT, .min = 1, .max = 1e8,
           .help = "histogram: at most so many a query"),
    OPTION("histogram-k", search.request.histogram_k, .value_name = "K", .min = 1,
           .max = BSW_SEARCH_MAX_K, .help = "histogram: rows that D_K reaches, at most --k [--k]"),
    OPTION("refine", refine, .choices = "exact|none", .default_text = "exact",
           .help =
               "order by exact values of the raw vectors, or by code; codec raw is exact anyway"),
    OPTION(
        "merge", search.request.merge, .choices = BSW_MERGE_NAMES, .default_text = "auto",
        .help =
            "how candidates of shards meet; auto, on several ranks: exchange between linked GPUs, "
            "else ladder"),
    OPTION("batch", search.request.batch, .value_name = "N", .default_text = BSW_SEARCH_BATCH_TEXT,
           .min = 1, .max = 1e6, .help = "queries at a time"),
    OPTION("overlap", search.overlap, .choices = "auto|on|off", .default_text = "auto",
           .help = "other batches beside the scan; auto: where a core is to spare, or GPUs merge"),
    OPTION("graphs", search.graphs, .choices = "auto|on|off", .default_text = "auto",
           .help = "launches of a batch on a GPU as one CUDA graph; auto: where the GPU's tuning "
                   "says so; off: one by one"),
    BSW_OPTION_GROUP(struct search_options, search.device, bsw_device_option_group),
    OPTION("link", search.link, .choices = "auto|mpi|nccl", .default_text = "auto",
           .help = "what moves GPU data between ranks; auto: NCCL where each has a GPU of its own"),
    OPTION("check-every", check_every, .value_name = "SECONDS|never",
           .default_text = BSW_TEXT_OF(BSW_SEARCH_CHECK_SECONDS),
           .help = "self-checks at the start, so often and at the end; 0: start and end"),
    OPTION("query-rows", run.query_rows, .value_name = "A:B", .help = "only these queries"),
    OPTION("exclude-self", search.request.exclude_self,
           .help = "leave row i out of the answer of query i"),
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

// "300": at the start, every 300 s and at the end; "0": at the start and the end; "never".
static enum bsw_status take_checks(const char *text, struct bsw_search_options *out,
                                   struct bsw_error *err)
{
    out->is_unchecked = strcmp(text, "never") == 0;
    if (out->is_unchecked) return BSW_OK;
    BSW_TRY(bsw_number_parse("--check-every", text, &out->check_seconds, err));
    if (out->check_seconds >= 0 && out->check_seconds <= 1e9) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--check-every %s: 0 to 1e9 seconds, or never", text);
}

static enum bsw_status take_probe(const char *text, struct bsw_search_request *out,
                                  struct bsw_error *err)
{
    if (!text) return BSW_OK;
    out->probe = BSW_PROBE_ALL;
    if (strcmp(text, "all") == 0) return BSW_OK;
    BSW_TRY(bsw_count_parse_or("--probe", text, "all", &out->probe, err));
    if (out->probe >= 1 && out->probe <= BSW_MAX_LISTS) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--probe %s: 1 to %u, or all", text, BSW_MAX_LISTS);
}

static enum bsw_status take_extra_distance(const char *text, struct bsw_search_request *out,
                                           struct bsw_error *err)
{
    if (!text) return BSW_OK;
    if (out->select == BSW_SELECT_QUEUE) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--extra-distance needs the whole histogram, not --select queue");
    }
    out->select = BSW_SELECT_HISTOGRAM;
    return bsw_count_parse("--extra-distance", text, &out->extra_distance, err);
}

static void take_word(const char *text, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", text ? text : "");
}

static enum bsw_status take_entries(const struct search_options *o,
                                    struct bsw_selection_request *out, struct bsw_error *err)
{
    take_word(o->entries.mode, out->mode, sizeof out->mode);
    take_word(o->entries.miss, out->miss, sizeof out->miss);
    take_word(o->entries.radii, out->radii, sizeof out->radii);
    take_word(o->entries.finder, out->finder, sizeof out->finder);
    out->has_hit_time = o->entries_by_time;
    return o->radius_scale ? bsw_radius_scale_parse(o->radius_scale, &out->radius_scale, err)
                           : BSW_OK;
}

static enum bsw_status settle(struct search_options *o, struct bsw_error *err)
{
    // Several passes are for timing, and what is timed is not cut into runs.
    o->result.is_journaled = o->run.warmup == 0 && o->run.repeat == 1;
    if (o->result.is_resumed && !o->result.is_journaled) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--resume is for a search of one pass, without --warmup and --repeat");
    }
    o->search.request.level = o->common.level;
    o->search.request.num_threads = (int)o->common.threads;
    o->search.pinning = &o->common.pinning;
    o->search.request.is_refined = strcmp(o->refine, "exact") == 0;
    BSW_TRY(take_checks(o->check_every, &o->search, err));
    BSW_TRY(take_probe(o->probe, &o->search.request, err));
    BSW_TRY(take_entries(o, &o->search.request.entries, err));
    return take_extra_distance(o->extra_distance, &o->search.request, err);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct search_options *o = options;
    struct bsw_search search = {0};
    BSW_TRY(settle(o, err));
    struct bsw_progress progress = {.is_shown = !o->common.quiet};
    const struct bsw_search_sink sink = bsw_result_sink(&o->result);
    o->search.progress = &progress;
    o->run.sink = &sink;
    enum bsw_status status = bsw_search_open(&search, transport, &o->search, err);
    if (status == BSW_OK) status = bsw_search_run(&search, &o->run, err);
    if (status == BSW_OK && transport->rank == 0)
        bsw_search_report(&search, bsw_common_facts_form(&o->common), o->common.pin,
                          o->result.path);
    bsw_search_close(&search);
    bsw_result_sink_close(&o->result, status);
    return status;
}

const struct bsw_command bsw_command_search = BSW_COMMAND(
    "search", "search an index with a file of queries", struct search_options, BSW_ALL_RANKS);
