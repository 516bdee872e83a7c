// SPDX-License-Identifier: Apache-2.0
// The tiles a shard is scanned in: bundles whose codes stay in the second cache and whose integers
// stay in the first.
#ifndef BITSWEEP_SHARD_SHARD_TILES_H
#define BITSWEEP_SHARD_SHARD_TILES_H

#include <stddef.h>
#include <stdint.h>

#include "shard/host/scan_stage.h"
#include "shard/host/shard_scan.h"
#include "shard/host/tile_ahead.h"

// 2048 rows: their integers are 8 KiB; fewer where codes are wide.
#define BSW_TILE_BUNDLES    64
#define BSW_TILE_ROWS       (BSW_TILE_BUNDLES * BSW_BUNDLE_ROWS)
#define BSW_TILE_CODE_BYTES ((size_t)512 << 10)

static inline size_t bsw_tile_bundles(const struct bsw_shard_shape *shape)
{
    size_t bundles = BSW_TILE_CODE_BYTES / shape->bundle_bytes;
    return bundles < 1 ? 1 : bundles > BSW_TILE_BUNDLES ? BSW_TILE_BUNDLES : bundles;
}

// Bundles of a matrix tile of which all queries go over `dims` dimensions of tile_kib KiB of bytes.
static inline size_t bsw_matrix_tile_bundles(uint32_t dims, uint32_t tile_kib)
{
    size_t bundles = ((size_t)tile_kib << 10) / bsw_matrix_tile_bytes(dims, 1);
    return bundles < 1 ? 1 : bundles > BSW_TILE_BUNDLES ? BSW_TILE_BUNDLES : bundles;
}

// Biases of a tile: places from `place` on. NULL where keys are integers; zeros, which stay in the
// cache, where the shard has none beside its scales.
extern const float bsw_zero_biases[BSW_TILE_ROWS];
static inline const float *bsw_tile_biases(const struct bsw_code_arrays *arrays, size_t place)
{
    if (arrays->biases) return arrays->biases + place;
    return arrays->scales ? bsw_zero_biases : NULL;
}

// Planes of some bundles to bytes. ahead: as bsw_matrix_tile_at's.
static inline void bsw_tile_unpack(const struct bsw_resident_shard *shard,
                                   const struct bsw_matrix_scan_table *matrix_scan, size_t bundle,
                                   size_t num_bundles, uint8_t *room, struct bsw_tile_ahead *ahead)
{
    const struct bsw_code_layout *layout = &shard->shape.layout;
    const uint32_t *planes[BSW_MAX_SEGMENTS];
    for (size_t b = 0, count; b < num_bundles; b += count) {
        size_t lines = ahead ? ahead->num_lines / (num_bundles - b) : 0;
        count = lines > 0 ? 1 : num_bundles - b;
        for (uint32_t s = 0; s < layout->num_segments; s++)
            planes[s] = shard->arrays.planes[s] +
                        (bundle + b) * bsw_segment_bundle_words(&layout->segments[s]);
        if (lines > 0) bsw_tile_ahead_ask(ahead, lines);
        matrix_scan->unpack(layout, planes, count,
                            room + bsw_matrix_tile_bytes(layout->padded_dims, b));
    }
}

// A tile as matrix_scan takes it; its bytes are unpacked to `room`, or where they lie in memory.
// ahead: is asked for meanwhile, if there is a line or more for each bundle to unpack; or NULL.
static inline struct bsw_matrix_tile
bsw_matrix_tile_at(const struct bsw_resident_shard *shard,
                   const struct bsw_matrix_scan_table *matrix_scan, size_t bundle,
                   size_t num_bundles, uint8_t *room, struct bsw_tile_ahead *ahead)
{
    const struct bsw_code_layout *layout = &shard->shape.layout;
    const struct bsw_code_arrays *arrays = &shard->arrays;
    size_t place = bundle * BSW_BUNDLE_ROWS;
    const uint8_t *bytes = room;
    if (shard->shape.has_bytes)
        bytes = (const uint8_t *)(arrays->planes[0] +
                                  bundle * bsw_segment_bundle_words(&layout->segments[0]));
    else
        bsw_tile_unpack(shard, matrix_scan, bundle, num_bundles, room, ahead);
    return (struct bsw_matrix_tile){.bytes = bytes,
                                    .num_bundles = num_bundles,
                                    .padded_dims = layout->padded_dims,
                                    .first_row = (uint32_t)place,
                                    .masks = arrays->masks + bundle,
                                    .scales = arrays->scales ? arrays->scales + place : NULL,
                                    .biases = bsw_tile_biases(arrays, place),
                                    .tails = arrays->tails ? arrays->tails + place : NULL,
                                    .offsets = arrays->offsets ? arrays->offsets + place : NULL};
}

// Places of a tile of product codes whose keys, by a query's table, reach the limit, as candidates;
// returns how many. addition: to keys, 0 without. sums: room for the tile's rows; items: too.
static inline size_t bsw_tile_find(const struct bsw_resident_shard *shard,
                                   const struct bsw_table_scan_table *table_scan,
                                   const struct bsw_code_table *table, float multiplier,
                                   float addition, size_t bundle, size_t num_bundles,
                                   uint32_t limit, float *sums, uint64_t *items)
{
    const struct bsw_code_arrays *arrays = &shard->arrays;
    size_t words = bsw_segment_bundle_words(&shard->shape.layout.segments[0]);
    table_scan->sums(table, (const uint8_t *)(arrays->planes[0] + bundle * words),
                     words * sizeof(uint32_t), num_bundles, sums);
    return table_scan->filter(sums, multiplier, addition, arrays->masks + bundle, num_bundles,
                              (uint32_t)(bundle * BSW_BUNDLE_ROWS), limit, items);
}

// The integers of one query over a tile: padded dimensions [first_dim, last_dim), multiples of 32,
// segment by segment.
static inline void bsw_tile_dots(const struct bsw_resident_shard *shard,
                                 const struct bsw_plane_scan_table *plane_scan,
                                 const struct bsw_query_batch *batch, size_t query, size_t bundle,
                                 size_t num_bundles, uint32_t first_dim, uint32_t last_dim,
                                 int32_t *dots)
{
    const uint32_t *words = batch->words + query * batch->query_words;
    const struct bsw_code_layout *layout = &shard->shape.layout;
    int accumulate = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        struct bsw_word_range range = bsw_words_between(segment, first_dim, last_dim);
        if (range.count > 0) {
            plane_scan->dots(segment, range,
                             shard->arrays.planes[s] + bundle * bsw_segment_bundle_words(segment),
                             num_bundles, words, batch->query_bits, accumulate, dots);
            accumulate = 1;
        }
        words += (size_t)segment->words * batch->query_bits;
    }
}

// Adds the dimensions from first_dim on for some rows of the tile.
static inline void bsw_tile_add_rows(const struct bsw_resident_shard *shard,
                                     const struct bsw_plane_scan_table *plane_scan,
                                     const struct bsw_query_batch *batch, size_t query,
                                     size_t bundle, uint32_t first_dim, const uint32_t *places,
                                     size_t num_places, int32_t *dots)
{
    const uint32_t *words = batch->words + query * batch->query_words;
    const struct bsw_code_layout *layout = &shard->shape.layout;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        struct bsw_word_range range = bsw_words_between(segment, first_dim, layout->padded_dims);
        if (range.count > 0)
            plane_scan->add_rows(segment, range,
                                 shard->arrays.planes[s] +
                                     bundle * bsw_segment_bundle_words(segment),
                                 places, num_places, words, batch->query_bits, dots);
        words += (size_t)segment->words * batch->query_bits;
    }
}

#endif
