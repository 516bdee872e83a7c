// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/list_assignment.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "common/files/index_manifest.h"
#include "common/job/stop_signal.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/refine/refine.h"
#include "shard/lists/centroid_codes.h"

// Rows that a thread takes at once: blocks of 12 of matrix_scan.
#define TILE_ROWS 120
// Bundles of centroids between which limits rise. Room of a row is a line longer, so that those of
// a tile do not share cache sets.
#define MOST_STEP   32
#define STEP_ITEMS  (MOST_STEP * BSW_BUNDLE_ROWS + 8)
#define BLOCK_BYTES ((size_t)4 << 20)
// Centroids to be valued are asked for some rows ahead.
#define PREFETCH_ROWS  3
#define PREFETCH_BYTES ((size_t)1024)

// A thread's room.
struct room {
    float *rows;        // [tile][dims]
    float *scratch;     // [padded_dims]
    int8_t *components; // [tile][padded_dims]
    uint64_t *items;    // [tile][STEP_ITEMS]
    double *row;        // [dims]
};

struct bsw_list_assigner {
    struct bsw_list_assigner_needs needs;
    enum bsw_metric metric; // cosine or l2
    const struct bsw_encode_table *encode;
    const struct bsw_matrix_scan_table *matrix_scan;
    const struct bsw_refine_table *refine;
    struct bsw_centroid_codes codes;
    struct room *rooms; // [num_threads]
    // With a finder that is open:
    void *state;
    double *norms, *keys; // [finder_rows]
    int is_checked;
    unsigned char *are_bad;
    unsigned char *rows; // of a block in which some are
};

// ---- opening ----

static enum bsw_status open_room(const bsw_list_assigner *assigner, struct room *room,
                                 struct bsw_error *err)
{
    size_t dims = assigner->needs.dims, padded = assigner->codes.padded_dims;
    BSW_TRY(bsw_allocate(&room->rows, TILE_ROWS * dims, sizeof *room->rows, "rows", err));
    BSW_TRY(bsw_allocate(&room->row, dims, sizeof *room->row, "rows", err));
    if (assigner->state) return BSW_OK;
    BSW_TRY(bsw_allocate(&room->scratch, padded, sizeof *room->scratch, "rows", err));
    BSW_TRY(bsw_allocate(&room->components, TILE_ROWS, padded, "rows", err));
    return bsw_allocate(&room->items, TILE_ROWS * STEP_ITEMS, sizeof *room->items, "candidates",
                        err);
}

static enum bsw_status check_centroids(const bsw_list_assigner *assigner, struct bsw_error *err)
{
    const struct bsw_list_assigner_needs *needs = &assigner->needs;
    struct bsw_first_failure failure = {.status = BSW_OK};
#pragma omp parallel for num_threads(needs->num_threads)
    for (size_t l = 0; l < needs->num_lists; l++) {
        struct bsw_error own;
        double norm;
        assigner->encode->squared_norms(needs->centroids + l * needs->dims, 1, needs->dims, &norm);
        enum bsw_row_fault fault = bsw_row_fault_of(norm, needs->metric);
        if (fault == BSW_ROW_GOOD) continue;
        enum bsw_status status =
            bsw_fail(&own, BSW_ERROR_BAD_DATA, "centroid %zu %s", l, bsw_row_fault_text(fault));
        bsw_first_failure_note(&failure, l, status, &own);
    }
    return bsw_first_failure_report(&failure, err);
}

// Not where it is out of memory.
static enum bsw_status open_finder(bsw_list_assigner *assigner, struct bsw_error *err)
{
    const struct bsw_list_assigner_needs *needs = &assigner->needs;
    size_t row_bytes = needs->dims * bsw_vector_type_bytes(needs->type);
    if (!needs->finder) return BSW_OK;
    struct bsw_list_assigner_needs its = *needs;
    its.metric = assigner->metric;
    if (its.finder_rows == 0) its.finder_rows = BSW_FINDER_ROWS;
    assigner->needs.finder_rows = its.finder_rows;
    enum bsw_status status =
        needs->finder->open(needs->finder->context, &its, &assigner->state, err);
    if (status == BSW_ERROR_OUT_OF_MEMORY) return BSW_OK;
    if (status == BSW_OK)
        status = bsw_allocate(&assigner->norms, its.finder_rows, sizeof(double), "norms", err);
    if (status == BSW_OK)
        status = bsw_allocate(&assigner->keys, its.finder_rows, sizeof(double), "keys", err);
    if (status == BSW_OK)
        status = bsw_allocate(&assigner->are_bad, its.finder_rows, 1, "rows", err);
    if (status == BSW_OK)
        status = bsw_allocate(&assigner->rows, its.finder_rows, row_bytes, "rows", err);
    return status;
}

