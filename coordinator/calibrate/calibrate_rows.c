// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate_rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arithmetic.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/rows/vectors.h"
#include "coordinator/job/different_rows.h"
#include "shard/host/raw_rows.h"

#define ROW_SEED 0x63616c6962726174u
#define NO_ROW   UINT64_MAX
enum { MOST_ROUNDS = 256 };

// Files that hold each type.
static const char *const endings[BSW_VECTOR_NUM_TYPES] = {[BSW_VECTOR_FLOAT32] = "fbin",
                                                          [BSW_VECTOR_FLOAT16] = "npy",
                                                          [BSW_VECTOR_UINT8] = "u8bin",
                                                          [BSW_VECTOR_INT8] = "i8bin"};

enum bsw_status bsw_calibrate_rows_path(const struct bsw_manifest *manifest, const char *index,
                                        char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "encode.tmp.queries.%s", endings[manifest->source_type]);
    return bsw_path_join(out, index, name, err);
}

// Numbers of the rows that are drawn.
struct draw {
    const struct bsw_manifest *manifest;
    const bsw_vectors *source;
    struct bsw_different_rows different;
    unsigned char *numbers; // [num_wanted]
    struct bsw_calibrate_rows *out;
};

static enum bsw_status draw_row(struct draw *draw, uint64_t row, struct bsw_error *err)
{
    struct bsw_calibrate_rows *out = draw->out;
    unsigned char *numbers = draw->numbers + out->num_rows * bsw_vectors_row_bytes(draw->source);
    BSW_TRY(bsw_vectors_read(draw->source, row, 1, numbers, err));
    if (bsw_different_rows_add(&draw->different, bsw_vectors_type(draw->source), numbers))
        out->ids[out->num_rows++] = row;
    return BSW_OK;
}

