// SPDX-License-Identifier: Apache-2.0
// bench memory: what the memory and the units of every rank's cores give at most, all ranks at
// once: the limits that other measurements are compared with.
#include <math.h>
#include <omp.h>
#include <stdio.h>

#include "bench/report/bench_report.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/memory.h"
#include "kernels/limits/limits.h"

#define GRAIN_BYTES  (2 * BSW_LIMITS_BLOCK_BYTES) // both halves of a copy are whole blocks
#define PASS_BYTES   ((uint64_t)16 << 20) // a thread's, at least, between two looks at the clock
#define PEAK_STEPS   200000
#define FILL_STEP    0x9e3779b97f4a7c15u // word i is i times this
#define WRITTEN_WORD 0x5851f42d4c957f2du

enum way { READ_LINES, READ_PAGES, COPY, WRITE, NUM_WAYS };
static const char *const way_names[NUM_WAYS] = {"read", "read pages", "copy", "write"};
static const char *const peak_names[BSW_NUM_PEAKS] = {[BSW_PEAK_INT8] = "int8",
                                                      [BSW_PEAK_FLOAT32] = "float32",
                                                      [BSW_PEAK_FLOAT64] = "float64",
                                                      [BSW_PEAK_POPCOUNT] = "popcount"};

static const struct bsw_bench_column columns[] = {
    {"what", "", "what", 10, BSW_BENCH_TEXT, 1},
    {"size", "B", "bytes", 12, 0, 1},
    {"time", "us", "seconds", 10, 2, 1e6},
    {"slowest", "GB/s", "slowest_rank_bytes_per_second", 9, 2, 1e-9},
    {"fastest", "GB/s", "fastest_rank_bytes_per_second", 9, 2, 1e-9},
    {"all ranks", "GB/s", "bytes_per_second", 9, 2, 1e-9},
    {"slowest", "G/s", "slowest_rank_operations_per_second", 9, 2, 1e-9},
    {"fastest", "G/s", "fastest_rank_operations_per_second", 9, 2, 1e-9},
    {"all ranks", "G/s", "operations_per_second", 9, 2, 1e-9},
};
enum { BANDWIDTH_COLUMN = 5, NUM_COLUMNS = sizeof columns / sizeof columns[0] };

struct memory_options {
    struct bsw_common_options common;
    struct bsw_bench_options bench;
};

// The bench of one rank.
struct memory_bench {
    const struct memory_options *options;
    struct bsw_transport *transport;
    const struct bsw_limits_table *table;
    struct bsw_bench_report report;
    char *memory;           // [max]
    struct result *results; // rank 0: [num_ranks]
    // what is measured now
    enum way way;
    enum bsw_peak peak;
    size_t bytes, passes;
    uint64_t operations, num_wrong; // of the last run
};

// What a rank measured; all of it travels.
struct result {
    double seconds, work; // bytes or operations
    int64_t num_wrong;
};

// ---- memory ----

static uint64_t *words_of(const struct memory_bench *bench)
{
    return (uint64_t *)(void *)bench->memory;
}

// A thread's part of `bytes`, in blocks.
static size_t part_of(size_t bytes, int thread, int num_threads, size_t *first)
{
    uint64_t num_blocks = bytes / BSW_LIMITS_BLOCK_BYTES;
    uint64_t from = bsw_part_first(num_blocks, (uint64_t)thread, (uint64_t)num_threads);
    uint64_t to = bsw_part_first(num_blocks, (uint64_t)thread + 1, (uint64_t)num_threads);
    *first = from * BSW_LIMITS_BLOCK_BYTES;
    return (to - from) * BSW_LIMITS_BLOCK_BYTES;
}

// By the threads that will use it, so that it lies near them.
static void fill(struct memory_bench *bench)
{
    uint64_t *words = words_of(bench);
    size_t num_words = bench->bytes / sizeof *words;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < num_words; i++) words[i] = (uint64_t)i * FILL_STEP;
}

// Counts words that differ from what was written, or from the first ones of which they are copies.
static uint64_t count_different(const uint64_t *words, size_t num_words, int is_written)
{
    uint64_t num_wrong = 0;
#pragma omp parallel for schedule(static) reduction(+ : num_wrong)
    for (size_t i = 0; i < num_words; i++)
        num_wrong += words[i] != (is_written ? WRITTEN_WORD : (uint64_t)i * FILL_STEP);
    return num_wrong;
}

