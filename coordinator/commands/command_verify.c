// SPDX-License-Identifier: Apache-2.0
// verify: every checksum of an index: manifest, every block of every shard, and every raw row it
// refers to; and that its known answers are what its codes give. Ranks share the shards.
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/files/shard_file.h"
#include "common/job/progress.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/job/command.h"
#include "coordinator/job/same_input.h"
#include "shard/checks/answer_finder.h"
#include "shard/codecs/codec.h"
#include "shard/host/raw_rows.h"

struct verify_options {
    struct bsw_common_options common;
    const char *index;
    int no_source;
};

struct verify_totals {
    uint64_t source_digest, blocks, rows, dropped_rows;
};

#define OPTION(name, member, ...) BSW_OPTION(struct verify_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("index", index, .value_name = "FOLDER", .is_required = 1, .may_stand_alone = 1,
           .help = "index; the name may stand alone"),
    OPTION("no-source", no_source, .help = "codes only, not the raw rows"),
    BSW_OPTION_GROUP(struct verify_options, common, bsw_common_option_group),
};

static void add_to(struct verify_totals *totals, const struct verify_totals *more)
{
    totals->source_digest += more->source_digest;
    totals->blocks += more->blocks;
    totals->rows += more->rows;
    totals->dropped_rows += more->dropped_rows;
}

// A shard on its way.
struct verified_shard {
    uint32_t index;
    struct bsw_shard_file file;
    const struct bsw_raw_rows *raw;    // NULL: not asked for
    struct bsw_shard_answers *answers; // NULL: the index has none
};

// Row digests of a block's bundles, and those of the raw rows if they are open.
static enum bsw_status verify_block(const struct verified_shard *shard, uint32_t block,
                                    struct bsw_buffer *buffer, void *scratch,
                                    struct verify_totals *totals, struct bsw_error *err)
{
    const struct bsw_shard_shape *shape = &shard->file.shape;
    const struct bsw_raw_rows *raw = shard->raw;
    struct bsw_code_arrays arrays;
    size_t num_bundles = bsw_shard_block_bundles(shape, block),
           first = (size_t)block * shape->block_bundles;
    BSW_TRY(bsw_buffer_reserve(buffer, bsw_shard_block_bytes(shape, block), err));
    BSW_TRY(bsw_shard_file_read_block(&shard->file, block, buffer->data, err));
    bsw_code_arrays_in_block(shape, buffer->data, num_bundles, &arrays);
    for (size_t b = 0; b < num_bundles; b++) {
        uint64_t row = (uint64_t)(first + b) * BSW_BUNDLE_ROWS;
        uint64_t left = row < shape->num_rows ? shape->num_rows - row : 0;
        uint64_t rows = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
        totals->source_digest += arrays.row_digests[b];
        totals->dropped_rows += rows - (uint64_t)__builtin_popcount(arrays.masks[b]);
        totals->rows += rows;
        if (raw && (rows > 0 || raw->places))
            BSW_TRY(bsw_raw_rows_verify(raw, first + b, arrays.row_digests[b], scratch, err));
    }
    totals->blocks++;
    if (!shard->answers) return BSW_OK;
    return bsw_shard_answers_add(shard->answers, shard->index, shape, block, buffer->data, err);
}

static enum bsw_status verify_blocks(const struct verified_shard *shard,
                                     struct verify_totals *totals, struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
#pragma omp parallel
    {
        struct bsw_buffer buffer = {0};
        struct bsw_error thread_error;
        struct verify_totals own = {0};
        void *scratch = NULL;
        enum bsw_status allocated =
            bsw_allocate(&scratch, shard->raw ? shard->raw->row_bytes : 1, 1, "row", &thread_error);
#pragma omp for schedule(static)
        for (uint32_t block = 0; block < shard->file.shape.num_blocks; block++) {
            enum bsw_status result = allocated;
            if (result == BSW_OK)
                result = verify_block(shard, block, &buffer, scratch, &own, &thread_error);
            if (result != BSW_OK) bsw_first_failure_note(&failure, block, result, &thread_error);
        }
#pragma omp critical(bsw_verify)
        add_to(totals, &own);
        bsw_free(&scratch);
        bsw_buffer_deinit(&buffer);
    }
    return bsw_first_failure_report(&failure, err);
}

static enum bsw_status verify_files(const struct verify_options *o,
                                    const struct bsw_manifest *manifest,
                                    struct bsw_shard_answers *answers, uint32_t shard,
                                    const struct bsw_list_order *order,
                                    struct verify_totals *totals, struct bsw_error *err)
{
    struct verified_shard verified = {.index = shard, .answers = answers};
    struct bsw_shard_file *file = &verified.file;
    struct bsw_raw_rows raw;
    uint64_t dropped_before = totals->dropped_rows;
    BSW_TRY(bsw_shard_file_open(manifest, o->index, shard, file, err));
    enum bsw_status status =
        o->no_source ? BSW_OK : bsw_raw_rows_open(manifest, o->index, shard, order, &raw, err);
    if (status == BSW_OK) {
        verified.raw = o->no_source ? NULL : &raw;
        status = verify_blocks(&verified, totals, err);
        if (!o->no_source) bsw_raw_rows_close(&raw);
    }
    if (status == BSW_OK &&
        totals->dropped_rows - dropped_before !=
            manifest->shards[shard].dropped_rows + manifest->shards[shard].deleted_rows) {
        status =
            bsw_fail(err, BSW_ERROR_BAD_DATA,
                     "%s: masks do not fit the manifest's dropped and deleted rows", file->path);
    }
    if (status == BSW_OK && answers) {
        status = bsw_answer_lists_check(&answers->lists[shard], manifest, shard, err);
        if (status != BSW_OK) bsw_prefix(err, status, "self-check: ");
    }
    bsw_shard_file_close(file);
    return status;
}

