// SPDX-License-Identifier: Apache-2.0
// Limits by rank: what is planned, and passes over rows in orders that suit them and in orders that
// do not, by scans of scores that are computed; the kernels are those of the emulated device.
#include <math.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "shard/device/device_lists.h"
#include "unit_test.h"

static struct bsw_error err;

// ---- plans ----

// P(a Poisson variable of that mean >= rank), its terms from the last on.
static double poisson_tail(double mean, uint32_t rank)
{
    double sum = 0;
    for (double i = rank + 400; i >= rank; i--) sum += exp(i * log(mean) - mean - lgamma(i + 1));
    return sum;
}

UNIT_TEST(ranks_are_as_small_as_chance_allows)
{
    static const size_t bundles[] = {64, 1024, 16384, 262144}, keeps[] = {10, 100, 1000, 4096};
    for (size_t b = 0; b < 4; b++) {
        for (size_t k = 0; k < 4; k++) {
            const size_t all = 1 << 20;
            uint32_t rank = bsw_level_rank(bundles[b], all, keeps[k]);
            double mean = (double)keeps[k] * (double)bundles[b] / (double)all;
            assert_true(rank >= 1 && rank <= keeps[k]);
            if (rank == keeps[k]) continue; // sure
            assert_true(poisson_tail(mean, rank) <= 1.001e-7);
            if (mean < 400) assert_true(poisson_tail(mean, rank - 1) > 1e-7);
        }
    }
    assert_int_equal(bsw_level_rank(1000, 1000, 7), 7);
}

static struct bsw_device_levels plan(size_t rows, size_t keep, size_t queries, size_t capacity)
{
    const struct bsw_level_needs needs = {rows / 32, keep, queries, capacity};
    struct bsw_device_levels out;
    bsw_device_levels_plan(&needs, &bsw_device_tuning_find(9, 0)->level_costs, &out);
    return out;
}

// A launch unpacks queries, each level has a scan and its limits, then come all rows and the last
// step.
UNIT_TEST(a_large_pass_has_few_launches_and_hits)
{
    const struct bsw_device_levels levels = plan(10000000, 100, 256, 1 << 16);
    assert_in_range(levels.num, 1, 2);
    assert_true(1 + 2 * levels.num + 2 <= 8);
    assert_true(levels.hits > 0 && levels.hits <= 1000);
    for (size_t rows = 100000; rows <= 1000000000; rows *= 10) {
        const struct bsw_device_levels any = plan(rows, 100, 256, 1 << 16);
        size_t scanned = 0;
        assert_in_range(any.num, 1, BSW_MOST_LEVELS);
        for (size_t i = 0; i < any.num; i++) scanned += any.level[i].bundles * 32;
        assert_true(scanned <= rows / 7 && any.hits <= 2000);
    }
}

// As long as lists of so many queries are on 9.0.
UNIT_TEST(large_batches_have_levels)
{
    const struct bsw_device_tuning *own = bsw_device_tuning_find(9, 0);
    for (size_t rows = 1000000; rows <= 1000000000; rows *= 10) {
        const struct bsw_device_levels levels = plan(rows, 100, 10000, own->all_list_items / 10000);
        assert_in_range(levels.num, 1, BSW_MOST_LEVELS);
        assert_true(levels.hits <= 3000);
    }
}

UNIT_TEST(lists_without_room_have_no_levels)
{
    assert_int_equal(plan(10000000, 100, 256, 132).num, 0);
    assert_int_equal(plan(10000, 100, 256, 1 << 16).num, 0); // too few rows
    assert_int_equal(plan(0, 1, 1, 1 << 16).num, 0);
}

// ---- passes ----

enum { QUERIES = 3 };

enum order {
    RANDOM,
    RISING,
    FALLING,
    EQUAL,
    TIES,      // three scores
    ALIKE,     // the rows of a bundle nearly so
    CLUMPS,    // all of the best together
    IN_SAMPLE, // all of the best in bundles of the last sample
    FEW_ROWS,  // that take part
    NUM_ORDERS
};

struct pass {
    bsw_device *device;
    enum order order;
    size_t bundles;
    struct bsw_device_part sample; // for IN_SAMPLE
    uint32_t capacity;
    uint64_t *items; // [QUERIES][capacity]
    uint64_t appended;
};

static uint32_t random_score(uint32_t query, uint64_t row)
{
    return (uint32_t)bsw_hash2((uint64_t)query + 7, row);
}

static int is_sampled(const struct bsw_device_part *sample, uint64_t bundle)
{
    return bundle >= sample->first && bundle < sample->last &&
           (bundle - sample->first) % sample->step == 0;
}

