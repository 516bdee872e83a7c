// SPDX-License-Identifier: Apache-2.0
// What a sweep leaves for its reader beside sweep.csv: sweep.json, plots by gnuplot, report.html.
#ifndef BITSWEEP_COORDINATOR_SWEEP_REPORT_H
#define BITSWEEP_COORDINATOR_SWEEP_REPORT_H

#include "coordinator/sweep/sweep_answer.h"
#include "coordinator/sweep/sweep_point.h"
#include "coordinator/sweep/sweep_table.h"

struct bsw_sweep_report {
    const struct bsw_sweep_run *run;
    const struct bsw_sweep_points *points;
    json_t *rows, *indexes; // by name
    const struct bsw_sweep_targets *targets;
    uint64_t num_rows;
    json_t *json;  // out: what sweep.json has; the caller drops the reference
    int has_plots; // out: 0: gnuplot is missing
};

// What the check of its codes (encode/encode_training.h) has to say of an index, as sweep.json has
// it; 0: nothing.
int bsw_sweep_index_note(const char *name, const json_t *index, char *text, size_t bytes);

// All but the CSV.
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
