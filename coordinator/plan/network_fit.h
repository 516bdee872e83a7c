// SPDX-License-Identifier: Apache-2.0
// The two numbers of a network: a message of n bytes takes alpha + n * beta.
#ifndef BITSWEEP_COORDINATOR_NETWORK_FIT_H
#define BITSWEEP_COORDINATOR_NETWORK_FIT_H

#include <stddef.h>
#include <stdint.h>

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
