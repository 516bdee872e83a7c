// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/product_training.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/job/stop_signal.h"

// Rows that are held, of so many bytes at most.
#define MOST_ROW_BYTES ((size_t)512 << 20)
#define TILE_ROWS      128
#define BOOK_ROUNDS    25
// Learning a rotation: rounds of both beginnings, and of the one that is kept.
#define OPQ_TRIAL_ROUNDS      4
#define OPQ_ROUNDS            20
#define OPQ_FIRST_BOOK_ROUNDS 6
#define OPQ_BOOK_ROUNDS       2
#define OPQ_ROWS              16384
// Rows of which no rotation is learned, where dims are more: codes of about as many entries lose
// little by any, and a round takes an SVD of dims^2 all the same.
#define OPQ_FEW_ROWS 256
// So many rows that lie far out may have entries of their own.
#define MOST_FAR_ROWS 8

// ---- rows ----

static enum bsw_status train_mean(struct bsw_sample *sample, struct bsw_product_codes *codes,
                                  struct bsw_error *err)
{
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    double *sums;
    size_t num_rows;
    uint64_t total = 0;
    BSW_TRY(bsw_allocate_zero(&sums, codes->dims, sizeof *sums, "sample", err));
    bsw_sample_rewind(sample, "training, mean");
    enum bsw_status status = bsw_sample_next(sample, &rows, factors, &num_rows, err);
    while (status == BSW_OK && num_rows > 0) {
        for (size_t i = 0; i < num_rows * codes->dims; i++)
            sums[i % codes->dims] += (double)(rows[i] * factors[i / codes->dims]);
        total += num_rows;
        status = bsw_sample_next(sample, &rows, factors, &num_rows, err);
    }
    if (status == BSW_OK && total == 0) status = bsw_sample_fail_empty(sample, err);
    for (uint32_t d = 0; d < codes->dims && status == BSW_OK; d++)
        codes->mean[d] = (float)(sums[d] / (double)total);
    bsw_free(&sums);
    return status;
}

static size_t row_stride(const struct bsw_sample *sample, const struct bsw_product_codes *codes)
{
    size_t fit = MOST_ROW_BYTES / (codes->projected_dims * sizeof(float));
    return (size_t)(sample->num_rows + fit - 1) / fit;
}

// Every stride-th good row, centred, to out->rows.
static enum bsw_status take_rows(struct bsw_sample *sample, const struct bsw_product_codes *codes,
                                 struct bsw_training_rows *out, struct bsw_error *err)
{
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    size_t num_rows, place = 0, dims = codes->dims, stride = row_stride(sample, codes);
    out->num = 0;
    bsw_sample_rewind(sample, "training, rows");
    for (;;) {
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num_rows, err));
        if (num_rows == 0) return out->num > 0 ? BSW_OK : bsw_sample_fail_empty(sample, err);
        for (size_t r = 0; r < num_rows; r++, place++) {
            float *to = out->rows + out->num * dims;
            if (place % stride != 0) continue;
            for (size_t d = 0; d < dims; d++)
                to[d] = rows[r * dims + d] * factors[r] - codes->mean[d];
            out->num++;
        }
    }
}

static enum bsw_status hold_rows(struct bsw_sample *sample, const struct bsw_product_codes *codes,
                                 struct bsw_training_rows *out, struct bsw_error *err)
{
    size_t stride = row_stride(sample, codes),
           most = ((size_t)sample->num_rows + stride - 1) / stride;
    BSW_TRY(bsw_allocate(&out->rows, most * codes->dims, sizeof(float), "sample", err));
    BSW_TRY(
        bsw_allocate(&out->projected, most * codes->projected_dims, sizeof(float), "sample", err));
    BSW_TRY(bsw_allocate(&out->codes, most, codes->book.parts, "sample", err));
    return take_rows(sample, codes, out, err);
}

// Rows that lie far out would turn the rotation, and are left out of it. A few of them cost an
// entry each of a codebook, and have codes of their own for it: under ip such a row is the best of
// half of all queries.
static enum bsw_status add_far_rows(struct bsw_sample *sample,
                                    const struct bsw_product_codes *codes,
                                    struct bsw_training_rows *out, struct bsw_error *err)
{
    struct bsw_sample_far *far = &sample->far;
    if (far->is_kept || far->num_rows == 0 || far->num_rows > MOST_FAR_ROWS) return BSW_OK;
    far->is_kept = 1;
    enum bsw_status status = take_rows(sample, codes, out, err);
    far->is_kept = 0;
    return status;
}

// The first num of them, by the matrix that there is.
static void project(const struct bsw_sample *sample, const struct bsw_product_codes *codes,
                    size_t num, int num_threads, struct bsw_training_rows *rows)
{
#pragma omp parallel for schedule(static) num_threads(num_threads)
    for (size_t first = 0; first < num; first += TILE_ROWS) {
        size_t left = num - first;
        bsw_product_project(codes, sample->table, rows->rows + first * codes->dims,
                            left < TILE_ROWS ? left : TILE_ROWS,
                            rows->projected + first * codes->projected_dims);
    }
}

