// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/encode_index.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/process.h"
#include "common/files/row_ids.h"
#include "common/job/stop_signal.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/encode/encode_device.h"
#include "coordinator/encode/encode_pass.h"
#include "coordinator/encode/encode_text.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/encode_journal.h"
#include "coordinator/job/index_folder.h"
#include "coordinator/job/option_table.h"
#include "coordinator/job/same_input.h"
#include "shard/codecs/codec.h"

_Static_assert(BSW_JOURNAL_MAX_PAYLOAD >= BSW_MAX_CENTROID_BYTES + (256u << 20),
               "a plan holds a manifest");

struct encode_job {
    struct bsw_encode_settings settings; // complete
    struct bsw_transport *transport;
    bsw_vectors *vectors;
    struct bsw_manifest manifest;
    struct bsw_index_folder folder;
    struct bsw_codec_model model; // of a codec that has one
    struct bsw_encode_text text;
    struct bsw_buffer ids; // rank 0: bytes of their file
    struct bsw_encode_lists lists;
    struct bsw_encode_pass pass;
    struct bsw_encode_journal journal;
    struct bsw_encode_device device;
    uint64_t input_digest; // rank 0
    int has_model_lists;
    uint32_t is_found; // the index was whole, but for its table
    double lists_seconds, train_seconds, encode_seconds;
};

// ---- settings ----

// Sets the defaults, too.
static enum bsw_status complete(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_encode_settings *s = &job->settings;
    if (!s->base || !s->index)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s is needed", s->base ? "--index" : "--base");
    double bits = s->code.bits;
    if (bits != 0)
        BSW_TRY(bsw_setting_number("bits", bits, BSW_ENCODE_MIN_BITS, BSW_ENCODE_MAX_BITS, err));
    if (s->shards == 0) s->shards = 1;
    BSW_TRY(bsw_setting_count("shards", s->shards, 1, BSW_MAX_SHARDS, err));
    if (s->rows.first == 0 && s->rows.last == 0) s->rows = BSW_ALL_ROWS;
    if (!s->device.text) s->device.text = "auto";
    BSW_TRY(bsw_encode_text_settle(&job->text, s, err));
    return bsw_codec_check_settings(s->codec, &s->code, err);
}

// ---- what every rank knows before the pass ----

static enum bsw_status check_shards(const struct encode_job *job, struct bsw_error *err)
{
    uint64_t shards = job->settings.shards, num_rows = job->manifest.num_rows;
    if (shards > num_rows) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--shards %llu: %s has %llu rows only",
                        (unsigned long long)shards, job->settings.base,
                        (unsigned long long)num_rows);
    }
    if ((num_rows + shards - 1) / shards > UINT32_MAX) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--shards %llu: a shard holds at most 2^32 - 1 rows",
                        (unsigned long long)shards);
    }
    return BSW_OK;
}

int bsw_encode_chooses_residuals(const struct bsw_encode_settings *s,
                                 const struct bsw_manifest *manifest)
{
    const struct bsw_codec_table *table = s->codec->table;
    return manifest->lists.count > 0 && s->residuals == BSW_RESIDUALS_AUTO &&
           table->has_residuals && !table->always_residuals && !s->code.model && s->code.bits > 0 &&
           s->code.bits < BSW_RESIDUAL_BITS;
}

// How many lists there will be; their centroids too, where a model has them.
static enum bsw_status settle_lists(const struct encode_job *job, struct bsw_manifest *manifest,
                                    struct bsw_error *err)
{
    const struct bsw_encode_settings *s = &job->settings;
    uint32_t dims = bsw_vectors_dims(job->vectors);
    if (s->lists > 0 && s->code.model && !s->codec->table->has_model)
        BSW_TRY(bsw_encode_lists_adopt(s->code.model, s->lists, s->base, dims, manifest, err));
    if (manifest->lists.centroids) return BSW_OK;
    return bsw_encode_settle_lists(s->lists, s->base, manifest->num_rows, dims,
                                   &manifest->lists.count, err);
}

static enum bsw_status settle_residuals(const struct bsw_encode_settings *s,
                                        struct bsw_manifest_lists *lists, struct bsw_error *err)
{
    int can = s->codec->table->has_residuals;
    if (s->residuals == BSW_RESIDUALS_YES && lists->count == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--residual yes: only an index with --lists has them");
    if (s->residuals == BSW_RESIDUALS_YES && !can)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--residual yes: codec %s has no residuals, saq and pq have",
                        bsw_codec_name(s->codec));
    int is_auto = lists->is_residual || s->codec->table->always_residuals;
    lists->is_residual = lists->count > 0 && can && s->residuals != BSW_RESIDUALS_NO &&
                         (s->residuals == BSW_RESIDUALS_YES || is_auto);
    return BSW_OK;
}

