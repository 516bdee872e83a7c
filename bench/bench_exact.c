// bench_exact: keys of a tile of rows and queries on one thread, against the fused multiply-adds
// that the core does at best, measured in the same run.
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/bench_options.h"
#include "common/clock.h"
#include "common/integer_hash.h"
#include "common/median.h"
#include "common/memory.h"
#include "kernels/exact/exact.h"
#include "kernels/refine/refine.h"

#define MAX_REPEATS 99

struct settings {
    uint64_t dims, rows, queries, repeats;
    const char *level_name;
    enum bsw_cpu_level level;
};

// Integers in both forms, with their norms.
struct vectors {
    double *numbers, *norms;
    int16_t *integers;
};

// ---- the peak ----

#define PEAK_STEPS    1000000
#define NUM_CHAINS    12 // more than latency times units; variables, so that they stay in registers
#define EACH_CHAIN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

static volatile double sink; // keeps the compiler from dropping sums

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static double run_peak_avx2(void)
{
    const __m256d half = _mm256_set1_pd(0.5);
    __m256d sum = half;
#define START(i)  __m256d s##i = _mm256_set1_pd(i);
#define STEP(i)   s##i = _mm256_fmadd_pd(s##i, half, half);
#define FINISH(i) sum = _mm256_add_pd(sum, s##i);
    EACH_CHAIN(START)
    for (int step = 0; step < PEAK_STEPS; step++) {
        EACH_CHAIN(STEP)
    }
    EACH_CHAIN(FINISH)
#undef START
#undef STEP
#undef FINISH
    sink = _mm256_cvtsd_f64(sum);
    return 4.0 * NUM_CHAINS * PEAK_STEPS;
}

__attribute__((target("avx512f"))) static double run_peak_avx512(void)
{
    const __m512d half = _mm512_set1_pd(0.5);
    __m512d sum = half;
#define START(i)  __m512d s##i = _mm512_set1_pd(i);
#define STEP(i)   s##i = _mm512_fmadd_pd(s##i, half, half);
#define FINISH(i) sum = _mm512_add_pd(sum, s##i);
    EACH_CHAIN(START)
    for (int step = 0; step < PEAK_STEPS; step++) {
        EACH_CHAIN(STEP)
    }
    EACH_CHAIN(FINISH)
#undef START
#undef STEP
#undef FINISH
    sink = _mm512_cvtsd_f64(sum);
    return 8.0 * NUM_CHAINS * PEAK_STEPS;
}
#endif

static double run_peak_plain(void)
{
    double sum = 0.0;
#define START(i)  double s##i = i;
#define STEP(i)   s##i = s##i * 0.5 + 0.5;
#define FINISH(i) sum += s##i;
    EACH_CHAIN(START)
    for (int step = 0; step < PEAK_STEPS; step++) {
        EACH_CHAIN(STEP)
    }
    EACH_CHAIN(FINISH)
#undef START
#undef STEP
#undef FINISH
    sink = sum;
    return (double)NUM_CHAINS * PEAK_STEPS;
}

// Runs float64 multiply-adds in registers of the level's width; returns how many. The reference is
// held to the best there is.
static double run_peak(enum bsw_cpu_level level)
{
    if (level == BSW_CPU_REFERENCE) level = bsw_cpu_level_detect();
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return run_peak_avx512();
    if (level >= BSW_CPU_AVX2) return run_peak_avx2();
#endif
    return run_peak_plain();
}

// ---- the keys ----

static enum bsw_status make_vectors(size_t num, size_t dims, uint64_t seed, struct vectors *out,
                                    struct bsw_error *err)
{
    size_t total;
    if (!bsw_multiply_size(num, dims, &total))
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%zu vectors of %zu dimensions", num, dims);
    BSW_TRY(bsw_allocate(&out->numbers, total, sizeof(double), "numbers", err));
    BSW_TRY(bsw_allocate(&out->integers, total, sizeof(int16_t), "integers", err));
    BSW_TRY(bsw_allocate(&out->norms, num, sizeof(double), "norms", err));
    for (size_t i = 0; i < total; i++) {
        out->integers[i] = (int16_t)(bsw_hash2(seed, i) % 256);
        out->numbers[i] = out->integers[i];
    }
    for (size_t r = 0; r < num; r++)
        out->norms[r] = bsw_refine_reference.squared_norm(out->numbers + r * dims, dims);
    return BSW_OK;
}

static void free_vectors(struct vectors *vectors)
{
    bsw_free(&vectors->norms);
    bsw_free(&vectors->integers);
    bsw_free(&vectors->numbers);
}

struct tile {
    struct vectors rows, queries;
    float *keys;
};

