// encode: sample and training on rank 0, then one streaming pass in which every rank encodes its
// share of the blocks of all shards into files beside their final names; rank 0 seals them and
// writes the manifest last.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/file_limit.h"
#include "common/process_memory.h"
#include "common/run_status.h"
#include "common/shard_file.h"
#include "common/stop_signal.h"
#include "common/temporary_files.h"
#include "coordinator/code_training.h"
#include "coordinator/command.h"
#include "coordinator/command_files.h"
#include "coordinator/device_choice.h"
#include "coordinator/encode_journal.h"
#include "coordinator/encode_pass.h"
#include "coordinator/index_folder.h"
#include "coordinator/metric_choice.h"
#include "coordinator/rbe_encoding.h"
#include "coordinator/same_input.h"
#include "coordinator/sample.h"
#include "coordinator/stage_choice.h"

enum { MESSAGE_MANIFEST = 1 }; // 2: encode_pass.c, 3: encode_journal.c

struct encode_options {
    struct bsw_common_options common;
    const char *base, *index, *codec, *segments, *axes, *scale, *metric, *model, *stage, *device;
    double bits;
    uint64_t shards, seed, device_memory;
    struct bsw_row_range rows;
    int copy_vectors, drop_bad_rows, force, resume;
};

struct encode_job {
    struct encode_options options;
    struct bsw_transport *transport;
    bsw_vectors *vectors;
    struct bsw_manifest manifest;
    struct bsw_index_folder folder;
    struct bsw_rbe_encoding learned;
    struct bsw_encode_pass pass;
    struct bsw_encode_journal journal;
    bsw_device *device; // of this rank, or NULL
    double train_seconds, encode_seconds;
};

// ---- options ----