// The metric, of a codec that knows it. Where there is one alone nobody has to say it.
static enum bsw_status choose_metric(const struct bsw_encode_settings *s,
                                     const bsw_vectors *vectors, enum bsw_metric *out,
                                     struct bsw_error *err)
{
    const char *given = s->metric ? s->metric : bsw_codec_only_metric(s->codec);
    BSW_TRY(bsw_metric_choose(given, vectors, NULL, out, err));
    return bsw_codec_check_metric(s->codec, *out, err);
}

static enum bsw_status open_input(struct encode_job *job, struct bsw_error *err)
{
    const struct bsw_encode_settings *s = &job->settings;
    struct bsw_manifest *manifest = &job->manifest;
    BSW_TRY(bsw_vectors_open(s->base, s->rows, &job->vectors, err));
    manifest->codec = s->codec;
    if (s->frame) bsw_vectors_number(job->vectors, s->first_id);
    if (s->frame) BSW_TRY(bsw_encode_take_frame(s->frame, job->vectors, manifest, err));
    BSW_TRY(choose_metric(s, job->vectors, &manifest->metric, err));
    manifest->first_row = bsw_vectors_first_row(job->vectors);
    manifest->num_rows = bsw_vectors_num_rows(job->vectors);
    manifest->source_type = bsw_vectors_type(job->vectors);
    manifest->source_rows = bsw_vectors_source_rows(job->vectors);
    manifest->source_file_bytes = bsw_vectors_file_bytes(job->vectors);
    manifest->source_shift = bsw_vectors_shift(job->vectors);
    manifest->source_is_copied = s->copy_vectors;
    BSW_TRY(check_shards(job, err));
    if (s->frame) return BSW_OK;
    BSW_TRY(settle_lists(job, manifest, err));
    job->has_model_lists = manifest->lists.centroids != NULL;
    BSW_TRY(settle_residuals(s, &manifest->lists, err));
    if (!s->codec->table->check_rows) return BSW_OK;
    return s->codec->table->check_rows(&s->code, s->base, manifest->source_type,
                                       bsw_vectors_dims(job->vectors), err);
}

// Each rank keeps the files of its part of the shards open. A limit that is too low is found before
// the training.
static enum bsw_status raise_limit(const struct encode_job *job, struct bsw_error *err)
{
    uint64_t shards = job->settings.shards / (uint64_t)job->transport->num_ranks;
    return bsw_file_limit_raise(job->settings.copy_vectors ? 2 * shards : shards, err);
}

static enum bsw_status make_fields(const struct encode_job *job, struct bsw_journal_fields *out,
                                   struct bsw_error *err)
{
    return bsw_encode_fields_make(&job->settings, &job->manifest, &job->model, job->input_digest,
                                  out, err);
}

static enum bsw_status train(struct encode_job *job, struct bsw_error *err)
{
    const struct bsw_encode_settings *s = &job->settings;
    const struct bsw_encode_training training = {
        .vectors = job->vectors,
        .code = &s->code,
        .model = &job->model,
        .level = s->level,
        .progress = s->progress,
        .checks_codes = s->checks_codes,
        .chooses_residuals = bsw_encode_chooses_residuals(s, &job->manifest)};
    if (s->frame)
        return s->checks_codes ? bsw_code_check_frame(&training, &job->manifest, err) : BSW_OK;
    return bsw_encode_train(&training, &job->manifest, err);
}

// Rank 0: the manifest without digests, of an earlier run or trained, on disk before a block is.
static enum bsw_status make_plan(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->manifest;
    const struct bsw_buffer *stored = &job->journal.manifest;
    if (job->journal.is_resumed) {
        bsw_manifest_deinit(manifest);
        return bsw_manifest_parse("the plan of an unfinished index", stored->data, stored->bytes,
                                  manifest, err);
    }
    // Not as a model may have it.
    manifest->lists.has_ordered_vectors = manifest->lists.count > 0 && manifest->source_is_copied;
    BSW_TRY(train(job, err));
    BSW_TRY(bsw_manifest_cut_shards(manifest, job->settings.shards, err));
    return bsw_encode_journal_plan(&job->journal, manifest, err);
}

