// SPDX-License-Identifier: Apache-2.0
// The transport of a program that runs alone. Messages to itself are queued, so that protocols need
// no special case for one rank.
#include "common/base/fault_points.h"
#include "common/net/transport.h"
#include "common/net/transport_inbox.h"

static enum bsw_status send_local(bsw_transport *transport, int to,
                                  const struct bsw_message *message, const void *data, size_t bytes,
                                  int64_t deadline_ns, struct bsw_error *err)
{
    (void)to;
    (void)deadline_ns;
    // Made here and not by init, which cannot fail.
    if (!transport->state) {
        BSW_TRY(bsw_allocate_zero(&transport->state, 1, sizeof(struct bsw_inbox), "inbox", err));
    }
    BSW_TRY(BSW_FAULT(SEND, bsw_fail(err, BSW_ERROR_PEER, "cannot send"), BSW_OK));
    return bsw_inbox_push_copy(transport->state, transport->rank, message, data, bytes, err);
}

static enum bsw_status receive_local(bsw_transport *transport, int from,
                                     const struct bsw_message *expected, struct bsw_buffer *data,
                                     int *source, int64_t deadline_ns, struct bsw_error *err)
{
    (void)deadline_ns;
    struct bsw_envelope *envelope = NULL;
    if (transport->state) envelope = bsw_inbox_take(transport->state, from, expected);
    if (envelope) return bsw_envelope_deliver(envelope, data, source, err);
    // Nobody else could still send it: waiting for the deadline would only hide the fault.
    return bsw_fail(err, BSW_ERROR_PEER,
                    "one rank, and it has not sent itself %s (kind %u) of batch %llu",
                    expected->name ? expected->name : "a message", expected->kind,
                    (unsigned long long)expected->batch);
}

static enum bsw_status poll_local(bsw_transport *transport, struct bsw_error *err)
{
    (void)transport, (void)err;
    return BSW_OK; // nobody else is there
}

static void close_local(bsw_transport *transport, int failed)
{
    (void)failed;
    if (transport->state) bsw_inbox_deinit(transport->state);
    bsw_free(&transport->state);
}

static const struct bsw_transport_ops local_ops = {"local", send_local, receive_local, poll_local,
                                                   close_local};

void bsw_transport_local_init(bsw_transport *transport)
{
    transport->ops = &local_ops;
    if (transport->timeout_seconds <= 0) transport->timeout_seconds = BSW_TIMEOUT_SECONDS;
    transport->rank = 0;
    transport->num_ranks = 1;
    transport->local_rank = 0;
    transport->num_local_ranks = 1;
    transport->host_rank = 0;
    transport->num_host_ranks = 1;
    transport->state = NULL;
}
