// SPDX-License-Identifier: Apache-2.0
// The streaming pass of encode: blocks of all shards, counted through, coded by all ranks into the
// temporary files of the index folder, and noted in each rank's journal. Blocks that earlier runs
// recorded are shared among the ranks, too, and only read: those that are as recorded stay.
#ifndef BITSWEEP_COORDINATOR_ENCODE_PASS_H
#define BITSWEEP_COORDINATOR_ENCODE_PASS_H

#include <stdint.h>

#include "common/device/device.h"
#include "common/files/index_manifest.h"
#include "common/files/shard_writer.h"
#include "common/net/transport.h"
#include "common/rows/vectors.h"
#include "coordinator/encode/encode_index.h"
#include "coordinator/encode/encode_lists.h"
#include "coordinator/job/encode_journal.h"
#include "shard/checks/answer_finder.h"

struct bsw_encode_pass {
    // To be set before the run, all borrowed; the rest is {0}.
    struct bsw_transport *transport;
    const struct bsw_encode_settings *settings; // its index has the temporary files in full size
    const struct bsw_manifest *manifest;
    const bsw_vectors *vectors;
    bsw_device *device;             // of this rank, or NULL
    struct bsw_encode_lists *lists; // of an index with lists, whose rows are assigned; else NULL
    struct bsw_encode_journal *journal;
    struct bsw_shard_writer *writers; // [num_shards]; those with blocks of this rank are open
    uint64_t *first_blocks;           // [num_shards + 1]
    struct bsw_shard_answers answers; // of this rank's blocks; on rank 0 in the end of all
    struct bsw_encode_block *records; // [all blocks]: of this rank's; on rank 0 in the end of all
    uint64_t *todo;                   // blocks this rank codes
    uint64_t num_todo, num_recorded, num_coded;
};

// All ranks, each with its own outcome. What was coded is durable on return, unless that failed.
// The pass stays where it is until the journal is closed.
enum bsw_status bsw_encode_pass_run(struct bsw_encode_pass *pass, struct bsw_error *err);
// All ranks, after all have run: on rank 0 records then has every block.
enum bsw_status bsw_encode_pass_gather(struct bsw_encode_pass *pass, struct bsw_error *err);
// Accepts {0}.
void bsw_encode_pass_deinit(struct bsw_encode_pass *pass);

// Rank 0's manifest to all. Afterwards ranks are to agree.
enum bsw_status bsw_manifest_share(struct bsw_transport *transport,
                                   const struct bsw_message *message, struct bsw_manifest *manifest,
                                   struct bsw_error *err);

#endif