// A model is a file, or an index, whose manifest is read.
static enum bsw_status check_files(const struct encode_job *job, struct bsw_error *err)
{
    const struct bsw_encode_settings *s = &job->settings;
    const char *model = job->text.path ? job->text.path : s->code.model;
    char manifest[BSW_PATH_BYTES] = "";
    if (model) BSW_TRY(bsw_path_join(manifest, model, "manifest.pb", err));
    const struct bsw_command_files files = {.inputs = {s->base, model, manifest},
                                            .outputs = {s->index},
                                            .folder = s->index,
                                            .is_made = bsw_index_folder_makes};
    return bsw_command_files_check(&files, err);
}

// What a table is of: these settings, and the index that it is to be in.
static void table_fields(const struct encode_job *job, uint64_t build_digest,
                         struct bsw_journal_fields *fields)
{
    bsw_journal_field_text(fields, "calibrate", job->settings.table_of);
    bsw_journal_field_digest(fields, "build", build_digest);
}

// Rank 0: whether there is an index of these settings that only lacks its table.
static enum bsw_status find_whole(struct encode_job *job, struct bsw_journal_fields *fields,
                                  struct bsw_error *err)
{
    const struct bsw_encode_settings *s = &job->settings;
    job->is_found = s->resume && s->table_of && bsw_encode_lacks_table(s->index);
    if (!job->is_found) return BSW_OK;
    struct bsw_manifest found;
    BSW_TRY(bsw_manifest_read(s->index, &found, err));
    table_fields(job, found.build_digest, fields);
    bsw_manifest_deinit(&found);
    return bsw_encode_table_check(s->index, fields, err);
}

// Rank 0: the file of ids, as they must be.
static enum bsw_status take_ids(struct encode_job *job, struct bsw_error *err)
{
    const struct bsw_encode_settings *s = &job->settings;
    if (!s->ids) return BSW_OK;
    if (s->num_ids != job->manifest.num_rows)
        return bsw_fail(err, BSW_ERROR_USAGE, "--ids: %llu ids for %llu rows",
                        (unsigned long long)s->num_ids, (unsigned long long)job->manifest.num_rows);
    BSW_TRY(bsw_integers_check_different("--ids", s->ids, s->num_ids, err));
    BSW_TRY(bsw_row_ids_pack(s->ids, s->num_ids, &job->ids, err));
    job->manifest.ids_digest = XXH3_64bits(job->ids.data, job->ids.bytes);
    job->folder.ids = &job->ids;
    return BSW_OK;
}

// Rank 0: output folder, what is left of an earlier run.
static enum bsw_status prepare(struct encode_job *job, struct bsw_error *err)
{
    const struct bsw_encode_settings *s = &job->settings;
    const struct bsw_manifest_lists *lists = &job->manifest.lists;
    struct bsw_journal_fields fields;
    BSW_TRY(check_files(job, err));
    BSW_TRY(bsw_index_folder_begin(&job->folder, s->index, err));
    // With the folder in hand. A run that began with force may be resumed without it.
    int is_forced = s->force || (s->resume && (bsw_encode_plan_exists(s->index) ||
                                               (s->table_of && bsw_encode_lacks_table(s->index))));
    if (!s->resume && !s->force) BSW_TRY(bsw_encode_refuse_loss(s->index, err));
    BSW_TRY(bsw_index_folder_check(&job->folder, is_forced, err));
    if (job->model.bytes.bytes > 0 && !s->frame) job->folder.model = &job->model.bytes;
    if (job->text.bytes.bytes > 0 && !s->frame) job->folder.model = &job->text.bytes;
    BSW_TRY(bsw_source_relative(s->base, s->index, job->manifest.source_path, err));
    BSW_TRY(take_ids(job, err));
    BSW_TRY(make_fields(job, &fields, err));
    BSW_TRY(find_whole(job, &fields, err));
    if (job->is_found) return bsw_events_output(s->events, s->index, "blocks", err);
    BSW_TRY(bsw_encode_journal_open(&job->journal, s->index, s->resume,
                                    lists->count > 0 && !lists->centroids, &fields, err));
    return bsw_events_output(s->events, s->index, "blocks", err);
}

