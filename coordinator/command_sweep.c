// F_OFD_SETLK
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// sweep: a grid of codes and searches over one corpus, every point measured by this program as a
// child, in a folder that another run can go on with.
//
// The record is sweep.journal: an entry for the ground truth, each index and each point, durable
// before the next begins. sweep.csv is written anew after each point, the rest at the end. The grid
// is no field of the journal: --resume with another grid adds points.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/clock.h"
#include "common/index_manifest.h"
#include "common/journal.h"
#include "common/result_file.h"
#include "common/run_status.h"
#include "common/stop_signal.h"
#include "common/vectors.h"
#include "coordinator/command.h"
#include "coordinator/command_files.h"
#include "coordinator/metric_choice.h"
#include "coordinator/query_digest.h"
#include "coordinator/same_input.h"
#include "coordinator/search_sizes.h"
#include "coordinator/sidecar.h"
#include "coordinator/sweep_plan.h"
#include "coordinator/sweep_point.h"
#include "coordinator/sweep_report.h"
#include "kernels/rbe/rbe_model_file.h"
#include "shard/shard_queue.h"

enum { LOCK_SECONDS = 15 };

struct sweep_options {
    struct bsw_common_options common;
    const char *base, *queries, *groundtruth, *metric, *folder, *device, *model, *plan, *launcher;
    const char *axes[BSW_SWEEP_NUM_AXES];
    uint64_t shards, repeat, batch;
    struct bsw_queue_options queue;
    int ties, force, resume;
};

struct sweep_job {
    struct sweep_options options;
    struct bsw_sweep_run run;
    struct bsw_sweep_grid *grids; // [num_grids]
    size_t num_grids;
    struct bsw_sweep_limits limits;
    struct bsw_sweep_points points;
    struct bsw_journal_fields fields;
    bsw_journal *journal;
    // Objects by name: what the journal has.
    json_t *truths, *indexes, *rows;
    enum bsw_metric metric;
    uint64_t base_digest, query_digest;
    uint64_t num_rows, num_queries, max_k; // max_k: of the points
    uint64_t num_resumed;                  // points of this grid that the journal had
    uint64_t queries_digest;               // as FILE.json has it
    int lock, own_lock;                    // the folder, open and locked; -1: not
};

