// Numbers of a search that follow from its options and the manifest, shared by those who run it and
// those who tell what it will take.
#ifndef BITSWEEP_COORDINATOR_SEARCH_SIZES_H
#define BITSWEEP_COORDINATOR_SEARCH_SIZES_H

#include <stdint.h>

#include "common/index_manifest.h"

#define BSW_SEARCH_MAX_K      10000
#define BSW_SEARCH_QUERY_BITS 6 // unless --query-bits says other
// Defaults of options that several commands have.
#define BSW_SEARCH_K_TEXT              "10"
#define BSW_SEARCH_OVERSAMPLE_TEXT     "5"
#define BSW_SEARCH_MAX_CANDIDATES_TEXT "100K"
#define BSW_SEARCH_BATCH_TEXT          "1000"

// Candidates to refine: k * oversample, rounded up, at most num_rows. k in 1 .. BSW_SEARCH_MAX_K,
// oversample in 1 .. 10000.
uint64_t bsw_search_keep(uint64_t k, double oversample, uint64_t num_rows);

// Queries of a batch: `wanted`, or fewer where their candidates would take too much of a rank's
// host memory; at least one. keep >= 1.
uint64_t bsw_search_batch(const struct bsw_manifest *manifest, int num_ranks, int is_ladder,
                          uint64_t keep, uint64_t wanted);

#endif