// An index that was whole is what the command goes on with. All ranks; all return alike.
static enum bsw_status take_whole(struct encode_job *job, struct bsw_error *err)
{
    const struct bsw_encode_settings *s = &job->settings;
    const struct bsw_message message = {.kind = BSW_MESSAGE_LIST_PLAN, .name = "plan"};
    if (!s->resume || !s->table_of) return BSW_OK;
    enum bsw_status status =
        bsw_share_record(job->transport, &message, &job->is_found, sizeof job->is_found, err);
    BSW_TRY(bsw_transport_agree(job->transport, status, err));
    if (!job->is_found) return BSW_OK;
    bsw_manifest_deinit(&job->manifest);
    status = bsw_manifest_read(s->index, &job->manifest, err);
    if (status == BSW_OK)
        status = bsw_list_sizes_read(&job->manifest, s->index, &job->lists.sizes, err);
    return bsw_transport_agree(job->transport, status, err);
}

// Centroids, unless a model or a plan has them. All ranks; all return alike.
static enum bsw_status train_lists(struct encode_job *job, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_LIST_PLAN, .name = "plan"};
    struct bsw_transport *transport = job->transport;
    int is_planned = job->journal.is_resumed;
    double started = bsw_clock_seconds();
    job->lists =
        (struct bsw_encode_lists){.transport = transport,
                                  .vectors = job->vectors,
                                  .manifest = &job->manifest,
                                  .level = job->settings.level,
                                  .seed = job->settings.code.seed,
                                  .drop_bad_rows = job->settings.drop_bad_rows,
                                  .finder = job->device.finder.find ? &job->device.finder : NULL,
                                  .progress = job->settings.progress,
                                  .journal = job->journal.lists};
    if (job->manifest.lists.count == 0 || job->manifest.lists.centroids) return BSW_OK;
    enum bsw_status status =
        bsw_share_record(transport, &message, &is_planned, sizeof is_planned, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    if (is_planned) return BSW_OK;
    bsw_encode_journal_begin_lists(&job->journal);
    status = bsw_encode_lists_train(&job->lists, err);
    bsw_encode_journal_end_lists();
    job->lists_seconds = bsw_clock_seconds() - started;
    return bsw_transport_agree(transport, status, err);
}

// The rows' lists, which decide the size of files. All ranks; all return alike.
static enum bsw_status assign_lists(struct encode_job *job, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    if (job->manifest.lists.count == 0) return BSW_OK;
    BSW_TRY(bsw_encode_lists_assign(&job->lists, err));
    job->pass.lists = &job->lists;
    job->lists_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}

// Rank 0: the manifest, trained and kept as the plan.
static enum bsw_status plan(struct encode_job *job, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    BSW_TRY(make_plan(job, err));
    bsw_temporary_forget(job->settings.index);
    job->train_seconds = bsw_clock_seconds() - started;
    return BSW_OK;
}

// ---- the end, on rank 0 ----

static void add_up(struct encode_job *job)
{
    struct bsw_manifest *manifest = &job->manifest;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        struct bsw_shard_entry *entry = &manifest->shards[i];
        for (uint64_t block = job->pass.first_blocks[i]; block < job->pass.first_blocks[i + 1];
             block++) {
            entry->dropped_rows += job->pass.records[block].dropped_rows;
            manifest->source_digest += job->pass.records[block].source_digest;
        }
        manifest->dropped_rows += entry->dropped_rows;
        const struct bsw_shard_writer *writer = &job->pass.writers[i];
        entry->codes_bytes = bsw_shard_codes_bytes(&writer->shape);
        if (manifest->source_is_copied)
            entry->vectors_bytes = bsw_shard_vectors_bytes(&writer->shape, writer->row_bytes);
    }
}

static enum bsw_status seal_shard(struct encode_job *job, uint32_t shard, uint64_t *digests,
                                  struct bsw_error *err)
{
    struct bsw_shard_writer *writer = &job->pass.writers[shard];
    struct bsw_shard_entry *entry = &job->manifest.shards[shard];
    if (job->manifest.lists.count > 0) {
        const struct bsw_list_order *order = bsw_encode_lists_order(&job->lists, shard, err);
        if (!order) return BSW_ERROR_OUT_OF_MEMORY;
        BSW_TRY(bsw_shard_writer_put_lists(writer, order, &entry->lists_digest, err));
    }
    for (uint32_t b = 0; b < writer->shape.num_blocks; b++)
        digests[b] = job->pass.records[job->pass.first_blocks[shard] + b].digest;
    return bsw_shard_writer_seal(writer, digests, &entry->codes_digest, err);
}

