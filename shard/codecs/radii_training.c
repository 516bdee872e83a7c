// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/product_training.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "common/job/stop_signal.h"
#include "kernels/select/select.h"
#include "shard/codecs/product_radii.h"

#define MOST_ROW_BYTES ((size_t)512 << 20)
#define BLOCK          256 // queries whose products one call has: entries of a book of 8 bits
#define TILE_ROWS      128

// What training holds.
struct rows {
    size_t num, stride; // every stride-th row of the sample
    float *given;       // [num][dims]: with their factors, of l2 less the mean
    float *queries;     // [num][projected_dims]: as queries are projected
    float *coded;       // likewise what is coded of them; of l2 the queries
};

struct training {
    const struct bsw_sample *sample;
    const struct bsw_product_codes *codes;
    struct rows rows;
    int num_threads;
    size_t num_queries, num_neighbors;
    uint32_t *neighbors;       // [num_queries][num_neighbors]
    double *densities, *radii; // [parts][num_queries]
};

static void free_training(struct training *training)
{
    if (training->rows.coded != training->rows.queries) bsw_free(&training->rows.coded);
    bsw_free(&training->rows.given);
    bsw_free(&training->rows.queries);
    bsw_free(&training->neighbors);
    bsw_free(&training->densities);
    bsw_free(&training->radii);
}

// ---- rows ----

// Every stride-th good row of a pass, with its factor, less the mean where that is given.
static enum bsw_status read_rows(struct bsw_sample *sample, const float *mean, size_t dims,
                                 size_t stride, float *out, size_t *num, struct bsw_error *err)
{
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    size_t num_rows, place = 0;
    *num = 0;
    bsw_sample_rewind(sample, "training, radii");
    for (;;) {
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num_rows, err));
        if (num_rows == 0) return *num > 0 ? BSW_OK : bsw_sample_fail_empty(sample, err);
        for (size_t r = 0; r < num_rows; r++, place++) {
            float *to = out + *num * dims;
            if (place % stride != 0) continue;
            for (size_t d = 0; d < dims; d++)
                to[d] = rows[r * dims + d] * factors[r] - (mean ? mean[d] : 0.0f);
            ++*num;
        }
    }
}

// from [num][dims] to projections.
static void project(const struct training *training, const float *from, float *out)
{
    const struct bsw_product_codes *codes = training->codes;
    size_t dims = codes->dims, num = training->rows.num;
#pragma omp parallel for schedule(static) num_threads(training->num_threads)
    for (size_t first = 0; first < num; first += TILE_ROWS) {
        size_t count = num - first < TILE_ROWS ? num - first : TILE_ROWS;
        bsw_product_project(codes, training->sample->table, from + first * dims, count,
                            out + first * codes->projected_dims);
    }
}

// What is coded of rows, under metrics whose radii are of that: without their centroids if codes
// are of residuals.
static enum bsw_status read_coded(struct bsw_sample *sample, struct training *training,
                                  struct bsw_error *err)
{
    const struct bsw_product_codes *codes = training->codes;
    struct rows *rows = &training->rows;
    size_t most = rows->num, num;
    float *centred;
    BSW_TRY(bsw_allocate(&rows->coded, most * codes->projected_dims, sizeof(float), "sample", err));
    BSW_TRY(bsw_allocate(&centred, most * codes->dims, sizeof(float), "sample", err));
    sample->mean = sample->centroids ? codes->mean : NULL;
    enum bsw_status status =
        read_rows(sample, codes->mean, codes->dims, rows->stride, centred, &num, err);
    if (status == BSW_OK) project(training, centred, rows->coded);
    bsw_free(&centred);
    return status;
}

