// Scans and filters: random codes in planes, and queries of whose rows about two in a thousand are
// selected, as in the middle of a long scan.
#include <math.h>
#include <stdlib.h>

#include "common/half.h"
#include "common/integer_hash.h"
#include "common/memory.h"
#include "common/result_order.h"
#include "coordinator/bench_kernel.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/scan_tuning.h"
#include "kernels/select/select.h"
#include "shard/shard_tiles.h"

#define SELECTED_SHARE 0.002
#define HALF_ROWS      16 // of a bundle

enum filter { NO_FILTER, INTEGER_FILTER, AFFINE_FILTER };

struct scan_input {
    struct bsw_kernel_shape shape;
    size_t num_bundles, tile_bundles, query_words;
    size_t num_queries;
    int is_whole;       // matrix scans: every tile is unpacked, not the first one alone
    enum filter filter; // of a plane scan
    uint32_t *planes[BSW_MAX_SEGMENTS], *masks;
    uint16_t *scales; // IEEE half
    float *biases;
    uint32_t *query_planes; // [num_queries][query_words]
    int8_t *components;     // [num_queries][padded_dims]
    int32_t *constants;
    float *query_scales;
    uint32_t *integer_limits, *affine_limits; // [num_queries]
    int32_t *all_dots;                        // [rows] of query 0, for filters alone
    // of a first stage, 0 dims: none; [num_queries]
    uint32_t stage_dims, *stage_limits;
    int32_t *stage_constants;
    float *reaches, *slacks;
    // of a tile
    uint8_t *bytes;
    int32_t *dots;
    struct bsw_matrix_output *outputs; // [num_queries]
};

// ---- one tile ----

static size_t tile_size(const struct scan_input *input, size_t tile)
{
    size_t rest = input->num_bundles - tile * input->tile_bundles;
    return rest < input->tile_bundles ? rest : input->tile_bundles;
}

static const uint32_t *planes_at(const struct scan_input *input, uint32_t segment, size_t bundle)
{
    return input->planes[segment] +
           bundle * bsw_segment_bundle_words(&input->shape.layout.segments[segment]);
}

static void make_dots(const struct scan_input *input, enum bsw_cpu_level level, size_t query,
                      size_t bundle, size_t num_bundles, int32_t *dots)
{
    const struct bsw_plane_scan_table *table = bsw_plane_scan_table_get(level);
    const uint32_t *words = input->query_planes + query * input->query_words;
    for (uint32_t s = 0; s < input->shape.layout.num_segments; s++) {
        const struct bsw_segment *segment = &input->shape.layout.segments[s];
        table->dots(segment, bsw_all_words(segment), planes_at(input, s, bundle), num_bundles,
                    words, input->shape.query_bits, s > 0, dots);
        words += (size_t)segment->words * input->shape.query_bits;
    }
}

static void filter_dots(const struct scan_input *input, enum bsw_cpu_level level, size_t bundle,
                        size_t num_bundles, const int32_t *dots, struct bsw_kernel_output *output)
{
    const struct bsw_select_table *table = bsw_select_table_get(level);
    size_t row = bundle * BSW_BUNDLE_ROWS;
    uint64_t *items = (uint64_t *)(void *)output->values;
    if (input->filter == INTEGER_FILTER)
        output->counts[0] = table->filter_integer(dots, input->masks + bundle, num_bundles,
                                                  (uint32_t)row, input->integer_limits[0], items);
    else
        output->counts[0] = table->filter_affine(
            dots, input->scales + row, input->biases + row, input->query_scales[0],
            input->masks + bundle, num_bundles, (uint32_t)row, input->affine_limits[0], items);
}

static void run_planes(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    size_t bundle = tile * input->tile_bundles, num_bundles = tile_size(input, tile);
    int32_t *dots = input->filter == NO_FILTER ? (int32_t *)(void *)output->values : input->dots;
    make_dots(input, level, 0, bundle, num_bundles, dots);
    output->counts[0] = num_bundles * BSW_BUNDLE_ROWS;
    if (input->filter != NO_FILTER) filter_dots(input, level, bundle, num_bundles, dots, output);
}

