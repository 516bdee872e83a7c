// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/rbe_pair_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/files/result_file.h"
#include "coordinator/job/same_input.h"
#include "kernels/encode/prepare_rows.h"

#define MAX_ROW_BYTES (BSW_RBE_MAX_DIMS * sizeof(float))

// Seeds of choices; those of training are small numbers.
enum { SEED_SAMPLE = 101, SEED_CHOICE };

// ---- files ----

static enum bsw_status check_options(const struct bsw_rbe_pair_options *o, struct bsw_error *err)
{
    if (o->base && o->documents)
        return bsw_fail(err, BSW_ERROR_USAGE, "--documents goes with --queries, not with --base");
    if (!o->base && !(o->queries && o->documents))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--queries and --documents, or --base with or without --groundtruth");
    if (!o->base && o->groundtruth)
        return bsw_fail(err, BSW_ERROR_USAGE, "--groundtruth goes with --base");
    if (o->base && o->queries && !o->groundtruth)
        return bsw_fail(err, BSW_ERROR_USAGE, "--queries with --base needs --groundtruth");
    if (!o->base && o->neighbours > 1)
        return bsw_fail(err, BSW_ERROR_USAGE, "--neighbours goes with --base");
    return BSW_OK;
}

static enum bsw_status open_files(struct bsw_rbe_pair_source *source, struct bsw_error *err)
{
    const struct bsw_rbe_pair_options *o = &source->options;
    const char *documents = o->base ? o->base : o->documents;
    BSW_TRY(bsw_vectors_open(documents, BSW_ALL_ROWS, &source->files[0], err));
    if (o->queries) BSW_TRY(bsw_queries_open(o->queries, BSW_ALL_ROWS, &source->files[1], err));
    source->sides[BSW_RBE_DOCUMENT] = source->files[0];
    source->sides[BSW_RBE_QUERY] = source->files[o->queries ? 1 : 0];
    source->dims = bsw_vectors_dims(source->files[0]);
    if (bsw_vectors_dims(source->sides[BSW_RBE_QUERY]) != source->dims) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %zu", o->queries,
                        bsw_vectors_dims(source->sides[BSW_RBE_QUERY]), documents, source->dims);
    }
    if (source->dims > BSW_RBE_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: %zu dims, a model takes up to %d", documents,
                        source->dims, BSW_RBE_MAX_DIMS);
    }
    return BSW_OK;
}

// ---- two files ----

static enum bsw_status pair_rows(struct bsw_rbe_pair_source *source, struct bsw_error *err)
{
    uint64_t queries = bsw_vectors_num_rows(source->sides[BSW_RBE_QUERY]),
             documents = bsw_vectors_num_rows(source->sides[BSW_RBE_DOCUMENT]);
    if (queries != documents) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s has %llu rows, %s has %llu: row i pairs with row i",
                        source->options.queries, (unsigned long long)queries,
                        source->options.documents, (unsigned long long)documents);
    }
    source->num_pairs = queries;
    source->num_choices = 1;
    return BSW_OK;
}

// ---- base and ground truth ----

// The first neighbours of query q but itself, where queries are rows of the base.
static enum bsw_status take_neighbours(struct bsw_rbe_pair_source *source,
                                       const struct bsw_results *truth, uint64_t q,
                                       struct bsw_error *err)
{
    const struct bsw_rbe_pair_options *o = &source->options;
    uint64_t rows = bsw_vectors_num_rows(source->files[0]);
    uint64_t *choices = source->choices + q * source->num_choices;
    size_t count = 0;
    for (uint64_t i = 0; i < truth->k && count < source->num_choices; i++) {
        int64_t id = truth->ids[q * truth->k + i];
        if (id < 0 || (!o->queries && (uint64_t)id == q)) continue;
        if ((uint64_t)id >= rows) {
            return bsw_fail(err, BSW_ERROR_BAD_DATA,
                            "%s: query %llu has neighbour %lld, %s has "
                            "%llu rows",
                            o->groundtruth, (unsigned long long)q, (long long)id, o->base,
                            (unsigned long long)rows);
        }
        choices[count++] = (uint64_t)id;
    }
    if (count < source->num_choices) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: query %llu has %zu neighbours%s, --neighbours "
                        "asks for %zu",
                        o->groundtruth, (unsigned long long)q, count,
                        o->queries ? "" : " besides itself", source->num_choices);
    }
    return BSW_OK;
}

