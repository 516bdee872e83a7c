// SPDX-License-Identifier: Apache-2.0
// The coarse step on an emulated device against that of the host: the same lists in the same order,
// with the same additions; lists of candidates that overflow, centroids that are alike, queries
// that look at more lists than are kept there; what memory it takes.
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "shard/device/device_coarse.h"
#include "unit_test.h"

enum { DIMS = 45, QUERIES = 29, MOST_LISTS = 11000 };

static struct bsw_error err;
static bsw_device *device;
static float centroids[MOST_LISTS * DIMS], vectors[QUERIES * DIMS], center[DIMS];

static float number(uint64_t seed, size_t i)
{
    return (float)(bsw_hash2(seed, i) % 2001) * 0.01f - 10.0f;
}

static struct bsw_manifest make_manifest(enum bsw_metric metric, uint32_t lists, size_t dims)
{
    const struct bsw_manifest manifest = {
        .metric = metric, .row_dims = dims, .lists = {.count = lists, .centroids = centroids}};
    for (size_t i = 0; i < lists * dims; i++) centroids[i] = 3.0f + number(1, i);
    for (size_t i = 0; i < QUERIES * dims; i++) vectors[i] = 3.0f + number(2, i);
    for (size_t d = 0; d < dims; d++) center[d] = number(3, d);
    return manifest;
}

// Number `i` of those that query q looks at, wherever it is among the found ones.
static void find_list(const struct bsw_list_choice *found, const struct bsw_list_choice *expected,
                      size_t q, size_t i)
{
    size_t at = q * expected->most, place = at;
    uint32_t list = expected->lists[at + i];
    while (place < at + found->counts[q] && found->lists[place] != list) place++;
    assert_true(place < at + found->counts[q]);
    if (expected->additions)
        assert_memory_equal(&found->additions[place], &expected->additions[at + i], sizeof(float));
}

// The nearest in order, the others in any.
static void compare(const struct bsw_list_choice *found, const struct bsw_list_choice *expected)
{
    assert_int_equal(found->num_queries, expected->num_queries);
    assert_int_equal(found->most, expected->most);
    for (size_t q = 0; q < expected->num_queries; q++) {
        size_t at = q * expected->most, count = expected->counts[q];
        assert_int_equal(found->counts[q], count);
        size_t first = count < BSW_COARSE_RANK ? count : BSW_COARSE_RANK;
        assert_memory_equal(found->lists + at, expected->lists + at, first * sizeof(uint32_t));
        for (size_t i = 0; i < count; i++) find_list(found, expected, q, i);
    }
}

// Searches of all queries, some at a time; returns how many queries the device was asked for.
static uint64_t check(const struct bsw_manifest *manifest, struct bsw_probe_settings settings,
                      size_t max_queries, size_t step, int is_residual)
{
    struct bsw_coarse_search *host, *own;
    struct bsw_device_coarse coarse;
    struct bsw_list_choice expected, found;
    size_t dims = bsw_manifest_row_dims(manifest), free_bytes = (size_t)1 << 30;
    const struct bsw_device_coarse_needs needs = {manifest->lists.count, dims, max_queries,
                                                  settings.probe};
    const float *less = is_residual ? center : NULL;
    assert_ok(bsw_coarse_search_open(manifest, &settings, less, BSW_CPU_REFERENCE, 1, &host, &err),
              &err);
    assert_ok(
        bsw_coarse_search_open(manifest, &settings, less, bsw_cpu_level_detect(), 2, &own, &err),
        &err);
    size_t used = bsw_device_used_bytes(device);
    assert_ok(bsw_device_coarse_open(device, &needs, free_bytes, &coarse, &err), &err);
    assert_int_equal(bsw_device_used_bytes(device) - used,
                     bsw_device_coarse_bytes(&needs, free_bytes));
    assert_ok(bsw_device_coarse_take(&coarse, own, &err), &err);
    uint64_t allocations = bsw_device_num_allocations(device);
    for (size_t q = 0; q < QUERIES; q += step) {
        size_t num = QUERIES - q < step ? QUERIES - q : step;
        assert_ok(bsw_coarse_search_run(host, vectors + q * dims, num, &expected, &err), &err);
        assert_ok(bsw_coarse_search_run(own, vectors + q * dims, num, &found, &err), &err);
        compare(&found, &expected);
    }
    assert_int_equal(bsw_device_num_allocations(device), allocations);
    uint64_t num_found = coarse.num_found;
    bsw_coarse_search_close(&own);
    bsw_coarse_search_close(&host);
    bsw_device_coarse_close(&coarse);
    assert_int_equal(bsw_device_used_bytes(device), used);
    return num_found;
}

