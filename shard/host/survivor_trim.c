// SPDX-License-Identifier: Apache-2.0
#include "shard/host/survivor_trim.h"

#include <omp.h>
#include <string.h>

#include "common/codes/metric.h"

static struct bsw_ranked ranked_of(enum bsw_metric metric, const struct bsw_survivor *survivor)
{
    return (struct bsw_ranked){bsw_exact_score(bsw_metric_key(metric, survivor->value)),
                               survivor->row};
}

// The best k of more survivors than that, at the front, in their order. entries, scratch: [count].
static void trim_query(const struct bsw_merge_table *merge, enum bsw_metric metric, size_t k,
                       struct bsw_survivor *survivors, size_t count, struct bsw_ranked *entries,
                       struct bsw_ranked *scratch)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) entries[i] = ranked_of(metric, &survivors[i]);
    merge->best_ranked(entries, count, k, BSW_RANKED_BY_EXACT, scratch);
    const struct bsw_ranked worst = entries[k - 1];
    for (size_t i = 0; i < count; i++) {
        const struct bsw_ranked own = ranked_of(metric, &survivors[i]);
        if (own.score > worst.score || (own.score == worst.score && own.row <= worst.row))
            survivors[left++] = survivors[i];
    }
}

enum bsw_status bsw_survivors_trim(enum bsw_metric metric, size_t k, size_t num_queries,
                                   size_t *counts, struct bsw_survivor *survivors,
                                   struct bsw_scan_workspace *workspace, struct bsw_error *err)
{
    size_t most = 0, from = 0, to = 0, *offsets;
    BSW_TRY(bsw_buffer_reserve(&workspace->offsets, num_queries * sizeof *offsets, err));
    offsets = (size_t *)(void *)workspace->offsets.data;
    for (size_t q = 0; q < num_queries; from += counts[q++]) {
        offsets[q] = from;
        most = counts[q] > most ? counts[q] : most;
    }
    if (most <= k) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(
        &workspace->scratch, (size_t)workspace->num_threads * 2 * most * sizeof(struct bsw_ranked),
        err));
#pragma omp parallel for schedule(dynamic, 8) num_threads(workspace->num_threads)
    for (size_t q = 0; q < num_queries; q++) {
        struct bsw_ranked *entries = (struct bsw_ranked *)(void *)workspace->scratch.data +
                                     (size_t)omp_get_thread_num() * 2 * most;
        if (counts[q] > k)
            trim_query(workspace->merge, metric, k, survivors + offsets[q], counts[q], entries,
                       entries + most);
    }
    for (size_t q = 0; q < num_queries; to += counts[q++]) {
        if (counts[q] > k) counts[q] = k;
        memmove(survivors + to, survivors + offsets[q], counts[q] * sizeof *survivors);
    }
    return BSW_OK;
}
