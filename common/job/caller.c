// SPDX-License-Identifier: Apache-2.0
#include "common/job/caller.h"

#include <stddef.h>

#include "common/base/clock.h"

#define PAUSE_SECONDS 0.05

static _Thread_local struct bsw_caller *caller;

struct bsw_caller *bsw_caller_set(struct bsw_caller *next)
{
    struct bsw_caller *before = caller;
    caller = next;
    return before;
}

static void ask(int is_due)
{
    double now = bsw_clock_seconds();
    if (caller->is_stopped ||
        (!is_due && caller->asked != 0 && now - caller->asked < PAUSE_SECONDS))
        return;
    caller->asked = now;
    caller->is_stopped = caller->ask(caller->context, caller->label ? caller->label : "begin",
                                     caller->done, caller->total) != 0;
}

void bsw_caller_note(const char *label, uint64_t done, uint64_t total)
{
    if (!caller) return;
    int is_end = done >= total && (caller->done != done || caller->label != label);
    caller->label = label;
    caller->done = done;
    caller->total = total;
    ask(is_end);
}

int bsw_caller_is_stopping(void)
{
    if (!caller) return 0;
    ask(0);
    return caller->is_stopped;
}
