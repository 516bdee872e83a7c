// SPDX-License-Identifier: Apache-2.0
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/fault_points.h"

#define MOST_LINKS 40 // as Linux has it

static enum bsw_status fail_system(struct bsw_error *err, const char *path, const char *what)
{
    int code = errno;
    return bsw_fail(err, BSW_ERROR_IO, "%s: %s: %s", path, what, strerror(code));
}

enum bsw_status bsw_file_open_read(const char *path, int *fd, uint64_t *bytes,
                                   struct bsw_error *err)
{
    *fd = -1;
    // O_NONBLOCK: a FIFO must not hang us
    int opened = BSW_FAULT(OPEN, -1, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (opened < 0) return fail_system(err, path, "cannot open");
    struct stat facts;
    if (fstat(opened, &facts) != 0) {
        enum bsw_status status = fail_system(err, path, "cannot stat");
        close(opened);
        return status;
    }
    if (!S_ISREG(facts.st_mode)) {
        close(opened);
        return bsw_fail(err, BSW_ERROR_IO, "%s: not a regular file", path);
    }
    *fd = opened;
    *bytes = (uint64_t)facts.st_size;
    return BSW_OK;
}

enum bsw_status bsw_file_read_at(int fd, const char *path, uint64_t offset, void *out, size_t bytes,
                                 struct bsw_error *err)
{
    unsigned char *to = out;
    while (bytes > 0) {
        ssize_t got = BSW_FAULT(READ, -1, pread(fd, to, bytes, (off_t)offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_system(err, path, "cannot read");
        if (got == 0) {
            return bsw_fail(err, BSW_ERROR_BAD_DATA,
                            "%s: truncated: %zu bytes missing at offset %llu", path, bytes,
                            (unsigned long long)offset);
        }
        to += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return BSW_OK;
}

// Beyond a limit of file sizes (ulimit -f) a call is to fail with EFBIG alone, without the signal
// that ends a process. What it does with signals may be a caller's: this thread holds it back
// meanwhile.
static void hold_limit_signal(sigset_t *before)
{
    sigset_t limit;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, before);
}

static void release_limit_signal(const sigset_t *before, int has_failed)
{
    sigset_t limit;
    int code = errno;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    if (has_failed && code == EFBIG && !sigismember(before, SIGXFSZ))
        sigtimedwait(&limit, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = code;
}

static ssize_t write_some(int fd, const void *from, size_t bytes, off_t offset)
{
    sigset_t before;
    hold_limit_signal(&before);
    ssize_t put = BSW_FAULT(WRITE, -1, pwrite(fd, from, bytes, offset));
    release_limit_signal(&before, put < 0);
    return put;
}

int bsw_file_resize(int fd, uint64_t bytes)
{
    sigset_t before;
    hold_limit_signal(&before);
    int failure = BSW_FAULT(WRITE, -1, ftruncate(fd, (off_t)bytes));
    release_limit_signal(&before, failure != 0);
    return failure;
}

enum bsw_status bsw_file_write_at(int fd, const char *path, uint64_t offset, const void *data,
                                  size_t bytes, struct bsw_error *err)
{
    const unsigned char *from = data;
    while (bytes > 0) {
        ssize_t put = write_some(fd, from, bytes, (off_t)offset);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return fail_system(err, path, "cannot write");
        if (put == 0) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot write: no progress", path);
        from += put;
        offset += (uint64_t)put;
        bytes -= (size_t)put;
    }
    return BSW_OK;
}

enum bsw_status bsw_file_read_all(const char *path, uint64_t max_bytes, struct bsw_buffer *buffer,
                                  struct bsw_error *err)
{
    int fd;
    uint64_t bytes = 0;
    BSW_TRY(bsw_file_open_read(path, &fd, &bytes, err));
    enum bsw_status status = BSW_OK;
    buffer->bytes = 0;
    if (bytes > max_bytes) {
        status =
            bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu bytes, more than the %llu expected at most",
                     path, (unsigned long long)bytes, (unsigned long long)max_bytes);
    }
    if (status == BSW_OK) status = bsw_buffer_reserve(buffer, bytes ? (size_t)bytes : 1, err);
    if (status == BSW_OK) status = bsw_file_read_at(fd, path, 0, buffer->data, (size_t)bytes, err);
    if (status == BSW_OK) buffer->bytes = (size_t)bytes;
    bsw_file_close(&fd);
    return status;
}

enum bsw_status bsw_file_create(const char *path, int *fd, struct bsw_error *err)
{
    *fd = BSW_FAULT(OPEN, -1, open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    return *fd < 0 ? fail_system(err, path, "cannot create") : BSW_OK;
}

// That the name still leads to the file that is open, and locked: a run that has just finished may
// have renamed it away in between.
static int is_named(int fd, const char *path)
{
    struct stat open_facts, named;
    return fstat(fd, &open_facts) == 0 && stat(path, &named) == 0 &&
           open_facts.st_dev == named.st_dev && open_facts.st_ino == named.st_ino;
}

// Closes a file that is none, or that another process has.
static enum bsw_status lock(const char *path, int *fd, struct bsw_error *err)
{
    struct stat facts;
    enum bsw_status status = BSW_OK;
    if (fstat(*fd, &facts) != 0 || !S_ISREG(facts.st_mode))
        status = bsw_fail(err, BSW_ERROR_USAGE, "%s: not a regular file", path);
    else if ((flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || !is_named(*fd, path))
        status = bsw_fail(err, BSW_ERROR_USAGE, "%s: another run is writing it", path);
    if (status != BSW_OK) bsw_file_close(fd);
    return status;
}

enum bsw_status bsw_file_open_exclusive(const char *path, int *fd, struct bsw_error *err)
{
    *fd = BSW_FAULT(OPEN, -1, open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    return *fd < 0 ? fail_system(err, path, "cannot create") : lock(path, fd, err);
}

enum bsw_status bsw_file_reopen_exclusive(const char *path, int *fd, struct bsw_error *err)
{
    *fd = BSW_FAULT(OPEN, -1, open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    return *fd < 0 ? fail_system(err, path, "cannot open for writing") : lock(path, fd, err);
}

enum bsw_status bsw_file_open_write(const char *path, int *fd, struct bsw_error *err)
{
    *fd = BSW_FAULT(OPEN, -1, open(path, O_RDWR | O_CLOEXEC));
    return *fd < 0 ? fail_system(err, path, "cannot open for writing") : BSW_OK;
}

enum bsw_status bsw_file_sync(int fd, const char *path, struct bsw_error *err)
{
    return BSW_FAULT(FSYNC, -1, fsync(fd)) != 0 ? fail_system(err, path, "cannot sync") : BSW_OK;
}

enum bsw_status bsw_file_sync_close(int *fd, const char *path, struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    if (BSW_FAULT(FSYNC, -1, fsync(*fd)) != 0) status = fail_system(err, path, "cannot sync");
    if (close(*fd) != 0 && status == BSW_OK) status = fail_system(err, path, "cannot close");
    *fd = -1;
    return status;
}

void bsw_file_close(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static enum bsw_status sync_folder_of(const char *path, struct bsw_error *err)
{
    char folder[BSW_PATH_BYTES];
    if (strlen(path) >= sizeof folder) return bsw_fail(err, BSW_ERROR_USAGE, "path is too long");
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    memcpy(folder, path, length);
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash)
        memcpy(folder, ".", 2);
    else if (slash == folder)
        folder[1] = '\0';
    else
        *slash = '\0';
    int fd = BSW_FAULT(OPEN, -1, open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return fail_system(err, folder, "cannot open folder");
    // Some network file systems refuse fsync of a folder with EINVAL; their rename is durable by
    // itself.
    enum bsw_status status = BSW_FAULT(FSYNC, -1, fsync(fd)) != 0 && errno != EINVAL
                                 ? fail_system(err, folder, "cannot sync folder")
                                 : BSW_OK;
    close(fd);
    return status;
}

enum bsw_status bsw_file_rename(const char *from, const char *to, struct bsw_error *err)
{
    if (BSW_FAULT(RENAME, -1, rename(from, to)) != 0)
        return fail_system(err, to, "cannot rename to this name");
    return sync_folder_of(to, err);
}

enum bsw_status bsw_file_remove(const char *path, struct bsw_error *err)
{
    if (unlink(path) == 0) return sync_folder_of(path, err);
    return errno == ENOENT ? BSW_OK : fail_system(err, path, "cannot remove");
}

enum bsw_status bsw_file_write_atomic(const char *path, const void *data, size_t bytes,
                                      struct bsw_error *err)
{
    char temporary[BSW_PATH_BYTES];
    int fd;
    BSW_TRY(bsw_path_format(temporary, err, "%s.tmp.%ld", path, (long)getpid()));
    bsw_temporary_note(temporary);
    enum bsw_status status = bsw_file_create(temporary, &fd, err);
    if (status == BSW_OK) {
        status = bsw_file_write_at(fd, temporary, 0, data, bytes, err);
        if (status == BSW_OK) status = bsw_file_sync_close(&fd, temporary, err);
        if (status == BSW_OK) status = bsw_file_rename(temporary, path, err);
        bsw_file_close(&fd);
        if (status != BSW_OK) unlink(temporary);
    }
    bsw_temporary_forget(temporary);
    return status;
}

enum bsw_status bsw_file_write_output(const char *path, const void *data, size_t bytes,
                                      struct bsw_error *err)
{
    char target[BSW_PATH_BYTES];
    BSW_TRY(bsw_file_follow(path, target, err));
    return bsw_file_write_atomic(target, data, bytes, err);
}

enum bsw_status bsw_file_follow(const char *path, char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    char link[BSW_PATH_BYTES], next[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_format(out, err, "%s", path));
    for (int turn = 0; turn < MOST_LINKS; turn++) {
        ssize_t length = readlink(out, link, sizeof link);
        if (length < 0) return BSW_OK; // whoever opens it says what else is wrong
        if (length == sizeof link) return bsw_fail(err, BSW_ERROR_USAGE, "path is too long");
        const char *slash =
            link[0] == '/' ? NULL : strrchr(out, '/'); // else from the link's folder
        BSW_TRY(bsw_path_format(next, err, "%.*s%.*s", slash ? (int)(slash - out + 1) : 0, out,
                                (int)length, link));
        memcpy(out, next, sizeof next);
    }
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: symbolic links lead in a circle: name another output", path);
}

int bsw_file_exists(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

int bsw_file_is_found(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0;
}

int bsw_path_is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

enum bsw_status bsw_folder_create(const char *path, struct bsw_error *err)
{
    if (mkdir(path, 0777) == 0) return sync_folder_of(path, err);
    if (errno == EEXIST && bsw_path_is_folder(path)) return BSW_OK;
    return fail_system(err, path, "cannot create folder");
}

enum bsw_status bsw_path_format(char out[BSW_PATH_BYTES], struct bsw_error *err, const char *format,
                                ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(out, BSW_PATH_BYTES, format, list);
    va_end(list);
    if (length < 0 || length >= BSW_PATH_BYTES)
        return bsw_fail(err, BSW_ERROR_USAGE, "path is too long");
    return BSW_OK;
}

enum bsw_status bsw_path_join(char *out, const char *folder, const char *name,
                              struct bsw_error *err)
{
    return bsw_path_format(out, err, "%s/%s", folder, name);
}

// ---- temporary files ----------------------------------------------------------------------------

#define MAX_TEMPORARIES 16

static pthread_mutex_t temporaries_lock = PTHREAD_MUTEX_INITIALIZER;
static char *temporaries[MAX_TEMPORARIES];

void bsw_temporary_note(const char *path)
{
    pthread_mutex_lock(&temporaries_lock);
    for (int i = 0; i < MAX_TEMPORARIES; i++) {
        if (temporaries[i]) continue;
        temporaries[i] = strdup(path);
        break;
    }
    pthread_mutex_unlock(&temporaries_lock);
}

void bsw_temporary_forget(const char *path)
{
    pthread_mutex_lock(&temporaries_lock);
    for (int i = 0; i < MAX_TEMPORARIES; i++) {
        if (!temporaries[i] || strcmp(temporaries[i], path) != 0) continue;
        free(temporaries[i]);
        temporaries[i] = NULL;
        break;
    }
    pthread_mutex_unlock(&temporaries_lock);
}

void bsw_temporaries_remove(void)
{
    pthread_mutex_lock(&temporaries_lock); // for good
    for (int i = MAX_TEMPORARIES - 1; i >= 0; i--) {
        if (temporaries[i]) remove(temporaries[i]);
    }
}

// ---- JSON ----

#define MAX_BYTES (1u << 20)

enum bsw_status bsw_json_file_read(const char *path, struct json_t **out, struct bsw_error *err)
{
    struct bsw_buffer text = {0};
    json_error_t fault;
    *out = NULL;
    enum bsw_status status = bsw_file_read_all(path, MAX_BYTES, &text, err);
    if (status == BSW_OK) *out = json_loadb((const char *)text.data, text.bytes, 0, &fault);
    bsw_buffer_deinit(&text);
    if (status != BSW_OK || json_is_object(*out)) return status;
    if (!*out)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: line %d: %s", path, fault.line, fault.text);
    json_decref(*out);
    *out = NULL;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no JSON object", path);
}

enum bsw_status bsw_json_file_write(const char *path, struct json_t *object, struct bsw_error *err)
{
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (!text) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "%s: no memory", path);
    size_t bytes = strlen(text);
    text[bytes++] = '\n'; // no longer a string
    enum bsw_status status = bsw_file_write_atomic(path, text, bytes, err);
    free(text);
    return status;
}

// ---- new files ----

enum bsw_status bsw_new_file_check(const char *path, int force, struct bsw_error *err)
{
    struct stat facts;
    char target[BSW_PATH_BYTES];
    BSW_TRY(bsw_file_follow(path, target, err));
    if (bsw_path_is_folder(path)) return bsw_fail(err, BSW_ERROR_USAGE, "%s: is a folder", path);
    if (stat(path, &facts) != 0) return BSW_OK;
    if (!S_ISREG(facts.st_mode))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: not a regular file", path);
    if (!force) return bsw_fail(err, BSW_ERROR_USAGE, "%s: exists; --force replaces it", path);
    return BSW_OK;
}

enum bsw_status bsw_new_file_create(const char *path, int force, struct bsw_new_file *out,
                                    struct bsw_error *err)
{
    out->fd = -1;
    out->has_temporary = 0;
    BSW_TRY(bsw_file_follow(path, out->path, err));
    BSW_TRY(bsw_path_format(out->temporary, err, "%s.tmp.%ld", out->path, (long)getpid()));
    BSW_TRY(bsw_new_file_check(path, force, err));
    bsw_temporary_note(out->temporary);
    enum bsw_status status = bsw_file_create(out->temporary, &out->fd, err);
    if (status != BSW_OK) bsw_temporary_forget(out->temporary);
    out->has_temporary = status == BSW_OK;
    return status;
}

enum bsw_status bsw_new_file_finish(struct bsw_new_file *file, struct bsw_error *err)
{
    BSW_TRY(bsw_file_sync_close(&file->fd, file->temporary, err));
    BSW_TRY(bsw_file_rename(file->temporary, file->path, err));
    bsw_temporary_forget(file->temporary);
    file->has_temporary = 0;
    return BSW_OK;
}

void bsw_new_file_deinit(struct bsw_new_file *file)
{
    bsw_file_close(&file->fd);
    if (file->has_temporary) {
        unlink(file->temporary);
        bsw_temporary_forget(file->temporary);
    }
    file->has_temporary = 0;
}
