// SPDX-License-Identifier: Apache-2.0
#include "shard/checks/answer_finder.h"

#include <omp.h>
#include <string.h>

#include "common/codes/metric.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "shard/host/answer_check.h"
#include "shard/host/plain_score.h"

// ---- lists ----

static uint32_t merge(uint64_t *list, uint32_t count, const uint64_t *more, uint32_t num_more)
{
    uint64_t before[BSW_KNOWN_ROWS];
    uint32_t out = 0;
    memcpy(before, list, count * sizeof *list);
    for (uint32_t i = 0, j = 0; out < BSW_KNOWN_ROWS && (i < count || j < num_more);) {
        int is_first = j >= num_more || (i < count && before[i] >= more[j]);
        j += is_first && j < num_more && before[i] == more[j];
        list[out++] = is_first ? before[i++] : more[j++];
    }
    return out;
}

void bsw_answer_lists_merge(struct bsw_answer_lists *lists, const struct bsw_answer_lists *more)
{
    for (uint32_t q = 0; q < BSW_KNOWN_QUERIES; q++)
        lists->counts[q] = merge(lists->best[q], lists->counts[q], more->best[q], more->counts[q]);
}

// ---- finding ----

enum bsw_status bsw_answer_finder_init(struct bsw_answer_finder *finder,
                                       const struct bsw_manifest *manifest,
                                       enum bsw_cpu_level level, struct bsw_error *err)
{
    *finder = (struct bsw_answer_finder){.manifest = manifest};
    bsw_scan_workspace_init(&finder->workspace, level, 1);
    return bsw_pinned_queries_make(manifest, bsw_pinned_query_bits(manifest), BSW_KNOWN_QUERIES,
                                   &finder->queries, err);
}

void bsw_answer_finder_deinit(struct bsw_answer_finder *finder)
{
    if (!finder->manifest) return;
    bsw_pinned_queries_deinit(&finder->queries);
    bsw_scan_workspace_deinit(&finder->workspace);
    bsw_candidate_lists_deinit(&finder->found);
}

static enum bsw_status check_score(const struct bsw_answer_finder *finder,
                                   const struct bsw_resident_shard *block, uint64_t first_row,
                                   size_t query, uint64_t candidate, struct bsw_error *err)
{
    uint32_t row = bsw_candidate_row(candidate), found = bsw_candidate_score(candidate);
    uint32_t expected = bsw_plain_score(block, &finder->queries.batch, query, row);
    if (found == expected) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                    "cpu: level %s gives row %llu the key %08x for pinned query %zu, the reference "
                    "%08x",
                    finder->workspace.plane_scan->level, (unsigned long long)(first_row + row),
                    found, query, expected);
}

// The same of product codes: one table of the reference for all rows of a query.
static enum bsw_status check_sums(const struct bsw_answer_finder *finder,
                                  const struct bsw_resident_shard *block, uint64_t first_row,
                                  size_t query, const uint64_t *list, size_t count,
                                  struct bsw_error *err)
{
    uint32_t rows[BSW_KNOWN_ROWS], expected[BSW_KNOWN_ROWS];
    for (size_t i = 0; i < count; i++) rows[i] = bsw_candidate_row(list[i]);
    BSW_TRY(bsw_plain_table_scores(block, &finder->queries.batch, query, NULL, rows, count,
                                   expected, err));
    for (size_t i = 0; i < count; i++) {
        if (bsw_candidate_score(list[i]) == expected[i]) continue;
        return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                        "cpu: level %s gives row %llu the key %08x for pinned query %zu, the "
                        "reference %08x",
                        finder->workspace.table_scan->level,
                        (unsigned long long)(first_row + rows[i]), bsw_candidate_score(list[i]),
                        query, expected[i]);
    }
    return BSW_OK;
}

enum bsw_status bsw_answer_finder_run(struct bsw_answer_finder *finder,
                                      const struct bsw_shard_shape *shape, uint32_t block,
                                      const void *bytes, struct bsw_answer_lists *out,
                                      struct bsw_error *err)
{
    size_t num_bundles = bsw_shard_block_bundles(shape, block);
    uint64_t first = (uint64_t)block * shape->block_bundles * BSW_BUNDLE_ROWS;
    uint64_t rows = num_bundles * BSW_BUNDLE_ROWS, left = shape->num_places - first;
    struct bsw_resident_shard small = {.shape = *shape, .num_bundles = num_bundles};
    small.shape.num_rows = small.shape.num_places = left < rows ? left : rows;
    // Nothing is written through these pointers.
    bsw_code_arrays_in_block(shape, (void *)(uintptr_t)bytes, num_bundles, &small.arrays);
    *out = (struct bsw_answer_lists){0};
    BSW_TRY(bsw_shard_scan(&small, &finder->queries.batch, 0, finder->queries.num_queries, NULL,
                           BSW_KNOWN_ROWS, &finder->workspace, &finder->found, err));
    for (uint32_t q = 0; q < finder->queries.num_queries; q++) {
        size_t count;
        const uint64_t *list = bsw_candidate_list(&finder->found, q, &count);
        out->counts[q] = (uint32_t)count;
        if (shape->has_tables)
            BSW_TRY(check_sums(finder, &small, shape->first_row + first, q, list, count, err));
        for (size_t i = 0; i < count; i++) {
            if (!shape->has_tables)
                BSW_TRY(check_score(finder, &small, shape->first_row + first, q, list[i], err));
            out->best[q][i] = bsw_candidate_pack(bsw_candidate_score(list[i]),
                                                 (uint32_t)first + bsw_candidate_row(list[i]));
        }
    }
    return BSW_OK;
}

// ---- comparing ----