static enum bsw_status pair_truth(struct bsw_rbe_pair_source *source,
                                  const struct bsw_results *truth, struct bsw_error *err)
{
    const struct bsw_rbe_pair_options *o = &source->options;
    uint64_t queries = bsw_vectors_num_rows(source->sides[BSW_RBE_QUERY]);
    if (truth->num_queries > queries || (o->queries && truth->num_queries != queries)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s is of %llu queries, %s has %llu rows",
                        o->groundtruth, (unsigned long long)truth->num_queries,
                        o->queries ? o->queries : o->base, (unsigned long long)queries);
    }
    source->num_pairs = truth->num_queries;
    source->num_choices = (size_t)o->neighbours;
    BSW_TRY(bsw_allocate(&source->choices, (size_t)source->num_pairs,
                         source->num_choices * sizeof(uint64_t), "pairs", err));
    for (uint64_t q = 0; q < source->num_pairs; q++)
        BSW_TRY(take_neighbours(source, truth, q, err));
    return BSW_OK;
}

static enum bsw_status read_truth(struct bsw_rbe_pair_source *source, struct bsw_error *err)
{
    struct bsw_results truth;
    BSW_TRY(bsw_results_read(source->options.groundtruth, &truth, err));
    enum bsw_status status = pair_truth(source, &truth, err);
    bsw_results_deinit(&truth);
    return status;
}

// ---- base alone ----

// One row of each of num_pairs equal strata.
static enum bsw_status draw_sample(struct bsw_rbe_pair_source *source, struct bsw_error *err)
{
    const struct bsw_rbe_pair_options *o = &source->options;
    uint64_t all = bsw_vectors_num_rows(source->files[0]);
    uint64_t count = o->sample < all ? o->sample : all;
    if (o->neighbours >= count) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--neighbours %llu: the sample has %llu rows",
                        (unsigned long long)o->neighbours, (unsigned long long)count);
    }
    source->num_pairs = count;
    source->num_choices = (size_t)o->neighbours;
    BSW_TRY(bsw_allocate(&source->rows, (size_t)count, sizeof(uint64_t), "sample", err));
    uint64_t seed = bsw_hash2(o->seed, SEED_SAMPLE);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t first = bsw_part_first(all, i, count), last = bsw_part_first(all, i + 1, count);
        source->rows[i] = first + bsw_hash2(seed, i) % (last - first);
    }
    return bsw_allocate(&source->choices, (size_t)count, source->num_choices * sizeof(uint64_t),
                        "pairs", err);
}

// ---- inputs ----

static enum bsw_status read_row(const struct bsw_rbe_pair_source *source, int side, uint64_t place,
                                float *out, float *factor, struct bsw_error *err)
{
    const bsw_vectors *vectors = source->sides[side];
    _Alignas(BSW_ALIGNMENT_BYTES) unsigned char numbers[MAX_ROW_BYTES];
    uint64_t row = source->rows ? source->rows[place] : place;
    enum bsw_row_fault fault;
    double norm;
    BSW_TRY(bsw_vectors_read(vectors, row, 1, numbers, err));
    bsw_prepare_rows(source->table, source->options.metric, bsw_vectors_type(vectors), numbers, 1,
                     source->dims, out, &norm, factor, &fault);
    if (fault == BSW_ROW_GOOD) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu %s", bsw_vectors_name(vectors),
                    (unsigned long long)row, bsw_row_fault_text(fault));
}

static int is_one_file(const struct bsw_rbe_pair_source *source)
{
    return !source->files[1];
}

