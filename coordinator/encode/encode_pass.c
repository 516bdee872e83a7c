// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/encode_pass.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/process.h"
#include "common/job/stop_signal.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "shard/codecs/shard_encode.h"

// Blocks of all shards together.
static uint64_t num_blocks(const struct bsw_encode_pass *pass)
{
    return pass->first_blocks[pass->manifest->num_shards];
}

static enum bsw_status plan_blocks(struct bsw_encode_pass *pass, struct bsw_error *err)
{
    uint32_t num_shards = pass->manifest->num_shards;
    BSW_TRY(bsw_allocate(&pass->writers, num_shards, sizeof *pass->writers, "shards", err));
    BSW_TRY(bsw_allocate(&pass->first_blocks, num_shards + 1, sizeof *pass->first_blocks, "shards",
                         err));
    pass->first_blocks[0] = 0;
    for (uint32_t i = 0; i < num_shards; i++) {
        bsw_shard_writer_init(&pass->writers[i], pass->manifest, pass->settings->index, i);
        pass->first_blocks[i + 1] = pass->first_blocks[i] + pass->writers[i].shape.num_blocks;
    }
    uint64_t num_records = num_blocks(pass);
    BSW_TRY(bsw_allocate(&pass->records, num_records, sizeof *pass->records, "block digests", err));
    for (uint64_t b = 0; b < num_records; b++) pass->records[b].block = UINT64_MAX; // not there
    return BSW_OK;
}

