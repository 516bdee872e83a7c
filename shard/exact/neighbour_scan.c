// SPDX-License-Identifier: Apache-2.0
#include "shard/exact/neighbour_scan.h"

#include <omp.h>
#include <pthread.h>
#include <string.h>

#include "common/base/memory.h"

#define BLOCK_BYTES    ((size_t)1 << 20)
#define MAX_BLOCK_ROWS ((size_t)65536)
#define QUERY_ROWS     256 // read at once

size_t bsw_neighbour_block_rows(size_t row_bytes, uint64_t num_rows)
{
    size_t rows = BLOCK_BYTES / row_bytes;
    if (rows > MAX_BLOCK_ROWS) rows = MAX_BLOCK_ROWS;
    if (rows > num_rows) rows = (size_t)num_rows;
    return (rows + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS * BSW_BUNDLE_ROWS;
}

// ---- memory ----

// Bits of a block's rows, which may begin anywhere in a word.
static size_t block_words(const bsw_neighbour_scan *scan)
{
    return scan->needs.block_rows / BSW_BUNDLE_ROWS + 2;
}

static size_t list_pieces(bsw_neighbour_scan *scan, struct bsw_neighbour_piece *pieces)
{
    const struct bsw_neighbour_needs *needs = &scan->needs;
    size_t row_bytes = bsw_vectors_row_bytes(needs->base), count = 0;
    size_t capacity = scan->capacity, threads = (size_t)needs->num_threads;
    pieces[count++] =
        (struct bsw_neighbour_piece){&scan->lists, scan->num_queries, sizeof *scan->lists, "lists"};
    pieces[count++] =
        (struct bsw_neighbour_piece){&scan->scores, scan->num_queries, capacity * 8, "lists"};
    pieces[count++] =
        (struct bsw_neighbour_piece){&scan->rows, scan->num_queries, capacity * 4, "lists"};
    pieces[count++] = (struct bsw_neighbour_piece){&scan->scratch, threads,
                                                   bsw_exact_best_scratch_bytes(capacity), "lists"};
    if (needs->filter)
        pieces[count++] = (struct bsw_neighbour_piece){
            &scan->bits, threads, block_words(scan) * sizeof(uint32_t), "masks of rows"};
    for (int i = 0; i < 2; i++) {
        pieces[count++] = (struct bsw_neighbour_piece){&scan->blocks[i].raw, needs->block_rows,
                                                       row_bytes, "block of rows"};
    }
    return count;
}

static enum bsw_status allocate(bsw_neighbour_scan *scan, struct bsw_error *err)
{
    struct bsw_neighbour_piece pieces[BSW_NEIGHBOUR_MAX_PIECES + 7];
    size_t count = bsw_neighbour_tiles_pieces(&scan->tiles, pieces), total = 0, bytes;
    count += list_pieces(scan, pieces + count);
    for (size_t i = 0; i < count; i++) {
        if (!bsw_multiply_size(pieces[i].count, pieces[i].size, &bytes) ||
            !bsw_add_size(total, bytes, &total)) {
            return bsw_fail(err, BSW_ERROR_TOO_LARGE,
                            "%s: so many queries and neighbours do not fit",
                            bsw_vectors_name(scan->needs.queries));
        }
    }
    if (scan->needs.most_bytes > 0 && total > scan->needs.most_bytes) {
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY,
                        "%s: queries, their lists and a block of rows take %.1f GB, %.1f GB are "
                        "free: fewer queries at a time (--query-rows) or a smaller --k",
                        bsw_vectors_name(scan->needs.queries), (double)total * 1e-9,
                        (double)scan->needs.most_bytes * 1e-9);
    }
    for (size_t i = 0; i < count; i++)
        BSW_TRY(bsw_allocate(pieces[i].out, pieces[i].count, pieces[i].size, pieces[i].what, err));
    scan->bytes = total;
    return BSW_OK;
}

static void *thread_scratch(const bsw_neighbour_scan *scan)
{
    return scan->scratch +
           (size_t)omp_get_thread_num() * bsw_exact_best_scratch_bytes(scan->capacity);
}

static void init_list(bsw_neighbour_scan *scan, size_t q)
{
    bsw_exact_best_init(&scan->lists[q], scan->scores + q * scan->capacity,
                        scan->rows + q * scan->capacity, scan->capacity, scan->needs.keep);
}

