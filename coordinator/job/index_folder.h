// SPDX-License-Identifier: Apache-2.0
// The output folder of encode: files are written beside their final names and renamed when all are
// whole; an old index is replaced only then, and a failure leaves nothing behind.
#ifndef BITSWEEP_COORDINATOR_INDEX_FOLDER_H
#define BITSWEEP_COORDINATOR_INDEX_FOLDER_H

#include "common/base/file.h"
#include "common/files/index_manifest.h"

struct bsw_index_folder {
    const char *path; // borrowed; NULL until begun
    int lock_fd;      // of encode.lock, while is_locked
    int is_locked;
    const struct bsw_buffer *model; // bytes of the codec's model file; borrowed, or NULL
    const struct bsw_buffer *ids;   // bytes of the file of ids; borrowed, or NULL
    const struct bsw_buffer *tags;  // likewise, of tags
    int is_ours;                    // the folder was created here
    int has_files;                  // temporary files may exist
    int is_renaming;                // the old index is gone, some files may have their final names
    int is_committed;
};

// Whether encode writes, replaces or removes files of this name in its folder.
int bsw_index_folder_makes(const char *name);

// Creates the folder; a file in its place is an error. One run at a time has the folder, by a lock
// on encode.lock in it, which goes with the process: another is BSW_ERROR_USAGE. What is in the
// folder is looked at after this: before it, a run may come or end in between.
enum bsw_status bsw_index_folder_begin(struct bsw_index_folder *folder, const char *path,
                                       struct bsw_error *err);

// After begin. An index in the folder, or shard files with neither a manifest nor a plan, is
// BSW_ERROR_USAGE unless force.
enum bsw_status bsw_index_folder_check(const struct bsw_index_folder *folder, int force,
                                       struct bsw_error *err);

// Removes what killed runs left of parts that are written whole, and only that. After begin.
enum bsw_status bsw_index_folder_clear(struct bsw_index_folder *folder, struct bsw_error *err);

// Creates the temporary files of all shards in their full size. is_kept: those that another run
// left are gone on with, else they are removed, of whatever shards they are.
enum bsw_status bsw_index_folder_create_files(struct bsw_index_folder *folder,
                                              const struct bsw_manifest *manifest, int is_kept,
                                              struct bsw_error *err);

// Removes an old index, writes the model if there is one, renames the new files, writes the
// manifest last, and reads it back: BSW_ERROR_BAD_DATA, and no manifest, where it is not as written
// or a shard file does not fit it.
enum bsw_status bsw_index_folder_commit(struct bsw_index_folder *folder,
                                        const struct bsw_manifest *manifest, struct bsw_error *err);

// Another run may have the folder. Accepts one that is not begun, or released.
void bsw_index_folder_release(struct bsw_index_folder *folder);

// Removes what was written, releases, removes the folder if it was created here. Does nothing after
// a commit.
void bsw_index_folder_abandon(struct bsw_index_folder *folder, const struct bsw_manifest *manifest);

#endif
