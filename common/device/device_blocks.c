// SPDX-License-Identifier: Apache-2.0
#include "common/device/device_blocks.h"

#include <string.h>

// A thread's share of a copy, at least.
#define PART_BYTES ((size_t)1 << 18)

enum bsw_status bsw_device_blocks_open(bsw_device *device, size_t bytes,
                                       struct bsw_device_blocks *out, struct bsw_error *err)
{
    *out = (struct bsw_device_blocks){.device = device, .bytes = bytes};
    return bsw_device_allocate_host(device, 2 * bytes, "blocks of copies", &out->host, err);
}

void bsw_device_blocks_close(struct bsw_device_blocks *blocks)
{
    if (blocks->device) bsw_device_free_host(blocks->device, &blocks->host);
    blocks->device = NULL;
}

// One core copies at a fraction of a bus's speed.
static void copy(unsigned char *to, const unsigned char *from, size_t bytes)
{
    size_t num_parts = (bytes + PART_BYTES - 1) / PART_BYTES;
#pragma omp parallel for schedule(static) if (num_parts > 1)
    for (size_t part = 0; part < num_parts; part++) {
        size_t first = part * PART_BYTES, left = bytes - first;
        memcpy(to + first, from + first, left < PART_BYTES ? left : PART_BYTES);
    }
}

static unsigned char *next_block(struct bsw_device_blocks *blocks)
{
    return blocks->host + (blocks->turn++ % 2) * blocks->bytes;
}

// A block is filled while the one before it travels; the one before that has arrived.
enum bsw_status bsw_device_blocks_upload(struct bsw_device_blocks *blocks, void *to,
                                         const void *from, size_t bytes, const char *what,
                                         struct bsw_error *err)
{
    for (size_t done = 0, count; done < bytes; done += count) {
        unsigned char *block = next_block(blocks);
        count = bytes - done < blocks->bytes ? bytes - done : blocks->bytes;
        copy(block, (const unsigned char *)from + done, count);
        BSW_TRY(bsw_device_wait(blocks->device, BSW_QUEUE_COPY, what, err));
        BSW_TRY(bsw_device_upload(blocks->device, BSW_QUEUE_COPY, (unsigned char *)to + done, block,
                                  count, err));
    }
    return BSW_OK;
}

// ---- down ----

// A piece of the rows that a block holds: whole ones, or a part of one.
struct piece {
    size_t row, num_rows, column, bytes;
    const unsigned char *block;
};

static int next_piece(const struct bsw_device_blocks *blocks, const struct bsw_device_rows *rows,
                      struct piece *piece)
{
    size_t row = piece->row, column = piece->column + piece->bytes;
    if (column == rows->row_bytes) {
        row += piece->num_rows;
        column = 0;
    }
    size_t bytes = rows->row_bytes - column, left = rows->num_rows - row;
    if (bytes > blocks->bytes) bytes = blocks->bytes;
    size_t most = bytes == rows->row_bytes ? blocks->bytes / bytes : 1;
    *piece = (struct piece){row, left < most ? left : most, column, bytes, NULL};
    return left > 0;
}

static enum bsw_status fetch(struct bsw_device_blocks *blocks, enum bsw_device_queue queue,
                             const void *from, const struct bsw_device_rows *rows,
                             struct piece *piece, struct bsw_error *err)
{
    unsigned char *block = next_block(blocks);
    piece->block = block;
    return bsw_device_download_rows(blocks->device, queue, block,
                                    (const unsigned char *)from + piece->row * rows->from_stride +
                                        piece->column,
                                    piece->bytes, piece->num_rows, rows->from_stride, err);
}

static void spread(void *to, const struct bsw_device_rows *rows, const struct piece *piece)
{
    unsigned char *first = (unsigned char *)to + piece->row * rows->to_stride + piece->column;
    for (size_t i = 0; i < piece->num_rows; i++)
        memcpy(first + i * rows->to_stride, piece->block + i * piece->bytes, piece->bytes);
}

enum bsw_status bsw_device_blocks_download(struct bsw_device_blocks *blocks,
                                           enum bsw_device_queue queue, void *to, const void *from,
                                           const struct bsw_device_rows *rows, const char *what,
                                           struct bsw_error *err)
{
    struct piece piece, next = {0};
    if (rows->row_bytes == 0 || rows->num_rows == 0)
        return bsw_device_wait(blocks->device, queue, what, err);
    next.column = rows->row_bytes; // before the first
    int is_left = next_piece(blocks, rows, &next);
    BSW_TRY(fetch(blocks, queue, from, rows, &next, err));
    while (is_left) {
        BSW_TRY(bsw_device_wait(blocks->device, queue, what, err));
        piece = next;
        is_left = next_piece(blocks, rows, &next);
        if (is_left) BSW_TRY(fetch(blocks, queue, from, rows, &next, err));
        spread(to, rows, &piece);
    }
    return BSW_OK;
}
