// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/batch_search.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/job/progress.h"
#include "common/job/stop_signal.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/search/batch_masks.h"

static const char *const names[BSW_NUM_EXCHANGES] = {"a batch", "candidates", "cuts", "survivors"};

const char *bsw_exchange_name(enum bsw_exchange exchange)
{
    return exchange == BSW_EXCHANGE_QUERIES ? "queries" : names[exchange];
}

enum bsw_status bsw_batch_search_init(struct bsw_batch_search *search,
                                      struct bsw_transport *transport,
                                      struct bsw_shard_service *service,
                                      struct bsw_query_source *queries, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = service->manifest;
    *search = (struct bsw_batch_search){
        .transport = transport, .manifest = manifest, .service = service, .queries = queries};
    bsw_batch_merge_init(&search->merge, manifest, &service->settings, service->assignment);
    bsw_batch_merge_init(&search->finish, manifest, &service->settings, service->assignment);
    return bsw_allocate_zero(&search->payloads, (size_t)transport->num_ranks,
                             sizeof *search->payloads, "payloads", err);
}

static void free_payloads(const struct bsw_batch_search *search, struct bsw_buffer **payloads)
{
    for (int rank = 0; *payloads && rank < search->transport->num_ranks; rank++) {
        bsw_buffer_deinit(&(*payloads)[rank]);
    }
    bsw_free(payloads);
}

void bsw_batch_search_deinit(struct bsw_batch_search *search)
{
    free_payloads(search, &search->payloads);
    bsw_batch_merge_deinit(&search->merge);
    bsw_batch_merge_deinit(&search->finish);
    bsw_buffer_deinit(&search->message);
    for (int i = 0; i < 2; i++) bsw_buffer_deinit(&search->messages[i]);
    for (int i = 0; i < 2; i++) bsw_buffer_deinit(&search->masks[i]);
    bsw_buffer_deinit(&search->own);
    bsw_buffer_deinit(&search->limits);
    bsw_buffer_deinit(&search->cuts);
}

enum bsw_status bsw_search_batch_init(const struct bsw_batch_search *search,
                                      struct bsw_search_batch *batch, struct bsw_error *err)
{
    *batch = (struct bsw_search_batch){0};
    return bsw_allocate_zero(&batch->payloads, (size_t)search->transport->num_ranks,
                             sizeof *batch->payloads, "payloads", err);
}

void bsw_search_batch_deinit(const struct bsw_batch_search *search, struct bsw_search_batch *batch)
{
    bsw_buffer_deinit(&batch->message);
    bsw_buffer_deinit(&batch->values);
    bsw_buffer_deinit(&batch->masks);
    bsw_buffer_deinit(&batch->order);
    bsw_buffer_deinit(&batch->range);
    free_payloads(search, &batch->payloads);
}

static double lap(double *since)
{
    double now = bsw_clock_seconds(), elapsed = now - *since;
    *since = now;
    return elapsed;
}

static struct bsw_message message_of(const struct bsw_batch_search *search,
                                     enum bsw_exchange exchange)
{
    return (struct bsw_message){.kind = BSW_MESSAGE_FIRST_EXCHANGE + (uint32_t)exchange,
                                .batch = search->num_batches,
                                .name = names[exchange]};
}

static void note_exchange(struct bsw_batch_search *search, enum bsw_exchange exchange, double wait,
                          double seconds, uint64_t bytes)
{
    struct bsw_exchange_cost *cost = &search->exchanges[exchange];
    cost->wait_seconds += wait;
    cost->seconds += seconds;
    cost->bytes += bytes;
}

// Bytes that rank 0 sends to all others together.
static uint64_t spread_bytes(const struct bsw_batch_search *search, size_t bytes)
{
    return (uint64_t)bytes * (uint64_t)(search->transport->num_ranks - 1);
}

static enum bsw_status agree(struct bsw_batch_search *search, enum bsw_status status,
                             struct bsw_error *err)
{
    struct bsw_error earlier;
    enum bsw_status settled =
        search->settle ? search->settle(search->settle_context, &earlier) : BSW_OK;
    if (settled != BSW_OK) {
        status = settled;
        if (err) *err = earlier;
    }
    return bsw_transport_agree(search->transport, status, err);
}

