// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/batch_link.h"

#include <string.h>

#include "common/base/memory.h"
#include "coordinator/search/query_source.h"

#define ALIGNMENT ((size_t)256)

static size_t aligned(size_t bytes)
{
    return bsw_align_size(bytes, ALIGNMENT);
}

// ---- bounds ----

// Payloads are in shard_service.h. A cut leaves fewer than 2 * keep survivors of a query on all
// ranks together, and of one unit no more than keep.
static size_t survivor_bytes(size_t batch, uint64_t keep, uint32_t num_units)
{
    uint64_t most = num_units < 2 ? num_units * keep : 2 * keep;
    return batch * (num_units * sizeof(uint64_t) + (size_t)most * sizeof(struct bsw_survivor));
}

static size_t most_survivor_bytes(const struct bsw_search_settings *settings,
                                  const struct bsw_assignment *assignment, int rank)
{
    uint32_t num_units = assignment->num_shards * assignment->num_slices;
    if (rank > 0) num_units = bsw_assignment_num_units(assignment, (uint32_t)rank);
    size_t bytes = survivor_bytes(settings->batch, settings->keep, num_units);
    return rank > 0 ? bytes : bytes + assignment->num_ranks * ALIGNMENT;
}

size_t bsw_batch_link_bytes(const struct bsw_manifest *manifest,
                            const struct bsw_search_settings *settings,
                            const struct bsw_assignment *assignment, int rank)
{
    return bsw_query_payload_bytes(manifest, settings->query_bits, settings->batch) +
           most_survivor_bytes(settings, assignment, rank);
}

// ---- open and close ----

static enum bsw_status allocate(struct bsw_batch_link *link, size_t query_bytes, size_t survivors,
                                struct bsw_error *err)
{
    size_t num_ranks = (size_t)link->transport->num_ranks;
    bsw_device *device = link->device;
    BSW_TRY(bsw_allocate_zero(&link->receives, num_ranks, sizeof *link->receives, "places", err));
    BSW_TRY(bsw_device_allocate(device, query_bytes, "queries of a link", &link->queries, err));
    BSW_TRY(bsw_device_allocate(device, survivors, "survivors of a link", &link->survivors, err));
    for (int i = 0; i < 2; i++)
        BSW_TRY(bsw_device_allocate_host(device, query_bytes, "queries of a link",
                                         &link->h_queries[i], err));
    return bsw_device_allocate_host(device, survivors, "survivors of a link", &link->h_survivors,
                                    err);
}

enum bsw_status bsw_batch_link_open(bsw_device_link *link, bsw_device *device,
                                    bsw_transport *transport, const struct bsw_manifest *manifest,
                                    const struct bsw_search_settings *settings,
                                    const struct bsw_assignment *assignment,
                                    struct bsw_batch_link *out, struct bsw_error *err)
{
    *out = (struct bsw_batch_link){.link = NULL};
    if (!link) return BSW_OK;
    *out = (struct bsw_batch_link){.link = link, .device = device, .transport = transport};
    enum bsw_status status =
        allocate(out, bsw_query_payload_bytes(manifest, settings->query_bits, settings->batch),
                 most_survivor_bytes(settings, assignment, transport->rank), err);
    if (status != BSW_OK) bsw_batch_link_close(out);
    return status;
}

void bsw_batch_link_close(struct bsw_batch_link *link)
{
    if (!link->link) return;
    bsw_device_free(link->device, &link->queries);
    bsw_device_free(link->device, &link->survivors);
    for (int i = 0; i < 2; i++) bsw_device_free_host(link->device, &link->h_queries[i]);
    bsw_device_free_host(link->device, &link->h_survivors);
    bsw_free(&link->receives);
    link->link = NULL;
}

// ---- transfers ----

// Other ranks have begun, or will: what fails here must reach them.
static enum bsw_status end_all(struct bsw_batch_link *link, enum bsw_status status,
                               struct bsw_error *err)
{
    if (status == BSW_OK || link->transport->broken != BSW_OK) return status;
    return bsw_transport_raise(link->transport, status, err);
}

static enum bsw_status spread(struct bsw_batch_link *link, const unsigned char *payload,
                              size_t bytes, struct bsw_error *err)
{
    static const char *const what = "queries to all ranks";
    int is_root = link->transport->rank == 0;
    unsigned char *h_queries = link->h_queries[link->turn];
    if (is_root) {
        memcpy(h_queries, payload, bytes);
        BSW_TRY(bsw_device_upload(link->device, BSW_QUEUE_LINK, link->queries.data, h_queries,
                                  bytes, err));
    }
    BSW_TRY(bsw_device_link_broadcast(link->link, link->queries.data, bytes, what, err));
    // All of it: refinement needs the vectors, and the codes are a small part beside them.
    if (!is_root)
        BSW_TRY(bsw_device_download(link->device, BSW_QUEUE_LINK, h_queries, link->queries.data,
                                    bytes, err));
    link->turn ^= 1;
    return bsw_device_link_wait(link->link, what, err);
}

