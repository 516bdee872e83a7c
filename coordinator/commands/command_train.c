// SPDX-License-Identifier: Apache-2.0
// train: learns an rbe model from pairs of vectors or texts (coordinator/train/train.h).
#include <stdio.h>
#include <string.h>

#include "common/codes/code_layout.h"
#include "coordinator/job/command.h"
#include "coordinator/job/facts.h"
#include "coordinator/train/train.h"

struct train_options {
    struct bsw_common_options common;
    struct bsw_train_settings settings;
    const char *precision;
};

#define OPTION(name, member, ...) BSW_OPTION(struct train_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("queries", settings.pairs.queries, .value_name = "FILE",
           .help = "query vectors; row i belongs to row i of --documents, or of --groundtruth"),
    OPTION("documents", settings.pairs.documents, .value_name = "FILE",
           .help = "document vectors, as many as queries"),
    OPTION("base", settings.pairs.base, .value_name = "FILE",
           .help = "or: a corpus, whose rows pair with their neighbours"),
    OPTION("groundtruth", settings.pairs.groundtruth, .value_name = "FILE",
           .help =
               "neighbours in --base of --queries, or of its own first rows; none: found exactly"),
    OPTION("neighbours", settings.pairs.neighbours, .value_name = "N", .default_text = "0",
           .max = 1000,
           .help = "with --base: a row pairs with one of its first N, another each epoch; 0: 1, "
                   "for similarities 10"),
    OPTION("sample", settings.pairs.sample, .value_name = "ROWS",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_SAMPLE), .min = 2, .max = 1e6,
           .help = "--base alone: rows that neighbours are found among"),
    OPTION("text", settings.text, .value_name = "FILE",
           .help = "or: pairs of texts, lines of a query, a tab and its document; learns a text "
                   "network in front of the codes, too, and encode takes text by such a model"),
    OPTION("trigrams", settings.trigrams, .value_name = "N",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_TRIGRAMS), .min = 1, .max = BSW_TEXT_MAX_GRAMS,
           .help = "--text: the N most frequent letter trigrams are known"),
    OPTION("hashed", settings.is_hashed,
           .help = "--text: trigrams share N weights by a hash, none is unknown"),
    OPTION("text-dims", settings.text_dims, .value_name = "N",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_TEXT_DIMS), .min = 1, .max = BSW_RBE_MAX_DIMS,
           .help = "--text: numbers that the text network makes of a text"),
    OPTION("model", settings.model, .value_name = "FILE", .is_required = 1,
           .help = "model to write"),
    OPTION("metric", settings.metric, .choices = BSW_METRIC_NAMES,
           .help =
               "what is near; cosine: rows are normalised; encode takes cosine models only. With "
               "--base needed unless an HDF5 file says it (its 'distance') [two files: cosine]"),
    OPTION("code-dims", settings.code_dims, .value_name = "N", .default_text = "64", .min = 1,
           .max = BSW_RBE_MAX_DIMS, .help = "components of a code"),
    OPTION("query-planes", settings.query_planes, .value_name = "U+1", .default_text = "3",
           .min = 1, .max = BSW_MAX_QUERY_BITS,
           .help = "bits a component of a query: one vector, and U residuals"),
    OPTION("document-planes", settings.document_planes, .value_name = "V+1", .default_text = "2",
           .min = 1, .max = BSW_RBE_MAX_STEPS + 1, .help = "bits a component of a document"),
    OPTION("shared", settings.is_shared, .help = "the same matrices for all residuals of a side"),
    OPTION("no-residual-weights", settings.has_no_weights,
           .help =
               "residuals weigh 1, not 1/2, 1/4, ...: for comparison, encode refuses the model"),
    OPTION("precision", precision, .choices = "binary|float|query-float", .default_text = "binary",
           .help = "float: a tanh layer, no bits: for comparison, encode refuses the model; "
                   "query-float: so for queries alone, which search codes in 7 bits"),
    OPTION("estimator", settings.training.estimator,
           .choices = "straight-through|variant|annealing", .default_text = "variant",
           .help = "what stands in for the derivative of a sign"),
    OPTION("slope-growth", settings.training.slope_growth, .value_name = "X",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_SLOPE_GROWTH), .min = 1, .max = 10,
           .help = "annealing: the slope grows by this each epoch"),
    OPTION("negatives", settings.training.negatives, .value_name = "N", .default_text = "0",
           .max = BSW_RBE_MAX_NEGATIVES,
           .help = "cross-sampled: documents of other pairs of a group of 128, drawn anew for each "
                   "batch; 0: 10, for similarities 127, or what the held-out pairs have"),
    OPTION("near-negatives", settings.training.has_near_negatives,
           .help = "draw them among pairs whose queries are near, held-out pairs' too, as for "
                   "similarities always; wants batches of 128 pairs a rank, or 256, ..."),
    OPTION("loss", settings.loss, .choices = "auto|pairs|similarities", .default_text = "auto",
           .help = "pairs: a pair's document before the others (the paper's); similarities: all "
                   "documents as near as they are, and codes scaled by projection, for rows of one "
                   "space under cosine; auto: so for --base alone, unless --start is another's"),
    OPTION("gamma", settings.training.gamma, .value_name = "X", .min = 1e-3, .max = 1e4,
           .help = "smoothing factor of the softmax [10; similarities: 30]"),
    OPTION("batch", settings.training.batch_pairs, .value_name = "PAIRS",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_BATCH), .min = 2, .max = 1e7,
           .help = "pairs of an update, all ranks together"),
    OPTION("epochs", settings.training.epochs, .value_name = "N", .default_text = "0",
           .max = BSW_RBE_MAX_EPOCHS,
           .help = "passes over the pairs at most; 0: 30, or from principal axes none, as the "
                   "first weights are good and no epoch improved on them where it was measured"),
    OPTION("rate", settings.training.rate, .value_name = "X", .min = 1e-9, .max = 1e38,
           .help = "learning rate of Adam [0.002; of a start that is good already 0.00001]"),
    OPTION("decay", settings.training.decay, .value_name = "X",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_DECAY), .min = 1e-3, .max = 1,
           .help = "the rate falls to this share each epoch"),
    OPTION("patience", settings.training.patience, .value_name = "EPOCHS",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_PATIENCE), .max = 1e6,
           .help = "stop after so many epochs without a better validation loss; 0: never"),
    OPTION("validation", settings.training.validation, .value_name = "SHARE",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_VALIDATION), .max = 0.9,
           .help = "pairs held out to judge epochs by; the best epoch is kept"),
    OPTION("seed", settings.training.seed, .value_name = "S",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_SEED), .max = 9e15,
           .help = "seed of every choice"),
    OPTION("center", settings.pairs.is_centered,
           .help = "take the mean off rows first, as for similarities always"),
    OPTION("start", settings.training.start, .choices = "random|quantizer|principal|auto|same",
           .default_text = "auto",
           .help =
               "first weights, random: the paper's; same: random, but those of both sides are "
               "the same; for rows of one space: quantizer of random axes, or of principal ones "
               "(similarities alone). auto: principal, with --loss pairs and --base quantizer, "
               "with two files random, with --text same"),
    OPTION("checkpoint", settings.training.checkpoint, .value_name = "FILE",
           .help = "written after each epoch, and in between"),
    OPTION("checkpoint-batches", settings.training.checkpoint_batches, .value_name = "N",
           .default_text = BSW_TEXT_OF(BSW_TRAIN_CHECKPOINT_BATCHES), .max = 1e12,
           .help = "batches from one checkpoint to the next; 0: epochs alone"),
    OPTION("resume", settings.training.is_resumed,
           .help =
               "go on from --checkpoint, and replace the model that it led to; without one begin"),
    OPTION(
        "max-batches", settings.training.most_batches, .value_name = "N", .default_text = "0",
        .max = 1e15,
        .help =
            "stop after so many, with a model of what was learned; --resume goes on. 0: no limit"),
    OPTION("plot", settings.plot, .value_name = "FILE.svg",
           .help = "loss curve, a table FILE.tsv beside"),
    OPTION("force", settings.force, .help = "replace an existing model, begin a checkpoint anew"),
    BSW_OPTION_GROUP(struct train_options, common, bsw_common_option_group),
};

