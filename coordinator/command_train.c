// train: a model of rbe from pairs (rbe_pair_source.h), trained by all ranks (rbe_training.h),
// written by rank 0.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/code_layout.h"
#include "common/file.h"
#include "coordinator/command.h"
#include "coordinator/command_files.h"
#include "coordinator/loss_plot.h"
#include "coordinator/metric_choice.h"
#include "coordinator/rbe_pair_source.h"
#include "coordinator/rbe_principal_start.h"
#include "coordinator/rbe_training.h"

enum { MESSAGE_RESUMED = 55 };

// What parameters, moments and gradients of a few groups can be held of.
#define MAX_PARAMETERS ((size_t)1 << 28)

// Weights that are good already are lost at the rate that random ones want.
#define RANDOM_RATE 0.002
#define GOOD_RATE   0.00001

// Where options of 0 stand for another number with each loss.
struct loss_defaults {
    uint64_t neighbours, negatives;
    double gamma;
};
static const struct loss_defaults pair_defaults = {1, 10, 10},
                                  similarity_defaults = {10, BSW_RBE_GROUP_PAIRS - 1, 30};

struct train_options {
    struct bsw_common_options common;
    const char *queries, *documents, *base, *groundtruth, *model, *metric, *estimator, *precision,
        *checkpoint, *plot, *start, *loss;
    uint64_t neighbours, sample, code_dims, query_planes, document_planes, negatives, batch, epochs,
        patience, seed, most_batches, checkpoint_batches;
    double gamma, rate, decay, slope_growth, validation;
    int is_shared, has_no_weights, is_centered, has_near_negatives, is_resumed, force;
};

struct train_job {
    struct train_options options;
    struct bsw_transport *transport;
    enum bsw_metric metric;
    enum bsw_rbe_estimator estimator;
    enum bsw_rbe_start start;
    int has_similarities, is_auto_negatives;
    struct bsw_rbe_pair_source source;
    struct bsw_rbe_training_result result;
    struct bsw_rbe_shape shapes[BSW_RBE_NUM_SIDES];
    double pair_seconds, train_seconds;
    int is_drawn;
};

// ---- options ----

