// SPDX-License-Identifier: Apache-2.0
// Codes of rows with a spectrum, made and coded on the device block by block; queries of the same
// distribution; and the score of one row and one query, computed plainly on the host.
#include <math.h>
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/device_encode/device_encode.h"
#include "shard/codecs/query_codes.h"

#define DIMS            DEVICE_BENCH_SPECTRUM_DIMS

#define BLOCK_ROWS      ((uint32_t)1 << 20)
#define FIRST_QUERY_ROW ((uint64_t)1 << 40)

// Rows have a mean energy of 1 a dimension and at most 12, so scales of l2 stay below 8: halves
// below 128.
#define SCALE_EXPONENT (-4)

// Standard deviation of the sums of four numbers below 2^16.
#define SUM_DEVIATION 37837.2
#define SPECTRUM      0.625

// Halves of the widest step for Gaussian numbers, by bits: 2 * h * rms apart.
static const double half_steps[] = {0, 0.7979, 0.4980, 0.2930, 0.1676, 0.0941, 0.0520};
#define MOST_BITS 6

// ---- the frame ----

static double energy_of(uint32_t first, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = first; i < first + count; i++) sum += pow(i + 1, -2 * SPECTRUM);
    return sum;
}

// The butterflies multiply by sqrt(32).
static void make_weights(struct device_bench_weights *out)
{
    double unit = sqrt(DIMS / energy_of(0, DIMS)) / SUM_DEVIATION / sqrt(32);
    for (uint32_t i = 0; i < DIMS; i++) out->weights[i] = (float)(unit * pow(i + 1, -SPECTRUM));
}

static enum bsw_status make_steps(const struct bsw_code_layout *layout, float *steps,
                                  struct bsw_error *err)
{
    uint32_t place = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        if (segment->bits > MOST_BITS || segment->dims % 32 > 0)
            return bsw_fail(err, BSW_ERROR_USAGE, "segments of whole words and up to %d bits",
                            MOST_BITS);
        double mean = energy_of(place, segment->dims) / segment->dims;
        steps[s] = (float)(half_steps[segment->bits] * sqrt(mean * DIMS / energy_of(0, DIMS)));
        place += segment->dims;
    }
    return BSW_OK;
}

// The unit of a tail, in units of a scale: the first power of two that the norm of the rest cannot
// pass.
static double tail_unit_of(const struct bsw_code_layout *layout, uint32_t stage_dims)
{
    double squares = 0, unit = 1;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        double most = (1u << segment->bits) - 1;
        if (segment->padded_dim >= stage_dims) squares += segment->dims * most * most;
    }
    while (unit * unit < squares) unit *= 2;
    return unit;
}

// ---- codes ----

struct coding {
    struct device_bench *bench;
    struct bsw_saq_frame frame;
    struct device_bench_weights weights;
    struct bsw_code_arrays arrays;
    struct bsw_device_buffer memory;
    float *projected, *norms, *scales;
    uint32_t *tails;
};

static enum bsw_status code_block(const struct coding *coding, uint64_t first, uint32_t count,
                                  struct bsw_error *err)
{
    struct device_bench *bench = coding->bench;
    const struct bsw_code_layout *layout = &coding->frame.layout;
    struct bsw_device_saq_codes codes = {
        .norms = coding->norms, .scales = coding->scales, .tails = coding->tails};
    const struct device_bench_affine affine = {.norms = coding->norms,
                                               .scales = coding->scales,
                                               .tails = coding->tails,
                                               .num_rows = count,
                                               .scale_unit = ldexpf(1.0f, -SCALE_EXPONENT),
                                               // A tail is never too small for three roundings.
                                               .tail_unit =
                                                   (float)((1 + 0x1p-21) / bench->codes.tail_unit)};
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        codes.planes[s] =
            coding->arrays.planes[s] +
            (size_t)(first / BSW_BUNDLE_ROWS) * bsw_segment_bundle_words(&layout->segments[s]);
    }
    BSW_TRY(DEVICE_BENCH_LAUNCH(bench, "rows", err, device_bench_spectrum_rows, &coding->weights,
                                first, count, coding->projected));
    BSW_TRY(DEVICE_BENCH_LAUNCH(bench, "codes", err, bsw_device_saq_quantize, &coding->frame,
                                coding->projected, count, &codes));
    return DEVICE_BENCH_LAUNCH(bench, "codes", err, device_bench_spectrum_store, &affine, first,
                               &coding->arrays);
}

static enum bsw_status code_rows(struct coding *coding, struct bsw_error *err)
{
    struct device_bench *bench = coding->bench;
    uint32_t stage_dims = coding->frame.stage_dims;
    BSW_TRY(make_steps(&coding->frame.layout, coding->frame.steps, err));
    make_weights(&coding->weights);
    device_bench_codes_free(bench); // before it is seen how much memory is free
    const struct device_bench_array block[] = {
        {&coding->projected, BLOCK_ROWS * (DIMS * sizeof(float))},
        {&coding->norms, BLOCK_ROWS * sizeof(float)},
        {&coding->scales, BLOCK_ROWS * sizeof(float)},
        {&coding->tails, BLOCK_ROWS * sizeof(uint32_t)}};
    BSW_TRY(device_bench_allocate(bench, block, 4, &coding->memory, err));
    BSW_TRY(device_bench_codes_allocate(bench, &coding->frame.layout, 1, bench->settings->rows,
                                        &coding->arrays, err));
    bench->codes.tail_unit = tail_unit_of(&coding->frame.layout, stage_dims);
    uint64_t rows = bench->codes.num_rows;
    for (uint64_t done = 0; done < rows; done += BLOCK_ROWS) {
        uint64_t left = rows - done;
        BSW_TRY(code_block(coding, done, left < BLOCK_ROWS ? (uint32_t)left : BLOCK_ROWS, err));
    }
    return bsw_device_wait(bench->device, BSW_QUEUE_SCAN, "codes", err);
}