// Agreement on the phase just done, then every rank's payload (in search->own) to rank 0.
static enum bsw_status gather(struct bsw_batch_search *search, enum bsw_exchange exchange,
                              enum bsw_status status, struct bsw_error *err)
{
    struct bsw_transport *transport = search->transport;
    struct bsw_message message = message_of(search, exchange);
    double since = bsw_clock_seconds();
    BSW_TRY(agree(search, status, err));
    double wait = lap(&since);
    if (transport->rank == 0) {
        struct bsw_buffer swap = search->payloads[0];
        search->payloads[0] = search->own;
        search->own = swap;
    }
    BSW_TRY(bsw_collect_buffers(transport, &message, &search->own, search->payloads, err));
    uint64_t bytes = 0;
    for (int rank = 1; transport->rank == 0 && rank < transport->num_ranks; rank++)
        bytes += search->payloads[rank].bytes;
    note_exchange(search, exchange, wait, lap(&since), bytes);
    return BSW_OK;
}

// Agreement that rank 0 has it, then `data` from rank 0 to all; `bytes` is what it must hold.
static enum bsw_status spread(struct bsw_batch_search *search, enum bsw_exchange exchange,
                              struct bsw_buffer *data, size_t bytes, enum bsw_status status,
                              struct bsw_error *err)
{
    struct bsw_message message = message_of(search, exchange);
    double since = bsw_clock_seconds();
    BSW_TRY(bsw_transport_agree(search->transport, status, err));
    double wait = lap(&since);
    BSW_TRY(bsw_transport_broadcast(search->transport, &message, data, err));
    if (data->bytes != bytes)
        return bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent %s of a wrong size", names[exchange]);
    note_exchange(search, exchange, wait, lap(&since), spread_bytes(search, bytes));
    return BSW_OK;
}

static enum bsw_status make_cuts_room(struct bsw_batch_search *search, size_t num_queries,
                                      struct bsw_error *err)
{
    search->cuts.bytes = 0;
    BSW_TRY(bsw_buffer_reserve(&search->cuts, num_queries * sizeof(struct bsw_cut), err));
    search->cuts.bytes = num_queries * sizeof(struct bsw_cut);
    return BSW_OK;
}

static enum bsw_status merge_on_host(struct bsw_batch_search *search, size_t num_queries,
                                     const struct bsw_scan_round *round, struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    if (search->transport->rank == 0) {
        status = make_cuts_room(search, num_queries, err);
        if (status == BSW_OK)
            status = bsw_merge_candidates(&search->merge, search->payloads, num_queries, round,
                                          (struct bsw_cut *)(void *)search->cuts.data, err);
    }
    return spread(search, BSW_EXCHANGE_CUTS, &search->cuts, num_queries * sizeof(struct bsw_cut),
                  status, err);
}

// The counts of all lists to who needs them, as cuts travel: a batch has either of the two.
static enum bsw_status settle_counts(struct bsw_batch_search *search, size_t num_queries,
                                     struct bsw_error *err)
{
    struct bsw_batch_device_merge *merge = search->device_merge;
    size_t bytes = num_queries * merge->num_spans * sizeof(uint32_t);
    enum bsw_status status = BSW_OK;
    if (search->transport->rank == 0)
        status = bsw_batch_device_merge_counts(merge, search->payloads, num_queries, err);
    if (merge->needs.place == BSW_MERGE_ON_ALL_DEVICES) {
        BSW_TRY(spread(search, BSW_EXCHANGE_CUTS, &merge->counts, bytes, status, err));
        if (search->transport->rank > 0) // rank 0 has
            status = bsw_batch_device_merge_check(merge, num_queries, err);
    }
    if (status == BSW_OK) status = make_cuts_room(search, num_queries, err);
    return bsw_transport_agree(search->transport, status, err);
}

static enum bsw_status merge_on_devices(struct bsw_batch_search *search, size_t num_queries,
                                        const struct bsw_scan_round *round, struct bsw_error *err)
{
    struct bsw_batch_device_merge *merge = search->device_merge;
    BSW_TRY(settle_counts(search, num_queries, err));
    uint64_t before = merge->received_bytes;
    double since = bsw_clock_seconds();
    BSW_TRY(bsw_batch_device_merge_run(merge, search->service, num_queries, round->keep,
                                       (struct bsw_cut *)(void *)search->cuts.data, err));
    note_exchange(search, BSW_EXCHANGE_CANDIDATES, 0, lap(&since), merge->received_bytes - before);
    if (merge->needs.place == BSW_MERGE_ON_ALL_DEVICES) return BSW_OK;
    return spread(search, BSW_EXCHANGE_CUTS, &search->cuts, num_queries * sizeof(struct bsw_cut),
                  BSW_OK, err);
}

