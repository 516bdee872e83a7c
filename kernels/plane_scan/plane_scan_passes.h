// SPDX-License-Identifier: Apache-2.0
// dots of levels whose tables take 6 query bits in a pass: the seventh is a second one. Each
// defines SECOND_PASS and includes this behind its own struct nibble_tables, make_tables and
// scan_chunk.
#ifndef BITSWEEP_KERNELS_PLANE_SCAN_PASSES_H
#define BITSWEEP_KERNELS_PLANE_SCAN_PASSES_H

#include "kernels/plane_scan/plane_scan.h"
#include "kernels/plane_scan/plane_scan_rows.h"

#if defined(SECOND_PASS) // nothing without it

static void scan_dots(const struct bsw_segment *segment, struct bsw_word_range range,
                      const uint32_t *codes, size_t num_bundles, const uint32_t *query,
                      unsigned query_bits, int accumulate, int32_t *dots)
{
    struct nibble_tables tables[CHUNK_WORDS];
    unsigned table_bits = query_bits < TABLE_BITS ? query_bits : TABLE_BITS;
    size_t words = segment->words, last = (size_t)range.first + range.count;
    int32_t offset = bsw_range_limit(segment, range, query_bits);
    for (size_t w = range.first; w < last; w += CHUNK_WORDS) {
        struct chunk chunk = bsw_chunk_of(segment, range, codes, num_bundles, w);
        chunk.shift = query_bits - table_bits;
        make_tables(query + w, words, chunk.num_words, table_bits, tables);
        scan_chunk(&chunk, tables, num_bundles, offset, accumulate, dots);
        if (query_bits > TABLE_BITS) {
            chunk.shift = 0;
            make_tables(query + TABLE_BITS * words + w, words, chunk.num_words, 1, tables);
            scan_chunk(&chunk, tables, num_bundles, 0, 1, dots);
        }
        offset = 0;
        accumulate = 1;
    }
}

#endif
#endif
