// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_job.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/clock.h"
#include "common/job/stop_signal.h"
#include "common/rows/vectors.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/same_input.h"
#include "coordinator/job/sidecar.h"
#include "coordinator/sweep/sweep_folder.h"
#include "coordinator/sweep/sweep_grid.h"
#include "coordinator/sweep/sweep_point.h"
#include "coordinator/sweep/sweep_report.h"
#include "kernels/rbe/rbe_model_file.h"

// On rank 0.
struct sweep_job {
    const struct bsw_sweep_settings *settings;
    struct bsw_sweep_outcome *outcome;
    struct bsw_sweep_run run;
    struct bsw_sweep_grid *grids; // [num_grids]
    size_t num_grids;
    struct bsw_sweep_limits limits;
    struct bsw_journal_fields fields;
    struct bsw_sweep_journal journal;
    struct bsw_sweep_pace pace;
    struct bsw_sweep_targets targets;
    uint64_t base_digest, query_digest;
    uint64_t num_rows, max_k; // max_k: of the points
    uint64_t queries_digest;  // as FILE.json has it
    int lock;                 // of the folder; -1: not open
};

void bsw_sweep_outcome_deinit(struct bsw_sweep_outcome *outcome)
{
    bsw_sweep_points_deinit(&outcome->points);
    json_decref(outcome->report);
    *outcome = (struct bsw_sweep_outcome){0};
}

// ---- the grid, the inputs ----

// The grid of the options, or those of the plan.
static enum bsw_status read_grids(struct sweep_job *job, struct bsw_error *err)
{
    struct bsw_sweep_grid grid;
    for (int axis = 0; axis < BSW_SWEEP_NUM_AXES; axis++)
        BSW_TRY(bsw_sweep_grid_set(&grid, (enum bsw_sweep_axis_kind)axis, "--",
                                   job->settings->axes[axis], err));
    if (job->settings->plan)
        return bsw_sweep_plan_read(job->settings->plan, &grid, &job->grids, &job->num_grids, err);
    BSW_TRY(bsw_allocate(&job->grids, 1, sizeof grid, "grid", err));
    job->grids[0] = grid;
    job->num_grids = 1;
    return BSW_OK;
}

// The codes that an rbe model makes: not those of its name but of its shape.
static enum bsw_status open_model(struct sweep_job *job, struct bsw_error *err)
{
    struct bsw_rbe_model model;
    const char *path = job->settings->model;
    if (!path) {
        bsw_journal_field_text(&job->fields, "model", "learned");
        return BSW_OK;
    }
    BSW_TRY(bsw_rbe_model_read(path, &model, err));
    const struct bsw_rbe_shape *shape = &model.sides[BSW_RBE_DOCUMENT].shape;
    job->limits.model_bits = (double)shape->code_dims * (shape->steps + 1) / shape->dims;
    job->limits.model_query_bits = model.sides[BSW_RBE_QUERY].shape.steps + 1;
    bsw_journal_field_digest(&job->fields, "model", model.digest);
    bsw_rbe_model_deinit(&model);
    return BSW_OK;
}

static enum bsw_status describe_vectors(struct sweep_job *job, bsw_vectors *base,
                                        bsw_vectors *queries, struct bsw_error *err)
{
    const struct bsw_sweep_settings *s = job->settings;
    struct bsw_sweep_run *run = &job->run;
    BSW_TRY(bsw_same_input_digest(base, &job->base_digest, err));
    BSW_TRY(bsw_same_input_digest(queries, &job->query_digest, err));
    BSW_TRY(bsw_metric_choose(s->metric, base, queries, &run->metric, err));
    BSW_TRY(bsw_query_digest(queries, &job->queries_digest, err));
    job->num_rows = job->limits.num_rows = bsw_vectors_num_rows(base);
    if (s->searches.exclude_self) job->limits.num_rows--; // that an answer may have
    job->limits.metric = run->metric;
    job->limits.is_integer =
        bsw_vectors_type(base) == BSW_VECTOR_UINT8 || bsw_vectors_type(base) == BSW_VECTOR_INT8;
    run->num_queries = bsw_vectors_num_rows(queries);
    run->dims = job->limits.dims = bsw_vectors_dims(base);
    if (bsw_vectors_dims(queries) == run->dims) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %u", s->queries,
                    bsw_vectors_dims(queries), s->base, run->dims);
}

