// What a sweep leaves for its reader: sweep.csv, sweep.json, plots by gnuplot, report.html.
#ifndef BITSWEEP_COORDINATOR_SWEEP_REPORT_H
#define BITSWEEP_COORDINATOR_SWEEP_REPORT_H

#include <jansson.h>

#include "coordinator/sweep_point.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bsw_sweep_report {
    const struct bsw_sweep_run *run;
    const struct bsw_sweep_points *points;
    json_t *rows; // by name
    uint64_t num_rows, num_queries;
    uint32_t dims;
    int truth_is_computed, num_arguments;
    char **arguments;
    json_t *json;  // out: what sweep.json has; the caller drops the reference
    int has_plots; // out: 0: gnuplot is missing
};

// A column of sweep.csv, a member of a row of sweep.json.
struct bsw_sweep_column {
    const char *name;
    int decimals; // in report.html; -1: as it is
    int is_shown; // there
    const char *help;
};
extern const struct bsw_sweep_column bsw_sweep_columns[];
extern const size_t bsw_sweep_num_columns;

// Sets "pareto" of each row: 1 on the front of recall and qps among rows of the same k.
void bsw_sweep_mark_front(json_t *rows);

// Replaces FOLDER/sweep.csv, durably.
enum bsw_status bsw_sweep_write_csv(const char *folder, json_t *rows, struct bsw_error *err);

// All but the CSV.
enum bsw_status bsw_sweep_report_write(struct bsw_sweep_report *report, struct bsw_error *err);

// FOLDER/sweep.gnuplot, then the plots, by gnuplot in that folder. *is_drawn 0: there is none.
enum bsw_status bsw_sweep_plots_write(const char *folder, json_t *rows, int *is_drawn,
                                      struct bsw_error *err);
extern const char *const bsw_sweep_plots[3]; // file names without ending

// printf to the end of a buffer.
enum bsw_status bsw_sweep_print(struct bsw_buffer *buffer, struct bsw_error *err,
                                const char *format, ...) BSW_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
