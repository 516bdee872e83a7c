// SPDX-License-Identifier: Apache-2.0
// Tags of rows: which rows have tag t, ascending, as lists of tags; or which tags a query wants.
//
// Given they are big-ann's sparse matrices, FILE.spmat, a row of which has the tags of a row or a
// query: int64 rows, tags, entries; int64 [rows + 1], where entries of rows begin; int32 [entries],
// tags; float32 [entries], which are not looked at.
//
// rows.tags of a part of an index has lists: uint64 tags, rows, entries; uint64 [tags + 1], where
// lists begin; uint32 [entries], rows of the part, counted from 0, ascending. The manifest keeps
// its XXH3.
#ifndef BITSWEEP_COMMON_ROW_TAGS_H
#define BITSWEEP_COMMON_ROW_TAGS_H

#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"
#include "common/files/index_manifest.h"

BSW_C_BEGIN

#define BSW_ROW_TAGS_NAME "rows.tags"

// Sets of numbers below num_members: set s has members [first[s], first[s + 1]), ascending, none
// twice. {0} is a valid empty one. Sets are rows and members tags, or the other way round.
struct bsw_number_sets {
    uint64_t num_sets, num_members;
    uint64_t *first;   // [num_sets + 1]
    uint32_t *members; // fewer than 2^32 of them differ
};
void bsw_number_sets_deinit(struct bsw_number_sets *sets);

// Tags of rows: a .spmat, of which what is wrong is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_tags_read(const char *path, struct bsw_number_sets *out, struct bsw_error *err);
enum bsw_status bsw_tags_parse(const char *name, const unsigned char *data, size_t bytes,
                               struct bsw_number_sets *out, struct bsw_error *err);
// For each member the sets that have it; fewer than 2^32 sets.
enum bsw_status bsw_number_sets_turn(const struct bsw_number_sets *sets,
                                     struct bsw_number_sets *out, struct bsw_error *err);

// Lists of rows by tag, of a .spmat.
enum bsw_status bsw_row_tags_of_file(const char *path, struct bsw_number_sets *out,
                                     struct bsw_error *err);

// The bytes of the file of lists. The manifest keeps their XXH3.
enum bsw_status bsw_row_tags_pack(const struct bsw_number_sets *lists, struct bsw_buffer *out,
                                  struct bsw_error *err);
// Lists of all rows of an index, counted from its first row on; BSW_ERROR_USAGE where it has none.
enum bsw_status bsw_row_tags_read(const struct bsw_manifest *manifest, const char *folder,
                                  struct bsw_number_sets *out, struct bsw_error *err);

// Bits of those of rows [first, first + count) that are in all lists of `tags`; of all rows where
// there is no tag. bits: uint32_t words for count.
void bsw_row_tags_mask(const struct bsw_number_sets *lists, const uint32_t *tags, uint64_t num_tags,
                       uint64_t first, uint64_t count, uint32_t *bits);

static inline int bsw_manifest_has_tags(const struct bsw_manifest *manifest)
{
    return manifest->tags_digest != 0;
}

BSW_C_END
#endif
