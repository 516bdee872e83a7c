// SPDX-License-Identifier: Apache-2.0
// The coarse step on an emulated device against that of the host: the same lists in the same order,
// with the same additions; lists of candidates that overflow, centroids that are alike, queries
// that look at more lists than are kept there; what memory it takes.
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "emulated_device.h"
#include "shard/device/device_coarse.h"
#include "unit_test.h"

enum { DIMS = 45, QUERIES = 29, MOST_LISTS = 11000 };
enum { MANY = 1030, FEW_DIMS = 4, FEW = 20 }; // queries of more than a group, their lists

static struct bsw_error err;
static size_t most_group; // of choices that stay
static size_t free_bytes = (size_t)1 << 30;
static float centroids[MOST_LISTS * DIMS], vectors[MANY * FEW_DIMS], center[DIMS];

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

// ---- choices that stay ----

static void download(void *to, const void *from, size_t bytes)
{
    assert_ok(bsw_device_download(device, BSW_QUEUE_LINK, to, from, bytes, &err), &err);
}

// A choice that a device has, on the host; 0: it is of no use.
static int fetch_choice(const struct bsw_device_coarse *coarse, struct bsw_list_choice *out)
{
    static uint32_t lists[MANY * FEW], counts[MANY];
    static float additions[MANY * FEW];
    const struct bsw_device_choice *choice = &coarse->choice;
    size_t num = choice->num_queries, all = num * choice->most;
    uint32_t flags;
    download(&flags, choice->flags, sizeof flags);
    download(lists, choice->lists, all * sizeof *lists);
    download(counts, choice->counts, num * sizeof *counts);
    if (choice->additions) download(additions, choice->additions, all * sizeof *additions);
    assert_ok(bsw_device_wait(device, BSW_QUEUE_LINK, "lists", &err), &err);
    *out = (struct bsw_list_choice){.num_queries = num,
                                    .most = choice->most,
                                    .lists = lists,
                                    .counts = counts,
                                    .additions = choice->additions ? additions : NULL};
    return flags == 0;
}

// Queries of lists, step by step, add up to those of the choice.
static void check_steps(const struct bsw_device_coarse *coarse, const struct bsw_list_choice *found)
{
    static uint32_t steps[BSW_LIST_STEPS * MOST_LISTS], expected[BSW_LIST_STEPS * MOST_LISTS];
    size_t num_lists = coarse->choice.num_lists,
           bytes = BSW_LIST_STEPS * num_lists * sizeof(uint32_t);
    memset(expected, 0, bytes);
    for (size_t q = 0; q < found->num_queries; q++)
        for (size_t i = 0; i < found->counts[q]; i++)
            expected[(i < 1               ? 0
                      : i < BSW_FEW_LISTS ? 1
                                          : 2) *
                         num_lists +
                     found->lists[q * found->most + i]]++;
    download(steps, coarse->choice.step_queries, bytes);
    assert_ok(bsw_device_wait(device, BSW_QUEUE_LINK, "lists", &err), &err);
    assert_memory_equal(steps, expected, bytes);
}

// The lists of a query in the same order, whatever lies behind them.
static void compare_placed(const struct bsw_list_choice *found,
                           const struct bsw_list_choice *expected)
{
    assert_int_equal(found->num_queries, expected->num_queries);
    for (size_t q = 0; q < expected->num_queries; q++) {
        struct bsw_list_choice one = *found, other = *expected;
        one.num_queries = other.num_queries = 1;
        one.lists += q * found->most;
        other.lists += q * expected->most;
        one.counts += q;
        other.counts += q;
        if (one.additions) one.additions += q * found->most;
        if (other.additions) other.additions += q * expected->most;
        one.most = other.most;
        compare(&one, &other);
    }
}

// What is put off is made on the device, or where that does not tell on the host. Returns whether
// the device told.
static int compare_put_off(struct bsw_device_coarse *coarse, const struct bsw_list_choice *put_off,
                           const struct bsw_list_choice *expected)
{
    struct bsw_list_choice found;
    int is_told = 0;
    if (bsw_device_coarse_can_place(coarse, put_off)) {
        uint64_t before = bsw_device_launches();
        assert_ok(bsw_device_coarse_place(coarse, put_off, &err), &err);
        if (coarse->capacity >= coarse->choice.num_lists) // a scan and a choice
            assert_int_equal(bsw_device_launches() - before,
                             2 * ((put_off->num_queries - 1) / coarse->group_queries + 1));
        is_told = fetch_choice(coarse, &found);
        if (is_told) compare_placed(&found, expected);
        if (is_told) check_steps(coarse, &found);
        assert_ok(bsw_device_coarse_place(coarse, put_off, &err), &err); // it is there
    }
    assert_ok(bsw_list_choice_complete(put_off, &found, &err), &err);
    assert_int_equal(put_off->lists == NULL || found.lists == put_off->lists, 1);
    compare(&found, expected);
    return is_told;
}

