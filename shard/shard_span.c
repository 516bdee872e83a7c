// SPDX-License-Identifier: Apache-2.0
#include "shard/shard_span.h"

static int is_same_rank(const struct bsw_assignment *table, uint32_t a, uint32_t b)
{
    for (uint32_t slice = 0; slice < table->num_slices; slice++) {
        if (bsw_assignment_rank(table, slice, a) != bsw_assignment_rank(table, slice, b)) return 0;
    }
    return 1;
}

struct bsw_span bsw_span_at(const struct bsw_span_rule *rule, uint32_t first_shard)
{
    const struct bsw_shard_entry *shards = rule->manifest->shards;
    struct bsw_span span = {first_shard, 1, shards[first_shard].first_row,
                            shards[first_shard].num_rows};
    for (uint32_t s = first_shard + 1; s < rule->assignment->num_shards && !rule->is_shard; s++) {
        if (span.num_rows + shards[s].num_rows > UINT32_MAX ||
            !is_same_rank(rule->assignment, first_shard, s))
            break;
        span.num_shards++;
        span.num_rows += shards[s].num_rows;
    }
    return span;
}

uint32_t bsw_num_spans(const struct bsw_span_rule *rule)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < rule->assignment->num_shards; s += bsw_span_at(rule, s).num_shards)
        count++;
    return count;
}

uint32_t bsw_num_rank_spans(const struct bsw_span_rule *rule, uint32_t rank)
{
    const struct bsw_assignment *table = rule->assignment;
    uint32_t count = 0;
    for (uint32_t s = 0; s < table->num_shards; s += bsw_span_at(rule, s).num_shards) {
        for (uint32_t slice = 0; slice < table->num_slices; slice++)
            count += bsw_assignment_rank(table, slice, s) == rank;
    }
    return count;
}
