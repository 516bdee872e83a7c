// SPDX-License-Identifier: Apache-2.0
// Pairs of texts to train on: lines "query TAB document" of a file, and the vocabulary of trigrams
// that is learned from them. More columns are left alone.
#ifndef BITSWEEP_COORDINATOR_TEXT_PAIRS_H
#define BITSWEEP_COORDINATOR_TEXT_PAIRS_H

#include "common/rows/text_lines.h"
#include "coordinator/train/rbe_training.h"

struct bsw_text_pairs {
    struct bsw_text_lines lines;
    struct bsw_text_vocabulary vocabulary;
};

// Called by all ranks, each of which reads the file; ends with an agreement. most_grams: of the
// vocabulary, or how many hashes there are if is_hashed. A line without a tab, or no word at all,
// is BSW_ERROR_BAD_DATA. bsw_text_pairs_close frees, also after a failure; accepts {0}.
enum bsw_status bsw_text_pairs_open(const char *path, uint32_t most_grams, int is_hashed,
                                    struct bsw_transport *transport, struct bsw_text_pairs *out,
                                    struct bsw_error *err);
void bsw_text_pairs_close(struct bsw_text_pairs *pairs);

// For bsw_rbe_train; borrows them.
struct bsw_rbe_pairs bsw_text_pairs_pairs(struct bsw_text_pairs *pairs);

#endif
