// SPDX-License-Identifier: Apache-2.0
// plan: what an index will take in memory and on disk, what queue selection will miss and how long
// a batch will take, before any of it is made or bought. Bytes come from the functions that indexes
// are made with.
#include <stdio.h>
#include <string.h>

#include "coordinator/encode/encode_lists.h"
#include "coordinator/job/command.h"
#include "coordinator/plan/plan_index.h"
#include "coordinator/plan/plan_report.h"
#include "coordinator/search/search_options.h"
#include "kernels/rbe/rbe_model.h"

struct plan_options {
    struct bsw_common_options common;
    struct bsw_plan_settings index;
    struct bsw_plan_time_settings times;
    const char *ranks, *select, *entries;
    double target, list_rate;
};

struct plan_job {
    struct plan_options *options;
    uint64_t ranks[BSW_PLAN_MAX_LINES];
    size_t num_ranks;
    struct bsw_plan_index index; // for the first of them
    struct bsw_plan_misses misses;
    struct bsw_plan_times times;
};

#define OPTION(name, member, ...) BSW_OPTION(struct plan_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("rows", index.rows, .value_name = "N", .is_required = 1, .min = 1, .max = 1e12,
           .help = "documents"),
    OPTION("dims", index.dims, .value_name = "D", .is_required = 1, .min = 1, .max = BSW_MAX_DIMS,
           .help = "dimensions of vectors, and of their codes but for rbe"),
    OPTION("codec", index.codec, .value_name = "NAME", .default_text = "saq",
           .help = "as for encode"),
    OPTION("bits", index.bits, .value_name = "B", .min = 1, .max = 8,
           .help = "bits a dimension, for saq on average, for rbe a document's planes; pq: 4 or 8 "
                   "a subspace [3; rbe 2; pq 8]"),
    OPTION("code-dims", index.code_dims, .value_name = "N", .min = 1, .max = BSW_RBE_MAX_DIMS,
           .help = "rbe: components of a code [64]"),
    OPTION("subspaces", index.parts, .value_name = "M", .min = 1, .max = BSW_MAX_DIMS,
           .help = "pq: as for encode [2 bits a dimension]"),
    OPTION("entries", entries, .choices = "all|radius", .default_text = "all",
           .help = "pq: as for encode"),
    OPTION("segments", index.segments, .value_name = "DxB,...",
           .help = "saq: dims x bits of each segment, in place of --bits"),
    OPTION("stage", index.stage, .value_name = "D", .default_text = "32", .max = BSW_MAX_DIMS,
           .help = "saq: dims of the first stage, which has bytes of its own; 0: none"),
    OPTION("lists", index.lists, .value_name = "N|auto", .default_text = "0", .max = 1e18,
           .word = "auto", .word_count = BSW_LISTS_AUTO,
           .help = "lists of the index: their bytes, and what it takes to make them"),
    OPTION("vectors", index.vectors, .choices = "float32|float16|uint8|int8|none",
           .default_text = "float32", .help = "raw vectors to refine with, on disk"),
    OPTION("ranks", ranks, .value_name = "N", .default_text = "1",
           .help = "ranks of a search, up to 4096; 1,2,8 or 1:1024 (doubled): a line for each, "
                   "with times"),
    OPTION("shards", index.shards, .value_name = "P", .default_text = "0", .max = BSW_MAX_SHARDS,
           .help =
               "shards of the index; 0: as many as ranks, or so many more that none has 2^32 rows"),
    BSW_OPTION_SOME(struct plan_options, index.search, bsw_search_option_group,
                    "k|items|queue-length|batch"),
    OPTION("query-bits", index.search.query_bits, .value_name = "BQ", .min = 1,
           .max = BSW_MAX_QUERY_BITS, .help = "bits a query component [6; rbe 3]"),
    OPTION("oversample", index.search.oversample, .value_name = "X",
           .default_text = BSW_SEARCH_OVERSAMPLE_TEXT, .min = 1, .max = 10000,
           .help = "candidates to refine, times k; 1 with --vectors none and codec raw"),
    OPTION("select", select, .choices = "threshold|queue", .default_text = "threshold",
           .help = "queue: also what rbeGIR's selection will miss of the candidates"),
    OPTION("target", target, .value_name = "PERCENT", .default_text = "99.9", .max = 100,
           .help = "queue: share of candidates to keep, for which I is sought"),
    OPTION("rates", times.rates_path, .value_name = "FILE",
           .help = "JSON of bench cluster: what times are computed from, scaled for other codes; "
                   "the options below go before it"),
    OPTION("alpha", times.given.alpha_seconds, .value_name = "SECONDS", .min = 1e-12, .max = 100,
           .help = "a message of no bytes between ranks"),
    OPTION("beta", times.given.beta_seconds_per_byte, .value_name = "SECONDS", .min = 1e-15,
           .max = 1, .help = "each byte of a message: 1 / bandwidth"),
    OPTION("scan-rate", times.given.scan_pairs_per_second, .value_name = "N", .min = 1, .max = 1e18,
           .help = "pairs of row and query a rank scans a second"),
    OPTION("scan-bandwidth", times.given.scan_bytes_per_second, .value_name = "BYTES", .min = 1,
           .max = 1e18, .help = "codes a rank reads from memory a second"),
    OPTION("encode-rate", times.given.encode_queries_per_second, .value_name = "N", .min = 1,
           .max = 1e18, .help = "queries rank 0 codes a second"),
    OPTION("merge-rate", times.given.merge_candidates_per_second, .value_name = "N", .min = 1,
           .max = 1e18, .help = "candidates rank 0 merges a second"),
    OPTION("refine-rate", times.given.refine_rows_per_second, .value_name = "N", .min = 1,
           .max = 1e18, .help = "rows a rank refines a second"),
    OPTION("finish-rate", times.given.finish_queries_per_second, .value_name = "N", .min = 1,
           .max = 1e18, .help = "queries rank 0 ranks and writes a second"),
    OPTION("list-rate", list_rate, .value_name = "N", .default_text = BSW_PLAN_LIST_RATE_TEXT,
           .min = 1, .max = 1e18,
           .help = "multiply-adds of bytes a thread does a second while lists are made"),
    OPTION("device", times.device, .choices = "cpu|gpu|h200", .default_text = "cpu",
           .help =
               "gpu: rates of scans are of a GPU a rank; h200: its computed limits, not measured"),
    OPTION("merge", index.search.merge, .choices = BSW_HOST_MERGE_NAMES, .default_text = "auto",
           .help = "as for search, on CPUs"),
    OPTION("rank-threads", times.threads, .value_name = "N", .default_text = "0", .max = 4096,
           .help = "threads of a rank; 0: as many as rates were measured with"),
    OPTION("cores", times.cores, .value_name = "N", .default_text = "0", .max = 65536,
           .help = "cores of a host; 0: as measured, or one a thread"),
    OPTION("ranks-a-host", times.ranks_a_host, .value_name = "N", .default_text = "1", .min = 1,
           .max = 4096, .help = "ranks that share the cores of a host"),
    OPTION("memory", times.memory_bytes, .value_name = "BYTES", .default_text = "0", .max = 1e15,
           .help = "of a rank: no times where its part is more; 0: enough, or the device's"),
    BSW_OPTION_GROUP(struct plan_options, common, bsw_common_option_group),
};

