// SPDX-License-Identifier: Apache-2.0
// The bound of a first stage at its tightest: rows whose rest is parallel to the query's, with
// tails that nothing was added to, so that reach, slack and the roundings of float32 are all there
// is between a row and its loss.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "shard/host/scan_stage.h"
#include "shard/host/shard_scan.h"
#include "unit_test.h"

// Planes of zeros: every component of a row is 7, every one of a query 63. The stage has 32
// dimensions; the norm of what is left of a row is 56, of a query 504, both exact.
enum { STAGE = 32, REST = 64, DIMS = STAGE + REST, ROWS = 2048, QUERY_BITS = 6 };
enum { ROW_PART = 7, QUERY_PART = 63, DOT = DIMS * ROW_PART * QUERY_PART };
#define ROW_SCALE 0x1p-6f
#define ROW_TAIL  (56 * ROW_SCALE)

struct shard {
    struct bsw_resident_shard resident;
    uint32_t *words; // of one query
};

static void *allocate(size_t count, size_t size)
{
    void *memory;
    if (bsw_allocate_zero(&memory, count, size, "test", NULL) != BSW_OK) abort();
    return memory;
}

// biases [ROWS]
static void open_shard(const float *biases, struct shard *out)
{
    struct bsw_resident_shard *shard = &out->resident;
    struct bsw_shard_shape *shape = &shard->shape;
    *out = (struct shard){
        .resident = {.num_bundles = ROWS / BSW_BUNDLE_ROWS, .stage_dims = STAGE, .tail_unit = 1}};
    bsw_code_layout_init(&shape->layout);
    assert_int_equal(bsw_code_layout_append(&shape->layout, DIMS, 3, NULL), BSW_OK);
    shape->has_affine = 1;
    shape->num_rows = ROWS;
    shape->block_bundles = (uint32_t)shard->num_bundles;
    shape->num_blocks = 1;
    size_t bundle_words = bsw_segment_bundle_words(&shape->layout.segments[0]);
    shape->bundle_bytes = bundle_words * sizeof(uint32_t);
    shard->arrays.planes[0] = allocate(shard->num_bundles, shape->bundle_bytes);
    shard->arrays.scales = allocate(ROWS, sizeof(uint16_t));
    shard->arrays.tails = allocate(ROWS, sizeof(uint16_t));
    shard->arrays.biases = allocate(ROWS, sizeof(float));
    shard->arrays.masks = allocate(shard->num_bundles, sizeof(uint32_t));
    shard->most = allocate(shard->num_bundles, sizeof *shard->most);
    memset(shard->arrays.masks, 0xff, shard->num_bundles * sizeof(uint32_t));
    for (size_t row = 0; row < ROWS; row++) {
        struct bsw_bundle_most *most = &shard->most[row / BSW_BUNDLE_ROWS];
        shard->arrays.scales[row] = bsw_half_up(ROW_SCALE);
        shard->arrays.tails[row] = bsw_half_up(ROW_TAIL);
        shard->arrays.biases[row] = biases[row];
        most->scale = ROW_SCALE;
        most->bias = fmaxf(most->bias, fabsf(biases[row]));
    }
    assert_true(bsw_half_to_float(shard->arrays.tails[0]) == ROW_TAIL);
    out->words = allocate(bsw_layout_query_words(&shape->layout, QUERY_BITS), sizeof(uint32_t));
}

static void close_shard(struct shard *shard)
{
    bsw_free(&shard->resident.arrays.planes[0]);
    bsw_free(&shard->resident.arrays.scales);
    bsw_free(&shard->resident.arrays.tails);
    bsw_free(&shard->resident.arrays.biases);
    bsw_free(&shard->resident.arrays.masks);
    bsw_free(&shard->resident.most);
    bsw_free(&shard->words);
}

static float key_of(float query_scale, float bias)
{
    return fmaf(query_scale, ROW_SCALE * (float)DOT, bias) + 0.0f;
}

