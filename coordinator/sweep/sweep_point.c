// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/job/option_table.h"
#include "coordinator/train/train.h"
#include "shard/codecs/codec.h"

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void set(json_t *row, const char *name, double value)
{
    json_object_set_new(row, name, json_real(value));
}

void bsw_sweep_run_deinit(struct bsw_sweep_run *run)
{
    bsw_evaluation_deinit(&run->judge);
    bsw_sweep_found_deinit(&run->found);
}

// ---- names ----

void bsw_sweep_index_name(const struct bsw_sweep_point *point, char out[BSW_SWEEP_NAME_BYTES])
{
    int length = snprintf(out, BSW_SWEEP_NAME_BYTES, "%s-%.15g", point->codec, point->bits);
    if (point->parts > 0)
        length +=
            snprintf(out + length, (size_t)(BSW_SWEEP_NAME_BYTES - length), "-m%u", point->parts);
    if (point->lists > 0)
        snprintf(out + length, (size_t)(BSW_SWEEP_NAME_BYTES - length), "-l%u", point->lists);
}

// Whether it looks at some lists alone.
static int is_partial(const struct bsw_sweep_point *point)
{
    return point->probe > 0 || point->probe_ratio > 0 || point->recall > 0;
}

static void append_name(char name[BSW_SWEEP_NAME_BYTES], const char *format, double value)
{
    size_t length = strlen(name);
    snprintf(name + length, BSW_SWEEP_NAME_BYTES - length, format, value);
}

// What its tables are made of; "": it has none.
static const char *table_name(const struct bsw_sweep_point *p)
{
    if (!bsw_codec_find(p->codec)->has_tables) return "";
    return bsw_table_name(bsw_table_chosen(p->table));
}

// Which entries these have; "": it has none.
static const char *entries_name(const struct bsw_sweep_point *p)
{
    if (!bsw_codec_find(p->codec)->has_tables) return "";
    return p->entries == BSW_ENTRIES_RADIUS ? "radius" : "all";
}

void bsw_sweep_point_name(const struct bsw_sweep_point *p, char out[BSW_SWEEP_NAME_BYTES])
{
    char index[BSW_SWEEP_NAME_BYTES];
    bsw_sweep_index_name(p, index);
    snprintf(out, BSW_SWEEP_NAME_BYTES, "%.60s-q%u-k%llu-x%.15g-%s", index, p->query_bits,
             (unsigned long long)p->k, p->oversample, p->select);
    if (strcmp(p->select, "histogram") == 0) append_name(out, "-e%.15g", (double)p->extra_distance);
    if (p->probe > 0) append_name(out, "-p%.15g", p->probe);
    if (p->probe_ratio > 0) append_name(out, "-r%.15g", p->probe_ratio);
    if (p->recall > 0) append_name(out, "-recall%.15g", p->recall);
    if (p->table != BSW_TABLE_CHOICE_AUTO) strcat(strcat(out, "-"), table_name(p));
    if (p->entries == BSW_ENTRIES_ALL) return;
    append_name(out, "-radius%.15g", p->radius_scale);
    strcat(strcat(out, "-"), p->mode);
}

static enum bsw_status index_path(const struct bsw_sweep_run *run,
                                  const struct bsw_sweep_point *point, char out[BSW_PATH_BYTES],
                                  struct bsw_error *err)
{
    char name[BSW_SWEEP_NAME_BYTES], file[BSW_SWEEP_NAME_BYTES + 8];
    bsw_sweep_index_name(point, name);
    snprintf(file, sizeof file, "index-%s", name);
    return bsw_path_join(out, run->folder, file, err);
}

const char *bsw_sweep_recall_counts(const struct bsw_sweep_run *run)
{
    return run->team.settings->counts_ties ? "ids and ties" : "ids";
}

// ---- ground truth, indexes ----

enum bsw_status bsw_sweep_make_truth(struct bsw_sweep_run *run, uint64_t k, json_t **facts,
                                     struct bsw_error *err)
{
    struct bsw_sweep_step step = {.kind = BSW_SWEEP_TRUTH, .metric = run->metric, .k = k};
    strcpy(step.path, run->truth);
    BSW_TRY(bsw_sweep_lead(&run->team, &step, &run->found, err));
    *facts = json_pack("{s:I}", "k", (json_int_t)k);
    return BSW_OK;
}

