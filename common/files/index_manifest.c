// SPDX-License-Identifier: Apache-2.0
#include "common/files/index_manifest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "bitsweep.pb-c.h"
#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "common/files/calibration.h"
#include "common/files/manifest_parts.h"
#include "common/files/sealed_message.h"
#include "common/rows/text_lines.h"
#include "common/rows/vectors.h"

uint64_t bsw_row_digest(const void *row, size_t bytes, uint64_t row_id)
{
    return XXH3_64bits_withSeed(row, bytes, row_id);
}

// ---- packing ----

struct message_storage { // what a packed Manifest points into
    Bsw__Manifest manifest;
    Bsw__Source source;
    Bsw__Segment segments[BSW_MAX_SEGMENTS];
    Bsw__Segment *segment_pointers[BSW_MAX_SEGMENTS];
    Bsw__Lists lists;
    Bsw__CodeCheck check;
    struct bsw_calibration_message calibration;
    struct bsw_part_messages *parts;
    Bsw__Shard *shards;
    Bsw__Shard **shard_pointers;
    struct bsw_buffer part; // of the codec
};

static void storage_deinit(struct message_storage *storage)
{
    bsw_buffer_deinit(&storage->part);
    bsw_calibration_message_deinit(&storage->calibration);
    bsw_parts_free(&storage->parts);
    bsw_free(&storage->shards);
    bsw_free(&storage->shard_pointers);
}

// The field that has the codec's part: saq's and rbe's are older than the one of all others.
static ProtobufCBinaryData *part_of(Bsw__Manifest *message, const struct bsw_codec *codec)
{
    return codec->part_field == 10   ? &message->frame
           : codec->part_field == 16 ? &message->learned
                                     : &message->part;
}

static enum bsw_status fill_part(const struct bsw_manifest *manifest,
                                 struct message_storage *storage, struct bsw_error *err)
{
    const struct bsw_codec *codec = manifest->codec;
    if (codec->part_field == 0) return BSW_OK;
    BSW_TRY(codec->pack_part(manifest, &storage->part, err));
    *part_of(&storage->manifest, codec) =
        (ProtobufCBinaryData){storage->part.bytes, storage->part.data};
    return BSW_OK;
}

struct bsw_known_answers bsw_manifest_known(const struct bsw_manifest *manifest, uint32_t shard)
{
    const struct bsw_shard_entry *entry = &manifest->shards[shard];
    if (manifest->num_known == 0) return (struct bsw_known_answers){0};
    uint64_t rows = entry->num_rows - entry->dropped_rows;
    return (struct bsw_known_answers){manifest->num_known, entry->num_known_rows,
                                      entry->num_known_rows < bsw_known_rows(rows),
                                      manifest->known + entry->first_known};
}

// Each shard has its num_known_rows.
static enum bsw_status reserve_known(struct bsw_manifest *manifest, uint32_t num_queries,
                                     size_t total, struct bsw_error *err)
{
    size_t next = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        manifest->shards[i].first_known = next;
        next += (size_t)num_queries * manifest->shards[i].num_known_rows;
    }
    bsw_free(&manifest->known);
    BSW_TRY(bsw_allocate(&manifest->known, total, sizeof *manifest->known, "known answers", err));
    manifest->num_known = num_queries;
    return BSW_OK;
}

enum bsw_status bsw_manifest_reserve_known(struct bsw_manifest *manifest, uint32_t num_queries,
                                           struct bsw_error *err)
{
    size_t total = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        struct bsw_shard_entry *entry = &manifest->shards[i];
        entry->num_known_rows = bsw_known_rows(entry->num_rows - entry->dropped_rows);
        total += (size_t)num_queries * entry->num_known_rows;
    }
    return reserve_known(manifest, num_queries, total, err);
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
    if (manifest->lists.count > 0) shard->places = entry->num_places;
    shard->deleted_rows = entry->deleted_rows;
    shard->deleted_in = entry->deleted_in;
    shard->deleted_digest = entry->deleted_digest;
    if (!with_digest) return;
    shard->lists_digest = entry->lists_digest;
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
    source->shift = manifest->source_shift;
}

static size_t centroid_bytes(const struct bsw_manifest *manifest)
{
    return (size_t)manifest->lists.count * bsw_manifest_row_dims(manifest) * sizeof(float);
}

