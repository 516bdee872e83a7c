// SPDX-License-Identifier: Apache-2.0
// Memory of this process, as the system counts it.
#ifndef BITSWEEP_COMMON_PROCESS_MEMORY_H
#define BITSWEEP_COMMON_PROCESS_MEMORY_H

#include <stdint.h>

// RssAnon + RssShmem of /proc/self/status in bytes; 0 where the system does not tell.
uint64_t bsw_process_memory_bytes(void);

// What this process has in memory of mapped files, its program included (RssFile), which the system
// may drop at any time; 0 where it does not tell. With the number above: the resident set.
uint64_t bsw_process_mapped_bytes(void);

// Memory that can still be taken without swapping, of the host (MemAvailable); 0 where the system
// does not tell.
uint64_t bsw_available_memory_bytes(void);

// The most memory this process ever had resident, mapped files included (VmHWM); 0 where the system
// does not tell.
uint64_t bsw_process_peak_bytes(void);

// Gives memory that is free back to the system; the peak counts from here on, where the system lets
// it.
void bsw_process_peak_reset(void);

#endif
