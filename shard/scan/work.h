// SPDX-License-Identifier: Apache-2.0
// What a batch of queries is to be scanned for: runs of bundles, each with the slots that go over
// it. A slot is a query, and what is added to its keys there. An index without lists is one list
// that all queries look at.
//
// Runs are scanned in any order, by any thread. The answer of a query is the best of all its runs,
// so neither their order nor their lengths change it. Limits rise meanwhile: what is near is a work
// of its own, scanned first. Runs that one query looks at do not overlap.
#ifndef BITSWEEP_SHARD_WORK_H
#define BITSWEEP_SHARD_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/files/list_order.h"
#include "shard/lists/coarse_search.h"

struct bsw_run {
    uint32_t first_bundle, num_bundles, first_slot, num_slots;
};

// {0} is a valid empty one.
struct bsw_work {
    const struct bsw_run *runs; // [num_runs], of one bundle and one slot at least
    size_t num_runs;
    size_t most_slots;       // of a run
    const uint32_t *queries; // of slots
    const float *additions;  // of slots, finite; NULL: nothing is added
    int is_in_order;         // the queries of a run follow each other
    int is_scattered;        // runs are short and lie anywhere in memory
    struct bsw_buffer memory;
};
void bsw_work_deinit(struct bsw_work *work);

// Bundles [i * advance, i * advance + bundles) of a shard, i = 0, 1, ..., as far as there are some.
// advance above bundles: a sample.
struct bsw_work_pieces {
    size_t bundles, advance;
};

// Pieces of a shard for queries 0 .. num_queries - 1, or those listed; at most most_slots of them a
// run. One piece after another, all its runs side by side.
enum bsw_status bsw_work_make_whole(size_t num_bundles, struct bsw_work_pieces pieces,
                                    const uint32_t *queries, size_t num_queries, size_t most_slots,
                                    struct bsw_work *work, struct bsw_error *err);

// A batch the other way round: for every list the queries that look at it.

// {0} is a valid empty one.
struct bsw_list_groups {
    uint32_t num_lists;
    int is_same; // all lists have the group of list 0
    size_t most; // queries of one list
    // Lists that some query looks at, ascending; NULL: all of them.
    const uint32_t *used; // [num_used]
    size_t num_used;
    // Queries [first[l], first[l + 1]) of `queries`, ascending, look at list l.
    const uint32_t *first; // [num_lists + 1]; [2] where all have the same
    const uint32_t *queries;
    const float *additions; // to their keys, as queries lie; NULL: nothing is added
    struct bsw_buffer memory;
};

// Groups the queries by their lists from number `from` on, up to number `to` at most.
enum bsw_status bsw_list_groups_make(const struct bsw_list_choice *choice, uint32_t num_lists,
                                     size_t from, size_t to, struct bsw_list_groups *groups,
                                     struct bsw_error *err);
// All queries look at all lists.
enum bsw_status bsw_list_groups_make_same(size_t num_queries, uint32_t num_lists,
                                          struct bsw_list_groups *groups, struct bsw_error *err);

// Where the queries of a list are.
struct bsw_list_slots {
    size_t first, num;
};
static inline struct bsw_list_slots bsw_list_group_slots(const struct bsw_list_groups *groups,
                                                         uint32_t list)
{
    const uint32_t *first = groups->first + (groups->is_same ? 0 : list);
    return (struct bsw_list_slots){first[0], first[1] - first[0]};
}

void bsw_list_groups_deinit(struct bsw_list_groups *groups);

// Lists for those who look at them; borrows the groups.
enum bsw_status bsw_work_make_lists(const struct bsw_list_order *order,
                                    const struct bsw_list_groups *groups, size_t most_slots,
                                    struct bsw_work *work, struct bsw_error *err);

#endif
