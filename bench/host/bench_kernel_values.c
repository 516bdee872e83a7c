// SPDX-License-Identifier: Apache-2.0
// Exact values, the screen before them, and the sorting of what was found.
#include <math.h>
#include <string.h>

#include "bench/host/bench_kernel.h"
#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "kernels/merge/merge.h"
#include "kernels/refine/refine.h"
#include "kernels/screen/screen.h"
#include "kernels/select/select.h"

#define REFINE_PAIRS   1024
#define REFINE_AHEAD   8
#define SCREEN_BUNDLES 8
#define SCREEN_SIGMAS  2.9 // of 1000 rows about two pass

// Integers from 0 to 255 in all the forms that kernels take.
struct value_input {
    struct bsw_kernel_shape shape;
    size_t tile_rows;
    uint8_t *bytes; // [rows][dims]
    double *query_numbers, *query_norms;
    float *packed, *biases, *packed_queries, *limits; // of screen
    uint32_t *masks;
    struct bsw_screen_output *outputs;
    uint64_t *candidates, *kept, *scratch; // of select and merge
    struct bsw_ranked *ranked, *ranked_scratch;
};

static size_t tile_size(const struct value_input *input, size_t tile)
{
    size_t rest = input->shape.rows - tile * input->tile_rows;
    return rest < input->tile_rows ? rest : input->tile_rows;
}

// ---- one tile ----

// Row and query of a pair.
static void choose_pair(const struct value_input *input, size_t at, size_t *row, size_t *query)
{
    uint64_t pair = bsw_hash(at);
    *row = (size_t)(pair >> 32) % input->shape.rows;
    *query = (size_t)(pair & UINT32_MAX) % input->shape.queries;
}

// Rows in a random order, each with one query; asked for ahead, as in a search.
static void run_refine(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct value_input *input = context;
    const struct bsw_refine_table *table = bsw_refine_table_get(level);
    size_t num = tile_size(input, tile), dims = input->shape.layout.dims;
    double *values = (double *)(void *)output->values;
    for (size_t i = 0; i < num; i++) {
        size_t row, query, first = tile * input->tile_rows;
        choose_pair(input, first + i + REFINE_AHEAD, &row, &query);
        for (size_t byte = 0; byte < dims; byte += 64)
            __builtin_prefetch(input->bytes + row * dims + byte);
        choose_pair(input, first + i, &row, &query);
        values[i] =
            table->value(input->shape.metric, BSW_VECTOR_UINT8, input->bytes + row * dims,
                         input->query_numbers + query * dims, input->query_norms[query], dims);
    }
    output->counts[0] = num;
}

static void run_screen(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct value_input *input = context;
    size_t first = tile * input->tile_rows, dims = input->shape.layout.dims;
    const struct bsw_screen_tile screen_tile = {.numbers = input->packed + first * dims,
                                                .biases = input->biases + first,
                                                .masks = input->masks + first / BSW_BUNDLE_ROWS,
                                                .num_bundles =
                                                    tile_size(input, tile) / BSW_BUNDLE_ROWS,
                                                .dims = dims};
    const struct bsw_screen_queries queries = {.numbers = input->packed_queries,
                                               .limits = input->limits,
                                               .num_queries = input->shape.queries};
    uint32_t *places = (uint32_t *)(void *)output->values;
    for (size_t q = 0; q < queries.num_queries; q++)
        input->outputs[q] = (struct bsw_screen_output){places + q * output->list_values, 0};
    bsw_screen_table_get(level)->scan(&screen_tile, &queries, input->outputs);
    for (size_t q = 0; q < queries.num_queries; q++) output->counts[q] = input->outputs[q].count;
}

// Sorting is in place, so a copy is sorted.
static void run_sort(void *context, enum bsw_cpu_level level, size_t tile,
                     struct bsw_kernel_output *output)
{
    const struct value_input *input = context;
    uint64_t *candidates = (uint64_t *)(void *)output->values;
    (void)tile;
    memcpy(candidates, input->candidates, input->shape.rows * sizeof *candidates);
    bsw_merge_table_get(level)->sort_candidates(candidates, input->shape.rows, input->scratch);
    output->counts[0] = input->shape.rows;
}

