// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/lloyd_rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/job/stop_signal.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "shard/lists/list_assignment.h"

// Rows that are assigned between two looks for a stop: a second or so of work.
#define CHUNK_ROWS ((size_t)65536)
// Rounds at the end in which lists stay where they are, but for empty ones.
#define CALM_ROUNDS 3

struct run {
    struct bsw_lloyd *lloyd;
    const struct bsw_list_rows *rows;
    size_t num_lists;
    uint64_t seed, number; // of the training's runs
    float *centroids;
    uint32_t *lists; // [num_rows]
    double *keys;    // [num_rows]
    struct bsw_list_sums sums;
    struct bsw_list_totals totals;
};

static int is_root(const struct bsw_lloyd *lloyd)
{
    return lloyd->transport->rank == 0;
}

static struct bsw_message next_message(struct bsw_lloyd *lloyd, const char *name)
{
    return (struct bsw_message){
        .kind = BSW_MESSAGE_LISTS, .batch = ++lloyd->sequence, .name = name};
}

// ---- exchanges ----

static enum bsw_status share(struct bsw_lloyd *lloyd, const char *name, void *data, size_t bytes,
                             struct bsw_error *err)
{
    const struct bsw_message message = next_message(lloyd, name);
    return bsw_share_record(lloyd->transport, &message, data, bytes, err);
}

struct combining {
    enum bsw_combination how;
    int64_t *words;
    size_t num_words;
};

static enum bsw_status combine_words(void *context, int rank, const struct bsw_buffer *payload,
                                     struct bsw_error *err)
{
    const struct combining *combining = context;
    if (payload->bytes != combining->num_words * sizeof(int64_t))
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes of sums, not %zu", rank,
                        payload->bytes, combining->num_words * sizeof(int64_t));
    for (size_t i = 0; i < combining->num_words; i++) {
        int64_t word, *own = &combining->words[i];
        memcpy(&word, payload->data + i * sizeof word, sizeof word);
        if (combining->how == BSW_COMBINE_SUM)
            *own += word;
        else if (word > *own)
            *own = word;
    }
    return BSW_OK;
}

// To rank 0 alone, once all have come as far. status: this rank's so far. All return the same.
static enum bsw_status combine_at_root(struct bsw_lloyd *lloyd, enum bsw_combination how,
                                       int64_t *words, size_t num_words, enum bsw_status status,
                                       struct bsw_error *err)
{
    struct combining combining = {how, words, num_words};
    const struct bsw_message message = next_message(lloyd, "sums");
    BSW_TRY(bsw_transport_agree(lloyd->transport, status, err));
    status = bsw_collect(lloyd->transport, &message, words, num_words * sizeof *words,
                         combine_words, &combining, err);
    return bsw_transport_agree(lloyd->transport, status, err);
}

enum bsw_status bsw_lloyd_combine(struct bsw_lloyd *lloyd, enum bsw_combination how, int64_t *words,
                                  size_t num_words, struct bsw_error *err)
{
    BSW_TRY(combine_at_root(lloyd, how, words, num_words, BSW_OK, err));
    return bsw_transport_agree(lloyd->transport,
                               share(lloyd, "sums", words, num_words * sizeof *words, err), err);
}

enum bsw_status bsw_lloyd_count(struct bsw_lloyd *lloyd, uint64_t num_rows,
                                struct bsw_row_counts *out, struct bsw_error *err)
{
    size_t ranks = (size_t)lloyd->transport->num_ranks;
    int64_t *counts;
    *out = (struct bsw_row_counts){0, 0};
    enum bsw_status status = bsw_allocate_zero(&counts, ranks, sizeof *counts, "counts", err);
    status = bsw_transport_agree(lloyd->transport, status, err);
    if (status == BSW_OK) {
        counts[lloyd->transport->rank] = (int64_t)num_rows;
        status = bsw_lloyd_combine(lloyd, BSW_COMBINE_SUM, counts, ranks, err);
    }
    for (size_t r = 0; r < ranks && status == BSW_OK; r++) {
        out->total += (uint64_t)counts[r];
        if (r < (size_t)lloyd->transport->rank) out->before += (uint64_t)counts[r];
    }
    bsw_free(&counts);
    return status;
}