static enum bsw_status parse(struct train_job *job, int argc, char **argv, int *done,
                             struct bsw_error *err)
{
    struct train_options *o = &job->options;
    const struct bsw_option options[] = {
        {"queries", BSW_OPTION_TEXT, &o->queries, "FILE", NULL, 0, 0, 0, NULL,
         "query vectors; row i belongs to row i of --documents, or of --groundtruth"},
        {"documents", BSW_OPTION_TEXT, &o->documents, "FILE", NULL, 0, 0, 0, NULL,
         "document vectors, as many as queries"},
        {"base", BSW_OPTION_TEXT, &o->base, "FILE", NULL, 0, 0, 0, NULL,
         "or: a corpus, whose rows pair with their neighbours"},
        {"groundtruth", BSW_OPTION_TEXT, &o->groundtruth, "FILE", NULL, 0, 0, 0, NULL,
         "neighbours in --base of --queries, or of its own first rows; none: found exactly"},
        {"neighbours", BSW_OPTION_COUNT, &o->neighbours, "N", "0", 0, 0, 1000, NULL,
         "with --base: a row pairs with one of its first N, another each epoch; 0: 1, for "
         "similarities 10"},
        {"sample", BSW_OPTION_COUNT, &o->sample, "ROWS", "32768", 0, 2, 1e6, NULL,
         "--base alone: rows that neighbours are found among"},
        {"model", BSW_OPTION_TEXT, &o->model, "FILE", NULL, 1, 0, 0, NULL, "model to write"},
        {"metric", BSW_OPTION_CHOICE, &o->metric, NULL, NULL, 0, 0, 0, "cosine|ip|l2",
         "what is near; cosine: rows are normalised; encode takes cosine models only. With --base "
         "needed unless an HDF5 file says it (its 'distance') [two files: cosine]"},
        {"code-dims", BSW_OPTION_COUNT, &o->code_dims, "N", "64", 0, 1, BSW_RBE_MAX_DIMS, NULL,
         "components of a code"},
        {"query-planes", BSW_OPTION_COUNT, &o->query_planes, "U+1", "3", 0, 1, BSW_MAX_QUERY_BITS,
         NULL, "bits a component of a query: one vector, and U residuals"},
        {"document-planes", BSW_OPTION_COUNT, &o->document_planes, "V+1", "2", 0, 1,
         BSW_RBE_MAX_STEPS + 1, NULL, "bits a component of a document"},
        {"shared", BSW_OPTION_FLAG, &o->is_shared, NULL, NULL, 0, 0, 0, NULL,
         "the same matrices for all residuals of a side"},
        {"no-residual-weights", BSW_OPTION_FLAG, &o->has_no_weights, NULL, NULL, 0, 0, 0, NULL,
         "residuals weigh 1, not 1/2, 1/4, ...: for comparison, encode refuses the model"},
        {"precision", BSW_OPTION_CHOICE, &o->precision, NULL, "binary", 0, 0, 0, "binary|float",
         "float: a tanh layer, no bits: for comparison, encode refuses the model"},
        {"estimator", BSW_OPTION_CHOICE, &o->estimator, NULL, "variant", 0, 0, 0,
         "variant|straight-through|annealing", "what stands in for the derivative of a sign"},
        {"slope-growth", BSW_OPTION_NUMBER, &o->slope_growth, "X", "1.1", 0, 1, 10, NULL,
         "annealing: the slope grows by this each epoch"},
        {"negatives", BSW_OPTION_COUNT, &o->negatives, "N", "0", 0, 0, BSW_RBE_MAX_NEGATIVES, NULL,
         "cross-sampled: documents of other pairs of a group of 128, drawn anew for each batch; 0: "
         "10, for similarities 127, or what the held-out pairs have"},
        {"near-negatives", BSW_OPTION_FLAG, &o->has_near_negatives, NULL, NULL, 0, 0, 0, NULL,
         "draw them among pairs whose queries are near, held-out pairs' too, as for similarities "
         "always; wants batches of 128 pairs a rank, or 256, ..."},
        {"loss", BSW_OPTION_CHOICE, &o->loss, NULL, "auto", 0, 0, 0, "auto|pairs|similarities",
         "pairs: a pair's document before the others (the paper's); similarities: all documents as "
         "near as they are, and codes scaled by projection, for rows of one space under cosine; "
         "auto: so for --base alone, unless --start is another's"},
        {"gamma", BSW_OPTION_NUMBER, &o->gamma, "X", NULL, 0, 1e-3, 1e4, NULL,
         "smoothing factor of the softmax [10; similarities: 30]"},
        {"batch", BSW_OPTION_COUNT, &o->batch, "PAIRS", "512", 0, 2, 1e7, NULL,
         "pairs of an update, all ranks together"},
        {"epochs", BSW_OPTION_COUNT, &o->epochs, "N", "0", 0, 0, BSW_RBE_MAX_EPOCHS, NULL,
         "passes over the pairs at most; 0: 30, or from principal axes none, as the first weights "
         "are good and no epoch improved on them where it was measured"},
        {"rate", BSW_OPTION_NUMBER, &o->rate, "X", NULL, 0, 1e-9, 1e38, NULL,
         "learning rate of Adam [0.002; of a start that is good already 0.00001]"},
        {"decay", BSW_OPTION_NUMBER, &o->decay, "X", "0.93", 0, 1e-3, 1, NULL,
         "the rate falls to this share each epoch"},
        {"patience", BSW_OPTION_COUNT, &o->patience, "EPOCHS", "5", 0, 0, 1e6, NULL,
         "stop after so many epochs without a better validation loss; 0: never"},
        {"validation", BSW_OPTION_NUMBER, &o->validation, "SHARE", "0.05", 0, 0, 0.9, NULL,
         "pairs held out to judge epochs by; the best epoch is kept"},
        {"seed", BSW_OPTION_COUNT, &o->seed, "S", "1", 0, 0, 9e15, NULL, "seed of every choice"},
        {"center", BSW_OPTION_FLAG, &o->is_centered, NULL, NULL, 0, 0, 0, NULL,
         "take the mean off rows first, as for similarities always"},
        {"start", BSW_OPTION_CHOICE, &o->start, NULL, "auto", 0, 0, 0,
         "auto|random|quantizer|principal",
         "first weights, random: the paper's; for rows of one space: quantizer of random axes, or "
         "of principal ones (similarities alone). auto: principal, with --loss pairs and --base "
         "quantizer, with two files random"},
        {"checkpoint", BSW_OPTION_TEXT, &o->checkpoint, "FILE", NULL, 0, 0, 0, NULL,
         "written after each epoch, and in between"},
        {"checkpoint-batches", BSW_OPTION_COUNT, &o->checkpoint_batches, "N", "1000", 0, 0, 1e12,
         NULL, "batches from one checkpoint to the next; 0: epochs alone"},
        {"resume", BSW_OPTION_FLAG, &o->is_resumed, NULL, NULL, 0, 0, 0, NULL,
         "go on from --checkpoint, and replace the model that it led to; without one begin"},
        {"max-batches", BSW_OPTION_COUNT, &o->most_batches, "N", "0", 0, 0, 1e15, NULL,
         "stop after so many, with a model of what was learned; --resume goes on. 0: no limit"},
        {"plot", BSW_OPTION_TEXT, &o->plot, "FILE.svg", NULL, 0, 0, 0, NULL,
         "loss curve, a table FILE.tsv beside"},
        {"force", BSW_OPTION_FLAG, &o->force, NULL, NULL, 0, 0, 0, NULL,
         "replace an existing model, begin a checkpoint anew"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"train", "learn an rbe model from pairs of vectors",
                                           options, sizeof options / sizeof options[0]};
    return bsw_command_parse(job->transport, &table, &o->common, argc, argv, done, err);
}

// Which loss, and what goes with it where nothing is said.
static enum bsw_status settle_loss(struct train_job *job, struct bsw_error *err)
{
    struct train_options *o = &job->options;
    int is_auto = strcmp(o->loss, "auto") == 0;
    int can_have_similarities =
        job->metric == BSW_METRIC_COSINE && !o->has_no_weights && job->estimator != BSW_RBE_SMOOTH;
    int is_start_fit = strcmp(o->start, "auto") == 0 || strcmp(o->start, "principal") == 0;
    job->has_similarities =
        is_auto ? o->base && !o->groundtruth && is_start_fit && can_have_similarities
                : strcmp(o->loss, "similarities") == 0;
    if (job->has_similarities && !can_have_similarities) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--loss similarities is for codes under cosine: not for another --metric, "
                        "--precision float, --no-residual-weights");
    }
    const struct loss_defaults *defaults =
        job->has_similarities ? &similarity_defaults : &pair_defaults;
    if (o->neighbours == 0) o->neighbours = o->base ? defaults->neighbours : 1;
    job->is_auto_negatives = o->negatives == 0;
    if (o->negatives == 0) o->negatives = defaults->negatives;
    if (o->gamma == 0) o->gamma = defaults->gamma;
    o->is_centered |= job->has_similarities;
    o->has_near_negatives |= job->has_similarities;
    return BSW_OK;
}

