// SPDX-License-Identifier: Apache-2.0
// What a whole pass consists of: for device_bench_pass.c, and who looks at what it found.
#ifndef BITSWEEP_BENCH_DEVICE_BENCH_PASS_H
#define BITSWEEP_BENCH_DEVICE_BENCH_PASS_H

#include "bench/device/device_bench.h"
#include "shard/device/device_shard.h"

struct device_bench_pass {
    const struct device_bench_shape *shape;
    bsw_device *small; // of a streaming pass: the same GPU, with too little of its memory
    struct device_bench_queries queries;
    struct bsw_resident_shard host; // its shape alone unless codes are streamed
    struct bsw_device_engine engine;
    struct bsw_device_shard shard;
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists lists;
    struct bsw_product_codes *product; // of codes with tables; owned
    size_t num_queries, first_query;   // the latter of the last batch
};

#endif
