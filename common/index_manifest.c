#include "common/index_manifest.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "bitsweep.pb-c.h"
#include "common/parts.h"
#include "common/result_order.h"
#include "common/sealed_message.h"
#include "common/source_name.h"

// Frame of 4096 dims: 64 MiB; 65,536 shards: some 4 MiB, their known answers 64 MiB. More is no
// manifest of ours.
#define MANIFEST_MAX_BYTES (256u << 20)

static const char *const codec_names[BSW_CODEC_NUM] = {"xfbq", "saq", "raw", "rbe"};

const char *bsw_codec_name(enum bsw_codec codec)
{
    return codec_names[codec];
}

enum bsw_status bsw_codec_parse(const char *text, enum bsw_codec *out, struct bsw_error *err)
{
    for (int i = 0; i < BSW_CODEC_NUM; i++) {
        if (strcmp(text, codec_names[i]) == 0) {
            *out = (enum bsw_codec)i;
            return BSW_OK;
        }
    }
    return bsw_fail(err, BSW_ERROR_USAGE, "codec '%s' is none of xfbq, saq, raw, rbe", text);
}

uint64_t bsw_row_digest(const void *row, size_t bytes, uint64_t row_id)
{
    return XXH3_64bits_withSeed(row, bytes, row_id);
}

// ---- packing ----

struct message_storage { // what a packed Manifest points into
    Bsw__Manifest manifest;
    Bsw__Source source;
    Bsw__Frame frame;
    Bsw__Learned learned;
    Bsw__Segment segments[BSW_MAX_SEGMENTS];
    Bsw__Segment *segment_pointers[BSW_MAX_SEGMENTS];
    Bsw__Shard *shards;
    Bsw__Shard **shard_pointers;
    float *rotation; // without padding
};

static void storage_deinit(struct message_storage *storage)
{
    bsw_free(&storage->rotation);
    bsw_free(&storage->shards);
    bsw_free(&storage->shard_pointers);
}

// Columns of padding stay out of the file: they are 0 by definition.
static void strip_padding(const struct bsw_manifest *manifest, float *out)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    for (uint32_t j = 0; j < layout->dims; j++) {
        const float *row = manifest->rotation + (size_t)j * layout->padded_dims;
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            const struct bsw_segment *segment = &layout->segments[s];
            memcpy(out, row + segment->padded_dim, segment->dims * sizeof(float));
            out += segment->dims;
        }
    }
}

static enum bsw_status fill_frame(const struct bsw_manifest *manifest,
                                  struct message_storage *storage, struct bsw_error *err)
{
    uint32_t dims = manifest->layout.dims;
    Bsw__Frame *frame = &storage->frame;
    BSW_TRY(bsw_allocate(&storage->rotation, (size_t)dims * dims, sizeof(float), "frame", err));
    strip_padding(manifest, storage->rotation);
    frame->mean.data = (uint8_t *)manifest->mean;
    frame->mean.len = dims * sizeof(float);
    frame->rotation.data = (uint8_t *)storage->rotation;
    frame->rotation.len = (size_t)dims * dims * sizeof(float);
    frame->n_steps = manifest->layout.num_segments;
    frame->steps = (float *)manifest->steps;
    frame->scale_exponent = manifest->scale_exponent;
    frame->tail_exponent = manifest->tail_exponent;
    frame->stage_dims = manifest->stage_dims;
    frame->axes = (char *)manifest->axes;
    storage->manifest.frame = frame;
    return BSW_OK;
}

static enum bsw_status fill_learned(const struct bsw_manifest *manifest,
                                    struct message_storage *storage)
{
    Bsw__Learned *learned = &storage->learned;
    bsw__learned__init(learned);
    learned->model_digest = manifest->model_digest;
    learned->row_dims = manifest->row_dims;
    learned->query_planes = manifest->query_planes;
    learned->scale_exponent = manifest->scale_exponent;
    storage->manifest.learned = learned;
    return BSW_OK;
}

