// SPDX-License-Identifier: Apache-2.0
// Plans: a grid a line, defaults for what a line leaves out, the line of what is wrong.
#include "unit_test.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/sweep/sweep_grid.h"

static struct bsw_sweep_grid make_defaults(void)
{
    static const char *const texts[BSW_SWEEP_NUM_AXES] = {"saq", "3",         "0", "0", "6", "10",
                                                          "1,5", "threshold", "0", "0", "0"};
    struct bsw_sweep_grid grid;
    for (int axis = 0; axis < BSW_SWEEP_NUM_AXES; axis++)
        assert_int_equal(
            bsw_sweep_grid_set(&grid, (enum bsw_sweep_axis_kind)axis, "--", texts[axis], NULL),
            BSW_OK);
    return grid;
}

static enum bsw_status parse(const char *text, struct bsw_sweep_grid **grids, size_t *count,
                             struct bsw_error *err)
{
    char copy[400];
    const struct bsw_sweep_grid defaults = make_defaults();
    snprintf(copy, sizeof copy, "%s", text);
    return bsw_sweep_plan_parse("plan", copy, &defaults, grids, count, err);
}

UNIT_TEST(lines_are_grids)
{
    struct bsw_sweep_grid *grids;
    size_t count;
    assert_int_equal(parse("# what to compare\n\n \t\nbits=2,4 codec=xfbq\r\n"
                           "\tselect=queue  k=100 # wide\nextra-distance=5",
                           &grids, &count, NULL),
                     BSW_OK);
    assert_int_equal(count, 3);
    const struct bsw_sweep_axis *axes = grids[0].axes;
    assert_true(axes[BSW_SWEEP_CODEC].values[0] == 0 && axes[BSW_SWEEP_BITS].count == 2);
    assert_true(axes[BSW_SWEEP_K].values[0] == 10 && axes[BSW_SWEEP_OVERSAMPLE].count == 2);
    axes = grids[1].axes; // nothing of the line before
    assert_true(axes[BSW_SWEEP_CODEC].values[0] == 1 && axes[BSW_SWEEP_BITS].values[0] == 3);
    assert_true(axes[BSW_SWEEP_K].values[0] == 100 && axes[BSW_SWEEP_SELECT].values[0] == 2);
    assert_true(grids[2].axes[BSW_SWEEP_EXTRA_DISTANCE].values[0] == 5);
    bsw_free(&grids);
}

UNIT_TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"bits=2\nbits=9", "plan: line 2: bits: 9 is not in 1 .. 8"},
        {"\n\ncodec=saq,lsh", "plan: line 3: codec: 'lsh' is none of xfbq, saq, rbe, raw"},
        {"k=10 k=10", "plan: line 1: k is there twice"},
        {"k=10,10", "plan: line 1: k: 10 is there twice"},
        {"k 10", "plan: line 1: 'k' is not of the form NAME=VALUE"},
        {"--k=10", "plan: line 1: there is no '--k'"},
        {"shards=4", "plan: line 1: there is no 'shards'"},
        {"k=", "plan: line 1: k '"},
        {"", "plan: no line has a point"},
        {"# k=10\n", "plan: no line has a point"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bsw_sweep_grid *grids;
        struct bsw_error err = {0};
        size_t count;
        assert_int_equal(parse(cases[i].text, &grids, &count, &err), BSW_ERROR_BAD_DATA);
        if (strncmp(err.message, cases[i].message, strlen(cases[i].message)) != 0)
            assert_string_equal(err.message, cases[i].message);
        bsw_free(&grids);
    }
}

UNIT_TEST(more_lines_than_points_are_refused)
{
    enum { LINES = BSW_SWEEP_MAX_POINTS + 1, BYTES = 4 };
    static char text[LINES * BYTES + 1];
    const struct bsw_sweep_grid defaults = make_defaults();
    struct bsw_sweep_grid *grids;
    struct bsw_error err = {0};
    size_t count;
    for (size_t i = 0; i < LINES; i++) memcpy(text + i * BYTES, "k=1\n", BYTES);
    assert_int_equal(bsw_sweep_plan_parse("plan", text, &defaults, &grids, &count, &err),
                     BSW_ERROR_BAD_DATA);
    assert_string_equal(err.message, "plan: line 10001: more than 10000 points");
    bsw_free(&grids);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
