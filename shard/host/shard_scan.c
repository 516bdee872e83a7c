// SPDX-License-Identifier: Apache-2.0
#include "shard/host/shard_scan.h"

#include <math.h>
#include <string.h>

#include "common/base/clock.h"
#include "shard/host/host_engine.h"
#include "shard/host/shard_tiles.h"

_Alignas(BSW_ALIGNMENT_BYTES) const float bsw_zero_biases[BSW_TILE_ROWS];

// A sample of bundles gives the first limits: so many rows for each one kept, but no more than one
// bundle in 16.
#define SAMPLE_ROWS_A_KEPT    256
#define MIN_SAMPLE_STRIDE     16
#define MAX_SAMPLE_STRIDE     1024

#define PIECES_A_THREAD       16
#define QUEUE_BYTES           ((size_t)512 << 10) // of a run's slots
#define LEAST_BOUNDED_BUNDLES 4                   // of a run: bytes of 16 queries are worth turning

void bsw_scan_workspace_init(struct bsw_scan_workspace *workspace, enum bsw_cpu_level level,
                             int num_threads)
{
    *workspace = (struct bsw_scan_workspace){.level = level,
                                             .plane_scan = bsw_plane_scan_table_get(level),
                                             .matrix_scan = bsw_matrix_scan_table_get(level),
                                             .select = bsw_select_table_get(level),
                                             .merge = bsw_merge_table_get(level),
                                             .refine = bsw_refine_table_get(level),
                                             .table_scan = bsw_table_scan_table_get(level),
                                             .num_threads = num_threads,
                                             .budget_bytes = BSW_SCAN_BUDGET_BYTES};
}

void bsw_scan_workspace_deinit(struct bsw_scan_workspace *workspace)
{
    bsw_buffer_deinit(&workspace->counts);
    bsw_buffer_deinit(&workspace->scratch);
    bsw_buffer_deinit(&workspace->offsets);
    bsw_buffer_deinit(&workspace->queries);
    bsw_host_scratch_deinit(&workspace->host);
}

static const char *const scan_names[] = {
    [BSW_SCAN_AUTO] = "auto",
    [BSW_SCAN_PLANES] = "planes",
    [BSW_SCAN_MATRIX] = "matrix",
    [BSW_SCAN_PROGRESSIVE_PLANES] = "progressive-planes",
    [BSW_SCAN_PROGRESSIVE_MATRIX] = "progressive-matrix",
    [BSW_SCAN_TABLES] = "tables",
};

const char *bsw_scan_name(enum bsw_scan_kind kind)
{
    return scan_names[kind];
}

enum bsw_scan_kind bsw_scan_kind_of(const char *name)
{
    size_t kind = sizeof scan_names / sizeof scan_names[0] - 1;
    while (kind > 0 && strcmp(name, scan_names[kind]) != 0) kind--;
    return (enum bsw_scan_kind)kind;
}

// ---- how ----

static enum bsw_scan_kind choose_scan(const struct bsw_resident_shard *shard,
                                      const struct bsw_scan_workspace *workspace,
                                      const struct bsw_scan_tuning *tuning, size_t num_queries)
{
    enum bsw_scan_kind kind = workspace->scan;
    if (shard->shape.has_tables) return BSW_SCAN_TABLES;
    int is_matrix = kind == BSW_SCAN_AUTO ? num_queries >= tuning->matrix_from_queries
                                          : bsw_scan_is_matrix(kind);
    is_matrix |= shard->shape.has_bytes;
    // Queues want every key.
    int is_staged = shard->stage_dims > 0 && workspace->queue.length == 0 &&
                    (kind == BSW_SCAN_AUTO || bsw_scan_is_progressive(kind));
    if (is_matrix) return is_staged ? BSW_SCAN_PROGRESSIVE_MATRIX : BSW_SCAN_MATRIX;
    return is_staged ? BSW_SCAN_PROGRESSIVE_PLANES : BSW_SCAN_PLANES;
}

static struct bsw_host_way way_of(const struct bsw_resident_shard *shard,
                                  const struct bsw_scan_workspace *workspace,
                                  const struct bsw_scan_tuning *tuning, enum bsw_scan_kind used)
{
    uint32_t stage_dims = bsw_scan_is_progressive(used) ? shard->stage_dims : 0;
    // Bytes that all queries go over are to stay in the first cache.
    uint32_t hot_dims = stage_dims > 0 ? stage_dims : shard->shape.layout.padded_dims;
    return (struct bsw_host_way){.matrix_bundles =
                                     bsw_matrix_tile_bundles(hot_dims, tuning->tile_kib),
                                 .plane_bundles = bsw_tile_bundles(&shard->shape),
                                 .matrix_from = bsw_scan_is_matrix(used) ? 0 : UINT32_MAX,
                                 .stage_dims = stage_dims,
                                 .is_staged_always = bsw_scan_is_progressive(workspace->scan),
                                 .bounded_from = LEAST_BOUNDED_BUNDLES,
                                 .tuning = *tuning};
}

