// SPDX-License-Identifier: Apache-2.0
#include "common/net/collect.h"

#include <string.h>

enum bsw_status bsw_collect(bsw_transport *transport, const struct bsw_message *message,
                            const void *own, size_t bytes, bsw_collect_take *take, void *context,
                            struct bsw_error *err)
{
    struct bsw_buffer payload = {0};
    enum bsw_status status = BSW_OK;
    if (transport->rank != 0) return bsw_transport_send(transport, 0, message, own, bytes, err);
    // Also after a failure of take: what was left would be taken for messages of a call to come.
    for (int rank = 1; rank < transport->num_ranks; rank++) {
        struct bsw_error *where = status == BSW_OK ? err : NULL;
        enum bsw_status got =
            bsw_transport_receive(transport, rank, message, &payload, NULL, where);
        if (status == BSW_OK) status = got;
        if (got != BSW_OK) break;
        if (status == BSW_OK) status = take(context, rank, &payload, err);
    }
    bsw_buffer_deinit(&payload);
    return status;
}

struct records {
    unsigned char *all;
    size_t bytes;
    const char *name;
};

static enum bsw_status take_record(void *context, int rank, const struct bsw_buffer *payload,
                                   struct bsw_error *err)
{
    const struct records *records = context;
    if (payload->bytes != records->bytes)
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes of %s, not %zu", rank,
                        payload->bytes, records->name, records->bytes);
    memcpy(records->all + (size_t)rank * records->bytes, payload->data, records->bytes);
    return BSW_OK;
}

enum bsw_status bsw_collect_records(bsw_transport *transport, const struct bsw_message *message,
                                    const void *own, size_t bytes, void *all, struct bsw_error *err)
{
    struct records records = {all, bytes, message->name ? message->name : "a message"};
    if (transport->rank == 0) memcpy(all, own, bytes);
    return bsw_collect(transport, message, own, bytes, take_record, &records, err);
}

enum bsw_status bsw_collect_buffers(bsw_transport *transport, const struct bsw_message *message,
                                    const struct bsw_buffer *own, struct bsw_buffer *payloads,
                                    struct bsw_error *err)
{
    if (transport->rank != 0)
        return bsw_transport_send(transport, 0, message, own->data, own->bytes, err);
    for (int rank = 1; rank < transport->num_ranks; rank++)
        BSW_TRY(bsw_transport_receive(transport, rank, message, &payloads[rank], NULL, err));
    return BSW_OK;
}

enum bsw_status bsw_share_record(bsw_transport *transport, const struct bsw_message *message,
                                 void *data, size_t bytes, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    enum bsw_status status = BSW_OK;
    if (transport->num_ranks == 1) return BSW_OK;
    if (transport->rank == 0) status = bsw_buffer_append(&buffer, data, bytes, err);
    if (status == BSW_OK) status = bsw_transport_broadcast(transport, message, &buffer, err);
    if (status == BSW_OK && buffer.bytes != bytes)
        status = bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent %zu bytes of %s, not %zu", buffer.bytes,
                          message->name, bytes);
    if (status == BSW_OK && transport->rank != 0) memcpy(data, buffer.data, bytes);
    bsw_buffer_deinit(&buffer);
    return status;
}
