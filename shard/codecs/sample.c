// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"

#define STRATUM_SEED 0x6269747377656570u
#define MEDIAN_ROWS  1024 // of which the middle is the median

enum bsw_status bsw_sample_create(const bsw_vectors *vectors, enum bsw_metric metric,
                                  enum bsw_cpu_level level, struct bsw_sample *out,
                                  struct bsw_error *err)
{
    uint64_t num_rows = bsw_vectors_num_rows(vectors);
    *out = (struct bsw_sample){.vectors = vectors,
                               .table = bsw_encode_table_get(level),
                               .level = level,
                               .metric = metric,
                               .num_rows = num_rows < BSW_SAMPLE_ROWS ? num_rows : BSW_SAMPLE_ROWS};
    uint32_t dims = bsw_vectors_dims(vectors);
    BSW_TRY(bsw_allocate(&out->numbers, BSW_SAMPLE_TILE, bsw_vectors_row_bytes(vectors), "sample",
                         err));
    enum bsw_status status =
        bsw_allocate(&out->rows, (size_t)BSW_SAMPLE_TILE * dims, sizeof(float), "sample", err);
    if (status != BSW_OK) bsw_sample_deinit(out);
    return status;
}

void bsw_sample_deinit(struct bsw_sample *sample)
{
    bsw_progress_finish(sample->progress);
    bsw_free(&sample->numbers);
    bsw_free(&sample->rows);
    bsw_free(&sample->middle);
}

void bsw_sample_rewind(struct bsw_sample *sample, const char *label)
{
    sample->next = 0;
    bsw_progress_begin(sample->progress, label, "rows", sample->num_rows);
}

// a * b / c without overflow; the result fits.
static uint64_t scale_row(uint64_t a, uint64_t b, uint64_t c)
{
    return (uint64_t)((unsigned __int128)a * b / c);
}

// The id of a row.
static uint64_t row_of_place(const struct bsw_sample *sample, uint64_t place)
{
    uint64_t all = bsw_vectors_num_rows(sample->vectors);
    uint64_t first = scale_row(place, all, sample->num_rows);
    uint64_t last = scale_row(place + 1, all, sample->num_rows);
    return bsw_vectors_first_row(sample->vectors) + first +
           bsw_hash2(STRATUM_SEED, place) % (last - first);
}

static enum bsw_status read_tile(struct bsw_sample *sample, size_t count, struct bsw_error *err)
{
    if (sample->num_rows == bsw_vectors_num_rows(sample->vectors)) {
        return bsw_vectors_read(sample->vectors, row_of_place(sample, sample->next), count,
                                sample->numbers, err);
    }
    size_t row_bytes = bsw_vectors_row_bytes(sample->vectors);
    for (size_t i = 0; i < count; i++) {
        uint64_t row = row_of_place(sample, sample->next + i);
        BSW_TRY(bsw_vectors_read(sample->vectors, row, 1, sample->numbers + i * row_bytes, err));
    }
    return BSW_OK;
}

// Rows [count] that were read and prepared, less their centroids. A bad row stays one.
static enum bsw_status take_residuals(const struct bsw_sample *sample, size_t count, float *factors,
                                      struct bsw_error *err)
{
    uint32_t lists[BSW_SAMPLE_TILE], dims = bsw_vectors_dims(sample->vectors);
    const struct bsw_list_assignment assignment = {
        .rows = sample->numbers, .num_rows = count, .lists = lists};
    BSW_TRY(bsw_list_assigner_assign(sample->assigner, &assignment, err));
    for (size_t r = 0; r < count; r++) {
        const float *centroid = sample->centroids + (size_t)lists[r] * dims;
        float *row = sample->rows + r * dims;
        if (lists[r] == BSW_NO_LIST) continue;
        for (uint32_t d = 0; d < dims; d++)
            row[d] = (row[d] * factors[r] - centroid[d]) + sample->mean[d];
        factors[r] = 1.0f;
    }
    return BSW_OK;
}

// ---- rows that lie far out ----

