// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/encode_training.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/files/list_order.h"
#include "common/rows/vectors.h"
#include "coordinator/job/different_rows.h"
#include "coordinator/job/job_events.h"
#include "coordinator/search/search.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/sample.h"
#include "shard/lists/list_assignment.h"

// A sample of residuals finds its rows' centroids.
static enum bsw_status open_assigner(const struct bsw_encode_training *training,
                                     const struct bsw_manifest *manifest, struct bsw_sample *sample,
                                     struct bsw_error *err)
{
    if (!manifest->lists.is_residual) return BSW_OK;
    sample->centroids = manifest->lists.centroids;
    return bsw_list_assigner_open_lists(manifest, bsw_vectors_type(training->vectors),
                                        bsw_vectors_dims(training->vectors), training->level,
                                        &sample->assigner, err);
}

// A pass over the sample then gives rows as they are again.
static enum bsw_status train(const struct bsw_encode_training *training, struct bsw_sample *sample,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    enum bsw_status status = open_assigner(training, manifest, sample, err);
    if (status == BSW_OK)
        status = manifest->codec->table->train(training->code, bsw_vectors_dims(training->vectors),
                                               sample, training->model, manifest, err);
    bsw_list_assigner_close(&sample->assigner);
    sample->centroids = sample->mean = NULL;
    return status;
}

// Trains both kinds; recalls [2]: of codes of rows, of residuals.
static enum bsw_status try_both(const struct bsw_encode_training *training,
                                struct bsw_sample *sample, const struct bsw_code_recall *measure,
                                struct bsw_manifest *kinds, double *recalls, struct bsw_error *err)
{
    for (int kind = 0; kind < 2; kind++) {
        kinds[kind].lists.is_residual = kind;
        BSW_TRY(train(training, sample, &kinds[kind], err));
        BSW_TRY(bsw_code_recall_of(measure, &kinds[kind], BSW_CODE_RECALL_K, &recalls[kind], err));
    }
    return BSW_OK;
}

static enum bsw_status choose(const struct bsw_encode_training *training, struct bsw_sample *sample,
                              const struct bsw_code_recall *measure, struct bsw_manifest *manifest,
                              struct bsw_error *err)
{
    struct bsw_manifest kinds[2] = {*manifest, *manifest};
    double recalls[2] = {0};
    enum bsw_status status = try_both(training, sample, measure, kinds, recalls, err);
    int best = recalls[1] >= recalls[0] + BSW_RESIDUAL_MARGIN;
    if (status == BSW_OK) {
        *manifest = kinds[best];
        manifest->lists.plain_recall = recalls[0];
        manifest->lists.residual_recall = recalls[1];
        kinds[best].part = NULL;
    }
    for (int kind = 0; kind < 2; kind++) manifest->codec->free_part(kinds[kind].part);
    return status;
}

// Trains another way and measures it; it stays where it is better.
static enum bsw_status try_other(const struct bsw_encode_training *training,
                                 struct bsw_sample *sample, const struct bsw_code_recall *measure,
                                 struct bsw_manifest *best, struct bsw_error *err)
{
    struct bsw_manifest other = *best;
    other.part = NULL;
    other.row_dims = other.code_rule = 0;
    enum bsw_status status = train(training, sample, &other, err);
    if (status == BSW_OK) status = bsw_code_check_set(measure, &sample->far, &other, err);
    if (status == BSW_OK && other.check.recall >= best->check.recall + BSW_VARIANT_MARGIN) {
        struct bsw_manifest before = *best;
        *best = other;
        other = before;
    }
    if (other.codec->free_part) other.codec->free_part(other.part);
    return status;
}

// Where codes of the sample are poor, other ways to train are tried.
static enum bsw_status check(const struct bsw_encode_training *training, struct bsw_sample *sample,
                             const struct bsw_code_recall *measure, struct bsw_manifest *manifest,
                             struct bsw_error *err)
{
    struct bsw_codec_settings code = *training->code;
    struct bsw_encode_training other = *training;
    const struct bsw_codec_table *table = manifest->codec->table;
    other.code = &code;
    BSW_TRY(bsw_code_check_set(measure, &sample->far, manifest, err));
    while (bsw_code_check_is_low(&manifest->check) && table->vary && table->vary(&code))
        BSW_TRY(try_other(&other, sample, measure, manifest, err));
    return BSW_OK;
}

