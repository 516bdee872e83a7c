// add_rows of plane_scan for the levels that have a popcount: each includes this with its own
// flags.
#ifndef BITSWEEP_KERNELS_PLANE_SCAN_ROWS_H
#define BITSWEEP_KERNELS_PLANE_SCAN_ROWS_H

#include "kernels/plane_scan/plane_scan.h"

#define BSW_ROWS_AHEAD 8

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
    int32_t limit = (int32_t)bsw_range_dims(segment, range) * ((1 << query_bits) - 1) *
                    ((1 << segment->bits) - 1);
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
