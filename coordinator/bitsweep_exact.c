// SPDX-License-Identifier: Apache-2.0
// bitsweep.h: exact neighbours and recall.
#include <stddef.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/bitsweep_call.h"
#include "coordinator/job/command_files.h"
#include "coordinator/truth/recall.h"
#include "coordinator/truth/truth.h"

void bitsweep_knn_defaults_of(struct bitsweep_knn_settings *settings, size_t size)
{
    const struct bitsweep_knn_settings defaults = {.k = 10};
    bsw_library_default(settings, size, &defaults, sizeof defaults);
}

struct knn_call {
    struct bsw_library_call call;
    struct bitsweep_knn_settings asked;
    struct bsw_truth_settings settings;
    struct bsw_library_rows base, queries;
    struct bsw_buffer shared; // of another rank than 0: its queries, or the name of their file
    struct bsw_results answers;
    struct bsw_progress progress; // nothing is shown; the caller is told
};

static enum bsw_status prepare(struct knn_call *c, const struct bitsweep_rows *base,
                               const struct bitsweep_rows *queries, struct bsw_error *err)
{
    const struct bitsweep_knn_settings *asked = &c->asked;
    struct bsw_allowed_memory allow;
    const char *device;
    unsigned unused;
    BSW_TRY(bsw_library_check_threads(asked->threads, err));
    BSW_TRY(bsw_fork_choose_device(asked->device, &device, err));
    BSW_TRY(bsw_setting_choice("metric", BSW_METRIC_NAMES, asked->metric, &unused, err));
    c->answers.k = asked->k;
    BSW_TRY(bsw_library_lend(base, BSW_MEMORY_PREFIX "base", &c->base, err));
    if (c->call.transport->rank == 0) {
        BSW_TRY(bsw_library_lend_queries(queries, &c->queries, err));
        if (!c->queries.is_empty) BSW_TRY(bsw_library_check_room(&c->answers, err));
    }
    BSW_TRY(bsw_library_allow(asked->allow, &allow, err));
    c->settings =
        (struct bsw_truth_settings){.base = c->base.name,
                                    .allow_rows = allow,
                                    .sink = {.context = &c->answers, .take = bsw_answers_keep},
                                    .metric = asked->metric,
                                    .k = asked->k,
                                    .drop_bad_rows = asked->drop_bad_rows,
                                    .exclude_self = asked->exclude_self != 0,
                                    .device = {.text = device, .most_bytes = asked->device_memory},
                                    .num_threads = c->call.num_threads,
                                    .level = bsw_cpu_level_detect(),
                                    .progress = &c->progress};
    return BSW_OK;
}

// Rank 0's queries to all, which scan for them. Ends with an agreement.
static enum bsw_status share_queries(struct knn_call *c, const struct bitsweep_rows *queries,
                                     struct bsw_error *err)
{
    struct bsw_transport *transport = c->call.transport;
    const struct bsw_message shape = {.kind = BSW_MESSAGE_QUERY_SHAPE, .name = "shape of queries"},
                             rows = {.kind = BSW_MESSAGE_QUERY_ROWS, .name = "queries"};
    struct bitsweep_rows asked = {0};
    struct bsw_buffer borrowed;
    if (transport->num_ranks == 1) return BSW_OK;
    if (transport->rank == 0) asked = *queries;
    BSW_TRY(bsw_share_record(transport, &shape, &asked, sizeof asked, err));
    if (transport->rank != 0) {
        const char *file = asked.file; // an address of rank 0
        BSW_TRY(bsw_transport_broadcast(transport, &rows, &c->shared, err));
        asked.data = c->shared.data;
        asked.file = file ? (const char *)c->shared.data : NULL;
        return bsw_transport_agree(transport, bsw_library_lend_queries(&asked, &c->queries, err),
                                   err);
    }
    const struct bsw_memory_rows *memory = &c->queries.memory;
    borrowed = (struct bsw_buffer){
        .data = (unsigned char *)(queries->file ? queries->file : queries->data),
        .bytes = queries->file ? strlen(queries->file) + 1
                               : (size_t)queries->num_rows * queries->dims *
                                     bsw_vector_type_bytes(memory->type)};
    BSW_TRY(bsw_transport_broadcast(transport, &rows, &borrowed, err));
    return bsw_transport_agree(transport, BSW_OK, err);
}