// Reads rows from place sample->next on, as floats with their factors, 0 of bad ones.
static enum bsw_status prepare_tile(struct bsw_sample *sample, size_t count, float *factors,
                                    enum bsw_row_fault *faults, struct bsw_error *err)
{
    double norms[BSW_SAMPLE_TILE];
    BSW_TRY(read_tile(sample, count, err));
    bsw_prepare_rows(sample->table, sample->metric, bsw_vectors_type(sample->vectors),
                     sample->numbers, count, bsw_vectors_dims(sample->vectors), sample->rows, norms,
                     factors, faults);
    for (size_t r = 0; r < count && sample->fault == BSW_ROW_GOOD; r++) {
        sample->fault = faults[r];
        sample->bad_row = row_of_place(sample, sample->next + r);
    }
    return BSW_OK;
}

static double square_from_middle(const struct bsw_sample *sample, const float *row, float factor)
{
    double sum = 0;
    for (uint32_t d = 0; d < bsw_vectors_dims(sample->vectors); d++) {
        double x = (double)(row[d] * factor) - (double)sample->middle[d];
        sum += x * x;
    }
    return sum;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// columns [dims][MEDIAN_ROWS]: of rows at equal distances in the sample.
static enum bsw_status collect_columns(struct bsw_sample *sample, float *columns, size_t *num,
                                       struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(sample->vectors);
    uint64_t rows = sample->num_rows < MEDIAN_ROWS ? sample->num_rows : MEDIAN_ROWS;
    *num = 0;
    for (uint64_t i = 0; i < rows; i++) {
        enum bsw_row_fault fault;
        float factor;
        sample->next = scale_row(i, sample->num_rows, rows);
        BSW_TRY(prepare_tile(sample, 1, &factor, &fault, err));
        if (fault != BSW_ROW_GOOD) continue;
        for (uint32_t d = 0; d < dims; d++)
            columns[(size_t)d * MEDIAN_ROWS + *num] = sample->rows[d] * factor;
        ++*num;
    }
    return BSW_OK;
}

// *num: rows that it is made of; 0: all that were looked at are bad.
static enum bsw_status find_middle(struct bsw_sample *sample, size_t *num, struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(sample->vectors);
    float *columns;
    BSW_TRY(bsw_allocate(&sample->middle, 3 * (size_t)dims, sizeof(float), "sample", err));
    BSW_TRY(bsw_allocate(&columns, (size_t)dims * MEDIAN_ROWS, sizeof(float), "sample", err));
    float *low = sample->middle + dims, *high = low + dims;
    enum bsw_status status = collect_columns(sample, columns, num, err);
    for (uint32_t d = 0; d < dims && status == BSW_OK && *num > 0; d++) {
        const float *column = columns + (size_t)d * MEDIAN_ROWS;
        qsort(columns + (size_t)d * MEDIAN_ROWS, *num, sizeof(float), compare_floats);
        sample->middle[d] = column[*num / 2];
        low[d] = column[*num / 100];
        high[d] = column[*num - 1 - *num / 100];
    }
    if (status == BSW_OK && *num > 0) sample->low = low;
    if (status == BSW_OK && *num > 0) sample->high = high;
    bsw_free(&columns);
    return status;
}

// squares [num_rows]: of good rows that are not at the middle.
static enum bsw_status measure(struct bsw_sample *sample, double *squares, size_t *num,
                               struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(sample->vectors);
    double largest = 0;
    *num = 0;
    bsw_sample_rewind(sample, "training, middle");
    while (sample->next < sample->num_rows) {
        uint64_t left = sample->num_rows - sample->next;
        size_t count = left < BSW_SAMPLE_TILE ? (size_t)left : BSW_SAMPLE_TILE;
        float factors[BSW_SAMPLE_TILE];
        enum bsw_row_fault faults[BSW_SAMPLE_TILE];
        BSW_TRY(prepare_tile(sample, count, factors, faults, err));
        for (size_t r = 0; r < count; r++) {
            if (faults[r] != BSW_ROW_GOOD) continue;
            double square = square_from_middle(sample, sample->rows + r * dims, factors[r]);
            sample->far.num_good++;
            if (square > largest) sample->far.row = row_of_place(sample, sample->next + r);
            if (square > largest) largest = square;
            if (square > 0)
                squares[(*num)++] = square;
            else
                sample->far.num_copies++;
        }
        sample->next += count;
        bsw_progress_update(sample->progress, sample->next);
    }
    bsw_progress_finish(sample->progress);
    return BSW_OK;
}

// Rows whose squares leave float32 have codes that are no better than chance.
static enum bsw_status fail_small(const struct bsw_sample *sample, double usual,
                                  struct bsw_error *err)
{
    int exponent;
    frexp(sqrt(usual), &exponent);
    return bsw_fail(
        err, BSW_ERROR_BAD_DATA,
        "%s: nine in ten rows lie within squared distances of %.3g of each other, below "
        "%g, which codes cannot keep: multiply rows and queries by 2^%d",
        bsw_vectors_name(sample->vectors), usual, BSW_SAMPLE_LEAST_SQUARE, -exponent);
}

// squares [num], num > 0: of rows that are not at the middle.
static enum bsw_status judge(struct bsw_sample *sample, double *squares, size_t num,
                             struct bsw_error *err)
{
    qsort(squares, num, sizeof *squares, compare_doubles);
    double usual = squares[(num - 1) * 9 / 10];
    if (usual < BSW_SAMPLE_LEAST_SQUARE) return fail_small(sample, usual, err);
    sample->most_square = BSW_SAMPLE_FAR * BSW_SAMPLE_FAR * usual;
    sample->far.ratio = sqrt(squares[num - 1] / usual);
    for (size_t i = num; i > 0 && squares[i - 1] > sample->most_square; i--) sample->far.num_rows++;
    return BSW_OK;
}

enum bsw_status bsw_sample_leave_out(struct bsw_sample *sample, struct bsw_error *err)
{
    double *squares;
    size_t num;
    BSW_TRY(bsw_allocate(&squares, sample->num_rows, sizeof *squares, "sample", err));
    enum bsw_status status = find_middle(sample, &num, err);
    if (status == BSW_OK && num > 0) status = measure(sample, squares, &num, err);
    if (status == BSW_OK && num > 0) status = judge(sample, squares, num, err);
    bsw_free(&squares);
    return status;
}

void bsw_sample_keep_many(struct bsw_sample *sample)
{
    sample->far.is_kept = sample->far.num_rows > 3 + sample->far.num_good / 200;
}

static int is_left_out(const struct bsw_sample *sample, const float *row, float factor)
{
    return sample->far.num_rows > 0 && !sample->far.is_kept &&
           square_from_middle(sample, row, factor) > sample->most_square;
}

// ---- passes ----

enum bsw_status bsw_sample_next(struct bsw_sample *sample, const float **rows, float *factors,
                                size_t *num_rows, struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(sample->vectors);
    enum bsw_row_fault faults[BSW_SAMPLE_TILE];
    *rows = sample->rows;
    *num_rows = 0;
    bsw_progress_update(sample->progress, sample->next);
    while (*num_rows == 0 && sample->next < sample->num_rows) {
        uint64_t left = sample->num_rows - sample->next;
        size_t count = left < BSW_SAMPLE_TILE ? (size_t)left : BSW_SAMPLE_TILE, good = 0;
        BSW_TRY(prepare_tile(sample, count, factors, faults, err));
        sample->next += count;
        for (size_t r = 0; r < count; r++) {
            if (faults[r] == BSW_ROW_GOOD &&
                is_left_out(sample, sample->rows + r * dims, factors[r]))
                faults[r] = BSW_ROW_TOO_LARGE;
        }
        if (sample->mean) BSW_TRY(take_residuals(sample, count, factors, err));
        for (size_t r = 0; r < count; r++) { // close the gaps that bad rows leave
            if (faults[r] != BSW_ROW_GOOD) continue;
            if (good != r)
                memcpy(sample->rows + good * dims, sample->rows + r * dims, dims * sizeof(float));
            factors[good++] = factors[r];
        }
        *num_rows = good;
    }
    if (*num_rows == 0) bsw_progress_finish(sample->progress);
    return BSW_OK;
}

enum bsw_status bsw_sample_fail_empty(const struct bsw_sample *sample, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no good row in the sample: row %llu %s",
                    bsw_vectors_name(sample->vectors), (unsigned long long)sample->bad_row,
                    bsw_row_fault_text(sample->fault));
}

