// SPDX-License-Identifier: Apache-2.0
// What the vector levels of plane_scan do alike: add_rows with a popcount, and the chunks of words
// whose tables are made at a time. Each includes this with its own flags.
#ifndef BITSWEEP_KERNELS_PLANE_SCAN_ROWS_H
#define BITSWEEP_KERNELS_PLANE_SCAN_ROWS_H

#include "kernels/plane_scan/plane_scan.h"

#define BSW_ROWS_AHEAD 8

#define TABLE_BITS     6  // query planes a table can hold: 4 * 63 is 252
#define CHUNK_WORDS    32 // words whose tables are made at a time: 4 KiB of the stack

// One core keeps too few lines on their way for the memory's latency unless told far ahead: into
// the second cache 8 KiB ahead, into the first 1 KiB. Calls for few bundles are jumps of a
// progressive scan; there the lines ahead are not wanted.
#define FAR_BYTES            ((size_t)8192)
#define NEAR_BYTES           ((size_t)1024)
#define MIN_PREFETCH_BUNDLES 8

struct chunk {
    const uint32_t *codes; // the chunk's first word of plane 0 of bundle 0
    size_t bundle_words;
    size_t words;                 // of the segment
    size_t num_words;             // of the chunk
    size_t far_bytes, near_bytes; // to prefetch ahead
    unsigned bits;
    const uint32_t *extra; // avx512: the query's seventh plane from the chunk's first word on
    unsigned shift;        // avx2: of all distances
};

// From word `first` of the segment on.
static inline struct chunk bsw_chunk_of(const struct bsw_segment *segment,
                                        struct bsw_word_range range, const uint32_t *codes,
                                        size_t num_bundles, size_t first)
{
    int is_stream = num_bundles >= MIN_PREFETCH_BUNDLES;
    size_t left = (size_t)range.first + range.count - first;
    struct chunk chunk = {.codes = codes + first * BSW_BUNDLE_ROWS,
                          .bundle_words = bsw_segment_bundle_words(segment),
                          .words = segment->words,
                          .num_words = left < CHUNK_WORDS ? left : CHUNK_WORDS,
                          .far_bytes = is_stream ? FAR_BYTES : 0,
                          .near_bytes = is_stream ? NEAR_BYTES : 0,
                          .bits = segment->bits,
                          .extra = NULL,
                          .shift = 0};
    return chunk;
}

static inline __attribute__((always_inline)) void bsw_prefetch_word(const struct chunk *chunk,
                                                                    const uint32_t *word)
{
    const char *far = (const char *)word + chunk->far_bytes;
    const char *near = (const char *)word + chunk->near_bytes;
    __builtin_prefetch(far, 0, 2);
    __builtin_prefetch(far + 64, 0, 2);
    __builtin_prefetch(near, 0, 3);
    __builtin_prefetch(near + 64, 0, 3);
}

// The largest dot of the range's dimensions.
static inline int32_t bsw_range_limit(const struct bsw_segment *segment,
                                      struct bsw_word_range range, unsigned query_bits)
{
    return (int32_t)bsw_range_dims(segment, range) * ((1 << query_bits) - 1) *
           ((1 << segment->bits) - 1);
}

static inline const uint32_t *bsw_row_words(const struct bsw_segment *segment,
                                            const uint32_t *codes, uint32_t place)
{
    return codes + place / BSW_BUNDLE_ROWS * bsw_segment_bundle_words(segment) +
           place % BSW_BUNDLE_ROWS;
}

static inline void bsw_prefetch_row(const struct bsw_segment *segment, struct bsw_word_range range,
                                    const uint32_t *row)
{
    for (size_t j = 0; j < segment->bits; j++) {
        for (size_t w = range.first; w < range.first + range.count; w++)
            __builtin_prefetch(row + (j * segment->words + w) * BSW_BUNDLE_ROWS);
    }
}

// Distance of one plane of a document to all planes of the query.
static inline uint64_t bsw_plane_distance(const struct bsw_segment *segment,
                                          struct bsw_word_range range, const uint32_t *plane,
                                          const uint32_t *query, unsigned query_bits)
{
    uint64_t distance = 0;
    for (size_t w = range.first; w < range.first + range.count; w++) {
        uint32_t word = plane[w * BSW_BUNDLE_ROWS];
        uint64_t differing = 0;
        for (unsigned i = 0; i < query_bits; i++)
            differing =
                2 * differing + (uint64_t)__builtin_popcount(word ^ query[i * segment->words + w]);
        distance += differing;
    }
    return distance;
}

static inline void bsw_add_rows(const struct bsw_segment *segment, struct bsw_word_range range,
                                const uint32_t *codes, const uint32_t *places, size_t num_places,
                                const uint32_t *query, unsigned query_bits, int32_t *dots)
{
    int32_t limit = bsw_range_limit(segment, range, query_bits);
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    for (size_t i = 0; i < num_places && i < BSW_ROWS_AHEAD; i++)
        bsw_prefetch_row(segment, range, bsw_row_words(segment, codes, places[i]));
    for (size_t i = 0; i < num_places; i++) {
        const uint32_t *row = bsw_row_words(segment, codes, places[i]);
        uint64_t distance = 0;
        if (i + BSW_ROWS_AHEAD < num_places)
            bsw_prefetch_row(segment, range,
                             bsw_row_words(segment, codes, places[i + BSW_ROWS_AHEAD]));
        for (unsigned j = 0; j < segment->bits; j++)
            distance = 2 * distance + bsw_plane_distance(segment, range, row + j * plane_stride,
                                                         query, query_bits);
        dots[places[i]] += limit - 2 * (int32_t)distance;
    }
}

#endif
