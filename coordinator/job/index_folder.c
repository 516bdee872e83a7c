// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/index_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/files/row_ids.h"
#include "common/files/row_tags.h"
#include "common/files/shard_writer.h"
#include "coordinator/job/encode_journal.h"
#include "coordinator/job/index_generation.h"
#include "shard/codecs/codec.h"

#define LOCK_NAME "encode.lock"

// PART.tmp.PID of a part that is written whole (bsw_file_write_atomic).
static int is_temporary_part(const char *name)
{
    static const char *const parts[] = {"encode", "manifest.pb", BSW_INDEX_MODEL_NAME,
                                        BSW_ROW_IDS_NAME, BSW_ROW_TAGS_NAME};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strncmp(name, parts[i], strlen(parts[i])) == 0 && strstr(name, ".tmp.")) return 1;
    }
    return 0;
}

int bsw_index_folder_makes(const char *name)
{
    static const char *const names[] = {"manifest.pb", BSW_INDEX_MODEL_NAME, BSW_ROW_IDS_NAME,
                                        BSW_ROW_TAGS_NAME, LOCK_NAME};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) return 1;
    }
    return bsw_shard_file_is_named(name, 0) || bsw_shard_file_is_named(name, 1) ||
           is_temporary_part(name) || bsw_encode_journal_makes(name) || bsw_generation_makes(name);
}

enum file_kind { KIND_SHARDS, KIND_PARTS, KIND_UNFINISHED };

// What an encode that was killed left behind is KIND_UNFINISHED; the parts among that are of no use
// to one that resumes it.
static int is_of_kind(const char *name, enum file_kind kind)
{
    if (kind == KIND_SHARDS) return bsw_shard_file_is_named(name, 0);
    return is_temporary_part(name) || (kind == KIND_UNFINISHED && bsw_shard_file_is_named(name, 1));
}

// Calls `visit` for every file of the kind.
static enum bsw_status for_each_file(const char *path, enum file_kind kind,
                                     enum bsw_status (*visit)(const char *folder, const char *name,
                                                              struct bsw_error *err),
                                     struct bsw_error *err)
{
    DIR *handle = opendir(path);
    if (!handle) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot list: %s", path, strerror(errno));
    enum bsw_status status = BSW_OK;
    for (struct dirent *entry; status == BSW_OK && (entry = readdir(handle));)
        if (is_of_kind(entry->d_name, kind)) status = visit(path, entry->d_name, err);
    closedir(handle);
    return status;
}

static enum bsw_status remove_file(const char *folder, const char *name, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_join(path, folder, name, err));
    if (unlink(path) == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "%s: cannot remove: %s", path, strerror(errno));
}

static enum bsw_status remove_files(const char *path, enum file_kind kind, struct bsw_error *err)
{
    return for_each_file(path, kind, remove_file, err);
}

enum bsw_status bsw_index_folder_clear(struct bsw_index_folder *folder, struct bsw_error *err)
{
    return remove_files(folder->path, KIND_PARTS, err);
}

enum bsw_status bsw_index_folder_create_files(struct bsw_index_folder *folder,
                                              const struct bsw_manifest *manifest, int is_kept,
                                              struct bsw_error *err)
{
    BSW_TRY(remove_files(folder->path, is_kept ? KIND_PARTS : KIND_UNFINISHED, err));
    folder->has_files = 1;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        struct bsw_shard_writer writer;
        bsw_shard_writer_init(&writer, manifest, folder->path, i);
        BSW_TRY(bsw_shard_writer_create(&writer, err));
    }
    return BSW_OK;
}

static enum bsw_status remove_manifest(const char *path, int *was_there, struct bsw_error *err)
{
    char name[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_join(name, path, "manifest.pb", err));
    int is_removed = unlink(name) == 0;
    if (!is_removed && errno != ENOENT)
        return bsw_fail(err, BSW_ERROR_IO, "%s: cannot remove: %s", name, strerror(errno));
    if (was_there) *was_there = is_removed;
    return BSW_OK;
}

