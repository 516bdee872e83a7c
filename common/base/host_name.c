// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_name.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

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
