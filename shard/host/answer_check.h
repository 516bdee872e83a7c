// SPDX-License-Identifier: Apache-2.0
// What a scan found for a pinned query against the known answer of the shard.
#ifndef BITSWEEP_SHARD_ANSWER_CHECK_H
#define BITSWEEP_SHARD_ANSWER_CHECK_H

#include <stddef.h>

#include "common/files/index_manifest.h"

// found [count]: candidates in the total order, of a scan that keeps `keep`. They must be the best
// min(keep, known) rows; with has_gaps rows may be missing, but not the best: a queue keeps only
// the best of each thread. `query` is below the manifest's num_known. BSW_ERROR_SELF_CHECK says
// which row and key was expected, and which was found.
enum bsw_status bsw_known_answer_check(const struct bsw_manifest *manifest, uint32_t shard,
                                       uint32_t query, const uint64_t *found, size_t count,
                                       size_t keep, int has_gaps, struct bsw_error *err);

#endif
