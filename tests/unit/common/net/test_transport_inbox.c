// SPDX-License-Identifier: Apache-2.0
// Messages that are still on their way, and the agreements' own sequence: what a single rank's
// transport never shows.
#include <string.h>

#include "common/net/transport_inbox.h"
#include "unit_test.h"

static struct bsw_error err;

static struct bsw_envelope *push(struct bsw_inbox *inbox, int source, struct bsw_message message,
                                 int complete)
{
    struct bsw_envelope *envelope;
    assert_int_equal(bsw_allocate_zero(&envelope, 1, sizeof *envelope, "test", &err), BSW_OK);
    envelope->source = source;
    envelope->message = message;
    envelope->complete = complete;
    bsw_inbox_push(inbox, envelope);
    return envelope;
}

static void take(struct bsw_inbox *inbox, int from, struct bsw_message expected,
                 const struct bsw_envelope *envelope)
{
    struct bsw_envelope *taken = bsw_inbox_take(inbox, from, &expected);
    assert_ptr_equal(taken, envelope);
    struct bsw_buffer data = {0};
    int source;
    if (taken) assert_int_equal(bsw_envelope_deliver(taken, &data, &source, &err), BSW_OK);
    bsw_buffer_deinit(&data);
}

UNIT_TEST(nothing_overtakes_an_unfinished_message_of_its_sender)
{
    struct bsw_inbox inbox = {0};
    struct bsw_message message = {.kind = 1, .batch = 5};
    struct bsw_envelope *large = push(&inbox, 2, message, 0);
    struct bsw_envelope *small = push(&inbox, 2, message, 1);
    struct bsw_envelope *other = push(&inbox, 3, message, 1);
    assert_true(bsw_inbox_is_blocked(&inbox, small));
    take(&inbox, 2, message, NULL);
    take(&inbox, BSW_ANY_RANK, message, other);
    bsw_inbox_complete(&inbox, large);
    take(&inbox, BSW_ANY_RANK, message, large);
    take(&inbox, 2, message, small);
    take(&inbox, 2, message, NULL);
    bsw_inbox_deinit(&inbox);
}

UNIT_TEST(agreements_count_apart_from_batches)
{
    struct bsw_inbox inbox = {0};
    struct bsw_message batch_7 = {.kind = 1, .batch = 7};
    struct bsw_message agreement_1 = {.kind = BSW_KIND_RESERVED, .batch = 1};
    struct bsw_message agreement_9 = {.kind = BSW_KIND_RESERVED, .batch = 9};
    struct bsw_envelope *early = push(&inbox, 1, agreement_1, 1);
    struct bsw_envelope *answer = push(&inbox, 1, batch_7, 1);
    struct bsw_envelope *late = push(&inbox, 1, agreement_9, 1);
    take(&inbox, 1, batch_7, answer);
    take(&inbox, 1, agreement_1, early);
    take(&inbox, 1, agreement_9, late);
    bsw_inbox_deinit(&inbox);
}

UNIT_TEST(the_rest_is_freed_and_the_list_stays_whole)
{
    struct bsw_inbox inbox = {0};
    struct bsw_message old = {.kind = 1, .batch = 1}, now = {.kind = 1, .batch = 2};
    push(&inbox, 0, old, 1);
    struct bsw_envelope *kept = push(&inbox, 0, now, 1);
    push(&inbox, 0, old, 1); // the last one is dropped: pushing must still work
    take(&inbox, 0, now, kept);
    take(&inbox, 0, now, NULL);
    assert_null(inbox.first);
    assert_null(inbox.last);
    kept = push(&inbox, 0, now, 1);
    push(&inbox, 1, now, 0);
    take(&inbox, 0, now, kept);
    assert_int_equal(inbox.num_incomplete, 1);
    bsw_inbox_deinit(&inbox);
    assert_null(inbox.first);
}

static void push_alarm(struct bsw_inbox *inbox, int source, int32_t status, const char *text,
                       size_t bytes)
{
    const struct bsw_message alarm = {.kind = BSW_KIND_ALARM, .batch = BSW_ALARM_BATCH};
    struct bsw_outcome outcome = {.status = status, .rank = source};
    strcpy(outcome.message, text);
    assert_int_equal(bsw_inbox_push_copy(inbox, source, &alarm, &outcome, bytes, &err), BSW_OK);
}

UNIT_TEST(an_alarm_stays_whatever_is_taken)
{
    struct bsw_inbox inbox = {0};
    struct bsw_message agreement = {.kind = BSW_KIND_RESERVED, .batch = UINT64_MAX - 1};
    struct bsw_message batch = {.kind = 1, .batch = UINT64_MAX};
    push(&inbox, 1, agreement, 1);
    assert_int_equal(bsw_inbox_check_alarm(&inbox, &err), BSW_OK);
    push_alarm(&inbox, 3, BSW_ERROR_IO, "it went wrong", sizeof(struct bsw_outcome));
    push_alarm(&inbox, 2, BSW_ERROR_PEER, "it too", sizeof(struct bsw_outcome));
    take(&inbox, BSW_ANY_RANK, batch, NULL);
    take(&inbox, 5, agreement, NULL);
    assert_int_equal(bsw_inbox_check_alarm(&inbox, &err), BSW_ERROR_IO);
    assert_string_equal(err.message, "it went wrong");
    assert_int_equal(err.rank, 3);
    bsw_inbox_deinit(&inbox);
}

UNIT_TEST(an_alarm_that_makes_no_sense_is_one_too)
{
    struct bsw_inbox inbox = {0};
    push_alarm(&inbox, 3, BSW_ERROR_IO, "", sizeof(struct bsw_outcome) - 1);
    assert_int_equal(bsw_inbox_check_alarm(&inbox, &err), BSW_ERROR_PEER);
    bsw_inbox_deinit(&inbox);
    push_alarm(&inbox, 3, BSW_OK, "", sizeof(struct bsw_outcome));
    assert_int_equal(bsw_inbox_check_alarm(&inbox, &err), BSW_ERROR_PEER);
    bsw_inbox_deinit(&inbox);
    push_alarm(&inbox, 3, 1000, "", sizeof(struct bsw_outcome));
    assert_int_equal(bsw_inbox_check_alarm(&inbox, &err), BSW_ERROR_PEER);
    bsw_inbox_deinit(&inbox);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