static enum bsw_status parse(struct encode_job *job, int argc, char **argv, int *done,
                             struct bsw_error *err)
{
    struct encode_options *o = &job->options;
    const struct bsw_option options[] = {
        {"base", BSW_OPTION_TEXT, &o->base, "FILE", NULL, 1, 0, 0, NULL,
         "vectors, or synth:count=N,dims=D,..."},
        {"index", BSW_OPTION_TEXT, &o->index, "FOLDER", NULL, 1, 0, 0, NULL, "index to make"},
        {"codec", BSW_OPTION_CHOICE, &o->codec, NULL, "saq", 0, 0, 0, "xfbq|saq|rbe|raw",
         "plain, adaptive or learned codes, or uint8 and int8 rows as they are"},
        {"bits", BSW_OPTION_NUMBER, &o->bits, "B", NULL, 0, 1, 8, NULL,
         "bits a dimension, for saq also 2.25 and the like [3; raw: 8]"},
        {"metric", BSW_OPTION_CHOICE, &o->metric, NULL, NULL, 0, 0, 0, "cosine|ip|l2",
         BSW_METRIC_HELP "; xfbq and rbe know cosine alone"},
        {"segments", BSW_OPTION_TEXT, &o->segments, "auto|32x4,96x2", NULL, 0, 0, 0, NULL,
         "saq: dims x bits of each segment [auto]"},
        {"axes", BSW_OPTION_CHOICE, &o->axes, NULL, "principal", 0, 0, 0, "principal|random",
         "saq: axes of the frame"},
        {"scale", BSW_OPTION_TEXT, &o->scale, "auto|X", "auto", 0, 0, 0, NULL,
         "xfbq: scale before quantizing"},
        {"stage", BSW_OPTION_TEXT, &o->stage, "auto|DIMS", NULL, 0, 0, 0, NULL,
         "saq: dimensions a progressive scan looks at first; 0: none [auto]"},
        {"model", BSW_OPTION_TEXT, &o->model, "PATH", NULL, 0, 0, 0, NULL,
         "saq: take the frame of this index; rbe: the model, of bitsweep train"},
        {"shards", BSW_OPTION_COUNT, &o->shards, "P", "1", 0, 1, BSW_MAX_SHARDS, NULL,
         "shard files"},
        {"device", BSW_OPTION_TEXT, &o->device, "auto|cpu|cuda|cuda:N", "auto", 0, 0, 0, NULL,
         "where rows are coded; auto: GPUs for saq, if each rank has one; xfbq is not worth it"},
        {"device-memory", BSW_OPTION_COUNT, &o->device_memory, "BYTES", "0", 0, 0, 1e15, NULL,
         "device memory that a rank may use; 0: all there is"},
        {"rows", BSW_OPTION_ROWS, &o->rows, "A:B", NULL, 0, 0, 0, NULL,
         "only these rows; ids stay those of the file"},
        {"seed", BSW_OPTION_COUNT, &o->seed, "S", "1", 0, 0, 9e15, NULL,
         "saq: seed of the rotations"},
        {"copy-vectors", BSW_OPTION_FLAG, &o->copy_vectors, NULL, NULL, 0, 0, 0, NULL,
         "keep the raw rows in the index, not a reference to their file"},
        {"drop-bad-rows", BSW_OPTION_FLAG, &o->drop_bad_rows, NULL, NULL, 0, 0, 0, NULL,
         "count and skip rows with NaN, Inf or (cosine) zeros"},
        {"force", BSW_OPTION_FLAG, &o->force, NULL, NULL, 0, 0, 0, NULL,
         "replace an existing index, begin an unfinished one anew"},
        {"resume", BSW_OPTION_FLAG, &o->resume, NULL, NULL, 0, 0, 0, NULL,
         "go on with an unfinished index; without one begin"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"encode", "make an index of codes from a vector file",
                                           options, sizeof options / sizeof options[0]};
    return bsw_command_parse(job->transport, &table, &o->common, argc, argv, done, err);
}

// The model says all about its codes.
static enum bsw_status check_learned_options(const struct encode_job *job, struct bsw_error *err)
{
    const struct encode_options *o = &job->options;
    if (!o->model)
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec rbe needs --model, from bitsweep train");
    if (o->bits > 0 || o->segments || o->stage) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--%s: --codec rbe has what its model says",
                        o->bits > 0   ? "bits"
                        : o->segments ? "segments"
                                      : "stage");
    }
    return BSW_OK;
}

// What only makes sense together, before anything is opened.
static enum bsw_status check_options(struct encode_job *job, struct bsw_error *err)
{
    struct encode_options *o = &job->options;
    BSW_TRY(bsw_codec_parse(o->codec, &job->manifest.codec, err));
    if (job->manifest.codec == BSW_CODEC_RBE) return check_learned_options(job, err);
    int is_plain = job->manifest.codec == BSW_CODEC_XFBQ,
        is_raw = job->manifest.codec == BSW_CODEC_RAW;
    if (is_raw && o->bits > 0 && o->bits != 8) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec raw keeps all 8", o->bits);
    }
    if ((is_plain || is_raw) && (o->segments || o->model || o->stage)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--%s is for --codec saq",
                        o->segments ? "segments"
                        : o->model  ? "model"
                                    : "stage");
    }
    if (o->model && (o->bits > 0 || o->segments)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--model brings its own bits and segments");
    }
    if (o->segments && strcmp(o->segments, "auto") != 0 && o->bits > 0) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--segments names the bits; --bits goes with auto");
    }
    if (!o->segments) o->segments = "auto";
    if (o->bits == 0) o->bits = 3;
    if (is_plain && o->bits != floor(o->bits)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec xfbq takes whole bits", o->bits);
    }
    if (is_plain && strcmp(o->scale, "auto") != 0) {
        double scale;
        BSW_TRY(bsw_number_parse("--scale", o->scale, &scale, err));
        if (!(scale >= 1e-6 && scale <= 1e6)) {
            return bsw_fail(err, BSW_ERROR_USAGE, "--scale %s: 1e-6 to 1e6 is possible", o->scale);
        }
        job->manifest.xfbq_scale = (float)scale;
    }
    return BSW_OK;
}

