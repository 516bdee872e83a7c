// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/product_training.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "common/base/memory.h"
#include "shard/codecs/sample.h"

// LAPACK, column-major (Fortran interface of OpenBLAS).
void dgesdd_(const char *jobz, const int *m, const int *n, double *a, const int *lda, double *s,
             double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork,
             int *iwork, int *info);

#define TILE_ROWS 256

static uint32_t all_dims(const struct bsw_product_codes *codes)
{
    return codes->book.parts * codes->book.part_dims;
}

// ---- beginnings ----

enum bsw_status bsw_opq_begin_random(uint64_t seed, struct bsw_product_codes *codes,
                                     struct bsw_error *err)
{
    uint32_t all = all_dims(codes);
    double *rotation;
    BSW_TRY(bsw_allocate(&rotation, (size_t)all * all, sizeof *rotation, "rotation", err));
    enum bsw_status status = bsw_random_rotation(seed, all, rotation, err);
    for (uint32_t j = 0; j < codes->dims && status == BSW_OK; j++)
        for (uint32_t i = 0; i < all; i++)
            codes->matrix[(size_t)j * codes->projected_dims + i] =
                (float)rotation[(size_t)j * all + i];
    bsw_free(&rotation);
    return status;
}

void bsw_opq_begin_natural(struct bsw_product_codes *codes)
{
    size_t projected = codes->projected_dims;
    memset(codes->matrix, 0, codes->dims * projected * sizeof(float));
    for (uint32_t d = 0; d < codes->dims; d++) codes->matrix[d * projected + d] = 1.0f;
}

// Where axis after axis goes: a place among the dimensions of all parts.
static enum bsw_status share_out(const double *energies, const struct bsw_product_codes *codes,
                                 uint32_t *places, struct bsw_error *err)
{
    uint32_t parts = codes->book.parts, part_dims = codes->book.part_dims, *counts;
    double *logs, last = energies[codes->dims - 1], least = energies[0] * 1e-12;
    if (last > least) least = last;
    BSW_TRY(bsw_allocate_zero(&logs, parts, sizeof *logs, "rotation", err));
    enum bsw_status status = bsw_allocate_zero(&counts, parts, sizeof *counts, "rotation", err);
    for (uint32_t i = 0; i < codes->dims && status == BSW_OK; i++) {
        uint32_t best = parts;
        for (uint32_t p = 0; p < parts; p++)
            if (counts[p] < part_dims && (best == parts || logs[p] < logs[best])) best = p;
        places[i] = best * part_dims + counts[best]++;
        // Logarithms of variances above 1, so that a product rises with every axis.
        logs[best] += 0x1p-10 + (energies[i] > least ? log(energies[i] / least) : 0);
    }
    bsw_free(&counts);
    bsw_free(&logs);
    return status;
}

static void add_covariance(const struct bsw_training_rows *rows, uint32_t dims, double *block,
                           double *covariance)
{
    for (size_t first = 0; first < rows->num; first += TILE_ROWS) {
        size_t left = rows->num - first, count = left < TILE_ROWS ? left : TILE_ROWS;
        const float *from = rows->rows + first * dims;
        for (size_t i = 0; i < count * dims; i++) block[i] = (double)from[i];
        cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, (int)dims, (int)count, 1.0, block,
                    (int)dims, 1.0, covariance, (int)dims);
    }
}

static void put_axes(const double *axes, const uint32_t *places, struct bsw_product_codes *codes)
{
    memset(codes->matrix, 0, (size_t)codes->dims * codes->projected_dims * sizeof(float));
    for (uint32_t i = 0; i < codes->dims; i++)
        for (uint32_t j = 0; j < codes->dims; j++)
            codes->matrix[(size_t)j * codes->projected_dims + places[i]] =
                (float)axes[(size_t)i * codes->dims + j];
}

enum bsw_status bsw_opq_begin_principal(const struct bsw_training_rows *rows,
                                        struct bsw_product_codes *codes, struct bsw_error *err)
{
    size_t dims = codes->dims, square = dims * dims;
    double *memory, *block, *covariance, *axes, *energies;
    uint32_t *places;
    const struct bsw_memory_part parts[] = {{&block, TILE_ROWS * dims * sizeof *block},
                                            {&covariance, square * sizeof *covariance},
                                            {&axes, square * sizeof *axes},
                                            {&energies, dims * sizeof *energies},
                                            {&places, dims * sizeof *places}};
    size_t num_parts = sizeof parts / sizeof parts[0];
    BSW_TRY(
        bsw_allocate_zero(&memory, bsw_divide_memory(parts, num_parts, NULL), 1, "rotation", err));
    bsw_divide_memory(parts, num_parts, (unsigned char *)memory);
    add_covariance(rows, codes->dims, block, covariance);
    enum bsw_status status = bsw_principal_axes(codes->dims, covariance, energies, axes, err);
    if (status == BSW_OK) status = share_out(energies, codes, places, err);
    if (status == BSW_OK) put_axes(axes, places, codes);
    bsw_free(&memory);
    return status;
}

