// SPDX-License-Identifier: Apache-2.0
#include "coordinator/truth/truth_merge.h"

#include <math.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"

// The k best of a list as struct bsw_ranked behind their uint64 count.
static enum bsw_status pack_list(struct bsw_truth_merge *job, const struct bsw_exact_best *list,
                                 uint64_t query_row, struct bsw_error *err)
{
    uint64_t count = 0;
    size_t at = job->message.bytes;
    BSW_TRY(bsw_buffer_append(&job->message, &count, sizeof count, err));
    for (size_t i = 0; i < list->count && count < job->k; i++) {
        const struct bsw_ranked entry = {.score = list->scores[i],
                                         .row = job->first_row + list->rows[i]};
        if (job->exclude_self && entry.row == query_row) continue;
        BSW_TRY(bsw_buffer_append(&job->message, &entry, sizeof entry, err));
        count++;
    }
    memcpy(job->message.data + at, &count, sizeof count);
    return BSW_OK;
}

// Appends the next list of a payload to entries; 0 if it does not parse.
static int take_list(const struct bsw_buffer *payload, size_t *offset, size_t k,
                     struct bsw_ranked *entries, size_t *count)
{
    uint64_t n;
    if (payload->bytes - *offset < sizeof n) return 0;
    memcpy(&n, payload->data + *offset, sizeof n);
    *offset += sizeof n;
    if (n > k || payload->bytes - *offset < n * sizeof *entries) return 0;
    memcpy(entries + *count, payload->data + *offset, (size_t)n * sizeof *entries);
    *offset += (size_t)n * sizeof *entries;
    *count += (size_t)n;
    return 1;
}

static void store_answer(const struct bsw_truth_merge *job, const struct bsw_ranked *entries,
                         size_t count, int64_t *ids, float *values)
{
    for (size_t i = 0; i < job->k; i++) {
        double key = i < count ? bsw_exact_score_to_key(entries[i].score) : -(double)INFINITY;
        ids[i] = i < count ? (int64_t)entries[i].row : -1;
        values[i] = bsw_metric_written(bsw_metric_value(job->metric, key));
    }
}

static enum bsw_status put_answer(const struct bsw_truth_merge *job, uint64_t query,
                                  const int64_t *ids, const float *values, struct bsw_error *err)
{
    if (job->writer) BSW_TRY(bsw_result_writer_put(job->writer, query, 1, ids, values, err));
    return job->sink.take ? job->sink.take(job->sink.context, query, 1, ids, values, err) : BSW_OK;
}

// Rank 0: lists of all ranks, in row order, to the written answer.
static enum bsw_status merge_lists(struct bsw_truth_merge *job, const struct bsw_buffer *payloads,
                                   uint64_t first_query, size_t num_queries, struct bsw_error *err)
{
    size_t k = job->k, num_ranks = (size_t)job->transport->num_ranks;
    struct bsw_ranked *entries = NULL;
    size_t *offsets = NULL;
    int64_t *ids = NULL;
    float *values = NULL;
    enum bsw_status status =
        bsw_allocate(&entries, 2 * k * num_ranks, sizeof *entries, "merge", err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&offsets, num_ranks, sizeof *offsets, "merge", err);
    if (status == BSW_OK) status = bsw_allocate(&ids, k, sizeof *ids, "merge", err);
    if (status == BSW_OK) status = bsw_allocate(&values, k, sizeof *values, "merge", err);
    for (size_t q = 0; q < num_queries && status == BSW_OK; q++) {
        size_t count = 0;
        for (size_t rank = 0; rank < num_ranks && status == BSW_OK; rank++) {
            if (!take_list(&payloads[rank], &offsets[rank], k, entries, &count)) {
                status = bsw_fail(err, BSW_ERROR_PEER,
                                  "rank %zu sent an answer that does not parse", rank);
            }
        }
        if (status != BSW_OK) break;
        if (num_ranks > 1) // one list is sorted already
            count = job->merge->best_ranked(entries, count, k, BSW_RANKED_BY_EXACT,
                                            entries + k * num_ranks);
        store_answer(job, entries, count, ids, values);
        status = put_answer(job, first_query + q, ids, values, err);
    }
    bsw_free(&entries);
    bsw_free(&offsets);
    bsw_free(&ids);
    bsw_free(&values);
    return status;
}

// Every rank's message to rank 0, which writes the group's answers; ends with an agreement.
static enum bsw_status exchange(struct bsw_truth_merge *job, uint64_t first_query,
                                size_t num_queries, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    struct bsw_message message = {
        .kind = BSW_MESSAGE_NEIGHBOURS, .batch = job->num_groups++, .name = "neighbours"};
    enum bsw_status status;
    if (transport->rank != 0) {
        status = bsw_collect_buffers(transport, &message, &job->message, NULL, err);
        return bsw_transport_agree(transport, status, err);
    }
    struct bsw_buffer *payloads;
    status =
        bsw_allocate_zero(&payloads, (size_t)transport->num_ranks, sizeof *payloads, "merge", err);
    if (status == BSW_OK)
        status = bsw_collect_buffers(transport, &message, &job->message, payloads, err);
    if (status == BSW_OK) {
        payloads[0] = job->message;
        status = merge_lists(job, payloads, first_query, num_queries, err);
    }
    for (int rank = 1; payloads && rank < transport->num_ranks; rank++)
        bsw_buffer_deinit(&payloads[rank]);
    bsw_free(&payloads);
    return bsw_transport_agree(transport, status, err);
}

enum bsw_status bsw_truth_merge_group(struct bsw_truth_merge *job, uint64_t first_query,
                                      size_t num_queries, const struct bsw_exact_best *lists,
                                      struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    job->message.bytes = 0;
    for (size_t q = 0; q < num_queries && status == BSW_OK; q++)
        status = pack_list(job, &lists[q], job->first_query_row + first_query + q, err);
    BSW_TRY(bsw_transport_agree(job->transport, status, err));
    return exchange(job, first_query, num_queries, err);
}

void bsw_truth_merge_deinit(struct bsw_truth_merge *job)
{
    bsw_buffer_deinit(&job->message);
}
