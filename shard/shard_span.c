#include "shard/shard_span.h"

#include "common/codes/result_order.h"
#include "shard/host/shard_scan.h"

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

// How many of a list's rows are in the range; those go to `to`, unless that is NULL.
static size_t pick(const uint64_t *list, size_t count, uint32_t first_row, uint64_t num_rows,
                   uint64_t *to)
{
    size_t num = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t row = bsw_candidate_row(list[i]);
        if (row < first_row || row - first_row >= num_rows) continue;
        if (to) to[num] = bsw_candidate_pack(bsw_candidate_score(list[i]), row - first_row);
        num++;
    }
    return num;
}

enum bsw_status bsw_candidate_lists_pick(const struct bsw_candidate_lists *lists,
                                         uint32_t first_row, uint64_t num_rows,
                                         struct bsw_candidate_lists *out, struct bsw_error *err)
{
    size_t most = 0, count;
    for (size_t q = 0; q < lists->num_queries; q++) {
        const uint64_t *list = bsw_candidate_list(lists, q, &count);
        size_t num = pick(list, count, first_row, num_rows, NULL);
        most = num > most ? num : most;
    }
    BSW_TRY(bsw_candidate_lists_reserve(out, lists->num_queries, most, err));
    size_t *counts = (size_t *)(void *)out->counts.data;
    for (size_t q = 0; q < lists->num_queries; q++) {
        const uint64_t *list = bsw_candidate_list(lists, q, &count);
        counts[q] =
            pick(list, count, first_row, num_rows, (uint64_t *)(void *)out->items.data + q * most);
    }
    return BSW_OK;
}
