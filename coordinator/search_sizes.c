#include "coordinator/search_sizes.h"

#include <math.h>

// Memory a batch's candidates may take on one rank; larger batches are cut, which changes no byte
// of the answer.
#define BATCH_BUDGET_BYTES ((uint64_t)256 << 20)

uint64_t bsw_search_keep(uint64_t k, double oversample, uint64_t num_rows)
{
    uint64_t keep = (uint64_t)ceil((double)k * oversample - 1e-9);
    return keep < num_rows ? keep : num_rows;
}

uint64_t bsw_search_batch(const struct bsw_manifest *manifest, int num_ranks, int is_ladder,
                          uint64_t keep, uint64_t wanted)
{
    uint64_t units = (manifest->num_shards + (uint64_t)num_ranks - 1) / (uint64_t)num_ranks;
    // Rank 0 holds every shard's list when they are gathered, a rank those of its own shards.
    uint64_t lists = is_ladder ? units + 2 : manifest->num_shards + 1;
    uint64_t query_bytes = lists * keep * 24 + bsw_manifest_row_dims(manifest) * 24ull;
    uint64_t fit = BATCH_BUDGET_BYTES / query_bytes;
    return fit < 1 ? 1 : fit < wanted ? fit : wanted;
}
