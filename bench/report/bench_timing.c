// SPDX-License-Identifier: Apache-2.0
#include "bench/report/bench_timing.h"

#include "common/base/median.h"

#define LEAST_SECONDS 0.0002
#define MOST_CALLS    1e6

static double time_calls(bsw_bench_clock_fn clock, const struct bsw_bench_run *run, size_t calls)
{
    double start = clock();
    for (size_t i = 0; i < calls; i++) run->work(run->context);
    return clock() - start;
}

static size_t choose_calls(double seconds)
{
    if (seconds * MOST_CALLS < LEAST_SECONDS)
        return (size_t)MOST_CALLS; // also 0, of a coarse clock
    return seconds < LEAST_SECONDS ? (size_t)(LEAST_SECONDS / seconds) + 1 : 1;
}

void bsw_bench_take_turns(const struct bsw_bench_options *options, bsw_bench_clock_fn clock,
                          struct bsw_bench_run *runs, size_t num_runs)
{
    double seconds[BSW_BENCH_MAX_RUNS][BSW_BENCH_MAX_REPEATS];
    size_t calls[BSW_BENCH_MAX_RUNS];
    for (uint64_t turn = 0; turn < options->warmup || turn == 0; turn++) {
        for (size_t i = 0; i < num_runs; i++)
            calls[i] = choose_calls(time_calls(clock, &runs[i], 1));
    }
    for (uint64_t turn = 0; turn < options->repeat; turn++) {
        for (size_t i = 0; i < num_runs; i++)
            seconds[i][turn] = time_calls(clock, &runs[i], calls[i]) / (double)calls[i];
    }
    for (size_t i = 0; i < num_runs; i++) runs[i].seconds = bsw_median(seconds[i], options->repeat);
}
