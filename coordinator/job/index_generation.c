// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/index_generation.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/files/deleted_rows.h"
#include "common/files/row_ids.h"
#include "common/files/row_tags.h"
#include "common/files/shard_writer.h"
#include "coordinator/job/encode_journal.h"
#include "coordinator/job/same_input.h"
#include "shard/codecs/codec.h"

#define MOST_MANIFEST_BYTES ((uint64_t)4 << 30)

// ---- names ----

// "manifest-00002.pb": an older generation.
static int is_older(const char *name, uint64_t *generation)
{
    unsigned long long found;
    char again[64];
    if (sscanf(name, "manifest-%19llu.pb", &found) != 1) return 0;
    snprintf(again, sizeof again, "manifest-%05llu.pb", found);
    *generation = found;
    return strcmp(name, again) == 0;
}

static int is_temporary(const char *name)
{
    return strstr(name, ".tmp.") &&
           (strncmp(name, "manifest", 8) == 0 || strncmp(name, "deleted-", 8) == 0);
}

int bsw_generation_makes(const char *name)
{
    uint64_t generation;
    return is_older(name, &generation) || is_temporary(name) ||
           bsw_deleted_rows_are_named(name, NULL, NULL) || bsw_index_part_is_named(name, NULL);
}

// ---- removing ----

static enum bsw_status visit_all(const char *path,
                                 enum bsw_status (*visit)(void *context, const char *folder,
                                                          const char *name, struct bsw_error *err),
                                 void *context, struct bsw_error *err)
{
    DIR *handle = opendir(path);
    if (!handle && errno == ENOENT) return BSW_OK;
    if (!handle) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot list: %s", path, strerror(errno));
    enum bsw_status status = BSW_OK;
    for (struct dirent *entry; status == BSW_OK && (entry = readdir(handle));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = visit(context, path, entry->d_name, err);
    closedir(handle);
    return status;
}

static enum bsw_status remove_file(void *context, const char *folder, const char *name,
                                   struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    (void)context;
    BSW_TRY(bsw_path_join(path, folder, name, err));
    if (unlink(path) == 0 || errno == ENOENT) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "%s: cannot remove: %s", path, strerror(errno));
}

// Its manifest first: without it the folder is no part, whatever else a crash leaves.
static enum bsw_status remove_part(const char *path, struct bsw_error *err)
{
    if (!bsw_path_is_folder(path)) return BSW_OK;
    BSW_TRY(remove_file(NULL, path, "manifest.pb", err));
    BSW_TRY(visit_all(path, remove_file, NULL, err));
    if (rmdir(path) == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "%s: cannot remove: %s", path, strerror(errno));
}

static enum bsw_status remove_made(void *context, const char *folder, const char *name,
                                   struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    if (!bsw_generation_makes(name)) return BSW_OK;
    BSW_TRY(bsw_path_join(path, folder, name, err));
    return bsw_index_part_is_named(name, NULL) ? remove_part(path, err)
                                               : remove_file(context, folder, name, err);
}

enum bsw_status bsw_generations_remove(const char *folder, struct bsw_error *err)
{
    return visit_all(folder, remove_made, NULL, err);
}

// ---- what generations that are kept name ----

#define MOST_KEPT 64

struct kept {
    uint64_t newest, oldest;            // generations
    struct bsw_manifest all[MOST_KEPT]; // the newest first
    size_t count;
};

static int names_part(const struct kept *kept, const char *folder)
{
    for (size_t i = 0; i < kept->count; i++) {
        const struct bsw_manifest *manifest = &kept->all[i];
        if (manifest->num_parts == 0 && folder[0] == '\0') return 1;
        for (uint32_t p = 0; p < manifest->num_parts; p++)
            if (strcmp(manifest->parts[p].folder, folder) == 0) return 1;
    }
    return 0;
}

static int names_deleted(const struct kept *kept, uint64_t generation, uint32_t shard)
{
    for (size_t i = 0; i < kept->count; i++) {
        const struct bsw_manifest *manifest = &kept->all[i];
        if (shard < manifest->num_shards && manifest->shards[shard].deleted_rows > 0 &&
            manifest->shards[shard].deleted_in == generation)
            return 1;
    }
    return 0;
}

static int is_named(const struct kept *kept, const char *name)
{
    uint64_t generation;
    uint32_t shard;
    if (is_older(name, &generation)) return generation < kept->newest && generation >= kept->oldest;
    if (bsw_deleted_rows_are_named(name, &generation, &shard))
        return names_deleted(kept, generation, shard);
    if (bsw_index_part_is_named(name, NULL)) return names_part(kept, name);
    if (bsw_shard_file_is_named(name, 0) || strcmp(name, BSW_ROW_IDS_NAME) == 0 ||
        strcmp(name, BSW_ROW_TAGS_NAME) == 0)
        return names_part(kept, "");
    return !is_temporary(name);
}

static enum bsw_status remove_unnamed(void *context, const char *folder, const char *name,
                                      struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    if (is_named(context, name)) return BSW_OK;
    BSW_TRY(bsw_path_join(path, folder, name, err));
    return bsw_path_is_folder(path) ? remove_part(path, err) : remove_file(NULL, folder, name, err);
}

