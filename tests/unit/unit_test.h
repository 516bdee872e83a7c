// SPDX-License-Identifier: Apache-2.0
// cmocka behind the headers that it needs, what most unit tests do, and tests that need no list:
// UNIT_TEST(name) { ... } is a test of its file, whose main is run_unit_tests.
#ifndef BITSWEEP_TESTS_UNIT_UNIT_TEST_H
#define BITSWEEP_TESTS_UNIT_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/base/memory.h"

// Sanitizers make tests several times as slow: what is compared in full without them may be less.
#if defined(__SANITIZE_ADDRESS__)
#define TEST_IS_SANITIZED 1
#else
#define TEST_IS_SANITIZED 0
#endif

static inline void assert_ok(enum bsw_status status, const struct bsw_error *err)
{
    if (status != BSW_OK) fail_msg("%s", err->message);
}

static inline void *allocate_or_fail(size_t count, size_t size)
{
    void *memory;
    if (bsw_allocate_zero(&memory, count, size, "test", NULL) != BSW_OK) abort();
    return memory;
}

static struct CMUnitTest unit_tests[64];
static size_t num_unit_tests;

static inline void add_unit_test(struct CMUnitTest test)
{
    if (num_unit_tests == sizeof unit_tests / sizeof unit_tests[0]) abort();
    unit_tests[num_unit_tests++] = test;
}

// Constructors run in the order of their numbers, and so the tests in that of the file.
#define UNIT_TEST_WITH(name, setup, teardown)                                                     \
    static void name(void **state);                                                               \
    __attribute__((constructor(1000 + __LINE__))) static void add_##name(void)                    \
    {                                                                                             \
        add_unit_test((struct CMUnitTest)cmocka_unit_test_setup_teardown(name, setup, teardown)); \
    }                                                                                             \
    static void name(void **state __attribute__((unused)))
#define UNIT_TEST(name) UNIT_TEST_WITH(name, NULL, NULL)

// setup and teardown of all of them, or NULL; what main returns.
static inline int run_unit_tests(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    return _cmocka_run_group_tests("tests", unit_tests, num_unit_tests, setup, teardown);
}

#endif
