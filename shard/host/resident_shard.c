// SPDX-License-Identifier: Apache-2.0
#include "shard/host/resident_shard.h"

#include <math.h>
#include <omp.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "shard/codecs/shard_encode.h"
#include "shard/lists/list_assignment.h"

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
            if (shard->arrays.biases) most.bias = fmaxf(most.bias, fabsf(shard->arrays.biases[i]));
        }
        shard->most[b] = most;
    }
}

struct bsw_resident_parts bsw_resident_parts_of(const struct bsw_shard_shape *shape,
                                                uint32_t stage_dims)
{
    size_t bundles = bsw_num_bundles((size_t)shape->num_places), rows = bundles * BSW_BUNDLE_ROWS;
    struct bsw_resident_parts parts = {.masks = bundles * sizeof(uint32_t),
                                       .row_digests = bundles * sizeof(uint64_t)};
    if (shape->num_lists > 0)
        parts.order = (size_t)bsw_list_order_memory_bytes(shape->num_lists, shape->num_rows,
                                                          shape->num_places);
    for (uint32_t s = 0; s < shape->layout.num_segments; s++)
        parts.codes +=
            bundles * bsw_segment_bundle_words(&shape->layout.segments[s]) * sizeof(uint32_t);
    if (shape->has_affine) parts.scales = rows * sizeof(uint16_t);
    if (shape->has_biases) parts.biases = rows * sizeof(float);
    if (shape->has_bytes) parts.offsets = rows * sizeof(int32_t);
    if (stage_dims > 0) {
        parts.tails = rows * sizeof(uint16_t);
        parts.most = bundles * sizeof(struct bsw_bundle_most);
    }
    return parts;
}

static enum bsw_status allocate_arrays(struct bsw_resident_shard *shard, struct bsw_error *err)
{
    const struct bsw_resident_parts parts = bsw_resident_parts_of(&shard->shape, shard->stage_dims);
    const struct bsw_code_array_list list = bsw_code_arrays_list(&shard->shape);
    size_t bundles = shard->num_bundles;
    shard->scan_bytes = bsw_resident_scan_bytes(&parts);
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].part == BSW_PART_TAILS && shard->stage_dims == 0) continue;
        BSW_TRY(bsw_allocate((unsigned char *)&shard->arrays + list.items[i].place, bundles,
                             list.items[i].bundle_bytes, list.items[i].name, err));
    }
    if (shard->stage_dims > 0)
        BSW_TRY(bsw_allocate(&shard->most, bundles, sizeof *shard->most, "tails", err));
    return bsw_allocate(&shard->digests, shard->shape.num_blocks, sizeof *shard->digests, "digests",
                        err);
}

// Digests a block just checked against its file: a copy that went wrong is found, too.
static void digest_block(struct bsw_resident_shard *shard, uint32_t block,
                         const struct bsw_code_arrays *arrays, size_t num_bundles)
{
    struct bsw_code_arrays resident = *arrays;
    if (shard->stage_dims == 0) resident.tails = NULL;
    for (int part = 0; part < BSW_NUM_CODE_PARTS; part++)
        shard->digests[block].parts[part] = bsw_code_arrays_digest(
            &shard->shape, &resident, 0, num_bundles, (enum bsw_code_part)part);
}

static uint64_t digest_most(const struct bsw_resident_shard *shard, uint32_t block)
{
    if (!shard->most) return 0;
    return XXH3_64bits(shard->most + (size_t)block * shard->shape.block_bundles,
                       bsw_shard_block_bundles(&shard->shape, block) * sizeof *shard->most);
}

