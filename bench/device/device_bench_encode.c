// SPDX-License-Identifier: Apache-2.0
// Encoding from float32 rows in device memory: the launchers of kernels/device_encode one after
// another, over all rows at once. Bytes are those of every array that a kernel reads or writes,
// once.
#include <stdio.h>

#include "bench/device/device_bench_encode.h"

#define ROW_SEED      0x5000u
#define ROTATION_SEED 0x5001u
#define STEP          0.3f // of 3 bits
#define MOST_ROWS     ((uint64_t)1 << 30)

// Bytes of a row in all arrays.
static size_t row_bytes(const struct bsw_code_layout *layout, int is_saq)
{
    size_t numbers = is_saq ? 2 * layout->dims + layout->padded_dims + 4 : layout->dims;
    return numbers * sizeof(float) + (size_t)bsw_layout_row_bytes(layout) + 1;
}

static uint32_t count_rows(const struct device_bench *bench, const struct bsw_code_layout *layout,
                           int is_saq)
{
    uint64_t rows = bench->settings->bytes / row_bytes(layout, is_saq);
    if (rows > bench->settings->rows) rows = bench->settings->rows;
    return rows < 1 ? 1 : (uint32_t)(rows < MOST_ROWS ? rows : MOST_ROWS);
}

static enum bsw_status allocate(struct encoding *encoding, int is_saq, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &encoding->frame.layout;
    const struct bsw_segment *segment = &layout->segments[0];
    size_t rows = encoding->rows.num_rows, floats = is_saq ? rows * sizeof(float) : 0;
    size_t words = bsw_num_bundles(rows) * bsw_segment_bundle_words(segment);
    struct bsw_device_saq_codes *codes = &encoding->codes;
    const struct device_bench_array arrays[] = {
        {&encoding->numbers, rows * layout->dims * sizeof(float)},
        {&encoding->faults, rows},
        {&encoding->mean_dots, floats},
        {&encoding->centered, floats * layout->dims},
        {&encoding->projected, floats * layout->padded_dims},
        {&codes->norms, floats},
        {&codes->scales, floats},
        {&codes->tails, floats},
        {&encoding->mean, layout->dims * sizeof(float)},
        {&encoding->rotation, (size_t)layout->dims * layout->padded_dims * sizeof(float)},
        {&codes->planes[0], words * sizeof(uint32_t)}};
    BSW_TRY(device_bench_allocate(encoding->bench, arrays, sizeof arrays / sizeof arrays[0],
                                  &encoding->memory, err));
    encoding->rows.numbers = encoding->numbers;
    encoding->frame.mean = encoding->mean;
    encoding->frame.rotation = encoding->rotation;
    return BSW_OK;
}

static enum bsw_status open_encoding(struct device_bench *bench, const char *layout_text,
                                     int is_saq, struct encoding *out, struct bsw_error *err)
{
    struct bsw_code_layout *layout = &out->frame.layout;
    uint32_t dims = 0;
    *out = (struct encoding){.bench = bench, .frame = {.metric = BSW_METRIC_L2, .steps = {STEP}}};
    if (sscanf(layout_text, "%ux", &dims) != 1) dims = 0;
    BSW_TRY(bsw_code_layout_parse(layout_text, dims, layout, err));
    out->frame.stage_dims = dims / 2 / 32 * 32;
    out->rows = (struct bsw_device_raw_rows){
        .type = BSW_VECTOR_FLOAT32, .dims = dims, .num_rows = count_rows(bench, layout, is_saq)};
    BSW_TRY(allocate(out, is_saq, err));
    BSW_TRY(device_bench_floats(out->bench, out->numbers, (size_t)out->rows.num_rows * dims,
                                ROW_SEED, err));
    if (!is_saq) return BSW_OK;
    BSW_TRY(device_bench_floats(out->bench, out->mean, dims, ROTATION_SEED, err));
    return device_bench_floats(out->bench, out->rotation, (size_t)dims * layout->padded_dims,
                               ROTATION_SEED, err);
}

static enum bsw_status run_xfbq(void *context, struct bsw_error *err)
{
    const struct encoding *encoding = context;
    return DEVICE_BENCH_LAUNCH(encoding->bench, "encode", err, bsw_device_encode_xfbq,
                               &encoding->rows, DEVICE_BENCH_XFBQ_SCALE,
                               encoding->frame.layout.segments[0].bits, encoding->codes.planes[0],
                               encoding->faults);
}

static enum bsw_status run_saq(void *context, struct bsw_error *err)
{
    const struct encoding *encoding = context;
    uint32_t num_rows = encoding->rows.num_rows;
    BSW_TRY(DEVICE_BENCH_LAUNCH(encoding->bench, "center", err, bsw_device_saq_center,
                                &encoding->frame, &encoding->rows, encoding->centered,
                                encoding->mean_dots, encoding->faults));
    BSW_TRY(DEVICE_BENCH_LAUNCH(encoding->bench, "project", err, bsw_device_saq_project,
                                &encoding->frame, encoding->centered, num_rows,
                                encoding->projected));
    return DEVICE_BENCH_LAUNCH(encoding->bench, "quantize", err, bsw_device_saq_quantize,
                               &encoding->frame, encoding->projected, num_rows, &encoding->codes);
}

// Between kernels rows are written and read again.
static void count_work(const struct encoding *encoding, int is_saq, struct device_record *record)
{
    const struct bsw_code_layout *layout = &encoding->frame.layout;
    double rows = (double)encoding->rows.num_rows;
    size_t again = is_saq ? layout->dims + layout->padded_dims : 0;
    record->rows = encoding->rows.num_rows;
    record->bytes = rows * (double)(row_bytes(layout, is_saq) + again * sizeof(float));
    record->bytes_limit = DEVICE_LIMIT_READ;
    record->values = rows;
    record->values_name = "rows";
    if (!is_saq) return;
    record->operations = 2 * rows * layout->dims * layout->padded_dims;
    record->operations_limit = DEVICE_LIMIT_FLOAT32;
}

enum bsw_status device_bench_encode(struct device_bench *bench, const struct device_bench_case *c,
                                    struct bsw_error *err)
{
    struct encoding encoding;
    int is_saq = c->shape.has_affine;
    struct device_record record = {.name = c->name, .is_checked = 1};
    device_bench_codes_free(bench);
    enum bsw_status status = open_encoding(bench, c->shape.layout, is_saq, &encoding, err);
    if (status == BSW_OK)
        status = device_bench_time(bench, bench->device, is_saq ? run_saq : run_xfbq, &encoding,
                                   &record.times, err);
    if (status == BSW_OK) status = device_bench_encode_check(&encoding, is_saq, err);
    bsw_device_free(bench->device, &encoding.memory);
    BSW_TRY(status);
    count_work(&encoding, is_saq, &record);
    device_bench_report(bench, &record);
    return BSW_OK;
}
