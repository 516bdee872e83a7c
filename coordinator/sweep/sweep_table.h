// SPDX-License-Identifier: Apache-2.0
// The table of a sweep: its columns, the Pareto front, sweep.csv.
#ifndef BITSWEEP_COORDINATOR_SWEEP_TABLE_H
#define BITSWEEP_COORDINATOR_SWEEP_TABLE_H

#include <jansson.h>
#include <stdio.h>

#include "common/base/status.h"

// A column of sweep.csv, a member of a row of sweep.json.
struct bsw_sweep_column {
    const char *name;
    int decimals; // in report.html; -1: as it is
    int is_shown; // there
    const char *help;
};
extern const struct bsw_sweep_column bsw_sweep_columns[];
extern const size_t bsw_sweep_num_columns;

// rows, here and below: an object, rows by name.
// Sets "pareto" of each: 1 where no row of the same k ("count") is at least as good in recall and
// qps and better in one.
enum bsw_status bsw_sweep_mark_front(json_t *rows, struct bsw_error *err);

// Whether a search of a CPU had less than this of the cores that its threads asked for: others took
// them, or too few queries left threads idle. 0 of rows without the column, as older sweeps have.
#define BSW_SWEEP_LEAST_CORES 0.95
int bsw_sweep_is_disturbed(const json_t *row);

// Marks the front, and replaces FOLDER/sweep.csv, durably.
enum bsw_status bsw_sweep_write_csv(const char *folder, json_t *rows, struct bsw_error *err);

// ---- for all that a sweep writes ----

// A string as it is, a number with so many decimals; -1: as many as it has.
void bsw_sweep_print_value(FILE *out, const json_t *value, int decimals);

// Replaces FOLDER/NAME, durably, by what is printed.
typedef enum bsw_status bsw_sweep_print(FILE *out, void *context, struct bsw_error *err);
enum bsw_status bsw_sweep_write_file(const char *folder, const char *name, bsw_sweep_print *print,
                                     void *context, struct bsw_error *err);

#endif
