// SPDX-License-Identifier: Apache-2.0
// A shard in memory: codes, scales, biases, masks and row digests; every block checked while it is
// loaded.
#ifndef BITSWEEP_SHARD_RESIDENT_SHARD_H
#define BITSWEEP_SHARD_RESIDENT_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/cpu_level.h"
#include "common/files/list_order.h"
#include "common/files/shard_file.h"
#include "shard/backend.h"
#include "shard/host/raw_rows.h"
#include "shard/scan/row_mask.h"

BSW_C_BEGIN

// The largest scale and |bias| of a bundle's rows.
struct bsw_bundle_most {
    float scale, bias;
};

// Digests of the bundles of one block of the file, as they were when it was checked against the
// file.
struct bsw_block_digests {
    uint64_t parts[BSW_NUM_CODE_PARTS];
    uint64_t most;
};

struct bsw_resident_shard {
    uint32_t index;
    struct bsw_shard_shape shape;
    struct bsw_code_arrays arrays; // owned; tails if there is a stage
    struct bsw_list_order order;   // owned; {0} without lists: places are rows
    size_t num_bundles;
    struct bsw_block_digests *digests; // [shape.num_blocks]; owned
    size_t scan_bytes;                 // of one pass: codes, scales, biases, masks
    uint32_t stage_dims; // padded dimensions of the first stage of a progressive scan; 0: none
    double tail_unit;    // of a tail half, in units of a scale half
    struct bsw_bundle_most *most; // [num_bundles] if there is a stage; owned
    struct bsw_raw_rows raw_rows;
    int has_raw_rows;
    // Rows that a scan may find, of a copy that it is given; borrowed. NULL: all that are there.
    const struct bsw_row_mask *mask;
};

// The place of a row in bundles.
static inline uint32_t bsw_resident_place(const struct bsw_resident_shard *shard, uint32_t row)
{
    return shard->order.places ? shard->order.places[row] : row;
}

// Bytes of a shard in memory, array by array; its shape is enough to know them.
struct bsw_resident_parts {
    size_t codes, scales, biases, offsets, masks; // what a scan reads
    size_t row_digests, tails, most;
    size_t order; // of rows in lists
};
// stage_dims: of the codes' first stage, 0: none.
struct bsw_resident_parts bsw_resident_parts_of(const struct bsw_shard_shape *shape,
                                                uint32_t stage_dims);
static inline size_t bsw_resident_scan_bytes(const struct bsw_resident_parts *parts)
{
    return parts->codes + parts->scales + parts->biases + parts->offsets + parts->masks;
}
static inline size_t bsw_resident_bytes(const struct bsw_resident_parts *parts)
{
    return bsw_resident_scan_bytes(parts) + parts->row_digests + parts->tails + parts->most +
           parts->order;
}

// Loads with all OpenMP threads, each copying the part it will scan. with_raw_rows: also opens what
// refinement needs.
enum bsw_status bsw_resident_shard_load(const struct bsw_manifest *manifest, const char *folder,
                                        uint32_t shard, int with_raw_rows,
                                        struct bsw_resident_shard *out, struct bsw_error *err);
// The same without files: coded now, by all OpenMP threads, from the rows that the manifest's
// source_path names (not relative to anything). A bad row is BSW_ERROR_BAD_DATA. Raw rows of synth:
// are held in memory.
enum bsw_status bsw_resident_shard_encode(const struct bsw_manifest *manifest, uint32_t shard,
                                          enum bsw_cpu_level level, int with_raw_rows,
                                          struct bsw_resident_shard *out, struct bsw_error *err);
// All of its raw rows with their digests, by all OpenMP threads: what of them is damaged is
// BSW_ERROR_BAD_DATA, as when they are used.
enum bsw_status bsw_resident_shard_verify_rows(const struct bsw_resident_shard *shard,
                                               struct bsw_error *err);
void bsw_resident_shard_unload(struct bsw_resident_shard *shard);
// Frees what scans read, once a device has it; refinement needs the rest.
void bsw_resident_shard_drop_codes(struct bsw_resident_shard *shard);

// A bundle as a shard of its own over the same memory.
struct bsw_resident_shard bsw_resident_shard_bundle(const struct bsw_resident_shard *shard,
                                                    size_t bundle);

// Digests what is resident once more, with all OpenMP threads: some 10 GB/s each. Codes that were
// dropped are not looked at. BSW_ERROR_SELF_CHECK names shard, block, rows and what has changed.
enum bsw_status bsw_resident_shard_check(const struct bsw_resident_shard *shard,
                                         struct bsw_error *err);
// The same error, for a block found to have changed elsewhere. part: BSW_NUM_CODE_PARTS is `most`.
enum bsw_status bsw_resident_shard_fail_block(const struct bsw_resident_shard *shard,
                                              uint32_t block, int part, struct bsw_error *err);

// Bundles of part `part` of `parts`: the cut threads share the work by.
void bsw_resident_shard_part(const struct bsw_resident_shard *shard, size_t part, size_t parts,
                             size_t *first, size_t *last);

BSW_C_END
#endif
