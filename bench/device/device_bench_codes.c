// SPDX-License-Identifier: Apache-2.0
// Memory and codes on the device, queries on the host, and the score of one of each computed
// plainly.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/plane_scan/plane_scan.h"
#include "shard/device/device_plan.h"

#define QUERY_SEED  0x3000u
#define QUERY_SCALE 0x1p-6f

enum bsw_status device_bench_allocate(struct device_bench *bench,
                                      const struct device_bench_array *arrays, size_t num_arrays,
                                      struct bsw_device_buffer *memory, struct bsw_error *err)
{
    size_t total = 0, place = 0;
    for (size_t i = 0; i < num_arrays; i++) bsw_place_array(arrays[i].bytes, 256, &total);
    BSW_TRY(bsw_device_allocate(bench->device, total, "arrays", memory, err));
    for (size_t i = 0; i < num_arrays; i++) {
        void *array = memory->data + bsw_place_array(arrays[i].bytes, 256, &place);
        memcpy(arrays[i].address, &array, sizeof array);
    }
    return BSW_OK;
}

// ---- codes ----

void device_bench_codes_free(struct device_bench *bench)
{
    bsw_device_free(bench->device, &bench->codes.memory);
    bench->codes = (struct device_bench_codes){.num_rows = 0};
}

// The rows, at most `wanted`, whose codes leave a seventh of the bytes.
static uint64_t rows_within(const struct bsw_code_layout *layout, int has_tails, size_t bytes,
                            uint64_t wanted)
{
    uint64_t bundles = (bytes - bytes / 7) / bsw_device_bundle_bytes(layout, 1, has_tails);
    return bundles * BSW_BUNDLE_ROWS < wanted ? bundles * BSW_BUNDLE_ROWS : wanted;
}

static void point_into(const struct bsw_device_codes_layout *at, uint32_t num_segments,
                       unsigned char *memory, int has_tails, struct bsw_code_arrays *out)
{
    for (uint32_t s = 0; s < num_segments; s++)
        out->planes[s] = (uint32_t *)(void *)(memory + at->planes[s]);
    out->scales = (uint16_t *)(void *)(memory + at->scales);
    out->biases = (float *)(void *)(memory + at->biases);
    out->masks = (uint32_t *)(void *)(memory + at->masks);
    out->tails = has_tails ? (uint16_t *)(void *)(memory + at->tails) : NULL;
}

enum bsw_status device_bench_codes_allocate(struct device_bench *bench,
                                            const struct bsw_code_layout *layout, int has_tails,
                                            uint64_t num_rows, struct bsw_code_arrays *out,
                                            struct bsw_error *err)
{
    struct device_bench_codes *codes = &bench->codes;
    struct bsw_device_codes_layout at;
    size_t free_bytes;
    device_bench_codes_free(bench);
    BSW_TRY(bsw_device_free_bytes(bench->device, &free_bytes, err));
    uint64_t rows = rows_within(layout, has_tails, free_bytes, num_rows);
    if (rows == 0) {
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "%zu bytes of device memory hold no codes",
                        free_bytes);
    }
    if (rows < num_rows && bench->report.transport) {
        char text[64];
        bsw_code_layout_format(layout, text, sizeof text);
        bsw_bench_report_note(&bench->report, "%s: %llu rows, as device memory has it", text,
                              (unsigned long long)rows);
    }
    size_t num_bundles = bsw_num_bundles((size_t)rows);
    bsw_device_codes_layout_make(layout, 1, has_tails, num_bundles, &at);
    BSW_TRY(bsw_device_allocate(bench->device, at.bytes, "codes", &codes->memory, err));
    point_into(&at, layout->num_segments, codes->memory.data, has_tails, out);
    codes->num_rows = rows;
    codes->codes = (struct bsw_device_codes){.layout = *layout,
                                             .scales = out->scales,
                                             .biases = out->biases,
                                             .masks = out->masks,
                                             .tails = out->tails,
                                             .num_bundles = (uint32_t)num_bundles};
    for (uint32_t s = 0; s < layout->num_segments; s++) codes->codes.planes[s] = out->planes[s];
    return BSW_OK;
}