// What a stage makes of the row if reach is all it has to go by.
static float bound_of(float query_scale, float reach, float bias)
{
    float scaled = ROW_SCALE * (float)(STAGE * ROW_PART * QUERY_PART);
    return fmaf(query_scale, scaled, fmaf(reach, ROW_TAIL, bias));
}

// A stage for one query of this scale.
static struct bsw_scan_stage stage_of(const struct shard *shard, float query_scale, void *memory)
{
    int8_t components[DIMS];
    struct bsw_scan_stage stage;
    memset(components, QUERY_PART, sizeof components);
    bsw_scan_stage_init(&shard->resident, QUERY_BITS, 1, components, &query_scale, memory, &stage);
    return stage;
}

// ---- the constants ----

// scale_q * norm of the query's rest, rounded up and by no more than 2^-19 of it.
UNIT_TEST(a_reach_is_the_norm_rounded_up)
{
    float biases[ROWS] = {0}, memory[3];
    struct shard shard;
    open_shard(biases, &shard);
    for (int i = 0; i < 1000; i++) {
        float scale = ldexpf(1 + (float)(bsw_hash2(1, (uint64_t)i) % 8388608) * 0x1p-23f, i % 40);
        struct bsw_scan_stage stage = stage_of(&shard, scale, memory);
        double exact = (double)scale * 504;
        assert_true(stage.reaches[0] >= exact && stage.reaches[0] <= exact * (1 + 0x1p-19));
        assert_int_equal(stage.constants[0], STAGE * ROW_PART * QUERY_PART);
    }
    close_shard(&shard);
}

// A key has two roundings, a bound three and the limit less the slack one, each of at most 2^-24 of
// scale_q * scale_d * M + |bias|, and products of roundings are less than another: at most 8 *
// 2^-24, half of 2^-20, of which the slack is twice.
UNIT_TEST(a_slack_is_four_times_what_is_rounded)
{
    float biases[ROWS] = {0}, memory[3];
    static const float scales[] = {0x1p-30f, 0.37f, 1, 12345};
    struct shard shard;
    open_shard(biases, &shard);
    double largest = (double)bsw_layout_dot_limit(&shard.resident.shape.layout, QUERY_BITS);
    assert_true(largest == DOT);
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        struct bsw_scan_stage stage = stage_of(&shard, scales[i], memory);
        for (float bias = 0; bias < 1e6f; bias = bias * 10 + 1) {
            const struct bsw_bundle_most most = {ROW_SCALE, bias};
            double rounded = 8 * 0x1p-24 * ((double)scales[i] * ROW_SCALE * largest + bias);
            double slack = bsw_stage_slack(&stage, 0, most);
            assert_true(slack > 3.999 * rounded && slack < 4.001 * rounded + 0x1p-119);
        }
    }
    close_shard(&shard);
}

// ---- rows at the limit ----

struct bound_row {
    size_t row;
    float excess; // of the key over the bound without slack, in units of the key's last place
};

static int compare_rows(const void *a, const void *b)
{
    float x = ((const struct bound_row *)a)->excess, y = ((const struct bound_row *)b)->excess;
    return (x < y) - (x > y);
}

// Scans with the row's key as the limit: all rows that reach it are found, this one too.
static void check_limit(const struct shard *shard, float query_scale, size_t row,
                        struct bsw_scan_workspace *workspace)
{
    const struct bsw_query_batch batch = {
        .num_queries = 1,
        .query_bits = QUERY_BITS,
        .query_words = bsw_layout_query_words(&shard->resident.shape.layout, QUERY_BITS),
        .words = shard->words,
        .scales = &query_scale};
    const float *biases = shard->resident.arrays.biases;
    const uint32_t limit = bsw_score_from_float(key_of(query_scale, biases[row]));
    struct bsw_candidate_lists lists = {0};
    size_t count, expected = 0;
    for (size_t r = 0; r < ROWS; r++)
        expected += bsw_score_from_float(key_of(query_scale, biases[r])) >= limit;
    assert_int_equal(
        bsw_shard_scan(&shard->resident, &batch, 0, 1, &limit, ROWS, workspace, &lists, NULL),
        BSW_OK);
    bsw_candidate_list(&lists, 0, &count);
    if (count != expected)
        fail_msg("%s, %s: %zu of the %zu rows from row %zu on", workspace->plane_scan->level,
                 bsw_scan_name(workspace->used), count, expected, row);
    bsw_candidate_lists_deinit(&lists);
}

