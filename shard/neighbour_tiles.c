#include "shard/neighbour_tiles.h"

#include <string.h>

#include "common/index_manifest.h"
#include "common/memory.h"
#include "common/result_order.h"
#include "kernels/encode/raw_codes.h"
#include "kernels/screen/screen_margin.h"

// Rows whose exact values are wanted lie anywhere in the block: they are asked for some rows ahead.
#define PREFETCH_ROWS  4
#define PREFETCH_BYTES ((size_t)512)
#define LINE_BYTES     ((size_t)64)

void bsw_neighbour_tiles_init(struct bsw_neighbour_tiles *tiles, enum bsw_cpu_level level)
{
    int is_integer = tiles->type == BSW_VECTOR_UINT8 || tiles->type == BSW_VECTOR_INT8;
    tiles->is_whole = is_integer && tiles->type == tiles->query_type &&
                      tiles->metric != BSW_METRIC_COSINE && tiles->dims <= BSW_RAW_MAX_DIMS;
    tiles->padded_dims = (tiles->dims + 31) / 32 * 32;
    tiles->block_bundles = (tiles->block_rows + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS;
    tiles->refine = bsw_refine_table_get(level);
    tiles->encode = bsw_encode_table_get(level);
    tiles->screen = bsw_screen_table_get(level);
    tiles->matrix_scan = bsw_matrix_scan_table_get(level);
    tiles->select = bsw_select_table_get(level);
}

size_t bsw_neighbour_tiles_pieces(struct bsw_neighbour_tiles *tiles,
                                  struct bsw_neighbour_piece pieces[BSW_NEIGHBOUR_MAX_PIECES])
{
    size_t queries = tiles->num_queries, bundles = tiles->block_bundles, dims = tiles->dims;
    size_t threads = tiles->num_threads, bundle_numbers = BSW_BUNDLE_ROWS * tiles->padded_dims;
    const size_t tile_rows = (size_t)BSW_NEIGHBOUR_TILE_QUERIES * BSW_NEIGHBOUR_STEP_ROWS;
    size_t groups = (queries + BSW_SCREEN_QUERIES - 1) / BSW_SCREEN_QUERIES, count = 0;
#define PIECE(member, number, bytes, name) \
    pieces[count++] = (struct bsw_neighbour_piece){&tiles->member, number, bytes, name}
    PIECE(masks, bundles, sizeof(uint32_t), "block of rows");
    PIECE(floats, threads, BSW_BUNDLE_ROWS * dims * sizeof(float), "rows");
    if (tiles->is_whole) {
        PIECE(items, threads, tile_rows * sizeof(uint64_t), "candidates");
        PIECE(components, queries, tiles->padded_dims, "queries");
        PIECE(constants, queries, sizeof(int32_t), "queries");
        PIECE(bytes, bundles, bundle_numbers, "block of rows");
        PIECE(offsets, bundles, BSW_BUNDLE_ROWS * sizeof(int32_t), "block of rows");
        return count;
    }
    PIECE(places, threads, tile_rows * sizeof(uint32_t), "candidates");
    PIECE(items, threads, BSW_NEIGHBOUR_STEP_ROWS * sizeof(uint64_t), "candidates");
    PIECE(numbers, queries, dims * sizeof(double), "queries");
    PIECE(norms, queries, sizeof(double), "queries");
    PIECE(screened, groups, BSW_SCREEN_QUERIES * dims * sizeof(float), "queries");
    PIECE(rows, bundles, BSW_BUNDLE_ROWS * dims * sizeof(float), "block of rows");
    PIECE(biases, bundles, BSW_BUNDLE_ROWS * sizeof(float), "block of rows");
#undef PIECE
    return count;
}

void bsw_neighbour_tiles_deinit(struct bsw_neighbour_tiles *tiles)
{
    struct bsw_neighbour_piece pieces[BSW_NEIGHBOUR_MAX_PIECES];
    size_t count = bsw_neighbour_tiles_pieces(tiles, pieces);
    for (size_t i = 0; i < count; i++) bsw_free(pieces[i].out);
}

// ---- queries ----

static void put_whole_query(struct bsw_neighbour_tiles *tiles, size_t q, const void *numbers)
{
    // raw_codes takes queries as floats; the first thread's room for rows holds one.
    tiles->encode->to_float(tiles->query_type, numbers, tiles->dims, tiles->floats);
    bsw_raw_query_encode(tiles->type, tiles->metric, tiles->floats, tiles->dims, tiles->padded_dims,
                         tiles->components + q * tiles->padded_dims, &tiles->constants[q]);
}

enum bsw_row_fault bsw_neighbour_tiles_put_query(struct bsw_neighbour_tiles *tiles, size_t q,
                                                 const void *numbers)
{
    size_t dims = tiles->dims, in_group = q % BSW_SCREEN_QUERIES;
    if (tiles->is_whole) { // such numbers have no faults
        put_whole_query(tiles, q, numbers);
        return BSW_ROW_GOOD;
    }
    double *query = tiles->numbers + q * dims;
    tiles->refine->to_double(tiles->query_type, numbers, dims, query);
    double norm = tiles->norms[q] = tiles->refine->squared_norm(query, dims);
    enum bsw_row_fault fault = bsw_row_fault_of(norm, tiles->metric);
    if (fault != BSW_ROW_GOOD) return fault;
    double scale = bsw_screen_query_scale(tiles->metric, norm);
    float *screened = tiles->screened + (q - in_group) * dims;
    if (in_group == 0) memset(screened, 0, BSW_SCREEN_QUERIES * dims * sizeof *screened);
    for (size_t d = 0; d < dims; d++)
        screened[d * BSW_SCREEN_QUERIES + in_group] = (float)(query[d] * scale);
    return BSW_ROW_GOOD;
}

// ---- rows ----

static uint32_t first_lanes(size_t count)
{
    return count < 32 ? (1u << count) - 1 : UINT32_MAX;
}

static void pack_whole(struct bsw_neighbour_tiles *tiles, size_t bundle, const unsigned char *raw,
                       size_t num_rows)
{
    size_t bytes = BSW_BUNDLE_ROWS * tiles->padded_dims;
    uint8_t *out = tiles->bytes + bundle * bytes;
    if (num_rows < BSW_BUNDLE_ROWS || tiles->dims < tiles->padded_dims) memset(out, 0, bytes);
    int32_t *offsets = tiles->offsets + bundle * BSW_BUNDLE_ROWS;
    memset(offsets, 0, BSW_BUNDLE_ROWS * sizeof *offsets);
    bsw_raw_pack_bundle(tiles->type, tiles->metric, raw, num_rows, tiles->dims, out, offsets);
    tiles->masks[bundle] = first_lanes(num_rows);
}

void bsw_neighbour_tiles_pack(struct bsw_neighbour_tiles *tiles, size_t thread, size_t bundle,
                              const unsigned char *raw, size_t num_rows,
                              enum bsw_row_fault faults[BSW_BUNDLE_ROWS])
{
    float scales[BSW_BUNDLE_ROWS] = {0}, *biases = tiles->biases + bundle * BSW_BUNDLE_ROWS;
    double norms[BSW_BUNDLE_ROWS];
    size_t dims = tiles->dims, first = bundle * BSW_BUNDLE_ROWS;
    uint32_t mask = 0;
    for (size_t r = 0; r < num_rows; r++) faults[r] = BSW_ROW_GOOD;
    if (tiles->is_whole) {
        pack_whole(tiles, bundle, raw, num_rows);
        return;
    }
    const float *floats = (const float *)(const void *)raw;
    if (tiles->type != BSW_VECTOR_FLOAT32) {
        float *room = tiles->floats + thread * BSW_BUNDLE_ROWS * dims;
        tiles->encode->to_float(tiles->type, raw, num_rows * dims, room);
        floats = room;
    }
    tiles->encode->squared_norms(floats, num_rows, dims, norms);
    memset(biases, 0, BSW_BUNDLE_ROWS * sizeof *biases);
    for (size_t r = 0; r < num_rows; r++) {
        faults[r] = bsw_row_fault_of(norms[r], tiles->metric);
        if (faults[r] != BSW_ROW_GOOD) continue;
        scales[r] = bsw_screen_row_scale(tiles->metric, norms[r]);
        biases[r] = bsw_screen_row_bias(tiles->metric, norms[r], dims);
        mask |= 1u << r;
    }
    tiles->screen->pack(floats, scales, num_rows, dims, tiles->rows + first * dims);
    tiles->masks[bundle] = mask;
}

// ---- comparison ----

// Exact values of the rows at some places of the step, as candidates.
static void value_rows(const struct bsw_neighbour_tiles *tiles, size_t query,
                       const unsigned char *raw, uint32_t local_row, const uint32_t *places,
                       size_t count, uint64_t *candidates)
{
    size_t dims = tiles->dims, row_bytes = dims * bsw_vector_type_bytes(tiles->type);
    size_t ahead = row_bytes < PREFETCH_BYTES ? row_bytes : PREFETCH_BYTES;
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_ROWS < count) {
            const unsigned char *next = raw + places[i + PREFETCH_ROWS] * row_bytes;
            for (size_t at = 0; at < ahead; at += LINE_BYTES) __builtin_prefetch(next + at);
        }
        float value =
            tiles->refine->value(tiles->metric, tiles->type, raw + places[i] * row_bytes,
                                 tiles->numbers + query * dims, tiles->norms[query], dims);
        candidates[i] = bsw_candidate_pack(
            bsw_score_from_float(bsw_metric_key(tiles->metric, value)), local_row + places[i]);
    }
}