static enum bsw_status read_all(struct bsw_sample *sample, struct training *training,
                                struct bsw_error *err)
{
    const struct bsw_product_codes *codes = training->codes;
    struct rows *rows = &training->rows;
    size_t fit = MOST_ROW_BYTES / (codes->projected_dims * sizeof(float)),
           all = (size_t)sample->num_rows, dims = codes->dims;
    int is_l2 = bsw_has_row_norms(codes->metric);
    rows->stride = (all + fit - 1) / fit;
    size_t most = (all + rows->stride - 1) / rows->stride;
    BSW_TRY(bsw_allocate(&rows->given, most * dims, sizeof(float), "sample", err));
    BSW_TRY(
        bsw_allocate(&rows->queries, most * codes->projected_dims, sizeof(float), "sample", err));
    sample->mean = NULL; // rows themselves, also where codes are of residuals
    // Far from the origin squares of rows would drown their distances.
    BSW_TRY(read_rows(sample, is_l2 ? codes->mean : NULL, dims, rows->stride, rows->given,
                      &rows->num, err));
    project(training, rows->given, rows->queries);
    rows->coded = rows->queries;
    return is_l2 ? BSW_OK : read_coded(sample, training, err);
}

// ---- neighbours ----

static size_t row_of_query(const struct training *training, size_t query)
{
    return (size_t)bsw_part_first(training->rows.num, query, training->num_queries);
}

// Queries [first, first + BLOCK), dimension by dimension; 0 behind the last.
static void turn(const struct training *training, size_t first, float *out)
{
    size_t dims = training->codes->dims;
    for (size_t i = 0; i < BLOCK; i++) {
        size_t query = first + i;
        for (size_t d = 0; d < dims; d++)
            out[d * BLOCK + i] =
                query < training->num_queries
                    ? training->rows.given[row_of_query(training, query) * dims + d]
                    : 0.0f;
    }
}

// Scores of all rows for a block of queries: the better a row, the higher. [num][BLOCK]
static void find_scores(const struct training *training, const float *turned, uint32_t *out)
{
    const struct bsw_table_scan_table *kernels = bsw_table_scan_table_get(training->sample->level);
    uint32_t dims = training->codes->dims;
    const struct bsw_product_book book = {1, dims, 8, turned, NULL};
    int is_l2 = bsw_has_row_norms(training->codes->metric);
#pragma omp parallel for schedule(static) num_threads(training->num_threads)
    for (size_t r = 0; r < training->rows.num; r++) {
        _Alignas(64) float products[BLOCK];
        const float *row = training->rows.given + r * dims;
        float norm = 0.0f;
        kernels->products(&book, row, NULL, products);
        for (uint32_t d = 0; d < dims && is_l2; d++) norm = fmaf(row[d], row[d], norm);
        for (size_t i = 0; i < BLOCK; i++)
            out[r * BLOCK + i] =
                bsw_score_from_float((is_l2 ? 2.0f * products[i] - norm : products[i]) + 0.0f);
    }
}

// The best rows of each query of a block, but for the query's own.
static void choose(const struct training *training, size_t first, const uint32_t *scores,
                   uint64_t *room)
{
    const struct bsw_select_table *select = bsw_select_table_get(training->sample->level);
    size_t num = training->rows.num, keep = training->num_neighbors;
#pragma omp parallel for schedule(static) num_threads(training->num_threads)
    for (size_t i = 0; i < BLOCK; i++) {
        uint64_t *items = room + (size_t)omp_get_thread_num() * 2 * num;
        size_t count = 0;
        if (first + i >= training->num_queries) continue;
        size_t own = row_of_query(training, first + i);
        for (size_t r = 0; r < num; r++)
            if (r != own) items[count++] = bsw_candidate_pack(scores[r * BLOCK + i], (uint32_t)r);
        count = select->keep_best(items, count, keep, items + num);
        for (size_t n = 0; n < count; n++)
            training->neighbors[(first + i) * keep + n] = bsw_candidate_row(items[n]);
    }
}

