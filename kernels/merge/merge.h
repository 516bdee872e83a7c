// SPDX-License-Identifier: Apache-2.0
// merge: sorted lists of several shards into one ranked answer; a global radix sort as in rbeGIR
// (RBE, Section 5.3).
//
// Sorting is least-significant-digit radix: stable, the same cost whatever the data. Digits that
// are equal in all entries are skipped. Nothing here can fail or allocate. Thread-safe.
#ifndef BITSWEEP_KERNELS_MERGE_H
#define BITSWEEP_KERNELS_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "kernels/kernel_table.h"

BSW_C_BEGIN

// One candidate of the whole corpus; `row` is the global row. The score is that of an exact value
// (common/codes/metric.h), or holds that of a key in its upper half and in its lower half a
// number that travels with it. Larger is better.
struct bsw_ranked {
    uint64_t score;
    uint64_t row;
};

// What of a score decides.
#define BSW_RANKED_BY_EXACT UINT64_MAX
#define BSW_RANKED_BY_KEY   (~(uint64_t)UINT32_MAX)

static inline struct bsw_ranked bsw_ranked_of_key(uint32_t score, uint32_t payload, uint64_t row)
{
    return (struct bsw_ranked){(uint64_t)score << 32 | payload, row};
}
static inline uint32_t bsw_ranked_key(const struct bsw_ranked *entry)
{
    return (uint32_t)(entry->score >> 32);
}
static inline uint32_t bsw_ranked_payload(const struct bsw_ranked *entry)
{
    return (uint32_t)entry->score;
}

struct bsw_merge_table {
    const char *level;

    // Sorts n candidates of one shard (bsw_candidate_pack, all distinct), descending. scratch: room
    // for n.
    void (*sort_candidates)(uint64_t *candidates, size_t n, uint64_t *scratch);

    // The best `keep` of n entries, in descending order of the bits of their scores that are set in
    // `by`, entries equal in these in the order they came in (so: shards in row order, each in the
    // total order, give the total order). In place, front of `entries`; returns min(n, keep).
    // Entries that cannot be among the best are dropped by their leading digit before sorting.
    // scratch: room for n.
    size_t (*best_ranked)(struct bsw_ranked *entries, size_t n, size_t keep, uint64_t by,
                          struct bsw_ranked *scratch);
};

BSW_KERNEL_LEVELS(merge);

BSW_C_END
#endif
