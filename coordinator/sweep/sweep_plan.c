// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_plan.h"

#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/memory.h"

static const char blanks[] = " \t\r";

// word: "bits=2,3". named: whether a word of the line has set an axis before.
static enum bsw_status take_word(char *word, struct bsw_sweep_grid *grid,
                                 int named[BSW_SWEEP_NUM_AXES], struct bsw_error *err)
{
    char *equals = strchr(word, '=');
    if (!equals)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "'%s' is not of the form NAME=VALUE", word);
    *equals = '\0';
    int axis = bsw_sweep_axis_of(word);
    if (axis < 0) return bsw_fail(err, BSW_ERROR_BAD_DATA, "there is no '%s'", word);
    if (named[axis]++) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s is there twice", word);
    return bsw_sweep_grid_set(grid, (enum bsw_sweep_axis_kind)axis, "", equals + 1, err);
}

static enum bsw_status take_line(char *line, struct bsw_sweep_grid *grid, struct bsw_error *err)
{
    int named[BSW_SWEEP_NUM_AXES] = {0};
    char *rest = NULL;
    for (char *word = strtok_r(line, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest))
        BSW_TRY(take_word(word, grid, named, err));
    return BSW_OK;
}

// Every grid has a point or more.
static size_t most_grids(const char *text)
{
    size_t lines = 1;
    for (; *text; text++) lines += *text == '\n';
    return lines < BSW_SWEEP_MAX_POINTS ? lines : BSW_SWEEP_MAX_POINTS;
}

enum bsw_status bsw_sweep_plan_parse(const char *name, char *text,
                                     const struct bsw_sweep_grid *defaults,
                                     struct bsw_sweep_grid **grids, size_t *num_grids,
                                     struct bsw_error *err)
{
    size_t most = most_grids(text);
    *num_grids = 0;
    BSW_TRY(bsw_allocate_zero(grids, most, sizeof **grids, "plan", err));
    for (size_t number = 1; *text; number++) {
        char *line = text;
        text += strcspn(text, "\n");
        if (*text) *text++ = '\0';
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, blanks)] == '\0') continue;
        if (*num_grids == most)
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: line %zu: more than %zu points", name,
                            number, most);
        struct bsw_sweep_grid *grid = &(*grids)[(*num_grids)++];
        *grid = *defaults;
        if (take_line(line, grid, err) != BSW_OK)
            return bsw_prefix(err, BSW_ERROR_BAD_DATA, "%s: line %zu: ", name, number);
    }
    if (*num_grids == 0) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no line has a point", name);
    return BSW_OK;
}

enum bsw_status bsw_sweep_plan_read(const char *path, const struct bsw_sweep_grid *defaults,
                                    struct bsw_sweep_grid **grids, size_t *num_grids,
                                    struct bsw_error *err)
{
    struct bsw_buffer text = {0};
    *grids = NULL;
    enum bsw_status status = bsw_file_read_all(path, BSW_SWEEP_PLAN_MAX_BYTES, &text, err);
    if (status == BSW_OK) status = bsw_buffer_append(&text, "", 1, err);
    if (status == BSW_OK && strlen((const char *)text.data) + 1 != text.bytes)
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: a plan is text, this has zeros", path);
    if (status == BSW_OK)
        status = bsw_sweep_plan_parse(path, (char *)text.data, defaults, grids, num_grids, err);
    bsw_buffer_deinit(&text);
    return status;
}
