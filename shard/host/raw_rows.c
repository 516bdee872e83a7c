// SPDX-License-Identifier: Apache-2.0
#include "shard/host/raw_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/memory.h"
#include "common/codes/code_layout.h"
#include "common/files/shard_file.h"
#include "common/job/stop_signal.h"
#include "common/rows/vectors.h"

#define LINE_BYTES 64
// Linux reads no more at once than a disk has as its read-ahead, 128 KiB if nobody says otherwise.
#define AHEAD_BYTES ((uintptr_t)128 << 10)

static enum bsw_status fail_changed(const char *path, const char *what, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: changed since the index was made: %s", path,
                    what);
}

static enum bsw_status map_file(struct bsw_raw_rows *rows, int fd, uint64_t bytes,
                                struct bsw_error *err)
{
    if (bytes > SIZE_MAX)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: too large to map", rows->path);
    void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return bsw_fail(err, BSW_ERROR_IO, "%s: cannot map: %s", rows->path, strerror(errno));
    madvise(map, (size_t)bytes,
            MADV_RANDOM); // single rows here and there: read-ahead would only cost
    enum bsw_status status = bsw_mapped_file_note(map, (size_t)bytes, fd, rows->path, err);
    if (status != BSW_OK) {
        munmap(map, (size_t)bytes);
        return status;
    }
    rows->map = map;
    rows->map_bytes = (size_t)bytes;
    return BSW_OK;
}

static enum bsw_status open_copy(const struct bsw_manifest *manifest, const char *folder,
                                 uint32_t shard, struct bsw_raw_rows *rows, struct bsw_error *err)
{
    int fd;
    BSW_TRY(bsw_vectors_file_open(manifest, folder, shard, &fd, rows->path, err));
    rows->first_byte = BSW_SHARD_HEADER_BYTES;
    rows->stride_bytes = rows->row_bytes;
    rows->source_rows_before = 0;
    enum bsw_status status =
        map_file(rows, fd, BSW_SHARD_HEADER_BYTES + rows->num_slots * rows->row_bytes, err);
    bsw_file_close(&fd);
    return status;
}

static enum bsw_status check_layout(const struct bsw_manifest *manifest,
                                    const struct bsw_shard_home *home,
                                    const struct bsw_raw_rows *rows,
                                    const struct bsw_vector_layout *layout, uint64_t bytes,
                                    struct bsw_error *err)
{
    if (bytes != home->source_file_bytes) return fail_changed(rows->path, "its size", err);
    if (layout->type != manifest->source_type) return fail_changed(rows->path, "its type", err);
    if (layout->dims != bsw_manifest_row_dims(manifest))
        return fail_changed(rows->path, "its dims", err);
    if (layout->num_rows != home->source_rows)
        return fail_changed(rows->path, "its number of rows", err);
    return BSW_OK;
}

static enum bsw_status map_source(const struct bsw_manifest *manifest,
                                  const struct bsw_shard_home *home,
                                  const struct bsw_vector_file *file, struct bsw_raw_rows *rows,
                                  struct bsw_error *err)
{
    BSW_TRY(check_layout(manifest, home, rows, &file->layout, file->bytes, err));
    rows->first_byte = file->layout.first_byte;
    rows->stride_bytes = file->layout.stride_bytes;
    rows->source_rows_before = rows->source_first_row;
    return map_file(rows, file->fd, file->bytes, err);
}

// Behind what is wrong with a file that is not in the index: who wants it, and what helps.
static void say_who_refers(const char *folder, struct bsw_error *err)
{
    if (!err) return;
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used,
             "; %s refers to it for exact values: put it back, or say where it is: bitsweep info "
             "%s --set-source FILE, for one search --base FILE; with --refine none none is needed",
             folder, folder);
}

static enum bsw_status open_source(const struct bsw_manifest *manifest,
                                   const struct bsw_shard_home *home, const char *folder,
                                   struct bsw_raw_rows *rows, struct bsw_error *err)
{
    struct bsw_vector_file file;
    enum bsw_status status = bsw_vector_file_open(rows->path, BSW_HDF5_BASE, &file, err);
    if (status == BSW_OK) status = map_source(manifest, home, &file, rows, err);
    bsw_vector_file_close(&file);
    if (status == BSW_ERROR_IO || status == BSW_ERROR_BAD_DATA) say_who_refers(folder, err);
    return status;
}

