// SPDX-License-Identifier: Apache-2.0
// Recall by ids and with ties: results made by hand, of known recalls, and random ones against the
// definition.
#include "unit_test.h"

#include <math.h>

#include "common/base/arithmetic.h"
#include "coordinator/truth/recall.h"

enum { MAX = 12 };

// Sums over the queries, for num_true-recall@num_columns.
static void expect(const struct bsw_recall *recall, size_t num_true, size_t num_columns,
                   uint64_t found, uint64_t tied)
{
    for (size_t i = 0; i < recall->num_figures; i++) {
        const struct bsw_recall_figure *figure = &recall->figures[i];
        if (figure->num_true != num_true || figure->num_columns != num_columns) continue;
        double all = (double)(recall->num_queries * num_true);
        assert_int_equal(figure->found, found);
        assert_int_equal(figure->tied, tied);
        assert_true(bsw_recall_by_ids(recall, figure) == (double)found / all);
        assert_true(bsw_recall_with_ties(recall, figure) == (double)(found + tied) / all);
        return;
    }
    fail_msg("no %zu-recall@%zu", num_true, num_columns);
}

// One query, of ids 0, 1, 2, ... in the truth.
static void judge(struct bsw_recall *recall, size_t k, size_t width, const int64_t *ids,
                  const double *values, double first, double last)
{
    int64_t true_ids[MAX];
    for (size_t i = 0; i < k; i++) true_ids[i] = (int64_t)i;
    assert_int_equal(bsw_recall_init(recall, k, width, NULL), BSW_OK);
    const struct bsw_recall_query query = {.true_ids = true_ids,
                                           .ids = ids,
                                           .values = values,
                                           .first_value = first,
                                           .last_value = last};
    bsw_recall_add(recall, &query);
}

// Three true ones, 9 8 7; eight columns, of which six tie with the third.
static const int64_t wide_ids[8] = {0, 10, 11, 1, 12, 13, 14, 15};
static const double wide_values[8] = {9, 7, 7, 8, 7, 7, 7, 7};

UNIT_TEST(a_wide_result_with_ties_has_these_recalls)
{
    struct bsw_recall recall;
    judge(&recall, 3, 8, wide_ids, wide_values, 9, 7);
    assert_int_equal(recall.num_figures, 4);
    expect(&recall, 3, 3, 1, 2); // 0 is found, 10 and 11 tie
    expect(&recall, 3, 8, 2, 1); // 1 too: of six that tie one counts
    expect(&recall, 1, 3, 1, 0);
    expect(&recall, 1, 8, 1, 0);
    bsw_recall_deinit(&recall);
}

UNIT_TEST(without_values_nothing_ties)
{
    struct bsw_recall recall;
    judge(&recall, 3, 8, wide_ids, NULL, 9, 7);
    expect(&recall, 3, 3, 1, 0);
    expect(&recall, 3, 8, 2, 0);
    bsw_recall_deinit(&recall);
}

// One unit in the last place of a double is another value.
UNIT_TEST(a_near_value_is_no_tie)
{
    static const int64_t ids[2] = {0, 9};
    struct bsw_recall recall;
    for (int step = -1; step <= 1; step++) {
        double values[2] = {1, step == 0 ? 0.7 : nextafter(0.7, step)};
        judge(&recall, 2, 2, ids, values, 1, 0.7);
        expect(&recall, 2, 2, 1, step == 0);
        bsw_recall_deinit(&recall);
    }
}

UNIT_TEST(an_id_counts_once_and_an_empty_place_never)
{
    static const int64_t ids[6] = {1, 1, -1, 8, 8, -1};
    static const double values[6] = {8, 8, 7, 7, 7, 7};
    struct bsw_recall recall;
    judge(&recall, 4, 6, ids, values, 9, 7);
    expect(&recall, 4, 4, 1, 1);
    expect(&recall, 4, 6, 1, 1);
    bsw_recall_deinit(&recall);
}

UNIT_TEST(a_truth_that_ends_early_ties_with_nothing)
{
    static const int64_t true_ids[3] = {0, 1, -1}, ids[3] = {0, 7, -1};
    static const double values[3] = {9, -INFINITY, -INFINITY};
    struct bsw_recall recall;
    assert_int_equal(bsw_recall_init(&recall, 3, 3, NULL), BSW_OK);
    const struct bsw_recall_query query = {.true_ids = true_ids,
                                           .ids = ids,
                                           .values = values,
                                           .first_value = 9,
                                           .last_value = -INFINITY};
    bsw_recall_add(&recall, &query);
    expect(&recall, 3, 3, 1, 0);
    bsw_recall_deinit(&recall);
}

UNIT_TEST(the_figures_are_those_that_the_widths_allow)
{
    struct bsw_recall recall;
    judge(&recall, 3, 2, wide_ids, NULL, 0, 0);
    assert_int_equal(recall.num_figures, 2); // 3-recall@2, 1-recall@2
    expect(&recall, 3, 2, 1, 0);
    expect(&recall, 1, 2, 1, 0);
    bsw_recall_deinit(&recall);
    judge(&recall, 1, 1, wide_ids, NULL, 0, 0);
    assert_int_equal(recall.num_figures, 1); // 1-recall@1
    bsw_recall_deinit(&recall);
}

// ---- against the definition ----

