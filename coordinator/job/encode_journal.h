// SPDX-License-Identifier: Apache-2.0
// What an encode that is stopped or killed leaves for one that resumes it, in the index folder:
//   encode.plan           common/job/journal.h of rank 0, there before the first block is coded.
//                         Fields: input and options. One record: the manifest, trained and not
//                         yet with digests, so that nothing is trained again
//   encode-00003.journal  of each rank, once it has committed: a record for each of its blocks.
//                         Field: the run id of the plan, so that none of another run is taken
//   encode.lists          shard/lists/lloyd_rounds.h of rank 0, of the same fields, from when
//                         centroids are trained until the plan has them
//   shard-*.tmp           the shard files
// and beside an index that is whole, until it has the table of recalls it was asked for:
//   encode.table          a journal of the plan's fields and one more: what the table is made of
// A rank's journal says what that rank has made durable, whatever host it is on. Who resumes may be
// any number of ranks: they share the recorded blocks to check their bytes, and the others to code.
#ifndef BITSWEEP_COORDINATOR_ENCODE_JOURNAL_H
#define BITSWEEP_COORDINATOR_ENCODE_JOURNAL_H

#include <stdint.h>

#include "common/base/memory.h"
#include "common/files/index_manifest.h"
#include "common/files/shard_writer.h"
#include "common/job/journal.h"
#include "common/net/transport.h"
#include "shard/lists/lloyd_rounds.h"

// One block of all shards' blocks, counted through. Also a record, and what ranks send to rank 0.
struct bsw_encode_block {
    uint64_t block;
    uint64_t digest;        // XXH3 of its bytes
    uint64_t source_digest; // sum of bsw_row_digest over its rows
    uint64_t dropped_rows;
};

struct bsw_encode_journal {
    const char *folder; // borrowed; NULL: not open
    int rank;
    uint64_t run_id; // of the plan
    int is_resumed;
    int has_more;                // a table is to follow: a stop is then resumed, too
    bsw_journal *plan;           // rank 0
    bsw_training_journal *lists; // rank 0, while lists are trained; else NULL
    bsw_journal *blocks;         // this rank's
    struct bsw_buffer manifest;  // rank 0: packed, of the plan; empty: none yet
    struct bsw_buffer recorded;  // struct bsw_encode_block of all ranks, by block; maybe some twice
};

// Whether a file of this name in an index folder is the plan or a journal.
int bsw_encode_journal_makes(const char *name);

// Rank 0; the folder exists. BSW_ERROR_USAGE where an earlier run has left there what a run that
// begins anew would lose: blocks, lists that are trained or half trained, or an index that only
// lacks its table. The rest of a plan is made again in seconds.
enum bsw_status bsw_encode_refuse_loss(const char *folder, struct bsw_error *err);

// Rank 0; the folder exists. Not is_resumed: removes what is left of other runs. Else takes it over
// and, if there is a plan, sets is_resumed; one of other fields is BSW_ERROR_USAGE. trains_lists:
// lists are trained, unless a plan has them.
enum bsw_status bsw_encode_journal_open(struct bsw_encode_journal *journal, const char *folder,
                                        int is_resumed, int trains_lists,
                                        const struct bsw_journal_fields *fields,
                                        struct bsw_error *err);
// Whether there is something to resume.
int bsw_encode_plan_exists(const char *folder);
// From now until the lists are trained, or the run fails, a stop keeps what there is of them. All
// ranks.
void bsw_encode_journal_begin_lists(struct bsw_encode_journal *journal);
void bsw_encode_journal_end_lists(void);
// Rank 0, where is_resumed is 0: stores the plan; rounds of lists are of no more use.
enum bsw_status bsw_encode_journal_plan(struct bsw_encode_journal *journal,
                                        const struct bsw_manifest *manifest, struct bsw_error *err);

// All ranks: run id and recorded blocks of rank 0 to all, then this rank's journal is open. sync,
// and its context: as in struct bsw_journal_options. A stop commits from here on.
enum bsw_status bsw_encode_journal_share(struct bsw_encode_journal *journal,
                                         struct bsw_transport *transport, const char *folder,
                                         enum bsw_status (*sync)(void *context,
                                                                 struct bsw_error *err),
                                         void *context, struct bsw_error *err);

// Any thread: the block's bytes are in the file. BSW_ERROR_STOPPED where a stop is asked for.
enum bsw_status bsw_encode_journal_put(struct bsw_encode_journal *journal,
                                       const struct bsw_encode_block *block, struct bsw_error *err);

// Whether a recorded block has its bytes in the files, which are open; codes gets them. order: of
// the shard, NULL without lists.
enum bsw_status bsw_encode_block_check(const struct bsw_shard_writer *writer, uint32_t block,
                                       const struct bsw_encode_block *recorded,
                                       const struct bsw_list_order *order, struct bsw_buffer *codes,
                                       int *is_good, struct bsw_error *err);

// Rank 0: the index in the folder is about to be whole but for its table, of which fields say what
// it is a function of.
enum bsw_status bsw_encode_table_note(const char *folder, const struct bsw_journal_fields *fields,
                                      struct bsw_error *err);
// Whether that has been noted, and the index is whole.
int bsw_encode_lacks_table(const char *folder);
// Other fields than noted are BSW_ERROR_USAGE.
enum bsw_status bsw_encode_table_check(const char *folder, const struct bsw_journal_fields *fields,
                                       struct bsw_error *err);
// The index has its table, or needs none. Journals that a run left which was killed as it removed
// them go, too.
enum bsw_status bsw_encode_table_forget(const char *folder, struct bsw_error *err);

// Rank 0: the index is whole, nothing of it is left to resume.
enum bsw_status bsw_encode_journal_remove(struct bsw_encode_journal *journal,
                                          struct bsw_error *err);
// All ranks; status: how the command ended. Not 0: what there is stays, to be resumed. Accepts {0}.
// After a success with has_more it is the caller's to end what a stop says (bsw_stop_end).
int bsw_encode_journal_close(struct bsw_encode_journal *journal, enum bsw_status status);

#endif
