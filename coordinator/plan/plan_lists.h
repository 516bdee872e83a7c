// SPDX-License-Identifier: Apache-2.0
// Lists of a planned index: the places that their rows take, and what it takes to make them.
//
// Rows of a list are taken to be spread as a negative binomial of shape 5 (mean^2 / variance of
// lists of real and made vectors: 4 to 9). A list of many rows then pads half a bundle in every
// shard; where a shard has fewer rows than lists, nearly every row has a bundle of its own.
#ifndef BITSWEEP_COORDINATOR_PLAN_LISTS_H
#define BITSWEEP_COORDINATOR_PLAN_LISTS_H

#include "coordinator/job/facts.h"
#include "coordinator/plan/plan_index.h"

// Multiply-adds of bytes that a thread does a second while lists are made, where nobody says. A
// core of an EPYC with VNNI, 200,000 rows x 128 dims: 117e9 with 1024 lists, 95e9 with 512.
#define BSW_PLAN_LIST_RATE_TEXT "100G"

struct bsw_plan_lists {
    uint32_t count;
    double rows_a_list;
    uint64_t sample_rows, sample_bytes; // sample_bytes: of a rank
    uint64_t rows_bytes;                // the list of every row, on every rank
    uint64_t orders_bytes;              // of all shards, on rank 0
    uint64_t rounds;
    double training_products, assigning_products; // multiply-adds, of all ranks
    double rate;                                  // of a thread
    uint64_t ranks, threads;                      // of a rank
    double training_seconds, assigning_seconds;
};

// Places of so many rows of a shard; no lists: 0, as in its entry.
uint64_t bsw_plan_places(uint64_t num_rows, uint32_t num_lists);

// What a search of an index that has lists looks at. threads >= 1.
void bsw_plan_lists_make(const struct bsw_plan_settings *settings,
                         const struct bsw_plan_index *index, uint64_t num_ranks, uint64_t threads,
                         double rate, struct bsw_plan_lists *out);
void bsw_plan_lists_facts(struct bsw_facts *facts, const struct bsw_plan_lists *lists);

#endif
