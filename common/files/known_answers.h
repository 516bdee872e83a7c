// SPDX-License-Identifier: Apache-2.0
// Known answers of an index: a few queries that are pinned for ever (shard/codecs/pinned_queries.h)
// and, for each shard, their best rows, found when it was encoded and kept in the manifest. Whoever
// scans the shard later must find the same.
#ifndef BITSWEEP_COMMON_KNOWN_ANSWERS_H
#define BITSWEEP_COMMON_KNOWN_ANSWERS_H

#include <stdint.h>

// Stands for how queries are made and what is kept: answers by another rule are not looked at. Raw
// answers had keys rounded to float32 once, by rule 1.
#define BSW_KNOWN_RULE        1
#define BSW_KNOWN_RULE_RAW    2
#define BSW_KNOWN_RULE_TABLES 3
#define BSW_KNOWN_QUERIES     4  // at most
#define BSW_KNOWN_ROWS        32 // of each, fewer where the shard has fewer

// Answers of one shard: lists one after another, each descending in the total order, candidates as
// common/codes/result_order.h packs them.
struct bsw_known_answers {
    uint32_t num_queries; // 0: none
    uint32_t num_rows;    // of each list
    const uint64_t *best; // [num_queries][num_rows]; borrowed
};

// Length of a shard's lists: rows are those that were not dropped.
static inline uint32_t bsw_known_rows(uint64_t num_rows)
{
    return num_rows < BSW_KNOWN_ROWS ? (uint32_t)num_rows : BSW_KNOWN_ROWS;
}

#endif
