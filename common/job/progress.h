// SPDX-License-Identifier: Apache-2.0
// Progress of long work on stderr: a bar with rate and time left on a terminal, a plain line every
// ten seconds elsewhere. A caller of the thread (caller.h) is told, too, whether it is shown or
// not.
#ifndef BITSWEEP_COMMON_PROGRESS_H
#define BITSWEEP_COMMON_PROGRESS_H

#include <stdint.h>

struct bsw_progress {
    const char *label; // "encode"
    const char *unit;  // "rows"
    uint64_t total;
    int is_shown; // 0: nothing is
    int is_terminal;
    int is_line_open; // something stands on the terminal's line
    double started, last_shown;
};

// In every other call progress may be NULL: nothing is shown.

// is_shown: rank 0 and not --quiet. A bar appears only for work of more than a second.
void bsw_progress_init(struct bsw_progress *progress, const char *label, const char *unit,
                       uint64_t total, int is_shown);
// For the next piece of work; is_shown stays.
void bsw_progress_begin(struct bsw_progress *progress, const char *label, const char *unit,
                        uint64_t total);
void bsw_progress_update(struct bsw_progress *progress, uint64_t done);
void bsw_progress_finish(struct bsw_progress *progress); // clears the bar

// Shows a text at once, for long work that has no steps to count; on a terminal until the next bar.
void bsw_progress_note(struct bsw_progress *progress, const char *text);

#endif
