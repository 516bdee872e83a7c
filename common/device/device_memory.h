// SPDX-License-Identifier: Apache-2.0
// What of a device's memory ranks may use, and how much of a device nobody has seen yet that is.
#ifndef BITSWEEP_COMMON_DEVICE_MEMORY_H
#define BITSWEEP_COMMON_DEVICE_MEMORY_H

#include <stddef.h>

// Kept free for the driver and for kernels' local memory: this part of all memory.
#define BSW_DEVICE_RESERVE_PART 64

// Without the reserve.
static inline size_t bsw_device_usable_bytes(size_t free_bytes, size_t total_bytes)
{
    size_t reserve = total_bytes / BSW_DEVICE_RESERVE_PART;
    return free_bytes > reserve ? free_bytes - reserve : 0;
}

// The ranks of a job, of which num_sharers have the same device.
struct bsw_device_crowd {
    int num_ranks;
    int num_sharers; // 1 .. num_ranks
};

// A rank's equal part of a device of total_bytes, by figures for what CUDA and NCCL take
// (device_memory.c), the same on every rank; 0 where nothing is left. A job goes by what is free
// once all have started.
size_t bsw_device_memory_forecast(const struct bsw_device_crowd *crowd, size_t total_bytes);

#endif
