// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/gnuplot.h"
#include "coordinator/train/rbe_first_weights.h"

// From the table as stdin to an SVG as stdout.
#define TRAINING_PLOT                                                               \
    "set terminal svg size 800,500 dynamic background rgb 'white'; "                \
    "set xlabel 'epoch'; set ylabel 'loss'; set grid; plot '/dev/stdin' using 1:2 " \
    "with linespoints lw 2 pt 7 title 'training'"
#define VALIDATION_PLOT ", '' using 1:3 with linespoints lw 2 pt 5 title 'validation'"

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

struct train_job {
    struct bsw_train_settings settings; // complete once the pairs are open
    struct bsw_transport *transport;
    struct bsw_train_stats *stats;
    int is_auto_negatives;
    struct bsw_rbe_pair_source source; // of vectors, or
    struct bsw_text_pairs texts;
    size_t dims;
    uint64_t num_pairs;
};

// ---- settings ----

struct bsw_train_settings bsw_train_settings_default(void)
{
    return (struct bsw_train_settings){
        .pairs.sample = BSW_TRAIN_SAMPLE,
        .trigrams = BSW_TRAIN_TRIGRAMS,
        .text_dims = BSW_TRAIN_TEXT_DIMS,
        .training = {.estimator = BSW_RBE_VARIANT,
                     .start = BSW_RBE_START_AUTO,
                     .batch_pairs = BSW_TRAIN_BATCH,
                     .patience = BSW_TRAIN_PATIENCE,
                     .seed = BSW_TRAIN_SEED,
                     .checkpoint_batches = BSW_TRAIN_CHECKPOINT_BATCHES,
                     .decay = BSW_TRAIN_DECAY,
                     .slope_growth = BSW_TRAIN_SLOPE_GROWTH,
                     .validation = BSW_TRAIN_VALIDATION}};
}

// Which loss, and what goes with it where nothing is said.
static enum bsw_status settle_loss(struct train_job *job, struct bsw_error *err)
{
    struct bsw_train_settings *o = &job->settings;
    struct bsw_rbe_pair_options *pairs = &o->pairs;
    struct bsw_rbe_training_options *training = &o->training;
    int can_have_similarities = bsw_has_unit_rows(pairs->metric) && !o->has_no_weights &&
                                training->estimator != BSW_RBE_SMOOTH;
    int is_start_fit =
        training->start == BSW_RBE_START_AUTO || training->start == BSW_RBE_START_PRINCIPAL;
    training->has_similarities =
        o->loss == BSW_TRAIN_LOSS_AUTO
            ? pairs->base && !pairs->groundtruth && is_start_fit && can_have_similarities
            : o->loss == BSW_TRAIN_LOSS_SIMILARITIES;
    if (training->has_similarities && !can_have_similarities) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--loss similarities is for codes under cosine: not for another --metric, "
                        "--precision float, --no-residual-weights");
    }
    const struct loss_defaults *defaults =
        training->has_similarities ? &similarity_defaults : &pair_defaults;
    if (pairs->neighbours == 0) pairs->neighbours = pairs->base ? defaults->neighbours : 1;
    job->is_auto_negatives = training->negatives == 0;
    if (training->negatives == 0) training->negatives = defaults->negatives;
    if (training->gamma == 0) training->gamma = defaults->gamma;
    pairs->is_centered |= training->has_similarities;
    training->has_near_negatives |= training->has_similarities;
    return BSW_OK;
}

