// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/rbe_pair_source.h"

#include <omp.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/job/progress.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "shard/exact/neighbour_scan.h"

// Takes the first rows of the list as the choices of a place, but not the place itself.
static void take_list(const struct bsw_rbe_pair_source *source, const struct bsw_exact_best *list,
                      uint64_t place)
{
    uint64_t *choices = source->choices + place * source->num_choices;
    size_t count = 0;
    for (size_t i = 0; i < list->count && count < source->num_choices; i++) {
        if (list->rows[i] != place) choices[count++] = list->rows[i];
    }
}

// The choices of places [first, last).
static enum bsw_status search_part(const struct bsw_rbe_pair_source *source, uint64_t first,
                                   uint64_t last, int is_shown, struct bsw_error *err)
{
    const bsw_vectors *vectors = source->files[0];
    const struct bsw_neighbour_needs needs = {
        .metric = source->options.metric,
        .level = source->options.level,
        .base = vectors,
        .queries = vectors,
        .num_rows = source->num_pairs,
        .row_ids = source->rows,
        .query_ids = source->rows + first,
        .num_queries = last - first,
        .keep = source->num_choices + 1,
        .block_rows = bsw_neighbour_block_rows(bsw_vectors_row_bytes(vectors), source->num_pairs),
        .num_threads = omp_get_max_threads()};
    bsw_neighbour_scan scan;
    struct bsw_progress progress;
    if (first == last) return BSW_OK;
    BSW_TRY(bsw_neighbour_scan_open(&needs, &scan, err));
    bsw_progress_init(&progress, "neighbours", "rows", needs.num_rows, is_shown);
    enum bsw_status status = BSW_OK;
    while (status == BSW_OK && scan.next_row < needs.num_rows) {
        status = bsw_neighbour_scan_next(&scan, err);
        bsw_progress_update(&progress, scan.next_row);
    }
    bsw_progress_finish(&progress);
    if (status == BSW_OK) {
        bsw_neighbour_scan_finish(&scan, 0, scan.num_queries);
        for (size_t q = 0; q < scan.num_queries; q++) take_list(source, &scan.lists[q], first + q);
    }
    bsw_neighbour_scan_close(&scan);
    return status;
}

struct neighbour_parts {
    const struct bsw_rbe_pair_source *source;
    uint64_t num_ranks;
};

// The choices of a rank, and how many bytes they have.
static unsigned char *part_of(const struct neighbour_parts *parts, int rank, size_t *bytes)
{
    const struct bsw_rbe_pair_source *source = parts->source;
    uint64_t first = bsw_part_first(source->num_pairs, (uint64_t)rank, parts->num_ranks),
             last = bsw_part_first(source->num_pairs, (uint64_t)rank + 1, parts->num_ranks);
    *bytes = (last - first) * source->num_choices * sizeof *source->choices;
    return (unsigned char *)(source->choices + first * source->num_choices);
}

static enum bsw_status take_part(void *context, int rank, const struct bsw_buffer *payload,
                                 struct bsw_error *err)
{
    size_t bytes;
    unsigned char *part = part_of(context, rank, &bytes);
    if (payload->bytes != bytes)
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent a part that does not fit", rank);
    memcpy(part, payload->data, bytes);
    return BSW_OK;
}

// Every rank's part to rank 0, the whole to all.
static enum bsw_status exchange(const struct bsw_rbe_pair_source *source,
                                struct bsw_transport *transport, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_NEIGHBOUR_PART, .name = "neighbours"},
                             all = {.kind = BSW_MESSAGE_NEIGHBOUR_ALL, .name = "neighbours"};
    struct neighbour_parts parts = {source, (uint64_t)transport->num_ranks};
    size_t bytes;
    const unsigned char *own = part_of(&parts, transport->rank, &bytes);
    BSW_TRY(bsw_collect(transport, &message, own, bytes, take_part, &parts, err));
    bytes = source->num_pairs * source->num_choices * sizeof *source->choices;
    return bsw_share_record(transport, &all, source->choices, bytes, err);
}

enum bsw_status bsw_rbe_find_neighbours(const struct bsw_rbe_pair_source *source,
                                        struct bsw_transport *transport, struct bsw_error *err)
{
    uint64_t rank = (uint64_t)transport->rank, ranks = (uint64_t)transport->num_ranks;
    uint64_t first = bsw_part_first(source->num_pairs, rank, ranks),
             last = bsw_part_first(source->num_pairs, rank + 1, ranks);
    enum bsw_status status =
        search_part(source, first, last, source->options.is_shown && rank == 0, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    return bsw_transport_agree(transport, exchange(source, transport, err), err);
}
