#include "common/run_status.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"

static struct {
    pthread_mutex_t lock; // of texts
    const char *command, *unit;
    char path[BSW_PATH_BYTES]; // empty: none yet
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

void bsw_run_status_set_output(const char *path, const char *unit)
{
    size_t bytes = path ? strlen(path) : 0;
    while (bytes > 1 && path[bytes - 1] == '/') bytes--;
    pthread_mutex_lock(&run.lock);
    run.unit = unit;
    int length =
        path ? snprintf(run.path, sizeof run.path, "%.*s.STATUS.json", (int)bytes, path) : -1;
    if (length < 0 || (size_t)length >= sizeof run.path) run.path[0] = '\0';
    if (run.path[0]) unlink(run.path);
    pthread_mutex_unlock(&run.lock);
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
    return exit_code == 0 ? "complete" : exit_code == 75 ? "stopped" : "failed";
}

// JSON is UTF-8, file names in a message may be anything.
static char *make_text(enum bsw_status status, const char *message)
{
    char plain[BSW_ERROR_MESSAGE_BYTES];
    snprintf(plain, sizeof plain, "%s", message);
    for (char *c = plain; *c; c++) {
        if ((unsigned char)*c >= 0x80) *c = '?';
    }
    int exit_code = bsw_status_exit_code(status);
    json_t *object =
        json_pack("{s:s, s:i, s:s, s:I, s:I, s:s, s:s}", "status", word_of(exit_code), "exit_code",
                  exit_code, "message", plain, "done", (json_int_t)atomic_load(&run.done), "total",
                  (json_int_t)atomic_load(&run.total), "unit", run.unit, "command", run.command);
    char *json = object ? json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
    char *text = json ? realloc(json, strlen(json) + 2) : NULL;
    if (text) memcpy(text + strlen(text), "\n", 2);
    json_decref(object);
    return text;
}

enum bsw_status bsw_run_status_write(enum bsw_status status, const char *message,
                                     struct bsw_error *err)
{
    const char *paths[] = {run.path, asked_path()};
    enum bsw_status written = BSW_OK;
    pthread_mutex_lock(&run.lock);
    char *text = make_text(status, message);
    if (!text) written = bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "STATUS.json: no memory");
    for (int i = 0; text && i < 2; i++) {
        if (!paths[i] || !paths[i][0]) continue;
        enum bsw_status one =
            bsw_file_write_atomic(paths[i], text, strlen(text), written == BSW_OK ? err : NULL);
        if (one != BSW_OK) unlink(paths[i]); // named, perhaps, but not durably
        if (written == BSW_OK) written = one;
    }
    free(text);
    pthread_mutex_unlock(&run.lock);
    return written;
}
