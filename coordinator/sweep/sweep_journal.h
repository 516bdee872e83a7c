// SPDX-License-Identifier: Apache-2.0
// The record of a sweep, FOLDER/sweep.journal: an entry for the ground truth, each index and each
// point, {"kind": "index", "name": "saq-3", "facts": {...}}, durable before the next begins. The
// grid is no field of it: --resume with another grid adds points.
#ifndef BITSWEEP_COORDINATOR_SWEEP_JOURNAL_H
#define BITSWEEP_COORDINATOR_SWEEP_JOURNAL_H

#include <jansson.h>

#include "common/job/journal.h"

// {0} is closed.
struct bsw_sweep_journal {
    bsw_journal *journal;
    json_t *truths, *indexes, *rows; // objects by name: what it has, of earlier runs, too
};

// folder: absolute; name: as the user gave it. Without force or resume a folder that has a sweep is
// BSW_ERROR_USAGE, which says what may be done. To be closed also after an error.
enum bsw_status bsw_sweep_journal_open(struct bsw_sweep_journal *journal, const char *folder,
                                       const char *name, int force, int resume,
                                       const struct bsw_journal_fields *fields,
                                       struct bsw_error *err);
void bsw_sweep_journal_close(struct bsw_sweep_journal *journal);

// kind: "groundtruth", "index" or "point". Takes the reference to facts.
enum bsw_status bsw_sweep_journal_put(struct bsw_sweep_journal *journal, const char *kind,
                                      const char *name, json_t *facts, struct bsw_error *err);

#endif
