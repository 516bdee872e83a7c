// SPDX-License-Identifier: Apache-2.0
// bitsweep COMMAND: runs the command on every rank.
#include <string.h>

#include "coordinator/job/command.h"

// A program of its own, bitsweep-bench, which takes this one's place.
#define BENCH "bench"

static const struct bsw_command *const commands[] = {
    &bsw_command_synth,  &bsw_command_encode,  &bsw_command_search, &bsw_command_groundtruth,
    &bsw_command_eval,   &bsw_command_append,  &bsw_command_delete, &bsw_command_compact,
    &bsw_command_info,   &bsw_command_convert, &bsw_command_train,  &bsw_command_calibrate,
    &bsw_command_verify, &bsw_command_plan,    &bsw_command_sweep};

static const struct bsw_program program = {
    .name = "",
    .title =
        "bitsweep " BITSWEEP_VERSION
        ": exhaustive vector search over quantized codes, on one or many ranks\n\n"
        "usage: bitsweep COMMAND [options]\n"
        "       bitsweep-ranks -n RANKS COMMAND [options]   (in a checkout: deploy/run.sh)\n\n",
    .end = "  " BENCH "        measure this machine: bench memory, kernels, cluster, tune\n"
           "\nbitsweep COMMAND --help lists a command's options, --help all every one of them.\n"
           "Exit codes: 0 complete, 2 usage, 65 bad input, 70 self-check failed,\n"
           "74 input, output or memory, 75 stopped or a rank was lost: --resume goes on.\n",
    .commands = commands,
    .num_commands = sizeof commands / sizeof *commands,
    .missing = "no command; ",
    .unknown = "unknown command",
    .hint = "bitsweep --help lists them"};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], BENCH) == 0) return bsw_program_replace("-" BENCH, argv + 1);
    return bsw_program_run(&program, argc, argv);
}