// With its order, {0} without lists.
static enum bsw_status verify_shard(const struct verify_options *o,
                                    const struct bsw_manifest *manifest,
                                    struct bsw_shard_answers *answers, uint32_t shard,
                                    struct verify_totals *totals, struct bsw_error *err)
{
    struct bsw_list_order order;
    BSW_TRY(bsw_list_order_read(manifest, o->index, shard, &order, err));
    enum bsw_status status = verify_files(o, manifest, answers, shard, &order, totals, err);
    bsw_list_order_deinit(&order);
    return status;
}

static enum bsw_status verify_own(const struct verify_options *o,
                                  const struct bsw_manifest *manifest,
                                  const struct bsw_transport *transport,
                                  struct verify_totals *totals, struct bsw_error *err)
{
    struct bsw_shard_answers answers = {0};
    uint32_t ranks = (uint32_t)transport->num_ranks, rank = (uint32_t)transport->rank;
    struct bsw_progress progress;
    bsw_progress_init(&progress, "verify", "shards", manifest->num_shards,
                      rank == 0 && !o->common.quiet);
    enum bsw_status status = manifest->num_known > 0
                                 ? bsw_shard_answers_open(&answers, manifest, o->common.level, err)
                                 : BSW_OK;
    for (uint32_t shard = rank; shard < manifest->num_shards && status == BSW_OK; shard += ranks) {
        status = verify_shard(o, manifest, answers.manifest ? &answers : NULL, shard, totals, err);
        bsw_progress_update(&progress, shard);
    }
    bsw_progress_finish(&progress);
    bsw_shard_answers_close(&answers);
    return status;
}

static enum bsw_status add_totals(void *context, int rank, const struct bsw_buffer *payload,
                                  struct bsw_error *err)
{
    struct verify_totals *totals = context, other;
    if (payload->bytes != sizeof other)
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes of digests", rank,
                        payload->bytes);
    memcpy(&other, payload->data, sizeof other);
    add_to(totals, &other);
    return BSW_OK;
}

static enum bsw_status add_up(struct bsw_transport *transport, struct verify_totals *totals,
                              struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_DIGESTS, .name = "digests"};
    return bsw_collect(transport, &message, totals, sizeof *totals, add_totals, totals, err);
}

static void report(const struct verify_options *o, const struct bsw_manifest *manifest,
                   const struct verify_totals *totals, double seconds)
{
    struct bsw_facts facts;
    bsw_facts_begin(&facts, bsw_common_facts_form(&o->common), NULL);
    bsw_fact_text(&facts, "index", o->index, "%s: good: ");
    bsw_fact_integer(&facts, "shards", manifest->num_shards, "%d shards, ");
    bsw_fact_integer(&facts, "blocks", totals->blocks, "%d blocks, ");
    bsw_fact_integer(&facts, "rows", totals->rows, "%d rows");
    bsw_fact_flag(&facts, "source_checked", !o->no_source, " and their raw vectors");
    if (o->no_source) bsw_facts_say(&facts, " (raw rows not checked)");
    bsw_fact_integer(&facts, "known_answers", manifest->num_known,
                     ", %d known answers in each shard");
    bsw_fact_real(&facts, "seconds", seconds, ", %.2f s\n");
    bsw_facts_end(&facts, BSW_OK);
}

static enum bsw_status verify_model(const struct verify_options *o, struct bsw_manifest *manifest,
                                    struct bsw_error *err)
{
    struct bsw_codec_model model;
    enum bsw_status status =
        bsw_codec_index_model_open(o->index, manifest, o->common.level, &model, err);
    bsw_codec_model_close(&model);
    return status;
}

static enum bsw_status verify(struct verify_options *o, struct bsw_transport *transport,
                              struct bsw_manifest *manifest, struct bsw_error *err)
{
    struct verify_totals totals = {0};
    double started = bsw_clock_seconds();
    enum bsw_status status = bsw_manifest_read(o->index, manifest, err);
    if (status == BSW_OK && !bsw_manifest_has_rows(manifest)) o->no_source = 1;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_same_input_agree(transport, manifest->build_digest, o->index, err));
    status = transport->rank == 0 ? verify_model(o, manifest, err) : BSW_OK;
    if (status == BSW_OK) status = verify_own(o, manifest, transport, &totals, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = add_up(transport, &totals, err);
    if (status == BSW_OK && transport->rank == 0 &&
        totals.source_digest != manifest->source_digest) {
        status = bsw_fail(err, BSW_ERROR_BAD_DATA,
                          "%s: digests of the rows do not add up to the manifest's", o->index);
    }
    BSW_TRY(bsw_transport_agree(transport, status, err));
    if (transport->rank == 0) report(o, manifest, &totals, bsw_clock_seconds() - started);
    return BSW_OK;
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct bsw_manifest manifest = {0};
    enum bsw_status status = verify(options, transport, &manifest, err);
    bsw_manifest_deinit(&manifest);
    return status;
}

const struct bsw_command bsw_command_verify =
    BSW_COMMAND("verify", "check every checksum and known answer of an index",
                struct verify_options, BSW_ALL_RANKS);