static enum bsw_status settle_start(struct train_job *job, struct bsw_error *err)
{
    struct bsw_rbe_training_options *o = &job->settings.training;
    if (o->start == BSW_RBE_START_AUTO)
        o->start = o->has_similarities        ? BSW_RBE_START_PRINCIPAL
                   : job->settings.text       ? BSW_RBE_START_SAME
                   : job->settings.pairs.base ? BSW_RBE_START_QUANTIZER
                                              : BSW_RBE_START_RANDOM;
    if (o->start == BSW_RBE_START_PRINCIPAL && !o->has_similarities)
        return bsw_fail(err, BSW_ERROR_USAGE, "--start principal goes with --loss similarities");
    if (o->epochs == 0 && o->start != BSW_RBE_START_PRINCIPAL) o->epochs = 30;
    if (o->rate == 0) o->rate = bsw_rbe_start_is_random(o->start) ? RANDOM_RATE : GOOD_RATE;
    o->input_rms = o->start == BSW_RBE_START_PRINCIPAL   ? BSW_RBE_PRINCIPAL_INPUT_RMS
                   : o->start == BSW_RBE_START_QUANTIZER ? BSW_RBE_INPUT_RMS
                                                         : BSW_RBE_RANDOM_INPUT_RMS;
    return BSW_OK;
}

// What a text network in front leaves no room for.
static enum bsw_status check_text(const struct bsw_train_settings *o, struct bsw_error *err)
{
    const struct bsw_rbe_pair_options *pairs = &o->pairs;
    if (!o->text) return BSW_OK;
    if (pairs->queries || pairs->documents || pairs->base || pairs->groundtruth)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--text has pairs of texts: no --queries, --documents, --base beside it");
    if (o->training.has_near_negatives || pairs->is_centered ||
        (o->training.start != BSW_RBE_START_AUTO && !bsw_rbe_start_is_random(o->training.start)) ||
        o->loss == BSW_TRAIN_LOSS_SIMILARITIES)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--text: --near-negatives, --center, --loss similarities and starts other "
                        "than random are for vectors");
    if (o->metric && strcmp(o->metric, "cosine") != 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "--metric %s: --text learns cosines", o->metric);
    return BSW_OK;
}

// Pairs that somebody made are near under cosine unless said: the loss is that of cosines.
static enum bsw_status settle_metric(struct train_job *job, struct bsw_error *err)
{
    struct bsw_rbe_pair_options *o = &job->settings.pairs;
    const char *given = job->settings.metric;
    bsw_vectors *base, *queries = NULL;
    if (!o->base) return bsw_metric_parse(given ? given : "cosine", &o->metric, err);
    BSW_TRY(bsw_vectors_open(o->base, BSW_ALL_ROWS, &base, err));
    enum bsw_status status = BSW_OK;
    if (o->queries) status = bsw_queries_open(o->queries, BSW_ALL_ROWS, &queries, err);
    if (status == BSW_OK) status = bsw_metric_choose(given, base, queries, &o->metric, err);
    bsw_vectors_close(&queries);
    bsw_vectors_close(&base);
    return status;
}

// A name that ends in .svg.
static enum bsw_status check_plot(const char *svg_path, struct bsw_error *err)
{
    size_t length = strlen(svg_path);
    if (length > 4 && length < BSW_PATH_BYTES && strcmp(svg_path + length - 4, ".svg") == 0)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--plot %s: a name that ends in .svg", svg_path);
}

// The table beside the plot.
static void name_table(const char *svg_path, char out[BSW_PATH_BYTES])
{
    snprintf(out, BSW_PATH_BYTES, "%.*s.tsv", (int)strlen(svg_path) - 4, svg_path);
}

static enum bsw_status complete(struct train_job *job, struct bsw_error *err)
{
    const struct bsw_train_settings *o = &job->settings;
    BSW_TRY(check_text(o, err));
    BSW_TRY(settle_metric(job, err));
    if (o->training.is_resumed && !o->training.checkpoint)
        return bsw_fail(err, BSW_ERROR_USAGE, "--resume needs --checkpoint");
    BSW_TRY(settle_loss(job, err));
    BSW_TRY(settle_start(job, err));
    return o->plot ? check_plot(o->plot, err) : BSW_OK;
}

