// SPDX-License-Identifier: Apache-2.0
// Lines of a file of tuning: words between blanks, comments from # on. Tables of CPUs
// (tuning/scan_tuning.h) and rows of GPUs (device_scan/device_tuning.h) are in one file; each
// reader skips the lines of the other.
#ifndef BITSWEEP_KERNELS_TUNING_TEXT_H
#define BITSWEEP_KERNELS_TUNING_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#define BSW_TUNING_MAX_WORDS      32
#define BSW_TUNING_MAX_LINE_BYTES 1024
#define BSW_TUNING_DEVICE_WORD    "device" // begins a line of a GPU

// {.name} then zeros before the first line.
struct bsw_tuning_line {
    const char *name; // of the text, for errors
    unsigned long number;
    char text[BSW_TUNING_MAX_LINE_BYTES];
    char *words[BSW_TUNING_MAX_WORDS]; // in `text`
    size_t num_words;
};

// Takes the line at *text, which goes on to the next one. BSW_ERROR_BAD_DATA: a line that is too
// long.
enum bsw_status bsw_tuning_line_next(struct bsw_tuning_line *line, const char **text,
                                     struct bsw_error *err);

int bsw_tuning_line_is_device(const struct bsw_tuning_line *line);

// BSW_ERROR_BAD_DATA, which names the line.
enum bsw_status bsw_tuning_line_refuse(const struct bsw_tuning_line *line, const char *why,
                                       struct bsw_error *err);

// Whether a word is a whole number from least to most.
int bsw_tuning_read_count(const char *word, uint32_t least, uint32_t most, uint32_t *out);

#endif
