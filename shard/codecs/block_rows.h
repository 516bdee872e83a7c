// SPDX-License-Identifier: Apache-2.0
// The rows of a block of a shard, on their way to whoever codes them: read, added up in digests,
// copied, and judged.
#ifndef BITSWEEP_SHARD_BLOCK_ROWS_H
#define BITSWEEP_SHARD_BLOCK_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "common/files/shard_writer.h"
#include "common/rows/vectors.h"
#include "kernels/encode/prepare_rows.h"
#include "shard/codecs/shard_encode.h"

// A block under way. All borrowed.
struct bsw_block_rows {
    const struct bsw_manifest *manifest;
    const bsw_vectors *vectors;
    size_t row_bytes;
    const struct bsw_shard_shape *shape;
    const struct bsw_list_order *order;    // of the shard's rows; NULL: places are rows
    const struct bsw_shard_writer *copies; // gets the raw rows; NULL: nobody does
    int drop_bad_rows;
    uint64_t first_place;          // of the block
    struct bsw_code_arrays arrays; // of the block
};

// The rows at `count` places from `place` on to numbers [count] of row_bytes, 0 where no row is;
// adds to row_digests, and to source_digest and dropped_rows of out. Places of different bundles
// may be read by several threads, each with an `out` of its own.
enum bsw_status bsw_block_rows_read(const struct bsw_block_rows *rows, uint64_t place, size_t count,
                                    unsigned char *numbers, struct bsw_block_result *out,
                                    struct bsw_error *err);

// Their lists; to be asked where codes are residuals.
void bsw_block_rows_lists(const struct bsw_block_rows *rows, uint64_t place, size_t count,
                          uint32_t *lists);

// Sets the bit of a row without a fault; one with a fault is BSW_ERROR_BAD_DATA naming source and
// row, unless it is to be dropped.
enum bsw_status bsw_block_rows_judge(const struct bsw_block_rows *rows, uint64_t place,
                                     enum bsw_row_fault fault, struct bsw_block_result *out,
                                     struct bsw_error *err);

#endif
