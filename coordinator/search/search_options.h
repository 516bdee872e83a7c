// SPDX-License-Identifier: Apache-2.0
// All settings of a search in one list of data: what the option is called, what it may be and what
// --help says; where the library has it; what became of it, and who is told that: the journal,
// whose fields decide whether a run may be resumed, the sidecar, the report.
//
// A table and not a file of macros: rows are structs that a debugger shows, name only what they
// have, and are used by plain loops. A new setting is a member of struct bsw_search_request and a
// row here.
#ifndef BITSWEEP_COORDINATOR_SEARCH_OPTIONS_H
#define BITSWEEP_COORDINATOR_SEARCH_OPTIONS_H

#include <jansson.h>

#include "common/job/journal.h"
#include "coordinator/bitsweep.h"
#include "coordinator/job/option_table.h"
#include "coordinator/search/search.h"

// For a struct bsw_search_options, or for its first member alone, the request: other commands take
// some of these.
extern const struct bsw_option_group bsw_search_option_group;

// What the library is asked for, checked as options are. *out is {0}.
enum bsw_status bsw_search_request_take(const struct bitsweep_search_settings *asked,
                                        struct bsw_search_request *out, struct bsw_error *err);

// ---- of an open search: what became of its settings ----

enum bsw_settings_use { BSW_IN_JOURNAL = 1, BSW_IN_SIDECAR = 2, BSW_IN_REPORT = 4 };

// Those of one use, a new JSON object in the order of the list, by the option's name with _ for
// each -; NULL: no memory.
json_t *bsw_search_settings_told(const struct bsw_search *search, enum bsw_settings_use use);
// Adds those that the result is a function of, by the option's name.
void bsw_search_settings_identify(const struct bsw_search *search,
                                  struct bsw_journal_fields *fields);

#endif
