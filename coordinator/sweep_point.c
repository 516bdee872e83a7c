#include "coordinator/sweep_point.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/child_process.h"

enum { MAX_WORDS = 40, NUMBER_BYTES = 32 };

// ---- one child ----

struct step {
    const struct bsw_sweep_run *run;
    const char *words[MAX_WORDS]; // program, command, options, NULL
    size_t num_words;
    char numbers[MAX_WORDS][NUMBER_BYTES];
};

static void add(struct step *step, const char *option, const char *value)
{
    step->words[step->num_words++] = option;
    if (value) step->words[step->num_words++] = value;
}

static void add_number(struct step *step, const char *option, double value)
{
    char *text = step->numbers[step->num_words];
    snprintf(text, NUMBER_BYTES, "%.15g", value);
    add(step, option, text);
}

static void begin(struct step *step, const struct bsw_sweep_run *run, const char *command)
{
    *step = (struct step){.run = run};
    add(step, "/proc/self/exe", command);
    add(step, "--json", "--quiet");
    add(step, "--level", run->level);
    add_number(step, "--threads", (double)run->threads);
}

static enum bsw_status status_of(int exit_code)
{
    switch (exit_code) {
    case 2:
        return BSW_ERROR_USAGE;
    case 65:
        return BSW_ERROR_BAD_DATA;
    case 70:
        return BSW_ERROR_SELF_CHECK;
    case 75:
        return BSW_ERROR_STOPPED;
    default:
        return BSW_ERROR_IO;
    }
}

// The first line of what it said, without the program's name.
static enum bsw_status report_failure(const char *command, const char *err_path, int exit_code,
                                      struct bsw_error *err)
{
    char line[400] = "";
    FILE *file = fopen(err_path, "r");
    if (file && !fgets(line, sizeof line, file)) line[0] = '\0';
    if (file) fclose(file);
    line[strcspn(line, "\n")] = '\0';
    const char *text = strncmp(line, "bitsweep: ", 10) == 0 ? line + 10 : line;
    if (*text == '\0')
        return bsw_fail(err, status_of(exit_code), "%s: exit code %d", command, exit_code);
    return bsw_fail(err, status_of(exit_code), "%s: %s", command, text);
}

static enum bsw_status run_step(struct step *step, json_t **out, struct bsw_error *err)
{
    char out_path[BSW_PATH_BYTES], err_path[BSW_PATH_BYTES];
    json_error_t fault;
    int exit_code;
    *out = NULL;
    BSW_TRY(bsw_path_join(out_path, step->run->folder, "step.out", err));
    BSW_TRY(bsw_path_join(err_path, step->run->folder, "step.err", err));
    const struct bsw_child child = {.arguments = step->words, .out = out_path, .err = err_path};
    BSW_TRY(bsw_child_run(&child, &exit_code, err));
    if (exit_code != 0) return report_failure(step->words[1], err_path, exit_code, err);
    *out = json_load_file(out_path, 0, &fault);
    if (!*out) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", out_path, fault.text);
    return BSW_OK;
}

static enum bsw_status get_number(const json_t *object, const char *name, double *out,
                                  struct bsw_error *err)
{
    const json_t *value = json_object_get(object, name);
    *out = 0;
    if (!json_is_number(value))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "a step of the sweep did not say %s", name);
    *out = json_number_value(value);
    return BSW_OK;
}

// ---- names ----

void bsw_sweep_index_name(const struct bsw_sweep_point *point, char out[BSW_SWEEP_NAME_BYTES])
{
    snprintf(out, BSW_SWEEP_NAME_BYTES, "%s-%.15g", point->codec, point->bits);
}

