// SPDX-License-Identifier: Apache-2.0
// The tuning of the device that launches go to.
#include "kernels/current_device.cuh"
#include "kernels/device_scan/device_tuning.h"

extern "C" const struct bsw_device_tuning *bsw_device_tuning_current(void)
{
    bsw::device_traits device;
    if (bsw::get_device_traits(&device)) return bsw_device_tuning_find(0, 0);
    return bsw_device_tuning_find(device.major, device.minor);
}