// 0: the row does not take part.
static uint32_t score_of(const struct pass *pass, uint32_t query, uint64_t row)
{
    uint64_t bundle = row / 32, rows = pass->bundles * 32;
    uint32_t random = random_score(query, row) / 2 + 1;
    switch (pass->order) {
    case RISING:
        return (uint32_t)(row + 1);
    case FALLING:
        return (uint32_t)(rows - row);
    case EQUAL:
        return 5;
    case TIES:
        return 1 + random % 3;
    case ALIKE:
        return random_score(query, bundle) / 2 + random % 64 + 1;
    case CLUMPS:
        return row / 1000 == 37 ? random | 1u << 31 : random;
    case IN_SAMPLE:
        return is_sampled(&pass->sample, bundle) ? random | 1u << 31 : random;
    case FEW_ROWS:
        return row % 1013 == 5 ? random : 0;
    default:
        return random;
    }
}

static enum bsw_status scan(void *context, const struct bsw_device_part *part,
                            const struct bsw_device_lists *lists, struct bsw_error *error)
{
    struct pass *pass = context;
    uint32_t limits[QUERIES], counts[QUERIES];
    size_t bytes = (size_t)QUERIES * pass->capacity * sizeof(uint64_t);
    BSW_TRY(bsw_device_download(pass->device, BSW_QUEUE_SCAN, limits, lists->limits, sizeof limits,
                                error));
    BSW_TRY(bsw_device_download(pass->device, BSW_QUEUE_SCAN, counts, lists->counts, sizeof counts,
                                error));
    BSW_TRY(
        bsw_device_download(pass->device, BSW_QUEUE_SCAN, pass->items, lists->items, bytes, error));
    BSW_TRY(bsw_device_wait(pass->device, BSW_QUEUE_SCAN, "lists", error));
    for (uint32_t q = 0; q < QUERIES; q++) {
        for (uint64_t b = part->first; b < part->last; b += part->step) {
            for (uint64_t row = b * 32; row < b * 32 + 32; row++) {
                uint32_t score = score_of(pass, q, row);
                if (score == 0 || score < limits[q]) continue;
                pass->appended++;
                if (counts[q]++ < pass->capacity)
                    pass->items[q * pass->capacity + counts[q] - 1] =
                        bsw_candidate_pack(score, (uint32_t)row);
            }
        }
    }
    BSW_TRY(
        bsw_device_upload(pass->device, BSW_QUEUE_SCAN, lists->items, pass->items, bytes, error));
    BSW_TRY(bsw_device_upload(pass->device, BSW_QUEUE_SCAN, lists->counts, counts, sizeof counts,
                              error));
    return bsw_device_wait(pass->device, BSW_QUEUE_SCAN, "lists", error);
}

// The best of all rows, as they are to be; *num of them.
static void find_best(const struct pass *pass, uint32_t query, size_t keep, uint64_t *out,
                      uint32_t *num)
{
    size_t count = 0;
    for (size_t row = 0; row < pass->bundles * 32; row++) {
        uint32_t score = score_of(pass, query, row);
        uint64_t item = bsw_candidate_pack(score, (uint32_t)row);
        if (score == 0 || (count == keep && item < out[keep - 1])) continue;
        size_t at = count < keep ? count++ : keep - 1;
        for (; at > 0 && out[at - 1] < item; at--) out[at] = out[at - 1];
        out[at] = item;
    }
    *num = (uint32_t)count;
}

// Where a run's lists lie on the device.
struct memory {
    struct bsw_device_buffer items, numbers, raised, answers;
    struct bsw_device_blocks blocks;
    uint32_t counts[QUERIES], fetched[QUERIES + 4];
};

static void allocate(bsw_device *device, size_t bytes, struct bsw_device_buffer *out)
{
    assert_ok(bsw_device_allocate(device, bytes, "lists", out, &err), &err);
}

// Counts and all that is behind them, limits and what tells of them: 0.
static void clear(bsw_device *device, struct memory *memory)
{
    static const uint32_t zeros[2 * QUERIES + 4];
    memset(memory->counts, 0, sizeof memory->counts);
    assert_ok(
        bsw_device_upload(device, BSW_QUEUE_SCAN, memory->numbers.data, zeros, sizeof zeros, &err),
        &err);
    assert_ok(bsw_device_upload(device, BSW_QUEUE_SCAN, memory->raised.data, zeros,
                                QUERIES * sizeof *zeros, &err),
              &err);
}

static struct bsw_device_list_run open_run(struct pass *pass, size_t keep, struct memory *memory)
{
    allocate(pass->device, (size_t)QUERIES * pass->capacity * 8, &memory->items);
    allocate(pass->device, (2 * QUERIES + 4) * 4, &memory->numbers);
    allocate(pass->device, QUERIES * 4, &memory->raised);
    allocate(pass->device, bsw_device_sort_bytes(QUERIES, pass->capacity), &memory->answers);
    assert_ok(bsw_device_blocks_open(pass->device, 1 << 16, &memory->blocks, &err), &err);
    pass->items = allocate_or_fail((size_t)QUERIES * pass->capacity, sizeof *pass->items);
    clear(pass->device, memory);
    uint32_t *numbers = (uint32_t *)(void *)memory->numbers.data;
    struct bsw_device_list_run run = {
        .device = pass->device,
        .blocks = &memory->blocks,
        .lists = {.num_queries = QUERIES,
                  .capacity = pass->capacity,
                  .items = (uint64_t *)(void *)memory->items.data,
                  .counts = numbers,
                  .limits = numbers + QUERIES + 4,
                  .overflowed = numbers + QUERIES,
                  .raised = (uint32_t *)(void *)memory->raised.data,
                  .hits = (uint64_t *)(void *)(numbers + bsw_device_lists_hits_place(QUERIES))},
        .keep = keep,
        .counts = memory->counts,
        .fetched = memory->fetched};
    bsw_device_list_run_begin(&run);
    return run;
}