static void run_keys(const struct settings *settings, const struct tile *tile, int integers,
                     enum bsw_metric metric)
{
    const struct bsw_exact_table *table = bsw_exact_table_get(settings->level);
    if (integers)
        table->keys_int16(metric, tile->rows.integers, settings->rows, tile->rows.norms,
                          tile->queries.integers, settings->queries, tile->queries.norms,
                          settings->dims, tile->keys);
    else
        table->keys_double(metric, tile->rows.numbers, settings->rows, tile->rows.norms,
                           tile->queries.numbers, settings->queries, tile->queries.norms,
                           settings->dims, tile->keys);
}

// G multiply-adds/s: [form][metric], form 0 float64 and 1 int16.
static void print_table(const struct settings *settings, double peak,
                        double rates[2][BSW_METRIC_NUM])
{
    static const char *const functions[2] = {"keys_double", "keys_int16"};
    printf("# float64 peak %.1f G multiply-adds/s\n", peak);
    printf("# %-12s %-8s %6s %8s %16s %10s %10s\n", "function", "metric", "dims", "pairs", "rate",
           "of peak", "pairs");
    printf("# %-12s %-8s %6s %8s %16s %10s %10s\n", "", "", "", "", "G mul-adds/s", "", "M/s");
    for (int form = 0; form < 2; form++) {
        for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
            double rate = rates[form][metric];
            printf("  %-12s %-8s %6d %8.0f %16.1f %10.3f %10.1f\n", functions[form],
                   bsw_metric_name((enum bsw_metric)metric), (int)settings->dims,
                   (double)settings->rows * (double)settings->queries, rate, rate / peak,
                   rate * 1e3 / (double)settings->dims);
        }
    }
}

// Peak and keys take turns, so that a disturbance hits all of them.
static void measure(const struct settings *settings, const struct tile *tile)
{
    double peaks[MAX_REPEATS], runs[2][BSW_METRIC_NUM][MAX_REPEATS], rates[2][BSW_METRIC_NUM];
    double work = (double)settings->rows * (double)settings->queries * (double)settings->dims;
    for (size_t repeat = 0; repeat < settings->repeats; repeat++) {
        double start = bsw_clock_seconds();
        double done = run_peak(settings->level);
        peaks[repeat] = done / (bsw_clock_seconds() - start) * 1e-9;
        for (int form = 0; form < 2; form++) {
            for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
                start = bsw_clock_seconds();
                run_keys(settings, tile, form, (enum bsw_metric)metric);
                runs[form][metric][repeat] = work / (bsw_clock_seconds() - start) * 1e-9;
            }
        }
    }
    for (int form = 0; form < 2; form++)
        for (int metric = 0; metric < BSW_METRIC_NUM; metric++)
            rates[form][metric] = bsw_median(runs[form][metric], settings->repeats);
    print_table(settings, bsw_median(peaks, settings->repeats), rates);
}

static enum bsw_status run_bench(const struct settings *settings, struct bsw_error *err)
{
    struct tile tile = {0};
    enum bsw_status status = make_vectors(settings->rows, settings->dims, 1, &tile.rows, err);
    if (status == BSW_OK)
        status = make_vectors(settings->queries, settings->dims, 2, &tile.queries, err);
    if (status == BSW_OK)
        status = bsw_allocate(&tile.keys, settings->rows * settings->queries, sizeof(float), "keys",
                              err);
    if (status == BSW_OK) {
        printf("# bench_exact %s, level %s, compiler %s\n", BITSWEEP_VERSION,
               bsw_cpu_level_name(settings->level), __VERSION__);
        printf("# one thread, %d rows x %d queries, integers 0 .. 255, median of %d\n",
               (int)settings->rows, (int)settings->queries, (int)settings->repeats);
        measure(settings, &tile);
    }
    bsw_free(&tile.keys);
    free_vectors(&tile.queries);
    free_vectors(&tile.rows);
    return status;
}

static enum bsw_status run(int argc, char **argv, struct bsw_error *err)
{
    struct settings settings = {0};
    const struct bsw_option options[] = {
        BENCH_COUNT("dims", &settings.dims, "128", 1, BSW_EXACT_INTEGER_MAX_DIMS, "dimensions"),
        BENCH_COUNT("rows", &settings.rows, "1920", 1, 1048576, "rows of the tile"),
        BENCH_COUNT("queries", &settings.queries, "96", 1, 65536, "queries of the tile"),
        BENCH_COUNT("repeats", &settings.repeats, "21", 5, MAX_REPEATS,
                    "repetitions; the median counts"),
        BENCH_LEVEL(&settings.level_name),
    };
    int help = 0;
    BSW_TRY(bench_parse("bench_exact", "exact keys of a tile on one thread", options,
                        sizeof options / sizeof options[0], argc, argv, &settings.level_name,
                        &settings.level, &help, err));
    if (help) return BSW_OK;
    return run_bench(&settings, err);
}

int main(int argc, char **argv)
{
    struct bsw_error err = {0};
    enum bsw_status status = run(argc, argv, &err);
    if (status != BSW_OK) fprintf(stderr, "bench_exact: %s\n", err.message);
    return bsw_status_exit_code(status);
}
