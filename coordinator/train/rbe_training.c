// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/rbe_training.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/job/progress.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/train/rbe_first_weights.h"
#include "coordinator/train/rbe_group.h"
#include "coordinator/train/rbe_pair_source.h"
#include "coordinator/train/rbe_quality.h"

// What seeds are hashed with, so that no choice repeats another; 1, 2: rbe_first_weights.c, 3, 6:
// rbe_pair_source.c.
enum { SEED_ORDER = 4, SEED_SHIFTS, SEED_HELD_OUT };

#define SCALE_GROUPS 8

struct training {
    const struct bsw_rbe_training_options *options;
    const struct bsw_rbe_pairs *pairs;
    struct bsw_transport *transport;
    struct bsw_rbe_state *state;
    char settings[BSW_RBE_SETTINGS_BYTES];
    struct bsw_rbe_split split;
    uint64_t *order; // [num_trained]: of this epoch; owned
    size_t group_pairs, max_groups;
    struct bsw_rbe_worker *workers;
    size_t num_workers;
    struct bsw_rbe_quality quality; // of rank 0
    float *group_gradients;         // [groups of a batch][num_parameters]
    double *group_losses;           // [max_groups]: of means, times pairs
    float *gradient;                // [num_parameters]
    uint64_t sequence, num_done;    // messages; batches of this call
    float *rates;                   // [num_parameters]: of the first weights (rbe_first_weights.h)
    double rate, largest_scale, first_roc_auc;
    float slope;
    int is_stopped_early;
    struct bsw_progress progress;
    char label[64];
};

static int is_root(const struct training *training)
{
    return training->transport->rank == 0;
}

// ---- memory ----

static size_t groups_of(const struct training *training, size_t num_pairs)
{
    return num_pairs < training->group_pairs ? 1 : num_pairs / training->group_pairs;
}

static enum bsw_status allocate(struct training *training, struct bsw_error *err)
{
    const struct bsw_rbe_training_options *o = training->options;
    size_t ranks = (size_t)training->transport->num_ranks,
           parameters = bsw_rbe_training_parameters(o);
    BSW_TRY(bsw_allocate(&training->order, (size_t)training->split.num_trained, sizeof(uint64_t),
                         "pairs", err));
    BSW_TRY(bsw_rbe_state_init(parameters, training->state, err));
    size_t most_slice = training->split.batch_pairs / ranks + 1,
           most_held_out = (size_t)training->split.num_held_out / ranks + 1,
           groups = groups_of(training, most_slice);
    training->max_groups = groups_of(training, most_held_out);
    if (training->max_groups < groups) training->max_groups = groups;
    size_t threads = (size_t)omp_get_max_threads();
    training->num_workers = threads < training->max_groups ? threads : training->max_groups;
    BSW_TRY(bsw_allocate(&training->group_gradients, groups, parameters * sizeof(float),
                         "gradients", err));
    BSW_TRY(bsw_allocate(&training->rates, parameters, sizeof(float), "rates", err));
    BSW_TRY(bsw_allocate(&training->gradient, parameters, sizeof(float), "gradients", err));
    BSW_TRY(
        bsw_allocate(&training->group_losses, training->max_groups, sizeof(double), "losses", err));
    BSW_TRY(bsw_allocate_zero(&training->workers, training->num_workers, sizeof *training->workers,
                              "training", err));
    for (size_t i = 0; i < training->num_workers; i++)
        BSW_TRY(bsw_rbe_worker_init(o, training->pairs, 2 * training->group_pairs,
                                    &training->workers[i], err));
    training->quality = (struct bsw_rbe_quality){.options = o,
                                                 .held_out = training->split.held_out,
                                                 .num_pairs = (size_t)training->split.num_held_out,
                                                 .group_pairs = training->group_pairs,
                                                 .workers = training->workers,
                                                 .num_workers = training->num_workers};
    return is_root(training) ? bsw_rbe_quality_init(&training->quality, err) : BSW_OK;
}

static void deinit(struct training *training)
{
    for (size_t i = 0; training->workers && i < training->num_workers; i++)
        bsw_rbe_worker_deinit(&training->workers[i]);
    bsw_free(&training->workers);
    bsw_rbe_quality_deinit(&training->quality);
    bsw_free(&training->group_losses);
    bsw_free(&training->group_gradients);
    bsw_free(&training->gradient);
    bsw_free(&training->rates);
    bsw_free(&training->order);
    bsw_rbe_split_deinit(&training->split);
}

