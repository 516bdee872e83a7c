// SPDX-License-Identifier: Apache-2.0
// gpu_screen: bsw_device_exact_scan for floats, where most pairs are ruled out by products of
// halves on matrix units (kernels/screen does the same on a CPU).
//
// An exact value is a float64 sum, of which an H200 makes 2 * 10^10 a second at 128 dims, where it
// makes fifty times as many products of halves. Their error has a proven bound
// (kernels/screen/screen_margin.h, "Halves"): pairs that cannot reach their query's limit with it
// are dropped, the others survive and get an exact value. Halves and not bf16: at the same rate
// their bound is eight times narrower, as powers of two bring every vector into their range.
//
// A scan is four launches: limits as products take them; survivors; their exact values; and the
// exact scan, which returns at once unless survivors had no room. So nothing has to travel to the
// host in between, and no data gives another answer.
//
// Launchers as in device_exact.h.
#ifndef BITSWEEP_KERNELS_GPU_SCREEN_H
#define BITSWEEP_KERNELS_GPU_SCREEN_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/device_exact/device_exact.h"

BSW_C_BEGIN

#define BSW_HALF_DIMS 32u // dims of halves are padded to a multiple of it
static inline uint32_t bsw_half_padded_dims(uint32_t dims)
{
    return (dims + BSW_HALF_DIMS - 1) / BSW_HALF_DIMS * BSW_HALF_DIMS;
}

// Rows as products take them.
struct bsw_half_row_term {
    float scale, bias; // m and b of screen_margin.h
};
struct bsw_half_rows {
    uint32_t padded_dims;
    uint16_t *numbers;               // [num_bundles * 32][padded_dims], 16-byte aligned
    struct bsw_half_row_term *terms; // [num_bundles * 32]
};

// Queries as products take them.
struct bsw_half_query_term {
    float weight, limit; // w and L, of the last scan
};
struct bsw_half_queries {
    uint32_t padded_dims;
    uint16_t *numbers;                 // [num_queries][padded_dims], 16-byte aligned
    float *units;                      // [num_queries], U; 0: of this query all rows survive
    struct bsw_half_query_term *terms; // [num_queries]
    uint32_t *worst_error;             // one float's bits: the largest r of those with a unit
};

struct bsw_screen_counts {
    uint64_t num; // survivors of the last scan; if there was no room for them, none got a value
    uint64_t valued, overflows; // of scans before: values, and scans that had no room
};
struct bsw_screen_survivors {
    uint64_t capacity;
    struct bsw_device_pair *pairs;    // [capacity]; rows by their places
    struct bsw_screen_counts *counts; // 0 before the first scan
};

// Packs queries of a group; before rows are packed for them. Sets *worst_error, too.
BSW_DEVICE_CALL int bsw_half_pack_queries(const struct bsw_device_vectors *queries, uint32_t dims,
                                          const struct bsw_half_queries *out, bsw_stream stream);

// Packs a tile of rows for these queries. raw: of the same rows, of which num_rows are there.
BSW_DEVICE_CALL int bsw_half_pack_rows(enum bsw_metric metric,
                                       const struct bsw_device_exact_rows *rows,
                                       const struct bsw_device_raw_rows *raw,
                                       const struct bsw_half_queries *queries,
                                       const struct bsw_half_rows *out, bsw_stream stream);

// As bsw_device_exact_scan. half_rows, half_queries: of the same rows and queries.
BSW_DEVICE_CALL int bsw_device_screened_scan(
    enum bsw_metric metric, const struct bsw_device_exact_rows *rows,
    const struct bsw_device_raw_rows *raw, const struct bsw_half_rows *half_rows,
    const struct bsw_device_part *part, const struct bsw_device_vectors *queries,
    const struct bsw_half_queries *half_queries, const struct bsw_screen_survivors *survivors,
    const struct bsw_device_exact_lists *lists, bsw_stream stream);

BSW_C_END
#endif
