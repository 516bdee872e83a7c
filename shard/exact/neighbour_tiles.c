// SPDX-License-Identifier: Apache-2.0
#include "shard/exact/neighbour_tiles.h"

#include <math.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "common/files/index_manifest.h"
#include "kernels/encode/raw_codes.h"
#include "kernels/screen/screen_margin.h"
#include "shard/exact/neighbour_codes.h"

// Rows whose exact values are wanted lie anywhere in the block: they are asked for some rows ahead.
#define PREFETCH_ROWS  4
#define PREFETCH_BYTES ((size_t)512)
#define LINE_BYTES     ((size_t)64)
// Rows whose values are computed one after the other.
#define VALUED_ROWS 256
// Rows of a block that tell of what size its codes are.
#define UNIT_SAMPLE 16

void bsw_neighbour_tiles_init(struct bsw_neighbour_tiles *tiles, enum bsw_cpu_level level)
{
    int is_integer = tiles->type == BSW_VECTOR_UINT8 || tiles->type == BSW_VECTOR_INT8;
    tiles->is_whole = is_integer && tiles->type == tiles->query_type &&
                      !bsw_has_unit_rows(tiles->metric) && tiles->dims <= BSW_RAW_MAX_DIMS;
    tiles->padded_dims = (tiles->dims + 31) / 32 * 32;
    tiles->block_bundles = (tiles->block_rows + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS;
    tiles->refine = bsw_refine_table_get(level);
    tiles->encode = bsw_encode_table_get(level);
    tiles->screen = bsw_screen_table_get(level);
    tiles->matrix_scan = bsw_matrix_scan_table_get(level);
    tiles->select = bsw_select_table_get(level);
    tiles->is_coded =
        !tiles->is_whole && tiles->screen->pack_codes && tiles->dims <= BSW_SCREEN_CODE_DIMS;
}

// Rows of the longest step.
static size_t step_room(const struct bsw_neighbour_tiles *tiles)
{
    size_t bundles = tiles->block_bundles;
    return BSW_BUNDLE_ROWS *
           (bundles < BSW_NEIGHBOUR_STEP_BUNDLES ? bundles : BSW_NEIGHBOUR_STEP_BUNDLES);
}

size_t bsw_neighbour_tiles_pieces(struct bsw_neighbour_tiles *tiles,
                                  struct bsw_neighbour_piece pieces[BSW_NEIGHBOUR_MAX_PIECES])
{
    size_t queries = tiles->num_queries, bundles = tiles->block_bundles, dims = tiles->dims;
    size_t threads = tiles->num_threads, bundle_numbers = BSW_BUNDLE_ROWS * tiles->padded_dims;
    const size_t tile_rows = (size_t)BSW_NEIGHBOUR_TILE_QUERIES * BSW_NEIGHBOUR_STEP_ROWS;
    size_t step_rows = step_room(tiles);
    size_t groups = (queries + BSW_SCREEN_QUERIES - 1) / BSW_SCREEN_QUERIES, count = 0;
#define PIECE(member, number, bytes, name) \
    pieces[count++] = (struct bsw_neighbour_piece){&tiles->member, number, bytes, name}
    PIECE(masks, bundles, sizeof(uint32_t), "block of rows");
    PIECE(floats, threads, BSW_BUNDLE_ROWS * dims * sizeof(float), "rows");
    if (tiles->is_whole || tiles->is_coded) {
        PIECE(items, threads, tile_rows * sizeof(uint64_t), "candidates");
        PIECE(components, queries, tiles->padded_dims, "queries");
        PIECE(constants, queries, sizeof(int32_t), "queries");
        PIECE(bytes, bundles, bundle_numbers, "block of rows");
    } else {
        PIECE(rows, bundles, BSW_BUNDLE_ROWS * dims * sizeof(float), "block of rows");
    }
    if (tiles->is_whole) {
        PIECE(offsets, bundles, BSW_BUNDLE_ROWS * sizeof(int32_t), "block of rows");
        return count;
    }
    PIECE(places, threads, tile_rows * sizeof(uint32_t), "candidates");
    PIECE(numbers, queries, dims * sizeof(double), "queries");
    PIECE(norms, queries, sizeof(double), "queries");
    PIECE(screened, groups, BSW_SCREEN_QUERIES * dims * sizeof(float), "queries");
    PIECE(biases, bundles, BSW_BUNDLE_ROWS * sizeof(float), "block of rows");
    if (!tiles->is_coded) return count;
    PIECE(steps, queries, sizeof(double), "queries");
    PIECE(scales, bundles, BSW_BUNDLE_ROWS * sizeof(uint16_t), "block of rows");
    PIECE(row_norms, bundles, BSW_BUNDLE_ROWS * sizeof(double), "block of rows");
    PIECE(step_rows, threads, step_rows * dims * sizeof(float), "rows");
    PIECE(step_biases, threads, step_rows * sizeof(float), "rows");
    PIECE(pauses, threads, sizeof *tiles->pauses, "rows");
    return count;
#undef PIECE
}

void bsw_neighbour_tiles_deinit(struct bsw_neighbour_tiles *tiles)
{
    struct bsw_neighbour_piece pieces[BSW_NEIGHBOUR_MAX_PIECES];
    size_t count = bsw_neighbour_tiles_pieces(tiles, pieces);
    for (size_t i = 0; i < count; i++) bsw_free(pieces[i].out);
}

void bsw_neighbour_tiles_reset(struct bsw_neighbour_tiles *tiles)
{
    if (tiles->is_coded) memset(tiles->pauses, 0, tiles->num_threads * sizeof *tiles->pauses);
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
    if (tiles->is_coded) bsw_neighbour_codes_put_query(tiles, q, scale);
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

// As floats: the rows themselves, or the thread's room.
static const float *float_rows(const struct bsw_neighbour_tiles *tiles, size_t thread,
                               const unsigned char *raw, size_t num_rows)
{
    if (tiles->type == BSW_VECTOR_FLOAT32) return (const float *)(const void *)raw;
    float *room = tiles->floats + thread * BSW_BUNDLE_ROWS * tiles->dims;
    tiles->encode->to_float(tiles->type, raw, num_rows * tiles->dims, room);
    return room;
}

// A bundle as screen takes it; rows with a fault, whose mask bits are 0, may be any numbers.
static void pack_floats(const struct bsw_neighbour_tiles *tiles, const float *floats,
                        const double *norms, size_t num_rows, uint32_t mask, float *rows,
                        float *biases)
{
    float scales[BSW_BUNDLE_ROWS] = {0};
    double share = bsw_screen_share(tiles->dims);
    memset(biases, 0, BSW_BUNDLE_ROWS * sizeof *biases);
    for (size_t r = 0; r < num_rows; r++) {
        if (!(mask >> r & 1)) continue;
        scales[r] = bsw_screen_row_scale(tiles->metric, norms[r]);
        biases[r] = bsw_screen_row_bias(tiles->metric, norms[r], share, tiles->dims);
    }
    tiles->screen->pack(floats, scales, num_rows, tiles->dims, rows);
}

void bsw_neighbour_tiles_begin(struct bsw_neighbour_tiles *tiles, const unsigned char *raw,
                               size_t num_rows)
{
    size_t row_bytes = tiles->dims * bsw_vector_type_bytes(tiles->type);
    if (!tiles->is_coded) return;
    bsw_neighbour_codes_begin(tiles);
    for (size_t i = 0; i < UNIT_SAMPLE; i++) {
        size_t row = i * num_rows / UNIT_SAMPLE;
        bsw_neighbour_codes_look_at(tiles, float_rows(tiles, 0, raw + row * row_bytes, 1));
    }
}

void bsw_neighbour_tiles_pack(struct bsw_neighbour_tiles *tiles, size_t thread, size_t bundle,
                              const unsigned char *raw, size_t num_rows,
                              enum bsw_row_fault faults[BSW_BUNDLE_ROWS])
{
    double norms[BSW_BUNDLE_ROWS];
    size_t first = bundle * BSW_BUNDLE_ROWS;
    uint32_t mask = 0;
    for (size_t r = 0; r < num_rows; r++) faults[r] = BSW_ROW_GOOD;
    if (tiles->is_whole) {
        pack_whole(tiles, bundle, raw, num_rows);
        return;
    }
    const float *floats = float_rows(tiles, thread, raw, num_rows);
    tiles->encode->squared_norms(floats, num_rows, tiles->dims, norms);
    for (size_t r = 0; r < num_rows; r++) {
        faults[r] = bsw_row_fault_of(norms[r], tiles->metric);
        mask |= (uint32_t)(faults[r] == BSW_ROW_GOOD) << r;
    }
    tiles->masks[bundle] = mask;
    if (tiles->is_coded)
        bsw_neighbour_codes_pack(tiles, bundle, floats, norms, num_rows, mask);
    else
        pack_floats(tiles, floats, norms, num_rows, mask, tiles->rows + first * tiles->dims,
                    tiles->biases + first);
}

// ---- comparison ----

// Scores of rows of the step, raw on.
static void value_rows(const struct bsw_neighbour_tiles *tiles, size_t query,
                       const unsigned char *raw, const uint32_t *places, size_t count,
                       uint64_t *scores)
{
    size_t dims = tiles->dims, row_bytes = dims * bsw_vector_type_bytes(tiles->type);
    size_t ahead = row_bytes < PREFETCH_BYTES ? row_bytes : PREFETCH_BYTES;
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_ROWS < count) {
            const unsigned char *next = raw + places[i + PREFETCH_ROWS] * row_bytes;
            for (size_t at = 0; at < ahead; at += LINE_BYTES) __builtin_prefetch(next + at);
        }
        double value =
            tiles->refine->value(tiles->metric, tiles->type, raw + places[i] * row_bytes,
                                 tiles->numbers + query * dims, tiles->norms[query], dims);
        scores[i] = bsw_exact_score(bsw_metric_key(tiles->metric, value));
    }
}

