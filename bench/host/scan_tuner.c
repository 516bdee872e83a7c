// SPDX-License-Identifier: Apache-2.0
#include "bench/host/scan_tuner.h"

#include <math.h>
#include <string.h>

#include "bench/host/scan_case.h"
#include "common/base/arithmetic.h"
#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"
#include "shard/host/shard_tiles.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define CORPUS_BYTES  ((size_t)32 << 20) // of planes: beyond the second cache
#define REPEATS       5
#define QUERY_BITS    6    // search's default
#define MOST_QUERIES  1000 // of a large batch
#define LEAST_LARGE   64
#define SMALL_BATCH   16
#define HALF_ONE      0x3c00 // 1 as IEEE half

// Keys have this many standard deviations at most, so none reaches the limit: 32 dims of 1 bit
// have 9.6, more have fewer unless with probabilities that do not matter.
#define LIMIT_SIGMAS 20
// A row's bound passes with probability 1/120 (one-sided normal), a half bundle's with about 1/8.
#define STAGE_SIGMAS 2.394

static const uint32_t batches[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 256};
static const uint32_t tile_kibs[] = {16, 32, 64, 128};
#define NUM_BATCHES LENGTH(batches)
#define NUM_TILES   LENGTH(tile_kibs)

struct tuner {
    const struct bsw_scan_tuner_options *options;
    const struct bsw_matrix_scan_table *matrix;
    const struct bsw_select_table *select;

    // For the combination that is measured now: one segment, MOST_QUERIES.
    struct bsw_scan_case scan;
    float *zeros; // [MOST_QUERIES] reaches, and slacks with which nothing passes
    struct bsw_matrix_output *outputs;
    uint64_t *items; // all outputs share the room: nothing is kept
    uint32_t limit;
    size_t next_bundle;
    size_t num_queries; // of a large batch
    uint64_t num_selected;
};

// One thing to measure. work scans a tile and returns its rows.
struct point {
    size_t (*work)(struct tuner *tuner, struct point *point);
    size_t num_queries, num_bundles;
    // stages alone
    uint32_t dims, stage_dims;
    const float *slacks;
    struct bsw_stage_counts counts;
    uint64_t num_halves; // that were asked, for every query
    // measured
    double repeats[REPEATS], row_seconds;
};

// ---- what is measured ----

static const struct bsw_segment *segment_of(const struct tuner *tuner)
{
    return &tuner->scan.layout.segments[0];
}

// The corpus goes round, so that codes come from behind the second cache.
static size_t next_tile(struct tuner *tuner, size_t num_bundles)
{
    size_t end = tuner->next_bundle + num_bundles;
    size_t first = end <= tuner->scan.num_bundles ? tuner->next_bundle : 0;
    tuner->next_bundle = first + num_bundles;
    return first;
}

static size_t work_planes(struct tuner *tuner, struct point *point)
{
    const struct bsw_scan_case *scan = &tuner->scan;
    size_t bundle = next_tile(tuner, point->num_bundles), row = bundle * BSW_BUNDLE_ROWS;
    for (size_t q = 0; q < point->num_queries; q++) {
        bsw_scan_case_dots(scan, tuner->options->level, q, bundle, point->num_bundles, scan->dots);
        tuner->num_selected += tuner->select->filter_affine(
            scan->dots, scan->scales + row, scan->biases + row, scan->query_scales[q],
            scan->masks + bundle, point->num_bundles, (uint32_t)row, tuner->limit, tuner->items);
    }
    return point->num_bundles * BSW_BUNDLE_ROWS;
}

static void unpack_tile(const struct tuner *tuner, size_t bundle, size_t num_bundles)
{
    bsw_scan_case_unpack(&tuner->scan, tuner->options->level, bundle, num_bundles,
                         tuner->scan.bytes);
}

