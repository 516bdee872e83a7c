// SPDX-License-Identifier: Apache-2.0
// Additions to keys around a scan on a GPU (kernels/select/key_shift.h), and row masks of a search:
// the scans themselves know neither.
//
// begin makes of the lists' limits those that keys must reach before anything is added, for the
// scan to be given in their place, and notes the counts; end adds to what the scan has appended
// since. Launchers as in device_scan.h. Not for lists with queues.
#ifndef BITSWEEP_KERNELS_DEVICE_SHIFT_H
#define BITSWEEP_KERNELS_DEVICE_SHIFT_H

#include "common/base/c_linkage.h"
#include "kernels/device_scan/device_scan.h"
#include "kernels/select/key_shift.h"

BSW_C_BEGIN

// Arrays [num_queries] of the lists.
struct bsw_device_shift {
    const union bsw_addition *additions;
    int is_float;     // keys are
    uint32_t *limits; // before additions
    uint32_t *counts; // before the scan
};

BSW_DEVICE_CALL int bsw_device_shift_begin(const struct bsw_device_lists *lists,
                                           const struct bsw_device_shift *shift, bsw_stream stream);
BSW_DEVICE_CALL int bsw_device_shift_end(const struct bsw_device_lists *lists,
                                         const struct bsw_device_shift *shift, bsw_stream stream);

// masks[i] &= more[i] of num_bundles.
BSW_DEVICE_CALL int bsw_device_join_masks(uint32_t *masks, const uint32_t *more,
                                          uint32_t num_bundles, bsw_stream stream);

BSW_C_END
#endif