// ---- a round ----

// Rank 0's new centroids from the totals, to all. Whether that was the last round.
static enum bsw_status update(struct run *run, uint32_t round, uint32_t *is_over,
                              struct bsw_error *err)
{
    struct bsw_lloyd *lloyd = run->lloyd;
    size_t num_moved = 0, numbers = run->num_lists * lloyd->dims;
    enum bsw_status status = BSW_OK;
    if (is_root(lloyd)) {
        const struct bsw_list_splits splits = {lloyd->metric, lloyd->scales,
                                               bsw_hash2(run->seed, round),
                                               round > 0 && round + CALM_ROUNDS <= lloyd->rounds};
        status = bsw_list_splits_update(&splits, &run->totals, run->centroids, &num_moved, err);
        *is_over = *bsw_totals_changes(&run->totals) == 0 && num_moved == 0;
    }
    BSW_TRY(bsw_transport_agree(lloyd->transport, status, err));
    status = share(lloyd, "decision", is_over, sizeof *is_over, err);
    if (status == BSW_OK)
        status = share(lloyd, "centroids", run->centroids, numbers * sizeof(float), err);
    return bsw_transport_agree(lloyd->transport, status, err);
}

// Adds up rows by their lists and makes centroids of them; status: this rank's so far.
static enum bsw_status finish_round(struct run *run, uint32_t round, const double *keys,
                                    int64_t num_changes, uint32_t *is_over, enum bsw_status status,
                                    struct bsw_error *err)
{
    if (status == BSW_OK) {
        bsw_list_sums_add(&run->sums, run->rows, run->lists, keys, &run->totals);
        *bsw_totals_changes(&run->totals) = num_changes;
    }
    BSW_TRY(combine_at_root(run->lloyd, BSW_COMBINE_SUM, run->totals.words, run->totals.num_words,
                            status, err));
    return update(run, round, is_over, err);
}

static enum bsw_status assign_rows(struct bsw_lloyd *lloyd, bsw_list_assigner *assigner,
                                   const struct bsw_list_rows *rows,
                                   const struct bsw_lloyd_lists *out, uint32_t *before,
                                   struct bsw_error *err)
{
    size_t row_bytes = lloyd->dims * bsw_vector_type_bytes(lloyd->type);
    for (size_t first = 0; first < rows->num_rows; first += CHUNK_ROWS) {
        size_t left = rows->num_rows - first, count = left < CHUNK_ROWS ? left : CHUNK_ROWS;
        uint32_t *lists = out->lists + first;
        if (bsw_stop_is_asked()) return bsw_stop_fail(err);
        memcpy(before, lists, count * sizeof *before);
        const struct bsw_list_assignment assignment = {.rows = rows->raw + first * row_bytes,
                                                       .num_rows = count,
                                                       .guesses = out->are_guesses ? before : NULL,
                                                       .lists = lists,
                                                       .keys =
                                                           out->keys ? out->keys + first : NULL};
        BSW_TRY(bsw_list_assigner_assign(assigner, &assignment, err));
        for (size_t i = 0; i < count; i++) *out->num_changes += lists[i] != before[i];
        lloyd->rows_done += count;
        bsw_progress_update(lloyd->progress, lloyd->rows_done);
    }
    return BSW_OK;
}

enum bsw_status bsw_lloyd_assign(struct bsw_lloyd *lloyd, const struct bsw_list_rows *rows,
                                 const float *centroids, size_t num_lists,
                                 const struct bsw_lloyd_lists *out, struct bsw_error *err)
{
    struct bsw_list_assigner_needs needs = {.metric = lloyd->metric,
                                            .type = lloyd->type,
                                            .dims = lloyd->dims,
                                            .centroids = centroids,
                                            .num_lists = num_lists,
                                            .level = lloyd->level,
                                            .num_threads = lloyd->num_threads};
    bsw_list_assigner *assigner;
    uint32_t *before;
    *out->num_changes = 0;
    bsw_list_assigner_take_finder(&needs, lloyd->finder, rows->num_rows);
    BSW_TRY(bsw_allocate(&before, CHUNK_ROWS, sizeof *before, "lists", err));
    enum bsw_status status = bsw_list_assigner_open(&needs, &assigner, err);
    if (status == BSW_OK) status = assign_rows(lloyd, assigner, rows, out, before, err);
    bsw_list_assigner_close(&assigner);
    bsw_free(&before);
    return status;
}

