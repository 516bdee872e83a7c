// SPDX-License-Identifier: Apache-2.0
// For test builds only: CMakeLists.txt leaves this file out of the program.
#include "common/base/fault_points.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    int code; // errno of the failure
} facts[BSW_NUM_FAULT_KINDS] = {
    [BSW_FAULT_ALLOCATE] = {"allocate", ENOMEM},
    [BSW_FAULT_OPEN] = {"open", EMFILE},
    [BSW_FAULT_READ] = {"read", EIO},
    [BSW_FAULT_WRITE] = {"write", ENOSPC},
    [BSW_FAULT_FSYNC] = {"fsync", EIO},
    [BSW_FAULT_RENAME] = {"rename", EIO},
    [BSW_FAULT_SEND] = {"send", EIO},
    [BSW_FAULT_FLIP] = {"flip", EIO},
};

static atomic_ullong counts[BSW_NUM_FAULT_KINDS];

// Not through common/base/file.h, whose calls are counted.
static void note(const char *word, const char *name, unsigned long long number)
{
    const char *path = getenv("BITSWEEP_FAULT_LOG");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd < 0) return;
    dprintf(fd, "%s%s %llu\n", word, name, number);
    close(fd);
}

__attribute__((destructor)) static void note_counts(void)
{
    for (int i = 0; i < BSW_NUM_FAULT_KINDS; i++) note("", facts[i].name, atomic_load(&counts[i]));
}

int bsw_fault_is_due(enum bsw_fault_kind kind)
{
    unsigned long long number = atomic_fetch_add(&counts[kind], 1) + 1;
    const char *asked = getenv("BITSWEEP_FAIL");
    const char *name = facts[kind].name;
    size_t length = strlen(name);
    char *end;
    if (!asked || strncmp(asked, name, length) != 0 || asked[length] != ':') return 0;
    if (strtoull(asked + length + 1, &end, 10) != number) return 0;
    note("reached ", name, number);
    if (strcmp(end, ":kill") == 0) raise(SIGKILL);
    errno = facts[kind].code;
    return 1;
}
