// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/missing_shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/message_kinds.h"
#include "coordinator/job/index_generation.h"

void bsw_missing_shards_deinit(struct bsw_missing_shards *missing)
{
    bsw_free(&missing->items);
    missing->count = 0;
}

json_t *bsw_missing_shards_told(const struct bsw_missing_shards *missing)
{
    json_t *object = json_object(), *list = json_array();
    for (uint32_t i = 0; i < missing->count; i++) {
        const struct bsw_missing_shard *item = &missing->items[i];
        char why[BSW_ERROR_MESSAGE_BYTES];
        snprintf(why, sizeof why, "%s", item->why);
        for (char *c = why; *c; c++) // JSON is UTF-8, names of files may be anything
            if ((unsigned char)*c >= 0x80) *c = '?';
        json_array_append_new(list, json_pack("{s:i, s:i, s:s}", "shard", (int)item->shard, "rank",
                                              item->rank, "why", why));
    }
    if (missing->count > 0)
        json_object_set_new(object, "missing_shards", list);
    else
        json_decref(list);
    return object;
}

// What rank 0 makes of the units that all ranks have failed to load.
struct finding {
    bsw_transport *transport;
    const struct bsw_manifest *manifest;
    const char *index;
    struct bsw_assignment *table;
    struct bsw_missing_shards *missing;
    struct bsw_buffer failed; // struct bsw_failed_unit [num]
    uint64_t num;
};

static const struct bsw_failed_unit *failed_at(const struct finding *f, uint64_t i)
{
    return (const struct bsw_failed_unit *)(const void *)f->failed.data + i;
}

