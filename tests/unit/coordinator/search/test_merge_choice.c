// SPDX-License-Identifier: Apache-2.0
// Where cuts are found, what that wants of memory, and counts of candidates that ranks send.
#include <string.h>

#include "coordinator/search/merge_choice.h"
#include "unit_test.h"

enum { NUM_SHARDS = 3, BATCH = 8 };

static struct bsw_error err;
static struct bsw_shard_entry shards[NUM_SHARDS] = {{.first_row = 0, .num_rows = 100},
                                                    {.first_row = 100, .num_rows = 5},
                                                    {.first_row = 105, .num_rows = 60}};
static struct bsw_manifest manifest = {.num_shards = NUM_SHARDS, .shards = shards, .num_rows = 165};

// What `asked` gives of so many ranks and shards.
static struct bsw_search_settings chosen(enum bsw_search_merge asked, int has_devices,
                                         uint32_t num_ranks, uint32_t num_shards)
{
    struct bsw_assignment assignment;
    struct bsw_search_settings settings = {.keep = 50, .batch = BATCH};
    assert_ok(bsw_assignment_make(num_ranks, num_shards, &assignment, &err), &err);
    bsw_merge_place_choose(asked, has_devices, &assignment, &settings);
    bsw_assignment_deinit(&assignment);
    return settings;
}

UNIT_TEST(devices_merge_where_there_is_something_to_merge)
{
    assert_int_equal(chosen(BSW_MERGE_AUTO, 1, 1, 1).merge_place, BSW_MERGE_ON_HOST);
    assert_int_equal(chosen(BSW_MERGE_AUTO, 1, 1, 2).merge_place, BSW_MERGE_ON_DEVICE);
    assert_int_equal(chosen(BSW_MERGE_AUTO, 1, 4, 4).merge_place, BSW_MERGE_ON_ALL_DEVICES);
    assert_int_equal(chosen(BSW_MERGE_AUTO, 1, 4, 1).merge_place, BSW_MERGE_ON_ALL_DEVICES);
    assert_int_equal(chosen(BSW_MERGE_GATHER, 1, 4, 4).merge_place, BSW_MERGE_ON_DEVICE);
    assert_int_equal(chosen(BSW_MERGE_EXCHANGE, 1, 1, 1).merge_place, BSW_MERGE_ON_ALL_DEVICES);
    for (int place = 0; place < 2; place++)
        assert_false(chosen(place ? BSW_MERGE_GATHER : BSW_MERGE_AUTO, 1, 4, 4).is_ladder);
}

UNIT_TEST(hosts_merge_where_devices_cannot)
{
    for (int asked = BSW_MERGE_AUTO; asked <= BSW_MERGE_EXCHANGE; asked++) {
        const struct bsw_search_settings s = chosen((enum bsw_search_merge)asked, 0, 4, 4);
        assert_int_equal(s.merge_place, BSW_MERGE_ON_HOST);
        assert_int_equal(s.is_ladder, asked != BSW_MERGE_GATHER);
    }
    assert_int_equal(chosen(BSW_MERGE_LADDER, 1, 4, 4).merge_place, BSW_MERGE_ON_HOST);
    assert_true(chosen(BSW_MERGE_LADDER, 1, 4, 4).is_ladder);
}

// The table of two ranks: shards 0 and 1 are rank 0's, shard 2 is rank 1's.
static struct bsw_assignment two_ranks(void)
{
    struct bsw_assignment assignment;
    assert_ok(bsw_assignment_make(2, NUM_SHARDS, &assignment, &err), &err);
    return assignment;
}

UNIT_TEST(memory_decides_how_many_queries_merge_at_a_time)
{
    struct bsw_assignment assignment = two_ranks();
    struct bsw_device_merge_needs needs = {.rule = {&manifest, &assignment, 0},
                                           .keep = 50,
                                           .batch = BATCH,
                                           .place = BSW_MERGE_ON_ALL_DEVICES};
    struct bsw_device_merge_plan plan, other;
    bsw_device_merge_plan_make(&needs, 0, (size_t)1 << 30, &plan);
    assert_int_equal(plan.list_items, 50 + 50);
    needs.rule.is_shard = 1;
    bsw_device_merge_plan_make(&needs, 0, (size_t)1 << 30, &plan);
    assert_int_equal(plan.list_items, 50 + 5 + 50);
    assert_int_equal(plan.group_queries, BATCH);
    assert_int_equal(plan.share_queries, BATCH / 2);
    for (size_t bytes = plan.bytes * 8; plan.group_queries > 0; bytes /= 2) {
        assert_true(plan.bytes <= bytes / 8);
        bsw_device_merge_plan_make(&needs, 1, bytes, &other); // ranks agree
        assert_int_equal(other.group_queries, plan.group_queries);
        bsw_device_merge_plan_make(&needs, 0, bytes / 2, &plan);
    }
    needs.place = BSW_MERGE_ON_DEVICE;
    bsw_device_merge_plan_make(&needs, 0, (size_t)1 << 30, &plan);
    bsw_device_merge_plan_make(&needs, 1, (size_t)1 << 30, &other);
    assert_int_equal(plan.share_queries, BATCH);
    assert_int_equal(other.share_queries, 0);
    assert_true(other.bytes < plan.bytes);
    needs.keep = UINT64_MAX;
    shards[0].num_rows = (uint64_t)1 << 32; // more than a sort takes
    bsw_device_merge_plan_make(&needs, 0, SIZE_MAX, &plan);
    assert_int_equal(plan.group_queries, 0);
    shards[0].num_rows = 100;
    bsw_assignment_deinit(&assignment);
}