// Copies what a block holds to its place.
static void place_block(struct bsw_resident_shard *shard, uint32_t block, void *bytes)
{
    size_t num_bundles = bsw_shard_block_bundles(&shard->shape, block);
    struct bsw_code_arrays arrays;
    bsw_code_arrays_in_block(&shard->shape, bytes, num_bundles, &arrays);
    digest_block(shard, block, &arrays, num_bundles);
    bsw_code_arrays_copy(&shard->shape, &arrays, num_bundles, &shard->arrays,
                         (size_t)block * shard->shape.block_bundles);
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
            enum bsw_status result = bsw_buffer_reserve(
                &buffer, bsw_shard_block_bytes(&shard->shape, block), &thread_error);
            if (result == BSW_OK)
                result = bsw_shard_file_read_block(file, block, buffer.data, &thread_error);
            if (result == BSW_OK)
                place_block(shard, block, buffer.data);
            else
                bsw_first_failure_note(&failure, block, result, &thread_error);
        }
        bsw_buffer_deinit(&buffer);
    }
    return bsw_first_failure_report(&failure, err);
}

// The same for blocks that are coded and not read.
static enum bsw_status encode_blocks(struct bsw_resident_shard *shard,
                                     const struct bsw_manifest *manifest,
                                     const bsw_vectors *vectors, enum bsw_cpu_level level,
                                     struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
#pragma omp parallel
    {
        bsw_block_encoder *encoder = NULL;
        struct bsw_error thread_error;
        enum bsw_status created =
            bsw_block_encoder_create(manifest, vectors, level, &encoder, &thread_error);
#pragma omp for schedule(static)
        for (uint32_t block = 0; block < shard->shape.num_blocks; block++) {
            struct bsw_block_result coded;
            enum bsw_status result = created;
            if (result == BSW_OK)
                result = bsw_block_encode(encoder, &shard->shape, block,
                                          manifest->lists.count > 0 ? &shard->order : NULL, 0, NULL,
                                          &coded, &thread_error);
            if (result == BSW_OK)
                place_block(shard, block, (void *)(uintptr_t)coded.bytes);
            else
                bsw_first_failure_note(&failure, block, result, &thread_error);
        }
        bsw_block_encoder_destroy(&encoder);
    }
    return bsw_first_failure_report(&failure, err);
}

// The arrays, for a shape that is set.
static enum bsw_status prepare(const struct bsw_manifest *manifest,
                               struct bsw_resident_shard *shard, struct bsw_error *err)
{
    shard->num_bundles = bsw_num_bundles(shard->shape.num_places);
    find_stage(manifest, shard);
    return allocate_arrays(shard, err);
}

// With what `status` says of the codes.
static enum bsw_status complete(const struct bsw_manifest *manifest, const char *folder,
                                int with_raw_rows, enum bsw_status status,
                                struct bsw_resident_shard *shard, struct bsw_error *err)
{
    if (status == BSW_OK && shard->stage_dims > 0) find_most(shard);
    for (uint32_t block = 0; block < shard->shape.num_blocks && status == BSW_OK; block++)
        shard->digests[block].most = digest_most(shard, block);
    if (status == BSW_OK && with_raw_rows) {
        status =
            bsw_raw_rows_open(manifest, folder, shard->index, &shard->order, &shard->raw_rows, err);
        shard->has_raw_rows = status == BSW_OK;
    }
    if (status != BSW_OK) bsw_resident_shard_unload(shard);
    return status;
}

// The order of an index with lists; a place that may be found must have a row, and the other way
// round unless it was deleted.
static enum bsw_status load_order(const struct bsw_manifest *manifest, const char *folder,
                                  struct bsw_resident_shard *shard, struct bsw_error *err)
{
    BSW_TRY(bsw_list_order_read(manifest, folder, shard->index, &shard->order, err));
    for (uint32_t p = 0; p < shard->order.num_places; p++) {
        uint32_t mask = shard->arrays.masks[p / BSW_BUNDLE_ROWS] >> p % BSW_BUNDLE_ROWS & 1;
        uint32_t has_row = shard->order.rows[p] != BSW_NO_ROW;
        if (mask > has_row || (mask < has_row && manifest->shards[shard->index].deleted_rows == 0))
            return bsw_fail(err, BSW_ERROR_BAD_DATA,
                            "shard %u: lists and codes do not have the same rows", shard->index);
    }
    return BSW_OK;
}