// The row of a stratum in a round: the first by a hash, the others evenly behind it, none twice.
static uint64_t row_of(const struct draw *draw, uint64_t stratum, uint64_t round)
{
    uint64_t num_rows = draw->manifest->num_rows, count = draw->out->num_wanted;
    uint64_t first = bsw_part_first(num_rows, stratum, count),
             size = bsw_part_first(num_rows, stratum + 1, count) - first;
    uint64_t rounds = size < MOST_ROUNDS ? size : MOST_ROUNDS;
    if (round >= rounds) return NO_ROW;
    uint64_t start = bsw_hash2(ROW_SEED, stratum);
    return first + (start % size + bsw_part_first(size, round, rounds)) % size;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Strata come one by one at first. Later rounds may end before the last of them, so there they come
// by large steps, from somewhere.
static enum bsw_status draw_round(struct draw *draw, uint64_t round, struct bsw_error *err)
{
    struct bsw_calibrate_rows *out = draw->out;
    uint64_t count = out->num_wanted, step = 1, at = 0;
    if (round > 0) {
        step = (uint64_t)(0.618 * (double)count);
        while (common_divisor(step, count) > 1) step++;
        at = bsw_hash2(ROW_SEED + 1, round) % count;
    }
    for (uint64_t i = 0; i < count && out->num_rows < count; i++, at = (at + step) % count) {
        uint64_t row = row_of(draw, at, round);
        if (row != NO_ROW) BSW_TRY(draw_row(draw, draw->manifest->first_row + row, err));
    }
    return BSW_OK;
}

static enum bsw_status draw_rows(struct draw *draw, enum bsw_cpu_level level, struct bsw_error *err)
{
    struct bsw_calibrate_rows *out = draw->out;
    uint64_t count = out->num_wanted;
    BSW_TRY(bsw_different_rows_init(&draw->different, draw->manifest->metric, level,
                                    bsw_vectors_dims(draw->source), count, err));
    BSW_TRY(bsw_allocate(&out->ids, count, sizeof *out->ids, "queries", err));
    BSW_TRY(
        bsw_allocate(&draw->numbers, count, bsw_vectors_row_bytes(draw->source), "queries", err));
    for (uint64_t round = 0; round < MOST_ROUNDS && out->num_rows < count; round++)
        BSW_TRY(draw_round(draw, round, err));
    return BSW_OK;
}

static enum bsw_status write_rows(const struct draw *draw, struct bsw_error *err)
{
    const struct bsw_calibrate_rows *out = draw->out;
    bsw_vector_writer *writer;
    bsw_temporary_note(out->path);
    enum bsw_status status =
        bsw_vector_writer_create(out->path, bsw_vectors_type(draw->source),
                                 bsw_vectors_dims(draw->source), out->num_rows, 1, &writer, err);
    if (status == BSW_OK)
        status = bsw_vector_writer_put(writer, 0, (size_t)out->num_rows, draw->numbers, err);
    if (status == BSW_OK) status = bsw_vector_writer_finish(writer, err);
    bsw_vector_writer_destroy(&writer);
    return status;
}

enum bsw_status bsw_calibrate_rows_make(const struct bsw_manifest *manifest, const char *index,
                                        const char *source, uint64_t most, enum bsw_cpu_level level,
                                        struct bsw_calibrate_rows *out, struct bsw_error *err)
{
    const struct bsw_row_range range = {manifest->first_row,
                                        manifest->first_row + manifest->num_rows};
    struct draw draw = {.manifest = manifest, .out = out};
    bsw_vectors *vectors;
    *out = (struct bsw_calibrate_rows){.num_wanted =
                                           most < manifest->num_rows ? most : manifest->num_rows};
    BSW_TRY(bsw_vectors_open(source, range, &vectors, err));
    draw.source = vectors;
    enum bsw_status status = draw_rows(&draw, level, err);
    if (status == BSW_OK) status = bsw_calibrate_rows_path(manifest, index, out->path, err);
    if (status == BSW_OK && out->num_rows > 0) status = write_rows(&draw, err);
    bsw_vectors_close(&vectors);
    bsw_different_rows_deinit(&draw.different);
    bsw_free(&draw.numbers);
    return status;
}

void bsw_calibrate_rows_deinit(struct bsw_calibrate_rows *rows)
{
    if (rows->path[0]) {
        unlink(rows->path);
        bsw_temporary_forget(rows->path);
    }
    bsw_free(&rows->ids);
    *rows = (struct bsw_calibrate_rows){0};
}

// ---- the rows of an index -----------------------------------------------------------------------

#define COPY_NAME BSW_MEMORY_PREFIX "copied rows"

static size_t row_bytes_of(const struct bsw_manifest *manifest)
{
    return bsw_manifest_row_dims(manifest) * bsw_vector_type_bytes(manifest->source_type);
}

// Rows before the index's first one are never written, nor read, and take no memory. A copy in the
// order of lists lacks dropped rows: they are NaNs, or zeros of a type that has none.
static enum bsw_status read_rows(const struct bsw_manifest *manifest, const char *index,
                                 uint32_t shard, const struct bsw_list_order *order,
                                 unsigned char *numbers, struct bsw_error *err)
{
    struct bsw_raw_rows rows;
    BSW_TRY(bsw_raw_rows_open(manifest, index, shard, order, &rows, err));
    const unsigned char *from =
        rows.map + rows.first_byte + rows.source_rows_before * rows.stride_bytes;
    int is_float =
        manifest->source_type == BSW_VECTOR_FLOAT32 || manifest->source_type == BSW_VECTOR_FLOAT16;
    for (uint64_t row = 0; row < rows.num_rows; row++) {
        uint64_t slot = rows.places ? rows.places[row] : row;
        unsigned char *to = numbers + (rows.shard_first_row + row) * rows.row_bytes;
        if (slot == BSW_NO_ROW)
            memset(to, is_float ? 0xff : 0, rows.row_bytes);
        else
            memcpy(to, from + slot * rows.stride_bytes, rows.row_bytes);
    }
    bsw_raw_rows_close(&rows);
    return BSW_OK;
}

static enum bsw_status read_shard(const struct bsw_manifest *manifest, const char *index,
                                  uint32_t shard, unsigned char *numbers, struct bsw_error *err)
{
    struct bsw_list_order order;
    BSW_TRY(bsw_list_order_read(manifest, index, shard, &order, err));
    enum bsw_status status = read_rows(manifest, index, shard, &order, numbers, err);
    bsw_list_order_deinit(&order);
    return status;
}

// Adds the rows of a shard, as encode made it: a copy in the order of lists has no dropped rows.
static enum bsw_status add_digests(const struct bsw_manifest *manifest, const char *index,
                                   uint32_t shard, const unsigned char *numbers, uint64_t *digest,
                                   struct bsw_error *err)
{
    const struct bsw_shard_entry *entry = &manifest->shards[shard];
    size_t bytes = row_bytes_of(manifest);
    struct bsw_list_order order;
    BSW_TRY(bsw_list_order_read(manifest, index, shard, &order, err));
    const uint32_t *places = manifest->lists.has_ordered_vectors ? order.places : NULL;
    for (uint64_t row = 0; row < entry->num_rows; row++) {
        uint64_t id = entry->first_row + row;
        if (!places || places[row] != BSW_NO_ROW)
            *digest += bsw_row_digest(numbers + id * bytes, bytes, id);
    }
    bsw_list_order_deinit(&order);
    return BSW_OK;
}

// numbers: [first_row + num_rows][row bytes], of which the first ones are not read.
static enum bsw_status digest_of(const struct bsw_manifest *manifest, const char *index,
                                 const unsigned char *numbers, uint64_t *digest,
                                 struct bsw_error *err)
{
    *digest = 0;
    for (uint32_t shard = 0; shard < manifest->num_shards; shard++)
        BSW_TRY(add_digests(manifest, index, shard, numbers, digest, err));
    return BSW_OK;
}

// Whether rows of the index's name are lent, and are those that were encoded.
static enum bsw_status find_lent(const struct bsw_manifest *manifest, const char *index, int *found,
                                 struct bsw_error *err)
{
    const struct bsw_memory_rows *lent;
    uint64_t digest;
    *found = 0;
    if (bsw_memory_rows_find(manifest->source_path, &lent, NULL) != BSW_OK ||
        lent->type != manifest->source_type || lent->dims != bsw_manifest_row_dims(manifest) ||
        lent->num_rows != manifest->source_rows)
        return BSW_OK;
    BSW_TRY(digest_of(manifest, index, lent->numbers, &digest, err));
    *found = digest == manifest->source_digest;
    return BSW_OK;
}

static enum bsw_status read_all(const struct bsw_manifest *manifest, const char *index,
                                struct bsw_calibrate_source *out, struct bsw_error *err)
{
    uint64_t num_rows = manifest->first_row + manifest->num_rows;
    if (num_rows > SIZE_MAX)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: too large for memory", index);
    BSW_TRY(bsw_allocate(&out->numbers, (size_t)num_rows, row_bytes_of(manifest), "rows", err));
    for (uint32_t shard = 0; shard < manifest->num_shards; shard++)
        BSW_TRY(read_shard(manifest, index, shard, out->numbers, err));
    uint64_t digest;
    BSW_TRY(digest_of(manifest, index, out->numbers, &digest, err));
    if (digest != manifest->source_digest)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: its copy of the rows has digest %016llx, the rows had %016llx; verify "
                        "says where",
                        index, (unsigned long long)digest,
                        (unsigned long long)manifest->source_digest);
    out->memory = (struct bsw_memory_rows){.name = out->name,
                                           .numbers = out->numbers,
                                           .type = manifest->source_type,
                                           .dims = bsw_manifest_row_dims(manifest),
                                           .num_rows = num_rows};
    return bsw_memory_rows_lend(&out->memory, err);
}

