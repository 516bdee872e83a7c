// SPDX-License-Identifier: Apache-2.0
// Lists of values, the points they span, what is left out and why, and what codecs do not know.
#include "shard/codecs/codec.h"
#include "unit_test.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/sweep/sweep_grid.h"

static enum bsw_status set(struct bsw_sweep_grid *grid, enum bsw_sweep_axis_kind axis,
                           const char *text)
{
    return bsw_sweep_grid_set(grid, axis, "--", text, NULL);
}

UNIT_TEST(lists_are_read)
{
    struct bsw_sweep_grid grid;
    const struct bsw_sweep_axis *axes = grid.axes;
    assert_int_equal(set(&grid, BSW_SWEEP_BITS, "1,1.5,8"), BSW_OK);
    assert_int_equal(axes[BSW_SWEEP_BITS].count, 3);
    assert_true(axes[BSW_SWEEP_BITS].values[0] == 1 && axes[BSW_SWEEP_BITS].values[1] == 1.5);
    assert_int_equal(set(&grid, BSW_SWEEP_K, "10,1K"), BSW_OK);
    assert_true(axes[BSW_SWEEP_K].count == 2 && axes[BSW_SWEEP_K].values[1] == 1000);
    assert_int_equal(set(&grid, BSW_SWEEP_CODEC, "saq,xfbq,raw"), BSW_OK);
    assert_true(axes[BSW_SWEEP_CODEC].count == 3 && axes[BSW_SWEEP_CODEC].values[0] == 1 &&
                axes[BSW_SWEEP_CODEC].values[2] == 3);
    assert_int_equal(bsw_sweep_axis_of("query-bits"), BSW_SWEEP_QUERY_BITS);
    assert_int_equal(bsw_sweep_axis_of("query"), -1);
}

UNIT_TEST(ranges_and_bits_of_codecs_are_read)
{
    struct bsw_sweep_grid grid;
    assert_int_equal(set(&grid, BSW_SWEEP_BITS, "1.5,2:4"), BSW_OK);
    const struct bsw_sweep_axis *bits = &grid.axes[BSW_SWEEP_BITS];
    assert_true(bits->count == 4 && bits->values[1] == 2 && bits->values[3] == 4);
    assert_int_equal(set(&grid, BSW_SWEEP_CODEC, "saq:1:3,6,raw,pq:4,8"), BSW_OK);
    assert_int_equal(grid.axes[BSW_SWEEP_CODEC].count, 3);
    size_t saq = (size_t)grid.axes[BSW_SWEEP_CODEC].values[0],
           pq = (size_t)grid.axes[BSW_SWEEP_CODEC].values[2];
    assert_int_equal(grid.own_bits[saq].count, 4);
    assert_true(grid.own_bits[saq].values[3] == 6);
    assert_true(grid.own_bits[pq].count == 2 && grid.own_bits[pq].values[1] == 8);
    assert_int_equal(set(&grid, BSW_SWEEP_CODEC, "saq"), BSW_OK);
    assert_int_equal(grid.own_bits[saq].count, 0);
}

static void assert_refused(enum bsw_sweep_axis_kind axis, const char *text)
{
    struct bsw_sweep_grid grid;
    struct bsw_error err = {0};
    enum bsw_status status = bsw_sweep_grid_set(&grid, axis, "--", text, &err);
    if (status != BSW_ERROR_USAGE) print_error("'%s' was taken\n", text);
    assert_int_equal(status, BSW_ERROR_USAGE);
    assert_memory_equal(err.message, "--", 2);
    err.message[strcspn(err.message, ": ")] = '\0';
    assert_int_equal(bsw_sweep_axis_of(err.message + 2), axis);
}

