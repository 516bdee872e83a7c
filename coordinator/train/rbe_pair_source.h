// SPDX-License-Identifier: Apache-2.0
// Where the pairs of a training come from, and how rows become inputs.
//
//   two files                row i of the queries with row i of the documents
//   base and ground truth    each query with one of its first neighbours
//   base alone               each row of a sample with one of its exact neighbours in the sample
//
// Input of the model: (row * factor - mean) * scale, factor 1/norm under cosine, else 1; mean 0, or
// that of a sample of the pairs; scale such that the root mean square of all components is
// input_rms. Where both sides are rows of one file they share mean and scale.
#ifndef BITSWEEP_COORDINATOR_RBE_PAIR_SOURCE_H
#define BITSWEEP_COORDINATOR_RBE_PAIR_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"
#include "coordinator/train/rbe_training.h"
#include "kernels/encode/encode.h"

// A reconstruction is a tanh, which must be nearly the identity there. Measured with the
// quantizer's first weights, before training, 2 bits: 10-recall@50 on tests/data (128-d SIFT) is
// 0.894 at 0.8, 0.936 at 0.4, 0.960 at 0.2, 0.965 at 0.1; on 200-d word vectors 0.971 at 0.15,
// 0.977 at 0.1, 0.05 and 0.02.
#define BSW_RBE_INPUT_RMS 0.1
// For a random start, whose reconstructions span tanh's range, as the paper's inputs do: beside
// them the difference from a small input says nothing new, and residual planes learn nothing. ROC
// AUC of rbe* on tests/data after 15 epochs at a rate of 0.003, 32 code dims: 0.959 at 0.1, 0.965
// at 0.3, 0.974 at 1, 0.968 at 3; 16, centred: 0.964 at 0.4, 0.966 at 0.6, 0.965 at 1.
#define BSW_RBE_RANDOM_INPUT_RMS 0.6
#define BSW_RBE_INPUT_SAMPLE     16384

struct bsw_rbe_pair_options {
    const char *queries, *documents, *base, *groundtruth; // NULL: not given
    uint64_t neighbours; // a pair's document is one of so many, another each epoch
    uint64_t sample;     // rows, for base alone
    uint64_t seed;
    enum bsw_metric metric;
    enum bsw_cpu_level level;
    double input_rms;
    int is_centered;  // else the mean is 0
    int is_one_space; // both sides have the documents' mean and scale
    int is_shown;
};

struct bsw_rbe_pair_source {
    struct bsw_rbe_pair_options options;
    const struct bsw_encode_table *table;
    bsw_vectors *files[2];                       // files[1] NULL: both sides are files[0]
    const bsw_vectors *sides[BSW_RBE_NUM_SIDES]; // one of files
    size_t dims, num_choices;
    uint64_t num_pairs;
    uint64_t *rows;             // NULL: place p is row p; else [num_pairs]: of both sides
    uint64_t *choices;          // NULL: pair i has place i; else [num_pairs][num_choices] places
    unsigned char *is_held_out; // [num_pairs]; rows that must not be drawn as documents
    float *means[BSW_RBE_NUM_SIDES]; // [dims]
    float scales[BSW_RBE_NUM_SIDES];
    uint64_t digest; // of files and pairs
};

// Called by all ranks; ends with an agreement. Rows that do not pair, dims that differ, a ground
// truth with too few neighbours or ids beyond the base are BSW_ERROR_BAD_DATA; a combination of
// options that is none of the three above BSW_ERROR_USAGE. bsw_rbe_pair_source_close frees, also
// after a failure.
enum bsw_status bsw_rbe_pair_source_open(const struct bsw_rbe_pair_options *options,
                                         struct bsw_transport *transport,
                                         struct bsw_rbe_pair_source *out, struct bsw_error *err);
void bsw_rbe_pair_source_close(struct bsw_rbe_pair_source *source);

// For bsw_rbe_train; borrows the source.
struct bsw_rbe_pairs bsw_rbe_pair_source_pairs(struct bsw_rbe_pair_source *source);

// Fills choices (rbe_neighbours.c) where there is a base alone: for each of source->rows the others
// nearest to it by exact value (shard/exact/neighbour_scan.h), best first, ties by the smaller
// place. Ranks share the work and all get the whole. A bad row (NaN, Inf, zero under cosine) is
// BSW_ERROR_BAD_DATA. Called by all ranks; ends with an agreement. Cost: that of a ground truth of
// num_pairs queries in as many rows.
enum bsw_status bsw_rbe_find_neighbours(const struct bsw_rbe_pair_source *source,
                                        struct bsw_transport *transport, struct bsw_error *err);

// Which pairs of a training of rbe are trained on, which are held out, and the order in which an
// epoch takes them.

struct bsw_rbe_split {
    uint64_t *ids;      // owned: of both
    uint64_t *held_out; // [num_held_out]
    uint64_t *trained;  // [num_trained], ascending; none shares a row with those held out
    uint64_t num_held_out, num_trained, num_batches;
    size_t batch_pairs; // no more than are trained
};

// Groups are of group_pairs, as those of held-out pairs are ordered. BSW_ERROR_USAGE: too few pairs
// for the negatives on each of so many ranks. bsw_rbe_split_deinit frees, also after an error.
enum bsw_status bsw_rbe_split_init(const struct bsw_rbe_training_options *options,
                                   const struct bsw_rbe_pairs *pairs, uint64_t ranks,
                                   size_t group_pairs, struct bsw_rbe_split *out,
                                   struct bsw_error *err);
void bsw_rbe_split_deinit(struct bsw_rbe_split *split);

// Fisher and Yates.
void bsw_rbe_shuffle(uint64_t seed, uint64_t *values, uint64_t count);

// Rearranges a shuffled order so that every cell_pairs pairs on end have queries near each other:
// halves of halves along random directions, the cells shuffled. Cross-sampled negatives of a group
// are then hard ones. Reads all queries of the epoch `draw`; the same bits for any number of
// threads.
enum bsw_status bsw_rbe_order_cells(const struct bsw_rbe_pairs *pairs, size_t dims, uint64_t draw,
                                    uint64_t seed, size_t cell_pairs, uint64_t *order,
                                    uint64_t count, struct bsw_error *err);

#endif
