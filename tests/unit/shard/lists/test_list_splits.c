// SPDX-License-Identifier: Apache-2.0
// Means, and which lists are split and which are moved for it.
#include <math.h>
#include <string.h>

#include "shard/lists/lloyd_rounds.h"
#include "unit_test.h"

enum { LISTS = 40, DIMS = 3 };

static struct bsw_error err;
static double component_scales[DIMS] = {4.0, 0x1p20, 1.0};
static float centroids[LISTS * DIMS], before[LISTS * DIMS];

static struct bsw_list_splits splits_of(enum bsw_metric metric, int is_balanced)
{
    return (struct bsw_list_splits){metric, {component_scales, 16.0}, 7, is_balanced};
}

// List l has 10 + l rows around (l, 2 l, 1), a mean distance of 2 apart; its centroid was 9.
static struct bsw_list_totals make_totals(void)
{
    struct bsw_list_totals totals;
    assert_ok(bsw_list_totals_open(LISTS, DIMS, &totals, &err), &err);
    memset(totals.words, 0, totals.num_words * sizeof *totals.words);
    for (size_t l = 0; l < LISTS; l++) {
        int64_t count = 10 + (int64_t)l, *sums = bsw_totals_sums(&totals) + l * DIMS;
        bsw_totals_counts(&totals)[l] = count;
        bsw_totals_distances(&totals)[l] = count * 2 * 16;
        sums[0] = (int64_t)l * count * 4;
        sums[1] = (int64_t)(2 * l) * count * (1 << 20);
        sums[2] = count;
    }
    for (size_t i = 0; i < LISTS * DIMS; i++) centroids[i] = 9.0f;
    return totals;
}

static void set_count(const struct bsw_list_totals *totals, size_t list, int64_t count)
{
    int64_t *sums = bsw_totals_sums(totals) + list * DIMS;
    bsw_totals_counts(totals)[list] = count;
    bsw_totals_distances(totals)[list] = count * 2 * 16;
    sums[0] = (int64_t)list * count * 4;
    sums[1] = (int64_t)(2 * list) * count * (1 << 20);
    sums[2] = count;
}

static size_t update(const struct bsw_list_splits *splits, const struct bsw_list_totals *totals)
{
    size_t num_moved = 1000;
    memcpy(before, centroids, sizeof before);
    assert_ok(bsw_list_splits_update(splits, totals, centroids, &num_moved, &err), &err);
    return num_moved;
}

static int is_mean(size_t list)
{
    const float *centroid = centroids + list * DIMS;
    return centroid[0] == (float)list && centroid[1] == (float)(2 * list) && centroid[2] == 1.0f;
}

// Its distance from the mean of list `of`.
static double distance_from(size_t list, size_t of)
{
    const float *centroid = centroids + list * DIMS;
    double x = (double)centroid[0] - (double)of, y = (double)centroid[1] - 2.0 * (double)of;
    double z = (double)centroid[2] - 1.0;
    return sqrt(x * x + y * y + z * z);
}

UNIT_TEST(centroids_are_means)
{
    struct bsw_list_totals totals = make_totals();
    const struct bsw_list_splits splits = splits_of(BSW_METRIC_L2, 1);
    assert_int_equal(update(&splits, &totals), 0);
    for (size_t l = 0; l < LISTS; l++) assert_true(is_mean(l));
    bsw_list_totals_close(&totals);
}

UNIT_TEST(those_of_cosine_have_length_one_and_stay_where_a_sum_is_zero)
{
    struct bsw_list_totals totals = make_totals();
    const struct bsw_list_splits splits = splits_of(BSW_METRIC_COSINE, 1);
    memset(bsw_totals_sums(&totals) + 5 * DIMS, 0, DIMS * sizeof(int64_t));
    assert_int_equal(update(&splits, &totals), 0);
    for (size_t l = 0; l < LISTS; l++) {
        double x = (double)centroids[l * DIMS], y = (double)centroids[l * DIMS + 1],
               z = (double)centroids[l * DIMS + 2];
        if (l == 5) {
            assert_memory_equal(centroids + l * DIMS, before + l * DIMS, DIMS * sizeof(float));
            continue;
        }
        assert_true(fabs(sqrt(x * x + y * y + z * z) - 1.0) < 1e-6);
        assert_true(fabs(x / z - (double)l) < 1e-4);
    }
    bsw_list_totals_close(&totals);
}