static enum bsw_status begin(const struct bsw_encode_training *training,
                             const struct bsw_manifest *manifest, struct bsw_sample *sample,
                             struct bsw_code_recall *measure, struct bsw_error *err)
{
    int may_be_residual = training->chooses_residuals || manifest->lists.is_residual;
    sample->progress = training->progress;
    BSW_TRY(bsw_sample_leave_out(sample, err));
    if (manifest->codec->table->keeps_far_rows) bsw_sample_keep_many(sample);
    if (!training->checks_codes && !training->chooses_residuals) return BSW_OK;
    return bsw_code_recall_init(measure, training->vectors, manifest, may_be_residual,
                                training->level, training->progress, err);
}

enum bsw_status bsw_encode_train(const struct bsw_encode_training *training,
                                 struct bsw_manifest *manifest, struct bsw_error *err)
{
    struct bsw_sample sample;
    struct bsw_code_recall measure = {0};
    if (!manifest->codec->table->needs_sample)
        return manifest->codec->table->train(training->code, bsw_vectors_dims(training->vectors),
                                             NULL, training->model, manifest, err);
    BSW_TRY(bsw_sample_create(training->vectors, manifest->metric, training->level, &sample, err));
    enum bsw_status status = begin(training, manifest, &sample, &measure, err);
    int is_measured = measure.num_queries > 0;
    if (status == BSW_OK)
        status = training->chooses_residuals && is_measured
                     ? choose(training, &sample, &measure, manifest, err)
                     : train(training, &sample, manifest, err);
    if (status == BSW_OK && training->checks_codes && is_measured)
        status = check(training, &sample, &measure, manifest, err);
    bsw_code_recall_deinit(&measure);
    bsw_sample_deinit(&sample);
    return status;
}

// ---- what codes find ----

#define MOST_ROWS    8192
#define MOST_WORK    ((uint64_t)20000000000) // rows * dims * dims, but 1000 rows
#define MOST_QUERIES BSW_CODE_RECALL_MOST_QUERIES
#define LEAST_ROWS   200
#define LEAST_LISTS  64
#define LIST_SEED    0x7265636du
#define LANES        8
#define ROWS_NAME    BSW_MEMORY_PREFIX "rows of the sample"
#define QUERIES_NAME BSW_MEMORY_PREFIX "queries of the sample"

enum { K = BSW_CODE_RECALL_K };

void bsw_code_recall_deinit(struct bsw_code_recall *measure)
{
    bsw_free(&measure->rows);
    bsw_free(&measure->queries);
    bsw_free(&measure->lists);
}

// ---- rows ----

// What a pass over the sample takes rows by.
struct choice {
    struct bsw_sample sample;
    bsw_list_assigner *assigner; // of rows with their factors; NULL: there are no lists
    struct bsw_different_rows different;
    uint32_t num_lists;
    size_t most;
    uint64_t place;
};

// All rows of some lists, which have their neighbours about them as in the index; of few lists rows
// from everywhere.
static int is_taken(const struct choice *choice, uint64_t place, uint32_t list)
{
    uint64_t rows = choice->sample.num_rows, most = choice->most;
    if (list == BSW_NO_LIST) return 0;
    if (rows <= most) return 1;
    if (choice->num_lists >= LEAST_LISTS) return bsw_hash2(LIST_SEED, list) % rows < most;
    return bsw_part_first(most, place, rows) != bsw_part_first(most, place + 1, rows);
}

static enum bsw_status take_tile(struct bsw_code_recall *measure, struct choice *choice,
                                 const float *rows, const float *factors, size_t num,
                                 struct bsw_error *err)
{
    uint32_t lists[BSW_SAMPLE_TILE] = {0}, dims = measure->dims;
    float *tile = measure->rows + measure->num_rows * dims; // the first of which stay
    for (size_t i = 0; i < num * dims; i++) tile[i] = rows[i] * factors[i / dims];
    const struct bsw_list_assignment assignment = {.rows = tile, .num_rows = num, .lists = lists};
    if (choice->assigner) BSW_TRY(bsw_list_assigner_assign(choice->assigner, &assignment, err));
    for (size_t r = 0; r < num && measure->num_rows < choice->most; r++) {
        float *to = measure->rows + measure->num_rows * dims;
        if (!is_taken(choice, choice->place++, lists[r])) continue;
        if (!bsw_different_rows_add(&choice->different, BSW_VECTOR_FLOAT32, tile + r * dims)) {
            measure->num_copies++;
            continue;
        }
        memmove(to, tile + r * dims, dims * sizeof *to);
        measure->lists[measure->num_rows++] = lists[r];
    }
    return BSW_OK;
}