// Queries at a time: as many as have room for their lists and tables.
static size_t group_queries(const struct bsw_query_batch *batch, size_t num_queries, size_t keep,
                            const struct bsw_scan_workspace *workspace)
{
    size_t bytes = bsw_running_capacity(keep) * sizeof(uint64_t);
    if (batch->product) bytes += bsw_query_table_bytes(batch);
    size_t fit = workspace->budget_bytes / bytes;
    return fit < 1 ? 1 : fit < num_queries ? fit : num_queries;
}

// ---- the first limits ----

// Among `rows` rows drawn from the shard's, how many to look at for a score that, nearly always, at
// least `keep` rows of the shard reach: what is expected and three standard deviations.
static size_t sample_rank(double keep, double share)
{
    double expected = keep * share;
    return (size_t)ceil(expected + 3 * sqrt(expected) + 3);
}

// That may be found.
static uint64_t num_rows(const struct bsw_resident_shard *shard)
{
    return shard->mask ? shard->mask->num_rows : shard->shape.num_rows;
}

// The stride of the sample, or 0 if none is worth while; *rank: which of its scores.
static size_t plan_sample(const struct bsw_resident_shard *shard, size_t kept, size_t *rank)
{
    double rows = (double)num_rows(shard), keep = (double)kept;
    double wanted = rows / (SAMPLE_ROWS_A_KEPT * keep);
    size_t stride = wanted < MIN_SAMPLE_STRIDE   ? MIN_SAMPLE_STRIDE
                    : wanted > MAX_SAMPLE_STRIDE ? MAX_SAMPLE_STRIDE
                                                 : (size_t)wanted;
    *rank = sample_rank(keep, 1.0 / (double)stride);
    return *rank < kept && (double)(*rank * stride) < rows / 2 ? stride : 0;
}

// ---- a group of queries ----

struct whole {
    struct bsw_host_scan scan;
    const uint32_t *limits; // of the group, or NULL
    size_t keep, stride, rank;
    uint32_t *guesses; // [queries]: limits by the sample
};

// Scans all bundles: blocks of queues, or pieces for the threads, which take one after another so
// that a slow core does not keep the others waiting. For one list of queries, or for all.
static enum bsw_status scan_pieces(struct whole *whole, const uint32_t *queries, size_t num,
                                   struct bsw_error *err)
{
    struct bsw_host_scan *scan = &whole->scan;
    const struct bsw_scan_workspace *workspace = scan->workspace;
    struct bsw_work *work = &scan->scratch->work;
    size_t bundles = scan->shard.num_bundles, threads = (size_t)workspace->num_threads;
    size_t pieces = threads > 1 ? threads * PIECES_A_THREAD : 1, most = BSW_HOST_MOST_SLOTS;
    size_t piece = (bundles + pieces - 1) / pieces;
    if (scan->queue_length > 0) {
        piece = (size_t)workspace->queue.items * BSW_QUEUE_THREADS / BSW_BUNDLE_ROWS;
        size_t bytes = scan->queue_length * BSW_QUEUE_THREADS * sizeof(uint64_t);
        most = QUEUE_BYTES / bytes < 1 ? 1 : QUEUE_BYTES / bytes;
        if (most > BSW_HOST_MOST_SLOTS) most = BSW_HOST_MOST_SLOTS;
    }
    if (piece < 1) piece = 1;
    BSW_TRY(bsw_work_make_whole(bundles, (struct bsw_work_pieces){piece, piece}, queries, num, most,
                                work, err));
    return bsw_host_scan_run(scan, work, err);
}

// guesses[q]: the rank-th best score of the sample, but no less than limits[q]. Without a stage:
// there are no limits yet.
static enum bsw_status guess_limits(struct whole *whole, struct bsw_error *err)
{
    struct bsw_host_scan *scan = &whole->scan;
    struct bsw_work *work = &scan->scratch->work;
    uint32_t stage_dims = scan->way.stage_dims;
    size_t num = scan->queries->num_queries;
    BSW_TRY(bsw_buffer_reserve(&scan->scratch->limits, num * sizeof(uint32_t), err));
    whole->guesses = (uint32_t *)(void *)scan->scratch->limits.data;
    BSW_TRY(bsw_work_make_whole(scan->shard.num_bundles, (struct bsw_work_pieces){1, whole->stride},
                                NULL, num, BSW_HOST_MOST_SLOTS, work, err));
    scan->way.stage_dims = 0;
    BSW_TRY(bsw_host_scan_begin(scan, whole->rank, whole->limits, err));
    BSW_TRY(bsw_host_scan_run(scan, work, err));
    scan->way.stage_dims = stage_dims;
    bsw_host_scan_raise(scan, whole->guesses);
    return BSW_OK;
}

