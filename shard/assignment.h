// Which rank answers for which shard and which queries of a batch: a table that every rank computes
// alike.
//
// Up to as many ranks as shards: each rank owns a run of consecutive shards and answers for all
// queries. More ranks: they form num_ranks / num_shards replicas of the index; replica i answers
// for slice i of each batch's queries. Ranks left over stay idle. Degraded service after a lost
// rank will be another table of the same form.
#ifndef BITSWEEP_SHARD_ASSIGNMENT_H
#define BITSWEEP_SHARD_ASSIGNMENT_H

#include <stddef.h>
#include <stdint.h>

struct bsw_assignment {
    uint32_t num_ranks;
    uint32_t num_shards;
    uint32_t num_slices; // replicas
};

static inline struct bsw_assignment bsw_assignment_make(uint32_t num_ranks, uint32_t num_shards)
{
    return (struct bsw_assignment){num_ranks, num_shards,
                                   num_ranks > num_shards ? num_ranks / num_shards : 1};
}

static inline uint32_t bsw_assignment_rank(const struct bsw_assignment *table, uint32_t slice,
                                           uint32_t shard)
{
    if (table->num_slices > 1 || table->num_ranks > table->num_shards)
        return slice * table->num_shards + shard;
    return (uint32_t)((uint64_t)shard * table->num_ranks / table->num_shards);
}

// Queries [first, last) of a batch that a slice has.
static inline void bsw_assignment_queries(const struct bsw_assignment *table, uint32_t slice,
                                          size_t num_queries, size_t *first, size_t *last)
{
    *first = num_queries * slice / table->num_slices;
    *last = num_queries * (slice + 1) / table->num_slices;
}

#endif
