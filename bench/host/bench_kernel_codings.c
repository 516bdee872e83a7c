// SPDX-License-Identifier: Apache-2.0
// Encoding: float rows to planes, in blocks as encode has them; whole, and what saq is made of.
#include <math.h>
#include <string.h>

#include "bench/host/bench_kernel.h"
#include "common/base/arithmetic.h"
#include "kernels/encode/encode.h"

#define BLOCK_ROWS    128 // of one product of saq
#define BLOCK_BUNDLES (BLOCK_ROWS / BSW_BUNDLE_ROWS)
#define XFBQ_SCALE    3.0f
#define STEP          0.293f // of 3 bits; others code as fast

struct coding_input {
    struct bsw_kernel_shape shape;
    struct bsw_saq_frame frame; // of saq
    float *rows;                // [rows][dims]
    float *mean, *rotation;
    float *centered, *projected; // of a block
};

// Words of all planes of a bundle.
static size_t bundle_words(const struct bsw_code_layout *layout)
{
    size_t words = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++)
        words += bsw_segment_bundle_words(&layout->segments[s]);
    return words;
}

static size_t block_size(const struct coding_input *input, size_t tile)
{
    size_t rest = input->shape.rows - tile * BLOCK_ROWS;
    return rest < BLOCK_ROWS ? rest : BLOCK_ROWS;
}

static const float *block_at(const struct coding_input *input, size_t tile)
{
    return input->rows + tile * BLOCK_ROWS * input->shape.layout.dims;
}

// Output: planes of bundle after bundle.
static void run_xfbq(void *context, enum bsw_cpu_level level, size_t tile,
                     struct bsw_kernel_output *output)
{
    const struct coding_input *input = context;
    const struct bsw_encode_table *table = bsw_encode_table_get(level);
    const struct bsw_segment *segment = &input->shape.layout.segments[0];
    size_t num_rows = block_size(input, tile), words = bsw_segment_bundle_words(segment);
    uint32_t *planes = (uint32_t *)(void *)output->values;
    for (size_t r = 0; r < num_rows; r += BSW_BUNDLE_ROWS, planes += words) {
        const float *rows = block_at(input, tile) + r * segment->dims;
        double norms[BSW_BUNDLE_ROWS];
        float factors[BSW_BUNDLE_ROWS];
        table->squared_norms(rows, BSW_BUNDLE_ROWS, segment->dims, norms);
        for (size_t i = 0; i < BSW_BUNDLE_ROWS; i++) factors[i] = (float)(1.0 / sqrt(norms[i]));
        table->xfbq(rows, BSW_BUNDLE_ROWS, segment->dims, factors, XFBQ_SCALE, segment->bits,
                    planes);
    }
    output->counts[0] = num_rows / BSW_BUNDLE_ROWS * words;
}

static void run_norms(void *context, enum bsw_cpu_level level, size_t tile,
                      struct bsw_kernel_output *output)
{
    const struct coding_input *input = context;
    output->counts[0] = block_size(input, tile);
    bsw_encode_table_get(level)->squared_norms(block_at(input, tile), output->counts[0],
                                               input->shape.layout.dims,
                                               (double *)(void *)output->values);
}

static void center(const struct coding_input *input, enum bsw_cpu_level level, size_t tile,
                   float *centered, float *mean_dots)
{
    float factors[BLOCK_ROWS];
    for (size_t r = 0; r < BLOCK_ROWS; r++) factors[r] = 1.0f;
    bsw_encode_table_get(level)->saq_center(&input->frame, block_at(input, tile),
                                            block_size(input, tile), factors, centered, mean_dots);
}

// Output: the block's rows, then the mean's products with them.
static void run_center(void *context, enum bsw_cpu_level level, size_t tile,
                       struct bsw_kernel_output *output)
{
    const struct coding_input *input = context;
    size_t num_rows = block_size(input, tile), numbers = num_rows * input->shape.layout.dims;
    float *centered = (float *)(void *)output->values;
    center(input, level, tile, centered, centered + numbers);
    output->counts[0] = numbers + num_rows;
}