enum bsw_status device_bench_spectrum_codes(struct device_bench *bench,
                                            const struct device_bench_shape *shape,
                                            struct bsw_error *err)
{
    struct coding coding = {.bench = bench,
                            .frame = {.metric = BSW_METRIC_L2, .stage_dims = shape->stage_dims}};
    BSW_TRY(bsw_code_layout_parse(shape->layout, DIMS, &coding.frame.layout, err));
    enum bsw_status status = code_rows(&coding, err);
    bsw_device_free(bench->device, &coding.memory);
    return status;
}

// ---- queries ----

static void make_row(const struct device_bench_weights *weights, uint64_t row, float *out)
{
    for (uint32_t i = 0; i < DIMS; i++) {
        uint64_t x = bsw_hash2(DEVICE_BENCH_SPECTRUM_SEED, row * DIMS + i);
        int sum = (int)(x & 0xffffu) + (int)(x >> 16 & 0xffffu) + (int)(x >> 32 & 0xffffu) +
                  (int)(x >> 48) - 131070;
        out[i] = weights->weights[i] * (float)sum;
    }
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        for (uint32_t i = 0; i < DIMS; i++) {
            if (i & distance) continue;
            float a = out[i], b = out[i + distance];
            out[i] = a + b;
            out[i + distance] = a - b;
        }
    }
}

// Rows are projected already: what is left are steps and planes.
static float code_query(const struct bsw_code_layout *layout, const float *steps,
                        uint32_t query_bits, float *row, uint32_t *words)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        for (uint32_t i = 0; i < segment->dims; i++) row[segment->padded_dim + i] *= steps[s];
    }
    return ldexpf(bsw_query_planes_scaled(layout, row, query_bits, words), SCALE_EXPONENT);
}

enum bsw_status device_bench_spectrum_queries(const struct bsw_code_layout *layout,
                                              uint32_t query_bits, uint32_t num_queries,
                                              struct device_bench_queries *out,
                                              struct bsw_error *err)
{
    struct device_bench_weights weights;
    float steps[BSW_MAX_SEGMENTS], row[DIMS];
    *out = (struct device_bench_queries){.words = NULL};
    if (layout->dims != DIMS || layout->padded_dims != DIMS)
        return bsw_fail(err, BSW_ERROR_USAGE, "%u dimensions in whole words are expected", DIMS);
    BSW_TRY(make_steps(layout, steps, err));
    make_weights(&weights);
    BSW_TRY(device_bench_queries_allocate(layout, query_bits, num_queries, out, err));
    for (uint32_t q = 0; q < num_queries; q++) {
        uint32_t *words = out->words + q * out->batch.query_words;
        make_row(&weights, FIRST_QUERY_ROW + q, row);
        memset(words, 0, out->batch.query_words * sizeof *words);
        out->scales[q] = code_query(layout, steps, query_bits, row, words);
    }
    return BSW_OK;
}

// ---- one row on the host ----

static uint32_t score_of(const struct bsw_code_layout *layout, uint32_t *const *planes, float norm,
                         float scale, const struct device_bench_queries *queries, size_t query)
{
    uint16_t half = bsw_half_nearest(ldexp((double)scale, -SCALE_EXPONENT));
    float product =
        bsw_half_to_float(half) * (float)device_bench_dot(layout, planes, queries, query);
    return bsw_score_from_float(fmaf(queries->scales[query], product, 0.0f - norm) + 0.0f);
}

enum bsw_status device_bench_spectrum_score(const struct bsw_code_layout *layout,
                                            const struct device_bench_queries *queries,
                                            size_t query, uint64_t row, uint32_t *out,
                                            struct bsw_error *err)
{
    struct bsw_saq_frame frame = {.layout = *layout, .metric = BSW_METRIC_L2, .stage_dims = DIMS};
    struct device_bench_weights weights;
    uint32_t *memory, *planes[BSW_MAX_SEGMENTS], tail;
    float norm, scale;
    size_t words = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++)
        words += bsw_segment_bundle_words(&layout->segments[s]);
    BSW_TRY(make_steps(layout, frame.steps, err));
    BSW_TRY(bsw_allocate(&memory, DIMS + words, sizeof *memory, "row", err));
    float *numbers = (float *)(void *)memory;
    planes[0] = memory + DIMS;
    for (uint32_t s = 1; s < layout->num_segments; s++)
        planes[s] = planes[s - 1] + bsw_segment_bundle_words(&layout->segments[s - 1]);
    make_weights(&weights);
    make_row(&weights, row, numbers);
    bsw_encode_table_get(BSW_CPU_REFERENCE)
        ->saq_quantize(&frame, numbers, 1, planes, &norm, &scale, &tail);
    *out = score_of(layout, planes, norm, scale, queries, query);
    bsw_free(&memory);
    return BSW_OK;
}