static enum bsw_status settle_start(struct train_job *job, struct bsw_error *err)
{
    struct train_options *o = &job->options;
    int is_auto = strcmp(o->start, "auto") == 0;
    job->start = strcmp(o->start, "principal") == 0 || (is_auto && job->has_similarities)
                     ? BSW_RBE_START_PRINCIPAL
                 : strcmp(o->start, "quantizer") == 0 || (is_auto && o->base)
                     ? BSW_RBE_START_QUANTIZER
                     : BSW_RBE_START_RANDOM;
    if (job->start == BSW_RBE_START_PRINCIPAL && !job->has_similarities)
        return bsw_fail(err, BSW_ERROR_USAGE, "--start principal goes with --loss similarities");
    if (o->epochs == 0 && job->start != BSW_RBE_START_PRINCIPAL) o->epochs = 30;
    if (o->rate == 0) o->rate = job->start == BSW_RBE_START_RANDOM ? RANDOM_RATE : GOOD_RATE;
    return BSW_OK;
}

// Pairs that somebody made are near under cosine unless said: the loss is that of cosines.
static enum bsw_status settle_metric(struct train_job *job, struct bsw_error *err)
{
    const struct train_options *o = &job->options;
    bsw_vectors *base, *queries = NULL;
    if (!o->base) return bsw_metric_parse(o->metric ? o->metric : "cosine", &job->metric, err);
    BSW_TRY(bsw_vectors_open(o->base, BSW_ALL_ROWS, &base, err));
    enum bsw_status status = BSW_OK;
    if (o->queries) status = bsw_queries_open(o->queries, BSW_ALL_ROWS, &queries, err);
    if (status == BSW_OK) status = bsw_metric_choose(o->metric, base, queries, &job->metric, err);
    bsw_vectors_close(&queries);
    bsw_vectors_close(&base);
    return status;
}

