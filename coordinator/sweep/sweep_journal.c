// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/job/run_status.h"

static json_t *objects_of(struct bsw_sweep_journal *journal, const char *kind)
{
    return strcmp(kind, "groundtruth") == 0 ? journal->truths
           : strcmp(kind, "index") == 0     ? journal->indexes
           : strcmp(kind, "point") == 0     ? journal->rows
                                            : NULL;
}

static enum bsw_status replay(void *context, const void *payload, size_t bytes,
                              struct bsw_error *err)
{
    struct bsw_sweep_journal *journal = context;
    const char *kind, *name;
    json_t *facts, *record = json_loadb(payload, bytes, 0, NULL);
    enum bsw_status status = BSW_OK;
    json_t *objects = NULL;
    if (json_unpack(record, "{s:s, s:s, s:o}", "kind", &kind, "name", &name, "facts", &facts) == 0)
        objects = objects_of(journal, kind);
    if (objects && json_is_object(facts))
        json_object_set(objects, name, facts);
    else
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "sweep.journal: a record of another kind");
    json_decref(record);
    return status;
}

// A folder that has a sweep, of any inputs: whether it came to its end, and what may be done.
static enum bsw_status refuse_sweep(struct bsw_sweep_journal *journal, const char *folder,
                                    const char *name, const char *path, struct bsw_error *err)
{
    struct bsw_journal_facts facts;
    BSW_TRY(bsw_journal_read(path, NULL, replay, journal, &facts, err));
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: has %s sweep, of %zu points: --resume measures only the points that it "
                    "lacks, --force measures all of them again",
                    name, bsw_run_status_is_complete(folder) ? "a finished" : "an unfinished",
                    json_object_size(journal->rows));
}

enum bsw_status bsw_sweep_journal_open(struct bsw_sweep_journal *journal, const char *folder,
                                       const char *name, int force, int resume,
                                       const struct bsw_journal_fields *fields,
                                       struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    *journal = (struct bsw_sweep_journal){
        .truths = json_object(), .indexes = json_object(), .rows = json_object()};
    BSW_TRY(bsw_path_join(path, folder, "sweep.journal", err));
    if (!force && !resume && bsw_file_exists(path))
        return refuse_sweep(journal, folder, name, path, err);
    const struct bsw_journal_options options = {.path = path,
                                                .mode = bsw_journal_mode_of(force, resume),
                                                .fields = fields,
                                                .replay = replay,
                                                .replay_context = journal};
    return bsw_journal_open(&options, &journal->journal, err);
}

void bsw_sweep_journal_close(struct bsw_sweep_journal *journal)
{
    bsw_journal_close(&journal->journal);
    json_decref(journal->truths);
    json_decref(journal->indexes);
    json_decref(journal->rows);
    *journal = (struct bsw_sweep_journal){0};
}

enum bsw_status bsw_sweep_journal_put(struct bsw_sweep_journal *journal, const char *kind,
                                      const char *name, json_t *facts, struct bsw_error *err)
{
    json_object_set(objects_of(journal, kind), name, facts);
    json_t *entry = json_pack("{s:s, s:s, s:o}", "kind", kind, "name", name, "facts", facts);
    char *text = json_dumps(entry, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(entry);
    if (!text) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for a record");
    enum bsw_status status = bsw_journal_append(journal->journal, text, strlen(text), err);
    free(text);
    if (status == BSW_OK) status = bsw_journal_commit(journal->journal, err);
    return status;
}
