// SPDX-License-Identifier: Apache-2.0
// Which metric a command takes: nobody's default, since a wrong one gives wrong neighbours without
// a word. --metric says it, or an HDF5 file, whose attribute `distance` ann-benchmarks writes.
#ifndef BITSWEEP_COORDINATOR_METRIC_CHOICE_H
#define BITSWEEP_COORDINATOR_METRIC_CHOICE_H

#include "common/codes/metric.h"
#include "common/rows/vectors.h"

// For --help.
#define BSW_METRIC_HELP "what is nearest; needed unless an HDF5 file says it (its 'distance')"

// given: --metric, what an index has, or NULL; base, queries: what is read, queries may be NULL.
// angular and cosine are cosine, euclidean and l2 are l2, dot and ip are ip. BSW_ERROR_USAGE where
// nothing says a metric, or two things say different ones, --metric among them; another word of a
// file counts as nothing said.
enum bsw_status bsw_metric_choose(const char *given, const bsw_vectors *base,
                                  const bsw_vectors *queries, enum bsw_metric *out,
                                  struct bsw_error *err);

#endif