UNIT_TEST(empty_lists_split_the_longest_ones)
{
    for (int is_balanced = 0; is_balanced < 2; is_balanced++) {
        struct bsw_list_totals totals = make_totals();
        const struct bsw_list_splits splits = splits_of(BSW_METRIC_L2, is_balanced);
        set_count(&totals, 2, 0);
        set_count(&totals, 8, 0);
        set_count(&totals, 20, 70);
        assert_int_equal(update(&splits, &totals), 2);
        // 70 rows first; the half of them is less than 49.
        double first = distance_from(8, 20), second = distance_from(2, 39);
        assert_true(first > 0.02 && first < 0.5);
        assert_true(second > 0.02 && second < 0.5);
        for (size_t l = 0; l < LISTS; l++) assert_int_equal(is_mean(l), l != 2 && l != 8);
        bsw_list_totals_close(&totals);
    }
}

UNIT_TEST(the_shortest_lists_move_to_one_that_is_too_long)
{
    struct bsw_list_totals totals = make_totals();
    set_count(&totals, 30, 1000); // the mean is 53: 4 times that is 212, a fifth 200
    struct bsw_list_splits splits = splits_of(BSW_METRIC_L2, 0);
    assert_int_equal(update(&splits, &totals), 0);
    splits.is_balanced = 1;
    assert_int_equal(update(&splits, &totals), 4);
    for (size_t l = 0; l < LISTS; l++) {
        assert_int_equal(is_mean(l), l >= 4);
        if (l >= 4) continue;
        assert_true(distance_from(l, 30) > 0.02 && distance_from(l, 30) < 0.5);
        for (size_t other = 0; other < l; other++)
            assert_memory_not_equal(centroids + l * DIMS, centroids + other * DIMS,
                                    DIMS * sizeof(float));
    }
    // No more than one list in 8, and one.
    set_count(&totals, 30, 100000);
    assert_int_equal(update(&splits, &totals), LISTS / 8 + 1);
    bsw_list_totals_close(&totals);
}

UNIT_TEST(copies_of_one_row_are_not_split)
{
    struct bsw_list_totals totals = make_totals();
    const struct bsw_list_splits splits = splits_of(BSW_METRIC_L2, 1);
    set_count(&totals, 30, 100000);
    bsw_totals_distances(&totals)[30] = 1;
    assert_int_equal(update(&splits, &totals), 0);
    for (size_t l = 0; l < LISTS; l++) bsw_totals_distances(&totals)[l] = 0;
    set_count(&totals, 0, 0);
    assert_int_equal(update(&splits, &totals), 0);
    assert_memory_equal(centroids, before, DIMS * sizeof(float));
    centroids[0] = NAN; // it never had one
    assert_int_equal(update(&splits, &totals), 0);
    assert_memory_equal(centroids, centroids + DIMS, DIMS * sizeof(float));
    bsw_list_totals_close(&totals);
}

UNIT_TEST(numbers_add_up_below_62_bits)
{
    const double numbers[] = {1e-38, 0.5, 1.0, 255.0, 3e18};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        for (uint64_t rows = 1; rows < (uint64_t)1 << 40; rows = 3 * rows + 1) {
            double scale = bsw_list_scale(numbers[i], rows);
            assert_true(numbers[i] * scale <= 0x1p50);
            assert_true(numbers[i] * scale * (double)rows < 0x1p62);
            assert_true(numbers[i] * scale > (rows < 1000 ? 0x1p48 : 0x1p20));
        }
    }
    assert_true(isfinite(bsw_list_scale(0.0, 10)));
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
