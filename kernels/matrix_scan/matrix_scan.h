// SPDX-License-Identifier: Apache-2.0
// matrix_scan: a batch of queries against a tile of documents on int8 units, selection in the
// epilogue.
//
// The same integers as plane_scan: dot = sum over dimensions of (2^B - 1)*q - 2*u*q, u the
// document's code as a byte, q the query's odd integer as int8. A tile's planes are unpacked to
// bytes once and then serve every query of the batch; a document and query cost dims multiply-adds
// whatever the bits, so from a few queries on this beats XOR and popcount. Keys are computed block
// by block and compared with the query's limit at once, so integers never leave the first cache.
//
// Work at 128 dims: 32 dot-product instructions and 1 to 6 of epilogue for 16 documents and a
// query. Unpacking costs as much as 2 to 3 queries for each bit of the codes, least with tiles of
// 32 KiB of bytes, which stay in the first cache.
//
// Nothing here can fail or allocate. Thread-safe. Every level gives the bits of the reference.
#ifndef BITSWEEP_KERNELS_MATRIX_SCAN_H
#define BITSWEEP_KERNELS_MATRIX_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/codes/code_layout.h"
#include "kernels/kernel_table.h"

BSW_C_BEGIN

// Bytes of a tile of num_bundles bundles: 32 rows of padded_dims.
static inline size_t bsw_matrix_tile_bytes(uint32_t padded_dims, size_t num_bundles)
{
    return num_bundles * BSW_BUNDLE_ROWS * (size_t)padded_dims;
}

// A tile of documents as bytes: u of row 16*h + r (h: half bundle), padded dimension 4*g + i is at
// bytes[((h * padded_dims/4 + g) * 16 + r) * 4 + i]; what vpdpbusd takes. Padding dimensions are 0.
// Bytes, scales and biases are 64-byte aligned.
struct bsw_matrix_tile {
    const uint8_t *bytes;   // bsw_matrix_tile_bytes
    size_t num_bundles;     // >= 1
    uint32_t padded_dims;   // multiple of 32
    uint32_t first_row;     // row of bundle 0, lane 0
    const uint32_t *masks;  // [num_bundles], bit lane: the row may be selected
    const uint16_t *scales; // [num_bundles * 32] IEEE half, or NULL for integer keys
    const float *biases;    // [num_bundles * 32], or NULL for integer keys
    const uint16_t *tails;  // [num_bundles * 32] IEEE half, for scan_staged; else NULL
    const int32_t *offsets; // [num_bundles * 32] for whole keys (scales NULL); else NULL
};

// Queries as the kernel wants them.
struct bsw_matrix_queries {
    size_t num_queries;
    const int8_t *components; // [num_queries][padded_dims], 64-byte aligned, padding 0
    const int32_t *constants; // [num_queries]: sum over dimensions of (2^B - 1) * q
    const float *scales;      // [num_queries]: as in kernels/select/select.h; float keys alone
    int factor;               // whole keys alone: 1 or 2
};

// The first dimensions of a progressive scan, and what they say of a row at most. Arrays
// [num_queries].
struct bsw_matrix_stage {
    uint32_t dims;            // padded dimensions: a multiple of 32, 32 .. tile's - 32
    const int32_t *constants; // sum over the stage's dimensions of (2^B - 1) * q
    const float *reaches;     // what multiplies a tail, >= 0
    const float *slacks;      // what roundings may take from the bound, >= 0
};

// What a staged scan went on with: rows, and halves of bundles in which there was such a row, each
// counted for every query.
struct bsw_stage_counts {
    uint64_t rows, halves;
};

// Where one query's candidates go.
struct bsw_matrix_output {
    uint64_t *items; // room for 32 * num_bundles more behind count
    size_t count;    // advanced
    uint32_t limit;  // inclusive score (common/codes/metric.h)
};

struct bsw_matrix_scan_table {
    const char *level;

    // Planes of a tile to bytes. planes[s] points to bundle 0 of the tile in segment s:
    // [num_bundles][bits][words][32], 64-byte aligned. bytes: bsw_matrix_tile_bytes, 64-byte
    // aligned, wholly written.
    void (*unpack)(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                   size_t num_bundles, uint8_t *bytes);

    // Query planes (plane_scan's form: segment after segment [query_bits][words]) to components and
    // constant: q = (2^Bq - 1) - 2u, padding 0.
    void (*unpack_query)(const struct bsw_code_layout *layout, const uint32_t *words,
                         unsigned query_bits, int8_t *components, int32_t *constant);

    // For every query and row whose mask bit is 1 and whose score >= the query's limit: appends
    // bsw_candidate_pack(score, row), rows ascending, to outputs[query]. Integer keys (tile->scales
    // NULL): score = bsw_score_from_integer(dot). Float keys: key = fmaf(scale_q,
    // half_to_float(scale_d) * (float)dot, bias) + 0.0f, each operation rounded to float32, exactly
    // as filter_affine of kernels/select.
    // Whole keys (tile->offsets): key = factor * sum + offsets[row] + constants[query], sum over
    // dimensions of u * q, added in int32 (callers see to it that nothing overflows on the way,
    // from left to right), score = bsw_score_from_integer(key). u is any byte and q any int8 then.
    void (*scan)(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                 struct bsw_matrix_output *outputs);

    // The same candidates as scan, for float keys: rows whose bound after the stage falls short of
    // the query's limit are not looked at further. dot1 = constants[q] - 2 * sum over the stage;
    // bound = fmaf(scale_q, half_to_float(scale_d) * (float)dot1, fmaf(reach, tail, bias)), each
    // operation rounded; a row goes on if bound >= bsw_float_limit(limit) - slack (rounded). The
    // caller's reaches and slacks make that safe. Adds to counts what went on: of rows whose mask
    // bit is 1.
    void (*scan_staged)(const struct bsw_matrix_tile *tile, const struct bsw_matrix_stage *stage,
                        const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs,
                        struct bsw_stage_counts *counts);
};

BSW_KERNEL_LEVELS(matrix_scan);

BSW_C_END
#endif
