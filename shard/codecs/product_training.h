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

#include "bitsweep.pb-c.h"
#include "shard/codecs/product_codes.h"
#include "shard/codecs/product_radii.h"
#include "shard/codecs/sample.h"

#define BSW_OPQ_MAX_DIMS 1024 // an SVD of dims^2 a round

// Trains mean, matrix and entries of codes that were created, by their `rotation`. With residuals
// (sample->centroids) the sample gives rows less their centroids once the mean is known.
enum bsw_status bsw_product_train(struct bsw_sample *sample, uint64_t seed, int num_threads,
                                  struct bsw_product_codes *codes, struct bsw_error *err);

// ---- codebooks (product_books.c) ----------------------------------------------------------------

// Rows that training holds, centred and without residuals' centroids.
struct bsw_training_rows {
    size_t num;
    float *rows;      // [num][dims]
    float *projected; // [num][projected_dims]
    uint8_t *codes;   // [parts][num]: the entries that rows were last added to
};

struct bsw_book_training {
    uint64_t seed;
    uint32_t rounds; // at most
    int num_threads;
    int goes_on;                   // from the entries that there are; else from rows
    struct bsw_progress *progress; // or NULL
};

// rows->projected to entries and norms of codes, and rows->codes. Threads take parts. sample: whose
// name and level it is.
enum bsw_status bsw_product_books_train(const struct bsw_book_training *training,
                                        const struct bsw_training_rows *rows,
                                        const struct bsw_sample *sample,
                                        struct bsw_product_codes *codes, struct bsw_error *err);

// ---- rotations (opq_rotation.c) -----------------------------------------------------------------

// Each sets codes->matrix, [dims][projected_dims] of rows that are orthonormal.
enum bsw_status bsw_opq_begin_random(uint64_t seed, struct bsw_product_codes *codes,
                                     struct bsw_error *err);
// The identity.
void bsw_opq_begin_natural(struct bsw_product_codes *codes);
// Principal axes of rows->rows, the next of most variance to the part whose variances have the
// smallest product so far and that has room.
enum bsw_status bsw_opq_begin_principal(const struct bsw_training_rows *rows,
                                        struct bsw_product_codes *codes, struct bsw_error *err);
// The matrix that brings rows->rows closest to what rows->codes stand for. *error: the sum of
// squared distances of rows->projected, by the matrix before, to that.
enum bsw_status bsw_opq_turn(const struct bsw_training_rows *rows, struct bsw_product_codes *codes,
                             double *error, struct bsw_error *err);

// Radii of product codes from a sample and its true neighbours (product_radii.h).
//
// Rows of the sample, one of each equal part of them, are the queries; their neighbours are the
// best of the sample but for themselves, by float32 chains of fma, so that every level and number
// of threads gives the same radii.

#define BSW_RADII_QUERIES 1024 // at most

// Sets codes->radii of codes that were trained, with parts of 2 dimensions. With lists of residuals
// sample->centroids and its assigner are set. Holds the sample's rows, of 512 MB at most each time.
enum bsw_status bsw_radii_train(struct bsw_sample *sample, int num_threads,
                                struct bsw_product_codes *codes, struct bsw_error *err);

// ---- in a manifest ------------------------------------------------------------------------------

// Radii of product codes in a manifest.

// The message of radii, which it borrows from. numbers: room, [8 * parts].
#define BSW_RADII_FIT_NUMBERS 8
void bsw_radii_pack(const struct bsw_product_radii *radii, double *numbers, Bsw__Radii *out);

// BSW_ERROR_BAD_DATA for sizes that do not fit and for numbers that are none. name: for messages.
enum bsw_status bsw_radii_parse(const char *name, const Bsw__Radii *message, uint32_t parts,
                                struct bsw_product_radii **out, struct bsw_error *err);

#endif