struct bsw_known_answers bsw_manifest_known(const struct bsw_manifest *manifest, uint32_t shard)
{
    const struct bsw_shard_entry *entry = &manifest->shards[shard];
    if (manifest->num_known == 0) return (struct bsw_known_answers){0};
    return (struct bsw_known_answers){manifest->num_known,
                                      bsw_known_rows(entry->num_rows - entry->dropped_rows),
                                      manifest->known + entry->first_known};
}

enum bsw_status bsw_manifest_reserve_known(struct bsw_manifest *manifest, uint32_t num_queries,
                                           struct bsw_error *err)
{
    size_t total = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        struct bsw_shard_entry *entry = &manifest->shards[i];
        entry->first_known = total;
        total += (size_t)num_queries * bsw_known_rows(entry->num_rows - entry->dropped_rows);
    }
    bsw_free(&manifest->known);
    BSW_TRY(bsw_allocate(&manifest->known, total, sizeof *manifest->known, "known answers", err));
    manifest->num_known = num_queries;
    return BSW_OK;
}

static void fill_shard(const struct bsw_manifest *manifest, uint32_t index, int with_digest,
                       Bsw__Shard *shard)
{
    const struct bsw_shard_entry *entry = &manifest->shards[index];
    const struct bsw_known_answers known = bsw_manifest_known(manifest, index);
    bsw__shard__init(shard);
    shard->first_row = entry->first_row;
    shard->num_rows = entry->num_rows;
    shard->codes_bytes = entry->codes_bytes;
    shard->codes_digest = with_digest ? entry->codes_digest : 0;
    shard->vectors_bytes = entry->vectors_bytes;
    shard->dropped_rows = entry->dropped_rows;
    if (!with_digest) return;
    shard->n_known_answers = (size_t)known.num_queries * known.num_rows;
    shard->known_answers = (uint64_t *)known.best;
}

static void fill_source(const struct bsw_manifest *manifest, Bsw__Source *source)
{
    bsw__source__init(source);
    source->path = (char *)manifest->source_path;
    source->type = (char *)bsw_vector_type_name(manifest->source_type);
    source->file_bytes = manifest->source_file_bytes;
    source->num_rows = manifest->source_rows;
    source->digest = manifest->source_digest;
    source->copied = manifest->source_is_copied;
}

static uint32_t known_rule(const struct bsw_manifest *manifest)
{
    return manifest->codec == BSW_CODEC_RAW ? BSW_KNOWN_RULE_RAW : BSW_KNOWN_RULE;
}

static enum bsw_status fill_message(const struct bsw_manifest *manifest, int with_digests,
                                    struct message_storage *storage, struct bsw_error *err)
{
    Bsw__Manifest *message = &storage->manifest;
    bsw__manifest__init(message);
    bsw__frame__init(&storage->frame);
    BSW_TRY(bsw_allocate(&storage->shards, manifest->num_shards, sizeof *storage->shards,
                         "manifest", err));
    BSW_TRY(bsw_allocate(&storage->shard_pointers, manifest->num_shards, sizeof(void *), "manifest",
                         err));
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        fill_shard(manifest, i, with_digests, &storage->shards[i]);
        storage->shard_pointers[i] = &storage->shards[i];
    }
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        bsw__segment__init(&storage->segments[s]);
        storage->segments[s].dims = manifest->layout.segments[s].dims;
        storage->segments[s].bits = manifest->layout.segments[s].bits;
        storage->segment_pointers[s] = &storage->segments[s];
    }
    fill_source(manifest, &storage->source);
    message->format_version = BSW_INDEX_FORMAT_VERSION;
    message->build_digest = with_digests ? manifest->build_digest : 0;
    message->first_row = manifest->first_row;
    message->num_rows = manifest->num_rows;
    message->dropped_rows = manifest->dropped_rows;
    message->dims = manifest->layout.dims;
    message->metric = (char *)bsw_metric_name(manifest->metric);
    message->codec = (char *)bsw_codec_name(manifest->codec);
    message->bits = manifest->bits;
    message->n_segments = manifest->layout.num_segments;
    message->segments = storage->segment_pointers;
    message->xfbq_scale = manifest->xfbq_scale;
    message->n_shards = manifest->num_shards;
    message->shards = storage->shard_pointers;
    message->source = &storage->source;
    if (with_digests && manifest->num_known > 0) {
        message->known_rule = known_rule(manifest);
        message->known_queries = manifest->num_known;
    }
    if (manifest->codec == BSW_CODEC_RBE) return fill_learned(manifest, storage);
    return manifest->codec == BSW_CODEC_SAQ ? fill_frame(manifest, storage, err) : BSW_OK;
}

