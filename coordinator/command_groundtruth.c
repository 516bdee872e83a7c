// groundtruth: exact nearest neighbours. Every rank streams its range of rows once for each group
// of queries, block by block; its k best a query go to rank 0, which merges them in the total
// order.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/progress.h"
#include "common/result_file.h"
#include "common/result_order.h"
#include "coordinator/command.h"
#include "coordinator/device_choice.h"
#include "coordinator/same_input.h"
#include "coordinator/sidecar.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/exact/exact.h"
#include "kernels/merge/merge.h"
#include "kernels/refine/refine.h"
#include "shard/device_neighbours.h"
#include "shard/running_best.h"

enum { MESSAGE_NEIGHBOURS = 48 };

#define QUERY_TILE         16
#define BLOCK_NUMBERS      65536 // float64 rows of a block: 512 KiB, inside the second cache
#define MAX_BLOCK_ROWS     1024
#define LISTS_BUDGET_BYTES ((size_t)1 << 30)

struct groundtruth_options {
    struct bsw_common_options common;
    const char *base, *queries, *out, *metric, *device;
    uint64_t k, device_memory;
    struct bsw_row_range rows, query_rows;
    int drop_bad_rows, force;
};

// Rows or queries as the exact kernels want them: float64, or int16 when both sides are integers of
// one type.
struct exact_numbers {
    double *doubles;
    int16_t *integers;
    double *norms; // squared, for cosine
};

struct groundtruth_job {
    struct groundtruth_options options;
    struct bsw_transport *transport;
    enum bsw_metric metric;
    bsw_vectors *base, *queries;
    const struct bsw_exact_table *exact;
    const struct bsw_refine_table *refine;
    const struct bsw_select_table *select;
    const struct bsw_merge_table *merge;
    bsw_result_writer *writer; // rank 0
    int is_integer;
    size_t dims, block_rows, group_queries;
    struct exact_numbers rows, query_numbers;
    unsigned char *raw; // one block, or a tile of queries
    double *wide;       // one block in float64, for norms and checks of integer rows too
    float *keys;        // [threads][QUERY_TILE][block_rows]
    uint32_t *row_ids;  // [block_rows]: places of the block's good rows
    struct bsw_running_best *lists; // [group_queries]
    struct bsw_buffer list_items, scratch, message;
    uint64_t dropped_rows;
    double seconds;
    bsw_device *device; // of this rank, or NULL
    struct bsw_device_neighbours neighbours;
    uint32_t *counts; // with a device: [group_queries]
};

static enum bsw_status parse(struct groundtruth_job *job, int argc, char **argv, int *done,
                             struct bsw_error *err)
{
    struct groundtruth_options *o = &job->options;
    const struct bsw_option options[] = {
        {"base", BSW_OPTION_TEXT, &o->base, "FILE", NULL, 1, 0, 0, NULL,
         "vectors, or synth:count=N,dims=D,..."},
        {"queries", BSW_OPTION_TEXT, &o->queries, "FILE", NULL, 1, 0, 0, NULL, "query vectors"},
        {"out", BSW_OPTION_TEXT, &o->out, "FILE", NULL, 1, 0, 0, NULL,
         "ground truth (big-ann's layout)"},
        {"metric", BSW_OPTION_CHOICE, &o->metric, NULL, NULL, 1, 0, 0, "cosine|ip|l2",
         "what is nearest"},
        {"k", BSW_OPTION_COUNT, &o->k, "K", "10", 0, 1, 1e6, NULL, "neighbours a query"},
        {"rows", BSW_OPTION_ROWS, &o->rows, "A:B", NULL, 0, 0, 0, NULL,
         "only these rows; ids stay those of the file"},
        {"query-rows", BSW_OPTION_ROWS, &o->query_rows, "A:B", NULL, 0, 0, 0, NULL,
         "only these queries"},
        {"device", BSW_OPTION_TEXT, &o->device, "auto|cpu|cuda|cuda:N", "auto", 0, 0, 0, NULL,
         "where to compute: a GPU a rank, or all ranks of a host on GPU N; auto: the CPU"},
        {"device-memory", BSW_OPTION_COUNT, &o->device_memory, "BYTES", "0", 0, 0, 1e15, NULL,
         "most memory of a GPU that a rank uses; 0: all that is free"},
        {"drop-bad-rows", BSW_OPTION_FLAG, &o->drop_bad_rows, NULL, NULL, 0, 0, 0, NULL,
         "count and skip rows with NaN, Inf or (cosine) zeros"},
        {"force", BSW_OPTION_FLAG, &o->force, NULL, NULL, 0, 0, 0, NULL,
         "replace an existing file"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"groundtruth", "exact nearest neighbours of queries",
                                           options, sizeof options / sizeof options[0]};
    return bsw_command_parse(job->transport, &table, &o->common, argc, argv, done, err);
}

// ---- set-up ----

static enum bsw_status open_inputs(struct groundtruth_job *job, struct bsw_error *err)
{
    const struct groundtruth_options *o = &job->options;
    BSW_TRY(bsw_metric_parse(o->metric, &job->metric, err));
    BSW_TRY(bsw_vectors_open(o->base, o->rows, &job->base, err));
    BSW_TRY(bsw_queries_open(o->queries, o->query_rows, &job->queries, err));
    job->dims = bsw_vectors_dims(job->base);
    if (bsw_vectors_dims(job->queries) != job->dims) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %zu", o->queries,
                        bsw_vectors_dims(job->queries), o->base, job->dims);
    }
    if (o->k > bsw_vectors_num_rows(job->base)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--k %llu: %s has %llu rows only",
                        (unsigned long long)o->k, o->base,
                        (unsigned long long)bsw_vectors_num_rows(job->base));
    }
    if (bsw_vectors_num_rows(job->base) / (uint64_t)job->transport->num_ranks >= UINT32_MAX) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: more than 2^32 rows a rank; use more ranks",
                        o->base);
    }
    return BSW_OK;
}