static enum bsw_status older_path(const char *index, uint64_t generation, char out[BSW_PATH_BYTES],
                                  struct bsw_error *err)
{
    return bsw_path_format(out, err, "%s/manifest-%05llu.pb", index,
                           (unsigned long long)generation);
}

static enum bsw_status read_older(const char *index, uint64_t generation, struct bsw_manifest *out,
                                  struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_buffer bytes = {0};
    BSW_TRY(older_path(index, generation, path, err));
    enum bsw_status status = bsw_file_read_all(path, MOST_MANIFEST_BYTES, &bytes, err);
    if (status == BSW_OK) status = bsw_manifest_parse(path, bytes.data, bytes.bytes, out, err);
    bsw_buffer_deinit(&bytes);
    return status;
}

// The manifest that was written, and older ones as far as they are there.
static void read_kept(const char *index, uint64_t newest, uint64_t keep, struct kept *kept)
{
    if (keep > MOST_KEPT - 1) keep = MOST_KEPT - 1;
    kept->newest = newest;
    kept->oldest = newest > keep ? newest - keep : 0;
    kept->count = bsw_manifest_read(index, &kept->all[0], NULL) == BSW_OK;
    for (uint64_t g = newest; kept->count > 0 && g-- > kept->oldest;)
        kept->count += read_older(index, g, &kept->all[kept->count], NULL) == BSW_OK;
}

// What cannot be removed now the next change removes.
static void clean(const char *index, uint64_t newest, uint64_t keep)
{
    struct kept *kept;
    if (bsw_allocate_zero(&kept, 1, sizeof *kept, "generations", NULL) != BSW_OK) return;
    read_kept(index, newest, keep, kept);
    if (kept->count > 0) visit_all(index, remove_unnamed, kept, NULL);
    for (size_t i = 0; i < kept->count; i++) bsw_manifest_deinit(&kept->all[i]);
    bsw_free(&kept);
}

// ---- a change ----

static enum bsw_status lock(struct bsw_generation *g, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_join(path, g->index, "manifest.pb", err));
    if (!bsw_file_exists(path))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: is no index: no manifest.pb in it", g->index);
    return bsw_index_folder_begin(&g->folder, g->index, err);
}

enum bsw_status bsw_generation_begin(struct bsw_generation *g, const char *index,
                                     struct bsw_transport *transport, struct bsw_error *err)
{
    *g = (struct bsw_generation){.index = index, .transport = transport};
    if (!index) return bsw_fail(err, BSW_ERROR_USAGE, "--index is needed");
    enum bsw_status status = transport->rank == 0 ? lock(g, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_transport_agree(transport, bsw_manifest_read(index, &g->manifest, err), err));
    g->number = g->manifest.generation;
    return bsw_same_input_agree(transport, g->manifest.build_digest, index, err);
}

void bsw_generation_end(struct bsw_generation *g)
{
    bsw_index_folder_release(&g->folder);
    bsw_manifest_deinit(&g->manifest);
}

enum bsw_status bsw_generation_part_path(const struct bsw_generation *g,
                                         char name[BSW_PART_NAME_BYTES], char path[BSW_PATH_BYTES],
                                         struct bsw_error *err)
{
    // Numbers of generations: no part has had it before, and no other change gets it.
    snprintf(name, BSW_PART_NAME_BYTES, "part-%05u", (unsigned)g->number + 1);
    return bsw_path_join(path, g->index, name, err);
}

enum bsw_status bsw_generation_prepare_part(const char *path, int is_resumed, struct bsw_error *err)
{
    if (is_resumed && bsw_encode_plan_exists(path)) return BSW_OK;
    return remove_part(path, err);
}

static void forget_shards(struct bsw_manifest *manifest)
{
    bsw_free(&manifest->shards);
    bsw_free(&manifest->parts);
    bsw_free(&manifest->known);
    manifest->num_shards = manifest->num_parts = manifest->num_known = 0;
    manifest->num_rows = manifest->dropped_rows = manifest->source_digest = 0;
}

enum bsw_status bsw_generation_advance(struct bsw_manifest *manifest, int keeps_shards,
                                       struct bsw_error *err)
{
    manifest->generation++;
    if (!keeps_shards) forget_shards(manifest);
    if (!keeps_shards || manifest->num_parts > 0) return BSW_OK;
    BSW_TRY(bsw_allocate(&manifest->parts, 1, sizeof *manifest->parts, "parts", err));
    bsw_manifest_as_part(manifest, &manifest->parts[0]);
    manifest->num_parts = 1;
    return BSW_OK;
}

