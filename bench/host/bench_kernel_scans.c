// SPDX-License-Identifier: Apache-2.0
// Scans, filters and what else selects: random codes in planes, and queries of whose rows about two
// in a thousand are selected, as in the middle of a long scan.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/host/bench_kernel.h"
#include "bench/host/scan_case.h"
#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"
#include "kernels/tuning/scan_tuning.h"
#include "shard/host/shard_tiles.h"

#define SELECTED_SHARE 0.002 // of the rows, for a query
#define SAMPLE_BUNDLES 128
#define QUEUE_LENGTH   4 // of a thread

enum filter { NO_FILTER, INTEGER_FILTER, AFFINE_FILTER };

struct scan_input {
    struct bsw_kernel_shape shape;
    struct bsw_scan_case scan; // limits: of float keys
    int is_whole;              // matrix scans: every tile is unpacked, not the first one alone
    enum filter filter;        // of a plane scan
    uint32_t *integer_limits;  // [num_queries]
    int32_t *all_dots;         // [rows] of query 0, for filters alone
    uint64_t *candidates;      // [rows] of query 0, for queues
    // of a first stage, 0 dims: none
    uint32_t stage_dims, *stage_limits; // [num_queries]
    struct bsw_matrix_output *outputs;  // [num_queries], of a tile
};

// ---- one tile ----

static size_t tile_size(const struct scan_input *input, size_t tile)
{
    size_t rest = input->scan.num_bundles - tile * input->scan.tile_bundles;
    return rest < input->scan.tile_bundles ? rest : input->scan.tile_bundles;
}

static void filter_dots(const struct scan_input *input, enum bsw_cpu_level level, size_t bundle,
                        size_t num_bundles, const int32_t *dots, struct bsw_kernel_output *output)
{
    const struct bsw_select_table *table = bsw_select_table_get(level);
    const struct bsw_scan_case *scan = &input->scan;
    size_t row = bundle * BSW_BUNDLE_ROWS;
    uint64_t *items = (uint64_t *)(void *)output->values;
    if (input->filter == INTEGER_FILTER)
        output->counts[0] = table->filter_integer(dots, scan->masks + bundle, num_bundles,
                                                  (uint32_t)row, input->integer_limits[0], items);
    else
        output->counts[0] = table->filter_affine(
            dots, scan->scales + row, scan->biases + row, scan->query_scales[0],
            scan->masks + bundle, num_bundles, (uint32_t)row, scan->limits[0], items);
}

static void run_planes(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    size_t bundle = tile * input->scan.tile_bundles, num_bundles = tile_size(input, tile);
    int32_t *dots =
        input->filter == NO_FILTER ? (int32_t *)(void *)output->values : input->scan.dots;
    bsw_scan_case_dots(&input->scan, level, 0, bundle, num_bundles, dots);
    output->counts[0] = num_bundles * BSW_BUNDLE_ROWS;
    if (input->filter != NO_FILTER) filter_dots(input, level, bundle, num_bundles, dots, output);
}

static void run_filter(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    size_t bundle = tile * input->scan.tile_bundles;
    filter_dots(input, level, bundle, tile_size(input, tile),
                input->all_dots + bundle * BSW_BUNDLE_ROWS, output);
}

// Queues are empty before the first tile.
static void run_queue(void *context, enum bsw_cpu_level level, size_t tile,
                      struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    size_t row = tile * input->scan.tile_bundles * BSW_BUNDLE_ROWS;
    uint64_t *queues = (uint64_t *)(void *)output->values;
    if (tile == 0) memset(queues, 0, output->list_values * sizeof *queues);
    bsw_select_table_get(level)->queue_insert(
        input->candidates + row, tile_size(input, tile) * BSW_BUNDLE_ROWS, QUEUE_LENGTH, queues);
    output->counts[0] = output->list_values;
}