static void run_filter(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    size_t bundle = tile * input->tile_bundles;
    filter_dots(input, level, bundle, tile_size(input, tile),
                input->all_dots + bundle * BSW_BUNDLE_ROWS, output);
}

static void unpack_tile(const struct scan_input *input, enum bsw_cpu_level level, size_t bundle,
                        size_t num_bundles, uint8_t *bytes)
{
    const uint32_t *planes[BSW_MAX_SEGMENTS];
    for (uint32_t s = 0; s < input->shape.layout.num_segments; s++)
        planes[s] = planes_at(input, s, bundle);
    bsw_matrix_scan_table_get(level)->unpack(&input->shape.layout, planes, num_bundles, bytes);
}

static void run_unpack(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    size_t num_bundles = tile_size(input, tile);
    unpack_tile(input, level, tile * input->tile_bundles, num_bundles, output->values);
    output->counts[0] = bsw_matrix_tile_bytes(input->shape.layout.padded_dims, num_bundles);
}

static struct bsw_matrix_tile matrix_tile_at(const struct scan_input *input, size_t tile)
{
    size_t bundle = tile * input->tile_bundles, row = bundle * BSW_BUNDLE_ROWS;
    return (struct bsw_matrix_tile){.bytes = input->bytes,
                                    .num_bundles = tile_size(input, tile),
                                    .padded_dims = input->shape.layout.padded_dims,
                                    .first_row = (uint32_t)row,
                                    .masks = input->masks + bundle,
                                    .scales = input->scales + row,
                                    .biases = input->biases + row,
                                    .tails = input->scales + row};
}

static struct bsw_matrix_queries all_queries(const struct scan_input *input)
{
    return (struct bsw_matrix_queries){.num_queries = input->num_queries,
                                       .components = input->components,
                                       .constants = input->constants,
                                       .scales = input->query_scales};
}

static void run_matrix(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    const struct bsw_matrix_tile matrix_tile = matrix_tile_at(input, tile);
    const struct bsw_matrix_queries queries = all_queries(input);
    uint64_t *items = (uint64_t *)(void *)output->values;
    if (input->is_whole)
        unpack_tile(input, level, tile * input->tile_bundles, matrix_tile.num_bundles,
                    input->bytes);
    for (size_t q = 0; q < input->num_queries; q++)
        input->outputs[q] =
            (struct bsw_matrix_output){items + q * output->list_values, 0, input->affine_limits[q]};
    bsw_matrix_scan_table_get(level)->scan(&matrix_tile, &queries, input->outputs);
    for (size_t q = 0; q < input->num_queries; q++) output->counts[q] = input->outputs[q].count;
}

// The last list has how many rows and half bundles went on.
static void run_staged(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct scan_input *input = context;
    const struct bsw_matrix_tile matrix_tile = matrix_tile_at(input, tile);
    const struct bsw_matrix_queries queries = all_queries(input);
    const struct bsw_matrix_stage stage = {.dims = input->stage_dims,
                                           .constants = input->stage_constants,
                                           .reaches = input->reaches,
                                           .slacks = input->slacks};
    struct bsw_stage_counts counts = {0, 0};
    uint64_t *items = (uint64_t *)(void *)output->values;
    for (size_t q = 0; q < input->num_queries; q++)
        input->outputs[q] =
            (struct bsw_matrix_output){items + q * output->list_values, 0, input->stage_limits[q]};
    bsw_matrix_scan_table_get(level)->scan_staged(&matrix_tile, &stage, &queries, input->outputs,
                                                  &counts);
    for (size_t q = 0; q < input->num_queries; q++) output->counts[q] = input->outputs[q].count;
    items += input->num_queries * output->list_values;
    items[0] = counts.rows;
    items[1] = counts.halves;
    output->counts[input->num_queries] = 2;
}

