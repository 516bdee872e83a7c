// SPDX-License-Identifier: Apache-2.0
// Finds the known answers of a shard from the blocks of its file, in any order, by any number of
// threads: encode keeps them, verify compares.
//
// A block is scanned as a small shard by the kernels of a level, a few nanoseconds a row and query;
// what they find is computed again by the plain C reference, so that no wrong key is ever kept.
#ifndef BITSWEEP_SHARD_ANSWER_FINDER_H
#define BITSWEEP_SHARD_ANSWER_FINDER_H

#include "shard/codecs/pinned_queries.h"
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

#endif
