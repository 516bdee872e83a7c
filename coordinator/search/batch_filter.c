// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/batch_filter.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/files/list_order.h"
#include "common/net/message_kinds.h"

// Memory that masks of a batch, or the lists of its queries, may take.
#define BUDGET_BYTES ((uint64_t)256 << 20)

struct head {
    uint32_t num_groups, num_words, num_lists, reserved;
};

// ---- lists ----

static enum bsw_status number_shard(struct bsw_batch_filter *filter, const char *folder,
                                    uint32_t shard, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = filter->manifest;
    uint32_t *lists =
                 filter->list_of_row + (manifest->shards[shard].first_row - manifest->first_row),
             *counts = (uint32_t *)(void *)filter->list_rows.data;
    struct bsw_list_order order;
    BSW_TRY(bsw_list_order_read(manifest, folder, shard, &order, err));
    for (uint32_t l = 0; l < order.num_lists; l++) {
        uint32_t first = order.first_bundles[l] * BSW_BUNDLE_ROWS,
                 num = bsw_list_num_rows(&order, l);
        for (uint32_t p = first; p < first + num; p++) lists[order.rows[p]] = l;
        counts[l] += num;
    }
    bsw_list_order_deinit(&order);
    return BSW_OK;
}

// The list of every row of the index, 4 bytes each.
static enum bsw_status number_rows(struct bsw_batch_filter *filter, const char *folder,
                                   struct bsw_error *err)
{
    const struct bsw_manifest *manifest = filter->manifest;
    size_t bytes = manifest->lists.count * sizeof(uint32_t);
    enum bsw_status status = BSW_OK;
    if (filter->list_of_row) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&filter->list_rows, bytes, err));
    memset(filter->list_rows.data, 0, bytes);
    BSW_TRY(bsw_allocate(&filter->list_of_row, (size_t)manifest->num_rows,
                         sizeof *filter->list_of_row, "lists of rows", err));
    memset(filter->list_of_row, 0xff, (size_t)manifest->num_rows * sizeof(uint32_t)); // no list
    for (uint32_t s = 0; s < manifest->num_shards && status == BSW_OK; s++)
        status = number_shard(filter, folder, s, err);
    if (status != BSW_OK) bsw_free(&filter->list_of_row);
    return status;
}

static void count_lists(const struct bsw_batch_filter *filter, const uint32_t *bits,
                        uint32_t *counts)
{
    size_t words = bsw_row_bit_words(filter->manifest->num_rows);
    memset(counts, 0, filter->manifest->lists.count * sizeof *counts);
    for (size_t w = 0; w < words; w++) {
        for (uint32_t left = bits[w]; left; left &= left - 1) {
            uint32_t list = filter->list_of_row[w * 32 + (size_t)__builtin_ctz(left)];
            if (list != BSW_NO_LIST) counts[list]++;
        }
    }
}

// ---- messages ----

// Arrays of a message.
struct parts {
    struct head head;
    uint32_t *first, *bits, *list_rows, *allowed_rows;
};

static size_t message_bytes(struct head head)
{
    size_t groups = head.num_groups, numbers = groups + 1 + groups * head.num_words;
    return sizeof head + (numbers + (groups + 1) * (size_t)head.num_lists) * sizeof(uint32_t);
}

static struct parts parts_of(struct head head, unsigned char *data)
{
    size_t groups = head.num_groups;
    struct parts parts = {.head = head, .first = (uint32_t *)(void *)(data + sizeof head)};
    parts.bits = parts.first + groups + 1;
    parts.list_rows = parts.bits + groups * head.num_words;
    parts.allowed_rows = parts.list_rows + head.num_lists;
    return parts;
}

static enum bsw_status make_message(const struct bsw_batch_filter *filter, uint32_t num_groups,
                                    struct bsw_buffer *message, struct parts *out,
                                    struct bsw_error *err)
{
    const struct head head = {num_groups, (uint32_t)bsw_row_bit_words(filter->manifest->num_rows),
                              filter->has_lists ? filter->manifest->lists.count : 0, 0};
    BSW_TRY(bsw_buffer_reserve(message, message_bytes(head), err));
    message->bytes = message_bytes(head);
    *out = parts_of(head, message->data);
    memcpy(message->data, &head, sizeof head);
    if (head.num_lists > 0)
        memcpy(out->list_rows, filter->list_rows.data, head.num_lists * sizeof(uint32_t));
    return BSW_OK;
}