// ---- a round ----

// What the codes of some rows stand for: [count][all], row after row.
static void decode(const struct bsw_training_rows *rows, const struct bsw_product_codes *codes,
                   size_t first, size_t count, double *out)
{
    const struct bsw_product_book *book = &codes->book;
    size_t num = bsw_product_entries(book), all = all_dims(codes);
    for (uint32_t p = 0; p < book->parts; p++) {
        const float *entries = codes->entries + p * num * book->part_dims;
        for (size_t r = 0; r < count; r++) {
            uint8_t code = rows->codes[p * rows->num + first + r];
            for (uint32_t d = 0; d < book->part_dims; d++)
                out[r * all + p * book->part_dims + d] = (double)entries[d * num + code];
        }
    }
}

// product [dims][all] = rows^T decoded; returns what codes lose.
static double multiply(const struct bsw_training_rows *rows, const struct bsw_product_codes *codes,
                       double *from, double *decoded, double *product)
{
    double error = 0;
    size_t dims = codes->dims, all = all_dims(codes);
    for (size_t first = 0; first < rows->num; first += TILE_ROWS) {
        size_t left = rows->num - first, count = left < TILE_ROWS ? left : TILE_ROWS;
        for (size_t i = 0; i < count * dims; i++) from[i] = (double)rows->rows[first * dims + i];
        decode(rows, codes, first, count, decoded);
        for (size_t i = 0; i < count * all; i++) {
            double x = rows->projected[(first + i / all) * codes->projected_dims + i % all];
            error += (x - decoded[i]) * (x - decoded[i]);
        }
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)dims, (int)all, (int)count, 1.0,
                    from, (int)dims, decoded, (int)all, 1.0, product, (int)all);
    }
    return error;
}

// product [dims][all], which is lost, as left [dims][dims], singular values, right [dims][all]. For
// LAPACK it is its transpose.
static enum bsw_status decompose(uint32_t dims, uint32_t all, double *product, double *left,
                                 double *right, struct bsw_error *err)
{
    int m = (int)all, n = (int)dims, lwork = -1, info = 0, *iwork;
    double size = 0.0, *values, *work = NULL;
    BSW_TRY(bsw_allocate(&values, dims, sizeof *values, "rotation", err));
    enum bsw_status status = bsw_allocate(&iwork, 8 * (size_t)dims, sizeof *iwork, "rotation", err);
    if (status == BSW_OK)
        dgesdd_("S", &m, &n, product, &m, values, right, &m, left, &n, &size, &lwork, iwork, &info);
    lwork = (int)size;
    if (status == BSW_OK)
        status = bsw_allocate(&work, (size_t)lwork, sizeof *work, "rotation", err);
    if (status == BSW_OK)
        dgesdd_("S", &m, &n, product, &m, values, right, &m, left, &n, work, &lwork, iwork, &info);
    if (status == BSW_OK && info != 0)
        status = bsw_fail(err, BSW_ERROR_SELF_CHECK, "LAPACK dgesdd failed with %d", info);
    bsw_free(&work);
    bsw_free(&iwork);
    bsw_free(&values);
    return status;
}

enum bsw_status bsw_opq_turn(const struct bsw_training_rows *rows, struct bsw_product_codes *codes,
                             double *error, struct bsw_error *err)
{
    size_t dims = codes->dims, all = all_dims(codes);
    double *memory, *from, *decoded, *product, *left, *right;
    const struct bsw_memory_part parts[] = {{&from, TILE_ROWS * dims * sizeof *from},
                                            {&decoded, TILE_ROWS * all * sizeof *decoded},
                                            {&product, dims * all * sizeof *product},
                                            {&left, dims * dims * sizeof *left},
                                            {&right, dims * all * sizeof *right}};
    size_t num_parts = sizeof parts / sizeof parts[0];
    BSW_TRY(
        bsw_allocate_zero(&memory, bsw_divide_memory(parts, num_parts, NULL), 1, "rotation", err));
    bsw_divide_memory(parts, num_parts, (unsigned char *)memory);
    *error = multiply(rows, codes, from, decoded, product);
    // Column-major, product is its transpose P^T [all][dims] = right diag left^T-like: U is [all]
    // [dims] by columns, so row k of `right` as it lies is the k-th left singular vector of P^T,
    // and `left` holds V^T by columns: left[i * dims + k] is component i of the k-th right one.
    enum bsw_status status = decompose(codes->dims, (uint32_t)all, product, left, right, err);
    if (status == BSW_OK) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)dims, (int)all, (int)dims, 1.0,
                    left, (int)dims, right, (int)all, 0.0, product, (int)all);
        for (size_t j = 0; j < dims; j++)
            for (size_t i = 0; i < all; i++)
                codes->matrix[j * codes->projected_dims + i] = (float)product[j * all + i];
    }
    bsw_free(&memory);
    return status;
}