static uint32_t shard_of_block(const struct bsw_encode_pass *pass, uint64_t block)
{
    uint32_t low = 0, high = pass->manifest->num_shards - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (pass->first_blocks[middle] <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// The order of a shard that blocks are to be coded of, before threads ask for it.
static enum bsw_status make_order(const struct bsw_encode_pass *pass, uint32_t shard,
                                  struct bsw_error *err)
{
    if (!pass->lists || bsw_encode_lists_order(pass->lists, shard, err)) return BSW_OK;
    return BSW_ERROR_OUT_OF_MEMORY;
}

// The temporary files that blocks lie in, which are in order.
static enum bsw_status open_outputs(struct bsw_encode_pass *pass, const uint64_t *blocks,
                                    uint64_t num_blocks, struct bsw_error *err)
{
    uint32_t last = UINT32_MAX;
    uint64_t num_shards = 0;
    for (uint64_t i = 0; i < num_blocks; i++) {
        uint32_t shard = shard_of_block(pass, blocks[i]);
        num_shards += shard != last && pass->writers[shard].codes_fd < 0;
        last = shard;
    }
    BSW_TRY(bsw_file_limit_raise(num_shards * (pass->manifest->source_is_copied ? 2 : 1), err));
    for (uint64_t i = 0; i < num_blocks; i++) {
        uint32_t shard = shard_of_block(pass, blocks[i]);
        if (pass->writers[shard].codes_fd >= 0) continue;
        BSW_TRY(bsw_shard_writer_open(&pass->writers[shard], err));
        BSW_TRY(make_order(pass, shard, err));
    }
    return BSW_OK;
}

// ---- whose blocks are whose ----

// One that stays as it is has its part of the known answers, too.
static enum bsw_status check_one(struct bsw_encode_pass *pass,
                                 const struct bsw_encode_block *recorded, int *is_good,
                                 struct bsw_error *err)
{
    uint32_t shard = shard_of_block(pass, recorded->block);
    uint32_t block = (uint32_t)(recorded->block - pass->first_blocks[shard]);
    const struct bsw_shard_writer *writer = &pass->writers[shard];
    const struct bsw_list_order *order = NULL;
    struct bsw_buffer codes = {0};
    if (pass->lists) order = bsw_encode_lists_order(pass->lists, shard, err); // which is made
    enum bsw_status status =
        bsw_encode_block_check(writer, block, recorded, order, &codes, is_good, err);
    if (status == BSW_OK && *is_good)
        status =
            bsw_shard_answers_add(&pass->answers, shard, &writer->shape, block, codes.data, err);
    bsw_buffer_deinit(&codes);
    return status;
}

// Checks this rank's share of the recorded blocks; those that are not as recorded are to be coded.
static enum bsw_status check_recorded(struct bsw_encode_pass *pass,
                                      const struct bsw_encode_block *blocks, size_t count,
                                      struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < count; i++) {
        struct bsw_error error;
        int is_good;
        enum bsw_status status = check_one(pass, &blocks[i], &is_good, &error);
        if (status != BSW_OK) bsw_first_failure_note(&failure, i, status, &error);
#pragma omp critical(bsw_encode_recorded)
        if (status == BSW_OK && is_good)
            pass->records[blocks[i].block] = blocks[i];
        else
            pass->todo[pass->num_todo++] = blocks[i].block;
    }
    return bsw_first_failure_report(&failure, err);
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t number = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return number < other ? -1 : number > other;
}

// Takes this rank's share of the blocks without a record, in order.
static void take_unrecorded(struct bsw_encode_pass *pass, const struct bsw_encode_block *blocks,
                            size_t count)
{
    uint64_t rank = (uint64_t)pass->transport->rank, ranks = (uint64_t)pass->transport->num_ranks;
    uint64_t total = num_blocks(pass) - pass->num_recorded, seen = 0;
    uint64_t first = bsw_part_first(total, rank, ranks),
             last = bsw_part_first(total, rank + 1, ranks);
    size_t next = 0;
    for (uint64_t block = 0; block < num_blocks(pass); block++) {
        while (next < count && blocks[next].block < block) next++;
        if (next < count && blocks[next].block == block) continue;
        if (seen >= first && seen < last) pass->todo[pass->num_todo++] = block;
        seen++;
    }
}

// The ranks share what is recorded, to check it, and what is not, to code it.
static enum bsw_status share_blocks(struct bsw_encode_pass *pass, struct bsw_error *err)
{
    const struct bsw_encode_block *blocks =
        (const struct bsw_encode_block *)(const void *)pass->journal->recorded.data;
    size_t count = pass->journal->recorded.bytes / sizeof *blocks;
    uint64_t total = num_blocks(pass);
    uint64_t rank = (uint64_t)pass->transport->rank, ranks = (uint64_t)pass->transport->num_ranks;
    size_t first = (size_t)bsw_part_first(count, rank, ranks),
           last = (size_t)bsw_part_first(count, rank + 1, ranks);
    if (count > 0 && blocks[count - 1].block >= total)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: a journal has a block %llu of %llu",
                        pass->settings->index, (unsigned long long)blocks[count - 1].block,
                        (unsigned long long)total);
    for (size_t i = 0; i < count; i++)
        pass->num_recorded += i == 0 || blocks[i].block != blocks[i - 1].block;
    size_t most = last - first + (size_t)(total - pass->num_recorded);
    BSW_TRY(bsw_allocate(&pass->todo, most, sizeof *pass->todo, "blocks", err));
    for (size_t i = first; i < last; i++) pass->todo[i - first] = blocks[i].block; // for now
    BSW_TRY(open_outputs(pass, pass->todo, last - first, err));
    BSW_TRY(check_recorded(pass, blocks + first, last - first, err));
    take_unrecorded(pass, blocks, count);
    if (pass->num_todo > 0)
        qsort(pass->todo, (size_t)pass->num_todo, sizeof *pass->todo, compare_numbers);
    BSW_TRY(open_outputs(pass, pass->todo, pass->num_todo, err));
    bsw_events_count(pass->settings->events, pass->num_recorded, total);
    return BSW_OK;
}

// ---- coding ----

// Runs before a commit of the journal. A file that is closed was synced before.
static enum bsw_status sync_files(void *context, struct bsw_error *err)
{
    const struct bsw_encode_pass *pass = context;
    for (uint32_t i = 0; i < pass->manifest->num_shards; i++)
        BSW_TRY(bsw_shard_writer_sync(&pass->writers[i], err));
    return BSW_OK;
}

// Syncs, which may take long, then closes: a stop commits before or after that.
static enum bsw_status sync_outputs(struct bsw_encode_pass *pass, struct bsw_error *err)
{
    enum bsw_status status = sync_files(pass, err);
    bsw_stop_hold();
    for (uint32_t i = 0; i < pass->manifest->num_shards; i++) {
        enum bsw_status closed =
            bsw_shard_writer_close(&pass->writers[i], status == BSW_OK ? err : NULL);
        if (status == BSW_OK) status = closed;
    }
    bsw_stop_release();
    return status;
}

