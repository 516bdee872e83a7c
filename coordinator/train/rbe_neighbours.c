#include "coordinator/train/rbe_neighbours.h"

#include <omp.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/job/progress.h"
#include "common/net/collect.h"
#include "common/net/message_kinds.h"
#include "coordinator/job/command.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/exact/exact.h"
#include "kernels/refine/refine.h"

#define QUERY_TILE 16
#define ROW_BLOCK  256

struct neighbour_job {
    const struct bsw_neighbour_search *search;
    const struct bsw_exact_table *exact;
    size_t dims;
    double *rows;  // [num_rows][dims]
    double *norms; // squared
    double *keys;  // [threads][QUERY_TILE][ROW_BLOCK]
    double *best;  // [threads][num_neighbours]: keys of one query's list
};

static enum bsw_status load_rows(struct neighbour_job *job, struct bsw_error *err)
{
    const struct bsw_neighbour_search *search = job->search;
    const struct bsw_refine_table *refine = bsw_refine_table_get(search->level);
    unsigned char *raw;
    BSW_TRY(bsw_allocate(&raw, 1, bsw_vectors_row_bytes(search->vectors), "row", err));
    enum bsw_status status = BSW_OK;
    for (size_t r = 0; r < search->num_rows && status == BSW_OK; r++) {
        double *row = job->rows + r * job->dims;
        status = bsw_vectors_read(search->vectors, search->rows[r], 1, raw, err);
        if (status != BSW_OK) break;
        refine->to_double(bsw_vectors_type(search->vectors), raw, job->dims, row);
        job->norms[r] = refine->squared_norm(row, job->dims);
        enum bsw_row_fault fault = bsw_row_fault_of(job->norms[r], search->metric);
        if (fault != BSW_ROW_GOOD) {
            status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu %s",
                              bsw_vectors_name(search->vectors),
                              (unsigned long long)search->rows[r], bsw_row_fault_text(fault));
        }
    }
    bsw_free(&raw);
    return status;
}

// Rows come in ascending order, so a tie never displaces.
static void insert(double key, uint64_t place, size_t *count, size_t most, double *keys,
                   uint64_t *places)
{
    size_t at = *count;
    if (at == most) {
        if (!(key > keys[most - 1])) return;
        at--;
    } else {
        ++*count;
    }
    for (; at > 0 && key > keys[at - 1]; at--) {
        keys[at] = keys[at - 1];
        places[at] = places[at - 1];
    }
    keys[at] = key;
    places[at] = place;
}

// One tile of queries against all rows. lists: [QUERY_TILE][num_neighbours] keys of this thread.
static void search_tile(const struct neighbour_job *job, size_t first, size_t num_queries,
                        double *keys, double *lists, uint64_t *neighbours)
{
    const struct bsw_neighbour_search *search = job->search;
    size_t most = search->num_neighbours, counts[QUERY_TILE] = {0}, dims = job->dims;
    for (size_t row = 0; row < search->num_rows; row += ROW_BLOCK) {
        size_t rows = search->num_rows - row < ROW_BLOCK ? search->num_rows - row : ROW_BLOCK;
        job->exact->keys_double(search->metric, job->rows + row * dims, rows, job->norms + row,
                                job->rows + first * dims, num_queries, job->norms + first, dims,
                                keys);
        for (size_t q = 0; q < num_queries; q++) {
            for (size_t r = 0; r < rows; r++) {
                if (row + r == first + q) continue;
                insert(keys[q * rows + r], row + r, &counts[q], most, lists + q * most,
                       neighbours + (first + q) * most);
            }
        }
    }
}