struct random_query {
    int64_t true_ids[MAX], ids[MAX];
    double values[MAX], true_values[MAX];
};

// Ids 0 .. 19 with values of four kinds, so that both sides tie often; truth: the best, by value.
static void make_query(uint64_t seed, struct random_query *query)
{
    size_t count = 0;
    for (int value = 3; value >= 0; value--) {
        for (int64_t id = 0; id < 20 && count < MAX; id++) {
            if (bsw_hash2(seed, (uint64_t)id) % 4 != (uint64_t)value) continue;
            query->true_ids[count] = id;
            query->true_values[count++] = value;
        }
    }
    for (size_t i = 0; i < MAX; i++) {
        query->ids[i] = (int64_t)(bsw_hash2(seed, 100 + i) % 20);
        query->values[i] = (double)(bsw_hash2(seed, (uint64_t)query->ids[i]) % 4);
    }
}

static void count_plainly(const struct random_query *query, size_t num_true, size_t num_columns,
                          uint64_t *found, uint64_t *tied)
{
    size_t hits = 0, ties = 0;
    for (size_t i = 0; i < num_columns; i++) {
        int is_seen = 0, is_true = 0;
        for (size_t j = 0; j < i; j++) is_seen |= query->ids[j] == query->ids[i];
        for (size_t j = 0; j < num_true; j++) is_true |= query->true_ids[j] == query->ids[i];
        hits += is_true && !is_seen;
        ties += !is_true && !is_seen && query->values[i] == query->true_values[num_true - 1];
    }
    while (hits + ties > num_true) ties--;
    *found += hits;
    *tied += ties;
}

UNIT_TEST(random_results_are_judged_as_defined)
{
    uint64_t all_found = 0, all_tied = 0;
    for (size_t k = 1; k <= 6; k++) {
        for (size_t width = 1; width <= MAX; width++) {
            uint64_t found[2][2] = {{0}}, tied[2][2] = {{0}}; // [k or first][at k or at width]
            const size_t num_true[2] = {k, 1}, columns[2] = {k, width};
            struct bsw_recall recall;
            assert_int_equal(bsw_recall_init(&recall, k, width, NULL), BSW_OK);
            for (uint64_t seed = 0; seed < 40; seed++) {
                struct random_query random;
                make_query(seed * MAX + k, &random);
                const struct bsw_recall_query query = {.true_ids = random.true_ids,
                                                       .ids = random.ids,
                                                       .values = random.values,
                                                       .first_value = random.true_values[0],
                                                       .last_value = random.true_values[k - 1]};
                bsw_recall_add(&recall, &query);
                for (int i = 0; i < 4; i++)
                    count_plainly(&random, num_true[i / 2], columns[i % 2], &found[i / 2][i % 2],
                                  &tied[i / 2][i % 2]);
            }
            for (int i = 0; i < 4; i++) {
                if (columns[i % 2] > width) continue;
                expect(&recall, num_true[i / 2], columns[i % 2], found[i / 2][i % 2],
                       tied[i / 2][i % 2]);
                all_found += found[i / 2][i % 2];
                all_tied += tied[i / 2][i % 2];
            }
            bsw_recall_deinit(&recall);
        }
    }
    assert_true(all_found > 1000 && all_tied > 1000);
}

// ---- what no truth has ----

UNIT_TEST(rows_nearer_than_the_last_true_one_are_counted)
{
    // 10, twice, and 12 are nearer than id 2; 11 ties, 13 is further away, 1 is a true one.
    static const int64_t true_ids[3] = {0, 1, 2}, ids[7] = {10, 1, 12, 11, 13, 10, -1};
    static const double values[7] = {9, 8, 7.5, 7, 6, 9, NAN}, none[7] = {7, 8, 7, 7, 6, 7, NAN};
    struct bsw_recall recall;
    struct bsw_recall_query query = {.true_ids = true_ids,
                                     .ids = ids,
                                     .values = values,
                                     .first_value = 9,
                                     .last_value = 7,
                                     .has_keys = 1};
    assert_int_equal(bsw_recall_init(&recall, 3, 7, NULL), BSW_OK);
    bsw_recall_add(&recall, &query);
    assert_true(recall.num_nearer == 2 && recall.num_nearer_queries == 1);
    query.values = none;
    bsw_recall_add(&recall, &query);
    query.values = values;
    query.has_keys = 0; // larger values need not be better
    bsw_recall_add(&recall, &query);
    assert_true(recall.num_nearer == 2 && recall.num_nearer_queries == 1);
    assert_true(recall.num_empty == 0 && recall.num_repeated == 0);
    bsw_recall_deinit(&recall);
}

UNIT_TEST(empty_and_repeated_places_of_a_truth_are_counted)
{
    static const int64_t first[5] = {4, 4, 7, 4, 9}, second[5] = {3, -1, 8, -1, -1};
    struct bsw_recall recall;
    struct bsw_recall_query query = {.true_ids = first, .ids = first};
    assert_int_equal(bsw_recall_init(&recall, 5, 5, NULL), BSW_OK);
    bsw_recall_add(&recall, &query);
    query.true_ids = second;
    bsw_recall_add(&recall, &query);
    assert_true(recall.num_repeated == 2 && recall.num_empty == 3 && recall.num_nearer == 0);
    bsw_recall_deinit(&recall);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