// The sum of words [first, first + num) times FILL_STEP, modulo 2^64.
static uint64_t known_sum(uint64_t first, uint64_t num)
{
    unsigned __int128 pairs = (unsigned __int128)num * (2 * first + num - (num > 0));
    return (uint64_t)(pairs / 2) * FILL_STEP;
}

// A thread's passes over its part; returns whether a sum was wrong.
static uint64_t pass_part(const struct memory_bench *bench, int thread, int num_threads)
{
    size_t half = bench->bytes / 2, first;
    size_t part = part_of(bench->way == COPY ? half : bench->bytes, thread, num_threads, &first);
    char *at = bench->memory + first;
    uint64_t sum = 0;
    for (size_t pass = 0; pass < bench->passes; pass++) {
        switch (bench->way) {
        case READ_LINES:
            sum += bench->table->read[BSW_READ_LINES](at, part);
            break;
        case READ_PAGES:
            sum += bench->table->read[BSW_READ_PAGES](at, part);
            break;
        case COPY:
            bench->table->copy(at + half, at, part);
            break;
        default:
            bench->table->write(at, WRITTEN_WORD, part);
        }
    }
    if (bench->way != READ_LINES && bench->way != READ_PAGES) return 0;
    return sum != bench->passes * known_sum(first / 8, part / 8);
}

static void run_way(void *context)
{
    struct memory_bench *bench = context;
    uint64_t num_wrong = 0;
#pragma omp parallel reduction(+ : num_wrong)
    num_wrong += pass_part(bench, omp_get_thread_num(), omp_get_num_threads());
    bench->num_wrong = num_wrong;
}

static int64_t count_errors(const struct memory_bench *bench)
{
    size_t num_words = bench->bytes / 8;
    if (!bsw_bench_is_checked(&bench->options->bench)) return BSW_BENCH_UNCHECKED;
    if (BSW_FAULT(FLIP, 1, 0)) words_of(bench)[num_words - 1] ^= 1;
    if (bench->way == COPY)
        return (int64_t)count_different(words_of(bench) + num_words / 2, num_words / 2, 0);
    if (bench->way == WRITE) return (int64_t)count_different(words_of(bench), num_words, 1);
    return (int64_t)bench->num_wrong;
}

// ---- units ----

static void run_peak(void *context)
{
    struct memory_bench *bench = context;
    uint64_t operations = 0, num_wrong = 0;
#pragma omp parallel reduction(+ : operations, num_wrong)
    operations += bench->table->peaks[bench->peak](PEAK_STEPS, &num_wrong);
    bench->operations = operations;
    bench->num_wrong = num_wrong;
}

// ---- rows ----

static void show_row(struct memory_bench *bench, const char *what, int is_peak)
{
    double seconds = 0, sum = 0, slowest = (double)INFINITY, fastest = 0;
    int64_t errors = 0;
    for (int rank = 0; rank < bench->transport->num_ranks; rank++) {
        const struct result *result = &bench->results[rank];
        double rate = result->work / result->seconds;
        sum += rate;
        slowest = fmin(slowest, rate);
        fastest = fmax(fastest, rate);
        seconds = fmax(seconds, result->seconds);
        errors = result->num_wrong == BSW_BENCH_UNCHECKED ? BSW_BENCH_UNCHECKED
                                                          : errors + result->num_wrong;
    }
    const struct bsw_bench_value values[NUM_COLUMNS] = {
        bsw_bench_text(what),
        bsw_bench_number_if(!is_peak, (double)bench->bytes),
        bsw_bench_number(seconds),
        bsw_bench_number_if(!is_peak, slowest),
        bsw_bench_number_if(!is_peak, fastest),
        bsw_bench_number_if(!is_peak, sum),
        bsw_bench_number_if(is_peak, slowest),
        bsw_bench_number_if(is_peak, fastest),
        bsw_bench_number_if(is_peak, sum)};
    bsw_bench_report_row(&bench->report, values, errors);
}

// All ranks start together, as far as a message allows.
static enum bsw_status take_times(struct memory_bench *bench, void (*work)(void *), double *seconds,
                                  struct bsw_error *err)
{
    struct bsw_bench_run run = {.work = work, .context = bench};
    BSW_TRY(bsw_transport_agree(bench->transport, BSW_OK, err));
    bsw_bench_take_turns(&bench->options->bench, bsw_clock_seconds, &run, 1);
    *seconds = run.seconds;
    return BSW_OK;
}