// Rank 0: whether the model that is there was trained as this one is, on as many ranks. What it was
// trained with, and on which rows, the checkpoint knows.
static int is_of_this_training(const struct train_job *job)
{
    const struct bsw_rbe_training_options *o = &job->settings.training;
    struct bsw_rbe_model model;
    if (bsw_rbe_model_read(job->settings.model, &model, NULL) != BSW_OK) return 0;
    const struct bsw_rbe_origin *origin = &model.origin;
    int is_same = model.metric == job->settings.pairs.metric &&
                  model.has_projection == o->has_similarities &&
                  model.sides[BSW_RBE_DOCUMENT].shape.code_dims == job->settings.code_dims &&
                  origin->estimator == o->estimator && origin->gamma == o->gamma &&
                  origin->rate == o->rate && origin->batch == o->batch_pairs &&
                  origin->seed == o->seed && origin->ranks == (uint32_t)job->transport->num_ranks;
    bsw_rbe_model_deinit(&model);
    return is_same;
}

// Rank 0, before the work: that its outputs may be written.
static enum bsw_status check_outputs(const struct train_job *job, struct bsw_error *err)
{
    const struct bsw_train_settings *o = &job->settings;
    const char *checkpoint = o->training.checkpoint;
    char table[BSW_PATH_BYTES] = "";
    if (o->plot) name_table(o->plot, table);
    const struct bsw_command_files files = {
        .inputs = {o->pairs.queries, o->text ? o->text : o->pairs.documents, o->pairs.base,
                   o->pairs.groundtruth},
        .outputs = {o->model, checkpoint, o->plot, o->plot ? table : NULL}};
    BSW_TRY(bsw_command_files_check(&files, err));
    int goes_on = o->training.is_resumed && bsw_file_is_found(checkpoint);
    if (bsw_file_is_found(o->model) && !o->force && !(goes_on && is_of_this_training(job))) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: exists%s; --force replaces it", o->model,
                        goes_on ? ", of another training" : "");
    }
    if (checkpoint && bsw_file_is_found(checkpoint) && !o->force && !o->training.is_resumed) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: exists; --resume goes on from it, --force begins anew", checkpoint);
    }
    return BSW_OK;
}

// Rank 0 says whether there is a checkpoint to go on from; without one all begin.
static enum bsw_status find_checkpoint(struct train_job *job, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_CHECKPOINT, .name = "checkpoint"};
    struct bsw_rbe_training_options *o = &job->settings.training;
    if (!o->is_resumed) return BSW_OK;
    if (job->transport->rank == 0) o->is_resumed = bsw_file_is_found(o->checkpoint);
    enum bsw_status status =
        bsw_share_record(job->transport, &message, &o->is_resumed, sizeof o->is_resumed, err);
    return bsw_transport_agree(job->transport, status, err);
}

// ---- training ----

static enum bsw_status shape_sides(struct train_job *job, struct bsw_error *err)
{
    struct bsw_train_settings *o = &job->settings;
    uint64_t planes[BSW_RBE_NUM_SIDES] = {o->query_planes, o->document_planes};
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        o->training.shapes[i] = (struct bsw_rbe_shape){
            .dims = (uint32_t)job->dims,
            .code_dims = (uint32_t)o->code_dims,
            .steps = o->training.estimator == BSW_RBE_SMOOTH ? 0 : (uint32_t)planes[i] - 1,
            .is_shared = o->is_shared,
            .has_residual_weights = !o->has_no_weights};
    }
    size_t parameters = bsw_rbe_training_parameters(&o->training);
    memcpy(job->stats->shapes, o->training.shapes, sizeof job->stats->shapes);
    if (parameters > MAX_PARAMETERS) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "a model of %zu weights: must be %zu at most",
                        parameters, MAX_PARAMETERS);
    }
    return BSW_OK;
}

static enum bsw_status open_pairs(struct train_job *job, struct bsw_error *err)
{
    const struct bsw_rbe_training_options *training = &job->settings.training;
    struct bsw_rbe_pair_options *o = &job->settings.pairs;
    o->seed = training->seed;
    o->input_rms = training->input_rms;
    o->is_one_space = training->has_similarities;
    o->is_shown = training->is_shown;
    BSW_TRY(bsw_rbe_pair_source_open(o, job->transport, &job->source, err));
    job->dims = job->source.dims;
    job->num_pairs = job->source.num_pairs;
    job->settings.training.input_digest = job->source.digest;
    return BSW_OK;
}

