// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/code_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "shard/codecs/codec.h"

#define FEW_DIFFERENT  0.1  // of rows
#define TIGHT_DISTANCE 1e-3 // of neighbours, squared, to that of rows from their mean

_Static_assert(BSW_CODE_RECALL_K == BSW_CODE_CHECK_K, "the recall is what a manifest says it is");

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Whether rows lie in groups that are small beside the distances between them; known of l2 alone.
static int is_tight(const struct bsw_code_recall *measure)
{
    double square = 0, limits[BSW_CODE_RECALL_MOST_QUERIES];
    double *mean;
    size_t dims = measure->dims, rows = measure->num_rows;
    if (measure->metric != BSW_METRIC_L2) return 0;
    if (bsw_allocate_zero(&mean, dims, sizeof *mean, "sample", NULL) != BSW_OK) return 0;
    for (size_t i = 0; i < rows * dims; i++)
        mean[i % dims] += (double)measure->rows[i] / (double)rows;
    for (size_t i = 0; i < rows * dims; i++) {
        double x = (double)measure->rows[i] - mean[i % dims];
        square += x * x / (double)rows;
    }
    bsw_free(&mean);
    memcpy(limits, measure->limits, sizeof limits);
    qsort(limits, measure->num_queries, sizeof *limits, compare);
    return -limits[measure->num_queries / 2] < TIGHT_DISTANCE * square;
}

static void say_far(const struct bsw_sample_far *far, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "%llu of %llu rows of the sample lie far from the others (row %llu: %.3g times as far "
             "as nine in ten)%s",
             (unsigned long long)far->num_rows, (unsigned long long)far->num_good,
             (unsigned long long)far->row, far->ratio,
             far->is_kept ? "" : "; codes fit the others");
}

static void find_cause(const struct bsw_code_recall *measure, const struct bsw_sample_far *far,
                       const struct bsw_codec *codec, struct bsw_code_check *check)
{
    size_t rows = measure->num_rows + measure->num_copies;
    if (far->num_rows > 0) say_far(far, check->cause, sizeof check->cause);
    if (!bsw_code_check_is_low(check) || check->cause[0]) return;
    if ((double)measure->num_rows < FEW_DIFFERENT * (double)rows)
        snprintf(check->cause, sizeof check->cause,
                 "only %zu of %zu rows of the sample are distinct: without copies codes fit the "
                 "others better",
                 measure->num_rows, rows);
    else if (is_tight(measure))
        snprintf(
            check->cause, sizeof check->cause,
            "rows lie in tight groups far from each other, and these bits do not reach into the "
            "groups: --codec pq with --lists does");
    else
        snprintf(check->cause, sizeof check->cause,
                 "too few bits to tell these rows apart: give more --bits%s, or search with more "
                 "--oversample",
                 codec->has_tables ? " or --subspaces" : ", try --codec pq");
}

enum bsw_status bsw_code_check_set(const struct bsw_code_recall *measure,
                                   const struct bsw_sample_far *far, struct bsw_manifest *manifest,
                                   struct bsw_error *err)
{
    struct bsw_code_check *check = &manifest->check;
    double recall;
    *check = (struct bsw_code_check){0};
    enum bsw_status status =
        bsw_code_recall_of(measure, manifest, BSW_CODE_CHECK_CANDIDATES, &recall, err);
    if (status != BSW_OK) return bsw_prefix(err, status, "check of the codes: ");
    check->recall = recall;
    check->num_queries = (uint32_t)measure->num_queries;
    check->num_rows = (uint32_t)measure->num_rows;
    find_cause(measure, far, manifest->codec, check);
    return BSW_OK;
}
