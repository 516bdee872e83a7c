// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/memory_forecast.h"

#include "coordinator/search/batch_link.h"
#include "coordinator/search/merge_choice.h"

// Forecasts the link of each rank; then where candidates meet, and with what memory.
static void forecast_merge(const struct bsw_manifest *manifest,
                           const struct bsw_search_outlook *outlook,
                           const struct bsw_assignment *assignment,
                           struct bsw_search_settings *settings, struct bsw_search_forecast *out)
{
    size_t least = SIZE_MAX;
    int is_alone = outlook->num_ranks == 1;
    bsw_merge_place_choose(outlook->merge, outlook->is_linked || is_alone, assignment, settings);
    for (int rank = 0; rank < outlook->num_ranks; rank++) {
        size_t left = outlook->free_bytes[rank];
        out[rank] = (struct bsw_search_forecast){.link_bytes = 0};
        if (outlook->is_linked && !is_alone)
            out[rank].link_bytes = bsw_batch_link_bytes(manifest, settings);
        left = left > out[rank].link_bytes ? left - out[rank].link_bytes : 0;
        left = bsw_merge_room(manifest, settings, assignment, (uint32_t)rank, left);
        least = left < least ? left : least;
    }
    if (settings->merge_place == BSW_MERGE_ON_HOST ||
        !bsw_merge_fits(manifest, assignment, outlook->merge, least, settings))
        return;
    const struct bsw_device_merge_needs needs = bsw_merge_needs(manifest, assignment, settings);
    for (int rank = 0; rank < outlook->num_ranks; rank++) {
        struct bsw_device_merge_plan plan;
        bsw_device_merge_plan_make(&needs, (uint32_t)rank, least, &plan);
        out[rank].merge_bytes = plan.bytes;
    }
}

enum bsw_status bsw_search_forecast(const struct bsw_manifest *manifest,
                                    const struct bsw_search_outlook *outlook,
                                    struct bsw_search_settings *settings,
                                    struct bsw_search_forecast *out, struct bsw_error *err)
{
    struct bsw_assignment assignment;
    BSW_TRY(
        bsw_assignment_make((uint32_t)outlook->num_ranks, manifest->num_shards, &assignment, err));
    forecast_merge(manifest, outlook, &assignment, settings, out);
    bsw_assignment_deinit(&assignment);
    for (int rank = 0; rank < outlook->num_ranks; rank++) {
        size_t before = out[rank].link_bytes + out[rank].merge_bytes;
        size_t left = outlook->free_bytes[rank];
        left = left > before ? left - before : 0;
        enum bsw_status status = bsw_shard_service_plan(
            manifest, settings, rank, outlook->num_ranks, left, &out[rank].shards, err);
        if (status != BSW_OK) return bsw_prefix(err, status, "rank %d: ", rank);
        out[rank].used_bytes = before + out[rank].shards.used_bytes;
    }
    return BSW_OK;
}
