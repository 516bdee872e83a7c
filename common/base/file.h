// SPDX-License-Identifier: Apache-2.0
// Files as the rest of the program needs them: whole reads and writes, atomic replacement, clear
// messages.
//
// Every message begins with the path. Failures of the system are BSW_ERROR_IO with its text.
#ifndef BITSWEEP_COMMON_FILE_H
#define BITSWEEP_COMMON_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"
#include "common/base/status.h"

BSW_C_BEGIN

// Opens an existing regular file for reading; *bytes is its size. A folder or a device is
// BSW_ERROR_IO.
enum bsw_status bsw_file_open_read(const char *path, int *fd, uint64_t *bytes,
                                   struct bsw_error *err);

// Reads exactly `bytes` at `offset`, looping over short reads. A file that ends first is
// BSW_ERROR_BAD_DATA
// ("truncated"). `path` is for messages.
enum bsw_status bsw_file_read_at(int fd, const char *path, uint64_t offset, void *out, size_t bytes,
                                 struct bsw_error *err);

// Writes exactly `bytes` at `offset`, looping over short writes. A limit of file sizes is an error,
// too, and no SIGXFSZ.
enum bsw_status bsw_file_write_at(int fd, const char *path, uint64_t offset, const void *data,
                                  size_t bytes, struct bsw_error *err);

// ftruncate, the same way: -1 and errno after a failure.
int bsw_file_resize(int fd, uint64_t bytes);

// Reads a whole file of at most max_bytes into buffer (appended after reset). Larger is
// BSW_ERROR_BAD_DATA.
enum bsw_status bsw_file_read_all(const char *path, uint64_t max_bytes, struct bsw_buffer *buffer,
                                  struct bsw_error *err);

// Creates (or truncates) a file for reading and writing.
enum bsw_status bsw_file_create(const char *path, int *fd, struct bsw_error *err);
// The same for a file that runs go on with: keeps the bytes of one that is there. One that another
// process has open so is BSW_ERROR_USAGE, where the file system has locks.
enum bsw_status bsw_file_open_exclusive(const char *path, int *fd, struct bsw_error *err);
// The same of a file that must be there.
enum bsw_status bsw_file_reopen_exclusive(const char *path, int *fd, struct bsw_error *err);
// Opens an existing file for writing.
enum bsw_status bsw_file_open_write(const char *path, int *fd, struct bsw_error *err);

// fsync. After a failure the file is lost: what was written may be gone, whatever a later one says.
enum bsw_status bsw_file_sync(int fd, const char *path, struct bsw_error *err);
// fsync and close; always closes and sets *fd to -1. Every failure is reported: data may be lost.
enum bsw_status bsw_file_sync_close(int *fd, const char *path, struct bsw_error *err);
void bsw_file_close(int *fd); // no sync, no error: for reading

// rename, then fsync of the folder that holds `to`.
enum bsw_status bsw_file_rename(const char *from, const char *to, struct bsw_error *err);

// Removes a file, durably; one that is not there is no error.
enum bsw_status bsw_file_remove(const char *path, struct bsw_error *err);

// Writes a small file atomically: PATH.tmp.PID, fsync, rename, fsync of the folder. Nothing is left
// on failure.
enum bsw_status bsw_file_write_atomic(const char *path, const void *data, size_t bytes,
                                      struct bsw_error *err);

// The same of an output that a user names: through symbolic links (bsw_file_follow), which stay.
enum bsw_status bsw_file_write_output(const char *path, const void *data, size_t bytes,
                                      struct bsw_error *err);

// The name that path has behind symbolic links at its end, there or not: a rename to it leaves the
// links as they are. Links that lead in a circle are BSW_ERROR_USAGE.
#define BSW_PATH_BYTES 4096
enum bsw_status bsw_file_follow(const char *path, char out[BSW_PATH_BYTES], struct bsw_error *err);

int bsw_file_exists(const char *path);
int bsw_file_is_found(const char *path); // no symbolic link that leads nowhere
int bsw_path_is_folder(const char *path);
enum bsw_status bsw_folder_create(const char *path,
                                  struct bsw_error *err); // one level, durable; existing is ok

// Prints into out; BSW_ERROR_USAGE if it does not fit.
enum bsw_status bsw_path_format(char out[BSW_PATH_BYTES], struct bsw_error *err, const char *format,
                                ...) BSW_PRINTF(3, 4);
// The same of folder and name.
enum bsw_status bsw_path_join(char *out, const char *folder, const char *name,
                              struct bsw_error *err);

// ---- temporary files ----------------------------------------------------------------------------

// Files that exist under a temporary name while this process writes them: where a signal ends the
// process (common/job/stop_signal.h), they are removed. Any thread.

// Before the file, or a folder that stays only if it gets something in it, is created; path is
// copied. Beyond 16 at a time, and without memory, it is not noted and would stay behind.
void bsw_temporary_note(const char *path);
// After it was renamed or removed. A path that is not noted is ok.
void bsw_temporary_forget(const char *path);

// Removes all that are noted, and lets no thread note another one from then on: the process must
// end.
void bsw_temporaries_remove(void);

BSW_C_END

// Small files that hold one JSON object.

struct json_t; // of jansson.h

// The caller's to json_decref(). A missing file is BSW_ERROR_IO; one above 1 MiB, or that is no
// JSON object, BSW_ERROR_BAD_DATA.
enum bsw_status bsw_json_file_read(const char *path, struct json_t **out, struct bsw_error *err);

// Atomically and durably, indented by 2, numbers with 9 digits. Takes the reference to object,
// which may be NULL where there was no memory for it.
enum bsw_status bsw_json_file_write(const char *path, struct json_t *object, struct bsw_error *err);

// A file on its way: written beside its final name, renamed when it is whole.

struct bsw_new_file {
    char path[BSW_PATH_BYTES];      // behind symbolic links
    char temporary[BSW_PATH_BYTES]; // PATH.tmp.PID
    int fd;                         // -1 once finished
    int has_temporary;              // there is a file of that name, and it is ours
};

// Whether a file may get this name, or the one that symbolic links lead to from it: it is free or,
// with force, that of a regular file; else BSW_ERROR_USAGE.
enum bsw_status bsw_new_file_check(const char *path, int force, struct bsw_error *err);

// The final name must pass bsw_new_file_check. After an error nothing is left and deinit is
// allowed.
enum bsw_status bsw_new_file_create(const char *path, int force, struct bsw_new_file *out,
                                    struct bsw_error *err);

// fsync, rename to the final name, fsync of the folder.
enum bsw_status bsw_new_file_finish(struct bsw_new_file *file, struct bsw_error *err);

// Removes the temporary file if it was not finished.
void bsw_new_file_deinit(struct bsw_new_file *file);

#endif