// A search whose coarse step is the device's, and one of the host.
struct both_ways {
    struct bsw_coarse_search *host, *own;
    struct bsw_device_coarse coarse;
    size_t used; // bytes of the device before
};

static void open_both(const struct bsw_manifest *manifest, struct bsw_probe_settings settings,
                      const struct bsw_device_coarse_needs *needs, int is_residual,
                      struct both_ways *out)
{
    const float *less = is_residual ? center : NULL;
    assert_ok(
        bsw_coarse_search_open(manifest, &settings, less, BSW_CPU_REFERENCE, 1, &out->host, &err),
        &err);
    assert_ok(bsw_coarse_search_open(manifest, &settings, less, bsw_cpu_level_detect(), 2,
                                     &out->own, &err),
              &err);
    out->used = bsw_device_used_bytes(device);
    assert_ok(bsw_device_coarse_open(device, needs, free_bytes, &out->coarse, &err), &err);
    assert_int_equal(bsw_device_used_bytes(device) - out->used,
                     bsw_device_coarse_bytes(needs, free_bytes));
    assert_ok(bsw_device_coarse_take(&out->coarse, out->own, &err), &err);
}

static void close_both(struct both_ways *both)
{
    bsw_coarse_search_close(&both->own);
    bsw_coarse_search_close(&both->host);
    bsw_device_coarse_close(&both->coarse);
    assert_int_equal(bsw_device_used_bytes(device), both->used);
}

// How many queries of choices that stay the device told the lists of.
static uint64_t check_staying_of(const struct bsw_manifest *manifest,
                                 struct bsw_probe_settings settings, size_t num_queries,
                                 size_t max_queries, size_t step, int is_residual)
{
    struct bsw_list_choice expected, put_off;
    struct both_ways both;
    size_t dims = bsw_manifest_row_dims(manifest);
    const struct bsw_device_coarse_needs needs = {.num_lists = manifest->lists.count,
                                                  .dims = dims,
                                                  .max_queries = max_queries,
                                                  .probe = settings.probe,
                                                  .stays = 1,
                                                  .has_additions = is_residual,
                                                  .most_group = most_group};
    uint64_t num_told = 0;
    open_both(manifest, settings, &needs, is_residual, &both);
    for (size_t q = 0; q < num_queries; q += step) {
        size_t num = num_queries - q < step ? num_queries - q : step;
        assert_ok(bsw_coarse_search_run(both.host, vectors + q * dims, num, &expected, &err), &err);
        assert_ok(bsw_coarse_search_run(both.own, vectors + q * dims, num, &put_off, &err), &err);
        if (compare_put_off(&both.coarse, &put_off, &expected)) num_told += num;
    }
    close_both(&both);
    return num_told;
}

static uint64_t check_staying(const struct bsw_manifest *manifest,
                              struct bsw_probe_settings settings, size_t max_queries, size_t step,
                              int is_residual)
{
    return check_staying_of(manifest, settings, QUERIES, max_queries, step, is_residual);
}

// ---- choices of the host ----

// Searches of all queries, some at a time; returns how many queries the device was asked for.
static uint64_t check(const struct bsw_manifest *manifest, struct bsw_probe_settings settings,
                      size_t max_queries, size_t step, int is_residual)
{
    struct bsw_list_choice expected, found;
    struct both_ways both;
    size_t dims = bsw_manifest_row_dims(manifest);
    const struct bsw_device_coarse_needs needs = {.num_lists = manifest->lists.count,
                                                  .dims = dims,
                                                  .max_queries = max_queries,
                                                  .probe = settings.probe};
    open_both(manifest, settings, &needs, is_residual, &both);
    uint64_t allocations = bsw_device_num_allocations(device);
    for (size_t q = 0; q < QUERIES; q += step) {
        size_t num = QUERIES - q < step ? QUERIES - q : step;
        assert_ok(bsw_coarse_search_run(both.host, vectors + q * dims, num, &expected, &err), &err);
        assert_ok(bsw_coarse_search_run(both.own, vectors + q * dims, num, &found, &err), &err);
        compare(&found, &expected);
    }
    assert_int_equal(bsw_device_num_allocations(device), allocations);
    uint64_t num_found = both.coarse.num_found;
    close_both(&both);
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
            assert_int_equal(check_staying(&manifest, settings[s], QUERIES, 8, s % 3 == 0),
                             QUERIES);
        }
    }
}

