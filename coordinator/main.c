// bitsweep COMMAND: opens the transport, runs the command on every rank, prints its error once,
// picks the exit code.
#include <cblas.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/run_status.h"
#include "common/stop_signal.h"
#include "coordinator/command.h"

static const struct bsw_command commands[] = {
    {"synth", "write generated vectors", bsw_command_synth},
    {"encode", "make an index of codes from a vector file", bsw_command_encode},
    {"search", "search an index with a file of queries", bsw_command_search},
    {"groundtruth", "exact nearest neighbours of queries", bsw_command_groundtruth},
    {"eval", "recall of a result file against a ground truth", bsw_command_eval},
    {"info", "what is in an index, a model, a vector file or a result file", bsw_command_info},
    {"convert", "write vectors, results or a ground truth in another format", bsw_command_convert},
    {"train", "learn an rbe model from pairs of vectors", bsw_command_train},
    {"verify", "check every checksum and known answer of an index", bsw_command_verify},
    {"plan", "memory, bytes, misses and seconds before an index is made", bsw_command_plan},
    {"sweep", "recall and speed over a grid of codes and searches", bsw_command_sweep},
    {"bench", "measure this machine: bench memory, kernels, cluster, tune", bsw_command_bench},
};

#define NUM_COMMANDS (sizeof commands / sizeof commands[0])

static void print_usage(FILE *out)
{
    fprintf(out,
            "bitsweep %s: exhaustive vector search over quantized codes, on one or many ranks\n\n",
            BITSWEEP_VERSION);
    fprintf(out, "usage: bitsweep COMMAND [options]\n"
                 "       deploy/run.sh -n RANKS COMMAND [options]\n\n");
    for (size_t i = 0; i < NUM_COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\nbitsweep COMMAND --help lists a command's options.\n"
                 "Exit codes: 0 complete, 2 usage, 65 bad input, 70 self-check failed,\n"
                 "74 input, output or memory, 75 stopped or a rank was lost: --resume goes on.\n");
}

static const struct bsw_command *find_command(const char *name)
{
    for (size_t i = 0; i < NUM_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    }
    return NULL;
}

static enum bsw_status run(struct bsw_transport *transport, int argc, char **argv,
                           struct bsw_error *err)
{
    if (argc < 2) return bsw_fail(err, BSW_ERROR_USAGE, "no command; bitsweep --help lists them");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        if (transport->rank == 0) print_usage(stdout);
        return BSW_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        if (transport->rank == 0) printf("bitsweep %s\n", BITSWEEP_VERSION);
        return BSW_OK;
    }
    const struct bsw_command *command = find_command(argv[1]);
    if (!command)
        return bsw_fail(err, BSW_ERROR_USAGE, "unknown command '%s'; bitsweep --help lists them",
                        argv[1]);
    return command->run(transport, argc - 2, argv + 2, err);
}

// A fault that all ranks agreed on is printed by rank 0; one of the transport itself by whoever met
// it.
static void print_error(const struct bsw_transport *transport, const struct bsw_error *err)
{
    if (transport->rank != 0 && !transport->broken) return;
    if (err->rank >= 0 && transport->num_ranks > 1)
        fprintf(stderr, "bitsweep: rank %d: %s\n", err->rank, err->message);
    else
        fprintf(stderr, "bitsweep: %s\n", err->message);
}

// How the run ended, for whoever asks: the last thing but closing, which ends the process where the
// transport is broken. A run that cannot say that it is complete has failed.
static enum bsw_status conclude(const struct bsw_transport *transport, enum bsw_status status,
                                struct bsw_error *err)
{
    if (status != BSW_OK && transport->num_ranks == 1) bsw_stop_yield();
    bsw_stop_conclude(bsw_status_exit_code(status));
    if (status != BSW_OK) print_error(transport, err);
    if (transport->rank != 0) return status;
    if (status != BSW_OK) {
        bsw_run_status_write(status, err->message, NULL); // one line is enough
        return status;
    }
    status = bsw_run_status_write(status, "", err);
    bsw_stop_conclude(bsw_status_exit_code(status));
    if (status != BSW_OK) print_error(transport, err);
    return status;
}

int main(int argc, char **argv)
{
    struct bsw_transport transport = {0};
    struct bsw_error err = {0};
    signal(SIGPIPE, SIG_IGN); // a closed stdout is a write error, not a death
    openblas_set_num_threads(1);
    enum bsw_status status = bsw_stop_watch(&err);
    if (status == BSW_OK) status = bsw_transport_open(&transport, &err);
    if (status != BSW_OK) {
        fprintf(stderr, "bitsweep: %s\n", err.message);
        if (bsw_stop_is_rank0()) bsw_run_status_write(status, err.message, NULL);
        return bsw_status_exit_code(status);
    }
    bsw_stop_set_rank(transport.rank);
    const struct bsw_command *command = argc > 1 ? find_command(argv[1]) : NULL;
    if (transport.rank == 0) bsw_run_status_begin(command ? command->name : "");
    status = run(&transport, argc, argv, &err);
    if (status == BSW_OK && transport.rank == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
        status = bsw_fail(&err, BSW_ERROR_IO, "cannot write to standard output");
    }
    status = conclude(&transport, status, &err);
    bsw_transport_close(&transport, status != BSW_OK);
    return bsw_status_exit_code(status);
}
