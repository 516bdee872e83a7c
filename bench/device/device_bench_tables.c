// SPDX-License-Identifier: Apache-2.0
// Product codes: whole passes by tables of float32, float16 and the two floats of 8 bits. Codes are
// the planes of other cases, read as numbers of entries; codebooks and queries are random.
#include <string.h>

#include "bench/device/device_bench_pass.h"
#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "kernels/table_scan/table_scan.h"
#include "shard/codecs/product_codes.h"
#include "shard/device/device_plan.h"

#define ENTRY_SEED      0x8000u
#define QUERY_SEED      0x8001u
#define PART_DIMS       2u
#define CHECKED_QUERIES 2

static void fill(float *numbers, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(int32_t)(uint32_t)bsw_hash2(seed, i) * 0x1p-31f;
}

enum bsw_status device_bench_book_make(const struct device_bench_shape *shape,
                                       const struct bsw_code_layout *layout,
                                       struct bsw_product_codes **out, struct bsw_error *err)
{
    uint32_t parts = layout->dims / shape->table_bits;
    BSW_TRY(bsw_product_codes_create(BSW_METRIC_L2, parts * PART_DIMS, parts, shape->table_bits,
                                     "none", out, err));
    fill((*out)->entries, bsw_product_numbers(&(*out)->book) * PART_DIMS, ENTRY_SEED);
    bsw_product_codes_norms(*out);
    return BSW_OK;
}

enum bsw_status device_bench_table_queries(const struct bsw_product_codes *codes,
                                           enum bsw_table_type type, uint32_t num_queries,
                                           struct device_bench_queries *out, struct bsw_error *err)
{
    size_t numbers = codes->projected_dims;
    *out = (struct device_bench_queries){.words = NULL};
    BSW_TRY(
        bsw_allocate_zero(&out->words, num_queries * numbers, sizeof *out->words, "queries", err));
    for (uint32_t q = 0; q < num_queries; q++)
        fill((float *)(void *)(out->words + q * numbers), codes->dims, bsw_hash2(QUERY_SEED, q));
    out->batch = (struct bsw_query_batch){.num_queries = num_queries,
                                          .query_bits = 1,
                                          .query_words = numbers,
                                          .words = out->words,
                                          .product = codes,
                                          .table = type};
    return BSW_OK;
}

enum bsw_status device_bench_table_score(const struct bsw_code_layout *layout,
                                         const struct device_bench_queries *queries, size_t query,
                                         uint32_t row, uint32_t *out, struct bsw_error *err)
{
    const struct bsw_query_batch *batch = &queries->batch;
    size_t words = bsw_segment_bundle_words(&layout->segments[0]);
    uint32_t *bundle, lane = row % BSW_BUNDLE_ROWS;
    BSW_TRY(bsw_allocate(&bundle, words, sizeof *bundle, "row", err));
    for (size_t i = 0; i < words; i++)
        bundle[i] =
            (uint32_t)bsw_hash2(DEVICE_BENCH_WORD_SEED(0), row / BSW_BUNDLE_ROWS * words + i);
    const struct bsw_product_rows rows = {(const uint8_t *)(void *)bundle, words * sizeof *bundle,
                                          1, &lane};
    const float *numbers = (const float *)(const void *)(batch->words + query * batch->query_words);
    enum bsw_status status = bsw_product_plain_scores(batch->product, batch->table, NULL, numbers,
                                                      NULL, &rows, out, err);
    bsw_free(&bundle);
    return status;
}

static enum bsw_status measure(struct device_bench *bench, struct device_bench_pass *pass,
                               struct device_record *record, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &bench->codes.codes.layout;
    record->queries = pass->num_queries;
    record->bytes = (double)pass->host.num_bundles * (double)bsw_device_bundle_bytes(layout, 0, 0);
    record->bytes_limit = DEVICE_LIMIT_READ;
    record->values = (double)record->rows * (double)record->queries * pass->product->book.parts;
    record->values_name = "look-ups";
    record->is_checked = 1;
    BSW_TRY(device_bench_pass_time(bench, pass, &record->times, err));
    return device_bench_pass_check(bench, pass, CHECKED_QUERIES, err);
}

enum bsw_status device_bench_tables(struct device_bench *bench, const struct device_bench_case *c,
                                    struct bsw_error *err)
{
    struct device_bench_pass *pass;
    uint64_t rows = device_bench_num_rows(bench, &c->shape);
    BSW_TRY(device_bench_codes_make(bench, c->shape.layout, rows, err));
    struct device_record record = {.name = c->name,
                                   .rows =
                                       rows < bench->codes.num_rows ? rows : bench->codes.num_rows,
                                   .keep = c->shape.keep};
    BSW_TRY(device_bench_pass_open(bench, &c->shape, record.rows, 0, &pass, err));
    enum bsw_status status = measure(bench, pass, &record, err);
    device_bench_pass_close(&pass);
    if (status == BSW_OK) device_bench_report(bench, &record);
    return status;
}
