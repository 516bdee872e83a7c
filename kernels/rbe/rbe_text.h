// SPDX-License-Identifier: Apache-2.0
// Rows of texts, by a model of texts: what encode and search take in where their source is text.
//
// A model of full precision (train --precision float) gives the code_dims numbers of its last
// layer, whose cosine is what it learned; any codec may code them. A binary one gives the dims
// numbers of its text network, for codec rbe and the same model to code. The same bits on every
// machine.
#ifndef BITSWEEP_KERNELS_RBE_TEXT_H
#define BITSWEEP_KERNELS_RBE_TEXT_H

#include "common/base/cpu_level.h"
#include "common/rows/text_lines.h"
#include "kernels/rbe/rbe_codes.h"
#include "kernels/rbe/rbe_model_file.h"

struct bsw_rbe_text {
    struct bsw_rbe_model model; // owned
    const struct bsw_rbe_codes_table *table;
    enum bsw_cpu_level level;
    struct bsw_rbe_coder sides[BSW_RBE_NUM_SIDES]; // of a smooth model
    float *memory[BSW_RBE_NUM_SIDES];
    struct bsw_text_maker maker; // of this; to be lent
};

// A model that is not of texts is BSW_ERROR_USAGE. *out must stay where it is.
// bsw_rbe_text_close frees, also after an error; accepts {0}.
enum bsw_status bsw_rbe_text_open(const char *path, enum bsw_cpu_level level,
                                  struct bsw_rbe_text *out, struct bsw_error *err);
void bsw_rbe_text_close(struct bsw_rbe_text *text);

#endif
