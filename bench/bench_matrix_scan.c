// bench_matrix_scan: batches of queries over a corpus in memory, selection included, on int8 units
// (matrix_scan) and on planes (plane_scan and the filter of select), against the peak of the dot
// product instruction in the same run. Shows from which batch on unpacking pays. With --stage the
// progressive scan instead, against the full one, at limits that a share of the rows may reach.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/bench_options.h"
#include "common/clock.h"
#include "common/code_layout.h"
#include "common/half.h"
#include "common/integer_hash.h"
#include "common/median.h"
#include "common/memory.h"
#include "common/result_order.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"
#include "shard/running_best.h"

#define DIMS            128
#define PLANE_TILE_ROWS 2048 // as shard_scan.c has it
#define MAX_REPEATS     99
#define SAMPLE_BUNDLES  128     // from which the limits for a stage are taken
#define PEAK_STEPS      2000000 // of 12 instructions: some 5 ms
#define LENGTH(array)   (sizeof(array) / sizeof(array)[0])

static const char *const layout_texts[] = {"32x4,32x2,64x1", "32x5,32x3,64x2"};
static const size_t batches[] = {1, 2, 4, 8, 16, 32, 64, 256, 1000};

struct settings {
    uint64_t rows, queries, query_bits, keep, tile_rows, repeats, stage;
    double share; // of half bundles that go on after the stage
    const char *level_name;
    enum bsw_cpu_level level;
};

struct bench {
    const struct settings *settings;
    const struct bsw_matrix_scan_table *matrix;
    const struct bsw_plane_scan_table *plane;
    const struct bsw_select_table *select;
    struct bsw_code_layout layout;
    size_t num_bundles, query_words;
    uint32_t *planes[BSW_MAX_SEGMENTS];
    uint32_t *masks;
    uint16_t *scales;
    float *biases;
    uint32_t *query_planes; // [queries][query_words]
    int8_t *components;     // [queries][padded_dims]
    int32_t *constants;
    float *query_scales;
    uint8_t *bytes; // of a tile
    int32_t *dots;  // of a tile and query
    struct bsw_running_best *lists;
    struct bsw_matrix_output *outputs;
    uint64_t *items, *scratch;
    // With --stage; a tail is the document's scale.
    int32_t *stage_constants;
    float *reaches, *slacks;
    uint32_t *limits;
    float *sample; // [queries][2 * SAMPLE_BUNDLES]: best bounds of half bundles
};

static volatile uint64_t sink; // keeps the compiler from dropping results

// ---- peak ----