// A row of more numbers than the manifest says would be made into too little room.
static enum bsw_status open_synth(const struct bsw_manifest *manifest,
                                  const struct bsw_shard_home *home, struct bsw_raw_rows *rows,
                                  struct bsw_error *err)
{
    snprintf(rows->path, sizeof rows->path, "%s", home->source_path);
    if (bsw_synth_parse(home->source_path + 6, &rows->synth, NULL) != BSW_OK)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no source", rows->path);
    const struct bsw_synth *synth = &rows->synth;
    const struct bsw_vector_layout layout = {
        .type = synth->type, .dims = synth->dims, .num_rows = synth->count};
    rows->is_synth = 1;
    return check_layout(manifest, home, rows, &layout, 0, err);
}

enum bsw_status bsw_raw_rows_open(const struct bsw_manifest *manifest, const char *folder,
                                  uint32_t shard, const struct bsw_list_order *order,
                                  struct bsw_raw_rows *out, struct bsw_error *err)
{
    const struct bsw_shard_home home = bsw_manifest_home(manifest, shard);
    uint64_t first_row = manifest->shards[shard].first_row;
    *out = (struct bsw_raw_rows){.shard_first_row = first_row,
                                 .source_first_row = first_row - home.source_shift,
                                 .num_rows = manifest->shards[shard].num_rows,
                                 .row_bytes = bsw_manifest_row_dims(manifest) *
                                              bsw_vector_type_bytes(manifest->source_type)};
    out->num_slots = out->num_rows;
    if (home.has_ordered_vectors) {
        out->rows_at = order->rows;
        out->places = order->places;
        out->num_slots = order->num_places;
    }
    size_t bundles = bsw_num_bundles(out->num_slots);
    BSW_TRY(bsw_allocate_zero(&out->is_checked, bundles, 1, "checked bundles", err));
    enum bsw_status status;
    if (home.source_is_copied) {
        status = open_copy(manifest, folder, shard, out, err);
    } else if (strncmp(home.source_path, "synth:", 6) == 0) {
        status = open_synth(manifest, &home, out, err);
    } else {
        status = bsw_shard_source(&home, folder, out->path, err);
        if (status == BSW_OK) status = open_source(manifest, &home, folder, out, err);
    }
    if (status != BSW_OK) bsw_raw_rows_close(out);
    return status;
}

enum bsw_status bsw_raw_rows_hold(struct bsw_raw_rows *rows, struct bsw_error *err)
{
    size_t bytes;
    if (!rows->is_synth) return BSW_OK;
    if (rows->num_rows > SIZE_MAX || !bsw_multiply_size(rows->num_rows, rows->row_bytes, &bytes))
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: too large for memory", rows->path);
    unsigned char *map =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "%s: %zu bytes of rows: %s", rows->path,
                        bytes, strerror(errno));
#pragma omp parallel for schedule(static)
    for (uint64_t row = 0; row < rows->num_rows; row++)
        bsw_synth_rows(&rows->synth, rows->source_first_row + row, 1, map + row * rows->row_bytes);
    rows->map = map;
    rows->map_bytes = bytes;
    rows->first_byte = rows->source_rows_before = 0;
    rows->stride_bytes = rows->row_bytes;
    rows->is_synth = 0;
    return BSW_OK;
}

void bsw_raw_rows_close(struct bsw_raw_rows *rows)
{
    bsw_mapped_file_forget(rows->map);
    if (rows->map) munmap((void *)(uintptr_t)rows->map, rows->map_bytes);
    rows->map = NULL;
    bsw_free(&rows->is_checked);
}

// Where a row lies among those of the file; BSW_NO_ROW: nowhere.
static uint64_t slot_of(const struct bsw_raw_rows *rows, uint64_t local_row)
{
    return rows->places ? rows->places[local_row] : local_row;
}

