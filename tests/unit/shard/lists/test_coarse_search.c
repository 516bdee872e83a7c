// SPDX-License-Identifier: Apache-2.0
// The lists that queries look at: the same on every level, for any threads and queries of a call;
// nearly those of exact distances; the ratio leaves out what is further away and no more.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "shard/lists/coarse_search.h"
#include "shard/scan/work.h"
#include "unit_test.h"

enum { LISTS = 500, DIMS = 45, QUERIES = 61 };

static struct bsw_error err;
static float centroids[LISTS * DIMS], vectors[QUERIES * DIMS];

static float number(uint64_t seed, size_t i)
{
    return (float)(bsw_hash2(seed, i) % 2001) * 0.01f - 10.0f;
}

static struct bsw_manifest make_manifest(enum bsw_metric metric)
{
    struct bsw_manifest manifest = {
        .metric = metric, .row_dims = DIMS, .lists = {.count = LISTS, .centroids = centroids}};
    for (size_t i = 0; i < LISTS * DIMS; i++) centroids[i] = 3.0f + number(1, i);
    for (size_t i = 0; i < QUERIES * DIMS; i++) vectors[i] = 3.0f + number(2, i);
    for (size_t l = 0; l < LISTS && metric == BSW_METRIC_COSINE; l++) {
        double norm = 0;
        for (size_t d = 0; d < DIMS; d++) norm += centroids[l * DIMS + d] * centroids[l * DIMS + d];
        for (size_t d = 0; d < DIMS; d++) centroids[l * DIMS + d] /= (float)sqrt(norm);
    }
    // Two that are the same: the smaller list goes first.
    memcpy(centroids + 77 * DIMS, centroids + 33 * DIMS, DIMS * sizeof(float));
    return manifest;
}

static double distance(enum bsw_metric metric, size_t q, size_t l)
{
    double squares = 0, product = 0, norm = 0;
    for (size_t d = 0; d < DIMS; d++) {
        double x = vectors[q * DIMS + d], c = centroids[l * DIMS + d];
        squares += (x - c) * (x - c);
        product += x * c;
        norm += x * x;
    }
    return metric == BSW_METRIC_L2   ? squares
           : metric == BSW_METRIC_IP ? -product
                                     : 2 - 2 * product / sqrt(norm);
}

static int compare_lists(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void run(const struct bsw_manifest *manifest, struct bsw_probe_settings settings,
                enum bsw_cpu_level level, int threads, size_t step, uint32_t *lists,
                uint32_t *counts)
{
    struct bsw_coarse_search *search;
    struct bsw_list_choice choice;
    assert_ok(bsw_coarse_search_open(manifest, &settings, NULL, level, threads, &search, &err),
              &err);
    for (size_t q = 0; q < QUERIES; q += step) {
        size_t num = QUERIES - q < step ? QUERIES - q : step;
        assert_ok(bsw_coarse_search_run(search, vectors + q * DIMS, num, &choice, &err), &err);
        assert_null(choice.additions);
        for (size_t i = 0; i < num; i++) {
            counts[q + i] = choice.counts[i];
            assert_in_range(counts[q + i], 1, settings.probe);
            uint32_t *of_query = lists + (q + i) * LISTS;
            memcpy(of_query, choice.lists + i * choice.most, choice.counts[i] * sizeof *lists);
            if (choice.counts[i] > BSW_COARSE_RANK) // in any order
                qsort(of_query + BSW_COARSE_RANK, choice.counts[i] - BSW_COARSE_RANK, sizeof *lists,
                      compare_lists);
        }
    }
    bsw_coarse_search_close(&search);
}

static void every_way_gives_the_same_lists(void **state)
{
    static uint32_t expected[QUERIES * LISTS], found[QUERIES * LISTS];
    uint32_t expected_counts[QUERIES], counts[QUERIES];
    const struct bsw_probe_settings settings[] = {{1, 0, 0},     {7, 0, 0},        {100, 0, 0},
                                                  {LISTS, 0, 0}, {LISTS, 1.05, 0}, {9, 1.2, 0},
                                                  {20, 1.2, 0}};
    (void)state;
    for (int metric = BSW_METRIC_COSINE; metric <= BSW_METRIC_L2; metric++) {
        struct bsw_manifest manifest = make_manifest((enum bsw_metric)metric);
        for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
            if (metric == BSW_METRIC_IP && settings[s].ratio > 0) continue;
            memset(expected, 0, sizeof expected);
            run(&manifest, settings[s], BSW_CPU_REFERENCE, 1, QUERIES, expected, expected_counts);
            for (int level = bsw_cpu_level_next(BSW_CPU_REFERENCE); level < BSW_CPU_NUM_LEVELS;
                 level = bsw_cpu_level_next(level)) {
                memset(found, 0, sizeof found);
                run(&manifest, settings[s], (enum bsw_cpu_level)level, 3, 7, found, counts);
                assert_memory_equal(found, expected, sizeof expected);
                assert_memory_equal(counts, expected_counts, sizeof counts);
            }
        }
    }
}

