// SPDX-License-Identifier: Apache-2.0
// Assignments of shards for tests: made once for each number of ranks and shards, and kept.
#ifndef BITSWEEP_TESTS_UNIT_MADE_ASSIGNMENT_H
#define BITSWEEP_TESTS_UNIT_MADE_ASSIGNMENT_H

#include <stdlib.h>

#include "shard/assignment.h"

static inline const struct bsw_assignment *made_assignment(uint32_t num_ranks, uint32_t num_shards)
{
    static struct bsw_assignment tables[1024];
    size_t i = 0;
    while (tables[i].ranks &&
           (tables[i].num_ranks != num_ranks || tables[i].num_shards != num_shards)) {
        if (++i == sizeof tables / sizeof tables[0]) abort();
    }
    if (!tables[i].ranks && bsw_assignment_make(num_ranks, num_shards, &tables[i], NULL) != BSW_OK)
        abort();
    return &tables[i];
}

#endif
