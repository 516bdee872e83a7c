// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/batch_device_merge.h"

#include <string.h>

#include "common/base/memory.h"
#include "common/base/parts.h"
#include "common/device/device_phase.h"
#include "kernels/gpu_select/gpu_select.h"

#define ALIGNMENT ((size_t)256)
// A merge takes at most this part of the device's memory, and at most so many bytes: more queries
// at a time make for fewer and longer transfers, and these are long enough.
#define MEMORY_PART 8
#define MOST_BYTES  ((size_t)1 << 30)

// ---- plan ----

static size_t place(size_t bytes, size_t *total)
{
    return bsw_place_array(bytes, ALIGNMENT, total);
}

static uint32_t num_mergers(const struct bsw_device_merge_needs *needs)
{
    return needs->place == BSW_MERGE_ON_ALL_DEVICES ? needs->rule.assignment->num_ranks : 1;
}

static void lay_out(const struct bsw_device_merge_needs *needs, uint32_t rank,
                    struct bsw_device_merge_plan *plan)
{
    uint32_t mergers = num_mergers(needs), num_spans = bsw_num_spans(&needs->rule);
    size_t lists, share = rank < mergers ? (plan->group_queries + mergers - 1) / mergers : 0;
    size_t total = 0, items = share * plan->list_items * sizeof(uint64_t);
    plan->share_queries = share;
    lists = share * num_spans;
    plan->offsets = place(lists * sizeof(uint64_t), &total); // these four first: as on the host
    plan->counts = place(lists * sizeof(uint32_t), &total);
    plan->first_rows = place(num_spans * sizeof(uint64_t), &total);
    plan->cuts = place(plan->group_queries * sizeof(struct bsw_cut), &total);
    plan->received = place(items, &total);
    plan->key_items = place(items, &total);
    plan->key_counts = place(share * sizeof(uint32_t), &total);
    plan->sort = place(
        share ? bsw_device_sort_bytes((uint32_t)share, (uint32_t)plan->list_items) : 0, &total);
    plan->bytes = total;
}

// Rank 0 merges as much as any.
void bsw_device_merge_plan_make(const struct bsw_device_merge_needs *needs, uint32_t rank,
                                size_t free_bytes, struct bsw_device_merge_plan *out)
{
    size_t most = free_bytes / MEMORY_PART < MOST_BYTES ? free_bytes / MEMORY_PART : MOST_BYTES;
    *out = (struct bsw_device_merge_plan){.group_queries = needs->batch};
    struct bsw_span span;
    for (uint32_t s = 0; s < needs->rule.assignment->num_shards; s += span.num_shards) {
        span = bsw_span_at(&needs->rule, s);
        out->list_items += (size_t)(span.num_rows < needs->keep ? span.num_rows : needs->keep);
    }
    if (out->list_items > INT32_MAX) out->group_queries = 0;
    lay_out(needs, 0, out);
    while (out->group_queries > 0 && out->bytes > most) {
        out->group_queries /= 2;
        lay_out(needs, 0, out);
    }
    lay_out(needs, rank, out);
}

// ---- open and close ----

static enum bsw_status allocate(struct bsw_batch_device_merge *merge, struct bsw_error *err)
{
    const struct bsw_span_rule *rule = &merge->needs.rule;
    size_t num_ranks = rule->assignment->num_ranks, num_spans = bsw_num_spans(rule);
    size_t lists = num_spans * rule->assignment->num_slices;
    size_t host_bytes = merge->plan.received, transfers = (lists + 1) * num_ranks;
    BSW_TRY(bsw_allocate(&merge->spans, num_spans, sizeof *merge->spans, "candidates", err));
    for (uint32_t s = 0; s < rule->assignment->num_shards; merge->num_spans++) {
        merge->spans[merge->num_spans] = bsw_span_at(rule, s);
        s += merge->spans[merge->num_spans].num_shards;
    }
    BSW_TRY(bsw_buffer_reserve(&merge->transfers,
                               2 * transfers * sizeof(struct bsw_device_transfer), err));
    BSW_TRY(
        bsw_device_allocate_host(merge->device, host_bytes, "candidates", &merge->staging, err));
    BSW_TRY(
        bsw_device_allocate(merge->device, merge->plan.bytes, "candidates", &merge->memory, err));
    uint64_t *first_rows = (uint64_t *)(void *)(merge->staging + merge->plan.first_rows);
    for (uint32_t s = 0; s < merge->num_spans; s++) first_rows[s] = merge->spans[s].first_row;
    return BSW_OK;
}

