// SPDX-License-Identifier: Apache-2.0
// Shard files: codes of a range of rows, in blocks of bundles, each block with an XXH3 checksum.
//
// shard-I-of-P.codes:
//   header   4096 bytes: struct fields below, then XXH3 of the bytes before it
//   blocks   block b holds bundles [b*block_bundles, ...); in it, for its n bundles: per segment
//   planes
//            [n][bits][words][32] uint32; then, for codes with a scale, scales [32n] half, tails
//            [32n] half, biases [32n] float, unless all are 0; for raw the bytes of code_layout.h
//            in place of planes, then offsets [32n] int32 where biases would stand; then masks [n]
//            uint32 (bit lane: the row exists and was not dropped); then row digests [n] uint64:
//            the sum over the bundle's rows of bsw_row_digest, so that raw rows are checked where
//            they are used
//   footer   XXH3 of the header, XXH3 of each block, then XXH3 of the footer before it; written
//   last
// Its size follows from the header. The manifest keeps the XXH3 of the whole footer.
//
// shard-I-of-P.vectors (--copy-vectors): header of 4096 bytes of the same kind, then raw rows,
// dense; they are checked by the row digests of the .codes file.
//
// All numbers little-endian. Blocks are sized so that a thread encodes one in about a megabyte.
#ifndef BITSWEEP_COMMON_SHARD_FILE_H
#define BITSWEEP_COMMON_SHARD_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"
#include "common/codes/code_layout.h"
#include "common/files/index_manifest.h"

BSW_C_BEGIN

// With lists (list_order.h) bundles hold rows list after list, and more places than rows. .vectors
// then has a row at each place, 0 where there is none, and a bundle's row digest is that of the
// rows at its places. Without a copy, and in copies of programs before that
// (lists.has_ordered_vectors of the manifest is 0), both have the source's order: the digest is
// that of rows [32 b, 32 b + 32).

#define BSW_SHARD_HEADER_BYTES 4096

// What the bytes of a shard file are arranged by.
struct bsw_shard_shape {
    struct bsw_code_layout layout;
    int has_affine;      // scales, tails
    int has_biases;      // with has_affine; else all are 0
    int has_bytes;       // bytes in place of planes, offsets in place of biases; no scales, tails
    int has_tables;      // planes[0] are bytes of product codes; keys are floats
    uint64_t num_rows;   // 1 .. 2^32 - 1
    uint64_t num_places; // of rows in bundles, num_rows at least; more with lists (list_order.h)
    uint32_t num_lists;  // 0: none, places are rows
    int has_ordered_vectors; // copied rows lie at places
    uint64_t first_row;      // id
    uint32_t block_bundles;
    uint32_t num_blocks;
    size_t bundle_bytes; // of one bundle in a block
};

void bsw_shard_shape_init(struct bsw_shard_shape *shape, const struct bsw_manifest *manifest,
                          uint32_t shard);
size_t bsw_shard_block_bundles(const struct bsw_shard_shape *shape,
                               uint32_t block); // the last may have fewer
size_t bsw_shard_block_bytes(const struct bsw_shard_shape *shape, uint32_t block);
uint64_t bsw_shard_block_offset(const struct bsw_shard_shape *shape, uint32_t block);
uint64_t bsw_shard_codes_bytes(const struct bsw_shard_shape *shape); // of the whole .codes file
uint64_t bsw_shard_vectors_bytes(const struct bsw_shard_shape *shape, size_t row_bytes);

// Where the arrays lie: of num_bundles bundles, inside one block or resident.
struct bsw_code_arrays {
    uint32_t *planes[BSW_MAX_SEGMENTS]; // raw: planes[0] points to the bytes
    uint16_t *scales;                   // NULL without affine
    uint16_t *tails;
    float *biases;    // NULL without has_biases
    int32_t *offsets; // NULL unless raw
    uint32_t *masks;
    uint64_t *row_digests;
};

