// SPDX-License-Identifier: Apache-2.0
// The oracle: Eq. 10 plane pair by plane pair, Eq. 7 at the end.
#include "kernels/plane_scan/plane_scan.h"

static int32_t row_dot(const struct bsw_segment *segment, struct bsw_word_range range,
                       const uint32_t *row, const uint32_t *query, unsigned query_bits)
{
    int64_t distance = 0, dims = bsw_range_dims(segment, range);
    for (unsigned i = 0; i < query_bits; i++) {
        for (unsigned j = 0; j < segment->bits; j++) {
            int64_t differing = 0;
            for (size_t w = range.first; w < range.first + range.count; w++) {
                uint32_t q = query[i * segment->words + w];
                uint32_t d = row[(j * segment->words + w) * BSW_BUNDLE_ROWS];
                differing += __builtin_popcount(q ^ d);
            }
            distance += differing << (query_bits - 1 - i + segment->bits - 1 - j);
        }
    }
    return (int32_t)(dims * ((1 << query_bits) - 1) * ((1 << segment->bits) - 1) - 2 * distance);
}

static const uint32_t *row_at(const struct bsw_segment *segment, const uint32_t *codes,
                              size_t place)
{
    return codes + place / BSW_BUNDLE_ROWS * bsw_segment_bundle_words(segment) +
           place % BSW_BUNDLE_ROWS;
}

static void reference_dots(const struct bsw_segment *segment, struct bsw_word_range range,
                           const uint32_t *codes, size_t num_bundles, const uint32_t *query,
                           unsigned query_bits, int accumulate, int32_t *dots)
{
    for (size_t place = 0; place < num_bundles * BSW_BUNDLE_ROWS; place++) {
        int32_t dot = row_dot(segment, range, row_at(segment, codes, place), query, query_bits);
        dots[place] = dot + (accumulate ? dots[place] : 0);
    }
}

static void reference_add_rows(const struct bsw_segment *segment, struct bsw_word_range range,
                               const uint32_t *codes, const uint32_t *places, size_t num_places,
                               const uint32_t *query, unsigned query_bits, int32_t *dots)
{
    for (size_t i = 0; i < num_places; i++) {
        dots[places[i]] +=
            row_dot(segment, range, row_at(segment, codes, places[i]), query, query_bits);
    }
}

const struct bsw_plane_scan_table bsw_plane_scan_reference = {
    .level = "reference",
    .dots = reference_dots,
    .add_rows = reference_add_rows,
};

BSW_KERNEL_TABLE_GET(plane_scan, BSW_KERNEL_AVX2(plane_scan) BSW_KERNEL_AVX512(plane_scan)
                                     BSW_KERNEL_NEON(plane_scan))