static void search_part(struct neighbour_job *job, size_t first, size_t last, int is_shown,
                        uint64_t *neighbours)
{
    struct bsw_progress progress;
    size_t done = 0, most = job->search->num_neighbours;
    bsw_progress_init(&progress, "neighbours", "rows", last - first, is_shown);
#pragma omp parallel for schedule(dynamic)
    for (size_t query = first; query < last; query += QUERY_TILE) {
        size_t thread = (size_t)omp_get_thread_num();
        size_t count = last - query < QUERY_TILE ? last - query : QUERY_TILE, now;
        search_tile(job, query, count, job->keys + thread * QUERY_TILE * ROW_BLOCK,
                    job->best + thread * QUERY_TILE * most, neighbours);
#pragma omp atomic capture
        now = done += count;
        if (thread == 0) bsw_progress_update(&progress, now);
    }
    bsw_progress_finish(&progress);
}

struct neighbour_parts {
    unsigned char *all;
    uint64_t num_rows, num_ranks;
    size_t row_bytes;
};

static enum bsw_status take_part(void *context, int rank, const struct bsw_buffer *payload,
                                 struct bsw_error *err)
{
    const struct neighbour_parts *parts = context;
    uint64_t first = bsw_part_first(parts->num_rows, (uint64_t)rank, parts->num_ranks),
             last = bsw_part_first(parts->num_rows, (uint64_t)rank + 1, parts->num_ranks);
    if (payload->bytes != (size_t)(last - first) * parts->row_bytes)
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent a part that does not fit", rank);
    memcpy(parts->all + first * parts->row_bytes, payload->data, payload->bytes);
    return BSW_OK;
}

// Every rank's part [first, last) to rank 0, the whole to all.
static enum bsw_status exchange(const struct neighbour_job *job, struct bsw_transport *transport,
                                size_t first, size_t last, uint64_t *neighbours,
                                struct bsw_error *err)
{
    const struct bsw_message part = {.kind = BSW_MESSAGE_NEIGHBOUR_PART, .name = "neighbours"},
                             all = {.kind = BSW_MESSAGE_NEIGHBOUR_ALL, .name = "neighbours"};
    size_t row_bytes = job->search->num_neighbours * sizeof *neighbours;
    struct neighbour_parts parts = {(unsigned char *)neighbours, job->search->num_rows,
                                    (uint64_t)transport->num_ranks, row_bytes};
    BSW_TRY(bsw_collect(transport, &part, parts.all + first * row_bytes, (last - first) * row_bytes,
                        take_part, &parts, err));
    return bsw_share_record(transport, &all, neighbours, job->search->num_rows * row_bytes, err);
}

static enum bsw_status allocate(struct neighbour_job *job, struct bsw_error *err)
{
    size_t threads = (size_t)omp_get_max_threads(), rows = job->search->num_rows;
    BSW_TRY(bsw_allocate(&job->rows, rows, job->dims * sizeof(double), "rows", err));
    BSW_TRY(bsw_allocate(&job->norms, rows, sizeof(double), "norms", err));
    BSW_TRY(
        bsw_allocate(&job->keys, threads * QUERY_TILE, ROW_BLOCK * sizeof(double), "keys", err));
    return bsw_allocate(&job->best, threads * QUERY_TILE,
                        job->search->num_neighbours * sizeof(double), "keys", err);
}

enum bsw_status bsw_find_neighbours(const struct bsw_neighbour_search *search,
                                    struct bsw_transport *transport, uint64_t *neighbours,
                                    struct bsw_error *err)
{
    struct neighbour_job job = {.search = search,
                                .exact = bsw_exact_table_get(search->level),
                                .dims = bsw_vectors_dims(search->vectors)};
    uint64_t rank = (uint64_t)transport->rank, ranks = (uint64_t)transport->num_ranks;
    size_t first = (size_t)bsw_part_first(search->num_rows, rank, ranks),
           last = (size_t)bsw_part_first(search->num_rows, rank + 1, ranks);
    enum bsw_status status = allocate(&job, err);
    if (status == BSW_OK) status = load_rows(&job, err);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK) {
        search_part(&job, first, last, search->is_shown && rank == 0, neighbours);
        status = exchange(&job, transport, first, last, neighbours, err);
        status = bsw_transport_agree(transport, status, err);
    }
    bsw_free(&job.rows);
    bsw_free(&job.norms);
    bsw_free(&job.keys);
    bsw_free(&job.best);
    return status;
}
