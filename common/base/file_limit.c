// SPDX-License-Identifier: Apache-2.0
#include "common/base/file_limit.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

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
