// bench_plane_scan: one query over a corpus in memory, scan and selection filter, against the
// memory bandwidth of the same run.
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/bench_options.h"
#include "common/clock.h"
#include "common/code_layout.h"
#include "common/integer_hash.h"
#include "common/median.h"
#include "common/memory.h"
#include "common/result_order.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"

#define MAX_REPEATS 99

struct settings {
    uint64_t bytes, dims, bits, query_bits, tile_rows, repeats;
    const char *level_name;
    enum bsw_cpu_level level;
};

struct corpus {
    struct bsw_segment segment;
    size_t num_bundles, tile_bundles, code_bytes;
    uint32_t *codes, *masks, *query;
    uint16_t *scales;
    float *biases;
    int32_t *dots;
    uint64_t *candidates;
};

static volatile uint64_t sink; // keeps the compiler from dropping results

// ---- reading ----

static uint64_t read_plain(const void *memory, size_t bytes)
{
    const uint64_t *words = memory;
    uint64_t sums[4] = {0};
    for (size_t i = 0; i + 4 <= bytes / 8; i += 4) {
        for (size_t k = 0; k < 4; k++) sums[k] += words[i + k];
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}

#if defined(__x86_64__)
// 512 bytes a step; `ahead` bytes are prefetched into the second cache (0: none).
__attribute__((target("avx2"))) static uint64_t read_avx2(const char *memory, size_t bytes,
                                                          size_t ahead)
{
    __m256i sums[4];
    for (int k = 0; k < 4; k++) sums[k] = _mm256_setzero_si256();
    for (size_t i = 0; i + 512 <= bytes; i += 512) {
        const char *at = memory + i;
        for (int k = 0; k < 16; k++) {
            if (ahead && k % 2 == 0) _mm_prefetch(at + ahead + 32 * k, _MM_HINT_T1);
            __m256i x = _mm256_load_si256((const __m256i *)(const void *)(at + 32 * k));
            sums[k % 4] = _mm256_add_epi64(sums[k % 4], x);
        }
    }
    __m256i sum =
        _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
    return (uint64_t)_mm256_extract_epi64(sum, 0) + (uint64_t)_mm256_extract_epi64(sum, 3);
}

__attribute__((target("avx512f"))) static uint64_t read_avx512(const char *memory, size_t bytes,
                                                               size_t ahead)
{
    __m512i sums[4];
    for (int k = 0; k < 4; k++) sums[k] = _mm512_setzero_si512();
    for (size_t i = 0; i + 512 <= bytes; i += 512) {
        const char *at = memory + i;
        for (int k = 0; k < 8; k++) {
            if (ahead) _mm_prefetch(at + ahead + 64 * k, _MM_HINT_T1);
            sums[k % 4] = _mm512_add_epi64(sums[k % 4], _mm512_load_si512(at + 64 * k));
        }
    }
    __m512i sum =
        _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
    return (uint64_t)_mm512_reduce_add_epi64(sum);
}

// Eight pages side by side: more streams for the hardware's prefetchers.
__attribute__((target("avx512f"))) static uint64_t read_pages_avx512(const char *memory,
                                                                     size_t bytes)
{
    __m512i even = _mm512_setzero_si512(), odd = even;
    for (size_t block = 0; block + 8 * 4096 <= bytes; block += 8 * 4096) {
        for (size_t i = 0; i < 4096; i += 128) {
            for (size_t page = 0; page < 8; page++) {
                const char *at = memory + block + page * 4096 + i;
                even = _mm512_add_epi64(even, _mm512_load_si512(at));
                odd = _mm512_add_epi64(odd, _mm512_load_si512(at + 64));
            }
        }
    }
    return (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(even, odd));
}
#endif

#define NUM_READ_METHODS 4
static const char *const read_names[NUM_READ_METHODS] = {"plain", "wide loads", "prefetched",
                                                         "eight pages"};

// Methods a level lacks fall back to the nearest one.
static void read_corpus(const struct settings *settings, const struct corpus *corpus, int method)
{
    const char *memory = (const char *)corpus->codes;
#if defined(__x86_64__)
    size_t ahead = method == 2 ? 8192 : 0;
    if (method == 3 && settings->level == BSW_CPU_AVX512) {
        sink += read_pages_avx512(memory, corpus->code_bytes);
        return;
    }
    if (method > 0 && settings->level == BSW_CPU_AVX512) {
        sink += read_avx512(memory, corpus->code_bytes, ahead);
        return;
    }
    if (method > 0 && settings->level == BSW_CPU_AVX2) {
        sink += read_avx2(memory, corpus->code_bytes, ahead);
        return;
    }
#endif
    (void)settings;
    (void)method;
    sink += read_plain(memory, corpus->code_bytes);
}

// ---- scanning ----

enum { SCAN_ONLY, SCAN_XFBQ, SCAN_SAQ, NUM_SCANS };
static const char *const scan_names[NUM_SCANS] = {"scan alone", "xfbq", "saq"};

// Limits that nothing reaches, so that the filters do what they do almost always.
static void scan_corpus(const struct settings *settings, const struct corpus *corpus, int scan)
{
    const struct bsw_plane_scan_table *planes = bsw_plane_scan_table_get(settings->level);
    const struct bsw_select_table *select = bsw_select_table_get(settings->level);
    uint32_t integer_limit = bsw_score_from_integer(INT32_MAX);
    uint32_t float_limit = bsw_score_from_float(FLT_MAX);
    size_t bundle_words = bsw_segment_bundle_words(&corpus->segment);
    for (size_t b = 0; b < corpus->num_bundles; b += corpus->tile_bundles) {
        size_t n = corpus->num_bundles - b;
        if (n > corpus->tile_bundles) n = corpus->tile_bundles;
        uint32_t row = (uint32_t)(b * BSW_BUNDLE_ROWS);
        planes->dots(&corpus->segment, bsw_all_words(&corpus->segment),
                     corpus->codes + b * bundle_words, n, corpus->query,
                     (unsigned)settings->query_bits, 0, corpus->dots);
        if (scan == SCAN_XFBQ) {
            sink += select->filter_integer(corpus->dots, corpus->masks + b, n, row, integer_limit,
                                           corpus->candidates);
        } else if (scan == SCAN_SAQ) {
            sink += select->filter_affine(corpus->dots, corpus->scales + row, corpus->biases + row,
                                          1.0f, corpus->masks + b, n, row, float_limit,
                                          corpus->candidates);
        }
        sink += (uint64_t)corpus->dots[0];
    }
}

// Bytes of memory that a scan goes through: planes, masks, and for saq scale and bias.
static double scan_bytes(const struct corpus *corpus, int scan)
{
    double rows = (double)corpus->num_bundles * BSW_BUNDLE_ROWS;
    double bytes = (double)corpus->code_bytes;
    if (scan != SCAN_ONLY) bytes += (double)corpus->num_bundles * sizeof *corpus->masks;
    if (scan == SCAN_SAQ) bytes += rows * (sizeof *corpus->scales + sizeof *corpus->biases);
    return bytes;
}

// ---- the program ----

static void fill_corpus(struct corpus *corpus)
{
    uint64_t *words = (uint64_t *)(void *)corpus->codes;
    for (size_t i = 0; i < corpus->code_bytes / 8; i++) words[i] = bsw_hash(i);
    for (size_t b = 0; b < corpus->num_bundles; b++) corpus->masks[b] = 0xffffffffu;
    for (size_t r = 0; r < corpus->num_bundles * BSW_BUNDLE_ROWS; r++) {
        corpus->scales[r] = (uint16_t)(0x3000 + r % 1024);
        corpus->biases[r] = (float)(r % 1000);
    }
}

static enum bsw_status make_corpus(const struct settings *settings, struct corpus *corpus,
                                   struct bsw_error *err)
{
    struct bsw_code_layout layout;
    bsw_code_layout_init(&layout);
    BSW_TRY(
        bsw_code_layout_append(&layout, (uint32_t)settings->dims, (uint32_t)settings->bits, err));
    BSW_TRY(bsw_code_layout_check(&layout, (uint32_t)settings->query_bits, err));
    corpus->segment = layout.segments[0];
    size_t bundle_bytes = bsw_segment_bundle_words(&corpus->segment) * sizeof(uint32_t);
    size_t query_words = bsw_layout_query_words(&layout, (uint32_t)settings->query_bits);
    corpus->num_bundles = settings->bytes / bundle_bytes + 1;
    corpus->tile_bundles = bsw_num_bundles(settings->tile_rows);
    corpus->code_bytes = corpus->num_bundles * bundle_bytes;
    size_t rows = corpus->num_bundles * BSW_BUNDLE_ROWS;
    size_t tile = corpus->tile_bundles * BSW_BUNDLE_ROWS;
    BSW_TRY(bsw_allocate(&corpus->codes, corpus->code_bytes, 1, "codes", err));
    BSW_TRY(bsw_allocate(&corpus->masks, corpus->num_bundles, sizeof(uint32_t), "masks", err));
    BSW_TRY(bsw_allocate(&corpus->scales, rows, sizeof(uint16_t), "scales", err));
    BSW_TRY(bsw_allocate(&corpus->biases, rows, sizeof(float), "biases", err));
    BSW_TRY(bsw_allocate(&corpus->query, query_words, sizeof(uint32_t), "query", err));
    BSW_TRY(bsw_allocate(&corpus->dots, tile, sizeof(int32_t), "dots", err));
    BSW_TRY(bsw_allocate(&corpus->candidates, tile, sizeof(uint64_t), "candidates", err));
    for (size_t i = 0; i < query_words; i++) corpus->query[i] = (uint32_t)bsw_hash(i);
    fill_corpus(corpus);
    return BSW_OK;
}

static void free_corpus(struct corpus *corpus)
{
    bsw_free(&corpus->candidates);
    bsw_free(&corpus->dots);
    bsw_free(&corpus->query);
    bsw_free(&corpus->biases);
    bsw_free(&corpus->scales);
    bsw_free(&corpus->masks);
    bsw_free(&corpus->codes);
}

static void print_table(const struct settings *settings, const struct corpus *corpus,
                        const double read_seconds[NUM_READ_METHODS],
                        const double scan_seconds[NUM_SCANS])
{
    double rows = (double)corpus->num_bundles * BSW_BUNDLE_ROWS, best = 0;
    for (int method = 0; method < NUM_READ_METHODS; method++) {
        double rate = (double)corpus->code_bytes / read_seconds[method] * 1e-9;
        printf("# read, %-12s %8.2f GB/s\n", read_names[method], rate);
        if (rate > best) best = rate;
    }
    printf("# %-12s %6s %6s %6s %12s %14s %10s %8s\n", "what", "dims", "bits", "query", "bytes",
           "rate", "bandwidth", "of read");
    printf("# %-12s %6s %6s %6s %12s %14s %10s %8s\n", "", "", "", "bits", "/document",
           "G documents/s", "GB/s", "");
    for (int scan = 0; scan < NUM_SCANS; scan++) {
        double bytes = scan_bytes(corpus, scan), rate = bytes / scan_seconds[scan] * 1e-9;
        printf("  %-12s %6u %6u %6u %12.2f %14.3f %10.2f %8.3f\n", scan_names[scan],
               corpus->segment.dims, corpus->segment.bits, (unsigned)settings->query_bits,
               bytes / rows, rows / scan_seconds[scan] * 1e-9, rate, rate / best);
    }
}

// Reads and scans take turns, so that a disturbance hits all of them.
static void measure(const struct settings *settings, const struct corpus *corpus)
{
    double reads[NUM_READ_METHODS][MAX_REPEATS], scans[NUM_SCANS][MAX_REPEATS];
    double read_seconds[NUM_READ_METHODS], scan_seconds[NUM_SCANS];
    for (size_t repeat = 0; repeat < settings->repeats; repeat++) {
        for (int method = 0; method < NUM_READ_METHODS; method++) {
            double start = bsw_clock_seconds();
            read_corpus(settings, corpus, method);
            reads[method][repeat] = bsw_clock_seconds() - start;
        }
        for (int scan = 0; scan < NUM_SCANS; scan++) {
            double start = bsw_clock_seconds();
            scan_corpus(settings, corpus, scan);
            scans[scan][repeat] = bsw_clock_seconds() - start;
        }
    }
    for (int i = 0; i < NUM_READ_METHODS; i++)
        read_seconds[i] = bsw_median(reads[i], settings->repeats);
    for (int i = 0; i < NUM_SCANS; i++) scan_seconds[i] = bsw_median(scans[i], settings->repeats);
    print_table(settings, corpus, read_seconds, scan_seconds);
}

static enum bsw_status parse_settings(int argc, char **argv, struct settings *settings, int *help,
                                      struct bsw_error *err)
{
    const struct bsw_option options[] = {
        BENCH_COUNT("bytes", &settings->bytes, "2200M", 1, 1e12,
                    "bytes of codes, several times the last cache"),
        BENCH_COUNT("dims", &settings->dims, "96", 1, BSW_MAX_DIMS, "dimensions"),
        BENCH_COUNT("bits", &settings->bits, "3", 1, BSW_MAX_CODE_BITS,
                    "bits of a document's dimension"),
        BENCH_COUNT("query-bits", &settings->query_bits, "4", 1, BSW_MAX_QUERY_BITS,
                    "bits of the query's dimension"),
        BENCH_COUNT("tile", &settings->tile_rows, "2048", 32, 1048576,
                    "rows between scan and filter"),
        BENCH_COUNT("repeats", &settings->repeats, "7", 5, MAX_REPEATS,
                    "repetitions; the median counts"),
        BENCH_LEVEL(&settings->level_name),
    };
    return bench_parse("bench_plane_scan", "one query over codes in memory", options,
                       sizeof options / sizeof options[0], argc, argv, &settings->level_name,
                       &settings->level, help, err);
}

static enum bsw_status run(const struct settings *settings, struct bsw_error *err)
{
    struct corpus corpus = {0};
    enum bsw_status status = make_corpus(settings, &corpus, err);
    if (status == BSW_OK) {
        printf("# bench_plane_scan %s, level %s, compiler %s\n", BITSWEEP_VERSION,
               bsw_cpu_level_name(settings->level), __VERSION__);
        printf("# one thread, %zu documents, %zu bytes of codes, tiles of %zu rows, median of %d\n",
               corpus.num_bundles * BSW_BUNDLE_ROWS, corpus.code_bytes,
               corpus.tile_bundles * BSW_BUNDLE_ROWS, (int)settings->repeats);
        measure(settings, &corpus);
    }
    free_corpus(&corpus);
    return status;
}

int main(int argc, char **argv)
{
    struct bsw_error err = {0};
    struct settings settings = {0};
    int help;
    enum bsw_status status = parse_settings(argc, argv, &settings, &help, &err);
    if (status == BSW_OK && !help) status = run(&settings, &err);
    if (status != BSW_OK) fprintf(stderr, "bench_plane_scan: %s\n", err.message);
    return bsw_status_exit_code(status);
}