UNIT_TEST(too_little_memory_is_a_merge_on_the_host)
{
    struct bsw_assignment assignment = two_ranks();
    struct bsw_search_settings s = chosen(BSW_MERGE_AUTO, 1, 2, NUM_SHARDS);
    // Rank 0 has two shards, so twice the candidates where each has lists of its own.
    size_t most = (size_t)4 * BATCH * 50 * sizeof(uint64_t);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(bsw_merge_room(&manifest, &s, &assignment, rank, most), most);
        assert_int_equal(bsw_merge_room(&manifest, &s, &assignment, rank, most - 32), 0);
    }
    s.queue.length = 1;
    assert_int_equal(bsw_merge_room(&manifest, &s, &assignment, 1, most), most);
    assert_int_equal(bsw_merge_room(&manifest, &s, &assignment, 0, most), 0);
    assert_int_equal(bsw_merge_room(&manifest, &s, &assignment, 0, 2 * most), 2 * most);
    assert_true(bsw_merge_fits(&manifest, &assignment, BSW_MERGE_AUTO, 1 << 20, &s));
    assert_int_equal(s.merge_place, BSW_MERGE_ON_ALL_DEVICES);
    assert_false(bsw_merge_fits(&manifest, &assignment, BSW_MERGE_AUTO, 0, &s));
    assert_int_equal(s.merge_place, BSW_MERGE_ON_HOST);
    assert_true(s.is_ladder);
    bsw_assignment_deinit(&assignment);
}

UNIT_TEST(counts_that_make_no_sense_are_refused)
{
    struct bsw_assignment assignment = two_ranks();
    struct bsw_span spans[] = {{0, 1, 0, 100}, {1, 1, 100, 5}, {2, 1, 105, 60}};
    struct bsw_batch_device_merge merge = {
        .needs = {.rule = {&manifest, &assignment, 1}, .keep = 50},
        .spans = spans,
        .num_spans = NUM_SHARDS};
    uint64_t first[] = {50, 0, 5, 5}, second[] = {1, 50}; // of two queries
    struct bsw_buffer payloads[] = {{.data = (unsigned char *)first, .bytes = sizeof first},
                                    {.data = (unsigned char *)second, .bytes = sizeof second}};
    static const uint32_t expected[] = {50, 0, 5, 5, 1, 50};
    assert_ok(bsw_batch_device_merge_counts(&merge, payloads, 2, &err), &err);
    assert_memory_equal(merge.counts.data, expected, sizeof expected);
    second[1] = 51; // more than are kept
    assert_int_equal(bsw_batch_device_merge_counts(&merge, payloads, 2, &err), BSW_ERROR_PEER);
    first[3] = 6; // rows that the shard does not have
    assert_int_equal(bsw_batch_device_merge_counts(&merge, payloads, 2, &err), BSW_ERROR_PEER);
    first[3] = 5;
    second[1] = (uint64_t)1 << 32;
    assert_int_equal(bsw_batch_device_merge_counts(&merge, payloads, 2, &err), BSW_ERROR_PEER);
    second[1] = 50;
    for (size_t bytes = 0; bytes < sizeof second; bytes++) {
        payloads[1].bytes = bytes;
        assert_int_equal(bsw_batch_device_merge_counts(&merge, payloads, 2, &err), BSW_ERROR_PEER);
    }
    payloads[1].bytes = sizeof second;
    payloads[0].bytes = 0;
    assert_int_equal(bsw_batch_device_merge_counts(&merge, payloads, 2, &err), BSW_ERROR_PEER);
    merge.counts.bytes--; // as it comes to another rank
    assert_int_equal(bsw_batch_device_merge_check(&merge, 2, &err), BSW_ERROR_PEER);
    bsw_buffer_deinit(&merge.counts);
    bsw_assignment_deinit(&assignment);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
