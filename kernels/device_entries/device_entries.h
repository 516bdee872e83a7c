// SPDX-License-Identifier: Apache-2.0
// device_entries: entries within a radius on a GPU, entry by entry: entries_within.h's hits and
// values, bit for bit, of a batch of rays in device memory. A warp has a ray: 32 entries at a time,
// and what hits is put one after the other by counting the bits of a ballot.
//
// Launchers are as those of kernels/device_scan/device_scan.h.
#ifndef BITSWEEP_KERNELS_DEVICE_ENTRIES_H
#define BITSWEEP_KERNELS_DEVICE_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/device_call.h"
#include "kernels/entries_within/entries_within.h"

BSW_C_BEGIN

// struct bsw_entry_book in device memory.
struct bsw_device_entry_book {
    const float *points; // [subspaces][2][entries]
    uint32_t subspaces, entries;
    enum bsw_entry_value value;
};

// Each ray has room for all entries of a subspace, so that no ray waits for those before it: 5 *
// entries + 4 bytes a ray. What lies behind a ray's hits is left as it was.
struct bsw_device_entry_hits {
    uint32_t *counts; // [num_rays]
    uint8_t *entries; // [num_rays][entries], ascending
    float *values;    // [num_rays][entries]
};

// rays [num_rays], subspaces in range. cudaErrorInvalidValue for entries that are neither 16 nor
// 256.
BSW_DEVICE_CALL int bsw_device_entries_within(const struct bsw_device_entry_book *book,
                                              const struct bsw_entry_ray *rays, uint32_t num_rays,
                                              const struct bsw_device_entry_hits *hits,
                                              bsw_stream stream);

BSW_C_END
#endif