// Scans for the batch that the service has.
static void scan(struct bsw_batch_search *search, struct bsw_batch_work *work,
                 const struct bsw_scan_round *round)
{
    double since = bsw_clock_seconds();
    work->is_scanned = 1;
    work->status = bsw_shard_service_scan(search->service, round, &search->own, &work->error);
    search->times.scan += lap(&since);
}

static enum bsw_status find_cuts(struct bsw_batch_search *search, struct bsw_batch_work *work,
                                 const struct bsw_scan_round *round, struct bsw_error *err)
{
    if (!work->is_scanned) scan(search, work, round);
    if (work->status != BSW_OK && err) *err = work->error;
    double since = bsw_clock_seconds();
    enum bsw_status status = gather(search, BSW_EXCHANGE_CANDIDATES, work->status, err);
    search->times.scan += lap(&since);
    BSW_TRY(status);
    status = (search->device_merge ? merge_on_devices
                                   : merge_on_host)(search, work->queries.num_queries, round, err);
    search->times.merge += lap(&since);
    return status;
}

// Limits by a round of their own, which every rank has from its cuts.
static enum bsw_status find_limits(struct bsw_batch_search *search, struct bsw_batch_work *work,
                                   struct bsw_error *err)
{
    const struct bsw_scan_round first = bsw_first_round(&search->service->settings);
    size_t num_queries = work->queries.num_queries;
    BSW_TRY(find_cuts(search, work, &first, err));
    work->status =
        bsw_buffer_reserve(&search->limits, num_queries * sizeof(uint32_t), &work->error);
    work->is_scanned = work->status != BSW_OK; // to be agreed on with the next candidates
    if (work->status == BSW_OK)
        bsw_limits_of_cuts(&search->merge, (const struct bsw_cut *)(void *)search->cuts.data,
                           num_queries, (uint32_t *)(void *)search->limits.data);
    return BSW_OK;
}

// status: of what came before and was not agreed on.
static enum bsw_status refine(struct bsw_batch_search *search, enum bsw_status status,
                              struct bsw_error *err)
{
    double since = bsw_clock_seconds();
    const struct bsw_cut *cuts = (const struct bsw_cut *)(void *)search->cuts.data;
    if (status == BSW_OK)
        status = bsw_shard_service_refine(search->service, cuts, &search->own, err);
    if (status == BSW_OK) status = bsw_mapped_files_check(err); // read to the end, or as zeros
    status = gather(search, BSW_EXCHANGE_SURVIVORS, status, err);
    search->times.refine += lap(&since);
    return status;
}

// Before the first batch that is packed when a check is due.
static int take_check(struct bsw_check_schedule *checks)
{
    double now = bsw_clock_seconds();
    if (checks->seconds <= 0 || now - checks->checked_at < checks->seconds) return 0;
    checks->checked_at = now;
    return 1;
}

static void note_check(struct bsw_check_schedule *checks, int is_passed)
{
    checks->num_passed += (uint64_t)is_passed;
    if (checks->note && checks->num_passed % checks->round == 0)
        checks->note(checks->context, is_passed);
}

// What every rank does with a batch once it has it: work->status and queries are set. The one
// before is still to be completed.
static void begin(struct bsw_batch_search *search, struct bsw_batch_work *work)
{
    work->is_scanned = 0;
    if (work->status == BSW_OK && bsw_caller_is_stopping()) // of this rank; agreed on as a failure
        work->status = bsw_stop_fail(&work->error);
    if (work->status == BSW_OK && work->queries.is_check_due) {
        note_check(&search->checks, 0);
        work->status = bsw_self_check_between(search->service, &work->error);
    }
    if (work->status != BSW_OK) return;
    bsw_shard_service_begin(search->service, &work->queries);
    double since = bsw_clock_seconds();
    work->status = bsw_shard_service_start(search->service, &work->error);
    // The next batch is begun before all have heard of this one's failure.
    if (work->status != BSW_OK) bsw_shard_service_drop(search->service);
    search->times.scan += lap(&since);
}

// The scan of what begin has begun, or of what it could not begin.
static void end_scan(struct bsw_batch_search *search, struct bsw_batch_work *work)
{
    const struct bsw_search_settings *settings = &search->service->settings;
    if (work->status != BSW_OK || settings->is_histogram || settings->is_range) return;
    const struct bsw_scan_round round = bsw_last_round(&search->service->settings, NULL);
    bsw_shard_service_return(search->service, &work->queries);
    scan(search, work, &round);
}

