// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/query_digest.h"

#include <xxhash.h>

#include "common/base/memory.h"
#include "kernels/encode/encode.h"

enum { BLOCK_ROWS = 256 };

void bsw_query_digest_add(uint64_t *digest, const float *rows, size_t num_rows, size_t dims)
{
    for (size_t i = 0; i < num_rows; i++)
        *digest = XXH3_64bits_withSeed(rows + i * dims, dims * sizeof *rows, *digest);
}

enum bsw_status bsw_query_digest(const bsw_vectors *queries, uint64_t *out, struct bsw_error *err)
{
    const struct bsw_encode_table *encode = bsw_encode_table_get(BSW_CPU_REFERENCE);
    size_t dims = bsw_vectors_dims(queries);
    uint64_t num_rows = bsw_vectors_num_rows(queries), digest = 0;
    void *raw;
    float *rows = NULL;
    BSW_TRY(bsw_allocate(&raw, BLOCK_ROWS, bsw_vectors_row_bytes(queries), "queries", err));
    enum bsw_status status = bsw_allocate(&rows, BLOCK_ROWS, dims * sizeof *rows, "queries", err);
    for (uint64_t first = 0; first < num_rows && status == BSW_OK; first += BLOCK_ROWS) {
        uint64_t left = num_rows - first;
        size_t count = left < BLOCK_ROWS ? (size_t)left : BLOCK_ROWS;
        status = bsw_vectors_read(queries, bsw_vectors_first_row(queries) + first, count, raw, err);
        if (status != BSW_OK) break;
        encode->to_float(bsw_vectors_type(queries), raw, count * dims, rows);
        bsw_query_digest_add(&digest, rows, count, dims);
    }
    bsw_free(&rows);
    bsw_free(&raw);
    if (status == BSW_OK) *out = digest;
    return status;
}
