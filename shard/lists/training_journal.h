// SPDX-License-Identifier: Apache-2.0
// What rank 0 keeps of a training of centroids, so that one that is stopped or killed goes on after
// its last whole round: common/job/journal.h, a record for each round.
//
// A record is 16 bytes, the run (uint64, counted from 0: a training in two levels has several), its
// round (uint32, from 0) and whether that was the last (uint32), and the centroids (float32). Where
// a run goes on needs the centroids of its last two rounds: rows get the lists of the earlier ones
// again, of which the next round counts those that change.
#ifndef BITSWEEP_SHARD_TRAINING_JOURNAL_H
#define BITSWEEP_SHARD_TRAINING_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/job/journal.h"

typedef struct bsw_training_journal bsw_training_journal;

// Takes over what is at path, of the same fields; none: begins. Other fields are BSW_ERROR_USAGE.
// Reads all of it into memory: the centroids of whole runs, and two rounds of one that is not.
// most_bytes: of the file; BSW_JOURNAL_MAX_BYTES, or less in tests.
enum bsw_status bsw_training_journal_open(const char *path, const struct bsw_journal_fields *fields,
                                          uint64_t most_bytes, bsw_training_journal **out,
                                          struct bsw_error *err);
// Leaves the file as of the last commit. Accepts NULL inside.
void bsw_training_journal_close(bsw_training_journal **journal);

// What is known of a run: borrowed, until the next put.
struct bsw_training_known {
    uint32_t round; // the last whole one
    uint32_t is_last;
    const float *centroids; // [numbers], of that round
    const float *before;    // of the round before it; NULL where is_last
};
// 0: nothing to go on from, or not of so many numbers; *out is as it was.
int bsw_training_journal_find(const bsw_training_journal *journal, uint64_t run, size_t numbers,
                              struct bsw_training_known *out);

// Keeps the centroids [numbers] of a round. On disk every BSW_JOURNAL_SECONDS. One that would take
// the file beyond most_bytes is not kept: who goes on does it again.
enum bsw_status bsw_training_journal_put(bsw_training_journal *journal, uint64_t run,
                                         uint32_t round, int is_last, const float *centroids,
                                         size_t numbers, struct bsw_error *err);
// Now. Any thread.
enum bsw_status bsw_training_journal_commit(bsw_training_journal *journal, struct bsw_error *err);

#endif
