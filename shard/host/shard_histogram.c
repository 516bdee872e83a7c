// SPDX-License-Identifier: Apache-2.0
// Histograms of integer distances, XFBQ Algorithm 1.
#include <string.h>

#include "common/base/clock.h"
#include "shard/host/shard_tiles.h"

static enum bsw_status plan_histogram(size_t num_bins, size_t num_queries,
                                      struct bsw_scan_workspace *workspace, size_t *group_queries,
                                      struct bsw_error *err)
{
    size_t threads = (size_t)workspace->num_threads, bytes = num_bins * threads * sizeof(uint64_t);
    if (bytes > BSW_HISTOGRAM_BUDGET_BYTES) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE,
                        "histogram selection needs %zu bins x %zu threads x 8 bytes = %zu bytes a "
                        "query, %zu are "
                        "allowed: fewer bits or --select threshold",
                        num_bins, threads, bytes, BSW_HISTOGRAM_BUDGET_BYTES);
    }
    size_t fit = workspace->budget_bytes / bytes;
    *group_queries = fit < 1 ? 1 : fit < num_queries ? fit : num_queries;
    BSW_TRY(bsw_buffer_reserve(&workspace->counts, *group_queries * bytes, err));
    return bsw_buffer_reserve(&workspace->dots, threads * BSW_TILE_ROWS * sizeof(int32_t), err);
}

static void count_part(const struct bsw_resident_shard *shard, const struct bsw_query_batch *batch,
                       size_t first_query, size_t num_queries, size_t num_bins,
                       struct bsw_scan_workspace *workspace, size_t thread)
{
    size_t first, last, step = bsw_tile_bundles(&shard->shape);
    int32_t *dots = (int32_t *)(void *)workspace->dots.data + thread * BSW_TILE_ROWS;
    uint64_t *counts = (uint64_t *)(void *)workspace->counts.data + thread * num_queries * num_bins;
    int32_t limit = (int32_t)bsw_layout_dot_limit(&shard->shape.layout, batch->query_bits);
    memset(counts, 0, num_queries * num_bins * sizeof *counts);
    bsw_resident_shard_part(shard, thread, (size_t)workspace->num_threads, &first, &last);
    for (size_t bundle = first; bundle < last; bundle += step) {
        size_t count = last - bundle < step ? last - bundle : step;
        for (size_t q = 0; q < num_queries; q++) {
            bsw_tile_dots(shard, workspace->plane_scan, batch, first_query + q, bundle, count, 0,
                          shard->shape.layout.padded_dims, dots);
            workspace->select->histogram(dots, shard->arrays.masks + bundle, count, limit,
                                         counts + q * num_bins);
        }
    }
}

// Adds the threads' counts of a query into the first thread's and hands out the part that matters.
static enum bsw_status emit_query(struct bsw_scan_workspace *workspace, size_t query, size_t place,
                                  size_t num_queries, size_t num_bins, uint64_t k,
                                  bsw_histogram_fn emit, void *context, struct bsw_error *err)
{
    uint64_t *counts = (uint64_t *)(void *)workspace->counts.data + place * num_bins;
    for (size_t t = 1; t < (size_t)workspace->num_threads; t++) {
        const uint64_t *other = counts + t * num_queries * num_bins;
        for (size_t b = 0; b < num_bins; b++) counts[b] += other[b];
    }
    size_t first = 0, last;
    while (first < num_bins && counts[first] == 0) first++;
    uint64_t sum = 0;
    for (last = first; last < num_bins && sum < k; last++) sum += counts[last];
    return emit(context, query, (uint32_t)first, counts + first, (uint32_t)(last - first), err);
}

enum bsw_status bsw_shard_histogram(const struct bsw_resident_shard *shard,
                                    const struct bsw_query_batch *batch, size_t first_query,
                                    size_t num_queries, uint64_t k,
                                    struct bsw_scan_workspace *workspace, bsw_histogram_fn emit,
                                    void *context, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    size_t num_bins = (size_t)bsw_layout_dot_limit(&shard->shape.layout, batch->query_bits) + 1,
           most = 1;
    BSW_TRY(plan_histogram(num_bins, num_queries, workspace, &most, err));
    for (size_t done = 0; done < num_queries; done += most) {
        size_t count = num_queries - done < most ? num_queries - done : most;
#pragma omp parallel for schedule(static) num_threads(workspace->num_threads)
        for (int t = 0; t < workspace->num_threads; t++) {
            count_part(shard, batch, first_query + done, count, num_bins, workspace, (size_t)t);
        }
        for (size_t q = 0; q < count; q++) {
            BSW_TRY(emit_query(workspace, done + q, q, count, num_bins, k, emit, context, err));
        }
        workspace->scanned_bytes += shard->scan_bytes;
    }
    workspace->scan_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}