static enum bsw_status run_round(struct run *run, uint32_t round, uint32_t *is_over,
                                 struct bsw_error *err)
{
    int64_t num_changes;
    const struct bsw_lloyd_lists lists = {run->lists, run->keys, round > 1, &num_changes};
    enum bsw_status status =
        bsw_lloyd_assign(run->lloyd, run->rows, run->centroids, run->num_lists, &lists, err);
    return finish_round(run, round, run->keys, num_changes, is_over, status, err);
}

// ---- the beginning ----

static enum bsw_status open_run(struct run *run, struct bsw_error *err)
{
    struct bsw_lloyd *lloyd = run->lloyd;
    size_t num_rows = run->rows->num_rows;
    run->sums = (struct bsw_list_sums){.metric = lloyd->metric,
                                       .type = lloyd->type,
                                       .level = lloyd->level,
                                       .num_threads = lloyd->num_threads,
                                       .scales = lloyd->scales};
    BSW_TRY(bsw_allocate(&run->lists, num_rows, sizeof *run->lists, "lists of rows", err));
    BSW_TRY(bsw_allocate(&run->keys, num_rows, sizeof *run->keys, "lists of rows", err));
    BSW_TRY(bsw_list_sums_open(num_rows, run->num_lists, lloyd->dims, &run->sums, err));
    return bsw_list_totals_open(run->num_lists, lloyd->dims, &run->totals, err);
}

static void close_run(struct run *run)
{
    bsw_free(&run->lists);
    bsw_free(&run->keys);
    bsw_list_sums_close(&run->sums);
    bsw_list_totals_close(&run->totals);
}

// Row `before + i` of all is row i here: those that a list begins with get it, all others none.
static void choose_rows(struct run *run, const struct bsw_row_counts *counts)
{
    for (size_t i = 0; i < run->rows->num_rows; i++) run->lists[i] = BSW_NO_LIST;
    for (size_t l = 0; l < run->num_lists; l++) {
        uint64_t first = bsw_part_first(counts->total, l, run->num_lists);
        uint64_t width = bsw_part_first(counts->total, l + 1, run->num_lists) - first;
        if (width == 0) continue;
        uint64_t row = first + bsw_hash2(run->seed, l) % width;
        if (row >= counts->before && row - counts->before < run->rows->num_rows)
            run->lists[row - counts->before] = (uint32_t)l;
    }
    for (size_t i = 0; i < run->num_lists * run->lloyd->dims; i++) run->centroids[i] = NAN;
}

// ---- rounds that are kept ----

// Rank 0: what a round has made. is_end: nothing is left to be done.
static enum bsw_status keep_round(struct run *run, uint32_t round, int is_end,
                                  struct bsw_error *err)
{
    struct bsw_lloyd *lloyd = run->lloyd;
    size_t numbers = run->num_lists * lloyd->dims;
    if (!lloyd->journal || (lloyd->keeps_last && !is_end)) return BSW_OK;
    return bsw_training_journal_put(lloyd->journal, run->number, round, is_end, run->centroids,
                                    numbers, err);
}

// Rank 0's centroids to all, which are those of run->centroids then.
static enum bsw_status share_centroids(struct run *run, const float *known, struct bsw_error *err)
{
    struct bsw_lloyd *lloyd = run->lloyd;
    size_t bytes = run->num_lists * lloyd->dims * sizeof(float);
    if (is_root(lloyd)) memcpy(run->centroids, known, bytes);
    enum bsw_status status = share(lloyd, "centroids", run->centroids, bytes, err);
    return bsw_transport_agree(lloyd->transport, status, err);
}

