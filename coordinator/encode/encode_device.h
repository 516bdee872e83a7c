// SPDX-License-Identifier: Apache-2.0
// The device that a rank of an encode has, and what it does there.
#ifndef BITSWEEP_COORDINATOR_ENCODE_DEVICE_H
#define BITSWEEP_COORDINATOR_ENCODE_DEVICE_H

#include <stdint.h>

#include "coordinator/encode/encode_index.h"
#include "coordinator/job/device_choice.h"
#include "shard/lists/list_assignment.h"

struct bsw_encode_device {
    struct bsw_chosen_device chosen;
    struct bsw_list_finder finder; // finds rows' lists there; {0}: the CPU does, or there are none
    bsw_device *coder;             // makes codes; NULL: the CPU does
};

// All ranks; all return alike.
enum bsw_status bsw_encode_device_open(const struct bsw_encode_settings *settings,
                                       uint64_t num_rows, struct bsw_transport *transport,
                                       struct bsw_encode_device *out, struct bsw_error *err);
void bsw_encode_device_close(struct bsw_encode_device *device); // accepts {0}

#endif
