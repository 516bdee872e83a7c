// SPDX-License-Identifier: Apache-2.0
// limits: what a core does at most, for the benches to compare kernels with: bytes read, copied and
// written, multiply-adds and popcounts in registers.
//
// Every function also gives what shows that the work was done, so that no compiler drops it and a
// bench can check it. Nothing here can fail or allocate. Thread-safe.
#ifndef BITSWEEP_KERNELS_LIMITS_H
#define BITSWEEP_KERNELS_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel_table.h"

#define BSW_LIMITS_BLOCK_BYTES 512 // of reading, copying and writing

// In a row, or eight pages side by side: more streams for the hardware's prefetchers. Which is
// faster depends on CPU and size.
enum bsw_read_order { BSW_READ_LINES, BSW_READ_PAGES, BSW_NUM_READ_ORDERS };

// Arithmetic in registers: 12 independent chains, more than latency times units.
enum bsw_peak {
    BSW_PEAK_INT8,     // multiply-adds of 8-bit integers
    BSW_PEAK_FLOAT32,  // fused multiply-adds; of the reference: a product and a sum
    BSW_PEAK_FLOAT64,  // the same
    BSW_PEAK_POPCOUNT, // popcounts of 32 bits
    BSW_NUM_PEAKS
};

struct bsw_limits_table {
    const char *level;

    // The sum of all 64-bit words, modulo 2^64. memory 64-byte aligned; bytes: a multiple of
    // BSW_LIMITS_BLOCK_BYTES, as everywhere here.
    uint64_t (*read[BSW_NUM_READ_ORDERS])(const void *memory, size_t bytes);
    void (*copy)(void *to, const void *from, size_t bytes);
    // Every 64-bit word becomes `word`.
    void (*write)(void *memory, uint64_t word, size_t bytes);

    // Operations of all chains in so many steps, at least 100. *num_wrong gets the number of lanes
    // whose sum is not what it must be.
    uint64_t (*peaks[BSW_NUM_PEAKS])(uint64_t steps, uint64_t *num_wrong);
};

BSW_KERNEL_LEVELS(limits);

#endif