// The lists that rows had after a round are those by the centroids before it.
static enum bsw_status assign_again(struct run *run, const float *before, struct bsw_error *err)
{
    struct bsw_lloyd *lloyd = run->lloyd;
    int64_t num_changes;
    const struct bsw_lloyd_lists lists = {run->lists, run->keys, 0, &num_changes};
    BSW_TRY(share_centroids(run, before, err));
    for (size_t i = 0; i < run->rows->num_rows; i++) run->lists[i] = BSW_NO_LIST;
    enum bsw_status status =
        bsw_lloyd_assign(lloyd, run->rows, run->centroids, run->num_lists, &lists, err);
    return bsw_transport_agree(lloyd->transport, status, err);
}

// The last round that is known, 0 if none is; with that centroids and lists are as it left them.
static enum bsw_status go_on(struct run *run, uint32_t *round, uint32_t *is_over,
                             struct bsw_error *err)
{
    struct bsw_lloyd *lloyd = run->lloyd;
    struct bsw_training_known known = {0, 0, NULL, NULL};
    if (!lloyd->is_kept) return BSW_OK;
    if (lloyd->journal)
        bsw_training_journal_find(lloyd->journal, run->number, run->num_lists * lloyd->dims,
                                  &known);
    uint32_t words[] = {known.round, known.is_last};
    enum bsw_status status = share(lloyd, "round", words, sizeof words, err);
    BSW_TRY(bsw_transport_agree(lloyd->transport, status, err));
    *round = words[0];
    *is_over = words[1];
    if (*round == 0) return BSW_OK;
    if (!*is_over) BSW_TRY(assign_again(run, known.before, err));
    return share_centroids(run, known.centroids, err);
}

// The first centroids, which are rows.
static enum bsw_status begin(struct run *run, const struct bsw_row_counts *counts,
                             struct bsw_error *err)
{
    uint32_t is_over;
    choose_rows(run, counts);
    // No row has changed yet, and no list is split: changes are not 0 so that it goes on.
    BSW_TRY(finish_round(run, 0, NULL, 1, &is_over, BSW_OK, err));
    return bsw_transport_agree(run->lloyd->transport, keep_round(run, 0, 0, err), err);
}

