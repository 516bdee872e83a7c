// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/list_splits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"

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
    if (splits->metric == BSW_METRIC_COSINE && !normalize(mean, dims)) return;
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
    if (splits->metric == BSW_METRIC_COSINE) normalize(to, dims);
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
