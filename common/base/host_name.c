#include "common/base/host_name.h"

#include <stdio.h>
#include <sys/utsname.h>

// Not gethostname, which fails where the name does not fit.
void bsw_host_name(char *out, size_t capacity)
{
    struct utsname facts;
    int has_name = uname(&facts) == 0 && facts.nodename[0];
    snprintf(out, capacity, "%s", has_name ? facts.nodename : "unknown");
}
