// SPDX-License-Identifier: Apache-2.0
// plane_scan: XOR and popcount of bit planes, the integers of XFBQ Eq. 10 and Eq. 7.
//
// One query over a tile of bundles. Pair by pair of planes that is one XOR, one popcount and one
// weighted add a bundle word; the SIMD levels look up the distance of 4 dimensions to all query
// planes in a table instead, so that a word costs the same for 1 to 6 query bits and one query is
// bound by memory: 36 bytes a document at 96 dims and 3 bits. Making the tables costs as much as
// scanning one or two bundles. Tiles are sized by the caller so that `dots` stays in the first
// cache.
#ifndef BITSWEEP_KERNELS_PLANE_SCAN_H
#define BITSWEEP_KERNELS_PLANE_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/codes/code_layout.h"
#include "kernels/kernel_table.h"

BSW_C_BEGIN

// Words of a segment: at least one, within the segment.
struct bsw_word_range {
    uint32_t first, count;
};

static inline struct bsw_word_range bsw_all_words(const struct bsw_segment *segment)
{
    return (struct bsw_word_range){0, segment->words};
}

// Dimensions in a range: words are 32, but for the segment's last.
static inline uint32_t bsw_range_dims(const struct bsw_segment *segment,
                                      struct bsw_word_range range)
{
    uint32_t last = 32 * (range.first + range.count);
    return (last < segment->dims ? last : segment->dims) - 32 * range.first;
}

struct bsw_plane_scan_table {
    const char *level;

    // dots[32*b + lane] = (or +=, if accumulate) d*(2^Bq - 1)*(2^B - 1) - 2*distance for the words
    // [range.first, range.first + range.count) of one segment, d their dimensions, distance = sum
    // over plane pairs (i of query, j of document) of popc(q_i xor d_j) << (Bq-1-i + B-1-j). codes:
    // [num_bundles][bits][words][32], 64-byte aligned; query: [query_bits][words]; query_bits 1 ..
    // 7; dots: [num_bundles * 32], 64-byte aligned. Padding lanes (codes 0) get a value too: mask
    // them when selecting. Cannot fail; thread-safe; integers, so every level gives the same.
    void (*dots)(const struct bsw_segment *segment, struct bsw_word_range range,
                 const uint32_t *codes, size_t num_bundles, const uint32_t *query,
                 unsigned query_bits, int accumulate, int32_t *dots);

    // dots[places[i]] += the same for some rows alone: place 32*b + lane, all different. Few rows a
    // tile: what they need is fetched ahead.
    void (*add_rows)(const struct bsw_segment *segment, struct bsw_word_range range,
                     const uint32_t *codes, const uint32_t *places, size_t num_places,
                     const uint32_t *query, unsigned query_bits, int32_t *dots);
};

BSW_KERNEL_LEVELS(plane_scan);

BSW_C_END
#endif