static enum bsw_status check_options(struct train_job *job, struct bsw_error *err)
{
    const struct train_options *o = &job->options;
    BSW_TRY(settle_metric(job, err));
    BSW_TRY(bsw_rbe_estimator_parse(o->estimator, &job->estimator, err));
    if (o->is_resumed && !o->checkpoint)
        return bsw_fail(err, BSW_ERROR_USAGE, "--resume needs --checkpoint");
    if (strcmp(o->precision, "float") == 0) job->estimator = BSW_RBE_SMOOTH;
    BSW_TRY(settle_loss(job, err));
    BSW_TRY(settle_start(job, err));
    return o->plot ? bsw_loss_plot_check(o->plot, err) : BSW_OK;
}

// Rank 0: whether the model that is there was trained as this one is, on as many ranks. What it was
// trained with, and on which rows, the checkpoint knows.
static int is_of_this_training(const struct train_job *job)
{
    const struct train_options *o = &job->options;
    struct bsw_rbe_model model;
    if (bsw_rbe_model_read(o->model, &model, NULL) != BSW_OK) return 0;
    const struct bsw_rbe_origin *origin = &model.origin;
    int is_same = model.metric == job->metric && model.has_projection == job->has_similarities &&
                  model.sides[BSW_RBE_DOCUMENT].shape.code_dims == o->code_dims &&
                  origin->estimator == job->estimator && origin->gamma == o->gamma &&
                  origin->rate == o->rate && origin->batch == o->batch && origin->seed == o->seed &&
                  origin->ranks == (uint32_t)job->transport->num_ranks;
    bsw_rbe_model_deinit(&model);
    return is_same;
}

// Rank 0, before the work: that its outputs may be written.
static enum bsw_status check_outputs(const struct train_job *job, struct bsw_error *err)
{
    const struct train_options *o = &job->options;
    char table[BSW_PATH_BYTES] = "";
    if (o->plot) bsw_loss_plot_table(o->plot, table);
    const struct bsw_command_files files = {
        .inputs = {o->queries, o->documents, o->base, o->groundtruth},
        .outputs = {o->model, o->checkpoint, o->plot, o->plot ? table : NULL}};
    BSW_TRY(bsw_command_files_check(&files, err));
    int goes_on = o->is_resumed && bsw_file_exists(o->checkpoint);
    if (bsw_file_exists(o->model) && !o->force && !(goes_on && is_of_this_training(job))) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: exists%s; --force replaces it", o->model,
                        goes_on ? ", of another training" : "");
    }
    if (o->checkpoint && bsw_file_exists(o->checkpoint) && !o->force && !o->is_resumed) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: exists; --resume goes on from it, --force begins anew", o->checkpoint);
    }
    return BSW_OK;
}

// Rank 0 says whether there is a checkpoint to go on from; without one all begin.
static enum bsw_status find_checkpoint(struct train_job *job, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = MESSAGE_RESUMED, .name = "checkpoint"};
    struct bsw_buffer buffer = {0};
    unsigned char is_there = 0;
    enum bsw_status status = BSW_OK;
    if (!job->options.is_resumed) return BSW_OK;
    if (job->transport->rank == 0) {
        is_there = (unsigned char)bsw_file_exists(job->options.checkpoint);
        status = bsw_buffer_append(&buffer, &is_there, sizeof is_there, err);
    }
    if (status == BSW_OK) status = bsw_transport_broadcast(job->transport, &message, &buffer, err);
    if (status == BSW_OK && buffer.bytes == sizeof is_there)
        job->options.is_resumed = buffer.data[0];
    else if (status == BSW_OK)
        status = bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent %zu bytes", buffer.bytes);
    bsw_buffer_deinit(&buffer);
    return bsw_transport_agree(job->transport, status, err);
}

