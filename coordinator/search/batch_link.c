// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/batch_link.h"

#include <string.h>

#include "coordinator/search/query_source.h"

size_t bsw_batch_link_bytes(const struct bsw_manifest *manifest,
                            const struct bsw_search_settings *settings)
{
    return 2 * bsw_query_payload_bytes(manifest, settings->query_bits, settings->batch);
}

// ---- open and close ----

static enum bsw_status allocate(struct bsw_batch_link *link, size_t query_bytes,
                                struct bsw_error *err)
{
    bsw_device *device = link->device;
    for (int i = 0; i < 2; i++) {
        BSW_TRY(
            bsw_device_allocate(device, query_bytes, "queries of a link", &link->queries[i], err));
        BSW_TRY(bsw_device_allocate_host(device, query_bytes, "queries of a link",
                                         &link->h_queries[i], err));
    }
    return BSW_OK;
}

enum bsw_status bsw_batch_link_open(bsw_device_link *link, bsw_device *device,
                                    bsw_transport *transport, const struct bsw_manifest *manifest,
                                    const struct bsw_search_settings *settings,
                                    struct bsw_batch_link *out, struct bsw_error *err)
{
    *out = (struct bsw_batch_link){.link = NULL};
    if (!link) return BSW_OK;
    *out = (struct bsw_batch_link){.link = link, .device = device, .transport = transport};
    enum bsw_status status = allocate(out, bsw_batch_link_bytes(manifest, settings) / 2, err);
    if (status != BSW_OK) bsw_batch_link_close(out);
    return status;
}

void bsw_batch_link_close(struct bsw_batch_link *link)
{
    if (!link->link) return;
    for (int i = 0; i < 2; i++) {
        bsw_device_free(link->device, &link->queries[i]);
        bsw_device_free_host(link->device, &link->h_queries[i]);
    }
    link->link = NULL;
}

// ---- transfers ----

static enum bsw_status spread(struct bsw_batch_link *link, const unsigned char *payload,
                              size_t bytes, struct bsw_error *err)
{
    static const char *const what = "queries to all ranks";
    int is_root = link->transport->rank == 0;
    const struct bsw_device_buffer *queries = &link->queries[link->turn];
    unsigned char *h_queries = link->h_queries[link->turn];
    if (is_root) {
        memcpy(h_queries, payload, bytes);
        BSW_TRY(
            bsw_device_upload(link->device, BSW_QUEUE_LINK, queries->data, h_queries, bytes, err));
    }
    BSW_TRY(bsw_device_link_broadcast(link->link, queries->data, bytes, what, err));
    // All of it: refinement needs the vectors, and the codes are a small part beside them.
    if (!is_root)
        BSW_TRY(bsw_device_download(link->device, BSW_QUEUE_LINK, h_queries, queries->data, bytes,
                                    err));
    link->turn ^= 1;
    return bsw_device_link_wait(link->link, what, err);
}

enum bsw_status bsw_batch_link_spread(struct bsw_batch_link *link, const unsigned char *payload,
                                      size_t bytes, struct bsw_error *err)
{
    enum bsw_status status = spread(link, payload, bytes, err);
    if (status == BSW_OK || link->transport->broken != BSW_OK) return status;
    // Other ranks have begun, or will: what fails here must reach them.
    return bsw_transport_raise(link->transport, status, err);
}
