// SPDX-License-Identifier: Apache-2.0
// This process: its memory as the system counts it, the files it may have open, and its host.
#ifndef BITSWEEP_COMMON_PROCESS_H
#define BITSWEEP_COMMON_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

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

// ---- open files ---------------------------------------------------------------------------------

// The number of files that this process may have open at once.

// Makes room for `more` files beside those that are open and BSW_FILES_TO_SPARE others (messages,
// libraries): raises the soft limit (RLIMIT_NOFILE) where it is lower. Where the hard limit is
// lower, too, BSW_ERROR_IO with both figures. Not for several threads at once.
#define BSW_FILES_TO_SPARE 32
enum bsw_status bsw_file_limit_raise(uint64_t more, struct bsw_error *err);

// ---- the host's name ----------------------------------------------------------------------------

// The name of this host, for people and for telling hosts apart.

#define BSW_HOST_NAME_BYTES 64 // with the 0 at the end; longer names are cut

// Tells hosts apart, also where containers of one have names of their own: the boot id, or the name
// where there is none. All of out is written, capacity >= 40.
void bsw_host_id(char *out, size_t capacity);

// "unknown" where there is none; always terminated, capacity > 8.
void bsw_host_name(char *out, size_t capacity);

#endif
