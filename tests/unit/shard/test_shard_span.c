// SPDX-License-Identifier: Apache-2.0
// Which shards are scanned as one, and what of a span's lists is each shard's.
#include <string.h>

#include "common/codes/result_order.h"
#include "shard/scan/candidate_lists.h"
#include "shard/shard_span.h"
#include "unit_test.h"

enum { NUM_SHARDS = 6 };

static struct bsw_error err;
static struct bsw_shard_entry shards[NUM_SHARDS];
static struct bsw_manifest manifest = {.num_shards = NUM_SHARDS, .shards = shards};

static void set_rows(const uint64_t *rows)
{
    manifest.num_rows = 0;
    for (int s = 0; s < NUM_SHARDS; s++) {
        shards[s] = (struct bsw_shard_entry){.first_row = manifest.num_rows, .num_rows = rows[s]};
        manifest.num_rows += rows[s];
    }
}

// The spans' numbers of shards are those of `expected`, which ends with 0.
static void check_spans(const struct bsw_span_rule *rule, const uint32_t *expected)
{
    uint32_t num = 0, first = 0;
    for (; expected[num] > 0; num++) {
        const struct bsw_span span = bsw_span_at(rule, first);
        uint64_t rows = 0;
        assert_int_equal(span.first_shard, first);
        assert_int_equal(span.num_shards, expected[num]);
        assert_int_equal(span.first_row, shards[first].first_row);
        for (uint32_t s = first; s < first + expected[num]; s++) rows += shards[s].num_rows;
        assert_int_equal(span.num_rows, rows);
        first += expected[num];
    }
    assert_int_equal(first, NUM_SHARDS);
    assert_int_equal(bsw_num_spans(rule), num);
}

UNIT_TEST(a_span_is_what_one_rank_has)
{
    static const struct {
        uint32_t num_ranks, spans[NUM_SHARDS + 1];
    } cases[] = {{1, {6}}, {2, {3, 3}}, {4, {2, 1, 2, 1}}, {13, {1, 1, 1, 1, 1, 1}}};
    set_rows((const uint64_t[]){40, 40, 1, 40, 39, 40});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bsw_span_rule rule = {.manifest = &manifest};
        struct bsw_assignment table;
        uint32_t of_ranks = 0;
        assert_ok(bsw_assignment_make(cases[i].num_ranks, NUM_SHARDS, &table, &err), &err);
        rule.assignment = &table;
        check_spans(&rule, cases[i].spans);
        for (uint32_t rank = 0; rank < cases[i].num_ranks; rank++)
            of_ranks += bsw_num_rank_spans(&rule, rank);
        assert_int_equal(of_ranks, bsw_num_spans(&rule) * table.num_slices);
        rule.is_shard = 1;
        check_spans(&rule, (const uint32_t[]){1, 1, 1, 1, 1, 1, 0});
        bsw_assignment_deinit(&table);
    }
}

// Queues and lists are of a shard.
UNIT_TEST(what_is_of_a_shard_makes_it_a_span)
{
    const struct bsw_manifest with_lists = {.lists = {.count = 3}}, without = {0};
    const struct bsw_search_settings plain = {0}, with_queues = {.queue = {.length = 4}};
    assert_false(bsw_span_rule_of(&without, NULL, &plain).is_shard);
    assert_true(bsw_span_rule_of(&without, NULL, &with_queues).is_shard);
    assert_true(bsw_span_rule_of(&with_lists, NULL, &plain).is_shard);
}

// Ranks and slices may be given out in any way.
UNIT_TEST(a_span_ends_where_any_slice_changes_its_rank)
{
    uint32_t ranks[] = {0, 0, 0, 1, 1, 0, 2, 2, 3, 3, 3, BSW_NO_RANK};
    const struct bsw_assignment table = {1, 4, NUM_SHARDS, 2, ranks};
    const struct bsw_span_rule rule = {&manifest, &table, 0};
    check_spans(&rule, (const uint32_t[]){2, 1, 2, 1, 0});
    assert_int_equal(bsw_num_rank_spans(&rule, 0), 3);
    assert_int_equal(bsw_num_rank_spans(&rule, 3), 2);
}

UNIT_TEST(rows_of_a_span_are_counted_with_32_bits)
{
    const uint64_t half = (uint64_t)1 << 31, most = UINT32_MAX;
    struct bsw_assignment table;
    assert_ok(bsw_assignment_make(1, NUM_SHARDS, &table, &err), &err);
    const struct bsw_span_rule rule = {&manifest, &table, 0};
    set_rows((const uint64_t[]){half, half - 1, 1, most, half, half});
    check_spans(&rule, (const uint32_t[]){2, 1, 1, 1, 1, 0});
    bsw_assignment_deinit(&table);
}

UNIT_TEST(each_shard_gets_its_rows)
{
    static const uint32_t rows[] = {9, 3, 0, 5, 4, 12, 3, 8}; // of two queries
    struct bsw_candidate_lists all, out;
    size_t count;
    memset(&all, 0, sizeof all);
    memset(&out, 0, sizeof out);
    assert_ok(bsw_candidate_lists_reserve(&all, 2, 5, &err), &err);
    for (size_t i = 0; i < 8; i++)
        ((uint64_t *)(void *)all.items.data)[i] = bsw_candidate_pack((uint32_t)(90 - i), rows[i]);
    ((size_t *)(void *)all.counts.data)[0] = 5;
    ((size_t *)(void *)all.counts.data)[1] = 3;
    assert_ok(bsw_candidate_lists_pick(&all, 3, 5, &out, &err), &err); // rows 3 .. 7
    assert_int_equal(out.keep, 3);
    const uint64_t *list = bsw_candidate_list(&out, 0, &count);
    assert_int_equal(count, 3);
    assert_int_equal(list[0], bsw_candidate_pack(89, 0));
    assert_int_equal(list[1], bsw_candidate_pack(87, 2));
    assert_int_equal(list[2], bsw_candidate_pack(86, 1));
    list = bsw_candidate_list(&out, 1, &count);
    assert_int_equal(count, 1);
    assert_int_equal(list[0], bsw_candidate_pack(84, 0));
    // The last shard's are all that are left, beyond its rows too.
    assert_ok(bsw_candidate_lists_pick(&all, 8, UINT64_MAX, &out, &err), &err);
    list = bsw_candidate_list(&out, 1, &count);
    assert_int_equal(count, 2);
    assert_int_equal(list[0], bsw_candidate_pack(85, 4));
    assert_int_equal(list[1], bsw_candidate_pack(83, 0));
    bsw_candidate_lists_deinit(&all);
    bsw_candidate_lists_deinit(&out);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
