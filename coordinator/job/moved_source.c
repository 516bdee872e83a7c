// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/moved_source.h"

#include <stdio.h>
#include <string.h>

#include "common/files/shard_file.h"
#include "coordinator/job/index_generation.h"
#include "shard/host/raw_rows.h"

// ---- one part ----

// Shards of a part, and the texts of the manifest that name its source.
struct place {
    uint32_t first, num_shards;
    char *paths[2]; // [BSW_PATH_BYTES]; the second of the first part alone, else NULL
};

static struct place place_of(struct bsw_manifest *manifest, uint32_t part)
{
    struct place place = {0, manifest->num_shards, {manifest->source_path, NULL}};
    if (manifest->num_parts == 0) return place;
    for (uint32_t p = 0; p < part; p++) place.first += manifest->parts[p].num_shards;
    place.num_shards = manifest->parts[part].num_shards;
    place.paths[0] = manifest->parts[part].source_path;
    place.paths[1] = part == 0 ? manifest->source_path : NULL;
    return place;
}

static int refers_to_file(const struct bsw_shard_home *home)
{
    return !home->source_is_copied && strncmp(home->source_path, "synth:", 6) != 0 &&
           !bsw_memory_rows_is_name(home->source_path);
}

// ---- the same rows ----

static enum bsw_status check_block(const struct bsw_shard_file *codes,
                                   const struct bsw_raw_rows *rows, uint32_t block, void *bytes,
                                   struct bsw_error *err)
{
    const struct bsw_shard_shape *shape = &codes->shape;
    size_t num_bundles = bsw_shard_block_bundles(shape, block);
    size_t first = (size_t)block * shape->block_bundles;
    struct bsw_code_arrays arrays;
    BSW_TRY(bsw_shard_file_read_block(codes, block, bytes, err));
    bsw_code_arrays_in_block(shape, bytes, num_bundles, &arrays);
    for (size_t b = 0; b < num_bundles; b++) {
        if ((uint64_t)(first + b) * BSW_BUNDLE_ROWS >= shape->num_rows) break;
        BSW_TRY(bsw_raw_rows_verify(rows, first + b, arrays.row_digests[b], NULL, err));
    }
    return BSW_OK;
}

static enum bsw_status check_blocks(const struct bsw_shard_file *codes,
                                    const struct bsw_raw_rows *rows, int is_thorough,
                                    struct bsw_error *err)
{
    const struct bsw_shard_shape *shape = &codes->shape;
    const uint32_t last = shape->num_blocks - 1, blocks[] = {0, last / 2, last};
    void *bytes;
    BSW_TRY(bsw_allocate(&bytes, bsw_shard_block_bytes(shape, 0), 1, "block", err));
    enum bsw_status status = check_block(codes, rows, 0, bytes, err);
    for (int i = 1; i < 3 && status == BSW_OK && is_thorough; i++)
        if (blocks[i] != blocks[i - 1]) status = check_block(codes, rows, blocks[i], bytes, err);
    bsw_free(&bytes);
    return status;
}

// *is_read: the codes are there to compare with.
static enum bsw_status check_shard(const struct bsw_manifest *manifest, const char *index,
                                   uint32_t shard, int is_thorough, int *is_read,
                                   struct bsw_error *err)
{
    static const struct bsw_list_order no_order; // rows of a file are in its order
    struct bsw_raw_rows rows;
    struct bsw_shard_file codes;
    *is_read = 0;
    BSW_TRY(bsw_raw_rows_open(manifest, index, shard, &no_order, &rows, err));
    enum bsw_status status = bsw_shard_file_open(manifest, index, shard, &codes, err);
    if (status == BSW_OK) {
        *is_read = 1;
        status = check_blocks(&codes, &rows, is_thorough, err);
        bsw_shard_file_close(&codes);
    } else if (!is_thorough) {
        status = BSW_OK;
    }
    bsw_raw_rows_close(&rows);
    return status;
}

static enum bsw_status check_rows(const struct bsw_manifest *manifest, const char *index,
                                  const struct place *place, int is_thorough, struct bsw_error *err)
{
    for (uint32_t s = place->first; s < place->first + place->num_shards; s++) {
        int is_read;
        BSW_TRY(check_shard(manifest, index, s, is_thorough, &is_read, err));
        if (is_read && !is_thorough) return BSW_OK;
    }
    return BSW_OK;
}

