// SPDX-License-Identifier: Apache-2.0
// Entries within a radius: the rays of a batch, 64 subspaces of 256 entries each, a quarter of
// which are hits.
#include <math.h>
#include <string.h>

#include "bench/host/bench_kernel.h"
#include "common/base/arithmetic.h"
#include "kernels/entries_within/entries_within.h"

#define SUBSPACES 64
#define ENTRIES   256
#define TILE_RAYS 64 // those of a query and a list
#define SHARE     0.25

struct entries_input {
    size_t num_rays;
    enum bsw_entry_value value;
    float *points; // [SUBSPACES][2][ENTRIES]
    struct bsw_entry_ray *rays;
    uint8_t *entries; // of a ray
};

static float uniform_at(uint64_t seed, size_t at)
{
    return (float)(int64_t)bsw_hash2(seed, at) * 0x1p-63f;
}

static void run_rays(void *context, enum bsw_cpu_level level, size_t tile,
                     struct bsw_kernel_output *output)
{
    const struct entries_input *input = context;
    const struct bsw_entries_within_table *table = bsw_entries_within_table_get(level);
    float *values = (float *)(void *)output->values;
    for (size_t i = 0; i < TILE_RAYS; i++) {
        size_t r = tile * TILE_RAYS + i;
        if (r >= input->num_rays) {
            output->counts[i] = 0;
            continue;
        }
        const struct bsw_entry_ray *ray = &input->rays[r];
        const float *x = input->points + (size_t)ray->subspace * 2 * ENTRIES;
        output->counts[i] = table->within[input->value](
            x, x + ENTRIES, ENTRIES, ray, input->entries, values + i * output->list_values);
    }
}

// Entries and rays are uniform in a square of side 2. The limit leaves a quarter of it, give or
// take what the circle loses at the sides.
static void fill_input(struct entries_input *input)
{
    for (size_t i = 0; i < SUBSPACES * 2 * ENTRIES; i++) input->points[i] = uniform_at(1, i);
    for (size_t r = 0; r < input->num_rays; r++)
        input->rays[r] = (struct bsw_entry_ray){
            .subspace = (uint32_t)(r % SUBSPACES),
            .x = 0.5f * uniform_at(2, r),
            .y = 0.5f * uniform_at(3, r),
            .limit = input->value == BSW_ENTRY_L2 ? (float)(4 * SHARE / 3.14159265) : -0.2f};
}

static enum bsw_status make_rays(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                                 struct bsw_error *err)
{
    struct entries_input *input = NULL;
    BSW_TRY(bsw_kernel_allocate(out, &input, 1, sizeof *input, err));
    out->input = input;
    input->num_rays = shape->rows;
    input->value = (enum bsw_entry_value)out->variant;
    BSW_TRY(bsw_kernel_allocate(out, &input->points, SUBSPACES * 2 * ENTRIES, sizeof *input->points,
                                err));
    BSW_TRY(bsw_kernel_allocate(out, &input->rays, shape->rows, sizeof *input->rays, err));
    BSW_TRY(bsw_kernel_allocate(out, &input->entries, ENTRIES + 32, 1, err));
    fill_input(input);
    out->run_tile = run_rays;
    out->num_tiles = (shape->rows + TILE_RAYS - 1) / TILE_RAYS;
    out->num_lists = TILE_RAYS;
    out->list_values = ENTRIES + 32;
    out->value_bytes = sizeof(float);
    out->operations = 2.0 * (double)shape->rows * ENTRIES;
    return BSW_OK;
}

const struct bsw_kernel_case bsw_kernel_entries[] = {
    {"entries_within", "l2", BSW_LIMIT_FLOAT32, BSW_ENTRY_L2, make_rays},
    {"entries_within", "ip", BSW_LIMIT_FLOAT32, BSW_ENTRY_IP, make_rays},
    {0},
};
