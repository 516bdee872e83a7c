#include "shard/resident_shard.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/half.h"

static void find_stage(const struct bsw_manifest *manifest, struct bsw_resident_shard *shard)
{
    shard->stage_dims = bsw_manifest_stage(manifest);
    shard->tail_unit = ldexp(1.0, manifest->tail_exponent - manifest->scale_exponent);
}

// What bounds the roundings of a bundle's keys.
static void find_most(struct bsw_resident_shard *shard)
{
#pragma omp parallel for schedule(static)
    for (size_t b = 0; b < shard->num_bundles; b++) {
        struct bsw_bundle_most most = {0, 0};
        for (size_t i = b * BSW_BUNDLE_ROWS; i < (b + 1) * BSW_BUNDLE_ROWS; i++) {
            most.scale = fmaxf(most.scale, bsw_half_to_float(shard->arrays.scales[i]));
            most.bias = fmaxf(most.bias, fabsf(shard->arrays.biases[i]));
        }
        shard->most[b] = most;
    }
}

struct bsw_resident_parts bsw_resident_parts_of(const struct bsw_shard_shape *shape,
                                                uint32_t stage_dims)
{
    size_t bundles = bsw_num_bundles((size_t)shape->num_rows), rows = bundles * BSW_BUNDLE_ROWS;
    struct bsw_resident_parts parts = {.masks = bundles * sizeof(uint32_t),
                                       .row_digests = bundles * sizeof(uint64_t)};
    for (uint32_t s = 0; s < shape->layout.num_segments; s++)
        parts.codes +=
            bundles * bsw_segment_bundle_words(&shape->layout.segments[s]) * sizeof(uint32_t);
    if (shape->has_affine) {
        parts.scales = rows * sizeof(uint16_t);
        parts.biases = rows * sizeof(float);
    }
    if (shape->is_raw) parts.offsets = rows * sizeof(int32_t);
    if (stage_dims > 0) {
        parts.tails = rows * sizeof(uint16_t);
        parts.most = bundles * sizeof(struct bsw_bundle_most);
    }
    return parts;
}

static enum bsw_status allocate_arrays(struct bsw_resident_shard *shard, struct bsw_error *err)
{
    const struct bsw_shard_shape *shape = &shard->shape;
    size_t rows = shard->num_bundles * BSW_BUNDLE_ROWS;
    struct bsw_code_arrays *arrays = &shard->arrays;
    const struct bsw_resident_parts parts = bsw_resident_parts_of(shape, shard->stage_dims);
    shard->scan_bytes = bsw_resident_scan_bytes(&parts);
    for (uint32_t s = 0; s < shape->layout.num_segments; s++) {
        size_t words = bsw_segment_bundle_words(&shape->layout.segments[s]);
        BSW_TRY(bsw_allocate(&arrays->planes[s], shard->num_bundles, words * sizeof(uint32_t),
                             "codes", err));
    }
    if (shape->has_affine) {
        BSW_TRY(bsw_allocate(&arrays->scales, rows, sizeof(uint16_t), "scales", err));
        BSW_TRY(bsw_allocate(&arrays->biases, rows, sizeof(float), "biases", err));
    }
    if (shard->stage_dims > 0) {
        BSW_TRY(bsw_allocate(&arrays->tails, rows, sizeof(uint16_t), "tails", err));
        BSW_TRY(bsw_allocate(&shard->most, shard->num_bundles, sizeof *shard->most, "tails", err));
    }
    if (shape->is_raw) {
        BSW_TRY(bsw_allocate(&arrays->offsets, rows, sizeof *arrays->offsets, "offsets", err));
    }
    BSW_TRY(bsw_allocate(&arrays->masks, shard->num_bundles, sizeof(uint32_t), "masks", err));
    return bsw_allocate(&arrays->row_digests, shard->num_bundles, sizeof(uint64_t), "row digests",
                        err);
}

// Each thread takes a contiguous run of blocks, so that pages lie near the thread that will scan
// them.
static enum bsw_status load_blocks(struct bsw_resident_shard *shard,
                                   const struct bsw_shard_file *file, struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
#pragma omp parallel
    {
        struct bsw_buffer buffer = {0};
        struct bsw_error thread_error;
#pragma omp for schedule(static)
        for (uint32_t block = 0; block < shard->shape.num_blocks; block++) {
            size_t num_bundles = bsw_shard_block_bundles(&shard->shape, block);
            struct bsw_code_arrays arrays;
            enum bsw_status result = bsw_buffer_reserve(
                &buffer, bsw_shard_block_bytes(&shard->shape, block), &thread_error);
            if (result == BSW_OK)
                result = bsw_shard_file_read_block(file, block, buffer.data, &thread_error);
            if (result == BSW_OK) {
                bsw_code_arrays_in_block(&shard->shape, buffer.data, num_bundles, &arrays);
                bsw_code_arrays_copy(&shard->shape, &arrays, num_bundles, &shard->arrays,
                                     (size_t)block * shard->shape.block_bundles);
                continue;
            }
            bsw_first_failure_note(&failure, block, result, &thread_error);
        }
        bsw_buffer_deinit(&buffer);
    }
    return bsw_first_failure_report(&failure, err);
}

enum bsw_status bsw_resident_shard_load(const struct bsw_manifest *manifest, const char *folder,
                                        uint32_t shard, int with_raw_rows,
                                        struct bsw_resident_shard *out, struct bsw_error *err)
{
    struct bsw_shard_file file;
    *out = (struct bsw_resident_shard){.index = shard};
    BSW_TRY(bsw_shard_file_open(manifest, folder, shard, &file, err));
    out->shape = file.shape;
    out->num_bundles = bsw_num_bundles(file.shape.num_rows);
    find_stage(manifest, out);
    enum bsw_status status = allocate_arrays(out, err);
    if (status == BSW_OK) status = load_blocks(out, &file, err);
    bsw_shard_file_close(&file);
    if (status == BSW_OK && out->stage_dims > 0) find_most(out);
    if (status == BSW_OK && with_raw_rows) {
        status = bsw_raw_rows_open(manifest, folder, shard, &out->raw_rows, err);
        out->has_raw_rows = status == BSW_OK;
    }
    if (status != BSW_OK) bsw_resident_shard_unload(out);
    return status;
}

void bsw_resident_shard_drop_codes(struct bsw_resident_shard *shard)
{
    for (uint32_t s = 0; s < BSW_MAX_SEGMENTS; s++) bsw_free(&shard->arrays.planes[s]);
    bsw_free(&shard->arrays.scales);
    bsw_free(&shard->arrays.tails);
    bsw_free(&shard->most);
    bsw_free(&shard->arrays.biases);
    bsw_free(&shard->arrays.offsets);
    bsw_free(&shard->arrays.masks);
}

void bsw_resident_shard_unload(struct bsw_resident_shard *shard)
{
    if (shard->has_raw_rows) bsw_raw_rows_close(&shard->raw_rows);
    shard->has_raw_rows = 0;
    bsw_resident_shard_drop_codes(shard);
    bsw_free(&shard->arrays.row_digests);
}

void bsw_resident_shard_part(const struct bsw_resident_shard *shard, size_t part, size_t parts,
                             size_t *first, size_t *last)
{
    *first = (size_t)((unsigned __int128)shard->num_bundles * part / parts);
    *last = (size_t)((unsigned __int128)shard->num_bundles * (part + 1) / parts);
}