static enum bsw_status pack(const struct bsw_manifest *manifest, int with_digests,
                            struct bsw_buffer *out, struct bsw_error *err)
{
    struct message_storage *storage;
    BSW_TRY(bsw_allocate_zero(&storage, 1, sizeof *storage, "manifest", err));
    enum bsw_status status = fill_message(manifest, with_digests, storage, err);
    if (status == BSW_OK) {
        size_t bytes = bsw__manifest__get_packed_size(&storage->manifest);
        out->bytes = 0;
        status = bsw_buffer_reserve(out, bytes + BSW_SEAL_BYTES, err);
        if (status == BSW_OK) out->bytes = bsw__manifest__pack(&storage->manifest, out->data);
    }
    storage_deinit(storage);
    bsw_free(&storage);
    return status;
}

uint32_t bsw_manifest_stage(const struct bsw_manifest *manifest)
{
    uint32_t end = manifest->stage_dims;
    if (manifest->codec != BSW_CODEC_SAQ || end >= manifest->layout.dims || end % 32 != 0) return 0;
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        const struct bsw_segment *segment = &manifest->layout.segments[s];
        if (segment->padded_dim >= end) break;
        if (segment->dims % 32 != 0 && segment->padded_dim + segment->dims < end) return 0;
    }
    return end;
}

enum bsw_status bsw_manifest_cut_shards(struct bsw_manifest *manifest, uint64_t num_shards,
                                        struct bsw_error *err)
{
    BSW_TRY(
        bsw_allocate_zero(&manifest->shards, num_shards, sizeof *manifest->shards, "shards", err));
    manifest->num_shards = (uint32_t)num_shards;
    for (uint64_t i = 0; i < num_shards; i++) {
        uint64_t first = bsw_part_first(manifest->num_rows, i, num_shards);
        uint64_t next = bsw_part_first(manifest->num_rows, i + 1, num_shards);
        manifest->shards[i].first_row = manifest->first_row + first;
        manifest->shards[i].num_rows = next - first;
    }
    return BSW_OK;
}

enum bsw_status bsw_manifest_build_digest(const struct bsw_manifest *manifest, uint64_t *out,
                                          struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    enum bsw_status status = pack(manifest, 0, &buffer, err);
    if (status == BSW_OK) *out = XXH3_64bits(buffer.data, buffer.bytes);
    bsw_buffer_deinit(&buffer);
    return status;
}

enum bsw_status bsw_manifest_pack(const struct bsw_manifest *manifest, struct bsw_buffer *out,
                                  struct bsw_error *err)
{
    BSW_TRY(pack(manifest, 1, out, err));
    return bsw_message_seal(out, NULL, err);
}

enum bsw_status bsw_manifest_write(const struct bsw_manifest *manifest, const char *folder,
                                   struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    char path[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_join(path, folder, "manifest.pb", err));
    enum bsw_status status = bsw_manifest_pack(manifest, &buffer, err);
    if (status == BSW_OK) status = bsw_file_write_atomic(path, buffer.data, buffer.bytes, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

// ---- parsing ----

static int is_finite_array(const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) return 0;
    }
    return 1;
}

static enum bsw_status bad(const char *name, const char *what, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", name, what);
}

