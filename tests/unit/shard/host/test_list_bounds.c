// SPDX-License-Identifier: Apache-2.0
// Lists of product codes by bounds and by tables, under l2 with residuals and without and under ip,
// of all types of tables, with all that is computed once kept, some of it, or nothing: always the
// best of all rows by the plain reference.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "shard/codecs/product_codes.h"
#include "shard/codecs/selective_table.h"
#include "shard/host/list_bounds.h"
#include "shard/host/list_scan.h"
#include "unit_test.h"

enum { DIMS = 18, NUM_LISTS = 7, NUM_QUERIES = 45, PROBE = 5, KEEP = 12 };

// Tiles, more than one, and passes of list_radius.h.
static const uint32_t list_rows[NUM_LISTS] = {40, 0, 4300, 1, 64, 300, 33};
static struct bsw_error err;
static uint64_t drawn;

static uint32_t draw(uint32_t count)
{
    return (uint32_t)(bsw_hash(++drawn) % count);
}

static float draw_float(void)
{
    return ((float)draw(2001) - 1000) / 250;
}

struct made {
    struct bsw_product_codes *codes;
    struct bsw_resident_shard shard;
    struct bsw_query_batch batch;
    struct bsw_selection selection;
    float *vectors, *centroids, *additions;
    uint32_t *chosen, *counts;
    struct bsw_list_choice choice;
};

// What is searched; metric ip has something to add for each list.
struct kind {
    enum bsw_metric metric;
    int is_residual;
    uint32_t parts, bits;
    struct bsw_selection_settings selection; // {0}: all entries
};

static void make_codes(const struct kind *kind, struct made *made)
{
    assert_ok(bsw_product_codes_create(kind->metric, DIMS, kind->parts, kind->bits, "none",
                                       &made->codes, &err),
              &err);
    size_t numbers = bsw_product_numbers(&made->codes->book) * made->codes->book.part_dims;
    for (size_t i = 0; i < numbers; i++) made->codes->entries[i] = draw_float() / 4;
    for (size_t d = 0; d < DIMS; d++) made->codes->mean[d] = draw_float();
    bsw_product_codes_norms(made->codes);
}

static void make_shard(struct made *made)
{
    struct bsw_resident_shard *shard = &made->shard;
    const struct bsw_product_book *book = &made->codes->book;
    uint32_t num_rows = 0, row = 0;
    uint64_t places;
    char segments[32];
    snprintf(segments, sizeof segments, "%ux1", book->parts * book->bits);
    assert_ok(bsw_code_layout_parse(segments, book->parts * book->bits, &shard->shape.layout, &err),
              &err);
    for (size_t l = 0; l < NUM_LISTS; l++) num_rows += list_rows[l];
    uint32_t *lists = allocate_or_fail(num_rows, sizeof *lists);
    for (uint32_t l = 0; l < NUM_LISTS; l++)
        for (uint32_t i = 0; i < list_rows[l]; i++) lists[row++] = l;
    assert_ok(bsw_list_order_count(lists, num_rows, NUM_LISTS, &places, &err), &err);
    assert_ok(bsw_list_order_make(lists, num_rows, NUM_LISTS, places, &shard->order, &err), &err);
    bsw_free(&lists);
    shard->shape.num_rows = num_rows;
    shard->shape.num_places = places;
    shard->shape.num_lists = NUM_LISTS;
    shard->shape.has_tables = 1;
    shard->num_bundles = (size_t)places / BSW_BUNDLE_ROWS;
    size_t words = bsw_segment_bundle_words(&shard->shape.layout.segments[0]);
    shard->arrays.planes[0] = allocate_or_fail(shard->num_bundles * words, sizeof(uint32_t));
    shard->arrays.masks = allocate_or_fail(shard->num_bundles, sizeof(uint32_t));
    for (size_t i = 0; i < shard->num_bundles * words; i++)
        shard->arrays.planes[0][i] = (uint32_t)bsw_hash(++drawn);
    for (size_t place = 0; place < places; place++)
        if (shard->order.rows[place] != BSW_NO_ROW)
            shard->arrays.masks[place / BSW_BUNDLE_ROWS] |= 1u << place % BSW_BUNDLE_ROWS;
}