// Also what a caller of the scan does for every tile: a look at each output.
static size_t empty_outputs(struct tuner *tuner, const struct point *point)
{
    for (size_t q = 0; q < point->num_queries; q++) {
        tuner->num_selected += tuner->outputs[q].count;
        tuner->outputs[q].count = 0;
    }
    return point->num_bundles * BSW_BUNDLE_ROWS;
}

// Unpacking included.
static size_t work_matrix(struct tuner *tuner, struct point *point)
{
    size_t bundle = next_tile(tuner, point->num_bundles);
    struct bsw_matrix_tile tile = bsw_scan_case_tile(&tuner->scan, bundle, point->num_bundles);
    struct bsw_matrix_queries queries = bsw_scan_case_queries(&tuner->scan, point->num_queries);
    unpack_tile(tuner, bundle, point->num_bundles);
    tuner->matrix->scan(&tile, &queries, tuner->outputs);
    return empty_outputs(tuner, point);
}

// A tile that is unpacked already, read as rows of point->dims.
static size_t work_full(struct tuner *tuner, struct point *point)
{
    struct bsw_matrix_tile tile = bsw_scan_case_tile(&tuner->scan, 0, point->num_bundles);
    struct bsw_matrix_queries queries = bsw_scan_case_queries(&tuner->scan, point->num_queries);
    tile.padded_dims = point->dims;
    tuner->matrix->scan(&tile, &queries, tuner->outputs);
    return empty_outputs(tuner, point);
}

static size_t work_staged(struct tuner *tuner, struct point *point)
{
    struct bsw_matrix_tile tile = bsw_scan_case_tile(&tuner->scan, 0, point->num_bundles);
    struct bsw_matrix_queries queries = bsw_scan_case_queries(&tuner->scan, point->num_queries);
    struct bsw_matrix_stage stage = bsw_scan_case_stage(&tuner->scan, point->stage_dims);
    stage.reaches = tuner->zeros;
    stage.slacks = point->slacks;
    tuner->matrix->scan_staged(&tile, &stage, &queries, tuner->outputs, &point->counts);
    size_t rows = empty_outputs(tuner, point);
    point->num_halves += rows / BSW_HALF_ROWS * point->num_queries;
    return rows;
}

// ---- measuring ----

// Seconds a row, over as many tiles as fill the time; the clock is read seldom.
static double time_rows(struct tuner *tuner, struct point *point)
{
    double slice = tuner->options->seconds / REPEATS, start = bsw_thread_seconds(), elapsed = 0;
    size_t rows = 0;
    for (size_t tiles = 1; elapsed <= 0 || elapsed < slice; tiles *= 2) {
        for (size_t i = 0; i < tiles; i++) rows += point->work(tuner, point);
        elapsed = bsw_thread_seconds() - start;
    }
    return elapsed / (double)rows;
}

static void measure(struct tuner *tuner, struct point *points, size_t num_points)
{
    for (size_t i = 0; i < num_points; i++) points[i].work(tuner, &points[i]); // warms up
    for (size_t repeat = 0; repeat < REPEATS; repeat++) {
        for (size_t i = 0; i < num_points; i++)
            points[i].repeats[repeat] = time_rows(tuner, &points[i]);
    }
    for (size_t i = 0; i < num_points; i++)
        points[i].row_seconds = bsw_median(points[i].repeats, REPEATS);
}

// Nanoseconds for half a bundle and one query.
static double half_ns(const struct point *point)
{
    return point->row_seconds * BSW_HALF_ROWS * 1e9 / (double)point->num_queries;
}

// Codes, and 8 bytes of scale, tail and bias.
static size_t plane_tile_bundles(const struct tuner *tuner)
{
    size_t row_bytes = (size_t)bsw_layout_row_bytes(&tuner->scan.layout) + 8;
    const struct bsw_shard_shape shape = {.bundle_bytes = BSW_BUNDLE_ROWS * row_bytes};
    return bsw_tile_bundles(&shape);
}