static enum bsw_status allocate_numbers(const struct groundtruth_job *job, size_t count,
                                        struct exact_numbers *out, struct bsw_error *err)
{
    BSW_TRY(bsw_allocate(&out->norms, count, sizeof(double), "norms", err));
    if (job->is_integer)
        return bsw_allocate(&out->integers, count * job->dims, sizeof(int16_t), "vectors", err);
    return bsw_allocate(&out->doubles, count * job->dims, sizeof(double), "vectors", err);
}

static enum bsw_status allocate(struct groundtruth_job *job, struct bsw_error *err)
{
    enum bsw_vector_type base = bsw_vectors_type(job->base),
                         queries = bsw_vectors_type(job->queries);
    size_t k = (size_t)job->options.k, threads = (size_t)job->options.common.threads;
    job->is_integer = base == queries && (base == BSW_VECTOR_UINT8 || base == BSW_VECTOR_INT8) &&
                      job->dims <= BSW_EXACT_INTEGER_MAX_DIMS;
    job->block_rows = BLOCK_NUMBERS / job->dims;
    job->block_rows = job->block_rows > MAX_BLOCK_ROWS ? MAX_BLOCK_ROWS
                      : job->block_rows < 32           ? 32
                                                       : job->block_rows;
    size_t capacity = bsw_running_best_capacity(k, job->block_rows);
    size_t query_bytes = capacity * sizeof(uint64_t) + job->dims * sizeof(double);
    size_t fit = LISTS_BUDGET_BYTES / query_bytes;
    job->group_queries = fit < 1 ? 1 : fit;
    if (job->group_queries > bsw_vectors_num_rows(job->queries)) {
        job->group_queries = (size_t)bsw_vectors_num_rows(job->queries);
    }
    size_t tile = job->block_rows > QUERY_TILE ? job->block_rows : QUERY_TILE;
    size_t widest = bsw_vectors_row_bytes(job->base) > bsw_vectors_row_bytes(job->queries)
                        ? bsw_vectors_row_bytes(job->base)
                        : bsw_vectors_row_bytes(job->queries);
    BSW_TRY(bsw_allocate(&job->raw, tile, widest, "block", err));
    BSW_TRY(bsw_allocate(&job->wide, tile * job->dims, sizeof(double), "block", err));
    BSW_TRY(bsw_allocate(&job->row_ids, job->block_rows, sizeof(uint32_t), "block", err));
    BSW_TRY(bsw_allocate(&job->keys, threads * QUERY_TILE * job->block_rows, sizeof(float), "keys",
                         err));
    BSW_TRY(allocate_numbers(job, job->block_rows, &job->rows, err));
    BSW_TRY(allocate_numbers(job, job->group_queries, &job->query_numbers, err));
    BSW_TRY(bsw_allocate(&job->lists, job->group_queries, sizeof *job->lists, "lists", err));
    BSW_TRY(bsw_buffer_reserve(&job->list_items, job->group_queries * capacity * sizeof(uint64_t),
                               err));
    return bsw_buffer_reserve(&job->scratch, threads * capacity * sizeof(uint64_t), err);
}

