// SPDX-License-Identifier: Apache-2.0
#include "common/files/manifest_parts.h"

#include <stdio.h>
#include <string.h>

int bsw_index_part_is_named(const char *name, uint32_t *number)
{
    unsigned found;
    char again[BSW_PART_NAME_BYTES + 8];
    if (sscanf(name, "part-%8u", &found) != 1) return 0;
    snprintf(again, sizeof again, "part-%05u", found);
    if (strcmp(name, again) != 0) return 0;
    if (number) *number = found;
    return 1;
}

// ---- where shards lie ----

static struct bsw_shard_home home_of(const struct bsw_index_part *part, uint32_t shard)
{
    return (struct bsw_shard_home){.shard = shard,
                                   .num_shards = part->num_shards,
                                   .folder = part->folder,
                                   .build_digest = part->build_digest,
                                   .source_path = part->source_path,
                                   .source_file_bytes = part->source_file_bytes,
                                   .source_rows = part->source_rows,
                                   .source_shift = part->source_shift,
                                   .source_is_copied = part->source_is_copied,
                                   .has_ordered_vectors = part->has_ordered_vectors};
}

struct bsw_shard_home bsw_manifest_home(const struct bsw_manifest *manifest, uint32_t shard)
{
    for (uint32_t p = 0; p < manifest->num_parts; p++) {
        if (shard < manifest->parts[p].num_shards) return home_of(&manifest->parts[p], shard);
        shard -= manifest->parts[p].num_shards;
    }
    return (struct bsw_shard_home){.shard = shard,
                                   .num_shards = manifest->num_shards,
                                   .folder = "",
                                   .build_digest = manifest->build_digest,
                                   .source_path = manifest->source_path,
                                   .source_file_bytes = manifest->source_file_bytes,
                                   .source_rows = manifest->source_rows,
                                   .source_shift = manifest->source_shift,
                                   .source_is_copied = manifest->source_is_copied,
                                   .has_ordered_vectors = manifest->lists.has_ordered_vectors};
}

void bsw_manifest_as_part(const struct bsw_manifest *manifest, struct bsw_index_part *out)
{
    *out = (struct bsw_index_part){.num_shards = manifest->num_shards,
                                   .build_digest = manifest->build_digest,
                                   .source_file_bytes = manifest->source_file_bytes,
                                   .source_rows = manifest->source_rows,
                                   .source_shift = manifest->source_shift,
                                   .source_is_copied = manifest->source_is_copied,
                                   .has_ordered_vectors = manifest->lists.has_ordered_vectors,
                                   .ids_digest = manifest->ids_digest,
                                   .tags_digest = manifest->tags_digest};
    memcpy(out->source_path, manifest->source_path, sizeof out->source_path);
}

uint64_t bsw_manifest_live_rows(const struct bsw_manifest *manifest)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++)
        rows += bsw_shard_live_rows(&manifest->shards[i]);
    return rows;
}

enum bsw_status bsw_manifest_shard_path(char out[BSW_PATH_BYTES],
                                        const struct bsw_manifest *manifest, const char *folder,
                                        uint32_t shard, const char *suffix, struct bsw_error *err)
{
    const struct bsw_shard_home home = bsw_manifest_home(manifest, shard);
    char part[BSW_PATH_BYTES];
    if (home.folder[0] == '\0')
        return bsw_shard_path(out, folder, home.shard, home.num_shards, suffix, err);
    BSW_TRY(bsw_path_join(part, folder, home.folder, err));
    return bsw_shard_path(out, part, home.shard, home.num_shards, suffix, err);
}

// ---- packing ----

struct bsw_part_messages {
    Bsw__Part *parts;
    Bsw__Source *sources;
    Bsw__Part **pointers;
};

void bsw_parts_free(struct bsw_part_messages **messages)
{
    if (!*messages) return;
    bsw_free(&(*messages)->parts);
    bsw_free(&(*messages)->sources);
    bsw_free(&(*messages)->pointers);
    bsw_free(messages);
}

static void fill(const struct bsw_manifest *manifest, const struct bsw_index_part *part,
                 Bsw__Part *message, Bsw__Source *source)
{
    bsw__part__init(message);
    bsw__source__init(source);
    message->folder = (char *)part->folder;
    message->shards = part->num_shards;
    message->build_digest = part->build_digest;
    message->ordered = part->has_ordered_vectors;
    message->ids_digest = part->ids_digest;
    message->tags_digest = part->tags_digest;
    message->source = source;
    source->path = (char *)part->source_path;
    source->type = (char *)bsw_vector_type_name(manifest->source_type);
    source->file_bytes = part->source_file_bytes;
    source->num_rows = part->source_rows;
    source->copied = part->source_is_copied;
    source->shift = part->source_shift;
}

