// SPDX-License-Identifier: Apache-2.0
// bitsweep.h: changing an index.
#include <stddef.h>

#include "common/files/row_ids.h"
#include "coordinator/bitsweep_index.h"
#include "coordinator/encode/append_index.h"
#include "coordinator/encode/delete_rows.h"
#include "coordinator/job/moved_source.h"

void bitsweep_change_defaults_of(struct bitsweep_change_settings *settings, size_t size)
{
    bsw_library_default(settings, size, NULL, 0);
}

struct change_call {
    struct bsw_library_call call;
    bitsweep_index *index;
    struct bitsweep_change_settings asked;
    struct bsw_append_settings settings;
    struct bsw_library_rows rows;
    struct bsw_progress progress; // nothing is shown; the caller is told
    struct bsw_number_sets tags;  // rank 0, of rows that are appended
};

static enum bsw_status begin(struct change_call *c, bitsweep_index *index,
                             const struct bitsweep_change_settings *settings)
{
    struct bsw_error err = {.rank = -1};
    c->index = index;
    bitsweep_change_defaults(&c->asked);
    enum bsw_status status =
        bsw_library_take_settings(&c->asked, sizeof c->asked, 0, settings, &err);
    const struct bsw_library_call_needs needs = {.threads = index->num_threads,
                                                 .status = status,
                                                 .works = 1,
                                                 .ranks = index->settings.ranks,
                                                 .progress = c->asked.progress,
                                                 .context = c->asked.progress_context,
                                                 .err = &err};
    status = bsw_library_index_begin(index, &c->call, &needs);
    return status == BSW_OK ? bsw_library_index_adopt(index, &c->call.err) : status;
}

// All ranks ask for the same; then codes are not loaded twice.
static enum bsw_status meet(struct change_call *c, enum bsw_status status, const char *name,
                            const uint64_t *counts, size_t num_counts)
{
    const struct bsw_library_alike alike = {.counts = counts, .num_counts = num_counts};
    status = bsw_library_call_meet(&c->call, status, name, bsw_library_digest(&alike));
    if (status != BSW_OK) return status;
    bsw_search_close(&c->index->search);
    c->index->is_open = 0;
    return BSW_OK;
}

static int end(struct change_call *c, enum bsw_status status, struct bitsweep_error *error)
{
    if (status == BSW_OK)
        status = bsw_library_index_look(c->index, c->call.transport, &c->call.err);
    bsw_library_take_back(&c->rows);
    bsw_number_sets_deinit(&c->tags);
    return bsw_library_index_end(c->index, &c->call, status, error);
}

static enum bsw_status prepare(struct change_call *c, struct bsw_error *err)
{
    const struct bitsweep_change_settings *asked = &c->asked;
    const char *device;
    BSW_TRY(bsw_fork_choose_device(c->index->device, &device, err));
    c->settings = (struct bsw_append_settings){
        .index = c->index->folder,
        .shards = asked->shards,
        .ids = c->call.transport->rank == 0 ? asked->ids : NULL,
        .num_ids = asked->num_ids,
        .copies_vectors = asked->copy_vectors,
        .drop_bad_rows = asked->drop_bad_rows,
        .keep = BSW_KEEP_GENERATIONS,
        .device = {.text = device, .most_bytes = c->index->settings.device_memory},
        .level = bsw_cpu_level_detect(),
        .progress = &c->progress};
    return BSW_OK;
}

static enum bsw_status take_rows(struct change_call *c, const struct bitsweep_rows *rows,
                                 struct bsw_error *err)
{
    BSW_TRY(bsw_library_lend(rows, BSW_MEMORY_PREFIX "base", &c->rows, err));
    c->settings.base = c->rows.name;
    if (c->asked.tags && c->call.transport->rank == 0) {
        BSW_TRY(bsw_row_tags_of_file(c->asked.tags, &c->tags, err));
        c->settings.tags = &c->tags;
    }
    if (!rows->file) c->settings.copies_vectors = 1; // there is no file to refine from
    return BSW_OK;
}

int bitsweep_append(bitsweep_index *index, const struct bitsweep_rows *rows,
                    const struct bitsweep_change_settings *settings, struct bitsweep_error *error)
{
    struct change_call c = {0};
    struct bsw_append_stats stats;
    enum bsw_status status = begin(&c, index, settings);
    if (status == BSW_OK) status = prepare(&c, &c.call.err);
    if (status == BSW_OK) status = take_rows(&c, rows, &c.call.err);
    const uint64_t counts[] = {c.asked.shards, c.asked.copy_vectors != 0,
                               c.asked.drop_bad_rows != 0};
    status = meet(&c, status, "append", counts, 3);
    if (status == BSW_OK)
        status = bsw_append_run(&c.settings, c.call.transport, &stats, &c.call.err);
    return end(&c, status, error);
}

int bitsweep_compact(bitsweep_index *index, const struct bitsweep_change_settings *settings,
                     struct bitsweep_error *error)
{
    struct change_call c = {0};
    struct bsw_append_stats stats;
    enum bsw_status status = begin(&c, index, settings);
    if (status == BSW_OK) status = prepare(&c, &c.call.err);
    const uint64_t counts[] = {c.asked.shards};
    status = meet(&c, status, "compact", counts, 1);
    if (status == BSW_OK)
        status = bsw_compact_run(&c.settings, c.call.transport, &stats, &c.call.err);
    return end(&c, status, error);
}

int bitsweep_delete(bitsweep_index *index, const int64_t *numbers, uint64_t num_numbers,
                    int are_ids, uint64_t *num_deleted, struct bitsweep_error *error)
{
    struct change_call c = {0};
    struct bsw_delete_stats stats = {0};
    enum bsw_status status = begin(&c, index, NULL);
    const struct bsw_delete_settings settings = {.index = index->folder,
                                                 .numbers = numbers,
                                                 .num_numbers = num_numbers,
                                                 .numbers_are_ids = are_ids,
                                                 .keep = BSW_KEEP_GENERATIONS};
    if (status == BSW_OK && c.call.transport->rank == 0 && (!numbers || num_numbers == 0))
        status = bsw_fail(&c.call.err, BSW_ERROR_USAGE, "no rows to delete are given");
    const uint64_t counts[] = {are_ids != 0};
    status = meet(&c, status, "delete", counts, 1);
    if (status == BSW_OK) status = bsw_delete_run(&settings, c.call.transport, &stats, &c.call.err);
    if (num_deleted) *num_deleted = stats.num_deleted;
    return end(&c, status, error);
}

int bitsweep_set_source(bitsweep_index *index, const char *file, struct bitsweep_error *error)
{
    struct change_call c = {0};
    struct bsw_moved_source moved;
    enum bsw_status status = begin(&c, index, NULL);
    if (status == BSW_OK && !file)
        status = bsw_fail(&c.call.err, BSW_ERROR_USAGE, "no file is given");
    status = meet(&c, status, "set_source", NULL, 0);
    if (status == BSW_OK)
        status = bsw_moved_source_set(index->folder, file, BSW_KEEP_GENERATIONS, c.call.transport,
                                      &moved, &c.call.err);
    if (status == BSW_OK) bsw_free(&index->base);
    return end(&c, status, error);
}
