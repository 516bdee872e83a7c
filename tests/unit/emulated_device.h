// SPDX-License-Identifier: Apache-2.0
// The device of a test program, for its group setup and teardown.
#ifndef BITSWEEP_EMULATED_DEVICE_H
#define BITSWEEP_EMULATED_DEVICE_H

#include "common/device/device.h"

static bsw_device *device;

static inline int open_device(void **state)
{
    const struct bsw_device_options options = {.num_sharers = 1, .timeout_seconds = 60};
    struct bsw_error error;
    (void)state;
    return bsw_device_open(&options, &device, &error) != BSW_OK;
}

static inline int close_device(void **state)
{
    (void)state;
    bsw_device_close(&device);
    return 0;
}

#endif
