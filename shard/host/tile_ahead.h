// SPDX-License-Identifier: Apache-2.0
// What a later tile is scanned from, asked for while another one is scanned.
//
// A few lines at a time: a core keeps some 20 on their way, and of prefetches that follow each
// other closely without a load many come to nothing (AMD Zen 3: of 80 at once half the wait is
// left, of 16 at a time a tenth).
#ifndef BITSWEEP_SHARD_TILE_AHEAD_H
#define BITSWEEP_SHARD_TILE_AHEAD_H

#include <stddef.h>

#include "shard/host/resident_shard.h"

#define BSW_AHEAD_LINES 16   // at a time
#define BSW_AHEAD_BYTES 8192 // of an array at most: prefetchers of the CPU go on from there

struct bsw_ahead_part {
    const char *at;
    size_t lines;
};

struct bsw_tile_ahead {
    struct bsw_ahead_part parts[BSW_MAX_SEGMENTS + 2];
    size_t num_parts, num_lines; // left
};

static inline void bsw_ahead_add(struct bsw_tile_ahead *ahead, const void *at, size_t bytes)
{
    if (bytes > BSW_AHEAD_BYTES) bytes = BSW_AHEAD_BYTES;
    size_t lines = (bytes + BSW_ALIGNMENT_BYTES - 1) / BSW_ALIGNMENT_BYTES;
    ahead->parts[ahead->num_parts++] = (struct bsw_ahead_part){(const char *)at, lines};
    ahead->num_lines += lines;
}

// Begins with some bundles; nothing is asked for yet.
static inline struct bsw_tile_ahead bsw_tile_ahead_of(const struct bsw_resident_shard *shard,
                                                      size_t bundle, size_t num_bundles)
{
    const struct bsw_code_layout *layout = &shard->shape.layout;
    const struct bsw_code_arrays *arrays = &shard->arrays;
    size_t place = bundle * BSW_BUNDLE_ROWS, rows = num_bundles * BSW_BUNDLE_ROWS;
    struct bsw_tile_ahead ahead;
    ahead.num_parts = ahead.num_lines = 0;
    if (arrays->biases)
        bsw_ahead_add(&ahead, arrays->biases + place, rows * sizeof *arrays->biases);
    if (arrays->scales)
        bsw_ahead_add(&ahead, arrays->scales + place, rows * sizeof *arrays->scales);
    for (uint32_t s = layout->num_segments; s-- > 0;) {
        size_t words = bsw_segment_bundle_words(&layout->segments[s]);
        bsw_ahead_add(&ahead, arrays->planes[s] + bundle * words,
                      num_bundles * words * sizeof(uint32_t));
    }
    return ahead;
}

// Asks for some lines more, the last part's first.
static inline void bsw_tile_ahead_ask(struct bsw_tile_ahead *ahead, size_t num)
{
    while (num > 0 && ahead->num_parts > 0) {
        struct bsw_ahead_part *part = &ahead->parts[ahead->num_parts - 1];
        size_t lines = part->lines < num ? part->lines : num;
        for (size_t i = 0; i < lines; i++) __builtin_prefetch(part->at + i * BSW_ALIGNMENT_BYTES);
        part->at += lines * BSW_ALIGNMENT_BYTES;
        part->lines -= lines;
        num -= lines;
        ahead->num_lines -= lines;
        if (part->lines == 0) ahead->num_parts--;
    }
}

#endif