static int misses_wanted(const struct plan_options *o)
{
    return strcmp(o->select, "queue") == 0;
}

// Times, or what is missing for them, or at least the memory of several numbers of ranks.
static int times_wanted(const struct plan_job *job)
{
    const struct plan_options *o = job->options;
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        if (bsw_rate_get(&o->times.given, i) > 0) return 1;
    }
    return job->num_ranks > 1 || o->times.rates_path || strcmp(o->times.device, "cpu") != 0;
}

static enum bsw_status settle(struct plan_job *job, struct bsw_error *err)
{
    struct plan_options *o = job->options;
    o->times.level = o->common.level;
    BSW_TRY(bsw_plan_ranks_parse(o->ranks, job->ranks, &job->num_ranks, err));
    o->index.has_radii = strcmp(o->entries, "radius") == 0;
    if (o->index.lists > 0 && misses_wanted(o))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--select queue: an index with lists knows threshold alone");
    if (job->num_ranks > 1 && misses_wanted(o))
        return bsw_fail(err, BSW_ERROR_USAGE, "--select queue takes one number of --ranks");
    return BSW_OK;
}

static void tell_lists(struct bsw_facts *facts, const struct plan_job *job)
{
    const struct plan_options *o = job->options;
    struct bsw_plan_lists lists;
    uint64_t threads = o->times.threads > 0     ? o->times.threads
                       : job->times.threads > 0 ? job->times.threads
                                                : 1;
    bsw_plan_lists_make(&o->index, &job->index, job->ranks[0], threads, o->list_rate, &lists);
    bsw_plan_lists_facts(facts, &lists);
}

