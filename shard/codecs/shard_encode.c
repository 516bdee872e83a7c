#include "shard/codecs/shard_encode.h"

#include <string.h>
#include <xxhash.h>

#include "shard/codecs/codec.h"

#define WIDE_DIMS      4096
#define WIDE_TILE_ROWS 32

struct bsw_block_encoder {
    const struct bsw_manifest *manifest;
    const struct bsw_codec_table *codec;
    const bsw_vectors *vectors;
    const struct bsw_encode_table *table;
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
                    (unsigned long long)row_id, bsw_row_fault_text(fault));
}

// Masks and digests of a tile; a bad row ends the work unless dropping is allowed.
static enum bsw_status account_rows(const bsw_block_encoder *encoder,
                                    const enum bsw_row_fault *faults, size_t num_rows,
                                    uint64_t row_id, int drop_bad_rows,
                                    const struct bsw_code_arrays *arrays, size_t bundle,
                                    struct bsw_block_result *out, struct bsw_error *err)
{
    for (size_t r = 0; r < num_rows; r++) {
        uint64_t digest = bsw_row_digest(encoder->numbers + r * encoder->row_bytes,
                                         encoder->row_bytes, row_id + r);
        arrays->row_digests[bundle + r / BSW_BUNDLE_ROWS] += digest;
        out->source_digest += digest;
        if (faults[r] == BSW_ROW_GOOD) {
            arrays->masks[bundle + r / BSW_BUNDLE_ROWS] |= 1u << (r % BSW_BUNDLE_ROWS);
        } else if (drop_bad_rows) {
            out->dropped_rows++;
        } else {
            return bsw_fail_bad_row(encoder->vectors, row_id + r, faults[r], err);
        }
    }
    return BSW_OK;
}

static enum bsw_status encode_tile(bsw_block_encoder *encoder, uint64_t row_id, size_t num_rows,
                                   int drop_bad_rows, const struct bsw_code_arrays *arrays,
                                   size_t bundle, struct bsw_block_result *out,
                                   struct bsw_error *err)
{
    double norms[BSW_TILE_MAX_ROWS];
    float factors[BSW_TILE_MAX_ROWS];
    enum bsw_row_fault faults[BSW_TILE_MAX_ROWS] = {BSW_ROW_GOOD}; // no row of integers has one
    const struct bsw_manifest *manifest = encoder->manifest;
    const struct bsw_codec_tile tile = {.manifest = manifest,
                                        .kernels = encoder->table,
                                        .num_rows = num_rows,
                                        .numbers = encoder->numbers,
                                        .row_bytes = encoder->row_bytes,
                                        .rows = encoder->rows,
                                        .factors = encoder->rows ? factors : NULL,
                                        .scratch = encoder->scratch};
    BSW_TRY(bsw_vectors_read(encoder->vectors, row_id, num_rows, encoder->numbers, err));
    if (encoder->rows) {
        bsw_prepare_rows(encoder->table, manifest->metric, manifest->source_type, encoder->numbers,
                         num_rows, bsw_manifest_row_dims(manifest), encoder->rows, norms, factors,
                         faults);
    }
    BSW_TRY(
        account_rows(encoder, faults, num_rows, row_id, drop_bad_rows, arrays, bundle, out, err));
    encoder->codec->encode_tile(&tile, arrays, bundle);
    return BSW_OK;
}

enum bsw_status bsw_block_encode(bsw_block_encoder *encoder, const struct bsw_shard_shape *shape,
                                 uint32_t block, int drop_bad_rows,
                                 const struct bsw_shard_writer *rows, struct bsw_block_result *out,
                                 struct bsw_error *err)
{
    size_t bytes = bsw_shard_block_bytes(shape, block),
           num_bundles = bsw_shard_block_bundles(shape, block);
    struct bsw_code_arrays arrays;
    *out = (struct bsw_block_result){0};
    BSW_TRY(bsw_buffer_reserve(&encoder->block, bytes, err));
    memset(encoder->block.data, 0, bytes);
    bsw_code_arrays_in_block(shape, encoder->block.data, num_bundles, &arrays);
    uint64_t first = (uint64_t)block * shape->block_bundles * BSW_BUNDLE_ROWS;
    uint64_t last = first + num_bundles * BSW_BUNDLE_ROWS;
    if (last > shape->num_rows) last = shape->num_rows;
    for (uint64_t row = first; row < last; row += encoder->tile_rows) {
        size_t count = last - row < encoder->tile_rows ? (size_t)(last - row) : encoder->tile_rows;
        BSW_TRY(encode_tile(encoder, shape->first_row + row, count, drop_bad_rows, &arrays,
                            (size_t)(row - first) / BSW_BUNDLE_ROWS, out, err));
        if (rows) BSW_TRY(bsw_shard_writer_put_rows(rows, row, encoder->numbers, count, err));
    }
    out->bytes = encoder->block.data;
    out->digest = XXH3_64bits(encoder->block.data, bytes);
    return BSW_OK;
}
