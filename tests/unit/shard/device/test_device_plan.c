// SPDX-License-Identifier: Apache-2.0
// How memory of a device is shared: for every size of it what is planned fits, and what fits is
// planned.
#include <stdio.h>
#include <string.h>

#include "shard/device/device_plan.h"
#include "unit_test.h"

enum { SHARDS = 3, QUERY_BITS = 6 };

static struct bsw_error err;

static void make_shapes(const char *segments, uint32_t dims, int has_affine,
                        struct bsw_shard_shape *shapes)
{
    static const uint64_t rows[SHARDS] = {1000, 7, 33001};
    memset(shapes, 0, SHARDS * sizeof *shapes);
    for (int i = 0; i < SHARDS; i++) {
        assert_int_equal(bsw_code_layout_parse(segments, dims, &shapes[i].layout, &err), BSW_OK);
        shapes[i].num_rows = shapes[i].num_places = rows[i];
        shapes[i].has_affine = has_affine;
    }
}

static size_t codes_bytes(const struct bsw_device_needs *needs, size_t num_bundles)
{
    struct bsw_device_codes_layout codes;
    bsw_device_codes_layout_make(&needs->shapes[0].layout, needs->shapes[0].has_affine,
                                 needs->stage_dims > 0, num_bundles, &codes);
    return num_bundles > 0 ? codes.bytes : 0;
}

static size_t bundles_of(const struct bsw_device_needs *needs, size_t shard)
{
    return (size_t)(needs->shapes[shard].num_rows + 31) / 32;
}

// Arrays lie behind each other without overlap, each at a multiple of 256.
UNIT_TEST(arrays_of_codes_do_not_overlap)
{
    struct bsw_shard_shape shapes[SHARDS];
    make_shapes("33x3,7x2", 40, 1, shapes);
    for (size_t bundles = 1; bundles < 70; bundles++) {
        struct bsw_device_codes_layout at;
        bsw_device_codes_layout_make(&shapes[0].layout, 1, 1, bundles, &at);
        size_t places[7] = {at.planes[0], at.planes[1], at.scales, at.biases,
                            at.tails,     at.masks,     at.bytes};
        size_t needed[6] = {bundles * 3 * 2 * 128, bundles * 2 * 128, bundles * 64,
                            bundles * 128,         bundles * 64,      bundles * 4};
        assert_int_equal(places[0], 0);
        for (int i = 0; i < 6; i++) {
            assert_true(places[i + 1] - places[i] >= needed[i]);
            assert_true(places[i + 1] - places[i] < needed[i] + 256);
            assert_int_equal(places[i + 1] % 256, 0);
        }
    }
    assert_int_equal(bsw_device_bundle_bytes(&shapes[0].layout, 1, 1),
                     3 * 256 + 256 + 64 + 128 + 64 + 4);
    assert_int_equal(bsw_device_bundle_bytes(&shapes[0].layout, 1, 0),
                     3 * 256 + 256 + 64 + 128 + 4);
    assert_int_equal(bsw_device_bundle_bytes(&shapes[0].layout, 0, 0), 3 * 256 + 256 + 4);
}

// Codes of bytes have an offset of each row.
UNIT_TEST(offsets_have_room)
{
    struct bsw_shard_shape shapes[SHARDS];
    struct bsw_device_codes_layout at;
    make_shapes("40x8", 40, 0, shapes);
    bsw_device_codes_layout_make(&shapes[0].layout, BSW_DEVICE_KEYS_WHOLE, 0, 5, &at);
    assert_int_equal(at.offsets, 5 * 32 * 64);
    assert_int_equal(at.masks, at.offsets + 768); // 5 * 32 * 4, rounded up
    assert_int_equal(bsw_device_bundle_bytes(&shapes[0].layout, BSW_DEVICE_KEYS_WHOLE, 0),
                     32 * 64 + 128 + 4);
}

