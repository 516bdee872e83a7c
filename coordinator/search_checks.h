// Self-checks of a search: when, from --check-every, and what --json says of them.
#ifndef BITSWEEP_COORDINATOR_SEARCH_CHECKS_H
#define BITSWEEP_COORDINATOR_SEARCH_CHECKS_H

#include <jansson.h>

#include "common/transport.h"
#include "coordinator/batch_search.h"
#include "coordinator/result_journal.h"

#define BSW_CHECK_EVERY_TEXT "300"

// "300": at the start, every 300 s and at the end; "0": at the start and the end; "never": not at
// all.
enum bsw_status bsw_check_every_parse(const char *text, int *is_checked, double *seconds,
                                      struct bsw_error *err);

// From now on; device: of --device. Rank 0 notes in `result`, borrowed, what checks have shown to
// be right: after each one on CPUs, else after each round (bsw_self_check_round).
struct bsw_check_schedule bsw_search_checks_schedule(const struct bsw_manifest *manifest,
                                                     const struct bsw_transport *transport,
                                                     const char *device, double seconds,
                                                     struct bsw_result_journal *result);

// All ranks, after the last batch: the last check, and whether all have passed it.
enum bsw_status bsw_search_checks_end(struct bsw_shard_service *service,
                                      struct bsw_transport *transport, struct bsw_error *err);

// Of rank 0.
json_t *bsw_search_checks_describe(const struct bsw_batch_search *search);

#endif
