// SPDX-License-Identifier: Apache-2.0
// Queries and blocks of rows in the form in which they are compared, and the comparison of a tile
// of queries with a few bundles of rows: rows with exact scores, to running lists.
//
// Integers of one type, ip and l2: codes of kernels/encode/raw_codes.h on int8 units, whose keys
// are exact. All else is screened, and each row that cannot be ruled out gets an exact value
// (kernels/refine): by 8-bit codes on int8 units where these are fast, a step in which they let too
// much through by float32 products (kernels/screen). All ways give the same bytes as an exact value
// for every pair.
#ifndef BITSWEEP_SHARD_NEIGHBOUR_TILES_H
#define BITSWEEP_SHARD_NEIGHBOUR_TILES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/refine/refine.h"
#include "kernels/screen/screen.h"
#include "kernels/select/select.h"
#include "shard/exact/exact_best.h"

// A tile: queries that one thread takes at once, and bundles between which limits rise.
#define BSW_NEIGHBOUR_TILE_QUERIES (10 * BSW_SCREEN_QUERIES)
#define BSW_NEIGHBOUR_STEP_BUNDLES 32
#define BSW_NEIGHBOUR_STEP_ROWS    (BSW_NEIGHBOUR_STEP_BUNDLES * BSW_BUNDLE_ROWS)

// Something to be allocated: *(void **)out = [count] of so many bytes.
struct bsw_neighbour_piece {
    void *out;
    size_t count, size;
    const char *what;
};

// Whether codes are worth while, of a thread.
struct bsw_neighbour_pause {
    unsigned left, last; // steps that go without them: still to come, after the last failure
};

struct bsw_neighbour_tiles {
    enum bsw_metric metric;
    enum bsw_vector_type type, query_type;
    int is_whole; // integers on int8 units
    int is_coded; // screened by codes first
    size_t dims, padded_dims, num_queries, num_threads;
    size_t block_rows, block_bundles; // most of a block
    const struct bsw_refine_table *refine;
    const struct bsw_encode_table *encode;
    const struct bsw_screen_table *screen;
    const struct bsw_matrix_scan_table *matrix_scan;
    const struct bsw_select_table *select;

    // Queries. Screened: numbers [num_queries][dims] and squared norms in float64, and what screen
    // takes. On int8 units: components [num_queries][padded_dims], constants; of codes their steps
    // and the largest error of any (r of screen_margin.h).
    double *numbers, *norms;
    float *screened;
    int8_t *components;
    int32_t *constants;
    double *steps;
    double query_error;

    // The block. masks [block_bundles]; rows as screen takes them, or bytes as matrix_scan does,
    // with offsets or, of codes, scales in units of `unit`.
    uint32_t *masks;
    float *rows, *biases;
    uint8_t *bytes;
    int32_t *offsets;
    uint16_t *scales;
    double *row_norms; // squared; of codes
    double unit;

    // Each thread's own: what a step lets through, a bundle of rows that are no float32, and, for
    // codes, a step's rows as screen takes them.
    uint32_t *places; // screened: [tile queries][step rows]
    uint64_t *items;  // on int8 units: [tile queries][step rows]
    float *floats;    // [32][dims]
    float *step_rows, *step_biases;
    struct bsw_neighbour_pause *pauses;
};

// The pieces that `tiles` (sizes and types set) consists of, to pieces; returns how many.
#define BSW_NEIGHBOUR_MAX_PIECES 20
size_t bsw_neighbour_tiles_pieces(struct bsw_neighbour_tiles *tiles,
                                  struct bsw_neighbour_piece pieces[BSW_NEIGHBOUR_MAX_PIECES]);
// Sets tables, is_whole, is_coded, padded_dims and block_bundles from metric, types, dims and
// block_rows.
void bsw_neighbour_tiles_init(struct bsw_neighbour_tiles *tiles, enum bsw_cpu_level level);
void bsw_neighbour_tiles_deinit(struct bsw_neighbour_tiles *tiles);

// Once the pieces are allocated.
void bsw_neighbour_tiles_reset(struct bsw_neighbour_tiles *tiles);

// Puts query q, dense numbers of its own type, into its place; its fault, if it has one. All of
// them, then blocks.
enum bsw_row_fault bsw_neighbour_tiles_put_query(struct bsw_neighbour_tiles *tiles, size_t q,
                                                 const void *numbers);

// Before rows of a block are packed: raw as below. Looks at some of them.
void bsw_neighbour_tiles_begin(struct bsw_neighbour_tiles *tiles, const unsigned char *raw,
                               size_t num_rows);

// Packs rows [32 * bundle, + num_rows) of a block, num_rows 1 .. 32, dense at raw; faults
// [num_rows]. A row with a fault is never found.
void bsw_neighbour_tiles_pack(struct bsw_neighbour_tiles *tiles, size_t thread, size_t bundle,
                              const unsigned char *raw, size_t num_rows,
                              enum bsw_row_fault faults[BSW_BUNDLE_ROWS]);

// Rows of a block against queries [first_query, + num_queries), at most a tile of them.
struct bsw_neighbour_step {
    size_t first_query, num_queries;
    size_t bundle, num_bundles; // at most BSW_NEIGHBOUR_STEP_BUNDLES
    const unsigned char *raw;   // the block's rows
    size_t num_rows;            // of the block
    uint32_t local_row;         // of its first row
    const uint32_t *masks;      // of the block's bundles: rows that these queries may find
};

// Adds what may be among the best to lists[query]; scratch: of a list.
void bsw_neighbour_tiles_scan(const struct bsw_neighbour_tiles *tiles, size_t thread,
                              const struct bsw_neighbour_step *step, struct bsw_exact_best *lists,
                              void *scratch);

#endif
