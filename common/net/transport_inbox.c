// SPDX-License-Identifier: Apache-2.0
#include "common/net/transport_inbox.h"

#include <string.h>

// Up to here a payload is copied, so that the caller keeps a large buffer it may have grown for
// other messages; above, the storage changes hands.
#define COPY_BYTES ((size_t)128 * 1024)

static void free_envelope(struct bsw_envelope *envelope)
{
    bsw_buffer_deinit(&envelope->buffer);
    bsw_free(&envelope);
}

void bsw_inbox_push(struct bsw_inbox *inbox, struct bsw_envelope *envelope)
{
    envelope->next = NULL;
    if (inbox->last)
        inbox->last->next = envelope;
    else
        inbox->first = envelope;
    inbox->last = envelope;
    if (!envelope->complete) inbox->num_incomplete++;
}

enum bsw_status bsw_inbox_push_copy(struct bsw_inbox *inbox, int source,
                                    const struct bsw_message *message, const void *data,
                                    size_t bytes, struct bsw_error *err)
{
    struct bsw_envelope *envelope;
    BSW_TRY(bsw_allocate_zero(&envelope, 1, sizeof *envelope, "message", err));
    envelope->source = source;
    envelope->complete = 1;
    envelope->message = *message;
    envelope->message.name = NULL; // its text need not outlive this call
    enum bsw_status status = bsw_buffer_append(&envelope->buffer, data, bytes, err);
    if (status != BSW_OK)
        free_envelope(envelope);
    else
        bsw_inbox_push(inbox, envelope);
    return status;
}

void bsw_inbox_complete(struct bsw_inbox *inbox, struct bsw_envelope *envelope)
{
    envelope->complete = 1;
    inbox->num_incomplete--;
}

int bsw_inbox_is_blocked(const struct bsw_inbox *inbox, const struct bsw_envelope *envelope)
{
    if (inbox->num_incomplete == 0) return 0;
    const struct bsw_envelope *other = inbox->first;
    for (; other != envelope; other = other->next) {
        if (!other->complete && other->source == envelope->source) return 1;
    }
    return 0;
}

static int is_same(const struct bsw_message *a, const struct bsw_message *b)
{
    return a->kind == b->kind && a->epoch == b->epoch && a->batch == b->batch;
}

static int is_older(const struct bsw_message *queued, const struct bsw_message *expected)
{
    if ((queued->kind >= BSW_KIND_RESERVED) != (expected->kind >= BSW_KIND_RESERVED)) return 0;
    if (queued->epoch != expected->epoch) return queued->epoch < expected->epoch;
    return queued->batch < expected->batch;
}

static void unlink_after(struct bsw_inbox *inbox, struct bsw_envelope *previous,
                         struct bsw_envelope *envelope)
{
    if (previous)
        previous->next = envelope->next;
    else
        inbox->first = envelope->next;
    if (inbox->last == envelope) inbox->last = previous;
}

struct bsw_envelope *bsw_inbox_take(struct bsw_inbox *inbox, int from,
                                    const struct bsw_message *expected)
{
    struct bsw_envelope *previous = NULL, *next;
    for (struct bsw_envelope *envelope = inbox->first; envelope; envelope = next) {
        next = envelope->next;
        int from_awaited = from == BSW_ANY_RANK || from == envelope->source;
        if (envelope->complete && is_older(&envelope->message, expected)) {
            unlink_after(inbox, previous, envelope);
            free_envelope(envelope);
        } else if (envelope->complete && from_awaited && is_same(&envelope->message, expected) &&
                   !bsw_inbox_is_blocked(inbox, envelope)) {
            unlink_after(inbox, previous, envelope);
            return envelope;
        } else {
            previous = envelope;
        }
    }
    return NULL;
}

enum bsw_status bsw_envelope_deliver(struct bsw_envelope *envelope, struct bsw_buffer *data,
                                     int *source, struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    size_t bytes = envelope->buffer.bytes - envelope->offset;
    if (bytes > COPY_BYTES && envelope->offset == 0) {
        bsw_buffer_deinit(data);
        *data = envelope->buffer;
        envelope->buffer = (struct bsw_buffer){0};
    } else {
        const unsigned char *payload =
            envelope->buffer.data ? envelope->buffer.data + envelope->offset : NULL;
        data->bytes = 0;
        status = bsw_buffer_append(data, payload, bytes, err);
    }
    if (source) *source = envelope->source;
    free_envelope(envelope);
    return status;
}

enum bsw_status bsw_outcome_read(const void *data, size_t bytes, int source,
                                 struct bsw_outcome *out, struct bsw_error *err)
{
    if (bytes == sizeof *out) {
        memcpy(out, data, sizeof *out);
        out->message[sizeof out->message - 1] = '\0';
        if (out->status >= BSW_OK && out->status <= BSW_PARTIAL) return BSW_OK;
    }
    return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent an agreement that makes no sense", source);
}

enum bsw_status bsw_inbox_check_alarm(const struct bsw_inbox *inbox, struct bsw_error *err)
{
    const struct bsw_envelope *envelope = inbox->first;
    while (envelope && !(envelope->complete && envelope->message.kind == BSW_KIND_ALARM))
        envelope = envelope->next;
    if (!envelope) return BSW_OK;
    struct bsw_outcome outcome;
    BSW_TRY(bsw_outcome_read(envelope->buffer.data + envelope->offset,
                             envelope->buffer.bytes - envelope->offset, envelope->source, &outcome,
                             err));
    enum bsw_status status =
        outcome.status == BSW_OK ? BSW_ERROR_PEER : (enum bsw_status)outcome.status;
    bsw_fail(err, status, "%s", outcome.message);
    if (err) err->rank = envelope->source;
    return status;
}

void bsw_inbox_deinit(struct bsw_inbox *inbox)
{
    while (inbox->first) {
        struct bsw_envelope *envelope = inbox->first;
        inbox->first = envelope->next;
        free_envelope(envelope);
    }
    *inbox = (struct bsw_inbox){0};
}
