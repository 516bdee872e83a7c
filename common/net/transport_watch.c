// SPDX-License-Identifier: Apache-2.0
// The watch over the ranks of a transport: common/net/heartbeat.h, set up over its messages, and
// ended with it.
#include <string.h>

#include "common/net/collect.h"
#include "common/net/heartbeat.h"
#include "common/net/transport.h"

#define KIND_PLACE      (BSW_KIND_RESERVED - 1) // of no batch: it comes before all others
#define TOLD_TO_WAIT_MS 1000

static void end_process(void *context, const struct bsw_stop_cause *cause)
{
    (void)context;
    bsw_stop_for(cause);
}

static int find(void *context, struct bsw_stop_cause *cause)
{
    return bsw_heartbeat_find(context, cause);
}

static void tell(void *context, const struct bsw_error *error, int is_said)
{
    bsw_heartbeat_tell(context, error, is_said);
}

// Where rank 0 cannot listen it says so by a place without a port, and by the agreement.
static enum bsw_status meet(bsw_transport *transport, const struct bsw_heartbeat_options *options,
                            struct bsw_error *err)
{
    const struct bsw_message message = {.kind = KIND_PLACE, .name = "heartbeats"};
    struct bsw_heartbeat_place place = {0};
    enum bsw_status status = BSW_OK;
    if (transport->rank == 0)
        status = bsw_heartbeat_listen(options, &place, &transport->heartbeat, err);
    BSW_TRY(
        bsw_share_record(transport, &message, &place, sizeof place, status == BSW_OK ? err : NULL));
    if (transport->rank > 0 && place.port > 0)
        status = bsw_heartbeat_join(options, &place, &transport->heartbeat, err);
    return status;
}

enum bsw_status bsw_transport_watch(bsw_transport *transport, double limit_seconds,
                                    struct bsw_error *err)
{
    if (transport->num_ranks == 1 || limit_seconds <= 0) return BSW_OK;
    const struct bsw_heartbeat_options options = {transport->rank, transport->num_ranks,
                                                  limit_seconds, end_process, NULL};
    enum bsw_status status = meet(transport, &options, err);
    status = bsw_transport_agree(transport, status, err);
    if (status != BSW_OK) {
        bsw_transport_unwatch(transport);
        return status;
    }
    const struct bsw_stop_observer observer = {find, tell, transport->heartbeat};
    bsw_stop_set_observer(&observer);
    return BSW_OK;
}

void bsw_transport_unwatch(bsw_transport *transport)
{
    if (!transport->heartbeat) return;
    bsw_stop_set_observer(NULL);
    if (transport->broken != BSW_OK) {
        bsw_heartbeat_tell(transport->heartbeat, &transport->broken_error, 1);
        if (transport->rank > 0) bsw_heartbeat_await_close(transport->heartbeat, TOLD_TO_WAIT_MS);
    }
    bsw_heartbeat_close(&transport->heartbeat);
}