// ---- this rank's groups ----

struct slice {
    const uint64_t *pairs;
    size_t num_pairs;
    uint64_t draw, shift_seed;
    size_t batch_pairs; // that gradients are a mean over; 0: no gradients
};

static enum bsw_status run_group(struct training *training, const struct slice *slice, size_t g,
                                 size_t num_groups, struct bsw_error *err)
{
    size_t first = bsw_part_first(slice->num_pairs, g, num_groups),
           last = bsw_part_first(slice->num_pairs, g + 1, num_groups);
    size_t count = last - first, parameters = training->state->num_parameters;
    const struct bsw_rbe_group group = {.pairs = slice->pairs + first,
                                        .num_pairs = count,
                                        .draw = slice->draw,
                                        .shift_seed = bsw_hash2(slice->shift_seed, g),
                                        .slope = training->slope};
    int has_gradient = slice->batch_pairs > 0;
    float *gradient = has_gradient ? training->group_gradients + g * parameters : NULL;
    float share = has_gradient ? (float)count / (float)slice->batch_pairs : 0;
    BSW_TRY(bsw_rbe_group_run(&training->workers[omp_get_thread_num()], training->state->parameters,
                              &group, share, gradient, &training->group_losses[g], err));
    training->group_losses[g] *= (double)count;
    return BSW_OK;
}

// *loss: summed over the pairs. The fault of the lowest group is the one reported.
static enum bsw_status run_slice(struct training *training, const struct slice *slice, double *loss,
                                 struct bsw_error *err)
{
    size_t num_groups = groups_of(training, slice->num_pairs);
    struct bsw_first_failure failure = {0};
#pragma omp parallel for schedule(dynamic) num_threads((int)training->num_workers)
    for (size_t g = 0; g < num_groups; g++) {
        struct bsw_error group_error;
        enum bsw_status group_status = run_group(training, slice, g, num_groups, &group_error);
        if (group_status != BSW_OK) bsw_first_failure_note(&failure, g, group_status, &group_error);
    }
    *loss = 0;
    BSW_TRY(bsw_first_failure_report(&failure, err));
    for (size_t g = 0; g < num_groups; g++) *loss += training->group_losses[g];
    return BSW_OK;
}

static struct slice slice_of(const struct training *training, const uint64_t *pairs,
                             uint64_t num_pairs)
{
    uint64_t rank = (uint64_t)training->transport->rank,
             ranks = (uint64_t)training->transport->num_ranks;
    uint64_t first = bsw_part_first(num_pairs, rank, ranks),
             last = bsw_part_first(num_pairs, rank + 1, ranks);
    return (struct slice){.pairs = pairs + first, .num_pairs = (size_t)(last - first)};
}

// ---- messages ----

static struct bsw_message next_message(struct training *training, uint32_t kind, const char *name)
{
    return (struct bsw_message){.kind = kind, .batch = training->sequence, .name = name};
}

static enum bsw_status share(struct training *training, uint32_t kind, const char *name, void *data,
                             size_t bytes, struct bsw_error *err)
{
    struct bsw_message message = next_message(training, kind, name);
    return bsw_share_record(training->transport, &message, data, bytes, err);
}

// ---- one batch ----

static void add_numbers(float *sum, const float *numbers, size_t count)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; i++) sum[i] += numbers[i];
}

static void sum_groups(struct training *training, size_t num_groups)
{
    size_t count = training->state->num_parameters;
    memcpy(training->gradient, training->group_gradients, count * sizeof(float));
    for (size_t g = 1; g < num_groups; g++)
        add_numbers(training->gradient, training->group_gradients + g * count, count);
}

static enum bsw_status check_payload(int rank, const struct bsw_buffer *payload, size_t bytes,
                                     struct bsw_error *err)
{
    if (payload->bytes == bytes) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes, not %zu", rank, payload->bytes,
                    bytes);
}

static enum bsw_status add_gradient(void *context, int rank, const struct bsw_buffer *payload,
                                    struct bsw_error *err)
{
    struct training *training = context;
    size_t count = training->state->num_parameters;
    BSW_TRY(check_payload(rank, payload, count * sizeof(float), err));
    add_numbers(training->gradient, (const float *)(const void *)payload->data, count);
    return BSW_OK;
}