int bsw_sweep_has_index(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point)
{
    char path[BSW_PATH_BYTES], manifest[BSW_PATH_BYTES];
    return index_path(run, point, path, NULL) == BSW_OK &&
           bsw_path_join(manifest, path, "manifest.pb", NULL) == BSW_OK &&
           bsw_file_exists(manifest);
}

// What the rows of the index's points take from it.
static json_t *describe_index(const struct bsw_sweep_found *found, double learning_seconds)
{
    const struct bsw_encode_stats *s = &found->index;
    return json_pack("{s:f, s:b, s:f, s:I, s:f, s:f, s:I, s:f, s:s}", "bits", s->bits, "residual",
                     s->is_residual, "bytes_per_vector", s->bytes_per_vector, "index_bytes",
                     (json_int_t)s->index_bytes, "train_seconds",
                     s->train_seconds + s->lists_seconds + learning_seconds, "encode_seconds",
                     s->encode_seconds, "peak_memory_bytes", (json_int_t)found->index_peak_bytes,
                     "check_recall", s->check.recall, "check_cause", s->check.cause);
}

// The model of codec rbe, from the corpus alone, with codes as wide as rows; replaces the file.
// Rank 0 on its own, since weights depend on how many ranks there are.
static enum bsw_status learn(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                             const char *model, double *seconds, struct bsw_error *err)
{
    struct bsw_transport alone = {.timeout_seconds = run->team.transport->timeout_seconds};
    struct bsw_train_settings settings = bsw_train_settings_default();
    struct bsw_train_stats stats;
    double since = bsw_clock_seconds();
    if (run->team.settings->rows.first > 0 || run->team.settings->rows.last != UINT64_MAX)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--rows: codec rbe learns from all rows; give it a --model");
    settings.pairs.base = run->team.settings->base;
    settings.metric = bsw_metric_name(run->metric);
    settings.code_dims = run->dims;
    settings.document_planes = (uint64_t)point->bits;
    settings.query_planes = point->query_bits;
    settings.model = model;
    settings.force = 1;
    settings.pairs.level = run->team.settings->level;
    bsw_transport_local_init(&alone);
    enum bsw_status status = bsw_train_run(&settings, &alone, &stats, err);
    bsw_train_stats_deinit(&stats);
    bsw_transport_close(&alone, 0);
    *seconds = bsw_clock_seconds() - since;
    return status == BSW_OK ? BSW_OK : bsw_prefix(err, status, "train: ");
}

enum bsw_status bsw_sweep_make_index(struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                                     json_t **facts, struct bsw_error *err)
{
    struct bsw_sweep_step step = {.kind = BSW_SWEEP_ENCODE,
                                  .metric = run->metric,
                                  .bits = point->bits,
                                  .parts = point->parts,
                                  .lists = point->lists};
    const char *model = run->team.settings->model;
    double learning_seconds = 0;
    if (point->lists > 0 && bsw_codec_find(point->codec)->table->has_residuals)
        step.residuals = run->team.settings->residuals;
    if (bsw_codec_find(point->codec)->table->has_parts) step.has_radii = run->has_radii;
    step.is_calibrated = run->has_recalls && point->lists > 0;
    snprintf(step.codec, sizeof step.codec, "%s", point->codec);
    BSW_TRY(index_path(run, point, step.path, err));
    if (bsw_codec_find(point->codec)->table->has_model) {
        step.bits = 0;
        int length = snprintf(step.model, sizeof step.model, "%s%s", model ? model : step.path,
                              model ? "" : ".rbe");
        if (length < 0 || (size_t)length >= sizeof step.model)
            return bsw_fail(err, BSW_ERROR_USAGE, "--model: the name is too long");
        if (!model) BSW_TRY(learn(run, point, step.model, &learning_seconds, err));
    }
    BSW_TRY(bsw_sweep_lead(&run->team, &step, &run->found, err));
    *facts = describe_index(&run->found, learning_seconds);
    return *facts ? BSW_OK : bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for an index");
}

