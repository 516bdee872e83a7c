// SPDX-License-Identifier: Apache-2.0
#include "shard/exact/device_assigner.h"

#include <string.h>

#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "kernels/device_scan/device_tuning.h"
#include "shard/exact/device_neighbours.h"

struct device_assigner {
    const float *centroids; // borrowed
    size_t dims;
    uint64_t *scores;
    uint32_t *counts;
    struct bsw_device_neighbours neighbours;
};

static void close_assigner(void *state)
{
    struct device_assigner *assigner = state;
    bsw_device_neighbours_close(&assigner->neighbours);
    bsw_free(&assigner->scores);
    bsw_free(&assigner->counts);
    bsw_free(&assigner);
}

static enum bsw_status open_parts(bsw_device *device, const struct bsw_list_assigner_needs *needs,
                                  struct device_assigner *assigner, struct bsw_error *err)
{
    const struct bsw_device_neighbours_needs its = {.metric = needs->metric,
                                                    .type = BSW_VECTOR_FLOAT32,
                                                    .query_type = needs->type,
                                                    .dims = (uint32_t)needs->dims,
                                                    .num_rows = (uint32_t)needs->num_lists,
                                                    .max_queries = needs->finder_rows,
                                                    .keep = 1,
                                                    .num_threads = needs->num_threads,
                                                    .rows_stay = 1};
    assigner->centroids = needs->centroids;
    assigner->dims = needs->dims;
    BSW_TRY(bsw_allocate(&assigner->scores, needs->finder_rows, sizeof *assigner->scores, "lists",
                         err));
    BSW_TRY(bsw_allocate(&assigner->counts, needs->finder_rows, sizeof *assigner->counts, "lists",
                         err));
    return bsw_device_neighbours_open(device, &its, &assigner->neighbours, err);
}

static enum bsw_status open_assigner(void *device, const struct bsw_list_assigner_needs *needs,
                                     void **state, struct bsw_error *err)
{
    struct device_assigner *assigner;
    *state = NULL;
    BSW_TRY(bsw_allocate_zero(&assigner, 1, sizeof *assigner, "assigner of lists", err));
    enum bsw_status status = open_parts(device, needs, assigner, err);
    if (status == BSW_OK)
        *state = assigner;
    else
        close_assigner(assigner);
    return status;
}

static enum bsw_status read_centroids(void *context, size_t first, size_t count, void *to,
                                      struct bsw_error *err)
{
    const struct device_assigner *assigner = context;
    (void)err;
    memcpy(to, assigner->centroids + first * assigner->dims,
           count * assigner->dims * sizeof(float));
    return BSW_OK;
}

// All are good: the assigner has looked at them.
static enum bsw_status take_centroids(void *context, size_t first, size_t count,
                                      const double *norms, uint32_t *masks, struct bsw_error *err)
{
    (void)context, (void)first, (void)norms, (void)err;
    for (size_t r = 0; r < count; r++) bsw_row_bit_set(masks, r);
    return BSW_OK;
}

static enum bsw_status find(void *state, const void *rows, const double *norms, size_t num_rows,
                            uint32_t *lists, double *keys, struct bsw_error *err)
{
    struct device_assigner *assigner = state;
    const struct bsw_device_row_source centroids = {assigner, read_centroids, take_centroids};
    const struct bsw_device_query_rows queries = {rows, norms};
    BSW_TRY(bsw_device_neighbours_find(&assigner->neighbours, &queries, num_rows, &centroids,
                                       assigner->scores, lists, assigner->counts, err));
    for (size_t r = 0; r < num_rows; r++) keys[r] = bsw_exact_score_to_key(assigner->scores[r]);
    return BSW_OK;
}

struct bsw_list_finder bsw_device_list_finder(bsw_device *device)
{
    uint32_t pairs = bsw_device_tuning_current()->list_pairs;
    return (struct bsw_list_finder){.context = device,
                                    .least_pairs = pairs == UINT32_MAX ? UINT64_MAX : pairs,
                                    .open = open_assigner,
                                    .find = find,
                                    .close = close_assigner};
}