static enum bsw_status add_loss(void *context, int rank, const struct bsw_buffer *payload,
                                struct bsw_error *err)
{
    double loss, *sum = context;
    BSW_TRY(check_payload(rank, payload, sizeof loss, err));
    memcpy(&loss, payload->data, sizeof loss);
    *sum += loss;
    return BSW_OK;
}

// Every rank's, added in the order of ranks: on rank 0.
static enum bsw_status gather_loss(struct training *training, double *loss, struct bsw_error *err)
{
    training->sequence++;
    struct bsw_message message = next_message(training, BSW_MESSAGE_LOSS, "losses");
    return bsw_collect(training->transport, &message, loss, sizeof *loss, add_loss, loss, err);
}

static int is_finite_array(const float *values, size_t count)
{
    int is_finite = 1;
    for (size_t i = 0; i < count; i++) is_finite &= isfinite(values[i]) != 0;
    return is_finite;
}

static enum bsw_status diverged(const struct training *training, const char *what,
                                struct bsw_error *err)
{
    const char *kept = training->options->checkpoint;
    return bsw_fail(
        err, BSW_ERROR_BAD_DATA,
        "training: %s is not finite at epoch %llu, batch %llu; try a smaller --rate%s%s", what,
        (unsigned long long)training->state->epoch + 1,
        (unsigned long long)training->state->batch + 1, kept ? "; the last checkpoint stays: " : "",
        kept ? kept : "");
}

static enum bsw_status write_checkpoint(struct training *training, struct bsw_error *err)
{
    const char *path = training->options->checkpoint;
    return path ? bsw_rbe_checkpoint_write(path, training->settings, training->state, err) : BSW_OK;
}

// Rank 0, with all gradients added. Signs hide infinite sums, so the loss alone would not show all.
static enum bsw_status finish_batch(struct training *training, double loss, struct bsw_error *err)
{
    struct bsw_rbe_state *state = training->state;
    uint64_t every = training->options->checkpoint_batches;
    if (!isfinite(loss)) return diverged(training, "the loss", err);
    if (!is_finite_array(training->gradient, state->num_parameters))
        return diverged(training, "the gradient", err);
    bsw_rbe_state_update(state, training->gradient, training->rates, training->rate);
    if (!is_finite_array(state->parameters, state->num_parameters))
        return diverged(training, "a weight", err);
    state->loss_sum += loss;
    state->batch++;
    int is_due = (every > 0 && state->num_updates % every == 0) ||
                 training->num_done + 1 == training->options->most_batches;
    return is_due && state->batch < training->split.num_batches ? write_checkpoint(training, err)
                                                                : BSW_OK;
}

static enum bsw_status exchange_gradients(struct training *training, double *loss,
                                          struct bsw_error *err)
{
    BSW_TRY(gather_loss(training, loss, err));
    struct bsw_message message = next_message(training, BSW_MESSAGE_GRADIENT, "gradients");
    return bsw_collect(training->transport, &message, training->gradient,
                       training->state->num_parameters * sizeof(float), add_gradient, training,
                       err);
}

static enum bsw_status run_batch(struct training *training, struct bsw_error *err)
{
    struct bsw_rbe_state *state = training->state;
    const uint64_t *pairs = training->order + state->batch * training->split.batch_pairs;
    struct slice slice = slice_of(training, pairs, training->split.batch_pairs);
    uint64_t seed = bsw_hash2(training->options->seed, SEED_SHIFTS);
    double loss = 0;
    slice.draw = state->epoch + 1;
    slice.batch_pairs = training->split.batch_pairs;
    slice.shift_seed = bsw_hash2(bsw_hash2(bsw_hash2(seed, state->epoch), state->batch),
                                 (uint64_t)training->transport->rank);
    enum bsw_status status = run_slice(training, &slice, &loss, err);
    BSW_TRY(bsw_transport_agree(training->transport, status, err));
    sum_groups(training, groups_of(training, slice.num_pairs));
    status = exchange_gradients(training, &loss, err);
    if (is_root(training) && status == BSW_OK)
        status = finish_batch(training, loss / (double)training->split.batch_pairs, err);
    BSW_TRY(bsw_transport_agree(training->transport, status, err));
    if (!is_root(training)) state->batch++;
    training->num_done++;
    return share(training, BSW_MESSAGE_PARAMETERS, "parameters", state->parameters,
                 state->num_parameters * sizeof(float), err);
}

