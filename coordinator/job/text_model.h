// SPDX-License-Identifier: Apache-2.0
// The model that makes rows of texts, open and lent to the thread (common/rows/text_lines.h) while
// a job's sources are text. Jobs open it where they know one; commands that have no other use for a
// model take --model.
#ifndef BITSWEEP_COORDINATOR_TEXT_MODEL_H
#define BITSWEEP_COORDINATOR_TEXT_MODEL_H

#include "coordinator/job/option_table.h"
#include "kernels/rbe/rbe_text.h"

// {0}: nothing is lent. Must stay where it is while it is.
struct bsw_text_model {
    struct bsw_rbe_text text;
    const struct bsw_text_maker *before;
    int is_lent;
};

// Where one of these names (NULL: none) is text: opens path and lends it. path NULL, or a maker
// that is lent already: nothing is done. bsw_text_model_take_back ends it, also after an error.
enum bsw_status bsw_text_model_lend(struct bsw_text_model *model, const char *path,
                                    enum bsw_cpu_level level, const char *const *names,
                                    size_t num_names, struct bsw_error *err);
void bsw_text_model_take_back(struct bsw_text_model *model);

// The path of the model that an index keeps; 0 where it has none.
int bsw_text_model_of_index(const char *index, char out[BSW_PATH_BYTES]);

// --model of commands that only read rows, a const char *.
#define BSW_TEXT_MODEL_HELP "of text as rows: FILE.txt, FILE.tsv:COLUMN; made by train --text"

#endif