#if defined(__x86_64__)
// Named sums: gcc keeps an array of them in memory.
#define EACH_SUM(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define START_SUM(i) __m512i s##i = _mm512_setzero_si512();
#define STEP_SUM(i)                         \
    s##i = _mm512_dpbusd_epi32(s##i, u, q); \
    __asm__("" : "+v"(s##i));
#define DRAIN_SUM(i) sink += (uint64_t)_mm512_reduce_add_epi32(s##i);

// Multiply-adds in PEAK_STEPS steps of 12 independent dot products.
__attribute__((target("avx512f,avx512vnni"))) static double multiply_registers(void)
{
    __m512i u = _mm512_set1_epi8(3), q = _mm512_set1_epi8(-5);
    EACH_SUM(START_SUM)
    for (long step = 0; step < PEAK_STEPS; step++) {
        EACH_SUM(STEP_SUM)
    }
    EACH_SUM(DRAIN_SUM)
    return 12.0 * 64 * PEAK_STEPS;
}
#endif

// Multiply-adds a second; 0 where the level lacks the instruction.
static double measure_peak(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level == BSW_CPU_AVX512) {
        double start = bsw_thread_seconds(), work = multiply_registers();
        return work / (bsw_thread_seconds() - start);
    }
#endif
    (void)level;
    return 0;
}

// ---- scanning ----

static size_t tile_at(const struct bench *bench, size_t bundle, size_t tile_rows)
{
    size_t rest = bench->num_bundles - bundle, most = bsw_num_bundles(tile_rows);
    return rest < most ? rest : most;
}

static void unpack_tile(const struct bench *bench, size_t bundle, size_t num_bundles)
{
    const uint32_t *planes[BSW_MAX_SEGMENTS];
    for (uint32_t s = 0; s < bench->layout.num_segments; s++)
        planes[s] =
            bench->planes[s] + bundle * bsw_segment_bundle_words(&bench->layout.segments[s]);
    bench->matrix->unpack(&bench->layout, planes, num_bundles, bench->bytes);
}

static void unpack_corpus(const struct bench *bench, size_t batch)
{
    (void)batch;
    for (size_t b = 0, num; b < bench->num_bundles; b += num) {
        num = tile_at(bench, b, bench->settings->tile_rows);
        unpack_tile(bench, b, num);
        sink += bench->bytes[0];
    }
}

// A list is cut when it has no room for one more tile.
static void reset_lists(const struct bench *bench, size_t batch, size_t tile_rows)
{
    size_t keep = bench->settings->keep, capacity = bsw_running_best_capacity(keep, tile_rows);
    for (size_t q = 0; q < batch; q++)
        bsw_running_best_init(&bench->lists[q], bench->items + q * capacity, capacity, keep);
}

static void make_room(const struct bench *bench, struct bsw_running_best *list, size_t num_bundles)
{
    if (list->count + num_bundles * BSW_BUNDLE_ROWS > list->capacity)
        bsw_running_best_cut(list, bench->select, bench->scratch);
}

static struct bsw_matrix_queries queries_of(const struct bench *bench, size_t batch)
{
    return (struct bsw_matrix_queries){.num_queries = batch,
                                       .components = bench->components,
                                       .constants = bench->constants,
                                       .scales = bench->query_scales};
}

// The tile from a bundle on, unpacked.
static struct bsw_matrix_tile make_tile(const struct bench *bench, size_t bundle)
{
    size_t row = bundle * BSW_BUNDLE_ROWS;
    size_t num_bundles = tile_at(bench, bundle, bench->settings->tile_rows);
    unpack_tile(bench, bundle, num_bundles);
    return (struct bsw_matrix_tile){.bytes = bench->bytes,
                                    .num_bundles = num_bundles,
                                    .padded_dims = bench->layout.padded_dims,
                                    .first_row = (uint32_t)row,
                                    .masks = bench->masks + bundle,
                                    .scales = bench->scales + row,
                                    .biases = bench->biases + row,
                                    .tails = bench->scales + row};
}

static void scan_matrix(const struct bench *bench, size_t batch)
{
    const struct bsw_matrix_queries queries = queries_of(bench, batch);
    struct bsw_matrix_tile tile;
    reset_lists(bench, batch, bench->settings->tile_rows);
    for (size_t b = 0; b < bench->num_bundles; b += tile.num_bundles) {
        tile = make_tile(bench, b);
        for (size_t q = 0; q < batch; q++) {
            struct bsw_running_best *list = &bench->lists[q];
            make_room(bench, list, tile.num_bundles);
            bench->outputs[q] = (struct bsw_matrix_output){list->items, list->count, list->limit};
        }
        bench->matrix->scan(&tile, &queries, bench->outputs);
        for (size_t q = 0; q < batch; q++) bench->lists[q].count = bench->outputs[q].count;
    }
}

static void plane_dots(const struct bench *bench, size_t query, size_t bundle, size_t num_bundles)
{
    const uint32_t *words = bench->query_planes + query * bench->query_words;
    for (uint32_t s = 0; s < bench->layout.num_segments; s++) {
        const struct bsw_segment *segment = &bench->layout.segments[s];
        bench->plane->dots(segment, bsw_all_words(segment),
                           bench->planes[s] + bundle * bsw_segment_bundle_words(segment),
                           num_bundles, words, (unsigned)bench->settings->query_bits, s > 0,
                           bench->dots);
        words += segment->words * bench->settings->query_bits;
    }
}

static void scan_planes(const struct bench *bench, size_t batch)
{
    reset_lists(bench, batch, PLANE_TILE_ROWS);
    for (size_t b = 0, num; b < bench->num_bundles; b += num) {
        size_t row = b * BSW_BUNDLE_ROWS;
        num = tile_at(bench, b, PLANE_TILE_ROWS);
        for (size_t q = 0; q < batch; q++) {
            struct bsw_running_best *list = &bench->lists[q];
            make_room(bench, list, num);
            plane_dots(bench, q, b, num);
            list->count += bench->select->filter_affine(
                bench->dots, bench->scales + row, bench->biases + row, bench->query_scales[q],
                bench->masks + b, num, (uint32_t)row, list->limit, list->items + list->count);
        }
    }
}

// What the lists hold, whatever way they were filled.
static uint64_t lists_digest(const struct bench *bench, size_t batch)
{
    uint64_t digest = 0;
    for (size_t q = 0; q < batch; q++) {
        bsw_running_best_cut(&bench->lists[q], bench->select, bench->scratch);
        for (size_t i = 0; i < bench->lists[q].count; i++)
            digest += bsw_hash2(q, bench->lists[q].items[i]);
    }
    return digest;
}

// ---- a stage ----

// Constants of the stage, and what the rest of the dimensions can add at most to any document.
static void prepare_stage(struct bench *bench)
{
    const int8_t *component = bench->components;
    for (size_t q = 0; q < bench->settings->queries; q++) {
        int32_t constant = 0, rest = 0;
        for (uint32_t s = 0; s < bench->layout.num_segments; s++) {
            const struct bsw_segment *segment = &bench->layout.segments[s];
            for (uint32_t i = 0; i < 32 * segment->words; i++, component++) {
                int32_t most = ((1 << segment->bits) - 1) * *component;
                if (segment->padded_dim + i < bench->settings->stage)
                    constant += most;
                else
                    rest += abs(most);
            }
        }
        bench->stage_constants[q] = constant;
        bench->reaches[q] = bench->query_scales[q] * (float)rest;
        bench->slacks[q] = 1e-5f * bench->reaches[q];
    }
}

// The best bound of half a bundle's rows, roughly.
static float half_bound(const struct bench *bench, const struct bsw_matrix_tile *tile, size_t half,
                        size_t query)
{
    const uint8_t *bytes = tile->bytes + half * 16 * tile->padded_dims;
    const int8_t *components = bench->components + query * tile->padded_dims;
    int32_t sums[16] = {0};
    float best = -INFINITY;
    for (size_t i = 0; i < bench->settings->stage; i++) {
        for (size_t r = 0; r < 16; r++)
            sums[r] += bytes[(i / 4 * 16 + r) * 4 + i % 4] * components[i];
    }
    for (size_t r = 0; r < 16; r++) {
        float dot = (float)(bench->stage_constants[query] - 2 * sums[r]);
        float scale = bsw_half_to_float(tile->scales[half * 16 + r]);
        float bound = scale * (bench->query_scales[query] * dot + bench->reaches[query]) +
                      tile->biases[half * 16 + r];
        if (bound > best) best = bound;
    }
    return best;
}

static int compare_descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

// Limits that the given share of half bundles may reach, from a sample of them.
static void choose_limits(struct bench *bench)
{
    size_t num_bundles = bench->num_bundles < SAMPLE_BUNDLES ? bench->num_bundles : SAMPLE_BUNDLES;
    size_t place = (size_t)(bench->settings->share * 2 * (double)num_bundles);
    struct bsw_matrix_tile tile;
    for (size_t b = 0; b < num_bundles; b += tile.num_bundles) {
        tile = make_tile(bench, b);
        for (size_t q = 0; q < bench->settings->queries; q++) {
            float *bounds = bench->sample + q * 2 * SAMPLE_BUNDLES + 2 * b;
            for (size_t h = 0; h < 2 * tile.num_bundles && b + h / 2 < num_bundles; h++)
                bounds[h] = half_bound(bench, &tile, h, q);
        }
    }
    for (size_t q = 0; q < bench->settings->queries; q++) {
        float *bounds = bench->sample + q * 2 * SAMPLE_BUNDLES;
        qsort(bounds, 2 * num_bundles, sizeof *bounds, compare_descending);
        bench->limits[q] = place == 0 ? UINT32_MAX : bsw_score_from_float(bounds[place - 1]);
    }
}

// Both scans at fixed limits; returns what they found.
static uint64_t scan_at_limits(const struct bench *bench, size_t batch, int is_staged,
                               struct bsw_stage_counts *counts)
{
    const struct bsw_matrix_queries queries = queries_of(bench, batch);
    const struct bsw_matrix_stage stage = {.dims = (uint32_t)bench->settings->stage,
                                           .constants = bench->stage_constants,
                                           .reaches = bench->reaches,
                                           .slacks = bench->slacks};
    struct bsw_matrix_tile tile;
    uint64_t digest = 0;
    for (size_t b = 0; b < bench->num_bundles; b += tile.num_bundles) {
        tile = make_tile(bench, b);
        for (size_t q = 0; q < batch; q++)
            bench->outputs[q] =
                (struct bsw_matrix_output){bench->lists[q].items, 0, bench->limits[q]};
        if (is_staged)
            bench->matrix->scan_staged(&tile, &stage, &queries, bench->outputs, counts);
        else
            bench->matrix->scan(&tile, &queries, bench->outputs);
        for (size_t q = 0; q < batch; q++) {
            for (size_t i = 0; i < bench->outputs[q].count; i++)
                digest += bsw_hash2(q, bench->outputs[q].items[i]);
        }
    }
    return digest;
}

// ---- corpus ----

static enum bsw_status allocate(void *out, size_t count, size_t size, struct bsw_error *err)
{
    return bsw_allocate(out, count, size, "bench", err);
}

static enum bsw_status allocate_all(struct bench *bench, struct bsw_error *err)
{
    size_t rows = bench->num_bundles * BSW_BUNDLE_ROWS, queries = bench->settings->queries;
    size_t tile_bundles = bsw_num_bundles(bench->settings->tile_rows);
    size_t most_rows = tile_bundles * BSW_BUNDLE_ROWS;
    if (most_rows < PLANE_TILE_ROWS) most_rows = PLANE_TILE_ROWS;
    size_t capacity = bsw_running_best_capacity(bench->settings->keep, most_rows);
    for (uint32_t s = 0; s < bench->layout.num_segments; s++)
        BSW_TRY(allocate(&bench->planes[s],
                         bench->num_bundles * bsw_segment_bundle_words(&bench->layout.segments[s]),
                         sizeof(uint32_t), err));
    BSW_TRY(allocate(&bench->masks, bench->num_bundles, sizeof(uint32_t), err));
    BSW_TRY(allocate(&bench->scales, rows, sizeof(uint16_t), err));
    BSW_TRY(allocate(&bench->biases, rows, sizeof(float), err));
    BSW_TRY(allocate(&bench->query_planes, queries * bench->query_words, sizeof(uint32_t), err));
    BSW_TRY(allocate(&bench->components, queries, bench->layout.padded_dims, err));
    BSW_TRY(allocate(&bench->constants, queries, sizeof(int32_t), err));
    BSW_TRY(allocate(&bench->query_scales, queries, sizeof(float), err));
    BSW_TRY(allocate(&bench->bytes, bsw_matrix_tile_bytes(bench->layout.padded_dims, tile_bundles),
                     1, err));
    BSW_TRY(allocate(&bench->dots, PLANE_TILE_ROWS, sizeof(int32_t), err));
    BSW_TRY(allocate(&bench->lists, queries, sizeof *bench->lists, err));
    BSW_TRY(allocate(&bench->outputs, queries, sizeof *bench->outputs, err));
    BSW_TRY(allocate(&bench->items, queries * capacity, sizeof(uint64_t), err));
    BSW_TRY(allocate(&bench->stage_constants, queries, sizeof(int32_t), err));
    BSW_TRY(allocate(&bench->reaches, queries, sizeof(float), err));
    BSW_TRY(allocate(&bench->slacks, queries, sizeof(float), err));
    BSW_TRY(allocate(&bench->limits, queries, sizeof(uint32_t), err));
    BSW_TRY(allocate(&bench->sample, queries * 2 * SAMPLE_BUNDLES, sizeof(float), err));
    return allocate(&bench->scratch, capacity, sizeof(uint64_t), err);
}

static void free_all(struct bench *bench)
{
    bsw_free(&bench->sample);
    bsw_free(&bench->limits);
    bsw_free(&bench->slacks);
    bsw_free(&bench->reaches);
    bsw_free(&bench->stage_constants);
    bsw_free(&bench->scratch);
    bsw_free(&bench->items);
    bsw_free(&bench->outputs);
    bsw_free(&bench->lists);
    bsw_free(&bench->dots);
    bsw_free(&bench->bytes);
    bsw_free(&bench->query_scales);
    bsw_free(&bench->constants);
    bsw_free(&bench->components);
    bsw_free(&bench->query_planes);
    bsw_free(&bench->biases);
    bsw_free(&bench->scales);
    bsw_free(&bench->masks);
    for (uint32_t s = 0; s < bench->layout.num_segments; s++) bsw_free(&bench->planes[s]);
}

static void fill_all(struct bench *bench)
{
    size_t rows = bench->num_bundles * BSW_BUNDLE_ROWS, queries = bench->settings->queries;
    for (uint32_t s = 0; s < bench->layout.num_segments; s++) {
        size_t words = bench->num_bundles * bsw_segment_bundle_words(&bench->layout.segments[s]);
        for (size_t i = 0; i < words; i++) bench->planes[s][i] = (uint32_t)bsw_hash2(s, i);
    }
    for (size_t b = 0; b < bench->num_bundles; b++) bench->masks[b] = UINT32_MAX;
    for (size_t r = 0; r < rows; r++) {
        bench->scales[r] = (uint16_t)(0x3c00 + bsw_hash2(100, r) % 128); // 1 to 1.125
        bench->biases[r] = (float)(bsw_hash2(101, r) % 1000);
    }
    for (size_t i = 0; i < queries * bench->query_words; i++)
        bench->query_planes[i] = (uint32_t)bsw_hash2(102, i);
    for (size_t q = 0; q < queries; q++) {
        bench->query_scales[q] = 1.0f + (float)(q % 100) * 0.01f;
        bench->matrix->unpack_query(&bench->layout, bench->query_planes + q * bench->query_words,
                                    (unsigned)bench->settings->query_bits,
                                    bench->components + q * bench->layout.padded_dims,
                                    &bench->constants[q]);
    }
}

static enum bsw_status make_bench(struct bench *bench, const struct settings *settings,
                                  const char *layout_text, struct bsw_error *err)
{
    *bench = (struct bench){.settings = settings,
                            .matrix = bsw_matrix_scan_table_get(settings->level),
                            .plane = bsw_plane_scan_table_get(settings->level),
                            .select = bsw_select_table_get(settings->level)};
    BSW_TRY(bsw_code_layout_parse(layout_text, DIMS, &bench->layout, err));
    bench->num_bundles = bsw_num_bundles(settings->rows);
    bench->query_words = bsw_layout_query_words(&bench->layout, (uint32_t)settings->query_bits);
    BSW_TRY(allocate_all(bench, err));
    fill_all(bench);
    if (settings->stage == 0) return BSW_OK;
    if (settings->stage % 32 != 0 || settings->stage >= bench->layout.padded_dims)
        return bsw_fail(err, BSW_ERROR_USAGE, "--stage is a multiple of 32 below %u",
                        bench->layout.padded_dims);
    prepare_stage(bench);
    choose_limits(bench);
    return BSW_OK;
}

// ---- measuring ----

enum { UNPACK, MATRIX, PLANES, NUM_WAYS };
static void (*const ways[NUM_WAYS])(const struct bench *bench,
                                    size_t batch) = {unpack_corpus, scan_matrix, scan_planes};

struct result {
    double peak, seconds[NUM_WAYS]; // medians
    int same;                       // both ways gave the same lists
};

// Peak and ways take turns, so that a disturbance hits all of them.
static struct result measure_batch(const struct bench *bench, size_t batch)
{
    double peaks[MAX_REPEATS], seconds[NUM_WAYS][MAX_REPEATS];
    uint64_t digests[NUM_WAYS] = {0};
    for (size_t repeat = 0; repeat < bench->settings->repeats; repeat++) {
        peaks[repeat] = measure_peak(bench->settings->level);
        for (int way = 0; way < NUM_WAYS; way++) {
            double start = bsw_thread_seconds();
            ways[way](bench, batch);
            seconds[way][repeat] = bsw_thread_seconds() - start;
            if (way != UNPACK) digests[way] = lists_digest(bench, batch);
        }
    }
    struct result result = {.peak = bsw_median(peaks, bench->settings->repeats),
                            .same = digests[MATRIX] == digests[PLANES]};
    for (int way = 0; way < NUM_WAYS; way++)
        result.seconds[way] = bsw_median(seconds[way], bench->settings->repeats);
    return result;
}

// Unpacking is part of both ways and taken off again.
static enum bsw_status run_stage(const struct bench *bench, const char *layout_text, size_t batch,
                                 struct bsw_error *err)
{
    enum { WHOLE = 1, STAGED = 2 };
    double peaks[MAX_REPEATS], seconds[NUM_WAYS][MAX_REPEATS], medians[NUM_WAYS];
    struct bsw_stage_counts counts = {0, 0};
    uint64_t digests[NUM_WAYS] = {0};
    size_t repeats = bench->settings->repeats;
    reset_lists(bench, batch, bench->settings->tile_rows);
    for (size_t repeat = 0; repeat < repeats; repeat++) {
        peaks[repeat] = measure_peak(bench->settings->level);
        for (int way = 0; way < NUM_WAYS; way++) {
            double start = bsw_thread_seconds();
            if (way == UNPACK)
                unpack_corpus(bench, batch);
            else
                digests[way] = scan_at_limits(bench, batch, way == STAGED, &counts);
            seconds[way][repeat] = bsw_thread_seconds() - start;
        }
    }
    for (int way = 0; way < NUM_WAYS; way++) medians[way] = bsw_median(seconds[way], repeats);
    double whole = medians[WHOLE] - medians[UNPACK], staged = medians[STAGED] - medians[UNPACK];
    double halves = 2 * (double)bench->num_bundles * (double)batch,
           peak = bsw_median(peaks, repeats);
    double rate = 16 * halves * bench->layout.padded_dims / whole;
    printf("  %-15s %6zu %9.3f %12.1f %8.1f %10.2f %10.2f %7.3f %5s\n", layout_text, batch,
           100 * (double)counts.halves / (double)repeats / halves, rate * 1e-9,
           peak > 0 ? 100 * rate / peak : 0.0, 1e9 * whole / halves, 1e9 * staged / halves,
           staged / whole, digests[WHOLE] == digests[STAGED] ? "yes" : "NO");
    fflush(stdout);
    if (digests[WHOLE] == digests[STAGED]) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK, "the two scans' candidates differ");
}

