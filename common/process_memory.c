#include "common/process_memory.h"

#include <stdio.h>

uint64_t bsw_process_memory_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return 0;
    char line[256];
    unsigned long long kib, total = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "RssAnon: %llu kB", &kib) == 1 ||
            sscanf(line, "RssShmem: %llu kB", &kib) == 1)
            total += kib;
    }
    fclose(file);
    return total * 1024;
}
