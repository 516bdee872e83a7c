// SPDX-License-Identifier: Apache-2.0
// Exact values of the survivors of a shard, from raw rows in ascending order.
#include <omp.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/codes/metric.h"
#include "shard/host/shard_scan.h"

struct refinement {
    const struct bsw_resident_shard *shard;
    const struct bsw_manifest *manifest;
    const struct bsw_query_batch *batch;
    const struct bsw_refine_table *table;
    size_t first_query, num_queries;
    const size_t *offsets; // [num_queries + 1]: where each query's survivors begin
    const double *vectors; // [num_queries][dims]
    const double *norms;   // [num_queries]
    struct bsw_survivor *out;
};

// Candidates by ascending row: halves swapped, the packed form sorts by complemented row,
// descending.
static void order_by_row(const struct bsw_scan_workspace *workspace, uint64_t *items, size_t count,
                         uint64_t *scratch)
{
    for (size_t i = 0; i < count; i++) items[i] = items[i] << 32 | items[i] >> 32;
    workspace->merge->sort_candidates(items, count, scratch);
    for (size_t i = 0; i < count; i++) items[i] = items[i] << 32 | items[i] >> 32;
}

static enum bsw_status list_survivors(const struct bsw_candidate_lists *lists, const size_t *counts,
                                      const size_t *offsets, struct bsw_scan_workspace *workspace,
                                      struct bsw_survivor *out, struct bsw_error *err)
{
    size_t most = 0;
    for (size_t q = 0; q < lists->num_queries; q++) most = counts[q] > most ? counts[q] : most;
    if (most == 0) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&workspace->scratch,
                               (size_t)workspace->num_threads * 2 * most * sizeof(uint64_t), err));
#pragma omp parallel for schedule(dynamic, 8) num_threads(workspace->num_threads)
    for (size_t q = 0; q < lists->num_queries; q++) {
        uint64_t *items =
            (uint64_t *)(void *)workspace->scratch.data + (size_t)omp_get_thread_num() * 2 * most;
        size_t available;
        const uint64_t *list = bsw_candidate_list(lists, q, &available);
        memcpy(items, list, counts[q] * sizeof *items);
        order_by_row(workspace, items, counts[q], items + most);
        for (size_t i = 0; i < counts[q]; i++) {
            out[offsets[q] + i] = (struct bsw_survivor){.score = bsw_candidate_score(items[i]),
                                                        .row = bsw_candidate_row(items[i])};
        }
    }
    return BSW_OK;
}

// Rows lie far apart, so each would be a miss of every cache, and of the address cache: asked for
// while others are computed, so many at once that their misses overlap.
#define ROWS_AHEAD 32

static void prefetch_places(const struct refinement *job, size_t first, size_t last)
{
    for (size_t i = first; i < last && i < first + ROWS_AHEAD; i++)
        bsw_raw_rows_prefetch_place(&job->shard->raw_rows, job->out[i].row);
}

static void prefetch_rows(const struct refinement *job, size_t first, size_t last)
{
    for (size_t i = first; i < last && i < first + ROWS_AHEAD; i++)
        bsw_raw_rows_prefetch(&job->shard->raw_rows, job->out[i].row);
}

static enum bsw_status refine_range(const struct refinement *job, size_t first, size_t last,
                                    void *scratch, struct bsw_error *err)
{
    size_t query = 0, high = job->num_queries - 1, dims = bsw_manifest_row_dims(job->manifest);
    while (query < high) { // the last query that begins at or before `first`
        size_t middle = (query + high + 1) / 2;
        if (job->offsets[middle] <= first)
            query = middle;
        else
            high = middle - 1;
    }
    prefetch_places(job, first, last);
    prefetch_places(job, first + ROWS_AHEAD, last);
    prefetch_rows(job, first, last);
    for (size_t i = first; i < last; i++) {
        while (job->offsets[query + 1] <= i) query++;
        const void *row;
        uint32_t local_row = job->out[i].row;
        if ((i - first) % ROWS_AHEAD == 0) {
            prefetch_places(job, i + 2 * ROWS_AHEAD, last);
            prefetch_rows(job, i + ROWS_AHEAD, last);
        }
        BSW_TRY(bsw_raw_rows_get(&job->shard->raw_rows, local_row, job->shard->arrays.row_digests,
                                 scratch, &row, err));
        job->out[i].value =
            job->table->value(job->manifest->metric, job->manifest->source_type, row,
                              job->vectors + query * dims, job->norms[query], dims);
    }
    return BSW_OK;
}