static enum bsw_status add_known(struct bsw_manifest *manifest, const struct bsw_manifest *made,
                                 uint32_t first, struct bsw_error *err)
{
    uint32_t num = manifest->num_known > made->num_known ? manifest->num_known : made->num_known;
    uint64_t *known;
    size_t total = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_manifest *from = i < first ? manifest : made;
        if (from->num_known < num) manifest->shards[i].num_known_rows = 0;
        total += (size_t)num * manifest->shards[i].num_known_rows;
    }
    BSW_TRY(bsw_allocate(&known, total, sizeof *known, "known answers", err));
    total = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        struct bsw_shard_entry *entry = &manifest->shards[i];
        size_t count = (size_t)num * entry->num_known_rows;
        const struct bsw_manifest *from = i < first ? manifest : made;
        if (count > 0)
            memcpy(known + total, from->known + entry->first_known, count * sizeof *known);
        entry->first_known = total;
        total += count;
    }
    bsw_free(&manifest->known);
    manifest->known = known;
    manifest->num_known = num;
    return BSW_OK;
}

// The members that are those of the first part.
static void take_source(struct bsw_manifest *manifest, const struct bsw_manifest *made)
{
    manifest->first_row = made->first_row;
    memcpy(manifest->source_path, made->source_path, sizeof manifest->source_path);
    manifest->source_file_bytes = made->source_file_bytes;
    manifest->source_rows = made->source_rows;
    manifest->source_shift = made->source_shift;
    manifest->source_is_copied = made->source_is_copied;
    manifest->lists.has_ordered_vectors = made->lists.has_ordered_vectors;
    manifest->ids_digest = made->ids_digest;
    manifest->tags_digest = made->tags_digest;
}

enum bsw_status bsw_generation_add_part(struct bsw_manifest *manifest, const char *name,
                                        const struct bsw_manifest *made, struct bsw_error *err)
{
    uint32_t first = manifest->num_shards, parts = manifest->num_parts;
    struct bsw_shard_entry *shards;
    struct bsw_index_part *all;
    if ((uint64_t)first + made->num_shards > BSW_MAX_SHARDS)
        return bsw_fail(err, BSW_ERROR_USAGE, "an index has at most %d shards: compact it first",
                        BSW_MAX_SHARDS);
    BSW_TRY(bsw_allocate(&shards, first + made->num_shards, sizeof *shards, "shards", err));
    if (first > 0) memcpy(shards, manifest->shards, first * sizeof *shards);
    memcpy(shards + first, made->shards, made->num_shards * sizeof *shards);
    bsw_free(&manifest->shards);
    manifest->shards = shards;
    manifest->num_shards += made->num_shards;
    BSW_TRY(bsw_allocate(&all, parts + 1, sizeof *all, "parts", err));
    if (parts > 0) memcpy(all, manifest->parts, parts * sizeof *all);
    bsw_free(&manifest->parts);
    manifest->parts = all;
    manifest->num_parts++;
    bsw_manifest_as_part(made, &all[parts]);
    if (parts == 0) take_source(manifest, made);
    snprintf(all[parts].folder, sizeof all[parts].folder, "%s", name);
    manifest->num_rows += made->num_rows;
    manifest->dropped_rows += made->dropped_rows;
    manifest->source_digest += made->source_digest;
    return add_known(manifest, made, first, err);
}

// A copy under its number, so that searches that read it find its files for a while.
static enum bsw_status keep_older(const struct bsw_generation *g, struct bsw_error *err)
{
    char from[BSW_PATH_BYTES], to[BSW_PATH_BYTES];
    struct bsw_buffer bytes = {0};
    BSW_TRY(bsw_path_join(from, g->index, "manifest.pb", err));
    BSW_TRY(older_path(g->index, g->number, to, err));
    enum bsw_status status = bsw_file_read_all(from, MOST_MANIFEST_BYTES, &bytes, err);
    if (status == BSW_OK) status = bsw_file_write_atomic(to, bytes.data, bytes.bytes, err);
    bsw_buffer_deinit(&bytes);
    return status;
}

enum bsw_status bsw_generation_commit(struct bsw_generation *g, uint64_t keep,
                                      struct bsw_error *err)
{
    struct bsw_manifest *next = &g->manifest;
    BSW_TRY(bsw_manifest_build_digest(next, &next->build_digest, err));
    if (keep > 0) BSW_TRY(keep_older(g, err));
    BSW_TRY(bsw_manifest_write(next, g->index, err));
    clean(g->index, next->generation, keep);
    return BSW_OK;
}

int bsw_generation_is_other(const char *index, const struct bsw_manifest *manifest)
{
    struct bsw_manifest now;
    if (!index || bsw_manifest_read(index, &now, NULL) != BSW_OK) return 0;
    int is_other = now.build_digest != manifest->build_digest;
    bsw_manifest_deinit(&now);
    return is_other;
}

enum bsw_status bsw_generation_explain(const char *index, const struct bsw_manifest *manifest,
                                       enum bsw_status status, struct bsw_error *err)
{
    struct bsw_manifest now;
    if (status == BSW_OK || !index || bsw_manifest_read(index, &now, NULL) != BSW_OK) return status;
    uint64_t generation = now.generation, is_other = now.build_digest != manifest->build_digest;
    bsw_manifest_deinit(&now);
    if (!is_other) return status;
    return bsw_prefix(
        err, status,
        "%s was of generation %llu when this began and is of %llu now, begin again: ", index,
        (unsigned long long)manifest->generation, (unsigned long long)generation);
}