static enum bsw_status open_vectors(struct sweep_job *job, struct bsw_error *err)
{
    bsw_vectors *base = NULL, *queries = NULL;
    enum bsw_status status = bsw_vectors_open(job->settings->base, job->settings->rows, &base, err);
    if (status == BSW_OK)
        status = bsw_queries_open(job->settings->queries, job->settings->query_rows, &queries, err);
    if (status == BSW_OK) status = describe_vectors(job, base, queries, err);
    bsw_vectors_close(&queries);
    bsw_vectors_close(&base);
    return status;
}

// A ground truth that says it is of something else is refused here, and not after the first search.
static enum bsw_status check_truth(const struct sweep_job *job, struct bsw_error *err)
{
    const struct bsw_sidecar searches = {.metric = bsw_metric_name(job->run.metric),
                                         .rows = job->num_rows,
                                         .first_row = job->settings->rows.first,
                                         .is_self_excluded = job->settings->searches.exclude_self,
                                         .has_first_query = 1,
                                         .first_query = job->settings->query_rows.first,
                                         .queries_digest = job->queries_digest};
    struct bsw_sidecar truth;
    const char *path = job->settings->groundtruth;
    BSW_TRY(bsw_sidecar_read(path, &truth, err));
    return bsw_sidecar_compare(path, &truth, "the sweep", &searches, "", err);
}

static enum bsw_status open_truth(struct sweep_job *job, struct bsw_error *err)
{
    const char *path = job->settings->groundtruth;
    struct bsw_results truth = {0};
    if (!path) {
        bsw_journal_field_text(&job->fields, "groundtruth", "computed");
        job->limits.truth_k = job->limits.num_rows;
        return bsw_path_join(job->run.truth, job->run.folder, "groundtruth", err);
    }
    if (strlen(path) >= BSW_PATH_BYTES)
        return bsw_fail(err, BSW_ERROR_USAGE, "--groundtruth: the name is too long");
    strcpy(job->run.truth, path);
    BSW_TRY(bsw_results_read(path, &truth, err));
    job->limits.truth_k = truth.k;
    bsw_journal_field_digest(
        &job->fields, "groundtruth",
        XXH3_64bits(truth.ids, (size_t)(truth.num_queries * truth.k) * sizeof *truth.ids));
    enum bsw_status status = BSW_OK;
    if (truth.num_queries != job->run.num_queries)
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu queries, %s has %llu", path,
                          (unsigned long long)truth.num_queries, job->settings->queries,
                          (unsigned long long)job->run.num_queries);
    bsw_results_deinit(&truth);
    return status == BSW_OK ? check_truth(job, err) : status;
}

static void add_range(struct bsw_journal_fields *fields, const char *name,
                      struct bsw_row_range range)
{
    char text[64];
    if (range.first == 0 && range.last == UINT64_MAX) return; // as older sweeps have it
    snprintf(text, sizeof text, "%llu:%llu", (unsigned long long)range.first,
             (unsigned long long)range.last);
    bsw_journal_field_text(fields, name, text);
}

// What the rows are a function of, but for the grid. The launcher is what older versions had.
static void add_fields(struct sweep_job *job)
{
    const struct bsw_sweep_settings *s = job->settings;
    struct bsw_journal_fields *fields = &job->fields;
    int num_ranks = job->run.team.transport->num_ranks;
    bsw_journal_field_text(fields, "version", BITSWEEP_VERSION);
    bsw_journal_field_text(fields, "metric", bsw_metric_name(job->run.metric));
    bsw_journal_field_text(fields, "recall-counts", bsw_sweep_recall_counts(&job->run));
    bsw_journal_field_text(fields, "device", s->device);
    if (num_ranks == 1)
        bsw_journal_field_text(fields, "launcher", "none");
    else
        bsw_journal_field_count(fields, "ranks", (uint64_t)num_ranks);
    bsw_journal_field_text(fields, "level", s->level_text);
    bsw_journal_field_count(fields, "threads", (uint64_t)s->num_threads);
    static const char *const residuals[] = {
        [BSW_RESIDUALS_AUTO] = "auto", [BSW_RESIDUALS_YES] = "yes", [BSW_RESIDUALS_NO] = "no"};
    bsw_journal_field_text(fields, "residual", residuals[s->residuals]);
    add_range(fields, "rows", s->rows);
    add_range(fields, "query-rows", s->query_rows);
    if (s->searches.exclude_self) bsw_journal_field_text(fields, "exclude-self", "yes");
    bsw_journal_field_count(fields, "shards", s->shards);
    bsw_journal_field_count(fields, "repeat", s->repeat);
    bsw_journal_field_number(fields, "measure", s->least_seconds);
    bsw_journal_field_count(fields, "batch", s->searches.batch);
    bsw_journal_field_count(fields, "items", s->searches.queue.items);
    bsw_journal_field_count(fields, "queue-length", s->searches.queue.length);
}