// Queries near centroids, and lists from another one on for each.
static void make_queries(const struct kind *kind, struct made *made)
{
    uint32_t projected = made->codes->projected_dims;
    made->vectors = allocate_or_fail(NUM_QUERIES * projected, sizeof(float));
    made->centroids = allocate_or_fail(NUM_LISTS * DIMS, sizeof(float));
    made->chosen = allocate_or_fail(NUM_QUERIES * PROBE, sizeof(uint32_t));
    made->counts = allocate_or_fail(NUM_QUERIES, sizeof(uint32_t));
    made->additions = allocate_or_fail(NUM_QUERIES * PROBE, sizeof(float));
    for (size_t i = 0; i < NUM_LISTS * DIMS; i++) made->centroids[i] = draw_float();
    for (size_t i = 0; i < NUM_QUERIES * PROBE; i++) made->additions[i] = 3 * draw_float();
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        for (size_t d = 0; d < DIMS; d++)
            made->vectors[q * projected + d] =
                made->centroids[q % NUM_LISTS * DIMS + d] - made->codes->mean[d] + draw_float() / 8;
        made->counts[q] = PROBE - (uint32_t)(q % 2);
        for (uint32_t i = 0; i < PROBE; i++)
            made->chosen[q * PROBE + i] = (uint32_t)(q + i) % NUM_LISTS;
    }
    made->batch = (struct bsw_query_batch){.num_queries = NUM_QUERIES,
                                           .query_words = projected,
                                           .words = (const uint32_t *)(void *)made->vectors,
                                           .product = made->codes,
                                           .centroids = kind->is_residual ? made->centroids : NULL};
    made->choice = (struct bsw_list_choice){
        .num_queries = NUM_QUERIES,
        .most = PROBE,
        .lists = made->chosen,
        .counts = made->counts,
        .additions = kind->metric == BSW_METRIC_IP ? made->additions : NULL};
}

static void make_selection(const struct kind *kind, struct made *made)
{
    struct bsw_selection_settings settings = kind->selection;
    struct bsw_product_codes *codes = made->codes;
    assert_ok(bsw_product_radii_create(kind->parts, &codes->radii, &err), &err);
    for (uint32_t p = 0; p < kind->parts; p++) {
        static const float box[] = {-4, -4, 4, 4};
        memcpy(codes->radii->boxes + 4 * (size_t)p, box, sizeof box);
        for (size_t cell = 0; cell < BSW_RADII_MAP; cell++)
            codes->radii->radii[p * BSW_RADII_MAP + cell] = 0.2f + (float)draw(100) / 100;
    }
    assert_ok(bsw_entry_finder_get("brute", &settings.finder, &err), &err);
    assert_ok(bsw_selection_open(&settings, codes, BSW_CPU_REFERENCE, &made->selection, &err),
              &err);
    made->batch.selection = &made->selection;
}

static void make(const struct kind *kind, uint32_t seed, struct made *made)
{
    drawn = seed;
    memset(made, 0, sizeof *made);
    make_codes(kind, made);
    make_shard(made);
    make_queries(kind, made);
    if (kind->selection.is_on) make_selection(kind, made);
}

