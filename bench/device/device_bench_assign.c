// SPDX-License-Identifier: Apache-2.0
// Making lists: rows of bytes to their nearest centroids (shard/exact/device_assigner.h), as much
// as one call takes, with all that it does on the host, without and with a screen.
#include <stdio.h>
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/arithmetic.h"
#include "common/base/clock.h"
#include "common/base/memory.h"
#include "kernels/device_scan/device_tuning.h"
#include "shard/exact/device_assigner.h"

#define DIMS         96
#define NUM_LISTS    8192
#define PART         20 // of the bench's rows at most
#define ROWS_A_LIST  4  // at least, where there are fewer rows
#define NUM_CLUSTERS 1000

struct assign_bench {
    struct device_bench *bench;
    size_t num_rows, num_lists;
    unsigned char *rows;
    float *centroids;
    uint32_t *lists;
    bsw_list_assigner *assigner;
    double seconds[DEVICE_BENCH_MOST_REPEATS];
    size_t count;
};

// Rows around random places, and centroids that are some of them.
static enum bsw_status make_rows(struct assign_bench *assign, struct bsw_error *err)
{
    BSW_TRY(bsw_allocate(&assign->rows, assign->num_rows, DIMS, "rows", err));
    BSW_TRY(bsw_allocate(&assign->centroids, assign->num_lists, DIMS * sizeof(float), "rows", err));
    BSW_TRY(bsw_allocate(&assign->lists, assign->num_rows, sizeof *assign->lists, "lists", err));
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < assign->num_rows; r++) {
        uint64_t cluster = bsw_hash2(1, r) % NUM_CLUSTERS;
        for (size_t d = 0; d < DIMS; d++)
            assign->rows[r * DIMS + d] =
                (unsigned char)(bsw_hash2(cluster + 2, d) % 200 + bsw_hash2(r + 5000, d) % 56);
    }
    for (size_t i = 0; i < assign->num_lists * DIMS; i++) {
        size_t row = bsw_part_first(assign->num_rows, i / DIMS, assign->num_lists);
        assign->centroids[i] = (float)assign->rows[row * DIMS + i % DIMS] + 0.25f;
    }
    return BSW_OK;
}

static enum bsw_status run_once(struct assign_bench *assign, struct bsw_error *err)
{
    const struct bsw_list_assignment assignment = {
        .rows = assign->rows, .num_rows = assign->num_rows, .lists = assign->lists};
    return bsw_list_assigner_assign(assign->assigner, &assignment, err);
}

// finder: NULL: the CPU.
static enum bsw_status open_assigner(struct assign_bench *assign,
                                     const struct bsw_list_finder *finder, struct bsw_error *err)
{
    const struct device_bench *bench = assign->bench;
    const struct bsw_list_assigner_needs needs = {.metric = BSW_METRIC_L2,
                                                  .type = BSW_VECTOR_UINT8,
                                                  .dims = DIMS,
                                                  .centroids = assign->centroids,
                                                  .num_lists = assign->num_lists,
                                                  .level = bench->settings->common.level,
                                                  .num_threads =
                                                      (int)bench->settings->common.threads,
                                                  .finder = finder,
                                                  .finder_rows = assign->num_rows};
    return bsw_list_assigner_open(&needs, &assign->assigner, err);
}

static enum bsw_status measure(struct assign_bench *assign, struct bsw_error *err)
{
    struct device_bench *bench = assign->bench;
    const struct bsw_list_finder finder = bsw_device_list_finder(bench->device);
    assign->count = 0;
    BSW_TRY(open_assigner(assign, &finder, err));
    enum bsw_status status = run_once(assign, err); // its first row is compared with the CPU's
    double began = bsw_clock_seconds();
    while (status == BSW_OK && device_bench_wants_more(bench, began, assign->count)) {
        double started = bsw_clock_seconds();
        status = run_once(assign, err);
        assign->seconds[assign->count++] = bsw_clock_seconds() - started;
    }
    bsw_list_assigner_close(&assign->assigner);
    return status;
}

