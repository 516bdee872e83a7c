// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/same_input.h"

#include <string.h>
#include <xxhash.h>

#include "common/net/collect.h"
#include "common/net/message_kinds.h"
#include "coordinator/job/command.h"

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
