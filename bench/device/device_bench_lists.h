// SPDX-License-Identifier: Apache-2.0
// A batch over lists under way: for device_bench_lists.c, and its check.
#ifndef BITSWEEP_BENCH_DEVICE_BENCH_LISTS_H
#define BITSWEEP_BENCH_DEVICE_BENCH_LISTS_H

#include "bench/device/device_bench.h"
#include "kernels/device_exact/device_exact.h"
#include "kernels/device_scan/device_tuning.h"
#include "shard/device/device_coarse.h"
#include "shard/device/device_kept.h"
#include "shard/device/device_shard.h"

struct lists_bench {
    struct device_bench *bench;
    const struct device_bench_shape *shape;
    uint32_t num_queries, probe;
    struct bsw_resident_shard host;
    struct bsw_device_shard shard;
    struct bsw_manifest manifest; // of centroids alone
    struct bsw_coarse_search *coarse_search;
    struct bsw_device_coarse coarse;
    struct bsw_list_choice choice;
    struct bsw_device_tuning tuning; // the device's, but for who makes items
    struct bsw_device_engine engine;
    struct bsw_device_kept kept;
    struct bsw_scan_workspace workspace;
    struct device_bench_queries queries;
    float *vectors;                   // [num_queries][dims]: for the coarse step
    struct bsw_cut *cuts;             // [num_queries]: everything stays
    struct bsw_candidate_lists found; // of all queries
    uint64_t num_pairs;               // of query and list
    // Refinement.
    struct bsw_device_buffer memory;
    struct bsw_device_raw_rows raw_rows; // uint8, as many dimensions as codes have
    struct bsw_device_vectors raw_queries;
    struct bsw_device_pair *d_pairs, *pairs;
    double *d_values, *values;
    size_t num_survivors;
};

// The first and the last query: lists are the nearest, candidates lie in them, have the host's
// scores, and lack no row that they should have of 4,096 there; values are exact.
enum bsw_status device_bench_lists_check(struct lists_bench *lists, struct bsw_error *err);

#endif