static void scan_screened(const struct bsw_neighbour_tiles *tiles,
                          const struct bsw_neighbour_step *step, struct bsw_running_best *lists,
                          size_t thread, uint64_t *scratch)
{
    uint32_t *places =
        tiles->places + thread * BSW_NEIGHBOUR_TILE_QUERIES * BSW_NEIGHBOUR_STEP_ROWS;
    uint64_t *items = tiles->items + thread * BSW_NEIGHBOUR_STEP_ROWS;
    struct bsw_screen_output outputs[BSW_NEIGHBOUR_TILE_QUERIES];
    float limits[BSW_NEIGHBOUR_TILE_QUERIES];
    size_t dims = tiles->dims, first = step->bundle * BSW_BUNDLE_ROWS;
    for (size_t q = 0; q < step->num_queries; q++) {
        const struct bsw_running_best *list = &lists[step->first_query + q];
        outputs[q].places = places + q * BSW_NEIGHBOUR_STEP_ROWS;
        limits[q] = list->is_full
                        ? INFINITY
                        : bsw_screen_limit(tiles->metric, tiles->norms[step->first_query + q], dims,
                                           list->limit);
    }
    const struct bsw_screen_tile tile = {tiles->rows + first * dims, tiles->biases + first,
                                         tiles->masks + step->bundle, step->num_bundles, dims};
    const struct bsw_screen_queries queries = {tiles->screened + step->first_query * dims, limits,
                                               step->num_queries};
    const unsigned char *raw = step->raw + first * dims * bsw_vector_type_bytes(tiles->type);
    tiles->screen->scan(&tile, &queries, outputs);
    for (size_t q = 0; q < step->num_queries; q++) {
        value_rows(tiles, step->first_query + q, raw, step->local_row + (uint32_t)first,
                   outputs[q].places, outputs[q].count, items);
        bsw_running_best_add(&lists[step->first_query + q], tiles->select, items, outputs[q].count,
                             scratch);
    }
}

