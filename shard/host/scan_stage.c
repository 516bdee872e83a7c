// SPDX-License-Identifier: Apache-2.0
#include "shard/host/scan_stage.h"

#include <math.h>

// Above this a reach could overflow in a bound: such queries stop nothing.
#define MAX_REACH 0x1p100

void bsw_scan_stage_init(const struct bsw_resident_shard *shard, uint32_t query_bits,
                         size_t num_queries, const int8_t *components, const float *scales,
                         void *memory, struct bsw_scan_stage *out)
{
    const struct bsw_code_layout *layout = &shard->shape.layout;
    double largest_dot = (double)bsw_layout_dot_limit(layout, query_bits);
    int32_t *constants = memory;
    float *reaches = (float *)(constants + num_queries), *weights = reaches + num_queries;
    *out = (struct bsw_scan_stage){shard->stage_dims, num_queries, constants, reaches, weights};
    for (size_t q = 0; q < num_queries; q++, components += layout->padded_dims) {
        int64_t constant = 0, beyond = 0;
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            const struct bsw_segment *segment = &layout->segments[s];
            for (uint32_t i = 0; i < 32 * segment->words; i++) {
                uint32_t dim = segment->padded_dim + i;
                int64_t component = components[dim];
                if (dim < out->dims)
                    constant += ((1 << segment->bits) - 1) * component;
                else
                    beyond += component * component;
            }
        }
        double reach = (double)scales[q] * shard->tail_unit * sqrt((double)beyond) * (1 + 0x1p-20);
        constants[q] = (int32_t)constant;
        reaches[q] = reach > MAX_REACH ? 0 : (float)reach;
        weights[q] = reach > MAX_REACH ? INFINITY : (float)((double)scales[q] * largest_dot);
    }
}
