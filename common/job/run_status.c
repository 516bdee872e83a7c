// SPDX-License-Identifier: Apache-2.0
#include "common/job/run_status.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"

static struct {
    pthread_mutex_t lock; // of texts
    const char *command, *unit;
    char path[BSW_PATH_BYTES]; // OUTPUT.json; empty: none yet
    atomic_uint_least64_t done, total;
} run = {.lock = PTHREAD_MUTEX_INITIALIZER, .command = "", .unit = ""};

static const char *asked_path(void)
{
    const char *path = getenv("BITSWEEP_STATUS");
    return path && path[0] ? path : NULL;
}

void bsw_run_status_begin(const char *command)
{
    pthread_mutex_lock(&run.lock); // a stop may write at any time
    run.command = command;
    if (asked_path()) unlink(asked_path());
    pthread_mutex_unlock(&run.lock);
}

// OUTPUT and an ending; empty: it is too long.
static void path_beside(char out[BSW_PATH_BYTES], const char *output, const char *ending)
{
    size_t bytes = strlen(output);
    while (bytes > 1 && output[bytes - 1] == '/') bytes--;
    int length = snprintf(out, BSW_PATH_BYTES, "%.*s%s", (int)bytes, output, ending);
    if (length < 0 || length >= BSW_PATH_BYTES) out[0] = '\0';
}

// OUTPUT.json, an empty object if there is none. What is no JSON is another's: *is_ours is 0.
static enum bsw_status load(const char *path, json_t **out, int *is_ours, struct bsw_error *err)
{
    enum bsw_status status = BSW_ERROR_BAD_DATA;
    *is_ours = bsw_file_exists(path);
    if (*is_ours) status = bsw_json_file_read(path, out, err);
    if (status != BSW_ERROR_BAD_DATA) return status;
    *is_ours = 0;
    *out = json_object();
    return *out ? BSW_OK : bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "%s: no memory", path);
}

// How the run ended goes, what is known of the output stays with that.
static enum bsw_status forget_run(const char *path, struct bsw_error *err)
{
    json_t *object;
    int is_ours;
    BSW_TRY(load(path, &object, &is_ours, err));
    if (is_ours && json_object_del(object, "run") == 0) {
        if (json_object_size(object) > 0) return bsw_json_file_write(path, object, err);
        unlink(path);
    }
    json_decref(object);
    return BSW_OK;
}

enum bsw_status bsw_run_status_set_output(const char *path, const char *unit, struct bsw_error *err)
{
    char old[BSW_PATH_BYTES] = "";
    enum bsw_status status = BSW_OK;
    pthread_mutex_lock(&run.lock);
    run.unit = unit;
    run.path[0] = '\0';
    if (path) {
        path_beside(run.path, path, ".json");
        path_beside(old, path, ".STATUS.json");
    }
    if (run.path[0]) status = forget_run(run.path, err);
    if (old[0]) unlink(old);
    pthread_mutex_unlock(&run.lock);
    return status;
}

enum bsw_status bsw_run_status_started(struct bsw_error *err)
{
    const char *path = getenv("BITSWEEP_STARTED");
    int fd;
    if (!path || !path[0]) return BSW_OK;
    BSW_TRY(bsw_file_create(path, &fd, err));
    bsw_file_close(&fd);
    return BSW_OK;
}

void bsw_run_status_count(uint64_t done, uint64_t total)
{
    atomic_store(&run.done, done);
    atomic_store(&run.total, total);
}

static const char *word_of(int exit_code)
{
    return exit_code == 0    ? "complete"
           : exit_code == 75 ? "stopped"
           : exit_code == 76 ? "partial"
                             : "failed";
}

// JSON is UTF-8, file names in a message may be anything.
static json_t *describe(enum bsw_status status, const char *message)
{
    char plain[BSW_ERROR_MESSAGE_BYTES];
    snprintf(plain, sizeof plain, "%s", message);
    for (char *c = plain; *c; c++) {
        if ((unsigned char)*c >= 0x80) *c = '?';
    }
    int exit_code = bsw_status_exit_code(status);
    uint64_t total = atomic_load(&run.total), done = atomic_load(&run.done);
    if (status == BSW_OK || status == BSW_PARTIAL)
        done = total; // those that an earlier run did, too
    return json_pack("{s:s, s:i, s:s, s:I, s:I, s:s, s:s}", "status", word_of(exit_code),
                     "exit_code", exit_code, "message", plain, "done", (json_int_t)done, "total",
                     (json_int_t)total, "unit", run.unit, "command", run.command);
}

// Beside the facts of the output. Takes the reference to object.
static enum bsw_status write_beside(const char *path, json_t *object, struct bsw_error *err)
{
    json_t *facts;
    int is_ours;
    enum bsw_status status = load(path, &facts, &is_ours, err);
    if (status != BSW_OK) {
        json_decref(object);
        return status;
    }
    if (json_object_set_new(facts, "run", object) != 0) {
        json_decref(facts);
        facts = NULL;
    }
    status = bsw_json_file_write(path, facts, err);
    if (status != BSW_OK && forget_run(path, NULL) != BSW_OK)
        unlink(path); // named, perhaps, but not durably
    return status;
}

enum bsw_status bsw_run_status_write(enum bsw_status status, const char *message,
                                     struct bsw_error *err)
{
    enum bsw_status beside = BSW_OK, asked = BSW_OK;
    pthread_mutex_lock(&run.lock);
    if (run.path[0]) beside = write_beside(run.path, describe(status, message), err);
    if (asked_path()) {
        asked = bsw_json_file_write(asked_path(), describe(status, message),
                                    beside == BSW_OK ? err : NULL);
        if (asked != BSW_OK) unlink(asked_path());
    }
    pthread_mutex_unlock(&run.lock);
    return beside == BSW_OK ? asked : beside;
}

int bsw_run_status_is_complete(const char *output)
{
    static const char *const endings[] = {".json", ".STATUS.json"};
    char path[BSW_PATH_BYTES];
    int is_complete = 0;
    for (int i = 0; i < 2 && !is_complete; i++) {
        json_t *object;
        path_beside(path, output, endings[i]);
        if (!bsw_file_exists(path) || bsw_json_file_read(path, &object, NULL) != BSW_OK) continue;
        const json_t *said = i == 0 ? json_object_get(object, "run") : object;
        const char *word = json_string_value(json_object_get(said, "status"));
        is_complete = word && strcmp(word, "complete") == 0;
        json_decref(object);
    }
    return is_complete;
}