static enum bsw_status check_files(const struct sweep_job *job, struct bsw_error *err)
{
    const struct bsw_sweep_settings *s = job->settings;
    const struct bsw_command_files files = {
        .inputs = {s->base, s->queries, s->groundtruth, s->plan, s->model},
        .outputs = {s->groundtruth ? NULL : job->run.truth},
        .is_result = 1,
        .folder = job->run.folder,
        .is_made = bsw_sweep_folder_makes};
    return bsw_command_files_check(&files, err);
}

static enum bsw_status prepare(struct sweep_job *job, struct bsw_error *err)
{
    const struct bsw_sweep_settings *s = job->settings;
    struct bsw_sweep_points *points = &job->outcome->points;
    char finder[BSW_WORD_BYTES];
    BSW_TRY(bsw_sweep_targets_parse(s->targets, &job->targets, err));
    BSW_TRY(read_grids(job, err));
    BSW_TRY(open_vectors(job, err));
    add_fields(job);
    BSW_TRY(open_model(job, err));
    bsw_journal_field_digest(&job->fields, "base", job->base_digest);
    bsw_journal_field_digest(&job->fields, "queries", job->query_digest);
    BSW_TRY(bsw_sweep_folder_open(s->folder, job->run.folder, &job->lock, err));
    BSW_TRY(open_truth(job, err));
    BSW_TRY(check_files(job, err));
    BSW_TRY(bsw_sweep_grids_expand(job->grids, job->num_grids, &job->limits, points, err));
    for (size_t i = 0; i < points->num_points; i++) {
        if (points->points[i].k > job->max_k) job->max_k = points->points[i].k;
        if (points->points[i].entries == BSW_ENTRIES_RADIUS) job->run.has_radii = 1;
        if (points->points[i].recall > 0) job->run.has_recalls = 1;
    }
    if (s->groundtruth && job->max_k > 0)
        BSW_TRY(bsw_sweep_judge_ids(job->run.truth, s->base, s->rows.first, job->num_rows,
                                    job->max_k, err));
    if (job->run.has_radii)
        bsw_journal_field_text(&job->fields, "entries", "radius");
    else if (s->searches.entries.has_hit_time)
        return bsw_fail(err, BSW_ERROR_USAGE, "--hit-time is for --entries radius");
    if (job->run.has_recalls) bsw_journal_field_text(&job->fields, "recall", "asked");
    if (s->searches.entries.has_hit_time)
        bsw_journal_field_text(&job->fields, "hit-time",
                               bsw_selection_finder_name(&s->searches.entries, finder));
    return bsw_sweep_journal_open(&job->journal, job->run.folder, s->folder, s->force, s->resume,
                                  &job->fields, err);
}

// ---- running ----

static enum bsw_status ensure_truth(struct sweep_job *job, struct bsw_error *err)
{
    const json_t *known = json_object_get(job->journal.truths, "groundtruth");
    json_t *facts;
    if (job->settings->groundtruth) return BSW_OK;
    if (known && (uint64_t)json_integer_value(json_object_get(known, "k")) >= job->max_k &&
        bsw_file_exists(job->run.truth))
        return BSW_OK;
    BSW_TRY(bsw_sweep_make_truth(&job->run, job->max_k, &facts, err));
    return bsw_sweep_journal_put(&job->journal, "groundtruth", "groundtruth", facts, err);
}

static int has_index(const struct sweep_job *job, const struct bsw_sweep_point *point,
                     const char *name)
{
    return json_object_get(job->journal.indexes, name) && bsw_sweep_has_index(&job->run, point);
}

static int has_row(const struct sweep_job *job, const struct bsw_sweep_point *point)
{
    char name[BSW_SWEEP_NAME_BYTES];
    bsw_sweep_point_name(point, name);
    return json_object_get(job->journal.rows, name) != NULL;
}