enum bsw_status bsw_resident_shard_load(const struct bsw_manifest *manifest, const char *folder,
                                        uint32_t shard, int with_raw_rows,
                                        struct bsw_resident_shard *out, struct bsw_error *err)
{
    struct bsw_shard_file file;
    *out = (struct bsw_resident_shard){.index = shard};
    BSW_TRY(bsw_shard_file_open(manifest, folder, shard, &file, err));
    out->shape = file.shape;
    enum bsw_status status = prepare(manifest, out, err);
    if (status == BSW_OK) status = load_blocks(out, &file, err);
    if (status == BSW_OK) status = load_order(manifest, folder, out, err);
    bsw_shard_file_close(&file);
    return complete(manifest, folder, with_raw_rows, status, out, err);
}

// The order of an index with lists, whose manifest has the number of places.
static enum bsw_status make_order(const struct bsw_manifest *manifest, const bsw_vectors *vectors,
                                  enum bsw_cpu_level level, struct bsw_resident_shard *shard,
                                  struct bsw_error *err)
{
    const struct bsw_shard_entry *entry = &manifest->shards[shard->index];
    bsw_list_assigner *assigner;
    uint32_t *lists;
    if (manifest->lists.count == 0) return BSW_OK;
    BSW_TRY(bsw_allocate(&lists, entry->num_rows, sizeof *lists, "lists", err));
    enum bsw_status status =
        bsw_list_assigner_open_lists(manifest, bsw_vectors_type(vectors),
                                     bsw_manifest_row_dims(manifest), level, &assigner, err);
    if (status == BSW_OK)
        status = bsw_lists_assign(vectors, entry->first_row, entry->num_rows, assigner, NULL, lists,
                                  err);
    bsw_list_assigner_close(&assigner);
    if (status == BSW_OK)
        status = bsw_list_order_make(lists, entry->num_rows, manifest->lists.count,
                                     entry->num_places, &shard->order, err);
    bsw_free(&lists);
    return status;
}

enum bsw_status bsw_resident_shard_encode(const struct bsw_manifest *manifest, uint32_t shard,
                                          enum bsw_cpu_level level, int with_raw_rows,
                                          struct bsw_resident_shard *out, struct bsw_error *err)
{
    bsw_vectors *vectors;
    *out = (struct bsw_resident_shard){.index = shard};
    BSW_TRY(bsw_vectors_open(manifest->source_path, BSW_ALL_ROWS, &vectors, err));
    bsw_shard_shape_init(&out->shape, manifest, shard);
    enum bsw_status status = prepare(manifest, out, err);
    if (status == BSW_OK) status = make_order(manifest, vectors, level, out, err);
    if (status == BSW_OK) status = encode_blocks(out, manifest, vectors, level, err);
    bsw_vectors_close(&vectors);
    BSW_TRY(complete(manifest, "", with_raw_rows, status, out, err));
    if (with_raw_rows) status = bsw_raw_rows_hold(&out->raw_rows, err);
    if (status != BSW_OK) bsw_resident_shard_unload(out);
    return status;
}

void bsw_resident_shard_drop_codes(struct bsw_resident_shard *shard)
{
    const struct bsw_code_array_list list = bsw_code_arrays_list(&shard->shape);
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].part != BSW_PART_ROWS)
            bsw_free((unsigned char *)&shard->arrays + list.items[i].place);
    }
    bsw_free(&shard->most);
}

// What was compared here is not when it is used.
enum bsw_status bsw_resident_shard_verify_rows(const struct bsw_resident_shard *shard,
                                               struct bsw_error *err)
{
    const struct bsw_raw_rows *rows = &shard->raw_rows;
    struct bsw_first_failure failure = {0};
    if (!shard->has_raw_rows || rows->is_synth) return BSW_OK;
#pragma omp parallel for schedule(static)
    for (size_t bundle = 0; bundle < bsw_num_bundles((size_t)rows->num_slots); bundle++) {
        struct bsw_error thread_error;
        enum bsw_status status = bsw_raw_rows_verify(
            rows, bundle, shard->arrays.row_digests[bundle], NULL, &thread_error);
        rows->is_checked[bundle] = status == BSW_OK;
        if (status != BSW_OK) bsw_first_failure_note(&failure, bundle, status, &thread_error);
    }
    return bsw_first_failure_report(&failure, err);
}