// ---- epochs ----

static enum bsw_status run_held_out(struct training *training, double *loss, struct bsw_error *err)
{
    struct slice slice = slice_of(training, training->split.held_out, training->split.num_held_out);
    *loss = 0;
    if (training->split.num_held_out == 0) return BSW_OK;
    slice.shift_seed = bsw_hash2(bsw_hash2(training->options->seed, SEED_HELD_OUT),
                                 (uint64_t)training->transport->rank);
    enum bsw_status status = run_slice(training, &slice, loss, err);
    BSW_TRY(bsw_transport_agree(training->transport, status, err));
    status = gather_loss(training, loss, err);
    *loss /= (double)training->split.num_held_out;
    return bsw_transport_agree(training->transport, status, err);
}

static enum bsw_status judge_epoch(struct training *training, double validation_loss,
                                   struct bsw_error *err)
{
    struct bsw_rbe_state *state = training->state;
    struct bsw_rbe_epoch epoch = {state->loss_sum / (double)training->split.num_batches,
                                  validation_loss, training->rate, 0};
    BSW_TRY(bsw_rbe_quality_auc(&training->quality, state->parameters, &epoch.roc_auc, err));
    double loss = training->split.num_held_out > 0 ? validation_loss : epoch.train_loss;
    BSW_TRY(bsw_rbe_state_end_epoch(state, &epoch, err));
    state->epochs_without_gain++;
    if (loss < state->best_loss) {
        state->best_loss = loss;
        state->best_epoch = state->epoch;
        state->epochs_without_gain = 0;
        memcpy(state->best_parameters, state->parameters, state->num_parameters * sizeof(float));
    }
    return write_checkpoint(training, err);
}

// First weights that are good already are the ones to beat.
static enum bsw_status judge_start(struct training *training, struct bsw_error *err)
{
    struct bsw_rbe_state *state = training->state;
    double loss;
    if (training->options->start == BSW_RBE_START_RANDOM || training->options->is_resumed ||
        training->split.num_held_out == 0) {
        return BSW_OK;
    }
    BSW_TRY(run_held_out(training, &loss, err));
    state->best_loss = loss;
    memcpy(state->best_parameters, state->parameters, state->num_parameters * sizeof(float));
    return BSW_OK;
}

static int is_patience_over(const struct training *training)
{
    uint64_t patience = training->options->patience;
    return patience > 0 && training->state->epochs_without_gain >= patience;
}

static enum bsw_status end_epoch(struct training *training, struct bsw_error *err)
{
    double loss;
    unsigned char is_over = 0;
    BSW_TRY(run_held_out(training, &loss, err));
    enum bsw_status status = BSW_OK;
    if (is_root(training)) {
        status = judge_epoch(training, loss, err);
        is_over = (unsigned char)is_patience_over(training);
    } else { // the curve is rank 0's
        training->state->epoch++;
        training->state->batch = 0;
    }
    BSW_TRY(bsw_transport_agree(training->transport, status, err));
    training->sequence++;
    BSW_TRY(share(training, BSW_MESSAGE_STOP, "decision", &is_over, sizeof is_over, err));
    training->is_stopped_early = is_over;
    return BSW_OK;
}

static enum bsw_status begin_epoch(struct training *training, struct bsw_error *err)
{
    const struct bsw_rbe_training_options *o = training->options;
    uint64_t epoch = training->state->epoch;
    double rate = o->rate, slope = 1;
    for (uint64_t i = 0; i < epoch; i++) {
        rate *= o->decay;
        if (o->estimator == BSW_RBE_ANNEALING) slope *= o->slope_growth;
    }
    training->rate = rate;
    training->slope = (float)slope;
    memcpy(training->order, training->split.trained,
           training->split.num_trained * sizeof *training->order);
    uint64_t seed = bsw_hash2(bsw_hash2(o->seed, SEED_ORDER), epoch);
    bsw_rbe_shuffle(seed, training->order, training->split.num_trained);
    if (!o->has_near_negatives) return BSW_OK;
    return bsw_rbe_order_cells(training->pairs, o->shapes[0].dims, epoch + 1, seed,
                               training->group_pairs, training->order, training->split.num_trained,
                               err);
}