// ---- taking it ----

// The file as the part's folder sees it.
static enum bsw_status name_source(const char *index, const struct bsw_shard_home *home,
                                   const char *file, char out[BSW_PATH_BYTES],
                                   struct bsw_error *err)
{
    char part[BSW_PATH_BYTES];
    if (home->folder[0] == '\0') return bsw_source_relative(file, index, out, err);
    BSW_TRY(bsw_path_join(part, index, home->folder, err));
    return bsw_source_relative(file, part, out, err);
}

static void set_paths(const struct place *place, const char *path)
{
    for (int i = 0; i < 2; i++)
        if (place->paths[i]) snprintf(place->paths[i], BSW_PATH_BYTES, "%s", path);
}

static int is_layout(const struct bsw_manifest *manifest, const struct bsw_shard_home *home,
                     const struct bsw_vector_file *file)
{
    const struct bsw_vector_layout *layout = &file->layout;
    return file->bytes == home->source_file_bytes && layout->num_rows == home->source_rows &&
           layout->type == manifest->source_type && layout->dims == bsw_manifest_row_dims(manifest);
}

static enum bsw_status fail_layout(const struct bsw_manifest *manifest,
                                   const struct bsw_shard_home *home,
                                   const struct bsw_vector_file *file, const char *name,
                                   struct bsw_error *err)
{
    const struct bsw_vector_layout *layout = &file->layout;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: %llu rows x %u dims of %s in %llu bytes; the index was made from %llu x "
                    "%u of %s in %llu",
                    name, (unsigned long long)layout->num_rows, layout->dims,
                    bsw_vector_type_name(layout->type), (unsigned long long)file->bytes,
                    (unsigned long long)home->source_rows, bsw_manifest_row_dims(manifest),
                    bsw_vector_type_name(manifest->source_type),
                    (unsigned long long)home->source_file_bytes);
}

// The source as a folder of the index sees it: parts of one file have the same.
static const char *seen_from_index(const struct bsw_shard_home *home)
{
    int is_above = home->folder[0] != '\0' && strncmp(home->source_path, "../", 3) == 0;
    return home->source_path + (is_above ? 3 : 0);
}

static int have_one_source(const struct bsw_shard_home *a, const struct bsw_shard_home *b)
{
    return a->source_file_bytes == b->source_file_bytes &&
           strcmp(seen_from_index(a), seen_from_index(b)) == 0;
}

struct taking {
    struct bsw_manifest *manifest;
    const char *index, *name;
    struct bsw_vector_file file;
    int is_thorough;
    struct bsw_moved_source *out;
};

static uint32_t num_parts(const struct bsw_manifest *manifest)
{
    return manifest->num_parts > 0 ? manifest->num_parts : 1;
}

static struct bsw_shard_home home_of(const struct taking *t, uint32_t part)
{
    return bsw_manifest_home(t->manifest, place_of(t->manifest, part).first);
}

// Whether the rows of a part are those of the file; nothing is changed.
static enum bsw_status check_part(struct taking *t, uint32_t part, struct bsw_error *err)
{
    const struct place place = place_of(t->manifest, part);
    const struct bsw_shard_home home = home_of(t, part);
    char old[BSW_PATH_BYTES], path[BSW_PATH_BYTES];
    if (!is_layout(t->manifest, &home, &t->file))
        return fail_layout(t->manifest, &home, &t->file, t->name, err);
    memcpy(old, place.paths[0], sizeof old);
    BSW_TRY(name_source(t->index, &home, t->name, path, err));
    set_paths(&place, path);
    enum bsw_status status = check_rows(t->manifest, t->index, &place, t->is_thorough, err);
    set_paths(&place, old);
    return status;
}

static enum bsw_status take_part(struct taking *t, uint32_t part, struct bsw_error *err)
{
    const struct place place = place_of(t->manifest, part);
    const struct bsw_shard_home home = home_of(t, part);
    char path[BSW_PATH_BYTES];
    BSW_TRY(name_source(t->index, &home, t->name, path, err));
    set_paths(&place, path);
    t->out->num_parts++;
    for (uint32_t s = place.first; s < place.first + place.num_shards; s++)
        t->out->num_rows += t->manifest->shards[s].num_rows;
    return BSW_OK;
}

