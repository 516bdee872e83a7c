// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/encode_index.h"

#include <stdio.h>
#include <xxhash.h>

// Digest of the model that settings name: of its file, or of the manifest of the index; 0: none.
static enum bsw_status digest_model(const struct bsw_encode_settings *settings,
                                    const struct bsw_codec_model *model, uint64_t *out,
                                    struct bsw_error *err)
{
    const char *path = settings->code.model;
    struct bsw_manifest manifest;
    struct bsw_buffer bytes = {0};
    *out = 0;
    if (settings->codec->table->has_model) {
        *out = XXH3_64bits(model->bytes.data, model->bytes.bytes);
        return BSW_OK;
    }
    if (!path) return BSW_OK;
    BSW_TRY(bsw_manifest_read(path, &manifest, err));
    enum bsw_status status = bsw_manifest_pack(&manifest, &bytes, err);
    if (status == BSW_OK) *out = XXH3_64bits(bytes.data, bytes.bytes);
    bsw_buffer_deinit(&bytes);
    bsw_manifest_deinit(&manifest);
    return status;
}

enum bsw_status bsw_encode_fields_make(const struct bsw_encode_settings *settings,
                                       const struct bsw_manifest *manifest,
                                       const struct bsw_codec_model *model, uint64_t input_digest,
                                       struct bsw_journal_fields *out, struct bsw_error *err)
{
    const struct bsw_encode_settings *s = settings;
    const struct bsw_codec_settings *code = &s->code;
    char scale[32] = "auto", stage[32] = "auto";
    uint64_t digest;
    BSW_TRY(digest_model(settings, model, &digest, err));
    if (code->has_scale) snprintf(scale, sizeof scale, "%.15g", code->scale);
    if (code->stage == BSW_STAGE_GIVEN)
        snprintf(stage, sizeof stage, "%llu", (unsigned long long)code->stage_dims);
    *out = (struct bsw_journal_fields){0};
    bsw_journal_field_text(out, "bitsweep", BITSWEEP_VERSION);
    bsw_journal_field_text(out, "base", manifest->source_path);
    bsw_journal_field_digest(out, "rows of base", input_digest);
    bsw_journal_field_text(out, "codec", bsw_codec_name(s->codec));
    bsw_journal_field_text(out, "metric", bsw_metric_name(manifest->metric));
    bsw_journal_field_number(out, "bits", code->bits);
    bsw_journal_field_text(out, "segments", code->segments ? code->segments : "none");
    bsw_journal_field_text(out, "axes", code->random_axes ? "random" : "principal");
    bsw_journal_field_count(out, "subspaces", code->parts);
    bsw_journal_field_text(out, "rotation", code->rotation ? code->rotation : "auto");
    if (code->has_radii) bsw_journal_field_text(out, "entries", "radius");
    bsw_journal_field_text(out, "scale", scale);
    bsw_journal_field_text(out, "stage", stage);
    bsw_journal_field_digest(out, "model", digest);
    bsw_journal_field_count(out, "seed", code->seed);
    bsw_journal_field_count(out, "shards", s->shards);
    bsw_journal_field_count(out, "lists", manifest->lists.count);
    bsw_journal_field_text(out, "residual",
                           bsw_encode_chooses_residuals(s, manifest) ? "auto"
                           : manifest->lists.is_residual             ? "yes"
                                                                     : "no");
    if (manifest->ids_digest) bsw_journal_field_digest(out, "ids", manifest->ids_digest);
    if (manifest->tags_digest) bsw_journal_field_digest(out, "tags", manifest->tags_digest);
    if (s->frame) {
        bsw_journal_field_digest(out, "index", s->frame->build_digest);
        bsw_journal_field_count(out, "first row", s->first_id);
    }
    bsw_journal_field_text(out, "copy-vectors", s->copy_vectors ? "on" : "off");
    bsw_journal_field_text(out, "drop-bad-rows", s->drop_bad_rows ? "on" : "off");
    return BSW_OK;
}