static enum bsw_status open_parts(bsw_list_assigner *assigner, struct bsw_error *err)
{
    const struct bsw_list_assigner_needs *needs = &assigner->needs;
    size_t threads = (size_t)needs->num_threads;
    BSW_TRY(check_centroids(assigner, err));
    BSW_TRY(open_finder(assigner, err));
    if (!assigner->state)
        BSW_TRY(bsw_centroid_codes_open(assigner->metric, needs->centroids, needs->num_lists,
                                        needs->dims, needs->num_threads, &assigner->codes, err));
    BSW_TRY(bsw_allocate_zero(&assigner->rooms, threads, sizeof *assigner->rooms, "rows", err));
    for (size_t i = 0; i < threads; i++) BSW_TRY(open_room(assigner, &assigner->rooms[i], err));
    return BSW_OK;
}

enum bsw_status bsw_list_assigner_open(const struct bsw_list_assigner_needs *needs,
                                       bsw_list_assigner **out, struct bsw_error *err)
{
    bsw_list_assigner *assigner;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&assigner, 1, sizeof *assigner, "assigner of lists", err));
    assigner->needs = *needs;
    assigner->metric = bsw_has_unit_rows(needs->metric) ? BSW_METRIC_COSINE : BSW_METRIC_L2;
    assigner->encode = bsw_encode_table_get(needs->level);
    assigner->matrix_scan = bsw_matrix_scan_table_get(needs->level);
    assigner->refine = bsw_refine_table_get(needs->level);
    enum bsw_status status = open_parts(assigner, err);
    if (status == BSW_OK)
        *out = assigner;
    else
        bsw_list_assigner_close(&assigner);
    return status;
}

struct bsw_list_assigner_needs bsw_list_assigner_needs_of(const struct bsw_manifest *manifest,
                                                          enum bsw_vector_type type, size_t dims,
                                                          enum bsw_cpu_level level)
{
    return (struct bsw_list_assigner_needs){.metric = manifest->metric,
                                            .type = type,
                                            .dims = dims,
                                            .centroids = manifest->lists.centroids,
                                            .num_lists = manifest->lists.count,
                                            .level = level,
                                            .num_threads = omp_get_max_threads()};
}

enum bsw_status bsw_list_assigner_open_lists(const struct bsw_manifest *manifest,
                                             enum bsw_vector_type type, size_t dims,
                                             enum bsw_cpu_level level, bsw_list_assigner **out,
                                             struct bsw_error *err)
{
    const struct bsw_list_assigner_needs needs =
        bsw_list_assigner_needs_of(manifest, type, dims, level);
    return bsw_list_assigner_open(&needs, out, err);
}

void bsw_list_assigner_close(bsw_list_assigner **assigner)
{
    if (!*assigner) return;
    if ((*assigner)->state) (*assigner)->needs.finder->close((*assigner)->state);
    bsw_free(&(*assigner)->norms);
    bsw_free(&(*assigner)->keys);
    bsw_free(&(*assigner)->are_bad);
    bsw_free(&(*assigner)->rows);
    bsw_centroid_codes_close(&(*assigner)->codes);
    for (int i = 0; (*assigner)->rooms && i < (*assigner)->needs.num_threads; i++) {
        struct room *room = &(*assigner)->rooms[i];
        bsw_free(&room->rows);
        bsw_free(&room->scratch);
        bsw_free(&room->components);
        bsw_free(&room->items);
        bsw_free(&room->row);
    }
    bsw_free(&(*assigner)->rooms);
    bsw_free(assigner);
}

