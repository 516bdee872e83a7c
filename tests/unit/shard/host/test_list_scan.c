// SPDX-License-Identifier: Apache-2.0
// The scan of lists against keys of the plain C reference, sorted: all places of the lists that a
// query looks at, one after another. Shards are made in memory, of few distinct rows, so that ties
// decide nearly every place.
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "row_mask_case.h"
#include "shard/host/list_scan.h"
#include "shard/host/plain_score.h"
#include "unit_test.h"

enum { QUERY_BITS = 6, DISTINCT_QUERIES = 40, MOST_LISTS = 16, MOST_BATCH = 2100 };

static struct bsw_error err;
static uint64_t drawn;

// One of `count` numbers, another one at every call.
static uint32_t draw(uint32_t count)
{
    return (uint32_t)(bsw_hash(++drawn) % count);
}

// ---- a shard ----

enum key_kind { FLOAT_KEYS, INTEGER_KEYS, WHOLE_KEYS };

struct shard_kind {
    const char *segments;
    uint32_t dims;
    enum key_kind keys;
    uint32_t distinct_rows;                    // of codes; 1: all keys of a query are equal
    uint32_t num_lists, list_rows[MOST_LISTS]; // in the order of their rows' lists
    uint32_t dropped_rows;                     // which no list has
};

// Codes of 4 bits: from 12 or so queries of a list on, matrix_scan.
static const struct shard_kind usual = {
    .segments = "45x4",
    .dims = 45,
    .keys = FLOAT_KEYS,
    .distinct_rows = 90,
    .num_lists = 12, // empty ones, the first and the last too; full bundles; longer than a tile
    .list_rows = {0, 1, 31, 32, 33, 0, 1, 700, 64, 5, 1200, 0},
    .dropped_rows = 9};

struct made {
    struct bsw_resident_shard shard;
    struct bsw_query_batch batch; // MOST_BATCH queries, of which query q is as q % DISTINCT_QUERIES
    uint32_t *scores;             // [DISTINCT_QUERIES][num_places] by the plain reference
};

// Words of planes of 32 documents or of one query: bits of padding stay 0.
static void draw_planes(const struct bsw_segment *segment, size_t planes, size_t lanes,
                        uint32_t *words)
{
    uint32_t rest = segment->dims % 32, last = rest ? (1u << rest) - 1 : UINT32_MAX;
    for (size_t p = 0; p < planes; p++) {
        for (uint32_t w = 0; w < segment->words; w++) {
            for (size_t lane = 0; lane < lanes; lane++)
                *words++ = (uint32_t)bsw_hash(++drawn) & (w + 1 == segment->words ? last : ~0u);
        }
    }
}

// The codes of one document, or one query.
static void draw_code(const struct bsw_code_layout *layout, uint32_t bits, uint32_t *words)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint32_t planes = bits ? bits : segment->bits;
        draw_planes(segment, planes, 1, words);
        words += (size_t)planes * segment->words;
    }
}

// Copies a document's code to its place among bundles.
static void put_code(const struct bsw_resident_shard *shard, size_t place, const uint32_t *code)
{
    const struct bsw_code_layout *layout = &shard->shape.layout;
    size_t bundle = place / BSW_BUNDLE_ROWS, lane = place % BSW_BUNDLE_ROWS;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint32_t *to = shard->arrays.planes[s] + bundle * bsw_segment_bundle_words(segment) + lane;
        for (uint32_t w = 0; w < segment->bits * segment->words; w++)
            to[(size_t)w * BSW_BUNDLE_ROWS] = *code++;
    }
}

// The lists of all rows, shuffled.
static uint32_t *draw_lists(const struct shard_kind *kind, uint32_t *num_rows)
{
    uint32_t count = 0;
    for (uint32_t l = 0; l < kind->num_lists; l++) count += kind->list_rows[l];
    *num_rows = count + kind->dropped_rows;
    uint32_t *lists = allocate_or_fail(*num_rows, sizeof *lists);
    for (uint32_t l = 0, row = 0; l <= kind->num_lists; l++) {
        uint32_t end = l < kind->num_lists ? row + kind->list_rows[l] : *num_rows;
        while (row < end) lists[row++] = l < kind->num_lists ? l : BSW_NO_LIST;
    }
    for (uint32_t row = *num_rows; row > 1; row--) {
        uint32_t other = draw(row), list = lists[row - 1];
        lists[row - 1] = lists[other];
        lists[other] = list;
    }
    return lists;
}