static enum bsw_status show_results(struct memory_bench *bench, const struct result *own,
                                    const char *what, int is_peak, struct bsw_error *err)
{
    BSW_TRY(bsw_bench_report_gather(&bench->report, own, sizeof *own, bench->results, err));
    if (bench->transport->rank == 0) show_row(bench, what, is_peak);
    return BSW_OK;
}

static enum bsw_status measure_way(struct memory_bench *bench, enum way way, struct bsw_error *err)
{
    uint64_t all = PASS_BYTES * bench->options->common.threads;
    struct result own = {0};
    double seconds;
    bench->way = way;
    bench->passes = bench->bytes < all ? all / bench->bytes : 1;
    BSW_TRY(take_times(bench, run_way, &seconds, err));
    own.seconds = seconds / (double)bench->passes;
    own.work = (double)bench->bytes;
    own.num_wrong = count_errors(bench);
    return show_results(bench, &own, way_names[way], 0, err);
}

static enum bsw_status measure_peak(struct memory_bench *bench, enum bsw_peak peak,
                                    struct bsw_error *err)
{
    struct result own = {0};
    bench->peak = peak;
    BSW_TRY(take_times(bench, run_peak, &own.seconds, err));
    own.work = (double)bench->operations;
    own.num_wrong = bsw_bench_is_checked(&bench->options->bench) ? (int64_t)bench->num_wrong
                                                                 : BSW_BENCH_UNCHECKED;
    return show_results(bench, &own, peak_names[peak], 1, err);
}

static enum bsw_status measure_all(struct memory_bench *bench, struct bsw_error *err)
{
    const struct bsw_bench_options *sizes = &bench->options->bench;
    for (int peak = 0; peak < BSW_NUM_PEAKS; peak++)
        BSW_TRY(measure_peak(bench, (enum bsw_peak)peak, err));
    for (uint64_t size = sizes->min; size; size = bsw_bench_next_size(sizes, size)) {
        bench->bytes = size / GRAIN_BYTES * GRAIN_BYTES;
        fill(bench);
        for (int way = 0; way < NUM_WAYS; way++) BSW_TRY(measure_way(bench, (enum way)way, err));
    }
    return BSW_OK;
}

// ---- the command ----

static enum bsw_status open_and_measure(struct memory_bench *bench, struct bsw_error *err)
{
    const struct memory_options *o = bench->options;
    const struct bsw_bench_report_options report = {.name = "memory",
                                                    .common = &o->common,
                                                    .bench = &o->bench,
                                                    .columns = columns,
                                                    .num_columns = NUM_COLUMNS,
                                                    .main_column = BANDWIDTH_COLUMN};
    BSW_TRY(bsw_bench_report_open(&bench->report, &report, bench->transport, err));
    bsw_bench_report_note(&bench->report,
                          "size: memory of a rank, shared out to its threads; bytes that are read "
                          "or written, of a copy both");
    enum bsw_status status =
        bsw_allocate(&bench->memory, o->bench.max / GRAIN_BYTES, GRAIN_BYTES, "memory", err);
    if (status == BSW_OK && bench->transport->rank == 0)
        status = bsw_allocate(&bench->results, (size_t)bench->transport->num_ranks,
                              sizeof *bench->results, "results", err);
    BSW_TRY(bsw_transport_agree(bench->transport, status, err));
    return measure_all(bench, err);
}

#define OPTION(name, member, ...) BSW_OPTION(struct memory_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    BSW_BENCH_OPTIONS(struct memory_options, "bytes a rank, 1024 at least", "32K", "1G", "4", "9",
                      "GB/s"),
    BSW_OPTION_GROUP(struct memory_options, common, bsw_common_option_group),
};

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    const struct memory_options *o = options;
    BSW_TRY(bsw_bench_options_check(&o->bench, err));
    if (o->bench.min < GRAIN_BYTES)
        return bsw_fail(err, BSW_ERROR_USAGE, "--min %llu is below %d",
                        (unsigned long long)o->bench.min, GRAIN_BYTES);
    struct memory_bench bench = {
        .options = o, .transport = transport, .table = bsw_limits_table_get(o->common.level)};
    enum bsw_status status = open_and_measure(&bench, err);
    bsw_free(&bench.results);
    bsw_free(&bench.memory);
    return bsw_bench_report_close(&bench.report, status, err);
}

const struct bsw_command bsw_bench_memory =
    BSW_COMMAND("bench memory", "bandwidth and arithmetic of every rank's cores, all ranks at once",
                struct memory_options, BSW_ALL_RANKS);