static void check_plan(const struct bsw_device_needs *needs, size_t free_bytes,
                       const struct bsw_device_plan *plan)
{
    size_t codes = 0, all = 0, streamed = 0,
           left = free_bytes - plan->queries.bytes - 2 * plan->block_bytes;
    int is_cut = 0; // some shard is not wholly there
    for (size_t i = 0; i < SHARDS; i++) {
        size_t bundles = bundles_of(needs, i), resident = plan->resident_bundles[i];
        assert_true(resident <= bundles);
        is_cut |= resident < bundles;
        streamed += bundles - resident;
        codes += codes_bytes(needs, resident);
        all += codes_bytes(needs, bundles);
        if (resident < bundles) // the next bundle would not fit
            assert_true(codes + codes_bytes(needs, resident + 1) - codes_bytes(needs, resident) >
                        left);
    }
    assert_int_equal(codes, plan->code_bytes);
    assert_true(plan->queries.bytes + 2 * plan->block_bytes + codes <= free_bytes);
    assert_true(plan->group_queries >= 1 && plan->group_queries <= needs->max_queries);
    size_t least = 3 * needs->keep + 1024;
    assert_true(plan->capacity >= (least < 33001 ? least : 33001));
    assert_true(plan->capacity <= 33024); // of the largest shard with its padding
    if (plan->capacity > least) {
        assert_true(plan->queries.bytes <= free_bytes / 8);
        assert_int_equal(plan->group_queries, needs->max_queries);
    }
    assert_int_equal(bsw_device_plan_bytes(plan),
                     plan->queries.bytes + 2 * plan->block_bytes + plan->code_bytes);
    assert_int_equal(plan->streamed_bytes,
                     streamed * bsw_device_bundle_bytes(&needs->shapes[0].layout,
                                                        needs->shapes[0].has_affine,
                                                        needs->stage_dims > 0));
    if (plan->block_bundles > 0) {
        assert_int_equal(plan->block_bytes, codes_bytes(needs, plan->block_bundles));
        assert_true(plan->queries.bytes + all > free_bytes);
    } else {
        assert_false(is_cut);
        assert_int_equal(plan->block_bytes, 0);
    }
}

static void check_all_sizes(const struct bsw_device_needs *needs)
{
    enum { PLANNED = 1, IN_BLOCKS = 2, REFUSED = 4 };
    int seen = 0, was_planned = 0;
    for (size_t free_bytes = 0; free_bytes < (size_t)16 << 20;
         free_bytes += free_bytes / 16 + 1 + free_bytes % 3) {
        struct bsw_device_plan plan;
        enum bsw_status status = bsw_device_plan_make(needs, free_bytes, &plan, &err);
        if (status == BSW_OK) {
            check_plan(needs, free_bytes, &plan);
            seen |= plan.block_bundles > 0 ? IN_BLOCKS : PLANNED;
            was_planned = 1;
            bsw_device_plan_deinit(&plan);
            continue;
        }
        assert_int_equal(status, BSW_ERROR_OUT_OF_MEMORY);
        assert_false(was_planned); // more memory never turns a plan into an error
        seen |= REFUSED;
    }
    assert_int_equal(seen, PLANNED | IN_BLOCKS | REFUSED);
}

UNIT_TEST(every_size_of_memory_is_used_and_kept_to)
{
    struct bsw_shard_shape shapes[SHARDS];
    static const size_t keeps[] = {1, 50, 3000}, queries[] = {1, 17, 300};
    for (int has_affine = 0; has_affine < 2; has_affine++) {
        make_shapes(has_affine ? "33x3,7x2" : "96x3", has_affine ? 40 : 96, has_affine, shapes);
        for (int i = 0; i < 9; i++) {
            const struct bsw_device_needs needs = {.shapes = shapes,
                                                   .num_shards = SHARDS,
                                                   .query_bits = QUERY_BITS,
                                                   .max_queries = queries[i / 3],
                                                   .keep = keeps[i % 3],
                                                   .stage_dims = i == 4 && has_affine ? 32 : 0};
            check_all_sizes(&needs);
        }
    }
}

UNIT_TEST(what_is_needed_at_least_is_enough)
{
    struct bsw_shard_shape shapes[SHARDS];
    struct bsw_device_plan plan;
    unsigned long long free_bytes, needed;
    make_shapes("96x3", 96, 1, shapes);
    const struct bsw_device_needs needs = {.shapes = shapes,
                                           .num_shards = SHARDS,
                                           .query_bits = QUERY_BITS,
                                           .max_queries = 100,
                                           .keep = 10};
    assert_int_equal(bsw_device_plan_make(&needs, 5000, &plan, &err), BSW_ERROR_OUT_OF_MEMORY);
    assert_int_equal(sscanf(err.message,
                            "%llu bytes of device memory are free, %llu are needed at least",
                            &free_bytes, &needed),
                     2);
    assert_int_equal(free_bytes, 5000);
    assert_int_equal(bsw_device_plan_make(&needs, (size_t)needed - 1, &plan, &err),
                     BSW_ERROR_OUT_OF_MEMORY);
    assert_int_equal(bsw_device_plan_make(&needs, (size_t)needed, &plan, &err), BSW_OK);
    assert_int_equal(plan.group_queries, 1);
    assert_int_equal(plan.block_bundles, 1);
    bsw_device_plan_deinit(&plan);
}