static void make_order(const struct shard_kind *kind, struct bsw_resident_shard *shard)
{
    uint32_t num_rows;
    uint64_t places;
    uint32_t *lists = draw_lists(kind, &num_rows);
    assert_ok(bsw_list_order_count(lists, num_rows, kind->num_lists, &places, &err), &err);
    assert_ok(bsw_list_order_make(lists, num_rows, kind->num_lists, places, &shard->order, &err),
              &err);
    shard->shape.num_rows = num_rows;
    shard->shape.num_places = places;
    shard->shape.num_lists = kind->num_lists;
    shard->num_bundles = (size_t)places / BSW_BUNDLE_ROWS;
    bsw_free(&lists);
}

// Codes, and what belongs to them, of every place; those without a row have the greatest keys.
static void fill_places(const struct shard_kind *kind, struct bsw_resident_shard *shard)
{
    const struct bsw_code_layout *layout = &shard->shape.layout;
    struct bsw_code_arrays *arrays = &shard->arrays;
    size_t words = (size_t)(bsw_layout_row_bytes(layout) / sizeof(uint32_t));
    uint32_t *codes = allocate_or_fail(kind->distinct_rows * words, sizeof *codes);
    for (uint32_t i = 0; i < kind->distinct_rows; i++) draw_code(layout, 0, codes + i * words);
    for (size_t place = 0; place < shard->num_bundles * BSW_BUNDLE_ROWS; place++) {
        uint32_t code = draw(kind->distinct_rows);
        int has_row = shard->order.rows[place] != BSW_NO_ROW;
        put_code(shard, place, codes + code * words);
        if (has_row) arrays->masks[place / BSW_BUNDLE_ROWS] |= 1u << place % BSW_BUNDLE_ROWS;
        if (kind->keys == FLOAT_KEYS) {
            arrays->scales[place] = (uint16_t)(0x3400 + code % 3 * 0x100);
            arrays->biases[place] = has_row ? (float)(code % 5) - 700.5f : 1e9f;
        } else if (kind->keys == WHOLE_KEYS) {
            arrays->offsets[place] = has_row ? -(int32_t)(code % 4 * 1000) : 1 << 29;
        }
    }
    bsw_free(&codes);
}

static void make_shard(const struct shard_kind *kind, struct bsw_resident_shard *shard)
{
    struct bsw_code_layout *layout = &shard->shape.layout;
    struct bsw_code_arrays *arrays = &shard->arrays;
    assert_ok(bsw_code_layout_parse(kind->segments, kind->dims, layout, &err), &err);
    shard->shape.has_affine = kind->keys == FLOAT_KEYS;
    shard->shape.has_bytes = kind->keys == WHOLE_KEYS;
    make_order(kind, shard);
    size_t places = shard->num_bundles * BSW_BUNDLE_ROWS;
    for (uint32_t s = 0; s < layout->num_segments; s++)
        arrays->planes[s] =
            allocate_or_fail(shard->num_bundles * bsw_segment_bundle_words(&layout->segments[s]),
                             sizeof *arrays->planes[s]);
    arrays->masks = allocate_or_fail(shard->num_bundles, sizeof *arrays->masks);
    if (kind->keys == FLOAT_KEYS) {
        arrays->scales = allocate_or_fail(places, sizeof *arrays->scales);
        arrays->biases = allocate_or_fail(places, sizeof *arrays->biases);
    } else if (kind->keys == WHOLE_KEYS) {
        arrays->offsets = allocate_or_fail(places, sizeof *arrays->offsets);
    }
    fill_places(kind, shard);
}

// ---- queries ----

// One query: planes, or bytes of which padding is 0.
static void draw_query(const struct shard_kind *kind, const struct bsw_code_layout *layout,
                       uint32_t *words)
{
    if (kind->keys != WHOLE_KEYS) {
        draw_code(layout, QUERY_BITS, words);
        return;
    }
    int8_t *bytes = (int8_t *)(void *)words;
    for (uint32_t d = 0; d < kind->dims; d++) bytes[d] = (int8_t)(draw(255) - 127);
}

