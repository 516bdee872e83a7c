// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_histogram.h"

#include <string.h>

#include "common/codes/result_order.h"

static uint32_t distance_of(uint64_t candidate, uint32_t dot_limit)
{
    int32_t dot = bsw_score_to_integer(bsw_candidate_score(candidate));
    return (uint32_t)(((int64_t)dot_limit - dot) / 2);
}

static enum bsw_status emit_query(const struct bsw_candidate_lists *lists, size_t query,
                                  uint32_t dot_limit, struct bsw_scan_workspace *workspace,
                                  bsw_histogram_fn emit, void *context, struct bsw_error *err)
{
    static const uint64_t none[1];
    size_t count;
    const uint64_t *list = bsw_candidate_list(lists, query, &count);
    if (count == 0) return emit(context, query, dot_limit + 1, none, 0, err);
    uint32_t first = distance_of(list[0], dot_limit);
    uint32_t num_bins = distance_of(list[count - 1], dot_limit) - first + 1;
    BSW_TRY(bsw_buffer_reserve(&workspace->counts, num_bins * sizeof(uint64_t), err));
    uint64_t *bins = (uint64_t *)(void *)workspace->counts.data;
    memset(bins, 0, num_bins * sizeof *bins);
    for (size_t i = 0; i < count; i++) bins[distance_of(list[i], dot_limit) - first]++;
    return emit(context, query, first, bins, num_bins, err);
}

enum bsw_status bsw_device_shard_histogram(struct bsw_device_engine *engine,
                                           const struct bsw_device_shard *shard,
                                           const struct bsw_query_batch *batch, size_t first_query,
                                           size_t num_queries, uint64_t k,
                                           struct bsw_scan_workspace *workspace,
                                           struct bsw_candidate_lists *lists, bsw_histogram_fn emit,
                                           void *context, struct bsw_error *err)
{
    uint32_t dot_limit = (uint32_t)bsw_layout_dot_limit(&engine->plan.layout, batch->query_bits);
    size_t bytes = ((size_t)dot_limit + 1) * sizeof(uint64_t);
    if (bytes > BSW_HISTOGRAM_BUDGET_BYTES) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE,
                        "histogram selection needs %u bins x 8 bytes = %zu bytes a query, %zu are "
                        "allowed: fewer bits or --select threshold",
                        dot_limit + 1, bytes, BSW_HISTOGRAM_BUDGET_BYTES);
    }
    BSW_TRY(bsw_device_shard_scan(engine, shard, batch, first_query, num_queries, NULL, (size_t)k,
                                  workspace, lists, err));
    for (size_t q = 0; q < num_queries; q++)
        BSW_TRY(emit_query(lists, q, dot_limit, workspace, emit, context, err));
    return BSW_OK;
}