static void near_lists_are_found(void **state)
{
    static uint32_t lists[QUERIES * LISTS];
    uint32_t counts[QUERIES];
    (void)state;
    for (int metric = BSW_METRIC_COSINE; metric <= BSW_METRIC_L2; metric++) {
        struct bsw_manifest manifest = make_manifest((enum bsw_metric)metric);
        size_t found = 0;
        run(&manifest, (struct bsw_probe_settings){.probe = 20}, bsw_cpu_level_detect(), 1, QUERIES,
            lists, counts);
        for (size_t q = 0; q < QUERIES; q++) {
            assert_int_equal(counts[q], 20);
            for (size_t i = 0; i < 20; i++) {
                double own = distance((enum bsw_metric)metric, q, lists[q * LISTS + i]);
                size_t nearer = 0;
                for (size_t l = 0; l < LISTS; l++)
                    nearer += distance((enum bsw_metric)metric, q, l) < own;
                found += nearer < 20;
            }
        }
        assert_in_range(found, QUERIES * 20 * 97 / 100, QUERIES * 20);
    }
}

static void ratios_leave_out_what_is_further(void **state)
{
    static uint32_t lists[QUERIES * LISTS];
    uint32_t counts[QUERIES];
    struct bsw_manifest manifest = make_manifest(BSW_METRIC_L2);
    (void)state;
    run(&manifest, (struct bsw_probe_settings){.probe = LISTS, .ratio = 1.1},
        bsw_cpu_level_detect(), 1, QUERIES, lists, counts);
    for (size_t q = 0; q < QUERIES; q++) {
        double yardstick = distance(BSW_METRIC_L2, q, lists[q * LISTS + BSW_COARSE_RANK - 1]);
        size_t within = 0;
        assert_in_range(counts[q], BSW_COARSE_RANK, LISTS);
        for (size_t i = 0; i < counts[q]; i++)
            assert_true(distance(BSW_METRIC_L2, q, lists[q * LISTS + i]) < 1.12 * yardstick);
        for (size_t l = 0; l < LISTS; l++)
            within += distance(BSW_METRIC_L2, q, l) < 1.08 * yardstick;
        assert_true(counts[q] >= within);
    }
}

static void groups_are_the_other_way_round(void **state)
{
    const uint32_t lists[] = {4, 1, 2, 9, 1, 9, 9, 9, 2, 4, 1, 9}, counts[] = {3, 1, 3};
    const struct bsw_list_choice choice = {
        .num_queries = 3, .most = 4, .lists = lists, .counts = counts};
    struct bsw_list_groups groups = {0};
    (void)state;
    assert_ok(bsw_list_groups_make(&choice, 5, 0, SIZE_MAX, &groups, &err), &err);
    assert_int_equal(groups.most, 3);
    assert_int_equal(groups.first[2] - groups.first[1], 3);
    assert_int_equal(groups.queries[groups.first[1]], 0);
    assert_int_equal(groups.queries[groups.first[1] + 2], 2);
    assert_int_equal(groups.first[1], groups.first[0]);
    assert_int_equal(groups.first[5], 7);
    assert_ok(bsw_list_groups_make(&choice, 5, 0, 1, &groups, &err), &err);
    assert_int_equal(groups.first[5], 3);
    assert_ok(bsw_list_groups_make(&choice, 5, 1, 2, &groups, &err), &err);
    assert_int_equal(groups.first[5], 2);
    bsw_list_groups_deinit(&groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_gives_the_same_lists),
        cmocka_unit_test(near_lists_are_found),
        cmocka_unit_test(ratios_leave_out_what_is_further),
        cmocka_unit_test(groups_are_the_other_way_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