static void make_queries(const struct shard_kind *kind, const struct bsw_code_layout *layout,
                         struct bsw_query_batch *batch)
{
    size_t words = kind->keys == WHOLE_KEYS ? layout->padded_dims / 4
                                            : bsw_layout_query_words(layout, QUERY_BITS);
    uint32_t *all = allocate_or_fail(MOST_BATCH * words, sizeof *all);
    float *scales = allocate_or_fail(MOST_BATCH, sizeof *scales);
    int32_t *constants = allocate_or_fail(MOST_BATCH, sizeof *constants);
    for (size_t q = 0; q < MOST_BATCH; q++) {
        size_t same = q % DISTINCT_QUERIES;
        if (q == same) {
            draw_query(kind, layout, all + q * words);
            scales[q] = q == 5 ? 0.0f : 0.03125f * (float)(1 + draw(7));
            constants[q] = (int32_t)draw(5000);
        } else {
            memcpy(all + q * words, all + same * words, words * sizeof *all);
            scales[q] = scales[same];
            constants[q] = constants[same];
        }
    }
    *batch = (struct bsw_query_batch){.num_queries = MOST_BATCH,
                                      .query_bits = QUERY_BITS,
                                      .query_words = words,
                                      .words = all,
                                      .scales = scales,
                                      .constants = constants,
                                      .factor = kind->keys == WHOLE_KEYS ? 2 : 0};
}

// scan_dims: of which the scores are, 0: all.
static void make(const struct shard_kind *kind, uint32_t scan_dims, struct made *made)
{
    memset(made, 0, sizeof *made);
    make_shard(kind, &made->shard);
    make_queries(kind, &made->shard.shape.layout, &made->batch);
    struct bsw_resident_shard first = made->shard;
    if (scan_dims > 0)
        assert_true(
            bsw_code_layout_first(&made->shard.shape.layout, scan_dims, &first.shape.layout));
    size_t places = made->shard.num_bundles * BSW_BUNDLE_ROWS;
    made->scores = allocate_or_fail(DISTINCT_QUERIES * places, sizeof *made->scores);
    for (size_t q = 0; q < DISTINCT_QUERIES; q++) {
        for (size_t place = 0; place < places; place++)
            made->scores[q * places + place] =
                bsw_plain_score(&first, &made->batch, q, (uint32_t)place);
    }
}

static void unmake(struct made *made)
{
    struct bsw_code_arrays *arrays = &made->shard.arrays;
    for (uint32_t s = 0; s < made->shard.shape.layout.num_segments; s++)
        bsw_free(&arrays->planes[s]);
    bsw_free(&arrays->masks);
    bsw_free(&arrays->scales);
    bsw_free(&arrays->biases);
    bsw_free(&arrays->offsets);
    bsw_list_order_deinit(&made->shard.order);
    bsw_free(&made->batch.words);
    bsw_free(&made->batch.scales);
    bsw_free(&made->batch.constants);
    bsw_free(&made->scores);
}

// ---- what a batch looks at ----

enum addition_kind { NOTHING, TINY, USUAL, LARGE, HUGE_ONES };

static float draw_addition(enum addition_kind kind)
{
    float sign = draw(2) ? 1.0f : -1.0f;
    switch (kind) {
    case TINY:
        return sign * 1e-41f * (float)draw(100);
    case USUAL:
        return sign * 0.37f * (float)draw(300);
    case LARGE:
        return sign * 1.7e7f * (float)draw(3);
    case HUGE_ONES: // beside which keys vanish
        return sign * 1e37f * (float)draw(3);
    default:
        return 0;
    }
}

// Every query looks at some lists, each once, in any order; list `all` is among those of all.
static void draw_choice(uint32_t num_lists, size_t num_queries, uint32_t most, uint32_t all,
                        enum addition_kind additions, struct bsw_list_choice *choice)
{
    uint32_t *lists = allocate_or_fail(num_queries * most, sizeof *lists);
    uint32_t *counts = allocate_or_fail(num_queries, sizeof *counts);
    float *numbers = allocate_or_fail(num_queries * most, sizeof *numbers);
    for (size_t q = 0; q < num_queries; q++) {
        uint32_t order[MOST_LISTS];
        for (uint32_t l = 0; l < num_lists; l++) order[l] = l;
        for (uint32_t i = 0; i < most; i++) {
            uint32_t from = i == 0 && all != BSW_NO_LIST ? all : i + draw(num_lists - i);
            lists[q * most + i] = order[from];
            order[from] = order[i];
            numbers[q * most + i] = draw_addition(additions);
        }
        counts[q] = q % 7 == 6 && all == BSW_NO_LIST ? 0 : 1 + draw(most);
    }
    *choice = (struct bsw_list_choice){.num_queries = num_queries,
                                       .most = most,
                                       .lists = lists,
                                       .counts = counts,
                                       .additions = additions ? numbers : NULL};
    if (!additions) bsw_free(&numbers);
}

