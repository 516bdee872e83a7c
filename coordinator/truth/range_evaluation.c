// SPDX-License-Identifier: Apache-2.0
#include "coordinator/truth/range_evaluation.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/files/range_file.h"

struct inputs {
    struct bsw_ranges results, truth;
    struct bsw_sidecar result_facts, truth_facts;
    int64_t *true_ids; // of a query, ascending; those that were found are marked
    unsigned char *is_found;
};

enum bsw_status bsw_range_evaluation_fits(const struct bsw_evaluation_settings *o, int *fits,
                                          struct bsw_error *err)
{
    struct bsw_sidecar results, truth;
    BSW_TRY(bsw_sidecar_read(o->results, &results, err));
    BSW_TRY(bsw_sidecar_read(o->groundtruth, &truth, err));
    *fits = results.has_within || truth.has_within;
    return BSW_OK;
}

static enum bsw_status check_settings(const struct bsw_evaluation_settings *o,
                                      struct bsw_error *err)
{
    const char *option = o->k > 0 ? "--k" : o->base ? "--base" : o->ties ? "--ties" : NULL;
    if (!option) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "%s is for the best k, not for results of --within",
                    option);
}

static enum bsw_status read_inputs(const struct bsw_evaluation_settings *o, struct inputs *in,
                                   struct bsw_error *err)
{
    BSW_TRY(check_settings(o, err));
    BSW_TRY(bsw_ranges_read(o->results, &in->results, err));
    BSW_TRY(bsw_ranges_read(o->groundtruth, &in->truth, err));
    BSW_TRY(bsw_sidecar_read(o->results, &in->result_facts, err));
    BSW_TRY(bsw_sidecar_read(o->groundtruth, &in->truth_facts, err));
    if (in->results.num_queries != in->truth.num_queries)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s has %llu queries, %s has %llu", o->results,
                        (unsigned long long)in->results.num_queries, o->groundtruth,
                        (unsigned long long)in->truth.num_queries);
    if (o->force) return BSW_OK;
    return bsw_sidecar_compare(o->results, &in->result_facts, o->groundtruth, &in->truth_facts,
                               "; --force compares them anyway", err);
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Whether an id is a true one of the query that was not found before.
static int take(const struct inputs *in, size_t num_true, int64_t id)
{
    const int64_t *at = bsearch(&id, in->true_ids, num_true, sizeof id, compare_ids);
    if (!at || in->is_found[at - in->true_ids]) return 0;
    in->is_found[at - in->true_ids] = 1;
    return 1;
}

static void judge(const struct inputs *in, uint64_t q, struct bsw_range_evaluation *out)
{
    const uint64_t *lims = in->truth.lims;
    size_t num_true = (size_t)(lims[q + 1] - lims[q]);
    uint64_t first = in->results.lims[q], found = in->results.lims[q + 1] - first, common = 0;
    double precisions = 0;
    memcpy(in->true_ids, in->truth.ids + lims[q], num_true * sizeof *in->true_ids);
    qsort(in->true_ids, num_true, sizeof *in->true_ids, compare_ids);
    memset(in->is_found, 0, num_true);
    for (uint64_t i = 0; i < found; i++) {
        if (!take(in, num_true, in->results.ids[first + i])) continue;
        precisions += (double)++common / (double)(i + 1);
    }
    out->num_true += num_true;
    out->num_found += found;
    out->num_common += common;
    out->num_judged += num_true > 0;
    if (num_true > 0) out->average_precision += precisions / (double)num_true;
}

static enum bsw_status evaluate(const struct bsw_evaluation_settings *o, struct inputs *in,
                                struct bsw_range_evaluation *out, struct bsw_error *err)
{
    BSW_TRY(read_inputs(o, in, err));
    size_t most = (size_t)in->truth.lims[in->truth.num_queries]; // of a query, and of all
    BSW_TRY(bsw_allocate(&in->true_ids, most, sizeof *in->true_ids, "true rows", err));
    BSW_TRY(bsw_allocate(&in->is_found, most, 1, "true rows", err));
    out->num_queries = in->truth.num_queries;
    for (uint64_t q = 0; q < out->num_queries; q++) judge(in, q, out);
    if (out->num_judged > 0) out->average_precision /= (double)out->num_judged;
    return BSW_OK;
}

enum bsw_status bsw_range_evaluation_run(const struct bsw_evaluation_settings *settings,
                                         struct bsw_range_evaluation *out, struct bsw_error *err)
{
    struct inputs in = {0};
    *out = (struct bsw_range_evaluation){0};
    enum bsw_status status = evaluate(settings, &in, out, err);
    bsw_ranges_deinit(&in.results);
    bsw_ranges_deinit(&in.truth);
    bsw_free(&in.true_ids);
    bsw_free(&in.is_found);
    return status;
}
