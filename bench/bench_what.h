// What `bitsweep-bench WHAT` can measure: a function for each WHAT, which every rank calls with the
// words behind it.
#ifndef BITSWEEP_BENCH_BENCH_WHAT_H
#define BITSWEEP_BENCH_BENCH_WHAT_H

#include "coordinator/job/command.h"

enum bsw_status bsw_bench_cluster(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err);
enum bsw_status bsw_bench_tune(struct bsw_transport *transport, int argc, char **argv,
                               struct bsw_error *err);
enum bsw_status bsw_bench_memory(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err);
enum bsw_status bsw_bench_kernels(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err);
// Where the build has GPU kernels, or the emulator's: BITSWEEP_BENCH_DEVICE.
enum bsw_status bsw_bench_device(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err);

#endif
