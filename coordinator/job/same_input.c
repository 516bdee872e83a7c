// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/same_input.h"

#include <string.h>
#include <xxhash.h>

#include "common/base/memory.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/job/command.h"
#include "kernels/encode/encode.h"

#define SAMPLED_ROWS 64

struct input {
    uint64_t digest;
    const char *name;
};

static enum bsw_status compare(void *context, int rank, const struct bsw_buffer *payload,
                               struct bsw_error *err)
{
    const struct input *own = context;
    if (payload->bytes == sizeof own->digest &&
        memcmp(payload->data, &own->digest, sizeof own->digest) == 0)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: rank %d sees another one than rank 0 under this name", own->name, rank);
}

enum bsw_status bsw_same_input_agree(struct bsw_transport *transport, uint64_t digest,
                                     const char *name, struct bsw_error *err)
{
    struct bsw_message message = {.kind = BSW_MESSAGE_INPUT, .name = "digest of the input"};
    struct input own = {digest, name};
    enum bsw_status status =
        bsw_collect(transport, &message, &digest, sizeof digest, compare, &own, err);
    return bsw_transport_agree(transport, status, err);
}

enum bsw_status bsw_same_input_digest(const bsw_vectors *vectors, uint64_t *out,
                                      struct bsw_error *err)
{
    size_t row_bytes = bsw_vectors_row_bytes(vectors);
    uint64_t first = bsw_vectors_first_row(vectors), num_rows = bsw_vectors_num_rows(vectors);
    uint64_t count = num_rows < SAMPLED_ROWS ? num_rows : SAMPLED_ROWS;
    const uint64_t shape[] = {
        bsw_vectors_type(vectors),        bsw_vectors_dims(vectors),      first, num_rows,
        bsw_vectors_source_rows(vectors), bsw_vectors_file_bytes(vectors)};
    uint64_t digest = XXH3_64bits(shape, sizeof shape);
    void *row;
    BSW_TRY(bsw_allocate(&row, row_bytes, 1, "row", err));
    enum bsw_status status = BSW_OK;
    for (uint64_t i = 0; i < count && status == BSW_OK; i++) {
        status = bsw_vectors_read(vectors, first + bsw_part_first(num_rows, i, count), 1, row, err);
        if (status == BSW_OK) digest = XXH3_64bits_withSeed(row, row_bytes, digest);
    }
    bsw_free(&row);
    if (status == BSW_OK) *out = digest;
    return status;
}

// ---- queries ------------------------------------------------------------------------------------

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
