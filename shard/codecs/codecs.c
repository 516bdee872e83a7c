// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/number_parse.h"
#include "shard/codecs/codec.h"

// Frame of 4096 dims: 64 MiB; 65,536 shards: some 4 MiB, their known answers 64 MiB; and centroids.
// A larger file is not a manifest of ours.
#define MANIFEST_MAX_BYTES (BSW_MAX_CENTROID_BYTES + (256u << 20))

#define USUAL_QUERY_BITS   6

#define COMMA()            ,
#define ADDRESS(name)      &bsw_codec_##name

const struct bsw_codec *const bsw_codecs[BSW_NUM_CODECS + 1] = {BSW_CODEC_LIST(ADDRESS, COMMA)};

const struct bsw_codec *bsw_codec_find(const char *name)
{
    int i = 0;
    while (i < BSW_NUM_CODECS && strcmp(name, bsw_codecs[i]->name) != 0) i++;
    return bsw_codecs[i];
}

enum bsw_status bsw_codec_parse(const char *text, const struct bsw_codec **out,
                                struct bsw_error *err)
{
    *out = bsw_codec_find(text);
    if (*out) return BSW_OK;
    char words[BSW_CHOICES_BYTES];
    return bsw_fail(err, BSW_ERROR_USAGE, "unknown codec '%s': use %s", text,
                    bsw_choices_text(BSW_CODEC_NAMES, words));
}

const char *bsw_codec_only_metric(const struct bsw_codec *codec)
{
    uint32_t metrics = codec->table->metrics;
    if ((metrics & (metrics - 1)) != 0) return NULL;
    int metric = 0;
    while (metrics >> metric != 1) metric++;
    return bsw_metric_name((enum bsw_metric)metric);
}

enum bsw_status bsw_codec_check_metric(const struct bsw_codec *codec, enum bsw_metric metric,
                                       struct bsw_error *err)
{
    if (codec->table->metrics >> metric & 1) return BSW_OK;
    if (bsw_has_unit_rows(metric)) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--codec %s has no cosine: say --metric l2 or --metric ip", codec->name);
    }
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--codec %s knows --metric cosine only; saq has ip and l2", codec->name);
}

enum bsw_status bsw_codec_query_bits(const struct bsw_manifest *manifest, const char *index,
                                     uint32_t asked, uint32_t *out, struct bsw_error *err)
{
    const struct bsw_codec_table *table = manifest->codec->table;
    if (table->settle_query_bits) return table->settle_query_bits(manifest, index, asked, out, err);
    *out = asked > 0 ? asked : table->query_bits > 0 ? table->query_bits : USUAL_QUERY_BITS;
    return bsw_code_layout_check(&manifest->layout, *out, err);
}

enum bsw_status bsw_codec_check_model(const char *folder, const struct bsw_manifest *model,
                                      uint32_t model_dims, const struct bsw_manifest *manifest,
                                      uint32_t dims, struct bsw_error *err)
{
    if (model->codec != manifest->codec)
        return bsw_fail(err, BSW_ERROR_USAGE, "--model %s: its codec is %s, not %s", folder,
                        bsw_codec_name(model->codec), bsw_codec_name(manifest->codec));
    if (model->metric != manifest->metric)
        return bsw_fail(err, BSW_ERROR_USAGE, "--model %s: its metric is %s, not %s", folder,
                        bsw_metric_name(model->metric), bsw_metric_name(manifest->metric));
    if (model_dims != dims)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--model %s: its rows have %u dims, those of --base %u", folder, model_dims,
                        dims);
    return BSW_OK;
}

// Settles --bits: if it is 0, not given, the codec's usual number.
static enum bsw_status settle_bits(const struct bsw_codec *codec, double *bits,
                                   struct bsw_error *err)
{
    const struct bsw_codec_table *table = codec->table;
    double usual = table->fixed_bits > 0 ? table->fixed_bits
                   : table->has_parts    ? 8
                   : table->has_model    ? 2
                                         : 3;
    if (*bits == 0) *bits = usual;
    if (table->fixed_bits > 0 && *bits != table->fixed_bits)
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec %s %s %g", *bits, codec->name,
                        table->takes_numbers ? "keeps all" : "has", table->fixed_bits);
    if (table->has_whole_bits && *bits != floor(*bits))
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec %s takes whole bits", *bits,
                        codec->name);
    return BSW_OK;
}

static enum bsw_status check_parts(const struct bsw_codec *codec, uint64_t parts,
                                   const char *rotation, int has_radii, struct bsw_error *err)
{
    if (rotation && !codec->table->has_rotation)
        return bsw_fail(err, BSW_ERROR_USAGE, "--rotation is for --codec pq and xfbq");
    if (codec->table->has_parts || (parts == 0 && !has_radii)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s is for --codec pq",
                    parts > 0 ? "subspaces" : "entries");
}

enum bsw_status bsw_codec_check_settings(const struct bsw_codec *codec,
                                         struct bsw_codec_settings *settings, struct bsw_error *err)
{
    BSW_TRY(check_parts(codec, settings->parts, settings->rotation, settings->has_radii, err));
    return codec->table->check_settings(settings, err);
}