// ---- training ----

static enum bsw_status shape_sides(struct train_job *job, struct bsw_error *err)
{
    const struct train_options *o = &job->options;
    uint64_t planes[BSW_RBE_NUM_SIDES] = {o->query_planes, o->document_planes};
    size_t parameters = 0;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        struct bsw_rbe_shape *shape = &job->shapes[i];
        shape->dims = (uint32_t)job->source.dims;
        shape->code_dims = (uint32_t)o->code_dims;
        shape->steps = job->estimator == BSW_RBE_SMOOTH ? 0 : (uint32_t)planes[i] - 1;
        shape->is_shared = o->is_shared;
        shape->has_residual_weights = !o->has_no_weights;
        parameters += bsw_rbe_num_parameters(shape);
    }
    if (parameters > MAX_PARAMETERS) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "a model of %zu weights; up to %zu are possible",
                        parameters, MAX_PARAMETERS);
    }
    return BSW_OK;
}

static double input_rms(const struct train_job *job)
{
    return job->start == BSW_RBE_START_PRINCIPAL   ? BSW_RBE_PRINCIPAL_INPUT_RMS
           : job->start == BSW_RBE_START_QUANTIZER ? BSW_RBE_INPUT_RMS
                                                   : BSW_RBE_RANDOM_INPUT_RMS;
}

static enum bsw_status open_pairs(struct train_job *job, struct bsw_error *err)
{
    const struct train_options *o = &job->options;
    const struct bsw_rbe_pair_options options = {.queries = o->queries,
                                                 .documents = o->documents,
                                                 .base = o->base,
                                                 .groundtruth = o->groundtruth,
                                                 .neighbours = o->neighbours,
                                                 .sample = o->sample,
                                                 .seed = o->seed,
                                                 .metric = job->metric,
                                                 .level = o->common.level,
                                                 .input_rms = input_rms(job),
                                                 .is_centered = o->is_centered,
                                                 .is_one_space = job->has_similarities,
                                                 .is_shown = !o->common.quiet};
    double started = bsw_clock_seconds();
    BSW_TRY(bsw_rbe_pair_source_open(&options, job->transport, &job->source, err));
    job->pair_seconds = bsw_clock_seconds() - started;
    return shape_sides(job, err);
}

// Of similarities, unless said: as many as a rank's share of a batch and of the held-out pairs has.
static void settle_negatives(struct train_job *job)
{
    struct train_options *o = &job->options;
    uint64_t ranks = (uint64_t)job->transport->num_ranks, pairs = job->source.num_pairs;
    uint64_t held_out = (uint64_t)ceil((double)pairs * o->validation) / ranks,
             batch = (o->batch < pairs / 2 ? o->batch : pairs / 2) / ranks;
    if (!job->has_similarities || !job->is_auto_negatives) return;
    if (held_out > 1 && o->negatives >= held_out) o->negatives = held_out - 1;
    if (batch > 1 && o->negatives >= batch) o->negatives = batch - 1;
}

static enum bsw_status train(struct train_job *job, struct bsw_error *err)
{
    const struct train_options *o = &job->options;
    settle_negatives(job);
    struct bsw_rbe_training_options options = {.estimator = job->estimator,
                                               .slope_growth = o->slope_growth,
                                               .gamma = o->gamma,
                                               .rate = o->rate,
                                               .decay = o->decay,
                                               .validation = o->validation,
                                               .negatives = o->negatives,
                                               .batch_pairs = o->batch,
                                               .epochs = o->epochs,
                                               .patience = o->patience,
                                               .seed = o->seed,
                                               .start = job->start,
                                               .has_near_negatives = o->has_near_negatives,
                                               .has_similarities = job->has_similarities,
                                               .input_rms = input_rms(job),
                                               .most_batches = o->most_batches,
                                               .checkpoint_batches = o->checkpoint_batches,
                                               .checkpoint = o->checkpoint,
                                               .is_resumed = o->is_resumed,
                                               .input_digest = job->source.digest,
                                               .is_shown = !o->common.quiet};
    memcpy(options.shapes, job->shapes, sizeof options.shapes);
    struct bsw_rbe_pairs pairs = bsw_rbe_pair_source_pairs(&job->source);
    double started = bsw_clock_seconds();
    enum bsw_status status = bsw_rbe_train(&options, &pairs, job->transport, &job->result, err);
    job->train_seconds = bsw_clock_seconds() - started;
    return status;
}