enum bsw_status bsw_sweep_find_entry(struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                                     char *reason, size_t capacity, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_manifest manifest;
    *reason = '\0';
    if (point->recall == 0) return BSW_OK;
    BSW_TRY(index_path(run, point, path, err));
    BSW_TRY(bsw_manifest_read(path, &manifest, err));
    const struct bsw_calibration *table = &manifest.calibration;
    const struct bsw_calibration_entry *entry =
        bsw_recall_cheapest(table, point->recall, point->oversample);
    if (entry)
        run->entry = *entry;
    else
        snprintf(reason, capacity,
                 "recall %g with oversample %g: no search of the table reaches it", point->recall,
                 point->oversample);
    bsw_manifest_deinit(&manifest);
    return BSW_OK;
}

// ---- a point ----

enum what { ANSWER, CANDIDATES, CANDIDATES_BY_CODE };

static int has_query_bits(const struct bsw_sweep_point *point)
{
    const struct bsw_codec *codec = bsw_codec_find(point->codec);
    return !codec->has_bytes && !codec->has_tables;
}

static unsigned place_of(const char *word, const char *words)
{
    unsigned place = 0;
    bsw_setting_choice("", words, word, &place, NULL);
    return place;
}

// The answer as the table of recalls has it; its candidates, which are not refined, by the same
// settings.
static void ask_recall(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                       enum what what, struct bsw_search_request *request)
{
    const struct bsw_calibration_entry *entry = &run->entry;
    if (what == ANSWER) {
        request->recall = point->recall;
        return;
    }
    request->probe =
        entry->ratio == 0 && entry->probe >= point->lists ? BSW_PROBE_ALL : entry->probe;
    request->probe_ratio = entry->ratio;
    request->scan_dims = entry->scan_dims;
}

static struct bsw_search_request request_of(const struct bsw_sweep_run *run,
                                            const struct bsw_sweep_point *point, enum what what)
{
    const struct bsw_search_request *shared = &run->team.settings->searches;
    struct bsw_search_request request = {
        .k = what == ANSWER ? point->k : point->candidates,
        .query_bits = has_query_bits(point) ? point->query_bits : 0,
        .oversample = what == ANSWER ? point->oversample : 1,
        .refine = what == ANSWER ? BSW_REFINE_EXACT : BSW_REFINE_NONE,
        .exclude_self = shared->exclude_self,
        .batch = shared->batch};
    if (what != CANDIDATES_BY_CODE) {
        request.select = (enum bsw_search_select)place_of(point->select, BSW_SELECT_NAMES);
        request.table = point->table;
        request.entries.choice = point->entries;
        request.entries.radius_scale = point->radius_scale;
        if (point->entries == BSW_ENTRIES_RADIUS) {
            request.entries.mode = 1 + place_of(point->mode, BSW_SELECTION_MODES);
            request.entries.finder = shared->entries.finder;
            request.entries.has_hit_time = shared->entries.has_hit_time;
        }
        request.probe = point->probe;
        request.probe_ratio = point->probe_ratio;
        if (point->recall > 0) ask_recall(run, point, what, &request);
    }
    // Nothing said, an index with a table of recalls takes what this says.
    if (point->lists > 0 && request.probe == 0 && request.probe_ratio == 0 && request.recall == 0)
        request.probe = BSW_PROBE_ALL;
    if (request.select == BSW_SELECT_QUEUE) request.queue = shared->queue;
    if (request.select == BSW_SELECT_HISTOGRAM) {
        request.extra_distance = point->extra_distance;
        request.histogram_k = point->k;
        request.max_candidates = point->candidates;
    }
    return request;
}

// k-recall@width of a search, width the answers it gives a query.
static enum bsw_status find_recall(struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                                   enum what what, double *recall, struct bsw_error *err)
{
    uint64_t repeat = run->team.settings->repeat;
    struct bsw_sweep_step step = {.kind = BSW_SWEEP_SEARCH,
                                  .request = request_of(run, point, what),
                                  .warmup = what == ANSWER && repeat > 1,
                                  .repeat = what == ANSWER ? repeat : 1};
    if (what == ANSWER) step.least_seconds = run->team.settings->least_seconds;
    BSW_TRY(index_path(run, point, step.path, err));
    BSW_TRY(bsw_sweep_lead(&run->team, &step, &run->found, err));
    return bsw_sweep_judge_recall(&run->judge, &run->found.answers, point->k, recall, err);
}