// Long lists for few queries, never at the price of codes that have to come in blocks.
UNIT_TEST(lists_are_long_where_memory_is_free)
{
    static const size_t queries[] = {1, 512, 1024, 100000}, keeps[] = {10, 10, 10000, 10};
    static const size_t capacities[] = {1 << 16, 1 << 16, 1 << 15, 3 * 10 + 1024};
    struct bsw_shard_shape shapes[SHARDS];
    struct bsw_device_plan plan;
    make_shapes("96x3", 96, 1, shapes);
    shapes[0].num_rows = shapes[0].num_places = 1000000000;
    for (int i = 0; i < 4; i++) {
        const struct bsw_device_needs needs = {.shapes = shapes,
                                               .num_shards = 1,
                                               .query_bits = QUERY_BITS,
                                               .max_queries = queries[i],
                                               .keep = keeps[i]};
        assert_int_equal(bsw_device_plan_make(&needs, (size_t)80 << 30, &plan, &err), BSW_OK);
        assert_int_equal(plan.capacity, capacities[i]);
        assert_int_equal(plan.block_bundles, 0);
        bsw_device_plan_deinit(&plan);
    }
    const struct bsw_device_needs needs = {
        .shapes = shapes, .num_shards = 1, .query_bits = QUERY_BITS, .max_queries = 1, .keep = 10};
    size_t codes = codes_bytes(&needs, bundles_of(&needs, 0));
    for (size_t room = 30000; room < 1000000; room += 300000) {
        assert_int_equal(bsw_device_plan_make(&needs, codes + room, &plan, &err), BSW_OK);
        assert_int_equal(plan.block_bundles, 0);
        assert_true(plan.queries.bytes <= room && plan.queries.bytes + 4096 > room);
        bsw_device_plan_deinit(&plan);
    }
}

// Lists have room for a round, or for all rows; what no thread can use takes no memory.
UNIT_TEST(queues_have_room_for_a_round)
{
    static const struct bsw_queue_options queues[] = {
        {1, 1}, {16, 3}, {256, 1}, {BSW_QUEUE_MAX_ITEMS, BSW_QUEUE_MAX_LENGTH}};
    static const size_t blocks[] = {129, 9, 1, 1}; // of 33024 rows with padding
    struct bsw_shard_shape shapes[SHARDS];
    make_shapes("96x3", 96, 0, shapes);
    for (int i = 0; i < 16; i++) {
        const struct bsw_device_needs needs = {.shapes = shapes,
                                               .num_shards = SHARDS,
                                               .query_bits = QUERY_BITS,
                                               .max_queries = i % 2 ? 40 : 1,
                                               .keep = i % 4 < 2 ? 10 : 40000,
                                               .queue = queues[i / 4]};
        size_t seen = 0;
        for (size_t free_bytes = 30000; free_bytes < (size_t)1 << 30;
             free_bytes += free_bytes / 3) {
            struct bsw_device_plan plan;
            if (bsw_device_plan_make(&needs, free_bytes, &plan, &err) != BSW_OK) continue;
            size_t slots = (size_t)plan.queue.length * BSW_QUEUE_THREADS;
            size_t round = plan.keep + plan.queue_blocks * slots;
            assert_true(plan.queue.length <= plan.queue.items && plan.queue.items <= 129);
            assert_true(plan.queue_blocks >= 1 && plan.queue_blocks <= blocks[i / 4]);
            assert_true(plan.capacity >= round || plan.capacity == 33024);
            assert_true(plan.queries.bytes - plan.queries.slots >=
                        plan.group_queries * plan.queue_blocks * slots * sizeof(uint64_t));
            assert_true(bsw_device_plan_bytes(&plan) <= free_bytes);
            if (plan.queue_blocks > seen) seen = plan.queue_blocks;
            bsw_device_plan_deinit(&plan);
        }
        assert_true(seen > 1 || blocks[i / 4] == 1 || needs.keep > 33024);
    }
}