void bsw_neighbour_scan_close(bsw_neighbour_scan *scan)
{
    bsw_neighbour_tiles_deinit(&scan->tiles);
    bsw_free(&scan->lists);
    bsw_free(&scan->scores);
    bsw_free(&scan->rows);
    bsw_free(&scan->scratch);
    bsw_free(&scan->bits);
    for (int i = 0; i < 2; i++) bsw_free(&scan->blocks[i].raw);
}

// ---- queries ----

// Row i of those that are given, or of the range from `first` on.
static uint64_t row_id(const uint64_t *ids, uint64_t first, uint64_t i)
{
    return ids ? ids[i] : first + i;
}

static enum bsw_status read_rows(const bsw_vectors *vectors, const uint64_t *ids, uint64_t first,
                                 uint64_t i, size_t count, unsigned char *out,
                                 struct bsw_error *err)
{
    if (!ids) return bsw_vectors_read(vectors, first + i, count, out, err);
    for (size_t r = 0; r < count; r++, out += bsw_vectors_row_bytes(vectors))
        BSW_TRY(bsw_vectors_read(vectors, ids[i + r], 1, out, err));
    return BSW_OK;
}

static enum bsw_status load_queries(bsw_neighbour_scan *scan, struct bsw_error *err)
{
    const bsw_vectors *queries = scan->needs.queries;
    const uint64_t *ids = scan->needs.query_ids;
    uint64_t first = bsw_vectors_first_row(queries);
    size_t row_bytes = bsw_vectors_row_bytes(queries);
    unsigned char *raw;
    enum bsw_status status = BSW_OK;
    BSW_TRY(bsw_allocate(&raw, QUERY_ROWS, row_bytes, "queries", err));
    for (size_t q = 0; q < scan->num_queries && status == BSW_OK; q++) {
        size_t left = scan->num_queries - q;
        if (q % QUERY_ROWS == 0) {
            status =
                read_rows(queries, ids, first, q, left < QUERY_ROWS ? left : QUERY_ROWS, raw, err);
            if (status != BSW_OK) break;
        }
        enum bsw_row_fault fault =
            bsw_neighbour_tiles_put_query(&scan->tiles, q, raw + q % QUERY_ROWS * row_bytes);
        if (fault != BSW_ROW_GOOD) {
            status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu %s", bsw_vectors_name(queries),
                              (unsigned long long)row_id(ids, first, q), bsw_row_fault_text(fault));
        }
    }
    bsw_free(&raw);
    return status;
}

enum bsw_status bsw_neighbour_scan_open(const struct bsw_neighbour_needs *needs,
                                        bsw_neighbour_scan *scan, struct bsw_error *err)
{
    size_t num_queries =
        (size_t)(needs->query_ids ? needs->num_queries : bsw_vectors_num_rows(needs->queries));
    *scan = (bsw_neighbour_scan){
        .needs = *needs,
        .tiles = {.metric = needs->metric,
                  .type = bsw_vectors_type(needs->base),
                  .query_type = bsw_vectors_type(needs->queries),
                  .dims = bsw_vectors_dims(needs->base),
                  .num_queries = num_queries,
                  .num_threads = (size_t)needs->num_threads,
                  .block_rows = needs->block_rows},
        .merge = bsw_merge_table_get(needs->level),
        .num_queries = num_queries,
        // A list is cut when it is half too long; room for what a tile adds meanwhile.
        .capacity = needs->keep + needs->keep / 2 + BSW_BUNDLE_ROWS,
    };
    bsw_neighbour_tiles_init(&scan->tiles, needs->level);
    enum bsw_status status = allocate(scan, err);
    if (status == BSW_OK) bsw_neighbour_tiles_reset(&scan->tiles);
    if (status == BSW_OK) status = load_queries(scan, err);
    if (status != BSW_OK) {
        bsw_neighbour_scan_close(scan);
        return status;
    }
    for (size_t q = 0; q < num_queries; q++) init_list(scan, q);
    return BSW_OK;
}

// ---- reading ----

struct reading {
    const struct bsw_neighbour_needs *needs;
    struct bsw_neighbour_block *block;
};

static void *read_block(void *context)
{
    const struct reading *reading = context;
    const struct bsw_neighbour_needs *needs = reading->needs;
    struct bsw_neighbour_block *block = reading->block;
    block->status = read_rows(needs->base, needs->row_ids, needs->first_row, block->first,
                              block->count, block->raw, &block->error);
    return NULL;
}

