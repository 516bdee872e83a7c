// SPDX-License-Identifier: Apache-2.0
// CPU cores over the resident shard: bsw_shard_scan and its kin as a tenant of shard/backend.h.
#include "shard/backend.h"

#include "shard/host/list_scan.h"

struct host_state {
    const struct bsw_manifest *manifest;
    int is_exact;
    struct bsw_list_groups groups; // scratch
    struct bsw_scan_counts counts; // there are none
};

static enum bsw_status open_host(const struct bsw_backend_needs *needs, void **state,
                                 struct bsw_error *err)
{
    struct host_state *own;
    *state = NULL;
    BSW_TRY(bsw_allocate_zero(&own, 1, sizeof *own, "shards", err));
    own->manifest = needs->manifest;
    own->is_exact = needs->settings->is_exact;
    *state = own;
    return BSW_OK;
}

static void close_host(void *address)
{
    struct host_state *state = address;
    if (state) bsw_list_groups_deinit(&state->groups);
    bsw_free(&state);
}

static const char *label(const void *state)
{
    (void)state;
    return "cpu";
}

// The resident shard is all.
static enum bsw_status load(void *state, size_t index, struct bsw_backend_shard *shard,
                            struct bsw_error *err)
{
    (void)state, (void)index, (void)shard, (void)err;
    return BSW_OK;
}

static void unload(void *state, struct bsw_backend_shard *shard)
{
    (void)state, (void)shard;
}

// Nothing is under way beside the caller.
static enum bsw_status begin(void *state, const struct bsw_scan_job *job, struct bsw_error *err)
{
    (void)state, (void)job, (void)err;
    return BSW_OK;
}

static enum bsw_status end(void *address, struct bsw_scan_job *job, struct bsw_error *err)
{
    struct host_state *state = address;
    if (!job) return BSW_OK;
    const struct bsw_query_range *queries = &job->queries;
    for (size_t s = 0; s < job->num_shards; s++) {
        struct bsw_resident_shard shard = *job->shards[s]->resident;
        struct bsw_candidate_lists *out = &job->shards[s]->lists;
        if (job->masks) shard.mask = &job->masks[s];
        if (shard.shape.num_lists > 0 && !job->is_of_places)
            BSW_TRY(bsw_list_scan(&shard, job->choice, queries, job->scan_dims, job->limits,
                                  job->keep, &state->groups, job->workspace, &job->num_list_pairs,
                                  out, err));
        else
            BSW_TRY(bsw_shard_scan(&shard, queries->batch, queries->first_query,
                                   queries->num_queries, job->limits, job->keep, job->workspace,
                                   out, err));
    }
    return BSW_OK;
}

static enum bsw_status refine(void *address, const struct bsw_backend_shard *shard,
                              const struct bsw_query_range *queries, const size_t *counts,
                              struct bsw_scan_workspace *workspace, struct bsw_survivor *out,
                              struct bsw_error *err)
{
    const struct host_state *state = address;
    return bsw_shard_refine(shard->resident, state->manifest, queries->batch, queries->first_query,
                            &shard->lists, counts, state->is_exact, workspace, out, err);
}

static enum bsw_status fetch(void *state, const struct bsw_backend_shard *shard, uint32_t place,
                             struct bsw_resident_shard *out, uint32_t *row, struct bsw_error *err)
{
    (void)state, (void)err;
    *out = *shard->resident;
    *row = place;
    return BSW_OK;
}

// bsw_resident_shard_check sees all there is.
static enum bsw_status check(void *state, const struct bsw_backend_shard *shard, uint32_t *next,
                             struct bsw_error *err)
{
    (void)state, (void)shard, (void)err;
    if (next) *next = 0;
    return BSW_OK;
}

static struct bsw_scan_counts *counts(void *state)
{
    return &((struct host_state *)state)->counts;
}

const struct bsw_backend bsw_host_backend = {
    .open = open_host,
    .close = close_host,
    .label = label,
    .load = load,
    .unload = unload,
    .begin = begin,
    .end = end,
    .refine = refine,
    .fetch = fetch,
    .check = check,
    .counts = counts,
};