// Masks are in the plan before there is one, in place of codes where memory is short.
UNIT_TEST(masks_of_rows_have_room)
{
    struct bsw_shard_shape shapes[SHARDS];
    make_shapes("32x4,8x2", 40, 1, shapes);
    struct bsw_device_needs needs = {.shapes = shapes,
                                     .num_shards = SHARDS,
                                     .query_bits = QUERY_BITS,
                                     .max_queries = 10,
                                     .keep = 50};
    struct bsw_device_plan without, with;
    assert_ok(bsw_device_plan_make(&needs, 1 << 28, &without, &err), &err);
    needs.has_masks = 1;
    assert_ok(bsw_device_plan_make(&needs, 1 << 28, &with, &err), &err);
    assert_int_equal(with.mask_bytes, 256 + 256 + 4352); // 32, 1 and 1032 bundles
    assert_int_equal(bsw_device_plan_bytes(&with),
                     bsw_device_plan_bytes(&without) + with.mask_bytes);
    size_t all = bsw_device_plan_bytes(&without);
    bsw_device_plan_deinit(&with);
    bsw_device_plan_deinit(&without);
    assert_ok(bsw_device_plan_make(&needs, all, &with, &err), &err);
    assert_true(bsw_device_plan_bytes(&with) <= all);
    bsw_device_plan_deinit(&with);
}

UNIT_TEST(a_rank_without_shards_needs_nothing)
{
    struct bsw_device_plan plan;
    const struct bsw_device_needs needs = {
        .num_shards = 0, .query_bits = QUERY_BITS, .max_queries = 100, .keep = 10};
    assert_int_equal(bsw_device_plan_make(&needs, 0, &plan, &err), BSW_OK);
    assert_int_equal(plan.group_queries, 0);
    assert_int_equal(plan.queries.bytes, 0);
    bsw_device_plan_deinit(&plan);
}

// Lists: all codes with their rows; before that fewer queries at a time, and before that blocks,
// which have rows too. Tables of work items are beside.
UNIT_TEST(codes_of_lists_come_in_blocks_as_a_last_resort)
{
    struct bsw_shard_shape shapes[SHARDS];
    make_shapes("33x3,7x2", 40, 1, shapes);
    for (int i = 0; i < SHARDS; i++) shapes[i].num_lists = 20;
    const struct bsw_device_needs needs = {.shapes = shapes,
                                           .num_shards = SHARDS,
                                           .query_bits = QUERY_BITS,
                                           .max_queries = 100,
                                           .keep = 50,
                                           .probe = 7};
    size_t all = 0, least = 0, blocks = 0, few = 0, least_resident = SIZE_MAX, most_resident = 0;
    for (size_t i = 0; i < SHARDS; i++)
        all += codes_bytes(&needs, bundles_of(&needs, i)) +
               bsw_device_places_bytes(bundles_of(&needs, i));
    for (size_t bytes = 1000; bytes < 8000000; bytes += 9999) {
        struct bsw_device_plan plan;
        if (bsw_device_plan_make(&needs, bytes, &plan, &err) != BSW_OK) {
            assert_int_equal(err.status, BSW_ERROR_OUT_OF_MEMORY);
            assert_non_null(strstr(err.message, "block by block; all at once need"));
            assert_true(blocks == 0);
            least = bytes;
            continue;
        }
        assert_true(bsw_device_plan_bytes(&plan) <= bytes);
        if (plan.block_bundles > 0) {
            assert_true(few == 0 && plan.streamed_bytes > 0 && plan.code_bytes < all);
            assert_int_equal(plan.block_bytes, codes_bytes(&needs, plan.block_bundles) +
                                                   bsw_device_places_bytes(plan.block_bundles));
            least_resident = least_resident < plan.code_bytes ? least_resident : plan.code_bytes;
            most_resident = most_resident > plan.code_bytes ? most_resident : plan.code_bytes;
            blocks = bytes;
            bsw_device_plan_deinit(&plan);
            continue;
        }
        assert_true(bytes > blocks && plan.code_bytes == all && plan.streamed_bytes == 0);
        assert_true(plan.list_slots >= 700 && plan.list_items >= bundles_of(&needs, 2));
        few += plan.group_queries < 100;
        bsw_device_plan_deinit(&plan);
    }
    assert_true(least > 0 && few > 0 && blocks > least);
    assert_true(least_resident < all / 4 && most_resident > least_resident);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
