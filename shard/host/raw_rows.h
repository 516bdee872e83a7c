// SPDX-License-Identifier: Apache-2.0
// Raw rows of a shard for refinement: mapped from the source file or the index's own copy, or
// generated again.
//
// With lists a copy lies list after list, so that candidates of a query are near each other.
//
// A bundle of 32 rows is checked against the digest made at encode the first time one of them is
// used, so that a source that changed never gives a wrong value, and a search of a few queries
// never reads the whole of it. One that becomes shorter ends the process
// (common/job/mapped_files.c).
#ifndef BITSWEEP_SHARD_RAW_ROWS_H
#define BITSWEEP_SHARD_RAW_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/files/index_manifest.h"
#include "common/files/list_order.h"
#include "common/rows/synth.h"

BSW_C_BEGIN

struct bsw_raw_rows {
    char path[BSW_PATH_BYTES];
    uint64_t shard_first_row;  // id
    uint64_t source_first_row; // the same row in the source
    uint64_t num_rows;         // of the shard
    size_t row_bytes;
    uint64_t source_rows_before; // rows of the mapped file that come before the shard's first
    const unsigned char *map;    // whole file or rows that are held, or NULL for synth
    size_t map_bytes;
    uint64_t first_byte, stride_bytes;
    int is_synth;
    struct bsw_synth synth;
    // In a copy in the order of lists, borrowed: the row at each place, and the place of each row;
    // else NULL.
    const uint32_t *rows_at, *places;
    uint64_t num_slots;        // rows of the shard, or places
    unsigned char *is_checked; // [bundles]; written by several threads, always with the same value
};

// Opens what the manifest names for this shard. A source that is missing is BSW_ERROR_IO; one whose
// size, type or dims are not those of the index BSW_ERROR_BAD_DATA. order: of the shard; {0}
// without lists. Its arrays are borrowed until close.
enum bsw_status bsw_raw_rows_open(const struct bsw_manifest *manifest, const char *folder,
                                  uint32_t shard, const struct bsw_list_order *order,
                                  struct bsw_raw_rows *out, struct bsw_error *err);
// Generates all rows of synth: into memory, by all OpenMP threads, so that from there on they cost
// what those of a file do. Other rows stay as they are.
enum bsw_status bsw_raw_rows_hold(struct bsw_raw_rows *rows, struct bsw_error *err);
void bsw_raw_rows_close(struct bsw_raw_rows *rows);

// The raw row `local_row` of the shard: a pointer into the map, or generated into scratch
// (row_bytes); zeros for a dropped row that a copy does not have. row_digests as in the shard file.
// A bundle whose digest differs is BSW_ERROR_BAD_DATA naming its rows. Thread-safe.
enum bsw_status bsw_raw_rows_get(const struct bsw_raw_rows *rows, uint32_t local_row,
                                 const uint64_t *row_digests, void *scratch, const void **out,
                                 struct bsw_error *err);

// Asks for the bytes of row `local_row`, at most BSW_PREFETCH_BYTES of them, ahead of
// bsw_raw_rows_get. Reads no page that is not in memory and checks nothing.
#define BSW_PREFETCH_BYTES 1024
void bsw_raw_rows_prefetch(const struct bsw_raw_rows *rows, uint32_t local_row);

// Asks for where that row lies, which bsw_raw_rows_prefetch has to know: ahead of it.
static inline void bsw_raw_rows_prefetch_place(const struct bsw_raw_rows *rows, uint32_t local_row)
{
    if (rows->places) __builtin_prefetch(rows->places + local_row);
}

// Asks the system to read so many rows from `first_row` of the shard on into memory. In the order
// of lists they lie anywhere: it is asked for all rows, or nothing.
void bsw_raw_rows_read_ahead(const struct bsw_raw_rows *rows, uint64_t first_row,
                             uint64_t num_rows);

// Checks the rows of one bundle against the digest of the shard file, whatever was checked before.
enum bsw_status bsw_raw_rows_verify(const struct bsw_raw_rows *rows, size_t bundle, uint64_t digest,
                                    void *scratch, struct bsw_error *err);

BSW_C_END
#endif
