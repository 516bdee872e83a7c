// SPDX-License-Identifier: Apache-2.0
// Monotonic time, that of a thread or a process, and pauses between two looks at what is waited
// for.
#ifndef BITSWEEP_COMMON_CLOCK_H
#define BITSWEEP_COMMON_CLOCK_H

#include <sched.h>
#include <stdint.h>
#include <time.h>

static inline int64_t bsw_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline double bsw_clock_seconds(void)
{
    return (double)bsw_clock_ns() * 1e-9;
}

// What the calling thread computed for: others that share its core do not count.
static inline double bsw_thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// What all threads of the process computed for.
static inline double bsw_process_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Between two looks, waited_ns after the first: gives way to other threads, and from 2 ms on sleeps
// for a moment. A nap of 20 us takes 75 us where timers have their usual slack, as long as a small
// batch on a GPU.
#define BSW_CLOCK_AWAKE_NS 2000000

static inline void bsw_clock_pause(int64_t waited_ns)
{
    const struct timespec nap = {0, 20000};
    if (waited_ns < BSW_CLOCK_AWAKE_NS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

#endif