// ---- a tile of rows ----

struct tile {
    const bsw_list_assigner *assigner;
    struct room *room;
    const unsigned char *raw;
    size_t num_rows;
    struct bsw_coded_row coded[TILE_ROWS];
    double norms[TILE_ROWS];
    enum bsw_row_fault faults[TILE_ROWS];
    // What matrix_scan takes.
    float scales[TILE_ROWS];
    int32_t constants[TILE_ROWS];
    struct bsw_matrix_output outputs[TILE_ROWS];
    // The best centroid so far.
    double keys[TILE_ROWS];
    uint32_t lists[TILE_ROWS];
};

static void prepare(struct tile *tile)
{
    const bsw_list_assigner *assigner = tile->assigner;
    size_t dims = assigner->needs.dims, padded = assigner->codes.padded_dims;
    float factors[TILE_ROWS];
    bsw_prepare_rows(assigner->encode, assigner->metric, assigner->needs.type, tile->raw,
                     tile->num_rows, dims, tile->room->rows, tile->norms, factors, tile->faults);
    for (size_t r = 0; r < tile->num_rows; r++) {
        bsw_centroid_codes_put_row(&assigner->codes, tile->room->rows + r * dims, factors[r],
                                   tile->room->scratch, tile->room->components + r * padded,
                                   &tile->coded[r]);
        tile->scales[r] = tile->coded[r].scale;
        tile->constants[r] = tile->coded[r].constant;
        tile->keys[r] = -INFINITY;
        tile->lists[r] = BSW_NO_LIST;
    }
}

static const unsigned char *raw_row(const struct tile *tile, size_t r)
{
    const struct bsw_list_assigner_needs *needs = &tile->assigner->needs;
    return tile->raw + r * needs->dims * bsw_vector_type_bytes(needs->type);
}

// Values list `list` for row r, whose numbers are in room->row.
static void value_list(struct tile *tile, size_t r, uint32_t list)
{
    const bsw_list_assigner *assigner = tile->assigner;
    size_t dims = assigner->needs.dims;
    double value = assigner->refine->value(assigner->metric, BSW_VECTOR_FLOAT32,
                                           assigner->needs.centroids + list * dims, tile->room->row,
                                           tile->norms[r], dims);
    double key = bsw_metric_key(assigner->metric, value);
    if (key < tile->keys[r] || (key == tile->keys[r] && list > tile->lists[r])) return;
    tile->keys[r] = key;
    tile->lists[r] = list;
}

static void take_row(struct tile *tile, size_t r)
{
    const struct bsw_list_assigner_needs *needs = &tile->assigner->needs;
    tile->assigner->refine->to_double(needs->type, raw_row(tile, r), needs->dims, tile->room->row);
}

static void take_guesses(struct tile *tile, const uint32_t *guesses)
{
    for (size_t r = 0; r < tile->num_rows; r++) {
        if (guesses[r] >= tile->assigner->needs.num_lists || tile->faults[r] != BSW_ROW_GOOD)
            continue;
        take_row(tile, r);
        value_list(tile, r, guesses[r]);
    }
}

// ---- candidates ----

static uint32_t limit_of(const struct tile *tile, size_t r)
{
    if (tile->faults[r] != BSW_ROW_GOOD) return UINT32_MAX;
    return bsw_centroid_codes_limit(&tile->assigner->codes, &tile->coded[r], tile->keys[r]);
}

static uint64_t best_item(const struct bsw_matrix_output *output)
{
    uint64_t best = 0;
    for (size_t i = 0; i < output->count; i++)
        best = output->items[i] > best ? output->items[i] : best;
    return best;
}

static void prefetch_list(const struct tile *tile, uint32_t list)
{
    const struct bsw_list_assigner_needs *needs = &tile->assigner->needs;
    const char *centroid = (const char *)(needs->centroids + list * needs->dims);
    size_t bytes = needs->dims * sizeof(float);
    for (size_t at = 0; at < bytes && at < PREFETCH_BYTES; at += 64)
        __builtin_prefetch(centroid + at);
}