static enum bsw_status take_rows(struct bsw_code_recall *measure, struct choice *choice,
                                 struct bsw_error *err)
{
    bsw_sample_rewind(&choice->sample, "rows that codes are measured by");
    for (;;) {
        const float *rows;
        float factors[BSW_SAMPLE_TILE];
        size_t num;
        BSW_TRY(bsw_sample_next(&choice->sample, &rows, factors, &num, err));
        if (num == 0) return BSW_OK;
        BSW_TRY(take_tile(measure, choice, rows, factors, num, err));
    }
}

// All good rows may be chosen, those that lie far out too.
static enum bsw_status choose_rows(struct bsw_code_recall *measure, const bsw_vectors *vectors,
                                   const struct bsw_manifest *manifest, struct choice *choice,
                                   struct bsw_progress *progress, struct bsw_error *err)
{
    BSW_TRY(bsw_sample_create(vectors, measure->metric, measure->level, &choice->sample, err));
    choice->sample.progress = progress;
    enum bsw_status status = bsw_different_rows_init(
        &choice->different, measure->metric, measure->level, measure->dims, choice->most, err);
    if (status == BSW_OK && choice->num_lists > 0)
        status = bsw_list_assigner_open_lists(manifest, BSW_VECTOR_FLOAT32, measure->dims,
                                              measure->level, &choice->assigner, err);
    if (status == BSW_OK) status = take_rows(measure, choice, err);
    bsw_list_assigner_close(&choice->assigner);
    bsw_different_rows_deinit(&choice->different);
    bsw_sample_deinit(&choice->sample);
    return status;
}

// ---- true neighbours ----

static size_t row_of_query(const struct bsw_code_recall *measure, size_t query)
{
    return (size_t)bsw_part_first(measure->num_rows, query, measure->num_queries);
}

// In lanes, so that the compiler takes several at once.
static double exact_key(const struct bsw_code_recall *measure, const float *query, size_t place)
{
    double sums[LANES] = {0}, sum = 0;
    const float *row = measure->rows + place * measure->dims;
    int is_l2 = bsw_has_row_norms(measure->metric);
    for (uint32_t first = 0; first < measure->dims; first += LANES) {
        uint32_t num = measure->dims - first < LANES ? measure->dims - first : LANES;
        for (uint32_t i = 0; i < num; i++) {
            double x = query[first + i], y = row[first + i];
            sums[i] += is_l2 ? -(x - y) * (x - y) : x * y;
        }
    }
    for (uint32_t i = 0; i < LANES; i++) sum += sums[i];
    return sum;
}

// The key of the K-th best row of a query but for itself.
static double find_limit(const struct bsw_code_recall *measure, size_t query)
{
    size_t own = row_of_query(measure, query);
    double best[K];
    for (int i = 0; i < K; i++) best[i] = -INFINITY;
    for (size_t row = 0; row < measure->num_rows; row++) {
        if (row == own) continue;
        double key = exact_key(measure, measure->queries + query * measure->dims, row);
        int place = K;
        for (; place > 0 && best[place - 1] < key; place--)
            if (place < K) best[place] = best[place - 1];
        if (place < K) best[place] = key;
    }
    return best[K - 1];
}

// Queries are rows, which are left out of their own answers.
static void take_queries(struct bsw_code_recall *measure)
{
    uint32_t dims = measure->dims;
    if (measure->num_rows < LEAST_ROWS) return;
    measure->num_queries = MOST_QUERIES;
#pragma omp parallel for schedule(dynamic)
    for (size_t q = 0; q < measure->num_queries; q++) {
        memcpy(measure->queries + q * dims, measure->rows + row_of_query(measure, q) * dims,
               dims * sizeof *measure->queries);
        measure->limits[q] = find_limit(measure, q);
    }
}