// A document that is no held-out query, if there is one among the choices.
static uint64_t document_place(const struct bsw_rbe_pair_source *source, uint64_t pair,
                               uint64_t draw)
{
    if (!source->choices) return pair;
    const uint64_t *choices = source->choices + pair * source->num_choices;
    if (draw == 0) return choices[0];
    uint64_t seed = bsw_hash2(bsw_hash2(source->options.seed, SEED_CHOICE), draw);
    size_t first = (size_t)(bsw_hash2(seed, pair) % source->num_choices);
    for (size_t i = 0; i < source->num_choices; i++) {
        uint64_t place = choices[(first + i) % source->num_choices];
        if (!is_one_file(source) || place >= source->num_pairs || !source->is_held_out[place])
            return place;
    }
    return choices[first];
}

static enum bsw_status read_pair(void *context, uint64_t pair, uint64_t draw, float *query,
                                 float *document, struct bsw_error *err)
{
    const struct bsw_rbe_pair_source *source = context;
    float *rows[BSW_RBE_NUM_SIDES] = {query, document};
    uint64_t places[BSW_RBE_NUM_SIDES] = {pair, document_place(source, pair, draw)};
    for (int side = 0; side < BSW_RBE_NUM_SIDES; side++) {
        const float *mean = source->means[side];
        float *row = rows[side], factor, scale = source->scales[side];
        BSW_TRY(read_row(source, side, places[side], row, &factor, err));
        for (size_t i = 0; i < source->dims; i++) row[i] = (row[i] * factor - mean[i]) * scale;
    }
    return BSW_OK;
}

// A held-out query must not have been seen as a document.
static enum bsw_status exclude(void *context, const uint64_t *held_out, uint64_t num_held_out,
                               unsigned char *is_excluded, struct bsw_error *err)
{
    struct bsw_rbe_pair_source *source = context;
    (void)err;
    memset(source->is_held_out, 0, (size_t)source->num_pairs);
    if (!is_one_file(source)) return BSW_OK;
    for (uint64_t i = 0; i < num_held_out; i++) source->is_held_out[held_out[i]] = 1;
    for (uint64_t pair = 0; pair < source->num_pairs; pair++) {
        uint64_t place = document_place(source, pair, 1);
        is_excluded[pair] = place < source->num_pairs && source->is_held_out[place];
    }
    return BSW_OK;
}

struct bsw_rbe_pairs bsw_rbe_pair_source_pairs(struct bsw_rbe_pair_source *source)
{
    return (struct bsw_rbe_pairs){.context = source,
                                  .num_pairs = source->num_pairs,
                                  .mean = source->means[BSW_RBE_DOCUMENT],
                                  .scale = source->scales[BSW_RBE_DOCUMENT],
                                  .exclude = exclude,
                                  .read = read_pair};
}

// ---- mean and scale ----

// Adds to sums (if not NULL) the mean of the side's sample, to *squares the mean square of its
// components less `mean` (NULL: 0).
static enum bsw_status add_up_side(const struct bsw_rbe_pair_source *source, int side,
                                   const float *mean, double *sums, double *squares,
                                   struct bsw_error *err)
{
    uint64_t count =
        source->num_pairs < BSW_RBE_INPUT_SAMPLE ? source->num_pairs : BSW_RBE_INPUT_SAMPLE;
    float row[BSW_RBE_MAX_DIMS], factor;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t pair = bsw_part_first(source->num_pairs, i, count);
        uint64_t place = side == BSW_RBE_DOCUMENT ? document_place(source, pair, 0) : pair;
        BSW_TRY(read_row(source, side, place, row, &factor, err));
        for (size_t d = 0; d < source->dims; d++) {
            float x = row[d] * factor;
            double distance = (double)(x - (mean ? mean[d] : 0));
            if (sums) sums[d] += (double)x / (double)count;
            *squares += distance * distance / ((double)count * (double)source->dims);
        }
    }
    return BSW_OK;
}