static enum bsw_status fill_codes(struct device_bench *bench, const struct bsw_code_arrays *arrays,
                                  struct bsw_error *err)
{
    const struct bsw_device_codes *codes = &bench->codes.codes;
    BSW_TRY(DEVICE_BENCH_LAUNCH(bench, "codes", err, device_bench_make_codes, &codes->layout,
                                arrays, codes->num_bundles, bench->codes.num_rows));
    return bsw_device_wait(bench->device, BSW_QUEUE_SCAN, "codes", err);
}

enum bsw_status device_bench_layout_parse(const char *text, struct bsw_code_layout *out,
                                          struct bsw_error *err)
{
    uint32_t dims = 0;
    for (const char *at = text; at; at = strchr(at, ',')) {
        if (*at == ',') at++;
        dims += (uint32_t)strtoul(at, NULL, 10);
    }
    return bsw_code_layout_parse(text, dims, out, err);
}

enum bsw_status device_bench_codes_make(struct device_bench *bench, const char *layout_text,
                                        uint64_t num_rows, struct bsw_error *err)
{
    struct bsw_code_layout layout;
    struct bsw_code_arrays arrays;
    if (strcmp(bench->codes.layout_text, layout_text) == 0 && bench->codes.num_rows >= num_rows)
        return BSW_OK;
    BSW_TRY(device_bench_layout_parse(layout_text, &layout, err));
    BSW_TRY(device_bench_codes_allocate(bench, &layout, 0, num_rows, &arrays, err));
    snprintf(bench->codes.layout_text, sizeof bench->codes.layout_text, "%s", layout_text);
    enum bsw_status status = fill_codes(bench, &arrays, err);
    if (status != BSW_OK) device_bench_codes_free(bench);
    return status;
}

// Whole bundles: the last one's mask was made for all rows.
struct bsw_device_codes device_bench_codes_first(const struct device_bench *bench,
                                                 uint64_t num_rows, int has_affine)
{
    struct bsw_device_codes codes = bench->codes.codes;
    codes.num_bundles = (uint32_t)bsw_num_bundles((size_t)num_rows);
    if (has_affine) return codes;
    codes.scales = NULL;
    codes.biases = NULL;
    return codes;
}

// ---- queries ----

void device_bench_queries_free(struct device_bench_queries *queries)
{
    bsw_free(&queries->words);
    bsw_free(&queries->scales);
}

static void fill_queries(const struct bsw_code_layout *layout, struct device_bench_queries *out)
{
    const struct bsw_query_batch *batch = &out->batch;
    uint64_t seed = bsw_hash(QUERY_SEED);
    for (size_t i = 0; i < batch->num_queries * batch->query_words; i++)
        out->words[i] = (uint32_t)bsw_hash(seed ^ i);
    for (uint32_t q = 0; q < batch->num_queries; q++) {
        out->scales[q] = QUERY_SCALE;
        uint32_t *words = out->words + q * batch->query_words;
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            const struct bsw_segment *segment = &layout->segments[s];
            uint32_t rest = segment->dims % 32;
            for (uint32_t plane = 0; plane < batch->query_bits; plane++, words += segment->words)
                if (rest > 0) words[segment->words - 1] &= (1u << rest) - 1;
        }
    }
}

enum bsw_status device_bench_queries_allocate(const struct bsw_code_layout *layout,
                                              uint32_t query_bits, uint32_t num_queries,
                                              struct device_bench_queries *out,
                                              struct bsw_error *err)
{
    size_t query_words = bsw_layout_query_words(layout, query_bits);
    *out = (struct device_bench_queries){.words = NULL};
    enum bsw_status status =
        bsw_allocate(&out->words, num_queries * query_words, sizeof(uint32_t), "queries", err);
    if (status == BSW_OK)
        status = bsw_allocate(&out->scales, num_queries, sizeof(float), "queries", err);
    if (status != BSW_OK) {
        device_bench_queries_free(out);
        return status;
    }
    out->batch = (struct bsw_query_batch){.num_queries = num_queries,
                                          .query_bits = query_bits,
                                          .query_words = query_words,
                                          .words = out->words,
                                          .scales = out->scales};
    return BSW_OK;
}

