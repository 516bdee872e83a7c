// SPDX-License-Identifier: Apache-2.0
#include "shard/assignment.h"

#include <string.h>

#include "common/net/message_kinds.h"

// What goes before the ranks.
struct header {
    uint64_t epoch;
    uint32_t num_ranks, num_shards, num_slices, padding;
};

static enum bsw_status allocate(uint64_t epoch, uint32_t num_ranks, uint32_t num_shards,
                                uint32_t num_slices, struct bsw_assignment *out,
                                struct bsw_error *err)
{
    *out = (struct bsw_assignment){epoch, num_ranks, num_shards, num_slices, NULL};
    return bsw_allocate(&out->ranks, (size_t)num_slices * num_shards, sizeof *out->ranks,
                        "assignment of shards", err);
}

// The first shards of the ranks are as evenly apart as can be.
enum bsw_status bsw_assignment_make(uint32_t num_ranks, uint32_t num_shards,
                                    struct bsw_assignment *out, struct bsw_error *err)
{
    int is_replicated = num_ranks > num_shards;
    uint32_t num_slices = is_replicated ? num_ranks / num_shards : 1;
    BSW_TRY(allocate(1, num_ranks, num_shards, num_slices, out, err));
    for (uint32_t i = 0; i < num_slices * num_shards; i++)
        out->ranks[i] = is_replicated ? i : (uint32_t)((uint64_t)i * num_ranks / num_shards);
    return BSW_OK;
}

void bsw_assignment_deinit(struct bsw_assignment *table)
{
    bsw_free(&table->ranks);
    *table = (struct bsw_assignment){0};
}

enum bsw_status bsw_assignment_pack(const struct bsw_assignment *table, struct bsw_buffer *out,
                                    struct bsw_error *err)
{
    const struct header header = {table->epoch, table->num_ranks, table->num_shards,
                                  table->num_slices, 0};
    BSW_TRY(bsw_buffer_append(out, &header, sizeof header, err));
    return bsw_buffer_append(out, table->ranks,
                             (size_t)table->num_slices * table->num_shards * sizeof *table->ranks,
                             err);
}

enum bsw_status bsw_assignment_parse(const void *bytes, size_t num_bytes, uint32_t num_ranks,
                                     uint32_t num_shards, struct bsw_assignment *out,
                                     struct bsw_error *err)
{
    struct header header = {0};
    *out = (struct bsw_assignment){0};
    if (num_bytes >= sizeof header) memcpy(&header, bytes, sizeof header);
    uint64_t places = (uint64_t)header.num_slices * header.num_shards;
    if (header.epoch == 0 || header.num_ranks != num_ranks || header.num_shards != num_shards ||
        places == 0 || (num_bytes - sizeof header) / sizeof *out->ranks != places ||
        (num_bytes - sizeof header) % sizeof *out->ranks != 0) {
        return bsw_fail(err, BSW_ERROR_PEER,
                        "the assignment of shards that rank 0 sent is not one of %u shards to %u "
                        "ranks",
                        num_shards, num_ranks);
    }
    BSW_TRY(allocate(header.epoch, num_ranks, num_shards, header.num_slices, out, err));
    memcpy(out->ranks, (const unsigned char *)bytes + sizeof header, places * sizeof *out->ranks);
    for (uint64_t i = 0; i < places; i++) {
        uint32_t rank = out->ranks[i];
        if (rank < num_ranks || rank == BSW_NO_RANK) continue;
        bsw_assignment_deinit(out);
        return bsw_fail(err, BSW_ERROR_PEER,
                        "the assignment of shards that rank 0 sent names rank %u of %u", rank,
                        num_ranks);
    }
    return BSW_OK;
}

// Rank 0's table to all; with `status` of rank 0 there is none.
static enum bsw_status send_table(bsw_transport *transport, enum bsw_status status,
                                  uint32_t num_shards, struct bsw_assignment *table,
                                  struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_ASSIGNMENT,
                                        .name = "assignment of shards"};
    uint32_t num_ranks = (uint32_t)transport->num_ranks;
    struct bsw_buffer bytes = {0};
    if (status == BSW_OK && transport->rank == 0) status = bsw_assignment_pack(table, &bytes, err);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK) status = bsw_transport_broadcast(transport, &message, &bytes, err);
    if (status == BSW_OK && transport->rank != 0) {
        bsw_assignment_deinit(table);
        status = bsw_assignment_parse(bytes.data, bytes.bytes, num_ranks, num_shards, table, err);
    }
    bsw_buffer_deinit(&bytes);
    status = bsw_transport_agree(transport, status, err);
    if (status != BSW_OK) bsw_assignment_deinit(table);
    return status;
}

