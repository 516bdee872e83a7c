// SPDX-License-Identifier: Apache-2.0
// Some queries of a batch side by side, as a batch of their own.
#ifndef BITSWEEP_SHARD_QUERY_GATHER_H
#define BITSWEEP_SHARD_QUERY_GATHER_H

#include "common/base/memory.h"
#include "shard/codecs/query_batch.h"

// {0} is a valid empty one. The batch points into the buffer, which is kept for the next.
struct bsw_query_gather {
    struct bsw_query_batch batch; // what scans read; no vectors, nothing in device memory
    struct bsw_buffer memory;
};
void bsw_query_gather_deinit(struct bsw_query_gather *gather);

// Queries first + places[0 .. num - 1] of a batch; places NULL: first .. first + num - 1.
enum bsw_status bsw_query_gather_run(const struct bsw_query_batch *from, size_t first,
                                     const uint32_t *places, size_t num,
                                     struct bsw_query_gather *out, struct bsw_error *err);

#endif
