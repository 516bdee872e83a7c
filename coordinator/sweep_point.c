#include "coordinator/sweep_point.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"

static double number_of(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static void set(json_t *row, const char *name, double value)
{
    json_object_set_new(row, name, json_real(value));
}

// ---- names ----

void bsw_sweep_index_name(const struct bsw_sweep_point *point, char out[BSW_SWEEP_NAME_BYTES])
{
    snprintf(out, BSW_SWEEP_NAME_BYTES, "%s-%.15g", point->codec, point->bits);
}

void bsw_sweep_point_name(const struct bsw_sweep_point *p, char out[BSW_SWEEP_NAME_BYTES])
{
    int length =
        snprintf(out, BSW_SWEEP_NAME_BYTES, "%s-%.15g-q%u-k%llu-x%.15g-%s", p->codec, p->bits,
                 p->query_bits, (unsigned long long)p->k, p->oversample, p->select);
    if (strcmp(p->select, "histogram") == 0)
        snprintf(out + length, (size_t)(BSW_SWEEP_NAME_BYTES - length), "-e%llu",
                 (unsigned long long)p->extra_distance);
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
    return run->counts_ties ? "ids and ties" : "ids";
}

// ---- ground truth, indexes ----

enum bsw_status bsw_sweep_make_truth(const struct bsw_sweep_run *run, uint64_t k, json_t **facts,
                                     struct bsw_error *err)
{
    struct bsw_step step;
    bsw_step_begin(&step, &run->place, "groundtruth", 1);
    bsw_step_add(&step, "--base", run->base);
    bsw_step_add(&step, "--queries", run->queries);
    bsw_step_add(&step, "--metric", run->metric);
    bsw_step_add_number(&step, "--k", (double)k);
    bsw_step_add(&step, "--out", run->truth);
    bsw_step_add(&step, "--force", NULL);
    return bsw_step_run(&step, facts, err);
}

int bsw_sweep_has_index(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point)
{
    char path[BSW_PATH_BYTES], manifest[BSW_PATH_BYTES];
    return index_path(run, point, path, NULL) == BSW_OK &&
           bsw_path_join(manifest, path, "manifest.pb", NULL) == BSW_OK &&
           bsw_file_exists(manifest);
}

// A model of the corpus alone, codes as wide as rows; on one rank, since weights depend on how many
// there are.
static enum bsw_status learn(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                             const char *model, double *seconds, struct bsw_error *err)
{
    struct bsw_step step;
    json_t *said;
    double since = bsw_clock_seconds();
    bsw_step_begin(&step, &run->place, "train", 0);
    bsw_step_add(&step, "--base", run->base);
    bsw_step_add(&step, "--metric", run->metric);
    bsw_step_add_number(&step, "--code-dims", run->dims);
    bsw_step_add_number(&step, "--document-planes", point->bits);
    bsw_step_add_number(&step, "--query-planes", point->query_bits);
    bsw_step_add(&step, "--model", model);
    bsw_step_add(&step, "--force", NULL);
    BSW_TRY(bsw_step_run(&step, &said, err));
    json_decref(said);
    *seconds = bsw_clock_seconds() - since;
    return BSW_OK;
}

static enum bsw_status encode(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                              const char *path, const char *model, json_t **facts,
                              struct bsw_error *err)
{
    struct bsw_step step;
    bsw_step_begin(&step, &run->place, "encode", 1);
    bsw_step_add(&step, "--base", run->base);
    bsw_step_add(&step, "--index", path);
    bsw_step_add(&step, "--codec", point->codec);
    if (model)
        bsw_step_add(&step, "--model", model);
    else
        bsw_step_add_number(&step, "--bits", point->bits);
    bsw_step_add(&step, "--metric", run->metric);
    bsw_step_add(&step, "--device", run->device);
    bsw_step_add_number(&step, "--shards", (double)run->shards);
    bsw_step_add(&step, "--force", NULL);
    return bsw_step_run(&step, facts, err);
}

// Anew even where a part is there: the time of a build is that of a whole one.
enum bsw_status bsw_sweep_make_index(const struct bsw_sweep_run *run,
                                     const struct bsw_sweep_point *point, json_t **facts,
                                     struct bsw_error *err)
{
    char path[BSW_PATH_BYTES], model[BSW_PATH_BYTES + 8];
    double learning = 0, training;
    int is_learned = strcmp(point->codec, "rbe") == 0;
    BSW_TRY(index_path(run, point, path, err));
    snprintf(model, sizeof model, "%s", run->model ? run->model : path);
    if (is_learned && !run->model) {
        strcat(model, ".rbe");
        BSW_TRY(learn(run, point, model, &learning, err));
    }
    json_t *made;
    BSW_TRY(encode(run, point, path, is_learned ? model : NULL, &made, err));
    enum bsw_status status = bsw_step_number(made, "train_seconds", &training, err);
    if (status == BSW_OK) {
        set(made, "train_seconds", training + learning);
        *facts = made;
    } else {
        json_decref(made);
    }
    return status;
}

// ---- a point ----

enum what { ANSWER, CANDIDATES, CANDIDATES_BY_CODE };

// *said: what the search said; path: the index, result: the file, both as the step borrows them.
static enum bsw_status search(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                              enum what what, const char *path, const char *result, json_t **said,
                              struct bsw_error *err)
{
    struct bsw_step step;
    const char *select = what == CANDIDATES_BY_CODE ? "threshold" : point->select;
    bsw_step_begin(&step, &run->place, "search", 1);
    bsw_step_add(&step, "--index", path);
    bsw_step_add(&step, "--queries", run->queries);
    bsw_step_add(&step, "--device", run->device);
    bsw_step_add(&step, "--out", result);
    bsw_step_add(&step, "--force", NULL);
    bsw_step_add_number(&step, "--batch", (double)run->batch);
    if (strcmp(point->codec, "raw") != 0)
        bsw_step_add_number(&step, "--query-bits", point->query_bits);
    bsw_step_add_number(&step, "--k", (double)(what == ANSWER ? point->k : point->candidates));
    bsw_step_add(&step, "--select", select);
    if (strcmp(select, "queue") == 0) {
        bsw_step_add_number(&step, "--items", (double)run->items);
        bsw_step_add_number(&step, "--queue-length", (double)run->queue_length);
    } else if (strcmp(select, "histogram") == 0) {
        bsw_step_add_number(&step, "--extra-distance", (double)point->extra_distance);
        bsw_step_add_number(&step, "--histogram-k", (double)point->k);
        bsw_step_add_number(&step, "--max-candidates", (double)point->candidates);
    }
    if (what == ANSWER) {
        bsw_step_add_number(&step, "--oversample", point->oversample);
        bsw_step_add_number(&step, "--repeat", (double)run->repeat);
        bsw_step_add_number(&step, "--warmup", run->repeat > 1);
    } else {
        bsw_step_add(&step, "--refine", "none");
    }
    return bsw_step_run(&step, said, err);
}

// k-recall@width of a result, width its number of columns.
static enum bsw_status judge(const struct bsw_sweep_run *run, const char *result, uint64_t k,
                             uint64_t width, double *recall, struct bsw_error *err)
{
    struct bsw_step step;
    char name[64];
    json_t *said;
    const char *recalls = run->counts_ties ? "recalls_with_ties" : "recalls";
    bsw_step_begin(&step, &run->place, "eval", 0);
    bsw_step_add(&step, "--results", result);
    bsw_step_add(&step, "--groundtruth", run->truth);
    bsw_step_add_number(&step, "--k", (double)k);
    if (run->counts_ties) {
        bsw_step_add(&step, "--base", run->base);
        bsw_step_add(&step, "--queries", run->queries);
        bsw_step_add(&step, "--metric", run->metric);
    }
    BSW_TRY(bsw_step_run(&step, &said, err));
    snprintf(name, sizeof name, "%llu-recall@%llu", (unsigned long long)k,
             (unsigned long long)width);
    enum bsw_status status = bsw_step_number(json_object_get(said, recalls), name, recall, err);
    json_decref(said);
    return status;
}

// *said: what the search said, set only on success; NULL if nobody wants it.
static enum bsw_status find_recall(const struct bsw_sweep_run *run,
                                   const struct bsw_sweep_point *point, enum what what,
                                   double *recall, json_t **said, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES], result[BSW_PATH_BYTES];
    json_t *facts;
    BSW_TRY(index_path(run, point, path, err));
    BSW_TRY(bsw_path_join(result, run->folder, "step.result", err));
    BSW_TRY(search(run, point, what, path, result, &facts, err));
    enum bsw_status status =
        judge(run, result, point->k, what == ANSWER ? point->k : point->candidates, recall, err);
    if (status == BSW_OK && said)
        *said = facts;
    else
        json_decref(facts);
    return status;
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

static enum bsw_status find_recalls(const struct bsw_sweep_run *run,
                                    const struct bsw_sweep_point *point, json_t *rows,
                                    struct recalls *out, json_t **search, struct bsw_error *err)
{
    const json_t *same = find_same_ceiling(point, rows);
    if (same)
        BSW_TRY(bsw_step_number(same, "ceiling", &out->ceiling, err));
    else
        BSW_TRY(find_recall(run, point, CANDIDATES_BY_CODE, &out->ceiling, NULL, err));
    out->selected = out->ceiling;
    if (strcmp(point->select, "threshold") != 0)
        BSW_TRY(find_recall(run, point, CANDIDATES, &out->selected, NULL, err));
    return find_recall(run, point, ANSWER, &out->recall, search, err);
}

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static double memory_of_ranks(const json_t *ranks)
{
    double sum = 0;
    size_t place;
    const json_t *rank;
    json_array_foreach(ranks, place, rank)
    {
        sum += json_number_value(json_object_get(rank, "memory_bytes"));
    }
    return sum;
}

// Times and sizes, each in a column of its own; what a step says in another unit is turned.
static enum bsw_status add_measures(const json_t *search, const json_t *index, json_t *row,
                                    struct bsw_error *err)
{
    const json_t *phases = json_object_get(search, "seconds_by_phase");
    const struct {
        const json_t *from;
        const char *name, *column;
        double factor;
    } measures[] = {{search, "queries_per_second", "qps", 1},
                    {search, "seconds", "seconds", 1},
                    {search, "ranks", "ranks", 1},
                    {search, "threads", "threads", 1},
                    {index, "bytes_per_vector", "bytes_per_vector", 1},
                    {index, "index_bytes", "indexsize", 1e-3},
                    {index, "train_seconds", "train_seconds", 1},
                    {index, "encode_seconds", "build", 1}, // with the one before
                    {index, "peak_memory_bytes", "build_memory_bytes", 1},
                    {phases, "encode", "encode_seconds", 1},
                    {phases, "broadcast", "broadcast_seconds", 1},
                    {phases, "histogram", "histogram_seconds", 1},
                    {phases, "scan", "scan_seconds", 1},
                    {phases, "merge", "merge_seconds", 1},
                    {phases, "refine", "refine_seconds", 1},
                    {phases, "finish", "finish_seconds", 1},
                    {phases, "write", "write_seconds", 1}};
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
        double value;
        BSW_TRY(bsw_step_number(measures[i].from, measures[i].name, &value, err));
        set(row, measures[i].column, value * measures[i].factor);
    }
    // The others have what was asked for.
    if (strcmp(json_string_value(json_object_get(row, "algorithm")), "saq") == 0) {
        double bits;
        BSW_TRY(bsw_step_number(index, "bits", &bits, err));
        set(row, "true_bits", bits);
    }
    set(row, "build", number_of(row, "build") + number_of(row, "train_seconds"));
    set(row, "memory_bytes", memory_of_ranks(json_object_get(search, "per_rank")));
    return BSW_OK;
}

