// SPDX-License-Identifier: Apache-2.0
// What a sweep leaves for its reader: sweep.csv, sweep.json, plots by gnuplot, report.html.
#ifndef BITSWEEP_COORDINATOR_SWEEP_REPORT_H
#define BITSWEEP_COORDINATOR_SWEEP_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "common/base/status.h"
#include "coordinator/sweep/sweep_point.h"
#include "coordinator/sweep/sweep_step.h"

// ---- the table: columns, the Pareto front, sweep.csv --------------------------------------------

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

// ---- answers ------------------------------------------------------------------------------------

// What a sweep was for: for each k and each recall that is asked for, the point of fewest bytes and
// the fastest one that reach it, with the command lines that do the same.

enum { BSW_SWEEP_MAX_TARGETS = 8 };

struct bsw_sweep_targets {
    double recalls[BSW_SWEEP_MAX_TARGETS]; // above 0, at most 1
    size_t count;
};

// "0.9,0.95"; BSW_ERROR_USAGE.
enum bsw_status bsw_sweep_targets_parse(const char *text, struct bsw_sweep_targets *out,
                                        struct bsw_error *err);

// rows: an object, rows by name. A new reference: an array, each
//   {"k", "target", "best_recall", "fewest_bytes": ANSWER, "fastest": ANSWER}
// without the last two where no row reaches the target; ANSWER: {"point", "recall", "qps",
// "bytes_per_vector", "encode", "search"}, the last two command lines for a shell. Among equal rows
// the better in the other measure, then the better recall, then the first. NULL: no memory.
json_t *bsw_sweep_answers(const json_t *rows, const struct bsw_sweep_targets *targets,
                          const struct bsw_sweep_settings *settings, const char *metric);

// A space, and the text so that a shell reads it as one word.
void bsw_sweep_print_word(FILE *out, const char *text);

// ---- the report ---------------------------------------------------------------------------------

struct bsw_sweep_report {
    const struct bsw_sweep_run *run;
    const struct bsw_sweep_points *points;
    json_t *rows, *indexes; // by name
    const struct bsw_sweep_targets *targets;
    uint64_t num_rows;
    json_t *json;  // out: what sweep.json has; the caller drops the reference
    int has_plots; // out: 0: gnuplot is missing
};

// What the check of its codes (encode/code_recall.h) has to say of an index, as sweep.json has it;
// 0: nothing.
int bsw_sweep_index_note(const char *name, const json_t *index, char *text, size_t bytes);

// All but the table.
enum bsw_status bsw_sweep_report_write(struct bsw_sweep_report *report, struct bsw_error *err);

// FOLDER/sweep.gnuplot, then the plots, by gnuplot from FOLDER/sweep.csv; their titles name the
// subject, one line. *is_drawn 0: there is no gnuplot. Plots that were there are removed first.
enum bsw_status bsw_sweep_plots_write(const char *folder, const char *subject, int *is_drawn,
                                      struct bsw_error *err);
extern const char *const bsw_sweep_plots[3]; // file names without ending

// Files that the program has with it, as texts that end with 0: an installed one has no source
// tree.
extern const char bsw_sweep_script[];   // sweep_plots.gp
extern const char bsw_sweep_template[]; // sweep_report.html

#endif