static enum bsw_status take(void *context, int rank, const struct bsw_buffer *payload,
                            struct bsw_error *err)
{
    struct finding *f = context;
    const size_t bytes = sizeof(struct bsw_failed_unit);
    for (size_t at = 0; at + bytes <= payload->bytes; at += bytes) {
        struct bsw_failed_unit unit;
        memcpy(&unit, payload->data + at, bytes);
        if (unit.slice >= f->table->num_slices || unit.shard >= f->table->num_shards ||
            bsw_assignment_rank(f->table, unit.slice, unit.shard) != (uint32_t)rank)
            return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent shards that are not its own", rank);
        unit.why[sizeof unit.why - 1] = '\0';
        BSW_TRY(bsw_buffer_append(&f->failed, &unit, bytes, err));
        f->num++;
    }
    if (payload->bytes % bytes == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes of shards", rank, payload->bytes);
}

// ---- rank 0 ----

static int is_listed(const struct bsw_missing_shards *missing, uint32_t shard)
{
    for (uint32_t i = 0; i < missing->count; i++)
        if (missing->items[i].shard == shard) return 1;
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = ((const struct bsw_missing_shard *)a)->shard,
             y = ((const struct bsw_missing_shard *)b)->shard;
    return (x > y) - (x < y);
}

// ranks: [num_slices][num_shards], who failed.
static enum bsw_status list_missing(struct finding *f, const uint32_t *ranks, struct bsw_error *err)
{
    struct bsw_missing_shards *missing = f->missing;
    struct bsw_missing_shard *items;
    BSW_TRY(bsw_allocate(&items, missing->count + f->num, sizeof *items, "missing shards", err));
    if (missing->count > 0) memcpy(items, missing->items, missing->count * sizeof *items);
    bsw_free(&missing->items);
    missing->items = items;
    for (uint64_t i = 0; i < f->num; i++) {
        const struct bsw_failed_unit *unit = failed_at(f, i);
        if (bsw_assignment_rank(f->table, unit->slice, unit->shard) != BSW_NO_RANK) continue;
        if (is_listed(missing, unit->shard)) continue;
        struct bsw_missing_shard *item = &items[missing->count++];
        size_t place = (size_t)unit->slice * f->table->num_shards + unit->shard;
        *item = (struct bsw_missing_shard){unit->shard, (int)ranks[place],
                                           (enum bsw_status)unit->status, ""};
        memcpy(item->why, unit->why, sizeof item->why);
    }
    qsort(items, missing->count, sizeof *items, compare);
    return BSW_OK;
}

static enum bsw_status leave_out(struct finding *f, struct bsw_error *err)
{
    size_t places = (size_t)f->table->num_slices * f->table->num_shards;
    unsigned char *is_failed = NULL;
    uint32_t *ranks = NULL;
    enum bsw_status status = bsw_allocate_zero(&is_failed, places, 1, "missing shards", err);
    if (status == BSW_OK)
        status = bsw_allocate(&ranks, places, sizeof *ranks, "missing shards", err);
    if (status == BSW_OK) {
        memcpy(ranks, f->table->ranks, places * sizeof *ranks);
        for (uint64_t i = 0; i < f->num; i++) {
            const struct bsw_failed_unit *unit = failed_at(f, i);
            is_failed[(size_t)unit->slice * f->table->num_shards + unit->shard] = 1;
        }
        bsw_assignment_leave_out(f->table, is_failed);
        status = list_missing(f, ranks, err);
    }
    bsw_free(&is_failed);
    bsw_free(&ranks);
    return status;
}

// As if it were not allowed to go on.
static enum bsw_status fail_first(const struct finding *f, struct bsw_error *err)
{
    const struct bsw_failed_unit *first = failed_at(f, 0);
    enum bsw_status status = bsw_fail(err, (enum bsw_status)first->status, "%s", first->why);
    return bsw_generation_explain(f->index, f->manifest, status, err);
}

// Files of an index that was changed meanwhile are gone for another reason.
static enum bsw_status judge(struct finding *f, struct bsw_error *err)
{
    if (bsw_generation_is_other(f->index, f->manifest)) return fail_first(f, err);
    BSW_TRY(leave_out(f, err));
    if (bsw_assignment_coverage(f->table, f->manifest, 0) > 0) return BSW_OK;
    enum bsw_status status = fail_first(f, err);
    return bsw_prefix(err, status, "no shard with rows is left: ");
}

// ---- all ranks ----

static enum bsw_status find(struct finding *f, const struct bsw_shard_service *service,
                            int *is_found, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_MISSING, .name = "missing shards"};
    enum bsw_status status =
        bsw_collect(f->transport, &message, service->failed,
                    service->num_failed * sizeof *service->failed, take, f, err);
    const struct bsw_buffer own = {.data = (void *)service->failed,
                                   .bytes = service->num_failed * sizeof *service->failed};
    if (status == BSW_OK && f->transport->rank == 0) status = take(f, 0, &own, err);
    BSW_TRY(bsw_transport_agree(f->transport, status, err));
    if (f->transport->num_ranks > 1)
        BSW_TRY(bsw_share_record(f->transport, &message, &f->num, sizeof f->num, err));
    *is_found = f->num > 0;
    if (!*is_found) return BSW_OK;
    status = f->transport->rank == 0 ? judge(f, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(f->transport, status, err));
    return bsw_assignment_share_next(f->transport, f->table, err);
}

enum bsw_status bsw_missing_shards_find(bsw_transport *transport,
                                        const struct bsw_shard_service *service, const char *index,
                                        struct bsw_assignment *table,
                                        struct bsw_missing_shards *missing, int *is_found,
                                        struct bsw_error *err)
{
    struct finding f = {.transport = transport,
                        .manifest = service->manifest,
                        .index = index,
                        .table = table,
                        .missing = missing};
    *is_found = 0;
    enum bsw_status status = find(&f, service, is_found, err);
    bsw_buffer_deinit(&f.failed);
    return status;
}

double bsw_missing_shards_coverage(const struct bsw_manifest *manifest,
                                   const struct bsw_assignment *table)
{
    uint64_t all = bsw_manifest_live_rows(manifest);
    return all > 0 ? (double)bsw_assignment_coverage(table, manifest, 0) / (double)all : 1;
}
