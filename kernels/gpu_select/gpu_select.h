// SPDX-License-Identifier: Apache-2.0
// Selection on a GPU: limits from samples, cuts and the last step of a pass, over the lists of
// device_scan.h. A block works on a query's list.
//
// Limits by rank. A scan that gives lists of n rows all that reach a limit finds the best `keep`
// whatever the limit, as long as keep rows reach it. The keep-th best of a sample is such a limit,
// but a loose one: of N rows some keep * N / s reach it, s being the rows of the sample. The r-th
// best of the sample is one too unless the sample has r or more of the best keep rows, of which it
// has keep * s / N on average. So r is a little more than chance leaves there (device_levels.h
// says how much), and in the end it is checked that keep rows were found: all rows were compared
// with one limit, and if keep of them or more reach it, the best keep are among them. If not, the
// pass is done again with limits that are sure.
//
// Rows of a bundle may be alike, as neighbours in a file often are: then chance comes in pieces of
// 32 rows. So bundles are counted and not rows, each by its best row.
#ifndef BITSWEEP_KERNELS_GPU_SELECT_H
#define BITSWEEP_KERNELS_GPU_SELECT_H

#include "kernels/device_scan/device_scan.h"

BSW_C_BEGIN

// Bits of lists->overflowed.
enum {
    BSW_LISTS_OVERFLOWED = 1, // a count has passed the capacity
    BSW_LISTS_SHORT = 2       // fewer than keep rows reach a limit that is not sure
};

// Every list to its best min(count, keep) items, in any order, at its front; counts become that;
// where a list is full (keep items) its limit becomes one above the worst score kept (UINT32_MAX
// stays), or that score where lists are unordered. 1 <= keep <= capacity; counts <= capacity,
// unless `overflowed` is there to say so (BSW_LISTS_OVERFLOWED): of such a list what was stored is
// cut. The items of a list differ.
BSW_DEVICE_CALL int bsw_device_cut(const struct bsw_device_lists *lists, uint32_t keep,
                                   bsw_stream stream);

// Every list's limit to the score of its keep-th best item where it holds so many, for all rows
// that are as good or better; then every list is empty. For limits from a sample: a row that is not
// among the best `keep` of some rows is not among the best of all. Arguments as for cut.
BSW_DEVICE_CALL int bsw_device_limit(const struct bsw_device_lists *lists, uint32_t keep,
                                     bsw_stream stream);

// Every list's counts[q] items (at most capacity) in descending order; those behind are untouched.
// capacity <= INT32_MAX. scratch: bsw_device_sort_bytes of the lists' numbers, device memory,
// 256-byte aligned, free again when the stream has passed. cudaErrorMemoryAllocation: CUB wants
// more beside the items than is there for it.
BSW_DEVICE_CALL int bsw_device_sort(const struct bsw_device_lists *lists, void *scratch,
                                    bsw_stream stream);

#define BSW_DEVICE_SORT_TEMPORARY_BYTES 1024 // for CUB, that of CUDA 13 wants 511 at most

// So many lists are sorted at once: CUB counts items with 31 bits.
static inline uint32_t bsw_device_sort_slice(uint32_t num_queries, uint32_t capacity)
{
    uint32_t most = capacity > 0 ? INT32_MAX / capacity : INT32_MAX;
    return num_queries < most ? num_queries : most;
}

// Arithmetic alone, so that memory can be planned where there is no device.
static inline size_t bsw_device_sort_bytes(uint32_t num_queries, uint32_t capacity)
{
    return BSW_DEVICE_SORT_TEMPORARY_BYTES +
           (size_t)bsw_device_sort_slice(num_queries, capacity) * capacity * sizeof(uint64_t);
}

#define BSW_MOST_RANK_BUNDLES 3072 // in a list whose limit is by rank; with more it stays as it is
#define BSW_MOST_LAST_KEEP    4096 // of bsw_device_last

// Every list's limit to the score of the best row of its rank-th best bundle, where it has items of
// so many bundles; then every list is empty. Rows of a bundle are 32 that follow each other from a
// multiple of 32 on. Items beyond the capacity are as if they were not there: that leaves limits
// lower. is_sure: rank >= keep, nothing is to be checked; else `raised` becomes 1 where a limit is
// raised. is_first: a sample that every row is in does not count as hits. 1 <= rank.
struct bsw_device_rank {
    uint32_t rank, is_sure, is_first;
};
BSW_DEVICE_CALL int bsw_device_rank_limit(const struct bsw_device_lists *lists,
                                          const struct bsw_device_rank *rank, bsw_stream stream);

// The last step of a pass: every list's best min(count, keep) in descending order at its front, and
// counts become that; what the host has to know is added to `overflowed` and `hits`. answers: the
// same items, those of query q at answers + q * keep, device memory; NULL: not wanted.
// 1 <= keep <= BSW_MOST_LAST_KEEP, capacity.
BSW_DEVICE_CALL int bsw_device_last(const struct bsw_device_lists *lists, uint32_t keep,
                                    uint64_t *answers, bsw_stream stream);

// Kernels that this process has queued so far, on whatever device; a graph's count when it is
// recorded.
BSW_DEVICE_CALL uint64_t bsw_device_launches(void);

// Numbers behind each other for so many queries' counts, in which lists.overflowed is the one
// behind them and lists.hits, two numbers on an even place, the next. Where lists.raised is there.
static inline size_t bsw_device_lists_numbers(size_t num_queries)
{
    return num_queries + 4;
}
static inline size_t bsw_device_lists_hits_place(size_t num_queries)
{
    return (num_queries + 2) & ~(size_t)1;
}

BSW_C_END
#endif
