// SPDX-License-Identifier: Apache-2.0
// Sums of product codes over tables, and the bounds before them. Operations are look-ups.
#include <math.h>
#include <string.h>

#include "bench/host/bench_kernel.h"
#include "common/base/arithmetic.h"
#include "kernels/table_bounds/table_bounds.h"
#include "kernels/table_scan/table_scan.h"

#define TILE_BUNDLES 16 // as lists are scanned

// Codes of 8 bits have 4 dimensions each, codes of 4 bits 2.
struct table_input {
    size_t rows, queries, query_numbers, bundle_bytes;
    uint32_t parts, bits;
    float *numbers, *terms; // [queries][query_numbers], [rows]
    uint8_t *bytes, *codes; // the same of bounds
    uint32_t *masks, *found;
    struct bsw_bound_query *bounds;
    void *room;
};

static size_t tile_bundles(const struct table_input *input, size_t tile)
{
    size_t rest = input->rows / BSW_BUNDLE_ROWS - tile * TILE_BUNDLES;
    return rest < TILE_BUNDLES ? rest : TILE_BUNDLES;
}

static void run_sums(void *context, enum bsw_cpu_level level, size_t tile,
                     struct bsw_kernel_output *output)
{
    const struct table_input *input = context;
    size_t bundles = tile_bundles(input, tile);
    float *sums = (float *)(void *)output->values;
    for (size_t q = 0; q < input->queries; q++) {
        const struct bsw_code_table table = {.parts = input->parts,
                                             .bits = input->bits,
                                             .numbers = input->numbers + q * input->query_numbers};
        bsw_table_scan_table_get(level)->sums(
            &table, input->codes + tile * TILE_BUNDLES * input->bundle_bytes, input->bundle_bytes,
            bundles, sums + q * output->list_values);
        output->counts[q] = bundles * BSW_BUNDLE_ROWS;
    }
}

static void run_pass(void *context, enum bsw_cpu_level level, size_t tile,
                     struct bsw_kernel_output *output)
{
    const struct table_input *input = context;
    size_t first = tile * TILE_BUNDLES, num;
    const struct bsw_bound_rows rows = {.parts = input->parts,
                                        .bits = input->bits,
                                        .codes = input->codes + first * input->bundle_bytes,
                                        .bundle_bytes = input->bundle_bytes,
                                        .num_bundles = tile_bundles(input, tile),
                                        .terms = input->terms + first * BSW_BUNDLE_ROWS,
                                        .masks = input->masks + first};
    uint32_t *masks = (uint32_t *)(void *)output->values;
    for (size_t q = 0; q < input->queries; q += num) {
        num = input->queries - q < BSW_BOUND_QUERIES ? input->queries - q : BSW_BOUND_QUERIES;
        bsw_table_bounds_table_get(level)->pass(&rows, input->bounds + q, num, input->room,
                                                input->found);
        for (size_t i = 0; i < num; i++) {
            memcpy(masks + (q + i) * output->list_values, input->found + i * rows.num_bundles,
                   rows.num_bundles * sizeof *masks);
            output->counts[q + i] = rows.num_bundles;
        }
    }
}

static enum bsw_status make_input(const struct bsw_kernel_shape *shape, uint32_t bits,
                                  struct bsw_kernel_run *out, struct bsw_error *err)
{
    struct table_input *input = NULL;
    uint32_t parts = (shape->layout.dims * bits / 8 + 3) / 4;
    BSW_TRY(bsw_kernel_allocate(out, &input, 1, sizeof *input, err));
    out->input = input;
    input->rows = shape->rows;
    input->queries = shape->queries;
    input->bits = bits;
    input->parts = parts < BSW_BOUND_MAX_PARTS ? parts : BSW_BOUND_MAX_PARTS;
    input->query_numbers = (size_t)(input->parts + 1) << bits;
    input->bundle_bytes =
        (bsw_product_code_bytes(input->parts, bits) + 3) / 4 * 4 * BSW_BUNDLE_ROWS;
    size_t bytes = shape->rows / BSW_BUNDLE_ROWS * input->bundle_bytes;
    BSW_TRY(bsw_kernel_allocate(out, &input->codes, bytes, 1, err));
    for (size_t i = 0; i < bytes; i++) input->codes[i] = (uint8_t)bsw_hash2(1, i);
    out->num_tiles = (shape->rows / BSW_BUNDLE_ROWS + TILE_BUNDLES - 1) / TILE_BUNDLES;
    out->num_lists = shape->queries;
    out->queries = shape->queries;
    out->operations = (double)shape->rows * (double)shape->queries * input->parts;
    return BSW_OK;
}

static enum bsw_status make_sums(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                 struct bsw_error *err)
{
    BSW_TRY(make_input(shape, (uint32_t)out->variant, out, err));
    struct table_input *input = out->input;
    size_t numbers = shape->queries * input->query_numbers;
    BSW_TRY(bsw_kernel_allocate(out, &input->numbers, numbers, sizeof(float), err));
    for (size_t i = 0; i < numbers; i++) input->numbers[i] = (float)(bsw_hash2(2, i) % 4096);
    out->run_tile = run_sums;
    out->list_values = TILE_BUNDLES * BSW_BUNDLE_ROWS;
    out->value_bytes = sizeof(float);
    return BSW_OK;
}

// Makes a pass over a thousand rows of random codes, of which some pass.
static enum bsw_status make_pass(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                 struct bsw_error *err)
{
    BSW_TRY(make_input(shape, (uint32_t)out->variant, out, err));
    struct table_input *input = out->input;
    size_t numbers = shape->queries * input->query_numbers, bundles = shape->rows / BSW_BUNDLE_ROWS;
    BSW_TRY(bsw_kernel_allocate(out, &input->bytes, numbers, 1, err));
    BSW_TRY(bsw_kernel_allocate(out, &input->terms, shape->rows, sizeof(float), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->masks, bundles, sizeof(uint32_t), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->found, BSW_BOUND_QUERIES * TILE_BUNDLES,
                                sizeof(uint32_t), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->bounds, shape->queries, sizeof *input->bounds, err));
    BSW_TRY(bsw_kernel_allocate(out, &input->room, bsw_bound_room_bytes(TILE_BUNDLES), 1, err));
    for (size_t i = 0; i < numbers; i++) input->bytes[i] = (uint8_t)bsw_hash2(2, i);
    for (size_t b = 0; b < bundles; b++) input->masks[b] = UINT32_MAX;
    for (size_t q = 0; q < shape->queries; q++) // three deviations below the mean of sums
        input->bounds[q] = (struct bsw_bound_query){input->bytes + q * input->query_numbers, 1.0f,
                                                    127.5f * (float)input->parts -
                                                        220.0f * sqrtf((float)input->parts)};
    out->run_tile = run_pass;
    out->list_values = TILE_BUNDLES;
    out->value_bytes = sizeof(uint32_t);
    return BSW_OK;
}

const struct bsw_kernel_case bsw_kernel_tables[] = {
    {"table_scan", "sums 8 bits", BSW_LIMIT_FLOAT32, 8, make_sums},
    {"table_scan", "sums 4 bits", BSW_LIMIT_FLOAT32, 4, make_sums},
    {"table_scan", "bounds 8 bits", BSW_LIMIT_INT8, 8, make_pass},
    {"table_scan", "bounds 4 bits", BSW_LIMIT_INT8, 4, make_pass},
    {0},
};