static void free_choice(struct bsw_list_choice *choice)
{
    bsw_free(&choice->lists);
    bsw_free(&choice->counts);
    bsw_free(&choice->additions);
}

// ---- the answer ----

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// Appends a list's rows that reach the limit; returns the new count.
static size_t append_list(const struct made *made, size_t distinct, uint32_t list,
                          const float *addition, uint32_t limit, uint64_t *items, size_t count)
{
    const struct bsw_list_order *order = &made->shard.order;
    const uint32_t *scores = made->scores + distinct * made->shard.num_bundles * BSW_BUNDLE_ROWS;
    size_t first = (size_t)order->first_bundles[list] * BSW_BUNDLE_ROWS,
           last = (size_t)order->first_bundles[list + 1] * BSW_BUNDLE_ROWS;
    for (size_t place = first; place < last; place++) {
        uint32_t score = scores[place];
        if (order->rows[place] == BSW_NO_ROW || is_masked(made->shard.mask, place)) continue;
        if (addition) {
            float key = bsw_score_to_float(score) + *addition;
            score = bsw_score_from_float(key + 0.0f);
        }
        if (score >= limit) items[count++] = bsw_candidate_pack(score, order->rows[place]);
    }
    return count;
}

// All that a query finds, in the total order; q: of the range, in_batch: of the batch.
static size_t find_all(const struct made *made, const struct bsw_list_choice *choice, size_t q,
                       size_t in_batch, uint32_t limit, uint64_t *items)
{
    size_t count = 0, num = choice ? choice->counts[q] : made->shard.order.num_lists;
    for (size_t i = 0; i < num; i++) {
        size_t at = choice ? q * choice->most + i : i;
        count = append_list(
            made, in_batch % DISTINCT_QUERIES, choice ? choice->lists[at] : (uint32_t)i,
            choice && choice->additions ? &choice->additions[at] : NULL, limit, items, count);
    }
    qsort(items, count, sizeof *items, compare_descending);
    return count;
}

struct asked {
    const struct bsw_list_choice *choice; // NULL: all lists
    size_t first_query, num_queries, keep;
    uint32_t scan_dims;
    const uint32_t *limits; // NULL: none
};

// What each query is to find: its best `keep`.
struct answer {
    uint64_t *items; // [num_queries][keep]
    size_t *counts, keep;
};

static struct answer find_answer(const struct made *made, const struct asked *asked)
{
    size_t rows = (size_t)made->shard.shape.num_rows,
           keep = asked->keep < rows ? asked->keep : rows;
    struct answer answer = {.items = allocate_or_fail(asked->num_queries * keep, sizeof(uint64_t)),
                            .counts = allocate_or_fail(asked->num_queries, sizeof(size_t)),
                            .keep = keep};
    uint64_t *all = allocate_or_fail(rows, sizeof *all);
    for (size_t q = 0; q < asked->num_queries; q++) {
        uint32_t limit = asked->limits ? asked->limits[q] : 0;
        size_t num = find_all(made, asked->choice, q, asked->first_query + q, limit, all);
        answer.counts[q] = num < keep ? num : keep;
        memcpy(answer.items + q * keep, all, answer.counts[q] * sizeof *all);
    }
    bsw_free(&all);
    return answer;
}

static void check_answer(const struct answer *answer, const struct bsw_candidate_lists *lists)
{
    for (size_t q = 0; q < lists->num_queries; q++) {
        size_t count;
        const uint64_t *found = bsw_candidate_list(lists, q, &count);
        assert_int_equal(count, answer->counts[q]);
        assert_memory_equal(found, answer->items + q * answer->keep, count * sizeof *found);
    }
}