static int has_times(const struct bsw_plan_times *times)
{
    for (size_t i = 0; i < times->num_lines; i++) {
        if (times->lines[i].gap == BSW_PLAN_COMPLETE) return 1;
    }
    return 0;
}

static void report(const struct plan_job *job)
{
    const struct plan_options *o = job->options;
    struct bsw_facts facts;
    bsw_facts_begin(&facts, bsw_common_facts_form(&o->common), NULL);
    bsw_fact_text(&facts, "select", o->select, NULL);
    bsw_plan_index_facts(&facts, &o->index, &job->index, job->num_ranks == 1 ? job->ranks[0] : 0);
    if (job->num_ranks == 1) bsw_plan_bytes_facts(&facts, &job->index);
    if (job->num_ranks == 1 && o->index.lists > 0) tell_lists(&facts, job);
    if (strcmp(o->times.device, "cpu") != 0) bsw_plan_device_tables_facts(&facts, &job->index);
    if (misses_wanted(o))
        bsw_plan_misses_facts(&facts, &o->index.search.queue, o->target, &job->misses);
    if (times_wanted(job)) bsw_plan_times_facts(&facts, &job->times);
    if (times_wanted(job) && o->index.lists > 0 && has_times(&job->times))
        bsw_facts_say(&facts, "these are times of searches that look at all lists\n");
    bsw_facts_end(&facts, BSW_OK);
}

static enum bsw_status plan(struct plan_job *job, struct bsw_error *err)
{
    const struct plan_options *o = job->options;
    BSW_TRY(settle(job, err));
    BSW_TRY(bsw_plan_index_make(&o->index, job->ranks[0], &job->index, err));
    if (misses_wanted(o))
        BSW_TRY(bsw_plan_misses_find(&job->index, &o->index.search.queue, o->target, &job->misses,
                                     err));
    if (!times_wanted(job)) return BSW_OK;
    return bsw_plan_times_make(&o->index, &o->times, job->ranks, job->num_ranks, &job->times, err);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct plan_job job = {.options = options};
    (void)transport;
    enum bsw_status status = plan(&job, err);
    if (status == BSW_OK) report(&job);
    bsw_plan_misses_deinit(&job.misses);
    bsw_plan_index_deinit(&job.index);
    return status;
}

const struct bsw_command bsw_command_plan =
    BSW_COMMAND_OFTEN("plan", "memory, bytes, misses and seconds before an index is made",
                      struct plan_options, BSW_RANK_0,
                      "codec|bits|subspaces|lists|vectors|ranks|shards|"
                      "k|batch|oversample|rates|device|rank-threads|memory|json");