// The device's own tuning with a screen or without.
static enum bsw_status take_tuning(const struct bsw_device_tuning *own, int is_screened,
                                   struct bsw_error *err)
{
    char text[BSW_DEVICE_TUNING_TEXT_BYTES];
    struct bsw_device_tuning row = *own;
    row.has_exact_screen = (uint32_t)is_screened;
    BSW_TRY(bsw_device_tuning_format(&row, text, sizeof text, err));
    return bsw_device_tuning_take("bench", text, err);
}

static enum bsw_status measure_screened(struct assign_bench *assign, const char *name,
                                        int is_screened, struct bsw_error *err)
{
    double pairs = (double)assign->num_rows * (double)assign->num_lists;
    struct device_record record = {.rows = assign->num_rows,
                                   .queries = assign->num_lists,
                                   .values = pairs,
                                   .values_name = "pairs",
                                   .operations = 2 * pairs * DIMS,
                                   .is_checked = 1};
    char text[64];
    BSW_TRY(measure(assign, err));
    snprintf(text, sizeof text, "%s/%s", name, is_screened ? "screen" : "exact");
    record.name = text;
    record.times = device_bench_times_of(assign->seconds, assign->count);
    device_bench_report(assign->bench, &record);
    return BSW_OK;
}

static struct assign_bench begin_assign(struct device_bench *bench, uint64_t rows)
{
    struct assign_bench assign = {.bench = bench,
                                  .num_rows = rows < BSW_FINDER_ROWS ? rows : BSW_FINDER_ROWS};
    assign.num_lists =
        assign.num_rows / ROWS_A_LIST < NUM_LISTS ? assign.num_rows / ROWS_A_LIST + 1 : NUM_LISTS;
    device_bench_codes_free(bench);
    return assign;
}

static void end_assign(struct assign_bench *assign)
{
    bsw_free(&assign->rows);
    bsw_free(&assign->centroids);
    bsw_free(&assign->lists);
}

enum bsw_status device_bench_assign(struct device_bench *bench, const struct device_bench_case *c,
                                    struct bsw_error *err)
{
    const struct bsw_device_tuning own = *bsw_device_tuning_current();
    struct assign_bench assign = begin_assign(bench, bench->settings->rows / PART + 1);
    enum bsw_status status = make_rows(&assign, err);
    for (int i = 0; i < 2 && status == BSW_OK; i++) {
        status = take_tuning(&own, i, err);
        if (status == BSW_OK) status = measure_screened(&assign, c->name, i, err);
    }
    if (status == BSW_OK) status = take_tuning(&own, (int)own.has_exact_screen, err);
    end_assign(&assign);
    return status;
}

// ---- for bench tune ----

// The first is not counted.
static enum bsw_status time_whole(struct assign_bench *assign, const struct bsw_list_finder *finder,
                                  struct bsw_error *err)
{
    double began = 0;
    int is_first = 1;
    while (is_first || device_bench_wants_more(assign->bench, began, assign->count)) {
        double started = bsw_clock_seconds();
        BSW_TRY(open_assigner(assign, finder, err));
        enum bsw_status status = run_once(assign, err);
        bsw_list_assigner_close(&assign->assigner);
        BSW_TRY(status);
        if (is_first)
            began = bsw_clock_seconds();
        else
            assign->seconds[assign->count++] = bsw_clock_seconds() - started;
        is_first = 0;
    }
    return BSW_OK;
}

enum bsw_status device_bench_assign_time(struct device_bench *bench, uint64_t rows, int by_host,
                                         uint64_t *pairs, double *seconds, struct bsw_error *err)
{
    const struct bsw_list_finder finder = bsw_device_list_finder(bench->device);
    struct assign_bench assign = begin_assign(bench, rows);
    enum bsw_status status = make_rows(&assign, err);
    if (status == BSW_OK) status = time_whole(&assign, by_host ? NULL : &finder, err);
    if (status == BSW_OK) *seconds = device_bench_times_of(assign.seconds, assign.count).median;
    *pairs = (uint64_t)assign.num_rows * assign.num_lists;
    end_assign(&assign);
    return status;
}