// On every level, with 1 and 3 threads; the groups are the same for all of them.
static void check_scan(const struct made *made, const struct asked *asked,
                       struct bsw_list_groups *groups)
{
    struct answer answer = find_answer(made, asked);
    struct bsw_candidate_lists lists = {0};
    const struct bsw_query_range range = {&made->batch, asked->first_query, asked->num_queries};
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        for (int threads = 1; threads <= 3; threads += 2) {
            struct bsw_scan_workspace workspace;
            uint64_t num_pairs = 0;
            bsw_scan_workspace_init(&workspace, (enum bsw_cpu_level)level, threads);
            assert_ok(bsw_list_scan(&made->shard, asked->choice, &range, asked->scan_dims,
                                    asked->limits, asked->keep, groups, &workspace, &num_pairs,
                                    &lists, &err),
                      &err);
            assert_int_equal(lists.num_queries, asked->num_queries);
            check_answer(&answer, &lists);
            bsw_scan_workspace_deinit(&workspace);
        }
    }
    bsw_candidate_lists_deinit(&lists);
    bsw_free(&answer.items);
    bsw_free(&answer.counts);
}

// Batches of 1, 3 and 40 queries, from another query on each, at `probe` lists at most and at all.
static void check_batches(const struct shard_kind *kind, uint32_t scan_dims, uint32_t probe,
                          enum addition_kind additions)
{
    static const size_t batches[] = {1, 3, 40}, keeps[] = {10, 1, 300};
    struct made made;
    struct bsw_list_groups groups = {0};
    struct bsw_row_mask mask = {0};
    make(kind, scan_dims, &made);
    for (size_t i = 0; i < 3; i++) {
        struct bsw_list_choice choice;
        struct asked asked = {.first_query = 4 * i,
                              .num_queries = batches[i],
                              .keep = keeps[i],
                              .scan_dims = scan_dims};
        draw_choice(kind->num_lists, asked.num_queries, probe, BSW_NO_LIST, additions, &choice);
        check_scan(&made, &asked, &groups);
        asked.choice = &choice;
        check_scan(&made, &asked, &groups);
        asked.keep = i == 1 ? 100000 : 33; // more than there are rows
        check_scan(&made, &asked, &groups);
        mask_shard((int)(2 * i + additions) % NUM_MASK_KINDS, &made.shard, &mask);
        check_scan(&made, &asked, &groups);
        made.shard.mask = NULL;
        free_choice(&choice);
    }
    bsw_row_mask_deinit(&mask);
    bsw_list_groups_deinit(&groups);
    unmake(&made);
}

UNIT_TEST(float_integer_and_whole_keys)
{
    struct shard_kind kind = usual;
    check_batches(&kind, 0, 5, NOTHING);
    kind.segments = "45x1"; // planes alone
    check_batches(&kind, 0, 5, NOTHING);
    kind.keys = INTEGER_KEYS;
    kind.segments = "45x4";
    check_batches(&kind, 0, 12, NOTHING);
    kind.keys = WHOLE_KEYS;
    kind.segments = "45x8";
    check_batches(&kind, 0, 9, NOTHING);
}

UNIT_TEST(additions_of_any_size)
{
    struct shard_kind kind = usual;
    for (int additions = TINY; additions <= HUGE_ONES; additions++)
        check_batches(&kind, 0, additions == USUAL ? 12 : 4, (enum addition_kind)additions);
}

UNIT_TEST(keys_of_the_first_dimensions)
{
    struct shard_kind kind = usual;
    kind.segments = "32x4,64x3";
    kind.dims = 96;
    check_batches(&kind, 32, 3, NOTHING);
    check_batches(&kind, 32, 3, USUAL);
}

UNIT_TEST(all_keys_are_equal)
{
    struct shard_kind kind = usual;
    kind.distinct_rows = 1;
    check_batches(&kind, 0, 6, NOTHING);
    check_batches(&kind, 0, 6, LARGE);
    kind.keys = WHOLE_KEYS;
    kind.segments = "45x8";
    check_batches(&kind, 0, 6, NOTHING);
}

UNIT_TEST(one_row_and_no_row)
{
    struct shard_kind kind = usual;
    kind.num_lists = 3;
    memset(kind.list_rows, 0, sizeof kind.list_rows);
    kind.list_rows[1] = 1;
    kind.dropped_rows = 0;
    check_batches(&kind, 0, 2, NOTHING);
    kind.dropped_rows = 40;
    check_batches(&kind, 0, 2, USUAL);
    kind.num_lists = 1;
    check_batches(&kind, 0, 1, USUAL);
}