// The manifest goes first: without it the folder is no index, whatever else a crash leaves.
static enum bsw_status remove_old_index(const char *path, struct bsw_error *err)
{
    char name[BSW_PATH_BYTES];
    int had_manifest = 0;
    BSW_TRY(remove_manifest(path, &had_manifest, err));
    BSW_TRY(bsw_path_join(name, path, BSW_INDEX_MODEL_NAME, err));
    // Without a manifest it is no part of an index, but a model that somebody keeps there.
    if (had_manifest && unlink(name) != 0 && errno != ENOENT)
        return bsw_fail(err, BSW_ERROR_IO, "%s: cannot remove: %s", name, strerror(errno));
    BSW_TRY(bsw_path_join(name, path, BSW_ROW_IDS_NAME, err));
    if (had_manifest) BSW_TRY(bsw_file_remove(name, err));
    BSW_TRY(bsw_path_join(name, path, BSW_ROW_TAGS_NAME, err));
    if (had_manifest) BSW_TRY(bsw_file_remove(name, err));
    if (had_manifest) BSW_TRY(bsw_generations_remove(path, err));
    return remove_files(path, KIND_SHARDS, err);
}

static enum bsw_status lock(struct bsw_index_folder *folder, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_join(path, folder->path, LOCK_NAME, err));
    enum bsw_status status = bsw_file_open_exclusive(path, &folder->lock_fd, err);
    if (status == BSW_ERROR_USAGE)
        return bsw_fail(err, status, "%s: another run is writing it: wait until it ends",
                        folder->path);
    BSW_TRY(status);
    bsw_temporary_note(path);
    folder->is_locked = 1;
    return BSW_OK;
}

enum bsw_status bsw_index_folder_begin(struct bsw_index_folder *folder, const char *path,
                                       struct bsw_error *err)
{
    int existed = bsw_file_exists(path);
    if (existed && !bsw_path_is_folder(path))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: exists and is no folder", path);
    if (!existed) bsw_temporary_note(path); // until there is something in it
    folder->path = path;
    folder->is_ours = !existed; // also one that is made, but not durably
    BSW_TRY(bsw_folder_create(path, err));
    return lock(folder, err);
}

// Shard files whose manifest is gone, copies of raw rows perhaps, would be removed with the index
// that is replaced.
static enum bsw_status refuse_shard(const char *folder, const char *name, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: has files of an index without a manifest, such as %s; --force removes "
                    "them",
                    folder, name);
}

enum bsw_status bsw_index_folder_check(const struct bsw_index_folder *folder, int force,
                                       struct bsw_error *err)
{
    char manifest[BSW_PATH_BYTES];
    if (force) return BSW_OK;
    BSW_TRY(bsw_path_join(manifest, folder->path, "manifest.pb", err));
    if (!bsw_file_exists(manifest)) {
        // Beside a plan they are those of a run that was killed as it named them.
        return bsw_encode_plan_exists(folder->path)
                   ? BSW_OK
                   : for_each_file(folder->path, KIND_SHARDS, refuse_shard, err);
    }
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: holds an index already; --force replaces it",
                    folder->path);
}

static enum bsw_status write_file(const char *folder, const char *name,
                                  const struct bsw_buffer *bytes, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    if (!bytes) return BSW_OK;
    BSW_TRY(bsw_path_join(path, folder, name, err));
    return bsw_file_write_atomic(path, bytes->data, bytes->bytes, err);
}

static enum bsw_status read_manifest(const char *folder, const struct bsw_manifest *written,
                                     struct bsw_manifest *out, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_buffer expected = {0}, found = {0};
    BSW_TRY(bsw_path_join(path, folder, "manifest.pb", err));
    enum bsw_status status = bsw_manifest_pack(written, &expected, err);
    if (status == BSW_OK) status = bsw_file_read_all(path, expected.bytes, &found, err);
    if (status == BSW_OK &&
        (found.bytes != expected.bytes || memcmp(found.data, expected.data, expected.bytes) != 0))
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: is not as it was written", path);
    if (status == BSW_OK) status = bsw_manifest_parse(path, found.data, found.bytes, out, err);
    bsw_buffer_deinit(&expected);
    bsw_buffer_deinit(&found);
    return status;
}