// What tells a point from others; NULL: no memory.
static json_t *describe(const struct bsw_sweep_run *run, const struct bsw_sweep_point *p)
{
    char index[BSW_SWEEP_NAME_BYTES], point[BSW_SWEEP_NAME_BYTES];
    bsw_sweep_index_name(p, index);
    bsw_sweep_point_name(p, point);
    json_t *dataset = json_string(file_of(run->base));
    return json_pack("{s:s, s:s, s:s, s:o, s:f, s:f, s:I, s:s, s:I, s:I, s:f, s:I}", "algorithm",
                     p->codec, "parameters", point, "index_name", index, "dataset",
                     dataset ? dataset : json_string("(not UTF-8)"), "bits", p->bits, "true_bits",
                     p->bits, "query_bits", (json_int_t)p->query_bits, "select", p->select,
                     "extra_distance", (json_int_t)p->extra_distance, "count", (json_int_t)p->k,
                     "oversample", p->oversample, "candidates", (json_int_t)p->candidates);
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

enum bsw_status bsw_sweep_measure(const struct bsw_sweep_run *run,
                                  const struct bsw_sweep_point *point, const json_t *index,
                                  json_t *rows, json_t **row, struct bsw_error *err)
{
    struct recalls recalls = {0};
    json_t *search = NULL;
    BSW_TRY(find_recalls(run, point, rows, &recalls, &search, err));
    json_t *made = describe(run, point);
    enum bsw_status status =
        made ? BSW_OK : bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for a point");
    set_recalls(run, made, &recalls);
    if (status == BSW_OK) status = add_measures(search, index, made, err);
    json_decref(search);
    if (status == BSW_OK)
        *row = made;
    else
        json_decref(made);
    return status;
}