static enum bsw_status open_texts(struct train_job *job, struct bsw_error *err)
{
    struct bsw_train_settings *o = &job->settings;
    BSW_TRY(bsw_text_pairs_open(o->text, (uint32_t)o->trigrams, o->is_hashed, job->transport,
                                &job->texts, err));
    job->dims = (size_t)o->text_dims;
    job->num_pairs = job->texts.lines.num_lines;
    o->training.input_digest = job->texts.lines.digest;
    o->training.vocabulary = &job->texts.vocabulary;
    job->stats->num_grams = job->texts.vocabulary.num_grams;
    return BSW_OK;
}

static enum bsw_status open_input(struct train_job *job, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    BSW_TRY(job->settings.text ? open_texts(job, err) : open_pairs(job, err));
    job->stats->pair_seconds = bsw_clock_seconds() - started;
    return shape_sides(job, err);
}

// Unless they were given, lowers the negatives to what a rank's share of a batch and of the
// held-out pairs has.
static void settle_negatives(struct train_job *job)
{
    struct bsw_rbe_training_options *o = &job->settings.training;
    uint64_t ranks = (uint64_t)job->transport->num_ranks, pairs = job->num_pairs;
    uint64_t held_out = (uint64_t)ceil((double)pairs * o->validation) / ranks,
             batch = (o->batch_pairs < pairs / 2 ? o->batch_pairs : pairs / 2) / ranks;
    if (!o->has_similarities || !job->is_auto_negatives) return;
    if (held_out > 1 && o->negatives >= held_out) o->negatives = held_out - 1;
    if (batch > 1 && o->negatives >= batch) o->negatives = batch - 1;
}