static void show(struct training *training)
{
    const struct bsw_rbe_state *state = training->state;
    if (!is_root(training)) return;
    if (state->batch > 0)
        snprintf(training->label, sizeof training->label, "train: loss %.4f",
                 state->loss_sum / (double)state->batch);
    bsw_progress_update(&training->progress, training->num_done);
}

static int is_limit_reached(const struct training *training)
{
    uint64_t limit = training->options->most_batches;
    return limit > 0 && training->num_done >= limit;
}

static enum bsw_status run_epochs(struct training *training, struct bsw_error *err)
{
    struct bsw_rbe_state *state = training->state;
    while (state->epoch < training->options->epochs && !training->is_stopped_early &&
           !is_limit_reached(training)) {
        enum bsw_status status = begin_epoch(training, err);
        BSW_TRY(bsw_transport_agree(training->transport, status, err));
        while (state->batch < training->split.num_batches) {
            if (is_limit_reached(training)) return BSW_OK;
            BSW_TRY(run_batch(training, err));
            show(training);
        }
        BSW_TRY(end_epoch(training, err));
    }
    return BSW_OK;
}

// ---- the whole ----

static void describe(struct training *training)
{
    const struct bsw_rbe_training_options *o = training->options;
    const struct bsw_rbe_shape *q = &o->shapes[BSW_RBE_QUERY], *d = &o->shapes[BSW_RBE_DOCUMENT];
    snprintf(training->settings, sizeof training->settings,
             "ranks=%d dims=%u code-dims=%u query-steps=%u document-steps=%u shared=%d "
             "residual-weights=%d estimator=%s slope-growth=%.17g gamma=%.17g rate=%.17g "
             "decay=%.17g validation=%.17g negatives=%llu batch=%zu seed=%llu start=%d "
             "near-negatives=%d similarities=%d pairs=%llu input=%016llx trigrams=%u hashed=%d%s",
             training->transport->num_ranks, q->dims, q->code_dims, q->steps, d->steps,
             q->is_shared, q->has_residual_weights, bsw_rbe_estimator_name(o->estimator),
             o->slope_growth, o->gamma, o->rate, o->decay, o->validation,
             (unsigned long long)o->negatives, training->split.batch_pairs,
             (unsigned long long)o->seed, (int)o->start, o->has_near_negatives, o->has_similarities,
             (unsigned long long)training->pairs->num_pairs, (unsigned long long)o->input_digest,
             o->vocabulary ? o->vocabulary->num_grams : 0, o->vocabulary && !o->vocabulary->keys,
             o->has_float_queries ? " float-queries=1" : "");
}

// From principal axes on rank 0 alone, which the others get.
static enum bsw_status make_first_weights(struct training *training, struct bsw_error *err)
{
    struct bsw_rbe_state *state = training->state;
    int is_shared = training->options->start == BSW_RBE_START_PRINCIPAL;
    enum bsw_status status = BSW_OK;
    if (is_root(training) || !is_shared)
        status = bsw_rbe_first_weights(training->options, training->pairs, training->split.trained,
                                       training->split.num_trained, state->parameters, err);
    if (!is_shared) return status;
    BSW_TRY(bsw_transport_agree(training->transport, status, err));
    training->sequence++;
    return share(training, BSW_MESSAGE_PARAMETERS, "parameters", state->parameters,
                 state->num_parameters * sizeof(float), err);
}

// First weights, or where a checkpoint stands, on all ranks.
static enum bsw_status start(struct training *training, struct bsw_error *err)
{
    struct bsw_rbe_state *state = training->state;
    enum bsw_status status = BSW_OK;
    describe(training);
    BSW_TRY(make_first_weights(training, err));
    bsw_rbe_first_rates(training->options, state->parameters, training->rates);
    if (!training->options->is_resumed) return BSW_OK;
    if (is_root(training)) {
        status =
            bsw_rbe_checkpoint_read(training->options->checkpoint, training->settings, state, err);
        if (status == BSW_OK && state->batch >= training->split.num_batches)
            status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: batches do not add up",
                              training->options->checkpoint);
    }
    BSW_TRY(bsw_transport_agree(training->transport, status, err));
    uint64_t place[3] = {state->epoch, state->batch, (uint64_t)is_patience_over(training)};
    training->sequence++;
    BSW_TRY(share(training, BSW_MESSAGE_START, "place", place, sizeof place, err));
    state->epoch = place[0];
    state->batch = place[1];
    training->is_stopped_early = place[2] != 0;
    return share(training, BSW_MESSAGE_PARAMETERS, "parameters", state->parameters,
                 state->num_parameters * sizeof(float), err);
}

