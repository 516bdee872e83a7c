// SPDX-License-Identifier: Apache-2.0
// The integer hash behind every seeded choice: splitmix64's finaliser (Steele, Lea, Flood, OOPSLA
// 2014), the same bits everywhere.
#ifndef BITSWEEP_COMMON_INTEGER_HASH_H
#define BITSWEEP_COMMON_INTEGER_HASH_H

#include <stdint.h>

#include "common/base/c_linkage.h"

BSW_HOST_DEVICE uint64_t bsw_hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Hash of a pair; order matters.
BSW_HOST_DEVICE uint64_t bsw_hash2(uint64_t a, uint64_t b)
{
    return bsw_hash(bsw_hash(a) ^ b);
}

#endif
