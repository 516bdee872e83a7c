// SPDX-License-Identifier: Apache-2.0
// A result file that grows batch by batch and outlives its run: FILE.partial and, from the first
// commit on, FILE.journal (common/job/journal.h). A record for each batch: first query, queries,
// the digest of the bytes they take in the file and, where they could not find all rows, the share
// of those that they could. A run that resumes reads those bytes again,
// does every batch anew whose bytes are not as recorded, and all that have no record.
//
// On rank 0. It stands between the command and stop signals: a stop commits what was put.
#ifndef BITSWEEP_COORDINATOR_RESULT_JOURNAL_H
#define BITSWEEP_COORDINATOR_RESULT_JOURNAL_H

#include "common/files/result_file.h"
#include "common/job/journal.h"
#include "coordinator/job/sidecar.h"
#include "coordinator/search/search.h"

struct bsw_result_journal {
    const char *path; // borrowed; NULL: not open
    bsw_result_writer *writer;
    bsw_journal *journal;         // NULL: a run that cannot be resumed
    struct bsw_search_parts left; // owned; done are those of earlier runs
    double *shares;               // [num_queries], of each the rows it could find; NULL: all
    uint64_t num_queries;
    double coverage; // of batches that are put; 0: not said, 1
};

struct bsw_result_journal_options {
    const char *path; // of the result
    uint64_t num_queries, k;
    int wide_ids, is_forced, is_resumed;
    int is_partial; // queries may find a part of the rows; else batches that did are done anew
    const struct bsw_journal_fields *fields; // NULL: no journal, FILE.tmp.PID and not FILE.partial
};

// `out` stays where it is until it is closed, which also a failed open needs.
enum bsw_status bsw_result_journal_open(const struct bsw_result_journal_options *options,
                                        struct bsw_result_journal *out, struct bsw_error *err);
// A bsw_answers_fn; context: the journal. One thread at a time.
enum bsw_status bsw_result_journal_put(void *context, uint64_t first, size_t count,
                                       const int64_t *ids, const float *values,
                                       struct bsw_error *err);
// A round of checks of all ranks begins, with is_passed 0, or has passed: what was put before it
// began may be gone on with after a later check fails. context: the journal.
void bsw_result_journal_note_check(void *context, int is_passed);
// Share of the rows that batches can find that are put from here on. context: the journal.
void bsw_result_journal_note_coverage(void *context, double coverage);
// The least of all queries.
double bsw_result_journal_coverage(const struct bsw_result_journal *result);
// FILE.json and FILE get their names, STATUS says so, the journal goes; a stop comes before or
// after that, and after it changes nothing. A run that is killed in the middle of it can be
// resumed, or is complete. Where the coverage is below 1 FILE.coverage.npy comes first, and STATUS
// says that it is partial.
enum bsw_status bsw_result_journal_finish(struct bsw_result_journal *result,
                                          const struct bsw_sidecar *facts, struct bsw_error *err);
// status: how the command ended. What a run may go on with stays, all else that is not finished
// goes. Accepts {0}.
void bsw_result_journal_close(struct bsw_result_journal *result, enum bsw_status status);

// ---- the sink of the command --------------------------------------------------------------------

// Answers of a search go to a result file with its FILE.json. A search of one pass leaves what a
// later run can go on with, and STATUS.json counts its queries.

// All but the last two are set, the same on all ranks; that is {0}. Texts are borrowed.
struct bsw_result_sink {
    const char *path;                 // of the result
    int is_forced, is_resumed;        // --force, --resume
    int is_journaled;                 // what is timed, in several passes, is not cut into runs
    double coverage;                  // out, rank 0: the least of all queries of a finished result
    struct bsw_result_journal result; // rank 0
};

// sink must stay where it is until it is closed.
struct bsw_search_sink bsw_result_sink(struct bsw_result_sink *sink);
// All ranks. status: how the search ended. What a run may go on with stays, all else that is not
// finished goes.
void bsw_result_sink_close(struct bsw_result_sink *sink, enum bsw_status status);

// ---- what range_sink.h has, too -----------------------------------------------------------------

// Rank 0: whether a result may be written there, beside what is read.
enum bsw_status bsw_result_files_check(const struct bsw_search *search, const char *path,
                                       struct bsw_error *err);
// What is told of a result; settings are a new reference.
struct bsw_sidecar bsw_result_facts(const struct bsw_search *search);

#endif
