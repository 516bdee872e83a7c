// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/job_events.h"

#include <stddef.h>
#include <string.h>

#include "common/base/memory.h"
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

// ---- where answers go ---------------------------------------------------------------------------

static enum bsw_status begin(void *context, uint64_t num_queries, uint64_t k, struct bsw_error *err)
{
    struct bsw_results *answers = context;
    bsw_results_deinit(answers);
    BSW_TRY(bsw_allocate_zero(&answers->ids, (size_t)num_queries, (size_t)k * sizeof *answers->ids,
                              "answers", err));
    BSW_TRY(bsw_allocate_zero(&answers->values, (size_t)num_queries,
                              (size_t)k * sizeof *answers->values, "answers", err));
    answers->num_queries = num_queries;
    answers->k = k;
    return BSW_OK;
}

enum bsw_status bsw_answers_keep(void *context, uint64_t first, size_t count, const int64_t *ids,
                                 const float *values, struct bsw_error *err)
{
    struct bsw_results *answers = context;
    size_t k = (size_t)answers->k;
    (void)err;
    memcpy(answers->ids + first * k, ids, count * k * sizeof *ids);
    memcpy(answers->values + first * k, values, count * k * sizeof *values);
    return BSW_OK;
}

struct bsw_answer_sink bsw_memory_sink(struct bsw_results *answers)
{
    return (struct bsw_answer_sink){.context = answers, .begin = begin, .take = bsw_answers_keep};
}
