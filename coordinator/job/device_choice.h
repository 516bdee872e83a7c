// From --device to the device that this rank scans on.
//
// `cuda`: every rank of a host one of its own, by its place among them; `cuda:N`: all of them
// device N, each an equal part of its memory; `auto`: as `cuda` where the build has it and the host
// a device for each of its ranks, else the CPU. Test programs say `emulated` for `cuda`; auto is
// the CPU there.
#ifndef BITSWEEP_COORDINATOR_DEVICE_CHOICE_H
#define BITSWEEP_COORDINATOR_DEVICE_CHOICE_H

#include <stdint.h>

#include "common/device/device.h"
#include "common/net/transport.h"

struct bsw_device_choice {
    const char *text;    // of --device
    uint64_t most_bytes; // of --device-memory; 0: all there is
};

// cpu_only: NULL, or what no device can do for this job. *out is NULL for the CPU. A word that is
// none, no device, too few or a job for the CPU alone: BSW_ERROR_USAGE. The device is waited for
// three quarters of the time that messages are.
enum bsw_status bsw_device_choice_open(const struct bsw_device_choice *choice, const char *cpu_only,
                                       const struct bsw_transport *transport, bsw_device **out,
                                       struct bsw_error *err);

#endif
