// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/code_check.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "common/files/list_order.h"
#include "common/rows/memory_rows.h"
#include "coordinator/job/memory_answers.h"
#include "coordinator/search/search.h"
#include "shard/codecs/codec.h"
#include "shard/lists/list_assignment.h"

#define LEAST_ROWS     200
#define MOST_ROWS      8192
#define MOST_WORK      ((uint64_t)20000000000) // rows * dims * dims
#define MOST_QUERIES   200
#define MOST_LISTS     256 // of residuals, with all their rows in the sample
#define NEIGHBOURS     BSW_CODE_CHECK_K
#define CANDIDATES     BSW_CODE_CHECK_CANDIDATES
#define LIST_SEED      0x636f6465u
#define ROWS_NAME      BSW_MEMORY_PREFIX "rows of the sample"
#define QUERIES_NAME   BSW_MEMORY_PREFIX "queries of the sample"
#define FEW_DISTINCT   0.1  // of rows
#define TIGHT_DISTANCE 1e-3 // of neighbours, squared, to that of rows from their mean

// Rows as floats with their factors multiplied in, those that become queries too.
struct check {
    struct bsw_manifest *manifest;
    enum bsw_cpu_level level;
    uint32_t dims;
    size_t most_rows, num_rows, num_queries, num_distinct;
    size_t own[MOST_QUERIES]; // the row that a query is
    float *rows;              // [most_rows][dims]
    uint32_t *lists;          // [most_rows] of residuals
    float *queries;           // [MOST_QUERIES][dims]
    uint64_t *digests;        // [most_rows]
    double *spread;           // [MOST_QUERIES]: squared distance of its k-th neighbour
    struct bsw_results found;
    struct bsw_manifest small; // of the rows; arrays borrowed but for its shards
};

static size_t most_rows(const struct check *c)
{
    uint64_t most = MOST_WORK / ((uint64_t)c->dims * c->dims);
    return most < LEAST_ROWS * 5 ? LEAST_ROWS * 5 : most < MOST_ROWS ? (size_t)most : MOST_ROWS;
}

static enum bsw_status allocate(struct check *c, struct bsw_error *err)
{
    size_t rows = c->most_rows;
    BSW_TRY(bsw_allocate(&c->rows, rows * c->dims, sizeof(float), "sample", err));
    BSW_TRY(bsw_allocate(&c->lists, rows, sizeof *c->lists, "sample", err));
    BSW_TRY(bsw_allocate(&c->digests, rows, sizeof *c->digests, "sample", err));
    BSW_TRY(bsw_allocate(&c->spread, MOST_QUERIES, sizeof *c->spread, "sample", err));
    return bsw_allocate(&c->queries, (size_t)MOST_QUERIES * c->dims, sizeof(float), "sample", err);
}

static void deinit(struct check *c)
{
    bsw_free(&c->rows);
    bsw_free(&c->lists);
    bsw_free(&c->digests);
    bsw_free(&c->spread);
    bsw_free(&c->queries);
    bsw_free(&c->small.shards);
    bsw_results_deinit(&c->found);
}

// ---- rows ----

// Under cosine rows are what their codes are of, so that one scale serves all.
static void take_row(struct check *c, const float *row, float factor, uint32_t list)
{
    float *to = c->rows + c->num_rows * c->dims;
    for (uint32_t d = 0; d < c->dims; d++) to[d] = row[d] * factor + 0.0f;
    c->digests[c->num_rows] = XXH3_64bits(to, c->dims * sizeof *to);
    c->lists[c->num_rows++] = list;
}

// For residuals all rows of some lists, which then have neighbours in them as in the index; else
// rows at equal distances in the sample.
static int is_taken(const struct check *c, uint64_t place, uint64_t num_places, uint32_t list)
{
    uint32_t num_lists = c->manifest->lists.count;
    if (!c->manifest->lists.is_residual)
        return place * c->most_rows / num_places != (place + 1) * c->most_rows / num_places ||
               num_places <= c->most_rows;
    return list != BSW_NO_LIST && bsw_hash2(LIST_SEED, list) % num_lists < MOST_LISTS;
}