static void tell_curve(struct bsw_facts *f, const struct bsw_rbe_state *state)
{
    bsw_facts_say(f, "epoch  train loss  validation loss  ROC AUC     rate\n");
    bsw_facts_open_list(f, "curve");
    for (uint64_t i = 0; i < state->epoch; i++) {
        const struct bsw_rbe_epoch *epoch = &state->epochs[i];
        bsw_facts_open_object(f, NULL);
        bsw_fact_integer(f, "epoch", i + 1, "%5d  ");
        bsw_fact_real(f, "train_loss", epoch->train_loss, "%10.5f  ");
        bsw_fact_real(f, "validation_loss", epoch->validation_loss, "%15.5f  ");
        bsw_fact_real(f, "roc_auc", epoch->roc_auc, "%7.5f  ");
        bsw_fact_real(f, "rate", epoch->rate, "%7.2g");
        bsw_facts_say(f, "%s\n", i + 1 == state->best_epoch ? "  best" : "");
        bsw_facts_close(f);
    }
    bsw_facts_close(f);
}

static void tell_recall(struct bsw_facts *f, const struct bsw_rbe_recall *recall)
{
    int has_any = recall->num_documents > 0;
    bsw_facts_open_object(f, "held_out_recall");
    bsw_fact_integer(f, "documents", recall->num_documents,
                     has_any ? "of held-out queries the share that finds its document among %d "
                               "held-out ones:"
                             : NULL);
    for (size_t i = 0; i < BSW_RBE_NUM_RECALLS; i++) {
        char name[32], said[40];
        snprintf(name, sizeof name, "1-recall@%u", bsw_rbe_recall_ranks[i]);
        snprintf(said, sizeof said, " %s %%.4f", name);
        bsw_fact_real(f, name, recall->shares[i], has_any ? said : NULL);
    }
    if (has_any) bsw_facts_say(f, "\n");
    bsw_facts_close(f);
}