static void fill_lists(const struct bsw_manifest *manifest, struct message_storage *storage)
{
    if (manifest->lists.count == 0) return;
    bsw__lists__init(&storage->lists);
    storage->lists.count = manifest->lists.count;
    storage->lists.residual = manifest->lists.is_residual;
    storage->lists.residual_recall = manifest->lists.residual_recall;
    storage->lists.plain_recall = manifest->lists.plain_recall;
    storage->lists.vectors = manifest->lists.has_ordered_vectors;
    storage->lists.centroids =
        (ProtobufCBinaryData){centroid_bytes(manifest), (uint8_t *)manifest->lists.centroids};
    storage->manifest.lists = &storage->lists;
}

static void fill_check(const struct bsw_manifest *manifest, struct message_storage *storage)
{
    if (manifest->check.num_queries == 0) return;
    bsw__code_check__init(&storage->check);
    storage->check.queries = manifest->check.num_queries;
    storage->check.rows = manifest->check.num_rows;
    storage->check.recall = manifest->check.recall;
    storage->check.cause = (char *)manifest->check.cause;
    storage->manifest.check = &storage->check;
}

static enum bsw_status fill_message(const struct bsw_manifest *manifest, int with_digests,
                                    struct message_storage *storage, struct bsw_error *err)
{
    Bsw__Manifest *message = &storage->manifest;
    bsw__manifest__init(message);
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
    fill_lists(manifest, storage);
    message->format_version = (uint32_t)bsw_manifest_format_version(manifest);
    message->build_digest = with_digests ? manifest->build_digest : 0;
    message->first_row = manifest->first_row;
    message->num_rows = manifest->num_rows;
    message->dropped_rows = manifest->dropped_rows;
    message->dims = manifest->layout.dims;
    message->metric = (char *)bsw_metric_name(manifest->metric);
    message->codec = (char *)manifest->codec->name;
    message->bits = manifest->bits;
    message->n_segments = manifest->layout.num_segments;
    message->segments = storage->segment_pointers;
    message->codec_number = manifest->codec_number;
    message->code_rule = manifest->code_rule;
    message->n_shards = manifest->num_shards;
    message->shards = storage->shard_pointers;
    message->source = &storage->source;
    if (with_digests && manifest->num_known > 0) {
        message->known_rule = manifest->codec->known_rule;
        message->known_queries = manifest->num_known;
    }
    if (with_digests) fill_check(manifest, storage);
    if (with_digests && manifest->calibration.num_entries > 0) {
        BSW_TRY(bsw_calibration_fill(&manifest->calibration, &storage->calibration, err));
        message->calibration = &storage->calibration.message;
    }
    BSW_TRY(bsw_parts_fill(manifest, message, &storage->parts, err));
    return fill_part(manifest, storage, err);
}

static enum bsw_status pack(const struct bsw_manifest *manifest, int with_digests,
                            struct bsw_buffer *out, struct bsw_error *err)
{
    struct message_storage *storage;
    BSW_TRY(bsw_allocate_zero(&storage, 1, sizeof *storage, "manifest", err));
    enum bsw_status status = fill_message(manifest, with_digests, storage, err);
    if (status == BSW_OK) status = bsw_message_pack(&storage->manifest.base, out, err);
    storage_deinit(storage);
    bsw_free(&storage);
    return status;
}

