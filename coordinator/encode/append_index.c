// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/append_index.h"

#include <stdio.h>
#include <string.h>

#include "common/base/process.h"
#include "common/files/row_ids.h"
#include "coordinator/job/index_generation.h"
#include "coordinator/job/live_rows.h"
#include "shard/codecs/codec.h"

struct append_job {
    const struct bsw_append_settings *settings;
    struct bsw_transport *transport;
    struct bsw_generation generation;
    struct bsw_append_stats *stats;
    char part[BSW_PART_NAME_BYTES], path[BSW_PATH_BYTES];
    char model[BSW_PATH_BYTES]; // of a codec that has one
};

// An encode of these rows, numbered from first_id, with the index's frame.
static enum bsw_status encode_part(struct append_job *job, const char *base, uint64_t first_id,
                                   struct bsw_error *err)
{
    const struct bsw_append_settings *s = job->settings;
    const struct bsw_manifest *manifest = &job->generation.manifest;
    const struct bsw_encode_settings encode = {
        .base = base,
        .rows = s->rows,
        .index = job->path,
        .codec = manifest->codec,
        .code.model = manifest->codec->table->has_model ? job->model : NULL,
        .metric = bsw_metric_name(manifest->metric),
        .shards = s->shards,
        .lists = manifest->lists.count,
        .residuals = manifest->lists.is_residual ? BSW_RESIDUALS_YES : BSW_RESIDUALS_NO,
        .copy_vectors = s->copies_vectors || bsw_manifest_home(manifest, 0).source_is_copied,
        .drop_bad_rows = s->drop_bad_rows,
        .force = !s->resume,
        .resume = s->resume,
        .frame = manifest,
        .first_id = first_id,
        .ids = s->ids,
        .num_ids = s->num_ids,
        .tags = s->tags,
        .device = s->device,
        .level = s->level,
        .checks_codes = s->checks_codes,
        .progress = s->progress};
    return bsw_encode_run(&encode, job->transport, &job->stats->encode, err);
}

// All ranks; all return alike.
static enum bsw_status begin(struct append_job *job, struct bsw_error *err)
{
    const struct bsw_append_settings *s = job->settings;
    struct bsw_generation *g = &job->generation;
    struct bsw_transport *transport = job->transport;
    BSW_TRY(bsw_generation_begin(g, s->index, transport, err));
    job->stats->before = g->manifest.check;
    enum bsw_status status = bsw_generation_part_path(g, job->part, job->path, err);
    if (status == BSW_OK) status = bsw_path_join(job->model, s->index, BSW_INDEX_MODEL_NAME, err);
    if (status == BSW_OK && transport->rank == 0)
        status = bsw_generation_prepare_part(job->path, s->resume, err);
    return bsw_transport_agree(transport, status, err);
}

// Rank 0: the next generation, with what the part's manifest says. All ranks; all return alike.
static enum bsw_status commit(struct append_job *job, int keeps_shards, struct bsw_error *err)
{
    struct bsw_generation *g = &job->generation;
    struct bsw_manifest made = {0};
    enum bsw_status status = BSW_OK;
    if (job->transport->rank == 0) {
        status = bsw_manifest_read(job->path, &made, err);
        if (status == BSW_OK) status = bsw_generation_advance(&g->manifest, keeps_shards, err);
        if (status == BSW_OK) status = bsw_generation_add_part(&g->manifest, job->part, &made, err);
        bsw_manifest_deinit(&made);
        if (status == BSW_OK) status = bsw_generation_commit(g, job->settings->keep, err);
    }
    job->stats->generation = g->manifest.generation;
    job->stats->num_rows = g->manifest.num_rows;
    job->stats->has_ids = bsw_manifest_has_ids(&g->manifest);
    job->stats->has_tags = bsw_manifest_has_tags(&g->manifest);
    return bsw_transport_agree(job->transport, status, err);
}

// ---- append ----

static enum bsw_status check_other(const struct append_job *job, const struct bsw_placed_id *live,
                                   uint64_t num_live, struct bsw_error *err)
{
    const struct bsw_append_settings *s = job->settings;
    for (uint64_t i = 0; i < s->num_ids; i++) {
        const struct bsw_placed_id *found = bsw_placed_ids_find(live, num_live, s->ids[i]);
        if (found)
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "--ids: row %llu of %s has id %lld already: delete it first",
                            (unsigned long long)found->place, s->index, (long long)s->ids[i]);
    }
    return BSW_OK;
}