static void tell_model(struct bsw_facts *f, const struct bsw_train_stats *s)
{
    const struct bsw_rbe_state *state = &s->result.state;
    bsw_fact_text(f, "metric", bsw_metric_name(s->metric), NULL);
    bsw_fact_text(f, "estimator", bsw_rbe_estimator_name(s->origin.estimator), NULL);
    bsw_fact_integer(f, "dims", s->shapes[0].dims, NULL);
    if (s->num_grams > 0) bsw_fact_integer(f, "trigrams", s->num_grams, NULL);
    bsw_fact_integer(f, "code_dims", s->shapes[0].code_dims, NULL);
    bsw_fact_integer(f, "query_planes", s->shapes[0].steps + 1, NULL);
    bsw_fact_integer(f, "document_planes", s->shapes[1].steps + 1, NULL);
    bsw_fact_integer(f, "epochs", state->epoch, NULL);
    bsw_fact_integer(f, "best_epoch", state->best_epoch, NULL);
    bsw_fact_real(f, "train_loss", s->origin.train_loss, NULL);
    bsw_fact_real(f, "validation_loss", s->origin.validation_loss, NULL);
    bsw_fact_real(f, "roc_auc",
                  state->best_epoch > 0 ? state->epochs[state->best_epoch - 1].roc_auc
                                        : s->result.first_roc_auc,
                  NULL);
}

static void report(const struct bsw_transport *transport, const struct train_options *o,
                   const struct bsw_train_stats *s)
{
    const struct bsw_rbe_state *state = &s->result.state;
    const struct bsw_train_settings *asked = &o->settings;
    struct bsw_facts f;
    bsw_facts_begin(&f, bsw_common_facts_form(&o->common), NULL);
    tell_model(&f, s);
    tell_curve(&f, state);
    tell_recall(&f, &s->result.recall);
    bsw_fact_integer(&f, "pairs", s->result.num_trained, "%d pairs, ");
    bsw_fact_integer(&f, "held_out_pairs", s->result.num_held_out, "%d held out, ");
    bsw_fact_integer(&f, "batches", state->num_updates, "%d batches, ");
    bsw_fact_integer(&f, "parameters", state->num_parameters, "%d weights: ");
    bsw_fact_real(&f, "pair_seconds", s->pair_seconds, "pairs %.2f s, ");
    bsw_fact_real(&f, "train_seconds", s->train_seconds, "training %.2f s");
    bsw_fact_flag(&f, "stopped_early", s->result.is_stopped_early, ", stopped early");
    bsw_fact_text(&f, "model", asked->model, "\nmodel: %s\n");
    bsw_fact_integer(&f, "ranks", (uint64_t)transport->num_ranks, NULL);
    bsw_fact_integer(&f, "threads", o->common.threads, NULL);
    if (state->epoch > 0 && state->best_epoch == 0)
        bsw_facts_say(&f, "no epoch was better than the first weights: these are the model\n");
    if (state->epoch < s->epochs && !s->result.is_stopped_early)
        bsw_facts_say(&f, "stopped by --max-batches%s%s\n",
                      asked->training.checkpoint ? "; --resume goes on from " : "",
                      asked->training.checkpoint ? asked->training.checkpoint : "");
    if (asked->plot && !s->is_drawn)
        bsw_facts_say(&f, "gnuplot is missing: the loss curve is in the table beside %s\n",
                      asked->plot);
    bsw_facts_end(&f, BSW_OK);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct train_options *o = options;
    struct bsw_train_stats stats;
    if (strcmp(o->precision, "float") == 0) o->settings.training.estimator = BSW_RBE_SMOOTH;
    o->settings.training.has_float_queries = strcmp(o->precision, "query-float") == 0;
    o->settings.pairs.level = o->common.level;
    o->settings.training.is_shown = !o->common.quiet;
    enum bsw_status status = bsw_train_run(&o->settings, transport, &stats, err);
    if (status == BSW_OK && transport->rank == 0) report(transport, o, &stats);
    bsw_train_stats_deinit(&stats);
    return status;
}

const struct bsw_command bsw_command_train = BSW_COMMAND_OFTEN(
    "train", "learn an rbe model from pairs of vectors or texts", struct train_options,
    BSW_ALL_RANKS,
    "text|queries|documents|base|groundtruth|sample|metric|code-dims|document-planes|"
    "query-planes|epochs|checkpoint|resume|force|threads|json|quiet");
