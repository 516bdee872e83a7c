// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/delete_rows.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/number_parse.h"
#include "common/files/deleted_rows.h"
#include "common/files/list_order.h"
#include "common/files/row_ids.h"
#include "common/files/shard_file.h"
#include "coordinator/job/index_generation.h"
#include "coordinator/job/option_table.h"

struct delete_job {
    const struct bsw_delete_settings *settings;
    struct bsw_generation generation;
    uint64_t *rows; // ascending, none twice
    uint64_t num_rows;
    uint64_t first, last; // where rows is NULL: all from first to last - 1
    struct bsw_delete_stats *stats;
};

// ---- which rows ----

static int compare_rows(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort_rows(struct delete_job *job)
{
    uint64_t count = 0;
    qsort(job->rows, (size_t)job->num_rows, sizeof *job->rows, compare_rows);
    for (uint64_t i = 0; i < job->num_rows; i++)
        if (i == 0 || job->rows[i] != job->rows[i - 1]) job->rows[count++] = job->rows[i];
    job->num_rows = count;
}

static enum bsw_status check_row(const struct delete_job *job, uint64_t row, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = &job->generation.manifest;
    uint64_t first = manifest->first_row, last = first + manifest->num_rows - 1;
    if (row >= first && row <= last) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "row %llu: %s has rows %llu to %llu",
                    (unsigned long long)row, job->settings->index, (unsigned long long)first,
                    (unsigned long long)last);
}

static enum bsw_status take_rows(struct delete_job *job, const int64_t *numbers, uint64_t count,
                                 struct bsw_error *err)
{
    BSW_TRY(bsw_allocate(&job->rows, count, sizeof *job->rows, "rows", err));
    job->num_rows = count;
    for (uint64_t i = 0; i < count; i++) {
        job->rows[i] = (uint64_t)numbers[i];
        BSW_TRY(check_row(job, job->rows[i], err));
    }
    sort_rows(job);
    return BSW_OK;
}

static enum bsw_status find_ids(struct delete_job *job, const struct bsw_placed_id *live,
                                uint64_t num_live, const int64_t *ids, uint64_t count,
                                struct bsw_error *err)
{
    BSW_TRY(bsw_allocate(&job->rows, count, sizeof *job->rows, "rows", err));
    for (uint64_t i = 0; i < count; i++) {
        const struct bsw_placed_id *found = bsw_placed_ids_find(live, num_live, ids[i]);
        if (!found)
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "id %lld: %s has no row of this id, or it was "
                            "deleted before",
                            (long long)ids[i], job->settings->index);
        job->rows[job->num_rows++] = found->place;
    }
    sort_rows(job);
    return BSW_OK;
}

static enum bsw_status take_ids(struct delete_job *job, const int64_t *ids, uint64_t count,
                                struct bsw_error *err)
{
    const struct bsw_manifest *manifest = &job->generation.manifest;
    struct bsw_placed_id *live;
    uint64_t num_live;
    if (!bsw_manifest_has_ids(manifest))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--ids: rows of %s have no ids, only numbers: use --rows",
                        job->settings->index);
    BSW_TRY(bsw_row_ids_live(manifest, job->settings->index, &live, &num_live, err));
    enum bsw_status status = find_ids(job, live, num_live, ids, count, err);
    bsw_free(&live);
    return status;
}

// A:B; a file of this name comes first.
static enum bsw_status take_range(struct delete_job *job, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = &job->generation.manifest;
    struct bsw_row_range range;
    BSW_TRY(bsw_row_range_parse("--rows", job->settings->rows, &range, err));
    job->first = range.first;
    job->last = range.last == UINT64_MAX ? manifest->first_row + manifest->num_rows : range.last;
    BSW_TRY(check_row(job, job->first, err));
    if (job->last <= job->first)
        return bsw_fail(err, BSW_ERROR_USAGE, "--rows %s is empty", job->settings->rows);
    return check_row(job, job->last - 1, err);
}

static enum bsw_status take_file(struct delete_job *job, const char *path, int are_ids,
                                 struct bsw_error *err)
{
    int64_t *numbers;
    uint64_t count;
    BSW_TRY(bsw_integers_read(path, &numbers, &count, err));
    enum bsw_status status =
        are_ids ? take_ids(job, numbers, count, err) : take_rows(job, numbers, count, err);
    bsw_free(&numbers);
    return status;
}