enum bsw_status bsw_answer_lists_check(const struct bsw_answer_lists *lists,
                                       const struct bsw_manifest *manifest, uint32_t shard,
                                       struct bsw_error *err)
{
    for (uint32_t q = 0; q < manifest->num_known; q++)
        BSW_TRY(bsw_known_answer_check(manifest, shard, q, lists->best[q], lists->counts[q],
                                       BSW_KNOWN_ROWS, 0, err));
    return BSW_OK;
}

// ---- answers of all shards ----

// What a rank sends of a shard.
struct shard_lists {
    uint32_t shard, padding;
    struct bsw_answer_lists lists;
};

enum bsw_status bsw_shard_answers_open(struct bsw_shard_answers *answers,
                                       const struct bsw_manifest *manifest,
                                       enum bsw_cpu_level level, struct bsw_error *err)
{
    *answers = (struct bsw_shard_answers){
        .manifest = manifest, .level = level, .num_threads = omp_get_max_threads()};
    BSW_TRY(bsw_allocate_zero(&answers->finders, (size_t)answers->num_threads,
                              sizeof *answers->finders, "known answers", err));
    return bsw_allocate_zero(&answers->lists, manifest->num_shards, sizeof *answers->lists,
                             "known answers", err);
}

void bsw_shard_answers_close(struct bsw_shard_answers *answers)
{
    for (int t = 0; answers->finders && t < answers->num_threads; t++)
        bsw_answer_finder_deinit(&answers->finders[t]);
    bsw_free(&answers->finders);
    bsw_free(&answers->lists);
}

// One that is made in part is none: the thread may go on with another block.
static enum bsw_status make_finder(const struct bsw_shard_answers *answers,
                                   struct bsw_answer_finder *finder, struct bsw_error *err)
{
    enum bsw_status status = bsw_answer_finder_init(finder, answers->manifest, answers->level, err);
    if (status == BSW_OK) return BSW_OK;
    bsw_answer_finder_deinit(finder);
    *finder = (struct bsw_answer_finder){0};
    return status;
}

enum bsw_status bsw_shard_answers_add(struct bsw_shard_answers *answers, uint32_t shard,
                                      const struct bsw_shard_shape *shape, uint32_t block,
                                      const void *bytes, struct bsw_error *err)
{
    struct bsw_answer_finder *finder = &answers->finders[omp_get_thread_num()];
    struct bsw_answer_lists found;
    if (!finder->manifest) BSW_TRY(make_finder(answers, finder, err));
    BSW_TRY(bsw_answer_finder_run(finder, shape, block, bytes, &found, err));
#pragma omp critical(bsw_shard_answers)
    bsw_answer_lists_merge(&answers->lists[shard], &found);
    return BSW_OK;
}

// ---- all ranks ----

static enum bsw_status pack_lists(const struct bsw_shard_answers *answers, struct bsw_buffer *out,
                                  struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    for (uint32_t i = 0; i < answers->manifest->num_shards && status == BSW_OK; i++) {
        const struct shard_lists sent = {.shard = i, .lists = answers->lists[i]};
        uint32_t rows = 0;
        for (uint32_t q = 0; q < BSW_KNOWN_QUERIES; q++) rows += sent.lists.counts[q];
        if (rows > 0) status = bsw_buffer_append(out, &sent, sizeof sent, err);
    }
    return status;
}

static enum bsw_status take_lists(void *context, int rank, const struct bsw_buffer *buffer,
                                  struct bsw_error *err)
{
    struct bsw_shard_answers *answers = context;
    struct shard_lists sent;
    int is_good = buffer->bytes % sizeof sent == 0;
    for (size_t at = 0; is_good && at < buffer->bytes; at += sizeof sent) {
        memcpy(&sent, buffer->data + at, sizeof sent);
        is_good = sent.shard < answers->manifest->num_shards;
        for (uint32_t q = 0; q < BSW_KNOWN_QUERIES; q++)
            is_good &= sent.lists.counts[q] <= BSW_KNOWN_ROWS;
        if (is_good) bsw_answer_lists_merge(&answers->lists[sent.shard], &sent.lists);
    }
    if (is_good) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes of known answers", rank,
                    buffer->bytes);
}

enum bsw_status bsw_shard_answers_gather(struct bsw_shard_answers *answers,
                                         struct bsw_transport *transport, struct bsw_error *err)
{
    struct bsw_message message = {.kind = BSW_MESSAGE_ANSWERS, .name = "known answers"};
    struct bsw_buffer buffer = {0};
    enum bsw_status status = transport->rank == 0 ? BSW_OK : pack_lists(answers, &buffer, err);
    status = bsw_transport_agree(transport, status, err); // every rank has what it sends
    if (status == BSW_OK)
        status =
            bsw_collect(transport, &message, buffer.data, buffer.bytes, take_lists, answers, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

enum bsw_status bsw_shard_answers_store(const struct bsw_shard_answers *answers,
                                        struct bsw_manifest *manifest, struct bsw_error *err)
{
    uint32_t num_queries = bsw_pinned_num(manifest, bsw_pinned_query_bits(manifest));
    BSW_TRY(bsw_manifest_reserve_known(manifest, num_queries, err));
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_known_answers known = bsw_manifest_known(manifest, i);
        uint64_t *to = manifest->known + manifest->shards[i].first_known;
        for (uint32_t q = 0; q < num_queries; q++, to += known.num_rows) {
            if (answers->lists[i].counts[q] != known.num_rows) {
                return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                                "shard %u: pinned query %u has %u rows, not %u", i, q,
                                answers->lists[i].counts[q], known.num_rows);
            }
            memcpy(to, answers->lists[i].best[q], known.num_rows * sizeof *to);
        }
    }
    return BSW_OK;
}
