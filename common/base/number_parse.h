// SPDX-License-Identifier: Apache-2.0
// Numbers as people write them on a command line.
//
// Digits may have single underscores between them (1_000_000). An exponent (1e9, 1.5e3) and then a
// unit may follow: K, M, G are powers of 1000 (k, m, g are the same), Ki, Mi, Gi of 1024. At most
// BSW_NUMBER_CHARACTERS in all. Anything else, spaces included, is BSW_ERROR_USAGE with one line
// that names `what` and the text; *out is set on success only.
#ifndef BITSWEEP_COMMON_NUMBER_PARSE_H
#define BITSWEEP_COMMON_NUMBER_PARSE_H

#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

#define BSW_NUMBER_CHARACTERS 63

// A number that a macro has, as such text.
#define BSW_TEXT_OF(number)    BSW_TEXT_OF_IT(number)
#define BSW_TEXT_OF_IT(number) #number

// "1500", "1.5M", "1e9", "1Gi": a whole number of at most 2^63 - 1, computed exactly.
enum bsw_status bsw_count_parse(const char *what, const char *text, uint64_t *out,
                                struct bsw_error *err);

// The same where a word may stand in its place, which is told too: "auto".
enum bsw_status bsw_count_parse_or(const char *what, const char *text, const char *word,
                                   uint64_t *out, struct bsw_error *err);

// Also with a sign and a fraction, "-1.5e-3"; finite.
enum bsw_status bsw_number_parse(const char *what, const char *text, double *out,
                                 struct bsw_error *err);

BSW_C_END
#endif