static enum bsw_status put_group(const struct bsw_batch_filter *filter, const struct parts *parts,
                                 size_t group, uint64_t query, struct bsw_error *err)
{
    uint32_t *bits = parts->bits + group * parts->head.num_words;
    BSW_TRY(bsw_allowed_rows_read(filter->allowed, query, bits, err));
    if (parts->head.num_lists > 0)
        count_lists(filter, bits, parts->allowed_rows + group * parts->head.num_lists);
    return BSW_OK;
}

// A query and what its mask is told by: 128 bits of XXH3 are taken for the mask.
struct digested {
    XXH128_hash_t digest;
    uint32_t query;
};

static int compare_digests(const void *a, const void *b)
{
    const struct digested *x = a, *y = b;
    int by = XXH128_cmp(&x->digest, &y->digest);
    return by ? by : (x->query > y->query) - (x->query < y->query);
}

static int is_same_mask(const struct digested *a, const struct digested *b)
{
    return XXH128_isEqual(a->digest, b->digest);
}

// Queries in the order of their masks.
static enum bsw_status digest_masks(struct bsw_batch_filter *filter, uint64_t first, size_t count,
                                    struct digested **out, struct bsw_error *err)
{
    size_t bytes = bsw_row_bit_words(filter->manifest->num_rows) * sizeof(uint32_t);
    BSW_TRY(bsw_buffer_reserve(&filter->mask, bytes + 1, err));
    BSW_TRY(bsw_buffer_reserve(&filter->order, count * sizeof **out, err));
    uint32_t *bits = (uint32_t *)(void *)filter->mask.data;
    *out = (struct digested *)(void *)filter->order.data;
    for (size_t q = 0; q < count; q++) {
        BSW_TRY(bsw_allowed_rows_read(filter->allowed, first + q, bits, err));
        (*out)[q] = (struct digested){XXH3_128bits(bits, bytes), (uint32_t)q};
    }
    qsort(*out, count, sizeof **out, compare_digests);
    return BSW_OK;
}

enum bsw_status bsw_batch_filter_pack(struct bsw_batch_filter *filter, uint64_t first, size_t count,
                                      uint32_t *order, struct bsw_buffer *message,
                                      struct bsw_error *err)
{
    struct digested *masks;
    struct parts parts;
    uint32_t num_groups = 0;
    BSW_TRY(digest_masks(filter, first, count, &masks, err));
    for (size_t q = 0; q < count; q++)
        num_groups += q == 0 || !is_same_mask(&masks[q], &masks[q - 1]);
    BSW_TRY(make_message(filter, num_groups, message, &parts, err));
    for (size_t q = 0, group = 0; q < count; q++) {
        order[q] = masks[q].query;
        if (q > 0 && is_same_mask(&masks[q], &masks[q - 1])) continue;
        parts.first[group] = (uint32_t)q;
        BSW_TRY(put_group(filter, &parts, group++, first + masks[q].query, err));
    }
    parts.first[num_groups] = (uint32_t)count;
    return BSW_OK;
}

static enum bsw_status fail_malformed(struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent masks of rows that do not parse");
}

// Groups ascend, none of them empty, up to the last query.
static int are_groups(const struct parts *parts, size_t num_queries)
{
    int is_good = parts->first[0] == 0 && parts->first[parts->head.num_groups] == num_queries;
    for (uint32_t g = 0; g < parts->head.num_groups; g++)
        is_good &= parts->first[g] < parts->first[g + 1];
    return is_good;
}