// The smallest batch from which on the matrix scan is always faster. Even points are planes.
static uint32_t first_matrix_batch(const struct point points[2 * NUM_BATCHES])
{
    uint32_t from = UINT32_MAX;
    for (size_t i = NUM_BATCHES; i-- > 0;) {
        if (points[2 * i + 1].row_seconds >= points[2 * i].row_seconds) break;
        from = batches[i];
    }
    return from;
}

static void tune_batch(struct tuner *tuner, struct bsw_scan_tuner_row *row)
{
    struct point points[2 * NUM_BATCHES] = {{0}};
    for (size_t i = 0; i < NUM_BATCHES; i++) {
        points[2 * i] = (struct point){.work = work_planes,
                                       .num_queries = batches[i],
                                       .num_bundles = plane_tile_bundles(tuner)};
        points[2 * i + 1] =
            (struct point){.work = work_matrix,
                           .num_queries = batches[i],
                           .num_bundles = bsw_matrix_tile_bundles(tuner->scan.layout.padded_dims,
                                                                  row->tuning.tile_kib)};
    }
    measure(tuner, points, 2 * NUM_BATCHES);
    row->tuning.matrix_from_queries = first_matrix_batch(points);
    row->plane_ns = half_ns(&points[2 * NUM_BATCHES - 2]);
    row->matrix_ns = half_ns(&points[2 * NUM_BATCHES - 1]);
}

// As many queries as fit the time with the largest tile.
static size_t large_batch(struct tuner *tuner)
{
    uint32_t dims = tuner->scan.layout.padded_dims;
    struct point point = {.work = work_full,
                          .num_queries = batches[NUM_BATCHES - 1],
                          .num_bundles = bsw_matrix_tile_bundles(dims, tile_kibs[0]),
                          .dims = dims};
    unpack_tile(tuner, 0, point.num_bundles);
    measure(tuner, &point, 1);
    double rows = (double)bsw_matrix_tile_bundles(dims, tile_kibs[NUM_TILES - 1]) * BSW_BUNDLE_ROWS;
    double query_seconds = point.row_seconds / (double)point.num_queries * rows;
    double fit = tuner->options->seconds / REPEATS / query_seconds;
    return fit > MOST_QUERIES ? MOST_QUERIES : fit < LEAST_LARGE ? LEAST_LARGE : (size_t)fit;
}

// The smallest tile unless another is faster by 2 %, in the mean of a large batch, where the tile's
// fixed costs count, and a small one, where unpacking does: it is slower beyond the first cache.
static void tune_tile(struct tuner *tuner, struct bsw_scan_tuner_row *row)
{
    struct point points[2 * NUM_TILES] = {{0}};
    for (size_t i = 0; i < 2 * NUM_TILES; i++) {
        points[i] = (struct point){.work = work_matrix,
                                   .num_queries = i % 2 ? SMALL_BATCH : tuner->num_queries,
                                   .num_bundles = bsw_matrix_tile_bundles(
                                       tuner->scan.layout.padded_dims, tile_kibs[i / 2])};
    }
    measure(tuner, points, 2 * NUM_TILES);
    size_t best = 0;
    for (size_t i = 1; i < NUM_TILES; i++) {
        const struct point *point = &points[2 * i], *other = &points[2 * best];
        // Tiles of very few or very many bundles are the same.
        if (point[0].num_bundles == other[0].num_bundles) continue;
        double ratio = point[0].row_seconds * point[1].row_seconds /
                       (other[0].row_seconds * other[1].row_seconds);
        if (ratio < 0.98 * 0.98) best = i;
    }
    row->tuning.tile_kib = tile_kibs[best];
}

enum { FULL, SHORT, NONE, SOME, NUM_STAGE_POINTS };