// ---- what every rank knows before the pass ----

// The metric, of a codec that knows it. Where there is one alone nobody has to say it.
static enum bsw_status settle_metric(struct encode_job *job, struct bsw_error *err)
{
    enum bsw_codec codec = job->manifest.codec;
    const char *given = job->options.metric;
    int is_cosine_only = codec == BSW_CODEC_XFBQ || codec == BSW_CODEC_RBE;
    if (!given && is_cosine_only) given = bsw_metric_name(BSW_METRIC_COSINE);
    BSW_TRY(bsw_metric_choose(given, job->vectors, NULL, &job->manifest.metric, err));
    int is_cosine = job->manifest.metric == BSW_METRIC_COSINE;
    if (is_cosine_only && !is_cosine) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--codec %s knows --metric cosine only; saq has ip and l2",
                        bsw_codec_name(codec));
    }
    if (codec == BSW_CODEC_RAW && is_cosine) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--codec raw has no cosine: say --metric l2 or --metric ip");
    }
    return BSW_OK;
}

static enum bsw_status check_raw_input(const struct encode_job *job, struct bsw_error *err)
{
    enum bsw_vector_type type = bsw_vectors_type(job->vectors);
    uint32_t dims = bsw_vectors_dims(job->vectors);
    if (type != BSW_VECTOR_UINT8 && type != BSW_VECTOR_INT8) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec raw takes uint8 or int8 rows, %s has %s",
                        job->options.base, bsw_vector_type_name(type));
    }
    if (dims > BSW_RAW_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--codec raw takes up to %d dims, whose sums fit 32 bits, %s has %u",
                        BSW_RAW_MAX_DIMS, job->options.base, dims);
    }
    return BSW_OK;
}

static enum bsw_status open_input(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->manifest;
    BSW_TRY(bsw_vectors_open(job->options.base, job->options.rows, &job->vectors, err));
    BSW_TRY(settle_metric(job, err));
    manifest->first_row = bsw_vectors_first_row(job->vectors);
    manifest->num_rows = bsw_vectors_num_rows(job->vectors);
    manifest->source_type = bsw_vectors_type(job->vectors);
    manifest->source_rows = bsw_vectors_source_rows(job->vectors);
    manifest->source_file_bytes = bsw_vectors_file_bytes(job->vectors);
    manifest->source_is_copied = job->options.copy_vectors;
    if (bsw_vectors_is_packed(job->vectors) && !manifest->source_is_copied) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: rows in chunks, which refinement cannot take from there: "
                        "--copy-vectors keeps them in the index, convert writes them to a file",
                        job->options.base);
    }
    if (job->options.shards > manifest->num_rows) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--shards %llu: %s has %llu rows only",
                        (unsigned long long)job->options.shards, job->options.base,
                        (unsigned long long)manifest->num_rows);
    }
    if ((manifest->num_rows + job->options.shards - 1) / job->options.shards > UINT32_MAX) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--shards %llu: a shard holds at most 2^32 - 1 rows",
                        (unsigned long long)job->options.shards);
    }
    if (manifest->codec == BSW_CODEC_SAQ && bsw_vectors_dims(job->vectors) > BSW_SAQ_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec saq takes up to %d dims, %s has %u",
                        BSW_SAQ_MAX_DIMS, job->options.base, bsw_vectors_dims(job->vectors));
    }
    return manifest->codec == BSW_CODEC_RAW ? check_raw_input(job, err) : BSW_OK;
}

