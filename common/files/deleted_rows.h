// SPDX-License-Identifier: Apache-2.0
// Which rows of a shard deletes took away: bits that stand beside the shard's files, which stay as
// they are until the index is compacted. Who reads a block gets masks without these rows, as if
// they had been dropped when they were coded.
//
// deleted-00003-00012.bits, of generation 3 and shard 12, in the folder of the index: "BSWGONE",
// uint64 digest of the part's build, uint64 places; then uint32 [bundles], a bit for each place.
// Little-endian. The manifest keeps its XXH3.
#ifndef BITSWEEP_COMMON_DELETED_ROWS_H
#define BITSWEEP_COMMON_DELETED_ROWS_H

#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/files/index_manifest.h"

BSW_C_BEGIN

// *masks [bundles]: to be freed by bsw_free; NULL where no row of the shard was deleted.
enum bsw_status bsw_deleted_rows_read(const struct bsw_manifest *manifest, const char *folder,
                                      uint32_t shard, uint32_t **masks, struct bsw_error *err);

// The same by row: bit r % 32 of word r / 32 of *rows [(rows of the shard + 31) / 32]; never NULL.
enum bsw_status bsw_deleted_rows_by_row(const struct bsw_manifest *manifest, const char *folder,
                                        uint32_t shard, uint32_t **rows, struct bsw_error *err);

// The file of manifest->generation, durably; sets what the shard's entry says of it.
enum bsw_status bsw_deleted_rows_write(struct bsw_manifest *manifest, const char *folder,
                                       uint32_t shard, const uint32_t *masks,
                                       struct bsw_error *err);

// Whether a file of an index folder is one of these; its numbers, or NULL.
int bsw_deleted_rows_are_named(const char *name, uint64_t *generation, uint32_t *shard);

BSW_C_END
#endif