static void run_unpack(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    size_t num_bundles = tile_size(input, tile);
    bsw_scan_case_unpack(&input->scan, level, tile * input->scan.tile_bundles, num_bundles,
                         output->values);
    output->counts[0] = bsw_matrix_tile_bytes(input->shape.layout.padded_dims, num_bundles);
}

static void set_outputs(const struct scan_input *input, const uint32_t *limits,
                        const struct bsw_kernel_output *output)
{
    uint64_t *items = (uint64_t *)(void *)output->values;
    for (size_t q = 0; q < input->scan.num_queries; q++)
        input->outputs[q] =
            (struct bsw_matrix_output){items + q * output->list_values, 0, limits[q]};
}

static void take_counts(const struct scan_input *input, struct bsw_kernel_output *output)
{
    for (size_t q = 0; q < input->scan.num_queries; q++)
        output->counts[q] = input->outputs[q].count;
}

static void run_matrix(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    const struct bsw_scan_case *scan = &input->scan;
    size_t bundle = tile * scan->tile_bundles, num_bundles = tile_size(input, tile);
    const struct bsw_matrix_tile matrix_tile = bsw_scan_case_tile(scan, bundle, num_bundles);
    const struct bsw_matrix_queries queries = bsw_scan_case_queries(scan, scan->num_queries);
    if (input->is_whole) bsw_scan_case_unpack(scan, level, bundle, num_bundles, scan->bytes);
    set_outputs(input, scan->limits, output);
    bsw_matrix_scan_table_get(level)->scan(&matrix_tile, &queries, input->outputs);
    take_counts(input, output);
}

// The last list has how many rows and half bundles went on.
static void run_staged(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    const struct bsw_scan_case *scan = &input->scan;
    const struct bsw_matrix_tile matrix_tile =
        bsw_scan_case_tile(scan, tile * scan->tile_bundles, tile_size(input, tile));
    const struct bsw_matrix_queries queries = bsw_scan_case_queries(scan, scan->num_queries);
    const struct bsw_matrix_stage stage = bsw_scan_case_stage(scan, input->stage_dims);
    struct bsw_stage_counts counts = {0, 0};
    set_outputs(input, input->stage_limits, output);
    bsw_matrix_scan_table_get(level)->scan_staged(&matrix_tile, &stage, &queries, input->outputs,
                                                  &counts);
    take_counts(input, output);
    uint64_t *last = (uint64_t *)(void *)output->values + scan->num_queries * output->list_values;
    last[0] = counts.rows;
    last[1] = counts.halves;
    output->counts[scan->num_queries] = 2;
}

// ---- input ----

static void fill_all(struct bsw_scan_case *scan)
{
    bsw_scan_case_fill_codes(scan, BSW_PLANES_RANDOM, 1);
    for (size_t b = 0; b < scan->num_bundles; b++) scan->masks[b] = UINT32_MAX;
    for (size_t row = 0; row < scan->num_bundles * BSW_BUNDLE_ROWS; row++) {
        scan->scales[row] = (uint16_t)(0x3c00 + bsw_hash2(100, row) % 128); // 1 to 1.125
        scan->biases[row] = (float)(bsw_hash2(101, row) % 1000);
    }
    for (size_t q = 0; q < scan->num_queries; q++) {
        bsw_scan_case_fill_query(scan, q, BSW_PLANES_RANDOM, 2);
        scan->query_scales[q] = 1.0f + (float)(q % 100) * 0.01f;
    }
}

static int compare_descending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

// The score that the share of rows reaches; `scores` are sorted.
static uint32_t limit_of(uint32_t *scores, size_t num)
{
    qsort(scores, num, sizeof *scores, compare_descending);
    return scores[(size_t)((double)num * SELECTED_SHARE)];
}