// Rows of this rank.
static void own_range(const struct groundtruth_job *job, uint64_t *first, uint64_t *last)
{
    uint64_t num_rows = bsw_vectors_num_rows(job->base),
             base_row = bsw_vectors_first_row(job->base), rank = (uint64_t)job->transport->rank,
             ranks = (uint64_t)job->transport->num_ranks;
    *first = base_row + bsw_part_first(num_rows, rank, ranks);
    *last = base_row + bsw_part_first(num_rows, rank + 1, ranks);
}

static enum bsw_status open_device(struct groundtruth_job *job, struct bsw_error *err)
{
    // What everything else is measured against does not go to a GPU unasked.
    int is_auto = strcmp(job->options.device, "auto") == 0;
    const struct bsw_device_choice choice = {.text = job->options.device,
                                             .cpu_only = is_auto ? "auto" : NULL,
                                             .most_bytes = job->options.device_memory,
                                             .timeout_seconds = job->options.common.timeout};
    BSW_TRY(bsw_device_choice_open(&choice, job->transport, &job->device, err));
    if (!job->device) return BSW_OK;
    uint64_t first, last;
    own_range(job, &first, &last);
    const struct bsw_device_neighbours_needs needs = {.metric = job->metric,
                                                      .type = bsw_vectors_type(job->base),
                                                      .is_integer = job->is_integer,
                                                      .dims = (uint32_t)job->dims,
                                                      .num_rows = (uint32_t)(last - first),
                                                      .max_queries = job->group_queries,
                                                      .keep = (size_t)job->options.k,
                                                      .num_threads =
                                                          (int)job->options.common.threads};
    BSW_TRY(bsw_allocate(&job->counts, job->group_queries, sizeof *job->counts, "counts", err));
    return bsw_device_neighbours_open(job->device, &needs, &job->neighbours, err);
}

// ---- blocks ----

// Converts `count` raw vectors to place `at` of out; faults are judged in float64.
static void convert(const struct groundtruth_job *job, enum bsw_vector_type type, size_t count,
                    size_t at, struct exact_numbers *out)
{
    size_t dims = job->dims;
    job->refine->to_double(type, job->raw, count * dims, job->wide);
    for (size_t r = 0; r < count; r++)
        out->norms[at + r] = job->refine->squared_norm(job->wide + r * dims, dims);
    if (!job->is_integer) {
        memcpy(out->doubles + at * dims, job->wide, count * dims * sizeof(double));
        return;
    }
    for (size_t i = 0; i < count * dims; i++) out->integers[at * dims + i] = (int16_t)job->wide[i];
}

// An error, unless such rows are to be dropped.
static enum bsw_status drop_row(struct groundtruth_job *job, uint64_t row, enum bsw_row_fault fault,
                                struct bsw_error *err)
{
    if (!job->options.drop_bad_rows) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu %s", job->options.base,
                        (unsigned long long)row, bsw_row_fault_text(fault));
    }
    job->dropped_rows++;
    return BSW_OK;
}

// Keeps good rows only, their places in row_ids; returns how many.
static enum bsw_status keep_good(struct groundtruth_job *job, uint64_t first_row, size_t count,
                                 size_t *good, struct bsw_error *err)
{
    size_t kept = 0, dims = job->dims;
    for (size_t r = 0; r < count; r++) {
        enum bsw_row_fault fault = bsw_row_fault_of(job->rows.norms[r], job->metric);
        if (fault != BSW_ROW_GOOD) {
            BSW_TRY(drop_row(job, first_row + r, fault, err));
            continue;
        }
        if (kept != r) {
            job->rows.norms[kept] = job->rows.norms[r];
            if (job->is_integer) {
                memcpy(job->rows.integers + kept * dims, job->rows.integers + r * dims,
                       dims * sizeof(int16_t));
            } else {
                memcpy(job->rows.doubles + kept * dims, job->rows.doubles + r * dims,
                       dims * sizeof(double));
            }
        }
        job->row_ids[kept++] = (uint32_t)r;
    }
    *good = kept;
    return BSW_OK;
}