void bsw_sweep_point_name(const struct bsw_sweep_point *p, char out[BSW_SWEEP_NAME_BYTES])
{
    snprintf(out, BSW_SWEEP_NAME_BYTES, "%s-%.15g-q%u-k%llu-x%.15g-%s", p->codec, p->bits,
             p->query_bits, (unsigned long long)p->k, p->oversample, p->select);
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

// ---- ground truth, indexes ----

enum bsw_status bsw_sweep_make_truth(const struct bsw_sweep_run *run, uint64_t k, json_t **facts,
                                     struct bsw_error *err)
{
    struct step step;
    begin(&step, run, "groundtruth");
    add(&step, "--base", run->base);
    add(&step, "--queries", run->queries);
    add(&step, "--metric", run->metric);
    add_number(&step, "--k", (double)k);
    add(&step, "--out", run->truth);
    add(&step, "--force", NULL);
    return run_step(&step, facts, err);
}

int bsw_sweep_has_index(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point)
{
    char path[BSW_PATH_BYTES], manifest[BSW_PATH_BYTES];
    return index_path(run, point, path, NULL) == BSW_OK &&
           bsw_path_join(manifest, path, "manifest.pb", NULL) == BSW_OK &&
           bsw_file_exists(manifest);
}

// Anew even where a part is there: the time of a build is that of a whole one.
enum bsw_status bsw_sweep_make_index(const struct bsw_sweep_run *run,
                                     const struct bsw_sweep_point *point, json_t **facts,
                                     struct bsw_error *err)
{
    struct step step;
    char path[BSW_PATH_BYTES];
    BSW_TRY(index_path(run, point, path, err));
    begin(&step, run, "encode");
    add(&step, "--base", run->base);
    add(&step, "--index", path);
    add(&step, "--codec", point->codec);
    add_number(&step, "--bits", point->bits);
    add(&step, "--metric", run->metric);
    add(&step, "--device", run->device);
    add_number(&step, "--shards", (double)run->shards);
    add(&step, "--force", NULL);
    return run_step(&step, facts, err);
}

// ---- a point ----

enum what { ANSWER, CANDIDATES, CANDIDATES_BY_CODE };

// Searches, then evaluates against the first k neighbours of the ground truth. *search: what the
// search said, or NULL if nobody wants it.
static enum bsw_status find_recall(const struct bsw_sweep_run *run,
                                   const struct bsw_sweep_point *point, enum what what,
                                   double *recall, json_t **search, struct bsw_error *err)
{
    struct step step;
    char path[BSW_PATH_BYTES], result[BSW_PATH_BYTES], name[64];
    int is_answer = what == ANSWER;
    uint64_t width = is_answer ? point->k : point->candidates;
    json_t *said = NULL;
    BSW_TRY(index_path(run, point, path, err));
    BSW_TRY(bsw_path_join(result, run->folder, "step.result", err));
    begin(&step, run, "search");
    add(&step, "--index", path);
    add(&step, "--queries", run->queries);
    add(&step, "--device", run->device);
    add(&step, "--out", result);
    add(&step, "--force", NULL);
    add_number(&step, "--batch", (double)run->batch);
    add_number(&step, "--query-bits", point->query_bits);
    add_number(&step, "--k", (double)width);
    add(&step, "--select", what == CANDIDATES_BY_CODE ? "threshold" : point->select);
    add_number(&step, "--items", (double)run->items);
    add_number(&step, "--queue-length", (double)run->queue_length);
    if (is_answer) {
        add_number(&step, "--oversample", point->oversample);
        add_number(&step, "--repeat", (double)run->repeat);
        if (run->repeat > 1) add(&step, "--warmup", "1");
    } else {
        add(&step, "--refine", "none");
    }
    BSW_TRY(run_step(&step, &said, err));
    if (search)
        *search = said;
    else
        json_decref(said);

    // With the rows, so that ties with the last true neighbour count alike everywhere.
    begin(&step, run, "eval");
    add(&step, "--results", result);
    add(&step, "--groundtruth", run->truth);
    add_number(&step, "--k", (double)point->k);
    add(&step, "--base", run->base);
    add(&step, "--queries", run->queries);
    add(&step, "--metric", run->metric);
    json_t *judged = NULL;
    snprintf(name, sizeof name, "%llu-recall@%llu", (unsigned long long)point->k,
             (unsigned long long)width);
    enum bsw_status status = run_step(&step, &judged, err);
    if (status == BSW_OK)
        status = get_number(json_object_get(judged, "recalls"), name, recall, err);
    json_decref(judged);
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
        BSW_TRY(get_number(same, "ceiling", &out->ceiling, err));
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

static void set(json_t *row, const char *name, double value)
{
    json_object_set_new(row, name, json_real(value));
}

static enum bsw_status add_measures(const json_t *search, const json_t *index, json_t *row,
                                    struct bsw_error *err)
{
    static const char *const phases[] = {"encode", "broadcast", "histogram", "scan",
                                         "merge",  "refine",    "finish",    "write"};
    double qps, seconds, memory, bytes, index_bytes, train, encode, build_memory, value;
    const json_t *by_phase = json_object_get(search, "seconds_by_phase");
    const json_t *rank = json_array_get(json_object_get(search, "per_rank"), 0);
    BSW_TRY(get_number(search, "queries_per_second", &qps, err));
    BSW_TRY(get_number(search, "seconds", &seconds, err));
    BSW_TRY(get_number(rank, "memory_bytes", &memory, err));
    BSW_TRY(get_number(index, "bytes_per_vector", &bytes, err));
    BSW_TRY(get_number(index, "index_bytes", &index_bytes, err));
    BSW_TRY(get_number(index, "train_seconds", &train, err));
    BSW_TRY(get_number(index, "encode_seconds", &encode, err));
    BSW_TRY(get_number(index, "peak_memory_bytes", &build_memory, err));
    set(row, "qps", qps);
    set(row, "seconds", seconds);
    set(row, "bytes_per_vector", bytes);
    set(row, "indexsize", index_bytes / 1000);
    set(row, "build", train + encode);
    set(row, "train_seconds", train);
    set(row, "memory_bytes", memory);
    set(row, "build_memory_bytes", build_memory);
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s_seconds", phases[i]);
        BSW_TRY(get_number(by_phase, phases[i], &value, err));
        set(row, name, value);
    }
    return BSW_OK;
}

enum bsw_status bsw_sweep_measure(const struct bsw_sweep_run *run,
                                  const struct bsw_sweep_point *point, const json_t *index,
                                  json_t *rows, json_t **row, struct bsw_error *err)
{
    char name[BSW_SWEEP_NAME_BYTES];
    struct recalls r = {0};
    json_t *search = NULL, *made = json_object();
    bsw_sweep_index_name(point, name);
    enum bsw_status status = find_recalls(run, point, rows, &r, &search, err);
    json_object_set_new(made, "algorithm", json_string(point->codec));
    json_object_set_new(made, "index_name", json_string(name));
    json_object_set_new(made, "dataset", json_string(file_of(run->base)));
    set(made, "bits", point->bits);
    json_object_set_new(made, "query_bits", json_integer(point->query_bits));
    json_object_set_new(made, "select", json_string(point->select));
    json_object_set_new(made, "count", json_integer((json_int_t)point->k));
    set(made, "oversample", point->oversample);
    json_object_set_new(made, "candidates", json_integer((json_int_t)point->candidates));
    set(made, "recall", r.recall);
    set(made, "ceiling", r.ceiling);
    set(made, "selected", r.selected);
    set(made, "loss_code", 1 - r.ceiling);
    set(made, "loss_selection", r.ceiling - r.selected);
    set(made, "loss_refinement", r.selected - r.recall);
    if (status == BSW_OK) status = add_measures(search, index, made, err);
    json_decref(search);
    if (status == BSW_OK)
        *row = made;
    else
        json_decref(made);
    return status;
}
