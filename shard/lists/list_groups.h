// SPDX-License-Identifier: Apache-2.0
// A batch the other way round: for every list the queries that look at it.
#ifndef BITSWEEP_SHARD_LIST_GROUPS_H
#define BITSWEEP_SHARD_LIST_GROUPS_H

#include "shard/lists/coarse_search.h"

// {0} is a valid empty one.
struct bsw_list_groups {
    uint32_t num_lists;
    int is_same; // all lists have the group of list 0
    size_t most; // queries of one list
    // Lists that some query looks at, ascending; NULL: all of them.
    const uint32_t *used; // [num_used]
    size_t num_used;
    // Queries [first[l], first[l + 1]) of `queries`, ascending, look at list l.
    const uint32_t *first; // [num_lists + 1]
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

#endif
