// SPDX-License-Identifier: Apache-2.0
// The oracle: bit by bit, row by row, dimension by dimension.
#include <math.h>

#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/select/select_quick.h"

// Place of a row's padded dimension among the bytes of a tile.
static size_t byte_place(size_t row, size_t dim, size_t padded_dims)
{
    size_t half = row / 16, group = dim / 4;
    return ((half * (padded_dims / 4) + group) * 16 + row % 16) * 4 + dim % 4;
}

// The number that one dimension's bits stand for, plane 0 on top; words of a plane are `lanes`
// apart.
static unsigned code_at(const uint32_t *planes, unsigned bits, size_t words, size_t lanes,
                        size_t dim)
{
    unsigned u = 0;
    for (unsigned p = 0; p < bits; p++)
        u = 2 * u + (planes[(p * words + dim / 32) * lanes] >> dim % 32 & 1);
    return u;
}

static void reference_unpack(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                             size_t num_bundles, uint8_t *bytes)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        for (size_t row = 0; row < num_bundles * BSW_BUNDLE_ROWS; row++) {
            const uint32_t *bundle =
                planes[s] + row / BSW_BUNDLE_ROWS * bsw_segment_bundle_words(segment);
            for (size_t i = 0; i < 32 * (size_t)segment->words; i++) {
                unsigned u = code_at(bundle + row % BSW_BUNDLE_ROWS, segment->bits, segment->words,
                                     BSW_BUNDLE_ROWS, i);
                bytes[byte_place(row, segment->padded_dim + i, layout->padded_dims)] = (uint8_t)u;
            }
        }
    }
}

static void reference_unpack_query(const struct bsw_code_layout *layout, const uint32_t *words,
                                   unsigned query_bits, int8_t *components, int32_t *constant)
{
    *constant = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        int8_t *out = components + segment->padded_dim;
        for (size_t i = 0; i < 32 * (size_t)segment->words; i++) {
            int u = (int)code_at(words, query_bits, segment->words, 1, i);
            out[i] = (int8_t)(i < segment->dims ? (1 << query_bits) - 1 - 2 * u : 0);
            *constant += ((1 << segment->bits) - 1) * out[i];
        }
        words += (size_t)query_bits * segment->words;
    }
}

// Sum of u * q over the first `dims` dimensions.
static int64_t row_sum(const struct bsw_matrix_tile *tile, size_t row, const int8_t *components,
                       size_t dims)
{
    int64_t sum = 0;
    for (size_t i = 0; i < dims; i++)
        sum += tile->bytes[byte_place(row, i, tile->padded_dims)] * components[i];
    return sum;
}

static uint32_t row_score(const struct bsw_matrix_tile *tile, size_t row,
                          const struct bsw_matrix_queries *queries, size_t q)
{
    int64_t sum =
        row_sum(tile, row, queries->components + q * tile->padded_dims, tile->padded_dims);
    if (tile->offsets) {
        int64_t total = queries->factor * sum + tile->offsets[row] + queries->constants[q];
        return bsw_score_from_integer((int32_t)total);
    }
    int32_t dot = (int32_t)(queries->constants[q] - 2 * sum);
    if (!tile->scales) return bsw_score_from_integer(dot);
    float scaled = bsw_half_to_float(tile->scales[row]) * (float)dot;
    return bsw_score_from_float(fmaf(queries->scales[q], scaled, tile->biases[row]) + 0.0f);
}

static int is_valid(const struct bsw_matrix_tile *tile, size_t row)
{
    return tile->masks[row / BSW_BUNDLE_ROWS] >> row % BSW_BUNDLE_ROWS & 1;
}

static void put_row(const struct bsw_matrix_tile *tile, size_t row,
                    const struct bsw_matrix_queries *queries, size_t q,
                    struct bsw_matrix_output *out)
{
    uint32_t score = row_score(tile, row, queries, q);
    if (score < out->limit) return;
    out->items[out->count++] = bsw_candidate_pack(score, tile->first_row + (uint32_t)row);
}

static void reference_scan(const struct bsw_matrix_tile *tile,
                           const struct bsw_matrix_queries *queries,
                           struct bsw_matrix_output *outputs)
{
    for (size_t q = 0; q < queries->num_queries; q++) {
        for (size_t row = 0; row < tile->num_bundles * BSW_BUNDLE_ROWS; row++) {
            if (is_valid(tile, row)) put_row(tile, row, queries, q, &outputs[q]);
        }
    }
}

static int may_reach(const struct bsw_matrix_tile *tile, size_t row,
                     const struct bsw_matrix_stage *stage, const struct bsw_matrix_queries *queries,
                     size_t q, uint32_t limit)
{
    const int8_t *components = queries->components + q * tile->padded_dims;
    int64_t dot = stage->constants[q] - 2 * row_sum(tile, row, components, stage->dims);
    float scaled = bsw_half_to_float(tile->scales[row]) * (float)dot;
    float most = fmaf(stage->reaches[q], bsw_half_to_float(tile->tails[row]), tile->biases[row]);
    return fmaf(queries->scales[q], scaled, most) >= bsw_float_limit(limit) - stage->slacks[q];
}

static void reference_scan_staged(const struct bsw_matrix_tile *tile,
                                  const struct bsw_matrix_stage *stage,
                                  const struct bsw_matrix_queries *queries,
                                  struct bsw_matrix_output *outputs,
                                  struct bsw_stage_counts *counts)
{
    for (size_t q = 0; q < queries->num_queries; q++) {
        uint32_t limit = outputs[q].limit;
        for (size_t first = 0; first < tile->num_bundles * BSW_BUNDLE_ROWS; first += 16) {
            uint64_t going_on = 0;
            for (size_t row = first; row < first + 16; row++) {
                if (!is_valid(tile, row) || !may_reach(tile, row, stage, queries, q, limit))
                    continue;
                put_row(tile, row, queries, q, &outputs[q]);
                going_on++;
            }
            counts->rows += going_on;
            counts->halves += going_on > 0;
        }
    }
}

const struct bsw_matrix_scan_table bsw_matrix_scan_reference = {
    .level = "reference",
    .unpack = reference_unpack,
    .unpack_query = reference_unpack_query,
    .scan = reference_scan,
    .scan_staged = reference_scan_staged,
};

BSW_KERNEL_TABLE_GET(matrix_scan, BSW_KERNEL_AVX2(matrix_scan) BSW_KERNEL_AVXVNNI(matrix_scan)
                                      BSW_KERNEL_AVX512(matrix_scan) BSW_KERNEL_NEON(matrix_scan)
                                          BSW_KERNEL_I8MM(matrix_scan))
