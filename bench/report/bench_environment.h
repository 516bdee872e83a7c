// SPDX-License-Identifier: Apache-2.0
// What a measurement was made with: program, build, command line, and every rank's host and device.
#ifndef BITSWEEP_BENCH_BENCH_ENVIRONMENT_H
#define BITSWEEP_BENCH_BENCH_ENVIRONMENT_H

#include "bench/report/bench_report.h"
#include "common/base/cpu_level.h"

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

#endif
