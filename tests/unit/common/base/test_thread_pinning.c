// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // sched_getaffinity
#endif

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "common/base/process.h"
#include "unit_test.h"

#define MAX_THREADS 16

static cpu_set_t allowed; // of this process, at its start

static int count_allowed(void)
{
    int count = CPU_COUNT(&allowed);
    return count < MAX_THREADS ? count : MAX_THREADS;
}

static int restore(void **state)
{
    int failed = 0;
#pragma omp parallel num_threads(count_allowed()) reduction(+ : failed)
    failed += sched_setaffinity(0, sizeof allowed, &allowed) != 0;
    return failed;
}

// sets [num_threads] of a team
static void get_team(int num_threads, cpu_set_t *sets)
{
#pragma omp parallel num_threads(num_threads)
    if (sched_getaffinity(0, sizeof *sets, &sets[omp_get_thread_num()]) != 0)
        CPU_ZERO(&sets[omp_get_thread_num()]);
}

UNIT_TEST_WITH(test_every_thread_has_a_cpu_of_its_own, NULL, restore)
{
    int num_threads = count_allowed();
    struct bsw_thread_pinning pinning;
    struct bsw_error err;
    cpu_set_t sets[MAX_THREADS], seen;
    assert_int_equal(bsw_threads_pin(0, 1, num_threads, &pinning, &err), BSW_OK);
    assert_true(pinning.is_on);
    for (int turn = 0; turn < 3; turn++) { // the same threads stay in a team
        CPU_ZERO(&seen);
        get_team(num_threads, sets);
        for (int t = 0; t < num_threads; t++) {
            assert_int_equal(CPU_COUNT(&sets[t]), 1);
            CPU_OR(&seen, &seen, &sets[t]);
        }
        assert_int_equal(CPU_COUNT(&seen), num_threads);
        CPU_AND(&seen, &seen, &allowed);
        assert_int_equal(CPU_COUNT(&seen), num_threads);
    }
}

// One thread each: the ranks of a host together use every CPU once, each what it had in one team.
UNIT_TEST_WITH(test_ranks_have_cpus_of_their_own, NULL, restore)
{
    int num_ranks = count_allowed();
    struct bsw_thread_pinning pinning;
    struct bsw_error err;
    cpu_set_t team[MAX_THREADS], own;
    assert_int_equal(bsw_threads_pin(0, 1, num_ranks, &pinning, &err), BSW_OK);
    get_team(num_ranks, team);
    for (int rank = 0; rank < num_ranks; rank++) {
        assert_int_equal(restore(state), 0);
        assert_int_equal(bsw_threads_pin(rank, num_ranks, 1, &pinning, &err), BSW_OK);
        get_team(1, &own);
        assert_true(CPU_EQUAL(&own, &team[rank]));
    }
}

// A part of the machine, as a container or mpirun gives it: only that part is used.
UNIT_TEST_WITH(test_only_the_allowed_part_is_used, NULL, restore)
{
    struct bsw_thread_pinning pinning;
    struct bsw_error err;
    cpu_set_t one, own;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(bsw_num_usable_cpus(NULL), 1);
        assert_int_equal(bsw_threads_pin(0, 1, 1, &pinning, &err), BSW_OK);
        get_team(1, &own);
        assert_true(CPU_EQUAL(&own, &one));
        assert_int_equal(bsw_num_usable_cpus(&pinning), 1);
    }
}

UNIT_TEST_WITH(test_too_few_cpus_is_one_line_with_both_numbers, NULL, restore)
{
    struct bsw_thread_pinning pinning;
    struct bsw_error err;
    cpu_set_t one, own;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(bsw_threads_pin(1, 3, 2, &pinning, &err), BSW_ERROR_USAGE);
    assert_string_equal(err.message, "--pin cores: 3 ranks x 2 threads need 6 CPUs of this host, 1 "
                                     "may be used");
    assert_false(pinning.is_on);
    get_team(1, &own);
    assert_true(CPU_EQUAL(&own, &one));
}

struct helper {
    const struct bsw_thread_pinning *pinning;
    cpu_set_t before, after;
};

static void *run_helper(void *context)
{
    struct helper *helper = context;
    (void)sched_getaffinity(0, sizeof helper->before, &helper->before);
    bsw_thread_unpin(helper->pinning);
    (void)sched_getaffinity(0, sizeof helper->after, &helper->after);
    return NULL;
}

UNIT_TEST_WITH(test_a_helper_leaves_the_core_it_was_started_on, NULL, restore)
{
    struct bsw_thread_pinning pinning;
    struct bsw_error err;
    struct helper helper = {.pinning = &pinning};
    pthread_t thread;
    assert_int_equal(bsw_threads_pin(0, 1, 1, &pinning, &err), BSW_OK);
    assert_int_equal(bsw_num_usable_cpus(NULL), 1);
    assert_int_equal(bsw_num_usable_cpus(&pinning), CPU_COUNT(&allowed));
    assert_int_equal(pthread_create(&thread, NULL, run_helper, &helper), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(CPU_COUNT(&helper.before), 1);
    assert_true(CPU_EQUAL(&helper.after, &allowed));
}

int main(void)
{
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
    return run_unit_tests(NULL, NULL);
}
