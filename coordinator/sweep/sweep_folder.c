// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/job/run_status.h"
#include "coordinator/sweep/sweep_report.h"

enum { LOCK_SECONDS = 5, NAP_MICROSECONDS = 50000 };

static enum bsw_status lock_folder(const char *path, int *lock, struct bsw_error *err)
{
    double since = bsw_clock_seconds();
    *lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (*lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        if (bsw_clock_seconds() - since > LOCK_SECONDS)
            return bsw_fail(err, BSW_ERROR_USAGE, "%s: another sweep is at work there", path);
        usleep(NAP_MICROSECONDS);
    }
    return BSW_OK; // a file system without locks has none
}

enum bsw_status bsw_sweep_folder_open(const char *path, char absolute[BSW_PATH_BYTES], int *lock,
                                      struct bsw_error *err)
{
    BSW_TRY(bsw_folder_create(path, err));
    char *real = realpath(path, NULL);
    int fits = real && strlen(real) + 64 <= BSW_PATH_BYTES;
    if (fits) strcpy(absolute, real);
    free(real);
    if (!fits) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot be used as a folder", path);
    return lock_folder(path, lock, err);
}

static int is_left_over(const char *name)
{
    static const char *const steps[] = {"step.out", "step.err", "step.result"};
    static const char *const made[] = {"sweep.", "sweep-", "report.html", "groundtruth", "index-"};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strncmp(name, steps[i], strlen(steps[i])) == 0) return 1;
    }
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        if (strncmp(name, made[i], strlen(made[i])) == 0) return strstr(name, ".tmp.") != NULL;
    }
    return 0;
}

int bsw_sweep_folder_makes(const char *name)
{
    static const char *const made[] = {"sweep.journal", "sweep.csv", "sweep.json", "sweep.gnuplot",
                                       "report.html"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        if (strcmp(name, made[i]) == 0) return 1;
    }
    for (size_t i = 0; i < sizeof bsw_sweep_plots / sizeof bsw_sweep_plots[0]; i++) {
        size_t length = strlen(bsw_sweep_plots[i]);
        if (strncmp(name, bsw_sweep_plots[i], length) == 0 && name[length] == '.') return 1;
    }
    return is_left_over(name);
}

enum bsw_status bsw_sweep_folder_clean(const char *folder, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    const struct dirent *entry;
    enum bsw_status status = BSW_OK;
    DIR *open_folder = opendir(folder);
    if (!open_folder) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot list it", folder);
    while (status == BSW_OK && (entry = readdir(open_folder)) != NULL) {
        if (!is_left_over(entry->d_name)) continue;
        status = bsw_path_join(path, folder, entry->d_name, err);
        if (status == BSW_OK) status = bsw_file_remove(path, err);
    }
    closedir(open_folder);
    return status;
}

// ---- the journal --------------------------------------------------------------------------------

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