enum bsw_status bsw_batch_link_spread(struct bsw_batch_link *link, const unsigned char *payload,
                                      size_t bytes, struct bsw_error *err)
{
    return end_all(link, spread(link, payload, bytes, err), err);
}

static enum bsw_status send_own(struct bsw_batch_link *link, const struct bsw_message *message,
                                const struct bsw_buffer *own, const char *what,
                                struct bsw_error *err)
{
    const struct bsw_device_transfer send = {0, link->survivors.data, own->bytes};
    const struct bsw_device_exchange exchange = {.sends = &send, .num_sends = 1};
    uint64_t bytes = own->bytes;
    if (own->bytes > link->survivors.bytes) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%zu bytes of survivors where %zu are the most",
                        own->bytes, link->survivors.bytes);
    }
    BSW_TRY(bsw_transport_send(link->transport, 0, message, &bytes, sizeof bytes, err));
    if (own->bytes == 0) return BSW_OK;
    memcpy(link->h_survivors, own->data, own->bytes);
    BSW_TRY(bsw_device_upload(link->device, BSW_QUEUE_LINK, link->survivors.data, link->h_survivors,
                              own->bytes, err));
    BSW_TRY(bsw_device_link_exchange(link->link, &exchange, what, err));
    return bsw_device_link_wait(link->link, what, err);
}

// One after the other, each at an aligned place. *total: of all.
static enum bsw_status place_all(struct bsw_batch_link *link, const struct bsw_message *message,
                                 struct bsw_buffer *payloads, size_t *total, struct bsw_error *err)
{
    *total = 0;
    for (int rank = 1; rank < link->transport->num_ranks; rank++) {
        uint64_t bytes = 0;
        BSW_TRY(bsw_transport_receive(link->transport, rank, message, &payloads[rank], NULL, err));
        if (payloads[rank].bytes == sizeof bytes) memcpy(&bytes, payloads[rank].data, sizeof bytes);
        if (payloads[rank].bytes != sizeof bytes || bytes > link->survivors.bytes ||
            aligned((size_t)bytes) > link->survivors.bytes - *total)
            return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent a size that makes no sense", rank);
        link->receives[rank] =
            (struct bsw_device_transfer){rank, link->survivors.data + *total, (size_t)bytes};
        *total += aligned((size_t)bytes);
        BSW_TRY(bsw_buffer_reserve(&payloads[rank], (size_t)bytes, err));
    }
    return BSW_OK;
}

static enum bsw_status receive_all(struct bsw_batch_link *link, const struct bsw_message *message,
                                   struct bsw_buffer *payloads, const char *what,
                                   struct bsw_error *err)
{
    size_t total;
    const struct bsw_device_exchange exchange = {
        .receives = link->receives, .num_receives = (size_t)link->transport->num_ranks};
    BSW_TRY(place_all(link, message, payloads, &total, err));
    if (total == 0) { // the sizes lie in the payloads
        for (int rank = 1; rank < link->transport->num_ranks; rank++) payloads[rank].bytes = 0;
        return BSW_OK;
    }
    BSW_TRY(bsw_device_link_exchange(link->link, &exchange, what, err));
    BSW_TRY(bsw_device_download(link->device, BSW_QUEUE_LINK, link->h_survivors,
                                link->survivors.data, total, err));
    BSW_TRY(bsw_device_link_wait(link->link, what, err));
    for (int rank = 1; rank < link->transport->num_ranks; rank++) {
        const struct bsw_device_transfer *from = &link->receives[rank];
        size_t place = (size_t)((unsigned char *)from->data - link->survivors.data);
        payloads[rank].bytes = from->bytes;
        if (from->bytes > 0) memcpy(payloads[rank].data, link->h_survivors + place, from->bytes);
    }
    return BSW_OK;
}

enum bsw_status bsw_batch_link_gather(struct bsw_batch_link *link,
                                      const struct bsw_message *message,
                                      const struct bsw_buffer *own, struct bsw_buffer *payloads,
                                      struct bsw_error *err)
{
    static const char *const what = "survivors to rank 0";
    enum bsw_status status = link->transport->rank == 0
                                 ? receive_all(link, message, payloads, what, err)
                                 : send_own(link, message, own, what, err);
    return end_all(link, status, err);
}
