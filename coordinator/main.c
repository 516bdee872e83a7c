// bitsweep COMMAND: runs the command on every rank.
#include <stdio.h>
#include <string.h>

#include "coordinator/job/program.h"

// A program of its own, bitsweep-bench, which takes this one's place.
#define BENCH "bench"

static const struct bsw_command *const commands[] = {
    &bsw_command_synth,  &bsw_command_encode, &bsw_command_search,  &bsw_command_groundtruth,
    &bsw_command_eval,   &bsw_command_info,   &bsw_command_convert, &bsw_command_train,
    &bsw_command_verify, &bsw_command_plan,   &bsw_command_sweep};

#define NUM_COMMANDS (sizeof commands / sizeof *commands)

static void print_usage(FILE *out)
{
    fprintf(out,
            "bitsweep %s: exhaustive vector search over quantized codes, on one or many ranks\n\n",
            BITSWEEP_VERSION);
    fprintf(out, "usage: bitsweep COMMAND [options]\n"
                 "       deploy/run.sh -n RANKS COMMAND [options]\n\n");
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i]->table.command, commands[i]->table.summary);
    fprintf(out, "  %-12s measure this machine: bench memory, kernels, cluster, tune\n", BENCH);
    fprintf(out, "\nbitsweep COMMAND --help lists a command's options.\n"
                 "Exit codes: 0 complete, 2 usage, 65 bad input, 70 self-check failed,\n"
                 "74 input, output or memory, 75 stopped or a rank was lost: --resume goes on.\n");
}

static const struct bsw_command *find_command(const char *name)
{
    for (size_t i = 0; i < NUM_COMMANDS; i++) {
        if (strcmp(name, commands[i]->table.command) == 0) return commands[i];
    }
    return NULL;
}

static enum bsw_status run(struct bsw_transport *transport, int argc, char **argv,
                           struct bsw_error *err)
{
    if (argc < 1) return bsw_fail(err, BSW_ERROR_USAGE, "no command; bitsweep --help lists them");
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 ||
        strcmp(argv[0], "help") == 0) {
        if (transport->rank == 0) print_usage(stdout);
        return BSW_OK;
    }
    if (strcmp(argv[0], "--version") == 0) {
        if (transport->rank == 0) printf("bitsweep %s\n", BITSWEEP_VERSION);
        return BSW_OK;
    }
    const struct bsw_command *command = find_command(argv[0]);
    if (!command)
        return bsw_fail(err, BSW_ERROR_USAGE, "unknown command '%s'; bitsweep --help lists them",
                        argv[0]);
    return bsw_command_run(command, transport, argc - 1, argv + 1, err);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], BENCH) == 0) return bsw_program_replace("-" BENCH, argv + 1);
    const struct bsw_command *command = argc > 1 ? find_command(argv[1]) : NULL;
    return bsw_program_run(command ? command->table.command : "", run, argc, argv);
}