enum bsw_status bsw_batch_device_merge_open(const struct bsw_device_merge_needs *needs,
                                            bsw_device_link *link, bsw_device *device,
                                            bsw_transport *transport, size_t free_bytes,
                                            struct bsw_batch_device_merge *out,
                                            struct bsw_error *err)
{
    *out = (struct bsw_batch_device_merge){
        .needs = *needs, .link = link, .device = device, .transport = transport};
    bsw_device_merge_plan_make(needs, (uint32_t)transport->rank, free_bytes, &out->plan);
    enum bsw_status status = allocate(out, err);
    if (status != BSW_OK) bsw_batch_device_merge_close(out);
    return status;
}

void bsw_batch_device_merge_close(struct bsw_batch_device_merge *merge)
{
    if (!merge->device) return;
    bsw_device_free(merge->device, &merge->memory);
    bsw_device_free_host(merge->device, &merge->staging);
    bsw_buffer_deinit(&merge->transfers);
    bsw_buffer_deinit(&merge->counts);
    bsw_free(&merge->spans);
    *merge = (struct bsw_batch_device_merge){.link = NULL};
}

// ---- counts ----

static uint32_t *counts_of(const struct bsw_batch_device_merge *merge, uint32_t span,
                           size_t num_queries)
{
    return (uint32_t *)(void *)merge->counts.data + span * num_queries;
}

static uint32_t rank_of(const struct bsw_batch_device_merge *merge, uint32_t slice, uint32_t span)
{
    return bsw_assignment_rank(merge->needs.rule.assignment, slice, merge->spans[span].first_shard);
}

enum bsw_status bsw_batch_device_merge_check(const struct bsw_batch_device_merge *merge,
                                             size_t num_queries, struct bsw_error *err)
{
    const struct bsw_device_merge_needs *needs = &merge->needs;
    size_t expected = merge->num_spans * num_queries * sizeof(uint32_t);
    int is_good = merge->counts.bytes == expected;
    for (uint32_t s = 0; s < merge->num_spans && is_good; s++) {
        uint64_t rows = merge->spans[s].num_rows;
        uint64_t most = rows < needs->keep ? rows : needs->keep;
        for (size_t q = 0; q < num_queries; q++)
            is_good &= counts_of(merge, s, num_queries)[q] <= most;
    }
    if (is_good) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_PEER, "a rank sent numbers of candidates that make no sense");
}

// A span's counts for a slice from the payload.
static int read_span(struct bsw_batch_device_merge *merge, const struct bsw_buffer *payload,
                     size_t *at, uint32_t slice, uint32_t span, size_t num_queries)
{
    size_t first, last;
    bsw_assignment_queries(merge->needs.rule.assignment, slice, num_queries, &first, &last);
    if ((last - first) * sizeof(uint64_t) > payload->bytes - *at) return 0;
    for (size_t q = first; q < last; q++, *at += sizeof(uint64_t)) {
        uint64_t count;
        memcpy(&count, payload->data + *at, sizeof count);
        if (count > UINT32_MAX) return 0;
        counts_of(merge, span, num_queries)[q] = (uint32_t)count;
    }
    return 1;
}

