// SPDX-License-Identifier: Apache-2.0
// Ids that rows have beside their numbers: 0 to 2^63 - 1, as -1 stands for no row. They stay when
// row numbers change, and are what answers have.
//
// rows.ids.npy of a part: int64 [rows of the part], in the order of rows. The manifest keeps its
// XXH3.
#ifndef BITSWEEP_COMMON_ROW_IDS_H
#define BITSWEEP_COMMON_ROW_IDS_H

#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"
#include "common/files/index_manifest.h"

BSW_C_BEGIN

#define BSW_ROW_IDS_NAME "rows.ids.npy"

// Whole numbers of a file, 0 or more: .npy with one axis of int64, uint64, int32 or uint32, else
// text, with spaces or lines between them. *out [*count]: to be freed by bsw_free.
enum bsw_status bsw_integers_read(const char *path, int64_t **out, uint64_t *count,
                                  struct bsw_error *err);

// A number and its place, sorted by number, then place.
struct bsw_placed_id {
    int64_t id;
    uint64_t place;
};
void bsw_placed_ids_sort(struct bsw_placed_id *ids, uint64_t count);

// BSW_ERROR_BAD_DATA, naming `name`, where a number is below 0 or there twice.
enum bsw_status bsw_integers_check_different(const char *name, const int64_t *ids, uint64_t count,
                                             struct bsw_error *err);

// The bytes of the file; the manifest keeps their XXH3.
enum bsw_status bsw_row_ids_pack(const int64_t *ids, uint64_t count, struct bsw_buffer *out,
                                 struct bsw_error *err);

// Ids of all rows of an index; *out [num_rows]: to be freed by bsw_free; NULL: rows have none.
enum bsw_status bsw_row_ids_read(const struct bsw_manifest *manifest, const char *folder,
                                 int64_t **out, struct bsw_error *err);

// The same with their rows, of those that were not deleted, sorted; *count of them.
enum bsw_status bsw_row_ids_live(const struct bsw_manifest *manifest, const char *folder,
                                 struct bsw_placed_id **out, uint64_t *count,
                                 struct bsw_error *err);
// Finds an id among these; NULL: there is none.
const struct bsw_placed_id *bsw_placed_ids_find(const struct bsw_placed_id *ids, uint64_t count,
                                                int64_t id);

static inline int bsw_manifest_has_ids(const struct bsw_manifest *manifest)
{
    return manifest->ids_digest != 0;
}

BSW_C_END
#endif
