// SPDX-License-Identifier: Apache-2.0
// What codes are worth, found while they are made: rows of the sample as queries, searched by the
// codes of other rows of the sample, against their exact neighbours. No index is needed, only its
// manifest, so that a warning comes before a billion rows are coded.
//
// The sample has fewer rows than a corpus, so that neighbours lie further apart and are told apart
// more easily: a high figure promises less than a low one warns of.
#ifndef BITSWEEP_COORDINATOR_CODE_CHECK_H
#define BITSWEEP_COORDINATOR_CODE_CHECK_H

#include "coordinator/encode/code_recall.h"
#include "shard/codecs/sample.h"

// Sets manifest->check of codes whose training is done, also a cause where rows lie far out or the
// recall is below BSW_CODE_CHECK_LEAST. measure: with queries; far: of the sample that they were
// trained by.
enum bsw_status bsw_code_check_set(const struct bsw_code_recall *measure,
                                   const struct bsw_sample_far *far, struct bsw_manifest *manifest,
                                   struct bsw_error *err);

#endif