static enum bsw_status find_neighbors(struct training *training, struct bsw_error *err)
{
    size_t num = training->rows.num, dims = training->codes->dims;
    float *turned = NULL;
    uint32_t *scores = NULL;
    uint64_t *room = NULL;
    enum bsw_status status = bsw_allocate(&turned, BLOCK * dims, sizeof *turned, "queries", err);
    if (status == BSW_OK)
        status = bsw_allocate(&scores, num * BLOCK, sizeof *scores, "scores", err);
    if (status == BSW_OK)
        status = bsw_allocate(&room, (size_t)training->num_threads * 2 * num, sizeof *room,
                              "candidates", err);
    for (size_t first = 0; first < training->num_queries && status == BSW_OK; first += BLOCK) {
        if (bsw_stop_is_asked()) status = bsw_stop_fail(err);
        if (status != BSW_OK) break;
        turn(training, first, turned);
        find_scores(training, turned, scores);
        choose(training, first, scores, room);
    }
    bsw_free(&turned);
    bsw_free(&scores);
    bsw_free(&room);
    return status;
}

// ---- radii ----

// What holds the projections of a query's neighbours in a part.
static double needed(const struct training *training, size_t query, uint32_t part)
{
    size_t stride = training->codes->projected_dims, keep = training->num_neighbors;
    const float *q = training->rows.queries + row_of_query(training, query) * stride + 2 * part;
    double most = 0;
    for (size_t n = 0; n < keep; n++) {
        size_t row = training->neighbors[query * keep + n];
        const float *x = training->rows.coded + row * stride + 2 * part;
        double dx = (double)q[0] - (double)x[0], dy = (double)q[1] - (double)x[1],
               square = fma(dx, dx, dy * dy);
        if (!bsw_has_row_norms(training->codes->metric))
            square -= fma((double)x[0], (double)x[0], (double)x[1] * (double)x[1]);
        most = square > most ? square : most;
    }
    return sqrt(most);
}

static void fit_part(const struct training *training, uint32_t part)
{
    struct bsw_product_radii *radii = training->codes->radii;
    size_t num = training->num_queries, stride = training->codes->projected_dims;
    double *densities = training->densities + part * num, *needs = training->radii + part * num;
    bsw_product_radii_count(radii, part, training->rows.queries + 2 * (size_t)part, stride,
                            training->rows.num);
    for (size_t i = 0; i < num; i++) {
        const float *q = training->rows.queries + row_of_query(training, i) * stride + 2 * part;
        densities[i] =
            bsw_product_radii_density(radii, part, bsw_product_radii_cell(radii, part, q[0], q[1]));
        needs[i] = needed(training, i, part);
    }
    radii->fits[part] = bsw_product_radii_fit(densities, needs, num);
}

static enum bsw_status fit_all(struct training *training, struct bsw_error *err)
{
    uint32_t parts = training->codes->book.parts;
    size_t numbers = parts * training->num_queries;
    BSW_TRY(bsw_allocate(&training->densities, numbers, sizeof(double), "radii", err));
    BSW_TRY(bsw_allocate(&training->radii, numbers, sizeof(double), "radii", err));
#pragma omp parallel for schedule(static) num_threads(training->num_threads)
    for (uint32_t p = 0; p < parts; p++) fit_part(training, p);
    bsw_product_radii_finish(training->codes->radii);
    return BSW_OK;
}

static enum bsw_status train(struct bsw_sample *sample, struct training *training,
                             struct bsw_error *err)
{
    BSW_TRY(read_all(sample, training, err));
    size_t num = training->rows.num;
    training->num_queries = num < BSW_RADII_QUERIES ? num : BSW_RADII_QUERIES;
    training->num_neighbors = num - 1 < BSW_RADII_NEIGHBORS ? num - 1 : BSW_RADII_NEIGHBORS;
    BSW_TRY(bsw_allocate(&training->neighbors, training->num_queries * training->num_neighbors + 1,
                         sizeof *training->neighbors, "neighbours", err));
    BSW_TRY(find_neighbors(training, err));
    return fit_all(training, err);
}

enum bsw_status bsw_radii_train(struct bsw_sample *sample, int num_threads,
                                struct bsw_product_codes *codes, struct bsw_error *err)
{
    struct training training = {.sample = sample, .codes = codes, .num_threads = num_threads};
    const float *mean = sample->mean;
    BSW_TRY(bsw_product_radii_create(codes->book.parts, &codes->radii, err));
    enum bsw_status status = train(sample, &training, err);
    sample->mean = mean;
    free_training(&training);
    return status;
}

