// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate_steps.h"

#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
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
    int is_l2 = bsw_has_row_norms(manifest->metric);
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
    if (bsw_has_distances(manifest->metric))
        status = make_ratios(manifest, vectors, is_copy, level, num_threads, out, err);
    else
        for (uint32_t t = 0; t < num_targets(manifest); t++)
            out->steps[out->num_steps++].probe = num_lists_of[t];
    bsw_vectors_close(&vectors);
    if (status == BSW_OK) out->num_steps++; // all lists
    return status;
}

// ---- what they find ----

const uint32_t bsw_calibrate_oversamples[BSW_CALIBRATE_OVERSAMPLES] = {1, 2, 3, 5, 8, 12};

// Some roundings of float32: multiples of a row have one cosine but for these.
#define TIE 4e-7f

// Rows of one query: what is left out, then what is to be found. Both ascending.
struct query_rows {
    int64_t *out, *sought;
    uint64_t num_out, num_sought;
};

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int has(const int64_t *ids, uint64_t count, int64_t id)
{
    return bsearch(&id, ids, count, sizeof id, compare_ids) != NULL;
}

static int is_tie(float value, float other)
{
    return fabsf(value - other) <= TIE * fabsf(other);
}

// The value of a query's own row; whether it is known. Where nothing is nearer and the row itself
// is not there, its copies have taken all places.
static int find_own_value(const struct bsw_calibrate_lists *lists, uint64_t q, float *out)
{
    const struct bsw_results *truth = lists->truth;
    const int64_t *ids = truth->ids + q * truth->k;
    if (!lists->own) return 0;
    for (uint64_t i = 0; i < truth->k; i++) {
        if (ids[i] != (int64_t)lists->own[q]) continue;
        *out = truth->values[q * truth->k + i];
        return 1;
    }
    *out = truth->values[q * truth->k];
    return lists->own_is_nearest;
}

static void divide_truth(const struct bsw_calibrate_lists *lists, uint64_t q,
                         struct query_rows *rows)
{
    const struct bsw_results *truth = lists->truth;
    const int64_t *ids = truth->ids + q * truth->k;
    const float *values = truth->values + q * truth->k;
    uint64_t num_skipped = 0;
    float own_value, last = 0;
    int leaves_copies = find_own_value(lists, q, &own_value) && !lists->keeps_copies;
    rows->num_out = rows->num_sought = 0;
    if (lists->own) rows->out[rows->num_out++] = (int64_t)lists->own[q];
    for (uint64_t i = 0; i < truth->k && ids[i] >= 0; i++) {
        if (lists->own && ids[i] == (int64_t)lists->own[q]) continue;
        if (leaves_copies && is_tie(values[i], own_value)) {
            rows->out[rows->num_out++] = ids[i];
        } else if (num_skipped < lists->num_skipped) {
            rows->out[rows->num_out++] = ids[i];
            num_skipped++;
        } else if (rows->num_sought < lists->k || is_tie(values[i], last)) {
            if (rows->num_sought < lists->k) last = values[i];
            rows->sought[rows->num_sought++] = ids[i];
        } else {
            break;
        }
    }
    qsort(rows->out, rows->num_out, sizeof *rows->out, compare_ids);
    qsort(rows->sought, rows->num_sought, sizeof *rows->sought, compare_ids);
}

// A query that counts.
static void count_query(const struct bsw_calibrate_lists *lists, uint64_t q,
                        const struct query_rows *rows, struct bsw_calibrate_found *found)
{
    const struct bsw_results *candidates = lists->candidates;
    uint64_t most = rows->num_sought < lists->k ? rows->num_sought : lists->k;
    uint64_t place = 0, num_found = 0; // among candidates that are not left out
    found->num_queries++;
    found->num_sought += most;
    for (uint64_t i = 0; candidates && i < candidates->k && num_found < most; i++) {
        int64_t id = candidates->ids[q * candidates->k + i];
        if (id < 0) break;
        if (has(rows->out, rows->num_out, id)) continue;
        if (has(rows->sought, rows->num_sought, id)) {
            num_found++;
            for (int x = 0; x < BSW_CALIBRATE_OVERSAMPLES; x++)
                found->num_found[x] += place < lists->k * bsw_calibrate_oversamples[x];
        }
        place++;
    }
}

enum bsw_status bsw_calibrate_count(const struct bsw_calibrate_lists *lists,
                                    struct bsw_calibrate_found *all,
                                    struct bsw_calibrate_found *different, struct bsw_error *err)
{
    uint64_t most = lists->truth->k;
    struct query_rows rows;
    BSW_TRY(bsw_allocate(&rows.out, 2 * most + 1, sizeof *rows.out, "true rows", err));
    rows.sought = rows.out + most + 1;
    *all = *different = (struct bsw_calibrate_found){0};
    for (uint64_t q = 0; q < lists->truth->num_queries; q++) {
        divide_truth(lists, q, &rows);
        if (rows.num_sought < lists->k && !lists->has_all) continue;
        count_query(lists, q, &rows, all);
        if (!lists->is_copy || !lists->is_copy[q]) count_query(lists, q, &rows, different);
    }
    bsw_free(&rows.out);
    return BSW_OK;
}
