// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/index_manifest.h"
#include "common/rows/text_lines.h"

enum bsw_status bsw_shard_path(char out[BSW_PATH_BYTES], const char *folder, uint32_t shard,
                               uint32_t num_shards, const char *suffix, struct bsw_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "shard-%05u-of-%05u%s", shard, num_shards, suffix);
    return bsw_path_join(out, folder, name, err);
}

// A source that is no file.
static int is_made(const char *source)
{
    return strncmp(source, "synth:", 6) == 0 || bsw_memory_rows_is_name(source);
}

static enum bsw_status resolve_source(const char *source, const char *folder,
                                      char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    if (!is_made(source) && source[0] != '/') return bsw_path_join(out, folder, source, err);
    snprintf(out, BSW_PATH_BYTES, "%s", source);
    return BSW_OK;
}

enum bsw_status bsw_manifest_source(const struct bsw_manifest *manifest, const char *folder,
                                    char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    return resolve_source(manifest->source_path, folder, out, err);
}

enum bsw_status bsw_shard_source(const struct bsw_shard_home *home, const char *folder,
                                 char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    char part[BSW_PATH_BYTES];
    if (home->folder[0] == '\0') return resolve_source(home->source_path, folder, out, err);
    BSW_TRY(bsw_path_join(part, folder, home->folder, err));
    return resolve_source(home->source_path, part, out, err);
}

static enum bsw_status resolve(const char *path, char out[PATH_MAX], struct bsw_error *err)
{
    if (realpath(path, out)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "%s: %s", path, strerror(errno));
}

enum bsw_status bsw_source_relative(const char *source, const char *folder,
                                    char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    char file[PATH_MAX], base[PATH_MAX];
    struct bsw_hdf5_name hdf5;
    struct bsw_text_name text;
    if (is_made(source)) {
        snprintf(out, BSW_PATH_BYTES, "%s", source);
        return BSW_OK;
    }
    int is_hdf5 = bsw_hdf5_name_parse(source, BSW_HDF5_BASE, &hdf5),
        is_text = bsw_text_name_parse(source, &text);
    const char *part = is_hdf5 ? hdf5.dataset : is_text ? source + strlen(text.file) : "";
    BSW_TRY(resolve(is_hdf5 ? hdf5.file : is_text ? text.file : source, file, err));
    BSW_TRY(resolve(folder, base, err));
    size_t common = 0; // length of the shared leading folders, up to and with a slash
    for (size_t i = 0;; i++) {
        int base_ends = base[i] == '\0';
        if ((base_ends || base[i] == '/') && file[i] == '/') common = i + 1;
        if (base_ends || base[i] != file[i]) break;
    }
    size_t used = 0;
    out[0] = '\0';
    const char *rest = strlen(base) >= common ? base + common : "";
    while (*rest) { // one step up for each folder of base that file does not share
        if (used + 3 >= BSW_PATH_BYTES) return bsw_fail(err, BSW_ERROR_USAGE, "path is too long");
        memcpy(out + used, "../", 3);
        used += 3;
        rest += strcspn(rest, "/");
        if (*rest == '/') rest++;
    }
    int written = snprintf(out + used, BSW_PATH_BYTES - used, "%s%s%s", file + common,
                           is_hdf5 ? ":" : "", part);
    if (written < 0 || (size_t)written >= BSW_PATH_BYTES - used)
        return bsw_fail(err, BSW_ERROR_USAGE, "path is too long");
    return BSW_OK;
}
