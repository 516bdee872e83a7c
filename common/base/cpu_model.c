// SPDX-License-Identifier: Apache-2.0
#include "common/base/cpu_model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What stands behind the colon of the first line of that name; 0: there is none.
static int read_cpuinfo(const char *name, char *out, size_t room)
{
    char line[512];
    const char *from = NULL;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !from && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0 && strchr(line, ':'))
            from = strchr(line, ':') + 1;
    }
    if (file) fclose(file);
    if (!from) return 0;
    from += strspn(from, " \t");
    snprintf(out, room, "%.*s", (int)strcspn(from, "\n"), from);
    return 1;
}

void bsw_cpu_model_read(char model[BSW_CPU_MODEL_BYTES])
{
    char text[512];
    size_t length = 0;
    int is_told = read_cpuinfo("model name", text, sizeof text);
    for (const char *from = text; is_told && *from && length < BSW_CPU_MODEL_BYTES - 1; from++) {
        int is_plain = isgraph((unsigned char)*from) && *from != '\\' && *from != '"';
        if (is_plain)
            model[length++] = *from;
        else if (length > 0 && model[length - 1] != ' ')
            model[length++] = ' ';
    }
    while (length > 0 && model[length - 1] == ' ') length--;
    model[length] = '\0';
    if (length == 0) snprintf(model, BSW_CPU_MODEL_BYTES, "unknown CPU");
}

void bsw_cpu_identity_read(struct bsw_cpu_identity *out)
{
    static const char *const names[][2] = {{"vendor_id", "cpu family"},
                                           {"CPU implementer", "CPU part"}};
    char vendor[64], family[64];
    *out = (struct bsw_cpu_identity){.vendor = "unknown"};
    for (int i = 0; i < 2; i++) {
        if (!read_cpuinfo(names[i][0], vendor, sizeof vendor) || vendor[0] == '\0' ||
            strcspn(vendor, " \t#") < strlen(vendor) || strlen(vendor) >= sizeof out->vendor)
            continue;
        memcpy(out->vendor, vendor, strlen(vendor) + 1);
        if (read_cpuinfo(names[i][1], family, sizeof family))
            out->family = (uint32_t)strtoul(family, NULL, 0);
        return;
    }
}

int bsw_cpu_is_same(const struct bsw_cpu_identity *a, const struct bsw_cpu_identity *b)
{
    return a->family == b->family && strcmp(a->vendor, b->vendor) == 0;
}
