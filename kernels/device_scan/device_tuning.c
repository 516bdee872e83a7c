// SPDX-License-Identifier: Apache-2.0
#include "kernels/device_scan/device_tuning.h"

#define MMA   BSW_DEVICE_MATRIX_MMA
#define NEVER UINT32_MAX
#define LISTS          \
    {                  \
        NEVER, 1, 1, 1 \
    }

// No number here is measured yet. They are from the model: a plane scan is bound by popcounts from
// the second query on; four waves even out the last one; tiles hold 16, 64 and 256 queries. 10.3
// has so few int8 units that popcounts keep up with a tile of 16 for three queries. The Hopper
// kernels have never run, so 9.0 takes mma until somebody has compared the two.
//
// capability, matrix from so many queries, matrix kernel, that of a first stage, queries of a plane
// scan by bits, bytes of a group's planes, steps and waves of plane, mma and Hopper scans, queries
// of tiles, few queries of the Hopper kernel
const struct bsw_device_tuning bsw_device_tunings[] = {
    {8, 0, 2, MMA, MMA, 1, 32 << 10, {32, 4}, {32, 4}, {256, 4}, {16, 64, NEVER}, 64, MMA, LISTS},
    {8, 6, 2, MMA, MMA, 1, 16 << 10, {32, 4}, {32, 4}, {256, 4}, {16, 64, NEVER}, 64, MMA, LISTS},
    {9, 0, 2, MMA, MMA, 1, 32 << 10, {32, 4}, {32, 4}, {256, 4}, {16, 64, NEVER}, 64, MMA, LISTS},
    {10, 0, 2, MMA, MMA, 0, 32 << 10, {32, 4}, {32, 4}, {256, 4}, {16, 64, NEVER}, 64, MMA, LISTS},
    {10, 3, 4, MMA, MMA, 0, 32 << 10, {32, 4}, {32, 4}, {256, 4}, {16, 64, NEVER}, 64, MMA, LISTS},
    {11, 0, 2, MMA, MMA, 0, 32 << 10, {32, 4}, {32, 4}, {256, 4}, {16, 64, NEVER}, 64, MMA, LISTS},
    {12, 0, 2, MMA, MMA, 0, 16 << 10, {32, 4}, {32, 4}, {256, 4}, {16, 64, NEVER}, 64, MMA, LISTS},
};
const size_t bsw_num_device_tunings = sizeof bsw_device_tunings / sizeof bsw_device_tunings[0];

const struct bsw_device_tuning *bsw_device_tuning_find(int major, int minor)
{
    const struct bsw_device_tuning *found = bsw_device_tunings;
    for (size_t i = 1; i < bsw_num_device_tunings; i++) {
        const struct bsw_device_tuning *row = &bsw_device_tunings[i];
        if (row->major < major || (row->major == major && row->minor <= minor)) found = row;
    }
    return found;
}

int bsw_device_lists_take_hopper(const struct bsw_device_tuning *tuning, uint32_t num_items,
                                 uint64_t num_bundles, uint32_t tile)
{
    if (tuning->list_kernel != BSW_DEVICE_MATRIX_HOPPER || tile >= BSW_LIST_TILES) return 0;
    uint32_t least = tuning->hopper_list_bundles[tile];
    return least != NEVER && num_bundles >= (uint64_t)least * num_items;
}
