// SPDX-License-Identifier: Apache-2.0
#include "common/job/progress.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/clock.h"

void bsw_progress_init(struct bsw_progress *progress, const char *label, const char *unit,
                       uint64_t total, int is_shown)
{
    double now = bsw_clock_seconds();
    *progress = (struct bsw_progress){.label = label,
                                      .unit = unit,
                                      .total = total,
                                      .is_shown = is_shown,
                                      .is_terminal = isatty(STDERR_FILENO),
                                      .started = now,
                                      .last_shown = now};
}

void bsw_progress_begin(struct bsw_progress *progress, const char *label, const char *unit,
                        uint64_t total)
{
    bsw_progress_finish(progress);
    if (!progress) return;
    double last_shown = progress->last_shown;
    bsw_progress_init(progress, label, unit, total, progress->is_shown);
    // Many short pieces are no longer without a line than one long one.
    if (!progress->is_terminal && last_shown > 0) progress->last_shown = last_shown;
}

static void show(struct bsw_progress *progress, uint64_t done, double elapsed)
{
    double rate = (double)done / elapsed;
    double left = rate > 0 ? (double)(progress->total - done) / rate : 0;
    double share = progress->total ? (double)done / (double)progress->total : 1;
    if (progress->is_terminal) {
        char bar[31];
        for (int i = 0; i < 30; i++) bar[i] = i < (int)(share * 30) ? '=' : ' ';
        bar[30] = '\0';
        fprintf(stderr, "\r%s [%s] %3.0f %% %.4g %s/s, %.0f s left \033[K", progress->label, bar,
                share * 100, rate, progress->unit, left);
        progress->is_line_open = 1;
    } else {
        fprintf(stderr, "%s: %.0f %%, %llu of %llu %s, %.4g/s, %.0f s left\n", progress->label,
                share * 100, (unsigned long long)done, (unsigned long long)progress->total,
                progress->unit, rate, left);
    }
    fflush(stderr);
}

void bsw_progress_update(struct bsw_progress *progress, uint64_t done)
{
    if (!progress) return;
    bsw_caller_note(progress->label, done < progress->total ? done : progress->total,
                    progress->total);
    if (!progress->is_shown) return;
    double now = bsw_clock_seconds();
    if (now - progress->last_shown < (progress->is_terminal ? 0.2 : 10.0) ||
        now - progress->started < (progress->is_terminal ? 1.0 : 0.1))
        return;
    progress->last_shown = now;
    show(progress, done < progress->total ? done : progress->total, now - progress->started);
}

void bsw_progress_finish(struct bsw_progress *progress)
{
    if (progress && progress->is_shown && progress->is_line_open) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        progress->is_line_open = 0;
    }
}

void bsw_progress_note(struct bsw_progress *progress, const char *text)
{
    if (!progress || !progress->is_shown) return;
    fprintf(stderr, progress->is_terminal ? "\r%s \033[K" : "%s\n", text);
    fflush(stderr);
    progress->is_line_open = progress->is_terminal;
    progress->last_shown = bsw_clock_seconds();
}

// ---- callers ------------------------------------------------------------------------------------

#define PAUSE_SECONDS 0.05

static _Thread_local struct bsw_caller *caller;

struct bsw_caller *bsw_caller_set(struct bsw_caller *next)
{
    struct bsw_caller *before = caller;
    caller = next;
    return before;
}

static void ask(int is_due)
{
    double now = bsw_clock_seconds();
    if (caller->is_stopped ||
        (!is_due && caller->asked != 0 && now - caller->asked < PAUSE_SECONDS))
        return;
    caller->asked = now;
    caller->is_stopped = caller->ask(caller->context, caller->label ? caller->label : "begin",
                                     caller->done, caller->total) != 0;
}

void bsw_caller_note(const char *label, uint64_t done, uint64_t total)
{
    if (!caller) return;
    int is_end = done >= total && (caller->done != done || caller->label != label);
    caller->label = label;
    caller->done = done;
    caller->total = total;
    ask(is_end);
}

int bsw_caller_is_stopping(void)
{
    if (!caller) return 0;
    ask(0);
    return caller->is_stopped;
}
