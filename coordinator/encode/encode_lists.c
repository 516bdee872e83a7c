// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/encode_lists.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "kernels/encode/prepare_rows.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/shard_encode.h"
#include "shard/lists/list_assignment.h"
#include "shard/lists/list_training.h"

// Pairs of row and list: opening a GPU takes about as long as 16 cores need for so many.
#define LEAST_DEVICE_PAIRS (UINT64_C(1) << 32)

uint32_t bsw_encode_num_lists(uint64_t num_rows)
{
    double wanted = 4 * sqrt((double)num_rows);
    uint32_t count = 1;
    while (count < BSW_MAX_LISTS && count * sqrt(2.0) < wanted) count *= 2;
    return count < num_rows ? count : (uint32_t)num_rows;
}

int bsw_encode_lists_want_device(uint64_t asked, uint64_t num_rows)
{
    uint64_t lists = asked == BSW_LISTS_AUTO ? bsw_encode_num_lists(num_rows) : asked;
    return num_rows * lists >= LEAST_DEVICE_PAIRS;
}

enum bsw_status bsw_encode_settle_lists(uint64_t asked, const char *source, uint64_t num_rows,
                                        uint32_t dims, uint32_t *out, struct bsw_error *err)
{
    uint64_t lists = asked == BSW_LISTS_AUTO ? bsw_encode_num_lists(num_rows) : asked;
    if (lists > num_rows)
        return bsw_fail(err, BSW_ERROR_USAGE, "--lists %llu: %s has %llu rows only",
                        (unsigned long long)lists, source, (unsigned long long)num_rows);
    if (lists > BSW_MAX_LISTS || lists * dims * sizeof(float) > BSW_MAX_CENTROID_BYTES)
        return bsw_fail(
            err, BSW_ERROR_USAGE, "--lists %llu: at most %u, and %llu bytes of centroids",
            (unsigned long long)lists, BSW_MAX_LISTS, (unsigned long long)BSW_MAX_CENTROID_BYTES);
    *out = (uint32_t)lists;
    return BSW_OK;
}

enum bsw_status bsw_encode_lists_adopt(const char *folder, uint64_t asked, const char *source,
                                       uint32_t dims, struct bsw_manifest *manifest,
                                       struct bsw_error *err)
{
    struct bsw_manifest model;
    uint32_t count;
    BSW_TRY(bsw_manifest_read(folder, &model, err));
    enum bsw_status status = BSW_OK;
    if (model.metric == manifest->metric && bsw_manifest_row_dims(&model) == dims) {
        manifest->lists.is_residual = model.lists.is_residual;
        if (model.lists.count > 0 && (asked == model.lists.count || asked == BSW_LISTS_AUTO)) {
            status = bsw_encode_settle_lists(model.lists.count, source, manifest->num_rows, dims,
                                             &count, err);
            manifest->lists = model.lists;
            model.lists = (struct bsw_manifest_lists){0};
        }
    }
    bsw_manifest_deinit(&model);
    return status;
}

enum bsw_status bsw_encode_lists_train(struct bsw_encode_lists *lists, struct bsw_error *err)
{
    struct bsw_manifest_lists *made = &lists->manifest->lists;
    const struct bsw_list_training training = {.vectors = lists->vectors,
                                               .metric = lists->manifest->metric,
                                               .num_lists = made->count,
                                               .seed = lists->seed,
                                               .level = lists->level,
                                               .num_threads = omp_get_max_threads(),
                                               .finder = lists->finder,
                                               .progress = lists->progress,
                                               .is_kept = 1,
                                               .journal = lists->journal};
    BSW_TRY(bsw_allocate(&made->centroids, made->count,
                         bsw_vectors_dims(lists->vectors) * sizeof(float), "centroids", err));
    return bsw_lists_train(&training, lists->transport, made->centroids, err);
}

// ---- the list of every row ----

static uint32_t *lists_of(const struct bsw_encode_lists *lists)
{
    return (uint32_t *)(void *)lists->rows.data;
}

// This rank's part of the rows, to their places.
static enum bsw_status assign_part(struct bsw_encode_lists *lists, uint64_t first, uint64_t last,
                                   struct bsw_error *err)
{
    const struct bsw_manifest *manifest = lists->manifest;
    bsw_list_assigner *assigner;
    struct bsw_list_assigner_needs needs = bsw_list_assigner_needs_of(
        manifest, bsw_vectors_type(lists->vectors), bsw_vectors_dims(lists->vectors), lists->level);
    bsw_list_assigner_take_finder(&needs, lists->finder, last - first);
    BSW_TRY(bsw_list_assigner_open(&needs, &assigner, err));
    enum bsw_status status =
        bsw_lists_assign(lists->vectors, manifest->first_row + first, last - first, assigner,
                         lists->progress, lists_of(lists) + first, err);
    bsw_list_assigner_close(&assigner);
    return status;
}

// What is wrong with a row that has no list.
static enum bsw_status fail_row(const struct bsw_encode_lists *lists, uint64_t row,
                                struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(lists->vectors);
    unsigned char *numbers = NULL;
    float *floats = NULL, factor;
    double norm;
    enum bsw_row_fault fault = BSW_ROW_GOOD;
    enum bsw_status status =
        bsw_allocate(&numbers, bsw_vectors_row_bytes(lists->vectors), 1, "row", err);
    if (status == BSW_OK) status = bsw_allocate(&floats, dims, sizeof(float), "row", err);
    if (status == BSW_OK) status = bsw_vectors_read(lists->vectors, row, 1, numbers, err);
    if (status == BSW_OK) {
        bsw_prepare_rows(bsw_encode_table_get(lists->level), lists->manifest->metric,
                         bsw_vectors_type(lists->vectors), numbers, 1, dims, floats, &norm, &factor,
                         &fault);
        status = bsw_fail_bad_row(lists->vectors, row, fault, err);
    }
    bsw_free(&numbers);
    bsw_free(&floats);
    return status;
}

