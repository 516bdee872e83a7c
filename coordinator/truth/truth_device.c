// SPDX-License-Identifier: Apache-2.0
// groundtruth on a GPU: queries in groups that memory holds, the rank's rows streamed through the
// device once for each group.
#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "common/job/stop_signal.h"
#include "coordinator/truth/truth_backend.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/refine/refine.h"
#include "shard/exact/device_neighbours.h"

#define LISTS_BUDGET_BYTES ((size_t)1 << 30)

struct truth_device {
    struct bsw_neighbour_needs needs;
    const struct bsw_refine_table *refine;
    const struct bsw_select_table *select;
    const struct bsw_merge_table *merge;
    size_t dims, query_bytes, group_queries;
    unsigned char *raw; // queries of a group
    double *norms, *row;
    uint64_t *scores; // [group_queries][keep]
    uint32_t *rows;   // the same
    uint32_t *counts;
    void *scratch;                // of a list
    struct bsw_exact_best *lists; // of a group, sorted
    struct bsw_device_neighbours neighbours;
    struct bsw_progress *progress; // borrowed
    uint64_t progress_base, dropped_rows;
    struct bsw_buffer allowed; // bits of rows under way
};

static enum bsw_status allocate(struct truth_device *job, struct bsw_error *err)
{
    size_t count = job->group_queries;
    BSW_TRY(bsw_allocate(&job->raw, count, job->query_bytes, "queries", err));
    BSW_TRY(bsw_allocate(&job->norms, count, sizeof(double), "queries", err));
    BSW_TRY(bsw_allocate(&job->row, job->dims, sizeof(double), "queries", err));
    BSW_TRY(bsw_allocate(&job->scores, count * job->needs.keep, sizeof(uint64_t), "lists", err));
    BSW_TRY(bsw_allocate(&job->rows, count * job->needs.keep, sizeof(uint32_t), "lists", err));
    BSW_TRY(bsw_allocate(&job->scratch, bsw_exact_best_scratch_bytes(job->needs.keep), 1, "lists",
                         err));
    BSW_TRY(bsw_allocate(&job->lists, count, sizeof *job->lists, "lists", err));
    return bsw_allocate(&job->counts, count, sizeof *job->counts, "counts", err);
}

static enum bsw_status open_job(const struct bsw_neighbour_needs *needs, bsw_device *device,
                                struct truth_device *out, struct bsw_error *err)
{
    size_t dims = bsw_vectors_dims(needs->base), bytes = bsw_vectors_row_bytes(needs->queries);
    size_t fit = LISTS_BUDGET_BYTES / (needs->keep * (sizeof(uint64_t) + sizeof(uint32_t)) + bytes);
    uint64_t num_queries = bsw_vectors_num_rows(needs->queries);
    *out = (struct truth_device){
        .needs = *needs,
        .refine = bsw_refine_table_get(needs->level),
        .select = bsw_select_table_get(needs->level),
        .merge = bsw_merge_table_get(needs->level),
        .dims = dims,
        .query_bytes = bytes,
        .group_queries = fit < 1             ? 1
                         : fit > num_queries ? (size_t)num_queries
                                             : fit,
    };
    const struct bsw_device_neighbours_needs device_needs = {.metric = needs->metric,
                                                             .type = bsw_vectors_type(needs->base),
                                                             .query_type =
                                                                 bsw_vectors_type(needs->queries),
                                                             .dims = (uint32_t)dims,
                                                             .num_rows = (uint32_t)needs->num_rows,
                                                             .max_queries = out->group_queries,
                                                             .keep = needs->keep,
                                                             .num_threads = needs->num_threads};
    BSW_TRY(allocate(out, err));
    return bsw_device_neighbours_open(device, &device_needs, &out->neighbours, err);
}

static void close_device(void *state)
{
    struct truth_device *job = state;
    if (!job) return;
    bsw_device_neighbours_close(&job->neighbours);
    bsw_free(&job->raw);
    bsw_free(&job->norms);
    bsw_free(&job->row);
    bsw_free(&job->scores);
    bsw_free(&job->rows);
    bsw_free(&job->scratch);
    bsw_free(&job->lists);
    bsw_free(&job->counts);
    bsw_buffer_deinit(&job->allowed);
    bsw_free(&job);
}

static enum bsw_status open_device(const struct bsw_neighbour_needs *needs, bsw_device *device,
                                   void **state, struct bsw_error *err)
{
    struct truth_device *job;
    *state = NULL;
    BSW_TRY(bsw_allocate_zero(&job, 1, sizeof *job, "scan", err));
    enum bsw_status status = open_job(needs, device, job, err);
    if (status != BSW_OK)
        close_device(job);
    else
        *state = job;
    return status;
}

// This rank's rows, those of every group.
static uint64_t total(const void *state, uint64_t num_rows)
{
    const struct truth_device *job = state;
    (void)num_rows;
    return (bsw_vectors_num_rows(job->needs.queries) + job->group_queries - 1) /
           job->group_queries * job->needs.num_rows;
}

// ---- queries ----