// The rows from `first` on that a block holds.
static void set_rows(const bsw_neighbour_scan *scan, uint64_t first,
                     struct bsw_neighbour_block *block)
{
    uint64_t left = scan->needs.num_rows - first;
    block->first = first;
    block->count = left < scan->needs.block_rows ? (size_t)left : scan->needs.block_rows;
    block->status = BSW_OK;
}

// ---- a block ----

static void pack_bundle(bsw_neighbour_scan *scan, const struct bsw_neighbour_block *block,
                        size_t bundle, uint64_t *dropped, struct bsw_first_failure *failure)
{
    enum bsw_row_fault faults[BSW_BUNDLE_ROWS];
    size_t first = bundle * BSW_BUNDLE_ROWS;
    size_t count = block->count - first < BSW_BUNDLE_ROWS ? block->count - first : BSW_BUNDLE_ROWS;
    const bsw_vectors *base = scan->needs.base;
    bsw_neighbour_tiles_pack(&scan->tiles, (size_t)omp_get_thread_num(), bundle,
                             block->raw + first * bsw_vectors_row_bytes(base), count, faults);
    for (size_t r = 0; r < count; r++) {
        if (faults[r] == BSW_ROW_GOOD) continue;
        ++*dropped;
        if (scan->needs.drop_bad_rows) continue;
        struct bsw_error own;
        uint64_t place = block->first + first + r;
        enum bsw_status status =
            bsw_fail(&own, BSW_ERROR_BAD_DATA, "%s: row %llu %s", bsw_vectors_name(base),
                     (unsigned long long)row_id(scan->needs.row_ids, scan->needs.first_row, place),
                     bsw_row_fault_text(faults[r]));
        bsw_first_failure_note(failure, place, status, &own);
    }
}

// ---- a filter ----