// The rows in the order of what roundings take from them; returns how many a bound without slack
// would lose.
static size_t order_rows(const struct shard *shard, float query_scale, struct bound_row *rows)
{
    float memory[3];
    size_t num_lost = 0;
    struct bsw_scan_stage stage = stage_of(shard, query_scale, memory);
    for (size_t r = 0; r < ROWS; r++) {
        float bias = shard->resident.arrays.biases[r], key = key_of(query_scale, bias);
        float bound = bound_of(query_scale, stage.reaches[0], bias);
        rows[r] = (struct bound_row){r, (key - bound) / (nextafterf(key, INFINITY) - key)};
        num_lost += bound < key;
    }
    qsort(rows, ROWS, sizeof rows[0], compare_rows);
    return num_lost;
}

// The rows that roundings are worst for, at all levels, in both kinds of progressive scans.
static void check_worst(const struct shard *shard, float query_scale, const struct bound_row *rows)
{
    enum { WORST = 24 };
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        struct bsw_scan_workspace workspace;
        bsw_scan_workspace_init(&workspace, (enum bsw_cpu_level)level, 1);
        for (int kind = BSW_SCAN_PROGRESSIVE_PLANES; kind <= BSW_SCAN_PROGRESSIVE_MATRIX; kind++) {
            workspace.scan = (enum bsw_scan_kind)kind;
            for (size_t i = 0; i < WORST; i++)
                check_limit(shard, query_scale, rows[i].row, &workspace);
            assert_int_equal(workspace.used, kind);
        }
        assert_true(workspace.num_stopped > 0); // it was a stage
        bsw_scan_workspace_deinit(&workspace);
    }
}

// The scale of all that are tried for which a bound without slack loses most rows.
static float worst_scale(const struct shard *shard, struct bound_row *rows, size_t *num_lost)
{
    float worst = 1;
    *num_lost = 0;
    for (int i = 0; i < 40; i++) {
        float scale = 0.37f + 0.0173f * (float)i;
        size_t lost = order_rows(shard, scale, rows);
        if (lost <= *num_lost) continue;
        *num_lost = lost;
        worst = scale;
    }
    order_rows(shard, worst, rows);
    return worst;
}

// Biases of the size of the products, where reach decides, and many times larger, where the
// roundings of the key go up and all those of the bound down.
UNIT_TEST(no_row_at_the_limit_is_lost)
{
    static const float spreads[] = {1e2f, 1e6f, 1e9f};
    static struct bound_row rows[ROWS];
    float biases[ROWS];
    for (size_t s = 0; s < sizeof spreads / sizeof spreads[0]; s++) {
        struct shard shard;
        size_t num_lost;
        for (size_t r = 0; r < ROWS; r++)
            biases[r] = spreads[s] * ((float)(bsw_hash2(s, r) % 1000003) * 2e-6f - 1);
        open_shard(biases, &shard);
        float scale = worst_scale(&shard, rows, &num_lost);
        print_message("biases up to %g: a bound without slack would lose %zu of %d rows\n",
                      (double)spreads[s], num_lost, ROWS);
        if (s > 0) assert_true(num_lost > ROWS / 8);
        check_worst(&shard, scale, rows);
        close_shard(&shard);
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
