// SPDX-License-Identifier: Apache-2.0
// Codebooks of product codes by k-means, part after part.
#ifndef BITSWEEP_SHARD_PRODUCT_BOOKS_H
#define BITSWEEP_SHARD_PRODUCT_BOOKS_H

#include "shard/codecs/product_codes.h"
#include "shard/codecs/sample.h"

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

#endif