static enum bsw_status take_rows(struct check *c, struct bsw_sample *sample,
                                 bsw_list_assigner *assigner, struct bsw_error *err)
{
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    uint32_t lists[BSW_SAMPLE_TILE] = {0};
    size_t num;
    uint64_t place = 0;
    bsw_sample_rewind(sample, "check of the codes");
    for (;;) {
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num, err));
        if (num == 0) return BSW_OK;
        const struct bsw_list_assignment assignment = {
            .rows = rows, .num_rows = num, .lists = lists};
        if (assigner) bsw_list_assigner_assign(assigner, &assignment);
        for (size_t r = 0; r < num && c->num_rows < c->most_rows; r++, place++)
            if (is_taken(c, place, sample->num_rows, lists[r]))
                take_row(c, rows + r * c->dims, factors[r], lists[r]);
    }
}

static enum bsw_status open_assigner(const struct check *c, bsw_list_assigner **out,
                                     struct bsw_error *err)
{
    *out = NULL;
    if (!c->manifest->lists.is_residual) return BSW_OK;
    return bsw_list_assigner_open_lists(c->manifest, BSW_VECTOR_FLOAT32, c->dims, c->level, out,
                                        err);
}

static enum bsw_status read_rows(struct check *c, const bsw_vectors *vectors, struct bsw_error *err)
{
    struct bsw_sample sample;
    bsw_list_assigner *assigner = NULL;
    BSW_TRY(bsw_sample_create(vectors, c->manifest->metric, c->level, &sample, err));
    enum bsw_status status = open_assigner(c, &assigner, err);
    if (status == BSW_OK) status = take_rows(c, &sample, assigner, err);
    bsw_list_assigner_close(&assigner);
    bsw_sample_deinit(&sample);
    return status;
}

// ---- queries ----

