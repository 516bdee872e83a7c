// The oracle: Eq. 10 plane pair by plane pair, Eq. 7 at the end.
#include "kernels/plane_scan/plane_scan.h"

static int64_t row_distance(const struct bsw_segment *segment, const uint32_t *row,
                            const uint32_t *query, unsigned query_bits)
{
    int64_t distance = 0;
    for (unsigned i = 0; i < query_bits; i++) {
        for (unsigned j = 0; j < segment->bits; j++) {
            int64_t differing = 0;
            for (size_t w = 0; w < segment->words; w++) {
                uint32_t q = query[i * segment->words + w];
                uint32_t d = row[(j * segment->words + w) * BSW_BUNDLE_ROWS];
                differing += __builtin_popcount(q ^ d);
            }
            distance += differing << (query_bits - 1 - i + segment->bits - 1 - j);
        }
    }
    return distance;
}

static void reference_dots(const struct bsw_segment *segment, const uint32_t *codes,
                           size_t num_bundles, const uint32_t *query, unsigned query_bits,
                           int accumulate, int32_t *dots)
{
    int64_t limit = (int64_t)segment->dims * ((1 << query_bits) - 1) * ((1 << segment->bits) - 1);
    for (size_t b = 0; b < num_bundles; b++) {
        const uint32_t *bundle = codes + b * bsw_segment_bundle_words(segment);
        for (size_t lane = 0; lane < BSW_BUNDLE_ROWS; lane++) {
            int32_t *dot = &dots[b * BSW_BUNDLE_ROWS + lane];
            int64_t distance = row_distance(segment, bundle + lane, query, query_bits);
            *dot = (int32_t)(limit - 2 * distance) + (accumulate ? *dot : 0);
        }
    }
}

const struct bsw_plane_scan_table bsw_plane_scan_reference = {
    .level = "reference",
    .dots = reference_dots,
};