// Projects the first block's rows, again and again.
static void run_project(void *context, enum bsw_cpu_level level, size_t tile,
                        struct bsw_kernel_output *output)
{
    const struct coding_input *input = context;
    size_t num_rows = block_size(input, tile);
    bsw_encode_table_get(level)->saq_project(&input->frame, input->centered, num_rows,
                                             (float *)(void *)output->values);
    output->counts[0] = num_rows * input->shape.layout.padded_dims;
}

// What is projected. Output: planes of a bundle, then its norms, scales and tails; bundle after
// bundle.
static void run_quantize(void *context, enum bsw_cpu_level level, size_t tile,
                         struct bsw_kernel_output *output)
{
    const struct coding_input *input = context;
    const struct bsw_code_layout *layout = &input->shape.layout;
    uint32_t *words = (uint32_t *)(void *)output->values;
    for (size_t r = 0; r < block_size(input, tile); r += BSW_BUNDLE_ROWS) {
        uint32_t *planes[BSW_MAX_SEGMENTS];
        float norms[BSW_BUNDLE_ROWS], scales[BSW_BUNDLE_ROWS];
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            planes[s] = words;
            words += bsw_segment_bundle_words(&layout->segments[s]);
        }
        bsw_encode_table_get(level)->saq_quantize(
            &input->frame, input->projected + r * layout->padded_dims, BSW_BUNDLE_ROWS, planes,
            norms, scales, words + 2 * BSW_BUNDLE_ROWS);
        memcpy(words, norms, sizeof norms);
        memcpy(words + BSW_BUNDLE_ROWS, scales, sizeof scales);
        words += 3 * BSW_BUNDLE_ROWS;
    }
    output->counts[0] = (size_t)(words - (uint32_t *)(void *)output->values);
}

static void run_saq(void *context, enum bsw_cpu_level level, size_t tile,
                    struct bsw_kernel_output *output)
{
    const struct coding_input *input = context;
    float mean_dots[BLOCK_ROWS];
    center(input, level, tile, input->centered, mean_dots);
    bsw_encode_table_get(level)->saq_project(&input->frame, input->centered,
                                             block_size(input, tile), input->projected);
    run_quantize(context, level, tile, output);
}

static void fill(float *numbers, size_t num, uint64_t seed)
{
    for (size_t i = 0; i < num; i++) numbers[i] = (float)(int64_t)bsw_hash2(seed, i) * 0x1p-63f;
}

