// SPDX-License-Identifier: Apache-2.0
// What product codes are trained on: the sample's mean, a rotation, codebooks. On rank 0 alone,
// whose threads share parts and rows; the same bits for any number of them.
//
// Codebooks are k-means of Lloyd's rounds in every part, from rows of the sample chosen by a hash;
// a row's nearest entry as it is coded (kernels/table_scan), sums in float64 in the order of rows,
// an empty entry beside the one with most rows. --rotation opq is OPQ's non-parametric form (Ge,
// He, Ke, Sun: Optimized Product Quantization): rounds of k-means and the orthogonal matrix that
// brings rows closest to their decoded codes (Procrustes, by LAPACK's SVD in float64), from the
// natural order of dimensions or from principal axes, shared out so that parts have alike products
// of variances: whichever loses less after some rounds. That matrix is LAPACK's, so it may differ
// between machines, as principal axes do; the index keeps it. With 256 rows or fewer, and fewer
// than dims, dimensions stay in their order.
#ifndef BITSWEEP_SHARD_PRODUCT_TRAINING_H
#define BITSWEEP_SHARD_PRODUCT_TRAINING_H

#include "shard/codecs/product_codes.h"
#include "shard/codecs/sample.h"

#define BSW_OPQ_MAX_DIMS 1024 // an SVD of dims^2 a round

// Trains mean, matrix and entries of codes that were created, by their `rotation`. With residuals
// (sample->centroids) the sample gives rows less their centroids once the mean is known.
enum bsw_status bsw_product_train(struct bsw_sample *sample, uint64_t seed, int num_threads,
                                  struct bsw_product_codes *codes, struct bsw_error *err);

#endif
