// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/rbe_checkpoint.h"

#include <math.h>
#include <string.h>

#include "bitsweep.pb-c.h"
#include "common/base/file.h"
#include "common/files/sealed_message.h"

#define CHECKPOINT_VERSION 1
// Room for settings, numbers and BSW_RBE_MAX_EPOCHS epochs, beside the arrays.
#define CHECKPOINT_FRAME_BYTES ((uint64_t)4 << 20)

#define ADAM_BETA1             0.9
#define ADAM_BETA2             0.999
#define ADAM_EPSILON           1e-8f

enum { NUM_ARRAYS = 4 };

// ---- the state ----

enum bsw_status bsw_rbe_state_init(size_t num_parameters, struct bsw_rbe_state *out,
                                   struct bsw_error *err)
{
    *out = (struct bsw_rbe_state){.num_parameters = num_parameters, .best_loss = HUGE_VAL};
    BSW_TRY(bsw_allocate_zero(&out->parameters, num_parameters, NUM_ARRAYS * sizeof(float),
                              "training", err));
    out->best_parameters = out->parameters + num_parameters;
    out->first_moments = out->best_parameters + num_parameters;
    out->second_moments = out->first_moments + num_parameters;
    return BSW_OK;
}

void bsw_rbe_state_deinit(struct bsw_rbe_state *state)
{
    bsw_free(&state->parameters);
    bsw_buffer_deinit(&state->curve);
}

static enum bsw_status add_epoch(struct bsw_rbe_state *state, const struct bsw_rbe_epoch *epoch,
                                 struct bsw_error *err)
{
    BSW_TRY(bsw_buffer_append(&state->curve, epoch, sizeof *epoch, err));
    state->epochs = (struct bsw_rbe_epoch *)(void *)state->curve.data;
    return BSW_OK;
}

enum bsw_status bsw_rbe_state_end_epoch(struct bsw_rbe_state *state,
                                        const struct bsw_rbe_epoch *epoch, struct bsw_error *err)
{
    BSW_TRY(add_epoch(state, epoch, err));
    state->epoch++;
    state->batch = 0;
    state->loss_sum = 0;
    return BSW_OK;
}

void bsw_rbe_state_update(struct bsw_rbe_state *state, const float *gradient, const float *rates,
                          double rate)
{
    double t = (double)++state->num_updates;
    float step = (float)(rate * sqrt(1 - pow(ADAM_BETA2, t)) / (1 - pow(ADAM_BETA1, t)));
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < state->num_parameters; i++) {
        float g = gradient[i], *m = &state->first_moments[i], *v = &state->second_moments[i];
        *m = (float)ADAM_BETA1 * *m + (float)(1 - ADAM_BETA1) * g;
        *v = (float)ADAM_BETA2 * *v + (float)(1 - ADAM_BETA2) * g * g;
        state->parameters[i] -= step * rates[i] * *m / (sqrtf(*v) + ADAM_EPSILON);
    }
}

// ---- writing ----

static void fill_arrays(const struct bsw_rbe_state *state, Bsw__RbeCheckpoint *message)
{
    ProtobufCBinaryData *fields[NUM_ARRAYS] = {&message->parameters, &message->best_parameters,
                                               &message->first_moments, &message->second_moments};
    for (size_t i = 0; i < NUM_ARRAYS; i++) {
        fields[i]->data = (uint8_t *)(state->parameters + i * state->num_parameters);
        fields[i]->len = state->num_parameters * sizeof(float);
    }
}

static void fill_message(const char *settings, const struct bsw_rbe_state *state,
                         Bsw__RbeCheckpoint *message)
{
    bsw__rbe_checkpoint__init(message);
    message->format_version = CHECKPOINT_VERSION;
    message->settings = (char *)settings;
    message->epoch = state->epoch;
    message->batch = state->batch;
    message->num_updates = state->num_updates;
    message->epochs_without_gain = state->epochs_without_gain;
    message->best_epoch = state->best_epoch;
    message->best_loss = state->best_loss;
    message->loss_sum = state->loss_sum;
    fill_arrays(state, message);
}

enum bsw_status bsw_rbe_checkpoint_write(const char *path, const char *settings,
                                         const struct bsw_rbe_state *state, struct bsw_error *err)
{
    Bsw__RbeCheckpoint message;
    Bsw__RbeEpoch *epochs = NULL, **pointers = NULL;
    struct bsw_buffer buffer = {0};
    size_t count = (size_t)state->epoch;
    fill_message(settings, state, &message);
    enum bsw_status status = bsw_allocate(&epochs, count, sizeof *epochs, "checkpoint", err);
    if (status == BSW_OK)
        status = bsw_allocate(&pointers, count, sizeof *pointers, "checkpoint", err);
    for (size_t i = 0; i < count && status == BSW_OK; i++) {
        bsw__rbe_epoch__init(&epochs[i]);
        epochs[i].train_loss = state->epochs[i].train_loss;
        epochs[i].validation_loss = state->epochs[i].validation_loss;
        epochs[i].rate = state->epochs[i].rate;
        epochs[i].roc_auc = state->epochs[i].roc_auc;
        pointers[i] = &epochs[i];
    }
    message.n_epochs = count;
    message.epochs = pointers;
    if (status == BSW_OK) status = bsw_message_pack(&message.base, &buffer, err);
    if (status == BSW_OK) status = bsw_message_seal(&buffer, NULL, err);
    if (status == BSW_OK) status = bsw_file_write_output(path, buffer.data, buffer.bytes, err);
    bsw_buffer_deinit(&buffer);
    bsw_free(&epochs);
    bsw_free(&pointers);
    return status;
}