static enum bsw_status load_queries(struct groundtruth_job *job, uint64_t first, size_t count,
                                    struct bsw_error *err)
{
    uint64_t row = bsw_vectors_first_row(job->queries) + first;
    for (size_t done = 0; done < count; done += QUERY_TILE) {
        size_t tile = count - done < QUERY_TILE ? count - done : QUERY_TILE;
        BSW_TRY(bsw_vectors_read(job->queries, row + done, tile, job->raw, err));
        convert(job, bsw_vectors_type(job->queries), tile, done, &job->query_numbers);
        for (size_t q = 0; q < tile; q++) {
            enum bsw_row_fault fault =
                bsw_row_fault_of(job->query_numbers.norms[done + q], job->metric);
            if (fault == BSW_ROW_GOOD) continue;
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu %s", job->options.queries,
                            (unsigned long long)(row + done + q), bsw_row_fault_text(fault));
        }
    }
    return BSW_OK;
}

static void tile_keys(const struct groundtruth_job *job, size_t first_query, size_t num_queries,
                      size_t num_rows, float *keys)
{
    size_t at = first_query * job->dims;
    if (job->is_integer) {
        job->exact->keys_int16(job->metric, job->rows.integers, num_rows, job->rows.norms,
                               job->query_numbers.integers + at, num_queries,
                               job->query_numbers.norms + first_query, job->dims, keys);
    } else {
        job->exact->keys_double(job->metric, job->rows.doubles, num_rows, job->rows.norms,
                                job->query_numbers.doubles + at, num_queries,
                                job->query_numbers.norms + first_query, job->dims, keys);
    }
}

// All queries of the group against the good rows of a block; local_row is the block's place in the
// rank's range.
static void scan_block(struct groundtruth_job *job, size_t num_queries, size_t num_rows,
                       uint32_t local_row)
{
    size_t capacity = bsw_running_best_capacity((size_t)job->options.k, job->block_rows);
#pragma omp parallel for schedule(dynamic)
    for (size_t first = 0; first < num_queries; first += QUERY_TILE) {
        size_t thread = (size_t)omp_get_thread_num();
        size_t count = num_queries - first < QUERY_TILE ? num_queries - first : QUERY_TILE;
        float *keys = job->keys + thread * QUERY_TILE * job->block_rows;
        uint64_t *scratch = (uint64_t *)(void *)job->scratch.data + thread * capacity;
        tile_keys(job, first, count, num_rows, keys);
        for (size_t q = 0; q < count; q++) {
            bsw_running_best_add(&job->lists[first + q], job->select, keys + q * num_rows,
                                 job->row_ids, num_rows, local_row, scratch);
        }
    }
}

static enum bsw_status scan_range(struct groundtruth_job *job, uint64_t first_row,
                                  uint64_t last_row, size_t num_queries,
                                  struct bsw_progress *progress, uint64_t progress_base,
                                  struct bsw_error *err)
{
    for (uint64_t row = first_row; row < last_row; row += job->block_rows) {
        size_t count =
                   last_row - row < job->block_rows ? (size_t)(last_row - row) : job->block_rows,
               good = 0;
        BSW_TRY(bsw_vectors_read(job->base, row, count, job->raw, err));
        convert(job, bsw_vectors_type(job->base), count, 0, &job->rows);
        BSW_TRY(keep_good(job, row, count, &good, err));
        scan_block(job, num_queries, good, (uint32_t)(row - first_row));
        bsw_progress_update(progress, progress_base + row + count - first_row);
    }
    return BSW_OK;
}

// ---- on a device ----

struct device_rows {
    struct groundtruth_job *job;
    uint64_t first_row; // id of the rank's first
    struct bsw_progress *progress;
    uint64_t progress_base;
};

static enum bsw_status read_rows(void *context, size_t first, size_t count, void *to,
                                 struct bsw_error *err)
{
    const struct device_rows *rows = context;
    return bsw_vectors_read(rows->job->base, rows->first_row + first, count, to, err);
}

// As keep_good.
static enum bsw_status judge_rows(void *context, size_t first, size_t count, const double *norms,
                                  uint32_t *masks, struct bsw_error *err)
{
    const struct device_rows *rows = context;
    struct groundtruth_job *job = rows->job;
    if (first == 0) job->dropped_rows = 0;
    for (size_t r = 0; r < count; r++) {
        enum bsw_row_fault fault = bsw_row_fault_of(norms[r], job->metric);
        if (fault == BSW_ROW_GOOD)
            masks[r / 32] |= 1u << r % 32;
        else
            BSW_TRY(drop_row(job, rows->first_row + first + r, fault, err));
    }
    bsw_progress_update(rows->progress, rows->progress_base + first + count);
    return BSW_OK;
}

