// SPDX-License-Identifier: Apache-2.0
// From raw rows to one block of a shard file: reads, normalises, codes, checksums; one encoder a
// thread.
#ifndef BITSWEEP_SHARD_SHARD_ENCODE_H
#define BITSWEEP_SHARD_SHARD_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "common/device/device.h"
#include "common/files/index_manifest.h"
#include "common/files/shard_writer.h"
#include "common/rows/vectors.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/prepare_rows.h"

typedef struct bsw_block_encoder bsw_block_encoder;

// manifest: everything but shards' digests is set; borrowed until destroy, vectors likewise. Holds
// about 4 tiles of 128 rows (32 above 4096 dims) of floats and one block.
enum bsw_status bsw_block_encoder_create(const struct bsw_manifest *manifest,
                                         const bsw_vectors *vectors, enum bsw_cpu_level level,
                                         bsw_block_encoder **out, struct bsw_error *err);
void bsw_block_encoder_destroy(bsw_block_encoder **encoder);

struct bsw_block_result {
    const void *bytes;      // bsw_shard_block_bytes, until the next call
    uint64_t digest;        // XXH3 of them
    uint64_t source_digest; // sum of bsw_row_digest over its rows
    uint64_t dropped_rows;
};

// Encodes block `block` of the shard. A bad row is BSW_ERROR_BAD_DATA naming source and row, unless
// drop_bad_rows; it is then masked and keeps its id. order: of the shard's rows, NULL without
// lists. copies: who gets the raw rows, or NULL.
enum bsw_status bsw_block_encode(bsw_block_encoder *encoder, const struct bsw_shard_shape *shape,
                                 uint32_t block, const struct bsw_list_order *order,
                                 int drop_bad_rows, const struct bsw_shard_writer *copies,
                                 struct bsw_block_result *out, struct bsw_error *err);

// ---- shared with device_encode_run.c ----

// BSW_ERROR_BAD_DATA naming source, row and fault.
enum bsw_status bsw_fail_bad_row(const bsw_vectors *vectors, uint64_t row_id,
                                 enum bsw_row_fault fault, struct bsw_error *err);

// Blocks of shard files, encoded on a device: the bytes that bsw_block_encode gives.
//
// The host's threads read rows and add up their digests; the device prepares and codes them; the
// host turns what it gives for each row into masks, halves and biases. While the device has one
// block, the host finishes the one before and reads the next. All memory is taken at the start; a
// block that is too large for the device's goes through it in pieces. The command is bound by the
// host's reading, the product of saq excepted.

struct bsw_encode_place {
    const struct bsw_shard_writer *writer; // gets the raw rows
    uint32_t block;                        // of that shard
    const struct bsw_list_order *order;    // of that shard's rows; NULL without lists
};

// One tenant: encode_pass.c, of a room that this one may not include.
struct bsw_device_encode_options {
    const struct bsw_manifest *manifest; // of a codec that has a device_coder; all but
                                         // shards' digests is set
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