static enum bsw_status parse_shards(const char *name, const Bsw__Manifest *message,
                                    struct bsw_manifest *out, struct bsw_error *err)
{
    if (message->n_shards < 1 || message->n_shards > BSW_MAX_SHARDS)
        return bad(name, "number of shards", err);
    BSW_TRY(bsw_allocate(&out->shards, message->n_shards, sizeof *out->shards, "manifest", err));
    out->num_shards = (uint32_t)message->n_shards;
    uint64_t next = out->first_row, dropped = 0;
    for (size_t i = 0; i < message->n_shards; i++) {
        const Bsw__Shard *shard = message->shards[i];
        if (shard->first_row != next || shard->num_rows < 1 ||
            shard->num_rows > out->first_row + out->num_rows - next ||
            shard->num_rows > UINT32_MAX || shard->dropped_rows > shard->num_rows) {
            return bad(name, "rows of the shards do not follow each other", err);
        }
        next += shard->num_rows;
        dropped += shard->dropped_rows;
        out->shards[i] = (struct bsw_shard_entry){shard->first_row,
                                                  shard->num_rows,
                                                  shard->codes_bytes,
                                                  shard->codes_digest,
                                                  shard->vectors_bytes,
                                                  shard->dropped_rows,
                                                  0};
    }
    if (next != out->first_row + out->num_rows || dropped != out->dropped_rows) {
        return bad(name, "rows of the shards do not add up", err);
    }
    return BSW_OK;
}

// Rows of the shard, the best first, none twice: a scan may rely on it.
static int is_list(const uint64_t *list, size_t count, uint64_t num_rows)
{
    for (size_t i = 0; i < count; i++) {
        if (bsw_candidate_row(list[i]) >= num_rows || (i > 0 && list[i] >= list[i - 1])) return 0;
    }
    return 1;
}

// Answers by a rule of other programs are left out, as if there were none.
static enum bsw_status parse_known(const char *name, const Bsw__Manifest *message,
                                   struct bsw_manifest *out, struct bsw_error *err)
{
    if (message->known_rule != known_rule(out)) return BSW_OK;
    if (message->known_queries < 1 || message->known_queries > BSW_KNOWN_QUERIES)
        return bad(name, "number of known answers", err);
    for (uint32_t i = 0; i < out->num_shards; i++) {
        const Bsw__Shard *shard = message->shards[i];
        size_t rows = bsw_known_rows(shard->num_rows - shard->dropped_rows);
        int is_good = shard->n_known_answers == rows * message->known_queries;
        for (uint32_t q = 0; q < message->known_queries && is_good; q++)
            is_good = is_list(shard->known_answers + q * rows, rows, shard->num_rows);
        if (!is_good) return bad(name, "known answers do not fit the shard", err);
    }
    BSW_TRY(bsw_manifest_reserve_known(out, message->known_queries, err));
    for (uint32_t i = 0; i < out->num_shards; i++) {
        const Bsw__Shard *shard = message->shards[i];
        if (shard->n_known_answers > 0)
            memcpy(out->known + out->shards[i].first_known, shard->known_answers,
                   shard->n_known_answers * sizeof *out->known);
    }
    return BSW_OK;
}

static enum bsw_status parse_layout(const char *name, const Bsw__Manifest *message,
                                    struct bsw_manifest *out, struct bsw_error *err)
{
    bsw_code_layout_init(&out->layout);
    if (message->n_segments < 1) return bad(name, "no segments", err);
    for (size_t i = 0; i < message->n_segments; i++) {
        if (bsw_code_layout_append(&out->layout, message->segments[i]->dims,
                                   message->segments[i]->bits, NULL) != BSW_OK) {
            return bad(name, "a segment is out of range", err);
        }
    }
    if (out->layout.dims != message->dims)
        return bad(name, "dims of the segments do not add up", err);
    if (bsw_code_layout_check(&out->layout, 1, NULL) != BSW_OK)
        return bad(name, "dims and bits too large", err);
    return BSW_OK;
}