static enum bsw_status parse(struct bsw_transport *transport, struct sweep_options *o, int argc,
                             char **argv, int *done, struct bsw_error *err)
{
    const struct bsw_option options[] = {
        {"base", BSW_OPTION_TEXT, &o->base, "FILE", NULL, 1, 0, 0, NULL,
         "vectors, or synth:count=N,dims=D,..."},
        {"queries", BSW_OPTION_TEXT, &o->queries, "FILE", NULL, 1, 0, 0, NULL, "query vectors"},
        {"groundtruth", BSW_OPTION_TEXT, &o->groundtruth, "FILE", NULL, 0, 0, 0, NULL,
         "ground truth [computed]"},
        {"metric", BSW_OPTION_CHOICE, &o->metric, NULL, NULL, 0, 0, 0, "cosine|ip|l2",
         BSW_METRIC_HELP},
        {"codec", BSW_OPTION_TEXT, &o->axes[BSW_SWEEP_CODEC], "xfbq,saq,rbe,raw", "saq", 0, 0, 0,
         NULL, "codes"},
        {"bits", BSW_OPTION_TEXT, &o->axes[BSW_SWEEP_BITS], "B,...", "1,2,3,4", 0, 0, 0, NULL,
         "bits a dimension, 1 to 8; 1.5 and the like for saq; not for raw"},
        {"query-bits", BSW_OPTION_TEXT, &o->axes[BSW_SWEEP_QUERY_BITS], "BQ,...", "6", 0, 0, 0,
         NULL, "bits a query component; not for rbe, whose model has them, and raw"},
        {"k", BSW_OPTION_TEXT, &o->axes[BSW_SWEEP_K], "K,...", BSW_SEARCH_K_TEXT, 0, 0, 0, NULL,
         "neighbours a query"},
        {"oversample", BSW_OPTION_TEXT, &o->axes[BSW_SWEEP_OVERSAMPLE], "X,...", "1,2,5,10", 0, 0,
         0, NULL, "candidates to refine, times k; not for raw"},
        {"select", BSW_OPTION_TEXT, &o->axes[BSW_SWEEP_SELECT], "threshold,histogram,queue",
         "threshold", 0, 0, 0, NULL, "how candidates are chosen; histogram: of xfbq alone"},
        {"extra-distance", BSW_OPTION_TEXT, &o->axes[BSW_SWEEP_EXTRA_DISTANCE], "E,...", "0", 0, 0,
         0, NULL, "histogram: of the candidates, those within D_K + E"},
        {"plan", BSW_OPTION_TEXT, &o->plan, "FILE", NULL, 0, 0, 0, NULL,
         "more than one grid: a line each, such as codec=saq bits=2,3 oversample=5; what a line "
         "leaves out is as the options above say"},
        {"model", BSW_OPTION_TEXT, &o->model, "FILE", NULL, 0, 0, 0, NULL,
         "rbe: the model, of bitsweep train [learned from --base, one for each of the bits]"},
        {"items", BSW_OPTION_COUNT, &o->queue.items, "I", "256", 0, 1, BSW_QUEUE_MAX_ITEMS, NULL,
         "queue: rows that each of a block's 256 threads goes over"},
        {"queue-length", BSW_OPTION_COUNT, &o->queue.length, "Q", "1", 0, 1, BSW_QUEUE_MAX_LENGTH,
         NULL, "queue: best rows that a thread keeps"},
        {"shards", BSW_OPTION_COUNT, &o->shards, "P", "1", 0, 1, BSW_MAX_SHARDS, NULL,
         "shard files of an index"},
        {"batch", BSW_OPTION_COUNT, &o->batch, "N", "1000", 0, 1, 1e6, NULL, "queries at a time"},
        {"repeat", BSW_OPTION_COUNT, &o->repeat, "N", "3", 0, 1, 1000, NULL,
         "timed passes of a search; the median counts; above 1 one untimed pass goes before"},
        {"device", BSW_OPTION_TEXT, &o->device, "auto|cpu|cuda|cuda:N", "auto", 0, 0, 0, NULL,
         "where to encode and search"},
        {"ties", BSW_OPTION_FLAG, &o->ties, NULL, NULL, 0, 0, 0, NULL,
         "recalls count ties, too: rows whose exact value equals that of the last true neighbour"},
        {"launcher", BSW_OPTION_TEXT, &o->launcher, "WORDS", NULL, 0, 0, 0, NULL,
         "start encode, search and groundtruth so, as 'deploy/run.sh -n 4' or 'mpirun -n 4 "
         "bitsweep'; "
         "deploy/run.sh -n 4 sweep does it by itself"},
        {"folder", BSW_OPTION_TEXT, &o->folder, "FOLDER", NULL, 1, 0, 0, NULL,
         "indexes, sweep.csv, sweep.json, plots, report.html"},
        {"force", BSW_OPTION_FLAG, &o->force, NULL, NULL, 0, 0, 0, NULL,
         "measure anew what the folder has"},
        {"resume", BSW_OPTION_FLAG, &o->resume, NULL, NULL, 0, 0, 0, NULL,
         "go on with the folder, also with more points; without one begin"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"sweep",
                                           "recall and speed over a grid of codes and searches",
                                           options, sizeof options / sizeof options[0]};
    return bsw_command_parse(transport, &table, &o->common, argc, argv, done, err);
}

// ---- the grid, the inputs ----

// The grid of the options, or those of the plan.
static enum bsw_status read_grids(struct sweep_job *job, struct bsw_error *err)
{
    struct bsw_sweep_grid grid;
    for (int axis = 0; axis < BSW_SWEEP_NUM_AXES; axis++)
        BSW_TRY(bsw_sweep_grid_set(&grid, (enum bsw_sweep_axis_kind)axis, "--",
                                   job->options.axes[axis], err));
    if (job->options.plan)
        return bsw_sweep_plan_read(job->options.plan, &grid, &job->grids, &job->num_grids, err);
    BSW_TRY(bsw_allocate(&job->grids, 1, sizeof grid, "grid", err));
    job->grids[0] = grid;
    job->num_grids = 1;
    return BSW_OK;
}

// The codes that an rbe model makes: not those of its name but of its shape.
static enum bsw_status open_model(struct sweep_job *job, struct bsw_error *err)
{
    struct bsw_rbe_model model;
    const char *path = job->options.model;
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

static enum bsw_status open_vectors(struct sweep_job *job, struct bsw_error *err)
{
    const struct sweep_options *o = &job->options;
    bsw_vectors *base = NULL, *queries = NULL;
    enum bsw_status status = bsw_vectors_open(o->base, BSW_ALL_ROWS, &base, err);
    if (status == BSW_OK) status = bsw_queries_open(o->queries, BSW_ALL_ROWS, &queries, err);
    if (status == BSW_OK) status = bsw_same_input_digest(base, &job->base_digest, err);
    if (status == BSW_OK) status = bsw_same_input_digest(queries, &job->query_digest, err);
    if (status == BSW_OK) status = bsw_metric_choose(o->metric, base, queries, &job->metric, err);
    if (status == BSW_OK) status = bsw_query_digest(queries, &job->queries_digest, err);
    if (status == BSW_OK) {
        job->num_rows = bsw_vectors_num_rows(base);
        job->num_queries = bsw_vectors_num_rows(queries);
        job->run.dims = bsw_vectors_dims(base);
        job->limits.num_rows = job->num_rows;
        job->limits.is_integer =
            bsw_vectors_type(base) == BSW_VECTOR_UINT8 || bsw_vectors_type(base) == BSW_VECTOR_INT8;
        job->run.metric = bsw_metric_name(job->metric);
        if (bsw_vectors_dims(queries) != job->run.dims)
            status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %u", o->queries,
                              bsw_vectors_dims(queries), o->base, job->run.dims);
    }
    bsw_vectors_close(&queries);
    bsw_vectors_close(&base);
    return status;
}

// A ground truth that says it is of something else is refused here, and not after the first search.
static enum bsw_status check_truth(const struct sweep_job *job, struct bsw_error *err)
{
    const struct bsw_sidecar searches = {.metric = bsw_metric_name(job->metric),
                                         .rows = job->num_rows,
                                         .has_first_query = 1,
                                         .queries_digest = job->queries_digest};
    struct bsw_sidecar truth;
    BSW_TRY(bsw_sidecar_read(job->options.groundtruth, &truth, err));
    return bsw_sidecar_compare(job->options.groundtruth, &truth, "the sweep", &searches, "", err);
}

static enum bsw_status open_truth(struct sweep_job *job, struct bsw_error *err)
{
    const char *path = job->options.groundtruth;
    struct bsw_results truth = {0};
    if (!path) {
        bsw_journal_field_text(&job->fields, "groundtruth", "computed");
        job->limits.truth_k = job->num_rows;
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
    if (truth.num_queries != job->num_queries)
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu queries, %s has %llu", path,
                          (unsigned long long)truth.num_queries, job->options.queries,
                          (unsigned long long)job->num_queries);
    bsw_results_deinit(&truth);
    return status == BSW_OK ? check_truth(job, err) : status;
}

// Whether it is a sweep that is at work in the folder, and not only what it started.
static int is_sweep_alive(int folder)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(folder, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// One sweep a folder. Its children have the lock, too: of a sweep that was killed a launcher may
// still be at taking its ranks along, which is waited for. A second lock is the sweep's alone.
static enum bsw_status lock_folder(struct sweep_job *job, struct bsw_error *err)
{
    struct flock own = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    double since = bsw_clock_seconds();
    job->lock = open(job->run.folder, O_RDONLY | O_DIRECTORY);
    while (job->lock >= 0 && flock(job->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        if (is_sweep_alive(job->lock) || bsw_clock_seconds() - since > LOCK_SECONDS)
            return bsw_fail(err, BSW_ERROR_USAGE, "%s: another sweep is at work there",
                            job->options.folder);
        usleep(50000);
    }
    job->own_lock = open(job->run.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (job->own_lock >= 0) fcntl(job->own_lock, F_OFD_SETLK, &own);
    return BSW_OK; // a file system without locks has none
}

static enum bsw_status open_folder(struct sweep_job *job, struct bsw_error *err)
{
    const char *path = job->options.folder;
    BSW_TRY(bsw_folder_create(path, err));
    char *absolute = realpath(path, NULL);
    if (!absolute || strlen(absolute) + 64 > BSW_PATH_BYTES) {
        free(absolute);
        return bsw_fail(err, BSW_ERROR_IO, "%s: cannot be used as a folder", path);
    }
    strcpy(job->run.folder, absolute);
    free(absolute);
    job->run.place.folder = job->run.folder;
    return lock_folder(job, err);
}

static void note_options(struct sweep_job *job)
{
    const struct sweep_options *o = &job->options;
    job->run.base = o->base;
    job->run.queries = o->queries;
    job->run.device = o->device;
    job->run.model = o->model;
    job->run.place.level = o->common.level_text;
    job->run.place.threads = o->common.threads;
    job->run.place.launched_threads = o->common.threads_are_given ? o->common.threads : 0;
    job->run.place.timeout = o->common.timeout;
    job->run.place.heartbeat = o->common.heartbeat;
    job->run.shards = o->shards;
    job->run.repeat = o->repeat;
    job->run.batch = o->batch;
    job->run.items = o->queue.items;
    job->run.queue_length = o->queue.length;
    job->run.counts_ties = o->ties;
    bsw_journal_field_text(&job->fields, "version", BITSWEEP_VERSION);
    bsw_journal_field_text(&job->fields, "metric", job->run.metric);
    bsw_journal_field_text(&job->fields, "recall-counts", bsw_sweep_recall_counts(&job->run));
    bsw_journal_field_text(&job->fields, "device", o->device);
    bsw_journal_field_text(&job->fields, "launcher", o->launcher ? o->launcher : "none");
    bsw_journal_field_text(&job->fields, "level", o->common.level_text);
    bsw_journal_field_count(&job->fields, "threads", o->common.threads);
    bsw_journal_field_count(&job->fields, "shards", o->shards);
    bsw_journal_field_count(&job->fields, "repeat", o->repeat);
    bsw_journal_field_count(&job->fields, "batch", o->batch);
    bsw_journal_field_count(&job->fields, "items", o->queue.items);
    bsw_journal_field_count(&job->fields, "queue-length", o->queue.length);
}

// ---- the journal: {"kind": "index", "name": "saq-3", "facts": {...}} ----

static json_t *objects_of(struct sweep_job *job, const char *kind)
{
    return strcmp(kind, "groundtruth") == 0 ? job->truths
           : strcmp(kind, "index") == 0     ? job->indexes
           : strcmp(kind, "point") == 0     ? job->rows
                                            : NULL;
}

static enum bsw_status replay(void *context, const void *payload, size_t bytes,
                              struct bsw_error *err)
{
    struct sweep_job *job = context;
    const char *kind, *name;
    json_t *facts, *record = json_loadb(payload, bytes, 0, NULL);
    enum bsw_status status = BSW_OK;
    json_t *objects = NULL;
    if (json_unpack(record, "{s:s, s:s, s:o}", "kind", &kind, "name", &name, "facts", &facts) == 0)
        objects = objects_of(job, kind);
    if (objects && json_is_object(facts))
        json_object_set(objects, name, facts);
    else
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "sweep.journal: a record of another kind");
    json_decref(record);
    return status;
}

// Takes the reference to facts.
static enum bsw_status record(struct sweep_job *job, const char *kind, const char *name,
                              json_t *facts, struct bsw_error *err)
{
    json_object_set(objects_of(job, kind), name, facts);
    json_t *entry = json_pack("{s:s, s:s, s:o}", "kind", kind, "name", name, "facts", facts);
    char *text = json_dumps(entry, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(entry);
    if (!text) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for a record");
    enum bsw_status status = bsw_journal_append(job->journal, text, strlen(text), err);
    free(text);
    if (status == BSW_OK) status = bsw_journal_commit(job->journal, err);
    return status;
}

static enum bsw_status count_point(void *context, const void *payload, size_t bytes,
                                   struct bsw_error *err)
{
    const char *kind = "";
    json_t *record = json_loadb(payload, bytes, 0, NULL);
    json_unpack(record, "{s:s}", "kind", &kind);
    *(uint64_t *)context += strcmp(kind, "point") == 0;
    json_decref(record);
    (void)err;
    return BSW_OK;
}

// A folder that has a sweep, of any inputs: whether it came to its end, and what may be done.
static enum bsw_status refuse_sweep(const struct sweep_job *job, const char *path,
                                    struct bsw_error *err)
{
    struct bsw_buffer file = {0};
    struct bsw_journal_facts facts;
    uint64_t points = 0;
    char status_path[BSW_PATH_BYTES + 16];
    const char *word = "";
    enum bsw_status status = bsw_file_read_all(path, BSW_JOURNAL_MAX_BYTES, &file, err);
    if (status == BSW_OK)
        status =
            bsw_journal_parse(path, file.data, file.bytes, NULL, count_point, &points, &facts, err);
    bsw_buffer_deinit(&file);
    BSW_TRY(status);
    snprintf(status_path, sizeof status_path, "%s.STATUS.json", job->run.folder);
    json_t *said = json_load_file(status_path, 0, NULL);
    json_unpack(said, "{s:s}", "status", &word);
    int is_finished = strcmp(word, "complete") == 0;
    json_decref(said);
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: has %s sweep, of %llu points: --resume measures what of this grid is not "
                    "among them, --force all anew",
                    job->options.folder, is_finished ? "a finished" : "an unfinished",
                    (unsigned long long)points);
}

static enum bsw_status open_journal(struct sweep_job *job, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    const struct sweep_options *o = &job->options;
    BSW_TRY(bsw_path_join(path, job->run.folder, "sweep.journal", err));
    if (!o->force && !o->resume && bsw_file_exists(path)) return refuse_sweep(job, path, err);
    const struct bsw_journal_options options = {.path = path,
                                                .mode = bsw_journal_mode_of(o->force, o->resume),
                                                .fields = &job->fields,
                                                .replay = replay,
                                                .replay_context = job};
    return bsw_journal_open(&options, &job->journal, err);
}

// ---- running ----

// What a step, or a file that was being replaced, left when it was killed. The folder may have
// files of others.
static int is_left_over(const char *name)
{
    static const char *const steps[] = {"step.out", "step.err", "step.result"};
    static const char *const made[] = {"sweep.", "sweep-", "report.html", "groundtruth", "index-"};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strncmp(name, steps[i], strlen(steps[i])) == 0) return 1;
    }
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        if (strncmp(name, made[i], strlen(made[i])) == 0) return strstr(name, ".tmp.") != NULL;
    }
    return 0;
}

