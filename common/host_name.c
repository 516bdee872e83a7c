#include "common/host_name.h"

#include <stdio.h>
#include <unistd.h>

void bsw_host_name(char *out, size_t capacity)
{
    if (gethostname(out, capacity) != 0) snprintf(out, capacity, "unknown");
    out[capacity - 1] = '\0'; // a name that is cut may not be
}