uint32_t bsw_manifest_stage(const struct bsw_manifest *manifest)
{
    uint32_t end = manifest->stage_dims;
    if (end >= manifest->layout.dims || end % 32 != 0) return 0;
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
        out->shards[i] = (struct bsw_shard_entry){.first_row = shard->first_row,
                                                  .num_rows = shard->num_rows,
                                                  .codes_bytes = shard->codes_bytes,
                                                  .codes_digest = shard->codes_digest,
                                                  .vectors_bytes = shard->vectors_bytes,
                                                  .dropped_rows = shard->dropped_rows,
                                                  .num_places = message->lists ? shard->places : 0,
                                                  .lists_digest = shard->lists_digest,
                                                  .deleted_rows = shard->deleted_rows,
                                                  .deleted_in = shard->deleted_in,
                                                  .deleted_digest = shard->deleted_digest};
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

// Rows of each answer of a shard: as many as there can be, but for those that were deleted, and in
// shards of older programs.
static int take_known_rows(const Bsw__Shard *shard, uint32_t num_queries, int may_be_short,
                           struct bsw_shard_entry *entry)
{
    uint32_t most = bsw_known_rows(entry->num_rows - entry->dropped_rows);
    size_t rows = shard->n_known_answers / num_queries;
    if (shard->n_known_answers % num_queries != 0 || rows > most) return 0;
    if (rows < most && !may_be_short) return 0;
    entry->num_known_rows = (uint32_t)rows;
    return 1;
}

// Answers by a rule of other programs are left out, as if there were none.
static enum bsw_status parse_known(const char *name, const Bsw__Manifest *message,
                                   struct bsw_manifest *out, struct bsw_error *err)
{
    if (message->known_rule != out->codec->known_rule) return BSW_OK;
    if (message->known_queries < 1 || message->known_queries > BSW_KNOWN_QUERIES)
        return bad(name, "number of known answers", err);
    size_t total = 0;
    for (uint32_t i = 0; i < out->num_shards; i++) {
        const Bsw__Shard *shard = message->shards[i];
        int is_good = take_known_rows(shard, message->known_queries, message->generation > 0,
                                      &out->shards[i]);
        size_t rows = out->shards[i].num_known_rows;
        total += shard->n_known_answers;
        for (uint32_t q = 0; q < message->known_queries && is_good; q++)
            is_good =
                is_list(shard->known_answers + q * rows, rows, bsw_shard_places(&out->shards[i]));
        if (!is_good) return bad(name, "known answers do not fit the shard", err);
    }
    BSW_TRY(reserve_known(out, message->known_queries, total, err));
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
    out->source_shift = source->shift;
    uint64_t first = out->first_row - out->source_shift;
    if (out->num_parts == 0 &&
        (first > out->source_rows || out->num_rows > out->source_rows - first))
        return bad(name, "more rows than the source has", err);
    return BSW_OK;
}

static const struct bsw_codec *find_codec(const struct bsw_codec *const *codecs, const char *name)
{
    while (*codecs && strcmp((*codecs)->name, name) != 0) codecs++;
    return *codecs;
}

// After the codec's part, which knows the dimensions of rows. An unfinished index has no places.
static enum bsw_status parse_lists(const char *name, const Bsw__Lists *lists,
                                   struct bsw_manifest *out, struct bsw_error *err)
{
    if (lists->count < 1 || lists->count > BSW_MAX_LISTS)
        return bad(name, "number of lists is out of range", err);
    out->lists.count = lists->count;
    out->lists.is_residual = lists->residual;
    out->lists.residual_recall = lists->residual_recall;
    out->lists.plain_recall = lists->plain_recall;
    out->lists.has_ordered_vectors = lists->vectors;
    if (lists->vectors && !out->source_is_copied)
        return bad(name, "an order of rows that are not copied", err);
    if (lists->centroids.len != centroid_bytes(out))
        return bad(name, "the centroids do not fit lists and dims", err);
    BSW_TRY(bsw_allocate(&out->lists.centroids, lists->centroids.len, 1, "centroids", err));
    memcpy(out->lists.centroids, lists->centroids.data, lists->centroids.len);
    for (size_t i = 0; i < lists->centroids.len / sizeof(float); i++) {
        if (!isfinite(out->lists.centroids[i])) return bad(name, "a centroid is not finite", err);
    }
    for (uint32_t s = 0; s < out->num_shards; s++) {
        const struct bsw_shard_entry *entry = &out->shards[s];
        uint64_t most = entry->num_rows + (uint64_t)BSW_BUNDLE_ROWS * (lists->count + 1ull);
        if (entry->num_places == 0) continue;
        if (entry->num_places % BSW_BUNDLE_ROWS != 0 || entry->num_places < entry->num_rows ||
            entry->num_places > most || entry->num_places > UINT32_MAX)
            return bad(name, "places of a shard do not fit its rows", err);
    }
    return BSW_OK;
}

// The version that a manifest of this content has.
static enum bsw_status check_version(const char *name, const Bsw__Manifest *message,
                                     struct bsw_error *err)
{
    int is_living =
        message->generation > 0 || message->ids_digest != 0 ||
        (message->source && message->source->shift != 0); // as bsw_manifest_is_living has it
    int version = is_living                 ? BSW_LIVING_FORMAT_VERSION
                  : message->code_rule > 0  ? BSW_RULED_FORMAT_VERSION
                  : !message->lists         ? BSW_INDEX_FORMAT_VERSION
                  : message->lists->vectors ? BSW_ORDERED_FORMAT_VERSION
                                            : BSW_LISTS_FORMAT_VERSION;
    if (message->format_version == (uint32_t)version) return BSW_OK;
    if (message->format_version > BSW_LIVING_FORMAT_VERSION)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: format version %u, this program reads %d to %d: it was made by a "
                        "newer bitsweep",
                        name, message->format_version, BSW_INDEX_FORMAT_VERSION,
                        BSW_LIVING_FORMAT_VERSION);
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: format version %u, but its content is that of version %d", name,
                    message->format_version, version);
}

