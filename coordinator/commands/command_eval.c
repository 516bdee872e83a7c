// SPDX-License-Identifier: Apache-2.0
// eval: recall of a result file against a ground truth (evaluation.h).
#include <stdio.h>
#include <string.h>

#include "coordinator/job/command.h"
#include "coordinator/job/text_model.h"
#include "coordinator/truth/evaluation.h"
#include "coordinator/truth/range_evaluation.h"

struct eval_options {
    struct bsw_common_options common;
    struct bsw_evaluation_settings measure;
    const char *model;
};

#define OPTION(name, member, ...) BSW_OPTION(struct eval_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("results", measure.results, .value_name = "FILE", .is_required = 1,
           .help = "result file of search (or .ivecs)"),
    OPTION("groundtruth", measure.groundtruth, .value_name = "FILE", .is_required = 1,
           .help = "ground truth (or .ivecs)"),
    OPTION("k", measure.k, .value_name = "K", .min = 1, .max = 1e6,
           .help =
               "true neighbours compared with all columns of the result [all columns both have]"),
    OPTION("base", measure.base, .value_name = "FILE",
           .help = "rows, to compute exact values and tell ties by them; needs --queries"),
    OPTION("queries", measure.queries, .value_name = "FILE", .help = "query vectors, with --base"),
    OPTION("model", model, .value_name = "FILE", .help = "with --base: " BSW_TEXT_MODEL_HELP),
    OPTION("query-rows", measure.query_rows, .value_name = "A:B",
           .help = "the queries that were searched, with --base"),
    OPTION("metric", measure.metric, .choices = BSW_METRIC_NAMES,
           .help = "with --base, when no FILE.json tells"),
    OPTION("ties", measure.ties,
           .help = "also print the recall with ties: an id whose value in the file equals the last "
                   "true neighbour's counts, too; --base implies it, by exact values"),
    OPTION("partial", measure.is_partial,
           .help = "compare a result of search --allow-partial that lacks rows"),
    OPTION("force", measure.force,
           .help = "compare files even if they say that rows, queries or metrics differ"),
    BSW_OPTION_GROUP(struct eval_options, common, bsw_common_option_group),
};

static void name_figure(const struct bsw_recall_figure *figure, char out[64])
{
    snprintf(out, 64, "%zu-recall@%zu", figure->num_true, figure->num_columns);
}

static void tell_figures(struct bsw_facts *facts, const struct bsw_recall *recall)
{
    char name[64];
    bsw_facts_open_object(facts, "recalls");
    for (size_t i = 0; i < recall->num_figures; i++) {
        const struct bsw_recall_figure *figure = &recall->figures[i];
        name_figure(figure, name);
        bsw_facts_say(facts, "%-20s ", name);
        bsw_fact_real(facts, name, bsw_recall_by_ids(recall, figure), "%.4f\n");
        if (figure->tied > 0)
            bsw_facts_say(facts, "%-20s %.4f\n", strcat(name, " with ties"),
                          bsw_recall_with_ties(recall, figure));
    }
    bsw_facts_close(facts);
}

// For programs: people have read of ties beside the recall by ids.
static void tell_ties(struct bsw_facts *facts, const struct bsw_recall *recall)
{
    char name[64];
    bsw_facts_open_object(facts, "recalls_with_ties");
    for (size_t i = 0; i < recall->num_figures; i++) {
        const struct bsw_recall_figure *figure = &recall->figures[i];
        name_figure(figure, name);
        bsw_fact_real(facts, name, bsw_recall_with_ties(recall, figure), NULL);
    }
    bsw_facts_close(facts);
}

// What a ground truth does not have.
static void tell_doubts(struct bsw_facts *facts, const struct bsw_evaluation *e)
{
    const struct bsw_recall *recall = &e->recall;
    bsw_fact_integer(facts, "truth_empty_places", recall->num_empty,
                     recall->num_empty ? "%d places of the truth have no neighbour (id -1): they "
                                         "count as missed\n"
                                       : NULL);
    bsw_fact_integer(facts, "truth_repeated_ids", recall->num_repeated,
                     recall->num_repeated ? "the truth repeats %d ids within a query: these places "
                                            "count as missed\n"
                                          : NULL);
    if (e->ties != BSW_TIES_EXACT) return;
    int has_nearer = recall->num_nearer > 0;
    bsw_fact_integer(facts, "nearer_rows", recall->num_nearer,
                     has_nearer ? "%d returned rows are nearer than the last true neighbour and "
                                  "not in the truth"
                                : NULL);
    bsw_fact_integer(facts, "nearer_queries", recall->num_nearer_queries,
                     has_nearer ? " (of %d queries): it is of other rows, another metric or other "
                                  "ids, or not exact\n"
                                : NULL);
}