_Static_assert(MOST_QUERIES <= LEAST_ROWS, "every query is a row of its own");

enum bsw_status bsw_code_recall_init(struct bsw_code_recall *measure, const bsw_vectors *vectors,
                                     const struct bsw_manifest *manifest, int has_lists,
                                     enum bsw_cpu_level level, struct bsw_progress *progress,
                                     struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(vectors);
    uint64_t most = MOST_WORK / ((uint64_t)dims * dims);
    struct choice choice = {.num_lists = has_lists ? manifest->lists.count : 0};
    choice.most = most < 1000 ? 1000 : most < MOST_ROWS ? (size_t)most : MOST_ROWS;
    *measure = (struct bsw_code_recall){.metric = manifest->metric, .level = level, .dims = dims};
    BSW_TRY(bsw_allocate(&measure->rows, choice.most + BSW_SAMPLE_TILE, dims * sizeof(float),
                         "sample", err));
    BSW_TRY(bsw_allocate(&measure->queries, MOST_QUERIES, dims * sizeof(float), "sample", err));
    BSW_TRY(bsw_allocate(&measure->lists, choice.most, sizeof *measure->lists, "sample", err));
    BSW_TRY(choose_rows(measure, vectors, manifest, &choice, progress, err));
    take_queries(measure);
    return BSW_OK;
}

// ---- the search ----

// An index of the rows alone, in memory. Arrays are borrowed but for its shards.
static enum bsw_status make_small(const struct bsw_code_recall *measure,
                                  const struct bsw_manifest *manifest, struct bsw_manifest *small,
                                  struct bsw_error *err)
{
    *small = *manifest;
    small->first_row = 0;
    small->num_rows = small->source_rows = measure->num_rows;
    small->dropped_rows = 0;
    small->num_known = 0;
    small->known = NULL;
    small->num_shards = 0;
    small->shards = NULL;
    small->calibration = (struct bsw_calibration){0};
    small->source_is_copied = 0;
    small->source_type = BSW_VECTOR_FLOAT32;
    snprintf(small->source_path, sizeof small->source_path, "%s", ROWS_NAME);
    small->lists.has_ordered_vectors = 0;
    if (!small->lists.is_residual) small->lists = (struct bsw_manifest_lists){0};
    BSW_TRY(bsw_manifest_cut_shards(small, 1, err));
    if (small->lists.count == 0) return BSW_OK;
    return bsw_list_order_count(measure->lists, measure->num_rows, small->lists.count,
                                &small->shards[0].num_places, err);
}

static enum bsw_status search(const struct bsw_code_recall *measure,
                              const struct bsw_manifest *small, uint32_t k,
                              struct bsw_results *found, struct bsw_error *err)
{
    struct bsw_transport alone = {0};
    struct bsw_search search = {0};
    const struct bsw_search_sink sink = {.answers = bsw_memory_sink(found)};
    const struct bsw_search_run run = {
        .queries = QUERIES_NAME, .query_rows = BSW_ALL_ROWS, .repeat = 1, .sink = &sink};
    const struct bsw_search_options options = {
        .manifest = small,
        .request = {.k = k,
                    .oversample = 1,
                    .refine = BSW_REFINE_NONE,
                    .batch = MOST_QUERIES,
                    .probe = small->lists.count > 0 ? BSW_PROBE_ALL : 0,
                    .merge = BSW_MERGE_GATHER,
                    .level = measure->level,
                    .num_threads = omp_get_max_threads()},
        .device.text = "cpu",
        .overlap = BSW_OVERLAP_OFF,
        .is_unchecked = 1};
    bsw_transport_local_init(&alone);
    enum bsw_status status = bsw_search_open(&search, &alone, &options, err);
    if (status == BSW_OK) status = bsw_search_run(&search, &run, err);
    bsw_search_close(&search);
    bsw_transport_close(&alone, 0);
    return status;
}

