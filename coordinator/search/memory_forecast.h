// SPDX-License-Identifier: Apache-2.0
// What a search will take of the devices of its ranks, from the manifest alone: in the order in
// which search.c takes it.
#ifndef BITSWEEP_COORDINATOR_MEMORY_FORECAST_H
#define BITSWEEP_COORDINATOR_MEMORY_FORECAST_H

#include "coordinator/search/search_settings.h"

struct bsw_search_forecast {
    size_t link_bytes, merge_bytes; // batch_link.h, batch_device_merge.h
    struct bsw_memory_forecast shards;
    size_t used_bytes; // all of it
};

struct bsw_search_outlook {
    enum bsw_search_merge merge;
    int is_linked; // ranks' devices, if there are several ranks
    int num_ranks;
    const size_t *free_bytes; // [num_ranks]
};

// out [num_ranks]; settings get the place where candidates meet. BSW_ERROR_OUT_OF_MEMORY, naming
// the rank, where a search will have that.
enum bsw_status bsw_search_forecast(const struct bsw_manifest *manifest,
                                    const struct bsw_search_outlook *outlook,
                                    struct bsw_search_settings *settings,
                                    struct bsw_search_forecast *out, struct bsw_error *err);

#endif