int bsw_calibrate_source_is_gone(const struct bsw_manifest *manifest, const char *index)
{
    char name[BSW_PATH_BYTES];
    bsw_vectors *rows = NULL;
    if (!manifest->source_is_copied || bsw_memory_rows_is_name(manifest->source_path)) return 0;
    int is_there = bsw_manifest_source(manifest, index, name, NULL) == BSW_OK &&
                   bsw_vectors_open(name, BSW_ALL_ROWS, &rows, NULL) == BSW_OK &&
                   bsw_vectors_type(rows) == manifest->source_type &&
                   bsw_vectors_dims(rows) == bsw_manifest_row_dims(manifest) &&
                   bsw_vectors_source_rows(rows) == manifest->source_rows;
    bsw_vectors_close(&rows);
    return !is_there;
}

enum bsw_status bsw_calibrate_source_lend(const struct bsw_manifest *manifest, const char *index,
                                          int is_gone, struct bsw_calibrate_source *out,
                                          struct bsw_error *err)
{
    int is_lent = 0, is_in_memory = bsw_memory_rows_is_name(manifest->source_path);
    *out = (struct bsw_calibrate_source){0};
    BSW_TRY(bsw_manifest_source(manifest, index, out->name, err));
    if (!manifest->source_is_copied || (!is_gone && !is_in_memory)) return BSW_OK;
    if (is_in_memory) BSW_TRY(find_lent(manifest, index, &is_lent, err));
    if (is_lent) return BSW_OK;
    if (is_gone) snprintf(out->name, sizeof out->name, "%s", COPY_NAME);
    enum bsw_status status = read_all(manifest, index, out, err);
    if (status != BSW_OK) bsw_calibrate_source_take_back(out);
    return status;
}

void bsw_calibrate_source_take_back(struct bsw_calibrate_source *source)
{
    bsw_memory_rows_take_back(&source->memory);
    bsw_free(&source->numbers);
}
