// SPDX-License-Identifier: Apache-2.0
#include "coordinator/truth/truth_split.h"

#include <stdio.h>

#include "common/base/file.h"
#include "common/base/memory.h"

#define HEAD_BYTES 8
#define COPY_BYTES ((size_t)1 << 20)

static const char *const endings[2] = {".neighbors.ibin", ".distances.fbin"};

enum bsw_status bsw_truth_split_check(const char *path, int force, struct bsw_error *err)
{
    for (int i = 0; i < 2; i++) {
        char name[BSW_PATH_BYTES];
        BSW_TRY(bsw_path_format(name, err, "%s%s.tmp.0123456789", path, endings[i]));
        BSW_TRY(bsw_path_format(name, err, "%s%s", path, endings[i]));
        BSW_TRY(bsw_new_file_check(name, force, err));
    }
    return BSW_OK;
}

// The head, then `bytes` from `offset` of the whole file.
static enum bsw_status copy_part(int from, const char *path, uint64_t offset, uint64_t bytes,
                                 int to, const char *name, struct bsw_error *err)
{
    unsigned char *room, head[HEAD_BYTES];
    BSW_TRY(bsw_allocate(&room, COPY_BYTES, 1, "copy", err));
    enum bsw_status status = bsw_file_read_at(from, path, 0, head, HEAD_BYTES, err);
    if (status == BSW_OK) status = bsw_file_write_at(to, name, 0, head, HEAD_BYTES, err);
    for (uint64_t done = 0; done < bytes && status == BSW_OK; done += COPY_BYTES) {
        size_t part = bytes - done < COPY_BYTES ? (size_t)(bytes - done) : COPY_BYTES;
        status = bsw_file_read_at(from, path, offset + done, room, part, err);
        if (status == BSW_OK)
            status = bsw_file_write_at(to, name, HEAD_BYTES + done, room, part, err);
    }
    bsw_free(&room);
    return status;
}

static enum bsw_status write_part(int from, const char *path, const char *ending, uint64_t offset,
                                  uint64_t bytes, struct bsw_error *err)
{
    char name[BSW_PATH_BYTES];
    struct bsw_new_file file;
    BSW_TRY(bsw_path_format(name, err, "%s%s", path, ending));
    BSW_TRY(bsw_new_file_create(name, 1, &file, err)); // checked before
    enum bsw_status status = copy_part(from, path, offset, bytes, file.fd, file.temporary, err);
    if (status == BSW_OK) status = bsw_new_file_finish(&file, err);
    bsw_new_file_deinit(&file);
    return status;
}

enum bsw_status bsw_truth_split_write(const char *path, uint64_t num_queries, uint64_t k,
                                      struct bsw_error *err)
{
    uint64_t bytes = num_queries * k * sizeof(int32_t), file_bytes;
    int from;
    BSW_TRY(bsw_file_open_read(path, &from, &file_bytes, err));
    enum bsw_status status = write_part(from, path, endings[0], HEAD_BYTES, bytes, err);
    if (status == BSW_OK)
        status = write_part(from, path, endings[1], HEAD_BYTES + bytes, bytes, err);
    bsw_file_close(&from);
    return status;
}
