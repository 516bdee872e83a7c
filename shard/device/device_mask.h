// SPDX-License-Identifier: Apache-2.0
// Rows of a shard that a scan on a device may find (shard/scan/row_mask.h): masks of bundles in
// place of those of the codes, in memory that is taken when the first scan has such a mask. They
// cross the bus once a mask, not once a scan; codes that come block by block bring theirs.
#ifndef BITSWEEP_SHARD_DEVICE_MASK_H
#define BITSWEEP_SHARD_DEVICE_MASK_H

#include "shard/device/device_shard.h"

struct bsw_device_mask {
    const struct bsw_row_mask *rows; // of the scan under way, borrowed; NULL: all rows
    struct bsw_device_buffer memory; // of resident bundles
    uint32_t *joined;                // host, [bundles]: what rows and codes have, on its way
    uint32_t *own;                   // host, [bundles]: what codes have, where only the device has
    uint64_t version;                // of what is in these; 0: nothing
};

// For the scan that begins now, of a shard that no other is under way for; rows NULL: all. Waits
// for BSW_QUEUE_SCAN and BSW_QUEUE_COPY where it is not the mask it was before.
enum bsw_status bsw_device_mask_set(struct bsw_device_engine *engine,
                                    const struct bsw_device_shard *shard,
                                    const struct bsw_row_mask *rows, struct bsw_error *err);
void bsw_device_mask_free(struct bsw_device_engine *engine, struct bsw_device_mask *mask);

// Codes that are on the device, with the masks that the scan is to have.
struct bsw_device_codes bsw_device_masked_codes(const struct bsw_device_shard *shard);
// Puts masks over those of codes that were copied: bundles [first, first + num_bundles) of the
// shard as bundle `to` and following of codes. On BSW_QUEUE_COPY.
enum bsw_status bsw_device_mask_copied(struct bsw_device_engine *engine,
                                       const struct bsw_device_shard *shard, size_t first,
                                       size_t num_bundles, size_t to,
                                       const struct bsw_device_codes *codes, struct bsw_error *err);
// Rows that may be found: of all bundles, or of some.
uint64_t bsw_device_masked_rows(const struct bsw_device_shard *shard);
uint64_t bsw_device_masked_list_rows(const struct bsw_device_shard *shard, uint32_t list);

#endif
