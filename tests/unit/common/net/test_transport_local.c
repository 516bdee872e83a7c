// SPDX-License-Identifier: Apache-2.0
// The transport of a program that runs alone.
#include <stdlib.h>
#include <string.h>

#include "common/net/transport.h"
#include "unit_test.h"

enum { KIND_QUERIES = 1, KIND_CANDIDATES = 2 };

static struct bsw_error err;

static struct bsw_message candidates_of(uint64_t batch)
{
    return (struct bsw_message){.kind = KIND_CANDIDATES, .batch = batch, .name = "candidates"};
}

// What a launcher would have set must not reach these tests.
static void forget_launchers(void)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",           "PMI_RANK", "PMI_SIZE", "PMI_FD",
        "MV2_COMM_WORLD_SIZE",  "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
}

static int open_transport(void **state)
{
    static bsw_transport transport;
    forget_launchers();
    if (bsw_transport_open(&transport, &err) != BSW_OK) return -1;
    *state = &transport;
    return 0;
}

static int close_transport(void **state)
{
    bsw_transport_close(*state, 0);
    bsw_transport_close(*state, 0); // a second time does nothing
    return 0;
}

static void send_text(bsw_transport *transport, struct bsw_message message, const char *text)
{
    assert_int_equal(bsw_transport_send(transport, 0, &message, text, strlen(text), &err), BSW_OK);
}

static void expect_text(bsw_transport *transport, struct bsw_message message, const char *text)
{
    struct bsw_buffer data = {0};
    int source = -5;
    assert_int_equal(bsw_transport_receive(transport, BSW_ANY_RANK, &message, &data, &source, &err),
                     BSW_OK);
    assert_int_equal(source, 0);
    assert_int_equal(data.bytes, strlen(text));
    if (data.bytes > 0) assert_memory_equal(data.data, text, data.bytes);
    bsw_buffer_deinit(&data);
}

UNIT_TEST_WITH(a_program_alone_is_rank_0_of_1, open_transport, close_transport)
{
    bsw_transport *transport = *state;
    assert_string_equal(transport->ops->name, "local");
    assert_int_equal(transport->rank, 0);
    assert_int_equal(transport->num_ranks, 1);
    assert_true(transport->timeout_seconds == 1800.0);
    assert_true(bsw_transport_patience_seconds(transport) == 1800.0);
}

// As the library has it: nothing that is waited for is given up at once.
UNIT_TEST(one_that_is_told_nothing_waits_as_long)
{
    bsw_transport transport = {0}, hasty = {.timeout_seconds = 3};
    bsw_transport_local_init(&transport);
    bsw_transport_local_init(&hasty);
    assert_true(bsw_transport_patience_seconds(&transport) == 1800.0);
    assert_true(bsw_transport_patience_seconds(&hasty) == 3.0);
}

UNIT_TEST_WITH(messages_to_itself_keep_their_order, open_transport, close_transport)
{
    send_text(*state, candidates_of(3), "first");
    send_text(*state, candidates_of(3), "");
    send_text(*state, candidates_of(3), "third");
    expect_text(*state, candidates_of(3), "first");
    expect_text(*state, candidates_of(3), "");
    expect_text(*state, candidates_of(3), "third");
}

UNIT_TEST_WITH(kinds_and_later_batches_wait, open_transport, close_transport)
{
    struct bsw_message queries = {.kind = KIND_QUERIES, .batch = 3};
    send_text(*state, candidates_of(4), "later");
    send_text(*state, queries, "queries");
    send_text(*state, candidates_of(3), "now");
    expect_text(*state, candidates_of(3), "now");
    expect_text(*state, queries, "queries");
    expect_text(*state, candidates_of(4), "later");
}

UNIT_TEST_WITH(older_batches_and_epochs_are_dropped, open_transport, close_transport)
{
    struct bsw_message new_epoch = candidates_of(1), queries = {.kind = KIND_QUERIES, .batch = 2};
    new_epoch.epoch = 1;
    send_text(*state, queries, "old, of another kind");
    send_text(*state, candidates_of(2), "old");
    send_text(*state, candidates_of(3), "now");
    expect_text(*state, candidates_of(3), "now");
    send_text(*state, candidates_of(3), "of the old epoch");
    send_text(*state, new_epoch, "of the new epoch");
    expect_text(*state, new_epoch, "of the new epoch");
    struct bsw_message dropped[] = {queries, candidates_of(2), candidates_of(3)};
    for (size_t i = 0; i < 3; i++) {
        struct bsw_buffer data = {0};
        bsw_transport *transport = *state;
        transport->broken = BSW_OK;
        assert_int_equal(bsw_transport_receive(transport, 0, &dropped[i], &data, NULL, &err),
                         BSW_ERROR_PEER);
    }
}