// ---- principal axes ----

// LAPACK, column-major (Fortran interface of OpenBLAS).
void dsyevd_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w,
             double *work, const int *lwork, int *iwork, const int *liwork, int *info);
void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work,
             const int *lwork, int *info);
void dorgqr_(const int *m, const int *n, const int *k, double *a, const int *lda, const double *tau,
             double *work, const int *lwork, int *info);

enum bsw_status bsw_principal_axes(uint32_t dims, double *covariance, double *energies,
                                   double *axes, struct bsw_error *err)
{
    int n = (int)dims, info, lwork = -1, liwork = -1, iwork_size;
    double work_size;
    dsyevd_("V", "L", &n, covariance, &n, energies, &work_size, &lwork, &iwork_size, &liwork,
            &info);
    lwork = (int)work_size;
    liwork = iwork_size;
    double *scratch;
    int *iscratch;
    BSW_TRY(bsw_allocate(&scratch, (size_t)lwork, sizeof(double), "principal axes", err));
    enum bsw_status status =
        bsw_allocate(&iscratch, (size_t)liwork, sizeof(int), "principal axes", err);
    if (status == BSW_OK) {
        dsyevd_("V", "L", &n, covariance, &n, energies, scratch, &lwork, iscratch, &liwork, &info);
        if (info != 0)
            status = bsw_fail(err, BSW_ERROR_SELF_CHECK, "LAPACK dsyevd failed with %d", info);
        bsw_free(&iscratch);
    }
    bsw_free(&scratch);
    if (status != BSW_OK) return status;
    for (int i = 0; i < n; i++) { // LAPACK's order is ascending
        memcpy(axes + (size_t)i * (size_t)n, covariance + (size_t)(n - 1 - i) * (size_t)n,
               (size_t)n * sizeof(double));
    }
    for (int i = 0; i < n / 2; i++) {
        double swap = energies[i];
        energies[i] = energies[n - 1 - i];
        energies[n - 1 - i] = swap;
    }
    return BSW_OK;
}