// Values candidates of row r. That of the largest screened key comes first: mostly it is the best,
// and the limit that it gives rules the others out.
static void value_items(struct tile *tile, size_t r, uint64_t best)
{
    const uint64_t *items = tile->outputs[r].items;
    size_t count = tile->outputs[r].count;
    take_row(tile, r);
    value_list(tile, r, bsw_candidate_row(best));
    if (count == 1) return;
    uint32_t limit = limit_of(tile, r);
    for (size_t i = 0; i < count; i++) {
        if (bsw_candidate_score(items[i]) >= limit && items[i] != best)
            value_list(tile, r, bsw_candidate_row(items[i]));
    }
}

static void value_rows(struct tile *tile)
{
    uint64_t best[TILE_ROWS + PREFETCH_ROWS] = {0};
    for (size_t r = 0; r < tile->num_rows; r++) best[r] = best_item(&tile->outputs[r]);
    for (size_t r = 0; r < tile->num_rows; r++) {
        if (best[r + PREFETCH_ROWS] != 0)
            prefetch_list(tile, bsw_candidate_row(best[r + PREFETCH_ROWS]));
        if (tile->outputs[r].count > 0) value_items(tile, r, best[r]);
    }
}

static void scan_step(struct tile *tile, size_t bundle, size_t num_bundles)
{
    const struct bsw_centroid_codes *codes = &tile->assigner->codes;
    size_t first = bundle * BSW_BUNDLE_ROWS;
    for (size_t r = 0; r < tile->num_rows; r++)
        tile->outputs[r] =
            (struct bsw_matrix_output){tile->room->items + r * STEP_ITEMS, 0, limit_of(tile, r)};
    const struct bsw_matrix_tile centroids = {.bytes = codes->bytes + first * codes->padded_dims,
                                              .num_bundles = num_bundles,
                                              .padded_dims = (uint32_t)codes->padded_dims,
                                              .first_row = (uint32_t)first,
                                              .masks = codes->masks + bundle,
                                              .scales = codes->scales + first,
                                              .biases = codes->biases + first};
    const struct bsw_matrix_queries rows = {.num_queries = tile->num_rows,
                                            .components = tile->room->components,
                                            .constants = tile->constants,
                                            .scales = tile->scales};
    tile->assigner->matrix_scan->scan(&centroids, &rows, tile->outputs);
    value_rows(tile);
}

// Steps are short where there is no limit yet, or a low one.
static size_t next_step(size_t bundle, int is_guessed)
{
    size_t step = bundle < 1 ? 1 : 3 * bundle;
    return is_guessed || step > MOST_STEP ? MOST_STEP : step;
}

static void assign_tile(bsw_list_assigner *assigner, const struct bsw_list_assignment *assignment,
                        size_t first)
{
    struct tile tile;
    size_t row_bytes = assigner->needs.dims * bsw_vector_type_bytes(assigner->needs.type);
    size_t left = assignment->num_rows - first, num_bundles = assigner->codes.num_bundles;
    tile.assigner = assigner;
    tile.room = &assigner->rooms[omp_get_thread_num()];
    tile.raw = (const unsigned char *)assignment->rows + first * row_bytes;
    tile.num_rows = left < TILE_ROWS ? left : TILE_ROWS;
    prepare(&tile);
    if (assignment->guesses) take_guesses(&tile, assignment->guesses + first);
    for (size_t bundle = 0, count; bundle < num_bundles; bundle += count) {
        size_t room = num_bundles - bundle;
        count = next_step(bundle, assignment->guesses != NULL);
        if (count > room) count = room;
        scan_step(&tile, bundle, count);
    }
    memcpy(assignment->lists + first, tile.lists, tile.num_rows * sizeof *tile.lists);
    if (assignment->keys)
        memcpy(assignment->keys + first, tile.keys, tile.num_rows * sizeof *tile.keys);
}

// ---- a finder ----