// ---- the model ----

// 0: they were not judged.
static double first_weights_loss(const struct bsw_rbe_state *state)
{
    return isfinite(state->best_loss) ? state->best_loss : 0;
}

static void describe_origin(const struct train_job *job, struct bsw_rbe_origin *out)
{
    const struct train_options *o = &job->options;
    const struct bsw_rbe_state *state = &job->result.state;
    const struct bsw_rbe_epoch *best =
        state->best_epoch > 0 ? &state->epochs[state->best_epoch - 1] : NULL;
    *out = (struct bsw_rbe_origin){.estimator = job->estimator,
                                   .gamma = o->gamma,
                                   .rate = o->rate,
                                   .train_loss = best ? best->train_loss : 0,
                                   .validation_loss =
                                       best ? best->validation_loss : first_weights_loss(state),
                                   .negatives = o->negatives,
                                   .batch = o->batch,
                                   .epochs = state->best_epoch,
                                   .seed = o->seed,
                                   .pairs = job->result.num_trained,
                                   .ranks = (uint32_t)job->transport->num_ranks};
}

// The largest scale of some documents comes to lie at 2^7 to 2^8 as a half.
static int32_t scale_exponent(double largest)
{
    int exponent = 0;
    if (largest > 0) frexp(largest, &exponent);
    exponent -= 8;
    return exponent < -126 ? -126 : exponent > 126 ? 126 : exponent;
}

static enum bsw_status write_model(struct train_job *job, struct bsw_error *err)
{
    struct bsw_rbe_model model = {.metric = job->metric,
                                  .is_smooth = job->estimator == BSW_RBE_SMOOTH,
                                  .has_projection = job->has_similarities,
                                  .scale_exponent = scale_exponent(job->result.largest_scale)};
    float *next = job->result.state.best_parameters;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) { // borrowed: the model is not deinitialised
        model.sides[i] = (struct bsw_rbe_side){job->shapes[i], job->source.means[i],
                                               job->source.scales[i], next};
        next += bsw_rbe_num_parameters(&job->shapes[i]);
    }
    describe_origin(job, &model.origin);
    BSW_TRY(bsw_rbe_model_write(&model, job->options.model, err));
    if (!job->options.plot) return BSW_OK;
    return bsw_loss_plot_write(job->options.plot, job->result.state.epochs,
                               (size_t)job->result.state.epoch, &job->is_drawn, err);
}

// ---- report ----

static json_t *recall_json(const struct bsw_rbe_recall *recall)
{
    json_t *object = json_pack("{s:I}", "documents", (json_int_t)recall->num_documents);
    for (size_t i = 0; i < BSW_RBE_NUM_RECALLS; i++) {
        char name[32];
        snprintf(name, sizeof name, "1-recall@%u", bsw_rbe_recall_ranks[i]);
        json_object_set_new(object, name, json_real(recall->shares[i]));
    }
    return object;
}

