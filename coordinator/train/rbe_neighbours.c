#include "coordinator/train/rbe_pair_source.h"

#include <omp.h>
#include <string.h>

#include "common/base/parts.h"
#include "common/job/progress.h"
#include "common/net/collect.h"
#include "common/net/message_kinds.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/exact/exact.h"
#include "kernels/refine/refine.h"

#define QUERY_TILE 16
#define ROW_BLOCK  256

struct neighbour_job {
    const struct bsw_rbe_pair_source *source;
    const struct bsw_exact_table *exact;
    size_t dims;
    double *rows;  // [num_pairs][dims]
    double *norms; // squared
    double *keys;  // [threads][QUERY_TILE][ROW_BLOCK]
    double *best;  // [threads][num_choices]: keys of one query's list
};

static enum bsw_status load_rows(struct neighbour_job *job, struct bsw_error *err)
{
    const struct bsw_rbe_pair_source *source = job->source;
    const struct bsw_refine_table *refine = bsw_refine_table_get(source->options.level);
    unsigned char *raw;
    BSW_TRY(bsw_allocate(&raw, 1, bsw_vectors_row_bytes(source->files[0]), "row", err));
    enum bsw_status status = BSW_OK;
    for (size_t r = 0; r < source->num_pairs && status == BSW_OK; r++) {
        double *row = job->rows + r * job->dims;
        status = bsw_vectors_read(source->files[0], source->rows[r], 1, raw, err);
        if (status != BSW_OK) break;
        refine->to_double(bsw_vectors_type(source->files[0]), raw, job->dims, row);
        job->norms[r] = refine->squared_norm(row, job->dims);
        enum bsw_row_fault fault = bsw_row_fault_of(job->norms[r], source->options.metric);
        if (fault != BSW_ROW_GOOD) {
            status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu %s",
                              bsw_vectors_name(source->files[0]),
                              (unsigned long long)source->rows[r], bsw_row_fault_text(fault));
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

// One tile of queries against all rows. lists: [QUERY_TILE][num_choices] keys of this thread.
static void search_tile(const struct neighbour_job *job, size_t first, size_t num_queries,
                        double *keys, double *lists)
{
    const struct bsw_rbe_pair_source *source = job->source;
    size_t most = source->num_choices, counts[QUERY_TILE] = {0}, dims = job->dims;
    for (size_t row = 0; row < source->num_pairs; row += ROW_BLOCK) {
        size_t rows = source->num_pairs - row < ROW_BLOCK ? source->num_pairs - row : ROW_BLOCK;
        job->exact->keys_double(source->options.metric, job->rows + row * dims, rows,
                                job->norms + row, job->rows + first * dims, num_queries,
                                job->norms + first, dims, keys);
        for (size_t q = 0; q < num_queries; q++) {
            for (size_t r = 0; r < rows; r++) {
                if (row + r == first + q) continue;
                insert(keys[q * rows + r], row + r, &counts[q], most, lists + q * most,
                       source->choices + (first + q) * most);
            }
        }
    }
}

static void search_part(struct neighbour_job *job, size_t first, size_t last, int is_shown)
{
    struct bsw_progress progress;
    size_t done = 0, most = job->source->num_choices;
    bsw_progress_init(&progress, "neighbours", "rows", last - first, is_shown);
#pragma omp parallel for schedule(dynamic)
    for (size_t query = first; query < last; query += QUERY_TILE) {
        size_t thread = (size_t)omp_get_thread_num();
        size_t count = last - query < QUERY_TILE ? last - query : QUERY_TILE, now;
        search_tile(job, query, count, job->keys + thread * QUERY_TILE * ROW_BLOCK,
                    job->best + thread * QUERY_TILE * most);
#pragma omp atomic capture
        now = done += count;
        if (thread == 0) bsw_progress_update(&progress, now);
    }
    bsw_progress_finish(&progress);
}

struct neighbour_parts {
    const struct bsw_rbe_pair_source *source;
    uint64_t num_ranks;
};

// Of a rank: its choices, and how many bytes they have.
static unsigned char *part_of(const struct neighbour_parts *parts, int rank, size_t *bytes)
{
    const struct bsw_rbe_pair_source *source = parts->source;
    uint64_t first = bsw_part_first(source->num_pairs, (uint64_t)rank, parts->num_ranks),
             last = bsw_part_first(source->num_pairs, (uint64_t)rank + 1, parts->num_ranks);
    *bytes = (last - first) * source->num_choices * sizeof *source->choices;
    return (unsigned char *)(source->choices + first * source->num_choices);
}

static enum bsw_status take_part(void *context, int rank, const struct bsw_buffer *payload,
                                 struct bsw_error *err)
{
    size_t bytes;
    unsigned char *part = part_of(context, rank, &bytes);
    if (payload->bytes != bytes)
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent a part that does not fit", rank);
    memcpy(part, payload->data, bytes);
    return BSW_OK;
}

// Every rank's part to rank 0, the whole to all.
static enum bsw_status exchange(const struct bsw_rbe_pair_source *source,
                                struct bsw_transport *transport, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_NEIGHBOUR_PART, .name = "neighbours"},
                             all = {.kind = BSW_MESSAGE_NEIGHBOUR_ALL, .name = "neighbours"};
    struct neighbour_parts parts = {source, (uint64_t)transport->num_ranks};
    size_t bytes;
    const unsigned char *own = part_of(&parts, transport->rank, &bytes);
    BSW_TRY(bsw_collect(transport, &message, own, bytes, take_part, &parts, err));
    bytes = source->num_pairs * source->num_choices * sizeof *source->choices;
    return bsw_share_record(transport, &all, source->choices, bytes, err);
}

static enum bsw_status allocate(struct neighbour_job *job, struct bsw_error *err)
{
    size_t threads = (size_t)omp_get_max_threads(), rows = job->source->num_pairs;
    BSW_TRY(bsw_allocate(&job->rows, rows, job->dims * sizeof(double), "rows", err));
    BSW_TRY(bsw_allocate(&job->norms, rows, sizeof(double), "norms", err));
    BSW_TRY(
        bsw_allocate(&job->keys, threads * QUERY_TILE, ROW_BLOCK * sizeof(double), "keys", err));
    return bsw_allocate(&job->best, threads * QUERY_TILE, job->source->num_choices * sizeof(double),
                        "keys", err);
}

enum bsw_status bsw_rbe_find_neighbours(const struct bsw_rbe_pair_source *source,
                                        struct bsw_transport *transport, struct bsw_error *err)
{
    struct neighbour_job job = {.source = source,
                                .exact = bsw_exact_table_get(source->options.level),
                                .dims = source->dims};
    uint64_t rank = (uint64_t)transport->rank, ranks = (uint64_t)transport->num_ranks;
    size_t first = (size_t)bsw_part_first(source->num_pairs, rank, ranks),
           last = (size_t)bsw_part_first(source->num_pairs, rank + 1, ranks);
    enum bsw_status status = allocate(&job, err);
    if (status == BSW_OK) status = load_rows(&job, err);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK) {
        search_part(&job, first, last, source->options.is_shown && rank == 0);
        status = exchange(source, transport, err);
        status = bsw_transport_agree(transport, status, err);
    }
    bsw_free(&job.rows);
    bsw_free(&job.norms);
    bsw_free(&job.keys);
    bsw_free(&job.best);
    return status;
}