// Where a query looks at more lists than are kept its keys are made on the host; so are those of
// one query alone, unless its choice stays, and all where every query looks at so many.
UNIT_TEST(more_lists_than_are_kept)
{
    struct bsw_manifest manifest = make_manifest(BSW_METRIC_L2, 1000, DIMS);
    assert_int_equal(check(&manifest, (struct bsw_probe_settings){1000, 1.1, 0}, 40, 29, 1),
                     QUERIES);
    assert_int_equal(check(&manifest, (struct bsw_probe_settings){1000, 3, 0}, 40, 29, 0), QUERIES);
    assert_int_equal(check(&manifest, (struct bsw_probe_settings){1000, 0, 0}, 40, 29, 0), 0);
    assert_int_equal(check(&manifest, (struct bsw_probe_settings){20, 0, 0}, 40, 1, 0), 0);
    // The same where the device chooses, which tells of all queries of a batch or of none.
    assert_int_equal(check_staying(&manifest, (struct bsw_probe_settings){1000, 3, 0}, 40, 29, 0),
                     0);
    assert_int_equal(check_staying(&manifest, (struct bsw_probe_settings){1000, 0, 0}, 40, 29, 0),
                     0);
    assert_int_equal(check_staying(&manifest, (struct bsw_probe_settings){20, 0, 0}, 40, 1, 0),
                     QUERIES);
    assert_int_equal(check_staying(&manifest, (struct bsw_probe_settings){20, 0, 0}, 1, 1, 1),
                     QUERIES);
    assert_int_equal(check_staying(&manifest, (struct bsw_probe_settings){20, 0, 0}, 13, 13, 1),
                     QUERIES);
    // Batches of more than it has room for; the last query alone.
    assert_int_equal(check_staying(&manifest, (struct bsw_probe_settings){20, 0, 0}, 13, 14, 1), 1);
}

// Queries of several groups, each with memory of its own for what is uploaded.
UNIT_TEST(many_queries)
{
    struct bsw_manifest manifest = make_manifest(BSW_METRIC_L2, FEW, FEW_DIMS);
    for (size_t i = 0; i < (size_t)MANY * FEW_DIMS; i++) vectors[i] = 3.0f + number(2, i);
    const struct bsw_probe_settings settings = {5, 1.5, 0};
    assert_int_equal(check_staying_of(&manifest, settings, MANY, MANY, MANY, 1), MANY);
    most_group = 17;
    assert_int_equal(check_staying_of(&manifest, settings, 100, 100, 100, 1), 100);
    assert_int_equal(check_staying_of(&manifest, settings, 99, 51, 51, 0), 99);
    most_group = 0;
}

// So many that there is a sample, of every 16th bundle; then all others better than the sample, so
// that what reaches its limit is more than there is room for; then all alike. Where lists of
// candidates have room for all of them, nothing of it matters.
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
    assert_int_equal(check_staying(&manifest, settings, 40, 29, 0), QUERIES);
    free_bytes = (size_t)128 << 20; // a 64th is less than those lists
    assert_int_equal(check_staying(&manifest, settings, 40, 29, 0), 0);
    for (size_t i = 0; i < (size_t)MOST_LISTS * SHORT; i++) centroids[i] = 2.0f;
    assert_int_equal(check(&manifest, settings, 40, 29, 0), QUERIES);
    check_staying(&manifest, settings, 40, 29, 1);
    free_bytes = (size_t)1 << 30;
    assert_int_equal(check_staying(&manifest, settings, 40, 29, 1), QUERIES);
}

UNIT_TEST(none_without_memory_or_use)
{
    struct bsw_device_coarse_needs needs = {
        .num_lists = 500, .dims = DIMS, .max_queries = 40, .probe = 16};
    size_t bytes = bsw_device_coarse_bytes(&needs, SIZE_MAX);
    assert_true(bytes > 0);
    assert_int_equal(bsw_device_coarse_bytes(&needs, 8 * bytes), bytes);
    assert_int_equal(bsw_device_coarse_bytes(&needs, 8 * bytes - 1), 0);
    needs.max_queries = 1;
    assert_int_equal(bsw_device_coarse_bytes(&needs, SIZE_MAX), 0);
    needs.max_queries = 40;
    needs.probe = 0;
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

int main(void)
{
    return run_unit_tests(open_device, close_device);
}
