// SPDX-License-Identifier: Apache-2.0
// Selection alone: one step of kernels/gpu_select on lists of random candidates, which are put back
// before each time. The first and the last list are compared with what plain code makes of the same
// candidates.
#include <stdlib.h>
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "kernels/gpu_select/gpu_select.h"

struct select_case {
    struct device_bench *bench;
    enum device_bench_step step;
    uint32_t num_lists, num_items, keep; // keep: or the rank
    struct bsw_device_buffer memory;
    uint64_t *given, *answers; // device
    unsigned char *scratch;
    struct bsw_device_lists lists;
    uint32_t *numbers; // host: counts and what stands behind them, as they begin
    size_t num_numbers;
};

// ---- what is timed ----

static enum bsw_status restore(void *context, struct bsw_error *err)
{
    const struct select_case *select = context;
    const struct bsw_device_lists *lists = &select->lists;
    bsw_device *device = select->bench->device;
    size_t bytes = (size_t)select->num_lists * select->num_items * sizeof(uint64_t);
    BSW_TRY(bsw_device_copy(device, BSW_QUEUE_SCAN, lists->items, select->given, bytes, err));
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, lists->limits,
                              select->numbers + select->num_numbers,
                              select->num_lists * sizeof(uint32_t), err));
    return bsw_device_upload(device, BSW_QUEUE_SCAN, lists->counts, select->numbers,
                             select->num_numbers * sizeof(uint32_t), err);
}

static enum bsw_status run_step(void *context, struct bsw_error *err)
{
    const struct select_case *select = context;
    const struct bsw_device_lists *lists = &select->lists;
    const struct bsw_device_rank rank = {.rank = select->keep, .is_first = 1};
    switch (select->step) {
    case DEVICE_BENCH_RANK:
        return DEVICE_BENCH_LAUNCH(select->bench, "rank", err, bsw_device_rank_limit, lists, &rank);
    case DEVICE_BENCH_LIMIT:
        return DEVICE_BENCH_LAUNCH(select->bench, "limit", err, bsw_device_limit, lists,
                                   select->keep);
    case DEVICE_BENCH_CUT:
        return DEVICE_BENCH_LAUNCH(select->bench, "cut", err, bsw_device_cut, lists, select->keep);
    case DEVICE_BENCH_SORT:
        return DEVICE_BENCH_LAUNCH(select->bench, "sort", err, bsw_device_sort, lists,
                                   select->scratch);
    case DEVICE_BENCH_LAST:
        break;
    }
    return DEVICE_BENCH_LAUNCH(select->bench, "last step", err, bsw_device_last, lists,
                               select->keep, select->answers);
}

// ---- lists ----

static enum bsw_status allocate(struct select_case *select, struct bsw_error *err)
{
    size_t num = select->num_lists, items = num * select->num_items * sizeof(uint64_t);
    struct bsw_device_lists *lists = &select->lists;
    select->num_numbers = bsw_device_lists_numbers(num);
    const struct device_bench_array arrays[] = {
        {&select->given, items},
        {&lists->items, items},
        {&lists->counts, select->num_numbers * sizeof(uint32_t)},
        {&lists->limits, num * sizeof(uint32_t)},
        {&lists->raised, num * sizeof(uint32_t)},
        {&select->answers, num * select->keep * sizeof(uint64_t)},
        {&select->scratch, bsw_device_sort_bytes(select->num_lists, select->num_items)}};
    BSW_TRY(device_bench_allocate(select->bench, arrays, sizeof arrays / sizeof arrays[0],
                                  &select->memory, err));
    lists->num_queries = select->num_lists;
    lists->capacity = select->num_items;
    lists->overflowed = lists->counts + num;
    lists->hits = (uint64_t *)(void *)(lists->counts + bsw_device_lists_hits_place(num));
    BSW_TRY(bsw_allocate_zero(&select->numbers, select->num_numbers + num, sizeof(uint32_t),
                              "counts", err));
    for (size_t q = 0; q < num; q++) select->numbers[q] = select->num_items;
    return DEVICE_BENCH_LAUNCH(select->bench, "candidates", err, device_bench_make_items,
                               select->given, select->num_lists, select->num_items);
}

// ---- what must come out ----

// The candidates of a list, the best first; for a rank the best of each bundle alone. Returns how
// many.
static uint32_t make_sorted(const struct select_case *select, uint32_t list, uint64_t *out)
{
    uint32_t num = 0;
    for (uint32_t row = 0; row < select->num_items; row++) {
        uint32_t score = (uint32_t)bsw_hash2(DEVICE_BENCH_ITEM_SEED(list), row);
        uint64_t item = bsw_candidate_pack(score, row);
        int is_new = select->step != DEVICE_BENCH_RANK || row % BSW_BUNDLE_ROWS == 0;
        if (is_new) out[num++] = item;
        if (item > out[num - 1]) out[num - 1] = item;
    }
    qsort(out, num, sizeof *out, device_bench_descending);
    return num;
}

