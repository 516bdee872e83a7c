// SPDX-License-Identifier: Apache-2.0
// What the parts of `bench cluster` share: its options, its report, and the rates that `plan
// --rates` takes.
#ifndef BITSWEEP_BENCH_BENCH_CLUSTER_H
#define BITSWEEP_BENCH_BENCH_CLUSTER_H

#include <string.h>

#include "bench/cluster/bench_search.h"
#include "bench/report/bench_report.h"
#include "common/files/index_manifest.h"
#include "common/net/device_link.h"
#include "coordinator/job/device_choice.h"
#include "coordinator/plan/cluster_model.h"

#define BSW_CLUSTER_CASES "network,exchange,weak,strong,replicas,merge"

enum bsw_cluster_case {
    BSW_CLUSTER_NETWORK = 1,
    BSW_CLUSTER_EXCHANGE = 2,
    BSW_CLUSTER_WEAK = 4,
    BSW_CLUSTER_STRONG = 8,
    BSW_CLUSTER_REPLICAS = 16,
    BSW_CLUSTER_MERGE = 32
};

struct bsw_cluster_options {
    struct bsw_common_options common;
    struct bsw_bench_options bench;
    struct bsw_device_choice device;
    const char *cases_text, *pairs, *codec_text;
    enum bsw_link_choice link;
    unsigned cases; // enum bsw_cluster_case
    const struct bsw_codec *codec;
    uint64_t rows, dims, queries, batch, k, query_bits, parts, sample, seed;
    double bits, oversample;
};

// SI units; NAN: not measured.
struct bsw_cluster_rates {
    double alpha_seconds, beta_seconds_per_byte;
    double scan_pairs, scan_bytes; // a second
    double encode_queries, merge_candidates, refine_rows, finish_queries;
    // No rate: of a core's speed alone what it has when all of its host work.
    double busy_core_share;
    const char *scan; // that ran; NULL: none
};

struct bsw_bench_cluster {
    struct bsw_cluster_options options;
    struct bsw_transport *transport;
    struct bsw_bench_report report;
    struct bsw_chosen_device chosen; // {0} on CPUs; until searches choose theirs
    int is_shared;                   // ranks have a device together: rank 0
    struct bsw_rank_group group;     // has the number of the last message
    struct bsw_network_fit fit;      // rank 0
    int has_fit;
    struct bsw_cluster_rates rates; // rank 0
};

// Whether --device says anything but cpu.
static inline int bsw_cluster_has_devices(const struct bsw_cluster_options *options)
{
    return strcmp(options->device.text, "cpu") != 0;
}

// All ranks; each ends with an agreement. Tables and, on rank 0, fit and rates.
enum bsw_status bsw_cluster_network_run(struct bsw_bench_cluster *cluster, struct bsw_error *err);
enum bsw_status bsw_cluster_link_run(struct bsw_bench_cluster *cluster, struct bsw_error *err);
enum bsw_status bsw_cluster_scaling_run(struct bsw_bench_cluster *cluster, struct bsw_error *err);

#endif
