// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/shard_encode.h"

#include <string.h>
#include <xxhash.h>

#include "kernels/table_scan/table_scan.h"
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

// A block under way.
struct block_work {
    bsw_block_encoder *encoder;
    const struct bsw_shard_shape *shape;
    const struct bsw_list_order *order; // NULL: places are rows
    int drop_bad_rows;
    const struct bsw_shard_writer *rows;
    struct bsw_code_arrays arrays;
    uint64_t first_place; // of the block
    struct bsw_block_result *out;
};

// Digests of rows [first, first + count) of the shard, in the source's order, and their copy.
static enum bsw_status account_rows(const struct block_work *work, uint64_t first, size_t count,
                                    struct bsw_error *err)
{
    const bsw_block_encoder *encoder = work->encoder;
    for (size_t r = 0; r < count; r++) {
        uint64_t digest = bsw_row_digest(encoder->numbers + r * encoder->row_bytes,
                                         encoder->row_bytes, work->shape->first_row + first + r);
        work->arrays.row_digests[(first + r - work->first_place) / BSW_BUNDLE_ROWS] += digest;
        work->out->source_digest += digest;
        // Bad rows are in no list, which whoever made the order has allowed.
        if (work->order && work->order->places[first + r] == BSW_NO_ROW) work->out->dropped_rows++;
    }
    return work->rows ? bsw_shard_writer_put_rows(work->rows, first, encoder->numbers, count, err)
                      : BSW_OK;
}

static uint32_t row_at(const struct block_work *work, uint64_t place)
{
    return work->order ? work->order->rows[place] : (uint32_t)place;
}

static int has_ordered_rows(const struct block_work *work)
{
    return work->order && work->encoder->manifest->lists.has_ordered_vectors;
}

// The same of the rows at places [place, place + count), which are read, as they lie in a copy in
// that order. num_rows: so many rows of the shard from `place` on are this block's to be counted.
static enum bsw_status account_places(const struct block_work *work, uint64_t place, size_t count,
                                      size_t num_rows, struct bsw_error *err)
{
    const bsw_block_encoder *encoder = work->encoder;
    for (size_t i = 0; i < count; i++) {
        uint32_t row = row_at(work, place + i);
        if (row == BSW_NO_ROW) continue;
        uint64_t digest = bsw_row_digest(encoder->numbers + i * encoder->row_bytes,
                                         encoder->row_bytes, work->shape->first_row + row);
        work->arrays.row_digests[(place + i - work->first_place) / BSW_BUNDLE_ROWS] += digest;
        work->out->source_digest += digest;
    }
    for (size_t r = 0; r < num_rows; r++)
        if (work->order->places[place + r] == BSW_NO_ROW) work->out->dropped_rows++;
    return work->rows ? bsw_shard_writer_put_rows(work->rows, place, encoder->numbers, count, err)
                      : BSW_OK;
}

// The rows at so many places from `place` on; what no row has is 0.
static enum bsw_status read_places(const struct block_work *work, uint64_t place, size_t count,
                                   struct bsw_error *err)
{
    const bsw_block_encoder *encoder = work->encoder;
    for (size_t i = 0; i < count; i++) {
        uint32_t row = row_at(work, place + i);
        unsigned char *to = encoder->numbers + i * encoder->row_bytes;
        if (row == BSW_NO_ROW)
            memset(to, 0, encoder->row_bytes);
        else
            BSW_TRY(bsw_vectors_read(encoder->vectors, work->shape->first_row + row, 1, to, err));
    }
    return BSW_OK;
}

// Masks of a tile; a bad row ends the work unless dropping is allowed.
static enum bsw_status mask_places(const struct block_work *work, const enum bsw_row_fault *faults,
                                   uint64_t place, size_t count, struct bsw_error *err)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t row = row_at(work, place + i);
        size_t at = (size_t)(place - work->first_place) + i;
        if (row == BSW_NO_ROW) continue;
        if (faults[i] == BSW_ROW_GOOD)
            work->arrays.masks[at / BSW_BUNDLE_ROWS] |= 1u << (at % BSW_BUNDLE_ROWS);
        else if (work->drop_bad_rows)
            work->out->dropped_rows++;
        else
            return bsw_fail_bad_row(work->encoder->vectors, work->shape->first_row + row, faults[i],
                                    err);
    }
    return BSW_OK;
}

