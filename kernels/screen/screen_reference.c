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

const struct bsw_screen_table bsw_screen_reference = {
    .level = "reference",
    .pack = reference_pack,
    .scan = reference_scan,
};