// Adds rows of the step that are let through to query q's list. Some are valued before one is
// compared with the limit: a branch that is taken by chance would keep the next value waiting.
static void add_rows(const struct bsw_neighbour_tiles *tiles, const struct bsw_neighbour_step *step,
                     size_t q, const uint32_t *places, size_t count, struct bsw_exact_best *lists,
                     void *scratch)
{
    uint64_t scores[VALUED_ROWS];
    size_t first = step->bundle * BSW_BUNDLE_ROWS, query = step->first_query + q;
    const unsigned char *raw = step->raw + first * tiles->dims * bsw_vector_type_bytes(tiles->type);
    for (; count > 0; places += VALUED_ROWS) {
        size_t some = count < VALUED_ROWS ? count : VALUED_ROWS;
        value_rows(tiles, query, raw, places, some, scores);
        for (size_t i = 0; i < some; i++)
            bsw_exact_best_add(&lists[query], tiles->select, scores[i],
                               step->local_row + (uint32_t)first + places[i], scratch);
        count -= some;
    }
}

// A tile of the step's rows as screen takes them.
static struct bsw_screen_tile screen_tile(const struct bsw_neighbour_tiles *tiles, size_t thread,
                                          const struct bsw_neighbour_step *step)
{
    size_t dims = tiles->dims, first = step->bundle * BSW_BUNDLE_ROWS;
    struct bsw_screen_tile tile = {
        .masks = step->masks + step->bundle, .num_bundles = step->num_bundles, .dims = dims};
    if (!tiles->is_coded) {
        tile.numbers = tiles->rows + first * dims;
        tile.biases = tiles->biases + first;
        return tile;
    }
    size_t row_bytes = dims * bsw_vector_type_bytes(tiles->type);
    float *rows = tiles->step_rows + thread * step_room(tiles) * dims;
    float *biases = tiles->step_biases + thread * step_room(tiles);
    for (size_t b = 0; b < step->num_bundles; b++) {
        size_t row = first + b * BSW_BUNDLE_ROWS, left = step->num_rows - row;
        size_t num_rows = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
        pack_floats(tiles, float_rows(tiles, thread, step->raw + row * row_bytes, num_rows),
                    tiles->row_norms + row, num_rows, tile.masks[b],
                    rows + b * BSW_BUNDLE_ROWS * dims, biases + b * BSW_BUNDLE_ROWS);
    }
    tile.numbers = rows;
    tile.biases = biases;
    return tile;
}

