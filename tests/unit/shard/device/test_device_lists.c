// SPDX-License-Identifier: Apache-2.0
// Candidate lists on an emulated device: samples, segments and lists that overflow, by scans that
// must give what the CPU finds.
#include "device_scan_case.h"

// ---- samples, segments and overflows ----

// Scans of all kinds, how many is returned; the engine's counts afterwards.
static unsigned check_rising_or_equal(struct small_index *what, float *vectors, size_t keep,
                                      size_t capacity, struct bsw_scan_counts *counts)
{
    struct scan_case scan;
    what->drops_bad_rows = 0;
    open_case(what, vectors, &scan);
    const struct device_case with = {.keep = keep, .capacity = capacity};
    struct on_device on;
    open_on_device(&scan, &with, &on);
    unsigned num_scans = check_scan(&scan, &on, 0, QUERIES, NULL, keep);
    *counts = on.engine.counts;
    close_on_device(&on);
    close_case(&scan);
    return num_scans;
}

// Lists with room for one more bundle: no sample is worth anything, and a segment is one bundle.
UNIT_TEST(smallest_lists_lose_nothing)
{
    static const size_t keeps[] = {40, 700};
    const struct small_index what = duplicates(&bsw_codec_saq, BSW_METRIC_L2);
    struct scan_case scan;
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    for (size_t k = 0; k < 2; k++) {
        const struct device_case with = {.keep = keeps[k], .capacity = keeps[k] + 32};
        struct on_device on;
        open_on_device(&scan, &with, &on);
        check_scan(&scan, &on, 0, QUERIES, NULL, keeps[k]);
        assert_int_equal(on.engine.counts.num_samples, 0);
        assert_int_equal(on.engine.counts.num_overflows, 0);
        assert_true(on.engine.counts.num_segments >= 3 * 20);
        close_on_device(&on);
    }
    close_case(&scan);
}

// Every row is better than all before it, so those that reach the sample's limit are all at the
// end, more than a list has room for.
UNIT_TEST(rising_rows_overflow_and_lose_nothing)
{
    struct small_index what = duplicates(&bsw_codec_saq, BSW_METRIC_L2);
    float *vectors = allocate_or_fail(QUERIES * DIMS, sizeof *vectors);
    struct bsw_scan_counts counts;
    for (size_t i = 0; i < QUERIES * DIMS; i++) vectors[i] = 0.001f * (float)(i % 5);
    what.source = path_of("rising.fbin");
    unsigned num_scans = check_rising_or_equal(&what, vectors, 21, 21 + 3 * 32 - 1, &counts);
    assert_int_equal(counts.num_samples, num_scans);
    assert_true(counts.num_overflows >= num_scans);
    assert_true(counts.num_segments < num_scans * RISING / 32); // not all of them one bundle
}

// The limit of a sample is what all rows have: each of them passes until a list has been cut.
UNIT_TEST(equal_rows_overflow_and_lose_nothing)
{
    for (int codec = 0; codec < 2; codec++) {
        struct small_index what = duplicates(bsw_codecs[codec], BSW_METRIC_COSINE);
        struct bsw_scan_counts counts;
        what.source = path_of("equal.fbin");
        unsigned num_scans =
            check_rising_or_equal(&what, make_queries(DISTINCT, QUERIES), 2, 128, &counts);
        assert_int_equal(counts.num_samples, num_scans);
        assert_true(counts.num_overflows >= num_scans);
        assert_true(counts.num_segments < num_scans * 12);
    }
}

// Where rows come in no order lists of the chosen length, or short ones, do not overflow, and a few
// segments are enough.
UNIT_TEST(lists_hardly_ever_overflow)
{
    const struct small_index what = duplicates(&bsw_codec_saq, BSW_METRIC_L2);
    struct scan_case scan;
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    const struct device_case with[] = {{.keep = 10}, {.keep = 10, .capacity = 300}};
    for (int i = 0; i < 2; i++) {
        struct on_device on;
        open_on_device(&scan, &with[i], &on);
        unsigned num_scans = check_scan(&scan, &on, 0, QUERIES, NULL, 10);
        assert_int_equal(on.engine.counts.num_overflows, 0);
        assert_int_equal(on.engine.counts.num_samples,
                         i == 0 ? 0 : num_scans); // chosen lists hold all
        assert_true(on.engine.counts.num_segments <= num_scans * (i == 0 ? 1 : 5));
        close_on_device(&on);
    }
    close_case(&scan);
}

// ---- many rows ----

// Scores of so many rows that none is computed: those of any part lie evenly between 0 and 2^32.
struct even_rows {
    bsw_device *device;
    uint64_t *items; // [capacity]
    uint64_t rows;   // scanned so far
};

