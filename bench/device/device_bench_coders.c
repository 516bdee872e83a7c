// SPDX-License-Identifier: Apache-2.0
// Encoders of pq and sq8 from float32 rows in device memory: the nearest entry of each part, of
// rows that are projected already, and sq8's one kernel. Bytes are those of every array that a
// kernel reads or writes, once.
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/memory.h"
#include "kernels/device_encode/device_encode.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/encode/sq8_codes.h"

#define ROW_SEED  0x5100u
#define BOOK_SEED 0x5101u
#define DIMS      96u
#define PART_DIMS 4u
#define SQ8_BITS  8u
#define SQ8_WORDS (DIMS / 32)
#define MOST_ROWS ((uint64_t)1 << 30)

struct coding {
    struct device_bench *bench;
    int is_sq8;
    struct bsw_device_raw_rows rows;
    struct bsw_device_buffer memory;
    float *numbers;
    struct bsw_product_book book; // pq
    float *entries, *norms;
    uint8_t *codes;
    struct bsw_device_sq8_codes sq8; // sq8
    float *middles, *half_steps;
};

// Codes of a row, and what else is written for it.
static size_t output_bytes(int is_sq8)
{
    return is_sq8 ? DIMS + 2 * sizeof(float) + 1 : DIMS / PART_DIMS;
}

static enum bsw_status allocate(struct coding *coding, struct bsw_error *err)
{
    size_t rows = coding->rows.num_rows, bundle_rows = bsw_num_bundles(rows) * BSW_BUNDLE_ROWS;
    size_t floats = coding->is_sq8 ? rows * sizeof(float) : 0, step = DIMS * sizeof(float);
    size_t book = coding->is_sq8 ? 0 : bsw_table_bytes(&coding->book);
    const struct device_bench_array arrays[] = {
        {&coding->numbers, rows * step},
        {&coding->entries, book * PART_DIMS},
        {&coding->norms, book},
        {&coding->codes, coding->is_sq8 ? 0 : bundle_rows * (DIMS / PART_DIMS)},
        {&coding->middles, coding->is_sq8 ? step : 0},
        {&coding->half_steps, coding->is_sq8 ? step : 0},
        {&coding->sq8.planes, coding->is_sq8 ? bundle_rows * DIMS : 0},
        {&coding->sq8.faults, coding->is_sq8 ? rows : 0},
        {&coding->sq8.factors, floats},
        {&coding->sq8.sums, floats}};
    BSW_TRY(device_bench_allocate(coding->bench, arrays, sizeof arrays / sizeof arrays[0],
                                  &coding->memory, err));
    coding->rows.numbers = coding->numbers;
    coding->book.entries = coding->entries;
    coding->book.norms = coding->norms;
    coding->sq8.middles = coding->middles;
    coding->sq8.half_steps = coding->half_steps;
    return BSW_OK;
}

static enum bsw_status open_coding(struct coding *coding, struct bsw_error *err)
{
    size_t numbers = bsw_product_numbers(&coding->book);
    BSW_TRY(allocate(coding, err));
    BSW_TRY(device_bench_floats(coding->bench, coding->numbers,
                                (size_t)coding->rows.num_rows * DIMS, ROW_SEED, err));
    if (coding->is_sq8) {
        BSW_TRY(device_bench_floats(coding->bench, coding->middles, DIMS, BOOK_SEED, err));
        return device_bench_floats(coding->bench, coding->half_steps, DIMS, BOOK_SEED + 1, err);
    }
    BSW_TRY(
        device_bench_floats(coding->bench, coding->entries, numbers * PART_DIMS, BOOK_SEED, err));
    return device_bench_floats(coding->bench, coding->norms, numbers, BOOK_SEED + 1, err);
}

static enum bsw_status run(void *context, struct bsw_error *err)
{
    const struct coding *coding = context;
    if (coding->is_sq8)
        return DEVICE_BENCH_LAUNCH(coding->bench, "encode", err, bsw_device_encode_sq8,
                                   &coding->rows, BSW_METRIC_L2, &coding->sq8);
    return DEVICE_BENCH_LAUNCH(coding->bench, "nearest entries", err, bsw_device_product_codes,
                               &coding->book, coding->numbers, DIMS, coding->rows.num_rows,
                               DIMS / PART_DIMS, coding->codes);
}

// ---- the first bundle, against the reference ----

struct check {
    float *rows, *models, *others, *y; // models: entries or middles; others: norms or half steps
    uint8_t *codes;
    uint32_t *planes, *own_planes;
    float *factors, *sums;
};

