// SPDX-License-Identifier: Apache-2.0
#include "common/job/new_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"

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