static enum bsw_status scan_even_rows(void *context, const struct bsw_device_part *part,
                                      const struct bsw_device_lists *lists, struct bsw_error *error)
{
    struct even_rows *even = context;
    uint32_t limit, count;
    BSW_TRY(bsw_device_download(even->device, BSW_QUEUE_SCAN, &limit, lists->limits, 4, error));
    BSW_TRY(bsw_device_download(even->device, BSW_QUEUE_SCAN, &count, lists->counts, 4, error));
    BSW_TRY(bsw_device_wait(even->device, BSW_QUEUE_SCAN, "lists", error));
    uint64_t bundles = (part->last - part->first + part->step - 1) / part->step;
    uint64_t rows = bundles * 32, span = ((uint64_t)1 << 32) - limit, hits = rows * span >> 32;
    uint64_t room = lists->capacity - count, stored = hits < room ? hits : room;
    for (uint64_t i = 0; i < stored; i++) {
        uint64_t row = part->first * 32ull + i * (part->last - part->first) * 32ull / hits;
        even->items[i] =
            bsw_candidate_pack((uint32_t)(limit + (2 * i + 1) * span / (2 * hits)), (uint32_t)row);
    }
    even->rows += rows;
    count += (uint32_t)hits;
    BSW_TRY(bsw_device_upload(even->device, BSW_QUEUE_SCAN, lists->items + (count - hits),
                              even->items, stored * sizeof *even->items, error));
    BSW_TRY(bsw_device_upload(even->device, BSW_QUEUE_SCAN, lists->counts, &count, 4, error));
    return bsw_device_wait(even->device, BSW_QUEUE_SCAN, "lists", error);
}

// The list of a query over 10^9 rows; how many segments that takes.
static uint64_t scan_many_rows(bsw_device *device, uint32_t keep, uint32_t capacity)
{
    const size_t bundles = 1000000000 / 32;
    const uint32_t zeros[2] = {0, 0};
    uint32_t counts[2] = {0, 0};
    struct bsw_device_buffer items, numbers, scratch;
    struct bsw_device_blocks blocks;
    struct even_rows even = {device, allocate_or_fail(capacity, sizeof(uint64_t)), 0};
    assert_ok(bsw_device_allocate(device, capacity * sizeof(uint64_t), "items", &items, &err),
              &err);
    assert_ok(bsw_device_allocate(device, sizeof zeros, "numbers", &numbers, &err), &err);
    assert_ok(
        bsw_device_allocate(device, bsw_device_sort_bytes(1, capacity), "sort", &scratch, &err),
        &err);
    assert_ok(bsw_device_upload(device, BSW_QUEUE_SCAN, numbers.data, zeros, sizeof zeros, &err),
              &err);
    assert_ok(bsw_device_blocks_open(device, 1000, &blocks, &err), &err);
    uint32_t *d_numbers = (uint32_t *)(void *)numbers.data;
    struct bsw_device_list_run run = {
        .device = device,
        .blocks = &blocks,
        .lists = {1, capacity, (uint64_t *)(void *)items.data, d_numbers, d_numbers + 1, {0}},
        .keep = keep,
        .counts = counts,
        .fetched = counts + 1};
    bsw_device_list_run_begin(&run);
    assert_ok(bsw_device_list_run_scan(&run, bundles, scan_even_rows, &even, &err), &err);
    assert_ok(bsw_device_list_run_sort(&run, scratch.data, &err), &err);
    assert_ok(bsw_device_list_run_fetch(&run, even.items, &err), &err);
    assert_int_equal(run.num_samples, 1);
    assert_int_equal(run.num_overflows, 0);
    assert_int_equal(even.rows, run.scanned * 32);
    assert_true(even.rows < 1001000000); // the sample costs next to nothing
    assert_int_equal(counts[0], keep);
    double worst = 4294967296.0 - bsw_candidate_score(even.items[keep - 1]);
    assert_float_equal(worst / 4294967296.0 * 1e9 / keep, 1, 0.01);
    bsw_device_blocks_close(&blocks);
    bsw_device_free(device, &items);
    bsw_device_free(device, &numbers);
    bsw_device_free(device, &scratch);
    bsw_free(&even.items);
    return run.num_segments;
}

UNIT_TEST(many_rows_take_few_segments)
{
    const struct bsw_device_options options = {.num_sharers = 1, .timeout_seconds = 60};
    bsw_device *device;
    assert_ok(bsw_device_open(&options, &device, &err), &err);
    assert_int_equal(scan_many_rows(device, 100, 1 << 16), 2);
    assert_int_equal(scan_many_rows(device, 1000, 1 << 16), 3);
    assert_int_equal(scan_many_rows(device, 1000, 1 << 15), 4); // of 1000 queries
    bsw_device_close(&device);
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