static enum bsw_status fit_side(struct bsw_rbe_pair_source *source, int side, double *sums,
                                struct bsw_error *err)
{
    double squares = 0;
    float *mean = source->means[side];
    memset(sums, 0, source->dims * sizeof *sums);
    BSW_TRY(add_up_side(source, side, NULL, sums, &squares, err));
    for (size_t d = 0; d < source->dims; d++)
        mean[d] = source->options.is_centered ? (float)sums[d] : 0;
    squares = 0;
    BSW_TRY(add_up_side(source, side, mean, NULL, &squares, err));
    float scale = (float)(source->options.input_rms / sqrt(squares));
    if (!(squares > 0) || !isfinite(scale)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: all rows are the same, nothing to learn",
                        bsw_vectors_name(source->sides[side]));
    }
    source->scales[side] = scale;
    return BSW_OK;
}

static enum bsw_status fit_inputs(struct bsw_rbe_pair_source *source, struct bsw_error *err)
{
    double *sums;
    BSW_TRY(bsw_allocate(&sums, source->dims, sizeof *sums, "mean", err));
    int is_shared = is_one_file(source) || source->options.is_one_space;
    enum bsw_status status = fit_side(source, BSW_RBE_DOCUMENT, sums, err);
    if (status == BSW_OK && !is_shared) status = fit_side(source, BSW_RBE_QUERY, sums, err);
    if (status == BSW_OK && is_shared) {
        memcpy(source->means[BSW_RBE_QUERY], source->means[BSW_RBE_DOCUMENT],
               source->dims * sizeof(float));
        source->scales[BSW_RBE_QUERY] = source->scales[BSW_RBE_DOCUMENT];
    }
    bsw_free(&sums);
    return status;
}

// ---- the whole ----

static enum bsw_status agree_on_files(struct bsw_rbe_pair_source *source,
                                      struct bsw_transport *transport, struct bsw_error *err)
{
    uint64_t digests[2] = {0, 0};
    enum bsw_status status = BSW_OK;
    for (int i = 0; i < 2 && status == BSW_OK; i++) {
        if (source->files[i]) status = bsw_same_input_digest(source->files[i], &digests[i], err);
    }
    BSW_TRY(bsw_transport_agree(transport, status, err));
    for (int i = 0; i < 2; i++) {
        if (source->files[i])
            BSW_TRY(bsw_same_input_agree(transport, digests[i], bsw_vectors_name(source->files[i]),
                                         err));
    }
    source->digest =
        bsw_hash2(bsw_hash2(digests[0], digests[1]),
                  2 * (uint64_t)source->options.metric + (uint64_t)source->options.is_centered);
    return BSW_OK;
}

