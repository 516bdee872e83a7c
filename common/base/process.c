// SPDX-License-Identifier: Apache-2.0
#include "common/base/process.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

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

// ---- open files ---------------------------------------------------------------------------------

static uint64_t count_open(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;
    if (!folder) return 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

enum bsw_status bsw_file_limit_raise(uint64_t more, struct bsw_error *err)
{
    struct rlimit limit;
    uint64_t needed = count_open() + more + BSW_FILES_TO_SPARE;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return bsw_fail(err, BSW_ERROR_IO, "limit of open files: %s", strerror(errno));
    if (limit.rlim_cur >= needed) return BSW_OK; // RLIM_INFINITY is the largest number
    if (limit.rlim_max < needed)
        return bsw_fail(err, BSW_ERROR_IO,
                        "%llu files open at once are needed for the shards, the hard limit of this "
                        "process is %llu: raise it (ulimit -H -n) or take fewer shards",
                        (unsigned long long)needed, (unsigned long long)limit.rlim_max);
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "cannot raise the limit of open files to %llu: %s",
                    (unsigned long long)needed, strerror(errno));
}

// ---- the host's name ----------------------------------------------------------------------------

// Not gethostname, which fails where the name does not fit.
void bsw_host_name(char *out, size_t capacity)
{
    struct utsname facts;
    int has_name = uname(&facts) == 0 && facts.nodename[0];
    snprintf(out, capacity, "%s", has_name ? facts.nodename : "unknown");
}

void bsw_host_id(char *out, size_t capacity)
{
    memset(out, 0, capacity);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (fgets(out, (int)capacity, file)) out[strcspn(out, "\n")] = '\0';
        fclose(file);
    }
    if (!out[0]) bsw_host_name(out, capacity);
}
