// SPDX-License-Identifier: Apache-2.0
#include "common/files/coverage_file.h"

#include <stdio.h>
#include <string.h>

#include "common/base/memory.h"

#define HEAD_BYTES 128
#define MAGIC      "\x93NUMPY\x01"

enum bsw_status bsw_coverage_path(char out[BSW_PATH_BYTES], const char *result,
                                  struct bsw_error *err)
{
    return bsw_path_format(out, err, "%s.coverage.npy", result);
}

// NumPy's head in 128 bytes: what a number is, and how many there are.
static void make_head(uint64_t num_queries, char head[HEAD_BYTES])
{
    const size_t before = sizeof MAGIC + 2; // the magic with a 0 behind it, and the length
    char text[HEAD_BYTES];
    int length =
        snprintf(text, sizeof text, "{'descr': '<f8', 'fortran_order': False, 'shape': (%llu,), }",
                 (unsigned long long)num_queries);
    memset(head, ' ', HEAD_BYTES);
    memcpy(head, MAGIC, sizeof MAGIC);
    head[sizeof MAGIC] = (char)(HEAD_BYTES - before);
    head[sizeof MAGIC + 1] = 0;
    memcpy(head + before, text, (size_t)length);
    head[HEAD_BYTES - 1] = '\n';
}

enum bsw_status bsw_coverage_write(const char *result, const double *shares, uint64_t num_queries,
                                   struct bsw_error *err)
{
    char path[BSW_PATH_BYTES], head[HEAD_BYTES];
    struct bsw_buffer bytes = {0};
    make_head(num_queries, head);
    BSW_TRY(bsw_coverage_path(path, result, err));
    enum bsw_status status = bsw_buffer_append(&bytes, head, sizeof head, err);
    if (status == BSW_OK)
        status = bsw_buffer_append(&bytes, shares, (size_t)num_queries * sizeof *shares, err);
    if (status == BSW_OK) status = bsw_file_write_atomic(path, bytes.data, bytes.bytes, err);
    bsw_buffer_deinit(&bytes);
    return status;
}
