// SPDX-License-Identifier: Apache-2.0
// How well codes order rows: measured on rows of the sample with others of them as queries, before
// anything is encoded. Whether codes of residuals are the better ones depends on metric and data
// (docs/lists.md); so encode trains both and asks this.
#ifndef BITSWEEP_COORDINATOR_CODE_RECALL_H
#define BITSWEEP_COORDINATOR_CODE_RECALL_H

#include "common/files/index_manifest.h"
#include "shard/codecs/sample.h"

#define BSW_CODE_RECALL_K          10
#define BSW_CODE_RECALL_CANDIDATES 10

// Rows of the sample that all differ: all of some lists, or of few lists from everywhere. None
// where there are too few.
struct bsw_code_recall {
    enum bsw_metric metric;
    enum bsw_cpu_level level;
    const struct bsw_encode_table *kernels;
    uint32_t dims;
    size_t num_rows, num_queries; // queries are rows
    float *rows;                  // [num_rows][dims], with their factors
    uint32_t *lists;              // [num_rows]
    uint32_t *truth;              // [num_queries][BSW_CODE_RECALL_K]: rows, exact
};

// manifest: metric and lists with centroids. sample: a pass of it, of rows as they are. deinit also
// after an error; it accepts {0}.
enum bsw_status bsw_code_recall_init(struct bsw_code_recall *measure,
                                     const struct bsw_manifest *manifest, struct bsw_sample *sample,
                                     struct bsw_error *err);
void bsw_code_recall_deinit(struct bsw_code_recall *measure);

// The share of a query's true neighbours that is among its first candidates by key. manifest:
// trained, of a codec with planes and scales; its codes are residuals where it says so.
enum bsw_status bsw_code_recall_of(const struct bsw_code_recall *measure,
                                   const struct bsw_manifest *manifest, double *out,
                                   struct bsw_error *err);

#endif