enum bsw_status bsw_parts_fill(const struct bsw_manifest *manifest, Bsw__Manifest *message,
                               struct bsw_part_messages **out, struct bsw_error *err)
{
    size_t count = manifest->num_parts;
    message->generation = manifest->generation;
    message->ids_digest = manifest->ids_digest;
    message->tags_digest = manifest->tags_digest;
    if (count == 0) return BSW_OK;
    BSW_TRY(bsw_allocate_zero(out, 1, sizeof **out, "manifest", err));
    struct bsw_part_messages *m = *out;
    BSW_TRY(bsw_allocate(&m->parts, count, sizeof *m->parts, "manifest", err));
    BSW_TRY(bsw_allocate(&m->sources, count, sizeof *m->sources, "manifest", err));
    BSW_TRY(bsw_allocate(&m->pointers, count, sizeof(void *), "manifest", err));
    for (size_t p = 0; p < count; p++) {
        fill(manifest, &manifest->parts[p], &m->parts[p], &m->sources[p]);
        m->pointers[p] = &m->parts[p];
    }
    message->n_parts = count;
    message->parts = m->pointers;
    return BSW_OK;
}

// ---- parsing ----

static enum bsw_status bad(const char *name, const char *what, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", name, what);
}

static enum bsw_status take_part(const char *name, const Bsw__Part *message,
                                 struct bsw_index_part *out, struct bsw_error *err)
{
    const Bsw__Source *source = message->source;
    if (!source || strlen(source->path) >= sizeof out->source_path)
        return bad(name, "a part has no source", err);
    if (strlen(message->folder) >= sizeof out->folder ||
        (message->folder[0] != '\0' && !bsw_index_part_is_named(message->folder, NULL)))
        return bad(name, "the folder of a part is none", err);
    *out = (struct bsw_index_part){.num_shards = message->shards,
                                   .build_digest = message->build_digest,
                                   .source_file_bytes = source->file_bytes,
                                   .source_rows = source->num_rows,
                                   .source_shift = source->shift,
                                   .source_is_copied = source->copied,
                                   .has_ordered_vectors = message->ordered,
                                   .ids_digest = message->ids_digest,
                                   .tags_digest = message->tags_digest};
    snprintf(out->folder, sizeof out->folder, "%s", message->folder);
    snprintf(out->source_path, sizeof out->source_path, "%s", source->path);
    return BSW_OK;
}

// The shards of a part are there, and their rows in its source.
static enum bsw_status check_part(const char *name, const struct bsw_manifest *manifest,
                                  const struct bsw_index_part *part, uint32_t first,
                                  struct bsw_error *err)
{
    if (part->num_shards < 1 || part->num_shards > manifest->num_shards - first)
        return bad(name, "shards of the parts do not add up", err);
    const struct bsw_shard_entry *last = &manifest->shards[first + part->num_shards - 1];
    uint64_t first_row = manifest->shards[first].first_row - part->source_shift;
    uint64_t num_rows = last->first_row + last->num_rows - manifest->shards[first].first_row;
    if (first_row > part->source_rows || num_rows > part->source_rows - first_row)
        return bad(name, "more rows than the source of a part has", err);
    if (part->has_ordered_vectors && !part->source_is_copied)
        return bad(name, "an order of rows that are not copied", err);
    return BSW_OK;
}

static enum bsw_status check_deleted(const char *name, const struct bsw_manifest *manifest,
                                     struct bsw_error *err)
{
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_shard_entry *entry = &manifest->shards[i];
        if (entry->deleted_rows > entry->num_rows - entry->dropped_rows ||
            (entry->deleted_rows > 0) != (entry->deleted_in > 0) ||
            entry->deleted_in > manifest->generation)
            return bad(name, "the deleted rows of a shard do not fit", err);
    }
    return BSW_OK;
}

enum bsw_status bsw_parts_take(const char *name, const Bsw__Manifest *message,
                               struct bsw_manifest *out, struct bsw_error *err)
{
    uint32_t next = 0;
    out->generation = message->generation;
    out->ids_digest = message->ids_digest;
    out->tags_digest = message->tags_digest;
    BSW_TRY(check_deleted(name, out, err));
    if ((message->generation > 0) != (message->n_parts > 0) || message->n_parts > out->num_shards)
        return bad(name, "number of parts", err);
    if (message->n_parts == 0) return BSW_OK;
    BSW_TRY(bsw_allocate(&out->parts, message->n_parts, sizeof *out->parts, "manifest", err));
    for (; out->num_parts < message->n_parts; out->num_parts++) {
        struct bsw_index_part *part = &out->parts[out->num_parts];
        BSW_TRY(take_part(name, message->parts[out->num_parts], part, err));
        BSW_TRY(check_part(name, out, part, next, err));
        next += part->num_shards;
    }
    return next == out->num_shards ? BSW_OK : bad(name, "shards of the parts do not add up", err);
}