static enum bsw_status run_rounds(struct run *run, const struct bsw_row_counts *counts,
                                  struct bsw_error *err)
{
    uint32_t most = run->lloyd->rounds, round = 0, is_over = 0;
    BSW_TRY(go_on(run, &round, &is_over, err));
    if (round == 0) BSW_TRY(begin(run, counts, err));
    while (round < most && !is_over) {
        BSW_TRY(run_round(run, ++round, &is_over, err));
        enum bsw_status status = keep_round(run, round, is_over || round == most, err);
        BSW_TRY(bsw_transport_agree(run->lloyd->transport, status, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_lloyd_run(struct bsw_lloyd *lloyd, const struct bsw_list_rows *rows,
                              size_t num_lists, uint64_t seed, float *centroids,
                              struct bsw_error *err)
{
    struct run run = {.lloyd = lloyd,
                      .rows = rows,
                      .num_lists = num_lists,
                      .seed = seed,
                      .number = lloyd->num_runs++,
                      .centroids = centroids};
    struct bsw_row_counts counts;
    uint64_t rows_done = lloyd->rows_done + rows->num_rows * (uint64_t)lloyd->rounds;
    enum bsw_status status = bsw_lloyd_count(lloyd, rows->num_rows, &counts, err);
    if (status == BSW_OK) {
        status = bsw_transport_agree(lloyd->transport, open_run(&run, err), err);
        if (status == BSW_OK) status = run_rounds(&run, &counts, err);
    }
    lloyd->rows_done = rows_done; // of rounds that were not needed, too
    close_run(&run);
    return status;
}

// ---- lists without rows ----

#define TOO_LONG 4 // times the mean
// Lists that one round takes from where they are: one in so many, and only those below half the
// mean. The others have to take their rows.
#define PART_MOVED 8
// Steps are this part of a list's mean distance on average. A few rows far away change that less
// than its deviation, and a centroid so near to the list's rows gets some of them.
#define STEP 0.125
// Part of a centroid's length: rows that are nearer than that on average are copies of one.
#define LEAST_DISTANCE 0x1p-20

// ---- means ----

// Scales to unit length; returns 0 where there is no direction.
static int normalize(float *centroid, size_t dims)
{
    double sum = 0.0;
    for (size_t d = 0; d < dims; d++) sum += (double)centroid[d] * (double)centroid[d];
    if (!(sum > 0x1p-60)) return 0;
    double factor = 1.0 / sqrt(sum);
    for (size_t d = 0; d < dims; d++) centroid[d] = (float)((double)centroid[d] * factor);
    return 1;
}

static void take_mean(const struct bsw_list_splits *splits, const struct bsw_list_totals *totals,
                      size_t list, float *mean, float *centroid)
{
    size_t dims = totals->dims;
    const int64_t *sums = bsw_totals_sums(totals) + list * dims;
    double count = (double)bsw_totals_counts(totals)[list];
    for (size_t d = 0; d < dims; d++)
        mean[d] = (float)((double)sums[d] / count / splits->scales.components[d]);
    if (bsw_has_unit_rows(splits->metric) && !normalize(mean, dims)) return;
    memcpy(centroid, mean, dims * sizeof *mean);
}

// ---- splits ----

// A list that may be split, and how many parts it has been split into so far.
struct length {
    int64_t count, parts;
    double distance; // sum over its rows
    uint32_t list;
};

static int64_t part_of(const struct length *length)
{
    return length->count / length->parts;
}

struct lengths {
    struct length *heap; // of lists that may be split, the longest first
    size_t num_long;
    struct length *donors; // lists to be moved, the first to go first
    size_t num_donors, next_donor;
};

static int is_before(const struct length *a, const struct length *b)
{
    int64_t one = part_of(a), other = part_of(b);
    return one != other ? one > other : a->list < b->list;
}

static void sift_down(struct length *heap, size_t count, size_t at)
{
    for (;;) {
        size_t best = at, child = 2 * at + 1;
        if (child < count && is_before(&heap[child], &heap[best])) best = child;
        if (child + 1 < count && is_before(&heap[child + 1], &heap[best])) best = child + 1;
        if (best == at) return;
        struct length moved = heap[at];
        heap[at] = heap[best];
        heap[best] = moved;
        at = best;
    }
}

static void push(struct lengths *lengths, struct length length)
{
    struct length *heap = lengths->heap;
    size_t at = lengths->num_long++;
    for (; at > 0 && is_before(&length, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = length;
}

static struct length pop(struct lengths *lengths)
{
    struct length *heap = lengths->heap, top = heap[0];
    heap[0] = heap[--lengths->num_long];
    sift_down(heap, lengths->num_long, 0);
    return top;
}

static int compare_donors(const void *a, const void *b)
{
    return is_before(a, b) - is_before(b, a); // the shortest first, of these the later list
}

static int64_t mean_length(const struct bsw_list_totals *totals)
{
    int64_t total = 0;
    for (size_t l = 0; l < totals->num_lists; l++) total += bsw_totals_counts(totals)[l];
    return total / (int64_t)totals->num_lists;
}

// Whether rows differ by more than a centroid's rounding.
static int can_be_split(const struct length *length, const float *centroid, size_t dims)
{
    double squared = 0.0;
    for (size_t d = 0; d < dims; d++) squared += (double)centroid[d] * (double)centroid[d];
    return length->count > 1 &&
           length->distance > LEAST_DISTANCE * sqrt(squared) * (double)length->count;
}

// The lists that may be split and those that may be moved, which are few and so never the same.
static void sort_lists(const struct bsw_list_splits *splits, const struct bsw_list_totals *totals,
                       int64_t mean, const float *centroids, struct lengths *lengths)
{
    size_t num_empty = 0;
    for (size_t l = 0; l < totals->num_lists; l++) {
        struct length length = {bsw_totals_counts(totals)[l], 1,
                                (double)bsw_totals_distances(totals)[l] / splits->scales.distance,
                                (uint32_t)l};
        int is_long = length.count > 0 && 2 * length.count >= mean;
        if (is_long && can_be_split(&length, centroids + l * totals->dims, totals->dims))
            push(lengths, length);
        else if (!is_long)
            lengths->donors[lengths->num_donors++] = length;
        num_empty += length.count == 0;
    }
    qsort(lengths->donors, lengths->num_donors, sizeof *lengths->donors, compare_donors);
    size_t most = splits->is_balanced ? num_empty + totals->num_lists / PART_MOVED + 1 : num_empty;
    if (lengths->num_donors > most) lengths->num_donors = most;
}

// A list beside another: its centroid and a step in any direction.
static void split(const struct bsw_list_splits *splits, const struct length *length, size_t dims,
                  uint32_t into, float *centroids)
{
    const float *from = centroids + length->list * dims;
    float *to = centroids + into * dims;
    double step = STEP * length->distance / (double)length->count / sqrt((double)dims / 3.0);
    uint64_t seed = bsw_hash2(splits->seed, into);
    for (size_t d = 0; d < dims; d++) {
        double part = (double)(bsw_hash2(seed, d) >> 11) * 0x1p-52 - 1.0;
        to[d] = (float)((double)from[d] + part * step);
    }
    if (bsw_has_unit_rows(splits->metric)) normalize(to, dims);
}

static size_t split_lists(const struct bsw_list_splits *splits,
                          const struct bsw_list_totals *totals, struct lengths *lengths,
                          int64_t mean, float *centroids)
{
    size_t num_moved = 0;
    for (size_t i = 0; i < lengths->num_donors && lengths->num_long > 0; i++) {
        if (lengths->donors[i].count > 0 && part_of(&lengths->heap[0]) <= TOO_LONG * mean) break;
        struct length length = pop(lengths);
        split(splits, &length, totals->dims, lengths->donors[i].list, centroids);
        length.parts++;
        if (part_of(&length) > 1) push(lengths, length);
        num_moved++;
    }
    return num_moved;
}

// Lists without rows that nothing could be split for, where they have no centroid yet: any good
// one.
static void fill_lists(const struct bsw_list_totals *totals, float *centroids)
{
    const int64_t *counts = bsw_totals_counts(totals);
    size_t dims = totals->dims, good = 0;
    while (good + 1 < totals->num_lists && counts[good] == 0) good++;
    for (size_t l = 0; l < totals->num_lists; l++)
        if (counts[l] == 0 && isnan(centroids[l * dims]))
            memcpy(centroids + l * dims, centroids + good * dims, dims * sizeof *centroids);
}

enum bsw_status bsw_list_splits_update(const struct bsw_list_splits *splits,
                                       const struct bsw_list_totals *totals, float *centroids,
                                       size_t *num_moved, struct bsw_error *err)
{
    size_t num_lists = totals->num_lists, dims = totals->dims;
    struct lengths lengths = {.heap = NULL};
    int64_t mean = mean_length(totals);
    float *room = NULL;
    enum bsw_status status =
        bsw_allocate(&lengths.heap, num_lists, sizeof *lengths.heap, "lists", err);
    if (status == BSW_OK)
        status = bsw_allocate(&lengths.donors, num_lists, sizeof *lengths.donors, "lists", err);
    if (status == BSW_OK) status = bsw_allocate(&room, dims, sizeof *room, "lists", err);
    if (status == BSW_OK) {
        for (size_t l = 0; l < num_lists; l++)
            if (bsw_totals_counts(totals)[l] > 0)
                take_mean(splits, totals, l, room, centroids + l * dims);
        sort_lists(splits, totals, mean, centroids, &lengths);
        *num_moved = split_lists(splits, totals, &lengths, mean, centroids);
        fill_lists(totals, centroids);
    }
    bsw_free(&lengths.heap);
    bsw_free(&lengths.donors);
    bsw_free(&room);
    return status;
}
