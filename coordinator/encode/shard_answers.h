// SPDX-License-Identifier: Apache-2.0
// Known answers of all shards, while encode writes their blocks or verify reads them: any blocks,
// on any threads and ranks, in any order; a function of the codes alone.
#ifndef BITSWEEP_COORDINATOR_SHARD_ANSWERS_H
#define BITSWEEP_COORDINATOR_SHARD_ANSWERS_H

#include "common/net/transport.h"
#include "shard/checks/answer_finder.h"

struct bsw_shard_answers {
    const struct bsw_manifest *manifest; // borrowed; NULL: not open
    enum bsw_cpu_level level;
    int num_threads;
    struct bsw_answer_finder *finders; // [num_threads], made when a thread first has a block
    struct bsw_answer_lists *lists;    // [num_shards]: of the blocks so far
};

// For the OpenMP threads of now. bsw_shard_answers_close frees, also after an error; accepts {0}.
enum bsw_status bsw_shard_answers_open(struct bsw_shard_answers *answers,
                                       const struct bsw_manifest *manifest,
                                       enum bsw_cpu_level level, struct bsw_error *err);
void bsw_shard_answers_close(struct bsw_shard_answers *answers);

// One block, once; any thread of a parallel region, or none. bytes: aligned to 64.
// BSW_ERROR_SELF_CHECK where the kernels of the level are wrong.
enum bsw_status bsw_shard_answers_add(struct bsw_shard_answers *answers, uint32_t shard,
                                      const struct bsw_shard_shape *shape, uint32_t block,
                                      const void *bytes, struct bsw_error *err);

// All ranks: on rank 0 the lists are then those of all blocks.
enum bsw_status bsw_shard_answers_gather(struct bsw_shard_answers *answers,
                                         struct bsw_transport *transport, struct bsw_error *err);

// Into the manifest whose blocks these were and that has its dropped rows by now.
enum bsw_status bsw_shard_answers_store(const struct bsw_shard_answers *answers,
                                        struct bsw_manifest *manifest, struct bsw_error *err);

#endif