static void add_padding(const float *rotation, struct bsw_manifest *out)
{
    const struct bsw_code_layout *layout = &out->layout;
    for (uint32_t j = 0; j < layout->dims; j++) {
        float *row = out->rotation + (size_t)j * layout->padded_dims;
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            const struct bsw_segment *segment = &layout->segments[s];
            memcpy(row + segment->padded_dim, rotation, segment->dims * sizeof(float));
            rotation += segment->dims;
        }
    }
}

static enum bsw_status parse_frame(const char *name, const Bsw__Frame *frame,
                                   struct bsw_manifest *out, struct bsw_error *err)
{
    uint32_t dims = out->layout.dims;
    size_t num_weights = (size_t)dims * dims;
    if (!frame || dims > BSW_SAQ_MAX_DIMS || frame->mean.len != dims * sizeof(float) ||
        frame->rotation.len != num_weights * sizeof(float) ||
        frame->n_steps != out->layout.num_segments) {
        return bad(name, "the frame does not fit dims and segments", err);
    }
    if (frame->stage_dims < 1 || frame->stage_dims > dims ||
        (frame->stage_dims % 32 != 0 && frame->stage_dims != dims) ||
        frame->scale_exponent < -126 || frame->scale_exponent > 126 ||
        frame->tail_exponent < -126 || frame->tail_exponent > 126) {
        return bad(name, "the frame is out of range", err);
    }
    BSW_TRY(bsw_allocate(&out->mean, dims, sizeof(float), "frame", err));
    BSW_TRY(bsw_allocate_zero(&out->rotation, (size_t)dims * out->layout.padded_dims, sizeof(float),
                              "frame", err));
    memcpy(out->mean, frame->mean.data, frame->mean.len);
    float *weights; // the message's bytes may be unaligned
    BSW_TRY(bsw_allocate(&weights, num_weights, sizeof(float), "frame", err));
    memcpy(weights, frame->rotation.data, frame->rotation.len);
    add_padding(weights, out);
    int is_finite = is_finite_array(weights, num_weights) && is_finite_array(out->mean, dims);
    bsw_free(&weights);
    for (size_t s = 0; s < frame->n_steps; s++) {
        out->steps[s] = frame->steps[s];
        if (!(out->steps[s] > 0) || !isfinite(out->steps[s])) is_finite = 0;
    }
    if (!is_finite) return bad(name, "the frame has numbers that are not finite", err);
    out->scale_exponent = frame->scale_exponent;
    out->tail_exponent = frame->tail_exponent;
    out->stage_dims = frame->stage_dims;
    snprintf(out->axes, sizeof out->axes, "%s", frame->axes);
    return BSW_OK;
}

static enum bsw_status parse_source(const char *name, const Bsw__Source *source,
                                    struct bsw_manifest *out, struct bsw_error *err)
{
    if (!source || strlen(source->path) >= sizeof out->source_path)
        return bad(name, "no source", err);
    int type = 0;
    while (type < BSW_VECTOR_INT32 &&
           strcmp(source->type, bsw_vector_type_name((enum bsw_vector_type)type)) != 0) {
        type++;
    }
    if (type == BSW_VECTOR_INT32) return bad(name, "the source's type is unknown", err);
    snprintf(out->source_path, sizeof out->source_path, "%s", source->path);
    out->source_type = (enum bsw_vector_type)type;
    out->source_file_bytes = source->file_bytes;
    out->source_rows = source->num_rows;
    out->source_digest = source->digest;
    out->source_is_copied = source->copied;
    if (out->first_row + out->num_rows > out->source_rows)
        return bad(name, "more rows than the source has", err);
    return BSW_OK;
}

static enum bsw_status check_plain(const char *name, const struct bsw_manifest *manifest,
                                   struct bsw_error *err)
{
    if (!(manifest->xfbq_scale > 0) || !isfinite(manifest->xfbq_scale))
        return bad(name, "the scale is out of range", err);
    if (manifest->layout.num_segments != 1 || manifest->metric != BSW_METRIC_COSINE)
        return bad(name, "no plain code", err);
    return BSW_OK;
}