// Rank 0: all rows have ids of their own, or none has.
static enum bsw_status check_ids(const struct append_job *job, struct bsw_error *err)
{
    const struct bsw_append_settings *s = job->settings;
    const struct bsw_manifest *manifest = &job->generation.manifest;
    struct bsw_placed_id *live;
    uint64_t num_live;
    int has_ids = bsw_manifest_has_ids(manifest);
    if (has_ids != (s->ids != NULL))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        has_ids ? "%s: its rows have ids: give --ids for new ones"
                                : "--ids: rows of %s have none: make it with encode --ids",
                        s->index);
    if (!has_ids) return BSW_OK;
    BSW_TRY(bsw_row_ids_live(manifest, s->index, &live, &num_live, err));
    enum bsw_status status = check_other(job, live, num_live, err);
    bsw_free(&live);
    return status;
}

// Rank 0: all rows have tags, of as many, or none has.
static enum bsw_status check_tags(const struct append_job *job, struct bsw_error *err)
{
    const struct bsw_append_settings *s = job->settings;
    const struct bsw_manifest *manifest = &job->generation.manifest;
    struct bsw_number_sets lists;
    int has_tags = bsw_manifest_has_tags(manifest);
    if (has_tags != (s->tags != NULL))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        has_tags ? "%s: its rows have tags: give --tags for new ones"
                                 : "--tags: rows of %s have none: make it with encode --tags",
                        s->index);
    if (!has_tags) return BSW_OK;
    BSW_TRY(bsw_row_tags_read(manifest, s->index, &lists, err));
    uint64_t num_tags = lists.num_sets;
    bsw_number_sets_deinit(&lists);
    if (num_tags == s->tags->num_sets) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--tags: %llu tags, rows of %s have %llu",
                    (unsigned long long)s->tags->num_sets, s->index, (unsigned long long)num_tags);
}

static enum bsw_status append(struct append_job *job, struct bsw_error *err)
{
    BSW_TRY(begin(job, err));
    const struct bsw_manifest *manifest = &job->generation.manifest;
    enum bsw_status status = job->transport->rank == 0 ? check_ids(job, err) : BSW_OK;
    if (status == BSW_OK && job->transport->rank == 0) status = check_tags(job, err);
    BSW_TRY(bsw_transport_agree(job->transport, status, err));
    job->stats->first_row = manifest->first_row + manifest->num_rows;
    BSW_TRY(encode_part(job, job->settings->base, job->stats->first_row, err));
    return commit(job, 1, err);
}

enum bsw_status bsw_append_run(const struct bsw_append_settings *settings,
                               struct bsw_transport *transport, struct bsw_append_stats *stats,
                               struct bsw_error *err)
{
    struct append_job job = {.settings = settings, .transport = transport, .stats = stats};
    *stats = (struct bsw_append_stats){0};
    if (!settings->base) return bsw_fail(err, BSW_ERROR_USAGE, "--base is needed");
    enum bsw_status status = append(&job, err);
    bsw_generation_end(&job.generation);
    return status;
}

// ---- compact ----

// Rank 0: ids of the rows that are left; NULL where rows have none.
static enum bsw_status gather_ids(const struct append_job *job, const struct bsw_live_rows *live,
                                  int64_t **out, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = &job->generation.manifest;
    int64_t *ids;
    *out = NULL;
    if (job->transport->rank != 0 || !bsw_manifest_has_ids(manifest)) return BSW_OK;
    BSW_TRY(bsw_row_ids_read(manifest, job->settings->index, &ids, err));
    enum bsw_status status = bsw_allocate(out, live->num_rows, sizeof **out, "ids", err);
    for (uint64_t i = 0; i < live->num_rows && status == BSW_OK; i++)
        (*out)[i] = ids[bsw_live_rows_at(live, i) - manifest->first_row];
    bsw_free(&ids);
    return status;
}

// The lists with the rows that are left, by their new numbers.
static void renumber(const struct bsw_live_rows *live, const struct bsw_manifest *manifest,
                     uint32_t *number, struct bsw_number_sets *lists)
{
    uint64_t at = 0, from = 0;
    memset(number, 0xff, (size_t)manifest->num_rows * sizeof *number);
    for (uint64_t i = 0; i < live->num_rows; i++)
        number[bsw_live_rows_at(live, i) - manifest->first_row] = (uint32_t)i;
    for (uint64_t tag = 0; tag < lists->num_sets; tag++) {
        uint64_t to = lists->first[tag + 1];
        for (; from < to; from++) {
            uint32_t row = number[lists->members[from]];
            if (row != UINT32_MAX) lists->members[at++] = row;
        }
        lists->first[tag + 1] = at;
    }
    lists->num_members = live->num_rows;
}