// The block's masks for a query: rows without a fault that it may find. Of the calling thread.
static const uint32_t *masks_of(const bsw_neighbour_scan *scan,
                                const struct bsw_neighbour_block *block, uint64_t query,
                                struct bsw_first_failure *failure)
{
    const struct bsw_neighbour_filter *filter = scan->needs.filter;
    uint32_t *bits = scan->bits + (size_t)omp_get_thread_num() * block_words(scan);
    uint64_t first = scan->needs.filter_row + block->first, shift = first % 32;
    size_t bundles = (block->count + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS;
    struct bsw_error err;
    bits[(shift + block->count + 31) / 32] = 0;
    enum bsw_status status =
        filter->read(filter->context, query, first - shift, block->count + shift, bits, &err);
    if (status != BSW_OK) bsw_first_failure_note(failure, block->first, status, &err);
    for (size_t b = 0; b < bundles; b++) {
        uint64_t two = (uint64_t)bits[b + 1] << 32 | bits[b];
        bits[b] = (uint32_t)(two >> shift) & scan->tiles.masks[b];
    }
    return bits;
}

// All queries have the same: of the block itself, by one thread.
static void mask_block(bsw_neighbour_scan *scan, const struct bsw_neighbour_block *block,
                       struct bsw_first_failure *failure)
{
    const struct bsw_neighbour_filter *filter = scan->needs.filter;
    size_t bundles = (block->count + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS;
    if (filter && !filter->is_each)
        memcpy(scan->tiles.masks, masks_of(scan, block, 0, failure), bundles * sizeof(uint32_t));
}

// A tile of queries over the whole block. Steps are short where lists are still empty: the first
// rows have no limit to fall short of.
static void scan_tile(bsw_neighbour_scan *scan, const struct bsw_neighbour_block *block,
                      size_t first_query, size_t num_queries, const uint32_t *masks)
{
    size_t thread = (size_t)omp_get_thread_num();
    size_t bundles = (block->count + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS;
    struct bsw_neighbour_step step = {.first_query = first_query,
                                      .num_queries = num_queries,
                                      .raw = block->raw,
                                      .num_rows = block->count,
                                      .local_row = (uint32_t)block->first,
                                      .masks = masks};
    while (step.bundle < bundles) {
        uint64_t seen = block->first / BSW_BUNDLE_ROWS + step.bundle;
        size_t left = bundles - step.bundle;
        step.num_bundles = seen < 1                            ? 1
                           : seen > BSW_NEIGHBOUR_STEP_BUNDLES ? BSW_NEIGHBOUR_STEP_BUNDLES
                                                               : (size_t)seen;
        if (step.num_bundles > left) step.num_bundles = left;
        bsw_neighbour_tiles_scan(&scan->tiles, thread, &step, scan->lists, thread_scratch(scan));
        step.bundle += step.num_bundles;
    }
}

// Queries with the masks that they have.
static void scan_queries(bsw_neighbour_scan *scan, const struct bsw_neighbour_block *block,
                         size_t first, size_t num, struct bsw_first_failure *failure)
{
    const struct bsw_neighbour_filter *filter = scan->needs.filter;
    if (failure->status != BSW_OK) return;
    if (!filter || !filter->is_each) {
        scan_tile(scan, block, first, num, scan->tiles.masks);
        return;
    }
    for (size_t q = first; q < first + num; q++)
        scan_tile(scan, block, q, 1, masks_of(scan, block, q, failure));
}

// Queries a tile: so many that every thread has several, a multiple of what screen takes at once.
static size_t tile_queries(const bsw_neighbour_scan *scan)
{
    size_t shares = 4 * (size_t)scan->needs.num_threads * BSW_SCREEN_QUERIES;
    size_t groups = (scan->num_queries + shares - 1) / shares;
    size_t most = BSW_NEIGHBOUR_TILE_QUERIES / BSW_SCREEN_QUERIES;
    return BSW_SCREEN_QUERIES * (groups < most ? groups : most);
}

static enum bsw_status scan_block(bsw_neighbour_scan *scan, const struct bsw_neighbour_block *block,
                                  struct bsw_error *err)
{
    struct bsw_first_failure failure = {.status = BSW_OK};
    size_t bundles = (block->count + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS;
    size_t tile = tile_queries(scan);
    uint64_t dropped = 0;
    bsw_neighbour_tiles_begin(&scan->tiles, block->raw, block->count);
#pragma omp parallel num_threads(scan->needs.num_threads) reduction(+ : dropped)
    {
#pragma omp for schedule(static)
        for (size_t bundle = 0; bundle < bundles; bundle++)
            pack_bundle(scan, block, bundle, &dropped, &failure);
#pragma omp single
        mask_block(scan, block, &failure);
        // All threads see the same status: they have met.
#pragma omp for schedule(dynamic)
        for (size_t q = 0; q < scan->num_queries; q += tile) {
            size_t left = scan->num_queries - q;
            scan_queries(scan, block, q, left < tile ? left : tile, &failure);
        }
    }
    BSW_TRY(bsw_first_failure_report(&failure, err));
    scan->dropped_rows += dropped;
    scan->next_row = block->first + block->count;
    return BSW_OK;
}

enum bsw_status bsw_neighbour_scan_next(bsw_neighbour_scan *scan, struct bsw_error *err)
{
    struct bsw_neighbour_block *block = &scan->blocks[0], *other = &scan->blocks[1];
    if (scan->next_row == scan->needs.num_rows) return BSW_OK;
    if (block->count == 0 || block->first != scan->next_row) { // the first one, or as restored
        set_rows(scan, scan->next_row, block);
        read_block(&(struct reading){&scan->needs, block});
    }
    if (block->status != BSW_OK) {
        if (err) *err = block->error;
        return block->status;
    }
    pthread_t reader;
    struct reading reading = {&scan->needs, other};
    set_rows(scan, block->first + block->count, other);
    int is_reading = other->count > 0 && pthread_create(&reader, NULL, read_block, &reading) == 0;
    enum bsw_status status = scan_block(scan, block, err);
    if (is_reading)
        pthread_join(reader, NULL);
    else
        other->count = 0; // read when it is due
    struct bsw_neighbour_block done = *block;
    *block = *other;
    *other = done;
    return status;
}

void bsw_neighbour_scan_restore(bsw_neighbour_scan *scan, uint64_t next_row, uint64_t dropped_rows)
{
    scan->next_row = next_row;
    scan->dropped_rows = dropped_rows;
    for (size_t q = 0; q < scan->num_queries; q++) {
        size_t count = scan->lists[q].count;
        init_list(scan, q);
        scan->lists[q].count = count;
        bsw_exact_best_cut(&scan->lists[q], scan->tiles.select, scan->scratch);
    }
}

void bsw_neighbour_scan_finish(bsw_neighbour_scan *scan, size_t first, size_t count)
{
#pragma omp parallel for schedule(static) num_threads(scan->needs.num_threads)
    for (size_t q = first; q < first + count; q++)
        bsw_exact_best_sort(&scan->lists[q], scan->tiles.select, scan->merge, thread_scratch(scan));
}
