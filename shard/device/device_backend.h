// SPDX-License-Identifier: Apache-2.0
// The device's tenant of shard/backend.h: what it keeps, for damage points and tests.
#ifndef BITSWEEP_SHARD_DEVICE_BACKEND_H
#define BITSWEEP_SHARD_DEVICE_BACKEND_H

#include "shard/backend.h"
#include "shard/device/device_refine.h"
#include "shard/device/device_shard.h"

// What struct bsw_backend_shard owns.
struct bsw_device_unit {
    struct bsw_device_shard codes;
    struct bsw_device_raw_shard rows;
};

#endif
