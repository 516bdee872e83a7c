// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/answer_sink.h"

#include <string.h>

#include "common/base/memory.h"

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

static enum bsw_status take(void *context, uint64_t first, size_t count, const int64_t *ids,
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
    return (struct bsw_answer_sink){.context = answers, .begin = begin, .take = take};
}