enum bsw_status bsw_codec_forecast(const struct bsw_codec_forecast *forecast,
                                   struct bsw_manifest *manifest, struct bsw_error *err)
{
    const struct bsw_codec_table *table = manifest->codec->table;
    if (forecast->code_dims > 0 && !table->has_model)
        return bsw_fail(err, BSW_ERROR_USAGE, "--code-dims is for --codec rbe");
    if (forecast->segments && (!table->has_segments || forecast->bits > 0)) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--segments is for --codec saq, and names the bits itself");
    }
    BSW_TRY(check_parts(manifest->codec, forecast->parts, NULL, forecast->has_radii, err));
    struct bsw_codec_forecast settled = *forecast;
    BSW_TRY(settle_bits(manifest->codec, &settled.bits, err));
    if (table->forecast) return table->forecast(&settled, manifest, err);
    return bsw_codec_lay_out_whole(manifest, (uint32_t)settled.dims, settled.bits, err);
}

// ---- models ----

enum bsw_status bsw_codec_model_open(const struct bsw_codec *codec, const char *path, uint32_t dims,
                                     enum bsw_cpu_level level, struct bsw_transport *transport,
                                     struct bsw_codec_model *out, struct bsw_error *err)
{
    *out = (struct bsw_codec_model){.codec = codec};
    if (!codec->table->has_model) return BSW_OK;
    return codec->table->open_model(path, dims, level, transport, out, err);
}

enum bsw_status bsw_codec_index_model_open(const char *folder, struct bsw_manifest *manifest,
                                           enum bsw_cpu_level level, struct bsw_codec_model *out,
                                           struct bsw_error *err)
{
    const struct bsw_codec_table *table = manifest->codec->table;
    *out = (struct bsw_codec_model){.codec = manifest->codec};
    if (!table->has_model) return BSW_OK;
    BSW_TRY(table->open_index_model(folder, manifest, level, out, err));
    table->lend_model(out, manifest);
    return BSW_OK;
}

void bsw_codec_model_lend(const struct bsw_codec_model *model, struct bsw_manifest *manifest)
{
    if (model->codec->table->has_model) model->codec->table->lend_model(model, manifest);
}

void bsw_codec_model_close(struct bsw_codec_model *model)
{
    if (model->codec && model->codec->table->has_model) model->codec->table->close_model(model);
}

void bsw_codec_format_segments(const struct bsw_manifest *manifest, char *text, size_t capacity)
{
    bsw_code_layout_format(&manifest->layout, text, capacity);
    size_t length = strlen(text);
    if (manifest->codec->table->has_segments && manifest->row_dims > manifest->layout.dims)
        snprintf(text + length, capacity - length, ",%ux0",
                 manifest->row_dims - manifest->layout.dims);
}

// ---- shared by codecs ----

enum bsw_status bsw_codec_check_plain(const struct bsw_codec *codec, struct bsw_codec_settings *o,
                                      struct bsw_error *err)
{
    BSW_TRY(settle_bits(codec, &o->bits, err));
    if (!o->segments && !o->model && o->stage == BSW_STAGE_DEFAULT) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s",
                    o->segments ? "segments is for --codec saq"
                    : o->model  ? "model is for --codec saq, pq and rbe"
                                : "stage is for --codec saq");
}

enum bsw_status bsw_codec_lay_out_whole(struct bsw_manifest *manifest, uint32_t dims, double bits,
                                        struct bsw_error *err)
{
    bsw_code_layout_init(&manifest->layout);
    manifest->bits = bits;
    manifest->stage_dims = dims;
    return bsw_code_layout_append(&manifest->layout, dims, (uint32_t)bits, err);
}

enum bsw_status bsw_manifest_parse(const char *name, const void *data, size_t bytes,
                                   struct bsw_manifest *out, struct bsw_error *err)
{
    return bsw_manifest_unpack(bsw_codecs, name, data, bytes, out, err);
}

// Fails for a folder without a manifest: it may be one that encode has not finished.
static enum bsw_status fail_no_index(const char *folder, struct bsw_error *err)
{
    static const char *const unfinished[] = {"encode.plan", "encode.lists"};
    char path[BSW_PATH_BYTES];
    for (size_t i = 0; i < sizeof unfinished / sizeof unfinished[0]; i++) {
        BSW_TRY(bsw_path_join(path, folder, unfinished[i], err));
        if (bsw_file_exists(path))
            return bsw_fail(err, BSW_ERROR_IO,
                            "%s: an index that is not finished; the same encode with --resume goes "
                            "on",
                            folder);
    }
    return bsw_fail(err, BSW_ERROR_IO, "%s: not an index: it has no manifest.pb", folder);
}

enum bsw_status bsw_manifest_read(const char *folder, struct bsw_manifest *out,
                                  struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    char path[BSW_PATH_BYTES];
    *out = (struct bsw_manifest){0};
    BSW_TRY(bsw_path_join(path, folder, "manifest.pb", err));
    if (bsw_path_is_folder(folder) && !bsw_file_exists(path) && errno == ENOENT)
        return fail_no_index(folder, err);
    enum bsw_status status = bsw_file_read_all(path, MANIFEST_MAX_BYTES, &buffer, err);
    if (status == BSW_OK) status = bsw_manifest_parse(path, buffer.data, buffer.bytes, out, err);
    bsw_buffer_deinit(&buffer);
    return status;
}
