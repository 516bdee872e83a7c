// Short lists for the vector levels of merge: a level counts for every value how many are larger,
// which is its place.
#ifndef BITSWEEP_KERNELS_MERGE_FEW_H
#define BITSWEEP_KERNELS_MERGE_FEW_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/merge/merge.h"

#define BSW_MERGE_MOST_FEW  192
#define BSW_MERGE_FEW_SPARE 16 // places that a level may write behind the last

// places[i]: how many of n values, n <= BSW_MERGE_MOST_FEW, are larger than value i.
typedef void bsw_count_larger_fn(const uint64_t *values, size_t n, uint64_t *places);

// Distinct values, descending.
static inline void bsw_sort_few(uint64_t *values, size_t n, uint64_t *scratch,
                                bsw_count_larger_fn *count_larger)
{
    uint64_t places[BSW_MERGE_MOST_FEW + BSW_MERGE_FEW_SPARE];
    count_larger(values, n, places);
    for (size_t i = 0; i < n; i++) scratch[places[i]] = values[i];
    memcpy(values, scratch, n * sizeof *values);
}

// Entries by the bits `by` of their scores, descending, stable: those that are equal have one place
// and take it and the next ones in turn.
static inline void bsw_rank_few(struct bsw_ranked *entries, size_t n, uint64_t by,
                                struct bsw_ranked *scratch, bsw_count_larger_fn *count_larger)
{
    uint64_t scores[BSW_MERGE_MOST_FEW], places[BSW_MERGE_MOST_FEW + BSW_MERGE_FEW_SPARE];
    uint8_t taken[BSW_MERGE_MOST_FEW] = {0};
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) scores[i] = entries[i].score & by;
    count_larger(scores, n, places);
    for (size_t i = 0; i < n; i++) scratch[places[i] + taken[places[i]]++] = entries[i];
    memcpy(entries, scratch, n * sizeof *entries);
}

#endif