static enum bsw_status search_rows(const struct bsw_code_recall *measure,
                                   const struct bsw_manifest *small, uint32_t k,
                                   struct bsw_results *found, struct bsw_error *err)
{
    struct bsw_memory_rows rows = {.name = ROWS_NAME,
                                   .numbers = measure->rows,
                                   .type = BSW_VECTOR_FLOAT32,
                                   .dims = measure->dims,
                                   .num_rows = measure->num_rows},
                           queries = rows;
    queries.name = QUERIES_NAME;
    queries.numbers = measure->queries;
    queries.num_rows = measure->num_queries;
    BSW_TRY(bsw_memory_rows_lend(&rows, err));
    enum bsw_status status = bsw_memory_rows_lend(&queries, err);
    if (status == BSW_OK) status = search(measure, small, k, found, err);
    bsw_memory_rows_take_back(&queries);
    bsw_memory_rows_take_back(&rows);
    return status;
}

static uint32_t count_found(const struct bsw_code_recall *measure, const struct bsw_results *answer,
                            size_t query, uint32_t candidates)
{
    const int64_t *ids = answer->ids + query * answer->k;
    size_t own = row_of_query(measure, query);
    uint32_t num = 0, found = 0;
    for (size_t i = 0; i < answer->k && num < candidates; i++) {
        if (ids[i] < 0 || (size_t)ids[i] == own) continue;
        found += exact_key(measure, measure->queries + query * measure->dims, (size_t)ids[i]) >=
                 measure->limits[query];
        num++;
    }
    return found < K ? found : K;
}

enum bsw_status bsw_code_recall_of(const struct bsw_code_recall *measure,
                                   const struct bsw_manifest *manifest, uint32_t candidates,
                                   double *out, struct bsw_error *err)
{
    struct bsw_manifest small;
    struct bsw_results answer = {0};
    uint64_t found = 0;
    enum bsw_status status = make_small(measure, manifest, &small, err);
    if (status == BSW_OK) status = search_rows(measure, &small, candidates + 1, &answer, err);
    if (status == BSW_OK) {
        for (size_t q = 0; q < measure->num_queries; q++)
            found += count_found(measure, &answer, q, candidates);
        *out = (double)found / (double)(measure->num_queries * K);
    }
    bsw_free(&small.shards);
    bsw_results_deinit(&answer);
    return status;
}

// ---- whether codes are good enough --------------------------------------------------------------

#define FEW_DIFFERENT  0.1  // of rows
#define TIGHT_DISTANCE 1e-3 // of neighbours, squared, to that of rows from their mean

_Static_assert(BSW_CODE_RECALL_K == BSW_CODE_CHECK_K, "the recall is what a manifest says it is");

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Whether rows lie in groups that are small beside the distances between them; known of l2 alone.
static int is_tight(const struct bsw_code_recall *measure)
{
    double square = 0, limits[BSW_CODE_RECALL_MOST_QUERIES];
    double *mean;
    size_t dims = measure->dims, rows = measure->num_rows;
    if (!bsw_has_row_norms(measure->metric)) return 0;
    if (bsw_allocate_zero(&mean, dims, sizeof *mean, "sample", NULL) != BSW_OK) return 0;
    for (size_t i = 0; i < rows * dims; i++)
        mean[i % dims] += (double)measure->rows[i] / (double)rows;
    for (size_t i = 0; i < rows * dims; i++) {
        double x = (double)measure->rows[i] - mean[i % dims];
        square += x * x / (double)rows;
    }
    bsw_free(&mean);
    memcpy(limits, measure->limits, sizeof limits);
    qsort(limits, measure->num_queries, sizeof *limits, compare);
    return -limits[measure->num_queries / 2] < TIGHT_DISTANCE * square;
}

static void say_far(const struct bsw_sample_far *far, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "%llu of %llu rows of the sample lie far from the others (row %llu: %.3g times as far "
             "as nine in ten)%s",
             (unsigned long long)far->num_rows, (unsigned long long)far->num_good,
             (unsigned long long)far->row, far->ratio,
             far->is_kept ? "" : "; codes fit the others");
}