// A row before this one with the same codes, k and candidates, or NULL.
static const json_t *find_same_ceiling(const struct bsw_sweep_point *point, json_t *rows)
{
    char index[BSW_SWEEP_NAME_BYTES];
    const char *name;
    json_t *row;
    bsw_sweep_index_name(point, index);
    json_object_foreach(rows, name, row)
    {
        const char *other = json_string_value(json_object_get(row, "index_name"));
        if (other && strcmp(other, index) == 0 &&
            json_integer_value(json_object_get(row, "query_bits")) == point->query_bits &&
            json_integer_value(json_object_get(row, "count")) == (json_int_t)point->k &&
            json_integer_value(json_object_get(row, "candidates")) == (json_int_t)point->candidates)
            return row;
    }
    return NULL;
}

struct recalls {
    double ceiling, selected, recall;
};

// The answer comes last: run->found is then of it.
static enum bsw_status find_recalls(struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                                    json_t *rows, struct recalls *out, struct bsw_error *err)
{
    const json_t *same = find_same_ceiling(point, rows);
    if (same)
        out->ceiling = number_of(same, "ceiling");
    else
        BSW_TRY(find_recall(run, point, CANDIDATES_BY_CODE, &out->ceiling, err));
    out->selected = out->ceiling;
    if (strcmp(point->select, "threshold") != 0 || is_partial(point))
        BSW_TRY(find_recall(run, point, CANDIDATES, &out->selected, err));
    return find_recall(run, point, ANSWER, &out->recall, err);
}

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// What the search had of the cores that its threads asked for.
static double cores_share(const struct bsw_sweep_run *run)
{
    double asked = (double)run->team.settings->num_threads * run->team.transport->num_ranks;
    double share = run->found.search.busy_cores / asked;
    return share < 1 ? share : 1;
}

// Times and sizes, each in a column of its own.
static void add_measures(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                         const json_t *index, json_t *row)
{
    const struct bsw_search_stats *search = &run->found.search;
    const struct bsw_search_times *t = &run->found.times;
    const struct {
        const char *column;
        double value;
    } measures[] = {
        {"qps", search->queries_per_second},
        {"seconds", search->seconds},
        {"lists_a_query", search->lists_a_query},
        {"rows_a_query", search->rows_a_query},
        {"ranks", run->team.transport->num_ranks},
        {"threads", run->team.settings->num_threads},
        {"residual", json_is_true(json_object_get(index, "residual"))},
        {"bytes_per_vector", number_of(index, "bytes_per_vector")},
        {"indexsize", number_of(index, "index_bytes") * 1e-3},
        {"train_seconds", number_of(index, "train_seconds")},
        {"build", number_of(index, "train_seconds") + number_of(index, "encode_seconds")},
        {"build_memory_bytes", number_of(index, "peak_memory_bytes")},
        {"encode_seconds", t->encode},
        {"broadcast_seconds", t->broadcast},
        {"scan_seconds", t->scan},
        {"merge_seconds", t->merge},
        {"refine_seconds", t->refine},
        {"finish_seconds", t->finish},
        {"write_seconds", t->write},
        {"memory_bytes", (double)run->found.memory_bytes},
        {"passes", (double)search->num_timed},
        {"cpu_seconds_a_query", search->cpu_seconds / (double)search->num_searched},
        {"cores_share", cores_share(run)}};
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++)
        set(row, measures[i].column, measures[i].value);
    json_object_set_new(row, "level", json_string(search->level));
    json_object_set_new(row, "device", json_string(search->device_kind));
    double full = bsw_codec_find(point->codec)->has_tables ? 1 : 0;
    const struct bsw_search_stats *stats = &run->found.search;
    int is_radius = point->entries == BSW_ENTRIES_RADIUS;
    set(row, "entries_share", is_radius ? stats->entries_share : full);
    set(row, "computed_share", is_radius ? stats->computed_share : full);
    set(row, "lookups_share", is_radius ? stats->lookups_share : full);
    // The others have what was asked for.
    if (bsw_codec_find(point->codec)->table->has_segments)
        set(row, "true_bits", number_of(index, "bits"));
}

