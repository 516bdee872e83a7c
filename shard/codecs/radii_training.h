// SPDX-License-Identifier: Apache-2.0
// Radii of product codes from a sample and its true neighbours (product_radii.h).
//
// Rows of the sample, one of each equal part of them, are the queries; their neighbours are the
// best of the sample but for themselves, by float32 chains of fma, so that every level and number
// of threads gives the same radii.
#ifndef BITSWEEP_SHARD_RADII_TRAINING_H
#define BITSWEEP_SHARD_RADII_TRAINING_H

#include "bitsweep.pb-c.h"
#include "shard/codecs/product_codes.h"
#include "shard/codecs/product_radii.h"
#include "shard/codecs/sample.h"

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
