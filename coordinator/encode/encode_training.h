// SPDX-License-Identifier: Apache-2.0
// Trains codes on rank 0: everything the manifest says of them, from a sample of the rows or the
// model. Where that is left to the data, codes are trained twice, as residuals and not, and the
// better ones stay; so are codes that a check finds poor, where the codec has another way.
#ifndef BITSWEEP_COORDINATOR_ENCODE_TRAINING_H
#define BITSWEEP_COORDINATOR_ENCODE_TRAINING_H

#include "common/base/cpu_level.h"
#include "common/files/index_manifest.h"
#include "common/job/progress.h"
#include "common/rows/vectors.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/sample.h"

// Residuals are another kind of code, with no first stage and something to add for every list: they
// have to find so much more.
#define BSW_RESIDUAL_MARGIN 0.01

// Another way to train has to find so much more of the sample than the usual one.
#define BSW_VARIANT_MARGIN 0.01

struct bsw_encode_training {
    const bsw_vectors *vectors;
    const struct bsw_codec_settings *code;
    const struct bsw_codec_model *model;
    enum bsw_cpu_level level;
    struct bsw_progress *progress;
    int checks_codes;      // sets manifest->check: bsw_code_check_set
    int chooses_residuals; // else as the manifest says
};

// manifest: metric, codec, lists with their centroids.
enum bsw_status bsw_encode_train(const struct bsw_encode_training *training,
                                 struct bsw_manifest *manifest, struct bsw_error *err);

// Not trained: frame, metric and lists of an index, for other rows. *manifest has its codec alone
// before. BSW_ERROR_USAGE where rows are of another type or of other dims.
enum bsw_status bsw_encode_take_frame(const struct bsw_manifest *frame, const bsw_vectors *vectors,
                                      struct bsw_manifest *manifest, struct bsw_error *err);

// How many neighbours codes find: measured on rows of the sample with others of them as queries,
// before anything is encoded. It decides between codes of rows and of residuals (docs/lists.md),
// and is what people are told of the codes (code_check.h).

#define BSW_CODE_RECALL_K            10
#define BSW_CODE_RECALL_MOST_QUERIES 200

// Rows of the sample that all differ. num_queries 0: they are too few.
struct bsw_code_recall {
    enum bsw_metric metric;
    enum bsw_cpu_level level;
    uint32_t dims;
    size_t num_rows, num_copies, num_queries; // copies of rows that were left out; queries are rows
    float *rows;                              // [num_rows][dims], with their factors
    float *queries;                           // [num_queries][dims]
    uint32_t *lists;                          // [num_rows], with has_lists
    // [num_queries]: exact, of the last true neighbour. The product, or under l2 the squared
    // distance, negative.
    double limits[BSW_CODE_RECALL_MOST_QUERIES];
};

// vectors: the rows to be coded. manifest: metric, and with has_lists lists with centroids: codes
// of residuals will be measured, too. Up to BSW_SAMPLE_ROWS rows are read, some 8,192 stay. Rank 0
// alone, with all OpenMP threads. deinit also after an error; it accepts {0}.
enum bsw_status bsw_code_recall_init(struct bsw_code_recall *measure, const bsw_vectors *vectors,
                                     const struct bsw_manifest *manifest, int has_lists,
                                     enum bsw_cpu_level level, struct bsw_progress *progress,
                                     struct bsw_error *err);
void bsw_code_recall_deinit(struct bsw_code_recall *measure);

// The share of the queries' true neighbours that is among their first candidates by code; of rows
// that are equally near any will do. manifest: trained. The rows are coded and searched as in an
// index: the figure is the same for any number of threads and on every level.
enum bsw_status bsw_code_recall_of(const struct bsw_code_recall *measure,
                                   const struct bsw_manifest *manifest, uint32_t candidates,
                                   double *out, struct bsw_error *err);

// ---- whether codes are good enough --------------------------------------------------------------

// What codes are worth, found while they are made: rows of the sample as queries, searched by the
// codes of other rows of the sample, against their exact neighbours. No index is needed, only its
// manifest, so that a warning comes before a billion rows are coded.
//
// The sample has fewer rows than a corpus, so that neighbours lie further apart and are told apart
// more easily: a high figure promises less than a low one warns of.

// Sets manifest->check of codes whose training is done, also a cause where rows lie far out or the
// recall is below BSW_CODE_CHECK_LEAST. measure: with queries; far: of the sample that they were
// trained by.
enum bsw_status bsw_code_check_set(const struct bsw_code_recall *measure,
                                   const struct bsw_sample_far *far, struct bsw_manifest *manifest,
                                   struct bsw_error *err);

// The same for codes that were trained by other rows, without a cause; where there are too few
// rows, or the codec takes no sample, the manifest says nothing.
enum bsw_status bsw_code_check_frame(const struct bsw_encode_training *training,
                                     struct bsw_manifest *manifest, struct bsw_error *err);

#endif
