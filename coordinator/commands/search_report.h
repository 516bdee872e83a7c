// SPDX-License-Identifier: Apache-2.0
// What `search` tells of a run, on rank 0.
#ifndef BITSWEEP_COORDINATOR_SEARCH_REPORT_H
#define BITSWEEP_COORDINATOR_SEARCH_REPORT_H

#include "coordinator/job/facts.h"
#include "coordinator/search/search.h"

// pin: --pin; out: the result.
void bsw_search_report(const struct bsw_search *search, enum bsw_facts_form form, const char *pin,
                       const char *out);

#endif
