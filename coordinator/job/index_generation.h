// SPDX-License-Identifier: Apache-2.0
// Changes of an index: each makes a new generation of its manifest, which is written whole beside
// the old one and renamed into its place. What the old one names stays as it is: a search opens the
// files of the manifest that it read, and a change that is killed leaves the old generation or the
// new one, and perhaps files that neither names, which the next change removes.
//
//   manifest.pb            the generation that searches open
//   manifest-00002.pb      an older one, whose files are kept, too
//   part-00003/            shards of an append or a compact, made as encode makes an index
//   deleted-00003-00012.bits  common/files/deleted_rows.h
//   encode.lock            one run at a time changes the folder
#ifndef BITSWEEP_COORDINATOR_INDEX_GENERATION_H
#define BITSWEEP_COORDINATOR_INDEX_GENERATION_H

#include "common/files/index_manifest.h"
#include "common/net/transport.h"
#include "coordinator/job/index_folder.h"

// A change under way.
struct bsw_generation {
    const char *index; // borrowed
    struct bsw_transport *transport;
    struct bsw_index_folder folder; // rank 0
    uint64_t number;                // of the generation before
    struct bsw_manifest manifest;   // that one's, then the one that comes
};

// Rank 0 locks the folder, then all ranks read the manifest. Another writer is BSW_ERROR_USAGE. All
// ranks; all return alike. bsw_generation_end also after a failure.
enum bsw_status bsw_generation_begin(struct bsw_generation *generation, const char *index,
                                     struct bsw_transport *transport, struct bsw_error *err);
void bsw_generation_end(struct bsw_generation *generation);

// The folder of the part that this change makes, inside the index; path: the same with the index.
// What is there of a run that was killed goes, unless is_resumed and it can be gone on with. Rank
// 0.
enum bsw_status bsw_generation_prepare_part(const char *path, int is_resumed,
                                            struct bsw_error *err);
enum bsw_status bsw_generation_part_path(const struct bsw_generation *generation,
                                         char name[BSW_PART_NAME_BYTES], char path[BSW_PATH_BYTES],
                                         struct bsw_error *err);

// Makes the manifest the next generation of itself, with parts; its digest is not yet right.
// keeps_shards: else it has none, and gets a part.
enum bsw_status bsw_generation_advance(struct bsw_manifest *manifest, int keeps_shards,
                                       struct bsw_error *err);
// Adds shards of a part to a manifest that has advanced. made: as encode wrote it.
enum bsw_status bsw_generation_add_part(struct bsw_manifest *manifest, const char *name,
                                        const struct bsw_manifest *made, struct bsw_error *err);

// Rank 0: writes the manifest, which becomes that of all searches that begin. `keep` older
// generations stay, whatever names only others goes.
enum bsw_status bsw_generation_commit(struct bsw_generation *generation, uint64_t keep,
                                      struct bsw_error *err);

// Removes all that changes have made in the folder of an index whose manifest is gone.
enum bsw_status bsw_generations_remove(const char *folder, struct bsw_error *err);

// Whether a file of an index folder is made by changes.
int bsw_generation_makes(const char *name);

// Whether the index in the folder is another than the manifest's by now.
int bsw_generation_is_other(const char *index, const struct bsw_manifest *manifest);

// After `status`, why files of the manifest could not be read: prefixes that the index in the
// folder is of another generation meanwhile.
enum bsw_status bsw_generation_explain(const char *index, const struct bsw_manifest *manifest,
                                       enum bsw_status status, struct bsw_error *err);

#endif
