// SPDX-License-Identifier: Apache-2.0
// sweep: a grid of codes and searches over one corpus, measured on all ranks.
#include <stdio.h>
#include <string.h>

#include "common/files/index_manifest.h"
#include "coordinator/job/command.h"
#include "coordinator/job/command_files.h"
#include "coordinator/search/search_options.h"
#include "coordinator/sweep/sweep_job.h"
#include "coordinator/sweep/sweep_report.h"
#include "shard/codecs/codec.h"

struct sweep_options {
    struct bsw_common_options common;
    struct bsw_sweep_settings sweep;
    const char *launcher;
};

#define OPTION(name, member, ...) BSW_OPTION(struct sweep_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("base", sweep.base, .value_name = "FILE", .is_required = 1,
           .help = "vectors, or synth:count=N,dims=D,..."),
    OPTION("queries", sweep.queries, .value_name = "FILE", .is_required = 1,
           .help = "query vectors"),
    OPTION("groundtruth", sweep.groundtruth, .value_name = "FILE",
           .help = "ground truth [computed]"),
    OPTION("rows", sweep.rows, .value_name = "A:B",
           .help = "only these rows of the base; ids stay those of the file"),
    OPTION("query-rows", sweep.query_rows, .value_name = "A:B", .help = "only these queries"),
    OPTION("metric", sweep.metric, .choices = BSW_METRIC_NAMES, .help = BSW_METRIC_HELP),
    OPTION("codec", sweep.axes[BSW_SWEEP_CODEC], .value_name = "saq:1:4,pq:4,8,...",
           .help = "codes, as encode has them: " BSW_CODEC_NAMES
                   "; numbers behind a name: bits of this codec alone, A:B all from A to B, as in "
                   "all lists of numbers [saq, and pq:8 where --bits is not given]"),
    OPTION("bits", sweep.axes[BSW_SWEEP_BITS], .value_name = "B,...",
           .help = "bits a dimension, 1 to 8; 1.5 and the like for saq; not for raw and sq8; pq: 4 "
                   "or 8 [1:4]"),
    OPTION("subspaces", sweep.axes[BSW_SWEEP_PARTS], .value_name = "M,...", .default_text = "0",
           .help = "pq: parts of a row, as for encode; 0: 2 bits a dimension"),
    OPTION("table", sweep.axes[BSW_SWEEP_TABLE], .value_name = "float32,e5m3,...",
           .default_text = "auto", .help = "pq: numbers of tables, as for search"),
    OPTION("entries", sweep.axes[BSW_SWEEP_ENTRIES], .value_name = "all,radius",
           .default_text = "all",
           .help = "pq: of tables, as for search; radius: all indexes of pq are made for it"),
    OPTION("radius-scale", sweep.axes[BSW_SWEEP_RADIUS_SCALE], .value_name = "X,...",
           .default_text = "1", .help = "radius: times this"),
    OPTION("mode", sweep.axes[BSW_SWEEP_MODE], .value_name = "H,M,L", .default_text = "H",
           .help = "radius: sums of distances, or counts of hits"),
    OPTION("lists", sweep.axes[BSW_SWEEP_LISTS], .value_name = "N|auto,...", .default_text = "0",
           .help = "inverted lists of an index; 0: none, auto: by the number of rows"),
    OPTION("residual", sweep.residuals, .choices = "auto|yes|no", .default_text = "auto",
           .help = "indexes with lists: as for encode"),
    OPTION("query-bits", sweep.axes[BSW_SWEEP_QUERY_BITS], .value_name = "BQ,...",
           .default_text = "6",
           .help = "bits a query component; not for rbe, whose model has them, and raw"),
    OPTION("k", sweep.axes[BSW_SWEEP_K], .value_name = "K,...", .default_text = BSW_SEARCH_K_TEXT,
           .help = "neighbours a query"),
    OPTION("oversample", sweep.axes[BSW_SWEEP_OVERSAMPLE], .value_name = "X,...",
           .default_text = "1,2,5,10", .help = "candidates to refine, times k; not for raw"),
    OPTION("select", sweep.axes[BSW_SWEEP_SELECT], .value_name = "threshold,histogram,queue",
           .default_text = "threshold",
           .help = "how candidates are chosen; histogram: of xfbq alone"),
    OPTION("extra-distance", sweep.axes[BSW_SWEEP_EXTRA_DISTANCE], .value_name = "E,...",
           .default_text = "0", .help = "histogram: of the candidates, those within D_K + E"),
    OPTION("probe", sweep.axes[BSW_SWEEP_PROBE], .value_name = "P|all,...", .default_text = "all",
           .help = "indexes with lists: those that a query looks at, at most; 0 also means all"),
    OPTION("probe-ratio", sweep.axes[BSW_SWEEP_PROBE_RATIO], .value_name = "R,...",
           .default_text = "0",
           .help = "indexes with lists: as for search, not for ip; 0: no such limit"),
    OPTION("recall", sweep.axes[BSW_SWEEP_RECALL], .value_name = "X,...", .default_text = "0",
           .help =
               "indexes with lists: settings from their tables of recalls, which are made then, as "
               "search --recall has them; 0: not so"),
    OPTION("plan", sweep.plan, .value_name = "FILE",
           .help = "more than one grid: a line each, such as codec=saq bits=2,3 oversample=5; what "
                   "a line leaves out is as the options above say"),
    OPTION("target", sweep.targets, .value_name = "RECALL,...", .default_text = "0.9,0.95,0.99",
           .help = "the report begins with the points of fewest bytes and of most queries a second "
                   "that reach these"),
    OPTION("model", sweep.model, .value_name = "FILE",
           .help =
               "rbe: the model, of bitsweep train [learned from --base, one for each of the bits]"),
    BSW_OPTION_SOME(struct sweep_options, sweep.searches, bsw_search_option_group,
                    "entries-by|hit-time|items|queue-length|batch|exclude-self"),
    OPTION("shards", sweep.shards, .value_name = "P", .default_text = "1", .min = 1,
           .max = BSW_MAX_SHARDS, .help = "shard files of an index"),
    OPTION("repeat", sweep.repeat, .value_name = "N", .default_text = "3", .min = 1, .max = 1000,
           .help =
               "timed passes of a search; the median counts; above 1 one untimed pass goes before"),
    OPTION(
        "measure", sweep.least_seconds, .value_name = "SECONDS", .default_text = "0.5", .max = 3600,
        .help = "timed passes of a search go on until they took so long together; 0: as --repeat "
                "has it"),
    OPTION("device", sweep.device, .value_name = "auto|cpu|cuda|cuda:N", .default_text = "auto",
           .help = "where to encode, if codes are made there, and to search"),
    OPTION("ties", sweep.counts_ties,
           .help = "recalls count ties, too: rows whose exact value equals that of the last true "
                   "neighbour"),
    OPTION("launcher", launcher, .value_name = "WORDS",
           .help = "no longer: a sweep runs on its own ranks, bitsweep-ranks or deploy/run.sh -n 4 "
                   "sweep ..."),
    OPTION("folder", sweep.folder, .value_name = "FOLDER", .is_required = 1,
           .help = "indexes, sweep.csv, sweep.json, plots, report.html"),
    OPTION("force", sweep.force, .help = "measure anew what the folder has"),
    OPTION("resume", sweep.resume,
           .help = "go on with the folder, also with more points; without one begin"),
    BSW_OPTION_GROUP(struct sweep_options, common, bsw_common_option_group),
};