// Which they are, whatever their order: their sum and how many there are.
static void run_keep(void *context, enum bsw_cpu_level level, size_t tile,
                     struct bsw_kernel_output *output)
{
    const struct value_input *input = context;
    size_t num = input->shape.rows;
    (void)tile;
    memcpy(input->kept, input->candidates, num * sizeof *input->kept);
    uint64_t *values = (uint64_t *)(void *)output->values;
    values[1] =
        bsw_select_table_get(level)->keep_best(input->kept, num, (num + 9) / 10, input->scratch);
    values[0] = 0;
    for (size_t i = 0; i < values[1]; i++) values[0] += input->kept[i];
    output->counts[0] = 2;
}

static void run_ranked(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct value_input *input = context;
    struct bsw_ranked *entries = (struct bsw_ranked *)(void *)output->values;
    size_t num = input->shape.rows;
    (void)tile;
    memcpy(entries, input->ranked, num * sizeof *entries);
    output->counts[0] = bsw_merge_table_get(level)->best_ranked(
        entries, num, (num + 9) / 10, BSW_RANKED_BY_KEY, input->ranked_scratch);
}

// ---- input ----

static enum bsw_status make_input(const struct bsw_kernel_shape *shape, size_t tile_rows,
                                  struct bsw_kernel_run *out, struct bsw_error *err)
{
    struct value_input *input = NULL;
    BSW_TRY(bsw_kernel_allocate(out, &input, 1, sizeof *input, err));
    out->input = input;
    input->shape = *shape;
    input->tile_rows = tile_rows;
    out->num_tiles = (shape->rows + tile_rows - 1) / tile_rows;
    out->num_lists = 1;
    out->value_bytes = sizeof(double);
    return BSW_OK;
}

static int number_at(uint64_t seed, size_t at)
{
    return (int)(bsw_hash2(seed, at) % 256);
}

// numbers and squared norms of `num` vectors
static enum bsw_status make_numbers(struct bsw_kernel_run *out, size_t num, size_t dims,
                                    uint64_t seed, double **numbers, double **norms,
                                    struct bsw_error *err)
{
    BSW_TRY(bsw_kernel_allocate(out, numbers, num, dims * sizeof(double), err));
    BSW_TRY(bsw_kernel_allocate(out, norms, num, sizeof(double), err));
    for (size_t i = 0; i < num * dims; i++) (*numbers)[i] = number_at(seed, i);
    for (size_t i = 0; i < num; i++)
        (*norms)[i] = bsw_refine_reference.squared_norm(*numbers + i * dims, dims);
    return BSW_OK;
}

// ---- the cases ----

static double num_products(const struct bsw_kernel_shape *shape)
{
    return (double)shape->rows * (double)shape->queries * (double)shape->layout.dims;
}

static enum bsw_status make_refine(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    size_t dims = shape->layout.dims;
    BSW_TRY(make_input(shape, REFINE_PAIRS, out, err));
    struct value_input *input = out->input;
    BSW_TRY(bsw_kernel_allocate(out, &input->bytes, shape->rows, dims, err));
    for (size_t i = 0; i < shape->rows * dims; i++) input->bytes[i] = (uint8_t)number_at(1, i);
    BSW_TRY(make_numbers(out, shape->queries, dims, 2, &input->query_numbers, &input->query_norms,
                         err));
    out->run_tile = run_refine;
    out->list_values = REFINE_PAIRS;
    out->bytes = (double)shape->rows * (double)dims;
    out->operations = out->bytes * (bsw_has_unit_rows(shape->metric) ? 2 : 1);
    out->queries = shape->queries;
    return BSW_OK;
}

// Components of both sides have mean 0 and variance 1/3, so products of `dims` have dims / 9.
static float uniform_at(uint64_t seed, size_t at)
{
    return (float)(int64_t)bsw_hash2(seed, at) * 0x1p-63f;
}

