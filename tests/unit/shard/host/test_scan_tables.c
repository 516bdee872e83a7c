// SPDX-License-Identifier: Apache-2.0
// Product codes without lists, by tables and by the bytes that rows pass first: always the best of
// all rows by the plain reference, for every type of table, level, and number of threads.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "row_mask_case.h"
#include "shard/codecs/product_codes.h"
#include "shard/host/shard_scan.h"
#include "unit_test.h"

enum { DIMS = 13, ROWS = 4500, NUM_QUERIES = 19, KEEP = 9 };

static struct bsw_error err;
static uint64_t drawn;

static float draw_float(void)
{
    return ((float)(bsw_hash(++drawn) % 2001) - 1000) / 250;
}

struct made {
    struct bsw_product_codes *codes;
    struct bsw_resident_shard shard;
    struct bsw_query_batch batch;
    float *vectors;
    size_t counts[NUM_QUERIES];
    uint64_t best[NUM_QUERIES][KEEP];
};

static void make_shard(struct made *made)
{
    struct bsw_resident_shard *shard = &made->shard;
    const struct bsw_product_book *book = &made->codes->book;
    char segments[32];
    snprintf(segments, sizeof segments, "%ux1", book->parts * book->bits);
    assert_ok(bsw_code_layout_parse(segments, book->parts * book->bits, &shard->shape.layout, &err),
              &err);
    shard->shape.num_rows = ROWS;
    shard->shape.num_places = ROWS;
    shard->shape.has_tables = 1;
    shard->num_bundles = (ROWS + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS;
    size_t words = bsw_segment_bundle_words(&shard->shape.layout.segments[0]);
    shard->shape.bundle_bytes = words * sizeof(uint32_t);
    shard->arrays.planes[0] = allocate_or_fail(shard->num_bundles * words, sizeof(uint32_t));
    shard->arrays.masks = allocate_or_fail(shard->num_bundles, sizeof(uint32_t));
    for (size_t i = 0; i < shard->num_bundles * words; i++) // codes of few rows repeat
        shard->arrays.planes[0][i] = (uint32_t)bsw_hash(++drawn % 9000);
    for (size_t row = 0; row < ROWS; row++)
        shard->arrays.masks[row / BSW_BUNDLE_ROWS] |= 1u << row % BSW_BUNDLE_ROWS;
}

static void make(enum bsw_metric metric, uint32_t parts, uint32_t bits, struct made *made)
{
    memset(made, 0, sizeof *made);
    drawn = parts;
    assert_ok(bsw_product_codes_create(metric, DIMS, parts, bits, "none", &made->codes, &err),
              &err);
    size_t numbers = bsw_product_numbers(&made->codes->book) * made->codes->book.part_dims,
           projected = made->codes->projected_dims;
    for (size_t i = 0; i < numbers; i++) made->codes->entries[i] = draw_float() / 4;
    bsw_product_codes_norms(made->codes);
    make_shard(made);
    made->vectors = allocate_or_fail(NUM_QUERIES * projected, sizeof(float));
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        for (size_t d = 0; d < DIMS; d++) made->vectors[q * projected + d] = draw_float() / 3;
    }
    made->batch = (struct bsw_query_batch){.num_queries = NUM_QUERIES,
                                           .query_words = (uint32_t)projected,
                                           .words = (const uint32_t *)(void *)made->vectors,
                                           .product = made->codes};
}

static void unmake(struct made *made)
{
    bsw_product_codes_destroy(&made->codes);
    bsw_free(&made->shard.arrays.planes[0]);
    bsw_free(&made->shard.arrays.masks);
    bsw_free(&made->vectors);
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// mask_kind: -1 is all rows.
static void find_answers(struct made *made, int mask_kind)
{
    uint32_t *rows = allocate_or_fail(2 * ROWS, sizeof *rows), *scores = rows + ROWS;
    uint64_t *all = allocate_or_fail(ROWS, sizeof *all);
    for (uint32_t i = 0; i < ROWS; i++) rows[i] = i;
    const struct bsw_product_rows what = {(const uint8_t *)made->shard.arrays.planes[0],
                                          made->shard.shape.bundle_bytes, ROWS, rows};
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        assert_ok(bsw_product_plain_scores(made->codes, made->batch.table, NULL,
                                           made->vectors + q * made->codes->projected_dims, NULL,
                                           &what, scores, &err),
                  &err);
        size_t count = 0;
        for (uint32_t i = 0; i < ROWS; i++)
            if (mask_kind < 0 || is_row_allowed(mask_kind, i, ROWS))
                all[count++] = bsw_candidate_pack(scores[i], i);
        qsort(all, count, sizeof *all, descending);
        made->counts[q] = count < KEEP ? count : KEEP;
        memcpy(made->best[q], all, made->counts[q] * sizeof *all);
    }
    bsw_free(&rows);
    bsw_free(&all);
}

static void check_scan(const struct made *made, enum bsw_cpu_level level, int threads)
{
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists lists = {0};
    bsw_scan_workspace_init(&workspace, level, threads);
    assert_ok(bsw_shard_scan(&made->shard, &made->batch, 0, NUM_QUERIES, NULL, KEEP, &workspace,
                             &lists, &err),
              &err);
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        size_t count;
        const uint64_t *found = bsw_candidate_list(&lists, q, &count);
        assert_int_equal(count, made->counts[q]);
        assert_memory_equal(found, made->best[q], count * sizeof *found);
    }
    bsw_candidate_lists_deinit(&lists);
    bsw_scan_workspace_deinit(&workspace);
}

// Kinds of masks in turn: each table has two of them.
static void check_masks(struct made *made, int type)
{
    for (int i = 0; i < 2; i++) {
        struct bsw_row_mask mask = {0};
        int kind = (2 * type + i + 1) % NUM_MASK_KINDS;
        make_mask(kind, ROWS, &made->shard.order, made->shard.num_bundles, &mask);
        made->shard.mask = &mask;
        find_answers(made, kind);
        for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level))
            check_scan(made, (enum bsw_cpu_level)level, 2);
        made->shard.mask = NULL;
        bsw_row_mask_deinit(&mask);
    }
}

static void check_codes(enum bsw_metric metric, uint32_t parts, uint32_t bits)
{
    struct made *made = allocate_or_fail(1, sizeof *made);
    make(metric, parts, bits, made);
    for (int type = 0; type < BSW_NUM_TABLE_TYPES; type++) {
        made->batch.table = (enum bsw_table_type)type;
        find_answers(made, -1);
        for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level))
            for (int threads = 1; threads <= 3; threads += 2)
                check_scan(made, (enum bsw_cpu_level)level, threads);
        check_masks(made, type);
    }
    unmake(made);
    bsw_free(&made);
}

UNIT_TEST(distances)
{
    check_codes(BSW_METRIC_L2, 5, 8);
    check_codes(BSW_METRIC_L2, 7, 4);
}

UNIT_TEST(products_and_what_queries_add)
{
    check_codes(BSW_METRIC_IP, 5, 8);
    check_codes(BSW_METRIC_COSINE, 7, 4);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