static enum bsw_status check_raw(const char *name, const struct bsw_manifest *manifest,
                                 struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    if (layout->num_segments != 1 || layout->segments[0].bits != 8 || manifest->bits != 8 ||
        layout->dims > BSW_RAW_MAX_DIMS || manifest->metric == BSW_METRIC_COSINE ||
        manifest->dropped_rows > 0 ||
        (manifest->source_type != BSW_VECTOR_UINT8 && manifest->source_type != BSW_VECTOR_INT8)) {
        return bad(name, "no raw rows", err);
    }
    return BSW_OK;
}

static enum bsw_status parse_learned(const char *name, const Bsw__Learned *learned,
                                     struct bsw_manifest *out, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &out->layout;
    if (layout->num_segments != 1 || out->bits != layout->segments[0].bits ||
        out->metric != BSW_METRIC_COSINE) {
        return bad(name, "no learned code", err);
    }
    if (!learned || learned->row_dims < 1 || learned->row_dims > BSW_RBE_MAX_ROW_DIMS ||
        learned->query_planes < 1 || learned->query_planes > BSW_MAX_QUERY_BITS ||
        learned->scale_exponent < -126 || learned->scale_exponent > 126) {
        return bad(name, "what was learned is out of range", err);
    }
    out->model_digest = learned->model_digest;
    out->row_dims = learned->row_dims;
    out->query_planes = learned->query_planes;
    out->scale_exponent = learned->scale_exponent;
    return BSW_OK;
}

static enum bsw_status parse_message(const char *name, const Bsw__Manifest *message,
                                     struct bsw_manifest *out, struct bsw_error *err)
{
    if (message->format_version != BSW_INDEX_FORMAT_VERSION) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: format version %u, this program reads %d",
                        name, message->format_version, BSW_INDEX_FORMAT_VERSION);
    }
    if (bsw_metric_parse(message->metric, &out->metric, NULL) != BSW_OK)
        return bad(name, "unknown metric", err);
    if (bsw_codec_parse(message->codec, &out->codec, NULL) != BSW_OK)
        return bad(name, "unknown codec", err);
    out->build_digest = message->build_digest;
    out->first_row = message->first_row;
    out->num_rows = message->num_rows;
    out->dropped_rows = message->dropped_rows;
    out->bits = message->bits;
    if (!(out->bits >= 1 && out->bits <= BSW_MAX_CODE_BITS))
        return bad(name, "bits are out of range", err);
    if (out->num_rows < 1 || out->num_rows > INT64_MAX ||
        out->first_row > INT64_MAX - out->num_rows) {
        return bad(name, "number of rows is out of range", err);
    }
    BSW_TRY(parse_layout(name, message, out, err));
    BSW_TRY(parse_shards(name, message, out, err));
    BSW_TRY(parse_known(name, message, out, err));
    BSW_TRY(parse_source(name, message->source, out, err));
    out->xfbq_scale = message->xfbq_scale;
    if (out->codec == BSW_CODEC_SAQ) return parse_frame(name, message->frame, out, err);
    out->stage_dims = out->layout.dims;
    if (out->codec == BSW_CODEC_RBE) return parse_learned(name, message->learned, out, err);
    return out->codec == BSW_CODEC_RAW ? check_raw(name, out, err) : check_plain(name, out, err);
}

enum bsw_status bsw_manifest_parse(const char *name, const void *data, size_t bytes,
                                   struct bsw_manifest *out, struct bsw_error *err)
{
    *out = (struct bsw_manifest){0};
    BSW_TRY(bsw_message_check_seal(name, "manifest", data, bytes, NULL, err));
    struct bsw_message_room room;
    bsw_message_room_init(&room, bytes);
    Bsw__Manifest *message = bsw__manifest__unpack(&room.allocator, bytes, data);
    if (!message) return bsw_message_fail(&room, name, "manifest", err);
    enum bsw_status status = parse_message(name, message, out, err);
    bsw__manifest__free_unpacked(message, &room.allocator);
    if (status != BSW_OK) bsw_manifest_deinit(out);
    return status;
}

