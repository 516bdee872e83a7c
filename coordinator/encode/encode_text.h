// SPDX-License-Identifier: Apache-2.0
// An index of text: which model makes its rows, and what that leaves to the index.
#ifndef BITSWEEP_COORDINATOR_ENCODE_TEXT_H
#define BITSWEEP_COORDINATOR_ENCODE_TEXT_H

#include "coordinator/encode/encode_index.h"
#include "coordinator/job/text_model.h"

// {0}: base is no text.
struct bsw_encode_text {
    const char *path; // the settings' model, borrowed
    struct bsw_text_model model;
    struct bsw_buffer bytes; // the model's file on rank 0, for the index of a codec without its own
};

// Where settings' base is text: takes its model out of the settings of a codec that has none of its
// own. Rows lie nowhere, so that they are copied; unless codes were learned with the text: then
// rows are worth no more than codes, and nothing is to be measured against them.
enum bsw_status bsw_encode_text_settle(struct bsw_encode_text *text,
                                       struct bsw_encode_settings *settings, struct bsw_error *err);
// Lends the model, before base is opened. bsw_encode_text_close ends it, after base is closed.
enum bsw_status bsw_encode_text_open(struct bsw_encode_text *text,
                                     const struct bsw_encode_settings *settings, int rank,
                                     struct bsw_error *err);
void bsw_encode_text_close(struct bsw_encode_text *text);

#endif