// Rank 0: tags of the rows that are left; none where rows have none.
static enum bsw_status gather_tags(const struct append_job *job, const struct bsw_live_rows *live,
                                   struct bsw_number_sets *out, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = &job->generation.manifest;
    uint32_t *number;
    *out = (struct bsw_number_sets){0};
    if (job->transport->rank != 0 || !bsw_manifest_has_tags(manifest)) return BSW_OK;
    BSW_TRY(bsw_row_tags_read(manifest, job->settings->index, out, err));
    BSW_TRY(bsw_allocate(&number, (size_t)manifest->num_rows, sizeof *number, "tags", err));
    renumber(live, manifest, number, out);
    bsw_free(&number);
    return BSW_OK;
}

static enum bsw_status encode_live(struct append_job *job, struct bsw_live_rows *live,
                                   const int64_t *ids, const struct bsw_number_sets *tags,
                                   struct bsw_error *err)
{
    struct bsw_append_settings settings = *job->settings;
    const struct bsw_manifest *manifest = &job->generation.manifest;
    BSW_TRY(bsw_memory_rows_lend(&live->source, err));
    settings.rows = BSW_ALL_ROWS;
    settings.copies_vectors = 1;
    settings.ids = ids;
    settings.num_ids = ids ? live->num_rows : 0;
    settings.tags = tags->first ? tags : NULL;
    if (settings.shards == 0) settings.shards = bsw_manifest_home(manifest, 0).num_shards;
    if (settings.shards > live->num_rows) settings.shards = live->num_rows;
    job->settings = &settings;
    enum bsw_status status = encode_part(job, BSW_LIVE_ROWS_NAME, 0, err);
    bsw_memory_rows_take_back(&live->source);
    return status;
}

static enum bsw_status compact(struct append_job *job, struct bsw_live_rows *live,
                               struct bsw_error *err)
{
    const struct bsw_append_settings *settings = job->settings;
    const struct bsw_manifest *manifest = &job->generation.manifest;
    BSW_TRY(begin(job, err));
    enum bsw_status status = bsw_live_rows_open(manifest, settings->index, live, err);
    BSW_TRY(bsw_transport_agree(job->transport, status, err));
    job->stats->num_removed = manifest->num_rows - live->num_rows;
    int64_t *ids;
    struct bsw_number_sets tags = {0};
    status = gather_ids(job, live, &ids, err);
    if (status == BSW_OK) status = gather_tags(job, live, &tags, err);
    status = bsw_transport_agree(job->transport, status, err);
    if (status == BSW_OK) status = encode_live(job, live, ids, &tags, err);
    bsw_free(&ids);
    bsw_number_sets_deinit(&tags);
    job->settings = settings;
    BSW_TRY(bsw_transport_agree(job->transport, status, err));
    return commit(job, 0, err);
}

enum bsw_status bsw_compact_run(const struct bsw_append_settings *settings,
                                struct bsw_transport *transport, struct bsw_append_stats *stats,
                                struct bsw_error *err)
{
    struct append_job job = {.settings = settings, .transport = transport, .stats = stats};
    struct bsw_live_rows live = {0};
    *stats = (struct bsw_append_stats){0};
    enum bsw_status status = compact(&job, &live, err);
    bsw_live_rows_close(&live);
    bsw_generation_end(&job.generation);
    return status;
}

// ---- both ----

int bsw_append_has_drifted(const struct bsw_append_stats *stats)
{
    const struct bsw_code_check *old = &stats->before, *now = &stats->encode.check;
    return old->num_queries > 0 && now->num_queries > 0 &&
           now->recall < old->recall - BSW_APPEND_DRIFT;
}

void bsw_append_cost_facts(struct bsw_facts *facts, const struct bsw_transport *transport,
                           const struct bsw_append_stats *stats)
{
    bsw_fact_integer(facts, "ranks", (uint64_t)transport->num_ranks, NULL);
    bsw_fact_text(facts, "device", stats->encode.device, NULL);
    bsw_fact_real(facts, "encode_seconds", stats->encode.encode_seconds, "encoding %.2f s\n");
    bsw_fact_integer(facts, "peak_memory_bytes", bsw_process_peak_bytes(), NULL);
}