static int is_made(const char *name)
{
    static const char *const made[] = {"sweep.journal", "sweep.csv", "sweep.json", "sweep.gnuplot",
                                       "report.html"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        if (strcmp(name, made[i]) == 0) return 1;
    }
    for (size_t i = 0; i < sizeof bsw_sweep_plots / sizeof bsw_sweep_plots[0]; i++) {
        size_t length = strlen(bsw_sweep_plots[i]);
        if (strncmp(name, bsw_sweep_plots[i], length) == 0 && name[length] == '.') return 1;
    }
    return is_left_over(name);
}

static enum bsw_status check_files(const struct sweep_job *job, struct bsw_error *err)
{
    const struct sweep_options *o = &job->options;
    const struct bsw_command_files files = {
        .inputs = {o->base, o->queries, o->groundtruth, o->plan, o->model},
        .outputs = {o->groundtruth ? NULL : job->run.truth},
        .is_result = 1,
        .folder = job->run.folder,
        .is_made = is_made};
    return bsw_command_files_check(&files, err);
}

static enum bsw_status prepare(struct sweep_job *job, struct bsw_error *err)
{
    if (strcmp(job->options.common.pin, "none") != 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "--pin: a sweep's threads are those of its steps");
    BSW_TRY(read_grids(job, err));
    BSW_TRY(bsw_launcher_split(job->options.launcher, &job->run.place.launcher, err));
    BSW_TRY(open_vectors(job, err));
    note_options(job);
    BSW_TRY(open_model(job, err));
    bsw_journal_field_digest(&job->fields, "base", job->base_digest);
    bsw_journal_field_digest(&job->fields, "queries", job->query_digest);
    BSW_TRY(open_folder(job, err));
    BSW_TRY(open_truth(job, err));
    BSW_TRY(check_files(job, err));
    job->limits.is_cosine = job->metric == BSW_METRIC_COSINE;
    BSW_TRY(bsw_sweep_grids_expand(job->grids, job->num_grids, &job->limits, &job->points, err));
    for (size_t i = 0; i < job->points.num_points; i++) {
        if (job->points.points[i].k > job->max_k) job->max_k = job->points.points[i].k;
    }
    return open_journal(job, err);
}

