// SPDX-License-Identifier: Apache-2.0
// Where a training of rbe stands, in memory and in a file: what is needed to go on and reach, on
// the same machine, the weights of a training that was never interrupted, bit for bit.
#ifndef BITSWEEP_COORDINATOR_RBE_CHECKPOINT_H
#define BITSWEEP_COORDINATOR_RBE_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"

#define BSW_RBE_MAX_EPOCHS     100000
#define BSW_RBE_SETTINGS_BYTES 1024

struct bsw_rbe_epoch {
    double train_loss, validation_loss, rate; // validation_loss 0: none
    double roc_auc;                           // rbe_quality.h; 0: nothing is held out
};

// Arrays of num_parameters: those of both sides, the query's first. One allocation.
struct bsw_rbe_state {
    size_t num_parameters;
    float *parameters, *best_parameters, *first_moments, *second_moments;
    uint64_t epoch, batch; // the next batch; epochs count from 0
    uint64_t num_updates;
    uint64_t best_epoch; // epochs that best_parameters have seen; 0: none is finished
    uint64_t epochs_without_gain;
    double best_loss;             // of validation, or of training without one; HUGE_VAL: none yet
    double loss_sum;              // over this epoch's batches so far
    struct bsw_rbe_epoch *epochs; // [epoch], the finished ones, in curve
    struct bsw_buffer curve;      // owned, as the arrays
};

// All numbers 0.
enum bsw_status bsw_rbe_state_init(size_t num_parameters, struct bsw_rbe_state *out,
                                   struct bsw_error *err);
void bsw_rbe_state_deinit(struct bsw_rbe_state *state);

// A step of Adam: gradient and rates [num_parameters], which `rate` is multiplied by.
void bsw_rbe_state_update(struct bsw_rbe_state *state, const float *gradient, const float *rates,
                          double rate);

// Ends an epoch in the curve: epochs[epoch++], batch 0.
enum bsw_status bsw_rbe_state_end_epoch(struct bsw_rbe_state *state,
                                        const struct bsw_rbe_epoch *epoch, struct bsw_error *err);

// settings: words NAME=VALUE of all that the weights depend on besides; reading compares them and
// names the first that differs. Writing is atomic.
enum bsw_status bsw_rbe_checkpoint_write(const char *path, const char *settings,
                                         const struct bsw_rbe_state *state, struct bsw_error *err);

// From memory, into a state of the same num_parameters; name: for messages. Damaged content is
// BSW_ERROR_BAD_DATA, other settings BSW_ERROR_USAGE.
enum bsw_status bsw_rbe_checkpoint_parse(const char *name, const void *data, size_t bytes,
                                         const char *settings, struct bsw_rbe_state *state,
                                         struct bsw_error *err);
// The same of a file; a missing one is BSW_ERROR_IO.
enum bsw_status bsw_rbe_checkpoint_read(const char *path, const char *settings,
                                        struct bsw_rbe_state *state, struct bsw_error *err);

#endif
