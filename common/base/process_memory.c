// SPDX-License-Identifier: Apache-2.0
#include "common/base/process_memory.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

// Sum of the lines of a file of /proc that begin with one of the names, in bytes.
static uint64_t sum_lines(const char *path, const char *const *names, int num_names)
{
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    char line[256];
    unsigned long long kib, total = 0;
    while (fgets(line, sizeof line, file)) {
        for (int i = 0; i < num_names; i++) {
            size_t length = strlen(names[i]);
            if (strncmp(line, names[i], length) == 0 && sscanf(line + length, " %llu", &kib) == 1)
                total += kib;
        }
    }
    fclose(file);
    return total * 1024;
}

uint64_t bsw_process_memory_bytes(void)
{
    static const char *const names[] = {"RssAnon:", "RssShmem:"};
    return sum_lines("/proc/self/status", names, 2);
}

uint64_t bsw_process_mapped_bytes(void)
{
    static const char *const names[] = {"RssFile:"};
    return sum_lines("/proc/self/status", names, 1);
}

uint64_t bsw_process_peak_bytes(void)
{
    static const char *const names[] = {"VmHWM:"};
    return sum_lines("/proc/self/status", names, 1);
}

void bsw_process_peak_reset(void)
{
    malloc_trim(0);
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return;
    fputs("5", file);
    fclose(file);
}

uint64_t bsw_available_memory_bytes(void)
{
    static const char *const names[] = {"MemAvailable:"};
    return sum_lines("/proc/meminfo", names, 1);
}