static enum bsw_status open_shard(const struct bsw_manifest *manifest, const char *folder,
                                  uint32_t shard, struct bsw_error *err)
{
    struct bsw_shard_file file;
    char path[BSW_PATH_BYTES];
    int fd;
    BSW_TRY(bsw_shard_file_open(manifest, folder, shard, &file, err));
    bsw_shard_file_close(&file);
    if (!manifest->source_is_copied) return BSW_OK;
    BSW_TRY(bsw_vectors_file_open(manifest, folder, shard, &fd, path, err));
    bsw_file_close(&fd);
    return BSW_OK;
}

// What a search will open.
static enum bsw_status read_back(const char *folder, const struct bsw_manifest *written,
                                 struct bsw_error *err)
{
    struct bsw_manifest manifest;
    BSW_TRY(read_manifest(folder, written, &manifest, err));
    enum bsw_status status = BSW_OK;
    for (uint32_t i = 0; i < manifest.num_shards && status == BSW_OK; i++)
        status = open_shard(&manifest, folder, i, err);
    bsw_manifest_deinit(&manifest);
    return status;
}

enum bsw_status bsw_index_folder_commit(struct bsw_index_folder *folder,
                                        const struct bsw_manifest *manifest, struct bsw_error *err)
{
    folder->is_renaming = 1;
    BSW_TRY(remove_old_index(folder->path, err));
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        struct bsw_shard_writer writer;
        bsw_shard_writer_init(&writer, manifest, folder->path, i);
        BSW_TRY(bsw_shard_writer_name(&writer, err));
    }
    BSW_TRY(write_file(folder->path, BSW_INDEX_MODEL_NAME, folder->model, err));
    BSW_TRY(write_file(folder->path, BSW_ROW_IDS_NAME, folder->ids, err));
    BSW_TRY(write_file(folder->path, BSW_ROW_TAGS_NAME, folder->tags, err));
    BSW_TRY(bsw_manifest_write(manifest, folder->path, err));
    enum bsw_status status = read_back(folder->path, manifest, err);
    if (status != BSW_OK) remove_manifest(folder->path, NULL, NULL);
    folder->is_committed = status == BSW_OK;
    return status;
}

void bsw_index_folder_release(struct bsw_index_folder *folder)
{
    char path[BSW_PATH_BYTES];
    if (!folder->is_locked) return;
    if (bsw_path_join(path, folder->path, LOCK_NAME, NULL) == BSW_OK) {
        unlink(path); // while it is locked: nobody else's
        bsw_temporary_forget(path);
    }
    bsw_file_close(&folder->lock_fd);
    folder->is_locked = 0;
}

static void remove_written(const struct bsw_index_folder *folder, const char *name,
                           const struct bsw_buffer *bytes)
{
    char path[BSW_PATH_BYTES];
    if (folder->is_renaming && bytes && bsw_path_join(path, folder->path, name, NULL) == BSW_OK)
        unlink(path);
}

void bsw_index_folder_abandon(struct bsw_index_folder *folder, const struct bsw_manifest *manifest)
{
    if (!folder->path || folder->is_committed) return;
    for (uint32_t i = 0; folder->has_files && i < manifest->num_shards; i++) {
        struct bsw_shard_writer writer;
        bsw_shard_writer_init(&writer, manifest, folder->path, i);
        bsw_shard_writer_remove(&writer);
    }
    if (folder->is_renaming) remove_old_index(folder->path, NULL);
    remove_written(folder, BSW_INDEX_MODEL_NAME, folder->model);
    remove_written(folder, BSW_ROW_IDS_NAME, folder->ids);
    remove_written(folder, BSW_ROW_TAGS_NAME, folder->tags);
    bsw_index_folder_release(folder);
    if (folder->is_ours) rmdir(folder->path);
}