// ---- reading ----

static enum bsw_status bad(const char *path, const char *what, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", path, what);
}

// Names the first word that differs.
static enum bsw_status check_settings(const char *path, const char *theirs, const char *ours,
                                      struct bsw_error *err)
{
    size_t word = 0;
    for (size_t i = 0; theirs[i] == ours[i]; i++) {
        if (ours[i] == '\0') return BSW_OK;
        if (ours[i] == ' ') word = i + 1;
    }
    int their_length = (int)strcspn(theirs + word, " "),
        our_length = (int)strcspn(ours + word, " ");
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: checkpoint of another training: %.*s there, %.*s here", path, their_length,
                    theirs + word, our_length, ours + word);
}

static enum bsw_status take_arrays(const char *path, const Bsw__RbeCheckpoint *message,
                                   struct bsw_rbe_state *state, struct bsw_error *err)
{
    const ProtobufCBinaryData *fields[NUM_ARRAYS] = {
        &message->parameters, &message->best_parameters, &message->first_moments,
        &message->second_moments};
    for (size_t i = 0; i < NUM_ARRAYS; i++) {
        if (fields[i]->len != state->num_parameters * sizeof(float))
            return bad(path, "the arrays do not fit the model", err);
        memcpy(state->parameters + i * state->num_parameters, fields[i]->data, fields[i]->len);
    }
    for (size_t i = 0; i < NUM_ARRAYS * state->num_parameters; i++) {
        if (!isfinite(state->parameters[i])) return bad(path, "numbers that are not finite", err);
    }
    return BSW_OK;
}

static enum bsw_status take_message(const char *path, const char *settings,
                                    const Bsw__RbeCheckpoint *message, struct bsw_rbe_state *state,
                                    struct bsw_error *err)
{
    if (message->format_version != CHECKPOINT_VERSION) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: checkpoint of format version %u, this program reads %d", path,
                        message->format_version, CHECKPOINT_VERSION);
    }
    BSW_TRY(check_settings(path, message->settings, settings, err));
    if (message->epoch > BSW_RBE_MAX_EPOCHS || message->n_epochs != message->epoch ||
        message->best_epoch > message->epoch) {
        return bad(path, "epochs do not add up", err);
    }
    BSW_TRY(take_arrays(path, message, state, err));
    state->curve.bytes = 0;
    for (size_t i = 0; i < message->n_epochs; i++) {
        const Bsw__RbeEpoch *read = message->epochs[i];
        const struct bsw_rbe_epoch epoch = {read->train_loss, read->validation_loss, read->rate,
                                            read->roc_auc};
        BSW_TRY(add_epoch(state, &epoch, err));
    }
    state->epoch = message->epoch;
    state->batch = message->batch;
    state->num_updates = message->num_updates;
    state->epochs_without_gain = message->epochs_without_gain;
    state->best_epoch = message->best_epoch;
    state->best_loss = message->best_loss;
    state->loss_sum = message->loss_sum;
    return BSW_OK;
}

enum bsw_status bsw_rbe_checkpoint_parse(const char *name, const void *data, size_t bytes,
                                         const char *settings, struct bsw_rbe_state *state,
                                         struct bsw_error *err)
{
    BSW_TRY(bsw_message_check_seal(name, "checkpoint", data, bytes, NULL, err));
    Bsw__RbeCheckpoint *message;
    BSW_TRY(bsw_message_unpack(&bsw__rbe_checkpoint__descriptor, name, "checkpoint", data, bytes,
                               &message, err));
    enum bsw_status status = take_message(name, settings, message, state, err);
    bsw_message_free(message);
    return status;
}

enum bsw_status bsw_rbe_checkpoint_read(const char *path, const char *settings,
                                        struct bsw_rbe_state *state, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    uint64_t most = NUM_ARRAYS * sizeof(float) * state->num_parameters + CHECKPOINT_FRAME_BYTES;
    enum bsw_status status = bsw_file_read_all(path, most, &buffer, err);
    if (status == BSW_OK)
        status = bsw_rbe_checkpoint_parse(path, buffer.data, buffer.bytes, settings, state, err);
    bsw_buffer_deinit(&buffer);
    return status;
}