// What of a bundle range's arrays is digested together: what every full scan reads, what a first
// stage adds, and what raw rows are checked by.
enum bsw_code_part { BSW_PART_CODES, BSW_PART_TAILS, BSW_PART_ROWS, BSW_NUM_CODE_PARTS };

// One of them: where its pointer stands in struct bsw_code_arrays.
struct bsw_code_array {
    size_t place, bundle_bytes;
    enum bsw_code_part part;
    const char *name;
};
#define BSW_MAX_CODE_ARRAYS (BSW_MAX_SEGMENTS + 6)
struct bsw_code_array_list {
    size_t count;
    struct bsw_code_array items[BSW_MAX_CODE_ARRAYS];
};
// Those of a shape, in the order of a block.
struct bsw_code_array_list bsw_code_arrays_list(const struct bsw_shard_shape *shape);
// At a bundle; NULL: the array is not there.
void *bsw_code_array_at(const struct bsw_code_arrays *arrays, const struct bsw_code_array *array,
                        size_t bundle);
// Those that are there begin at `bundle`.
void bsw_code_arrays_advance(const struct bsw_shard_shape *shape, size_t bundle,
                             struct bsw_code_arrays *arrays);

void bsw_code_arrays_in_block(const struct bsw_shard_shape *shape, void *block, size_t num_bundles,
                              struct bsw_code_arrays *out);

// Copies a block's arrays to bundle `first_bundle` of resident ones.
void bsw_code_arrays_copy(const struct bsw_shard_shape *shape, const struct bsw_code_arrays *block,
                          size_t num_bundles, const struct bsw_code_arrays *resident,
                          size_t first_bundle);

// XXH3 of bundles [first_bundle, first_bundle + num_bundles) of arrays in a block or resident; an
// array that is not there counts as empty.
uint64_t bsw_code_arrays_digest(const struct bsw_shard_shape *shape,
                                const struct bsw_code_arrays *arrays, size_t first_bundle,
                                size_t num_bundles, enum bsw_code_part part);

// Writes header and footer round blocks that are already in place; block_digests [num_blocks].
// *codes_digest is what the manifest keeps. The file is open in fd; the caller syncs and renames.
enum bsw_status bsw_shard_file_seal(int fd, const char *path, const struct bsw_shard_shape *shape,
                                    const struct bsw_manifest *manifest, uint32_t shard,
                                    const uint64_t *block_digests, uint64_t *codes_digest,
                                    struct bsw_error *err);
// Header of a .vectors file.
enum bsw_status bsw_vectors_file_seal(int fd, const char *path, const struct bsw_manifest *manifest,
                                      uint32_t shard, struct bsw_error *err);

// A shard file open for reading, header and footer checked against the manifest.
struct bsw_shard_file {
    int fd;
    char path[BSW_PATH_BYTES];
    struct bsw_shard_shape shape;
    uint64_t *block_digests; // owned
    uint32_t *deleted;       // [bundles]: rows that were deleted; NULL: none; owned
};

// A missing file or one of another build or with a wrong size or checksum is BSW_ERROR_BAD_DATA
// naming what differs.
enum bsw_status bsw_shard_file_open(const struct bsw_manifest *manifest, const char *folder,
                                    uint32_t shard, struct bsw_shard_file *out,
                                    struct bsw_error *err);
// Reads block `block` into memory of at least bsw_shard_block_bytes, aligned to 8 bytes, and checks
// its digest, and that no mask has rows behind the last; then takes deleted rows from the masks.
// Thread-safe.
enum bsw_status bsw_shard_file_read_block(const struct bsw_shard_file *file, uint32_t block,
                                          void *out, struct bsw_error *err);
void bsw_shard_file_close(struct bsw_shard_file *file);

// Checks size and header of a .vectors file; *fd is open for reading on success.
enum bsw_status bsw_vectors_file_open(const struct bsw_manifest *manifest, const char *folder,
                                      uint32_t shard, int *fd, char path[BSW_PATH_BYTES],
                                      struct bsw_error *err);

BSW_C_END
#endif
