// SPDX-License-Identifier: Apache-2.0
// What every bench prints, in the manner of nccl-tests: `#` lines on the environment, the build and
// every rank, an aligned table with a row of units, one row for each size as it is measured, a
// footer that decides the exit status. With --json the same as one document on stdout at the end,
// and no text; a bench may also keep the document in a file while it goes on.
//
// Every rank calls open, gather and close (they exchange messages); note and row print on rank 0
// and do nothing elsewhere.
#ifndef BITSWEEP_BENCH_BENCH_REPORT_H
#define BITSWEEP_BENCH_BENCH_REPORT_H

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/cpu_level.h"
#include "common/device/device.h"
#include "coordinator/job/command.h"

// ---- options that every sweep of sizes has ----

#define BSW_BENCH_MAX_REPEATS 1000

struct bsw_bench_options {
    uint64_t min, max, factor, step; // sizes: min, then * factor, or + step if that is not 0
    uint64_t warmup, repeat;
    const char *check; // "on", "off"
    double least;      // of the average of the main column; 0: none asked
};

// Rows of an option table whose struct `type` has a member `bench`. `what` is what a size counts
// ("bytes a rank"); the defaults are texts; least_unit is the unit of the main column.
#define BSW_BENCH_OPTIONS(type, what, default_min, default_max, default_factor, default_repeat, \
                          least_unit)                                                           \
    BSW_OPTION(type, "min", bench.min, .value_name = "SIZE", .default_text = default_min,       \
               .min = 1, .max = 1e15, .help = "smallest size: " what),                          \
        BSW_OPTION(type, "max", bench.max, .value_name = "SIZE", .default_text = default_max,   \
                   .min = 1, .max = 1e15, .help = "largest size"),                              \
        BSW_OPTION(type, "factor", bench.factor, .value_name = "F",                             \
                   .default_text = default_factor, .min = 2, .max = 1e6,                        \
                   .help = "from one size to the next"),                                        \
        BSW_OPTION(type, "step", bench.step, .value_name = "SIZE", .default_text = "0",         \
                   .max = 1e15,                                                                 \
                   .help = "added from one size to the next, in place of the factor; 0: none"), \
        BSW_OPTION(type, "warmup", bench.warmup, .value_name = "N", .default_text = "1",        \
                   .max = 1e6, .help = "runs that do not count"),                               \
        BSW_OPTION(type, "repeat", bench.repeat, .value_name = "N",                             \
                   .default_text = default_repeat, .min = 1, .max = BSW_BENCH_MAX_REPEATS,      \
                   .help = "runs whose median counts"),                                         \
        BSW_OPTION(type, "check", bench.check, .choices = "on|off", .default_text = "on",       \
                   .help = "compare what comes out with what must"),                            \
        BSW_OPTION(type, "least", bench.least, .value_name = "X", .default_text = "0",          \
                   .max = 1e15, .help = "exit code 70 if the average is below X " least_unit)

// BSW_ERROR_USAGE where the sizes have no order.
enum bsw_status bsw_bench_options_check(const struct bsw_bench_options *options,
                                        struct bsw_error *err);
int bsw_bench_is_checked(const struct bsw_bench_options *options);
// for (size = options->min; size; size = bsw_bench_next_size(options, size)): 0 behind the last.
uint64_t bsw_bench_next_size(const struct bsw_bench_options *options, uint64_t size);

// ---- the report ----

#define BSW_BENCH_TEXT      (-1) // decimals of a column of text
#define BSW_BENCH_UNCHECKED (-1) // errors of a row that nobody checked

struct bsw_bench_column {
    const char *name; // header
    const char *unit; // second row of the header, "" if it has none
    const char *key;  // in JSON; with the unit in it, "bytes", "bus_bytes_per_second"
    int width;        // of the text, without the blank before it; 0: in JSON alone
    int decimals;     // 0: a whole number; BSW_BENCH_TEXT: text, on the left
    double scale;     // what the table shows is value * scale (1e-9 for GB/s); JSON has the value
};

struct bsw_bench_value {
    double number;    // NAN: not measured, "-" and null
    const char *text; // of columns of text; "": there is none, "-" and null
};

static inline struct bsw_bench_value bsw_bench_number(double number)
{
    return (struct bsw_bench_value){number, NULL};
}
// NAN: there is none.
static inline struct bsw_bench_value bsw_bench_number_if(int is_there, double number)
{
    return bsw_bench_number(is_there ? number : (double)NAN);
}
static inline struct bsw_bench_value bsw_bench_text(const char *text)
{
    return (struct bsw_bench_value){0, text};
}

struct bsw_bench_report_options {
    const char *name; // "memory", of `bench memory`
    const struct bsw_common_options *common;
    const struct bsw_bench_options *bench;
    const bsw_device *device;               // this rank's, or NULL
    const struct bsw_bench_column *columns; // NULL: bsw_bench_report_table brings them
    size_t num_columns;
    size_t main_column; // its average is the footer's; of numbers
    FILE *out;          // NULL: stdout
    // The document goes there too, anew after every row: what a bench that is cut has measured is
    // worth having. NULL: nowhere.
    const char *path;
};

