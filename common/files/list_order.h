// SPDX-License-Identifier: Apache-2.0
// The order of a shard's rows in an index with lists: list after list, ids ascending in each, every
// list from a bundle's first place on. Places that no row has are masked in the .codes file.
//
// shard-I-of-P.lists: "BSWLIST", uint64 digest of the build, uint64 lists, rows and places; then
// first bundles of the lists and their end uint32 [lists + 1], then the row at each place uint32
// [places], counted from the shard's first row, BSW_NO_ROW where there is none. Little-endian.
#ifndef BITSWEEP_COMMON_LIST_ORDER_H
#define BITSWEEP_COMMON_LIST_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/files/index_manifest.h"

BSW_C_BEGIN

#define BSW_NO_ROW  UINT32_MAX
#define BSW_NO_LIST UINT32_MAX // of a row that was dropped, having a fault

// {0} is none: places are rows.
struct bsw_list_order {
    uint32_t num_lists, num_rows, num_places;
    uint32_t *first_bundles; // [num_lists + 1]; owned
    uint32_t *rows;          // [num_places]; owned
    uint32_t *places;        // [num_rows]: where a row is, BSW_NO_ROW if nowhere; owned
};

// Places that rows with these lists [num_rows] take: as num_places of the shard's entry.
enum bsw_status bsw_list_order_count(const uint32_t *lists, uint64_t num_rows, uint32_t num_lists,
                                     uint64_t *num_places, struct bsw_error *err);

// From the list of each row. Lists are below num_lists or BSW_NO_LIST, num_places as counted.
enum bsw_status bsw_list_order_make(const uint32_t *lists, uint64_t num_rows, uint32_t num_lists,
                                    uint64_t num_places, struct bsw_list_order *out,
                                    struct bsw_error *err);
void bsw_list_order_deinit(struct bsw_list_order *order); // accepts {0}

// Rows of a list; its last bundle may have places without one.
static inline uint32_t bsw_list_num_rows(const struct bsw_list_order *order, uint32_t list)
{
    uint32_t first = order->first_bundles[list] * BSW_BUNDLE_ROWS,
             last = order->first_bundles[list + 1] * BSW_BUNDLE_ROWS;
    while (last > first && order->rows[last - 1] == BSW_NO_ROW) last--;
    return last - first;
}

// The list that a place belongs to; places behind the last list are the last one's.
uint32_t bsw_list_of_place(const struct bsw_list_order *order, uint32_t place);

// Sets the bits of the rows whose places have one in masks [num_bundles], the first of which is of
// bundle first_bundle. order: {0} where places are rows.
void bsw_list_order_set_rows(const struct bsw_list_order *order, size_t first_bundle,
                             const uint32_t *masks, size_t num_bundles, uint32_t *rows);

// Bytes of a shard's file, and of its order in memory.
static inline uint64_t bsw_list_order_file_bytes(uint32_t num_lists, uint64_t num_places)
{
    return 40 + (num_lists + UINT64_C(1) + num_places) * sizeof(uint32_t);
}
static inline uint64_t bsw_list_order_memory_bytes(uint32_t num_lists, uint64_t num_rows,
                                                   uint64_t num_places)
{
    return (num_lists + UINT64_C(1) + num_places + num_rows) * sizeof(uint32_t);
}

// The bytes of the file; the manifest keeps their XXH3. build_digest: of the manifest.
enum bsw_status bsw_list_order_pack(const struct bsw_list_order *order, uint64_t build_digest,
                                    struct bsw_buffer *out, struct bsw_error *err);
// Takes them; name is for messages. What is no order of num_rows rows is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_list_order_parse(const char *name, const void *data, size_t bytes,
                                     uint64_t build_digest, uint32_t num_lists, uint64_t num_rows,
                                     uint64_t num_places, struct bsw_list_order *out,
                                     struct bsw_error *err);

// Reads the file of a shard and checks it against the manifest; a missing one is
// BSW_ERROR_BAD_DATA. An index without lists gives {0}.
enum bsw_status bsw_list_order_read(const struct bsw_manifest *manifest, const char *folder,
                                    uint32_t shard, struct bsw_list_order *out,
                                    struct bsw_error *err);

BSW_C_END
#endif