// ---- input ----

static void destroy(void *context)
{
    struct scan_input *input = context;
    bsw_free(&input->slacks);
    bsw_free(&input->reaches);
    bsw_free(&input->stage_constants);
    bsw_free(&input->stage_limits);
    bsw_free(&input->outputs);
    bsw_free(&input->dots);
    bsw_free(&input->bytes);
    bsw_free(&input->all_dots);
    bsw_free(&input->affine_limits);
    bsw_free(&input->integer_limits);
    bsw_free(&input->query_scales);
    bsw_free(&input->constants);
    bsw_free(&input->components);
    bsw_free(&input->query_planes);
    bsw_free(&input->biases);
    bsw_free(&input->scales);
    bsw_free(&input->masks);
    for (uint32_t s = 0; s < input->shape.layout.num_segments; s++) bsw_free(&input->planes[s]);
    bsw_free(&input);
}

static enum bsw_status allocate(void *out, size_t count, size_t size, struct bsw_error *err)
{
    return bsw_allocate(out, count, size, "input of a kernel", err);
}

static enum bsw_status allocate_all(struct scan_input *input, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &input->shape.layout;
    size_t rows = input->num_bundles * BSW_BUNDLE_ROWS, queries = input->num_queries;
    for (uint32_t s = 0; s < layout->num_segments; s++)
        BSW_TRY(allocate(&input->planes[s], input->num_bundles,
                         bsw_segment_bundle_words(&layout->segments[s]) * sizeof(uint32_t), err));
    BSW_TRY(allocate(&input->masks, input->num_bundles, sizeof(uint32_t), err));
    BSW_TRY(allocate(&input->scales, rows, sizeof(uint16_t), err));
    BSW_TRY(allocate(&input->biases, rows, sizeof(float), err));
    BSW_TRY(allocate(&input->query_planes, queries, input->query_words * sizeof(uint32_t), err));
    BSW_TRY(allocate(&input->components, queries, layout->padded_dims, err));
    BSW_TRY(allocate(&input->constants, queries, sizeof(int32_t), err));
    BSW_TRY(allocate(&input->query_scales, queries, sizeof(float), err));
    BSW_TRY(allocate(&input->integer_limits, queries, sizeof(uint32_t), err));
    BSW_TRY(allocate(&input->affine_limits, queries, sizeof(uint32_t), err));
    BSW_TRY(allocate(&input->bytes, input->tile_bundles,
                     bsw_matrix_tile_bytes(layout->padded_dims, 1), err));
    BSW_TRY(allocate(&input->dots, input->tile_bundles * BSW_BUNDLE_ROWS, sizeof(int32_t), err));
    return allocate(&input->outputs, queries, sizeof *input->outputs, err);
}

// Random bits, those of padding 0. [num_planes][words][lanes]
static void fill_planes(const struct bsw_segment *segment, size_t num_planes, size_t lanes,
                        uint64_t seed, uint32_t *planes)
{
    uint32_t rest = segment->dims % 32, last = rest ? (1u << rest) - 1 : UINT32_MAX;
    size_t at = 0;
    for (size_t p = 0; p < num_planes; p++) {
        for (uint32_t w = 0; w < segment->words; w++) {
            for (size_t i = 0; i < lanes; i++, at++)
                planes[at] =
                    (uint32_t)bsw_hash2(seed, at) & (w + 1 < segment->words ? UINT32_MAX : last);
        }
    }
}

