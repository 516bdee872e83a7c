// SPDX-License-Identifier: Apache-2.0
// An index and its search as `plan` sees them before anything is made: layout, shards, ranks and
// bytes, from the functions that indexes are made with.
#ifndef BITSWEEP_COORDINATOR_PLAN_INDEX_H
#define BITSWEEP_COORDINATOR_PLAN_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "common/files/index_manifest.h"
#include "coordinator/search/search_settings.h"
#include "shard/assignment.h"
#include "shard/host/resident_shard.h"

// What is asked for; texts borrowed. 0 or NULL where the codec's default is wanted.
struct bsw_plan_settings {
    const char *codec, *segments; // segments: "32x4,96x2", saq alone
    const char *vectors;          // raw vectors on disk: a vector type's name, or "none"
    uint64_t rows, dims;          // >= 1
    uint64_t code_dims;           // rbe alone
    uint64_t parts;               // pq alone; 0: the usual
    int has_radii;                // pq alone: --entries radius
    uint64_t lists;               // 0: none, or BSW_LISTS_AUTO
    uint64_t shards;              // 0: as many as ranks, or so many more that none is too large
    uint64_t stage;
    double bits;
    struct bsw_search_request search; // but for refine, which follows from vectors
};

// Bytes of some shards.
struct bsw_plan_bytes {
    struct bsw_resident_parts parts;
    uint64_t centroids; // of a search that looks at some lists: once a rank
    uint64_t codes_files, vectors_files, lists_files;
    uint64_t manifest_centroids; // once an index
    uint64_t radii;              // of a search by entries within a radius: once a rank
    uint64_t manifest_radii;     // once an index
};
static inline uint64_t bsw_plan_memory_bytes(const struct bsw_plan_bytes *bytes)
{
    return bsw_resident_bytes(&bytes->parts) + bytes->centroids + bytes->radii;
}

struct bsw_plan_index {
    struct bsw_manifest manifest; // as encode would have it, but for what is learned
    struct bsw_assignment assignment;
    struct bsw_search_settings search;      // but for the machine
    uint64_t most_rows;                     // of a rank
    struct bsw_plan_bytes index, most, all; // one copy; of the rank with most; over all ranks
};

// For so many ranks, >= 1. BSW_ERROR_USAGE for settings that encode or search would refuse.
// bsw_plan_index_deinit frees, also after an error and {0}.
enum bsw_status bsw_plan_index_make(const struct bsw_plan_settings *settings, uint64_t num_ranks,
                                    struct bsw_plan_index *out, struct bsw_error *err);
void bsw_plan_index_deinit(struct bsw_plan_index *index);

// Bytes of a raw row; 0: none are kept.
size_t bsw_plan_vector_bytes(const struct bsw_plan_settings *settings);

// Bytes of so many queries as they travel to every rank: codes, scales, vectors, or what raw has in
// their place.
size_t bsw_plan_batch_bytes(const struct bsw_plan_index *index, uint64_t num_queries);

#endif