static const unsigned char *address(const struct bsw_raw_rows *rows, uint64_t slot)
{
    return rows->map + rows->first_byte + (rows->source_rows_before + slot) * rows->stride_bytes;
}

static const void *fetch(const struct bsw_raw_rows *rows, uint64_t slot, void *scratch)
{
    if (rows->is_synth) {
        bsw_synth_rows(&rows->synth, rows->source_first_row + slot, 1, scratch);
        return scratch;
    }
    return address(rows, slot);
}

void bsw_raw_rows_prefetch(const struct bsw_raw_rows *rows, uint32_t local_row)
{
    uint64_t slot = slot_of(rows, local_row);
    if (rows->is_synth || slot == BSW_NO_ROW) return;
    const unsigned char *row = address(rows, slot);
    size_t bytes = rows->row_bytes < BSW_PREFETCH_BYTES ? rows->row_bytes : BSW_PREFETCH_BYTES;
    for (size_t i = 0; i < bytes; i += LINE_BYTES) __builtin_prefetch(row + i);
    __builtin_prefetch(row + bytes - 1); // rows begin anywhere in a line
}

void bsw_raw_rows_read_ahead(const struct bsw_raw_rows *rows, uint64_t first_row, uint64_t num_rows)
{
    if (rows->is_synth || num_rows == 0) return;
    if (rows->places && num_rows < rows->num_rows) return; // they lie anywhere
    if (rows->places) num_rows = rows->num_slots;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)address(rows, first_row) / page * page;
    uintptr_t last = (uintptr_t)address(rows, first_row + num_rows - 1) + rows->row_bytes;
    for (uintptr_t at = first; at < last; at += AHEAD_BYTES)
        madvise((void *)at, last - at < AHEAD_BYTES ? last - at : AHEAD_BYTES, MADV_WILLNEED);
}

static enum bsw_status fail_bundle(const struct bsw_raw_rows *rows, uint64_t first, uint64_t last,
                                   struct bsw_error *err)
{
    uint64_t before = rows->places ? 0 : rows->shard_first_row;
    BSW_TRY(bsw_mapped_files_check(err)); // which says more
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: %s %llu to %llu are not those the index was made from", rows->path,
                    rows->places ? "rows at places" : "rows", (unsigned long long)(before + first),
                    (unsigned long long)(before + last - 1));
}

enum bsw_status bsw_raw_rows_verify(const struct bsw_raw_rows *rows, size_t bundle,
                                    uint64_t expected_digest, void *scratch, struct bsw_error *err)
{
    uint64_t first = (uint64_t)bundle * BSW_BUNDLE_ROWS, last = first + BSW_BUNDLE_ROWS, digest = 0;
    if (last > rows->num_slots) last = rows->num_slots;
    for (uint64_t slot = first; slot < last; slot++) {
        uint64_t row = rows->rows_at ? rows->rows_at[slot] : slot;
        if (row == BSW_NO_ROW) continue;
        digest += bsw_row_digest(fetch(rows, slot, scratch), rows->row_bytes,
                                 rows->shard_first_row + row);
    }
    return digest == expected_digest ? BSW_OK : fail_bundle(rows, first, last, err);
}

enum bsw_status bsw_raw_rows_get(const struct bsw_raw_rows *rows, uint32_t local_row,
                                 const uint64_t *row_digests, void *scratch, const void **out,
                                 struct bsw_error *err)
{
    uint64_t slot = slot_of(rows, local_row);
    size_t bundle = (size_t)(slot / BSW_BUNDLE_ROWS);
    if (slot == BSW_NO_ROW) {
        memset(scratch, 0, rows->row_bytes);
        *out = scratch;
        return BSW_OK;
    }
    unsigned char *is_checked = &rows->is_checked[bundle];
    // Generated rows cannot change; checking them would cost 32 times their making.
    if (!rows->is_synth && !__atomic_load_n(is_checked, __ATOMIC_RELAXED)) {
        BSW_TRY(bsw_raw_rows_verify(rows, bundle, row_digests[bundle], scratch, err));
        __atomic_store_n(is_checked, 1, __ATOMIC_RELAXED);
    }
    *out = fetch(rows, slot, scratch);
    return BSW_OK;
}