UNIT_TEST(the_lists_of_the_host)
{
    const struct bsw_probe_settings settings[] = {{1, 0, 0},      {7, 0, 0},   {300, 0, 0},
                                                  {500, 1.05, 0}, {9, 1.2, 0}, {500, 0.5, 0}};
    for (int metric = BSW_METRIC_COSINE; metric <= BSW_METRIC_L2; metric++) {
        struct bsw_manifest manifest = make_manifest((enum bsw_metric)metric, 500, DIMS);
        memcpy(centroids + 77 * DIMS, centroids + 33 * DIMS, DIMS * sizeof(float));
        for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
            if (metric == BSW_METRIC_IP && settings[s].ratio > 0) continue;
            assert_int_equal(check(&manifest, settings[s], 10, 8 + 21 * (s % 2), s % 3 == 0),
                             QUERIES);
        }
    }
}

// Where a query looks at more lists than are kept its keys are made on the host; so are those of
// one query alone, and all where every query looks at so many.
UNIT_TEST(more_lists_than_are_kept)
{
    struct bsw_manifest manifest = make_manifest(BSW_METRIC_L2, 1000, DIMS);
    assert_int_equal(check(&manifest, (struct bsw_probe_settings){1000, 1.1, 0}, 40, 29, 1),
                     QUERIES);
    assert_int_equal(check(&manifest, (struct bsw_probe_settings){1000, 3, 0}, 40, 29, 0), QUERIES);
    assert_int_equal(check(&manifest, (struct bsw_probe_settings){1000, 0, 0}, 40, 29, 0), 0);
    assert_int_equal(check(&manifest, (struct bsw_probe_settings){20, 0, 0}, 40, 1, 0), 0);
}

// So many that there is a sample, of every 16th bundle; then all others better than the sample, so
// that what reaches its limit is more than there is room for; then all alike.
UNIT_TEST(lists_that_overflow)
{
    enum { SHORT = 4 };
    struct bsw_manifest manifest = make_manifest(BSW_METRIC_L2, MOST_LISTS, SHORT);
    const struct bsw_probe_settings settings = {40, 0, 0};
    assert_int_equal(check(&manifest, settings, 40, 14, 0), QUERIES - 1);
    for (size_t i = 0; i < (size_t)MOST_LISTS * SHORT; i++)
        centroids[i] = number(5, i) + (i / SHORT / BSW_BUNDLE_ROWS % 16 == 8 ? 100.0f : 0.0f);
    for (size_t i = 0; i < QUERIES * SHORT; i++) vectors[i] = 0.001f * (float)(i % 5);
    assert_int_equal(check(&manifest, settings, 40, 29, 0), QUERIES);
    for (size_t i = 0; i < (size_t)MOST_LISTS * SHORT; i++) centroids[i] = 2.0f;
    assert_int_equal(check(&manifest, settings, 40, 29, 0), QUERIES);
}

UNIT_TEST(none_without_memory_or_use)
{
    struct bsw_device_coarse_needs needs = {500, DIMS, 40, 16};
    size_t bytes = bsw_device_coarse_bytes(&needs, SIZE_MAX);
    assert_true(bytes > 0);
    assert_int_equal(bsw_device_coarse_bytes(&needs, 8 * bytes), bytes);
    assert_int_equal(bsw_device_coarse_bytes(&needs, 8 * bytes - 1), 0);
    needs.max_queries = 1;
    assert_int_equal(bsw_device_coarse_bytes(&needs, SIZE_MAX), 0);
    needs = (struct bsw_device_coarse_needs){500, DIMS, 40, 0};
    assert_int_equal(bsw_device_coarse_bytes(&needs, SIZE_MAX), 0);
    struct bsw_device_coarse none;
    struct bsw_coarse_search *search;
    struct bsw_manifest manifest = make_manifest(BSW_METRIC_L2, 500, DIMS);
    const struct bsw_probe_settings settings = {16, 0, 0};
    assert_ok(bsw_device_coarse_open(device, &needs, SIZE_MAX, &none, &err), &err);
    assert_ok(
        bsw_coarse_search_open(&manifest, &settings, NULL, BSW_CPU_REFERENCE, 1, &search, &err),
        &err);
    assert_ok(bsw_device_coarse_take(&none, search, &err), &err);
    bsw_coarse_search_close(&search);
    bsw_device_coarse_close(&none);
}

static int open_device(void **state)
{
    const struct bsw_device_options options = {.num_sharers = 1, .timeout_seconds = 60};
    return bsw_device_open(&options, &device, &err) != BSW_OK;
}

static int close_device(void **state)
{
    bsw_device_close(&device);
    return 0;
}

int main(void)
{
    return run_unit_tests(open_device, close_device);
}
