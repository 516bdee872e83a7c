// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/shard_encode.h"

#include <string.h>
#include <xxhash.h>

#include "kernels/table_scan/table_scan.h"
#include "shard/codecs/block_rows.h"
#include "shard/codecs/codec.h"

#define WIDE_DIMS      4096
#define WIDE_TILE_ROWS 32

struct bsw_block_encoder {
    const struct bsw_manifest *manifest;
    const struct bsw_codec_table *codec;
    const bsw_vectors *vectors;
    const struct bsw_encode_table *table;
    const struct bsw_table_scan_table *tables;
    size_t tile_rows;
    size_t row_bytes;
    unsigned char *numbers; // [tile_rows] raw rows
    float *rows;            // [tile_rows][dims]; NULL for a codec that takes numbers
    void *scratch;          // of the codec, or NULL
    struct bsw_buffer block;
};

enum bsw_status bsw_block_encoder_create(const struct bsw_manifest *manifest,
                                         const bsw_vectors *vectors, enum bsw_cpu_level level,
                                         bsw_block_encoder **out, struct bsw_error *err)
{
    bsw_block_encoder *encoder;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&encoder, 1, sizeof *encoder, "encoder", err));
    uint32_t dims = bsw_manifest_row_dims(manifest);
    encoder->manifest = manifest;
    encoder->codec = manifest->codec->table;
    encoder->vectors = vectors;
    encoder->table = bsw_encode_table_get(level);
    encoder->tables = bsw_table_scan_table_get(level);
    encoder->tile_rows = dims > WIDE_DIMS ? WIDE_TILE_ROWS : BSW_TILE_MAX_ROWS;
    encoder->row_bytes = bsw_vectors_row_bytes(vectors);
    enum bsw_status status =
        bsw_allocate(&encoder->numbers, encoder->tile_rows, encoder->row_bytes, "rows", err);
    if (status == BSW_OK && !encoder->codec->takes_numbers)
        status =
            bsw_allocate(&encoder->rows, encoder->tile_rows * dims, sizeof(float), "rows", err);
    if (status == BSW_OK && encoder->codec->tile_scratch_bytes)
        status = bsw_allocate(&encoder->scratch,
                              encoder->codec->tile_scratch_bytes(manifest, encoder->tile_rows), 1,
                              "rows", err);
    if (status != BSW_OK) bsw_block_encoder_destroy(&encoder);
    *out = encoder;
    return status;
}

void bsw_block_encoder_destroy(bsw_block_encoder **encoder)
{
    if (!*encoder) return;
    bsw_free(&(*encoder)->numbers);
    bsw_free(&(*encoder)->rows);
    bsw_free(&(*encoder)->scratch);
    bsw_buffer_deinit(&(*encoder)->block);
    bsw_free(encoder);
}

enum bsw_status bsw_fail_bad_row(const bsw_vectors *vectors, uint64_t row_id,
                                 enum bsw_row_fault fault, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu %s", bsw_vectors_name(vectors),
                    (unsigned long long)(row_id - bsw_vectors_shift(vectors)),
                    bsw_row_fault_text(fault));
}

// Codes the rows whose numbers are there.
static enum bsw_status encode_tile(const struct bsw_block_encoder *encoder,
                                   const struct bsw_block_rows *rows, uint64_t place, size_t count,
                                   struct bsw_block_result *out, struct bsw_error *err)
{
    double norms[BSW_TILE_MAX_ROWS];
    float factors[BSW_TILE_MAX_ROWS];
    enum bsw_row_fault faults[BSW_TILE_MAX_ROWS] = {BSW_ROW_GOOD}; // no row of integers has one
    uint32_t lists[BSW_TILE_MAX_ROWS];
    const struct bsw_manifest *manifest = encoder->manifest;
    int is_residual = rows->order && manifest->lists.is_residual;
    if (is_residual) bsw_block_rows_lists(rows, place, count, lists);
    const struct bsw_codec_tile tile = {.lists = is_residual ? lists : NULL,
                                        .manifest = manifest,
                                        .kernels = encoder->table,
                                        .tables = encoder->tables,
                                        .num_rows = count,
                                        .numbers = encoder->numbers,
                                        .row_bytes = encoder->row_bytes,
                                        .rows = encoder->rows,
                                        .factors = encoder->rows ? factors : NULL,
                                        .scratch = encoder->scratch};
    if (encoder->rows) {
        bsw_prepare_rows(encoder->table, manifest->metric, manifest->source_type, encoder->numbers,
                         count, bsw_manifest_row_dims(manifest), encoder->rows, norms, factors,
                         faults);
    }
    for (size_t i = 0; i < count; i++)
        BSW_TRY(bsw_block_rows_judge(rows, place + i, faults[i], out, err));
    encoder->codec->encode_tile(&tile, &rows->arrays,
                                (size_t)(place - rows->first_place) / BSW_BUNDLE_ROWS);
    return BSW_OK;
}

enum bsw_status bsw_block_encode(bsw_block_encoder *encoder, const struct bsw_shard_shape *shape,
                                 uint32_t block, const struct bsw_list_order *order,
                                 int drop_bad_rows, const struct bsw_shard_writer *copies,
                                 struct bsw_block_result *out, struct bsw_error *err)
{
    size_t bytes = bsw_shard_block_bytes(shape, block),
           num_bundles = bsw_shard_block_bundles(shape, block);
    uint64_t first = (uint64_t)block * shape->block_bundles * BSW_BUNDLE_ROWS;
    uint64_t last = first + num_bundles * BSW_BUNDLE_ROWS;
    struct bsw_block_rows rows = {.manifest = encoder->manifest,
                                  .vectors = encoder->vectors,
                                  .row_bytes = encoder->row_bytes,
                                  .shape = shape,
                                  .order = order,
                                  .copies = copies,
                                  .drop_bad_rows = drop_bad_rows,
                                  .first_place = first};
    *out = (struct bsw_block_result){0};
    BSW_TRY(bsw_buffer_reserve(&encoder->block, bytes, err));
    memset(encoder->block.data, 0, bytes);
    bsw_code_arrays_in_block(shape, encoder->block.data, num_bundles, &rows.arrays);
    if (last > shape->num_places) last = shape->num_places;
    for (uint64_t place = first; place < last; place += encoder->tile_rows) {
        size_t count =
            last - place < encoder->tile_rows ? (size_t)(last - place) : encoder->tile_rows;
        BSW_TRY(bsw_block_rows_read(&rows, place, count, encoder->numbers, out, err));
        BSW_TRY(encode_tile(encoder, &rows, place, count, out, err));
    }
    out->bytes = encoder->block.data;
    out->digest = XXH3_64bits(encoder->block.data, bytes);
    return BSW_OK;
}
