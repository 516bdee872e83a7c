// SPDX-License-Identifier: Apache-2.0
#include "shard/host/plain_score.h"

#include "common/codes/metric.h"
#include "shard/codecs/product_codes.h"
#include "shard/host/shard_tiles.h"

// Bytes of a raw row in the order of kernels/matrix_scan/matrix_scan.h.
static int32_t raw_sum(const unsigned char *bundle, size_t padded_dims, uint32_t lane,
                       const int8_t *query)
{
    const unsigned char *row = bundle + lane / 16 * 16 * padded_dims + lane % 16 * 4;
    int32_t sum = 0;
    for (size_t d = 0; d < padded_dims; d++)
        sum += (int32_t)row[d / 4 * 64 + d % 4] * (int32_t)query[d];
    return sum;
}

static uint32_t raw_score(const struct bsw_resident_shard *shard,
                          const struct bsw_query_batch *batch, size_t query, uint32_t row)
{
    size_t padded_dims = shard->shape.layout.padded_dims;
    const unsigned char *bytes = (const unsigned char *)shard->arrays.planes[0];
    int32_t sum = raw_sum(bytes + row / BSW_BUNDLE_ROWS * BSW_BUNDLE_ROWS * padded_dims,
                          padded_dims, row % BSW_BUNDLE_ROWS,
                          (const int8_t *)(const void *)batch->words + query * padded_dims);
    int32_t total = batch->factor * sum + shard->arrays.offsets[row] + batch->constants[query];
    return bsw_score_from_integer(total);
}

uint32_t bsw_plain_score(const struct bsw_resident_shard *shard,
                         const struct bsw_query_batch *batch, size_t query, uint32_t row)
{
    const struct bsw_code_arrays *arrays = &shard->arrays;
    const struct bsw_code_layout *layout = &shard->shape.layout;
    const uint32_t *words = batch->words + query * batch->query_words;
    size_t bundle = row / BSW_BUNDLE_ROWS, first = bundle * BSW_BUNDLE_ROWS;
    uint32_t lane = row % BSW_BUNDLE_ROWS;
    int32_t dots[BSW_BUNDLE_ROWS] = {0};
    uint64_t candidate;
    if (shard->shape.has_bytes) return raw_score(shard, batch, query, row);
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        bsw_plane_scan_reference.add_rows(segment, bsw_all_words(segment),
                                          arrays->planes[s] +
                                              bundle * bsw_segment_bundle_words(segment),
                                          &lane, 1, words, batch->query_bits, dots);
        words += (size_t)segment->words * batch->query_bits;
    }
    if (!shard->shape.has_affine) return bsw_score_from_integer(dots[lane]);
    bsw_select_reference.filter_places(dots, arrays->scales + first, bsw_tile_biases(arrays, first),
                                       batch->scales[query], &lane, 1, (uint32_t)first, 0,
                                       &candidate);
    return bsw_candidate_score(candidate);
}

enum bsw_status bsw_plain_table_scores(const struct bsw_resident_shard *shard,
                                       const struct bsw_query_batch *batch, size_t query,
                                       const float *centroid, const uint32_t *rows, size_t num,
                                       uint32_t *out, struct bsw_error *err)
{
    const struct bsw_product_rows of = {
        .bundles = (const uint8_t *)shard->arrays.planes[0],
        .bundle_bytes =
            bsw_segment_bundle_words(&shard->shape.layout.segments[0]) * sizeof(uint32_t),
        .num = num,
        .rows = rows};
    return bsw_product_plain_scores(
        batch->product, bsw_batch_table(batch, query), batch->selection,
        (const float *)(const void *)(batch->words + query * batch->query_words), centroid, &of,
        out, err);
}
