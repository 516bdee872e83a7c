// SPDX-License-Identifier: Apache-2.0
// The oracle: screen.h's definitions number by number.
#include <math.h>

#include "kernels/screen/screen.h"

static void reference_pack(const float *rows, const float *scales, size_t num_rows, size_t dims,
                           float *out)
{
    for (size_t d = 0; d < dims; d++) {
        for (size_t r = 0; r < BSW_BUNDLE_ROWS; r++)
            out[d * BSW_BUNDLE_ROWS + r] = r < num_rows ? rows[r * dims + d] * scales[r] : 0.0f;
    }
}

static float pair_number(const struct bsw_screen_tile *tile, size_t place, const float *query)
{
    size_t lane = place % BSW_BUNDLE_ROWS;
    const float *row = tile->numbers + (place - lane) * tile->dims + lane;
    float sum = 0.0f;
    for (size_t d = 0; d < tile->dims; d++)
        sum = fmaf(row[d * BSW_BUNDLE_ROWS], query[d * BSW_SCREEN_QUERIES], sum);
    return sum + tile->biases[place];
}

static void reference_scan(const struct bsw_screen_tile *tile,
                           const struct bsw_screen_queries *queries,
                           struct bsw_screen_output *outputs)
{
    for (size_t q = 0; q < queries->num_queries; q++) {
        size_t in_group = q % BSW_SCREEN_QUERIES;
        const float *query = queries->numbers + (q - in_group) * tile->dims + in_group;
        outputs[q].count = 0;
        for (size_t place = 0; place < tile->num_bundles * BSW_BUNDLE_ROWS; place++) {
            if (!(tile->masks[place / BSW_BUNDLE_ROWS] >> place % BSW_BUNDLE_ROWS & 1)) continue;
            if (pair_number(tile, place, query) >= queries->limits[q])
                outputs[q].places[outputs[q].count++] = (uint32_t)place;
        }
    }
}

// The largest |x|; infinite where a number is not finite.
static float largest_of(const float *row, size_t dims)
{
    float largest = 0.0f;
    for (size_t i = 0; i < dims; i++) {
        if (!isfinite(row[i])) return INFINITY;
        if (fabsf(row[i]) > largest) largest = fabsf(row[i]);
    }
    return largest;
}

// bytes: of the row's first group of 4 dimensions. Returns the sum of squared errors.
static float pack_row(const float *row, size_t dims, float step, uint8_t *bytes)
{
    float inverse = 1.0f / step, lanes[16] = {0};
    for (size_t i = 0; i < (dims + 31) / 32 * 32; i++) {
        uint8_t *byte = bytes + i / 4 * 64 + i % 4;
        *byte = 0;
        if (i >= dims) continue;
        float place = fmaf(row[i], -0.5f * inverse, 127.5f);
        *byte = (uint8_t)rintf(place < 0.0f ? 0.0f : place > 255.0f ? 255.0f : place);
        float error = fmaf(row[i], inverse, -(255.0f - 2.0f * *byte));
        lanes[i % 16] = fmaf(error, error, lanes[i % 16]);
    }
    for (size_t h = 8; h > 0; h /= 2) {
        for (size_t j = 0; j < h; j++) lanes[j] += lanes[j + h];
    }
    return lanes[0];
}

static void reference_pack_codes(const float *rows, size_t num_rows, size_t dims, uint8_t *bytes,
                                 float *steps, float *squared_errors)
{
    size_t padded_dims = (dims + 31) / 32 * 32;
    for (size_t r = 0; r < num_rows; r++) {
        float largest = largest_of(rows + r * dims, dims);
        steps[r] = squared_errors[r] = 0.0f;
        if (largest < BSW_SCREEN_LEAST_MAXIMUM || isinf(largest)) continue;
        steps[r] = largest / 255.0f;
        squared_errors[r] = pack_row(rows + r * dims, dims, steps[r],
                                     bytes + r / 16 * 16 * padded_dims + r % 16 * 4);
    }
}

const struct bsw_screen_table bsw_screen_reference = {
    .level = "reference",
    .pack = reference_pack,
    .pack_codes = reference_pack_codes,
    .scan = reference_scan,
};

BSW_KERNEL_TABLE_GET(screen,
                     BSW_KERNEL_AVX2(screen) BSW_KERNEL_AVX512(screen) BSW_KERNEL_NEON(screen))