// ---- rotations ----

// Codebooks and matrix in turns, from the matrix that there is; *error: what codes then lose.
static enum bsw_status alternate(struct bsw_sample *sample, uint64_t seed, int num_threads,
                                 uint32_t rounds, struct bsw_product_codes *codes,
                                 struct bsw_training_rows *rows, double *error,
                                 struct bsw_error *err)
{
    bsw_progress_begin(sample->progress, "training, rotation", "rounds", rounds);
    for (uint32_t round = 0; round < rounds; round++) {
        if (bsw_stop_is_asked()) return bsw_stop_fail(err);
        const struct bsw_book_training training = {.seed = seed,
                                                   .rounds = round == 0 ? OPQ_FIRST_BOOK_ROUNDS
                                                                        : OPQ_BOOK_ROUNDS,
                                                   .num_threads = num_threads,
                                                   .goes_on = round > 0};
        project(sample, codes, rows->num, num_threads, rows);
        BSW_TRY(bsw_product_books_train(&training, rows, sample, codes, err));
        BSW_TRY(bsw_opq_turn(rows, codes, error, err));
        bsw_progress_update(sample->progress, round + 1);
    }
    bsw_progress_finish(sample->progress);
    return BSW_OK;
}

// From the natural order of dimensions and from principal axes; goes on with what loses less.
static enum bsw_status learn_rotation(struct bsw_sample *sample, uint64_t seed, int num_threads,
                                      struct bsw_product_codes *codes,
                                      struct bsw_training_rows *rows, struct bsw_error *err)
{
    struct bsw_training_rows some = *rows;
    size_t bytes = (size_t)codes->dims * codes->projected_dims * sizeof(float);
    double natural_error, error;
    float *natural;
    bsw_opq_begin_natural(codes);
    if (rows->num <= OPQ_FEW_ROWS && rows->num < codes->dims) return BSW_OK;
    if (some.num > OPQ_ROWS) some.num = OPQ_ROWS;
    BSW_TRY(bsw_allocate(&natural, bytes, 1, "rotation", err));
    enum bsw_status status =
        alternate(sample, seed, num_threads, OPQ_TRIAL_ROUNDS, codes, &some, &natural_error, err);
    memcpy(natural, codes->matrix, bytes);
    if (status == BSW_OK) status = bsw_opq_begin_principal(rows, codes, err);
    if (status == BSW_OK)
        status = alternate(sample, seed, num_threads, OPQ_TRIAL_ROUNDS, codes, &some, &error, err);
    if (status == BSW_OK && natural_error <= error) memcpy(codes->matrix, natural, bytes);
    bsw_free(&natural);
    if (status != BSW_OK) return status;
    return alternate(sample, seed, num_threads, OPQ_ROUNDS, codes, &some, &error, err);
}

static enum bsw_status train_rotation(struct bsw_sample *sample, uint64_t seed, int num_threads,
                                      struct bsw_product_codes *codes,
                                      struct bsw_training_rows *rows, struct bsw_error *err)
{
    if (strcmp(codes->rotation, "none") == 0) return BSW_OK;
    BSW_TRY(bsw_allocate_zero(&codes->matrix, (size_t)codes->dims * codes->projected_dims,
                              sizeof(float), "rotation", err));
    if (strcmp(codes->rotation, "random") == 0) return bsw_opq_begin_random(seed, codes, err);
    return learn_rotation(sample, seed, num_threads, codes, rows, err);
}

// ---- all ----

static enum bsw_status train_on(struct bsw_sample *sample, uint64_t seed, int num_threads,
                                struct bsw_product_codes *codes, struct bsw_training_rows *rows,
                                struct bsw_error *err)
{
    const struct bsw_book_training training = {.seed = seed,
                                               .rounds = BOOK_ROUNDS,
                                               .num_threads = num_threads,
                                               .progress = sample->progress};
    BSW_TRY(hold_rows(sample, codes, rows, err));
    BSW_TRY(train_rotation(sample, seed, num_threads, codes, rows, err));
    BSW_TRY(add_far_rows(sample, codes, rows, err));
    project(sample, codes, rows->num, num_threads, rows);
    return bsw_product_books_train(&training, rows, sample, codes, err);
}

enum bsw_status bsw_product_train(struct bsw_sample *sample, uint64_t seed, int num_threads,
                                  struct bsw_product_codes *codes, struct bsw_error *err)
{
    struct bsw_training_rows rows = {0};
    openblas_set_num_threads(1); // its sums depend on the number of threads
    BSW_TRY(train_mean(sample, codes, err));
    if (sample->centroids) sample->mean = codes->mean; // from here on residuals
    enum bsw_status status = train_on(sample, seed, num_threads, codes, &rows, err);
    bsw_free(&rows.rows);
    bsw_free(&rows.projected);
    bsw_free(&rows.codes);
    return status;
}