static enum bsw_status train_plain(struct encode_job *job, struct bsw_sample *sample,
                                   struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->manifest;
    bsw_code_layout_init(&manifest->layout);
    BSW_TRY(bsw_code_layout_append(&manifest->layout, bsw_vectors_dims(job->vectors),
                                   (uint32_t)job->options.bits, err));
    BSW_TRY(bsw_code_layout_check(&manifest->layout, 1, err));
    manifest->bits = job->options.bits;
    manifest->stage_dims = manifest->layout.dims;
    return manifest->xfbq_scale > 0 ? BSW_OK
                                    : bsw_train_xfbq_scale(sample, &manifest->xfbq_scale, err);
}

// Nothing to learn: 8 bits a dimension.
static enum bsw_status describe_raw(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->manifest;
    bsw_code_layout_init(&manifest->layout);
    manifest->bits = 8;
    manifest->stage_dims = bsw_vectors_dims(job->vectors);
    return bsw_code_layout_append(&manifest->layout, manifest->stage_dims, 8, err);
}

// The first stage as asked for; without a word a model keeps its own.
static enum bsw_status settle_stage(struct encode_job *job, struct bsw_sample *sample,
                                    struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->manifest;
    const char *text = job->options.stage;
    uint64_t dims;
    if (!text && job->options.model) return BSW_OK;
    if (!text || strcmp(text, "auto") == 0) return bsw_choose_stage(sample, manifest, err);
    BSW_TRY(bsw_count_parse("--stage", text, &dims, err));
    manifest->stage_dims =
        dims == 0 || dims > BSW_MAX_DIMS ? manifest->layout.dims : (uint32_t)dims;
    if (dims != 0 && bsw_manifest_stage(manifest) == 0) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--stage %s: a multiple of 32 below %u, at the end of whole words of codes",
                        text, manifest->layout.dims);
    }
    return BSW_OK;
}

static enum bsw_status train(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->manifest;
    struct bsw_sample sample;
    if (manifest->codec == BSW_CODEC_RAW) return describe_raw(job, err);
    if (manifest->codec == BSW_CODEC_RBE)
        return bsw_rbe_describe(job->learned.coders, manifest, err);
    BSW_TRY(
        bsw_sample_create(job->vectors, manifest->metric, job->options.common.level, &sample, err));
    enum bsw_status status;
    sample.is_shown = !job->options.common.quiet;
    if (manifest->codec == BSW_CODEC_XFBQ) {
        status = train_plain(job, &sample, err);
    } else if (job->options.model) {
        status = bsw_adopt_frame(job->options.model, bsw_vectors_dims(job->vectors), manifest, err);
    } else {
        const struct bsw_saq_training training = {job->options.bits, job->options.segments,
                                                  strcmp(job->options.axes, "random") == 0,
                                                  job->options.seed};
        status = bsw_train_saq_frame(&sample, &training, manifest, err);
    }
    if (status == BSW_OK && manifest->codec == BSW_CODEC_SAQ)
        status = settle_stage(job, &sample, err);
    if (status == BSW_OK && manifest->codec == BSW_CODEC_SAQ) {
        status = bsw_train_saq_exponents(&sample, manifest, err);
    }
    bsw_sample_deinit(&sample);
    return status;
}

// Of the model that --model names: its file, or the manifest of the index.
static enum bsw_status model_digest(const struct encode_job *job, uint64_t *out,
                                    struct bsw_error *err)
{
    const struct bsw_buffer *learned = &job->learned.bytes;
    struct bsw_manifest manifest;
    struct bsw_buffer bytes = {0};
    *out = 0;
    if (job->manifest.codec == BSW_CODEC_RBE) *out = XXH3_64bits(learned->data, learned->bytes);
    if (job->manifest.codec == BSW_CODEC_RBE || !job->options.model) return BSW_OK;
    BSW_TRY(bsw_manifest_read(job->options.model, &manifest, err));
    enum bsw_status status = bsw_manifest_pack(&manifest, &bytes, err);
    if (status == BSW_OK) *out = XXH3_64bits(bytes.data, bytes.bytes);
    bsw_buffer_deinit(&bytes);
    bsw_manifest_deinit(&manifest);
    return status;
}

