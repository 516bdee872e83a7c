// SPDX-License-Identifier: Apache-2.0
// Messages between ranks, timed and checked: what `bench cluster` knows of a network.
//
// Every call is of all ranks and ends with their agreement. Rank 0 gets the result. A message of
// the timed rounds is not looked at; after them one more round goes the same way with bytes that
// are a hash of a seed of its own and their place, and every byte of it is compared where it
// arrives.
#ifndef BITSWEEP_BENCH_BENCH_NETWORK_H
#define BITSWEEP_BENCH_BENCH_NETWORK_H

#include "bench/report/bench_report.h"
#include "common/base/memory.h"
#include "common/net/transport.h"

struct bsw_bench_network {
    struct bsw_transport *transport;         // borrowed
    uint64_t *batch;                         // of the last message; counted on (transport.h)
    const struct bsw_bench_options *options; // rounds before those that count; those; the check
    struct bsw_buffer out, in;
    double *seconds; // [repeat], allocated by the caller
};

struct bsw_bench_message {
    double seconds;     // median
    int64_t num_errors; // wrong or missing bytes; BSW_BENCH_UNCHECKED
};

void bsw_bench_network_deinit(struct bsw_bench_network *network); // accepts {0}

// Half of the time that a message takes from rank a to rank b and another back. a < b.
enum bsw_status bsw_bench_network_pair(struct bsw_bench_network *network, int a, int b,
                                       size_t bytes, struct bsw_bench_message *out,
                                       struct bsw_error *err);

// From rank 0 to all, down the tree, until an empty message of every rank that has it is back;
// is_gather: an empty message down the tree, then `bytes` of every other rank to rank 0.
enum bsw_status bsw_bench_network_all(struct bsw_bench_network *network, int is_gather,
                                      size_t bytes, struct bsw_bench_message *out,
                                      struct bsw_error *err);

#endif