// Where fewer rows than wanted reach a guess above the query's own limit, which is rare, the sample
// was no picture of the shard: these queries again, from their own limits on.
static enum bsw_status repair(struct whole *whole, uint64_t *items, size_t *counts,
                              struct bsw_error *err)
{
    struct bsw_host_scan *scan = &whole->scan;
    uint32_t *failed;
    size_t num = scan->queries->num_queries, num_failed = 0;
    BSW_TRY(bsw_allocate(&failed, num, sizeof *failed, "queries to repeat", err));
    for (size_t q = 0; q < num; q++) {
        int was_raised = whole->guesses[q] > (whole->limits ? whole->limits[q] : 0);
        if (was_raised && counts[q] < whole->keep) failed[num_failed++] = (uint32_t)q;
    }
    enum bsw_status status = BSW_OK;
    if (num_failed > 0) {
        status = bsw_host_scan_begin(scan, whole->keep, whole->limits, err);
        if (status == BSW_OK) status = scan_pieces(whole, failed, num_failed, err);
        if (status == BSW_OK)
            bsw_host_scan_finish(scan, failed, num_failed, items, whole->keep, counts);
    }
    scan->workspace->num_rescanned += num_failed;
    bsw_free(&failed);
    return status;
}

static enum bsw_status scan_group(struct whole *whole, uint64_t *items, size_t *counts,
                                  struct bsw_error *err)
{
    struct bsw_host_scan *scan = &whole->scan;
    struct bsw_scan_workspace *workspace = scan->workspace;
    size_t num = scan->queries->num_queries;
    if (whole->stride > 0) {
        BSW_TRY(guess_limits(whole, err));
        workspace->scanned_bytes += scan->shard.scan_bytes / whole->stride;
    }
    BSW_TRY(bsw_host_scan_begin(scan, whole->keep,
                                whole->stride > 0 ? whole->guesses : whole->limits, err));
    BSW_TRY(scan_pieces(whole, NULL, num, err));
    bsw_host_scan_finish(scan, NULL, num, items, whole->keep, counts);
    workspace->num_pairs += num_rows(&scan->shard) * num;
    workspace->scanned_bytes += scan->shard.scan_bytes;
    return whole->stride > 0 ? repair(whole, items, counts, err) : BSW_OK;
}

enum bsw_status bsw_shard_scan(const struct bsw_resident_shard *shard,
                               const struct bsw_query_batch *batch, size_t first_query,
                               size_t num_queries, const uint32_t *limits, size_t keep,
                               struct bsw_scan_workspace *workspace,
                               struct bsw_candidate_lists *out, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    struct bsw_resident_shard places = *shard; // of a shard with lists: rows are places
    places.order = (struct bsw_list_order){0};
    if (keep > shard->shape.num_rows) keep = (size_t)shard->shape.num_rows;
    keep = bsw_row_mask_keep(shard->mask, keep);
    BSW_TRY(bsw_candidate_lists_reserve(out, num_queries, keep, err));
    const struct bsw_scan_tuning tuning =
        bsw_scan_tuning_of(workspace->level, &shard->shape.layout);
    size_t most = group_queries(batch, num_queries, keep, workspace), rank = 0;
    size_t stride = workspace->queue.length > 0 ? 0 : plan_sample(shard, keep, &rank);
    workspace->used = choose_scan(shard, workspace, &tuning, most);
    const struct bsw_host_way way = way_of(shard, workspace, &tuning, workspace->used);
    for (size_t done = 0; done < num_queries; done += most) {
        size_t left = num_queries - done;
        const struct bsw_query_range range = {batch, first_query + done, left < most ? left : most};
        struct whole whole = {
            .limits = limits ? limits + done : NULL, .keep = keep, .stride = stride, .rank = rank};
        BSW_TRY(bsw_host_scan_open(&places, &range, &way, workspace, &workspace->host, &whole.scan,
                                   err));
        BSW_TRY(scan_group(&whole, (uint64_t *)(void *)out->items.data + done * keep,
                           (size_t *)(void *)out->counts.data + done, err));
    }
    workspace->scan_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}