// What the index is a function of: not ranks, threads or devices.
static enum bsw_status make_fields(const struct encode_job *job, uint64_t input_digest,
                                   struct bsw_journal_fields *out, struct bsw_error *err)
{
    const struct encode_options *o = &job->options;
    uint64_t model;
    BSW_TRY(model_digest(job, &model, err));
    *out = (struct bsw_journal_fields){0};
    bsw_journal_field_text(out, "bitsweep", BITSWEEP_VERSION);
    bsw_journal_field_text(out, "base", job->manifest.source_path);
    bsw_journal_field_digest(out, "rows of base", input_digest);
    bsw_journal_field_text(out, "codec", o->codec);
    bsw_journal_field_text(out, "metric", bsw_metric_name(job->manifest.metric));
    bsw_journal_field_number(out, "bits", o->bits);
    bsw_journal_field_text(out, "segments", o->segments ? o->segments : "none");
    bsw_journal_field_text(out, "axes", o->axes);
    bsw_journal_field_text(out, "scale", o->scale);
    bsw_journal_field_text(out, "stage", o->stage ? o->stage : "auto");
    bsw_journal_field_digest(out, "model", model);
    bsw_journal_field_count(out, "seed", o->seed);
    bsw_journal_field_count(out, "shards", o->shards);
    bsw_journal_field_text(out, "copy-vectors", o->copy_vectors ? "on" : "off");
    bsw_journal_field_text(out, "drop-bad-rows", o->drop_bad_rows ? "on" : "off");
    return BSW_OK;
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
    BSW_TRY(train(job, err));
    BSW_TRY(bsw_manifest_cut_shards(manifest, job->options.shards, err));
    return bsw_encode_journal_plan(&job->journal, manifest, err);
}

// --model is a file, or an index, whose manifest is read.
static enum bsw_status check_files(const struct encode_job *job, struct bsw_error *err)
{
    const struct encode_options *o = &job->options;
    char manifest[BSW_PATH_BYTES] = "";
    if (o->model) BSW_TRY(bsw_path_join(manifest, o->model, "manifest.pb", err));
    const struct bsw_command_files files = {.inputs = {o->base, o->model, manifest},
                                            .outputs = {o->index},
                                            .folder = o->index,
                                            .is_made = bsw_index_folder_makes};
    return bsw_command_files_check(&files, err);
}

// Rank 0: output folder, what is left of an earlier run, training.
static enum bsw_status prepare(struct encode_job *job, uint64_t input_digest, struct bsw_error *err)
{
    const struct encode_options *o = &job->options;
    struct bsw_journal_fields fields;
    double started = bsw_clock_seconds();
    // A run that began with --force may be resumed without it.
    int is_forced = o->force || (o->resume && bsw_encode_plan_exists(o->index));
    BSW_TRY(check_files(job, err));
    BSW_TRY(bsw_index_folder_begin(&job->folder, o->index, is_forced, err));
    if (job->manifest.codec == BSW_CODEC_RBE) job->folder.model = &job->learned.bytes;
    BSW_TRY(bsw_source_relative(o->base, o->index, job->manifest.source_path, err));
    BSW_TRY(make_fields(job, input_digest, &fields, err));
    BSW_TRY(bsw_encode_journal_open(&job->journal, o->index, o->force, o->resume, &fields, err));
    bsw_run_status_set_output(o->index, "blocks");
    BSW_TRY(make_plan(job, err));
    bsw_temporary_forget(o->index);
    BSW_TRY(
        bsw_index_folder_create_files(&job->folder, &job->manifest, job->journal.is_resumed, err));
    job->train_seconds = bsw_clock_seconds() - started;
    return BSW_OK;
}

