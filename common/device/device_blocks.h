// SPDX-License-Identifier: Apache-2.0
// Copies between ordinary host memory and a device, through two pinned blocks: they run at the
// speed of the bus, beside the copies to and from the blocks, and nothing waits in the driver,
// which a copy of ordinary memory would.
#ifndef BITSWEEP_COMMON_DEVICE_BLOCKS_H
#define BITSWEEP_COMMON_DEVICE_BLOCKS_H

#include <stddef.h>

#include "common/device/device.h"

#define BSW_DEVICE_BLOCK_BYTES ((size_t)16 << 20) // a few hundred microseconds of a bus

struct bsw_device_blocks {
    bsw_device *device; // borrowed
    unsigned char *host;
    size_t bytes; // of each
    unsigned turn;
};

// bytes: of a block, >= 1.
enum bsw_status bsw_device_blocks_open(bsw_device *device, size_t bytes,
                                       struct bsw_device_blocks *out, struct bsw_error *err);
// Accepts {0}.
void bsw_device_blocks_close(struct bsw_device_blocks *blocks);

// bytes from host memory to device memory, on BSW_QUEUE_COPY; `from` is free on return, but the
// last of it may still be on its way: uploads follow one another, and a wait for the queue ends
// them. `what` is for error texts.
enum bsw_status bsw_device_blocks_upload(struct bsw_device_blocks *blocks, void *to,
                                         const void *from, size_t bytes, const char *what,
                                         struct bsw_error *err);

// num_rows rows of row_bytes, their starts to_stride and from_stride bytes apart, from device
// memory to host memory, behind what is on `queue`; all is there on return.
struct bsw_device_rows {
    size_t row_bytes, num_rows, to_stride, from_stride;
};
enum bsw_status bsw_device_blocks_download(struct bsw_device_blocks *blocks,
                                           enum bsw_device_queue queue, void *to, const void *from,
                                           const struct bsw_device_rows *rows, const char *what,
                                           struct bsw_error *err);

#endif
