// SPDX-License-Identifier: Apache-2.0
// Seconds and bytes of a batch on a cluster, phase by phase, from rates that were measured or
// given: arithmetic alone. bench/scaling.md has the formulas, with the names of the fields below,
// checks them and says where they stop being true.
#ifndef BITSWEEP_COORDINATOR_CLUSTER_MODEL_H
#define BITSWEEP_COORDINATOR_CLUSTER_MODEL_H

#include <stddef.h>
#include <stdint.h>

// Half of the longest sleep between two looks of a rank that waits (transport_mpi.c).
#define BSW_CLUSTER_NAP_SECONDS 1e-4

// What one rank with `threads` threads reaches; 0: not known.
struct bsw_model_rates {
    double alpha_seconds;             // a message of no bytes, until the receiver has it
    double beta_seconds_per_byte;     // of a message
    double scan_pairs_per_second;     // of row and query, selection included
    double scan_bytes_per_second;     // of codes from memory
    double encode_queries_per_second; // coded and packed
    double merge_candidates_per_second;
    double refine_rows_per_second;
    double finish_queries_per_second; // with L survivors each; written too
    double busy_core_share;           // speed of a core when all of its host work, alone 1
    uint64_t threads;                 // >= 1
    int scans_on_device;              // threads and cores do not matter to it
};

struct bsw_cluster_job {
    uint64_t num_ranks;     // R
    uint64_t ranks_a_host;  // at most; >= 1
    uint64_t cores;         // C, of a host, >= 1
    uint64_t threads;       // T, >= 1
    uint64_t num_shards;    // N
    uint64_t num_replicas;  // >= 1
    uint64_t rows;          // of the rank with most
    uint64_t shard_rows;    // of a shard
    uint64_t scanned_bytes; // by that rank in a pass
    uint64_t batch, keep;   // keep: L
    uint64_t batch_bytes;   // as it travels to a rank: B query_bytes
    int is_ladder, is_refined;
};

// Seconds of a batch.
struct bsw_cluster_times {
    double encode, broadcast, scan, candidates, merge, cuts, refine, answers, finish;
    double total;
    double queries_per_second;
    double crowd; // threads on a core
    int is_overlapped;
    // Bytes: to each rank, and to rank 0 from all others.
    double batch_bytes, candidates_bytes, cuts_bytes, answers_bytes;
};

// scan_pairs_per_second, or scan_bytes_per_second, must be known, and alpha and beta on several
// ranks; a phase whose rate is not takes 0.
void bsw_cluster_times_of(const struct bsw_model_rates *rates, const struct bsw_cluster_job *job,
                          struct bsw_cluster_times *out);

// Rows within the ladder's cut, expected: L of one shard. Of more, each with a Poisson number n of
// mean m of them, of which the cut counts the largest power of two up to n: N m, where N times the
// mean of what is counted is L. From L to 2 L.
double bsw_cluster_survivors(uint64_t keep, uint64_t num_shards);

// Places of a shard's list of `count` rows that the ladder sends.
uint64_t bsw_cluster_ladder_places(uint64_t count);

// ---- fit ----------------------------------------------------------------------------------------

// The two numbers of a network: a message of n bytes takes alpha + n * beta.

struct bsw_network_fit {
    double alpha_seconds, beta_seconds_per_byte; // neither below 0
    double worst;                                // largest |alpha + n beta - t| / t of a size
};

// The least squares of relative errors, sum of ((alpha + n_i beta - t_i) / t_i)^2, over alpha, beta
// >= 0: small messages decide alpha, large ones beta, where plain least squares would see only the
// large ones. Times are medians, so single slow messages do not count. t_i > 0. Returns 0 where
// there are not two different sizes, which cannot tell the two apart; *out is then not set.
int bsw_network_fit_make(const double *bytes, const double *seconds, size_t count,
                         struct bsw_network_fit *out);

// Edges on the longest way from rank 0 to another down a binomial tree: ceil(log2 of the ranks).
uint32_t bsw_tree_depth(uint32_t num_ranks);

// Times by the two numbers. A message to all down the tree: each edge of the longest way sends it
// anew. Messages of all other ranks to rank 0, `bytes` in all: they come one after the other.
double bsw_network_broadcast_seconds(const struct bsw_network_fit *fit, uint32_t num_ranks,
                                     double bytes);
double bsw_network_gather_seconds(const struct bsw_network_fit *fit, uint32_t num_ranks,
                                  double bytes);

#endif
