// SPDX-License-Identifier: Apache-2.0
// The best rows of every query so far, while a batch is scanned in any order by some threads: what
// is found goes to the end of a query's list, which is cut to the best `keep` when it is full, and
// whose limit rises with every cut.
#ifndef BITSWEEP_SHARD_RUNNING_LISTS_H
#define BITSWEEP_SHARD_RUNNING_LISTS_H

#include <stddef.h>
#include <stdint.h>

#include "shard/host/shard_scan.h"

// The list of one query. Limit and count are written under the lock and may be read without.
struct bsw_running_list {
    uint32_t limit; // inclusive score; never falls
    uint32_t count;
    unsigned char is_locked;
};

struct bsw_running_lists {
    size_t keep, capacity; // capacity: of a query's list
    int is_shared;         // by threads
    const struct bsw_select_table *select;
    const struct bsw_merge_table *merge;
    const uint32_t *rows; // of places; NULL: these are rows
    struct bsw_running_list *lists;
    uint64_t *items; // [num_queries][capacity]
};

// A thread's, each of the capacity and as many more as are added at once.
struct bsw_running_room {
    uint64_t *merged, *scratch;
};

static inline size_t bsw_running_capacity(size_t keep)
{
    return 2 * keep + 16;
}

// Empty ones. lists: with keep, is_shared, tables and rows; its memory is that of the buffers.
// limits: scores to begin with, [num_queries], or NULL.
enum bsw_status bsw_running_lists_begin(struct bsw_running_lists *lists, size_t num_queries,
                                        const uint32_t *limits, struct bsw_buffer *list_memory,
                                        struct bsw_buffer *item_memory, struct bsw_error *err);

static inline uint32_t bsw_running_limit(const struct bsw_running_lists *lists, size_t query)
{
    return __atomic_load_n(&lists->lists[query].limit, __ATOMIC_RELAXED);
}

// Where add will write. Without the lock: what was true a moment ago will do.
static inline void bsw_running_prefetch(const struct bsw_running_lists *lists, size_t query)
{
    uint32_t count = __atomic_load_n(&lists->lists[query].count, __ATOMIC_RELAXED);
    __builtin_prefetch(lists->items + query * lists->capacity + count, 1);
}

// Adds what was found, candidates of places, num > 0.
void bsw_running_lists_add(const struct bsw_running_lists *lists, size_t query,
                           const uint64_t *found, size_t num, struct bsw_running_room room);

// The limit by what is there. No other thread may add at that time; nor here:
void bsw_running_lists_raise(const struct bsw_running_lists *lists, size_t query,
                             struct bsw_running_room room);

// The best of a query, in order, to out; returns how many, at most `keep`.
size_t bsw_running_lists_finish(const struct bsw_running_lists *lists, size_t query, uint64_t *out,
                                struct bsw_running_room room);

#endif