static enum bsw_status find_pairs(struct bsw_rbe_pair_source *source,
                                  struct bsw_transport *transport, struct bsw_error *err)
{
    const struct bsw_rbe_pair_options *o = &source->options;
    enum bsw_status status = !o->base         ? pair_rows(source, err)
                             : o->groundtruth ? read_truth(source, err)
                                              : draw_sample(source, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    if (source->rows) BSW_TRY(bsw_rbe_find_neighbours(source, transport, err));
    if (!source->choices) return BSW_OK;
    size_t bytes = (size_t)source->num_pairs * source->num_choices * sizeof(uint64_t);
    uint64_t digest = XXH3_64bits(source->choices, bytes);
    source->digest = bsw_hash2(source->digest, digest);
    return bsw_same_input_agree(transport, digest, o->groundtruth ? o->groundtruth : o->base, err);
}

enum bsw_status bsw_rbe_pair_source_open(const struct bsw_rbe_pair_options *options,
                                         struct bsw_transport *transport,
                                         struct bsw_rbe_pair_source *out, struct bsw_error *err)
{
    *out = (struct bsw_rbe_pair_source){.options = *options,
                                        .table = bsw_encode_table_get(options->level)};
    BSW_TRY(check_options(options, err)); // the same on every rank
    enum bsw_status status = open_files(out, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(agree_on_files(out, transport, err));
    BSW_TRY(find_pairs(out, transport, err));
    status = bsw_allocate_zero(&out->is_held_out, (size_t)out->num_pairs, 1, "pairs", err);
    for (int side = 0; side < BSW_RBE_NUM_SIDES && status == BSW_OK; side++)
        status = bsw_allocate(&out->means[side], out->dims, sizeof(float), "mean", err);
    if (status == BSW_OK) status = fit_inputs(out, err);
    return bsw_transport_agree(transport, status, err);
}

void bsw_rbe_pair_source_close(struct bsw_rbe_pair_source *source)
{
    for (int i = 0; i < 2; i++) bsw_vectors_close(&source->files[i]);
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) bsw_free(&source->means[i]);
    bsw_free(&source->rows);
    bsw_free(&source->choices);
    bsw_free(&source->is_held_out);
}

// ---- trained and held out ----

enum { SEED_SPLIT = 3, SEED_HELD_OUT = 6 }; // what seeds are hashed with; others: rbe_training.c
#define NUM_DIRECTIONS 16                   // halvings: 65,536 cells

// ---- the order ----

struct place {
    uint64_t pair;
    float keys[NUM_DIRECTIONS];
    float key; // that it is sorted by now
};

void bsw_rbe_shuffle(uint64_t seed, uint64_t *values, uint64_t count)
{
    for (uint64_t i = count; i > 1; i--) {
        uint64_t j = bsw_hash2(seed, i) % i, kept = values[i - 1];
        values[i - 1] = values[j];
        values[j] = kept;
    }
}

// Directions of random signs: 64 of them from one hash.
static void project(const float *query, size_t dims, uint64_t seed, float *keys)
{
    for (uint64_t k = 0; k < NUM_DIRECTIONS; k++) {
        float sum = 0;
        for (size_t first = 0; first < dims; first += 64) {
            uint64_t signs = bsw_hash2(bsw_hash2(seed, k), first);
            for (size_t i = first; i < dims && i < first + 64; i++, signs >>= 1)
                sum += signs & 1 ? query[i] : -query[i];
        }
        keys[k] = sum;
    }
}

static enum bsw_status fill_places(const struct bsw_rbe_pairs *pairs, size_t dims, uint64_t draw,
                                   uint64_t seed, const uint64_t *order, uint64_t count,
                                   struct place *places, struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < count; i++) {
        float query[BSW_RBE_MAX_DIMS], document[BSW_RBE_MAX_DIMS];
        struct bsw_error read_error;
        enum bsw_status read =
            pairs->read(pairs->context, order[i], draw, query, document, &read_error);
        places[i].pair = order[i];
        if (read == BSW_OK)
            project(query, dims, seed, places[i].keys);
        else
            bsw_first_failure_note(&failure, i, read, &read_error);
    }
    return bsw_first_failure_report(&failure, err);
}

// A NaN compares as equal to all: the order is then any, and training finds it.
static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->key < y->key) return -1;
    if (x->key > y->key) return 1;
    return x->pair < y->pair ? -1 : x->pair > y->pair;
}

static void halve(struct place *places, uint64_t count, int level, uint64_t cell_pairs)
{
    if (count <= cell_pairs || level == NUM_DIRECTIONS) return;
    for (uint64_t i = 0; i < count; i++) places[i].key = places[i].keys[level];
    qsort(places, count, sizeof *places, compare_places);
    uint64_t cells = (count + cell_pairs - 1) / cell_pairs, half = cells / 2 * cell_pairs;
    halve(places, half, level + 1, cell_pairs);
    halve(places + half, count - half, level + 1, cell_pairs);
}

// Whole cells in random order; what does not fill one comes last.
static enum bsw_status shuffle_cells(const struct place *places, uint64_t count, uint64_t seed,
                                     uint64_t cell_pairs, uint64_t *order, struct bsw_error *err)
{
    uint64_t *cells, num_cells = count / cell_pairs, next = 0;
    BSW_TRY(bsw_allocate(&cells, (size_t)num_cells, sizeof *cells, "order", err));
    for (uint64_t i = 0; i < num_cells; i++) cells[i] = i;
    bsw_rbe_shuffle(seed, cells, num_cells);
    for (uint64_t i = 0; i < num_cells; i++) {
        for (uint64_t k = 0; k < cell_pairs; k++)
            order[next++] = places[cells[i] * cell_pairs + k].pair;
    }
    while (next < count) {
        order[next] = places[next].pair;
        next++;
    }
    bsw_free(&cells);
    return BSW_OK;
}