// Limits by the first rows; the first tile is left in bytes.
static enum bsw_status choose_limits(struct scan_input *input, struct bsw_error *err)
{
    struct bsw_scan_case *scan = &input->scan;
    size_t sampled = scan->num_bundles < SAMPLE_BUNDLES ? scan->num_bundles : SAMPLE_BUNDLES;
    size_t rows = sampled * BSW_BUNDLE_ROWS;
    int32_t *dots = NULL;
    uint32_t *scores = NULL;
    enum bsw_status status = bsw_allocate(&scores, rows, sizeof *scores, "scores", err);
    if (status == BSW_OK) status = bsw_allocate(&dots, rows, sizeof *dots, "sums", err);
    if (status != BSW_OK) {
        bsw_free(&scores);
        return status;
    }
    for (size_t q = 0; q < scan->num_queries; q++) {
        bsw_scan_case_dots(scan, BSW_CPU_REFERENCE, q, 0, sampled, dots);
        for (size_t r = 0; r < rows; r++) scores[r] = bsw_score_from_integer(dots[r]);
        input->integer_limits[q] = limit_of(scores, rows);
        for (size_t r = 0; r < rows; r++) {
            float scale = bsw_half_to_float(scan->scales[r]) * (float)dots[r];
            float key = fmaf(scan->query_scales[q], scale, scan->biases[r]) + 0.0f;
            scores[r] = bsw_score_from_float(key);
        }
        scan->limits[q] = limit_of(scores, rows);
    }
    bsw_scan_case_unpack(scan, BSW_CPU_REFERENCE, 0, tile_size(input, 0), scan->bytes);
    bsw_free(&scores);
    bsw_free(&dots);
    return BSW_OK;
}

// A run over tiles of so many bundles.
static enum bsw_status make_input(const struct bsw_kernel_shape *shape, size_t num_queries,
                                  size_t tile_bundles, struct bsw_kernel_run *out,
                                  struct bsw_error *err)
{
    struct scan_input *input = NULL;
    BSW_TRY(bsw_kernel_allocate(out, &input, 1, sizeof *input, err));
    out->input = input;
    input->shape = *shape;
    struct bsw_scan_case *scan = &input->scan;
    scan->layout = shape->layout;
    scan->query_bits = shape->query_bits;
    scan->num_queries = num_queries;
    scan->num_bundles = bsw_num_bundles(shape->rows);
    scan->tile_bundles = tile_bundles < scan->num_bundles ? tile_bundles : scan->num_bundles;
    BSW_TRY(bsw_scan_case_allocate(scan, bsw_kernel_allocate, out, err));
    BSW_TRY(bsw_kernel_allocate(out, &input->integer_limits, num_queries, sizeof(uint32_t), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->stage_limits, num_queries, sizeof(uint32_t), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->outputs, num_queries, sizeof *input->outputs, err));
    fill_all(scan);
    BSW_TRY(choose_limits(input, err));
    out->num_tiles = (scan->num_bundles + scan->tile_bundles - 1) / scan->tile_bundles;
    out->num_lists = 1;
    out->queries = num_queries;
    return BSW_OK;
}

// ---- a first stage ----

// Tails are the scales, so a reach is the most that the other dimensions can add to any dot.
static void prepare_stage(struct scan_input *input, size_t query)
{
    struct bsw_scan_case *scan = &input->scan;
    const int8_t *component = scan->components + query * scan->layout.padded_dims;
    int32_t rest = 0;
    for (uint32_t s = 0; s < scan->layout.num_segments; s++) {
        const struct bsw_segment *segment = &scan->layout.segments[s];
        for (uint32_t i = 0; i < 32 * segment->words; i++, component++) {
            if (segment->padded_dim + i >= input->stage_dims)
                rest += abs(((1 << segment->bits) - 1) * *component);
        }
    }
    bsw_scan_case_set_stage(scan, query, input->stage_dims);
    scan->reaches[query] = scan->query_scales[query] * (float)rest;
    scan->slacks[query] = 1e-5f * scan->reaches[query];
}

