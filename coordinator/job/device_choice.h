// SPDX-License-Identifier: Apache-2.0
// From --device to the device that each rank scans on, which all ranks find out together.
//
// `cuda`: every rank of a host one of its own, by UUID, whatever numbers ranks see: a launcher may
// show each rank its GPU alone, as device 0. `cuda:N`: what each rank sees as device N; ranks that
// share one get equal parts of its memory. `auto`: as `cuda` on hosts that have a device for each
// of their ranks, on which kernels of this build run, else the CPU. Test programs say `emulated`
// for `cuda`.
#ifndef BITSWEEP_COORDINATOR_DEVICE_CHOICE_H
#define BITSWEEP_COORDINATOR_DEVICE_CHOICE_H

#include <stdint.h>

#include "common/device/device.h"
#include "common/net/transport.h"

struct bsw_device_choice {
    const char *text;    // of --device
    uint64_t most_bytes; // of --device-memory; 0: all there is
};

#define BSW_DEVICE_NOTE_BYTES 256
// A rank's device, or why `auto` has left one alone.
struct bsw_chosen_device {
    bsw_device *device; // NULL: the CPU
    char note[BSW_DEVICE_NOTE_BYTES];
};

// All ranks, with the same choice. cpu_only: NULL, or what no device can do for this job. A word
// that is none, no device, too few or a job for the CPU alone: BSW_ERROR_USAGE. All ranks
// return alike. A device is waited for three quarters of the
// time that messages are.
enum bsw_status bsw_device_choice_open(const struct bsw_device_choice *choice, const char *cpu_only,
                                       bsw_transport *transport, struct bsw_chosen_device *out,
                                       struct bsw_error *err);

// Whether a text is a word for devices that this build has; BSW_ERROR_USAGE says which are.
enum bsw_status bsw_device_choice_check(const char *text, struct bsw_error *err);

// ---- the choice by itself ----

#define BSW_MOST_DEVICES 64 // of a host; more are not looked at

// What a rank tells of the devices that it sees; all of it travels.
struct bsw_device_list {
    char host[64];                  // bsw_host_id
    char why[BSW_DEVICE_WHY_BYTES]; // why there are none, or why the first that is none is none
    int32_t count, padding;
    char ids[BSW_MOST_DEVICES][BSW_DEVICE_ID_BYTES]; // by number; "": it cannot be used
};

// What a rank is told.
struct bsw_device_verdict {
    int32_t ordinal;     // -1: the CPU
    int32_t num_sharers; // ranks with this device
};

#define BSW_DEVICE_ANY  (-1)
#define BSW_DEVICE_AUTO (-2)

// lists [num_ranks] to verdicts [num_ranks]; wish: a number, or one of the two above. Ranks get the
// device with their place among the ranks of the host where they can. text: of --device, for the
// error, BSW_ERROR_USAGE, where a rank gets none and the wish is not AUTO.
enum bsw_status bsw_device_assign(const struct bsw_device_list *lists, int num_ranks, int wish,
                                  const char *text, struct bsw_device_verdict *verdicts,
                                  struct bsw_error *err);

#endif
