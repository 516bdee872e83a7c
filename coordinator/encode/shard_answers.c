// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/shard_answers.h"

#include <omp.h>
#include <string.h>

#include "common/net/collect.h"
#include "common/net/message_kinds.h"

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