// The cuts of a range search, which rank 0 has made, to all.
static enum bsw_status spread_range(struct bsw_batch_search *search,
                                    const struct bsw_batch_work *work, struct bsw_error *err)
{
    size_t num_queries = work->queries.num_queries, bytes = num_queries * sizeof(struct bsw_cut);
    enum bsw_status status = BSW_OK;
    BSW_TRY(agree(search, BSW_OK, err));
    if (search->transport->rank == 0) status = make_cuts_room(search, num_queries, err);
    if (search->transport->rank == 0 && status == BSW_OK)
        memcpy(search->cuts.data, work->range->data, bytes);
    return spread(search, BSW_EXCHANGE_CUTS, &search->cuts, bytes, status, err);
}

// All rows that pass the cuts. What of them is a candidate needs no other rank.
static enum bsw_status run_range(struct bsw_batch_search *search, struct bsw_batch_work *work,
                                 struct bsw_error *err)
{
    size_t num_queries = work->queries.num_queries;
    BSW_TRY(spread_range(search, work, err));
    const struct bsw_cut *cuts = (const struct bsw_cut *)(void *)search->cuts.data;
    work->status =
        bsw_buffer_reserve(&search->limits, num_queries * sizeof(uint32_t), &work->error);
    uint32_t *limits = (uint32_t *)(void *)search->limits.data;
    for (size_t q = 0; q < num_queries && work->status == BSW_OK; q++) limits[q] = cuts[q].score;
    const struct bsw_scan_round round = bsw_range_round(&search->service->settings, limits);
    if (work->status == BSW_OK) scan(search, work, &round);
    if (work->status != BSW_OK && err) *err = work->error;
    BSW_TRY(refine(search, work->status, err));
    if (work->queries.is_check_due) note_check(&search->checks, 1);
    return BSW_OK;
}

static enum bsw_status run_phases(struct bsw_batch_search *search, struct bsw_batch_work *work,
                                  struct bsw_error *err)
{
    if (work->status != BSW_OK) { // the others' first agreement
        if (err) *err = work->error;
        return agree(search, work->status, err);
    }
    bsw_shard_service_return(search->service, &work->queries);
    if (search->service->settings.is_range) return run_range(search, work, err);
    int is_histogram = search->service->settings.is_histogram;
    if (is_histogram) BSW_TRY(find_limits(search, work, err));
    const struct bsw_scan_round last =
        bsw_last_round(&search->service->settings,
                       is_histogram ? (const uint32_t *)(void *)search->limits.data : NULL);
    BSW_TRY(find_cuts(search, work, &last, err));
    if (work->queries.is_check_due) note_check(&search->checks, 1);
    return refine(search, BSW_OK, err);
}

static enum bsw_status complete(struct bsw_batch_search *search, struct bsw_batch_work *work,
                                struct bsw_error *err)
{
    enum bsw_status status = run_phases(search, work, err);
    if (status != BSW_OK) bsw_shard_service_drop(search->service);
    return status;
}

static const struct bsw_value_terms *terms_of(const struct bsw_search_batch *batch)
{
    return (const struct bsw_value_terms *)(const void *)batch->values.data;
}

// Cuts of a range search; by what answers are made with, which another thread may use meanwhile.
static enum bsw_status pack_range(struct bsw_batch_search *search, struct bsw_search_batch *batch,
                                  struct bsw_error *err)
{
    BSW_TRY(bsw_buffer_reserve(&batch->range, batch->count * sizeof(struct bsw_cut), err));
    bsw_range_cuts(&search->finish, terms_of(batch), batch->count, search->reach,
                   (struct bsw_cut *)(void *)batch->range.data);
    return BSW_OK;
}

enum bsw_status bsw_batch_search_pack(struct bsw_batch_search *search, uint64_t first, size_t count,
                                      int num_threads, struct bsw_search_batch *batch,
                                      struct bsw_error *err)
{
    struct bsw_query_source *queries = search->queries;
    batch->first = first;
    batch->count = count;
    queries->num_threads = num_threads;
    queries->is_followed = batch->is_followed;
    queries->is_check_due = take_check(&search->checks);
    BSW_TRY(bsw_batch_masks_pack(search, batch, err));
    BSW_TRY(bsw_query_source_pack(queries, first, count, &batch->message, err));
    struct bsw_buffer swap = batch->values; // the source's next batch must not overwrite them
    batch->values = queries->values;
    queries->values = swap;
    return search->service->settings.is_range ? pack_range(search, batch, err) : BSW_OK;
}