// As scan_range; the lists are those that it leaves.
static enum bsw_status scan_on_device(struct groundtruth_job *job, uint64_t first_row,
                                      size_t num_queries, struct bsw_progress *progress,
                                      uint64_t progress_base, struct bsw_error *err)
{
    struct device_rows rows = {job, first_row, progress, progress_base};
    const struct bsw_device_row_source source = {&rows, read_rows, judge_rows};
    const struct bsw_device_query_numbers queries = {
        job->query_numbers.doubles, job->query_numbers.integers, job->query_numbers.norms};
    uint64_t *items = (uint64_t *)(void *)job->list_items.data;
    BSW_TRY(bsw_device_neighbours_find(&job->neighbours, &queries, num_queries, &source, items,
                                       job->counts, err));
    for (size_t q = 0; q < num_queries; q++) {
        job->lists[q].items = items + q * job->neighbours.needs.keep;
        job->lists[q].count = job->counts[q];
    }
    return BSW_OK;
}

// ---- merging ----

// The k best of each query as struct bsw_ranked, each list behind its uint64 count.
static enum bsw_status pack_lists(struct groundtruth_job *job, size_t num_queries,
                                  uint64_t first_row, struct bsw_error *err)
{
    uint64_t *scratch = (uint64_t *)(void *)job->scratch.data;
    job->message.bytes = 0;
    for (size_t q = 0; q < num_queries; q++) {
        struct bsw_running_best *list = &job->lists[q];
        uint64_t count = bsw_running_best_finish(list, job->select, job->merge, scratch);
        BSW_TRY(bsw_buffer_append(&job->message, &count, sizeof count, err));
        for (size_t i = 0; i < count; i++) {
            struct bsw_ranked entry = {.score = bsw_candidate_score(list->items[i]),
                                       .row = first_row + bsw_candidate_row(list->items[i])};
            BSW_TRY(bsw_buffer_append(&job->message, &entry, sizeof entry, err));
        }
    }
    return BSW_OK;
}

// Appends the next list of a payload to entries; 0 if it does not parse.
static int take_list(const struct bsw_buffer *payload, size_t *offset, size_t k,
                     struct bsw_ranked *entries, size_t *count)
{
    uint64_t n;
    if (payload->bytes - *offset < sizeof n) return 0;
    memcpy(&n, payload->data + *offset, sizeof n);
    *offset += sizeof n;
    if (n > k || payload->bytes - *offset < n * sizeof *entries) return 0;
    memcpy(entries + *count, payload->data + *offset, (size_t)n * sizeof *entries);
    *offset += (size_t)n * sizeof *entries;
    *count += (size_t)n;
    return 1;
}

static void store_answer(const struct groundtruth_job *job, const struct bsw_ranked *entries,
                         size_t count, int64_t *ids, float *values)
{
    int is_l2 = job->metric == BSW_METRIC_L2;
    for (size_t i = 0; i < job->options.k; i++) {
        float key = i < count ? bsw_score_to_float(entries[i].score) : -__builtin_inff();
        ids[i] = i < count ? (int64_t)entries[i].row : -1;
        values[i] = is_l2 ? 0.0f - key : key;
    }
}

// Rank 0: lists of all ranks, in row order, to the written answer.
static enum bsw_status merge_lists(struct groundtruth_job *job, const struct bsw_buffer *payloads,
                                   uint64_t first_query, size_t num_queries, struct bsw_error *err)
{
    size_t k = (size_t)job->options.k, num_ranks = (size_t)job->transport->num_ranks;
    struct bsw_ranked *entries = NULL;
    size_t *offsets = NULL;
    int64_t *ids = NULL;
    float *values = NULL;
    enum bsw_status status =
        bsw_allocate(&entries, 2 * k * num_ranks, sizeof *entries, "merge", err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&offsets, num_ranks, sizeof *offsets, "merge", err);
    if (status == BSW_OK) status = bsw_allocate(&ids, k, sizeof *ids, "merge", err);
    if (status == BSW_OK) status = bsw_allocate(&values, k, sizeof *values, "merge", err);
    for (size_t q = 0; q < num_queries && status == BSW_OK; q++) {
        size_t count = 0;
        for (size_t rank = 0; rank < num_ranks && status == BSW_OK; rank++) {
            if (!take_list(&payloads[rank], &offsets[rank], k, entries, &count)) {
                status = bsw_fail(err, BSW_ERROR_PEER,
                                  "rank %zu sent an answer that does not parse", rank);
            }
        }
        if (status != BSW_OK) break;
        count = job->merge->best_ranked(entries, count, k, entries + k * num_ranks);
        store_answer(job, entries, count, ids, values);
        status = bsw_result_writer_put(job->writer, first_query + q, 1, ids, values, err);
    }
    bsw_free(&entries);
    bsw_free(&offsets);
    bsw_free(&ids);
    bsw_free(&values);
    return status;
}