void bsw_resident_shard_unload(struct bsw_resident_shard *shard)
{
    if (shard->has_raw_rows) bsw_raw_rows_close(&shard->raw_rows);
    shard->has_raw_rows = 0;
    bsw_resident_shard_drop_codes(shard);
    bsw_free(&shard->arrays.row_digests);
    bsw_free(&shard->digests);
    bsw_list_order_deinit(&shard->order);
}

enum bsw_status bsw_resident_shard_fail_block(const struct bsw_resident_shard *shard,
                                              uint32_t block, int part, struct bsw_error *err)
{
    static const char *const names[] = {"codes", "tails", "row digests", "bounds of bundles"};
    uint64_t rows = (uint64_t)shard->shape.block_bundles * BSW_BUNDLE_ROWS;
    uint64_t first = block * rows, last = first + rows;
    if (last > shard->shape.num_places) last = shard->shape.num_places;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                    "shard %u: %s of block %u of %u (rows %llu to %llu) have changed in memory",
                    shard->index, names[part], block, shard->shape.num_blocks,
                    (unsigned long long)(shard->shape.first_row + first),
                    (unsigned long long)(shard->shape.first_row + last - 1));
}

static enum bsw_status check_block(const struct bsw_resident_shard *shard, uint32_t block,
                                   struct bsw_error *err)
{
    const struct bsw_block_digests *expected = &shard->digests[block];
    int has_codes = shard->arrays.masks != NULL; // else a device has them
    for (int part = has_codes ? 0 : BSW_PART_ROWS; part < BSW_NUM_CODE_PARTS; part++) {
        uint64_t digest = bsw_code_arrays_digest(
            &shard->shape, &shard->arrays, (size_t)block * shard->shape.block_bundles,
            bsw_shard_block_bundles(&shard->shape, block), (enum bsw_code_part)part);
        if (digest != expected->parts[part])
            return bsw_resident_shard_fail_block(shard, block, part, err);
    }
    if (has_codes && digest_most(shard, block) != expected->most)
        return bsw_resident_shard_fail_block(shard, block, BSW_NUM_CODE_PARTS, err);
    return BSW_OK;
}

enum bsw_status bsw_resident_shard_check(const struct bsw_resident_shard *shard,
                                         struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
#pragma omp parallel for schedule(static)
    for (uint32_t block = 0; block < shard->shape.num_blocks; block++) {
        struct bsw_error thread_error;
        enum bsw_status status = check_block(shard, block, &thread_error);
        if (status != BSW_OK) bsw_first_failure_note(&failure, block, status, &thread_error);
    }
    return bsw_first_failure_report(&failure, err);
}

// ---- parts ----

struct bsw_resident_shard bsw_resident_shard_bundle(const struct bsw_resident_shard *shard,
                                                    size_t bundle)
{
    struct bsw_resident_shard out = *shard;
    uint64_t left = shard->shape.num_places - (uint64_t)bundle * BSW_BUNDLE_ROWS;
    out.num_bundles = 1;
    out.shape.num_places = out.shape.num_rows = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
    out.scan_bytes = shard->scan_bytes / shard->num_bundles;
    bsw_code_arrays_advance(&shard->shape, bundle, &out.arrays);
    if (out.most) out.most += bundle;
    return out;
}

void bsw_resident_shard_part(const struct bsw_resident_shard *shard, size_t part, size_t parts,
                             size_t *first, size_t *last)
{
    *first = (size_t)bsw_part_first(shard->num_bundles, part, parts);
    *last = (size_t)bsw_part_first(shard->num_bundles, part + 1, parts);
}