// With a link the header goes to all ranks over the transport, the rest over the link, once all
// have agreed that they understood the header. payload: on rank 0.
static enum bsw_status spread_linked(struct bsw_batch_search *search, enum bsw_status status,
                                     const unsigned char *payload, struct bsw_query_batch *queries,
                                     struct bsw_error *err)
{
    struct bsw_batch_link *link = search->link;
    BSW_TRY(status == BSW_OK ? bsw_transport_agree(search->transport, status, err)
                             : agree(search, status, err));
    size_t bytes =
        bsw_query_payload_bytes(search->manifest, queries->query_bits, queries->num_queries);
    BSW_TRY(bsw_batch_link_spread(link, payload, bytes, err));
    bsw_query_place_on_device(search->manifest, link->queries[link->turn ^ 1].data, queries);
    return BSW_OK;
}

// To all ranks, of a message that rank 0 has whole; `queries` points into it.
static enum bsw_status spread_batch(struct bsw_batch_search *search, struct bsw_buffer *whole,
                                    struct bsw_query_batch *queries, struct bsw_error *err)
{
    struct bsw_message message = message_of(search, BSW_EXCHANGE_QUERIES);
    int is_last = 0;
    size_t bytes = whole->bytes, head_bytes = bsw_query_head_bytes(whole);
    if (search->link) whole->bytes = head_bytes;
    enum bsw_status status = bsw_transport_broadcast(search->transport, &message, whole, err);
    whole->bytes = bytes;
    BSW_TRY(status);
    search->num_batches++;
    status = bsw_query_unpack(search->manifest, search->queries->query_bits, whole, NULL, 0,
                              queries, &is_last, err);
    if (!search->link) return status;
    return spread_linked(search, status, whole->data + head_bytes, queries, err);
}

static enum bsw_status send_batch(struct bsw_batch_search *search, struct bsw_search_batch *batch,
                                  struct bsw_error *err)
{
    double since = bsw_clock_seconds();
    struct bsw_batch_work *work = &batch->work;
    work->range = &batch->range;
    search->others_know = 1; // a broadcast that fails leaves nothing to tell them
    work->status = spread_batch(search, &batch->message, &work->queries, &work->error);
    double seconds = lap(&since);
    search->times.broadcast += seconds;
    note_exchange(search, BSW_EXCHANGE_QUERIES, 0, seconds,
                  spread_bytes(search, batch->message.bytes));
    if (search->transport->broken != BSW_OK || (search->link && work->status != BSW_OK)) {
        if (err) *err = work->error;
        return work->status;
    }
    bsw_batch_masks_spread(search, &batch->masks, work);
    search->others_know = 0;
    begin(search, work);
    return BSW_OK;
}

enum bsw_status bsw_batch_search_begin(struct bsw_batch_search *search,
                                       struct bsw_search_batch *batch, struct bsw_error *err)
{
    enum bsw_status status = send_batch(search, batch, err);
    if (status != BSW_OK) bsw_shard_service_drop(search->service);
    return status;
}

void bsw_batch_search_scan_begun(struct bsw_batch_search *search, struct bsw_search_batch *batch)
{
    end_scan(search, &batch->work);
}

enum bsw_status bsw_batch_search_complete(struct bsw_batch_search *search,
                                          struct bsw_search_batch *batch, struct bsw_error *err)
{
    search->others_know = 1;
    BSW_TRY(complete(search, &batch->work, err));
    search->others_know = 0;
    struct bsw_buffer *swap = batch->payloads;
    batch->payloads = search->payloads;
    search->payloads = swap;
    return BSW_OK;
}

enum bsw_status bsw_batch_search_pause(struct bsw_batch_search *search, struct bsw_error *err)
{
    struct bsw_message message = message_of(search, BSW_EXCHANGE_QUERIES);
    search->others_know = 1;
    BSW_TRY(bsw_query_pack_pause(&search->message, err));
    BSW_TRY(bsw_transport_broadcast(search->transport, &message, &search->message, err));
    search->num_batches++;
    search->others_know = 0;
    return BSW_OK;
}

