// SPDX-License-Identifier: Apache-2.0
// Equal parts of a number of items: how work and rows are shared out everywhere.
#ifndef BITSWEEP_COMMON_PARTS_H
#define BITSWEEP_COMMON_PARTS_H

#include <stdint.h>

// The first of `parts` consecutive ranges of `total` items that part `part` begins: part * total /
// parts.
static inline uint64_t bsw_part_first(uint64_t total, uint64_t part, uint64_t parts)
{
    return (uint64_t)((unsigned __int128)total * part / parts);
}

#endif