// With full(d) = a + b*d for a half bundle and a query: a stage costs a + b*(s + overhead), so a
// drops out against full(s); the slope b is that between s and d.
static void set_stage_costs(const struct point points[NUM_STAGE_POINTS],
                            struct bsw_scan_tuning *tuning)
{
    const struct point *some = &points[SOME];
    double rest = points[FULL].row_seconds - points[SHORT].row_seconds;
    if (rest <= 0 || some->counts.halves == 0) return; // measured for too short a time
    double slope = rest / (points[FULL].dims - points[SHORT].dims);
    double overhead = (points[NONE].row_seconds - points[SHORT].row_seconds) / slope;
    double share = (double)some->counts.halves / (double)some->num_halves;
    double factor = (some->row_seconds - points[NONE].row_seconds) / (share * rest);
    tuning->stage_overhead = (float)(overhead > 0 ? overhead : 0);
    tuning->finish_factor = (float)(factor > 0 ? factor : 0);
}

// What the bound lets through is decided by slacks: it passes for some halves of bundles although
// no key reaches the limit.
static void prepare_stage(struct tuner *tuner, uint32_t stage_dims, double dim_sigma)
{
    double passing = STAGE_SIGMAS * dim_sigma * sqrt(stage_dims);
    for (size_t q = 0; q < tuner->num_queries; q++) {
        tuner->scan.slacks[q] = bsw_score_to_float(tuner->limit) - (float)passing;
        bsw_scan_case_set_stage(&tuner->scan, q, stage_dims);
    }
}

// The standard deviation of a dimension's product: odd integers of B bits, all as likely, have the
// variance (4^B - 1) / 3.
static double dim_sigma_of(const struct tuner *tuner)
{
    double codes = (double)(1 << 2 * segment_of(tuner)->bits) - 1;
    double queries = (double)(1 << 2 * QUERY_BITS) - 1;
    return sqrt(codes * queries) / 3;
}

static void tune_stage(struct tuner *tuner, struct bsw_scan_tuner_row *row)
{
    uint32_t dims = tuner->scan.layout.padded_dims, stage_dims = dims / 64 * 32;
    size_t num_bundles = bsw_matrix_tile_bundles(dims, row->tuning.tile_kib);
    struct point points[NUM_STAGE_POINTS];
    for (size_t i = 0; i < NUM_STAGE_POINTS; i++) {
        points[i] = (struct point){.work = i < NONE ? work_full : work_staged,
                                   .num_queries = tuner->num_queries,
                                   .num_bundles = num_bundles,
                                   .dims = i == SHORT ? stage_dims : dims,
                                   .stage_dims = stage_dims,
                                   .slacks = i == SOME ? tuner->scan.slacks : tuner->zeros};
    }
    row->tuning.stage_overhead = 0;
    row->tuning.finish_factor = 1;
    unpack_tile(tuner, 0, num_bundles);
    if (stage_dims == 0) { // 32 dims have no stage
        measure(tuner, points, 1);
    } else {
        prepare_stage(tuner, stage_dims, dim_sigma_of(tuner));
        measure(tuner, points, NUM_STAGE_POINTS);
        set_stage_costs(points, &row->tuning);
    }
    row->full_ns = half_ns(&points[FULL]);
}

// ---- the table ----

static enum bsw_status allocate(void *unused, void *out, size_t count, size_t size,
                                struct bsw_error *err)
{
    (void)unused;
    return bsw_allocate_zero(out, count, size, "tuning", err);
}

