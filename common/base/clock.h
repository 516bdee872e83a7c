// Monotonic time, and that of a thread.
#ifndef BITSWEEP_COMMON_CLOCK_H
#define BITSWEEP_COMMON_CLOCK_H

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

#endif