// From a point on. Points of an index stand side by side, but for those of some plans.
static void show_pace(struct sweep_job *job, const struct bsw_sweep_point *point)
{
    const struct bsw_sweep_points *points = &job->outcome->points;
    char name[BSW_SWEEP_NAME_BYTES], before[BSW_SWEEP_NAME_BYTES] = "", own[BSW_SWEEP_NAME_BYTES];
    struct bsw_sweep_place place = {.point = (size_t)(point - points->points) + 1, .index = own};
    if (!bsw_sweep_pace_is_due(&job->pace)) return;
    bsw_sweep_index_name(point, own);
    place.is_made = !has_index(job, point, own);
    for (size_t i = place.point - 1; i < points->num_points; i++) {
        if (has_row(job, &points->points[i])) continue;
        place.points_left++;
        bsw_sweep_index_name(&points->points[i], name);
        if (strcmp(name, before) != 0 && !has_index(job, &points->points[i], name))
            place.indexes_left++;
        strcpy(before, name);
    }
    bsw_sweep_pace_show(&job->pace, &place);
}

static enum bsw_status ensure_index(struct sweep_job *job, const struct bsw_sweep_point *point,
                                    const json_t **out, struct bsw_error *err)
{
    char name[BSW_SWEEP_NAME_BYTES];
    json_t *facts;
    bsw_sweep_index_name(point, name);
    if (!has_index(job, point, name)) {
        double since = bsw_clock_seconds();
        BSW_TRY(bsw_sweep_make_index(&job->run, point, &facts, err));
        BSW_TRY(bsw_sweep_journal_put(&job->journal, "index", name, facts, err));
        job->pace.num_indexes++;
        job->pace.index_seconds += bsw_clock_seconds() - since;
        show_pace(job, point);
    }
    *out = json_object_get(job->journal.indexes, name);
    return BSW_OK;
}

static void note_point(const struct sweep_job *job, const char *name, const json_t *row)
{
    bsw_progress_finish(job->pace.progress);
    if (job->settings->note_point) job->settings->note_point(job->settings->context, name, row);
}

// reason: "", or why the index has no such search.
static enum bsw_status measure(struct sweep_job *job, const struct bsw_sweep_point *point,
                               const char *name, char reason[128], struct bsw_error *err)
{
    const json_t *index;
    json_t *row;
    show_pace(job, point);
    BSW_TRY(ensure_index(job, point, &index, err));
    BSW_TRY(bsw_sweep_find_entry(&job->run, point, reason, 128, err));
    if (*reason) return BSW_OK;
    double since = bsw_clock_seconds();
    BSW_TRY(bsw_sweep_measure(&job->run, point, index, job->journal.rows, &row, err));
    BSW_TRY(bsw_sweep_journal_put(&job->journal, "point", name, row, err));
    BSW_TRY(bsw_sweep_write_csv(job->run.folder, job->journal.rows, err));
    job->pace.num_measured++;
    job->pace.point_seconds += bsw_clock_seconds() - since;
    return BSW_OK;
}

static enum bsw_status run_point(struct sweep_job *job, const struct bsw_sweep_point *point,
                                 char reason[128], struct bsw_error *err)
{
    char name[BSW_SWEEP_NAME_BYTES];
    *reason = '\0';
    bsw_sweep_point_name(point, name);
    if (has_row(job, point)) {
        job->outcome->num_resumed++;
    } else {
        if (bsw_stop_is_asked()) return bsw_stop_fail(err);
        BSW_TRY(measure(job, point, name, reason, err));
        if (*reason) return BSW_OK;
    }
    note_point(job, name, json_object_get(job->journal.rows, name));
    return BSW_OK;
}

static enum bsw_status check_points(const struct bsw_sweep_points *points, struct bsw_error *err)
{
    if (points->num_points > 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "no point of the grid is possible: %s",
                    points->skips[0].reason);
}

static enum bsw_status run_points(struct sweep_job *job, struct bsw_error *err)
{
    struct bsw_sweep_points *points = &job->outcome->points;
    const struct bsw_job_events *events = job->settings->events;
    BSW_TRY(check_points(points, err));
    bsw_sweep_pace_begin(&job->pace, job->settings->progress, points->num_points);
    note_point(job, NULL, NULL);
    bsw_events_count(events, 0, points->num_points);
    // A forced run's table must not be of another corpus until its first point is done.
    BSW_TRY(bsw_sweep_write_csv(job->run.folder, job->journal.rows, err));
    BSW_TRY(ensure_truth(job, err));
    for (size_t i = 0; i < points->num_points;) {
        char reason[128];
        BSW_TRY(run_point(job, &points->points[i], reason, err));
        if (*reason)
            bsw_sweep_points_skip(points, i, reason);
        else
            i++;
        bsw_events_count(events, i, points->num_points);
    }
    BSW_TRY(check_points(points, err));
    return bsw_sweep_folder_clean(job->run.folder, err);
}