// About Gaussian and exact: the sum of the hash's four quarters, minus its mean.
static double gaussian(uint64_t seed, uint64_t index)
{
    uint64_t h = bsw_hash2(seed, index);
    return (double)(h & 0xffff) + (double)(h >> 16 & 0xffff) + (double)(h >> 32 & 0xffff) +
           (double)(h >> 48) - 2.0 * 65535.0;
}

enum bsw_status bsw_random_rotation(uint64_t seed, uint32_t dims, double *matrix,
                                    struct bsw_error *err)
{
    int n = (int)dims, lwork = 64 * n, info = 0;
    size_t square = (size_t)dims * dims;
    double *tau, *scratch;
    for (size_t i = 0; i < square; i++) matrix[i] = gaussian(seed, i);
    BSW_TRY(bsw_allocate(&tau, dims, sizeof(double), "random axes", err));
    enum bsw_status status =
        bsw_allocate(&scratch, (size_t)lwork, sizeof(double), "random axes", err);
    if (status == BSW_OK) {
        dgeqrf_(&n, &n, matrix, &n, tau, scratch, &lwork, &info);
        if (info == 0) dorgqr_(&n, &n, &n, matrix, &n, tau, scratch, &lwork, &info);
        if (info != 0)
            status = bsw_fail(err, BSW_ERROR_SELF_CHECK, "LAPACK QR failed with %d", info);
        bsw_free(&scratch);
    }
    bsw_free(&tau);
    return status;
}
