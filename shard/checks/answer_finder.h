// SPDX-License-Identifier: Apache-2.0
// Finds the known answers of a shard from the blocks of its file, in any order, by any number of
// threads: encode keeps them, verify compares.
//
// A block is scanned as a small shard by the kernels of a level, a few nanoseconds a row and query;
// what they find is computed again by the plain C reference, so that no wrong key is ever kept.
#ifndef BITSWEEP_SHARD_ANSWER_FINDER_H
#define BITSWEEP_SHARD_ANSWER_FINDER_H

#include "common/net/transport.h"
#include "shard/codecs/query_codes.h"
#include "shard/host/shard_scan.h"

// The best rows so far, descending; {0}: none. Which blocks came first makes no difference, nor
// whether one came twice.
struct bsw_answer_lists {
    uint32_t counts[BSW_KNOWN_QUERIES];
    uint64_t best[BSW_KNOWN_QUERIES][BSW_KNOWN_ROWS];
};
void bsw_answer_lists_merge(struct bsw_answer_lists *lists, const struct bsw_answer_lists *more);

// One thread's finder; the manifest is borrowed. bsw_answer_finder_deinit frees, also after an
// error, and accepts {0}.
struct bsw_answer_finder {
    const struct bsw_manifest *manifest;
    struct bsw_pinned_queries queries;
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists found;
};
enum bsw_status bsw_answer_finder_init(struct bsw_answer_finder *finder,
                                       const struct bsw_manifest *manifest,
                                       enum bsw_cpu_level level, struct bsw_error *err);
void bsw_answer_finder_deinit(struct bsw_answer_finder *finder);

// The best rows of block `block`; bytes: of the block, aligned to 64. A key that the reference does
// not give is BSW_ERROR_SELF_CHECK.
enum bsw_status bsw_answer_finder_run(struct bsw_answer_finder *finder,
                                      const struct bsw_shard_shape *shape, uint32_t block,
                                      const void *bytes, struct bsw_answer_lists *out,
                                      struct bsw_error *err);

// Compares what was found of all blocks with the manifest's known answers, of which there are some.
// BSW_ERROR_SELF_CHECK.
enum bsw_status bsw_answer_lists_check(const struct bsw_answer_lists *lists,
                                       const struct bsw_manifest *manifest, uint32_t shard,
                                       struct bsw_error *err);

// Known answers of all shards, while encode writes their blocks or verify reads them: any blocks,
// on any threads and ranks, in any order; a function of the codes alone.

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
