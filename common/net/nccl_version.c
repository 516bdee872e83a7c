// SPDX-License-Identifier: Apache-2.0
// With or without NCCL: versions of other ranks are shown too.
#include <stdio.h>

#include "common/net/nccl_library.h"

// Up to 2.8 the code had one digit less for the minor number.
void bsw_nccl_version_format(int version, char *out, size_t capacity)
{
    int major = version < 10000 ? version / 1000 : version / 10000;
    int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
    snprintf(out, capacity, "%d.%d.%d", major, minor, version % 100);
}
