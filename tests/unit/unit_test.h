// cmocka behind the headers that it needs, and what most unit tests do.
#ifndef BITSWEEP_TESTS_UNIT_UNIT_TEST_H
#define BITSWEEP_TESTS_UNIT_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/base/memory.h"

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

#endif