// Limits that some, no and all rows reach, and one that is a row's own score.
UNIT_TEST(limits_from_outside)
{
    static uint64_t all[4096];
    for (int additions = NOTHING; additions <= HUGE_ONES; additions++) {
        struct made made;
        struct bsw_list_choice choice;
        struct bsw_list_groups groups = {0};
        uint32_t limits[DISTINCT_QUERIES];
        make(&usual, 0, &made);
        draw_choice(usual.num_lists, DISTINCT_QUERIES, 6, BSW_NO_LIST,
                    (enum addition_kind)additions, &choice);
        for (size_t q = 0; q < DISTINCT_QUERIES; q++) {
            size_t count = find_all(&made, &choice, q, q, 0, all);
            limits[q] = count > 0 ? bsw_candidate_score(all[draw((uint32_t)count)]) : 77;
            if (q % 5 == 1) limits[q]++;
            if (q % 11 == 2) limits[q] = q % 2 ? UINT32_MAX : 0;
        }
        struct asked asked = {
            .choice = &choice, .num_queries = DISTINCT_QUERIES, .keep = 20, .limits = limits};
        check_scan(&made, &asked, &groups);
        asked.num_queries = choice.num_queries = 2;
        asked.keep = 1000;
        check_scan(&made, &asked, &groups);
        free_choice(&choice);
        bsw_list_groups_deinit(&groups);
        unmake(&made);
    }
}

// More than a list takes at a time, so that the rest comes behind; by bytes and by planes.
UNIT_TEST(a_list_that_thousands_look_at)
{
    struct shard_kind kind = {.segments = "20x4",
                              .dims = 20,
                              .keys = FLOAT_KEYS,
                              .distinct_rows = 30,
                              .num_lists = 4,
                              .list_rows = {40, 0, 70, 3}};
    for (int additions = NOTHING; additions <= USUAL; additions += USUAL) {
        struct made made;
        struct bsw_list_choice choice;
        struct bsw_list_groups groups = {0};
        struct asked asked = {.num_queries = MOST_BATCH - 13, .first_query = 13, .keep = 7};
        make(&kind, 0, &made);
        if (additions == NOTHING) check_scan(&made, &asked, &groups);
        draw_choice(kind.num_lists, asked.num_queries, 3, 2, (enum addition_kind)additions,
                    &choice);
        asked.choice = &choice;
        check_scan(&made, &asked, &groups);
        free_choice(&choice);
        bsw_list_groups_deinit(&groups);
        unmake(&made);
        kind.segments = "20x1";
    }
}

// What is counted: pairs of query and list, and of query and row; bytes that are read.
UNIT_TEST(pairs_are_counted)
{
    struct made made;
    struct bsw_list_choice choice;
    struct bsw_list_groups groups = {0};
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists lists = {0};
    uint64_t pairs = 0, rows = 0, num_pairs = 0;
    make(&usual, 0, &made);
    const struct bsw_query_range range = {&made.batch, 0, DISTINCT_QUERIES};
    draw_choice(usual.num_lists, DISTINCT_QUERIES, 6, BSW_NO_LIST, NOTHING, &choice);
    for (size_t q = 0; q < DISTINCT_QUERIES; q++) {
        pairs += choice.counts[q];
        for (uint32_t i = 0; i < choice.counts[q]; i++)
            rows += usual.list_rows[choice.lists[q * choice.most + i]];
    }
    bsw_scan_workspace_init(&workspace, bsw_cpu_level_detect(), 3);
    for (uint64_t times = 1; times <= 2; times++) {
        assert_ok(bsw_list_scan(&made.shard, &choice, &range, 0, NULL, 9, &groups, &workspace,
                                &num_pairs, &lists, &err),
                  &err);
        assert_int_equal(num_pairs, times * pairs);
        assert_int_equal(workspace.num_pairs, times * rows);
    }
    const struct bsw_resident_parts parts = bsw_resident_parts_of(&made.shard.shape, 0);
    assert_in_range(workspace.scanned_bytes, 1, 2 * 3 * bsw_resident_scan_bytes(&parts)); // 3 steps
    workspace.scanned_bytes = 0;
    assert_ok(bsw_list_scan(&made.shard, NULL, &range, 0, NULL, 9, &groups, &workspace, &num_pairs,
                            &lists, &err),
              &err);
    assert_int_equal(workspace.scanned_bytes, bsw_resident_scan_bytes(&parts));
    bsw_scan_workspace_deinit(&workspace);
    bsw_candidate_lists_deinit(&lists);
    bsw_list_groups_deinit(&groups);
    free_choice(&choice);
    unmake(&made);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