static void prepare_finish(struct bsw_batch_search *search, const struct bsw_search_batch *batch,
                           int num_threads)
{
    search->finish.settings.num_threads = num_threads;
    search->finish.order =
        batch->order.bytes > 0 ? (const uint32_t *)(const void *)batch->order.data : NULL;
    search->finish.first_query_row = bsw_vectors_first_row(search->queries->vectors) + batch->first;
}

enum bsw_status bsw_batch_search_finish(struct bsw_batch_search *search,
                                        const struct bsw_search_batch *batch, int num_threads,
                                        int64_t *ids, float *values, struct bsw_error *err)
{
    prepare_finish(search, batch, num_threads);
    return bsw_merge_survivors(&search->finish, batch->payloads, batch->count, terms_of(batch), ids,
                               values, err);
}

enum bsw_status bsw_batch_search_finish_range(struct bsw_batch_search *search,
                                              const struct bsw_search_batch *batch, int num_threads,
                                              struct bsw_range_answers *out, struct bsw_error *err)
{
    prepare_finish(search, batch, num_threads);
    return bsw_merge_range(&search->finish, batch->payloads, batch->count, terms_of(batch),
                           search->most_within, batch->first, out, err);
}

enum bsw_status bsw_batch_search_end(struct bsw_batch_search *search, enum bsw_status status,
                                     struct bsw_error *err)
{
    struct bsw_message message = message_of(search, BSW_EXCHANGE_QUERIES);
    struct bsw_error local;
    if (search->others_know) return status;
    enum bsw_status packed = bsw_query_pack_end(status, err, &search->message, &local);
    if (packed == BSW_OK)
        packed = bsw_transport_broadcast(search->transport, &message, &search->message, &local);
    if (status == BSW_OK && packed != BSW_OK && err) *err = local;
    return status == BSW_OK ? packed : status;
}

static int is_pause(const struct bsw_batch_work *work)
{
    return work->status == BSW_OK && work->queries.num_queries == 0;
}

// The next message of rank 0; *is_last: it was the end.
static enum bsw_status receive_message(struct bsw_batch_search *search, struct bsw_buffer *message,
                                       struct bsw_batch_work *work, int *is_last,
                                       struct bsw_error *err)
{
    const struct bsw_batch_link *link = search->link;
    const struct bsw_message expected = message_of(search, BSW_EXCHANGE_QUERIES);
    *is_last = 0;
    BSW_TRY(bsw_transport_broadcast(search->transport, &expected, message, err));
    work->status =
        bsw_query_unpack(search->manifest, search->service->settings.query_bits, message,
                         link ? link->h_queries[link->turn] : NULL,
                         link ? link->queries[0].bytes : 0, &work->queries, is_last, &work->error);
    if (*is_last) {
        if (err) *err = work->error;
        return work->status;
    }
    search->num_batches++;
    if (!link || is_pause(work)) return BSW_OK;
    work->status = spread_linked(search, work->status, NULL, &work->queries, &work->error);
    if (work->status != BSW_OK && err) *err = work->error;
    return work->status;
}

// With the masks that follow a batch. turn: whose memory.
static enum bsw_status receive_batch(struct bsw_batch_search *search, unsigned turn,
                                     struct bsw_batch_work *work, int *is_last,
                                     struct bsw_error *err)
{
    BSW_TRY(receive_message(search, &search->messages[turn], work, is_last, err));
    if (!*is_last && !is_pause(work)) bsw_batch_masks_spread(search, &search->masks[turn], work);
    return BSW_OK;
}

enum bsw_status bsw_batch_search_serve(struct bsw_batch_search *search, struct bsw_error *err)
{
    struct bsw_batch_work works[2], *before = NULL; // what is scanned, and to be completed
    for (unsigned turn = 0;; turn ^= 1) {
        struct bsw_batch_work *work = &works[turn];
        int is_last;
        enum bsw_status status = receive_batch(search, turn, work, &is_last, err);
        if (is_last || status != BSW_OK) return status;
        if (!is_pause(work)) begin(search, work);
        if (before) BSW_TRY(complete(search, before, err));
        before = NULL;
        if (is_pause(work)) continue;
        if (!work->queries.is_followed) {
            BSW_TRY(complete(search, work, err));
            continue;
        }
        end_scan(search, work);
        before = work;
    }
}

uint64_t bsw_batch_search_received_bytes(const struct bsw_batch_search *search)
{
    return search->exchanges[BSW_EXCHANGE_CANDIDATES].bytes +
           search->exchanges[BSW_EXCHANGE_SURVIVORS].bytes;
}