// The best bound of half a bundle of the first tile, but for roundings.
static float half_bound(const struct scan_input *input, size_t half, size_t query)
{
    const struct bsw_scan_case *scan = &input->scan;
    size_t padded_dims = scan->layout.padded_dims;
    const uint8_t *bytes = scan->bytes + half * BSW_HALF_ROWS * padded_dims;
    const int8_t *components = scan->components + query * padded_dims;
    float best = -INFINITY;
    for (size_t r = 0; r < BSW_HALF_ROWS; r++) {
        size_t row = half * BSW_HALF_ROWS + r;
        int32_t sum = 0;
        for (size_t i = 0; i < input->stage_dims; i++)
            sum += bytes[(i / 4 * BSW_HALF_ROWS + r) * 4 + i % 4] * components[i];
        float dot = (float)(scan->stage_constants[query] - 2 * sum);
        float scaled = scan->query_scales[query] * dot + scan->reaches[query];
        best = fmaxf(best, bsw_half_to_float(scan->scales[row]) * scaled + scan->biases[row]);
    }
    return best;
}

// Limits that one in fifty half bundles of the first tile may reach, at least one.
static enum bsw_status choose_stage_limits(struct scan_input *input, struct bsw_error *err)
{
    size_t num_halves = 2 * tile_size(input, 0);
    uint32_t *scores = NULL;
    BSW_TRY(bsw_allocate(&scores, num_halves, sizeof *scores, "scores", err));
    for (size_t q = 0; q < input->scan.num_queries; q++) {
        prepare_stage(input, q);
        for (size_t h = 0; h < num_halves; h++)
            scores[h] = bsw_score_from_float(half_bound(input, h, q));
        qsort(scores, num_halves, sizeof *scores, compare_descending);
        input->stage_limits[q] = scores[num_halves / 50];
    }
    bsw_free(&scores);
    return BSW_OK;
}

// ---- the cases ----

static double code_bytes(const struct bsw_kernel_shape *shape)
{
    return (double)shape->rows * bsw_layout_row_bytes(&shape->layout);
}

// Scale, bias and a mask bit of every row.
static double row_bytes(const struct bsw_kernel_shape *shape, enum filter filter)
{
    double masks = (double)shape->rows / 8;
    return filter == AFFINE_FILTER ? masks + 6 * (double)shape->rows
                                   : (filter == INTEGER_FILTER ? masks : 0);
}

// XFBQ Eq. 10: a popcount for each word and pair of planes, 32 bits each.
static double num_popcounts(const struct bsw_kernel_shape *shape)
{
    return code_bytes(shape) / 4 * shape->query_bits;
}

// The variant is a filter.
static enum bsw_status make_planes(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    BSW_TRY(make_input(shape, 1, BSW_TILE_BUNDLES, out, err));
    struct scan_input *input = out->input;
    input->filter = (enum filter)out->variant;
    out->run_tile = run_planes;
    out->list_values = input->scan.tile_bundles * BSW_BUNDLE_ROWS;
    out->value_bytes = input->filter == NO_FILTER ? sizeof(int32_t) : sizeof(uint64_t);
    out->bytes = code_bytes(shape) + row_bytes(shape, input->filter);
    out->operations = num_popcounts(shape);
    return BSW_OK;
}

static enum bsw_status make_filter(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    BSW_TRY(make_planes(shape, out, err));
    struct scan_input *input = out->input;
    BSW_TRY(bsw_kernel_allocate(out, &input->all_dots, shape->rows, sizeof(int32_t), err));
    bsw_scan_case_dots(&input->scan, BSW_CPU_REFERENCE, 0, 0, input->scan.num_bundles,
                       input->all_dots);
    out->run_tile = run_filter;
    out->bytes = row_bytes(shape, input->filter) + 4 * (double)shape->rows; // the integers
    out->operations = 0;
    return BSW_OK;
}