// i: of the blocks to code.
static void find_block(void *context, uint64_t i, struct bsw_encode_place *out)
{
    const struct bsw_encode_pass *pass = context;
    uint64_t block = pass->todo[i];
    uint32_t shard = shard_of_block(pass, block);
    *out = (struct bsw_encode_place){.writer = &pass->writers[shard],
                                     .block = (uint32_t)(block - pass->first_blocks[shard])};
    if (pass->lists) out->order = bsw_encode_lists_order(pass->lists, shard, NULL); // it is made
}

// From any thread.
static enum bsw_status put_block(void *context, uint64_t i, const struct bsw_block_result *result,
                                 struct bsw_error *err)
{
    struct bsw_encode_pass *pass = context;
    struct bsw_encode_place place;
    uint64_t block = pass->todo[i];
    find_block(pass, i, &place);
    uint32_t shard = shard_of_block(pass, block);
    BSW_TRY(bsw_shard_answers_add(&pass->answers, shard, &place.writer->shape, place.block,
                                  result->bytes, err));
    BSW_TRY(bsw_shard_writer_put_block(place.writer, place.block, result->bytes, err));
    pass->records[block] = (struct bsw_encode_block){block, result->digest, result->source_digest,
                                                     result->dropped_rows};
#pragma omp critical(bsw_encode_progress)
    {
        pass->num_coded++;
        bsw_events_count(pass->settings->events, pass->num_recorded + pass->num_coded,
                         num_blocks(pass));
        if (omp_get_thread_num() == 0)
            bsw_progress_update(pass->settings->progress, pass->num_coded);
    }
    return bsw_encode_journal_put(pass->journal, &pass->records[block], err);
}

static enum bsw_status encode_one(struct bsw_encode_pass *pass, bsw_block_encoder *encoder,
                                  uint64_t i, struct bsw_error *err)
{
    struct bsw_encode_place place;
    struct bsw_block_result result;
    find_block(pass, i, &place);
    BSW_TRY(bsw_block_encode(encoder, &place.writer->shape, place.block, place.order,
                             pass->settings->drop_bad_rows, place.writer, &result, err));
    return put_block(pass, i, &result, err);
}

// Encodes this rank's blocks with all threads. The fault of the lowest block is the one reported,
// whatever the order threads met them in.
static enum bsw_status encode_blocks(struct bsw_encode_pass *pass, struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    uint64_t failed_block = UINT64_MAX;
#pragma omp parallel
    {
        bsw_block_encoder *encoder = NULL;
        struct bsw_error thread_error;
        enum bsw_status thread_status = bsw_block_encoder_create(
            pass->manifest, pass->vectors, pass->settings->level, &encoder, &thread_error);
#pragma omp for schedule(dynamic)
        for (uint64_t block = 0; block < pass->num_todo; block++) {
            uint64_t limit;
#pragma omp atomic read
            limit = failed_block;
            if (block > limit) continue;
            if (encoder) thread_status = encode_one(pass, encoder, block, &thread_error);
            if (thread_status == BSW_OK) continue;
#pragma omp critical(bsw_encode_failure)
            if (block < failed_block) {
#pragma omp atomic write
                failed_block = block;
                status = thread_status;
                if (err) *err = thread_error;
            }
        }
        bsw_block_encoder_destroy(&encoder);
    }
    return status;
}

static enum bsw_status encode_all(struct bsw_encode_pass *pass, struct bsw_error *err)
{
    const struct bsw_device_encode_options options = {.manifest = pass->manifest,
                                                      .vectors = pass->vectors,
                                                      .drop_bad_rows =
                                                          pass->settings->drop_bad_rows,
                                                      .first = 0,
                                                      .last = pass->num_todo,
                                                      .context = pass,
                                                      .find = find_block,
                                                      .put = put_block};
    bsw_progress_begin(pass->settings->progress, "encode", "blocks", pass->num_todo);
    enum bsw_status status = pass->device ? bsw_device_encode_run(pass->device, &options, err)
                                          : encode_blocks(pass, err);
    bsw_progress_finish(pass->settings->progress);
    return status;
}

