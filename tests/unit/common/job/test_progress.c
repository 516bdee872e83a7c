// SPDX-License-Identifier: Apache-2.0
// Progress where stderr is no terminal: a line every ten seconds, across pieces of work.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/job/progress.h"
#include "unit_test.h"

// What update says on stderr after so many pieces of work, which began just now, long after a line.
static void said(struct bsw_progress *progress, uint64_t done, char *out, size_t capacity)
{
    FILE *file = tmpfile();
    int own = dup(STDERR_FILENO);
    assert_non_null(file);
    dup2(fileno(file), STDERR_FILENO);
    bsw_progress_update(progress, done);
    dup2(own, STDERR_FILENO);
    close(own);
    rewind(file);
    size_t bytes = fread(out, 1, capacity - 1, file);
    out[bytes] = '\0';
    fclose(file);
}

UNIT_TEST(a_line_comes_every_ten_seconds_across_pieces)
{
    struct bsw_progress progress;
    char text[200];
    bsw_progress_init(&progress, "first", "rows", 10, 1);
    if (progress.is_terminal) skip();
    progress.last_shown -= 11;
    for (int i = 0; i < 3; i++) bsw_progress_begin(&progress, "second", "parts", 10);
    progress.started -= 0.5;
    said(&progress, 5, text, sizeof text);
    assert_non_null(strstr(text, "second: 50 %, 5 of 10 parts"));
    bsw_progress_begin(&progress, "third", "parts", 10);
    progress.started -= 5;
    said(&progress, 5, text, sizeof text);
    assert_string_equal(text, "");
}

UNIT_TEST(a_short_piece_alone_is_not_shown)
{
    struct bsw_progress progress = {.is_shown = 1};
    char text[200];
    bsw_progress_begin(&progress, "first", "rows", 10);
    progress.started -= 5;
    said(&progress, 5, text, sizeof text);
    if (!progress.is_terminal) assert_string_equal(text, "");
}

UNIT_TEST(nothing_is_shown_unasked)
{
    struct bsw_progress progress;
    char text[200];
    bsw_progress_init(&progress, "first", "rows", 10, 0);
    progress.last_shown -= 11;
    progress.started -= 11;
    said(&progress, 5, text, sizeof text);
    assert_string_equal(text, "");
    bsw_progress_begin(NULL, "first", "rows", 10);
    bsw_progress_update(NULL, 1);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
