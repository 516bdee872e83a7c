// SPDX-License-Identifier: Apache-2.0
// CPU cores over the resident shard: bsw_shard_scan and its kin as a tenant of shard/backend.h.
#include "shard/backend.h"

#include "shard/host/shard_scan.h"

struct host_state {
    const struct bsw_manifest *manifest;
    int is_exact;
};

static enum bsw_status open_host(const struct bsw_backend_needs *needs, void **state,
                                 struct bsw_error *err)
{
    struct host_state *own;
    *state = NULL;
    BSW_TRY(bsw_allocate(&own, 1, sizeof *own, "shards", err));
    *own = (struct host_state){needs->manifest, needs->settings->is_exact};
    *state = own;
    return BSW_OK;
}

static void close_host(void *state)
{
    bsw_free(&state);
}

static const char *label(const void *state)
{
    (void)state;
    return "cpu";
}

static enum bsw_status scan(void *state, const struct bsw_backend_shard *shard,
                            const struct bsw_query_range *queries, const uint32_t *limits,
                            size_t keep, struct bsw_scan_workspace *workspace,
                            struct bsw_candidate_lists *out, struct bsw_error *err)
{
    (void)state;
    return bsw_shard_scan(shard->resident, queries->batch, queries->first_query,
                          queries->num_queries, limits, keep, workspace, out, err);
}

static enum bsw_status refine(void *state, const struct bsw_backend_shard *shard,
                              const struct bsw_query_range *queries,
                              const struct bsw_candidate_lists *lists, const size_t *counts,
                              struct bsw_scan_workspace *workspace, struct bsw_survivor *out,
                              struct bsw_error *err)
{
    const struct host_state *own = state;
    return bsw_shard_refine(shard->resident, own->manifest, queries->batch, queries->first_query,
                            lists, counts, own->is_exact, workspace, out, err);
}

const struct bsw_backend bsw_host_backend = {
    .open = open_host,
    .close = close_host,
    .label = label,
    .scan = scan,
    .refine = refine,
};