// Every rank's message to rank 0, which writes the group's answers; ends with an agreement.
static enum bsw_status exchange(struct groundtruth_job *job, uint64_t first_query,
                                size_t num_queries, uint64_t group, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    struct bsw_message message = {.kind = MESSAGE_NEIGHBOURS, .batch = group, .name = "neighbours"};
    enum bsw_status status;
    if (transport->rank != 0) {
        status =
            bsw_transport_send(transport, 0, &message, job->message.data, job->message.bytes, err);
        return bsw_transport_agree(transport, status, err);
    }
    struct bsw_buffer *payloads;
    status =
        bsw_allocate_zero(&payloads, (size_t)transport->num_ranks, sizeof *payloads, "merge", err);
    for (int rank = 1; rank < transport->num_ranks && status == BSW_OK; rank++) {
        status = bsw_transport_receive(transport, rank, &message, &payloads[rank], NULL, err);
    }
    if (status == BSW_OK) {
        payloads[0] = job->message;
        status = merge_lists(job, payloads, first_query, num_queries, err);
    }
    for (int rank = 1; payloads && rank < transport->num_ranks; rank++)
        bsw_buffer_deinit(&payloads[rank]);
    bsw_free(&payloads);
    return bsw_transport_agree(transport, status, err);
}

// ---- the whole ----

