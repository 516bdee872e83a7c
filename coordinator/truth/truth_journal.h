// SPDX-License-Identifier: Apache-2.0
// What a ground truth that is stopped or killed leaves for one that resumes it, beside its output,
// of each rank once it has committed:
//   OUT.00003.journal  common/job/journal.h. Fields: inputs and options, and the number of ranks. A
//                      record for each commit: the rows done, and where their lists are
//   OUT.00003.lists    the lists of all queries after those rows, in two slots that take turns: the
//                      one that the last record names is never written to
// The lists are a function of fields, rank and rows done. So every journal stands alone: whichever
// run left it, and whatever became of the others, its rank goes on from there.
#ifndef BITSWEEP_COORDINATOR_TRUTH_JOURNAL_H
#define BITSWEEP_COORDINATOR_TRUTH_JOURNAL_H

#include <stdint.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/job/journal.h"
#include "shard/exact/neighbour_scan.h"

// A record. Behind it the lists are durable.
struct bsw_truth_state {
    uint64_t next_row, dropped_rows; // of the scan
    uint64_t slot;                   // 0 or 1
    uint64_t digest;                 // of the slot's bytes
};

struct bsw_truth_journal {
    bsw_neighbour_scan *scan; // borrowed; NULL: not open
    bsw_journal *journal;
    char lists_path[BSW_PATH_BYTES];
    int fd; // of the lists; -1: none yet
    size_t group_queries;
    struct bsw_buffer group;       // lists of so many queries, as they lie in the file
    struct bsw_truth_state stored; // the last record; its next_row is 0 where there is none
    uint64_t num_resumed;          // rows that earlier runs did
    double not_before;             // clock of the next commit
};

// ---- rank 0, on the files of all ranks ----

int bsw_truth_journals_exist(const char *out);
// Once the output is this run's alone: BSW_JOURNAL_NEW refuses journals that are there, FORCE
// removes them, RESUME refuses those of other fields.
enum bsw_status bsw_truth_journals_take(const char *out, enum bsw_journal_mode mode,
                                        const struct bsw_journal_fields *fields,
                                        struct bsw_error *err);
// The output has its name: nothing is left to resume.
enum bsw_status bsw_truth_journals_remove(const char *out, struct bsw_error *err);

// ---- all ranks, each its own ----

// The scan is open and new; with BSW_JOURNAL_RESUME it stands where the journal says, or where its
// lists are not as recorded at its beginning. From here on a stop leaves what was committed last.
enum bsw_status bsw_truth_journal_open(struct bsw_truth_journal *journal, const char *out, int rank,
                                       enum bsw_journal_mode mode,
                                       const struct bsw_journal_fields *fields,
                                       bsw_neighbour_scan *scan, struct bsw_error *err);
// Between two blocks: commits if it is due.
enum bsw_status bsw_truth_journal_put(struct bsw_truth_journal *journal, struct bsw_error *err);
// status: how the command ended; the scan is between two blocks or finished. Exit code 75 commits
// first. Unless all is done the files stay, to be resumed. Accepts {0}.
void bsw_truth_journal_close(struct bsw_truth_journal *journal, enum bsw_status status);

#endif
