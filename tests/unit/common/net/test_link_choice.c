// SPDX-License-Identifier: Apache-2.0
// Which ranks can be linked, and what is said where they cannot.
#include <stdio.h>
#include <string.h>

#include "common/net/device_link.h"
#include "unit_test.h"

enum { RANKS = 4 };

static struct bsw_link_facts facts[RANKS];
static struct bsw_link_verdict verdict;

// Two hosts with two devices each, whose ids are the same, and the same NCCL.
static void make_facts(int version)
{
    memset(facts, 0, sizeof facts);
    for (int rank = 0; rank < RANKS; rank++) {
        struct bsw_link_facts *f = &facts[rank];
        f->has_device = f->is_usable = 1;
        f->version = version;
        snprintf(f->host, sizeof f->host, "host %d", rank / 2);
        snprintf(f->id, sizeof f->id, "device-%d", rank % 2);
        snprintf(f->label, sizeof f->label, "cuda:%d", rank % 2);
    }
}

static void share(int rank, int other)
{
    memcpy(facts[rank].host, facts[other].host, sizeof facts[rank].host);
    memcpy(facts[rank].id, facts[other].id, sizeof facts[rank].id);
}

// auto falls back and says why, nccl refuses with the same words.
static void expect_refusal(const char *why)
{
    char error[BSW_LINK_NOTE_BYTES];
    bsw_link_judge(facts, RANKS, BSW_LINK_AUTO, &verdict);
    assert_int_equal(verdict.is_linked, 0);
    assert_int_equal(verdict.status, BSW_OK);
    assert_string_equal(verdict.note, why);
    snprintf(error, sizeof error, "--link nccl: %s", why);
    bsw_link_judge(facts, RANKS, BSW_LINK_NCCL, &verdict);
    assert_int_equal(verdict.is_linked, 0);
    assert_int_equal(verdict.status, BSW_ERROR_USAGE);
    assert_string_equal(verdict.note, error);
}

static void expect_link(int num_ranks, enum bsw_link_choice choice, int is_shared)
{
    bsw_link_judge(facts, num_ranks, choice, &verdict);
    assert_int_equal(verdict.is_linked, 1);
    assert_int_equal(verdict.is_shared, is_shared);
    assert_int_equal(verdict.status, BSW_OK);
}

UNIT_TEST(devices_of_their_own_are_linked)
{
    make_facts(21900);
    expect_link(RANKS, BSW_LINK_AUTO, 0);
    assert_string_equal(verdict.note, "NCCL 2.19.0");
    expect_link(RANKS, BSW_LINK_NCCL, 0);
    expect_link(1, BSW_LINK_NCCL, 0);
    bsw_link_judge(facts, RANKS, BSW_LINK_MPI, &verdict);
    assert_int_equal(verdict.is_linked, 0);
    assert_int_equal(verdict.status, BSW_OK);
    bsw_link_judge(facts, 1, BSW_LINK_AUTO, &verdict);
    assert_int_equal(verdict.is_linked, 0);
    assert_string_equal(verdict.note, "one rank");
}

UNIT_TEST(what_one_rank_lacks_is_said_of_it)
{
    make_facts(22809);
    facts[3].version = 23001;
    expect_refusal("rank 0 has NCCL 2.28.9, rank 3 has 2.30.1: all need the same");
    facts[2].is_usable = 0;
    snprintf(facts[2].problem, sizeof facts[2].problem, "NCCL cannot be loaded: it is not there");
    expect_refusal("rank 2: NCCL cannot be loaded: it is not there");
    facts[1].has_device = 0;
    expect_refusal("rank 1 has no GPU");
}

UNIT_TEST(a_shared_device_needs_a_late_version)
{
    make_facts(22999);
    share(3, 1);
    expect_refusal("ranks 1 and 3 share cuda:1 (device-1), which NCCL 2.29.99 refuses and 2.30 "
                   "or later allows");
    make_facts(23000);
    share(3, 1);
    expect_link(RANKS, BSW_LINK_NCCL, 1);
    bsw_link_judge(facts, RANKS, BSW_LINK_AUTO, &verdict);
    assert_int_equal(verdict.is_linked, 0);
    assert_int_equal(verdict.status, BSW_OK);
    assert_string_equal(verdict.note, "ranks 1 and 3 share cuda:1");
    // Another process may see the same device under another number.
    snprintf(facts[3].label, sizeof facts[3].label, "cuda:0");
    bsw_link_judge(facts, RANKS, BSW_LINK_NCCL, &verdict);
    assert_int_equal(verdict.is_shared, 1);
}

UNIT_TEST(the_longest_words_fit)
{
    make_facts(22809);
    facts[0].is_usable = 0;
    memset(facts[0].problem, 'x', sizeof facts[0].problem - 1);
    bsw_link_judge(facts, RANKS, BSW_LINK_NCCL, &verdict);
    assert_int_equal(strlen(verdict.note), strlen("--link nccl: rank 0: ") + 255);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
