#include "common/base/cpu_model.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void bsw_cpu_model_read(char model[BSW_CPU_MODEL_BYTES])
{
    char line[512];
    const char *from = NULL;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !from && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) from = strchr(line, ':') + 1;
    }
    if (file) fclose(file);
    size_t length = 0;
    for (; from && *from && length < BSW_CPU_MODEL_BYTES - 1; from++) {
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
