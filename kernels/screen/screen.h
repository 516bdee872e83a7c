// SPDX-License-Identifier: Apache-2.0
// screen: rows of a tile that may be among the nearest of a query, by float32 products.
//
// For ground truth on floats: an exact value is a float64 sum in a fixed order, which costs several
// times a float32 multiply-add. So a product is made here whose error has a proven bound
// (screen_margin.h), that bound is added to it, and only rows that then reach the query's limit are
// worth an exact value. What passes too much costs time, never a bit of the answer.
//
// A pair's number: one chain of fused multiply-adds over ascending dimensions from +0.0f, then the
// row's bias is added. 32 rows by 12 queries stay in registers, so a pair costs dims multiply-adds;
// comparing takes 2 more. Every level gives the same numbers, hence the same places.
//
// Where int8 units are several times faster than that, bytes that stand for rows and queries go
// over them first (kernels/matrix_scan), with a wider margin.
//
// Nothing here can fail or allocate. Thread-safe.
#ifndef BITSWEEP_KERNELS_SCREEN_H
#define BITSWEEP_KERNELS_SCREEN_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes/code_layout.h"
#include "kernels/kernel_table.h"

#define BSW_SCREEN_QUERIES       12
#define BSW_SCREEN_LEAST_MAXIMUM 1e-30f // of rows that have a code

// Rows: bundle after bundle, each [dims][32]. All 64-byte aligned.
struct bsw_screen_tile {
    const float *numbers;  // [num_bundles][dims][32], of pack
    const float *biases;   // [num_bundles * 32]
    const uint32_t *masks; // [num_bundles], bit lane: the row may pass
    size_t num_bundles, dims;
};

// Queries: [groups][dims][12], the last group filled up with zeros; 64-byte aligned.
struct bsw_screen_queries {
    const float *numbers;
    const float *limits; // [num_queries], no NaN; -INFINITY: all rows pass, INFINITY: none
    size_t num_queries;
};

struct bsw_screen_output {
    uint32_t *places; // room for 32 * num_bundles
    size_t count;     // written
};

struct bsw_screen_table {
    const char *level;

    // One bundle: rows [num_rows][dims] dense, num_rows 1 .. 32, times scales[row], each product
    // rounded to float32, to out [dims][32], 64-byte aligned; rows that are not there become 0.
    void (*pack)(const float *rows, const float *scales, size_t num_rows, size_t dims, float *out);

    // One bundle as bytes for int8 units, at the places of matrix_scan.h; NULL where those are not
    // much faster than float32. A row's step is fl(m / 255), m its largest |x|, and inv =
    // fl(1 / step); u = rint(fma(x, -0.5 * inv, 127.5) clipped to 0 .. 255) stands for
    // c = 255 - 2u times the step. squared_errors[r]: sum of d^2, d = fma(x, inv, -c), as chains
    // of fma of lanes i mod 16, then s[j] += s[j+h] for h = 8, 4, 2, 1. Rows with m < 1e-30 or a
    // number that is not finite have step and error 0 and any bytes. rows as above, dims up to a
    // multiple of 32 in bytes: padding 0, rows that are not there not written. steps,
    // squared_errors: [num_rows].
    void (*pack_codes)(const float *rows, size_t num_rows, size_t dims, uint8_t *bytes,
                       float *steps, float *squared_errors);

    // For each query the places (32 * bundle + lane) of rows whose mask bit is 1 and whose number
    // is >= the query's limit, ascending.
    void (*scan)(const struct bsw_screen_tile *tile, const struct bsw_screen_queries *queries,
                 struct bsw_screen_output *outputs);
};

// Numbers of packed queries.
static inline size_t bsw_screen_query_numbers(size_t num_queries, size_t dims)
{
    return (num_queries + BSW_SCREEN_QUERIES - 1) / BSW_SCREEN_QUERIES * BSW_SCREEN_QUERIES * dims;
}

BSW_KERNEL_LEVELS(screen);

#endif