static enum bsw_status ensure_truth(struct sweep_job *job, struct bsw_error *err)
{
    const json_t *known = json_object_get(job->truths, "groundtruth");
    json_t *facts;
    if (job->options.groundtruth) return BSW_OK;
    if (known && (uint64_t)json_integer_value(json_object_get(known, "k")) >= job->max_k &&
        bsw_file_exists(job->run.truth))
        return BSW_OK;
    BSW_TRY(bsw_sweep_make_truth(&job->run, job->max_k, &facts, err));
    return record(job, "groundtruth", "groundtruth", facts, err);
}

static enum bsw_status ensure_index(struct sweep_job *job, const struct bsw_sweep_point *point,
                                    const json_t **out, struct bsw_error *err)
{
    char name[BSW_SWEEP_NAME_BYTES];
    json_t *facts;
    bsw_sweep_index_name(point, name);
    if (!json_object_get(job->indexes, name) || !bsw_sweep_has_index(&job->run, point)) {
        BSW_TRY(bsw_sweep_make_index(&job->run, point, &facts, err));
        BSW_TRY(record(job, "index", name, facts, err));
    }
    *out = json_object_get(job->indexes, name);
    return BSW_OK;
}

static void print_row(const struct sweep_job *job, const char *name, const json_t *row)
{
    static const char *const numbers[] = {"recall", "loss_code", "loss_selection",
                                          "loss_refinement"};
    if (job->options.common.json || job->options.common.quiet) return;
    printf("%-34s %5.4g", name, json_number_value(json_object_get(row, "true_bits")));
    for (int i = 0; i < 4; i++)
        printf(" %9.4f", json_number_value(json_object_get(row, numbers[i])));
    printf(" %10.0f %8.4g\n", json_number_value(json_object_get(row, "qps")),
           json_number_value(json_object_get(row, "bytes_per_vector")));
    fflush(stdout);
}