static enum bsw_status report(struct sweep_job *job, struct bsw_error *err)
{
    struct bsw_sweep_report report = {.run = &job->run,
                                      .points = &job->outcome->points,
                                      .rows = job->journal.rows,
                                      .indexes = job->journal.indexes,
                                      .targets = &job->targets,
                                      .num_rows = job->num_rows};
    BSW_TRY(bsw_sweep_report_write(&report, err));
    job->outcome->report = report.json;
    job->outcome->num_nearer = job->run.num_nearer;
    job->outcome->num_own = job->run.num_own;
    job->outcome->num_queries = job->run.num_queries;
    job->outcome->has_plots = report.has_plots;
    return BSW_OK;
}

static enum bsw_status lead(struct sweep_job *job, struct bsw_error *err)
{
    enum bsw_status status = prepare(job, err);
    if (status == BSW_OK)
        status = bsw_events_output(job->settings->events, job->run.folder, "points", err);
    if (status == BSW_OK) {
        bsw_stop_begin(NULL, NULL);
        status = run_points(job, err);
        bsw_progress_finish(job->pace.progress);
        if (status == BSW_OK) status = report(job, err);
        bsw_stop_end();
    }
    status = bsw_sweep_lead_end(&job->run.team, status, err);
    bsw_sweep_journal_close(&job->journal);
    bsw_sweep_run_deinit(&job->run);
    bsw_free(&job->grids);
    bsw_file_close(&job->lock);
    return status;
}

enum bsw_status bsw_sweep_job_run(const struct bsw_sweep_settings *settings,
                                  struct bsw_transport *transport,
                                  struct bsw_sweep_outcome *outcome, struct bsw_error *err)
{
    struct sweep_job job = {.settings = settings,
                            .outcome = outcome,
                            .run.team = {.transport = transport,
                                         .settings = settings,
                                         .others_know = transport->num_ranks == 1},
                            .lock = -1};
    *outcome = (struct bsw_sweep_outcome){0};
    return transport->rank == 0 ? lead(&job, err) : bsw_sweep_follow(&job.run.team, err);
}

// ---- how far it is ------------------------------------------------------------------------------

// Between two lines of a log, as progress.h has it.
#define LOG_SECONDS 10.0

void bsw_sweep_pace_begin(struct bsw_sweep_pace *pace, struct bsw_progress *progress,
                          size_t num_points)
{
    *pace = (struct bsw_sweep_pace){
        .progress = progress, .num_points = num_points, .last_shown = bsw_clock_seconds()};
    if (progress) bsw_progress_init(progress, "sweep", "points", num_points, progress->is_shown);
}

static void print_time(double seconds, char *text, size_t bytes)
{
    if (seconds < 90)
        snprintf(text, bytes, ", about %.0f s left", seconds < 1 ? 1 : seconds);
    else if (seconds < 90 * 60)
        snprintf(text, bytes, ", about %.0f min left", seconds / 60);
    else
        snprintf(text, bytes, ", about %.0f h left", seconds / 3600);
}

void bsw_sweep_pace_text(const struct bsw_sweep_pace *pace, const struct bsw_sweep_place *place,
                         char text[BSW_SWEEP_PACE_BYTES])
{
    int length =
        snprintf(text, BSW_SWEEP_PACE_BYTES, "point %zu of %zu, %sindex %.200s", place->point,
                 pace->num_points, place->is_made ? "making " : "", place->index);
    if (pace->num_measured == 0 || (place->indexes_left > 0 && pace->num_indexes == 0)) return;
    double seconds = pace->point_seconds / (double)pace->num_measured * (double)place->points_left;
    if (place->indexes_left > 0)
        seconds += pace->index_seconds / (double)pace->num_indexes * (double)place->indexes_left;
    print_time(seconds, text + length, (size_t)(BSW_SWEEP_PACE_BYTES - length));
}

int bsw_sweep_pace_is_due(const struct bsw_sweep_pace *pace)
{
    if (!pace->progress || !pace->progress->is_shown) return 0;
    return pace->progress->is_terminal || bsw_clock_seconds() - pace->last_shown >= LOG_SECONDS;
}

void bsw_sweep_pace_show(struct bsw_sweep_pace *pace, const struct bsw_sweep_place *place)
{
    char text[BSW_SWEEP_PACE_BYTES];
    if (!bsw_sweep_pace_is_due(pace)) return;
    pace->last_shown = bsw_clock_seconds();
    bsw_sweep_pace_text(pace, place, text);
    bsw_progress_note(pace->progress, text);
}