// What would be wrong with the other arguments, if there were queries.
static enum bsw_status check_empty(const struct knn_call *c, struct bsw_error *err)
{
    const struct bitsweep_knn_settings *s = &c->asked;
    enum bsw_metric metric;
    bsw_vectors *base;
    BSW_TRY(bsw_setting_count("k", s->k, 1, BSW_TRUTH_MAX_K, err));
    BSW_TRY(bsw_vectors_open(c->base.name, BSW_ALL_ROWS, &base, err));
    uint32_t dims = bsw_vectors_dims(base);
    uint64_t num_rows = bsw_vectors_num_rows(base);
    enum bsw_status status = bsw_metric_choose(s->metric, base, NULL, &metric, err);
    bsw_vectors_close(&base);
    BSW_TRY(status);
    if (c->queries.memory.dims != dims)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %u", c->queries.name,
                        c->queries.memory.dims, c->base.name, dims);
    if (s->k <= num_rows) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--k %llu: %s has %llu rows only",
                    (unsigned long long)s->k, c->base.name, (unsigned long long)num_rows);
}

static uint64_t digest(const struct bitsweep_knn_settings *s)
{
    const uint64_t counts[] = {s->k, s->exclude_self != 0, s->drop_bad_rows != 0, s->allow != NULL};
    return bsw_library_digest(&(struct bsw_library_alike){
        .texts = &s->metric, .num_texts = 1, .counts = counts, .num_counts = 4});
}

int bitsweep_knn(const struct bitsweep_rows *base, const struct bitsweep_rows *queries,
                 const struct bitsweep_knn_settings *settings, float *values, int64_t *ids,
                 struct bitsweep_error *error)
{
    struct knn_call c = {.answers = {.values = values, .ids = ids}};
    struct bsw_truth_stats stats;
    struct bsw_error err = {.rank = -1};
    bitsweep_knn_defaults(&c.asked);
    enum bsw_status status = bsw_library_take_settings(
        &c.asked, sizeof c.asked, offsetof(struct bitsweep_knn_settings, ranks), settings, &err);
    status = bsw_library_call_begin(&c.call, &BSW_CALL_NEEDS(&c.asked, status, &err));
    if (status == BSW_OK) status = prepare(&c, base, queries, &c.call.err);
    status = bsw_library_call_meet(&c.call, status, "knn", digest(&c.asked));
    if (status == BSW_OK) status = share_queries(&c, queries, &c.call.err);
    c.settings.queries = c.queries.name;
    if (status == BSW_OK && c.queries.is_empty)
        status = bsw_transport_agree(c.call.transport, check_empty(&c, &c.call.err), &c.call.err);
    else if (status == BSW_OK)
        status = bsw_truth_run(&c.settings, c.call.transport, &stats, &c.call.err);
    bsw_library_take_back(&c.queries);
    bsw_library_take_back(&c.base);
    bsw_buffer_deinit(&c.shared);
    return bsw_library_call_end(&c.call, status, error);
}

static enum bsw_status count(const int64_t *ids, uint64_t width, const int64_t *truth,
                             uint64_t truth_width, uint64_t num_queries, uint64_t k, double *out,
                             struct bsw_error *err)
{
    struct bsw_recall recall;
    size_t bytes;
    if (!ids || !truth || width < 1 || num_queries < 1)
        return bsw_fail(err, BSW_ERROR_USAGE, "no ids are given");
    BSW_TRY(bsw_setting_count("k", k, 1, truth_width, err));
    if (width > SIZE_MAX || !bsw_multiply_size((size_t)width, sizeof *ids, &bytes))
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%llu ids a query", (unsigned long long)width);
    enum bsw_status status = bsw_recall_init(&recall, (size_t)k, (size_t)width, err);
    for (uint64_t q = 0; q < num_queries && status == BSW_OK; q++) {
        const struct bsw_recall_query query = {.true_ids = truth + q * truth_width,
                                               .ids = ids + q * width};
        bsw_recall_add(&recall, &query);
    }
    if (status == BSW_OK) *out = bsw_recall_by_ids(&recall, bsw_recall_widest(&recall));
    bsw_recall_deinit(&recall);
    return status;
}

int bitsweep_recall(const int64_t *ids, uint64_t width, const int64_t *truth, uint64_t truth_width,
                    uint64_t num_queries, uint64_t k, double *recall, struct bitsweep_error *error)
{
    struct bsw_error err = {.rank = -1};
    return bsw_library_report(count(ids, width, truth, truth_width, num_queries, k, recall, &err),
                              &err, error);
}