static enum bsw_status make_queue(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                  struct bsw_error *err)
{
    BSW_TRY(make_filter(shape, out, err));
    struct scan_input *input = out->input;
    BSW_TRY(bsw_kernel_allocate(out, &input->candidates, shape->rows, sizeof(uint64_t), err));
    bsw_select_reference.filter_integer(input->all_dots, input->scan.masks, input->scan.num_bundles,
                                        0, 0, input->candidates);
    out->run_tile = run_queue;
    out->list_values = QUEUE_LENGTH * BSW_QUEUE_THREADS;
    out->bytes = 8 * (double)shape->rows;
    return BSW_OK;
}

enum { ALL_QUERIES, ONE_QUERY };

static enum bsw_status make_matrix(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    struct bsw_scan_tuning tuning = bsw_scan_tuning_of(shape->level, &shape->layout);
    size_t num_queries = out->variant == ONE_QUERY ? 1 : shape->queries;
    BSW_TRY(make_input(shape, num_queries,
                       bsw_matrix_tile_bundles(shape->layout.padded_dims, tuning.tile_kib), out,
                       err));
    struct scan_input *input = out->input;
    out->run_tile = run_matrix;
    out->num_lists = num_queries;
    out->list_values = input->scan.tile_bundles * BSW_BUNDLE_ROWS;
    out->value_bytes = sizeof(uint64_t);
    out->operations = (double)shape->rows * (double)num_queries * (double)shape->layout.dims;
    return BSW_OK;
}

static enum bsw_status make_unpack(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    BSW_TRY(make_matrix(shape, out, err));
    const struct scan_input *input = out->input;
    out->run_tile = run_unpack;
    out->num_lists = 1;
    out->list_values = bsw_matrix_tile_bytes(shape->layout.padded_dims, input->scan.tile_bundles);
    out->value_bytes = 1;
    out->bytes = code_bytes(shape) + (double)shape->rows * (double)shape->layout.padded_dims;
    out->operations = 0;
    out->queries = 0;
    return BSW_OK;
}

static enum bsw_status make_whole(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                  struct bsw_error *err)
{
    BSW_TRY(make_matrix(shape, out, err));
    struct scan_input *input = out->input;
    input->is_whole = 1;
    out->bytes = code_bytes(shape) + row_bytes(shape, AFFINE_FILTER);
    return BSW_OK;
}

// Half of the dimensions; fewer than 64 have no stage.
static enum bsw_status make_staged(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    BSW_TRY(make_matrix(shape, out, err));
    struct scan_input *input = out->input;
    input->stage_dims = shape->layout.padded_dims / 64 * 32;
    if (input->stage_dims == 0) out->num_tiles = 0;
    out->run_tile = run_staged;
    out->num_lists = shape->queries + 1;
    return choose_stage_limits(input, err);
}

const struct bsw_kernel_case bsw_kernel_scans[] = {
    {"plane_scan", "dots", BSW_LIMIT_READ, NO_FILTER, make_planes},
    {"plane_scan", "plain rows", BSW_LIMIT_READ, INTEGER_FILTER, make_planes},
    {"plane_scan", "scaled rows", BSW_LIMIT_READ, AFFINE_FILTER, make_planes},
    {"matrix_scan", "unpack", BSW_LIMIT_COPY, ONE_QUERY, make_unpack},
    {"matrix_scan", "scan", BSW_LIMIT_INT8, ALL_QUERIES, make_matrix},
    {"matrix_scan", "staged scan", BSW_LIMIT_INT8, ALL_QUERIES, make_staged},
    {"matrix_scan", "unpack and scan", BSW_LIMIT_INT8, ALL_QUERIES, make_whole},
    {"select", "filter_integer", BSW_LIMIT_READ, INTEGER_FILTER, make_filter},
    {"select", "filter_affine", BSW_LIMIT_READ, AFFINE_FILTER, make_filter},
    {"select", "queue_insert", BSW_LIMIT_READ, INTEGER_FILTER, make_queue},
    {0},
};