static void find_cause(const struct bsw_code_recall *measure, const struct bsw_sample_far *far,
                       const struct bsw_codec *codec, struct bsw_code_check *check)
{
    size_t rows = measure->num_rows + measure->num_copies;
    if (far->num_rows > 0) say_far(far, check->cause, sizeof check->cause);
    if (!bsw_code_check_is_low(check) || check->cause[0]) return;
    if ((double)measure->num_rows < FEW_DIFFERENT * (double)rows)
        snprintf(check->cause, sizeof check->cause,
                 "only %zu of %zu rows of the sample are distinct: without copies codes fit the "
                 "others better",
                 measure->num_rows, rows);
    else if (is_tight(measure))
        snprintf(
            check->cause, sizeof check->cause,
            "rows lie in tight groups far from each other, and these bits do not reach into the "
            "groups: --codec pq with --lists does");
    else
        snprintf(check->cause, sizeof check->cause,
                 "too few bits to tell these rows apart: give more --bits%s, or search with more "
                 "--oversample",
                 codec->has_tables ? " or --subspaces" : ", try --codec pq");
}

enum bsw_status bsw_code_check_set(const struct bsw_code_recall *measure,
                                   const struct bsw_sample_far *far, struct bsw_manifest *manifest,
                                   struct bsw_error *err)
{
    struct bsw_code_check *check = &manifest->check;
    double recall;
    *check = (struct bsw_code_check){0};
    enum bsw_status status =
        bsw_code_recall_of(measure, manifest, BSW_CODE_CHECK_CANDIDATES, &recall, err);
    if (status != BSW_OK) return bsw_prefix(err, status, "check of the codes: ");
    check->recall = recall;
    check->num_queries = (uint32_t)measure->num_queries;
    check->num_rows = (uint32_t)measure->num_rows;
    find_cause(measure, far, manifest->codec, check);
    return BSW_OK;
}

// ---- codes that were trained by other rows ------------------------------------------------------

enum bsw_status bsw_code_check_frame(const struct bsw_encode_training *training,
                                     struct bsw_manifest *manifest, struct bsw_error *err)
{
    struct bsw_code_recall measure;
    if (!manifest->codec->table->needs_sample) return BSW_OK; // which is not checked by encode
    enum bsw_status status =
        bsw_code_recall_init(&measure, training->vectors, manifest, manifest->lists.is_residual,
                             training->level, training->progress, err);
    if (status == BSW_OK && measure.num_queries > 0) {
        status = bsw_code_check_set(&measure, &(struct bsw_sample_far){0}, manifest, err);
        manifest->check.cause[0] = '\0';
    }
    bsw_code_recall_deinit(&measure);
    return status;
}

static enum bsw_status check_frame_rows(const struct bsw_manifest *frame,
                                        const bsw_vectors *vectors, struct bsw_error *err)
{
    if (bsw_vectors_type(vectors) != frame->source_type)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: has %s rows, the index %s: convert them first",
                        bsw_vectors_name(vectors), bsw_vector_type_name(bsw_vectors_type(vectors)),
                        bsw_vector_type_name(frame->source_type));
    if (bsw_vectors_dims(vectors) != bsw_manifest_row_dims(frame))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: has %u dims, the index %u",
                        bsw_vectors_name(vectors), bsw_vectors_dims(vectors),
                        bsw_manifest_row_dims(frame));
    return BSW_OK;
}

enum bsw_status bsw_encode_take_frame(const struct bsw_manifest *frame, const bsw_vectors *vectors,
                                      struct bsw_manifest *manifest, struct bsw_error *err)
{
    struct bsw_buffer packed = {0};
    BSW_TRY(check_frame_rows(frame, vectors, err));
    enum bsw_status status = bsw_manifest_pack(frame, &packed, err);
    if (status == BSW_OK)
        status = bsw_manifest_parse("the manifest of the index", packed.data, packed.bytes,
                                    manifest, err);
    bsw_buffer_deinit(&packed);
    BSW_TRY(status);
    bsw_free(&manifest->shards);
    bsw_free(&manifest->known);
    bsw_free(&manifest->parts);
    bsw_calibration_deinit(&manifest->calibration);
    manifest->calibration = (struct bsw_calibration){0};
    manifest->check = (struct bsw_code_check){0};
    manifest->num_shards = manifest->num_known = manifest->num_parts = 0;
    manifest->generation = manifest->build_digest = manifest->source_digest = 0;
    manifest->dropped_rows = manifest->ids_digest = 0;
    manifest->lists.has_ordered_vectors = 0;
    return BSW_OK;
}
