// SPDX-License-Identifier: Apache-2.0
#include "bench/report/rank_group.h"

#include <string.h>

#include "common/net/message_kinds.h"

// What members have counted, for those who waited.
struct counts {
    uint64_t num_agreements, batch;
};

void bsw_rank_group_begin(struct bsw_rank_group *group, int num_ranks)
{
    group->ranks = *group->whole;
    group->ranks.num_ranks = num_ranks;
    group->first_batch = ++group->batch;
}

static enum bsw_status release(struct bsw_rank_group *group, const struct bsw_message *message,
                               struct bsw_error *err)
{
    const struct counts counts = {group->ranks.num_agreements, group->batch};
    for (int rank = group->ranks.num_ranks; rank < group->whole->num_ranks; rank++)
        BSW_TRY(bsw_transport_send(group->whole, rank, message, &counts, sizeof counts, err));
    return BSW_OK;
}

static enum bsw_status await_release(struct bsw_rank_group *group,
                                     const struct bsw_message *message, struct bsw_error *err)
{
    struct bsw_buffer data = {0};
    struct counts counts;
    enum bsw_status status = bsw_transport_receive(group->whole, 0, message, &data, NULL, err);
    if (status == BSW_OK && data.bytes != sizeof counts)
        status = bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent counts of a wrong size");
    if (status == BSW_OK) {
        memcpy(&counts, data.data, sizeof counts);
        group->whole->num_agreements = counts.num_agreements;
        group->batch = counts.batch;
    }
    bsw_buffer_deinit(&data);
    return status;
}

enum bsw_status bsw_own_status(const bsw_transport *transport, enum bsw_status status,
                               const struct bsw_error *err)
{
    if (transport->broken != BSW_OK || !err || err->rank < 0) return status;
    return err->rank == transport->rank ? status : BSW_OK;
}

enum bsw_status bsw_rank_group_end(struct bsw_rank_group *group, enum bsw_status status,
                                   struct bsw_error *err)
{
    bsw_transport *whole = group->whole;
    const struct bsw_message message = {
        .kind = BSW_MESSAGE_BENCH_END, .batch = group->first_batch, .name = "the end of a group"};
    if (!bsw_rank_group_is_member(group))
        return bsw_transport_agree(whole, await_release(group, &message, err), err);
    whole->num_agreements = group->ranks.num_agreements;
    whole->broken = group->ranks.broken;
    whole->broken_error = group->ranks.broken_error;
    if (whole->broken != BSW_OK) return status != BSW_OK ? status : whole->broken;
    status = bsw_own_status(whole, status, err);
    if (whole->rank == 0) {
        struct bsw_error unsent;
        enum bsw_status released = release(group, &message, &unsent);
        if (status == BSW_OK && released != BSW_OK) {
            status = released;
            if (err) *err = unsent;
        }
    }
    return bsw_transport_agree(whole, status, err);
}