static enum bsw_status make_rows(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                 struct bsw_error *err)
{
    struct coding_input *input = NULL;
    BSW_TRY(bsw_kernel_allocate(out, &input, 1, sizeof *input, err));
    out->input = input;
    input->shape = *shape;
    BSW_TRY(bsw_kernel_allocate(out, &input->rows, shape->rows, shape->layout.dims * sizeof(float),
                                err));
    fill(input->rows, shape->rows * shape->layout.dims, 1);
    out->num_tiles = (shape->rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    out->num_lists = 1;
    out->value_bytes = sizeof(uint32_t);
    return BSW_OK;
}

static double coded_bytes(const struct bsw_kernel_shape *shape)
{
    double row = (double)shape->layout.dims * sizeof(float) + bsw_layout_row_bytes(&shape->layout);
    return (double)shape->rows * row;
}

// One segment of the first one's bits: what xfbq has.
static enum bsw_status make_xfbq(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                 struct bsw_error *err)
{
    struct bsw_kernel_shape plain = *shape;
    bsw_code_layout_init(&plain.layout);
    BSW_TRY(bsw_code_layout_append(&plain.layout, shape->layout.dims,
                                   shape->layout.segments[0].bits, err));
    BSW_TRY(make_rows(&plain, out, err));
    out->run_tile = run_xfbq;
    out->list_values = BLOCK_BUNDLES * bundle_words(&plain.layout);
    out->bytes = coded_bytes(&plain);
    return BSW_OK;
}

static enum bsw_status make_saq(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                struct bsw_error *err)
{
    BSW_TRY(make_rows(shape, out, err));
    struct coding_input *input = out->input;
    size_t dims = shape->layout.dims, padded = shape->layout.padded_dims;
    BSW_TRY(bsw_kernel_allocate(out, &input->mean, dims, sizeof(float), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->rotation, dims, padded * sizeof(float), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->centered, BLOCK_ROWS, dims * sizeof(float), err));
    BSW_TRY(bsw_kernel_allocate(out, &input->projected, BLOCK_ROWS, padded * sizeof(float), err));
    fill(input->mean, dims, 2);
    for (uint32_t s = 0; s < shape->layout.num_segments; s++) {
        const struct bsw_segment *segment = &shape->layout.segments[s];
        for (size_t j = 0; j < dims; j++)
            fill(input->rotation + j * padded + segment->padded_dim, segment->dims, 3 + j);
        input->frame.steps[s] = STEP;
    }
    input->frame.layout = shape->layout;
    input->frame.metric = shape->metric;
    input->frame.mean = input->mean;
    input->frame.rotation = input->rotation;
    input->frame.stage_dims = dims > 64 ? 64 : (uint32_t)dims;
    out->run_tile = run_saq;
    out->list_values = BLOCK_BUNDLES * (bundle_words(&shape->layout) + 3 * (size_t)BSW_BUNDLE_ROWS);
    out->bytes = coded_bytes(shape) + (double)shape->rows * 3 * sizeof(float);
    out->operations = (double)shape->rows * (double)dims * (double)dims;
    return BSW_OK;
}

static enum bsw_status make_norms(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                  struct bsw_error *err)
{
    BSW_TRY(make_rows(shape, out, err));
    out->run_tile = run_norms;
    out->list_values = BLOCK_ROWS;
    out->value_bytes = sizeof(double);
    out->bytes = (double)shape->rows * shape->layout.dims * sizeof(float);
    return BSW_OK;
}

static enum bsw_status make_center(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                   struct bsw_error *err)
{
    BSW_TRY(make_saq(shape, out, err));
    out->run_tile = run_center;
    out->list_values = BLOCK_ROWS * (shape->layout.dims + (size_t)1);
    out->bytes = 2.0 * (double)shape->rows * shape->layout.dims * sizeof(float);
    out->operations = 0;
    return BSW_OK;
}

// The first block's rows stand for all.
static enum bsw_status make_project(const struct bsw_kernel_shape *shape,
                                    struct bsw_kernel_run *out, struct bsw_error *err)
{
    float mean_dots[BLOCK_ROWS];
    BSW_TRY(make_saq(shape, out, err));
    struct coding_input *input = out->input;
    center(input, BSW_CPU_REFERENCE, 0, input->centered, mean_dots);
    bsw_encode_reference.saq_project(&input->frame, input->centered, block_size(input, 0),
                                     input->projected);
    out->run_tile = run_project;
    out->list_values = BLOCK_ROWS * (size_t)shape->layout.padded_dims;
    out->bytes = 0;
    return BSW_OK;
}

static enum bsw_status make_quantize(const struct bsw_kernel_shape *shape,
                                     struct bsw_kernel_run *out, struct bsw_error *err)
{
    BSW_TRY(make_project(shape, out, err));
    out->run_tile = run_quantize;
    out->list_values = BLOCK_BUNDLES * (bundle_words(&shape->layout) + 3 * (size_t)BSW_BUNDLE_ROWS);
    out->bytes = coded_bytes(shape) + (double)shape->rows * 3 * sizeof(float);
    out->operations = 0;
    return BSW_OK;
}

const struct bsw_kernel_case bsw_kernel_codings[] = {
    {"encode", "xfbq", BSW_LIMIT_READ, 0, make_xfbq},
    {"encode", "saq", BSW_LIMIT_FLOAT32, 0, make_saq},
    {"encode", "squared_norms", BSW_LIMIT_READ, 0, make_norms},
    {"encode", "saq_center", BSW_LIMIT_COPY, 0, make_center},
    {"encode", "saq_project", BSW_LIMIT_FLOAT32, 0, make_project},
    {"encode", "saq_quantize", BSW_LIMIT_READ, 0, make_quantize},
    {0},
};
