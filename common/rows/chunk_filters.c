// SPDX-License-Identifier: Apache-2.0
#include "common/rows/chunk_filters.h"

#include <string.h>
#include <zlib.h>

// A chunk between two filters.
struct piece {
    unsigned char *data, *spare;
    size_t bytes, room;
};

static void swap_buffers(struct piece *piece)
{
    unsigned char *data = piece->data;
    piece->data = piece->spare;
    piece->spare = data;
}

static int undo_deflate(struct piece *piece)
{
    uLongf bytes = piece->room;
    if (uncompress(piece->spare, &bytes, piece->data, piece->bytes) != Z_OK) return 0;
    piece->bytes = bytes;
    swap_buffers(piece);
    return 1;
}

// All first bytes of the numbers came first, then all second ones; what is left over as it is.
static void undo_shuffle(struct piece *piece, size_t number_bytes)
{
    size_t count = piece->bytes / number_bytes, whole = count * number_bytes;
    for (size_t b = 0; b < number_bytes; b++)
        for (size_t i = 0; i < count; i++)
            piece->spare[i * number_bytes + b] = piece->data[b * count + i];
    memcpy(piece->spare + whole, piece->data + whole, piece->bytes - whole);
    swap_buffers(piece);
}

// Fletcher's two sums modulo 65535 over big-endian 16-bit words, a last byte as a high one.
static uint32_t fletcher32(const unsigned char *data, size_t bytes)
{
    uint32_t low = 0, high = 0;
    for (size_t i = 0; i < bytes; i += 2) {
        uint32_t word = (uint32_t)data[i] << 8 | (i + 1 < bytes ? data[i + 1] : 0u);
        low += word;
        low = (low & 0xffff) + (low >> 16);
        high += low;
        high = (high & 0xffff) + (high >> 16);
    }
    return ((high & 0xffff) + (high >> 16)) << 16 | ((low & 0xffff) + (low >> 16));
}

static int undo_fletcher32(struct piece *piece)
{
    uint32_t stored;
    if (piece->bytes < sizeof stored) return 0;
    piece->bytes -= sizeof stored;
    memcpy(&stored, piece->data + piece->bytes, sizeof stored);
    return stored == fletcher32(piece->data, piece->bytes);
}

static int undo(int id, size_t number_bytes, struct piece *piece)
{
    switch (id) {
    case BSW_FILTER_DEFLATE:
        return undo_deflate(piece);
    case BSW_FILTER_SHUFFLE:
        undo_shuffle(piece, number_bytes);
        return 1;
    case BSW_FILTER_FLETCHER32:
        return undo_fletcher32(piece);
    default:
        return 0;
    }
}

unsigned char *bsw_chunk_unpack(const struct bsw_chunk_filters *filters, uint32_t skipped,
                                size_t number_bytes, unsigned char *const buffers[2],
                                size_t stored_bytes, size_t chunk_bytes)
{
    struct piece piece = {buffers[0], buffers[1], stored_bytes, bsw_chunk_room(chunk_bytes)};
    for (int i = filters->count - 1; i >= 0; i--) {
        if (!(skipped >> i & 1) && !undo(filters->ids[i], number_bytes, &piece)) return NULL;
    }
    return piece.bytes == chunk_bytes ? piece.data : NULL;
}
