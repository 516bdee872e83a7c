// SPDX-License-Identifier: Apache-2.0
// The three metrics. A larger key or value is better for cosine and ip; l2 values are squared
// distances, smaller first.
#ifndef BITSWEEP_COMMON_METRIC_H
#define BITSWEEP_COMMON_METRIC_H

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

enum bsw_metric { BSW_METRIC_COSINE, BSW_METRIC_IP, BSW_METRIC_L2, BSW_METRIC_NUM };

#define BSW_METRIC_NAMES "cosine|ip|l2" // for --metric

// What tells a metric from the others, for all who need not compute it.
struct bsw_metric_facts {
    const char *name, *in_files; // "cosine"; "angular", as ann-benchmarks' HDF5 files have it
    int is_distance;             // a smaller value is better, 0 the best; else a larger one
    int has_unit_rows;           // rows and queries count by their direction
    int has_distances;           // the nearest to a row is that row, and multiples tell how far
};
extern const struct bsw_metric_facts bsw_metrics[BSW_METRIC_NUM];

const char *bsw_metric_name(enum bsw_metric metric);
enum bsw_status bsw_metric_parse(const char *text, enum bsw_metric *out, struct bsw_error *err);

// An exact value as a key whose larger is better, never -0; and back.
static inline double bsw_metric_key(enum bsw_metric metric, double value)
{
    return metric == BSW_METRIC_L2 ? 0.0 - value : value + 0.0;
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
#endif
