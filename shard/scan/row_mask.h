// SPDX-License-Identifier: Apache-2.0
// Which rows of a shard may be found: a filter, rows that were deleted, or both. Made of bits in
// the order of rows, used in the order of the shard's bundles, where lists have rows elsewhere.
//
// A scan looks at rows that this mask and the shard's own (rows that were dropped, places without
// one) both have. On CPUs bundles without such a row are left out.
#ifndef BITSWEEP_SHARD_ROW_MASK_H
#define BITSWEEP_SHARD_ROW_MASK_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"
#include "common/files/list_order.h"

BSW_C_BEGIN

// {0} is a valid empty one, of no row.
struct bsw_row_mask {
    const uint32_t *bundles; // [num_bundles]: bit r, row r of the bundle may be found
    size_t num_bundles;
    uint64_t num_rows; // of these
    uint64_t version;  // no other content in this process has it: for who keeps a copy elsewhere
    struct bsw_buffer memory;
};
void bsw_row_mask_deinit(struct bsw_row_mask *mask);

// The mask of a shard of num_bundles bundles whose rows [0, num_rows) are bits [first_row,
// first_row + num_rows) of `bits`; order: of rows in lists, {0} where places are rows. What the
// mask had is lost, its version is new. With all OpenMP threads.
enum bsw_status bsw_row_mask_make(const uint32_t *bits, uint64_t first_row, uint64_t num_rows,
                                  const struct bsw_list_order *order, size_t num_bundles,
                                  struct bsw_row_mask *mask, struct bsw_error *err);

// Rows of some bundles.
uint64_t bsw_row_mask_count(const struct bsw_row_mask *mask, size_t first_bundle,
                            size_t num_bundles);

// What a scan of the best `keep` rows can have of these, 1 at least: limits are of some row.
static inline size_t bsw_row_mask_keep(const struct bsw_row_mask *mask, size_t keep)
{
    if (!mask || keep <= mask->num_rows) return keep;
    return mask->num_rows > 0 ? (size_t)mask->num_rows : 1;
}

BSW_C_END
#endif