static enum bsw_status find_scale(struct training *training, struct bsw_error *err)
{
    for (size_t g = 0; g < SCALE_GROUPS; g++) {
        uint64_t first = bsw_part_first(training->split.num_trained, g, SCALE_GROUPS),
                 last = bsw_part_first(training->split.num_trained, g + 1, SCALE_GROUPS);
        size_t count = (size_t)(last - first);
        const struct bsw_rbe_group group = {
            .pairs = training->split.trained + first,
            .num_pairs = count < training->group_pairs ? count : training->group_pairs};
        double largest = 0;
        if (count > 0)
            BSW_TRY(bsw_rbe_group_largest_scale(
                &training->workers[0], training->state->best_parameters, &group, &largest, err));
        if (largest > training->largest_scale) training->largest_scale = largest;
    }
    return BSW_OK;
}

static enum bsw_status run(struct training *training, struct bsw_rbe_recall *recall,
                           struct bsw_error *err)
{
    struct bsw_rbe_state *state = training->state;
    const struct bsw_rbe_training_options *o = training->options;
    training->group_pairs =
        o->negatives < BSW_RBE_GROUP_PAIRS ? BSW_RBE_GROUP_PAIRS : (size_t)o->negatives + 1;
    enum bsw_status status =
        bsw_rbe_split_init(o, training->pairs, (uint64_t)training->transport->num_ranks,
                           training->group_pairs, &training->split, err);
    if (status == BSW_OK) status = allocate(training, err);
    BSW_TRY(bsw_transport_agree(training->transport, status, err));
    BSW_TRY(start(training, err));
    BSW_TRY(judge_start(training, err));
    uint64_t total = training->options->epochs * training->split.num_batches;
    uint64_t done = state->epoch * training->split.num_batches + state->batch;
    snprintf(training->label, sizeof training->label, "train");
    bsw_progress_init(&training->progress, training->label, "batches",
                      done < total ? total - done : 0,
                      training->options->is_shown && is_root(training));
    status = run_epochs(training, err);
    bsw_progress_finish(&training->progress);
    if (state->epoch == 0) {
        memcpy(state->best_parameters, state->parameters, state->num_parameters * sizeof(float));
    }
    // A checkpoint even before the first batch, so that --resume has one.
    if (status == BSW_OK && is_root(training) && state->num_updates == 0)
        status = write_checkpoint(training, err);
    BSW_TRY(bsw_transport_agree(training->transport, status, err));
    if (is_root(training) && training->options->has_similarities)
        status = find_scale(training, err);
    if (is_root(training) && status == BSW_OK)
        status = bsw_rbe_quality_recall(&training->quality, state->best_parameters, recall, err);
    if (is_root(training) && status == BSW_OK && state->best_epoch == 0)
        status = bsw_rbe_quality_auc(&training->quality, state->best_parameters,
                                     &training->first_roc_auc, err);
    return bsw_transport_agree(training->transport, status, err);
}

enum bsw_status bsw_rbe_train(const struct bsw_rbe_training_options *options,
                              const struct bsw_rbe_pairs *pairs, struct bsw_transport *transport,
                              struct bsw_rbe_training_result *out, struct bsw_error *err)
{
    *out = (struct bsw_rbe_training_result){0};
    struct training training = {
        .options = options, .pairs = pairs, .transport = transport, .state = &out->state};
    openblas_set_num_threads(1); // groups are what threads share
    enum bsw_status status = run(&training, &out->recall, err);
    out->num_trained = training.split.num_trained;
    out->num_held_out = training.split.num_held_out;
    out->is_stopped_early = training.is_stopped_early;
    out->largest_scale = training.largest_scale;
    out->first_roc_auc = training.first_roc_auc;
    deinit(&training);
    if (status != BSW_OK) bsw_rbe_state_deinit(&out->state);
    return status;
}