// What tells a point from others; NULL: no memory.
static json_t *describe(const struct bsw_sweep_run *run, const struct bsw_sweep_point *p)
{
    char index[BSW_SWEEP_NAME_BYTES], point[BSW_SWEEP_NAME_BYTES];
    bsw_sweep_index_name(p, index);
    bsw_sweep_point_name(p, point);
    json_t *dataset = json_string(file_of(run->team.settings->base));
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:f, s:f, s:I, s:I, s:I, s:s, s:s, s:f, s:s, s:s, s:I, s:I, "
        "s:f, s:I, s:I, "
        "s:f, s:f}",
        "algorithm", p->codec, "parameters", point, "index_name", index, "dataset",
        dataset ? dataset : json_string("(not UTF-8)"), "bits", p->bits, "true_bits", p->bits,
        "subspaces", (json_int_t)p->parts, "lists", (json_int_t)p->lists, "query_bits",
        (json_int_t)p->query_bits, "table", table_name(p), "entries", entries_name(p),
        "radius_scale", p->radius_scale, "mode", p->mode, "select", p->select, "extra_distance",
        (json_int_t)p->extra_distance, "count", (json_int_t)p->k, "oversample", p->oversample,
        "candidates", (json_int_t)p->candidates, "probe", (json_int_t)p->probe, "probe_ratio",
        p->probe_ratio, "recall_asked", p->recall);
}

static void set_recalls(const struct bsw_sweep_run *run, json_t *row, const struct recalls *r)
{
    json_object_set_new(row, "recall_counts", json_string(bsw_sweep_recall_counts(run)));
    set(row, "recall", r->recall);
    set(row, "ceiling", r->ceiling);
    set(row, "selected", r->selected);
    set(row, "loss_code", 1 - r->ceiling);
    set(row, "loss_selection", r->ceiling - r->selected);
    set(row, "loss_refinement", r->selected - r->recall);
}

// The ground truth that is there now: a smaller one may have been made anew.
static enum bsw_status open_judge(struct bsw_sweep_run *run, uint64_t k, struct bsw_error *err)
{
    if (run->judge.truth.k >= k) return BSW_OK;
    bsw_evaluation_deinit(&run->judge);
    BSW_TRY(bsw_sweep_judge_open(&run->judge, run->truth, run->team.settings, run->num_queries,
                                 run->metric, err));
    if (run->judge.truth.k >= k) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: has %llu neighbours a query, not %llu",
                    run->truth, (unsigned long long)run->judge.truth.k, (unsigned long long)k);
}

static uint64_t count_own(const struct bsw_sweep_run *run)
{
    const struct bsw_results *answers = &run->found.answers;
    uint64_t count = 0;
    if (!bsw_has_distances(run->metric) || !answers->values) return 0;
    for (uint64_t q = 0; q < answers->num_queries; q++) {
        float value = answers->values[q * answers->k];
        count += bsw_is_distance(run->metric) ? value == 0 : value >= 1 - 1e-6f;
    }
    return count;
}

// By the answer of the first point that is measured.
static enum bsw_status check_truth(struct bsw_sweep_run *run, uint64_t k, struct bsw_error *err)
{
    const struct bsw_sweep_settings *settings = run->team.settings;
    if (!settings->groundtruth || run->is_truth_checked) return BSW_OK;
    BSW_TRY(bsw_sweep_judge_check(&run->judge, run->truth, settings, run->metric,
                                  &run->found.answers, k, &run->num_nearer, err));
    run->is_truth_checked = 1;
    return BSW_OK;
}

enum bsw_status bsw_sweep_measure(struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                                  const json_t *index, json_t *rows, json_t **row,
                                  struct bsw_error *err)
{
    struct recalls recalls = {0};
    BSW_TRY(open_judge(run, point->k, err));
    BSW_TRY(find_recalls(run, point, rows, &recalls, err));
    BSW_TRY(check_truth(run, point->k, err));
    uint64_t num_own = count_own(run);
    if (num_own > run->num_own) run->num_own = num_own;
    json_t *made = describe(run, point);
    if (!made) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for a point");
    set_recalls(run, made, &recalls);
    add_measures(run, point, index, made);
    *row = made;
    return BSW_OK;
}

// ---- recalls ------------------------------------------------------------------------------------

// Queries whose answers show whether a ground truth is one.
#define CHECKED_QUERIES 1000