enum bsw_status bsw_batch_device_merge_counts(struct bsw_batch_device_merge *merge,
                                              const struct bsw_buffer *payloads, size_t num_queries,
                                              struct bsw_error *err)
{
    const struct bsw_assignment *table = merge->needs.rule.assignment;
    size_t bytes = merge->num_spans * num_queries * sizeof(uint32_t);
    BSW_TRY(bsw_buffer_reserve(&merge->counts, bytes, err));
    merge->counts.bytes = bytes;
    memset(merge->counts.data, 0, bytes); // of what nobody answers for
    for (uint32_t rank = 0; rank < table->num_ranks; rank++) {
        size_t at = 0;
        int is_good = 1;
        for (uint32_t slice = 0; slice < table->num_slices; slice++) {
            for (uint32_t s = 0; s < merge->num_spans && is_good; s++) {
                if (rank_of(merge, slice, s) == rank)
                    is_good = read_span(merge, &payloads[rank], &at, slice, s, num_queries);
            }
        }
        if (!is_good || at != payloads[rank].bytes)
            return bsw_fail(err, BSW_ERROR_PEER, "rank %u sent an answer that does not parse",
                            rank);
    }
    return bsw_batch_device_merge_check(merge, num_queries, err);
}

// ---- a group ----

struct range {
    size_t first, last; // of the batch's queries
};

static struct range overlap(struct range a, struct range b)
{
    struct range both = {a.first > b.first ? a.first : b.first, a.last < b.last ? a.last : b.last};
    if (both.last < both.first) both.last = both.first;
    return both;
}

struct group {
    struct bsw_batch_device_merge *merge;
    const struct bsw_shard_service *service;
    size_t num_queries; // of the batch
    uint64_t keep;
    struct range queries, own;
    struct bsw_device_transfer *sends, *receives;
    size_t num_sends, num_receives;
};

// What of the group's queries a rank merges.
static struct range share_of(const struct group *group, uint32_t rank)
{
    uint32_t mergers = num_mergers(&group->merge->needs);
    size_t first = group->queries.first, num = group->queries.last - first;
    if (rank >= mergers) return (struct range){first, first};
    return (struct range){first + (size_t)bsw_part_first(num, rank, mergers),
                          first + (size_t)bsw_part_first(num, rank + 1, mergers)};
}

// The queries of the service's span `own`.
static struct range queries_of(const struct group *group, uint32_t own)
{
    const struct bsw_unit *unit = &group->service->units[group->service->spans[own].first];
    return (struct range){unit->first_query, unit->first_query + unit->num_queries};
}

// Lists of the service's span `own` for some queries, where they lie on this rank's device.
static struct bsw_device_transfer lists_of(const struct group *group, uint32_t own, uint32_t rank,
                                           struct range queries)
{
    const struct bsw_kept_lists *kept = &group->service->kept[own];
    uint64_t first = kept->offsets[queries.first - queries_of(group, own).first];
    uint64_t last = kept->offsets[queries.last - queries_of(group, own).first];
    return (struct bsw_device_transfer){(int)rank, (void *)(uintptr_t)(kept->items + first),
                                        (size_t)(last - first) * sizeof(uint64_t)};
}

// Spans in the order that receivers have them; a rank's queries of a span go as one piece.
static void list_sends(struct group *group)
{
    for (uint32_t s = 0; s < group->service->num_spans; s++) {
        const struct range has = queries_of(group, s);
        for (uint32_t rank = 0; rank < num_mergers(&group->merge->needs); rank++) {
            const struct range both = overlap(has, share_of(group, rank));
            if ((int)rank != group->merge->transport->rank && both.first < both.last)
                group->sends[group->num_sends++] = lists_of(group, s, rank, both);
        }
    }
}

// Places of some lists of a span from `at` on: into the tables; how many items they are.
static size_t place_lists(const struct group *group, uint32_t span, struct range queries, size_t at)
{
    const struct bsw_batch_device_merge *merge = group->merge;
    const uint32_t *counts = counts_of(merge, span, group->num_queries);
    size_t num = group->own.last - group->own.first, before = at;
    uint64_t *h_offsets = (uint64_t *)(void *)(merge->staging + merge->plan.offsets);
    uint32_t *h_counts = (uint32_t *)(void *)(merge->staging + merge->plan.counts);
    for (size_t q = queries.first; q < queries.last; q++) {
        size_t list = span * num + (q - group->own.first);
        h_offsets[list] = at;
        h_counts[list] = counts[q];
        at += counts[q];
    }
    return at - before;
}

