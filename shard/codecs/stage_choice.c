// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/saq_training.h"

#include <math.h>
#include <string.h>

#include "common/base/memory.h"

#define MAX_ROWS    8192
#define MAX_NUMBERS ((size_t)16 << 20) // fewer rows above 2,048 dims
#define NUM_QUERIES 32
#define BLOCK_DIMS  32
#define TILE_ROWS   BSW_SAMPLE_TILE
#define HALF_ROWS   16
#define MIN_SAVING  0.05

// Rows of the sample in the frame, tile by tile, a tile's rows side by side:
// values[tile][padded_dims][TILE_ROWS].
struct projected_sample {
    size_t num_rows, max_rows;
    size_t padded_dims, num_blocks; // blocks of BLOCK_DIMS dimensions
    float *values;
    float *biases;  // [num_rows]
    float *beyonds; // [num_rows][num_blocks]: norm of the codes from that block on, scale included
    float *parts;   // [tiles][num_blocks][TILE_ROWS]: dots of a query, summed up block by block
};

static void deinit(struct projected_sample *sample)
{
    bsw_free(&sample->values);
    bsw_free(&sample->biases);
    bsw_free(&sample->beyonds);
    bsw_free(&sample->parts);
}

static enum bsw_status init(struct projected_sample *out, const struct bsw_manifest *manifest,
                            struct bsw_error *err)
{
    size_t padded = manifest->layout.padded_dims, blocks = padded / BLOCK_DIMS;
    size_t rows = MAX_NUMBERS / padded / TILE_ROWS * TILE_ROWS;
    if (rows > MAX_ROWS) rows = MAX_ROWS;
    *out = (struct projected_sample){.max_rows = rows, .padded_dims = padded, .num_blocks = blocks};
    BSW_TRY(bsw_allocate_zero(&out->values, rows * padded, sizeof(float), "sample", err));
    BSW_TRY(bsw_allocate(&out->biases, rows, sizeof(float), "sample", err));
    BSW_TRY(bsw_allocate(&out->beyonds, rows * blocks, sizeof(float), "sample", err));
    return bsw_allocate(&out->parts, rows * blocks, sizeof(float), "sample", err);
}

static float *value_at(const struct projected_sample *sample, size_t row, size_t dim)
{
    return sample->values + (row / TILE_ROWS * sample->padded_dims + dim) * TILE_ROWS +
           row % TILE_ROWS;
}

// Takes one projected row: what a code of it would say beyond each block is longer than the row
// itself, by what its quantizer loses.
static void add_row(struct projected_sample *sample, const struct bsw_manifest *manifest,
                    const float *projected, float mean_dot)
{
    double norm = 0, beyond = 0;
    size_t row = sample->num_rows++;
    for (uint32_t s = manifest->layout.num_segments; s-- > 0;) {
        const struct bsw_segment *segment = &manifest->layout.segments[s];
        double growth = 1 / (1 - bsw_quantizer_errors[segment->bits]);
        for (uint32_t w = segment->words; w-- > 0;) {
            double energy = 0;
            size_t block = segment->padded_dim / BLOCK_DIMS + w;
            for (size_t dim = block * BLOCK_DIMS; dim < (block + 1) * BLOCK_DIMS; dim++) {
                *value_at(sample, row, dim) = projected[dim];
                energy += (double)projected[dim] * (double)projected[dim];
            }
            norm += energy;
            beyond += energy * growth;
            sample->beyonds[row * sample->num_blocks + block] = (float)sqrt(beyond);
        }
    }
    if (manifest->row_dims > 0 && bsw_has_row_norms(manifest->metric)) norm = (double)mean_dot;
    sample->biases[row] = bsw_has_row_norms(manifest->metric) ? (float)-norm : mean_dot;
}

// Tiles of floats on the way into the frame.
struct frame_tiles {
    float *rows, *centered, *projected;
};

static void free_tiles(struct frame_tiles *tiles)
{
    bsw_free(&tiles->rows);
    bsw_free(&tiles->centered);
    bsw_free(&tiles->projected);
}