static enum bsw_status seal_shards(struct encode_job *job, struct bsw_error *err)
{
    uint32_t most_blocks = 0;
    for (uint32_t i = 0; i < job->manifest.num_shards; i++) {
        uint32_t num_blocks = job->pass.writers[i].shape.num_blocks;
        if (num_blocks > most_blocks) most_blocks = num_blocks;
    }
    uint64_t *digests;
    BSW_TRY(bsw_allocate(&digests, most_blocks, sizeof *digests, "block digests", err));
    enum bsw_status status = BSW_OK;
    for (uint32_t i = 0; i < job->manifest.num_shards && status == BSW_OK; i++)
        status = seal_shard(job, i, digests, err);
    bsw_free(&digests);
    return status;
}

// Where a table is to follow.
static enum bsw_status note_table(const struct encode_job *job, struct bsw_error *err)
{
    const struct bsw_encode_settings *s = &job->settings;
    struct bsw_journal_fields fields;
    if (!s->table_of) return bsw_encode_table_forget(s->index, err);
    BSW_TRY(make_fields(job, &fields, err));
    table_fields(job, job->manifest.build_digest, &fields);
    return bsw_encode_table_note(s->index, &fields, err);
}

static enum bsw_status finish(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->manifest;
    add_up(job);
    if (manifest->dropped_rows == manifest->num_rows) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: every row was dropped", job->settings.base);
    }
    BSW_TRY(bsw_manifest_build_digest(manifest, &manifest->build_digest, err));
    BSW_TRY(bsw_shard_answers_store(&job->pass.answers, manifest, err));
    BSW_TRY(seal_shards(job, err));
    bsw_stop_hold();
    enum bsw_status status = note_table(job, err);
    if (status == BSW_OK) status = bsw_index_folder_commit(&job->folder, manifest, err);
    if (status != BSW_OK) bsw_encode_table_forget(job->settings.index, NULL); // of no index
    // Before the plan goes: a run that is killed in between must not look unfinished.
    if (status == BSW_OK) status = bsw_events_complete(job->settings.events, err);
    if (status == BSW_OK) status = bsw_encode_journal_remove(&job->journal, err);
    if (status == BSW_OK) bsw_index_folder_release(&job->folder);
    bsw_stop_release();
    return status;
}

// But for the manifest's known answers and what its codec keeps there.
static uint64_t index_bytes(const struct encode_job *job)
{
    const struct bsw_manifest *manifest = &job->manifest;
    uint64_t bytes = job->lists.sizes.file_bytes + job->lists.sizes.centroids_bytes;
    for (uint32_t i = 0; i < manifest->num_shards; i++)
        bytes += manifest->shards[i].codes_bytes + manifest->shards[i].vectors_bytes;
    return bytes;
}

static void describe(const struct encode_job *job, struct bsw_encode_stats *out)
{
    const struct bsw_manifest *manifest = &job->manifest;
    *out = (struct bsw_encode_stats){
        .num_rows = manifest->num_rows,
        .num_dropped_rows = manifest->dropped_rows,
        .dims = bsw_manifest_row_dims(manifest),
        .code_dims = manifest->layout.dims,
        .num_shards = manifest->num_shards,
        .lists = job->lists.sizes,
        .is_residual = manifest->lists.is_residual,
        .residual_recall = manifest->lists.residual_recall,
        .plain_recall = manifest->lists.plain_recall,
        .has_model_lists = job->has_model_lists,
        .codec = manifest->codec,
        .metric = manifest->metric,
        .bits = manifest->bits,
        .bits_asked = job->settings.code.bits,
        .has_fewer_bits = job->settings.code.may_have_fewer_bits &&
                          job->settings.code.bits - manifest->bits >= 1e-9,
        .bytes_per_vector = bsw_manifest_row_bytes(manifest),
        .codec_number = manifest->codec_number,
        .index_bytes = index_bytes(job),
        .input_bytes = manifest->num_rows * bsw_vectors_row_bytes(job->vectors),
        .lists_seconds = job->lists_seconds,
        .train_seconds = job->train_seconds,
        .encode_seconds = job->encode_seconds,
        .check = manifest->check,
        .is_found = job->is_found != 0};
    bsw_codec_format_segments(manifest, out->segments, sizeof out->segments);
    snprintf(out->device, sizeof out->device, "%s",
             job->device.chosen.device ? bsw_device_label(job->device.chosen.device) : "cpu");
    memcpy(out->device_note, job->device.chosen.note, sizeof out->device_note);
}

