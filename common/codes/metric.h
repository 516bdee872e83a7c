// SPDX-License-Identifier: Apache-2.0
// The three metrics. A larger key or value is better for cosine and ip; l2 values are squared
// distances, smaller first.
#ifndef BITSWEEP_COMMON_METRIC_H
#define BITSWEEP_COMMON_METRIC_H

#include <stdint.h>
#include <string.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

enum bsw_metric { BSW_METRIC_COSINE, BSW_METRIC_IP, BSW_METRIC_L2, BSW_METRIC_NUM };

#define BSW_METRIC_NAMES "cosine|ip|l2" // for --metric

// What tells a metric from the others: its names here, what it computes below. Others ask for that,
// and name none but to choose a form of their own (refine_rows.h, list_assignment.c).
struct bsw_metric_facts {
    const char *name, *in_files; // "cosine"; "angular", as ann-benchmarks' HDF5 files have it
};
extern const struct bsw_metric_facts bsw_metrics[BSW_METRIC_NUM];

// Sets of metrics, a bit each.
enum bsw_metric_set {
    BSW_ALL_METRICS = (1u << BSW_METRIC_NUM) - 1,
    BSW_UNIT_METRICS = 1u << BSW_METRIC_COSINE,
    BSW_NORM_METRICS = 1u << BSW_METRIC_L2,
    BSW_DISTANCE_METRICS = 1u << BSW_METRIC_L2,
};

// Rows and queries count by their direction.
BSW_HOST_DEVICE int bsw_has_unit_rows(enum bsw_metric metric)
{
    return BSW_UNIT_METRICS >> metric & 1;
}

// A key has squared norms in it, 2 q.r - |r|^2 - |q|^2; else it is a dot product.
BSW_HOST_DEVICE int bsw_has_row_norms(enum bsw_metric metric)
{
    return BSW_NORM_METRICS >> metric & 1;
}

// The nearest to a row is that row, and multiples of a value tell how far.
BSW_HOST_DEVICE int bsw_has_distances(enum bsw_metric metric)
{
    return (BSW_UNIT_METRICS | BSW_NORM_METRICS) >> metric & 1;
}

// A smaller value is better, 0 the best; else a larger one.
BSW_HOST_DEVICE int bsw_is_distance(enum bsw_metric metric)
{
    return BSW_DISTANCE_METRICS >> metric & 1;
}

const char *bsw_metric_name(enum bsw_metric metric);
enum bsw_status bsw_metric_parse(const char *text, enum bsw_metric *out, struct bsw_error *err);

// An exact value as a key whose larger is better, never -0; and back.
static inline double bsw_metric_key(enum bsw_metric metric, double value)
{
    return bsw_is_distance(metric) ? 0.0 - value : value + 0.0;
}
static inline double bsw_metric_value(enum bsw_metric metric, double key)
{
    return bsw_metric_key(metric, key);
}

// An exact value as result files have it: rounded once, never -0.
static inline float bsw_metric_written(double value)
{
    return (float)value + 0.0f;
}

BSW_C_END

// The one total order of results: better score first, then smaller row.
//
// A score is 32 bits whose unsigned order, descending, is the order of the keys. A candidate of one
// shard is packed into 64 bits, score above and complemented local row below, so that plain
// unsigned comparison, descending, is the total order and all candidates of a shard differ.

// Keys are made with + 0.0f, so -0 does not occur; NaN neither.
static inline uint32_t bsw_score_from_float(float key)
{
    uint32_t bits;
    memcpy(&bits, &key, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// Inverse of bsw_score_from_float; any score is accepted (some give NaN, which compares false with
// every key).
static inline float bsw_score_to_float(uint32_t score)
{
    uint32_t bits = score >> 31 ? score & 0x7fffffffu : ~score;
    float key;
    memcpy(&key, &bits, sizeof key);
    return key;
}

static inline uint32_t bsw_score_from_integer(int32_t key)
{
    return (uint32_t)key ^ 0x80000000u;
}

static inline int32_t bsw_score_to_integer(uint32_t score)
{
    return (int32_t)(score ^ 0x80000000u);
}

// Exact values are ordered by 64 bits, of a float64 key that is neither -0 nor NaN. Integers up to
// 2^53, so all sums of uint8 and int8 rows, are such keys as they are. 0 is below every key.
BSW_HOST_DEVICE uint64_t bsw_exact_score(double key)
{
    uint64_t bits;
    memcpy(&bits, &key, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

BSW_HOST_DEVICE double bsw_exact_score_to_key(uint64_t score)
{
    uint64_t bits = score >> 63 ? score & ~(UINT64_C(1) << 63) : ~score;
    double key;
    memcpy(&key, &bits, sizeof key);
    return key;
}

BSW_HOST_DEVICE uint64_t bsw_candidate_pack(uint32_t score, uint32_t local_row)
{
    return (uint64_t)score << 32 | (uint32_t)~local_row;
}

BSW_HOST_DEVICE uint32_t bsw_candidate_score(uint64_t candidate)
{
    return (uint32_t)(candidate >> 32);
}

BSW_HOST_DEVICE uint32_t bsw_candidate_row(uint64_t candidate)
{
    return ~(uint32_t)candidate;
}

// The worst candidate that stays, in the total order.
struct bsw_cut {
    uint32_t score;
    uint32_t padding;
    uint64_t row; // id
};
// All stay.
BSW_HOST_DEVICE struct bsw_cut bsw_keep_all(void)
{
    const struct bsw_cut cut = {0, 0, UINT64_MAX};
    return cut;
}

// Whether a candidate stays, of a shard whose first row has the id first_row.
BSW_HOST_DEVICE int bsw_is_within_cut(uint64_t candidate, uint64_t first_row,
                                      const struct bsw_cut *cut)
{
    uint32_t score = bsw_candidate_score(candidate);
    if (score != cut->score) return score > cut->score;
    return first_row + bsw_candidate_row(candidate) <= cut->row;
}

#endif