// Norms of rows and which have faults; returns the first one that has none, or num_rows.
static size_t judge_rows(bsw_list_assigner *assigner, const unsigned char *rows, size_t num_rows,
                         size_t *num_bad)
{
    const struct bsw_list_assigner_needs *needs = &assigner->needs;
    size_t row_bytes = needs->dims * bsw_vector_type_bytes(needs->type), good = num_rows, bad = 0;
#pragma omp parallel for schedule(static) num_threads(needs->num_threads) reduction(min : good)    \
    reduction(+ : bad)
    for (size_t first = 0; first < num_rows; first += TILE_ROWS) {
        size_t num = num_rows - first < TILE_ROWS ? num_rows - first : TILE_ROWS;
        enum bsw_row_fault faults[TILE_ROWS];
        float factors[TILE_ROWS];
        bsw_prepare_rows(assigner->encode, assigner->metric, needs->type, rows + first * row_bytes,
                         num, needs->dims, assigner->rooms[omp_get_thread_num()].rows,
                         assigner->norms + first, factors, faults);
        for (size_t r = first; r < first + num; r++) {
            assigner->are_bad[r] = faults[r - first] != BSW_ROW_GOOD;
            bad += assigner->are_bad[r];
            if (!assigner->are_bad[r] && r < good) good = r;
        }
    }
    *num_bad = bad;
    return good;
}

// Copies of a good row in place of bad ones.
static void cover_bad_rows(bsw_list_assigner *assigner, const unsigned char *rows, size_t num_rows,
                           size_t good)
{
    size_t row_bytes = assigner->needs.dims * bsw_vector_type_bytes(assigner->needs.type);
    for (size_t r = 0; r < num_rows; r++) {
        size_t from = assigner->are_bad[r] ? good : r;
        memcpy(assigner->rows + r * row_bytes, rows + from * row_bytes, row_bytes);
        assigner->norms[r] = assigner->norms[from];
    }
}

// The first good row is found here, too: what a device computes otherwise is not an answer.
static enum bsw_status check_finder(bsw_list_assigner *assigner, const unsigned char *rows,
                                    size_t good, uint32_t list, double key, struct bsw_error *err)
{
    const struct bsw_list_assigner_needs *needs = &assigner->needs;
    struct tile tile = {.assigner = assigner, .room = &assigner->rooms[0]};
    size_t row_bytes = needs->dims * bsw_vector_type_bytes(needs->type);
    tile.raw = rows + good * row_bytes;
    tile.norms[0] = assigner->norms[good];
    tile.keys[0] = -INFINITY;
    tile.lists[0] = BSW_NO_LIST;
    take_row(&tile, 0);
    for (uint32_t l = 0; l < needs->num_lists; l++) value_list(&tile, 0, l);
    assigner->is_checked = 1;
    if (tile.lists[0] == list && tile.keys[0] == key) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                    "lists: a device found list %lu at %.17g for a row whose nearest is list %lu, "
                    "at %.17g",
                    (unsigned long)list, key, (unsigned long)tile.lists[0], tile.keys[0]);
}

// Rows [first, first + num_rows), as many as the finder takes at most.
static enum bsw_status find_lists(bsw_list_assigner *assigner,
                                  const struct bsw_list_assignment *assignment, size_t first,
                                  size_t num_rows, struct bsw_error *err)
{
    size_t row_bytes = assigner->needs.dims * bsw_vector_type_bytes(assigner->needs.type), num_bad;
    const unsigned char *rows = (const unsigned char *)assignment->rows + first * row_bytes;
    size_t good = judge_rows(assigner, rows, num_rows, &num_bad);
    uint32_t *lists = assignment->lists + first;
    double *keys = assigner->keys;
    if (good < num_rows && num_bad > 0) cover_bad_rows(assigner, rows, num_rows, good);
    if (good < num_rows)
        BSW_TRY(assigner->needs.finder->find(assigner->state, num_bad > 0 ? assigner->rows : rows,
                                             assigner->norms, num_rows, lists, keys, err));
    if (good < num_rows && !assigner->is_checked)
        BSW_TRY(check_finder(assigner, rows, good, lists[good], keys[good], err));
    for (size_t r = 0; r < num_rows && num_bad > 0; r++) {
        if (!assigner->are_bad[r]) continue;
        lists[r] = BSW_NO_LIST;
        keys[r] = -INFINITY;
    }
    if (assignment->keys) memcpy(assignment->keys + first, keys, num_rows * sizeof *keys);
    return BSW_OK;
}