// ---- the whole ----

static enum bsw_status create_files(struct encode_job *job, struct bsw_error *err)
{
    return bsw_index_folder_create_files(&job->folder, &job->manifest, job->journal.is_resumed,
                                         err);
}

// Rank 0's manifest to all, which have the centroids already where they trained them.
static enum bsw_status share_manifest(struct encode_job *job, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_MANIFEST};
    if (job->transport->rank != 0) bsw_manifest_deinit(&job->manifest);
    BSW_TRY(bsw_manifest_share(job->transport, &message, &job->manifest, err));
    bsw_codec_model_lend(&job->model, &job->manifest);
    return BSW_OK;
}

// Everything before files are written: all ranks then have the manifest and the rows' lists.
static enum bsw_status lay_out(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    const struct bsw_encode_settings *s = &job->settings;
    enum bsw_status status = bsw_encode_text_open(&job->text, s, transport->rank, err);
    if (status == BSW_OK) status = open_input(job, err);
    if (status == BSW_OK) status = raise_limit(job, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status =
        bsw_encode_device_open(s, bsw_vectors_num_rows(job->vectors), transport, &job->device, err);
    if (status == BSW_OK) status = bsw_same_input_digest(job->vectors, &job->input_digest, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_same_input_agree(transport, job->input_digest, s->base, err));
    BSW_TRY(bsw_codec_model_open(s->codec, s->code.model, bsw_vectors_dims(job->vectors), s->level,
                                 transport, &job->model, err));
    status = transport->rank == 0 ? prepare(job, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(take_whole(job, err));
    if (job->is_found) return BSW_OK;
    BSW_TRY(train_lists(job, err));
    status = transport->rank == 0 ? plan(job, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = share_manifest(job, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    return assign_lists(job, err);
}

// Each line ends with an agreement, so that no rank runs ahead of a fault of another.
static enum bsw_status encode(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    const struct bsw_encode_settings *s = &job->settings;
    BSW_TRY(lay_out(job, err));
    if (job->is_found) return BSW_OK;
    enum bsw_status status = transport->rank == 0 ? create_files(job, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    double started = bsw_clock_seconds();
    job->pass = (struct bsw_encode_pass){.transport = transport,
                                         .settings = s,
                                         .manifest = &job->manifest,
                                         .vectors = job->vectors,
                                         .lists = job->pass.lists,
                                         .device = job->device.coder,
                                         .journal = &job->journal};
    BSW_TRY(bsw_transport_agree(transport, bsw_encode_pass_run(&job->pass, err), err));
    status = bsw_encode_pass_gather(&job->pass, err);
    job->encode_seconds = bsw_clock_seconds() - started;
    if (status == BSW_OK && transport->rank == 0) status = finish(job, err);
    return bsw_transport_agree(transport, status, err);
}

static void deinit(struct encode_job *job)
{
    bsw_encode_device_close(&job->device);
    bsw_vectors_close(&job->vectors);
    bsw_encode_text_close(&job->text);
    bsw_encode_lists_deinit(&job->lists);
    bsw_manifest_deinit(&job->manifest);
    bsw_codec_model_close(&job->model);
    bsw_encode_pass_deinit(&job->pass);
    bsw_buffer_deinit(&job->ids);
}

enum bsw_status bsw_encode_run(const struct bsw_encode_settings *settings,
                               struct bsw_transport *transport, struct bsw_encode_stats *stats,
                               struct bsw_error *err)
{
    struct encode_job job = {.settings = *settings, .transport = transport};
    job.journal.has_more = settings->table_of != NULL;
    BSW_TRY(bsw_transport_agree(transport, complete(&job, err), err));
    enum bsw_status status = encode(&job, err);
    int is_kept = bsw_encode_journal_close(&job.journal, status);
    if (is_kept && status == BSW_ERROR_IO)
        bsw_prefix(err, status, "the index is unfinished, --resume goes on with it: ");
    if (transport->rank == 0 && status != BSW_OK && !is_kept) {
        bsw_index_folder_abandon(&job.folder, &job.manifest);
        bsw_events_output(settings->events, NULL, "", NULL);
    }
    bsw_index_folder_release(&job.folder);
    if (status == BSW_OK) describe(&job, stats);
    deinit(&job);
    return status;
}
