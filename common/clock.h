// Monotonic time.
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

#endif
