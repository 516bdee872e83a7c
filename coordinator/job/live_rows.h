// SPDX-License-Identifier: Apache-2.0
// The rows of an index that are left, without those that were dropped or deleted, as a source of
// vectors (common/rows/vectors.h): what compact codes anew. Each is checked by the digests of the
// shard it lies in.
#ifndef BITSWEEP_COORDINATOR_LIVE_ROWS_H
#define BITSWEEP_COORDINATOR_LIVE_ROWS_H

#include <stdint.h>

#include "common/files/index_manifest.h"
#include "common/rows/vectors.h"

struct bsw_live_shard;

struct bsw_live_rows {
    const struct bsw_manifest *manifest; // borrowed, until rows are no longer read
    uint32_t num_shards;
    uint64_t num_rows;
    struct bsw_live_shard *shards; // [num_shards]; owned
    struct bsw_memory_rows source; // to be lent, named BSW_LIVE_ROWS_NAME
};
#define BSW_LIVE_ROWS_NAME BSW_MEMORY_PREFIX "compact"

// Opens the raw rows of all shards and reads the masks of all blocks. close also after an error.
enum bsw_status bsw_live_rows_open(const struct bsw_manifest *manifest, const char *index,
                                   struct bsw_live_rows *out, struct bsw_error *err);
void bsw_live_rows_close(struct bsw_live_rows *live); // accepts {0}

// The row, as the index numbers them, that the one at `place` is, counted from 0.
uint64_t bsw_live_rows_at(const struct bsw_live_rows *live, uint64_t place);

#endif
