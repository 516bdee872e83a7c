// What `bitsweep bench WHAT` can measure: a function for each WHAT, called with the words behind
// it.
#ifndef BITSWEEP_COORDINATOR_COMMAND_BENCH_H
#define BITSWEEP_COORDINATOR_COMMAND_BENCH_H

#include "coordinator/command.h"

enum bsw_status bsw_bench_cluster(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err);
enum bsw_status bsw_bench_tune(struct bsw_transport *transport, int argc, char **argv,
                               struct bsw_error *err);
enum bsw_status bsw_bench_memory(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err);
enum bsw_status bsw_bench_kernels(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err);

#endif