enum bsw_status bsw_list_assigner_assign(bsw_list_assigner *assigner,
                                         const struct bsw_list_assignment *assignment,
                                         struct bsw_error *err)
{
    size_t num_rows = assignment->num_rows;
    if (assigner->state) {
        size_t most = assigner->needs.finder_rows;
        for (size_t first = 0; first < num_rows; first += most) {
            size_t left = num_rows - first;
            BSW_TRY(find_lists(assigner, assignment, first, left < most ? left : most, err));
        }
        return BSW_OK;
    }
#pragma omp parallel for schedule(dynamic) num_threads(assigner->needs.num_threads)
    for (size_t first = 0; first < num_rows; first += TILE_ROWS)
        assign_tile(assigner, assignment, first);
    return BSW_OK;
}

// ---- a source ----

struct block {
    const bsw_vectors *vectors;
    unsigned char *raw;
    uint64_t first;
    size_t count; // 0: none
    enum bsw_status status;
    struct bsw_error error;
};

static void *read_block(void *context)
{
    struct block *block = context;
    block->status =
        bsw_vectors_read(block->vectors, block->first, block->count, block->raw, &block->error);
    return NULL;
}

// Assigns `now` while a thread reads `next`.
static enum bsw_status assign_block(bsw_list_assigner *assigner, struct block *now,
                                    struct block *next, uint32_t *lists, struct bsw_error *err)
{
    pthread_t reader;
    if (bsw_stop_is_asked()) return bsw_stop_fail(err);
    if (now->status != BSW_OK) {
        if (err) *err = now->error;
        return now->status;
    }
    int is_reading = next->count > 0 && pthread_create(&reader, NULL, read_block, next) == 0;
    const struct bsw_list_assignment assignment = {
        .rows = now->raw, .num_rows = now->count, .lists = lists};
    enum bsw_status status = bsw_list_assigner_assign(assigner, &assignment, err);
    if (is_reading)
        pthread_join(reader, NULL);
    else if (next->count > 0)
        read_block(next);
    return status;
}

static size_t rows_of_block(const bsw_vectors *vectors, const bsw_list_assigner *assigner)
{
    size_t rows = BLOCK_BYTES / bsw_vectors_row_bytes(vectors);
    if (assigner->state) return assigner->needs.finder_rows;
    return (rows / TILE_ROWS + 1) * TILE_ROWS;
}

enum bsw_status bsw_lists_assign(const bsw_vectors *vectors, uint64_t first_row, uint64_t num_rows,
                                 bsw_list_assigner *assigner, struct bsw_progress *progress,
                                 uint32_t *lists, struct bsw_error *err)
{
    struct block blocks[2] = {{.vectors = vectors}, {.vectors = vectors}};
    size_t block_rows = rows_of_block(vectors, assigner),
           row_bytes = bsw_vectors_row_bytes(vectors);
    enum bsw_status status = BSW_OK;
    bsw_progress_begin(progress, "lists", "rows", num_rows);
    for (int i = 0; i < 2 && status == BSW_OK; i++)
        status = bsw_allocate(&blocks[i].raw, block_rows, row_bytes, "block of rows", err);
    for (uint64_t done = 0, i = 0; done < num_rows && status == BSW_OK; i++) {
        struct block *now = &blocks[i % 2], *next = &blocks[(i + 1) % 2];
        uint64_t left = num_rows - done;
        if (i == 0) {
            now->first = first_row;
            now->count = left < block_rows ? (size_t)left : block_rows;
            read_block(now);
        }
        left -= now->count;
        next->first = now->first + now->count;
        next->count = left < block_rows ? (size_t)left : block_rows;
        status = assign_block(assigner, now, next, lists + done, err);
        done += now->count;
        bsw_progress_update(progress, done);
    }
    bsw_progress_finish(progress);
    for (int i = 0; i < 2; i++) bsw_free(&blocks[i].raw);
    return status;
}
