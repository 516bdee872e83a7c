// SPDX-License-Identifier: Apache-2.0
// device_exact: exact values on a GPU, from raw rows in device memory: of chosen pairs (refine) and
// of all rows against all queries (exact), the latter selected at once as device_scan does it.
//
// The numbers of kernels/refine, bit for bit: lane i mod 32 of its sums is lane i mod 32 of a warp.
// Integer rows and queries of one type, at most BSW_DEVICE_INTEGER_MAX_DIMS wide, are multiplied by
// the matrix units in int32, which gives the same exact numbers.
//
// Launchers as in device_scan.h: they check, queue and return; all pointers are device pointers.
// Rows and queries whose squared norm bsw_row_fault_of refuses must be kept out; what such rows
// give is undefined, and harmless behind a mask.
#ifndef BITSWEEP_KERNELS_DEVICE_EXACT_H
#define BITSWEEP_KERNELS_DEVICE_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"
#include "kernels/device_scan/device_scan.h"

BSW_C_BEGIN

// Rows as their source has them: numbers [num_rows][dims], dense, of any type but INT32; the first
// is aligned to its own size.
struct bsw_device_raw_rows {
    enum bsw_vector_type type;
    uint32_t dims;
    uint32_t num_rows;
    const void *numbers;
};

// Queries as refine's to_double and squared_norm give them.
struct bsw_device_vectors {
    uint32_t num_queries;
    const double *numbers; // [num_queries][dims]
    const double *norms;   // [num_queries]; used by cosine alone
};

// norms[r]: the squared norm of row r, in lanes and tree.
BSW_DEVICE_CALL int bsw_device_row_norms(const struct bsw_device_raw_rows *rows, double *norms,
                                         bsw_stream stream);

// numbers [num_rows][dims]: rows as queries, of which they are to be.
BSW_DEVICE_CALL int bsw_device_widen(const struct bsw_device_raw_rows *rows, double *numbers,
                                     bsw_stream stream);

struct bsw_device_pair {
    uint32_t query, row; // row: its place in the raw rows
};

// values[i] = value of refine's table for pair i; a warp a pair. Bound by the fetch of the rows.
BSW_DEVICE_CALL int bsw_device_refine(enum bsw_metric metric,
                                      const struct bsw_device_raw_rows *rows,
                                      const struct bsw_device_vectors *queries,
                                      const struct bsw_device_pair *pairs, size_t num_pairs,
                                      double *values, bsw_stream stream);

// ---- all rows against all queries ----

// Lists of a group of queries, by exact score (common/codes/metric.h), with the contract of
// struct bsw_device_lists for counts and capacity.
struct bsw_device_exact_lists {
    uint32_t num_queries;
    uint32_t capacity;
    uint64_t *scores; // [num_queries][capacity]
    uint32_t *rows;   // [num_queries][capacity]
    uint32_t *counts; // [num_queries]
    uint64_t *limits; // [num_queries], inclusive scores
};

// bsw_device_cut and bsw_device_limit for them: of equal scores smaller rows are better.
BSW_DEVICE_CALL int bsw_device_exact_cut(const struct bsw_device_exact_lists *lists, uint32_t keep,
                                         bsw_stream stream);
BSW_DEVICE_CALL int bsw_device_exact_limit(const struct bsw_device_exact_lists *lists,
                                           uint32_t keep, bsw_stream stream);

// A tile of rows in bundles of 32; memory of every array reaches to the end of the last bundle,
// where its contents do not matter.
struct bsw_device_exact_rows {
    uint32_t num_bundles;
    uint32_t first_row;    // of bundle 0, lane 0: candidates' rows count from there
    const double *norms;   // [num_bundles * 32], from bsw_device_row_norms
    const uint32_t *masks; // [num_bundles]: rows that exist and have no fault
};

// Appends every row of the part whose mask bit is 1 and whose key (bsw_metric_key of the value)
// reaches its query's limit, with the contract of bsw_device_plane_scan for parts, counts and
// capacity. raw: of the same rows; its num_rows is not used.
BSW_DEVICE_CALL int
bsw_device_exact_scan(enum bsw_metric metric, const struct bsw_device_exact_rows *rows,
                      const struct bsw_device_raw_rows *raw, const struct bsw_device_part *part,
                      const struct bsw_device_vectors *queries,
                      const struct bsw_device_exact_lists *lists, bsw_stream stream);

// The same, or nothing unless *num, in device memory, is above `most` when it begins.
struct bsw_device_exact_gate {
    const uint64_t *num; // NULL: it is
    uint64_t most;
};
BSW_DEVICE_CALL int
bsw_device_exact_scan_if(enum bsw_metric metric, const struct bsw_device_exact_rows *rows,
                         const struct bsw_device_raw_rows *raw, const struct bsw_device_part *part,
                         const struct bsw_device_vectors *queries,
                         const struct bsw_device_exact_lists *lists,
                         const struct bsw_device_exact_gate *gate, bsw_stream stream);

// What the sum of a pair (x*q, or for l2 (x - q)^2) needs besides the product of its bytes: product
// (l2: -2 * product) plus both terms, as integers of 32 bits that may wrap on the way.
struct bsw_device_packed_term {
    uint32_t term;
    float inverse; // cosine: about 1 / norm
};

// What the matrix units take: rows as unsigned bytes, queries as signed ones, dims padded to
// BSW_DEVICE_PACKED_DIMS. Rows of int8 lie 128 higher, queries of uint8 128 lower.
struct bsw_device_packed {
    uint32_t padded_dims;
    const uint8_t *bytes;                       // [vectors][padded_dims], 8-byte aligned
    const struct bsw_device_packed_term *terms; // [vectors]
};

#define BSW_DEVICE_PACKED_DIMS 32u
// 255^2 * 32768 < 2^31: int32 sums of uint8 products hold up to here.
#define BSW_DEVICE_INTEGER_MAX_DIMS 32768u
static inline uint32_t bsw_device_packed_dims(uint32_t dims)
{
    return (dims + BSW_DEVICE_PACKED_DIMS - 1) / BSW_DEVICE_PACKED_DIMS * BSW_DEVICE_PACKED_DIMS;
}

// rows (uint8 or int8, dims <= BSW_DEVICE_INTEGER_MAX_DIMS) to bytes and terms, as rows or, with
// as_queries, as queries.
BSW_DEVICE_CALL int bsw_device_pack(enum bsw_metric metric, const struct bsw_device_raw_rows *rows,
                                    int as_queries, uint8_t *bytes,
                                    struct bsw_device_packed_term *terms, bsw_stream stream);

// As bsw_device_exact_scan; query_norms: [lists->num_queries], squared.
BSW_DEVICE_CALL int bsw_device_exact_integer_scan(
    enum bsw_metric metric, const struct bsw_device_exact_rows *rows,
    const struct bsw_device_packed *packed_rows, const struct bsw_device_part *part,
    const struct bsw_device_packed *packed_queries, const double *query_norms,
    const struct bsw_device_exact_lists *lists, bsw_stream stream);

BSW_C_END
#endif
