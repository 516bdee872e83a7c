// SPDX-License-Identifier: Apache-2.0
// Codes and queries that scans go over: what kernelcheck compares kernels on, and what bench
// kernels and the tuner time them on. They differ in how many there are and in what is filled in.
#ifndef BITSWEEP_BENCH_SCAN_CASE_H
#define BITSWEEP_BENCH_SCAN_CASE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/codes/code_layout.h"
#include "kernels/matrix_scan/matrix_scan.h"

#define BSW_HALF_ROWS 16 // of a bundle

struct bsw_scan_case {
    // Set by the caller, before anything is allocated.
    struct bsw_code_layout layout;
    uint32_t query_bits; // here: bench_kernel.h says why there may be no padding behind a layout
    size_t num_bundles, num_queries;
    size_t tile_bundles;        // of bytes and dots
    int has_tails, has_offsets; // of their own; without tails the scales serve as such
    uint32_t first_row;

    uint32_t *planes[BSW_MAX_SEGMENTS], *masks;
    uint16_t *scales, *tails; // IEEE half
    float *biases;
    int32_t *offsets;
    // [num_queries]
    uint32_t *query_planes; // [num_queries][bsw_layout_query_words]
    int8_t *components;     // [num_queries][padded_dims]
    int32_t *constants;
    float *query_scales;
    uint32_t *limits;
    // of a first stage
    int32_t *stage_constants;
    float *reaches, *slacks;
    // of a tile
    uint8_t *bytes;
    int32_t *dots;
};

// Arrays from `allocate`, which stores an address in *out; contents undefined. planes[0] is the
// first. On failure the caller frees what there is.
typedef enum bsw_status (*bsw_scan_case_allocate_fn)(void *context, void *out, size_t count,
                                                     size_t size, struct bsw_error *err);
enum bsw_status bsw_scan_case_allocate(struct bsw_scan_case *c, bsw_scan_case_allocate_fn allocate,
                                       void *context, struct bsw_error *err);
// Frees what bsw_allocate gave.
void bsw_scan_case_free(struct bsw_scan_case *c);

// ---- filling ----

enum bsw_plane_fill {
    BSW_PLANES_RANDOM,
    BSW_PLANES_ZEROS,
    BSW_PLANES_ONES,
    BSW_PLANES_ALTERNATING,
    BSW_PLANES_DENSE_PADDING, // random; the other fills have zeros in the padding
    BSW_PLANES_ENDS,          // zeros or ones, by lane
    BSW_NUM_PLANE_FILLS
};
// planes [num_planes][words][lanes] of `dims` dimensions.
void bsw_planes_fill(enum bsw_plane_fill fill, uint64_t seed, uint32_t dims, size_t num_planes,
                     size_t lanes, uint32_t *planes);
// All planes.
void bsw_scan_case_fill_codes(struct bsw_scan_case *c, enum bsw_plane_fill fill, uint64_t seed);
// A query's planes, and its components and constant by the reference.
void bsw_scan_case_fill_query(struct bsw_scan_case *c, size_t query, enum bsw_plane_fill fill,
                              uint64_t seed);
// stage_constants[query] of a first stage of so many dimensions.
void bsw_scan_case_set_stage(struct bsw_scan_case *c, size_t query, uint32_t stage_dims);

// ---- what kernels are given ----

// The integers of a query with bundles [bundle, bundle + num_bundles).
void bsw_scan_case_dots(const struct bsw_scan_case *c, enum bsw_cpu_level level, size_t query,
                        size_t bundle, size_t num_bundles, int32_t *dots);
void bsw_scan_case_unpack(const struct bsw_scan_case *c, enum bsw_cpu_level level, size_t bundle,
                          size_t num_bundles, uint8_t *bytes);
// Their rows, with the codes that are in `bytes`; float keys.
struct bsw_matrix_tile bsw_scan_case_tile(const struct bsw_scan_case *c, size_t bundle,
                                          size_t num_bundles);
// The first of them; float keys.
struct bsw_matrix_queries bsw_scan_case_queries(const struct bsw_scan_case *c, size_t num_queries);
struct bsw_matrix_stage bsw_scan_case_stage(const struct bsw_scan_case *c, uint32_t stage_dims);

#endif
