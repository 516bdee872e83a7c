// bitsweep-bench WHAT, which `bitsweep bench WHAT` starts: the door to what is measured; each WHAT
// has its own file and options.
#include <stdio.h>
#include <string.h>

#include "bench/bench_what.h"
#include "coordinator/job/program.h"

static const struct {
    const char *name, *summary;
    enum bsw_status (*run)(struct bsw_transport *transport, int argc, char **argv,
                           struct bsw_error *err);
} benches[] = {
    {"memory", "the limits: memory bandwidth and arithmetic of every rank", bsw_bench_memory},
    {"kernels", "CPU kernels against their limits and the reference", bsw_bench_kernels},
    {"tune", "which scan and tile is best for which codes: the tables of kernels/", bsw_bench_tune},
    {"cluster", "messages between ranks, searches on 1, 2, 4, ... of them", bsw_bench_cluster},
#if defined(BITSWEEP_BENCH_DEVICE) // CMakeLists.txt
    {"device", "scans, encoding and exact values on one GPU against its limits", bsw_bench_device},
#endif
};

#define NUM_BENCHES (sizeof benches / sizeof benches[0])

static void print_usage(FILE *out)
{
    fprintf(out, "bitsweep bench: measure this machine\n\n"
                 "usage: bitsweep bench WHAT [options]\n\n");
    for (size_t i = 0; i < NUM_BENCHES; i++)
        fprintf(out, "  %-12s %s\n", benches[i].name, benches[i].summary);
    fprintf(out, "\nbitsweep bench WHAT --help lists its options.\n");
}

// "memory, kernels, ..."
static void list_names(char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < NUM_BENCHES && used < capacity; i++) {
        int written =
            snprintf(text + used, capacity - used, "%s%s", i ? ", " : "", benches[i].name);
        if (written > 0) used += (size_t)written;
    }
}

static enum bsw_status run(struct bsw_transport *transport, int argc, char **argv,
                           struct bsw_error *err)
{
    char names[128];
    list_names(names, sizeof names);
    if (argc < 1)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "bench of what? usage: bitsweep bench WHAT [options], WHAT one of: %s",
                        names);
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        if (transport->rank == 0) print_usage(stdout);
        return BSW_OK;
    }
    if (strcmp(argv[0], "--version") == 0) {
        if (transport->rank == 0) printf("bitsweep %s\n", BITSWEEP_VERSION);
        return BSW_OK;
    }
    for (size_t i = 0; i < NUM_BENCHES; i++) {
        if (strcmp(argv[0], benches[i].name) == 0)
            return benches[i].run(transport, argc - 1, argv + 1, err);
    }
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "no bench '%s'; usage: bitsweep bench WHAT [options], WHAT one of: %s", argv[0],
                    names);
}

int main(int argc, char **argv)
{
    return bsw_program_run("bench", run, argc, argv);
}