static void print_json(const struct train_job *job)
{
    const struct bsw_rbe_state *state = &job->result.state;
    const struct train_options *o = &job->options;
    struct bsw_rbe_origin origin;
    describe_origin(job, &origin);
    json_t *curve = json_array();
    for (uint64_t i = 0; i < state->epoch; i++) {
        const struct bsw_rbe_epoch *epoch = &state->epochs[i];
        json_array_append_new(curve, json_pack("{s:I, s:f, s:f, s:f, s:f}", "epoch",
                                               (json_int_t)i + 1, "train_loss", epoch->train_loss,
                                               "validation_loss", epoch->validation_loss, "roc_auc",
                                               epoch->roc_auc, "rate", epoch->rate));
    }
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I}", "model", o->model, "metric",
        bsw_metric_name(job->metric), "estimator", bsw_rbe_estimator_name(job->estimator), "dims",
        (int)job->shapes[0].dims, "code_dims", (int)job->shapes[0].code_dims, "query_planes",
        (int)job->shapes[0].steps + 1, "document_planes", (int)job->shapes[1].steps + 1, "pairs",
        (json_int_t)job->result.num_trained, "held_out_pairs", (json_int_t)job->result.num_held_out,
        "parameters", (json_int_t)state->num_parameters);
    json_t *more =
        json_pack("{s:I, s:I, s:b, s:f, s:f, s:f, s:o, s:I, s:i, s:I, s:f, s:f, s:o}", "epochs",
                  (json_int_t)state->epoch, "best_epoch", (json_int_t)state->best_epoch,
                  "stopped_early", job->result.is_stopped_early, "train_loss", origin.train_loss,
                  "validation_loss", origin.validation_loss, "roc_auc",
                  state->best_epoch > 0 ? state->epochs[state->best_epoch - 1].roc_auc
                                        : job->result.first_roc_auc,
                  "held_out_recall", recall_json(&job->result.recall), "batches",
                  (json_int_t)state->num_updates, "ranks", job->transport->num_ranks, "threads",
                  (json_int_t)o->common.threads, "pair_seconds", job->pair_seconds, "train_seconds",
                  job->train_seconds, "curve", curve);
    json_object_update(object, more);
    json_decref(more);
    bsw_print_json(object);
}

static void print_recall(const struct bsw_rbe_recall *recall)
{
    if (recall->num_documents == 0) return;
    printf("of held-out queries the share that finds its document among %zu held-out ones:",
           recall->num_documents);
    for (size_t i = 0; i < BSW_RBE_NUM_RECALLS; i++)
        printf(" 1-recall@%u %.4f", bsw_rbe_recall_ranks[i], recall->shares[i]);
    printf("\n");
}

static void report(const struct train_job *job)
{
    const struct bsw_rbe_state *state = &job->result.state;
    const struct train_options *o = &job->options;
    if (o->common.json) {
        print_json(job);
        return;
    }
    if (o->common.quiet) return;
    printf("epoch  train loss  validation loss  ROC AUC     rate\n");
    for (uint64_t i = 0; i < state->epoch; i++) {
        const struct bsw_rbe_epoch *epoch = &state->epochs[i];
        printf("%5llu  %10.5f  %15.5f  %7.5f  %7.2g%s\n", (unsigned long long)i + 1,
               epoch->train_loss, epoch->validation_loss, epoch->roc_auc, epoch->rate,
               i + 1 == state->best_epoch ? "  best" : "");
    }
    print_recall(&job->result.recall);
    printf("%llu pairs, %llu held out, %llu batches, %zu weights: pairs %.2f s, training %.2f s%s\n"
           "model: %s\n",
           (unsigned long long)job->result.num_trained,
           (unsigned long long)job->result.num_held_out, (unsigned long long)state->num_updates,
           state->num_parameters, job->pair_seconds, job->train_seconds,
           job->result.is_stopped_early ? ", stopped early" : "", o->model);
    if (state->epoch > 0 && state->best_epoch == 0)
        printf("no epoch was better than the first weights: these are the model\n");
    if (state->epoch < o->epochs && !job->result.is_stopped_early)
        printf("stopped by --max-batches%s%s\n", o->checkpoint ? "; --resume goes on from " : "",
               o->checkpoint ? o->checkpoint : "");
    if (o->plot && !job->is_drawn)
        printf("gnuplot is missing: the loss curve is in the table beside %s\n", o->plot);
}

static enum bsw_status run(struct train_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    enum bsw_status status = transport->rank == 0 ? check_outputs(job, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(find_checkpoint(job, err));
    BSW_TRY(open_pairs(job, err));
    BSW_TRY(train(job, err));
    status = transport->rank == 0 ? write_model(job, err) : BSW_OK;
    return bsw_transport_agree(transport, status, err);
}

enum bsw_status bsw_command_train(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err)
{
    struct train_job job = {.transport = transport};
    int done;
    BSW_TRY(parse(&job, argc, argv, &done, err));
    if (done) return BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, check_options(&job, err), err));
    enum bsw_status status = run(&job, err);
    if (status == BSW_OK && transport->rank == 0) report(&job);
    bsw_rbe_state_deinit(&job.result.state);
    bsw_rbe_pair_source_close(&job.source);
    return status;
}
