// merge: sorted lists of several shards into one ranked answer; a global radix sort as in rbeGIR
// (RBE, Section 5.3).
//
// Sorting is least-significant-digit radix: stable, the same cost whatever the data. Digits that
// are equal in all entries are skipped. Nothing here can fail or allocate. Thread-safe.
#ifndef BITSWEEP_KERNELS_MERGE_H
#define BITSWEEP_KERNELS_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/cpu_level.h"

#ifdef __cplusplus
extern "C" {
#endif

// One candidate of the whole corpus; `row` is the global row, `payload` travels with it.
struct bsw_ranked {
    uint32_t score;   // as in common/result_order.h; larger is better
    uint32_t payload; // bits of an exact value, a shard, or 0
    uint64_t row;
};

struct bsw_merge_table {
    const char *level;

    // Sorts n candidates of one shard (bsw_candidate_pack, all distinct), descending. scratch: room
    // for n.
    void (*sort_candidates)(uint64_t *candidates, size_t n, uint64_t *scratch);

    // The best `keep` of n entries, in descending order of score, entries of equal score in the
    // order they came in (so: shards in row order, each in the total order, give the total order).
    // In place, front of `entries`; returns min(n, keep). Entries that cannot be among the best are
    // dropped by their leading digit before sorting. scratch: room for n.
    size_t (*best_ranked)(struct bsw_ranked *entries, size_t n, size_t keep,
                          struct bsw_ranked *scratch);
};

// The table for a level; a level not built in gives the next lower one (see its `level`).
const struct bsw_merge_table *bsw_merge_table_get(enum bsw_cpu_level level);

// The levels themselves, one a file; ask bsw_merge_table_get, which knows what is built in.
extern const struct bsw_merge_table bsw_merge_reference;
#if defined(__x86_64__)
extern const struct bsw_merge_table bsw_merge_avx2;
extern const struct bsw_merge_table bsw_merge_avx512;
#endif

#ifdef __cplusplus
}
#endif
#endif