static void print_point(void *context, const char *name, const json_t *row)
{
    static const char *const numbers[] = {"recall", "loss_code", "loss_selection",
                                          "loss_refinement"};
    (void)context;
    if (!name) {
        printf("%-40s %5s %9s %9s %9s %9s %10s  %8s %10s\n", "point", "bits", "recall", "code",
               "selection", "refining", "queries/s", "B/vector", "CPU us/q");
        return;
    }
    printf("%-40s %5.4g", name, json_number_value(json_object_get(row, "true_bits")));
    for (int i = 0; i < 4; i++)
        printf(" %9.4f", json_number_value(json_object_get(row, numbers[i])));
    printf(" %10.0f%s %8.4g %10.4g\n", json_number_value(json_object_get(row, "qps")),
           bsw_sweep_is_disturbed(row) ? "*" : " ",
           json_number_value(json_object_get(row, "bytes_per_vector")),
           json_number_value(json_object_get(row, "cpu_seconds_a_query")) * 1e6);
    fflush(stdout);
}

static void print_choice(const json_t *answer, const char *what)
{
    static const char *const lines[] = {"encode", "search"};
    printf("%s: %s: recall %.4f, %.4g B/vector, %.0f queries/s\n", what,
           json_string_value(json_object_get(answer, "point")),
           json_number_value(json_object_get(answer, "recall")),
           json_number_value(json_object_get(answer, "bytes_per_vector")),
           json_number_value(json_object_get(answer, "qps")));
    for (int i = 0; i < 2; i++)
        printf("    %s\n", json_string_value(json_object_get(answer, lines[i])));
}

static void print_answers(const json_t *answers)
{
    const json_t *answer;
    size_t i;
    json_array_foreach(answers, i, answer)
    {
        const json_t *fewest = json_object_get(answer, "fewest_bytes");
        const json_t *fastest = json_object_get(answer, "fastest");
        char what[80];
        int length = snprintf(what, sizeof what, "recall %g, k %lld",
                              json_number_value(json_object_get(answer, "target")),
                              (long long)json_integer_value(json_object_get(answer, "k")));
        if (!fewest) {
            printf("%s: no point, the best has %.4f\n", what,
                   json_number_value(json_object_get(answer, "best_recall")));
            continue;
        }
        int is_one = json_equal(fewest, fastest);
        snprintf(what + length, sizeof what - (size_t)length, ", fewest bytes%s",
                 is_one ? " and fastest" : "");
        print_choice(fewest, what);
        snprintf(what + length, sizeof what - (size_t)length, ", fastest");
        if (!is_one) print_choice(fastest, what);
    }
}