static size_t divide(const struct coding *coding, unsigned char *at, struct check *out)
{
    size_t numbers = bsw_product_numbers(&coding->book),
           rows = BSW_BUNDLE_ROWS * DIMS * sizeof(float);
    const struct bsw_memory_part parts[] = {{&out->rows, rows},
                                            {&out->models, numbers * PART_DIMS * sizeof(float)},
                                            {&out->others, numbers * sizeof(float)},
                                            {&out->y, rows},
                                            {&out->codes, BSW_BUNDLE_ROWS * DIMS},
                                            {&out->planes, BSW_BUNDLE_ROWS * DIMS},
                                            {&out->own_planes, BSW_BUNDLE_ROWS * DIMS},
                                            {&out->factors, BSW_BUNDLE_ROWS * sizeof(float)},
                                            {&out->sums, BSW_BUNDLE_ROWS * sizeof(float)}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

static enum bsw_status fetch(const struct coding *coding, void *to, const void *from, size_t bytes,
                             struct bsw_error *err)
{
    BSW_TRY(bsw_device_download(coding->bench->device, BSW_QUEUE_SCAN, to, from, bytes, err));
    return bsw_device_wait(coding->bench->device, BSW_QUEUE_SCAN, "codes", err);
}

static enum bsw_status check_product(const struct coding *coding, const struct check *check,
                                     size_t num_rows, int *is_same, struct bsw_error *err)
{
    size_t table = bsw_table_bytes(&coding->book), parts = coding->book.parts;
    struct bsw_product_book book = coding->book;
    uint8_t *found = (uint8_t *)check->planes;
    book.entries = check->models;
    book.norms = check->others;
    BSW_TRY(fetch(coding, check->models, coding->entries, table * PART_DIMS, err));
    BSW_TRY(fetch(coding, check->others, coding->norms, table, err));
    BSW_TRY(fetch(coding, found, coding->codes, BSW_BUNDLE_ROWS * parts, err));
    bsw_table_scan_reference.nearest(&book, check->rows, DIMS, num_rows, check->codes);
    for (size_t r = 0; r < num_rows; r++)
        for (size_t p = 0; p < parts; p++)
            *is_same &= found[p * BSW_BUNDLE_ROWS + r] == check->codes[r * parts + p];
    return BSW_OK;
}

static enum bsw_status check_sq8(const struct coding *coding, const struct check *check,
                                 size_t num_rows, int *is_same, struct bsw_error *err)
{
    const struct bsw_sq8_steps steps = {check->models, check->others, DIMS};
    size_t floats = num_rows * sizeof(float), planes = BSW_BUNDLE_ROWS * DIMS;
    float factors[BSW_BUNDLE_ROWS] = {0}, ones[BSW_BUNDLE_ROWS], mean_dot;
    BSW_TRY(fetch(coding, check->models, coding->middles, DIMS * sizeof(float), err));
    BSW_TRY(fetch(coding, check->others, coding->half_steps, DIMS * sizeof(float), err));
    BSW_TRY(fetch(coding, check->planes, coding->sq8.planes, planes, err));
    BSW_TRY(fetch(coding, check->factors, coding->sq8.factors, floats, err));
    BSW_TRY(fetch(coding, check->sums, coding->sq8.sums, floats, err));
    for (size_t r = 0; r < num_rows; r++) {
        ones[r] = 1;
        factors[r] =
            bsw_sq8_center(&steps, check->rows + r * DIMS, 1, check->y + r * DIMS, &mean_dot);
    }
    bsw_encode_reference.xfbq(check->y, num_rows, DIMS, ones, 1, SQ8_BITS, check->own_planes);
    *is_same = memcmp(factors, check->factors, floats) == 0 &&
               memcmp(check->own_planes, check->planes, planes) == 0;
    for (size_t r = 0; r < num_rows; r++) {
        float sum = bsw_sq8_squared_norm(&steps, factors[r], check->y + r * DIMS);
        *is_same &= memcmp(&sum, &check->sums[r], sizeof sum) == 0;
    }
    return BSW_OK;
}

static enum bsw_status check_bundle(const struct coding *coding, struct bsw_error *err)
{
    size_t left = coding->rows.num_rows, num_rows = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
    struct bsw_buffer memory = {0};
    struct check check;
    int is_same = 1;
    BSW_TRY(bsw_buffer_reserve(&memory, divide(coding, NULL, &check), err));
    divide(coding, memory.data, &check);
    enum bsw_status status =
        fetch(coding, check.rows, coding->numbers, num_rows * DIMS * sizeof(float), err);
    if (status == BSW_OK)
        status = coding->is_sq8 ? check_sq8(coding, &check, num_rows, &is_same, err)
                                : check_product(coding, &check, num_rows, &is_same, err);
    bsw_buffer_deinit(&memory);
    BSW_TRY(status);
    return is_same ? BSW_OK
                   : bsw_fail(err, BSW_ERROR_SELF_CHECK, "the first bundle has other codes");
}

// ---- the case ----

static void count_work(const struct coding *coding, struct device_record *record)
{
    double rows = (double)coding->rows.num_rows;
    record->rows = coding->rows.num_rows;
    record->bytes = rows * (double)(DIMS * sizeof(float) + output_bytes(coding->is_sq8));
    record->bytes_limit = DEVICE_LIMIT_READ;
    record->values = rows;
    record->values_name = "rows";
    if (coding->is_sq8) return;
    record->operations = 2 * rows * DIMS * (double)bsw_product_entries(&coding->book);
    record->operations_limit = DEVICE_LIMIT_FLOAT32;
}

enum bsw_status device_bench_coders(struct device_bench *bench, const struct device_bench_case *c,
                                    struct bsw_error *err)
{
    struct coding coding = {.bench = bench,
                            .is_sq8 = c->shape.has_affine,
                            .rows = {.type = BSW_VECTOR_FLOAT32, .dims = DIMS},
                            .book = {.parts = DIMS / PART_DIMS, .part_dims = PART_DIMS, .bits = 8}};
    struct device_record record = {.name = c->name, .is_checked = 1};
    uint64_t rows = bench->settings->bytes / (DIMS * sizeof(float) + output_bytes(coding.is_sq8));
    if (rows > bench->settings->rows) rows = bench->settings->rows;
    if (rows > MOST_ROWS) rows = MOST_ROWS;
    coding.rows.num_rows = rows < 1 ? 1 : (uint32_t)rows;
    device_bench_codes_free(bench);
    enum bsw_status status = open_coding(&coding, err);
    if (status == BSW_OK)
        status = device_bench_time(bench, bench->device, run, &coding, &record.times, err);
    if (status == BSW_OK) status = check_bundle(&coding, err);
    bsw_device_free(bench->device, &coding.memory);
    BSW_TRY(status);
    count_work(&coding, &record);
    device_bench_report(bench, &record);
    return BSW_OK;
}
