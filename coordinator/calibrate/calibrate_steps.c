// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate_steps.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "common/base/median.h"
#include "common/base/parts.h"
#include "common/rows/vectors.h"
#include "coordinator/search/search_settings.h"
#include "kernels/encode/prepare_rows.h"

// Lists that steps are for, as far as an index has them.
static const uint32_t num_lists_of[] = {1,  2,  3,   4,   6,   8,   12,  16,  24,   32,  48,
                                        64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048};
enum { MOST_TARGETS = sizeof num_lists_of / sizeof *num_lists_of, MOST_QUERIES = 64 };

// What --probe-ratio takes.
#define LEAST_RATIO 0.01
#define MOST_RATIO  1000.0
#define RATIO_STEPS 1000.0 // ratios are whole thousandths

static uint32_t num_targets(const struct bsw_manifest *manifest)
{
    uint32_t count = 0;
    while (count < MOST_TARGETS && num_lists_of[count] < manifest->lists.count) count++;
    return count;
}

// ---- ratios ----

// Some of the queries that are no copies, spread over the file.
struct some_queries {
    size_t count;
    uint32_t dims;
    float *rows;    // [count][dims]
    float *factors; // [count]
};

// Which of them, [MOST_QUERIES] at most; returns how many.
static size_t choose_queries(uint64_t num, const unsigned char *is_copy, uint64_t *chosen)
{
    uint64_t different = 0, at = 0;
    for (uint64_t i = 0; i < num; i++) different += !is_copy || !is_copy[i];
    size_t count = different < MOST_QUERIES ? (size_t)different : MOST_QUERIES, taken = 0;
    for (uint64_t i = 0; i < num && taken < count; i++) {
        if (is_copy && is_copy[i]) continue;
        if (at++ == bsw_part_first(different, taken, count)) chosen[taken++] = i;
    }
    return count;
}

