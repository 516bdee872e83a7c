// SPDX-License-Identifier: Apache-2.0
// groundtruth: exact nearest neighbours of queries, to a file (coordinator/truth/truth.h).
#include "coordinator/job/command.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/text_model.h"
#include "coordinator/truth/truth.h"

struct groundtruth_options {
    struct bsw_common_options common;
    struct bsw_truth_settings settings;
    const char *model;
};

#define OPTION(name, member, ...) BSW_OPTION(struct groundtruth_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("base", settings.base, .value_name = "FILE", .is_required = 1,
           .help = "vectors, or synth:count=N,dims=D,..."),
    OPTION("queries", settings.queries, .value_name = "FILE", .is_required = 1,
           .help = "query vectors"),
    OPTION("out", settings.out, .value_name = "FILE", .is_required = 1,
           .help = "ground truth (big-ann's layout, or .npz for NumPy)"),
    OPTION("model", model, .value_name = "FILE", .help = BSW_TEXT_MODEL_HELP),
    OPTION("metric", settings.metric, .choices = BSW_METRIC_NAMES, .help = BSW_METRIC_HELP),
    OPTION("k", settings.k, .value_name = "K", .default_text = "10", .min = 1,
           .max = BSW_TRUTH_MAX_K,
           .help = "neighbours a query, at most the rows there are without those left out"),
    OPTION("rows", settings.rows, .value_name = "A:B",
           .help = "only these rows; ids stay those of the file"),
    OPTION("query-rows", settings.query_rows, .value_name = "A:B", .help = "only these queries"),
    OPTION("allow", settings.allow, .value_name = "FILE",
           .help = "find these rows alone: as --allow of search"),
    OPTION("tags", settings.tags, .value_name = "FILE.spmat",
           .help = "tags of the rows, big-ann's sparse matrix, with --query-tags"),
    OPTION("query-tags", settings.query_tags, .value_name = "FILE.spmat",
           .help = "find rows that have all tags of their query"),
    OPTION("exclude-self", settings.exclude_self,
           .help = "leave row i out of the answer of query i"),
    OPTION("split", settings.split,
           .help = "also OUT.neighbors.ibin (int32) and OUT.distances.fbin (float32) for "
                   "cuvs-bench, each behind uint32 queries, uint32 k"),
    OPTION("block-rows", settings.block_rows, .value_name = "N", .default_text = "0",
           .max = BSW_TRUTH_MAX_BLOCK_ROWS,
           .help = "rows read at once, of which two blocks are in memory; 0: about 1 MB"),
    BSW_OPTION_GROUP(struct groundtruth_options, settings.device, bsw_device_option_group),
    OPTION("drop-bad-rows", settings.drop_bad_rows,
           .help = "count and skip rows with NaN, Inf, squared norms above 1e37, (cosine) zeros"),
    OPTION("force", settings.force,
           .help = "replace an existing file, begin an unfinished one anew"),
    OPTION("resume", settings.resume,
           .help = "go on with an unfinished file, on as many ranks, on CPUs; without one begin"),
    BSW_OPTION_GROUP(struct groundtruth_options, common, bsw_common_option_group),
};

static void report(const struct bsw_transport *transport, const struct groundtruth_options *o,
                   const struct bsw_truth_stats *s)
{
    struct bsw_facts f;
    char memory[32];
    bsw_format_bytes((double)s->memory_bytes, memory, sizeof memory);
    bsw_facts_begin(&f, bsw_common_facts_form(&o->common), NULL);
    bsw_fact_integer(&f, "queries", s->num_queries, "%d queries");
    bsw_fact_integer(&f, "rows", s->num_rows, " x %d rows");
    bsw_fact_integer(&f, "dims", s->dims, " x %d dims, ");
    bsw_fact_text(&f, "metric", bsw_metric_name(s->metric), "%s, ");
    bsw_fact_integer(&f, "k", o->settings.k, "k %d, ");
    bsw_fact_text(&f, "arithmetic", s->is_integer ? "int32" : "float64", "exact in %s: ");
    bsw_fact_real(&f, "seconds", s->seconds, "%.3f s, ");
    bsw_fact_real(&f, "queries_per_second", (double)s->num_queries / s->seconds, "%.4g queries/s");
    bsw_facts_say(&f, ", %.4g rows/s", (double)s->num_rows / s->seconds);
    if (s->memory_bytes > 0)
        bsw_facts_say(&f, "; %s of memory for queries, lists and blocks", memory);
    bsw_facts_say(&f, "\n");
    bsw_fact_integer(&f, "resumed_rows", s->num_resumed_rows, NULL);
    bsw_fact_integer(&f, "dropped_rows", s->num_dropped_rows,
                     s->num_dropped_rows > 0 ? "dropped rows: %d\n" : NULL);
    bsw_fact_integer(&f, "screened_pairs", s->num_screened,
                     s->num_screened > 0 ? "%d pairs screened, " : NULL);
    bsw_fact_integer(&f, "surviving_pairs", s->num_survivors,
                     s->num_screened > 0 ? "%d survived, " : NULL);
    bsw_fact_integer(&f, "screen_overflows", s->num_screen_overflows,
                     s->num_screened > 0 ? "%d scans had too many\n" : NULL);
    bsw_fact_text(&f, "device", s->device, NULL);
    bsw_fact_integer(&f, "ranks", (uint64_t)transport->num_ranks, NULL);
    bsw_fact_integer(&f, "threads", o->common.threads, NULL);
    bsw_fact_text(&f, "level", bsw_cpu_level_name(o->common.level), NULL);
    bsw_fact_integer(&f, "block_rows", s->block_rows, NULL);
    bsw_fact_integer(&f, "memory_bytes", s->memory_bytes, NULL);
    bsw_facts_say(&f, "ground truth: %s\n", o->settings.out);
    bsw_facts_end(&f, BSW_OK);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct groundtruth_options *o = options;
    struct bsw_truth_settings *settings = &o->settings;
    struct bsw_truth_stats stats;
    struct bsw_progress progress = {.is_shown = transport->rank == 0 && !o->common.quiet};
    settings->num_threads = (int)o->common.threads;
    settings->level = o->common.level;
    settings->progress = &progress;
    settings->events = &bsw_command_events;
    const char *const names[] = {settings->base, settings->queries};
    struct bsw_text_model text = {0};
    enum bsw_status status = bsw_text_model_lend(&text, o->model, o->common.level, names, 2, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = bsw_truth_run(settings, transport, &stats, err);
    bsw_text_model_take_back(&text);
    if (status == BSW_OK && transport->rank == 0) report(transport, o, &stats);
    return status;
}

const struct bsw_command bsw_command_groundtruth = BSW_COMMAND_OFTEN(
    "groundtruth", "exact nearest neighbours of queries", struct groundtruth_options, BSW_ALL_RANKS,
    "metric|k|rows|query-rows|exclude-self|"
    "device|force|resume|threads|json|quiet");