static enum bsw_status parse_check(const char *name, const Bsw__CodeCheck *check,
                                   struct bsw_manifest *out, struct bsw_error *err)
{
    if (!check) return BSW_OK;
    if (!(check->recall >= 0 && check->recall <= 1) || check->queries < 1 ||
        strlen(check->cause) >= sizeof out->check.cause)
        return bad(name, "the check of the codes is out of range", err);
    out->check = (struct bsw_code_check){
        .num_queries = check->queries, .num_rows = check->rows, .recall = check->recall};
    snprintf(out->check.cause, sizeof out->check.cause, "%s", check->cause);
    return BSW_OK;
}

static enum bsw_status parse_message(const struct bsw_codec *const *codecs, const char *name,
                                     Bsw__Manifest *message, struct bsw_manifest *out,
                                     struct bsw_error *err)
{
    BSW_TRY(check_version(name, message, err));
    if (bsw_metric_parse(message->metric, &out->metric, NULL) != BSW_OK)
        return bad(name, "unknown metric", err);
    out->codec = find_codec(codecs, message->codec);
    if (!out->codec) return bad(name, "unknown codec", err);
    out->code_rule = message->code_rule;
    if (out->code_rule > out->codec->code_rule)
        return bad(name, "codes by a rule that only a newer bitsweep knows", err);
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
    BSW_TRY(bsw_parts_take(name, message, out, err));
    BSW_TRY(parse_known(name, message, out, err));
    BSW_TRY(parse_source(name, message->source, out, err));
    out->codec_number = message->codec_number;
    out->stage_dims = out->layout.dims;
    const ProtobufCBinaryData *part = part_of(message, out->codec);
    BSW_TRY(out->codec->parse_part(name, part->data, part->len, out, err));
    if (message->lists) BSW_TRY(parse_lists(name, message->lists, out, err));
    BSW_TRY(parse_check(name, message->check, out, err));
    return bsw_calibration_take(name, message->calibration, out->lists.count,
                                bsw_has_distances(out->metric), &out->layout, &out->calibration,
                                err);
}

enum bsw_status bsw_manifest_unpack(const struct bsw_codec *const *codecs, const char *name,
                                    const void *data, size_t bytes, struct bsw_manifest *out,
                                    struct bsw_error *err)
{
    *out = (struct bsw_manifest){0};
    BSW_TRY(bsw_message_check_seal(name, "manifest", data, bytes, NULL, err));
    Bsw__Manifest *message;
    BSW_TRY(bsw_message_unpack(&bsw__manifest__descriptor, name, "manifest", data, bytes, &message,
                               err));
    enum bsw_status status = parse_message(codecs, name, message, out, err);
    bsw_message_free(message);
    if (status != BSW_OK) bsw_manifest_deinit(out);
    return status;
}

void bsw_manifest_deinit(struct bsw_manifest *manifest)
{
    if (manifest->codec && manifest->codec->free_part) manifest->codec->free_part(manifest->part);
    manifest->part = NULL;
    bsw_free(&manifest->shards);
    bsw_free(&manifest->known);
    bsw_free(&manifest->parts);
    bsw_free(&manifest->lists.centroids);
    bsw_calibration_deinit(&manifest->calibration);
}

double bsw_manifest_row_bytes(const struct bsw_manifest *manifest)
{
    const struct bsw_codec *codec = manifest->codec;
    return bsw_layout_row_bytes(&manifest->layout) + 4 * codec->has_affine +
           4 * bsw_manifest_has_biases(manifest) + 4 * codec->has_bytes +
           4 * (manifest->lists.count > 0);
}

int bsw_manifest_has_rows(const struct bsw_manifest *manifest)
{
    return manifest->source_is_copied || !bsw_name_is_text(manifest->source_path);
}