static enum bsw_status read_queries(const struct bsw_manifest *manifest, const bsw_vectors *vectors,
                                    const unsigned char *is_copy, enum bsw_cpu_level level,
                                    struct some_queries *out, struct bsw_error *err)
{
    uint64_t chosen[MOST_QUERIES];
    double norms[MOST_QUERIES];
    size_t row_bytes = bsw_vectors_row_bytes(vectors);
    unsigned char *numbers;
    out->count = choose_queries(bsw_vectors_num_rows(vectors), is_copy, chosen);
    out->dims = bsw_vectors_dims(vectors);
    BSW_TRY(bsw_allocate(&out->rows, out->count * out->dims, sizeof *out->rows, "queries", err));
    BSW_TRY(bsw_allocate(&out->factors, out->count, sizeof *out->factors, "queries", err));
    BSW_TRY(bsw_allocate(&numbers, out->count, row_bytes, "queries", err));
    enum bsw_status status = BSW_OK;
    for (size_t i = 0; i < out->count && status == BSW_OK; i++)
        status = bsw_vectors_read(vectors, bsw_vectors_first_row(vectors) + chosen[i], 1,
                                  numbers + i * row_bytes, err);
    if (status == BSW_OK)
        bsw_prepare_rows(bsw_encode_table_get(level), manifest->metric, bsw_vectors_type(vectors),
                         numbers, out->count, out->dims, out->rows, norms, out->factors, NULL);
    bsw_free(&numbers);
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Squared distances of a query to all lists as coarse_search.h has them, ascending.
static void sort_distances(const struct bsw_manifest *manifest, const struct some_queries *queries,
                           size_t q, double *distances)
{
    const float *query = queries->rows + q * queries->dims;
    int is_l2 = bsw_metrics[manifest->metric].is_distance;
    for (uint32_t l = 0; l < manifest->lists.count; l++) {
        const float *centroid = manifest->lists.centroids + (size_t)l * queries->dims;
        double sum = 0;
        for (uint32_t d = 0; d < queries->dims; d++) {
            double difference = (double)query[d] - (double)centroid[d];
            sum += is_l2 ? difference * difference : (double)query[d] * (double)centroid[d];
        }
        distances[l] = is_l2 ? sum : 2 - 2 * (double)queries->factors[q] * sum;
    }
    qsort(distances, manifest->lists.count, sizeof *distances, compare);
}

// Ratios [num_targets(manifest)][count] that take a query to its target.
static enum bsw_status find_ratios(const struct bsw_manifest *manifest,
                                   const struct some_queries *queries, int num_threads,
                                   double *ratios, struct bsw_error *err)
{
    uint32_t lists = manifest->lists.count, targets = num_targets(manifest);
    uint32_t rank = lists < BSW_COARSE_RANK ? lists : BSW_COARSE_RANK;
    double *distances;
    BSW_TRY(
        bsw_allocate(&distances, (size_t)num_threads * lists, sizeof *distances, "distances", err));
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
    for (size_t q = 0; q < queries->count; q++) {
        double *own = distances + (size_t)omp_get_thread_num() * lists;
        sort_distances(manifest, queries, q, own);
        for (uint32_t t = 0; t < targets; t++)
            ratios[t * queries->count + q] =
                own[rank - 1] > 0 ? own[num_lists_of[t] - 1] / own[rank - 1] : 1;
    }
    bsw_free(&distances);
    return BSW_OK;
}

// Each ratio once.
static void put_ratios(const struct bsw_manifest *manifest, const struct some_queries *queries,
                       double *ratios, struct bsw_calibrate_steps *out)
{
    double last = 0;
    for (uint32_t t = 0; t < num_targets(manifest); t++) {
        double ratio = bsw_median(ratios + t * queries->count, queries->count);
        ratio = ceil(ratio * RATIO_STEPS) / RATIO_STEPS;
        ratio = ratio < LEAST_RATIO ? LEAST_RATIO : ratio < MOST_RATIO ? ratio : MOST_RATIO;
        if (ratio <= last) continue;
        last = ratio;
        out->steps[out->num_steps++] =
            (struct bsw_probe_settings){.probe = bsw_search_most_probe(manifest), .ratio = ratio};
    }
}

static enum bsw_status make_ratios(const struct bsw_manifest *manifest, const bsw_vectors *vectors,
                                   const unsigned char *is_copy, enum bsw_cpu_level level,
                                   int num_threads, struct bsw_calibrate_steps *out,
                                   struct bsw_error *err)
{
    struct some_queries queries = {0};
    double *ratios = NULL;
    enum bsw_status status = read_queries(manifest, vectors, is_copy, level, &queries, err);
    if (status == BSW_OK)
        status = bsw_allocate(&ratios, num_targets(manifest) * queries.count, sizeof *ratios,
                              "ratios", err);
    if (status == BSW_OK) status = find_ratios(manifest, &queries, num_threads, ratios, err);
    if (status == BSW_OK) put_ratios(manifest, &queries, ratios, out);
    bsw_free(&ratios);
    bsw_free(&queries.rows);
    bsw_free(&queries.factors);
    return status;
}

// ---- dimensions ----

static void choose_scan_dims(const struct bsw_manifest *manifest, struct bsw_calibrate_steps *out)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    uint32_t dims = 0;
    if (manifest->codec->has_bytes || manifest->lists.is_residual) return;
    for (uint32_t s = 0; s + 1 < layout->num_segments; s++) {
        dims += 32 * layout->segments[s].words;
        if (3 * dims >= layout->padded_dims && out->num_scan_dims < BSW_CALIBRATE_MOST_DIMS)
            out->scan_dims[out->num_scan_dims++] = dims;
    }
}

// ---- steps ----

enum bsw_status bsw_calibrate_steps_make(const struct bsw_manifest *manifest, const char *queries,
                                         const unsigned char *is_copy, enum bsw_cpu_level level,
                                         int num_threads, struct bsw_calibrate_steps *out,
                                         struct bsw_error *err)
{
    bsw_vectors *vectors;
    enum bsw_status status = BSW_OK;
    *out = (struct bsw_calibrate_steps){0};
    choose_scan_dims(manifest, out);
    BSW_TRY(bsw_queries_open(queries, BSW_ALL_ROWS, &vectors, err));
    if (bsw_metrics[manifest->metric].has_distances)
        status = make_ratios(manifest, vectors, is_copy, level, num_threads, out, err);
    else
        for (uint32_t t = 0; t < num_targets(manifest); t++)
            out->steps[out->num_steps++].probe = num_lists_of[t];
    bsw_vectors_close(&vectors);
    if (status == BSW_OK) out->num_steps++; // all lists
    return status;
}