static void print_stage_header(void)
{
    printf("# %-15s %6s %9s %12s %8s %10s %10s %7s %5s\n", "segments", "batch", "go on",
           "whole scan", "of peak", "whole", "staged", "ratio", "same");
    printf("# %-15s %6s %9s %12s %8s %10s %10s %7s %5s\n", "", "queries", "% halves", "G mul-add/s",
           "%", "ns a half", "ns a half", "", "rows");
}

static void print_header(void)
{
    printf("# %-15s %6s %12s %12s %8s %8s %11s %11s %7s %5s\n", "segments", "batch", "scan alone",
           "peak", "of peak", "unpack", "matrix", "plane", "ratio", "same");
    printf("# %-15s %6s %12s %12s %8s %8s %11s %11s %7s %5s\n", "", "queries", "G mul-add/s",
           "G mul-add/s", "%", "% of it", "queries/s", "queries/s", "", "lists");
}

static void print_row(const struct bench *bench, const char *layout_text, size_t batch,
                      const struct result *result)
{
    double rows = (double)bench->num_bundles * BSW_BUNDLE_ROWS, queries = (double)batch;
    double scan = result->seconds[MATRIX] - result->seconds[UNPACK];
    double rate = rows * queries * bench->layout.padded_dims / scan;
    double matrix = queries / result->seconds[MATRIX], planes = queries / result->seconds[PLANES];
    printf("  %-15s %6zu %12.1f %12.1f %8.1f %8.1f %11.1f %11.1f %7.2f %5s\n", layout_text, batch,
           rate * 1e-9, result->peak * 1e-9, result->peak > 0 ? 100 * rate / result->peak : 0.0,
           100 * result->seconds[UNPACK] / result->seconds[MATRIX], matrix, planes, matrix / planes,
           result->same ? "yes" : "NO");
    fflush(stdout);
}