static enum bsw_status find_rows(struct delete_job *job, struct bsw_error *err)
{
    const struct bsw_delete_settings *s = job->settings;
    if (!s->numbers && !s->rows == !s->ids)
        return bsw_fail(err, BSW_ERROR_USAGE, "say which rows: either --rows or --ids");
    if (s->numbers)
        return s->numbers_are_ids ? take_ids(job, s->numbers, s->num_numbers, err)
                                  : take_rows(job, s->numbers, s->num_numbers, err);
    if (s->ids) return take_file(job, s->ids, 1, err);
    if (!bsw_file_exists(s->rows) && strchr(s->rows, ':')) return take_range(job, err);
    return take_file(job, s->rows, 0, err);
}

// ---- a shard ----

struct shard_rows {
    struct bsw_list_order order;
    uint32_t *deleted; // [bundles]
    uint32_t *there;   // [bundles]: masks of the codes; NULL: every place of a row is
};

static enum bsw_status read_there(const struct bsw_manifest *manifest, const char *index,
                                  uint32_t shard, struct shard_rows *rows, struct bsw_error *err)
{
    struct bsw_shard_file file;
    struct bsw_buffer buffer = {0};
    BSW_TRY(bsw_shard_file_open(manifest, index, shard, &file, err));
    enum bsw_status status =
        bsw_allocate(&rows->there, bsw_num_bundles((size_t)file.shape.num_places),
                     sizeof *rows->there, "masks", err);
    for (uint32_t block = 0; block < file.shape.num_blocks && status == BSW_OK; block++) {
        size_t num = bsw_shard_block_bundles(&file.shape, block);
        struct bsw_code_arrays arrays;
        status = bsw_buffer_reserve(&buffer, bsw_shard_block_bytes(&file.shape, block), err);
        if (status == BSW_OK) status = bsw_shard_file_read_block(&file, block, buffer.data, err);
        if (status != BSW_OK) break;
        bsw_code_arrays_in_block(&file.shape, buffer.data, num, &arrays);
        memcpy(rows->there + (size_t)block * file.shape.block_bundles, arrays.masks,
               num * sizeof *arrays.masks);
    }
    bsw_buffer_deinit(&buffer);
    bsw_shard_file_close(&file);
    return status;
}

static void close_shard(struct shard_rows *rows)
{
    bsw_list_order_deinit(&rows->order);
    bsw_free(&rows->deleted);
    bsw_free(&rows->there);
}

// Where nothing was deleted so far the bits are made here; where rows were dropped, masks tell.
static enum bsw_status open_shard(const struct bsw_manifest *manifest, const char *index,
                                  uint32_t shard, struct shard_rows *rows, struct bsw_error *err)
{
    const struct bsw_shard_entry *entry = &manifest->shards[shard];
    size_t bundles = bsw_num_bundles((size_t)bsw_shard_places(entry));
    BSW_TRY(bsw_list_order_read(manifest, index, shard, &rows->order, err));
    BSW_TRY(bsw_deleted_rows_read(manifest, index, shard, &rows->deleted, err));
    if (!rows->deleted)
        BSW_TRY(bsw_allocate_zero(&rows->deleted, bundles, sizeof *rows->deleted, "masks", err));
    if (entry->dropped_rows == 0 || rows->order.places) return BSW_OK;
    return read_there(manifest, index, shard, rows, err);
}

// Takes the row away; 1 if it was there.
static int delete_row(struct shard_rows *rows, uint64_t row)
{
    uint64_t place = rows->order.places ? rows->order.places[row] : row;
    if (place == BSW_NO_ROW) return 0;
    uint64_t bundle = place / BSW_BUNDLE_ROWS;
    uint32_t bit = 1u << place % BSW_BUNDLE_ROWS;
    if ((rows->deleted[bundle] & bit) || (rows->there && !(rows->there[bundle] & bit))) return 0;
    rows->deleted[bundle] |= bit;
    return 1;
}

