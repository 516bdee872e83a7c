// Memory of this process that is not mapped from files.
#ifndef BITSWEEP_COMMON_PROCESS_MEMORY_H
#define BITSWEEP_COMMON_PROCESS_MEMORY_H

#include <stdint.h>

// RssAnon + RssShmem of /proc/self/status in bytes; 0 where the system does not tell.
uint64_t bsw_process_memory_bytes(void);

#endif
