// SPDX-License-Identifier: Apache-2.0
// This process: its memory as the system counts it, the files it may have open, and its host.
#ifndef BITSWEEP_COMMON_PROCESS_H
#define BITSWEEP_COMMON_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
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

// Threads bound to cores: each OpenMP thread of a rank to one of its own.
//
// The order of the CPUs a process may use: one hardware thread of every core first, in hwloc's
// logical order (neighbours share caches and memory), then the cores' second hardware threads, and
// so on. A container's or a scheduler's part of the machine is all that is looked at.

BSW_C_BEGIN

#define BSW_PINNING_WORDS 128 // of unsigned long: 8192 CPUs

// {0}: nothing is pinned.
struct bsw_thread_pinning {
    int is_on;
    unsigned long allowed[BSW_PINNING_WORDS]; // CPUs of the process before, as the kernel numbers
};

// Binds OpenMP thread t of the teams that the calling thread starts, itself being t = 0, to CPU
// (local_rank * num_threads + t) of that order. local_rank is this rank's place among the
// num_local_ranks that may use the same CPUs. Teams must keep num_threads threads from there on: a
// thread that is started later runs where the one that started it does. Fewer CPUs than
// num_local_ranks * num_threads are BSW_ERROR_USAGE with both numbers; the binding is then as
// before.
enum bsw_status bsw_threads_pin(int local_rank, int num_local_ranks, int num_threads,
                                struct bsw_thread_pinning *out, struct bsw_error *err);

// Lets the calling thread, started by a pinned one, run on all CPUs of the process again. A system
// that refuses leaves it where it is.
void bsw_thread_unpin(const struct bsw_thread_pinning *pinning);

// Number of CPUs that the calling thread may use, or might before it was pinned; >= 1. NULL: never
// pinned.
int bsw_num_usable_cpus(const struct bsw_thread_pinning *pinning);

BSW_C_END
#endif
