// SPDX-License-Identifier: Apache-2.0
// raw: uint8 or int8 rows as they are, scanned exactly (kernels/encode/raw_codes.h).
#include "kernels/encode/raw_codes.h"

#include "shard/codecs/codec.h"

static enum bsw_status parse_part(const char *name, const void *data, size_t bytes,
                                  struct bsw_manifest *manifest, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    (void)data;
    (void)bytes;
    if (layout->num_segments != 1 || layout->segments[0].bits != 8 || manifest->bits != 8 ||
        layout->dims > BSW_RAW_MAX_DIMS || bsw_has_unit_rows(manifest->metric) ||
        manifest->dropped_rows > 0 ||
        (manifest->source_type != BSW_VECTOR_UINT8 && manifest->source_type != BSW_VECTOR_INT8)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no raw rows", name);
    }
    return BSW_OK;
}

// ---- settings ----

static enum bsw_status check_settings(struct bsw_codec_settings *o, struct bsw_error *err)
{
    return bsw_codec_check_plain(&bsw_codec_raw, o, err);
}

static enum bsw_status check_rows(const struct bsw_codec_settings *o, const char *source,
                                  enum bsw_vector_type type, uint32_t dims, struct bsw_error *err)
{
    (void)o;
    if (type != BSW_VECTOR_UINT8 && type != BSW_VECTOR_INT8) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec raw takes uint8 or int8 rows, %s has %s",
                        source, bsw_vector_type_name(type));
    }
    if (dims <= BSW_RAW_MAX_DIMS) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--codec raw takes up to %d dims, whose sums fit 32 bits, %s has %u",
                    BSW_RAW_MAX_DIMS, source, dims);
}

// Nothing to learn: 8 bits a dimension.
static enum bsw_status train(const struct bsw_codec_settings *o, uint32_t dims,
                             struct bsw_sample *sample, const struct bsw_codec_model *model,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    (void)o;
    (void)sample;
    (void)model;
    return bsw_codec_lay_out_whole(manifest, dims, 8, err);
}

static enum bsw_status forecast(const struct bsw_codec_forecast *o, struct bsw_manifest *manifest,
                                struct bsw_error *err)
{
    if (o->dims > BSW_RAW_MAX_DIMS)
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec raw takes up to %d dims", BSW_RAW_MAX_DIMS);
    return bsw_codec_lay_out_whole(manifest, (uint32_t)o->dims, 8, err);
}

// ---- rows and queries ----

static void encode_tile(const struct bsw_codec_tile *tile, const struct bsw_code_arrays *arrays,
                        size_t bundle)
{
    const struct bsw_manifest *manifest = tile->manifest;
    size_t words = bsw_segment_bundle_words(&manifest->layout.segments[0]);
    for (size_t done = 0; done < tile->num_rows; done += BSW_BUNDLE_ROWS, bundle++) {
        size_t left = tile->num_rows - done,
               count = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
        bsw_raw_pack_bundle(manifest->source_type, manifest->metric,
                            tile->numbers + done * tile->row_bytes, count, manifest->layout.dims,
                            (unsigned char *)(arrays->planes[0] + bundle * words),
                            arrays->offsets + bundle * BSW_BUNDLE_ROWS);
    }
}

static enum bsw_status settle_query_bits(const struct bsw_manifest *manifest, const char *name,
                                         uint32_t asked, uint32_t *out, struct bsw_error *err)
{
    (void)manifest;
    (void)name;
    *out = BSW_RAW_QUERY_BITS;
    if (asked == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--query-bits is for codes: codec raw takes the queries whole");
}

// Numbers that the rows' own type could not hold have no exact total.
static enum bsw_status check_query(const struct bsw_manifest *manifest, const char *name,
                                   uint64_t row, const float *numbers, struct bsw_error *err)
{
    enum bsw_vector_type type = manifest->source_type;
    size_t dims = manifest->layout.dims, misfit = bsw_raw_first_misfit(type, numbers, dims);
    if (misfit == dims) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: row %llu has %g at dimension %zu: a raw index of %s takes whole numbers "
                    "from %s only",
                    name, (unsigned long long)row, (double)numbers[misfit], misfit,
                    bsw_vector_type_name(type),
                    type == BSW_VECTOR_UINT8 ? "0 to 255" : "-128 to 127");
}

static void encode_query(const struct bsw_codec_query *query, uint32_t *words,
                         union bsw_query_number *number, float *addend)
{
    const struct bsw_manifest *manifest = query->manifest;
    bsw_raw_query_encode(manifest->source_type, manifest->metric, query->row, manifest->layout.dims,
                         manifest->layout.padded_dims, (int8_t *)(void *)words, &number->constant);
    *addend = 0; // keys are values
}

static float value(const struct bsw_manifest *manifest, uint32_t query_bits, int32_t key)
{
    (void)query_bits;
    return bsw_metric_written(bsw_metric_value(manifest->metric, (double)key));
}

static const struct bsw_codec_table table = {.metrics = BSW_ALL_METRICS & ~BSW_UNIT_METRICS,
                                             .has_exact_keys = 1,
                                             .fixed_bits = 8,
                                             .takes_numbers = 1,
                                             .check_settings = check_settings,
                                             .check_rows = check_rows,
                                             .train = train,
                                             .forecast = forecast,
                                             .encode_tile = encode_tile,
                                             .settle_query_bits = settle_query_bits,
                                             .check_query = check_query,
                                             .encode_query = encode_query,
                                             .value = value};

const struct bsw_codec bsw_codec_raw = {.name = "raw",
                                        .has_bytes = 1,
                                        .known_rule = BSW_KNOWN_RULE_RAW,
                                        .parse_part = parse_part,
                                        .table = &table};