// Rows of a range: as many as hide their misses, but fewer where threads would have none.
#define MOST_RANGE_ROWS  256
#define LEAST_RANGE_ROWS 64

static size_t find_range_rows(size_t total, int num_threads)
{
    size_t rows = total / (4 * (size_t)num_threads);
    rows = rows < MOST_RANGE_ROWS ? rows : MOST_RANGE_ROWS;
    return rows > LEAST_RANGE_ROWS ? rows : LEAST_RANGE_ROWS;
}

static enum bsw_status refine_all(const struct refinement *job, size_t total, int num_threads,
                                  struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
    size_t range_rows = find_range_rows(total, num_threads),
           num_ranges = (total + range_rows - 1) / range_rows;
#pragma omp parallel num_threads(num_threads)
    {
        struct bsw_error thread_error;
        void *scratch;
        enum bsw_status allocated = bsw_allocate(&scratch, job->shard->raw_rows.row_bytes, 1,
                                                 "generated row", &thread_error);
#pragma omp for schedule(dynamic)
        for (size_t range = 0; range < num_ranges; range++) {
            size_t first = range * range_rows,
                   last = first + range_rows < total ? first + range_rows : total;
            enum bsw_status result = allocated;
            if (result == BSW_OK) result = refine_range(job, first, last, scratch, &thread_error);
            if (result != BSW_OK) bsw_first_failure_note(&failure, range, result, &thread_error);
        }
        bsw_free(&scratch);
    }
    return bsw_first_failure_report(&failure, err);
}

static enum bsw_status convert_queries(struct refinement *job, struct bsw_scan_workspace *workspace,
                                       struct bsw_error *err)
{
    size_t dims = bsw_manifest_row_dims(job->manifest), numbers = job->num_queries * dims;
    BSW_TRY(bsw_buffer_reserve(&workspace->queries, (numbers + job->num_queries) * sizeof(double),
                               err));
    double *vectors = (double *)(void *)workspace->queries.data, *norms = vectors + numbers;
    workspace->refine->to_double(BSW_VECTOR_FLOAT32, job->batch->vectors + job->first_query * dims,
                                 numbers, vectors);
    for (size_t q = 0; q < job->num_queries; q++) {
        norms[q] = workspace->refine->squared_norm(vectors + q * dims, dims);
    }
    job->vectors = vectors;
    job->norms = norms;
    return BSW_OK;
}

enum bsw_status bsw_shard_refine(const struct bsw_resident_shard *shard,
                                 const struct bsw_manifest *manifest,
                                 const struct bsw_query_batch *batch, size_t first_query,
                                 const struct bsw_candidate_lists *lists, const size_t *counts,
                                 int exact, struct bsw_scan_workspace *workspace,
                                 struct bsw_survivor *out, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    size_t num_queries = lists->num_queries;
    BSW_TRY(bsw_buffer_reserve(&workspace->offsets, (num_queries + 1) * sizeof(size_t), err));
    size_t *offsets = (size_t *)(void *)workspace->offsets.data;
    offsets[0] = 0;
    for (size_t q = 0; q < num_queries; q++) offsets[q + 1] = offsets[q] + counts[q];
    BSW_TRY(list_survivors(lists, counts, offsets, workspace, out, err));
    if (exact && offsets[num_queries] > 0) {
        struct refinement job = {.shard = shard,
                                 .manifest = manifest,
                                 .batch = batch,
                                 .table = workspace->refine,
                                 .first_query = first_query,
                                 .num_queries = num_queries,
                                 .offsets = offsets,
                                 .out = out};
        BSW_TRY(convert_queries(&job, workspace, err));
        BSW_TRY(refine_all(&job, offsets[num_queries], workspace->num_threads, err));
    }
    workspace->refine_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}