// Known answers are what is left of them, as many for each query.
static void trim_known(struct bsw_manifest *manifest, uint32_t shard, const uint32_t *deleted)
{
    struct bsw_shard_entry *entry = &manifest->shards[shard];
    uint64_t *known = manifest->known + entry->first_known;
    uint32_t rows = entry->num_known_rows, fewest = rows;
    for (uint32_t q = 0; q < manifest->num_known; q++) {
        uint32_t left = 0;
        for (uint32_t i = 0; i < rows; i++) {
            uint32_t place = bsw_candidate_row(known[q * rows + i]);
            if (deleted[place / BSW_BUNDLE_ROWS] >> place % BSW_BUNDLE_ROWS & 1) continue;
            known[q * rows + left++] = known[q * rows + i];
        }
        if (left < fewest) fewest = left;
    }
    for (uint32_t q = 0; q < manifest->num_known; q++)
        memmove(known + q * fewest, known + q * rows, fewest * sizeof *known);
    entry->num_known_rows = fewest;
}

static uint64_t row_at(const struct delete_job *job, uint64_t place)
{
    return job->rows ? job->rows[place] : job->first + place;
}

// Rows from `from` on that are in the shard; *next is behind them.
static enum bsw_status delete_of_shard(struct delete_job *job, uint32_t shard, uint64_t from,
                                       uint64_t count, struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->generation.manifest;
    struct shard_rows rows = {0};
    uint64_t deleted = 0;
    enum bsw_status status = open_shard(manifest, job->settings->index, shard, &rows, err);
    for (uint64_t i = from; i < from + count && status == BSW_OK; i++)
        deleted += (uint64_t)delete_row(&rows, row_at(job, i) - manifest->shards[shard].first_row);
    if (status == BSW_OK && deleted > 0) {
        trim_known(manifest, shard, rows.deleted);
        status = bsw_deleted_rows_write(manifest, job->settings->index, shard, rows.deleted, err);
        job->stats->num_deleted += deleted;
    }
    close_shard(&rows);
    return status;
}

static enum bsw_status delete_all(struct delete_job *job, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = &job->generation.manifest;
    uint64_t count = job->rows ? job->num_rows : job->last - job->first, at = 0;
    job->stats->num_asked = count;
    for (uint32_t shard = 0; shard < manifest->num_shards && at < count; shard++) {
        uint64_t end = manifest->shards[shard].first_row + manifest->shards[shard].num_rows;
        uint64_t from = at;
        while (at < count && row_at(job, at) < end) at++;
        if (at > from) BSW_TRY(delete_of_shard(job, shard, from, at - from, err));
    }
    return BSW_OK;
}

static enum bsw_status delete_rows(struct delete_job *job, struct bsw_error *err)
{
    struct bsw_manifest *manifest = &job->generation.manifest;
    BSW_TRY(find_rows(job, err));
    BSW_TRY(bsw_generation_advance(manifest, 1, err));
    BSW_TRY(delete_all(job, err));
    job->stats->num_left = bsw_manifest_live_rows(manifest);
    job->stats->num_rows = manifest->num_rows;
    for (uint32_t i = 0; i < manifest->num_shards; i++)
        job->stats->num_gone += manifest->shards[i].deleted_rows;
    if (job->stats->num_left == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: no row would be left: remove the folder, or keep a row",
                        job->settings->index);
    job->stats->generation = job->generation.number;
    if (job->stats->num_deleted == 0) return BSW_OK;
    job->stats->generation = manifest->generation;
    return bsw_generation_commit(&job->generation, job->settings->keep, err);
}

enum bsw_status bsw_delete_run(const struct bsw_delete_settings *settings,
                               struct bsw_transport *transport, struct bsw_delete_stats *stats,
                               struct bsw_error *err)
{
    struct delete_job job = {.settings = settings, .stats = stats};
    *stats = (struct bsw_delete_stats){0};
    enum bsw_status status = bsw_generation_begin(&job.generation, settings->index, transport, err);
    if (status == BSW_OK) {
        if (transport->rank == 0) status = delete_rows(&job, err);
        status = bsw_transport_agree(transport, status, err);
    }
    bsw_generation_end(&job.generation);
    bsw_free(&job.rows);
    return status;
}
