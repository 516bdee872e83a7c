// SPDX-License-Identifier: Apache-2.0
// Codes back from device memory, for self-checks: against the digests of the blocks they came from,
// or a bundle at a time for the plain C reference.
//
// A digest kernel would read them at the speed of device memory; copies through host memory that
// stays in place go at that of the bus, 16 blocks (some 16 MiB) at a time while nothing else runs:
// 3 s for 141 GB at the 55 GB/s of an H200's bus. That is done once at the end; in
// between BSW_READBACK_BYTES a check, block after block in turn.
#ifndef BITSWEEP_SHARD_DEVICE_READBACK_H
#define BITSWEEP_SHARD_DEVICE_READBACK_H

#include "shard/device/device_shard.h"

#define BSW_READBACK_BLOCKS 16
#define BSW_READBACK_BYTES  ((size_t)1 << 30)

// Host memory that the engine keeps for it, of shards of this shape.
size_t bsw_device_readback_bytes(const struct bsw_shard_shape *shape);

// Bundle `bundle` of the codes as a shard of one bundle, whose arrays point into the engine's
// memory until the next call, or into the host's codes where it still has them. Its row 0 is the
// bundle's first.
enum bsw_status bsw_device_shard_fetch(struct bsw_device_engine *engine,
                                       const struct bsw_device_shard *shard, size_t bundle,
                                       struct bsw_resident_shard *out, struct bsw_error *err);

// Blocks [first, first + num_blocks) of the shard's file, as far as their bundles are on the
// device: BSW_ERROR_SELF_CHECK as bsw_resident_shard_check has it. Other codes are the host's.
enum bsw_status bsw_device_shard_check(struct bsw_device_engine *engine,
                                       const struct bsw_device_shard *shard, uint32_t first,
                                       uint32_t num_blocks, struct bsw_error *err);
// Most blocks of one check in between.
uint32_t bsw_device_readback_most(const struct bsw_shard_shape *shape);
// Blocks that have bundles on the device.
uint32_t bsw_device_shard_blocks(const struct bsw_device_shard *shard);

#endif