static enum bsw_status allocate_tiles(const struct bsw_code_layout *layout, size_t row_dims,
                                      struct frame_tiles *tiles, struct bsw_error *err)
{
    size_t numbers = (size_t)TILE_ROWS * row_dims;
    BSW_TRY(bsw_allocate(&tiles->rows, numbers, sizeof(float), "sample", err));
    BSW_TRY(bsw_allocate(&tiles->centered, numbers, sizeof(float), "sample", err));
    return bsw_allocate(&tiles->projected, (size_t)TILE_ROWS * layout->padded_dims, sizeof(float),
                        "sample", err);
}

// Every n-th row of the sample, so that there are at most max_rows.
static enum bsw_status collect(struct bsw_sample *sample, const struct bsw_manifest *manifest,
                               const struct frame_tiles *tiles, struct projected_sample *out,
                               struct bsw_error *err)
{
    uint64_t stride = (sample->num_rows + out->max_rows - 1) / out->max_rows, place = 0;
    size_t dims = bsw_manifest_row_dims(manifest);
    struct bsw_saq_frame frame;
    bsw_frame_of_manifest(manifest, &frame);
    bsw_sample_rewind(sample, "training, stage");
    for (;;) {
        const float *rows;
        float factors[TILE_ROWS], mean_dots[TILE_ROWS];
        size_t num_rows, num = 0;
        BSW_TRY(bsw_sample_next(sample, &rows, factors, &num_rows, err));
        if (num_rows == 0) return BSW_OK;
        for (size_t r = 0; r < num_rows; r++, place++) {
            if (place % stride != 0 || out->num_rows + num == out->max_rows) continue;
            memcpy(tiles->rows + num * dims, rows + r * dims, dims * sizeof *rows);
            factors[num++] = factors[r];
        }
        if (num == 0) continue;
        sample->table->saq_center(&frame, tiles->rows, num, factors, tiles->centered, mean_dots);
        sample->table->saq_project(&frame, tiles->centered, num, tiles->projected);
        for (size_t r = 0; r < num; r++)
            add_row(out, manifest, tiles->projected + r * out->padded_dims, mean_dots[r]);
    }
}

static float *parts_of(const struct projected_sample *sample, size_t tile)
{
    return sample->parts + tile * sample->num_blocks * TILE_ROWS;
}

// Part [block][r]: dot of the query with row r of the tile over all blocks up to this one.
static void multiply_tile(struct projected_sample *sample, const float *query, size_t tile)
{
    const float *values = sample->values + tile * sample->padded_dims * TILE_ROWS;
    float sums[TILE_ROWS] = {0}, *parts = parts_of(sample, tile);
    for (size_t dim = 0; dim < sample->padded_dims; dim++, values += TILE_ROWS) {
        for (size_t r = 0; r < TILE_ROWS; r++) sums[r] += query[dim] * values[r];
        if (dim % BLOCK_DIMS == BLOCK_DIMS - 1)
            memcpy(parts + dim / BLOCK_DIMS * TILE_ROWS, sums, sizeof sums);
    }
}

static size_t tile_rows(const struct projected_sample *sample, size_t tile)
{
    size_t rest = sample->num_rows - tile * TILE_ROWS;
    return rest < TILE_ROWS ? rest : TILE_ROWS;
}