static void scan_floats(const struct bsw_neighbour_tiles *tiles,
                        const struct bsw_neighbour_step *step, struct bsw_exact_best *lists,
                        size_t thread, void *scratch)
{
    uint32_t *places =
        tiles->places + thread * BSW_NEIGHBOUR_TILE_QUERIES * BSW_NEIGHBOUR_STEP_ROWS;
    struct bsw_screen_output outputs[BSW_NEIGHBOUR_TILE_QUERIES];
    float limits[BSW_NEIGHBOUR_TILE_QUERIES];
    double share = bsw_screen_share(tiles->dims);
    for (size_t q = 0; q < step->num_queries; q++) {
        size_t query = step->first_query + q;
        outputs[q].places = places + q * BSW_NEIGHBOUR_STEP_ROWS;
        limits[q] = bsw_screen_limit(tiles->metric, tiles->norms[query], share, lists[query].limit);
    }
    const struct bsw_screen_tile tile = screen_tile(tiles, thread, step);
    const struct bsw_screen_queries queries = {tiles->screened + step->first_query * tiles->dims,
                                               limits, step->num_queries};
    tiles->screen->scan(&tile, &queries, outputs);
    for (size_t q = 0; q < step->num_queries; q++)
        add_rows(tiles, step, q, outputs[q].places, outputs[q].count, lists, scratch);
}