// auto: only saq has enough to compute for a GPU; xfbq is done faster than rows are read and
// copied.
static enum bsw_status open_device(struct encode_job *job, struct bsw_error *err)
{
    const char *text = job->options.device;
    enum bsw_codec codec = job->manifest.codec;
    int is_idle = codec == BSW_CODEC_XFBQ && strcmp(text, "auto") == 0;
    const struct bsw_device_choice choice = {.text = is_idle ? "cpu" : text,
                                             .cpu_only = codec == BSW_CODEC_RAW   ? "--codec raw"
                                                         : codec == BSW_CODEC_RBE ? "--codec rbe"
                                                                                  : NULL,
                                             .most_bytes = job->options.device_memory,
                                             .timeout_seconds = job->options.common.timeout};
    return bsw_device_choice_open(&choice, job->transport, &job->device, err);
}

static enum bsw_status share_manifest(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_message message = {.kind = MESSAGE_MANIFEST};
    struct bsw_buffer buffer = {0};
    enum bsw_status status = BSW_OK;
    if (job->transport->rank == 0) status = bsw_manifest_pack(&job->manifest, &buffer, err);
    if (status == BSW_OK) status = bsw_transport_broadcast(job->transport, &message, &buffer, err);
    if (status == BSW_OK && job->transport->rank != 0) {
        status = bsw_manifest_parse("manifest from rank 0", buffer.data, buffer.bytes,
                                    &job->manifest, err);
    }
    bsw_buffer_deinit(&buffer);
    return status;
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
        entry->codes_bytes = bsw_shard_codes_bytes(&job->pass.shapes[i]);
        if (manifest->source_is_copied) {
            entry->vectors_bytes =
                bsw_shard_vectors_bytes(&job->pass.shapes[i], bsw_vectors_row_bytes(job->vectors));
        }
    }
}

static enum bsw_status seal_shard(struct encode_job *job, uint32_t shard, uint64_t *digests,
                                  struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->manifest;
    const struct bsw_shard_shape *shape = &job->pass.shapes[shard];
    char path[BSW_PATH_BYTES];
    int fd;
    for (uint32_t b = 0; b < shape->num_blocks; b++)
        digests[b] = job->pass.records[job->pass.first_blocks[shard] + b].digest;
    BSW_TRY(bsw_shard_path(path, job->options.index, shard, manifest->num_shards,
                           BSW_CODES_TEMPORARY, err));
    BSW_TRY(bsw_file_open_write(path, &fd, err));
    enum bsw_status status = bsw_shard_file_seal(fd, path, shape, manifest, shard, digests,
                                                 &manifest->shards[shard].codes_digest, err);
    enum bsw_status closed = bsw_file_sync_close(&fd, path, status == BSW_OK ? err : NULL);
    if (status != BSW_OK || closed != BSW_OK || !manifest->source_is_copied)
        return status ? status : closed;
    BSW_TRY(bsw_shard_path(path, job->options.index, shard, manifest->num_shards,
                           BSW_VECTORS_TEMPORARY, err));
    BSW_TRY(bsw_file_open_write(path, &fd, err));
    status = bsw_vectors_file_seal(fd, path, manifest, shard, err);
    closed = bsw_file_sync_close(&fd, path, status == BSW_OK ? err : NULL);
    return status ? status : closed;
}