enum bsw_status bsw_encode_pass_run(struct bsw_encode_pass *pass, struct bsw_error *err)
{
    BSW_TRY(plan_blocks(pass, err));
    BSW_TRY(bsw_shard_answers_open(&pass->answers, pass->manifest, pass->settings->level, err));
    enum bsw_status status = bsw_encode_journal_share(pass->journal, pass->transport,
                                                      pass->settings->index, sync_files, pass, err);
    if (status == BSW_OK) status = share_blocks(pass, err);
    if (status == BSW_OK) status = encode_all(pass, err);
    enum bsw_status synced = sync_outputs(pass, status == BSW_OK ? err : NULL);
    return status == BSW_OK ? synced : status;
}

// ---- the end ----

static enum bsw_status pack_records(const struct bsw_encode_pass *pass, struct bsw_buffer *out,
                                    struct bsw_error *err)
{
    for (uint64_t b = 0; b < num_blocks(pass); b++) {
        if (pass->records[b].block == b)
            BSW_TRY(bsw_buffer_append(out, &pass->records[b], sizeof *pass->records, err));
    }
    return BSW_OK;
}

static enum bsw_status take_records(void *context, int rank, const struct bsw_buffer *sent,
                                    struct bsw_error *err)
{
    struct bsw_encode_pass *pass = context;
    uint64_t total = num_blocks(pass);
    for (size_t at = 0; at < sent->bytes; at += sizeof *pass->records) {
        struct bsw_encode_block record;
        if (sent->bytes - at < sizeof record)
            return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes of digests", rank,
                            sent->bytes);
        memcpy(&record, sent->data + at, sizeof record);
        if (record.block >= total)
            return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent a block %llu of %llu", rank,
                            (unsigned long long)record.block, (unsigned long long)total);
        pass->records[record.block] = record;
    }
    return BSW_OK;
}

static enum bsw_status check_records(const struct bsw_encode_pass *pass, struct bsw_error *err)
{
    for (uint64_t b = 0; b < num_blocks(pass); b++) {
        if (pass->records[b].block != b)
            return bsw_fail(err, BSW_ERROR_PEER, "no rank has block %llu", (unsigned long long)b);
    }
    return BSW_OK;
}

enum bsw_status bsw_encode_pass_gather(struct bsw_encode_pass *pass, struct bsw_error *err)
{
    struct bsw_transport *transport = pass->transport;
    const struct bsw_message message = {.kind = BSW_MESSAGE_BLOCKS};
    struct bsw_buffer own = {0};
    enum bsw_status status = transport->rank == 0 ? BSW_OK : pack_records(pass, &own, err);
    status = bsw_transport_agree(transport, status, err); // every rank has what it sends
    if (status == BSW_OK) {
        status = bsw_collect(transport, &message, own.data, own.bytes, take_records, pass, err);
        if (status == BSW_OK && transport->rank == 0) status = check_records(pass, err);
        status = bsw_transport_agree(transport, status, err);
    }
    bsw_buffer_deinit(&own);
    BSW_TRY(status);
    return bsw_shard_answers_gather(&pass->answers, transport, err);
}

void bsw_encode_pass_deinit(struct bsw_encode_pass *pass)
{
    bsw_shard_answers_close(&pass->answers);
    bsw_free(&pass->writers);
    bsw_free(&pass->first_blocks);
    bsw_free(&pass->records);
    bsw_free(&pass->todo);
}

// ---- what all passes need ----

enum bsw_status bsw_manifest_share(struct bsw_transport *transport,
                                   const struct bsw_message *message, struct bsw_manifest *manifest,
                                   struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    enum bsw_status status = BSW_OK;
    if (transport->rank == 0) status = bsw_manifest_pack(manifest, &buffer, err);
    if (status == BSW_OK) status = bsw_transport_broadcast(transport, message, &buffer, err);
    if (status == BSW_OK && transport->rank != 0) {
        status =
            bsw_manifest_parse("manifest from rank 0", buffer.data, buffer.bytes, manifest, err);
    }
    bsw_buffer_deinit(&buffer);
    return status;
}
