// SPDX-License-Identifier: Apache-2.0
// Which rank gets which device: one of its own by what it is, whatever number a rank has for it.
#include <stdio.h>
#include <string.h>

#include "coordinator/job/device_choice.h"
#include "unit_test.h"

enum { MOST_RANKS = 8 };

static struct bsw_device_list lists[MOST_RANKS];
static struct bsw_device_verdict verdicts[MOST_RANKS];
static struct bsw_error err;

// A rank of `host` that sees devices by one letter each; '-' is one that cannot be used.
static void see(int rank, char host, const char *devices)
{
    struct bsw_device_list *list = &lists[rank];
    memset(list, 0, sizeof *list);
    list->host[0] = host;
    list->count = (int32_t)strlen(devices);
    snprintf(list->why, sizeof list->why, "of rank %d", rank);
    for (int i = 0; i < list->count; i++) {
        if (devices[i] != '-') list->ids[i][0] = devices[i];
    }
}

// What ranks get: a digit each, '.' for the CPU.
static void expect(int num_ranks, int wish, const char *ordinals)
{
    assert_ok(bsw_device_assign(lists, num_ranks, wish, "cuda", verdicts, &err), &err);
    for (int rank = 0; rank < num_ranks; rank++)
        assert_int_equal(verdicts[rank].ordinal, ordinals[rank] == '.' ? -1 : ordinals[rank] - '0');
}

static void expect_error(int num_ranks, int wish, const char *text)
{
    assert_int_equal(bsw_device_assign(lists, num_ranks, wish, "cuda", verdicts, &err),
                     BSW_ERROR_USAGE);
    if (!strstr(err.message, text)) fail_msg("'%s' lacks '%s'", err.message, text);
}

UNIT_TEST(ranks_that_see_all_get_that_of_their_place)
{
    const char hosts[] = "ababab";
    for (int rank = 0; rank < 6; rank++) see(rank, hosts[rank], "wxyz");
    expect(6, BSW_DEVICE_ANY, "001122");
    for (int rank = 0; rank < 6; rank++) assert_int_equal(verdicts[rank].num_sharers, 1);
}

UNIT_TEST(ranks_that_see_one_each_get_it)
{
    see(0, 'a', "w");
    see(1, 'a', "x");
    see(2, 'b', "w"); // another host's may be called the same
    see(3, 'a', "y");
    expect(4, BSW_DEVICE_ANY, "0000");
    expect(4, BSW_DEVICE_AUTO, "0000");
    expect(4, 0, "0000");
    for (int rank = 0; rank < 4; rank++) assert_int_equal(verdicts[rank].num_sharers, 1);
}

// The first takes x, which the second needs, and the third's only one is the second's other.
UNIT_TEST(ranks_move_over_for_others)
{
    see(0, 'a', "xyz");
    see(1, 'a', "xy");
    see(2, 'a', "x");
    expect(3, BSW_DEVICE_ANY, "210");
    see(3, 'a', "y");
    expect_error(4, BSW_DEVICE_ANY, "4 ranks on a host with 3:");
    expect(4, BSW_DEVICE_AUTO, "....");
}

UNIT_TEST(numbers_are_those_of_each_rank)
{
    see(0, 'a', "xy");
    see(1, 'a', "yx");
    see(2, 'a', "x");
    see(3, 'b', "x");
    expect(4, 0, "0000");
    const int sharers[] = {2, 1, 2, 1};
    for (int rank = 0; rank < 4; rank++)
        assert_int_equal(verdicts[rank].num_sharers, sharers[rank]);
    expect_error(4, 1, "--device cuda: this host has 1, numbered from 0");
}

UNIT_TEST(what_cannot_be_used_is_left_out)
{
    see(0, 'a', "-x");
    expect(1, BSW_DEVICE_ANY, "1");
    expect_error(1, 0, "no device can be used: of rank 0");
    see(1, 'b', "--");
    expect_error(2, BSW_DEVICE_ANY, "no device can be used: of rank 1");
    expect(2, BSW_DEVICE_AUTO, "1.");
    see(1, 'a', "-x");
    expect_error(2, BSW_DEVICE_ANY, "2 ranks on a host with 1:");
    see(1, 'a', "");
    expect_error(2, 1, "no device can be used: of rank 1");
}

UNIT_TEST(as_many_as_can_be_listed)
{
    char all[BSW_MOST_DEVICES + 1] = "";
    for (int i = 0; i < BSW_MOST_DEVICES; i++) all[i] = (char)(' ' + 16 + i);
    for (int rank = 0; rank < MOST_RANKS; rank++) see(rank, 'a', all);
    expect(MOST_RANKS, BSW_DEVICE_ANY, "01234567");
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
