// SPDX-License-Identifier: Apache-2.0
// How many of the best rows rbeGIR's selection misses (RBE, Appendix B): rows are divided among
// threads, each keeps its best few, so rows of the N best that meet too many better ones are lost.
//
// The N best lie anywhere among T threads of I rows, every placement as likely as any other; a
// thread with n of them keeps min(n, Q). Placements with l misses, over m threads that miss some:
//
//   sum over m <= l of C(T, m) * [w^l] D(w)^m * [x^(N - Qm - l)] A(x)^(T - m),
//   A(x) = sum over n <= Q of C(I, n) x^n,  D(w) = sum over j >= 1 of C(I, Q + j) w^j,
//
// out of C(T * I, N); with Q = 1 that is Eq. 16, which the paper enumerates. It is evaluated in
// logarithms, with polynomials scaled so that nothing over- or underflows; relative error about
// 1e-9. Where more rows are wanted than there are threads and Q > 1, terms of the powers cancel:
// there the figures come from a seeded simulation, and say so.
#ifndef BITSWEEP_COMMON_MISS_PROBABILITY_H
#define BITSWEEP_COMMON_MISS_PROBABILITY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

#define BSW_MISS_MAX_BEST  100000
#define BSW_MISS_MAX_TERMS 1024

struct bsw_miss_setting {
    uint64_t num_threads;  // T
    uint64_t num_items;    // I, of a thread
    uint64_t num_best;     // N: 1 .. min(T * I, BSW_MISS_MAX_BEST)
    uint64_t queue_length; // Q
};

// What the formula is for where rows are no multiple of the items: as many whole threads as they
// fill, at least one, none with more items than rows. The rest is left out: slightly fewer rows
// for the same N best, so slightly more misses than there will be.
struct bsw_miss_setting bsw_miss_setting_of(uint64_t num_rows, uint64_t num_items,
                                            uint64_t num_best, uint64_t queue_length);

// probabilities[l] = P(exactly l misses), l = 0 .. num_terms - 1; num_terms 1 ..
// BSW_MISS_MAX_TERMS. *is_simulated: whether they are relative frequencies. Cost: num_terms^3 / 6
// or, for Q > 1, num_terms * N * Q multiply-adds. A setting out of range is BSW_ERROR_USAGE.
enum bsw_status bsw_miss_probabilities(const struct bsw_miss_setting *setting, size_t num_terms,
                                       double *probabilities, int *is_simulated,
                                       struct bsw_error *err);

// Threads that have equally many items.
struct bsw_thread_class {
    uint64_t num_threads, num_items;
};

// The mean number of misses, exact for any threads and Q: the sum over threads of
// E[max(n - Q, 0)], n hypergeometric. num_best 0 .. sum of all items.
double bsw_expected_misses(const struct bsw_thread_class *classes, size_t num_classes,
                           uint64_t num_best, uint64_t queue_length);

// log C(n, k), relative error of the binomial about 1e-15 * k * log(n / k); -INFINITY for k > n.
double bsw_log_binomial(double n, double k);

BSW_C_END
#endif