// Codes the rows whose numbers are there.
static enum bsw_status encode_tile(const struct block_work *work, uint64_t place, size_t count,
                                   struct bsw_error *err)
{
    double norms[BSW_TILE_MAX_ROWS];
    float factors[BSW_TILE_MAX_ROWS];
    enum bsw_row_fault faults[BSW_TILE_MAX_ROWS] = {BSW_ROW_GOOD}; // no row of integers has one
    uint32_t lists[BSW_TILE_MAX_ROWS];
    bsw_block_encoder *encoder = work->encoder;
    const struct bsw_manifest *manifest = encoder->manifest;
    int is_residual = work->order && manifest->lists.is_residual;
    for (size_t i = 0; i < count && is_residual; i++)
        lists[i] = bsw_list_of_place(work->order, (uint32_t)(place + i));
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
    BSW_TRY(mask_places(work, faults, place, count, err));
    encoder->codec->encode_tile(&tile, &work->arrays,
                                (size_t)(place - work->first_place) / BSW_BUNDLE_ROWS);
    return BSW_OK;
}

// Places [place, place + count), of which the first `num_rows` are rows of the shard, too.
static enum bsw_status take_tile(const struct block_work *work, uint64_t place, size_t count,
                                 size_t num_rows, struct bsw_error *err)
{
    const bsw_block_encoder *encoder = work->encoder;
    if (has_ordered_rows(work)) {
        BSW_TRY(read_places(work, place, count, err));
        BSW_TRY(account_places(work, place, count, num_rows, err));
        return encode_tile(work, place, count, err);
    }
    if (num_rows > 0) {
        BSW_TRY(bsw_vectors_read(encoder->vectors, work->shape->first_row + place, num_rows,
                                 encoder->numbers, err));
        BSW_TRY(account_rows(work, place, num_rows, err));
    }
    if (work->order) BSW_TRY(read_places(work, place, count, err));
    return encode_tile(work, place, count, err);
}

enum bsw_status bsw_block_encode(bsw_block_encoder *encoder, const struct bsw_shard_shape *shape,
                                 uint32_t block, const struct bsw_list_order *order,
                                 int drop_bad_rows, const struct bsw_shard_writer *rows,
                                 struct bsw_block_result *out, struct bsw_error *err)
{
    size_t bytes = bsw_shard_block_bytes(shape, block),
           num_bundles = bsw_shard_block_bundles(shape, block);
    uint64_t first = (uint64_t)block * shape->block_bundles * BSW_BUNDLE_ROWS;
    uint64_t last = first + num_bundles * BSW_BUNDLE_ROWS;
    struct block_work work = {.encoder = encoder,
                              .shape = shape,
                              .order = order,
                              .drop_bad_rows = drop_bad_rows,
                              .rows = rows,
                              .first_place = first,
                              .out = out};
    *out = (struct bsw_block_result){0};
    BSW_TRY(bsw_buffer_reserve(&encoder->block, bytes, err));
    memset(encoder->block.data, 0, bytes);
    bsw_code_arrays_in_block(shape, encoder->block.data, num_bundles, &work.arrays);
    if (last > shape->num_places) last = shape->num_places;
    for (uint64_t place = first; place < last; place += encoder->tile_rows) {
        size_t count =
            last - place < encoder->tile_rows ? (size_t)(last - place) : encoder->tile_rows;
        uint64_t left = place < shape->num_rows ? shape->num_rows - place : 0;
        BSW_TRY(take_tile(&work, place, count, left < count ? (size_t)left : count, err));
    }
    out->bytes = encoder->block.data;
    out->digest = XXH3_64bits(encoder->block.data, bytes);
    return BSW_OK;
}