UNIT_TEST_WITH(large_messages_arrive_whole, open_transport, close_transport)
{
    const size_t bytes = 3 * 1000 * 1000;
    unsigned char *sent = malloc(bytes);
    assert_non_null(sent);
    for (size_t i = 0; i < bytes; i++) sent[i] = (unsigned char)(i * 131 >> 7);
    struct bsw_message message = candidates_of(1);
    struct bsw_buffer data = {0};
    assert_int_equal(bsw_buffer_append(&data, "left over", 9, &err), BSW_OK);
    assert_int_equal(bsw_transport_send(*state, 0, &message, sent, bytes, &err), BSW_OK);
    assert_int_equal(bsw_transport_receive(*state, 0, &message, &data, NULL, &err), BSW_OK);
    assert_int_equal(data.bytes, bytes);
    assert_memory_equal(data.data, sent, bytes);
    bsw_buffer_deinit(&data);
    free(sent);
}

UNIT_TEST_WITH(receiving_what_was_never_sent_fails_at_once, open_transport, close_transport)
{
    bsw_transport *transport = *state;
    struct bsw_message message = candidates_of(7);
    struct bsw_buffer data = {0};
    assert_int_equal(bsw_transport_receive(transport, BSW_ANY_RANK, &message, &data, NULL, &err),
                     BSW_ERROR_PEER);
    assert_non_null(strstr(err.message, "candidates"));
    assert_non_null(strstr(err.message, "batch 7"));
    assert_int_equal(err.rank, -1);
    // From here on nothing works, and an agreement says so.
    assert_int_equal(bsw_transport_send(transport, 0, &message, "x", 1, NULL), BSW_ERROR_PEER);
}

UNIT_TEST_WITH(a_broadcast_leaves_the_data_alone, open_transport, close_transport)
{
    struct bsw_message message = {.kind = KIND_QUERIES, .batch = 1};
    struct bsw_buffer data = {0};
    assert_int_equal(bsw_buffer_append(&data, "queries", 7, &err), BSW_OK);
    assert_int_equal(bsw_transport_broadcast(*state, &message, &data, &err), BSW_OK);
    assert_int_equal(data.bytes, 7);
    assert_memory_equal(data.data, "queries", 7);
    bsw_buffer_deinit(&data);
}

UNIT_TEST_WITH(an_agreement_is_the_own_status, open_transport, close_transport)
{
    assert_int_equal(bsw_transport_agree(*state, BSW_OK, &err), BSW_OK);
    assert_int_equal(bsw_transport_agree(*state, BSW_ERROR_IO, NULL), BSW_ERROR_IO);
    enum bsw_status own = bsw_fail(&err, BSW_ERROR_BAD_DATA, "row %d", 5);
    assert_int_equal(bsw_transport_agree(*state, own, &err), BSW_ERROR_BAD_DATA);
    assert_string_equal(err.message, "row 5");
    assert_int_equal(err.rank, -1);
}

UNIT_TEST_WITH(misuse_is_refused, open_transport, close_transport)
{
    struct bsw_message message = candidates_of(1), reserved = {.kind = BSW_KIND_RESERVED};
    struct bsw_buffer data = {0};
    assert_int_equal(bsw_transport_send(*state, 1, &message, "", 0, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_transport_receive(*state, 1, &message, &data, NULL, &err),
                     BSW_ERROR_USAGE);
    assert_int_equal(bsw_transport_send(*state, 0, &reserved, "", 0, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_transport_broadcast(*state, &reserved, &data, &err), BSW_ERROR_USAGE);
}

UNIT_TEST(several_unconnected_processes_are_refused)
{
    bsw_transport transport;
    forget_launchers();
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    assert_int_equal(bsw_transport_open(&transport, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "4 processes"));
    bsw_transport_close(&transport, 1);
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    assert_int_equal(bsw_transport_open(&transport, &err), BSW_OK);
    bsw_transport_close(&transport, 0);
    forget_launchers();
}

#ifndef BITSWEEP_HAVE_MPI
UNIT_TEST(mpirun_without_mpi_is_refused)
{
    bsw_transport transport;
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    assert_int_equal(bsw_transport_open(&transport, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "without MPI"));
    bsw_transport_close(&transport, 1);
    forget_launchers();
}
#endif

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