UNIT_TEST(bad_lists_are_refused)
{
    static const char *const numbers[] = {
        "",      ",",   "1,",  ",1",    "1,,2",  "1,1",
        "1,2,1", "0.5", "8.5", "1,nan", "inf",   "x",
        "1 ,2",  "1e",  "-1",  "1,2x",  "1,1.0", "1234567890123456789012345678901234"};
    static const char *const words[] = {"",     "lsh", "saq,",  "saq,saq",
                                        "saqq", "sa",  "raw,r", "saq xfbq"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_refused(BSW_SWEEP_BITS, numbers[i]);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_refused(BSW_SWEEP_CODEC, words[i]);
    assert_refused(BSW_SWEEP_K, "1.5");
    // Cut to the room of a word they would be numbers.
    assert_refused(BSW_SWEEP_K, "0000000000000000000000000000000015");
    assert_refused(BSW_SWEEP_BITS, "1.000000000000000000000000000000e1");
    assert_refused(BSW_SWEEP_QUERY_BITS, "8");
    static const char *const ranges[] = {"4:1", ":4", "1:", "1:2:3", "1:4,2", "all:4", "1:5000"};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        assert_refused(BSW_SWEEP_PROBE, ranges[i]);
    static const char *const own[] = {"saq:", "saq:9", "raw:8", "saq,2", "saq:1,1", "pq:4:8:9"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) assert_refused(BSW_SWEEP_CODEC, own[i]);
    char many[200] = "1";
    struct bsw_sweep_grid grid;
    for (int i = 0; i < BSW_SWEEP_MAX_VALUES; i++) sprintf(many + strlen(many), ",%d", i + 2);
    assert_refused(BSW_SWEEP_K, many);
    *strrchr(many, ',') = '\0';
    assert_int_equal(set(&grid, BSW_SWEEP_K, many), BSW_OK);
    assert_int_equal(grid.axes[BSW_SWEEP_K].count, BSW_SWEEP_MAX_VALUES);
}

static const struct bsw_sweep_grid two_codecs = {.axes = {[BSW_SWEEP_CODEC] = {2, {0, 1}},
                                                          [BSW_SWEEP_BITS] = {2, {1.5, 2}},
                                                          [BSW_SWEEP_QUERY_BITS] = {1, {6}},
                                                          [BSW_SWEEP_K] = {3, {10, 100, 2000}},
                                                          [BSW_SWEEP_OVERSAMPLE] = {2, {1, 2.55}},
                                                          [BSW_SWEEP_SELECT] = {2, {0, 2}},
                                                          [BSW_SWEEP_TABLE] = {1, {0}},
                                                          [BSW_SWEEP_ENTRIES] = {1, {0}},
                                                          [BSW_SWEEP_RADIUS_SCALE] = {1, {1}},
                                                          [BSW_SWEEP_MODE] = {1, {0}},
                                                          [BSW_SWEEP_EXTRA_DISTANCE] = {1, {0}},
                                                          [BSW_SWEEP_PARTS] = {1, {0}},
                                                          [BSW_SWEEP_LISTS] = {1, {0}},
                                                          [BSW_SWEEP_PROBE] = {1, {0}},
                                                          [BSW_SWEEP_PROBE_RATIO] = {1, {0}},
                                                          [BSW_SWEEP_RECALL] = {1, {0}}}};

// Also one that a codec would set: points of it were not counted.
UNIT_TEST(an_empty_axis_is_refused)
{
    const struct bsw_sweep_limits limits = {
        .num_rows = 1000, .truth_k = 1000, .metric = BSW_METRIC_COSINE, .is_integer = 1};
    struct bsw_sweep_points points;
    for (int axis = 0; axis < BSW_SWEEP_NUM_AXES; axis++) {
        struct bsw_sweep_grid grid = two_codecs;
        struct bsw_error err = {0};
        assert_int_equal(set(&grid, BSW_SWEEP_CODEC, "raw,saq"), BSW_OK);
        grid.axes[axis].count = 0;
        assert_int_equal(bsw_sweep_grids_expand(&grid, 1, &limits, &points, &err), BSW_ERROR_USAGE);
        assert_non_null(strstr(err.message, "no values"));
        bsw_sweep_points_deinit(&points);
    }
}

// saq, 2 bits, k 10, one way to search it.
static void fix_axes(struct bsw_sweep_grid *grid)
{
    assert_int_equal(set(grid, BSW_SWEEP_CODEC, "saq"), BSW_OK);
    assert_int_equal(set(grid, BSW_SWEEP_BITS, "2"), BSW_OK);
    assert_int_equal(set(grid, BSW_SWEEP_K, "10"), BSW_OK);
    assert_int_equal(set(grid, BSW_SWEEP_OVERSAMPLE, "5"), BSW_OK);
    assert_int_equal(set(grid, BSW_SWEEP_SELECT, "threshold"), BSW_OK);
}

static struct bsw_sweep_points expand(const struct bsw_sweep_grid *grid,
                                      const struct bsw_sweep_limits *limits)
{
    struct bsw_sweep_points points;
    assert_int_equal(bsw_sweep_grids_expand(grid, 1, limits, &points, NULL), BSW_OK);
    return points;
}

UNIT_TEST(what_cannot_be_is_left_out)
{
    const struct bsw_sweep_limits limits = {
        .num_rows = 200, .truth_k = 150, .metric = BSW_METRIC_COSINE};
    struct bsw_sweep_points points = expand(&two_codecs, &limits);
    assert_int_equal(points.num_points, 3 * 2 * 2 * 2);
    // The first reason counts: the 12 of xfbq with 1.5 bits, of all others those with too large k.
    assert_int_equal(points.num_skips, 2);
    assert_non_null(strstr(points.skips[0].reason, "1.5 bits"));
    assert_int_equal(points.skips[0].num_points, 12);
    assert_non_null(strstr(points.skips[1].reason, "200 rows"));
    assert_int_equal(points.skips[1].num_points, 12);
    const struct bsw_sweep_point *p = points.points;
    assert_string_equal(p[0].codec, "xfbq");
    assert_true(p[0].bits == 2 && p[0].k == 10 && p[0].candidates == 10);
    assert_string_equal(p[0].select, "threshold");
    assert_string_equal(p[1].select, "queue");
    assert_int_equal(p[2].candidates, 26);  // 25.5, rounded up
    assert_int_equal(p[6].candidates, 200); // 255, but there are 200 rows
    bsw_sweep_points_deinit(&points);
}

UNIT_TEST(limits_of_truth_metric_and_candidates_hold)
{
    struct bsw_sweep_limits limits = {.num_rows = 1000000, .truth_k = 50, .metric = BSW_METRIC_L2};
    struct bsw_sweep_points points = expand(&two_codecs, &limits);
    assert_int_equal(points.num_points, 2 * 2 * 2); // saq, k 10
    for (size_t i = 0; i < points.num_points; i++)
        assert_string_equal(points.points[i].codec, "saq");
    assert_int_equal(points.num_skips, 3); // xfbq, k 100, k 2000
    bsw_sweep_points_deinit(&points);
    struct bsw_sweep_grid wide = two_codecs;
    wide.axes[BSW_SWEEP_OVERSAMPLE] = (struct bsw_sweep_axis){2, {5, 6}};
    limits.truth_k = 1000000;
    points = expand(&wide, &limits);
    assert_int_equal(points.num_skips, 2); // xfbq, and 12,000 candidates, but not 10,000
    assert_int_equal(points.skips[1].num_points, 4);
    bsw_sweep_points_deinit(&points);
}

static const struct bsw_sweep_grid all_codecs = {.axes = {[BSW_SWEEP_CODEC] = {4, {0, 1, 2, 3}},
                                                          [BSW_SWEEP_BITS] = {3, {1.5, 2, 3}},
                                                          [BSW_SWEEP_QUERY_BITS] = {2, {4, 6}},
                                                          [BSW_SWEEP_K] = {1, {10}},
                                                          [BSW_SWEEP_OVERSAMPLE] = {2, {1, 5}},
                                                          [BSW_SWEEP_SELECT] = {2, {0, 1}},
                                                          [BSW_SWEEP_TABLE] = {1, {0}},
                                                          [BSW_SWEEP_ENTRIES] = {1, {0}},
                                                          [BSW_SWEEP_RADIUS_SCALE] = {1, {1}},
                                                          [BSW_SWEEP_MODE] = {1, {0}},
                                                          [BSW_SWEEP_EXTRA_DISTANCE] = {2, {0, 7}},
                                                          [BSW_SWEEP_PARTS] = {1, {0}},
                                                          [BSW_SWEEP_LISTS] = {1, {0}},
                                                          [BSW_SWEEP_PROBE] = {1, {0}},
                                                          [BSW_SWEEP_PROBE_RATIO] = {1, {0}},
                                                          [BSW_SWEEP_RECALL] = {1, {0}}}};

static size_t count_of(const struct bsw_sweep_points *points, const char *codec, const char *select)
{
    size_t count = 0;
    for (size_t i = 0; i < points->num_points; i++)
        count += strcmp(points->points[i].codec, codec) == 0 &&
                 strcmp(points->points[i].select, select) == 0;
    return count;
}

UNIT_TEST(axes_that_a_codec_does_not_know_count_once)
{
    struct bsw_sweep_limits limits = {
        .num_rows = 200, .truth_k = 200, .metric = BSW_METRIC_COSINE, .is_integer = 1};
    struct bsw_sweep_points points = expand(&all_codecs, &limits);
    assert_int_equal(count_of(&points, "xfbq", "threshold"), 2 * 2 * 2);
    assert_int_equal(count_of(&points, "xfbq", "histogram"), 2 * 2 * 2 * 2); // extra distances
    assert_int_equal(count_of(&points, "saq", "threshold"), 3 * 2 * 2);
    assert_int_equal(count_of(&points, "rbe", "threshold"), 2 * 2); // whole bits, 7 query bits
    assert_int_equal(points.num_points, 8 + 16 + 12 + 4);
    assert_int_equal(points.points[points.num_points - 1].query_bits, 7);
    bsw_sweep_points_deinit(&points);

    limits.model_bits = 1.5;
    limits.model_query_bits = 3;
    points = expand(&all_codecs, &limits);
    assert_int_equal(count_of(&points, "rbe", "threshold"), 2);
    const struct bsw_sweep_point *last = &points.points[points.num_points - 1];
    assert_true(last->bits == 1.5 && last->query_bits == 3 && last->oversample == 5);
    bsw_sweep_points_deinit(&points);

    limits.metric = BSW_METRIC_L2;
    points = expand(&all_codecs, &limits);
    assert_int_equal(count_of(&points, "raw", "threshold"), 1);
    assert_int_equal(points.num_points, 12 + 1);
    last = &points.points[points.num_points - 1];
    assert_true(last->bits == 8 && last->query_bits == 8 && last->candidates == 10);
    bsw_sweep_points_deinit(&points);

    limits.is_integer = 0;
    points = expand(&all_codecs, &limits);
    assert_int_equal(count_of(&points, "raw", "threshold"), 0);
    bsw_sweep_points_deinit(&points);
}

UNIT_TEST(lists_and_their_probes_are_points)
{
    struct bsw_sweep_limits limits = {.num_rows = 256, .truth_k = 200, .metric = BSW_METRIC_L2};
    struct bsw_sweep_grid grid = two_codecs;
    fix_axes(&grid);
    assert_int_equal(set(&grid, BSW_SWEEP_LISTS, "0,8,auto,300"), BSW_OK);
    assert_int_equal(set(&grid, BSW_SWEEP_PROBE, "0,4,9"), BSW_OK);
    assert_int_equal(set(&grid, BSW_SWEEP_PROBE_RATIO, "0,1.5"), BSW_OK);
    struct bsw_sweep_points points = expand(&grid, &limits);
    // Without lists one point; of 8 lists none looks at 9; auto is 64, the power of two at 4 * 16.
    assert_int_equal(points.num_points, 1 + 4 + 6);
    assert_true(points.points[0].lists == 0 && points.points[0].probe == 0);
    assert_true(points.points[0].probe_ratio == 0);
    assert_true(points.points[2].lists == 8 && points.points[2].probe == 0);
    assert_true(points.points[2].probe_ratio == 1.5);
    assert_true(points.points[10].lists == 64 && points.points[10].probe == 9);
    assert_int_equal(points.num_skips, 2);
    assert_string_equal(points.skips[0].reason, "probe 9: there are 8 lists");
    assert_int_equal(points.skips[0].num_points, 2);
    assert_string_equal(points.skips[1].reason, "lists 300: the corpus has 256 rows");
    assert_int_equal(points.skips[1].num_points, 6);
    bsw_sweep_points_deinit(&points);

    // auto is one of those that are named, too.
    assert_int_equal(set(&grid, BSW_SWEEP_LISTS, "64,auto"), BSW_OK);
    limits.metric = BSW_METRIC_IP;
    points = expand(&grid, &limits);
    assert_int_equal(points.num_points, 3);
    assert_int_equal(points.num_skips, 1);
    assert_non_null(strstr(points.skips[0].reason, "ip has no distances"));
    bsw_sweep_points_deinit(&points);

    assert_int_equal(set(&grid, BSW_SWEEP_SELECT, "threshold,queue"), BSW_OK);
    limits.metric = BSW_METRIC_L2;
    points = expand(&grid, &limits);
    assert_int_equal(points.num_points, 6);
    assert_non_null(strstr(points.skips[0].reason, "select queue: "));
    bsw_sweep_points_deinit(&points);
    assert_refused(BSW_SWEEP_LISTS, "1048577");
    assert_refused(BSW_SWEEP_LISTS, "auto,auto");
    assert_refused(BSW_SWEEP_PROBE, "auto");
    assert_refused(BSW_SWEEP_PROBE_RATIO, "1001");
}

UNIT_TEST(points_of_several_grids_are_there_once)
{
    const struct bsw_sweep_limits limits = {
        .num_rows = 200, .truth_k = 200, .metric = BSW_METRIC_COSINE};
    struct bsw_sweep_grid grids[2] = {all_codecs, all_codecs};
    grids[0].axes[BSW_SWEEP_CODEC] = grids[1].axes[BSW_SWEEP_CODEC] =
        (struct bsw_sweep_axis){1, {1}};
    grids[0].axes[BSW_SWEEP_SELECT] = grids[1].axes[BSW_SWEEP_SELECT] =
        (struct bsw_sweep_axis){1, {0}};
    grids[1].axes[BSW_SWEEP_BITS] = (struct bsw_sweep_axis){2, {3, 4}};
    struct bsw_sweep_points points;
    assert_int_equal(bsw_sweep_grids_expand(grids, 2, &limits, &points, NULL), BSW_OK);
    assert_int_equal(points.num_points, (3 + 1) * 2 * 2);
    assert_true(points.points[points.num_points - 1].bits == 4);
    bsw_sweep_points_deinit(&points);
}

UNIT_TEST(bits_of_a_codec_are_its_alone)
{
    const struct bsw_sweep_limits limits = {
        .num_rows = 1000, .truth_k = 1000, .is_integer = 1, .metric = BSW_METRIC_L2};
    struct bsw_sweep_grid grid = two_codecs;
    fix_axes(&grid);
    assert_int_equal(set(&grid, BSW_SWEEP_CODEC, "saq,pq:4,8,raw"), BSW_OK);
    struct bsw_sweep_points points = expand(&grid, &limits);
    assert_int_equal(points.num_skips, 0);
    assert_int_equal(points.num_points, 4);
    assert_true(points.points[0].bits == 2);
    assert_string_equal(points.points[1].codec, "pq");
    assert_true(points.points[1].bits == 4 && points.points[2].bits == 8);
    bsw_sweep_points_deinit(&points);
}

UNIT_TEST(too_many_points_are_refused)
{
    const struct bsw_sweep_limits limits = {
        .num_rows = 200, .truth_k = 200, .metric = BSW_METRIC_COSINE};
    struct bsw_sweep_grid wide = all_codecs;
    struct bsw_sweep_points points;
    wide.axes[BSW_SWEEP_K].count = wide.axes[BSW_SWEEP_OVERSAMPLE].count = BSW_SWEEP_MAX_VALUES;
    assert_int_equal(bsw_sweep_grids_expand(&wide, 1, &limits, &points, NULL), BSW_ERROR_USAGE);
    bsw_sweep_points_deinit(&points);
}

// Beside probe and ratio, not with them.
UNIT_TEST(recalls_are_of_indexes_with_lists)
{
    const struct bsw_sweep_limits limits = {
        .num_rows = 1000, .truth_k = 100, .metric = BSW_METRIC_L2};
    struct bsw_sweep_grid grid = two_codecs;
    struct bsw_sweep_points points;
    struct bsw_error err = {0};
    fix_axes(&grid);
    assert_int_equal(set(&grid, BSW_SWEEP_RECALL, "0,0.9,0.95,0.01"), BSW_OK);
    assert_int_equal(bsw_sweep_grids_expand(&grid, 1, &limits, &points, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "--recall: no index of this sweep has lists"));
    assert_int_equal(set(&grid, BSW_SWEEP_LISTS, "0,8"), BSW_OK);
    assert_int_equal(set(&grid, BSW_SWEEP_PROBE, "2,4"), BSW_OK);
    assert_ok(bsw_sweep_grids_expand(&grid, 1, &limits, &points, &err), &err);
    static const double recalls[] = {0, 0, 0.9, 0.95, 0};
    static const uint32_t probes[] = {0, 2, 0, 0, 4};
    assert_int_equal(points.num_points, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_true(points.points[i].recall == recalls[i]);
        assert_int_equal(points.points[i].probe, probes[i]);
    }
    assert_int_equal(points.num_skips, 1); // 0.01
    bsw_sweep_points_skip(&points, 2, "why");
    bsw_sweep_points_skip(&points, 3, "why");
    assert_int_equal(points.num_points, 3);
    assert_true(points.points[2].recall == 0.95);
    assert_int_equal(points.num_skips, 2);
    assert_int_equal(points.skips[1].num_points, 2);
    bsw_sweep_points_deinit(&points);
}

UNIT_TEST(subspaces_are_of_product_codes_alone)
{
    const struct bsw_sweep_limits limits = {
        .num_rows = 1000, .truth_k = 100, .dims = 100, .metric = BSW_METRIC_L2};
    struct bsw_sweep_grid grid = two_codecs;
    struct bsw_sweep_points points;
    struct bsw_error err = {0};
    fix_axes(&grid);
    assert_int_equal(set(&grid, BSW_SWEEP_CODEC, "saq:2,pq:8"), BSW_OK);
    assert_int_equal(set(&grid, BSW_SWEEP_PARTS, "0,10,100,101"), BSW_OK);
    assert_ok(bsw_sweep_grids_expand(&grid, 1, &limits, &points, &err), &err);
    assert_int_equal(points.num_points, 1 + 3);
    static const uint32_t parts[] = {0, 0, 10, 100};
    for (size_t i = 0; i < 4; i++) assert_int_equal(points.points[i].parts, parts[i]);
    assert_int_equal(points.num_skips, 1);
    assert_string_equal(points.skips[0].reason, "subspaces 101: rows have 100 dims");
    bsw_sweep_points_deinit(&points);
}

// A scale and a mode are of a radius, which pq alone has, with its usual tables.
UNIT_TEST(radii_are_of_product_codes_alone)
{
    struct bsw_sweep_limits limits = {.num_rows = 1000, .truth_k = 100, .metric = BSW_METRIC_L2};
    struct bsw_sweep_points points;
    struct bsw_sweep_grid grid = two_codecs;
    double pq = 0;
    struct bsw_error err;
    while (bsw_codecs[(int)pq] != &bsw_codec_pq) pq++;
    grid.axes[BSW_SWEEP_CODEC] = (struct bsw_sweep_axis){2, {1, pq}}; // saq
    grid.axes[BSW_SWEEP_BITS] = (struct bsw_sweep_axis){1, {4}};
    grid.axes[BSW_SWEEP_K] = (struct bsw_sweep_axis){1, {10}};
    grid.axes[BSW_SWEEP_QUERY_BITS] = (struct bsw_sweep_axis){1, {6}};
    grid.axes[BSW_SWEEP_OVERSAMPLE] = (struct bsw_sweep_axis){1, {1}};
    grid.axes[BSW_SWEEP_SELECT] = (struct bsw_sweep_axis){1, {0}};
    grid.axes[BSW_SWEEP_TABLE] = (struct bsw_sweep_axis){2, {0, 3}};
    grid.axes[BSW_SWEEP_ENTRIES] = (struct bsw_sweep_axis){2, {0, 1}};
    grid.axes[BSW_SWEEP_RADIUS_SCALE] = (struct bsw_sweep_axis){3, {0.5, 1, 2}};
    grid.axes[BSW_SWEEP_MODE] = (struct bsw_sweep_axis){2, {0, 2}};
    assert_ok(bsw_sweep_grids_expand(&grid, 1, &limits, &points, &err), &err);
    // saq; pq with all entries and either table; a radius three times in two modes.
    assert_int_equal(points.num_points, 1 + 2 + 3 * 2);
    size_t with_radius = 0;
    for (size_t i = 0; i < points.num_points; i++) {
        const struct bsw_sweep_point *p = &points.points[i];
        int has_radius = p->entries == BSW_ENTRIES_RADIUS;
        with_radius += (size_t)has_radius;
        assert_true(!has_radius || (strcmp(p->codec, "pq") == 0 && p->radius_scale > 0 &&
                                    p->table == BSW_TABLE_CHOICE_AUTO));
        assert_true(has_radius || (p->radius_scale == 0 && p->mode[0] == '\0'));
    }
    assert_int_equal(with_radius, 6);
    assert_int_equal(points.num_skips, 1); // the other table
    bsw_sweep_points_deinit(&points);
}

// pq has 4 or 8 bits, no query bits, and tables that other codecs have not.
UNIT_TEST(tables_are_of_product_codes_alone)
{
    struct bsw_sweep_limits limits = {.num_rows = 1000, .truth_k = 100, .metric = BSW_METRIC_L2};
    struct bsw_sweep_points points;
    struct bsw_sweep_grid grid = two_codecs;
    double pq = 0;
    struct bsw_error err;
    while (bsw_codecs[(int)pq] != &bsw_codec_pq) pq++;
    grid.axes[BSW_SWEEP_CODEC] = (struct bsw_sweep_axis){2, {1, pq}}; // saq
    grid.axes[BSW_SWEEP_BITS] = (struct bsw_sweep_axis){2, {3, 4}};
    grid.axes[BSW_SWEEP_QUERY_BITS] = (struct bsw_sweep_axis){2, {5, 6}};
    grid.axes[BSW_SWEEP_K] = (struct bsw_sweep_axis){1, {10}};
    grid.axes[BSW_SWEEP_OVERSAMPLE] = (struct bsw_sweep_axis){1, {1}};
    grid.axes[BSW_SWEEP_SELECT] = (struct bsw_sweep_axis){1, {0}};
    grid.axes[BSW_SWEEP_TABLE] = (struct bsw_sweep_axis){3, {0, 1, 3}};
    assert_ok(bsw_sweep_grids_expand(&grid, 1, &limits, &points, &err), &err);
    assert_int_equal(points.num_points, 2 * 2 + 3);
    for (size_t i = 0; i < points.num_points; i++) {
        int is_pq = strcmp(points.points[i].codec, "pq") == 0;
        assert_true(is_pq || points.points[i].table == BSW_TABLE_CHOICE_AUTO);
        assert_true(!is_pq || (points.points[i].bits == 4 && points.points[i].query_bits == 1));
    }
    assert_int_equal(points.num_skips, 1);
    assert_string_equal(points.skips[0].reason, "codec pq with 3 bits: it has 4 or 8 a subspace");
    bsw_sweep_points_deinit(&points);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
