// bench_encode: one thread. xfbq from memory against the bytes it reads, saq against the
// fused-multiply-add peak measured beside it.
#include <math.h>
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
#include "kernels/encode/encode.h"

#define MAX_REPEATS 99
#define BLOCK_ROWS  128 // rows of one call of saq_project

struct settings {
    uint64_t bytes, bits, repeats;
    const char *level_name;
    enum bsw_cpu_level level;
};

// ---- the peak: independent chains in registers ----

#define PEAK_STEPS 2000000

#if defined(__x86_64__)
#define CHAINS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

// The empty assembly keeps the chains apart: the compiler may not see that they are equal.
#define START_512(i)                        \
    __m512 c##i = _mm512_set1_ps((float)i); \
    __asm__("" : "+v"(c##i));
#define STEP_512(i) c##i = _mm512_fmadd_ps(x, y, c##i);
#define END_512(i)  sum += _mm512_reduce_add_ps(c##i);
#define START_256(i)                        \
    __m256 c##i = _mm256_set1_ps((float)i); \
    __asm__("" : "+x"(c##i));
#define STEP_256(i) c##i = _mm256_fmadd_ps(x, y, c##i);
#define END_256(i)  sum += _mm256_cvtss_f32(c##i);

__attribute__((target("avx512f"))) static float chains_avx512(void)
{
    __m512 x = _mm512_set1_ps(1e-3f), y = _mm512_set1_ps(1e-3f);
    float sum = 0;
    CHAINS(START_512)
    for (int i = 0; i < PEAK_STEPS; i++) {
        CHAINS(STEP_512)
        __asm__ volatile("" : "+v"(x), "+v"(y));
    }
    CHAINS(END_512)
    return sum;
}

__attribute__((target("avx2,fma"))) static float chains_avx2(void)
{
    __m256 x = _mm256_set1_ps(1e-3f), y = _mm256_set1_ps(1e-3f);
    float sum = 0;
    CHAINS(START_256)
    for (int i = 0; i < PEAK_STEPS; i++) {
        CHAINS(STEP_256)
        __asm__ volatile("" : "+x"(x), "+x"(y));
    }
    CHAINS(END_256)
    return sum;
}
#endif

static volatile float float_sink;

// fused multiply-adds a second; 0 where no level with them is built in.
static double measure_peak(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    double start = bsw_clock_seconds(), lanes = level == BSW_CPU_AVX512 ? 16 : 8;
    if (level == BSW_CPU_REFERENCE) return 0;
    float_sink = level == BSW_CPU_AVX512 ? chains_avx512() : chains_avx2();
    return lanes * 12 * PEAK_STEPS / (bsw_clock_seconds() - start);
#else
    (void)level;
    return 0;
#endif
}

// ---- helpers ----

static void fill_floats(float *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        numbers[i] = (float)(int64_t)bsw_hash(i) * 0x1p-63f;
    }
}

// ---- xfbq ----

// As a shard does it: norms, factors, codes, bundle after bundle.
static void encode_xfbq(const struct settings *settings, const float *rows, size_t num_bundles,
                        size_t dims, uint32_t *planes)
{
    const struct bsw_encode_table *encode = bsw_encode_table_get(settings->level);
    unsigned bits = (unsigned)settings->bits;
    size_t bundle_words = bits * ((dims + 31) / 32) * BSW_BUNDLE_ROWS;
    for (size_t b = 0; b < num_bundles; b++) {
        const float *x = rows + b * BSW_BUNDLE_ROWS * dims;
        double norms[BSW_BUNDLE_ROWS];
        float factors[BSW_BUNDLE_ROWS];
        encode->squared_norms(x, BSW_BUNDLE_ROWS, dims, norms);
        for (size_t r = 0; r < BSW_BUNDLE_ROWS; r++) factors[r] = (float)(1.0 / sqrt(norms[r]));
        encode->xfbq(x, BSW_BUNDLE_ROWS, dims, factors, 3.0f, bits, planes + b * bundle_words);
    }
}

static enum bsw_status bench_xfbq(const struct settings *settings, size_t dims,
                                  struct bsw_error *err)
{
    size_t bundle_floats = BSW_BUNDLE_ROWS * dims;
    size_t num_bundles = settings->bytes / (bundle_floats * sizeof(float)) + 1;
    size_t bundle_words = settings->bits * ((dims + 31) / 32) * BSW_BUNDLE_ROWS;
    float *rows = NULL;
    uint32_t *planes = NULL;
    double seconds[MAX_REPEATS];
    enum bsw_status status;
    BSW_TRY_GOTO(bsw_allocate(&rows, num_bundles, bundle_floats * sizeof(float), "rows", err),
                 done);
    BSW_TRY_GOTO(
        bsw_allocate_zero(&planes, num_bundles, bundle_words * sizeof(uint32_t), "planes", err),
        done);
    fill_floats(rows, num_bundles * bundle_floats);
    for (size_t repeat = 0; repeat < settings->repeats; repeat++) {
        double start = bsw_clock_seconds();
        encode_xfbq(settings, rows, num_bundles, dims, planes);
        seconds[repeat] = bsw_clock_seconds() - start;
    }
    double bytes = (double)num_bundles * (double)bundle_floats * sizeof(float);
    double rate = bytes / bsw_median(seconds, settings->repeats);
    printf("  %-6s %6zu %6u %12.1f %14.2f %12s %12s %8s\n", "xfbq", dims, (unsigned)settings->bits,
           rate / (4.0 * (double)dims) * 1e-6, rate * 1e-9, "-", "-", "-");
done:
    bsw_free(&planes);
    bsw_free(&rows);
    return status;
}

// ---- saq ----

#define SAQ_ROWS (8 * BLOCK_ROWS) // in cache, as they are after a read from a file

struct saq_case {
    struct bsw_saq_frame frame;
    size_t num_rows; // encoded in a repetition, a multiple of SAQ_ROWS
    float *rows, *mean, *rotation, *centered, *projected;
    uint32_t *planes;
};

static void encode_saq(const struct settings *settings, const struct saq_case *saq)
{
    const struct bsw_encode_table *encode = bsw_encode_table_get(settings->level);
    const struct bsw_code_layout *layout = &saq->frame.layout;
    size_t bundle_words = bsw_segment_bundle_words(&layout->segments[0]);
    float factors[BLOCK_ROWS], dots[BLOCK_ROWS], norms[32], scales[32];
    uint32_t tails[32];
    for (size_t r = 0; r < BLOCK_ROWS; r++) factors[r] = 1.0f;
    for (size_t row = 0; row < saq->num_rows; row += BLOCK_ROWS) {
        encode->saq_center(&saq->frame, saq->rows + row % SAQ_ROWS * layout->dims, BLOCK_ROWS,
                           factors, saq->centered, dots);
        encode->saq_project(&saq->frame, saq->centered, BLOCK_ROWS, saq->projected);
        for (size_t r = 0; r < BLOCK_ROWS; r += BSW_BUNDLE_ROWS) {
            size_t bundle = (row + r) % SAQ_ROWS / BSW_BUNDLE_ROWS;
            uint32_t *planes = saq->planes + bundle * bundle_words;
            encode->saq_quantize(&saq->frame, saq->projected + r * layout->padded_dims,
                                 BSW_BUNDLE_ROWS, &planes, norms, scales, tails);
        }
        float_sink = dots[0] + norms[0] + scales[0] + (float)tails[0];
    }
}

static void free_saq(struct saq_case *saq)
{
    bsw_free(&saq->planes);
    bsw_free(&saq->projected);
    bsw_free(&saq->centered);
    bsw_free(&saq->rotation);
    bsw_free(&saq->mean);
    bsw_free(&saq->rows);
}

// About 0.1 s of products.
static enum bsw_status make_saq(const struct settings *settings, size_t dims, struct saq_case *saq,
                                struct bsw_error *err)
{
    struct bsw_code_layout *layout = &saq->frame.layout;
    bsw_code_layout_init(layout);
    BSW_TRY(bsw_code_layout_append(layout, (uint32_t)dims, (uint32_t)settings->bits, err));
    size_t padded_dims = layout->padded_dims;
    saq->num_rows = (size_t)(5e9 / ((double)dims * (double)dims)) / SAQ_ROWS * SAQ_ROWS;
    size_t bundle_words = bsw_segment_bundle_words(&layout->segments[0]);
    BSW_TRY(bsw_allocate(&saq->rows, SAQ_ROWS, dims * 4, "rows", err));
    BSW_TRY(bsw_allocate(&saq->mean, dims, 4, "mean", err));
    BSW_TRY(bsw_allocate_zero(&saq->rotation, dims, padded_dims * 4, "rotation", err));
    BSW_TRY(bsw_allocate(&saq->centered, BLOCK_ROWS, dims * 4, "centered", err));
    BSW_TRY(bsw_allocate(&saq->projected, BLOCK_ROWS, padded_dims * 4, "projected", err));
    BSW_TRY(bsw_allocate_zero(&saq->planes, SAQ_ROWS / BSW_BUNDLE_ROWS, bundle_words * 4, "planes",
                              err));
    fill_floats(saq->rows, SAQ_ROWS * dims);
    fill_floats(saq->mean, dims);
    for (size_t j = 0; j < dims; j++) fill_floats(saq->rotation + j * padded_dims, dims);
    saq->frame.metric = BSW_METRIC_COSINE;
    saq->frame.mean = saq->mean;
    saq->frame.rotation = saq->rotation;
    saq->frame.steps[0] = 0.293f;
    saq->frame.stage_dims = dims > 64 ? 64 : (uint32_t)dims;
    return BSW_OK;
}

// The peak is measured in turns with the work, so that a change of clock hits both.
static enum bsw_status bench_saq(const struct settings *settings, size_t dims,
                                 struct bsw_error *err)
{
    struct saq_case saq = {0};
    double seconds[MAX_REPEATS], peaks[MAX_REPEATS];
    enum bsw_status status = make_saq(settings, dims, &saq, err);
    if (status == BSW_OK) {
        for (size_t repeat = 0; repeat < settings->repeats; repeat++) {
            peaks[repeat] = measure_peak(settings->level);
            double start = bsw_clock_seconds();
            encode_saq(settings, &saq);
            seconds[repeat] = bsw_clock_seconds() - start;
        }
        double rows = (double)saq.num_rows / bsw_median(seconds, settings->repeats);
        double products = rows * (double)dims * (double)dims; // of padding: none
        double peak = bsw_median(peaks, settings->repeats);
        printf("  %-6s %6zu %6u %12.3f %14.2f %12.2f %12.2f %8.1f\n", "saq", dims,
               (unsigned)settings->bits, rows * 1e-6, rows * (double)dims * 4e-9, products * 1e-9,
               peak * 1e-9, peak > 0 ? products / peak * 100 : 0.0);
    }
    free_saq(&saq);
    return status;
}

// ---- the program ----

static enum bsw_status run_all(const struct settings *settings, struct bsw_error *err)
{
    static const size_t xfbq_dims[] = {96, 128}, saq_dims[] = {96, 128, 200, 768, 1000};
    printf("# bench_encode %s, level %s, compiler %s\n", BITSWEEP_VERSION,
           bsw_cpu_level_name(settings->level), __VERSION__);
    printf("# one thread, xfbq from %llu bytes of memory, saq from cache in blocks of %d rows, "
           "median of %d\n",
           (unsigned long long)settings->bytes, BLOCK_ROWS, (int)settings->repeats);
    printf("# saq is center, project and quantize; products are dims * dims a row\n");
    printf("# %-6s %6s %6s %12s %14s %12s %12s %8s\n", "what", "dims", "bits", "rows", "input",
           "products", "peak", "of peak");
    printf("# %-6s %6s %6s %12s %14s %12s %12s %8s\n", "", "", "", "M/s", "GB/s float32", "G fma/s",
           "G fma/s", "%");
    for (size_t i = 0; i < sizeof xfbq_dims / sizeof xfbq_dims[0]; i++) {
        BSW_TRY(bench_xfbq(settings, xfbq_dims[i], err));
    }
    for (size_t i = 0; i < sizeof saq_dims / sizeof saq_dims[0]; i++) {
        BSW_TRY(bench_saq(settings, saq_dims[i], err));
    }
    return BSW_OK;
}

static enum bsw_status parse_settings(int argc, char **argv, struct settings *settings, int *help,
                                      struct bsw_error *err)
{
    const struct bsw_option options[] = {
        BENCH_COUNT("bytes", &settings->bytes, "1G", 1, 1e12, "bytes of float32 rows for xfbq"),
        BENCH_COUNT("bits", &settings->bits, "3", 1, BSW_MAX_CODE_BITS, "bits a dimension"),
        BENCH_COUNT("repeats", &settings->repeats, "9", 5, MAX_REPEATS,
                    "repetitions; the median counts"),
        BENCH_LEVEL(&settings->level_name),
    };
    return bench_parse("bench_encode", "vectors to codes, one thread", options,
                       sizeof options / sizeof options[0], argc, argv, &settings->level_name,
                       &settings->level, help, err);
}

int main(int argc, char **argv)
{
    struct bsw_error err = {0};
    struct settings settings = {0};
    int help;
    enum bsw_status status = parse_settings(argc, argv, &settings, &help, &err);
    if (status == BSW_OK && !help) status = run_all(&settings, &err);
    if (status != BSW_OK) fprintf(stderr, "bench_encode: %s\n", err.message);
    return bsw_status_exit_code(status);
}
