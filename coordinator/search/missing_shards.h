// SPDX-License-Identifier: Apache-2.0
// Shards that no rank could load, and a search that goes on without them (--allow-partial).
#ifndef BITSWEEP_COORDINATOR_MISSING_SHARDS_H
#define BITSWEEP_COORDINATOR_MISSING_SHARDS_H

#include <jansson.h>
#include <stdint.h>

#include "common/net/transport.h"
#include "shard/shard_service.h"

struct bsw_missing_shard {
    uint32_t shard;
    int rank; // that could not load it
    enum bsw_status status;
    char why[BSW_ERROR_MESSAGE_BYTES];
};

// Rank 0's, by shards; {0}: all shards are there.
struct bsw_missing_shards {
    struct bsw_missing_shard *items; // owned
    uint32_t count;
};
void bsw_missing_shards_deinit(struct bsw_missing_shards *missing); // accepts {0}
// {"missing_shards": [{"shard": 2, "rank": 0, "why": "..."}]}, or {} where none is missing; a new
// reference.
json_t *bsw_missing_shards_told(const struct bsw_missing_shards *missing);

// What the service of each rank has failed to load: *is_found where any has. Then the table becomes
// the next one, without these shards, and rank 0 notes those that nobody has. No shard is left, or
// the index in the folder is of another generation meanwhile: the error of the first that failed.
// All ranks, after each has loaded what it could; all return alike.
enum bsw_status bsw_missing_shards_find(bsw_transport *transport,
                                        const struct bsw_shard_service *service, const char *index,
                                        struct bsw_assignment *table,
                                        struct bsw_missing_shards *missing, int *is_found,
                                        struct bsw_error *err);

// Share of the rows that queries can find, which is the same for all slices: 1: all.
double bsw_missing_shards_coverage(const struct bsw_manifest *manifest,
                                   const struct bsw_assignment *table);

#endif
