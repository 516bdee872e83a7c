// SPDX-License-Identifier: Apache-2.0
// What another run does between a look at its files and their lock: flock here takes the place of
// the C library's. For one file of a test program.
#ifndef BITSWEEP_TESTS_UNIT_LOCK_HOOK_H
#define BITSWEEP_TESTS_UNIT_LOCK_HOOK_H

#include <stddef.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

static void (*before_next_lock)(void); // called once; or NULL

int flock(int fd, int operation)
{
    void (*call)(void) = before_next_lock;
    before_next_lock = NULL;
    if (call) call();
    return (int)syscall(SYS_flock, fd, operation);
}

#endif
