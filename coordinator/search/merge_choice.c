// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/merge_choice.h"

#include "common/net/message_kinds.h"
#include "common/net/transport.h"

// A rank's candidates take this part of its device's memory at most.
#define CANDIDATES_PART 4

static void choose_host(enum bsw_search_merge asked, uint32_t num_ranks,
                        struct bsw_search_settings *settings)
{
    settings->merge_place = BSW_MERGE_ON_HOST;
    settings->is_ladder = bsw_search_is_ladder(asked, (int)num_ranks);
}

// One shard has nothing to merge.
void bsw_merge_place_choose(enum bsw_search_merge asked, int has_devices,
                            const struct bsw_assignment *assignment,
                            struct bsw_search_settings *settings)
{
    uint32_t num_ranks = assignment->num_ranks;
    int is_gather = asked == BSW_MERGE_GATHER || (asked == BSW_MERGE_AUTO && num_ranks == 1);
    choose_host(asked, num_ranks, settings);
    if (!has_devices || asked == BSW_MERGE_LADDER) return;
    if (asked != BSW_MERGE_EXCHANGE && num_ranks == 1 && assignment->num_shards == 1) return;
    settings->merge_place = is_gather ? BSW_MERGE_ON_DEVICE : BSW_MERGE_ON_ALL_DEVICES;
    settings->is_ladder = 0;
}

// Whether an index with lists has no codes that would come in blocks but for a merge.
static int has_room_for_lists(const struct bsw_manifest *manifest,
                              const struct bsw_search_settings *settings,
                              const struct bsw_assignment *assignment, uint32_t rank,
                              size_t free_bytes)
{
    const struct bsw_device_merge_needs needs = bsw_merge_needs(manifest, assignment, settings);
    struct bsw_search_settings on_host = *settings;
    struct bsw_device_merge_plan plan;
    struct bsw_memory_forecast with, without;
    struct bsw_error unsaid;
    int num_ranks = (int)assignment->num_ranks;
    bsw_device_merge_plan_make(&needs, rank, free_bytes, &plan);
    if (plan.group_queries == 0) return 1; // bsw_merge_fits finds that
    on_host.merge_place = BSW_MERGE_ON_HOST;
    if (bsw_shard_service_plan(manifest, settings, (int)rank, num_ranks, free_bytes - plan.bytes,
                               &with, &unsaid) != BSW_OK)
        return 0;
    if (with.streamed_bytes == 0) return 1;
    return bsw_shard_service_plan(manifest, &on_host, (int)rank, num_ranks, free_bytes, &without,
                                  &unsaid) == BSW_OK &&
           without.streamed_bytes > 0;
}

size_t bsw_merge_room(const struct bsw_manifest *manifest,
                      const struct bsw_search_settings *settings,
                      const struct bsw_assignment *assignment, uint32_t rank, size_t free_bytes)
{
    const struct bsw_span_rule rule = bsw_span_rule_of(manifest, assignment, settings);
    uint64_t lists = (uint64_t)settings->batch * bsw_num_rank_spans(&rule, rank);
    uint64_t most = free_bytes / CANDIDATES_PART / sizeof(uint64_t);
    if (lists > 0 && settings->keep > most / lists) return 0;
    if (manifest->lists.count == 0 || settings->merge_place == BSW_MERGE_ON_HOST) return free_bytes;
    return has_room_for_lists(manifest, settings, assignment, rank, free_bytes) ? free_bytes : 0;
}

int bsw_merge_fits(const struct bsw_manifest *manifest, const struct bsw_assignment *assignment,
                   enum bsw_search_merge asked, size_t room, struct bsw_search_settings *settings)
{
    const struct bsw_device_merge_needs needs = bsw_merge_needs(manifest, assignment, settings);
    struct bsw_device_merge_plan plan;
    bsw_device_merge_plan_make(&needs, 0, room, &plan);
    if (plan.group_queries > 0) return 1;
    choose_host(asked, assignment->num_ranks, settings);
    return 0;
}

// The least that a rank has.
static enum bsw_status find_least(bsw_transport *transport, bsw_device *device,
                                  const struct bsw_manifest *manifest,
                                  const struct bsw_assignment *assignment,
                                  const struct bsw_search_settings *settings, size_t *room,
                                  struct bsw_error *err)
{
    struct bsw_message message = {.kind = BSW_MESSAGE_DEVICE_MEMORY, .name = "memory of a device"};
    uint64_t least = 0, *all = NULL;
    size_t num_ranks = (size_t)transport->num_ranks;
    enum bsw_status status = bsw_device_free_bytes(device, room, err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&all, num_ranks, sizeof *all, "memory of devices", err);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK) {
        least = bsw_merge_room(manifest, settings, assignment, (uint32_t)transport->rank, *room);
        status = bsw_collect_records(transport, &message, &least, sizeof least, all, err);
        for (size_t rank = 0; rank < num_ranks && transport->rank == 0; rank++)
            least = all[rank] < least ? all[rank] : least;
        status = bsw_transport_agree(transport, status, err);
    }
    bsw_free(&all);
    if (status == BSW_OK) status = bsw_share_record(transport, &message, &least, sizeof least, err);
    *room = (size_t)least;
    return status;
}

enum bsw_status bsw_merge_choose(bsw_transport *transport, bsw_device *device,
                                 const bsw_device_link *link, const char *link_note,
                                 const struct bsw_manifest *manifest,
                                 const struct bsw_assignment *assignment,
                                 enum bsw_search_merge asked, struct bsw_search_settings *settings,
                                 size_t *room, struct bsw_error *err)
{
    int is_alone = transport->num_ranks == 1,
        has_devices = is_alone ? device != NULL : link != NULL;
    *room = 0;
    bsw_merge_place_choose(asked, has_devices, assignment, settings);
    if (asked == BSW_MERGE_EXCHANGE && !has_devices)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--merge exchange wants GPUs on all ranks that NCCL links: %s",
                        is_alone ? "there is none" : link_note);
    if (settings->merge_place == BSW_MERGE_ON_HOST) return BSW_OK;
    BSW_TRY(find_least(transport, device, manifest, assignment, settings, room, err));
    if (bsw_merge_fits(manifest, assignment, asked, *room, settings) || asked != BSW_MERGE_EXCHANGE)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--merge exchange: a GPU has too little memory for %llu candidates of %zu "
                    "queries%s: ask for fewer (--k, --oversample, --batch) or --merge ladder",
                    (unsigned long long)settings->keep, settings->batch,
                    manifest->lists.count > 0 ? " beside the codes of an index with lists" : "");
}
