// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/job_events.h"

#include <stddef.h>

#include "common/job/run_status.h"
#include "common/job/stop_signal.h"

static enum bsw_status complete(struct bsw_error *err)
{
    BSW_TRY(bsw_run_status_write(BSW_OK, "", err));
    bsw_stop_conclude(0);
    return BSW_OK;
}

const struct bsw_job_events bsw_command_events = {
    .output = bsw_run_status_set_output, .count = bsw_run_status_count, .complete = complete};

enum bsw_status bsw_events_output(const struct bsw_job_events *events, const char *path,
                                  const char *unit, struct bsw_error *err)
{
    return events && events->output ? events->output(path, unit, err) : BSW_OK;
}

void bsw_events_count(const struct bsw_job_events *events, uint64_t done, uint64_t total)
{
    if (events && events->count) events->count(done, total);
}

enum bsw_status bsw_events_complete(const struct bsw_job_events *events, struct bsw_error *err)
{
    return events && events->complete ? events->complete(err) : BSW_OK;
}