static int compare_digests(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static enum bsw_status count_distinct(struct check *c, struct bsw_error *err)
{
    uint64_t *sorted;
    BSW_TRY(bsw_allocate(&sorted, c->num_rows, sizeof *sorted, "sample", err));
    memcpy(sorted, c->digests, c->num_rows * sizeof *sorted);
    qsort(sorted, c->num_rows, sizeof *sorted, compare_digests);
    for (size_t i = 0; i < c->num_rows; i++)
        c->num_distinct += i == 0 || sorted[i] != sorted[i - 1];
    bsw_free(&sorted);
    return BSW_OK;
}

static int is_query_already(const struct check *c, const uint64_t *taken, uint64_t digest)
{
    for (size_t q = 0; q < c->num_queries; q++)
        if (taken[q] == digest) return 1;
    return 0;
}

// Distinct rows, in a drawn order. Each stays a row, too, and is left out of its own answer.
static void draw_queries(struct check *c)
{
    uint64_t taken[MOST_QUERIES];
    size_t most = c->num_distinct < MOST_QUERIES ? c->num_distinct : MOST_QUERIES;
    for (size_t r = 0; r < c->num_rows && c->num_queries < most; r++) {
        // Rows of which many are copies come no more often than others.
        if (bsw_hash2(c->digests[r], 0) % c->num_distinct >= 2 * most) continue;
        if (is_query_already(c, taken, c->digests[r])) continue;
        taken[c->num_queries] = c->digests[r];
        c->own[c->num_queries] = r;
        memcpy(c->queries + c->num_queries++ * c->dims, c->rows + r * c->dims,
               c->dims * sizeof(float));
    }
}

// ---- the search ----

// An index of the rows alone, in memory.
static enum bsw_status make_small(struct check *c, struct bsw_error *err)
{
    struct bsw_manifest *small = &c->small;
    *small = *c->manifest;
    small->first_row = 0;
    small->num_rows = small->source_rows = c->num_rows;
    small->dropped_rows = 0;
    small->num_known = 0;
    small->known = NULL;
    small->shards = NULL;
    small->calibration = (struct bsw_calibration){0};
    small->source_is_copied = 0;
    small->source_type = BSW_VECTOR_FLOAT32;
    snprintf(small->source_path, sizeof small->source_path, "%s", ROWS_NAME);
    small->lists.has_ordered_vectors = 0;
    if (!small->lists.is_residual) small->lists = (struct bsw_manifest_lists){0};
    BSW_TRY(bsw_manifest_cut_shards(small, 1, err));
    if (small->lists.count == 0) return BSW_OK;
    return bsw_list_order_count(c->lists, c->num_rows, small->lists.count,
                                &small->shards[0].num_places, err);
}

static enum bsw_status search(struct check *c, struct bsw_transport *alone, struct bsw_error *err)
{
    struct bsw_search search = {0};
    const struct bsw_search_sink sink = {.answers = bsw_memory_sink(&c->found)};
    const struct bsw_search_run run = {
        .queries = QUERIES_NAME, .query_rows = BSW_ALL_ROWS, .repeat = 1, .sink = &sink};
    const struct bsw_search_options options = {
        .manifest = &c->small,
        .request = {.k = CANDIDATES + 1,
                    .oversample = 1,
                    .batch = MOST_QUERIES,
                    .probe = c->small.lists.count > 0 ? BSW_PROBE_ALL : 0,
                    .merge = BSW_MERGE_GATHER,
                    .level = c->level,
                    .num_threads = omp_get_max_threads()},
        .device.text = "cpu",
        .overlap = BSW_OVERLAP_OFF,
        .is_unchecked = 1};
    enum bsw_status status = bsw_search_open(&search, alone, &options, err);
    if (status == BSW_OK) status = bsw_search_run(&search, &run, err);
    bsw_search_close(&search);
    return status;
}

static enum bsw_status search_rows(struct check *c, struct bsw_error *err)
{
    struct bsw_memory_rows rows = {ROWS_NAME, c->rows,     BSW_VECTOR_FLOAT32,
                                   c->dims,   c->num_rows, NULL},
                           queries = {QUERIES_NAME, c->queries,     BSW_VECTOR_FLOAT32,
                                      c->dims,      c->num_queries, NULL};
    struct bsw_transport alone = {0};
    BSW_TRY(make_small(c, err));
    BSW_TRY(bsw_memory_rows_lend(&rows, err));
    enum bsw_status status = bsw_memory_rows_lend(&queries, err);
    bsw_transport_local_init(&alone);
    if (status == BSW_OK) status = search(c, &alone, err);
    bsw_transport_close(&alone, 0);
    if (status == BSW_OK || queries.next) bsw_memory_rows_take_back(&queries);
    bsw_memory_rows_take_back(&rows);
    return status;
}

// ---- recall ----

#define LANES 8

// The nearer the larger: the product, or under l2 the distance, negative.
static double exact_key(const float *query, const float *row, uint32_t dims, int is_l2)
{
    double sums[LANES] = {0}, sum = 0;
    uint32_t d = 0;
    for (; d + LANES <= dims && is_l2; d += LANES)
        for (uint32_t i = 0; i < LANES; i++) {
            double x = (double)row[d + i] - (double)query[d + i];
            sums[i] -= x * x;
        }
    for (; d + LANES <= dims; d += LANES)
        for (uint32_t i = 0; i < LANES; i++) sums[i] += (double)row[d + i] * (double)query[d + i];
    for (; d < dims; d++) {
        double x = row[d], q = query[d];
        sum += is_l2 ? -(x - q) * (x - q) : x * q;
    }
    for (uint32_t i = 0; i < LANES; i++) sum += sums[i];
    return sum;
}

static int compare_falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

// The largest but NEIGHBOURS - 1.
static double nearest_key(const double *keys, size_t num)
{
    double best[NEIGHBOURS];
    size_t count = 0;
    for (size_t i = 0; i < num; i++) {
        if (count == NEIGHBOURS && keys[i] <= best[NEIGHBOURS - 1]) continue;
        size_t at = count < NEIGHBOURS ? count++ : NEIGHBOURS - 1;
        for (; at > 0 && best[at - 1] < keys[i]; at--) best[at] = best[at - 1];
        best[at] = keys[i];
    }
    return best[count - 1];
}

// How many of the nearest are among the candidates; rows that are equally near are all the same.
static uint32_t count_query(struct check *c, size_t q, double *keys)
{
    const float *query = c->queries + q * c->dims;
    size_t k = (size_t)c->found.k, num = 0;
    uint32_t found = 0;
    int is_l2 = c->manifest->metric == BSW_METRIC_L2;
    for (size_t r = 0; r < c->num_rows; r++)
        keys[r] = exact_key(query, c->rows + r * c->dims, c->dims, is_l2);
    keys[c->own[q]] = -INFINITY;
    double limit = nearest_key(keys, c->num_rows);
    for (size_t i = 0; i < k && num < CANDIDATES; i++) {
        int64_t id = c->found.ids[q * k + i];
        if (id < 0 || (size_t)id == c->own[q]) continue;
        found += keys[id] >= limit;
        num++;
    }
    c->spread[q] = -limit;
    return found < NEIGHBOURS ? found : NEIGHBOURS;
}

static enum bsw_status count(struct check *c, struct bsw_error *err)
{
    double *keys;
    size_t threads = (size_t)omp_get_max_threads();
    uint64_t found = 0;
    BSW_TRY(bsw_allocate(&keys, threads * c->num_rows, sizeof *keys, "sample", err));
#pragma omp parallel for schedule(dynamic) reduction(+ : found)
    for (size_t q = 0; q < c->num_queries; q++)
        found += count_query(c, q, keys + (size_t)omp_get_thread_num() * c->num_rows);
    bsw_free(&keys);
    c->manifest->check.recall = (double)found / (double)(NEIGHBOURS * c->num_queries);
    c->manifest->check.num_queries = (uint32_t)c->num_queries;
    c->manifest->check.num_rows = (uint32_t)c->num_rows;
    return BSW_OK;
}

// ---- causes ----

// Whether rows lie in groups that are small beside the distances between them; known of l2 alone.
static int is_tight(struct check *c)
{
    double square = 0;
    double *mean;
    if (c->manifest->metric != BSW_METRIC_L2) return 0;
    if (bsw_allocate_zero(&mean, c->dims, sizeof *mean, "sample", NULL) != BSW_OK) return 0;
    for (size_t i = 0; i < c->num_rows * c->dims; i++)
        mean[i % c->dims] += (double)c->rows[i] / (double)c->num_rows;
    for (size_t i = 0; i < c->num_rows * c->dims; i++) {
        double x = (double)c->rows[i] - mean[i % c->dims];
        square += x * x / (double)c->num_rows;
    }
    bsw_free(&mean);
    qsort(c->spread, c->num_queries, sizeof *c->spread, compare_falling);
    return c->spread[c->num_queries / 2] < TIGHT_DISTANCE * square;
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

static void find_cause(struct check *c, const struct bsw_sample_far *far)
{
    struct bsw_code_check *check = &c->manifest->check;
    double distinct = (double)c->num_distinct / (double)c->num_rows;
    if (far && far->num_rows > 0) say_far(far, check->cause, sizeof check->cause);
    if (!bsw_code_check_is_low(check) || check->cause[0]) return;
    if (distinct < FEW_DISTINCT)
        snprintf(check->cause, sizeof check->cause,
                 "only %zu of %zu rows of the sample are distinct: without copies codes fit the "
                 "others better",
                 c->num_distinct, c->num_rows);
    else if (is_tight(c))
        snprintf(
            check->cause, sizeof check->cause,
            "rows lie in tight groups far from each other, and these bits do not reach into the "
            "groups: --codec pq with --lists does");
    else
        snprintf(check->cause, sizeof check->cause,
                 "too few bits to tell these rows apart: give more --bits%s, or search with more "
                 "--oversample",
                 c->manifest->codec->has_tables ? " or --subspaces" : ", try --codec pq");
}

enum bsw_status bsw_code_check_run(const bsw_vectors *vectors, const struct bsw_sample_far *far,
                                   enum bsw_cpu_level level, struct bsw_manifest *manifest,
                                   struct bsw_error *err)
{
    struct check c = {
        .manifest = manifest, .level = level, .dims = bsw_manifest_row_dims(manifest)};
    manifest->check = (struct bsw_code_check){0};
    if (manifest->codec->table->has_exact_keys || bsw_vectors_num_rows(vectors) < LEAST_ROWS)
        return BSW_OK;
    c.most_rows = most_rows(&c);
    enum bsw_status status = allocate(&c, err);
    if (status == BSW_OK) status = read_rows(&c, vectors, err);
    if (status == BSW_OK) status = count_distinct(&c, err);
    if (status == BSW_OK) draw_queries(&c);
    if (status == BSW_OK && c.num_queries > 0 && c.num_rows >= LEAST_ROWS) {
        status = search_rows(&c, err);
        if (status == BSW_OK) status = count(&c, err);
        if (status == BSW_OK) find_cause(&c, far);
    }
    deinit(&c);
    return status == BSW_OK ? BSW_OK : bsw_prefix(err, status, "check of the codes: ");
}