static enum bsw_status check_part(const struct bsw_encode_lists *lists, uint64_t first,
                                  uint64_t last, struct bsw_error *err)
{
    for (uint64_t r = first; r < last && !lists->drop_bad_rows; r++) {
        if (lists_of(lists)[r] == BSW_NO_LIST)
            return fail_row(lists, lists->manifest->first_row + r, err);
    }
    return BSW_OK;
}

static enum bsw_status take_part(void *context, int rank, const struct bsw_buffer *sent,
                                 struct bsw_error *err)
{
    struct bsw_encode_lists *lists = context;
    uint64_t num_rows = lists->manifest->num_rows, ranks = (uint64_t)lists->transport->num_ranks,
             first = bsw_part_first(num_rows, (uint64_t)rank, ranks),
             last = bsw_part_first(num_rows, (uint64_t)rank + 1, ranks);
    if (sent->bytes != (last - first) * sizeof(uint32_t))
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent the lists of %zu rows", rank,
                        sent->bytes / sizeof(uint32_t));
    memcpy(lists_of(lists) + first, sent->data, sent->bytes);
    return BSW_OK;
}

// The lists of all rows to all ranks, and what may be wrong with them.
static enum bsw_status share_rows(struct bsw_encode_lists *lists, uint64_t first, uint64_t last,
                                  struct bsw_error *err)
{
    struct bsw_transport *transport = lists->transport;
    const struct bsw_message message = {.kind = BSW_MESSAGE_LIST_ROWS, .name = "lists of rows"};
    if (transport->num_ranks == 1) return BSW_OK;
    enum bsw_status status =
        bsw_collect(transport, &message, lists_of(lists) + first,
                    (size_t)(last - first) * sizeof(uint32_t), take_part, lists, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_transport_broadcast(transport, &message, &lists->rows, err));
    if (lists->rows.bytes == lists->manifest->num_rows * sizeof(uint32_t)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent the lists of %zu rows",
                    lists->rows.bytes / sizeof(uint32_t));
}

static uint64_t shard_offset(const struct bsw_encode_lists *lists, uint32_t shard)
{
    return lists->manifest->shards[shard].first_row - lists->manifest->first_row;
}

static enum bsw_status count_places(struct bsw_encode_lists *lists, struct bsw_error *err)
{
    struct bsw_manifest *manifest = lists->manifest;
    for (uint32_t s = 0; s < manifest->num_shards; s++) {
        struct bsw_shard_entry *entry = &manifest->shards[s];
        BSW_TRY(bsw_list_order_count(lists_of(lists) + shard_offset(lists, s), entry->num_rows,
                                     manifest->lists.count, &entry->num_places, err));
    }
    return bsw_allocate_zero(&lists->orders, manifest->num_shards, sizeof *lists->orders, "lists",
                             err);
}

static enum bsw_status count_rows(struct bsw_encode_lists *lists, struct bsw_error *err)
{
    uint32_t *rows;
    BSW_TRY(bsw_allocate_zero(&rows, lists->manifest->lists.count, sizeof *rows, "lists", err));
    for (uint64_t r = 0; r < lists->manifest->num_rows; r++) {
        if (lists_of(lists)[r] != BSW_NO_LIST) rows[lists_of(lists)[r]]++;
    }
    bsw_list_sizes_of(lists->manifest, rows, &lists->sizes);
    bsw_free(&rows);
    return BSW_OK;
}

enum bsw_status bsw_encode_lists_assign(struct bsw_encode_lists *lists, struct bsw_error *err)
{
    struct bsw_transport *transport = lists->transport;
    uint64_t num_rows = lists->manifest->num_rows;
    uint64_t first = bsw_part_first(num_rows, (uint64_t)transport->rank,
                                    (uint64_t)transport->num_ranks),
             last = bsw_part_first(num_rows, (uint64_t)transport->rank + 1,
                                   (uint64_t)transport->num_ranks);
    enum bsw_status status =
        bsw_buffer_reserve(&lists->rows, (size_t)num_rows * sizeof(uint32_t), err);
    lists->rows.bytes = (size_t)num_rows * sizeof(uint32_t);
    if (status == BSW_OK) status = assign_part(lists, first, last, err);
    if (status == BSW_OK) status = check_part(lists, first, last, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = share_rows(lists, first, last, err);
    if (status == BSW_OK) status = count_places(lists, err);
    if (status == BSW_OK) status = count_rows(lists, err);
    return bsw_transport_agree(transport, status, err);
}

const struct bsw_list_order *bsw_encode_lists_order(struct bsw_encode_lists *lists, uint32_t shard,
                                                    struct bsw_error *err)
{
    struct bsw_list_order *order = &lists->orders[shard];
    const struct bsw_shard_entry *entry = &lists->manifest->shards[shard];
    if (!order->rows &&
        bsw_list_order_make(lists_of(lists) + shard_offset(lists, shard), entry->num_rows,
                            lists->manifest->lists.count, entry->num_places, order, err) != BSW_OK)
        return NULL;
    return order;
}

void bsw_encode_lists_deinit(struct bsw_encode_lists *lists)
{
    for (uint32_t s = 0; lists->orders && s < lists->manifest->num_shards; s++)
        bsw_list_order_deinit(&lists->orders[s]);
    bsw_free(&lists->orders);
    bsw_buffer_deinit(&lists->rows);
}