enum bsw_status bsw_sweep_judge_open(struct bsw_evaluation *judge, const char *path,
                                     const struct bsw_sweep_settings *s, uint64_t num_queries,
                                     enum bsw_metric metric, struct bsw_error *err)
{
    const struct bsw_results *truth = &judge->truth;
    *judge = (struct bsw_evaluation){.ties = s->counts_ties ? BSW_TIES_EXACT : BSW_TIES_NONE};
    BSW_TRY(bsw_results_read(path, &judge->truth, err));
    if (s->counts_ties)
        BSW_TRY(bsw_exact_pairs_open(&judge->pairs, s->base, s->queries, s->query_rows, metric,
                                     s->level, err));
    if (truth->num_queries != num_queries)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu queries, the sweep has %llu", path,
                        (unsigned long long)truth->num_queries, (unsigned long long)num_queries);
    return s->counts_ties ? bsw_exact_pairs_check(&judge->pairs, path, truth, err) : BSW_OK;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum bsw_status bsw_sweep_judge_ids(const char *path, const char *base, uint64_t first_row,
                                    uint64_t num_rows, uint64_t k, struct bsw_error *err)
{
    struct bsw_results truth = {0};
    enum bsw_status status = bsw_results_read(path, &truth, err);
    for (uint64_t q = 0; status == BSW_OK && q < truth.num_queries; q++) {
        int64_t *ids = truth.ids + q * truth.k, last;
        unsigned long long query = q;
        qsort(ids, (size_t)k, sizeof *ids, compare_ids);
        last = ids[k - 1];
        if (ids[0] < 0)
            status =
                bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu has fewer than %llu neighbours",
                         path, query, (unsigned long long)k);
        else if ((uint64_t)last >= first_row + num_rows)
            status = bsw_fail(err, BSW_ERROR_BAD_DATA,
                              "%s: query %llu has id %lld, %s has %llu rows", path, query,
                              (long long)last, base, (unsigned long long)(first_row + num_rows));
        else if ((uint64_t)ids[0] < first_row)
            status = bsw_fail(err, BSW_ERROR_BAD_DATA,
                              "%s: query %llu has id %lld, --rows begins at %llu", path, query,
                              (long long)ids[0], (unsigned long long)first_row);
        for (uint64_t i = 1; status == BSW_OK && i < k; i++) {
            if (ids[i] == ids[i - 1])
                status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu has id %lld twice", path,
                                  query, (long long)ids[i]);
        }
    }
    bsw_results_deinit(&truth);
    return status;
}

enum bsw_status bsw_sweep_judge_check(struct bsw_evaluation *judge, const char *path,
                                      const struct bsw_sweep_settings *s, enum bsw_metric metric,
                                      const struct bsw_results *answers, uint64_t k,
                                      uint64_t *num_nearer, struct bsw_error *err)
{
    const enum bsw_tie_values ties = judge->ties;
    if (!judge->pairs.base)
        BSW_TRY(bsw_exact_pairs_open(&judge->pairs, s->base, s->queries, s->query_rows, metric,
                                     s->level, err));
    judge->results = *answers; // for the call
    if (judge->results.num_queries > CHECKED_QUERIES) judge->results.num_queries = CHECKED_QUERIES;
    uint64_t num_places = judge->results.num_queries * k;
    judge->ties = BSW_TIES_EXACT;
    enum bsw_status status = bsw_evaluation_count(judge, k, err);
    judge->ties = ties;
    judge->results = (struct bsw_results){0};
    *num_nearer = judge->recall.num_nearer;
    if (status != BSW_OK || *num_nearer * 100 <= num_places) return status;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: a search finds %llu rows that are nearer than its neighbours, at %llu "
                    "places: it is of other rows, another metric or other ids",
                    path, (unsigned long long)*num_nearer, (unsigned long long)num_places);
}

enum bsw_status bsw_sweep_judge_recall(struct bsw_evaluation *judge,
                                       const struct bsw_results *answers, uint64_t k, double *out,
                                       struct bsw_error *err)
{
    const struct bsw_recall *recall = &judge->recall;
    judge->results = *answers; // for the call
    enum bsw_status status = bsw_evaluation_count(judge, k, err);
    judge->results = (struct bsw_results){0};
    if (status == BSW_OK)
        *out = (judge->ties == BSW_TIES_NONE ? bsw_recall_by_ids : bsw_recall_with_ties)(
            recall, bsw_recall_widest(recall));
    return status;
}
