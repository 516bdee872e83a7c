// SPDX-License-Identifier: Apache-2.0
// Blocks of shard files, encoded on a device: the bytes that bsw_block_encode gives.
//
// The host's threads read rows and add up their digests; the device prepares and codes them; the
// host turns what it gives for each row into masks, halves and biases. While the device has one
// block, the host finishes the one before and reads the next. All memory is taken at the start; a
// block that is too large for the device's goes through it in pieces. The command is bound by the
// host's reading, the product of saq excepted.
#ifndef BITSWEEP_SHARD_DEVICE_ENCODE_RUN_H
#define BITSWEEP_SHARD_DEVICE_ENCODE_RUN_H

#include <stdint.h>

#include "common/device/device.h"
#include "shard/codecs/shard_encode.h"

struct bsw_encode_place {
    const struct bsw_shard_writer *writer; // gets the raw rows
    uint32_t block;                        // of that shard
};

// One tenant: encode_pass.c, of a room that this one may not include.
struct bsw_device_encode_options {
    const struct bsw_manifest *manifest; // codec xfbq or saq; all but shards' digests is set
    const bsw_vectors *vectors;
    int drop_bad_rows;    // as bsw_block_encode
    uint64_t first, last; // blocks, numbered as find and put have it
    void *context;
    void (*find)(void *context, uint64_t block, struct bsw_encode_place *out);
    // Takes a block, in ascending order, from the calling thread; result->bytes until it returns.
    enum bsw_status (*put)(void *context, uint64_t block, const struct bsw_block_result *result,
                           struct bsw_error *err);
};

// The first block is encoded by the host too: BSW_ERROR_SELF_CHECK if their bytes differ. A bad
// row: BSW_ERROR_BAD_DATA naming source and row, the lowest there is. Too little device memory for
// one bundle: BSW_ERROR_OUT_OF_MEMORY with the numbers.
enum bsw_status bsw_device_encode_run(bsw_device *device,
                                      const struct bsw_device_encode_options *options,
                                      struct bsw_error *err);

#endif