static enum bsw_status finish(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->manifest;
    add_up(job);
    if (manifest->dropped_rows == manifest->num_rows) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: every row was dropped", job->options.base);
    }
    BSW_TRY(bsw_manifest_build_digest(manifest, &manifest->build_digest, err));
    BSW_TRY(bsw_shard_answers_store(&job->pass.answers, manifest, err));
    uint32_t most_blocks = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        if (job->pass.shapes[i].num_blocks > most_blocks)
            most_blocks = job->pass.shapes[i].num_blocks;
    }
    uint64_t *digests;
    BSW_TRY(bsw_allocate(&digests, most_blocks, sizeof *digests, "block digests", err));
    enum bsw_status status = BSW_OK;
    for (uint32_t i = 0; i < manifest->num_shards && status == BSW_OK; i++)
        status = seal_shard(job, i, digests, err);
    bsw_free(&digests);
    if (status != BSW_OK) return status;
    bsw_stop_hold();
    status = bsw_index_folder_commit(&job->folder, manifest, err);
    // Before the plan goes: a run that is killed in between must not look unfinished.
    if (status == BSW_OK) status = bsw_run_status_write(BSW_OK, "", err);
    if (status == BSW_OK) status = bsw_encode_journal_remove(&job->journal, err);
    if (status == BSW_OK) bsw_index_folder_release(&job->folder);
    if (status == BSW_OK) bsw_stop_conclude(0);
    bsw_stop_release();
    return status;
}

static uint64_t index_bytes(const struct bsw_manifest *manifest)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        bytes += manifest->shards[i].codes_bytes + manifest->shards[i].vectors_bytes;
    }
    return bytes;
}

static void print_json(const struct encode_job *job, const char *segments, double input_bytes)
{
    const struct bsw_manifest *manifest = &job->manifest;
    json_t *object = json_pack(
        "{s:I, s:I, s:i, s:s, s:s, s:s, s:f, s:f}", "rows", (json_int_t)manifest->num_rows,
        "dropped_rows", (json_int_t)manifest->dropped_rows, "dims",
        (int)bsw_manifest_row_dims(manifest), "codec", bsw_codec_name(manifest->codec), "metric",
        bsw_metric_name(manifest->metric), "segments", segments, "bits", manifest->bits,
        "bytes_per_vector", bsw_manifest_row_bytes(manifest));
    json_t *more = json_pack(
        "{s:I, s:I, s:i, s:I, s:s, s:s, s:f, s:f, s:f, s:f, s:I}", "shards",
        (json_int_t)manifest->num_shards, "index_bytes", (json_int_t)index_bytes(manifest), "ranks",
        job->transport->num_ranks, "threads", (json_int_t)job->options.common.threads, "level",
        bsw_encode_table_get(job->options.common.level)->level, "device",
        job->device ? bsw_device_label(job->device) : "cpu", "xfbq_scale",
        (double)manifest->xfbq_scale, "train_seconds", job->train_seconds, "encode_seconds",
        job->encode_seconds, "input_gb_per_second", input_bytes / job->encode_seconds * 1e-9,
        "peak_memory_bytes", (json_int_t)bsw_process_peak_bytes());
    json_object_update(object, more);
    json_decref(more);
    if (job->options.bits > 0)
        json_object_set_new(object, "bits_asked", json_real(job->options.bits));
    bsw_print_json(object);
}

// Groups of dimensions have whole bits, so that the average may be less than was asked for.
static void print_bits(const struct encode_job *job)
{
    const struct bsw_manifest *manifest = &job->manifest;
    int is_auto = manifest->codec == BSW_CODEC_SAQ && !job->options.model &&
                  strcmp(job->options.segments, "auto") == 0;
    if (!is_auto || job->options.bits - manifest->bits < 1e-9) return;
    printf("bits: %.4g a dimension, not %.4g: groups of 32 of the %u dims take whole bits\n",
           manifest->bits, job->options.bits, manifest->layout.dims);
}