static void unmake(struct made *made)
{
    bsw_selection_close(&made->selection);
    bsw_product_codes_destroy(&made->codes);
    bsw_free(&made->shard.arrays.planes[0]);
    bsw_free(&made->shard.arrays.masks);
    bsw_list_order_deinit(&made->shard.order);
    bsw_free(&made->vectors);
    bsw_free(&made->centroids);
    bsw_free(&made->additions);
    bsw_free(&made->chosen);
    bsw_free(&made->counts);
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// Candidates of a list; returns how many.
static size_t score_list(const struct made *made, const struct bsw_resident_shard *shard, size_t q,
                         uint32_t i_of_list, uint64_t *out)
{
    uint32_t l = made->chosen[q * PROBE + i_of_list];
    float addition = made->choice.additions ? made->choice.additions[q * PROBE + i_of_list] : 0.0f;
    size_t words = bsw_segment_bundle_words(&shard->shape.layout.segments[0]), count = 0;
    uint32_t first = shard->order.first_bundles[l] * BSW_BUNDLE_ROWS,
             num = shard->order.first_bundles[l + 1] * BSW_BUNDLE_ROWS - first,
             *places = allocate_or_fail(2 * (num + 1), sizeof *places), *scores = places + num;
    for (uint32_t i = 0; i < num; i++) places[i] = first + i;
    const struct bsw_product_rows rows = {(const uint8_t *)shard->arrays.planes[0],
                                          words * sizeof(uint32_t), num, places};
    assert_ok(bsw_product_plain_scores(made->codes, made->batch.table, made->batch.selection,
                                       made->vectors + q * made->codes->projected_dims,
                                       made->batch.centroids ? made->centroids + l * DIMS : NULL,
                                       &rows, scores, &err),
              &err);
    for (uint32_t i = 0; i < num; i++)
        if (shard->order.rows[first + i] != BSW_NO_ROW && scores[i] > 0) // 0: hits nothing
            out[count++] = bsw_candidate_pack(
                bsw_score_from_float((bsw_score_to_float(scores[i]) + addition) + 0.0f),
                shard->order.rows[first + i]);
    bsw_free(&places);
    return count;
}

struct answers {
    size_t counts[NUM_QUERIES];
    uint64_t best[NUM_QUERIES][KEEP];
};

// The best of all queries by the reference, of a shard with the codes of `made`.
static void find_answers(const struct made *made, const struct bsw_resident_shard *shard,
                         struct answers *answers)
{
    uint64_t *all = allocate_or_fail((size_t)shard->shape.num_places, sizeof *all);
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        size_t count = 0;
        for (uint32_t i = 0; i < made->counts[q]; i++)
            count += score_list(made, shard, q, i, all + count);
        qsort(all, count, sizeof *all, descending);
        answers->counts[q] = count < KEEP ? count : KEEP;
        memcpy(answers->best[q], all, answers->counts[q] * sizeof *all);
    }
    bsw_free(&all);
}

// Terms of rows that are kept are those that a rank counts, shard after shard.
static void check_kept(const struct made *made, const struct bsw_resident_shard *const shards[2],
                       const struct bsw_list_table_scratch *tables)
{
    uint64_t kept = 0, most = bsw_list_table_most(tables);
    for (size_t i = 0; i < 2 && made->batch.centroids && !made->batch.selection; i++)
        kept = bsw_list_table_rows_add(kept, shards[i]->shape.num_places, most);
    assert_int_equal(tables->row_terms.bytes, kept);
}

// most_bytes: what may be kept, 0 for the usual. Two shards take turns in one scratch.
static void check_scan(const struct made *made, const struct bsw_resident_shard *const shards[2],
                       const struct answers answers[2], size_t most_bytes)
{
    const struct bsw_query_range range = {&made->batch, 0, NUM_QUERIES};
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        struct bsw_scan_workspace workspace;
        struct bsw_list_groups groups = {0};
        uint64_t num_pairs = 0;
        struct bsw_candidate_lists lists = {0};
        bsw_scan_workspace_init(&workspace, (enum bsw_cpu_level)level, 2);
        workspace.host.tables.most_bytes = most_bytes;
        for (size_t turn = 0; turn < 4; turn++) {
            const struct answers *expected = &answers[turn % 2];
            assert_ok(bsw_list_scan(shards[turn % 2], &made->choice, &range, 0, NULL, KEEP, &groups,
                                    &workspace, &num_pairs, &lists, &err),
                      &err);
            for (size_t q = 0; q < NUM_QUERIES; q++) {
                size_t count;
                const uint64_t *found = bsw_candidate_list(&lists, q, &count);
                assert_int_equal(count, expected->counts[q]);
                assert_memory_equal(found, expected->best[q], count * sizeof *found);
            }
        }
        check_kept(made, shards, &workspace.host.tables);
        bsw_candidate_lists_deinit(&lists);
        bsw_list_groups_deinit(&groups);
        bsw_scan_workspace_deinit(&workspace);
    }
}

