// What the ranks of a search report of a run: of search.c alone.
#ifndef BITSWEEP_COORDINATOR_SEARCH_STATS_H
#define BITSWEEP_COORDINATOR_SEARCH_STATS_H

#include "coordinator/search/search.h"

// All ranks, once none of them has anything else to send: search->ranks on rank 0.
enum bsw_status bsw_search_gather_ranks(struct bsw_search *search, struct bsw_error *err);
// What this rank has counted; a loaded search.
void bsw_search_forget_rank(struct bsw_search *search);

#endif