// Own lists are copied, others received.
static enum bsw_status list_receives(struct group *group, struct bsw_error *err)
{
    struct bsw_batch_device_merge *merge = group->merge;
    const struct bsw_assignment *table = merge->needs.rule.assignment;
    size_t at = 0, num = group->own.last - group->own.first;
    memset(merge->staging + merge->plan.counts, 0, num * merge->num_spans * sizeof(uint32_t));
    for (uint32_t slice = 0, own = 0; slice < table->num_slices; slice++) {
        struct range has;
        bsw_assignment_queries(table, slice, group->num_queries, &has.first, &has.last);
        has = overlap(has, group->own);
        for (uint32_t s = 0; s < merge->num_spans; s++) {
            uint32_t rank = rank_of(merge, slice, s);
            int is_own = (int)rank == merge->transport->rank;
            uint64_t *to = (uint64_t *)(void *)(merge->memory.data + merge->plan.received) + at;
            size_t bytes = place_lists(group, s, has, at) * sizeof(uint64_t);
            uint32_t own_span = is_own ? own++ : 0;
            at += bytes / sizeof(uint64_t);
            if (bytes == 0) continue;
            if (is_own)
                BSW_TRY(bsw_device_copy(merge->device, BSW_QUEUE_LINK, to,
                                        lists_of(group, own_span, rank, has).data, bytes, err));
            else
                group->receives[group->num_receives++] =
                    (struct bsw_device_transfer){(int)rank, to, bytes};
            merge->received_bytes += is_own ? 0 : bytes;
        }
    }
    return BSW_OK;
}

static enum bsw_status exchange(struct group *group, const char *what, struct bsw_error *err)
{
    const struct bsw_device_exchange all = {group->sends, group->receives, group->num_sends,
                                            group->num_receives};
    if (!group->merge->link) return BSW_OK;
    return bsw_device_link_exchange(group->merge->link, &all, what, err);
}

// ---- cuts ----

static enum bsw_status queue_merge(const struct group *group, struct bsw_error *err)
{
    const struct bsw_batch_device_merge *merge = group->merge;
    const struct bsw_device_merge_plan *plan = &merge->plan;
    uint32_t num = (uint32_t)(group->own.last - group->own.first);
    uint32_t num_spans = merge->num_spans;
    unsigned char *memory = merge->memory.data;
    bsw_stream stream = bsw_device_stream(merge->device, BSW_QUEUE_LINK);
    const struct bsw_device_merge what = {
        .lists = {(uint64_t *)(void *)(memory + plan->received),
                  (uint64_t *)(void *)(memory + plan->offsets),
                  (uint32_t *)(void *)(memory + plan->counts), num_spans * num},
        .first_rows = (uint64_t *)(void *)(memory + plan->first_rows),
        .num_queries = num,
        .num_shards = num_spans,
        .keep = group->keep};
    const struct bsw_device_lists keys = {.num_queries = num,
                                          .capacity = (uint32_t)plan->list_items,
                                          .items = (uint64_t *)(void *)(memory + plan->key_items),
                                          .counts =
                                              (uint32_t *)(void *)(memory + plan->key_counts)};
    struct bsw_cut *cuts =
        (struct bsw_cut *)(void *)(memory + plan->cuts) + (group->own.first - group->queries.first);
    int code = bsw_device_merge_keys(&what, &keys, stream);
    if (code == 0) code = bsw_device_sort(&keys, memory + plan->sort, stream);
    if (code == 0) code = bsw_device_merge_cuts(&what, &keys, cuts, stream);
    return bsw_device_launched(merge->device, code, "merge", err);
}

