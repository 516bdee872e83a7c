// SPDX-License-Identifier: Apache-2.0
// Messages of one rank that have arrived, or are arriving, and are not yet asked for.
//
// Shared by the back ends of the transport. Lengths stay short (what a few ranks send ahead), so a
// list that is walked from the front does. Not thread-safe.
#ifndef BITSWEEP_COMMON_TRANSPORT_INBOX_H
#define BITSWEEP_COMMON_TRANSPORT_INBOX_H

#include "common/net/transport.h"

// What a rank reports of itself in an agreement or alarm: all of it travels, padding-free, so that
// no stack bytes leave the process.
struct bsw_outcome {
    int32_t status;
    int32_t rank;
    char message[BSW_ERROR_MESSAGE_BYTES];
};

// A rank that cannot go on, with its outcome. Of no batch, so that it never gets too old.
#define BSW_KIND_ALARM  (BSW_KIND_RESERVED + 2)
#define BSW_ALARM_BATCH UINT64_MAX

// One message. A back end may put it first in a larger object made by bsw_allocate.
struct bsw_envelope {
    struct bsw_envelope *next;
    int source;
    int complete; // 0 while bytes are still to come: message and buffer are not valid yet
    struct bsw_message message;
    struct bsw_buffer buffer;
    size_t offset; // where the payload starts in the buffer
};

struct bsw_inbox {
    struct bsw_envelope *first;
    struct bsw_envelope *last;
    size_t num_incomplete;
};

// Takes ownership of the envelope. Order of calls is the order of arrival.
void bsw_inbox_push(struct bsw_inbox *inbox, struct bsw_envelope *envelope);

// Copies a message a rank sends to itself.
enum bsw_status bsw_inbox_push_copy(struct bsw_inbox *inbox, int source,
                                    const struct bsw_message *message, const void *data,
                                    size_t bytes, struct bsw_error *err);

// An envelope that was incomplete has all its bytes now.
void bsw_inbox_complete(struct bsw_inbox *inbox, struct bsw_envelope *envelope);

// 1 if a message of the same sender that came before this one is still incomplete.
int bsw_inbox_is_blocked(const struct bsw_inbox *inbox, const struct bsw_envelope *envelope);

// Unlinks the first complete message from `from` (or BSW_ANY_RANK) of the expected kind, epoch and
// batch and gives it to the caller; NULL if there is none. Messages of older batches are freed.
struct bsw_envelope *bsw_inbox_take(struct bsw_inbox *inbox, int from,
                                    const struct bsw_message *expected);

// Moves the payload into *data, the sender into *source (may be NULL), and frees the envelope, also
// on failure.
enum bsw_status bsw_envelope_deliver(struct bsw_envelope *envelope, struct bsw_buffer *data,
                                     int *source, struct bsw_error *err);

// Reads bytes from `source` as an outcome; BSW_ERROR_PEER if they are none.
enum bsw_status bsw_outcome_read(const void *data, size_t bytes, int source,
                                 struct bsw_outcome *out, struct bsw_error *err);

// The error of the first alarm that has arrived, with the rank it is of; ok where there is none.
// Alarms stay in the inbox.
enum bsw_status bsw_inbox_check_alarm(const struct bsw_inbox *inbox, struct bsw_error *err);

void bsw_inbox_deinit(struct bsw_inbox *inbox);

#endif
