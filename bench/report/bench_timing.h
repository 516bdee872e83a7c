// SPDX-License-Identifier: Apache-2.0
// Times of work, as benches take them: what is compared takes turns, so that a disturbance hits all
// of it, short work is repeated between two looks at the clock, medians count.
#ifndef BITSWEEP_BENCH_BENCH_TIMING_H
#define BITSWEEP_BENCH_BENCH_TIMING_H

#include <stddef.h>

#include "bench/report/bench_report.h"

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

#endif