enum bsw_status bsw_manifest_read(const char *folder, struct bsw_manifest *out,
                                  struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    char path[BSW_PATH_BYTES];
    *out = (struct bsw_manifest){0};
    BSW_TRY(bsw_path_join(path, folder, "manifest.pb", err));
    enum bsw_status status = bsw_file_read_all(path, MANIFEST_MAX_BYTES, &buffer, err);
    if (status == BSW_OK) status = bsw_manifest_parse(path, buffer.data, buffer.bytes, out, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

void bsw_manifest_deinit(struct bsw_manifest *manifest)
{
    bsw_free(&manifest->mean);
    bsw_free(&manifest->rotation);
    bsw_free(&manifest->shards);
    bsw_free(&manifest->known);
}

double bsw_manifest_row_bytes(const struct bsw_manifest *manifest)
{
    static const int beside[BSW_CODEC_NUM] = {
        [BSW_CODEC_SAQ] = 8, [BSW_CODEC_RAW] = 4, [BSW_CODEC_RBE] = 8};
    return bsw_layout_row_bytes(&manifest->layout) + beside[manifest->codec];
}

// ---- paths ----

enum bsw_status bsw_shard_path(char out[BSW_PATH_BYTES], const char *folder, uint32_t shard,
                               uint32_t num_shards, const char *suffix, struct bsw_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "shard-%05u-of-%05u%s", shard, num_shards, suffix);
    return bsw_path_join(out, folder, name, err);
}

static int is_synth(const char *source)
{
    return strncmp(source, "synth:", 6) == 0;
}

enum bsw_status bsw_manifest_source(const struct bsw_manifest *manifest, const char *folder,
                                    char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    if (!is_synth(manifest->source_path) && manifest->source_path[0] != '/') {
        return bsw_path_join(out, folder, manifest->source_path, err);
    }
    snprintf(out, BSW_PATH_BYTES, "%s", manifest->source_path);
    return BSW_OK;
}

static enum bsw_status resolve(const char *path, char out[PATH_MAX], struct bsw_error *err)
{
    if (realpath(path, out)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "%s: %s", path, strerror(errno));
}

enum bsw_status bsw_source_relative(const char *source, const char *folder,
                                    char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    char file[PATH_MAX], base[PATH_MAX];
    struct bsw_hdf5_name hdf5;
    if (is_synth(source)) {
        snprintf(out, BSW_PATH_BYTES, "%s", source);
        return BSW_OK;
    }
    int is_hdf5 = bsw_hdf5_name_parse(source, BSW_HDF5_BASE, &hdf5);
    BSW_TRY(resolve(is_hdf5 ? hdf5.file : source, file, err));
    BSW_TRY(resolve(folder, base, err));
    size_t common = 0; // length of the shared leading folders, up to and with a slash
    for (size_t i = 0;; i++) {
        int base_ends = base[i] == '\0';
        if ((base_ends || base[i] == '/') && file[i] == '/') common = i + 1;
        if (base_ends || base[i] != file[i]) break;
    }
    size_t used = 0;
    out[0] = '\0';
    const char *rest = strlen(base) >= common ? base + common : "";
    while (*rest) { // one step up for each folder of base that file does not share
        if (used + 3 >= BSW_PATH_BYTES) return bsw_fail(err, BSW_ERROR_USAGE, "path is too long");
        memcpy(out + used, "../", 3);
        used += 3;
        rest += strcspn(rest, "/");
        if (*rest == '/') rest++;
    }
    int written = snprintf(out + used, BSW_PATH_BYTES - used, "%s%s%s", file + common,
                           is_hdf5 ? ":" : "", is_hdf5 ? hdf5.dataset : "");
    if (written < 0 || (size_t)written >= BSW_PATH_BYTES - used)
        return bsw_fail(err, BSW_ERROR_USAGE, "path is too long");
    return BSW_OK;
}