enum bsw_status bsw_rbe_order_cells(const struct bsw_rbe_pairs *pairs, size_t dims, uint64_t draw,
                                    uint64_t seed, size_t cell_pairs, uint64_t *order,
                                    uint64_t count, struct bsw_error *err)
{
    struct place *places;
    BSW_TRY(bsw_allocate(&places, (size_t)count, sizeof *places, "order", err));
    enum bsw_status status = fill_places(pairs, dims, draw, seed, order, count, places, err);
    if (status == BSW_OK) {
        halve(places, count, 0, cell_pairs);
        status = shuffle_cells(places, count, seed, cell_pairs, order, err);
    }
    bsw_free(&places);
    return status;
}

// ---- the split ----

// Trained pairs in ascending order, without those that share rows with the held-out.
static enum bsw_status list_trained(const struct bsw_rbe_pairs *pairs, struct bsw_rbe_split *split,
                                    struct bsw_error *err)
{
    uint64_t all = pairs->num_pairs;
    unsigned char *is_excluded;
    BSW_TRY(bsw_allocate_zero(&is_excluded, (size_t)all, 1, "pairs", err));
    enum bsw_status status = BSW_OK;
    if (pairs->exclude && split->num_held_out > 0) {
        status =
            pairs->exclude(pairs->context, split->held_out, split->num_held_out, is_excluded, err);
    }
    for (uint64_t i = 0; i < split->num_held_out; i++) is_excluded[split->held_out[i]] = 1;
    for (uint64_t i = 0; i < all; i++) {
        if (!is_excluded[i]) split->trained[split->num_trained++] = i;
    }
    bsw_free(&is_excluded);
    return status;
}

// After the split, as if an epoch's.
static enum bsw_status order_held_out(const struct bsw_rbe_training_options *o,
                                      const struct bsw_rbe_pairs *pairs, size_t group_pairs,
                                      struct bsw_rbe_split *split, struct bsw_error *err)
{
    if (!o->has_near_negatives || split->num_held_out == 0) return BSW_OK;
    return bsw_rbe_order_cells(pairs, o->shapes[0].dims, 0, bsw_hash2(o->seed, SEED_HELD_OUT),
                               group_pairs, split->held_out, split->num_held_out, err);
}

enum bsw_status bsw_rbe_split_init(const struct bsw_rbe_training_options *o,
                                   const struct bsw_rbe_pairs *pairs, uint64_t ranks,
                                   size_t group_pairs, struct bsw_rbe_split *split,
                                   struct bsw_error *err)
{
    uint64_t all = pairs->num_pairs, least = o->negatives + 1;
    split->num_held_out = (uint64_t)ceil((double)all * o->validation);
    if (split->num_held_out > 0 && split->num_held_out / ranks < least) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%llu pairs held out of %llu: %llu negatives take more than that on each "
                        "rank; a larger --validation, or 0",
                        (unsigned long long)split->num_held_out, (unsigned long long)all,
                        (unsigned long long)o->negatives);
    }
    BSW_TRY(bsw_allocate(&split->ids, (size_t)all, 2 * sizeof(uint64_t), "pairs", err));
    split->held_out = split->ids + all;
    split->trained = split->ids;
    for (uint64_t i = 0; i < all; i++) split->held_out[i] = i;
    bsw_rbe_shuffle(bsw_hash2(o->seed, SEED_SPLIT), split->held_out, all);
    BSW_TRY(list_trained(pairs, split, err));
    split->batch_pairs =
        (size_t)(o->batch_pairs < split->num_trained ? o->batch_pairs : split->num_trained);
    if (split->batch_pairs / ranks < least) {
        return bsw_fail(
            err, BSW_ERROR_USAGE,
            "batches of %zu from %llu pairs: %llu negatives take more than that on each "
            "rank",
            split->batch_pairs, (unsigned long long)split->num_trained,
            (unsigned long long)o->negatives);
    }
    split->num_batches = split->num_trained / split->batch_pairs;
    return order_held_out(o, pairs, group_pairs, split, err);
}

void bsw_rbe_split_deinit(struct bsw_rbe_split *split)
{
    bsw_free(&split->ids);
}