static void scan_whole(const struct bsw_neighbour_tiles *tiles,
                       const struct bsw_neighbour_step *step, struct bsw_running_best *lists,
                       size_t thread, uint64_t *scratch)
{
    uint64_t *items = tiles->items + thread * BSW_NEIGHBOUR_TILE_QUERIES * BSW_NEIGHBOUR_STEP_ROWS;
    struct bsw_matrix_output outputs[BSW_NEIGHBOUR_TILE_QUERIES];
    size_t first = step->bundle * BSW_BUNDLE_ROWS;
    for (size_t q = 0; q < step->num_queries; q++) {
        const struct bsw_running_best *list = &lists[step->first_query + q];
        outputs[q] = (struct bsw_matrix_output){items + q * BSW_NEIGHBOUR_STEP_ROWS, 0,
                                                list->is_full ? UINT32_MAX : list->limit};
    }
    const struct bsw_matrix_tile tile = {.bytes = tiles->bytes + first * tiles->padded_dims,
                                         .num_bundles = step->num_bundles,
                                         .padded_dims = (uint32_t)tiles->padded_dims,
                                         .first_row = step->local_row + (uint32_t)first,
                                         .masks = tiles->masks + step->bundle,
                                         .offsets = tiles->offsets + first};
    const struct bsw_matrix_queries queries = {.num_queries = step->num_queries,
                                               .components = tiles->components +
                                                             step->first_query * tiles->padded_dims,
                                               .constants = tiles->constants + step->first_query,
                                               .factor = bsw_raw_factor(tiles->metric)};
    tiles->matrix_scan->scan(&tile, &queries, outputs);
    for (size_t q = 0; q < step->num_queries; q++) {
        bsw_running_best_add(&lists[step->first_query + q], tiles->select, outputs[q].items,
                             outputs[q].count, scratch);
    }
}

// Cuts lists that have a limit to gain by it: one that is too low lets rows through, a cut costs
// about as much as keep exact values.
static void refresh(const struct bsw_neighbour_tiles *tiles, struct bsw_running_best *list,
                    uint64_t *scratch)
{
    int is_open = list->limit == 0 && list->count >= list->keep;
    if (is_open || list->count > list->keep + list->keep / 8)
        bsw_running_best_cut(list, tiles->select, scratch);
}

void bsw_neighbour_tiles_scan(const struct bsw_neighbour_tiles *tiles, size_t thread,
                              const struct bsw_neighbour_step *step, struct bsw_running_best *lists,
                              uint64_t *scratch)
{
    if (tiles->is_whole)
        scan_whole(tiles, step, lists, thread, scratch);
    else
        scan_screened(tiles, step, lists, thread, scratch);
    for (size_t q = 0; q < step->num_queries; q++)
        refresh(tiles, &lists[step->first_query + q], scratch);
}
