// SPDX-License-Identifier: Apache-2.0
// What an index is a function of, as the fields of its journals: not ranks, threads or devices.
#ifndef BITSWEEP_COORDINATOR_ENCODE_FIELDS_H
#define BITSWEEP_COORDINATOR_ENCODE_FIELDS_H

#include "common/files/index_manifest.h"
#include "common/job/journal.h"
#include "coordinator/encode/encode_index.h"

// Called on rank 0. manifest: what is known before anything is trained: source, metric, the number
// of lists and whether codes are of residuals. input_digest: of the rows
// (coordinator/job/same_input.h).
enum bsw_status bsw_encode_fields_make(const struct bsw_encode_settings *settings,
                                       const struct bsw_manifest *manifest,
                                       const struct bsw_codec_model *model, uint64_t input_digest,
                                       struct bsw_journal_fields *out, struct bsw_error *err);

#endif
