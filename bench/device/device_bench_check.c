// SPDX-License-Identifier: Apache-2.0
// What a pass found, against plain code on the host.
#include <stdlib.h>
#include <string.h>

#include "bench/device/device_bench_pass.h"
#include "common/codes/metric.h"

#define SAMPLED_ROWS ((uint64_t)4096)

int device_bench_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// query: of the last batch.
static enum bsw_status score_of(const struct device_bench *bench,
                                const struct device_bench_pass *pass, size_t query, uint32_t row,
                                uint32_t *out, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &bench->codes.codes.layout;
    const struct device_bench_queries *queries = &pass->queries;
    query += pass->first_query;
    if (pass->product) return device_bench_table_score(layout, queries, query, row, out, err);
    if (pass->shape->stage_dims > 0)
        return device_bench_spectrum_score(layout, queries, query, row, out, err);
    return device_bench_score(layout, pass->shape->has_affine, queries, query, row, out, err);
}

static enum bsw_status check_item(const struct device_bench *bench,
                                  const struct device_bench_pass *pass, size_t query, uint64_t item,
                                  struct bsw_error *err)
{
    uint32_t row = bsw_candidate_row(item), score;
    BSW_TRY(score_of(bench, pass, query, row, &score, err));
    if (score == bsw_candidate_score(item)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %zu, row %u: score %08x, the host has %08x",
                    query, row, bsw_candidate_score(item), score);
}

static enum bsw_status check_list(const struct device_bench *bench,
                                  const struct device_bench_pass *pass, size_t query,
                                  struct bsw_error *err)
{
    size_t count;
    const uint64_t *items = bsw_candidate_list(&pass->lists, query, &count);
    if (count != pass->lists.keep)
        return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %zu: %zu candidates instead of %zu",
                        query, count, pass->lists.keep);
    for (size_t i = 0; i < count; i++) {
        BSW_TRY(check_item(bench, pass, query, items[i], err));
        if (i > 0 && items[i] >= items[i - 1])
            return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %zu, place %zu: not in order", query,
                            i);
    }
    return BSW_OK;
}

// A row that is better than the last one kept must be there.
static enum bsw_status check_missing(const struct device_bench *bench,
                                     const struct device_bench_pass *pass, size_t query,
                                     struct bsw_error *err)
{
    uint64_t rows = pass->host.shape.num_rows, num = rows < SAMPLED_ROWS ? rows : SAMPLED_ROWS;
    size_t count;
    const uint64_t *items = bsw_candidate_list(&pass->lists, query, &count);
    for (uint64_t i = 0; i < num; i++) {
        uint32_t row = (uint32_t)(i * rows / num), score;
        BSW_TRY(score_of(bench, pass, query, row, &score, err));
        uint64_t item = bsw_candidate_pack(score, row);
        if (item < items[count - 1] ||
            bsearch(&item, items, count, sizeof item, device_bench_descending))
            continue;
        return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %zu: row %u is missing", query, row);
    }
    return BSW_OK;
}

enum bsw_status device_bench_pass_check(const struct device_bench *bench,
                                        const struct device_bench_pass *pass, size_t num_queries,
                                        struct bsw_error *err)
{
    for (size_t q = 0; q < pass->lists.num_queries && q < num_queries; q++) {
        BSW_TRY(check_list(bench, pass, q, err));
        BSW_TRY(check_missing(bench, pass, q, err));
    }
    return BSW_OK;
}

enum bsw_status device_bench_pass_compare(const struct device_bench_pass *a,
                                          const struct device_bench_pass *b, struct bsw_error *err)
{
    for (size_t q = 0; q < a->lists.num_queries; q++) {
        size_t count, other;
        const uint64_t *items = bsw_candidate_list(&a->lists, q, &count);
        const uint64_t *others = bsw_candidate_list(&b->lists, q, &other);
        if (count != other || memcmp(items, others, count * sizeof *items) != 0)
            return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                            "query %zu: %zu candidates of the scan %s, %zu of %s, not the same", q,
                            count, bsw_scan_name(a->shape->kind), other,
                            bsw_scan_name(b->shape->kind));
    }
    return BSW_OK;
}