static void close_run(struct pass *pass, struct memory *memory)
{
    bsw_device_blocks_close(&memory->blocks);
    bsw_device_free(pass->device, &memory->items);
    bsw_device_free(pass->device, &memory->numbers);
    bsw_device_free(pass->device, &memory->raised);
    bsw_device_free(pass->device, &memory->answers);
    bsw_free(&pass->items);
}

// What the caller does where a pass by levels was not whole.
static void scan_again(struct pass *pass, struct bsw_device_list_run *run, struct memory *memory)
{
    bsw_device_list_run_begin(run);
    clear(pass->device, memory);
    assert_ok(bsw_device_list_run_scan(run, pass->bundles, scan, pass, &err), &err);
    assert_ok(bsw_device_list_run_sort(run, memory->answers.data, &err), &err);
}

static void check_answers(const struct pass *pass, struct bsw_device_list_run *run)
{
    uint64_t *got = allocate_or_fail(QUERIES * run->keep, sizeof *got);
    uint64_t *best = allocate_or_fail(run->keep, sizeof *best);
    assert_ok(bsw_device_list_run_fetch(run, got, &err), &err);
    for (uint32_t q = 0; q < QUERIES; q++) {
        uint32_t num;
        find_best(pass, q, run->keep, best, &num);
        assert_int_equal(run->counts[q], num);
        assert_memory_equal(got + q * run->keep, best, num * sizeof *best);
    }
    bsw_free(&got);
    bsw_free(&best);
}

struct verdict {
    int is_whole;
    uint64_t shorts, overflows, hits, waits;
};

static struct verdict run_pass(bsw_device *device, enum order order, size_t rows, size_t keep,
                               uint32_t capacity)
{
    struct pass pass = {
        .device = device, .order = order, .bundles = rows / 32, .capacity = capacity};
    struct memory memory;
    struct bsw_device_list_run run = open_run(&pass, keep, &memory);
    const struct bsw_device_levels levels = plan(rows, keep, QUERIES, capacity);
    struct verdict out;
    assert_true(levels.num > 0);
    size_t step = pass.bundles / levels.level[levels.num - 1].bundles;
    pass.sample = (struct bsw_device_part){(uint32_t)(step / 2),
                                           (uint32_t)(levels.level[levels.num - 1].bundles * step),
                                           (uint32_t)step};
    uint64_t launches = bsw_device_launches();
    assert_ok(bsw_device_list_run_queue_ahead(&run, pass.bundles, scan, &pass, &err), &err);
    // beside the scans of the levels and of all rows
    assert_int_equal(bsw_device_launches() - launches, levels.num + 1);
    assert_true(run.is_sorted && run.num_samples == levels.num && run.num_segments == 1);
    assert_ok(bsw_device_list_run_end_ahead(&run, &out.is_whole, &err), &err);
    out.shorts = run.num_shorts;
    out.overflows = run.num_overflows;
    out.hits = run.hits;
    out.waits = run.num_waits;
    if (!out.is_whole) scan_again(&pass, &run, &memory);
    check_answers(&pass, &run);
    close_run(&pass, &memory);
    return out;
}

static bsw_device *open_device(void)
{
    const struct bsw_device_options options = {.num_sharers = 1, .timeout_seconds = 60};
    bsw_device *device;
    assert_ok(bsw_device_open(&options, &device, &err), &err);
    return device;
}

// The second way must be taken where it has to be, and only there.
UNIT_TEST(any_order_of_rows_gives_the_best)
{
    bsw_device *device = open_device();
    for (int order = 0; order < NUM_ORDERS; order++) {
        for (size_t keep = 10; keep <= 100; keep += 90) {
            const struct verdict got = run_pass(device, (enum order)order, 64000, keep, 1 << 14);
            int overflows = order == EQUAL || order == TIES, is_short = order == IN_SAMPLE;
            assert_int_equal(got.is_whole, !overflows && !is_short);
            assert_int_equal(got.overflows, overflows);
            assert_int_equal(got.shorts, is_short);
            assert_int_equal(got.waits, 1);
        }
    }
    bsw_device_close(&device);
}

// As many launches and hits as planned, over 10^7 rows, whose scores alone are computed.
UNIT_TEST(ten_million_rows_have_few_hits)
{
    bsw_device *device = open_device();
    const struct verdict got = run_pass(device, RANDOM, 10000000, 100, 1 << 16);
    assert_true(got.is_whole);
    assert_true(got.hits <= 1000 * QUERIES);
    assert_true(got.hits >= 100 * QUERIES);
    bsw_device_close(&device);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
