// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/encode_calibrated.h"

#include <stdio.h>

enum bsw_status bsw_encode_calibrated(const struct bsw_encode_settings *settings,
                                      const struct bsw_calibrate_settings *calibration,
                                      struct bsw_transport *transport,
                                      struct bsw_encode_stats *stats,
                                      struct bsw_calibrate_stats *calibrated, int *is_made,
                                      struct bsw_error *err)
{
    struct bsw_encode_settings encode = *settings;
    struct bsw_job_events events =
        settings->events ? *settings->events : (struct bsw_job_events){0};
    *is_made = 0;
    if (!calibration) {
        BSW_TRY(bsw_encode_run(&encode, transport, stats, err));
        *is_made = 1;
        return BSW_OK;
    }
    struct bsw_calibrate_settings table = *calibration;
    table.index = settings->index;
    table.level = settings->level;
    table.progress = settings->progress;
    BSW_TRY(bsw_transport_agree(transport, bsw_calibrate_check(&table, settings->base, err), err));
    char table_of[BSW_PATH_BYTES];
    if (table.queries)
        snprintf(table_of, sizeof table_of, "queries %s", table.queries);
    else
        snprintf(table_of, sizeof table_of, "%llu rows", (unsigned long long)table.num_rows);
    events.complete = NULL; // there is more to do
    encode.events = &events;
    encode.table_of = table_of;
    BSW_TRY(bsw_encode_run(&encode, transport, stats, err));
    *is_made = 1;
    enum bsw_status status = bsw_calibrate_run(&table, transport, calibrated, err);
    if (status == BSW_OK) return BSW_OK;
    return bsw_prefix(err, status,
                      "the index is made, but has no table of recalls, which encode --resume or "
                      "bitsweep calibrate makes: ");
}