// Where points were searched, and how many of them had too few cores.
static void print_machine(const json_t *report)
{
    const json_t *rows = json_object_get(report, "rows"), *row;
    const char *shown = "";
    size_t i, num_disturbed = 0;
    json_array_foreach(rows, i, row)
    {
        const char *level = json_string_value(json_object_get(row, "level"));
        const char *device = json_string_value(json_object_get(row, "device"));
        num_disturbed += (size_t)bsw_sweep_is_disturbed(row);
        if (!level || !device || strcmp(shown, level) == 0) continue;
        printf("searched on: %s, CPU kernels %s\n", device, level);
        shown = level;
    }
    if (num_disturbed > 0)
        printf(
            "*: %zu point%s had less than %.0f %% of their cores: other work took them, or too few "
            "queries left threads idle\n",
            num_disturbed, num_disturbed == 1 ? "" : "s", 100 * BSW_SWEEP_LEAST_CORES);
}

static void print_end(const char *folder, const struct bsw_sweep_outcome *outcome)
{
    const struct bsw_sweep_points *points = &outcome->points;
    const char *name;
    json_t *index;
    char note[512];
    json_object_foreach(json_object_get(outcome->report, "indexes"), name, index)
    {
        if (bsw_sweep_index_note(name, index, note, sizeof note)) printf("%s\n", note);
    }
    for (size_t i = 0; i < points->num_skips; i++)
        printf("%llu point%s left out: %s\n", (unsigned long long)points->skips[i].num_points,
               points->skips[i].num_points == 1 ? "" : "s", points->skips[i].reason);
    if (outcome->num_nearer > 0)
        printf("the ground truth is not exact: %llu rows of the first answers are nearer than its "
               "neighbours\n",
               (unsigned long long)outcome->num_nearer);
    if (outcome->num_own * 2 > outcome->num_queries)
        printf(
            "warning: %llu queries are rows of the base: any code finds these, so recall is better "
            "than it will be for others; use other queries, or --exclude-self where query i is "
            "row i\n",
            (unsigned long long)outcome->num_own);
    print_answers(json_object_get(outcome->report, "answers"));
    print_machine(outcome->report);
    printf("%zu point%s", points->num_points, points->num_points == 1 ? "" : "s");
    if (outcome->num_resumed > 0)
        printf(", %llu of them measured by an earlier run",
               (unsigned long long)outcome->num_resumed);
    printf(": %s/report.html, sweep.csv, sweep.json%s\n", folder,
           outcome->has_plots ? ", plots" : "; gnuplot is missing: no plots");
}

// Whoever asks for bits asks for those of saq.
static void set_codes(struct bsw_sweep_settings *sweep)
{
    const char **codec = &sweep->axes[BSW_SWEEP_CODEC], **bits = &sweep->axes[BSW_SWEEP_BITS];
    if (!*codec) *codec = *bits ? "saq" : "saq,pq:8";
    if (!*bits) *bits = "1:4";
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct sweep_options *o = options;
    struct bsw_sweep_outcome outcome = {0};
    struct bsw_progress progress = {.is_shown = !o->common.quiet};
    if (o->launcher)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--launcher: a sweep runs on its own ranks now; start all of it on them: "
                        "bitsweep-ranks or deploy/run.sh -n 4 sweep ...");
    set_codes(&o->sweep);
    o->sweep.level = o->common.level;
    o->sweep.level_text = o->common.level_text;
    o->sweep.num_threads = (int)o->common.threads;
    o->sweep.pinning = &o->common.pinning;
    o->sweep.num_arguments = o->common.num_words;
    o->sweep.arguments = o->common.words;
    o->sweep.events = &bsw_command_events;
    if (transport->rank == 0) o->sweep.progress = &progress;
    if (!o->common.json && !o->common.quiet) o->sweep.note_point = print_point;
    enum bsw_status status = bsw_sweep_job_run(&o->sweep, transport, &outcome, err);
    if (status == BSW_OK && transport->rank == 0) {
        if (o->common.json)
            bsw_print_json(json_incref(outcome.report));
        else if (!o->common.quiet)
            print_end(o->sweep.folder, &outcome);
    }
    bsw_sweep_outcome_deinit(&outcome);
    return status;
}

const struct bsw_command bsw_command_sweep =
    BSW_COMMAND_OFTEN("sweep", "recall and speed over a grid of codes and searches",
                      struct sweep_options, BSW_ALL_RANKS,
                      "groundtruth|metric|codec|bits|subspaces|lists|probe|k|"
                      "oversample|target|plan|device|force|resume|threads|json|quiet");
