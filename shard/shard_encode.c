#include "shard/shard_encode.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "common/half.h"
#include "kernels/encode/query_codes.h"
#include "kernels/encode/raw_codes.h"
#include "kernels/rbe/rbe_coders.h"

#define TILE_ROWS      128
#define WIDE_DIMS      4096
#define WIDE_TILE_ROWS 32

struct bsw_block_encoder {
    const struct bsw_manifest *manifest;
    const bsw_vectors *vectors;
    const struct bsw_encode_table *table;
    struct bsw_saq_frame frame;
    size_t tile_rows;
    size_t row_bytes;
    unsigned char *numbers; // [tile_rows] raw rows
    float *rows;            // [tile_rows][dims]; not of codec raw
    float *centered;        // saq alone
    float *projected;       // saq alone, [tile_rows][padded_dims]
    void *scratch;          // rbe alone
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
    encoder->vectors = vectors;
    encoder->table = bsw_encode_table_get(level);
    encoder->tile_rows = dims > WIDE_DIMS ? WIDE_TILE_ROWS : TILE_ROWS;
    encoder->row_bytes = bsw_vectors_row_bytes(vectors);
    size_t numbers = encoder->tile_rows * dims;
    enum bsw_status status =
        bsw_allocate(&encoder->numbers, encoder->tile_rows, encoder->row_bytes, "rows", err);
    if (status == BSW_OK && manifest->codec != BSW_CODEC_RAW)
        status = bsw_allocate(&encoder->rows, numbers, sizeof(float), "rows", err);
    if (status == BSW_OK && manifest->codec == BSW_CODEC_SAQ) {
        bsw_frame_of_manifest(manifest, &encoder->frame);
        size_t padded = encoder->tile_rows * manifest->layout.padded_dims;
        status = bsw_allocate(&encoder->centered, numbers, sizeof(float), "rows", err);
        if (status == BSW_OK)
            status = bsw_allocate(&encoder->projected, padded, sizeof(float), "rows", err);
    }
    if (status == BSW_OK && manifest->codec == BSW_CODEC_RBE)
        status = bsw_allocate(&encoder->scratch, bsw_rbe_coders_scratch_bytes(manifest->coders), 1,
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
    bsw_free(&(*encoder)->centered);
    bsw_free(&(*encoder)->projected);
    bsw_free(&(*encoder)->scratch);
    bsw_buffer_deinit(&(*encoder)->block);
    bsw_free(encoder);
}

static void encode_plain(const bsw_block_encoder *encoder, size_t num_rows, const float *factors,
                         const struct bsw_code_arrays *arrays, size_t bundle)
{
    const struct bsw_segment *segment = &encoder->manifest->layout.segments[0];
    for (size_t done = 0; done < num_rows; done += BSW_BUNDLE_ROWS, bundle++) {
        size_t count = num_rows - done < BSW_BUNDLE_ROWS ? num_rows - done : BSW_BUNDLE_ROWS;
        encoder->table->xfbq(encoder->rows + done * segment->dims, count, segment->dims,
                             factors + done, encoder->manifest->xfbq_scale, segment->bits,
                             arrays->planes[0] + bundle * bsw_segment_bundle_words(segment));
    }
}

// The stored halves and bias of one bundle. The tail bounds |scale_d * dot of the rest| by
// Cauchy-Schwarz with the scale as stored; the factor above 1 covers the roundings of sqrt and
// product.
void bsw_store_affine(const struct bsw_manifest *manifest, size_t count, const float *norms,
                      const float *scales, const uint32_t *tails, const float *mean_dots,
                      const struct bsw_code_arrays *arrays, size_t row)
{
    double scale_unit = ldexp(1.0, -manifest->scale_exponent);
    double tail_unit = ldexp(1.0 + 0x1p-50, manifest->scale_exponent - manifest->tail_exponent);
    for (size_t r = 0; r < count; r++) {
        uint16_t half = bsw_half_nearest((double)scales[r] * scale_unit);
        arrays->scales[row + r] = half;
        arrays->tails[row + r] =
            bsw_half_up(bsw_half_to_float(half) * sqrt((double)tails[r]) * tail_unit);
        arrays->biases[row + r] =
            manifest->metric == BSW_METRIC_L2 ? 0.0f - norms[r] : mean_dots[r];
    }
}

static void encode_scaled(bsw_block_encoder *encoder, size_t num_rows, const float *factors,
                          const struct bsw_code_arrays *arrays, size_t bundle)
{
    const struct bsw_code_layout *layout = &encoder->frame.layout;
    float mean_dots[TILE_ROWS], norms[BSW_BUNDLE_ROWS], scales[BSW_BUNDLE_ROWS];
    uint32_t tails[BSW_BUNDLE_ROWS];
    encoder->table->saq_center(&encoder->frame, encoder->rows, num_rows, factors, encoder->centered,
                               mean_dots);
    encoder->table->saq_project(&encoder->frame, encoder->centered, num_rows, encoder->projected);
    for (size_t done = 0; done < num_rows; done += BSW_BUNDLE_ROWS, bundle++) {
        size_t count = num_rows - done < BSW_BUNDLE_ROWS ? num_rows - done : BSW_BUNDLE_ROWS;
        uint32_t *planes[BSW_MAX_SEGMENTS];
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            planes[s] = arrays->planes[s] + bundle * bsw_segment_bundle_words(&layout->segments[s]);
        }
        encoder->table->saq_quantize(&encoder->frame,
                                     encoder->projected + done * layout->padded_dims, count, planes,
                                     norms, scales, tails);
        bsw_store_affine(encoder->manifest, count, norms, scales, tails, mean_dots + done, arrays,
                         bundle * BSW_BUNDLE_ROWS);
    }
}