// Whether no part before it has the same source.
static int is_first(const struct taking *t, uint32_t part)
{
    const struct bsw_shard_home home = home_of(t, part);
    for (uint32_t p = 0; p < part; p++) {
        const struct bsw_shard_home other = home_of(t, p);
        if (refers_to_file(&other) && have_one_source(&home, &other)) return 0;
    }
    return 1;
}

typedef enum bsw_status part_fn(struct taking *t, uint32_t part, struct bsw_error *err);

// All parts of one file, of which this is the first.
static enum bsw_status of_parts(struct taking *t, uint32_t first, part_fn *call,
                                struct bsw_error *err)
{
    struct bsw_shard_home wanted = home_of(t, first);
    char source[BSW_PATH_BYTES]; // as it was before it is changed
    snprintf(source, sizeof source, "%s", wanted.source_path);
    wanted.source_path = source;
    for (uint32_t p = first; p < num_parts(t->manifest); p++) {
        const struct bsw_shard_home home = home_of(t, p);
        if (refers_to_file(&home) && have_one_source(&wanted, &home)) BSW_TRY(call(t, p, err));
    }
    return BSW_OK;
}

static enum bsw_status take_all(struct taking *t, struct bsw_error *err)
{
    enum bsw_status first = BSW_OK;
    for (uint32_t p = 0; p < num_parts(t->manifest); p++) {
        const struct bsw_shard_home home = home_of(t, p);
        struct bsw_error why;
        if (!refers_to_file(&home)) continue;
        t->out->num_referring++;
        if (!is_first(t, p)) continue;
        // A file that fits only some of them is not it.
        enum bsw_status status = of_parts(t, p, check_part, &why);
        if (status == BSW_OK) status = of_parts(t, p, take_part, &why);
        if (status == BSW_OK || first != BSW_OK) continue;
        first = status;
        if (err) *err = why;
    }
    if (t->out->num_parts > 0) return BSW_OK;
    if (t->out->num_referring > 0) return first;
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: refers to no file: it has its rows in its folder",
                    t->index);
}

enum bsw_status bsw_moved_source_take(struct bsw_manifest *manifest, const char *index,
                                      const char *file, int is_thorough,
                                      struct bsw_moved_source *out, struct bsw_error *err)
{
    struct taking t = {manifest, index, file, {.fd = -1}, is_thorough, out};
    *out = (struct bsw_moved_source){.generation = manifest->generation};
    if (strncmp(file, "synth:", 6) == 0 || bsw_memory_rows_is_name(file))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: is no file that an index could refer to", file);
    enum bsw_status status = bsw_vector_file_open(file, BSW_HDF5_BASE, &t.file, err);
    if (status == BSW_OK) status = take_all(&t, err);
    bsw_vector_file_close(&t.file);
    return status;
}

// ---- for ever ----

// Rank 0.
static enum bsw_status commit(struct bsw_generation *g, const char *file, uint64_t keep,
                              struct bsw_moved_source *out, struct bsw_error *err)
{
    if (!bsw_manifest_has_rows(&g->manifest))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: is an index of texts, which reads no rows",
                        g->index);
    BSW_TRY(bsw_generation_advance(&g->manifest, 1, err));
    BSW_TRY(bsw_moved_source_take(&g->manifest, g->index, file, 1, out, err));
    return bsw_generation_commit(g, keep, err);
}

enum bsw_status bsw_moved_source_set(const char *index, const char *file, uint64_t keep,
                                     struct bsw_transport *transport, struct bsw_moved_source *out,
                                     struct bsw_error *err)
{
    struct bsw_generation generation;
    *out = (struct bsw_moved_source){0};
    enum bsw_status status = bsw_generation_begin(&generation, index, transport, err);
    if (status == BSW_OK) {
        if (transport->rank == 0) status = commit(&generation, file, keep, out, err);
        status = bsw_transport_agree(transport, status, err);
    }
    bsw_generation_end(&generation);
    return status;
}
