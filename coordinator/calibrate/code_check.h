// SPDX-License-Identifier: Apache-2.0
// What codes are worth, found while they are made: rows of the sample as queries, searched by the
// codes of other rows of the sample, against their exact neighbours. No index is needed, only its
// manifest, so that a warning comes before a billion rows are coded.
//
// The sample has fewer rows than a corpus, so that neighbours lie further apart and are told apart
// more easily: a high figure promises less than a low one warns of.
#ifndef BITSWEEP_COORDINATOR_CODE_CHECK_H
#define BITSWEEP_COORDINATOR_CODE_CHECK_H

#include "common/base/cpu_level.h"
#include "common/files/index_manifest.h"
#include "common/rows/vectors.h"
#include "shard/codecs/sample.h"

// Sets manifest->check, also a cause where rows lie far out or the recall is below
// BSW_CODE_CHECK_LEAST. vectors: the rows to be coded; far: of their sample. Rank 0 alone, with all
// OpenMP threads. Corpora of fewer than 200 rows, and codes that are exact, are not checked. The
// figure is the same for any number of threads and on every level.
//
// It takes up to BSW_SAMPLE_ROWS rows to read, some 8,192 to code, and a search of 200 queries.
enum bsw_status bsw_code_check_run(const bsw_vectors *vectors, const struct bsw_sample_far *far,
                                   enum bsw_cpu_level level, struct bsw_manifest *manifest,
                                   struct bsw_error *err);

#endif