enum bsw_status bsw_assignment_share(bsw_transport *transport, uint32_t num_shards,
                                     struct bsw_assignment *out, struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    *out = (struct bsw_assignment){0};
    if (transport->rank == 0)
        status = bsw_assignment_make((uint32_t)transport->num_ranks, num_shards, out, err);
    return send_table(transport, status, num_shards, out, err);
}

enum bsw_status bsw_assignment_share_next(bsw_transport *transport, struct bsw_assignment *table,
                                          struct bsw_error *err)
{
    return send_table(transport, BSW_OK, table->num_shards, table, err);
}

// Who answers for the shard in some slice.
static uint32_t find_other(const struct bsw_assignment *table, uint32_t shard,
                           const unsigned char *is_failed)
{
    for (uint32_t slice = 0; slice < table->num_slices; slice++) {
        uint32_t rank = bsw_assignment_rank(table, slice, shard);
        if (rank != BSW_NO_RANK && !is_failed[(size_t)slice * table->num_shards + shard])
            return rank;
    }
    return BSW_NO_RANK;
}

void bsw_assignment_leave_out(struct bsw_assignment *table, const unsigned char *is_failed)
{
    for (uint32_t shard = 0; shard < table->num_shards; shard++) {
        uint32_t other = find_other(table, shard, is_failed);
        for (uint32_t slice = 0; slice < table->num_slices; slice++) {
            size_t place = (size_t)slice * table->num_shards + shard;
            if (is_failed[place]) table->ranks[place] = other;
        }
    }
    table->epoch++;
}

uint32_t bsw_assignment_num_units(const struct bsw_assignment *table, uint32_t rank)
{
    uint32_t count = 0;
    for (size_t i = 0; i < (size_t)table->num_slices * table->num_shards; i++)
        count += table->ranks[i] == rank;
    return count;
}

uint64_t bsw_assignment_coverage(const struct bsw_assignment *table,
                                 const struct bsw_manifest *manifest, uint32_t slice)
{
    uint64_t rows = 0;
    for (uint32_t shard = 0; shard < table->num_shards; shard++) {
        if (bsw_assignment_rank(table, slice, shard) != BSW_NO_RANK)
            rows += bsw_shard_live_rows(&manifest->shards[shard]);
    }
    return rows;
}

// ---- spans ----

static int is_same_rank(const struct bsw_assignment *table, uint32_t a, uint32_t b)
{
    for (uint32_t slice = 0; slice < table->num_slices; slice++) {
        if (bsw_assignment_rank(table, slice, a) != bsw_assignment_rank(table, slice, b)) return 0;
    }
    return 1;
}

struct bsw_span bsw_span_at(const struct bsw_span_rule *rule, uint32_t first_shard)
{
    const struct bsw_shard_entry *shards = rule->manifest->shards;
    struct bsw_span span = {first_shard, 1, shards[first_shard].first_row,
                            shards[first_shard].num_rows};
    for (uint32_t s = first_shard + 1; s < rule->assignment->num_shards && !rule->is_shard; s++) {
        if (span.num_rows + shards[s].num_rows > UINT32_MAX ||
            !is_same_rank(rule->assignment, first_shard, s))
            break;
        span.num_shards++;
        span.num_rows += shards[s].num_rows;
    }
    return span;
}

uint32_t bsw_num_spans(const struct bsw_span_rule *rule)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < rule->assignment->num_shards; s += bsw_span_at(rule, s).num_shards)
        count++;
    return count;
}

uint32_t bsw_num_rank_spans(const struct bsw_span_rule *rule, uint32_t rank)
{
    const struct bsw_assignment *table = rule->assignment;
    uint32_t count = 0;
    for (uint32_t s = 0; s < table->num_shards; s += bsw_span_at(rule, s).num_shards) {
        for (uint32_t slice = 0; slice < table->num_slices; slice++)
            count += bsw_assignment_rank(table, slice, s) == rank;
    }
    return count;
}