static enum bsw_status load_query(struct truth_device *job, size_t q, uint64_t row,
                                  struct bsw_error *err)
{
    const bsw_vectors *queries = job->needs.queries;
    unsigned char *raw = job->raw + q * job->query_bytes;
    BSW_TRY(bsw_vectors_read(queries, row, 1, raw, err));
    job->refine->to_double(bsw_vectors_type(queries), raw, job->dims, job->row);
    job->norms[q] = job->refine->squared_norm(job->row, job->dims);
    enum bsw_row_fault fault = bsw_row_fault_of(job->norms[q], job->needs.metric);
    if (fault == BSW_ROW_GOOD) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu %s", bsw_vectors_name(queries),
                    (unsigned long long)row, bsw_row_fault_text(fault));
}

static enum bsw_status load_queries(struct truth_device *job, uint64_t first, size_t count,
                                    struct bsw_error *err)
{
    uint64_t from = bsw_vectors_first_row(job->needs.queries) + first;
    for (size_t q = 0; q < count; q++) BSW_TRY(load_query(job, q, from + q, err));
    return BSW_OK;
}

// ---- rows ----

static enum bsw_status read_rows(void *context, size_t first, size_t count, void *to,
                                 struct bsw_error *err)
{
    const struct truth_device *job = context;
    return bsw_vectors_read(job->needs.base, job->needs.first_row + first, count, to, err);
}

// One mask of all queries.
static enum bsw_status read_allowed(struct truth_device *job, size_t first, size_t count,
                                    struct bsw_error *err)
{
    const struct bsw_neighbour_filter *filter = job->needs.filter;
    uint64_t row = job->needs.filter_row + first;
    if (!filter) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&job->allowed, (count / 32 + 2) * sizeof(uint32_t), err));
    return filter->read(filter->context, 0, row - row % 32, count + (size_t)(row % 32),
                        (uint32_t *)(void *)job->allowed.data, err);
}

static int is_allowed(const struct truth_device *job, size_t first, size_t r)
{
    size_t bit = (size_t)((job->needs.filter_row + first) % 32) + r;
    if (!job->needs.filter) return 1;
    return bsw_row_bit((const uint32_t *)(const void *)job->allowed.data, bit);
}

static enum bsw_status judge_rows(void *context, size_t first, size_t count, const double *norms,
                                  uint32_t *masks, struct bsw_error *err)
{
    struct truth_device *job = context;
    if (bsw_stop_is_asked()) return bsw_stop_fail(err);
    if (first == 0) job->dropped_rows = 0;
    BSW_TRY(read_allowed(job, first, count, err));
    for (size_t r = 0; r < count; r++) {
        enum bsw_row_fault fault = bsw_row_fault_of(norms[r], job->needs.metric);
        if (fault == BSW_ROW_GOOD) {
            masks[r / 32] |= (uint32_t)is_allowed(job, first, r) << r % 32;
            continue;
        }
        if (!job->needs.drop_bad_rows) {
            return bsw_fail(
                err, BSW_ERROR_BAD_DATA, "%s: row %llu %s", bsw_vectors_name(job->needs.base),
                (unsigned long long)(job->needs.first_row + first + r), bsw_row_fault_text(fault));
        }
        job->dropped_rows++;
    }
    bsw_progress_update(job->progress, job->progress_base + first + count);
    return BSW_OK;
}

static enum bsw_status find_group(struct truth_device *job, uint64_t first, size_t count,
                                  struct bsw_error *err)
{
    const struct bsw_device_row_source source = {job, read_rows, judge_rows};
    const struct bsw_device_query_rows queries = {job->raw, job->norms};
    BSW_TRY(load_queries(job, first, count, err));
    BSW_TRY(bsw_device_neighbours_find(&job->neighbours, &queries, count, &source, job->scores,
                                       job->rows, job->counts, err));
    for (size_t q = 0; q < count; q++) {
        size_t keep = job->neighbours.needs.keep; // no more than there are rows
        struct bsw_exact_best *list = &job->lists[q];
        bsw_exact_best_init(list, job->scores + q * keep, job->rows + q * keep, keep, keep);
        list->count = job->counts[q];
        bsw_exact_best_order_rows(list, job->merge, job->scratch);
        bsw_exact_best_sort(list, job->select, job->merge, job->scratch);
    }
    return BSW_OK;
}

static enum bsw_status run_device(void *state, const struct bsw_truth_pass *pass,
                                  struct bsw_error *err)
{
    struct truth_device *job = state;
    struct bsw_truth_merge *merge = pass->merge;
    uint64_t num_queries = bsw_vectors_num_rows(job->needs.queries);
    job->progress = pass->settings->progress;
    for (uint64_t first = 0; first < num_queries; first += job->group_queries) {
        uint64_t left = num_queries - first;
        size_t count = left < job->group_queries ? (size_t)left : job->group_queries;
        enum bsw_status status = find_group(job, first, count, err);
        job->progress_base += job->needs.num_rows;
        BSW_TRY(bsw_transport_agree(merge->transport, status, err));
        BSW_TRY(bsw_truth_merge_group(merge, first, count, job->lists, err));
    }
    return BSW_OK;
}

static void tell(const void *state, struct bsw_truth_stats *out)
{
    const struct truth_device *job = state;
    const struct bsw_screen_figures *screened = &job->neighbours.screen.figures;
    out->num_dropped_rows = job->dropped_rows;
    out->num_screened = screened->pairs;
    out->num_survivors = screened->survivors;
    out->num_screen_overflows = screened->overflows;
    out->is_integer = job->neighbours.is_integer;
}

const struct bsw_truth_backend bsw_truth_device = {
    .open = open_device,
    .close = close_device,
    .total = total,
    .run = run_device,
    .tell = tell,
};
