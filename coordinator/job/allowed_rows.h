// SPDX-License-Identifier: Apache-2.0
// Which rows queries may find, as a user gives them: a file or memory, ids or masks, the same for
// all queries or a mask a query.
//
//   FILE.npy of bools    [rows], or [queries, rows]: true, may be found
//   FILE.npy of ids      int32, int64, uint32 or uint64, one row or one column
//   FILE.u32bin          ids: uint32 rows, uint32 columns, one of them 1, then uint32 numbers
//   FILE.ivecs           ids: int32 count, then as many int32; or records of one id each
//
// Ids are those of answers, in any order; one that comes twice is there once.
#ifndef BITSWEEP_COORDINATOR_ALLOWED_ROWS_H
#define BITSWEEP_COORDINATOR_ALLOWED_ROWS_H

#include <stdint.h>

#include "common/base/memory.h"
#include "common/files/row_tags.h"
#include "common/job/journal.h"

// In place of a file; borrowed. {0}: nothing is given.
struct bsw_allowed_memory {
    const uint8_t *masks; // [num_masks][mask_rows]: not 0, may be found; NULL: ids
    uint64_t num_masks, mask_rows;
    const int64_t *ids; // [num_ids]; not NULL where they are given, none of them too
    uint64_t num_ids;
};

// Whose rows they are.
struct bsw_allowed_base {
    uint64_t first_row, num_rows; // ids first_row .. first_row + num_rows - 1
    uint64_t num_queries;
};

// {0} is a valid closed one.
struct bsw_allowed_rows {
    int is_given;
    uint64_t num_rows;
    uint64_t num_masks;   // 1, of all queries; or one a query
    uint64_t num_allowed; // rows of all masks together
    uint64_t digest;      // of what they are
    // Its own.
    const char *name;
    uint32_t *bits;      // where there is one mask
    const uint8_t *data; // masks in memory
    int fd;              // or in a file, from first_byte on
    uint64_t first_byte;
    struct bsw_buffer row;
    struct bsw_number_sets wanted;       // by tags: those of each query
    const struct bsw_number_sets *lists; // and rows of each tag; borrowed
};

// What is told of them beside a result; digest 0: all rows.
struct bsw_allowed_facts {
    uint64_t num_masks, num_allowed, digest;
};
static inline struct bsw_allowed_facts bsw_allowed_facts_of(const struct bsw_allowed_rows *allowed)
{
    return (struct bsw_allowed_facts){allowed->num_masks, allowed->num_allowed, allowed->digest};
}

// path NULL: memory. Reads all of it once. What is wrong with a file is BSW_ERROR_BAD_DATA, with
// memory BSW_ERROR_USAGE.
enum bsw_status bsw_allowed_rows_open(const char *path, const struct bsw_allowed_memory *memory,
                                      const struct bsw_allowed_base *base,
                                      struct bsw_allowed_rows *out, struct bsw_error *err);
// Rows that have all tags that a query has, in a .spmat with a row for each query. lists: of the
// base's rows (common/files/row_tags.h), borrowed until close.
enum bsw_status bsw_allowed_rows_open_tags(const char *path, const struct bsw_number_sets *lists,
                                           const struct bsw_allowed_base *base,
                                           struct bsw_allowed_rows *out, struct bsw_error *err);
void bsw_allowed_rows_close(struct bsw_allowed_rows *allowed);

// What a journal has of them: "all" where none are given.
void bsw_allowed_rows_identify(const struct bsw_allowed_rows *allowed,
                               struct bsw_journal_fields *fields);

// The mask of a query, whose number is below num_masks or of no account, as bits of rows
// (shard/scan/row_mask.h) [words for num_rows].
enum bsw_status bsw_allowed_rows_read(const struct bsw_allowed_rows *allowed, uint64_t query,
                                      uint32_t *bits, struct bsw_error *err);
// Bits of rows [first, first + count) alone, first a multiple of 32. Any thread.
enum bsw_status bsw_allowed_rows_read_part(const struct bsw_allowed_rows *allowed, uint64_t query,
                                           uint64_t first, size_t count, uint32_t *bits,
                                           struct bsw_error *err);

#endif