enum bsw_status device_bench_queries_make(const struct bsw_code_layout *layout, uint32_t query_bits,
                                          uint32_t num_queries, struct device_bench_queries *out,
                                          struct bsw_error *err)
{
    BSW_TRY(device_bench_queries_allocate(layout, query_bits, num_queries, out, err));
    fill_queries(layout, out);
    return BSW_OK;
}

// ---- one row on the host ----

int32_t device_bench_dot(const struct bsw_code_layout *layout, uint32_t *const *planes,
                         const struct device_bench_queries *queries, size_t query)
{
    const struct bsw_query_batch *batch = &queries->batch;
    const uint32_t *words = queries->words + query * batch->query_words, place = 0;
    int32_t dot = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        bsw_plane_scan_reference.add_rows(segment, bsw_all_words(segment), planes[s], &place, 1,
                                          words, batch->query_bits, &dot);
        words += segment->words * batch->query_bits;
    }
    return dot;
}

// A row's words of a segment, as lane 0 of a bundle.
static void make_row_planes(const struct bsw_code_layout *layout, uint32_t s, uint32_t row,
                            uint32_t *planes)
{
    const struct bsw_segment *segment = &layout->segments[s];
    uint64_t first = row / BSW_BUNDLE_ROWS * (uint64_t)bsw_segment_bundle_words(segment);
    uint32_t rest = segment->dims % 32;
    for (uint32_t i = 0; i < segment->bits * segment->words; i++) {
        uint64_t place = first + i * BSW_BUNDLE_ROWS + row % BSW_BUNDLE_ROWS;
        uint32_t word = (uint32_t)bsw_hash2(DEVICE_BENCH_WORD_SEED(s), place);
        if (rest > 0 && i % segment->words == segment->words - 1) word &= (1u << rest) - 1;
        planes[i * BSW_BUNDLE_ROWS] = word;
    }
}

static enum bsw_status row_dot(const struct bsw_code_layout *layout,
                               const struct device_bench_queries *queries, size_t query,
                               uint32_t row, int32_t *out, struct bsw_error *err)
{
    uint32_t *memory, *planes[BSW_MAX_SEGMENTS];
    size_t words = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++)
        words += bsw_segment_bundle_words(&layout->segments[s]);
    BSW_TRY(bsw_allocate_zero(&memory, words, sizeof *memory, "row", err));
    words = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        planes[s] = memory + words;
        make_row_planes(layout, s, row, planes[s]);
        words += bsw_segment_bundle_words(&layout->segments[s]);
    }
    *out = device_bench_dot(layout, planes, queries, query);
    bsw_free(&memory);
    return BSW_OK;
}

enum bsw_status device_bench_score(const struct bsw_code_layout *layout, int has_affine,
                                   const struct device_bench_queries *queries, size_t query,
                                   uint32_t row, uint32_t *out, struct bsw_error *err)
{
    int32_t dot;
    BSW_TRY(row_dot(layout, queries, query, row, &dot, err));
    *out = bsw_score_from_integer(dot);
    if (!has_affine) return BSW_OK;
    uint32_t bits = (uint32_t)bsw_hash2(DEVICE_BENCH_ROW_SEED, row);
    float scale = bsw_half_to_float((uint16_t)(0x3800u | (bits & 0x3ffu)));
    float bias = (float)((int)(bits >> 10 & 0x3ffu) - 512) * (1.0f / 256);
    float product = scale * (float)dot;
    *out = bsw_score_from_float(fmaf(queries->scales[query], product, bias) + 0.0f);
    return BSW_OK;
}