static enum bsw_status make_screen(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    size_t dims = shape->layout.dims, tile_rows = SCREEN_BUNDLES * BSW_BUNDLE_ROWS;
    size_t query_numbers = bsw_screen_query_numbers(shape->queries, dims);
    BSW_TRY(make_input(shape, tile_rows, out, err));
    struct value_input *input = out->input;
    BSW_TRY(bsw_kernel_allocate(out, &input->packed, shape->rows, dims * sizeof(float), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->biases, shape->rows, sizeof(float), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->packed_queries, query_numbers, sizeof(float), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->limits, shape->queries, sizeof(float), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->masks, shape->rows / BSW_BUNDLE_ROWS, sizeof(uint32_t),
                                err));
    BSW_TRY(bsw_kernel_allocate(out, &input->outputs, shape->queries, sizeof *input->outputs, err));
    for (size_t i = 0; i < shape->rows * dims; i++) input->packed[i] = uniform_at(1, i);
    for (size_t i = 0; i < query_numbers; i++) input->packed_queries[i] = uniform_at(2, i);
    for (size_t q = 0; q < shape->queries; q++)
        input->limits[q] = (float)(SCREEN_SIGMAS * sqrt((double)dims) / 3);
    for (size_t b = 0; b < shape->rows / BSW_BUNDLE_ROWS; b++) input->masks[b] = UINT32_MAX;
    out->run_tile = run_screen;
    out->num_lists = shape->queries;
    out->list_values = tile_rows;
    out->value_bytes = sizeof(uint32_t);
    out->operations = num_products(shape);
    out->queries = shape->queries;
    return BSW_OK;
}

static enum bsw_status make_sort(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                 struct bsw_error *err)
{
    BSW_TRY(make_input(shape, shape->rows, out, err));
    struct value_input *input = out->input;
    BSW_TRY(bsw_kernel_allocate(out, &input->candidates, shape->rows, sizeof(uint64_t), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->scratch, shape->rows, sizeof(uint64_t), err));
    for (size_t i = 0; i < shape->rows; i++)
        input->candidates[i] =
            bsw_candidate_pack(bsw_score_from_float(uniform_at(1, i)), (uint32_t)i);
    out->run_tile = run_sort;
    out->list_values = shape->rows;
    out->value_bytes = sizeof(uint64_t);
    out->bytes = 2.0 * sizeof(uint64_t) * (double)shape->rows;
    return BSW_OK;
}

static enum bsw_status make_keep(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                 struct bsw_error *err)
{
    BSW_TRY(make_sort(shape, out, err));
    struct value_input *input = out->input;
    BSW_TRY(bsw_kernel_allocate(out, &input->kept, shape->rows, sizeof(uint64_t), err));
    out->run_tile = run_keep;
    out->list_values = 2;
    return BSW_OK;
}

// Eight shards' lists one after the other, each in descending order.
static enum bsw_status make_ranked(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    BSW_TRY(make_input(shape, shape->rows, out, err));
    struct value_input *input = out->input;
    size_t list = (shape->rows + 7) / 8;
    BSW_TRY(bsw_kernel_allocate(out, &input->ranked, shape->rows, sizeof *input->ranked, err));
    BSW_TRY(
        bsw_kernel_allocate(out, &input->ranked_scratch, shape->rows, sizeof *input->ranked, err));
    for (size_t i = 0; i < shape->rows; i++) {
        uint32_t step = (uint32_t)(0x400000 / list) + 1;
        uint32_t score = 0xbf800000u - step * (uint32_t)(i % list) - (uint32_t)(bsw_hash(i) % step);
        input->ranked[i] = bsw_ranked_of_key(score, 0, i);
    }
    out->run_tile = run_ranked;
    out->list_values = shape->rows;
    out->value_bytes = sizeof(struct bsw_ranked);
    out->bytes = 2.0 * sizeof(struct bsw_ranked) * (double)shape->rows;
    return BSW_OK;
}

const struct bsw_kernel_case bsw_kernel_values[] = {
    {"screen", "scan", BSW_LIMIT_FLOAT32, 0, make_screen},
    {"refine", "value", BSW_LIMIT_READ, 0, make_refine},
    {"select", "keep_best", BSW_LIMIT_COPY, 0, make_keep},
    {"merge", "sort_candidates", BSW_LIMIT_COPY, 0, make_sort},
    {"merge", "best_ranked", BSW_LIMIT_COPY, 0, make_ranked},
    {0},
};