static enum bsw_status train(struct train_job *job, struct bsw_error *err)
{
    settle_negatives(job);
    struct bsw_rbe_pairs pairs = job->settings.text ? bsw_text_pairs_pairs(&job->texts)
                                                    : bsw_rbe_pair_source_pairs(&job->source);
    double started = bsw_clock_seconds();
    enum bsw_status status =
        bsw_rbe_train(&job->settings.training, &pairs, job->transport, &job->stats->result, err);
    job->stats->train_seconds = bsw_clock_seconds() - started;
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
    const struct bsw_rbe_training_options *o = &job->settings.training;
    const struct bsw_rbe_state *state = &job->stats->result.state;
    const struct bsw_rbe_epoch *best =
        state->best_epoch > 0 ? &state->epochs[state->best_epoch - 1] : NULL;
    *out = (struct bsw_rbe_origin){.estimator = o->estimator,
                                   .gamma = o->gamma,
                                   .rate = o->rate,
                                   .train_loss = best ? best->train_loss : 0,
                                   .validation_loss =
                                       best ? best->validation_loss : first_weights_loss(state),
                                   .negatives = o->negatives,
                                   .batch = o->batch_pairs,
                                   .epochs = state->best_epoch,
                                   .seed = o->seed,
                                   .pairs = job->stats->result.num_trained,
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

// Epoch, training loss, validation loss, rate.
static enum bsw_status write_table(const char *path, const struct bsw_rbe_epoch *epochs,
                                   size_t num_epochs, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    char line[160] = "# epoch\ttrain_loss\tvalidation_loss\trate\n";
    enum bsw_status status = bsw_buffer_append(&buffer, line, strlen(line), err);
    for (size_t i = 0; i < num_epochs && status == BSW_OK; i++) {
        int length = snprintf(line, sizeof line, "%zu\t%.6f\t%.6f\t%.6g\n", i + 1,
                              epochs[i].train_loss, epochs[i].validation_loss, epochs[i].rate);
        status = bsw_buffer_append(&buffer, line, (size_t)length, err);
    }
    if (status == BSW_OK) status = bsw_file_write_output(path, buffer.data, buffer.bytes, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

// The table, then the plot where there is gnuplot.
static enum bsw_status write_plot(struct train_job *job, struct bsw_error *err)
{
    const struct bsw_rbe_state *state = &job->stats->result.state;
    size_t num_epochs = (size_t)state->epoch;
    char svg_path[BSW_PATH_BYTES], table[BSW_PATH_BYTES];
    int has_validation = num_epochs > 0 && state->epochs[num_epochs - 1].validation_loss > 0;
    const char *const arguments[] = {
        "gnuplot", "-e", has_validation ? TRAINING_PLOT VALIDATION_PLOT : TRAINING_PLOT, NULL};
    const struct bsw_gnuplot gnuplot = {.arguments = arguments, .in = table, .out = svg_path};
    name_table(job->settings.plot, table);
    BSW_TRY(bsw_file_follow(job->settings.plot, svg_path, err));
    BSW_TRY(write_table(table, state->epochs, num_epochs, err));
    if (num_epochs == 0) return BSW_OK;
    BSW_TRY(bsw_gnuplot_run(&gnuplot, &job->stats->is_drawn, err));
    return job->stats->is_drawn ? BSW_OK : bsw_file_remove(svg_path, err);
}

static enum bsw_status write_model(struct train_job *job, struct bsw_error *err)
{
    struct bsw_rbe_model model = {.metric = job->settings.pairs.metric,
                                  .is_smooth = job->settings.training.estimator == BSW_RBE_SMOOTH,
                                  .has_projection = job->settings.training.has_similarities,
                                  .scale_exponent =
                                      scale_exponent(job->stats->result.largest_scale)};
    const struct bsw_rbe_training_options *training = &job->settings.training;
    float *parameters = job->stats->result.state.best_parameters, *next = parameters;
    float no_mean[BSW_RBE_MAX_DIMS] = {0};
    int is_text = job->settings.text != NULL;
    if (is_text) model.text.vocabulary = job->texts.vocabulary;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) { // borrowed: the model is not deinitialised
        model.sides[i] =
            (struct bsw_rbe_side){job->stats->shapes[i], is_text ? no_mean : job->source.means[i],
                                  is_text ? 1 : job->source.scales[i], next};
        if (is_text)
            model.text.parameters[i] = parameters + bsw_rbe_training_text_offset(training, i);
        next += bsw_rbe_num_parameters(&job->stats->shapes[i]);
    }
    describe_origin(job, &job->stats->origin);
    model.origin = job->stats->origin;
    BSW_TRY(bsw_rbe_model_write(&model, job->settings.model, err));
    return job->settings.plot ? write_plot(job, err) : BSW_OK;
}

// ---- the whole ----

static enum bsw_status run(struct train_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    enum bsw_status status = transport->rank == 0 ? check_outputs(job, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(find_checkpoint(job, err));
    BSW_TRY(open_input(job, err));
    BSW_TRY(train(job, err));
    status = transport->rank == 0 ? write_model(job, err) : BSW_OK;
    return bsw_transport_agree(transport, status, err);
}

enum bsw_status bsw_train_run(const struct bsw_train_settings *settings,
                              struct bsw_transport *transport, struct bsw_train_stats *stats,
                              struct bsw_error *err)
{
    struct train_job job = {.settings = *settings, .transport = transport, .stats = stats};
    *stats = (struct bsw_train_stats){0};
    BSW_TRY(bsw_transport_agree(transport, complete(&job, err), err));
    enum bsw_status status = run(&job, err);
    stats->metric = job.settings.pairs.metric;
    stats->epochs = job.settings.training.epochs;
    bsw_rbe_pair_source_close(&job.source);
    bsw_text_pairs_close(&job.texts);
    return status;
}

void bsw_train_stats_deinit(struct bsw_train_stats *stats)
{
    bsw_rbe_state_deinit(&stats->result.state);
}