// The score of the smallest integer that the list takes.
static uint32_t whole_limit(const struct bsw_exact_best *list)
{
    double key = bsw_exact_score_to_key(list->limit);
    if (list->limit <= bsw_exact_score(INT32_MIN)) return 0;
    return key > INT32_MAX ? UINT32_MAX : bsw_score_from_integer((int32_t)ceil(key));
}

static void scan_whole(const struct bsw_neighbour_tiles *tiles,
                       const struct bsw_neighbour_step *step, struct bsw_exact_best *lists,
                       size_t thread, void *scratch)
{
    uint64_t *items = tiles->items + thread * BSW_NEIGHBOUR_TILE_QUERIES * BSW_NEIGHBOUR_STEP_ROWS;
    struct bsw_matrix_output outputs[BSW_NEIGHBOUR_TILE_QUERIES];
    size_t first = step->bundle * BSW_BUNDLE_ROWS;
    for (size_t q = 0; q < step->num_queries; q++) {
        outputs[q] = (struct bsw_matrix_output){items + q * BSW_NEIGHBOUR_STEP_ROWS, 0,
                                                whole_limit(&lists[step->first_query + q])};
    }
    const struct bsw_matrix_tile tile = {.bytes = tiles->bytes + first * tiles->padded_dims,
                                         .num_bundles = step->num_bundles,
                                         .padded_dims = (uint32_t)tiles->padded_dims,
                                         .first_row = step->local_row + (uint32_t)first,
                                         .masks = step->masks + step->bundle,
                                         .offsets = tiles->offsets + first};
    const struct bsw_matrix_queries queries = {.num_queries = step->num_queries,
                                               .components = tiles->components +
                                                             step->first_query * tiles->padded_dims,
                                               .constants = tiles->constants + step->first_query,
                                               .factor = bsw_raw_factor(tiles->metric)};
    tiles->matrix_scan->scan(&tile, &queries, outputs);
    for (size_t q = 0; q < step->num_queries; q++) {
        for (size_t i = 0; i < outputs[q].count; i++) {
            uint64_t item = outputs[q].items[i];
            double key = (double)bsw_score_to_integer(bsw_candidate_score(item));
            bsw_exact_best_add(&lists[step->first_query + q], tiles->select, bsw_exact_score(key),
                               bsw_candidate_row(item), scratch);
        }
    }
}

static void add_coded(const struct bsw_neighbour_tiles *tiles,
                      const struct bsw_neighbour_step *step,
                      const struct bsw_matrix_output *outputs, struct bsw_exact_best *lists,
                      size_t thread, void *scratch)
{
    uint32_t *places =
        tiles->places + thread * BSW_NEIGHBOUR_TILE_QUERIES * BSW_NEIGHBOUR_STEP_ROWS;
    for (size_t q = 0; q < step->num_queries; q++) {
        for (size_t i = 0; i < outputs[q].count; i++)
            places[i] = bsw_candidate_row(outputs[q].items[i]);
        add_rows(tiles, step, q, places, outputs[q].count, lists, scratch);
    }
}

static void scan_screened(const struct bsw_neighbour_tiles *tiles,
                          const struct bsw_neighbour_step *step, struct bsw_exact_best *lists,
                          size_t thread, void *scratch)
{
    struct bsw_matrix_output outputs[BSW_NEIGHBOUR_TILE_QUERIES];
    if (tiles->is_coded && bsw_neighbour_codes_scan(tiles, thread, step, lists, outputs))
        add_coded(tiles, step, outputs, lists, thread, scratch);
    else
        scan_floats(tiles, step, lists, thread, scratch);
}

// Cuts lists that have a limit to gain by it: one that is too low lets rows through. Where those
// need exact values they cost more, so lists are cut sooner.
static void refresh(const struct bsw_neighbour_tiles *tiles, struct bsw_exact_best *list,
                    void *scratch)
{
    size_t more = list->keep / (tiles->is_whole ? 2 : 4);
    int is_open = list->limit == 0 && list->count >= list->keep;
    if (is_open || list->count > list->keep + more)
        bsw_exact_best_cut(list, tiles->select, scratch);
}

void bsw_neighbour_tiles_scan(const struct bsw_neighbour_tiles *tiles, size_t thread,
                              const struct bsw_neighbour_step *step, struct bsw_exact_best *lists,
                              void *scratch)
{
    if (tiles->is_whole)
        scan_whole(tiles, step, lists, thread, scratch);
    else
        scan_screened(tiles, step, lists, thread, scratch);
    for (size_t q = 0; q < step->num_queries; q++)
        refresh(tiles, &lists[step->first_query + q], scratch);
}