static void report(const struct eval_options *o, const struct bsw_evaluation *e)
{
    static const char *const names[] = {
        [BSW_TIES_NONE] = "none", [BSW_TIES_WRITTEN] = "written", [BSW_TIES_EXACT] = "exact"};
    static const char *const values[] = {
        [BSW_TIES_WRITTEN] = "value in the file", [BSW_TIES_EXACT] = "exact value"};
    const struct bsw_sidecar *searched = &e->result_facts;
    struct bsw_facts facts;
    bsw_facts_begin(&facts, o->common.json ? BSW_FACTS_JSON : BSW_FACTS_TEXT, NULL);
    tell_figures(&facts, &e->recall);
    if (e->ties != BSW_TIES_NONE) tell_ties(&facts, &e->recall);
    bsw_fact_integer(&facts, "queries", e->results.num_queries, "%d queries; recall is by ids");
    bsw_fact_text(&facts, "ties", names[e->ties], NULL);
    bsw_fact_integer(&facts, "ties_counted", bsw_recall_widest(&e->recall)->tied,
                     e->ties == BSW_TIES_NONE ? NULL : "; with ties %d more count, of the same ");
    if (e->ties == BSW_TIES_NONE)
        bsw_facts_say(&facts, " (--ties and --base add ties)\n");
    else
        bsw_facts_say(&facts, "%s as the last true neighbour\n", values[e->ties]);
    tell_doubts(&facts, e);
    bsw_fact_real(&facts, "coverage", searched->coverage,
                  searched->coverage < 1 ? "partial: a query has seen %.4f of the rows\n" : NULL);
    bsw_fact_text(&facts, "select", searched->select, NULL);
    // A miss may be the queues' fault and not the codes'.
    if (searched->select && strcmp(searched->select, "queue") == 0)
        bsw_facts_say(&facts,
                      "selected by queues of %llu over %llu rows each, which may miss some of the "
                      "best\n",
                      (unsigned long long)searched->queue.length,
                      (unsigned long long)searched->queue.items);
    bsw_facts_end(&facts, BSW_OK);
}

static enum bsw_status run_range(const struct eval_options *o, struct bsw_error *err)
{
    struct bsw_range_evaluation e;
    struct bsw_facts facts;
    BSW_TRY(bsw_range_evaluation_run(&o->measure, &e, err));
    bsw_facts_begin(&facts, o->common.json ? BSW_FACTS_JSON : BSW_FACTS_TEXT, NULL);
    bsw_fact_real(&facts, "average_precision", e.average_precision, "average precision    %.4f\n");
    bsw_fact_real(&facts, "recall", bsw_range_share(e.num_common, e.num_true),
                  "recall               %.4f\n");
    bsw_fact_real(&facts, "precision", bsw_range_share(e.num_common, e.num_found),
                  "precision            %.4f\n");
    bsw_fact_integer(&facts, "queries", e.num_queries, "%d queries");
    bsw_fact_integer(&facts, "queries_with_rows", e.num_judged, ", %d of them with true rows");
    bsw_fact_integer(&facts, "true_rows", e.num_true, ": %d in all");
    bsw_fact_integer(&facts, "found_rows", e.num_found, ", %d found\n");
    bsw_facts_end(&facts, BSW_OK);
    return BSW_OK;
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct eval_options *o = options;
    int is_range;
    struct bsw_evaluation evaluation = {0};
    (void)transport;
    o->measure.level = o->common.level;
    BSW_TRY(bsw_range_evaluation_fits(&o->measure, &is_range, err));
    if (is_range) return run_range(o, err);
    const char *const names[] = {o->measure.base, o->measure.queries};
    struct bsw_text_model text = {0};
    BSW_TRY(bsw_text_model_lend(&text, o->model, o->common.level, names, 2, err));
    enum bsw_status status = bsw_evaluation_run(&o->measure, &evaluation, err);
    bsw_text_model_take_back(&text);
    if (status == BSW_OK) report(o, &evaluation);
    bsw_evaluation_deinit(&evaluation);
    return status;
}

const struct bsw_command bsw_command_eval = BSW_COMMAND(
    "eval", "recall of a result file against a ground truth", struct eval_options, BSW_RANK_0);