// One row of the sample as a query: adds, for each block, the share of half bundles in which a row
// goes on if the stage ends with that block.
static void count_query(struct projected_sample *sample, size_t self, double factor, float *query,
                        double *norms, uint64_t *counts, double *shares)
{
    size_t blocks = sample->num_blocks, tiles = (sample->num_rows + TILE_ROWS - 1) / TILE_ROWS;
    double limit = -INFINITY, beyond = 0;
    for (size_t dim = sample->padded_dims; dim-- > 0;) {
        query[dim] = *value_at(sample, self, dim);
        beyond += (double)query[dim] * (double)query[dim];
        if (dim % BLOCK_DIMS == 0) norms[dim / BLOCK_DIMS] = sqrt(beyond);
    }
    for (size_t tile = 0; tile < tiles; tile++) {
        multiply_tile(sample, query, tile);
        for (size_t r = 0; r < tile_rows(sample, tile); r++) {
            size_t row = tile * TILE_ROWS + r;
            double key = factor * (double)parts_of(sample, tile)[(blocks - 1) * TILE_ROWS + r] +
                         (double)sample->biases[row];
            if (row != self && key > limit) limit = key;
        }
    }
    memset(counts, 0, blocks * sizeof *counts);
    for (size_t tile = 0; tile < tiles; tile++) {
        const float *parts = parts_of(sample, tile);
        for (size_t b = 0; b + 1 < blocks; b++) {
            for (size_t r = 0; r < tile_rows(sample, tile); r++) {
                size_t row = tile * TILE_ROWS + r;
                double most = (double)parts[b * TILE_ROWS + r] +
                              (double)sample->beyonds[row * blocks + b + 1] * norms[b + 1];
                counts[b] += factor * most + (double)sample->biases[row] >= limit;
            }
        }
    }
    for (size_t b = 0; b + 1 < blocks; b++) {
        double stopped = 1 - (double)counts[b] / (double)sample->num_rows;
        shares[b] += 1 - pow(stopped, HALF_ROWS);
    }
}

double bsw_stage_cost(const struct bsw_scan_tuning *tuning, uint32_t dims, uint32_t padded_dims,
                      double share)
{
    return dims + (double)tuning->stage_overhead +
           share * (double)tuning->finish_factor * (padded_dims - dims);
}

static void choose(const struct projected_sample *sample, const double *shares, double num_queries,
                   struct bsw_manifest *manifest)
{
    const struct bsw_scan_tuning tuning = bsw_scan_tuning_standard(&manifest->layout);
    uint32_t padded = manifest->layout.padded_dims, best = manifest->layout.dims;
    double least = padded * (1 - MIN_SAVING);
    for (uint32_t b = 0; b + 1 < sample->num_blocks; b++) {
        uint32_t end = BLOCK_DIMS * (b + 1);
        double cost = bsw_stage_cost(&tuning, end, padded, shares[b] / num_queries);
        manifest->stage_dims = end;
        if (bsw_manifest_stage(manifest) == 0 || cost >= least) continue;
        least = cost;
        best = end;
    }
    manifest->stage_dims = best;
}

static enum bsw_status count_and_choose(struct projected_sample *sample,
                                        struct bsw_manifest *manifest, struct bsw_error *err)
{
    size_t blocks = sample->num_blocks, queries = 0, stride = sample->num_rows / NUM_QUERIES;
    double factor = bsw_has_row_norms(manifest->metric) ? 2 : 1;
    double *shares = NULL, *norms = NULL;
    uint64_t *counts = NULL;
    float *query = NULL;
    enum bsw_status status = bsw_allocate_zero(&shares, blocks, sizeof *shares, "sample", err);
    if (status == BSW_OK) status = bsw_allocate(&norms, blocks, sizeof *norms, "sample", err);
    if (status == BSW_OK) status = bsw_allocate(&counts, blocks, sizeof *counts, "sample", err);
    if (status == BSW_OK)
        status = bsw_allocate(&query, sample->padded_dims, sizeof *query, "sample", err);
    if (stride == 0) stride = 1;
    for (size_t row = 0; row < sample->num_rows && status == BSW_OK; row += stride, queries++)
        count_query(sample, row, factor, query, norms, counts, shares);
    if (status == BSW_OK) choose(sample, shares, (double)queries, manifest);
    bsw_free(&shares);
    bsw_free(&norms);
    bsw_free(&counts);
    bsw_free(&query);
    return status;
}

enum bsw_status bsw_choose_stage(struct bsw_sample *sample, struct bsw_manifest *manifest,
                                 struct bsw_error *err)
{
    struct projected_sample projection;
    struct frame_tiles tiles = {0};
    manifest->stage_dims = manifest->layout.dims;
    enum bsw_status status = init(&projection, manifest, err);
    if (status == BSW_OK)
        status = allocate_tiles(&manifest->layout, bsw_manifest_row_dims(manifest), &tiles, err);
    if (status == BSW_OK) status = collect(sample, manifest, &tiles, &projection, err);
    if (status == BSW_OK) status = count_and_choose(&projection, manifest, err);
    free_tiles(&tiles);
    deinit(&projection);
    return status;
}