enum bsw_status bsw_batch_filter_parse(const struct bsw_batch_filter *filter,
                                       const struct bsw_buffer *message, size_t num_queries,
                                       struct bsw_row_filter *out, struct bsw_error *err)
{
    static uint64_t numbers = 1;
    const struct bsw_manifest *manifest = filter->manifest;
    struct head head;
    if (message->bytes < sizeof head) return fail_malformed(err);
    memcpy(&head, message->data, sizeof head);
    if (head.num_groups == 0 || head.num_groups > num_queries ||
        head.num_words != bsw_row_bit_words(manifest->num_rows) ||
        (head.num_lists != 0 && head.num_lists != manifest->lists.count) ||
        message_bytes(head) != message->bytes)
        return fail_malformed(err);
    const struct parts parts = parts_of(head, message->data);
    if (!are_groups(&parts, num_queries)) return fail_malformed(err);
    *out = (struct bsw_row_filter){
        .num_groups = head.num_groups,
        .first = parts.first,
        .num_words = head.num_words,
        .bits = parts.bits,
        .first_row = manifest->first_row,
        .first_number = __atomic_fetch_add(&numbers, head.num_groups, __ATOMIC_RELAXED),
        .num_lists = head.num_lists,
        .list_rows = head.num_lists > 0 ? parts.list_rows : NULL,
        .allowed_rows = head.num_lists > 0 ? parts.allowed_rows : NULL};
    return BSW_OK;
}

// ---- a run ----

static enum bsw_status prepare(struct bsw_batch_filter *filter, struct bsw_allowed_rows *allowed,
                               const char *folder, struct bsw_error *err)
{
    struct parts parts;
    filter->allowed = allowed;
    if (!allowed || !allowed->is_given) return BSW_OK;
    filter->kind = allowed->num_masks > 1 ? BSW_FILTER_EACH : BSW_FILTER_ONE;
    if (filter->has_lists && !folder)
        return bsw_fail(err, BSW_ERROR_USAGE, "--allow: there is no index in a folder");
    if (filter->has_lists) BSW_TRY(number_rows(filter, folder, err));
    if (filter->kind == BSW_FILTER_EACH) return BSW_OK;
    BSW_TRY(make_message(filter, 1, &filter->message, &parts, err));
    parts.first[0] = 0;
    parts.first[1] = UINT32_MAX;
    return put_group(filter, &parts, 0, 0, err);
}

static enum bsw_status share_one(struct bsw_batch_filter *filter, bsw_transport *transport,
                                 struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_FILTER, .name = "masks of rows"};
    BSW_TRY(bsw_transport_broadcast(transport, &message, &filter->message, err));
    enum bsw_status status =
        bsw_batch_filter_parse(filter, &filter->message, UINT32_MAX, &filter->one, err);
    filter->one.first = NULL; // all queries of every batch
    return bsw_transport_agree(transport, status, err);
}

enum bsw_status bsw_batch_filter_begin(struct bsw_batch_filter *filter, bsw_transport *transport,
                                       const struct bsw_shard_service *service,
                                       struct bsw_allowed_rows *allowed, const char *folder,
                                       struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_FILTER, .name = "kind of filter"};
    enum bsw_status status = BSW_OK;
    filter->kind = BSW_FILTER_NONE;
    filter->manifest = service->manifest;
    filter->has_lists = service->coarse != NULL;
    if (transport->rank == 0) status = prepare(filter, allowed, folder, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_share_record(transport, &message, &filter->kind, sizeof filter->kind, err));
    return filter->kind == BSW_FILTER_ONE ? share_one(filter, transport, err) : BSW_OK;
}

void bsw_batch_filter_close(struct bsw_batch_filter *filter)
{
    bsw_free(&filter->list_of_row);
    bsw_buffer_deinit(&filter->list_rows);
    bsw_buffer_deinit(&filter->message);
    bsw_buffer_deinit(&filter->mask);
    bsw_buffer_deinit(&filter->order);
    *filter = (struct bsw_batch_filter){0};
}

size_t bsw_batch_filter_most(const struct bsw_batch_filter *filter, size_t batch)
{
    uint64_t query_bytes = 1;
    if (filter->kind == BSW_FILTER_NONE) return batch;
    if (filter->kind == BSW_FILTER_EACH) query_bytes += filter->manifest->num_rows / 8;
    if (filter->has_lists) query_bytes += filter->manifest->lists.count * 8ull;
    uint64_t fit = BUDGET_BYTES / query_bytes;
    return fit < 1 ? 1 : fit < batch ? (size_t)fit : batch;
}