static enum bsw_status run_group(struct groundtruth_job *job, uint64_t first_query,
                                 size_t num_queries, uint64_t group, struct bsw_progress *progress,
                                 struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    uint64_t first, last;
    own_range(job, &first, &last);
    size_t k = (size_t)job->options.k, capacity = bsw_running_best_capacity(k, job->block_rows);
    for (size_t q = 0; q < num_queries; q++) {
        uint64_t *items = (uint64_t *)(void *)job->list_items.data + q * capacity;
        bsw_running_best_init(&job->lists[q], items, capacity, k);
    }
    job->dropped_rows = 0;
    enum bsw_status status = load_queries(job, first_query, num_queries, err);
    uint64_t progress_base = group * (last - first);
    if (status == BSW_OK && job->device)
        status = scan_on_device(job, first, num_queries, progress, progress_base, err);
    else if (status == BSW_OK)
        status = scan_range(job, first, last, num_queries, progress, progress_base, err);
    if (status == BSW_OK) status = pack_lists(job, num_queries, first, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    return exchange(job, first_query, num_queries, group, err);
}

static enum bsw_status create_writer(struct groundtruth_job *job, struct bsw_error *err)
{
    int wide_ids = bsw_vectors_first_row(job->base) + bsw_vectors_num_rows(job->base) >
                   (uint64_t)INT32_MAX + 1;
    return bsw_result_writer_create(job->options.out, bsw_vectors_num_rows(job->queries),
                                    job->options.k, wide_ids, job->options.force, &job->writer,
                                    err);
}

static enum bsw_status finish(struct groundtruth_job *job, struct bsw_error *err)
{
    const struct bsw_sidecar facts = {.metric = bsw_metric_name(job->metric),
                                      .refine = "exact",
                                      .codec = "none",
                                      .k = job->options.k,
                                      .candidates = job->options.k,
                                      .rows = bsw_vectors_num_rows(job->base),
                                      .first_row = bsw_vectors_first_row(job->base),
                                      .dims = (uint32_t)job->dims};
    return bsw_sidecar_finish(job->writer, job->options.out, &facts, err);
}

static enum bsw_status run(struct groundtruth_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    enum bsw_cpu_level level = job->options.common.level;
    uint64_t base_digest = 0, query_digest = 0;
    job->exact = bsw_exact_table_get(level);
    job->refine = bsw_refine_table_get(level);
    job->select = bsw_select_table_get(level);
    job->merge = bsw_merge_table_get(level);
    enum bsw_status status = open_inputs(job, err);
    if (status == BSW_OK) status = allocate(job, err);
    if (status == BSW_OK) status = bsw_same_input_digest(job->base, &base_digest, err);
    if (status == BSW_OK) status = bsw_same_input_digest(job->queries, &query_digest, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_same_input_agree(transport, base_digest, job->options.base, err));
    BSW_TRY(bsw_same_input_agree(transport, query_digest, job->options.queries, err));
    status = transport->rank == 0 ? create_writer(job, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = open_device(job, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    double started = bsw_clock_seconds();
    uint64_t num_queries = bsw_vectors_num_rows(job->queries), group = 0;
    uint64_t num_groups = (num_queries + job->group_queries - 1) / job->group_queries;
    uint64_t own_rows = bsw_vectors_num_rows(job->base) / (uint64_t)transport->num_ranks;
    struct bsw_progress progress;
    bsw_progress_init(&progress, "groundtruth", "rows", num_groups * own_rows,
                      transport->rank == 0 && !job->options.common.quiet);
    for (uint64_t first = 0; first < num_queries && status == BSW_OK;
         first += job->group_queries, group++) {
        uint64_t left = num_queries - first;
        size_t count = left < job->group_queries ? (size_t)left : job->group_queries;
        status = run_group(job, first, count, group, &progress, err);
    }
    bsw_progress_finish(&progress);
    BSW_TRY(status);
    job->seconds = bsw_clock_seconds() - started;
    status = transport->rank == 0 ? finish(job, err) : BSW_OK;
    return bsw_transport_agree(transport, status, err);
}

static void report(const struct groundtruth_job *job)
{
    double rows = (double)bsw_vectors_num_rows(job->base),
           queries = (double)bsw_vectors_num_rows(job->queries);
    if (job->options.common.json) {
        bsw_print_json(json_pack(
            "{s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:I, s:s, s:f, s:f}", "rows",
            (json_int_t)bsw_vectors_num_rows(job->base), "queries",
            (json_int_t)bsw_vectors_num_rows(job->queries), "dims", (json_int_t)job->dims, "k",
            (json_int_t)job->options.k, "metric", bsw_metric_name(job->metric), "arithmetic",
            job->is_integer ? "int32" : "float64", "device",
            job->device ? bsw_device_kind() : "cpu", "ranks", job->transport->num_ranks, "threads",
            (json_int_t)job->options.common.threads, "level", job->exact->level, "seconds",
            job->seconds, "queries_per_second", queries / job->seconds));
        return;
    }
    if (job->options.common.quiet) return;
    printf("%.0f queries x %.0f rows x %zu dims, %s, k %llu, %s: %.3f s, %.4g queries/s\nground "
           "truth: %s\n",
           queries, rows, job->dims, bsw_metric_name(job->metric),
           (unsigned long long)job->options.k, job->is_integer ? "exact in int32" : "float64",
           job->seconds, queries / job->seconds, job->options.out);
}

static void deinit(struct groundtruth_job *job)
{
    struct exact_numbers *both[2] = {&job->rows, &job->query_numbers};
    for (int i = 0; i < 2; i++) {
        bsw_free(&both[i]->doubles);
        bsw_free(&both[i]->integers);
        bsw_free(&both[i]->norms);
    }
    bsw_result_writer_destroy(&job->writer);
    bsw_vectors_close(&job->base);
    bsw_vectors_close(&job->queries);
    bsw_free(&job->raw);
    bsw_free(&job->wide);
    bsw_free(&job->row_ids);
    bsw_free(&job->keys);
    bsw_free(&job->lists);
    bsw_buffer_deinit(&job->list_items);
    bsw_buffer_deinit(&job->scratch);
    bsw_buffer_deinit(&job->message);
    bsw_free(&job->counts);
    bsw_device_neighbours_close(&job->neighbours);
    bsw_device_close(&job->device);
}

enum bsw_status bsw_command_groundtruth(struct bsw_transport *transport, int argc, char **argv,
                                        struct bsw_error *err)
{
    struct groundtruth_job job = {.transport = transport};
    int done;
    BSW_TRY(parse(&job, argc, argv, &done, err));
    if (done) return BSW_OK;
    enum bsw_status status = run(&job, err);
    if (status == BSW_OK && transport->rank == 0) report(&job);
    deinit(&job);
    return status;
}
