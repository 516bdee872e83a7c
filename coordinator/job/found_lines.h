// SPDX-License-Identifier: Apache-2.0
// Answers of a search for people: the lines of text that were found, beside their scores.
#ifndef BITSWEEP_COORDINATOR_FOUND_LINES_H
#define BITSWEEP_COORDINATOR_FOUND_LINES_H

#include "common/files/result_file.h"
#include "common/rows/text_lines.h"
#include "coordinator/job/facts.h"

// lines: NULL, or the texts, line i of row i; a row beyond them has none. A list "found", and a
// table for people.
enum bsw_status bsw_found_lines_tell(struct bsw_facts *facts, const struct bsw_results *answers,
                                     const struct bsw_text_lines *lines, struct bsw_error *err);

#endif
