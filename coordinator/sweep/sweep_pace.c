// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_pace.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"

// Between two lines of a log, as progress.h has it.
#define LOG_SECONDS 10.0

void bsw_sweep_pace_begin(struct bsw_sweep_pace *pace, struct bsw_progress *progress,
                          size_t num_points)
{
    *pace = (struct bsw_sweep_pace){
        .progress = progress, .num_points = num_points, .last_shown = bsw_clock_seconds()};
    if (progress) bsw_progress_init(progress, "sweep", "points", num_points, progress->is_shown);
}

static void print_time(double seconds, char *text, size_t bytes)
{
    if (seconds < 90)
        snprintf(text, bytes, ", about %.0f s left", seconds < 1 ? 1 : seconds);
    else if (seconds < 90 * 60)
        snprintf(text, bytes, ", about %.0f min left", seconds / 60);
    else
        snprintf(text, bytes, ", about %.0f h left", seconds / 3600);
}

void bsw_sweep_pace_text(const struct bsw_sweep_pace *pace, const struct bsw_sweep_place *place,
                         char text[BSW_SWEEP_PACE_BYTES])
{
    int length =
        snprintf(text, BSW_SWEEP_PACE_BYTES, "point %zu of %zu, %sindex %.200s", place->point,
                 pace->num_points, place->is_made ? "making " : "", place->index);
    if (pace->num_measured == 0 || (place->indexes_left > 0 && pace->num_indexes == 0)) return;
    double seconds = pace->point_seconds / (double)pace->num_measured * (double)place->points_left;
    if (place->indexes_left > 0)
        seconds += pace->index_seconds / (double)pace->num_indexes * (double)place->indexes_left;
    print_time(seconds, text + length, (size_t)(BSW_SWEEP_PACE_BYTES - length));
}

int bsw_sweep_pace_is_due(const struct bsw_sweep_pace *pace)
{
    if (!pace->progress || !pace->progress->is_shown) return 0;
    return pace->progress->is_terminal || bsw_clock_seconds() - pace->last_shown >= LOG_SECONDS;
}

void bsw_sweep_pace_show(struct bsw_sweep_pace *pace, const struct bsw_sweep_place *place)
{
    char text[BSW_SWEEP_PACE_BYTES];
    if (!bsw_sweep_pace_is_due(pace)) return;
    pace->last_shown = bsw_clock_seconds();
    bsw_sweep_pace_text(pace, place, text);
    bsw_progress_note(pace->progress, text);
}