// ---- in a manifest ------------------------------------------------------------------------------

#define MOST_NUMBER 1e18 // of radii and what they are made from; their squares are floats

void bsw_radii_pack(const struct bsw_product_radii *radii, double *numbers, Bsw__Radii *out)
{
    size_t parts = radii->parts;
    _Static_assert(BSW_RADII_FIT_NUMBERS == 4 + BSW_RADII_DEGREE + 1, "numbers of a fit");
    for (size_t p = 0; p < parts; p++) {
        const struct bsw_radii_fit *fit = &radii->fits[p];
        double *to = numbers + p * BSW_RADII_FIT_NUMBERS;
        const double first[] = {fit->middle, fit->half, fit->least, fit->most};
        memcpy(to, first, sizeof first);
        memcpy(to + 4, fit->coefficients, sizeof fit->coefficients);
    }
    bsw__radii__init(out);
    out->boxes = (ProtobufCBinaryData){parts * 4 * sizeof(float), (uint8_t *)radii->boxes};
    out->counts =
        (ProtobufCBinaryData){parts * BSW_RADII_MAP * sizeof(uint16_t), (uint8_t *)radii->counts};
    out->fits =
        (ProtobufCBinaryData){parts * BSW_RADII_FIT_NUMBERS * sizeof(double), (uint8_t *)numbers};
}

static int are_boxes(const float *boxes, size_t parts)
{
    for (size_t p = 0; p < parts; p++, boxes += 4) {
        for (int i = 0; i < 4; i++)
            if (!(fabs((double)boxes[i]) <= MOST_NUMBER)) return 0;
        if (boxes[0] > boxes[2] || boxes[1] > boxes[3]) return 0;
    }
    return 1;
}

static int are_fits(const struct bsw_radii_fit *fits, size_t parts)
{
    for (size_t p = 0; p < parts; p++) {
        const struct bsw_radii_fit *fit = &fits[p];
        if (!(fabs(fit->middle) <= MOST_NUMBER) || !(fit->half >= 0 && fit->half <= MOST_NUMBER) ||
            !(fit->least >= 0 && fit->least <= fit->most && fit->most <= MOST_NUMBER))
            return 0;
        for (int c = 0; c <= BSW_RADII_DEGREE; c++)
            if (!(fabs(fit->coefficients[c]) <= MOST_NUMBER)) return 0;
    }
    return 1;
}

static void take(const Bsw__Radii *message, struct bsw_product_radii *radii)
{
    memcpy(radii->boxes, message->boxes.data, message->boxes.len);
    memcpy(radii->counts, message->counts.data, message->counts.len);
    for (size_t p = 0; p < radii->parts; p++) {
        struct bsw_radii_fit *fit = &radii->fits[p];
        double from[BSW_RADII_FIT_NUMBERS];
        memcpy(from, message->fits.data + p * sizeof from, sizeof from);
        *fit = (struct bsw_radii_fit){from[0], from[1], from[2], from[3], {0}};
        memcpy(fit->coefficients, from + 4, sizeof fit->coefficients);
    }
}

enum bsw_status bsw_radii_parse(const char *name, const Bsw__Radii *message, uint32_t parts,
                                struct bsw_product_radii **out, struct bsw_error *err)
{
    size_t num = parts;
    *out = NULL;
    if (message->boxes.len != num * 4 * sizeof(float) ||
        message->counts.len != num * BSW_RADII_MAP * sizeof(uint16_t) ||
        message->fits.len != num * BSW_RADII_FIT_NUMBERS * sizeof(double))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the radii do not fit the subspaces", name);
    BSW_TRY(bsw_product_radii_create(parts, out, err));
    take(message, *out);
    if (are_boxes((*out)->boxes, num) && are_fits((*out)->fits, num)) {
        bsw_product_radii_finish(*out);
        return BSW_OK;
    }
    bsw_product_radii_destroy(out);
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the radii have numbers that are out of range",
                    name);
}