// The cuts of all ranks to all.
static enum bsw_status share_cuts(struct group *group, struct bsw_error *err)
{
    struct bsw_batch_device_merge *merge = group->merge;
    struct bsw_cut *cuts = (struct bsw_cut *)(void *)(merge->memory.data + merge->plan.cuts);
    uint32_t num_ranks = merge->needs.rule.assignment->num_ranks,
             own = (uint32_t)merge->transport->rank;
    group->num_sends = group->num_receives = 0;
    for (uint32_t rank = 0; rank < num_ranks; rank++) {
        const struct range theirs = share_of(group, rank), mine = group->own;
        if (rank == own) continue;
        group->sends[group->num_sends++] =
            (struct bsw_device_transfer){(int)rank, cuts + (mine.first - group->queries.first),
                                         (mine.last - mine.first) * sizeof *cuts};
        group->receives[group->num_receives++] =
            (struct bsw_device_transfer){(int)rank, cuts + (theirs.first - group->queries.first),
                                         (theirs.last - theirs.first) * sizeof *cuts};
    }
    return exchange(group, "cuts to all ranks", err);
}

static enum bsw_status wait_for(const struct bsw_batch_device_merge *merge, struct bsw_error *err)
{
    static const char *const what = "candidates of all ranks";
    return merge->link ? bsw_device_link_wait(merge->link, what, err)
                       : bsw_device_wait(merge->device, BSW_QUEUE_LINK, what, err);
}

// Brings the candidates of the group's queries to the device that merges; there they become cuts.
static enum bsw_status run_group(struct group *group, struct bsw_cut *cuts, struct bsw_error *err)
{
    struct bsw_batch_device_merge *merge = group->merge;
    const struct bsw_device_merge_plan *plan = &merge->plan;
    size_t num = group->queries.last - group->queries.first;
    BSW_DEVICE_PHASE(MERGE);
    int is_all = merge->needs.place == BSW_MERGE_ON_ALL_DEVICES;
    group->own = share_of(group, (uint32_t)merge->transport->rank);
    list_sends(group);
    BSW_TRY(list_receives(group, err));
    BSW_TRY(bsw_device_upload(merge->device, BSW_QUEUE_LINK, merge->memory.data, merge->staging,
                              plan->cuts, err)); // the tables before it
    BSW_TRY(exchange(group, "candidates to who merges them", err));
    BSW_TRY(queue_merge(group, err));
    if (is_all) BSW_TRY(share_cuts(group, err));
    struct bsw_cut *staging = (struct bsw_cut *)(void *)(merge->staging + plan->cuts);
    if (is_all || merge->transport->rank == 0)
        BSW_TRY(bsw_device_download(merge->device, BSW_QUEUE_LINK, staging,
                                    merge->memory.data + plan->cuts, num * sizeof *cuts, err));
    BSW_TRY(wait_for(merge, err));
    if (is_all || merge->transport->rank == 0)
        memcpy(cuts + group->queries.first, staging, num * sizeof *cuts);
    return BSW_OK;
}

static enum bsw_status run(struct bsw_batch_device_merge *merge,
                           const struct bsw_shard_service *service, size_t num_queries,
                           uint64_t keep, struct bsw_cut *cuts, struct bsw_error *err)
{
    struct bsw_device_transfer *transfers =
        (struct bsw_device_transfer *)(void *)merge->transfers.data;
    size_t step = merge->plan.group_queries;
    size_t half = merge->transfers.capacity / sizeof *transfers / 2;
    for (size_t first = 0; first < num_queries; first += step) {
        struct group group = {
            .merge = merge,
            .service = service,
            .num_queries = num_queries,
            .keep = keep,
            .queries = {first, num_queries - first < step ? num_queries : first + step},
            .sends = transfers,
            .receives = transfers + half};
        BSW_TRY(run_group(&group, cuts, err));
    }
    return BSW_OK;
}

// Other ranks have begun, or will: what fails here must reach them.
enum bsw_status bsw_batch_device_merge_run(struct bsw_batch_device_merge *merge,
                                           const struct bsw_shard_service *service,
                                           size_t num_queries, uint64_t keep, struct bsw_cut *cuts,
                                           struct bsw_error *err)
{
    enum bsw_status status = run(merge, service, num_queries, keep, cuts, err);
    if (status == BSW_OK || merge->transport->broken != BSW_OK) return status;
    return bsw_transport_raise(merge->transport, status, err);
}
