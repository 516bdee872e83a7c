// SPDX-License-Identifier: Apache-2.0
// Assignments of shards: every shard and slice has a rank, ranks share them evenly, and a table
// that was sent is taken as it was made or not at all.
#include <string.h>

#include "shard/assignment.h"
#include "unit_test.h"

static struct bsw_error err;

static void made(uint32_t num_ranks, uint32_t num_shards, struct bsw_assignment *out)
{
    assert_int_equal(bsw_assignment_make(num_ranks, num_shards, out, &err), BSW_OK);
    assert_int_equal(out->epoch, 1);
}

UNIT_TEST(ranks_share_all_shards_evenly)
{
    for (uint32_t num_ranks = 1; num_ranks <= 20; num_ranks++) {
        for (uint32_t num_shards = 1; num_shards <= 9; num_shards++) {
            struct bsw_assignment table;
            made(num_ranks, num_shards, &table);
            uint32_t most = 0, total = 0;
            assert_int_equal(table.num_slices, num_ranks > num_shards ? num_ranks / num_shards : 1);
            for (uint32_t rank = 0; rank < num_ranks; rank++) {
                uint32_t units = bsw_assignment_num_units(&table, rank);
                most = units > most ? units : most;
                total += units;
            }
            assert_int_equal(total, table.num_slices * num_shards);
            assert_int_equal(most,
                             num_ranks > num_shards ? 1 : (num_shards + num_ranks - 1) / num_ranks);
            for (uint32_t shard = 1; shard < num_shards; shard++)
                assert_true(bsw_assignment_rank(&table, 0, shard) >=
                            bsw_assignment_rank(&table, 0, shard - 1));
            bsw_assignment_deinit(&table);
        }
    }
}

UNIT_TEST(what_is_sent_is_what_was_made)
{
    struct bsw_assignment table, sent;
    struct bsw_buffer bytes = {0};
    made(7, 3, &table);
    table.epoch = 5;
    table.ranks[4] = BSW_NO_RANK;
    assert_int_equal(bsw_assignment_pack(&table, &bytes, &err), BSW_OK);
    assert_int_equal(bsw_assignment_parse(bytes.data, bytes.bytes, 7, 3, &sent, &err), BSW_OK);
    assert_int_equal(sent.epoch, 5);
    assert_int_equal(sent.num_slices, 2);
    assert_memory_equal(sent.ranks, table.ranks, 6 * sizeof *table.ranks);
    bsw_assignment_deinit(&sent);
    for (size_t length = 0; length < bytes.bytes; length++)
        assert_int_equal(bsw_assignment_parse(bytes.data, length, 7, 3, &sent, &err),
                         BSW_ERROR_PEER);
    assert_int_equal(bsw_assignment_parse(bytes.data, bytes.bytes, 6, 3, &sent, &err),
                     BSW_ERROR_PEER);
    assert_int_equal(bsw_assignment_parse(bytes.data, bytes.bytes, 7, 2, &sent, &err),
                     BSW_ERROR_PEER);
    bytes.data[bytes.bytes - sizeof(uint32_t)] = 7; // a rank that there is not
    assert_int_equal(bsw_assignment_parse(bytes.data, bytes.bytes, 7, 3, &sent, &err),
                     BSW_ERROR_PEER);
    assert_non_null(strstr(err.message, "names rank 7 of 7"));
    bsw_buffer_deinit(&bytes);
    bsw_assignment_deinit(&table);
}

UNIT_TEST(coverage_counts_rows_that_somebody_answers_for)
{
    struct bsw_shard_entry entries[3] = {
        {.num_rows = 5}, {.first_row = 5, .num_rows = 6}, {.first_row = 11, .num_rows = 7}};
    const struct bsw_manifest manifest = {.num_rows = 18, .num_shards = 3, .shards = entries};
    struct bsw_assignment table;
    made(6, 3, &table);
    table.ranks[1] = BSW_NO_RANK;
    assert_int_equal(bsw_assignment_coverage(&table, &manifest, 0), 12);
    assert_int_equal(bsw_assignment_coverage(&table, &manifest, 1), 18);
    bsw_assignment_deinit(&table);
}

UNIT_TEST(a_replica_takes_over_or_nobody_does)
{
    static const unsigned char first[6] = {1, 0, 0, 0, 1, 0}, second[6] = {0, 0, 0, 1, 1, 0},
                               third[6] = {1, 0, 0, 1, 0, 0};
    struct bsw_shard_entry entries[3] = {
        {.num_rows = 5, .dropped_rows = 1}, {.num_rows = 6, .deleted_rows = 4}, {.num_rows = 7}};
    const struct bsw_manifest manifest = {.num_rows = 18, .num_shards = 3, .shards = entries};
    struct bsw_assignment table;
    made(6, 3, &table);
    bsw_assignment_leave_out(&table, first);
    assert_int_equal(table.epoch, 2);
    assert_int_equal(bsw_assignment_rank(&table, 0, 0), 3);
    assert_int_equal(bsw_assignment_rank(&table, 1, 1), 1);
    assert_int_equal(bsw_assignment_coverage(&table, &manifest, 0), 4 + 2 + 7);
    bsw_assignment_leave_out(&table, third); // both of a shard
    assert_int_equal(bsw_assignment_rank(&table, 0, 0), BSW_NO_RANK);
    assert_int_equal(bsw_assignment_rank(&table, 1, 0), BSW_NO_RANK);
    assert_int_equal(bsw_assignment_coverage(&table, &manifest, 1), 2 + 7);
    bsw_assignment_leave_out(&table, second); // of one that nobody has, and one of two
    assert_int_equal(table.epoch, 4);
    assert_int_equal(bsw_assignment_rank(&table, 1, 0), BSW_NO_RANK);
    assert_int_equal(bsw_assignment_rank(&table, 1, 1), 1);
    bsw_assignment_deinit(&table);
}

UNIT_TEST(one_rank_shares_with_itself)
{
    struct bsw_transport transport = {0};
    struct bsw_assignment table;
    bsw_transport_local_init(&transport);
    assert_int_equal(bsw_assignment_share(&transport, 4, &table, &err), BSW_OK);
    assert_int_equal(bsw_assignment_num_units(&table, 0), 4);
    bsw_assignment_deinit(&table);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
