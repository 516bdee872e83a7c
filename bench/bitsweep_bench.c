// SPDX-License-Identifier: Apache-2.0
// bitsweep-bench WHAT, which `bitsweep bench WHAT` starts: the door to what is measured; each WHAT
// has its own file and options.
#include "bench/bench_what.h"
#include "coordinator/job/command.h"

#if defined(BITSWEEP_BENCH_DEVICE) // CMakeLists.txt
#define NUM_BENCHES 5
#define AND_DEVICE  ", device"
#else
#define NUM_BENCHES 4
#define AND_DEVICE  ""
#endif

static const struct bsw_command *const benches[NUM_BENCHES] = {
    &bsw_bench_memory, &bsw_bench_kernels, &bsw_bench_tune, &bsw_bench_cluster,
#if defined(BITSWEEP_BENCH_DEVICE)
    &bsw_bench_device
#endif
};

static const struct bsw_program program = {
    .name = "bench",
    .title = "bitsweep bench: measure this machine\n\n"
             "usage: bitsweep bench WHAT [options]\n\n",
    .end = "\nbitsweep bench WHAT --help lists its options.\n",
    .commands = benches,
    .num_commands = NUM_BENCHES,
    .missing = "bench of what? ",
    .unknown = "no bench",
    .hint = "usage: bitsweep bench WHAT [options], WHAT one of: memory, kernels, tune, "
            "cluster" AND_DEVICE};

int main(int argc, char **argv)
{
    return bsw_program_run(&program, argc, argv);
}