// All pointers of the options are borrowed until close.
struct bsw_bench_report {
    struct bsw_bench_report_options options;
    struct bsw_transport *transport;
    // Batch number of the last message on the transport. Numbers there never fall, so a bench that
    // sends messages of its own counts on from here, and leaves its last number here.
    uint64_t batch;
    json_t *document;                        // rank 0 with --json or a path
    int is_lost;                             // the document could not be written
    const char *table;                       // of the rows to come; NULL: the only one
    const struct bsw_bench_column *averaged; // the footer's
    int is_header_due;
    uint64_t num_rows, num_checked, num_wrong_rows, num_averaged;
    uint64_t num_wrong; // values
    double main_sum;
};

// Prints the environment, a line for each rank and the header. After a failure, too, the report is
// to be closed.
enum bsw_status bsw_bench_report_open(struct bsw_bench_report *report,
                                      const struct bsw_bench_report_options *options,
                                      struct bsw_transport *transport, struct bsw_error *err);

// Rows to come belong to another table, with a header of its own; in JSON they have its name as
// "table", and "tables" has its columns. All borrowed until close. main_column: num_columns for a
// table without an average; of several tables with one the footer has the first.
void bsw_bench_report_table(struct bsw_bench_report *report, const char *name,
                            const struct bsw_bench_column *columns, size_t num_columns,
                            size_t main_column);

// An object of its own in the document; drops the reference where there is none.
void bsw_bench_report_add(struct bsw_bench_report *report, const char *key, json_t *value);

// "# text"; in JSON a text of "notes".
void bsw_bench_report_note(struct bsw_bench_report *report, const char *format, ...)
    BSW_PRINTF(2, 3);

// values [num_columns]. errors: wrong values among those checked, or BSW_BENCH_UNCHECKED.
void bsw_bench_report_row(struct bsw_bench_report *report, const struct bsw_bench_value *values,
                          int64_t errors);

// `bytes` of every rank to rank 0, there [num_ranks] in all; all is not used elsewhere.
enum bsw_status bsw_bench_report_gather(struct bsw_bench_report *report, const void *own,
                                        size_t bytes, void *all, struct bsw_error *err);

// Agrees on how measuring went on every rank (status, err; the ranks may have agreed on it before);
// if well, prints the footer (or the document) and judges: BSW_ERROR_SELF_CHECK, exit code 70, for
// wrong values, or an average of the main column below what --least asks for. Frees what the report
// has.
enum bsw_status bsw_bench_report_close(struct bsw_bench_report *report, enum bsw_status status,
                                       struct bsw_error *err);

// Times of work, as benches take them: what is compared takes turns, so that a disturbance hits all
// of it, short work is repeated between two looks at the clock, medians count.

#define BSW_BENCH_MAX_RUNS 4

struct bsw_bench_run {
    void (*work)(void *context);
    void *context;
    double seconds; // out: median of one call
};

// bsw_clock_seconds for work of several threads, bsw_thread_seconds for that of the caller.
typedef double (*bsw_bench_clock_fn)(void);

// num_runs <= BSW_BENCH_MAX_RUNS. options->warmup turns, at least one, do not count; the last of
// them says how many calls make a fifth of a millisecond. Then options->repeat turns.
void bsw_bench_take_turns(const struct bsw_bench_options *options, bsw_bench_clock_fn clock,
                          struct bsw_bench_run *runs, size_t num_runs);

// What a measurement was made with: program, build, command line, and every rank's host and device.

// What a rank tells of itself; all of it travels. Texts are printable ASCII.
struct bsw_bench_rank {
    char host[64];
    char cpu[BSW_CPU_MODEL_BYTES + 7];
    char level[16];
    char device[96]; // "cpu", "cuda:0 NVIDIA H200"
    int64_t pid, usable_cpus, threads;
};

void bsw_bench_rank_describe(const struct bsw_common_options *common, const bsw_device *device,
                             struct bsw_bench_rank *out);

// "# bitsweep 0.1.0, release, ..." and so on, with the table of ranks [num_ranks].
void bsw_bench_environment_print(const struct bsw_bench_report_options *options,
                                 const struct bsw_bench_rank *ranks, int num_ranks, FILE *out);
// The same as "environment" and "ranks" of the document.
void bsw_bench_environment_describe(const struct bsw_bench_report_options *options,
                                    const struct bsw_bench_rank *ranks, int num_ranks,
                                    json_t *document);

// What `bitsweep-bench WHAT` can measure.

extern const struct bsw_command bsw_bench_cluster, bsw_bench_tune, bsw_bench_memory,
    bsw_bench_kernels;
// Where the build has GPU kernels, or the emulator's: BITSWEEP_BENCH_DEVICE.
extern const struct bsw_command bsw_bench_device;

// The status of an error that ranks have agreed on and are to agree on once more with others: ok on
// all but the rank that it comes from, so that it keeps its rank. A broken transport's stays.
enum bsw_status bsw_own_status(const bsw_transport *transport, enum bsw_status status,
                               const struct bsw_error *err);

#endif
