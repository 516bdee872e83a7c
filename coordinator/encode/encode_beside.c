// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/encode_beside.h"

#include <xxhash.h>

#include "common/files/row_ids.h"

static enum bsw_status take_ids(const struct bsw_encode_settings *s, struct bsw_manifest *manifest,
                                struct bsw_index_folder *folder, struct bsw_buffer *out,
                                struct bsw_error *err)
{
    if (!s->ids) return BSW_OK;
    if (s->num_ids != manifest->num_rows)
        return bsw_fail(err, BSW_ERROR_USAGE, "--ids: %llu ids for %llu rows",
                        (unsigned long long)s->num_ids, (unsigned long long)manifest->num_rows);
    BSW_TRY(bsw_integers_check_different("--ids", s->ids, s->num_ids, err));
    BSW_TRY(bsw_row_ids_pack(s->ids, s->num_ids, out, err));
    manifest->ids_digest = XXH3_64bits(out->data, out->bytes);
    folder->ids = out;
    return BSW_OK;
}

static enum bsw_status take_tags(const struct bsw_encode_settings *s, struct bsw_manifest *manifest,
                                 struct bsw_index_folder *folder, struct bsw_buffer *out,
                                 struct bsw_error *err)
{
    if (!s->tags) return BSW_OK;
    if (s->tags->num_members != manifest->num_rows)
        return bsw_fail(err, BSW_ERROR_USAGE, "--tags: tags of %llu rows, there are %llu",
                        (unsigned long long)s->tags->num_members,
                        (unsigned long long)manifest->num_rows);
    BSW_TRY(bsw_row_tags_pack(s->tags, out, err));
    manifest->tags_digest = XXH3_64bits(out->data, out->bytes);
    folder->tags = out;
    return BSW_OK;
}

enum bsw_status bsw_encode_beside_take(const struct bsw_encode_settings *settings,
                                       struct bsw_manifest *manifest,
                                       struct bsw_index_folder *folder,
                                       struct bsw_encode_beside *out, struct bsw_error *err)
{
    BSW_TRY(take_ids(settings, manifest, folder, &out->ids, err));
    return take_tags(settings, manifest, folder, &out->tags, err);
}

void bsw_encode_beside_deinit(struct bsw_encode_beside *beside)
{
    bsw_buffer_deinit(&beside->ids);
    bsw_buffer_deinit(&beside->tags);
}