static void report(const struct encode_job *job)
{
    const struct bsw_manifest *manifest = &job->manifest;
    char segments[512];
    bsw_code_layout_format(&manifest->layout, segments, sizeof segments);
    double rows = (double)manifest->num_rows,
           input = rows * (double)bsw_vectors_row_bytes(job->vectors);
    if (job->options.common.json) {
        print_json(job, segments, input);
        return;
    }
    if (job->options.common.quiet) return;
    printf(
        "%llu rows x %u dims -> %s, %s, %s: %.4g bits a dimension, %u shards, %g bytes a vector\n",
        (unsigned long long)manifest->num_rows, bsw_manifest_row_dims(manifest),
        bsw_codec_name(manifest->codec), bsw_metric_name(manifest->metric), segments,
        manifest->bits, manifest->num_shards, bsw_manifest_row_bytes(manifest));
    print_bits(job);
    if (manifest->dropped_rows > 0)
        printf("dropped rows: %llu\n", (unsigned long long)manifest->dropped_rows);
    printf("training %.2f s, encoding %.2f s: %.4g rows/s, %.2f GB/s of input\n",
           job->train_seconds, job->encode_seconds, rows / job->encode_seconds,
           input / job->encode_seconds * 1e-9);
}

// Each rank keeps the files of its part of the shards open. A limit that is too low is found before
// the training.
static enum bsw_status raise_limit(const struct encode_job *job, struct bsw_error *err)
{
    uint64_t ranks = (uint64_t)job->transport->num_ranks, shards = job->options.shards / ranks;
    return bsw_file_limit_raise(job->options.copy_vectors ? 2 * shards : shards, err);
}

// Each line ends with an agreement, so that no rank runs ahead of a fault of another.
static enum bsw_status encode(struct encode_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    uint64_t digest = 0;
    enum bsw_status status = open_input(job, err);
    if (status == BSW_OK) status = raise_limit(job, err);
    if (status == BSW_OK) status = open_device(job, err);
    if (status == BSW_OK) status = bsw_same_input_digest(job->vectors, &digest, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_same_input_agree(transport, digest, job->options.base, err));
    if (job->manifest.codec == BSW_CODEC_RBE) {
        BSW_TRY(bsw_rbe_encoding_open(job->options.model, bsw_vectors_dims(job->vectors),
                                      job->options.common.level, transport, &job->learned, err));
    }
    status = transport->rank == 0 ? prepare(job, digest, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = share_manifest(job, err);
    job->manifest.coders = job->learned.coders;
    double started = bsw_clock_seconds();
    const struct bsw_encode_pass_options options = {.transport = transport,
                                                    .manifest = &job->manifest,
                                                    .vectors = job->vectors,
                                                    .device = job->device,
                                                    .journal = &job->journal,
                                                    .folder = job->options.index,
                                                    .level = job->options.common.level,
                                                    .drop_bad_rows = job->options.drop_bad_rows,
                                                    .is_quiet = job->options.common.quiet};
    if (status == BSW_OK) status = bsw_encode_pass_run(&job->pass, &options, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = bsw_encode_pass_gather(&job->pass, err);
    job->encode_seconds = bsw_clock_seconds() - started;
    if (status == BSW_OK && transport->rank == 0) status = finish(job, err);
    return bsw_transport_agree(transport, status, err);
}

static void deinit(struct encode_job *job)
{
    bsw_device_close(&job->device);
    bsw_vectors_close(&job->vectors);
    bsw_manifest_deinit(&job->manifest);
    bsw_rbe_encoding_close(&job->learned);
    bsw_encode_pass_deinit(&job->pass);
}

enum bsw_status bsw_command_encode(struct bsw_transport *transport, int argc, char **argv,
                                   struct bsw_error *err)
{
    struct encode_job job = {.transport = transport};
    int done;
    BSW_TRY(parse(&job, argc, argv, &done, err));
    if (done) return BSW_OK;
    BSW_TRY(check_options(&job, err));
    enum bsw_status status = encode(&job, err);
    int is_kept = bsw_encode_journal_close(&job.journal, status);
    if (transport->rank == 0 && status != BSW_OK && !is_kept) {
        bsw_index_folder_abandon(&job.folder, &job.manifest);
        bsw_run_status_set_output(NULL, "");
    }
    bsw_index_folder_release(&job.folder);
    if (transport->rank == 0 && status == BSW_OK) report(&job);
    deinit(&job);
    return status;
}