static void check_type(struct made *made, const struct bsw_resident_shard *const shards[2],
                       enum bsw_table_type type)
{
    size_t queries = NUM_QUERIES * bsw_align_size(bsw_bound_bytes(&made->codes->book), 64);
    struct answers *answers = allocate_or_fail(2, sizeof *answers);
    made->batch.table = type;
    find_answers(made, shards[0], &answers[0]);
    find_answers(made, shards[1], &answers[1]);
    check_scan(made, shards, answers, 0);
    check_scan(made, shards, answers, 1);       // nothing: tables
    check_scan(made, shards, answers, queries); // bounds, and terms of one shard's rows or none
    bsw_free(&answers);
}

static void check_kind(const struct kind *kind)
{
    struct made made, other;
    make(kind, kind->parts, &made);
    make(kind, 1000 + kind->parts, &other);
    const struct bsw_resident_shard *const shards[] = {&made.shard, &other.shard};
    // Under sanitizers the widest numbers and the narrowest.
    int step = TEST_IS_SANITIZED ? BSW_NUM_TABLE_TYPES - 1 : 1;
    for (int type = 0; type < (kind->selection.is_on ? 1 : BSW_NUM_TABLE_TYPES); type += step)
        check_type(&made, shards, (enum bsw_table_type)type);
    unmake(&made);
    unmake(&other);
}

UNIT_TEST(distances_of_residuals)
{
    check_kind(&(struct kind){.metric = BSW_METRIC_L2, .is_residual = 1, .parts = 5, .bits = 8});
    check_kind(&(struct kind){.metric = BSW_METRIC_L2, .is_residual = 1, .parts = 9, .bits = 4});
}

UNIT_TEST(distances_by_one_table)
{
    check_kind(&(struct kind){.metric = BSW_METRIC_L2, .is_residual = 0, .parts = 5, .bits = 8});
    check_kind(&(struct kind){.metric = BSW_METRIC_L2, .is_residual = 0, .parts = 9, .bits = 4});
}

UNIT_TEST(entries_within_a_radius)
{
    static const enum bsw_selection_mode modes[] = {BSW_SELECTION_H, BSW_SELECTION_L};
    for (size_t i = 0; i < 2; i++)
        check_kind(&(struct kind){
            .metric = BSW_METRIC_L2,
            .is_residual = 1,
            .parts = 9,
            .bits = 8,
            .selection = {
                .is_on = 1, .mode = modes[i], .scale = 1.0f, .radii = BSW_RADII_DYNAMIC}});
}

// Limits of each list's own; a mean of misses goes by tables.
UNIT_TEST(entries_within_radii_of_the_nearest)
{
    static const enum bsw_selection_mode modes[] = {BSW_SELECTION_H, BSW_SELECTION_M,
                                                    BSW_SELECTION_H};
    for (int i = 0; i < (TEST_IS_SANITIZED ? 1 : 3); i++)
        check_kind(&(struct kind){.metric = BSW_METRIC_L2,
                                  .is_residual = 1,
                                  .parts = 9,
                                  .bits = 8,
                                  .selection = {.is_on = 1,
                                                .mode = modes[i],
                                                .scale = 1.2f,
                                                .radii = BSW_RADII_NEAREST,
                                                .is_miss_mean = i == 2}});
}

UNIT_TEST(products_and_what_lists_add)
{
    check_kind(&(struct kind){.metric = BSW_METRIC_IP, .is_residual = 0, .parts = 5, .bits = 8});
    check_kind(&(struct kind){.metric = BSW_METRIC_IP, .is_residual = 0, .parts = 9, .bits = 4});
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