static enum bsw_status run_point(struct sweep_job *job, const struct bsw_sweep_point *point,
                                 struct bsw_error *err)
{
    char name[BSW_SWEEP_NAME_BYTES];
    const json_t *index;
    json_t *row;
    bsw_sweep_point_name(point, name);
    if (json_object_get(job->rows, name)) {
        job->num_resumed++;
    } else {
        if (bsw_stop_is_asked()) return bsw_stop_fail(err);
        BSW_TRY(ensure_index(job, point, &index, err));
        BSW_TRY(bsw_sweep_measure(&job->run, point, index, job->rows, &row, err));
        BSW_TRY(record(job, "point", name, row, err));
        BSW_TRY(bsw_sweep_write_csv(job->run.folder, job->rows, err));
    }
    print_row(job, name, json_object_get(job->rows, name));
    return BSW_OK;
}

static enum bsw_status remove_step_files(const struct sweep_job *job, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    const struct dirent *entry;
    enum bsw_status status = BSW_OK;
    DIR *folder = opendir(job->run.folder);
    if (!folder) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot list it", job->run.folder);
    while (status == BSW_OK && (entry = readdir(folder)) != NULL) {
        if (!is_left_over(entry->d_name)) continue;
        status = bsw_path_join(path, job->run.folder, entry->d_name, err);
        if (status == BSW_OK) status = bsw_file_remove(path, err);
    }
    closedir(folder);
    return status;
}