static void fill_all(struct scan_input *input)
{
    const struct bsw_code_layout *layout = &input->shape.layout;
    unsigned query_bits = input->shape.query_bits;
    for (uint32_t s = 0; s < layout->num_segments; s++)
        fill_planes(&layout->segments[s], input->num_bundles * layout->segments[s].bits,
                    BSW_BUNDLE_ROWS, s, input->planes[s]);
    for (size_t b = 0; b < input->num_bundles; b++) input->masks[b] = UINT32_MAX;
    for (size_t row = 0; row < input->num_bundles * BSW_BUNDLE_ROWS; row++) {
        input->scales[row] = (uint16_t)(0x3c00 + bsw_hash2(100, row) % 128); // 1 to 1.125
        input->biases[row] = (float)(bsw_hash2(101, row) % 1000);
    }
    for (size_t q = 0; q < input->num_queries; q++) {
        uint32_t *words = input->query_planes + q * input->query_words;
        for (uint32_t s = 0, at = 0; s < layout->num_segments; s++) {
            fill_planes(&layout->segments[s], query_bits, 1, 200 + q * BSW_MAX_SEGMENTS + s,
                        words + at);
            at += layout->segments[s].words * query_bits;
        }
        input->query_scales[q] = 1.0f + (float)(q % 100) * 0.01f;
        bsw_matrix_scan_reference.unpack_query(layout, words, query_bits,
                                               input->components + q * layout->padded_dims,
                                               &input->constants[q]);
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

// Limits by the rows of the first tile, which is also left in bytes.
static enum bsw_status choose_limits(struct scan_input *input, struct bsw_error *err)
{
    size_t num_bundles = tile_size(input, 0), rows = num_bundles * BSW_BUNDLE_ROWS;
    uint32_t *scores = NULL;
    BSW_TRY(allocate(&scores, rows, sizeof *scores, err));
    for (size_t q = 0; q < input->num_queries; q++) {
        make_dots(input, BSW_CPU_REFERENCE, q, 0, num_bundles, input->dots);
        for (size_t r = 0; r < rows; r++) scores[r] = bsw_score_from_integer(input->dots[r]);
        input->integer_limits[q] = limit_of(scores, rows);
        for (size_t r = 0; r < rows; r++) {
            float scale = bsw_half_to_float(input->scales[r]) * (float)input->dots[r];
            float key = fmaf(input->query_scales[q], scale, input->biases[r]) + 0.0f;
            scores[r] = bsw_score_from_float(key);
        }
        input->affine_limits[q] = limit_of(scores, rows);
    }
    unpack_tile(input, BSW_CPU_REFERENCE, 0, num_bundles, input->bytes);
    bsw_free(&scores);
    return BSW_OK;
}

// A run over tiles of so many bundles.
static enum bsw_status make_input(const struct bsw_kernel_shape *shape, size_t num_queries,
                                  size_t tile_bundles, struct bsw_kernel_run *out,
                                  struct bsw_error *err)
{
    struct scan_input *input = NULL;
    BSW_TRY(bsw_allocate_zero(&input, 1, sizeof *input, "input of a kernel", err));
    out->input = input;
    out->destroy = destroy;
    input->shape = *shape;
    input->num_bundles = bsw_num_bundles(shape->rows);
    input->tile_bundles = tile_bundles < input->num_bundles ? tile_bundles : input->num_bundles;
    input->query_words = bsw_layout_query_words(&shape->layout, shape->query_bits);
    input->num_queries = num_queries;
    BSW_TRY(allocate_all(input, err));
    fill_all(input);
    BSW_TRY(choose_limits(input, err));
    out->num_tiles = (input->num_bundles + input->tile_bundles - 1) / input->tile_bundles;
    out->num_lists = 1;
    out->queries = num_queries;
    return BSW_OK;
}

// ---- a first stage ----

static enum bsw_status allocate_stage(struct scan_input *input, struct bsw_error *err)
{
    BSW_TRY(allocate(&input->stage_limits, input->num_queries, sizeof(uint32_t), err));
    BSW_TRY(allocate(&input->stage_constants, input->num_queries, sizeof(int32_t), err));
    BSW_TRY(allocate(&input->reaches, input->num_queries, sizeof(float), err));
    return allocate(&input->slacks, input->num_queries, sizeof(float), err);
}

// Tails are the scales, so a reach is the most that the other dimensions can add to any dot.
static void prepare_stage(struct scan_input *input, size_t query)
{
    const struct bsw_code_layout *layout = &input->shape.layout;
    const int8_t *component = input->components + query * layout->padded_dims;
    int32_t constant = 0, rest = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        for (uint32_t i = 0; i < 32 * segment->words; i++, component++) {
            int32_t most = ((1 << segment->bits) - 1) * *component;
            if (segment->padded_dim + i < input->stage_dims)
                constant += most;
            else
                rest += abs(most);
        }
    }
    input->stage_constants[query] = constant;
    input->reaches[query] = input->query_scales[query] * (float)rest;
    input->slacks[query] = 1e-5f * input->reaches[query];
}

// The best bound of half a bundle of the first tile, but for roundings.
static float half_bound(const struct scan_input *input, size_t half, size_t query)
{
    size_t padded_dims = input->shape.layout.padded_dims;
    const uint8_t *bytes = input->bytes + half * HALF_ROWS * padded_dims;
    const int8_t *components = input->components + query * padded_dims;
    float best = -INFINITY;
    for (size_t r = 0; r < HALF_ROWS; r++) {
        size_t row = half * HALF_ROWS + r;
        int32_t sum = 0;
        for (size_t i = 0; i < input->stage_dims; i++)
            sum += bytes[(i / 4 * HALF_ROWS + r) * 4 + i % 4] * components[i];
        float dot = (float)(input->stage_constants[query] - 2 * sum);
        float scaled = input->query_scales[query] * dot + input->reaches[query];
        best = fmaxf(best, bsw_half_to_float(input->scales[row]) * scaled + input->biases[row]);
    }
    return best;
}

// Limits that one in fifty half bundles of the first tile may reach, at least one.
static enum bsw_status choose_stage_limits(struct scan_input *input, struct bsw_error *err)
{
    size_t num_halves = 2 * tile_size(input, 0);
    uint32_t *scores = NULL;
    BSW_TRY(allocate(&scores, num_halves, sizeof *scores, err));
    for (size_t q = 0; q < input->num_queries; q++) {
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

static enum bsw_status make_planes(const struct bsw_kernel_shape *shape, enum filter filter,
                                   struct bsw_kernel_run *out, struct bsw_error *err)
{
    BSW_TRY(make_input(shape, 1, BSW_TILE_BUNDLES, out, err));
    struct scan_input *input = out->input;
    input->filter = filter;
    out->run_tile = run_planes;
    out->list_values = input->tile_bundles * BSW_BUNDLE_ROWS;
    out->value_bytes = filter == NO_FILTER ? sizeof(int32_t) : sizeof(uint64_t);
    out->bytes = code_bytes(shape) + row_bytes(shape, filter);
    out->operations = num_popcounts(shape);
    return BSW_OK;
}

static enum bsw_status make_dots_case(const struct bsw_kernel_shape *shape,
                                      struct bsw_kernel_run *out, struct bsw_error *err)
{
    return make_planes(shape, NO_FILTER, out, err);
}

static enum bsw_status make_plain_case(const struct bsw_kernel_shape *shape,
                                       struct bsw_kernel_run *out, struct bsw_error *err)
{
    return make_planes(shape, INTEGER_FILTER, out, err);
}

static enum bsw_status make_scaled_case(const struct bsw_kernel_shape *shape,
                                        struct bsw_kernel_run *out, struct bsw_error *err)
{
    return make_planes(shape, AFFINE_FILTER, out, err);
}

static enum bsw_status make_filter(const struct bsw_kernel_shape *shape, enum filter filter,
                                   struct bsw_kernel_run *out, struct bsw_error *err)
{
    BSW_TRY(make_planes(shape, filter, out, err));
    struct scan_input *input = out->input;
    BSW_TRY(allocate(&input->all_dots, shape->rows, sizeof(int32_t), err));
    make_dots(input, BSW_CPU_REFERENCE, 0, 0, input->num_bundles, input->all_dots);
    out->run_tile = run_filter;
    out->bytes = row_bytes(shape, filter) + 4 * (double)shape->rows; // the integers
    out->operations = 0;
    return BSW_OK;
}

static enum bsw_status make_filter_integer(const struct bsw_kernel_shape *shape,
                                           struct bsw_kernel_run *out, struct bsw_error *err)
{
    return make_filter(shape, INTEGER_FILTER, out, err);
}

static enum bsw_status make_filter_affine(const struct bsw_kernel_shape *shape,
                                          struct bsw_kernel_run *out, struct bsw_error *err)
{
    return make_filter(shape, AFFINE_FILTER, out, err);
}

static enum bsw_status make_matrix(const struct bsw_kernel_shape *shape, size_t num_queries,
                                   struct bsw_kernel_run *out, struct bsw_error *err)
{
    struct bsw_scan_tuning tuning = bsw_scan_tuning_of(shape->level, &shape->layout);
    BSW_TRY(make_input(shape, num_queries,
                       bsw_matrix_tile_bundles(shape->layout.padded_dims, tuning.tile_kib), out,
                       err));
    struct scan_input *input = out->input;
    out->run_tile = run_matrix;
    out->num_lists = num_queries;
    out->list_values = input->tile_bundles * BSW_BUNDLE_ROWS;
    out->value_bytes = sizeof(uint64_t);
    out->operations = (double)shape->rows * (double)num_queries * (double)shape->layout.dims;
    return BSW_OK;
}

static enum bsw_status make_unpack(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    BSW_TRY(make_matrix(shape, 1, out, err));
    const struct scan_input *input = out->input;
    out->run_tile = run_unpack;
    out->num_lists = 1;
    out->list_values = bsw_matrix_tile_bytes(shape->layout.padded_dims, input->tile_bundles);
    out->value_bytes = 1;
    out->bytes = code_bytes(shape) + (double)shape->rows * (double)shape->layout.padded_dims;
    out->operations = 0;
    out->queries = 0;
    return BSW_OK;
}

static enum bsw_status make_scan(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                 struct bsw_error *err)
{
    return make_matrix(shape, shape->queries, out, err);
}

static enum bsw_status make_whole(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                  struct bsw_error *err)
{
    BSW_TRY(make_matrix(shape, shape->queries, out, err));
    struct scan_input *input = out->input;
    input->is_whole = 1;
    out->bytes = code_bytes(shape) + row_bytes(shape, AFFINE_FILTER);
    return BSW_OK;
}

// Half of the dimensions; fewer than 64 have no stage.
static enum bsw_status make_staged(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    BSW_TRY(make_matrix(shape, shape->queries, out, err));
    struct scan_input *input = out->input;
    input->stage_dims = shape->layout.padded_dims / 64 * 32;
    if (input->stage_dims == 0) out->num_tiles = 0;
    BSW_TRY(allocate_stage(input, err));
    out->run_tile = run_staged;
    out->num_lists = shape->queries + 1;
    return choose_stage_limits(input, err);
}

const struct bsw_kernel_case bsw_kernel_scans[] = {
    {"plane_scan", "dots", BSW_LIMIT_READ, make_dots_case},
    {"plane_scan", "plain rows", BSW_LIMIT_READ, make_plain_case},
    {"plane_scan", "scaled rows", BSW_LIMIT_READ, make_scaled_case},
    {"matrix_scan", "unpack", BSW_LIMIT_COPY, make_unpack},
    {"matrix_scan", "scan", BSW_LIMIT_INT8, make_scan},
    {"matrix_scan", "staged scan", BSW_LIMIT_INT8, make_staged},
    {"matrix_scan", "unpack and scan", BSW_LIMIT_INT8, make_whole},
    {"select", "filter_integer", BSW_LIMIT_READ, make_filter_integer},
    {"select", "filter_affine", BSW_LIMIT_READ, make_filter_affine},
    {0},
};