static enum bsw_status run_layout(const struct settings *settings, const char *layout_text,
                                  struct bsw_error *err)
{
    struct bench bench;
    enum bsw_status status = make_bench(&bench, settings, layout_text, err);
    for (size_t i = 0; status == BSW_OK && i < LENGTH(batches); i++) {
        if (batches[i] > settings->queries) continue;
        if (settings->stage > 0) {
            status = run_stage(&bench, layout_text, batches[i], err);
            continue;
        }
        struct result result = measure_batch(&bench, batches[i]);
        print_row(&bench, layout_text, batches[i], &result);
        if (!result.same)
            status = bsw_fail(err, BSW_ERROR_SELF_CHECK, "the two families' lists differ");
    }
    free_all(&bench);
    return status;
}

static enum bsw_status parse_settings(int argc, char **argv, struct settings *settings, int *help,
                                      struct bsw_error *err)
{
    const struct bsw_option options[] = {
        BENCH_COUNT("rows", &settings->rows, "800000", 1, 1e8, "documents"),
        BENCH_COUNT("queries", &settings->queries, "1000", 1, 1e5,
                    "queries; batches are up to this"),
        BENCH_COUNT("query-bits", &settings->query_bits, "6", 1, BSW_MAX_QUERY_BITS,
                    "bits of the query's dimension"),
        BENCH_COUNT("keep", &settings->keep, "50", 1, 1e6, "best rows kept of a query"),
        BENCH_COUNT("tile", &settings->tile_rows, "256", 32, 1048576,
                    "rows unpacked at a time, in bundles of 32"),
        BENCH_COUNT("repeats", &settings->repeats, "3", 1, MAX_REPEATS,
                    "repetitions; the median counts"),
        BENCH_COUNT("stage", &settings->stage, "0", 0, DIMS - 32,
                    "dimensions of the first stage of a progressive scan; 0: none"),
        {"share", BSW_OPTION_NUMBER, &settings->share, "X", "0", 0, 0, 1, NULL,
         "share of half bundles that go on after the stage, about"},
        BENCH_LEVEL(&settings->level_name),
    };
    BSW_TRY(bench_parse("bench_matrix_scan", "batches of queries over codes in memory", options,
                        sizeof options / sizeof options[0], argc, argv, &settings->level_name,
                        &settings->level, help, err));
    settings->tile_rows = bsw_num_bundles(settings->tile_rows) * BSW_BUNDLE_ROWS;
    return BSW_OK;
}

static enum bsw_status run(const struct settings *settings, struct bsw_error *err)
{
    printf("# bench_matrix_scan %s, level %s, compiler %s\n", BITSWEEP_VERSION,
           bsw_cpu_level_name(settings->level), __VERSION__);
    printf("# one thread, its own time, %zu documents of %d dimensions, queries of %d bits, tiles "
           "of %zu rows, best %zu kept, median of %d\n",
           (size_t)settings->rows, DIMS, (int)settings->query_bits, (size_t)settings->tile_rows,
           (size_t)settings->keep, (int)settings->repeats);
    if (settings->stage > 0)
        print_stage_header();
    else
        print_header();
    for (size_t i = 0; i < LENGTH(layout_texts); i++)
        BSW_TRY(run_layout(settings, layout_texts[i], err));
    return BSW_OK;
}

int main(int argc, char **argv)
{
    struct bsw_error err = {0};
    struct settings settings = {0};
    int help;
    enum bsw_status status = parse_settings(argc, argv, &settings, &help, &err);
    if (status == BSW_OK && !help) status = run(&settings, &err);
    if (status != BSW_OK) fprintf(stderr, "bench_matrix_scan: %s\n", err.message);
    return bsw_status_exit_code(status);
}