// Keys are the plain dots: scales 1, biases and tails 0.
static enum bsw_status make_scan(struct tuner *tuner, uint32_t dims, uint32_t bits,
                                 struct bsw_error *err)
{
    struct bsw_scan_case *scan = &tuner->scan;
    bsw_scan_case_free(scan);
    memset(scan, 0, sizeof *scan);
    bsw_code_layout_init(&scan->layout);
    BSW_TRY(bsw_code_layout_append(&scan->layout, dims, bits, err));
    BSW_TRY(bsw_code_layout_check(&scan->layout, QUERY_BITS, err));
    scan->num_bundles =
        CORPUS_BYTES / sizeof(uint32_t) / bsw_segment_bundle_words(segment_of(tuner));
    scan->num_queries = MOST_QUERIES;
    scan->tile_bundles = BSW_TILE_BUNDLES;
    scan->query_bits = QUERY_BITS;
    scan->has_tails = 1;
    BSW_TRY(bsw_scan_case_allocate(scan, allocate, NULL, err));
    bsw_scan_case_fill_codes(scan, BSW_PLANES_RANDOM, 1);
    for (size_t b = 0; b < scan->num_bundles; b++) scan->masks[b] = UINT32_MAX;
    for (size_t row = 0; row < scan->num_bundles * BSW_BUNDLE_ROWS; row++)
        scan->scales[row] = HALF_ONE;
    tuner->next_bundle = 0;
    tuner->limit = bsw_score_from_float((float)(LIMIT_SIGMAS * dim_sigma_of(tuner) * sqrt(dims)));
    for (size_t q = 0; q < MOST_QUERIES; q++) {
        bsw_scan_case_fill_query(scan, q, BSW_PLANES_RANDOM, 2);
        scan->query_scales[q] = 1;
        tuner->outputs[q] = (struct bsw_matrix_output){tuner->items, 0, tuner->limit};
    }
    return BSW_OK;
}

static enum bsw_status check_selected(const struct tuner *tuner, struct bsw_error *err)
{
    if (tuner->num_selected == 0) return BSW_OK;
    return bsw_fail(
        err, BSW_ERROR_SELF_CHECK, "%u dims, %u bits: %llu rows were selected where none may be",
        tuner->scan.layout.dims, segment_of(tuner)->bits, (unsigned long long)tuner->num_selected);
}

// Tile and stage do not depend on bits: the middle ones stand for all.
static enum bsw_status tune_dims(struct tuner *tuner, uint32_t dims, bsw_scan_tuner_fn emit,
                                 void *context, struct bsw_error *err)
{
    const struct bsw_scan_tuner_options *options = tuner->options;
    struct bsw_scan_tuner_row row = {.tuning = {.dims = dims}};
    BSW_TRY(make_scan(tuner, dims, options->bits[options->num_bits / 2], err));
    tuner->num_queries = large_batch(tuner);
    tune_tile(tuner, &row);
    tune_stage(tuner, &row);
    BSW_TRY(check_selected(tuner, err));
    for (size_t i = 0; i < options->num_bits; i++) {
        row.tuning.bits = options->bits[i];
        BSW_TRY(make_scan(tuner, dims, options->bits[i], err));
        tune_batch(tuner, &row);
        BSW_TRY(check_selected(tuner, err));
        emit(context, &row);
    }
    return BSW_OK;
}

enum bsw_status bsw_scan_tuner_run(const struct bsw_scan_tuner_options *options,
                                   bsw_scan_tuner_fn emit, void *context, struct bsw_error *err)
{
    struct tuner tuner = {.options = options,
                          .matrix = bsw_matrix_scan_table_get(options->level),
                          .select = bsw_select_table_get(options->level)};
    enum bsw_status status = allocate(NULL, &tuner.zeros, MOST_QUERIES, sizeof(float), err);
    if (status == BSW_OK)
        status = allocate(NULL, &tuner.outputs, MOST_QUERIES, sizeof *tuner.outputs, err);
    if (status == BSW_OK)
        status = allocate(NULL, &tuner.items, BSW_TILE_ROWS, sizeof(uint64_t), err);
    for (size_t i = 0; status == BSW_OK && i < options->num_dims; i++)
        status = tune_dims(&tuner, options->dims[i], emit, context, err);
    bsw_scan_case_free(&tuner.scan);
    bsw_free(&tuner.items);
    bsw_free(&tuner.outputs);
    bsw_free(&tuner.zeros);
    return status;
}
