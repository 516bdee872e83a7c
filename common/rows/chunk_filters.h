// SPDX-License-Identifier: Apache-2.0
// Undoes what packs the chunks of an HDF5 dataset: shuffle, deflate, fletcher32. H5Dread would do
// it, too, but believes a chunk about the size it unpacks to, and reads beyond its buffer (1.10.8):
// one changed byte of a file is enough. Here every size is checked.
#ifndef BITSWEEP_COMMON_CHUNK_FILTERS_H
#define BITSWEEP_COMMON_CHUNK_FILTERS_H

#include <stddef.h>
#include <stdint.h>

// HDF5's numbers of the filters.
#define BSW_FILTER_DEFLATE    1
#define BSW_FILTER_SHUFFLE    2
#define BSW_FILTER_FLETCHER32 3

#define BSW_CHUNK_MAX_FILTERS 8

struct bsw_chunk_filters {
    int count;
    int ids[BSW_CHUNK_MAX_FILTERS]; // in the order in which they were applied
};

// Bytes that each buffer must have: a packed chunk that is larger is refused.
static inline size_t bsw_chunk_room(size_t chunk_bytes)
{
    return chunk_bytes + chunk_bytes / 64 + 4096;
}

// Unpacks stored_bytes of buffers[0] (at most bsw_chunk_room(chunk_bytes)), which has chunk_bytes
// of numbers of number_bytes (>= 1) each; bit i of `skipped` says that filter i was not applied.
// Both buffers are overwritten. Returns the one with the chunk; NULL if it does not unpack to
// exactly chunk_bytes, its checksum is wrong, or a filter is unknown.
unsigned char *bsw_chunk_unpack(const struct bsw_chunk_filters *filters, uint32_t skipped,
                                size_t number_bytes, unsigned char *const buffers[2],
                                size_t stored_bytes, size_t chunk_bytes);

#endif