// Items that stay, and their limit; UINT32_MAX: none is made.
struct expected {
    uint32_t count, limit;
};

static struct expected expect(const struct select_case *select, const uint64_t *sorted)
{
    uint32_t score = bsw_candidate_score(sorted[select->keep - 1]);
    switch (select->step) {
    case DEVICE_BENCH_RANK:
    case DEVICE_BENCH_LIMIT:
        return (struct expected){0, score};
    case DEVICE_BENCH_CUT:
        return (struct expected){select->keep, score == UINT32_MAX ? score : score + 1};
    case DEVICE_BENCH_SORT:
        return (struct expected){select->num_items, 0};
    case DEVICE_BENCH_LAST:
        break;
    }
    return (struct expected){select->keep, 0};
}

static enum bsw_status fetch(const struct select_case *select, const void *from, void *to,
                             size_t bytes, struct bsw_error *err)
{
    bsw_device *device = select->bench->device;
    BSW_TRY(bsw_device_download(device, BSW_QUEUE_SCAN, to, from, bytes, err));
    return bsw_device_wait(device, BSW_QUEUE_SCAN, "lists", err);
}

// room: twice num_items.
static enum bsw_status check_list(const struct select_case *select, uint32_t list, uint64_t *room,
                                  struct bsw_error *err)
{
    const struct bsw_device_lists *lists = &select->lists;
    uint64_t *items = room + select->num_items;
    uint32_t count, limit;
    make_sorted(select, list, room);
    const struct expected expected = expect(select, room);
    BSW_TRY(fetch(select, lists->counts + list, &count, sizeof count, err));
    BSW_TRY(fetch(select, lists->limits + list, &limit, sizeof limit, err));
    if (count != expected.count || limit != expected.limit)
        return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                        "list %u: %u candidates, limit %08x instead of %u, %08x", list, count,
                        limit, expected.count, expected.limit);
    if (count == 0) return BSW_OK;
    BSW_TRY(fetch(select, lists->items + (size_t)list * select->num_items, items,
                  count * sizeof *items, err));
    if (select->step == DEVICE_BENCH_CUT)
        qsort(items, count, sizeof *items, device_bench_descending);
    if (memcmp(items, room, count * sizeof *items) == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK, "list %u: other candidates", list);
}

static enum bsw_status check(const struct select_case *select, struct bsw_error *err)
{
    uint64_t *room;
    BSW_TRY(bsw_allocate(&room, 2 * (size_t)select->num_items, sizeof *room, "candidates", err));
    enum bsw_status status = check_list(select, 0, room, err);
    if (status == BSW_OK) status = check_list(select, select->num_lists - 1, room, err);
    bsw_free(&room);
    return status;
}

// ---- the case ----

static enum bsw_status measure(struct select_case *select, struct device_record *record,
                               struct bsw_error *err)
{
    BSW_TRY(allocate(select, err));
    BSW_TRY(
        device_bench_time_prepared(select->bench, restore, run_step, select, &record->times, err));
    return check(select, err);
}

enum bsw_status device_bench_select(struct device_bench *bench, const struct device_bench_case *c,
                                    struct bsw_error *err)
{
    const struct device_bench_shape *shape = &c->shape;
    uint64_t rows = bench->settings->rows;
    struct select_case select = {.bench = bench,
                                 .step = shape->step,
                                 .num_lists = device_bench_num_queries(bench, shape),
                                 .num_items =
                                     (uint32_t)(shape->items < rows ? shape->items : rows)};
    uint32_t most = select.num_items / (shape->step == DEVICE_BENCH_RANK ? BSW_BUNDLE_ROWS : 1);
    select.keep = shape->keep < most ? (uint32_t)shape->keep : most;
    struct device_record record = {.name = c->name,
                                   .rows = select.num_items,
                                   .queries = select.num_lists,
                                   .keep = select.keep,
                                   .values = (double)select.num_lists * select.num_items,
                                   .values_name = "candidates",
                                   .is_checked = 1};
    device_bench_codes_free(bench);
    enum bsw_status status = measure(&select, &record, err);
    bsw_device_free(bench->device, &select.memory);
    bsw_free(&select.numbers);
    if (status == BSW_OK) device_bench_report(bench, &record);
    return status;
}