static enum bsw_status run(struct sweep_job *job, struct bsw_error *err)
{
    size_t total = job->points.num_points;
    if (total == 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "no point of the grid is possible: %s",
                        job->points.skips[0].reason);
    if (!job->options.common.json && !job->options.common.quiet)
        printf("%-34s %5s %9s %9s %9s %9s %10s %8s\n", "point", "bits", "recall", "code",
               "selection", "refining", "queries/s", "B/vector");
    bsw_run_status_count(0, total);
    // A forced run's table must not be of another corpus until its first point is done.
    BSW_TRY(bsw_sweep_write_csv(job->run.folder, job->rows, err));
    BSW_TRY(ensure_truth(job, err));
    for (size_t i = 0; i < total; i++) {
        BSW_TRY(run_point(job, &job->points.points[i], err));
        bsw_run_status_count(i + 1, total);
    }
    return remove_step_files(job, err);
}

static enum bsw_status sweep(struct sweep_job *job, int argc, char **argv, struct bsw_error *err)
{
    BSW_TRY(prepare(job, err));
    bsw_run_status_set_output(job->run.folder, "points");
    struct bsw_sweep_report report = {.run = &job->run,
                                      .points = &job->points,
                                      .rows = job->rows,
                                      .num_rows = job->num_rows,
                                      .num_queries = job->num_queries,
                                      .launcher = job->options.launcher,
                                      .truth_is_computed = !job->options.groundtruth,
                                      .num_arguments = argc,
                                      .arguments = argv};
    bsw_stop_begin(NULL, NULL);
    enum bsw_status status = run(job, err);
    if (status == BSW_OK) status = bsw_sweep_report_write(&report, err);
    bsw_stop_end();
    BSW_TRY(status);
    if (job->options.common.json) {
        bsw_print_json(json_incref(report.json));
    } else if (!job->options.common.quiet) {
        for (size_t i = 0; i < job->points.num_skips; i++)
            printf("%llu points left out: %s\n",
                   (unsigned long long)job->points.skips[i].num_points,
                   job->points.skips[i].reason);
        printf("%zu points, %llu of them from before: %s/report.html, sweep.csv, sweep.json%s\n",
               job->points.num_points, (unsigned long long)job->num_resumed, job->options.folder,
               report.has_plots ? ", plots" : "; gnuplot is missing: no plots");
    }
    json_decref(report.json);
    return BSW_OK;
}

enum bsw_status bsw_command_sweep(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err)
{
    struct sweep_job job = {.lock = -1, .own_lock = -1};
    int done;
    BSW_TRY(parse(transport, &job.options, argc, argv, &done, err));
    if (done) return BSW_OK;
    if (transport->num_ranks > 1)
        return bsw_fail(
            err, BSW_ERROR_USAGE,
            "sweep is one process that starts the others: deploy/run.sh, or --launcher");
    job.truths = json_object();
    job.indexes = json_object();
    job.rows = json_object();
    enum bsw_status status = sweep(&job, argc, argv, err);
    bsw_journal_close(&job.journal);
    bsw_sweep_points_deinit(&job.points);
    bsw_free(&job.grids);
    bsw_file_close(&job.own_lock);
    bsw_file_close(&job.lock);
    json_decref(job.truths);
    json_decref(job.indexes);
    json_decref(job.rows);
    return status;
}
