// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/batch_masks.h"

#include "common/net/message_kinds.h"
#include "common/net/transport.h"

static enum bsw_filter_kind filter_kind(const struct bsw_batch_search *search)
{
    return search->filter ? search->filter->kind : BSW_FILTER_NONE;
}

enum bsw_status bsw_batch_masks_pack(struct bsw_batch_search *search,
                                     struct bsw_search_batch *batch, struct bsw_error *err)
{
    batch->order.bytes = 0;
    search->queries->order = NULL;
    if (filter_kind(search) != BSW_FILTER_EACH) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&batch->order, batch->count * sizeof(uint32_t), err));
    uint32_t *order = (uint32_t *)(void *)batch->order.data;
    BSW_TRY(bsw_batch_filter_pack(search->filter, batch->first, batch->count, order, &batch->masks,
                                  err));
    batch->order.bytes = batch->count * sizeof(uint32_t);
    search->queries->order = order;
    return BSW_OK;
}

static enum bsw_status spread_masks(struct bsw_batch_search *search, struct bsw_buffer *masks,
                                    struct bsw_batch_work *work, struct bsw_error *err)
{
    const struct bsw_message message = {
        .kind = BSW_MESSAGE_FILTER, .batch = search->num_batches, .name = "masks of rows"};
    enum bsw_filter_kind kind = filter_kind(search);
    work->queries.filter = kind == BSW_FILTER_ONE    ? &search->filter->one
                           : kind == BSW_FILTER_EACH ? &work->filter
                                                     : NULL;
    if (kind != BSW_FILTER_EACH) return BSW_OK;
    BSW_TRY(bsw_transport_broadcast(search->transport, &message, masks, err));
    search->exchanges[BSW_EXCHANGE_QUERIES].bytes +=
        (uint64_t)masks->bytes * (uint64_t)(search->transport->num_ranks - 1);
    return bsw_batch_filter_parse(search->filter, masks, work->queries.num_queries, &work->filter,
                                  err);
}

void bsw_batch_masks_spread(struct bsw_batch_search *search, struct bsw_buffer *masks,
                            struct bsw_batch_work *work)
{
    struct bsw_error err;
    enum bsw_status status = spread_masks(search, masks, work, &err);
    if (status == BSW_OK || work->status != BSW_OK) return;
    work->status = status;
    work->error = err;
}