// Tails stay 0.
static void encode_learned(const bsw_block_encoder *encoder, size_t num_rows, const float *factors,
                           const struct bsw_code_arrays *arrays, size_t bundle)
{
    const struct bsw_manifest *manifest = encoder->manifest;
    size_t words = bsw_segment_bundle_words(&manifest->layout.segments[0]);
    for (size_t done = 0; done < num_rows; done += BSW_BUNDLE_ROWS, bundle++) {
        size_t count = num_rows - done < BSW_BUNDLE_ROWS ? num_rows - done : BSW_BUNDLE_ROWS;
        bsw_rbe_encode_bundle(manifest->coders, encoder->rows + done * manifest->row_dims, count,
                              factors + done, encoder->scratch, arrays->planes[0] + bundle * words,
                              arrays->scales + bundle * BSW_BUNDLE_ROWS,
                              arrays->biases + bundle * BSW_BUNDLE_ROWS);
    }
}

static void encode_raw(const bsw_block_encoder *encoder, size_t num_rows,
                       const struct bsw_code_arrays *arrays, size_t bundle)
{
    const struct bsw_manifest *manifest = encoder->manifest;
    size_t words = bsw_segment_bundle_words(&manifest->layout.segments[0]);
    for (size_t done = 0; done < num_rows; done += BSW_BUNDLE_ROWS, bundle++) {
        size_t count = num_rows - done < BSW_BUNDLE_ROWS ? num_rows - done : BSW_BUNDLE_ROWS;
        bsw_raw_pack_bundle(
            manifest->source_type, manifest->metric, encoder->numbers + done * encoder->row_bytes,
            count, manifest->layout.dims, (unsigned char *)(arrays->planes[0] + bundle * words),
            arrays->offsets + bundle * BSW_BUNDLE_ROWS);
    }
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
    double norms[TILE_ROWS];
    float factors[TILE_ROWS];
    enum bsw_row_fault faults[TILE_ROWS] = {BSW_ROW_GOOD}; // no row of integers has one
    const struct bsw_manifest *manifest = encoder->manifest;
    BSW_TRY(bsw_vectors_read(encoder->vectors, row_id, num_rows, encoder->numbers, err));
    if (manifest->codec != BSW_CODEC_RAW) {
        bsw_prepare_rows(encoder->table, manifest->metric, manifest->source_type, encoder->numbers,
                         num_rows, bsw_manifest_row_dims(manifest), encoder->rows, norms, factors,
                         faults);
    }
    BSW_TRY(
        account_rows(encoder, faults, num_rows, row_id, drop_bad_rows, arrays, bundle, out, err));
    if (manifest->codec == BSW_CODEC_RAW)
        encode_raw(encoder, num_rows, arrays, bundle);
    else if (manifest->codec == BSW_CODEC_XFBQ)
        encode_plain(encoder, num_rows, factors, arrays, bundle);
    else if (manifest->codec == BSW_CODEC_RBE)
        encode_learned(encoder, num_rows, factors, arrays, bundle);
    else
        encode_scaled(encoder, num_rows, factors, arrays, bundle);
    return BSW_OK;
}

enum bsw_status bsw_block_encode(bsw_block_encoder *encoder, const struct bsw_shard_shape *shape,
                                 uint32_t block, int drop_bad_rows, int vectors_fd,
                                 const char *vectors_path, struct bsw_block_result *out,
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
        if (vectors_fd >= 0) {
            BSW_TRY(bsw_file_write_at(vectors_fd, vectors_path,
                                      BSW_SHARD_HEADER_BYTES + row * encoder->row_bytes,
                                      encoder->numbers, count * encoder->row_bytes, err));
        }
    }
    out->bytes = encoder->block.data;
    out->digest = XXH3_64bits(encoder->block.data, bytes);
    return BSW_OK;
}
