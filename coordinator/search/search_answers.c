// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/search_answers.h"

#include <math.h>

#include "common/codes/metric.h"

// The pass whose answers are taken.
static int is_taken(const struct bsw_search *search)
{
    return search->pass + 1 == search->run.warmup + search->run.repeat;
}

static void count_answers(struct bsw_search *search, size_t count)
{
    const struct bsw_search_run *run = &search->run;
    if (search->pass >= run->warmup + run->repeat) return; // for its time alone
    search->num_answered += count;
    if (run->sink->note_progress)
        run->sink->note_progress(run->sink->context, search->num_answered, search->num_asked);
    if (search->options.progress)
        bsw_progress_update(search->options.progress, search->num_answered);
}

enum bsw_status bsw_search_put(void *context, uint64_t first, size_t count, const int64_t *ids,
                               const float *values, struct bsw_error *err)
{
    struct bsw_search *search = context;
    const struct bsw_answer_sink *answers = &search->run.sink->answers;
    if (is_taken(search)) BSW_TRY(answers->take(answers->context, first, count, ids, values, err));
    count_answers(search, count);
    return BSW_OK;
}

enum bsw_status bsw_search_put_range(void *context, uint64_t first, size_t count,
                                     const uint64_t *lims, const int64_t *ids, const float *values,
                                     struct bsw_error *err)
{
    struct bsw_search *search = context;
    const struct bsw_answer_sink *answers = &search->run.sink->answers;
    if (is_taken(search)) {
        search->num_within += lims[count];
        BSW_TRY(answers->take_range(answers->context, first, count, lims, ids, values, err));
    }
    count_answers(search, count);
    return BSW_OK;
}

// Numbers are compared as result files have them. Estimates are off by a share of what they are
// estimates of, so candidates have values up to a share beyond.
void bsw_search_range_begin(struct bsw_search *search)
{
    const struct bsw_search_request *request = &search->options.request;
    double within = request->within, reach = within,
           margin = search->settings.is_exact ? request->margin * fabs(within) : 0;
    reach += bsw_is_distance(search->manifest.metric) ? margin : -margin;
    search->batches.finish.within = (float)within;
    search->batches.reach = (float)reach;
    search->batches.most_within = search->settings.most_candidates;
}
