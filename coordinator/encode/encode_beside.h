// SPDX-License-Identifier: Apache-2.0
// What rows have beside their vectors, ids and tags: from settings to files of the index, whose
// digests the manifest has.
#ifndef BITSWEEP_COORDINATOR_ENCODE_BESIDE_H
#define BITSWEEP_COORDINATOR_ENCODE_BESIDE_H

#include "coordinator/encode/encode_index.h"
#include "coordinator/job/index_folder.h"

// {0} is a valid empty one; it stays where it is as long as the folder is used.
struct bsw_encode_beside {
    struct bsw_buffer ids, tags; // bytes of their files
};

// Rank 0, once the manifest has the number of rows.
enum bsw_status bsw_encode_beside_take(const struct bsw_encode_settings *settings,
                                       struct bsw_manifest *manifest,
                                       struct bsw_index_folder *folder,
                                       struct bsw_encode_beside *out, struct bsw_error *err);
void bsw_encode_beside_deinit(struct bsw_encode_beside *beside);

#endif
