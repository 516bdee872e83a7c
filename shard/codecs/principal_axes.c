// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/principal_axes.h"

#include <string.h>

#include "common/base/integer_hash.h"

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
